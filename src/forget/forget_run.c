/* SPDX-License-Identifier: MIT */
/*
 * forget_run.c - combines options and configuration, mounts, and serves until the mount ends.
 */
#include "forget/forget_run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/lock.h"
#include "base/names_in.h"
#include "base/words.h"
#include "fs/profile.h"
#include "forget/forget.h"
#include "forget/forget_control.h"
#include "forget/forget_nested.h"
#include "forget/forget_place.h"
#include "inject/inject.h"

/* LazyFS's default FIFO, in the working directory, if its configuration names none. */
#define LAZYFS_FIFO "faults.fifo"

/* One run, by the options and the configuration together. */
struct mount_run {
	const struct forget_run_opts *o;
	struct inject_config config;
	char *root, *mnt; /* absolute, without symbolic links */
	char *fifo, *fifo_completed, *log, *trace, *socket;
	const struct profile *profile;
	struct pagecache_opts cache;
	struct inject *faults;
	int log_fd;
	pthread_mutex_t log_lock;
	char *hidden; /* a warning that the mount hides files; or NULL */
	struct forget *forget;
	struct forget_place place;
	struct forget_control *control;
};

void forget_run_opts_release(struct forget_run_opts *o)
{
	vec_release(&o->faults);
	vec_release(&o->fuse_options);
}

/* ---- the log ---- */

/* Adds "2026-11-16 03:04:05.678 ". */
static void add_time(struct strbuf *out)
{
	struct timespec now;
	struct tm tm;
	char day[32];

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm);
	strbuf_addf(out, "%s.%03ld ", day, now.tv_nsec / 1000000);
}

/*
 * Writes each line with the time, into the file at once, and to the terminal, if any. A report
 * before a power cut may have very many lines: they are one write.
 */
static void log_lines(void *ctx, const char *lines)
{
	struct mount_run *r = ctx;
	auto_strbuf time = STRBUF_INIT, text = STRBUF_INIT;

	add_time(&time);
	auto_lock(&r->log_lock);
	for (const char *at = lines, *end; at; at = *end ? end + 1 : NULL) {
		size_t start = text.len;

		end = strchrnul(at, '\n');
		strbuf_add(&text, time.buf, time.len);
		strbuf_add(&text, at, (size_t)(end - at));
		if (r->o->say)
			r->o->say(r->o->ctx, text.buf + start);
		strbuf_addch(&text, '\n');
	}
	/* A log that cannot be written, on a full disk say, does not end the mount. */
	if (r->log_fd >= 0)
		(void)!io_write_full(r->log_fd, text.buf, text.len);
}

static int open_log(struct mount_run *r, struct err *err)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;

	if (!r->log)
		return 0;
	r->log_fd = open(r->log, flags, 0644);
	if (r->log_fd < 0)
		return err_set(err, -errno, "cannot write the log %s: %m", r->log);
	/* A log that another server writes to is not cut. */
	if (!flock(r->log_fd, LOCK_EX | LOCK_NB) && !r->o->log_append)
		(void)!ftruncate(r->log_fd, 0);
	return 0;
}

/* ---- options that depend on each other ---- */

static int dir_fails(const char *what, const char *given, struct err *err)
{
	if (errno == ENOTCONN)
		return err_set(err, -ENOTCONN,
			       "%s is a mount whose server has ended; 'outage umount %s' clears it "
			       "away",
			       given, given);
	return err_set(err, -errno, "cannot use %s as %s: %m", given, what);
}

static int check_dir(const char *what, const char *given, char **out, struct err *err)
{
	auto_free char *path = realpath(given, NULL);
	struct stat st;

	if (!path || stat(path, &st) < 0)
		return dir_fails(what, given, err);
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return dir_fails(what, given, err);
	}
	*out = steal(path);
	return 0;
}

/* Refuses a second mount on `mnt`, which would hide the first and all files open in it. */
static int check_free(const char *mnt, struct err *err)
{
	auto_place there = { 0 };
	struct err none = ERR_INIT;

	if (forget_place_find(mnt, &there, &none))
		return 0;
	return err_set(err, -EBUSY,
		       "outage has mounted something on %s already; 'outage umount %s' ends that, "
		       "or mount elsewhere",
		       mnt, mnt);
}

static int check_dirs(struct mount_run *r, struct err *err)
{
	int rc = check_dir("ROOT, where the data is kept", r->o->root, &r->root, err);

	if (!rc)
		rc = check_dir("MNT, where it is shown", r->o->mnt, &r->mnt, err);
	if (rc)
		return rc;
	if (streq(r->root, r->mnt))
		return err_set(
			err, -EINVAL,
			"ROOT and MNT are the same directory, %s; make another one to mount on",
			r->mnt);
	if (forget_path_is_below(r->mnt, r->root))
		return err_set(err, -EINVAL,
			       "MNT %s is inside of ROOT, and would show itself; mount elsewhere",
			       r->mnt);
	if (forget_path_is_below(r->root, r->mnt))
		return err_set(err, -EINVAL,
			       "ROOT %s is inside of MNT, which would hide it; mount elsewhere",
			       r->root);
	rc = check_free(r->mnt, err);
	return rc ? rc : forget_nested_check(r->root, err);
}

/* Makes a path absolute; it must not be hidden by the mount, or shown in it. */
static int take_path(struct mount_run *r, const char *what, const char *path, char **out,
		     struct err *err)
{
	if (!path || !*path)
		return 0;
	*out = forget_place_path(path, err);
	if (!*out)
		return err->code;
	if (forget_path_is_below(*out, r->mnt) || forget_path_is_below(*out, r->root))
		return err_set(err, -EINVAL, "%s %s must not be inside of ROOT or MNT", what, *out);
	return 0;
}

static const char *either(const char *said, const char *configured)
{
	return said ? said : configured;
}

static int take_paths(struct mount_run *r, struct err *err)
{
	const struct forget_run_opts *o = r->o;
	const struct inject_config *c = &r->config;
	const char *fifo = c->fifo || !o->lazyfs ? c->fifo : LAZYFS_FIFO;
	int rc = take_path(r, "the FIFO", fifo, &r->fifo, err);

	if (!rc)
		rc = take_path(r, "the FIFO", c->fifo_completed, &r->fifo_completed, err);
	if (!rc)
		rc = take_path(r, "the log", either(o->log, c->logfile), &r->log, err);
	if (!rc)
		rc = take_path(r, "the trace", either(o->trace, c->trace), &r->trace, err);
	if (!rc)
		rc = take_path(r, "the socket", either(o->socket, c->socket), &r->socket, err);
	if (!rc && r->fifo && r->fifo_completed && streq(r->fifo, r->fifo_completed))
		rc = err_set(
			err, -EINVAL,
			"fifo_path and fifo_path_completed are the same, %s; give them two names",
			r->fifo);
	return rc;
}

/* Chooses the profile: by the options, then by the configuration, whose default is LazyFS's. */
static int take_profile(struct mount_run *r, struct err *err)
{
	const char *name = either(r->o->profile, r->config.profile);
	auto_strbuf all = STRBUF_INIT;
	int rc;

	if (!name)
		name = r->o->lazyfs || r->o->config ? "lazyfs" : profile_at(0)->name;
	r->profile = profile_find(name);
	if (r->profile)
		return 0;
	for (size_t i = 0; profile_at(i); i++)
		strbuf_addf(&all, "%s%s", i ? ", " : "", profile_at(i)->name);
	rc = err_set(err, -EINVAL, "there is no profile '%.60s'; there are %s", name,
		     strbuf_str(&all));
	if (!r->o->profile)
		err_context(err, "%s:%u", r->o->config, r->config.profile_line);
	return rc;
}

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static int take_cache(struct mount_run *r, struct err *err)
{
	const struct forget_run_opts *o = r->o;
	const struct inject_config *c = &r->config;
	uint64_t page = o->page_size ? o->page_size : c->page_size;
	uint64_t block = o->block_size ? o->block_size : c->block_size;
	uint64_t bytes = o->cache_size ? o->cache_size : c->cache_bytes;

	if (!page)
		page = max((uint64_t)4096, block);
	if (!block)
		block = o->page_size ? page : min(page, (uint64_t)4096);
	if (!is_power_of_two(page) || page < 512 || page > 1 << 20)
		return err_set(
			err, -EINVAL,
			"a page of %llu bytes is not possible: a power of two from 512 to 1M is",
			llu(page));
	if (block > page || page % block)
		return err_set(
			err, -EINVAL,
			"blocks of %llu bytes do not fill a page of %llu; one must divide the "
			"other",
			llu(block), llu(page));
	uint64_t pages = bytes ? max(bytes / page, (uint64_t)1) : c->pages;
	r->cache = (struct pagecache_opts){
		.page_size = (uint32_t)page,
		.block_size = (uint32_t)block,
		.pages_max = pages,
		.evict = o->evict_said ? o->evict : c->evict,
	};
	return 0;
}

/* ---- faults ---- */

/* Adds a fault, which it takes. */
static int add_fault(struct mount_run *r, struct fault *f, struct err *err)
{
	int rc = inject_add(r->faults, f, NULL, err);

	if (rc)
		fault_free(f);
	return rc;
}

static int add_fault_text(struct mount_run *r, const char *text, struct err *err)
{
	auto_words w = { 0 };
	struct inject_command c = { 0 };
	int rc = words_split(text, strlen(text), &w, err);

	if (!rc && !w.n)
		rc = err_set(err, -EINVAL, "nothing is said");
	if (!rc)
		rc = inject_command_parse(w.v, w.n, r->root, r->mnt, &c, err);
	if (rc) {
		err_context(err, "--fault '%.200s'", text);
		return rc;
	}
	if (c.kind != COMMAND_FAULT || !c.fault)
		rc = err_set(
			err, -EINVAL,
			"--fault '%.200s': this waits for no operation; 'outage ctl' does it at "
			"once",
			text);
	else
		rc = add_fault(r, steal(c.fault), err);
	inject_command_release(&c);
	return rc;
}

static int add_faults(struct mount_run *r, struct err *err)
{
	int rc = 0;

	r->faults = inject_new();
	for (size_t i = 0; !rc && i < r->config.faults.n; i++)
		rc = add_fault(r, steal(r->config.faults.v[i]), err);
	for (size_t i = 0; !rc && i < r->o->faults.n; i++)
		rc = add_fault_text(r, r->o->faults.v[i], err);
	return rc;
}

static int read_config(struct mount_run *r, struct err *err)
{
	if (!r->o->config)
		return 0;
	return inject_config_read(r->o->config, r->root, r->mnt, &r->config, err);
}

/* Warns of files in MNT, which a program may have written there after a crash. */
static void look_for_hidden(struct mount_run *r)
{
	auto_names_in d = names_in(AT_FDCWD, r->mnt);
	struct dirent *e = names_next(d);

	if (e)
		r->hidden = xasprintf(
			"MNT %s is not empty: the mount hides what is in it, such as %s; did "
			"something write there while nothing was mounted?",
			r->mnt, e->d_name);
}

static int prepare(struct mount_run *r, struct err *err)
{
	int rc = check_dirs(r, err);

	if (!rc)
		rc = read_config(r, err);
	if (!rc)
		rc = take_paths(r, err);
	if (!rc)
		rc = take_profile(r, err);
	if (!rc)
		rc = take_cache(r, err);
	if (!rc)
		rc = add_faults(r, err);
	if (!rc)
		rc = open_log(r, err);
	for (size_t i = 0; !rc && i < r->config.warnings.n; i++)
		log_lines(r, r->config.warnings.v[i]);
	if (!rc)
		look_for_hidden(r);
	return rc;
}

/* ---- mounted ---- */

static int do_command(void *ctx, const struct inject_command *c, struct strbuf *text,
		      struct strbuf *json, struct err *err)
{
	return forget_command(ctx, c, text, json, err);
}

static int mount_it(struct mount_run *r, struct err *err)
{
	const struct forget_run_opts *o = r->o;
	auto_vec struct vec_of(const char *) options = { 0 };

	for (size_t i = 0; i < o->fuse_options.n; i++)
		vec_push(&options, o->fuse_options.v[i]);
	vec_push(&options, NULL);
	struct forget_opts f = {
		.root = r->root,
		.mnt = r->mnt,
		.profile = r->profile,
		.cache = r->cache,
		.allow_other = o->allow_other,
		.real_sync = o->real_sync,
		.subtype = o->lazyfs ? "lazyfs" : "outage",
		.fuse_options = options.v,
		.trace = r->trace,
		.trace_data = o->trace_data,
		.trace_reads = o->trace_reads,
		.log = log_lines,
		.log_ctx = r,
		.log_all = r->config.log_all,
		.log_path = r->log,
		.fifo_path = r->fifo,
	};
	return forget_mount(&f, steal(r->faults), &r->forget, err);
}

static int start_control(struct mount_run *r, struct err *err)
{
	int rc = forget_place_find(r->mnt, &r->place, err);
	struct forget_control_opts c = {
		.root = r->root,
		.mnt = r->mnt,
		.fifo = r->fifo,
		.fifo_completed = r->fifo_completed,
		.socket = r->socket,
		.place = &r->place,
		.socket_optional = r->o->lazyfs,
		.command = do_command,
		.command_ctx = r->forget,
		.log = log_lines,
		.log_ctx = r,
	};

	return rc ? rc : forget_control_start(&c, &r->control, err);
}

static enum forget_run_end end_of(struct mount_run *r, enum forget_end end)
{
	auto_free char *killed = NULL;

	switch (end) {
	case FORGET_CRASHED:
		/* Users of LazyFS wait for these words. */
		killed = xasprintf("the mount on %s crashed, as a fault or a command said%s",
				   r->mnt, r->o->lazyfs ? "; Killing LazyFS" : "");
		log_lines(r, killed);
		return FORGET_RUN_CRASHED;
	case FORGET_LOST:
		return FORGET_RUN_LOST;
	case FORGET_UNMOUNTED:
	case FORGET_SIGNAL:
		break;
	}
	log_lines(r, r->o->lazyfs ? "unmounted, stopping LazyFS" : "unmounted");
	return FORGET_RUN_UNMOUNTED;
}

/* Reports a failure in the log and to 'outage umount': there may be no terminal. */
static void tell_failure(struct mount_run *r, const char *why)
{
	if (r->log_fd >= 0)
		log_lines(r, why);
	forget_control_farewell(r->control, why);
}

static int serve(struct mount_run *r, enum forget_run_end *end, struct err *err)
{
	auto_free char *line = xasprintf("%s is shown on %s with profile %s%s", r->root, r->mnt,
					 r->profile->name,
					 r->o->lazyfs ? "; running LazyFS..." : "");
	static const char lost[] = "ROOT was taken away, or the kernel ended the connection; what "
				   "was not durable is lost";
	enum forget_end how = FORGET_LOST;
	int rc = start_control(r, err);

	if (rc)
		return rc;
	if (r->hidden)
		log_lines(r, r->hidden);
	if (r->o->ready)
		r->o->ready(r->o->ctx);
	log_lines(r, line);
	rc = forget_serve(r->forget, &how, err);
	if (rc || how == FORGET_LOST)
		tell_failure(r, rc ? err->msg : lost);
	/* Requests from before the end get answers. */
	forget_control_stop(steal(r->control));
	if (!rc)
		*end = end_of(r, how);
	return rc;
}

static void run_release(struct mount_run *r)
{
	forget_control_stop(r->control);
	forget_free(r->forget);
	forget_place_release(&r->place);
	if (r->faults)
		inject_free(r->faults);
	inject_config_release(&r->config);
	util_close(r->log_fd);
	pthread_mutex_destroy(&r->log_lock);
	free(r->root);
	free(r->mnt);
	free(r->fifo);
	free(r->fifo_completed);
	free(r->log);
	free(r->trace);
	free(r->socket);
	free(r->hidden);
}

int forget_run(const struct forget_run_opts *o, enum forget_run_end *end, struct err *err)
{
	auto_call(run_release) struct mount_run r = { .o = o, .log_fd = -1 };
	int rc;

	pthread_mutex_init(&r.log_lock, NULL);
	rc = prepare(&r, err);
	if (!rc)
		rc = mount_it(&r, err);
	if (!rc)
		rc = serve(&r, end, err);
	if (rc)
		forget_free(steal(r.forget)); /* unmounts before any further message */
	return rc;
}

/* ---- for the manual ---- */

void forget_run_help(struct strbuf *out)
{
	inject_command_help(out);
}
