/* SPDX-License-Identifier: MIT */
/*
 * forget_record.c - runs an application in front of a recording mount.
 *
 * The server's threads and the loop that watches the application are in one process. A thread takes
 * marks from the pipes while it holds the trace's lock, so that a line written before an operation
 * began comes before it in the trace, even if the loop would have read it later.
 */
#include "forget/forget_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"
#include "base/signals.h"
#include "base/space.h"
#include "forget/forget.h"
#include "forget/forget_outside.h"
#include "forget/sync_watch.h"
#include "sandbox/become.h"
#include "stack/grab.h"

/* In our mount namespace, so that it is removed with the last process of the run. */
#define ACK_FIFO   SPACE_DIR "/ack"
#define ACKED_NAME "acked"

enum {
	LINE_MAX_BYTES = 4096, /* bytes of an acknowledgement; the rest is cut off */
	SPACE_BYTES = 64 << 10,
	SAID_MAX = 16 << 10, /* the last bytes of standard error, which are kept */
	TICK_MS = 50,
	GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
};

/* The bytes of one pipe, and the beginning of an incomplete line. */
struct mark_source {
	int fd;
	struct strbuf part;
};

struct recording {
	const struct forget_record_opts *o;
	struct forget_record *out;
	struct forget *forget;
	struct mark_source lines, acks; /* under the trace's lock */
	int errors;			/* the pipe of standard error */
	pthread_t server;
	bool serving;
	struct err server_err;
	int server_rc;
	struct outside *outside;
	int syncs[2]; /* questions of `run` and `stop`, which are about to sync; -1: none */
	dev_t dev;    /* the mount's */
	struct stacks *stacks;	 /* under the trace's lock, while there is one */
	struct proc_list before; /* our children before the run, such as the guardian */
	pid_t pid;
	int status;
	bool ended;
};

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

void forget_record_release(struct forget_record *r)
{
	words_release(&r->left);
	words_release(&r->outside);
	strbuf_release(&r->said);
}

/* ---- marks ---- */

static void take_line(struct recording *r, struct mark_source *s)
{
	forget_mark(r->forget, strbuf_str(&s->part), s->part.len);
	r->out->marks++;
	strbuf_clear(&s->part);
}

static void take_bytes(struct recording *r, struct mark_source *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n') {
			take_line(r, s);
			continue;
		}
		if (s->part.len < LINE_MAX_BYTES)
			strbuf_addch(&s->part, data[i]);
	}
}

static void drain(struct recording *r, struct mark_source *s)
{
	char data[4096];
	ssize_t n;

	while (s->fd >= 0 && (n = read(s->fd, data, sizeof(data))) > 0)
		take_bytes(r, s, data, (size_t)n);
}

static void look(void *ctx, struct forget *f)
{
	struct recording *r = ctx;

	r->forget = f;
	drain(r, &r->lines);
	drain(r, &r->acks);
}

static void on_traced(void *ctx, const struct posix_event *ev)
{
	struct recording *r = ctx;

	if (ev->op == POSIX_RELEASE) /* the kernel sends a release late */
		return;
	if (ev->flags & POSIX_PAGE)
		stacks_none(r->stacks);
	else
		stacks_grab(r->stacks, ev->tid, ev->number);
}

static void read_errors(struct recording *r)
{
	char data[4096];
	ssize_t n;

	while (r->errors >= 0 && (n = read(r->errors, data, sizeof(data))) > 0) {
		struct strbuf *said = &r->out->said;

		strbuf_add(said, data, (size_t)n);
		if (said->len > 2 * SAID_MAX)
			strbuf_drop(said, said->len - SAID_MAX);
	}
}

/* ---- processes ---- */

static char *describe_process(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/comm", (int)pid);
	auto_strbuf name = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (io_slurp(path, 4096, &name, &err))
		strbuf_adds(&name, "?");
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.buf[i] < 0x20)
			name.buf[i] = i + 1 == name.len ? '\0' : ' ';
	return xasprintf("%d %s", (int)pid, strbuf_str(&name));
}

static bool is_listed(const struct proc_list *list, pid_t pid)
{
	return any_of(i, list->n, list->v[i] == pid);
}

/*
 * Counts the application's processes below us. Each gets the signal `sig`, if not 0; `names`, if
 * not NULL, gets their names.
 */
static size_t for_all_left(struct recording *r, int sig, struct forget_record *names)
{
	auto_vec struct proc_list all = { 0 };
	struct proc_stat st;
	size_t n = 0;

	proc_tree(getpid(), &all);
	for (size_t i = 1; i < all.n; i++) {
		if (is_listed(&r->before, all.v[i]) || !proc_stat(all.v[i], &st) || st.state == 'Z')
			continue;
		n++;
		if (names)
			vec_push(&names->left, describe_process(all.v[i]));
		if (sig)
			kill(all.v[i], sig);
	}
	return n;
}

static void reap(struct recording *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == r->pid) {
			r->ended = true;
			r->status = status;
		}
}

/*
 * Waits until no page is being written back, as the kernel does not wait for a FUSE server that
 * does so; or until others keep the server busy for too long.
 */
static void wait_for_pages(const struct recording *r)
{
	char path[64], text[24] = "";

	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/waiting", minor(r->dev));
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		util_sleep_ms(TICK_MS / 5);
		return;
	}
	for (int i = 0; i < TICK_MS && pread(fd, text, sizeof(text) - 1, 0) > 0; i++) {
		if (!strtoul(text, NULL, 10))
			return;
		util_sleep_ms(1);
	}
}

/*
 * Called while a process waits to sync. Data that the process stored through mappings reaches the
 * server only if the kernel writes it back, so that is done first.
 */
static void on_sync(void *ctx, pid_t pid)
{
	struct recording *r = ctx;
	int dir = open(r->o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0)
		(void)!syncfs(dir);
	util_close(dir);
	wait_for_pages(r);
	forget_note_sync(r->forget, (uint32_t)pid);
}

static void answer_syncs(struct recording *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->syncs); i++)
		if (r->syncs[i] >= 0 && !sync_watch_answer(r->syncs[i], r->dev, on_sync, r))
			util_close(steal_fd(&r->syncs[i]));
}

/* Does one round of the loop. */
static void tick(struct recording *r, int timeout_ms)
{
	struct pollfd p[] = { { r->lines.fd, POLLIN, 0 }, { r->acks.fd, POLLIN, 0 },
			      { r->errors, POLLIN, 0 },	  { outside_fd(r->outside), POLLIN, 0 },
			      { r->syncs[0], POLLIN, 0 }, { r->syncs[1], POLLIN, 0 } };
	short ready = 0;

	/* A closed end is always ready: then the loop sleeps. */
	if (poll(p, ARRAY_SIZE(p), timeout_ms) > 0) {
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			ready |= p[i].revents;
		if (!(ready & POLLIN))
			util_sleep_ms(TICK_MS / 10);
	}
	answer_syncs(r);
	forget_look_for_marks(r->forget);
	read_errors(r);
	outside_read(r->outside);
	reap(r);
}

static bool left_within(struct recording *r, uint64_t ms)
{
	uint64_t end = util_now_ns() + ms * 1000000;

	do {
		tick(r, TICK_MS);
		if (!for_all_left(r, 0, NULL))
			return false;
	} while (util_now_ns() < end && !told_to_stop);
	return true;
}

/* Ends all processes of the application. */
static void end_all(struct recording *r, bool say)
{
	if (!for_all_left(r, 0, NULL))
		return;
	for_all_left(r, SIGTERM, say ? r->out : NULL);
	if (!left_within(r, GRACE_MS))
		return;
	/* The next round finds a process that forked while it was killed. */
	for (int i = 0; i < 100 && for_all_left(r, SIGKILL, NULL); i++)
		tick(r, TICK_MS);
}

/* ---- the application ---- */

static void become_application(const struct forget_record_opts *o, const char *command, int out,
			       int errors, int watch, pid_t parent)
{
	struct become b = { .command = command,
			    .argument = o->dir,
			    .dir = o->dir,
			    .output = out,
			    .errors = errors };

	proc_tie(parent);
	setpgid(0, 0);
	setenv("OUTAGE_DIR", o->dir, 1);
	if (o->acked) {
		char number[24];

		snprintf(number, sizeof(number), "%" PRIu64, o->point);
		setenv("OUTAGE_CRASH_POINT", number, 1);
		setenv("OUTAGE_ACKED", SPACE_DIR "/" ACKED_NAME, 1);
	} else {
		setenv(FORGET_RECORD_ACK, ACK_FIFO, 1);
	}
	sync_watch_send(watch);
	become_command(&b);
}

static int start(struct recording *r, const char *command, int out, int errors, struct err *err)
{
	int watch[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, watch))
		return err_set(err, -errno, "cannot make a pair of sockets: %m");
	auto_fd ours = watch[0], theirs = watch[1];
	pid_t parent = getpid();
	fflush(NULL);
	r->ended = false;
	r->pid = fork();
	if (!r->pid)
		become_application(r->o, command, out, errors, theirs, parent);
	if (r->pid < 0)
		return err_set(err, -errno, "cannot start a process: %m");
	util_close(steal_fd(&theirs));
	int *to = &r->syncs[command == r->o->stop];
	*to = sync_watch_receive(ours);
	r->out->syncs_unseen |= *to < 0;
	return 0;
}

/* Waits until the application ends, or must be ended. */
static enum forget_record_end watch(struct recording *r, uint64_t until_ns)
{
	while (!r->ended) {
		tick(r, TICK_MS);
		if (told_to_stop)
			return FORGET_RECORD_STOPPED;
		if (until_ns && util_now_ns() > until_ns)
			return FORGET_RECORD_TIMEOUT;
		if (r->o->trace_max && forget_trace_size(r->forget) > r->o->trace_max)
			return FORGET_RECORD_TOO_LONG;
	}
	return FORGET_RECORD_DONE;
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Stops processes that `run` has left, as the options say. */
static int stop_left(struct recording *r, uint64_t until, int out, int errors, struct err *err)
{
	int rc = 0;

	if (r->o->stop && r->out->end == FORGET_RECORD_DONE) {
		rc = start(r, r->o->stop, out, errors, err);
		if (!rc) {
			r->out->end = watch(r, until);
			r->out->stop_code = r->ended ? code_of(r->status) : -1;
			left_within(r, GRACE_MS * 5);
		}
	}
	if (r->o->kill && !r->o->stop)
		for (int i = 0; i < 100 && for_all_left(r, SIGKILL, NULL); i++)
			tick(r, TICK_MS);
	/* The last processes of a pipeline may be about to end. */
	if (r->out->end == FORGET_RECORD_DONE)
		left_within(r, 100);
	end_all(r, r->out->end == FORGET_RECORD_DONE);
	return rc;
}

static int run_it(struct recording *r, int out, int errors, struct err *err)
{
	uint64_t until = r->o->timeout_ms ? util_now_ns() + r->o->timeout_ms * (uint64_t)1000000
					  : 0;
	int rc = start(r, r->o->run, out, errors, err);

	if (rc)
		return rc;
	r->out->end = watch(r, until);
	r->out->exit_code = r->ended && WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
	r->out->signal = r->ended && WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
	return stop_left(r, until, out, errors, err);
}

/* ---- the mount ---- */

static void *serve(void *ctx)
{
	struct recording *r = ctx;
	enum forget_end end;

	r->server_rc = forget_serve(r->forget, &end, &r->server_err);
	return NULL;
}

static int start_server(struct recording *r, struct err *err)
{
	int rc = pthread_create(&r->server, NULL, serve, r);

	r->serving = !rc;
	return rc ? err_set(err, -rc, "cannot start a thread: %s", strerror(rc)) : 0;
}

static int stop_server(struct recording *r, struct err *err)
{
	if (!r->serving)
		return 0;
	if (umount2(r->o->dir, 0) && umount2(r->o->dir, MNT_DETACH))
		return err_set(err, -errno, "cannot unmount %s: %m", r->o->dir);
	pthread_join(r->server, NULL);
	r->serving = false;
	if (r->server_rc)
		*err = r->server_err;
	return r->server_rc;
}

static int tell_before(struct recording *r, struct err *err)
{
	auto_trace t;
	struct stat st;
	int rc = 0;

	trace_init(&t);
	auto_fd dir = open(r->o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st))
		return err_set(err, -errno, "cannot open %s on the recording mount: %m", r->o->dir);
	r->out->root_ino = st.st_ino;
	r->dev = st.st_dev;
	if (r->o->mounted)
		rc = r->o->mounted(r->o->ctx, dir, &t, err);
	return rc ? rc : forget_trace_add(r->forget, &t, err);
}

static int mount_it(struct recording *r, struct err *err)
{
	struct forget_opts f = {
		.root = r->o->root,
		.mnt = r->o->dir,
		/* The trace tells later which operations wait for a sync. */
		.profile = profile_find("lazyfs"),
		.allow_other = geteuid() == 0,
		.subtype = "outage",
		.trace = r->o->trace,
		.trace_data = true,
		.trace_closes = true,
		.marks = look,
		.marks_ctx = r,
		.traced = r->stacks ? on_traced : NULL,
		.traced_ctx = r,
	};

	return forget_mount(&f, inject_new(), &r->forget, err);
}

static int make_space(const struct strbuf *acked, struct err *err)
{
	auto_free char *options =
		xasprintf("mode=755,size=%zu", SPACE_BYTES + (acked ? 2 * acked->len : 0));

	if (mount("outage-record", SPACE_DIR, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options))
		return err_set(err, -errno, "cannot mount a tmpfs on " SPACE_DIR ": %m");
	return acked ? io_write_file(SPACE_DIR, ACKED_NAME, strbuf_str(acked), acked->len, 0644,
				     err)
		     : 0;
}

static int open_pipes(struct recording *r, int out[2], int errors[2], struct err *err)
{
	int rc = make_space(r->o->acked, err);

	if (rc)
		return rc;
	if (pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe: %m");
	if (mkfifo(ACK_FIFO, 0666) || chmod(ACK_FIFO, 0666))
		return err_set(err, -errno, "cannot make the FIFO " ACK_FIFO ": %m");
	/*
	 * Open for both: otherwise each writer that closes would be the last, and a closed pipe is
	 * always ready.
	 */
	r->acks.fd = open(ACK_FIFO, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (r->acks.fd < 0)
		return err_set(err, -errno, "cannot open the FIFO " ACK_FIFO ": %m");
	r->lines.fd = out[0];
	r->errors = errors[0];
	if (fcntl(out[0], F_SETFL, O_NONBLOCK) || fcntl(errors[0], F_SETFL, O_NONBLOCK))
		return err_set(err, -errno, "cannot read a pipe without waiting: %m");
	return 0;
}

static int record_mounted(struct recording *r, int out, int errors, struct err *err)
{
	struct signals signals;
	int rc = start_server(r, err);

	if (rc)
		return rc;
	/* The signals that libfuse catches would end the server before the application. */
	signals_catch(&signals, on_signal);
	rc = tell_before(r, err);
	proc_tree(getpid(), &r->before);
	/* From now on we adopt orphans. */
	if (!rc && prctl(PR_SET_CHILD_SUBREAPER, 1))
		rc = err_set(err, -errno, "cannot adopt processes: %m");
	if (!rc)
		rc = run_it(r, out, errors, err);
	end_all(r, false);
	forget_look_for_marks(r->forget);
	if (r->lines.part.len) { /* a last line without a newline */
		take_line(r, &r->lines);
		forget_look_for_marks(r->forget);
	}
	int stopped = stop_server(r, err);
	return rc ? rc : stopped;
}

int forget_record(const struct forget_record_opts *o, struct forget_record *out, struct err *err)
{
	struct recording r = { .o = o,
			       .out = out,
			       .lines.fd = -1,
			       .acks.fd = -1,
			       .errors = -1,
			       .pid = -1,
			       .syncs = { -1, -1 } };
	int lines[2] = { -1, -1 }, errors[2] = { -1, -1 };

	*out = (struct forget_record){ .exit_code = -1 };
	told_to_stop = 0;
	int rc = space_enter_as_user(err);
	if (!rc)
		rc = open_pipes(&r, lines, errors, err);
	if (!rc)
		r.outside = outside_new(o->root);
	if (!rc && o->stacks)
		r.stacks = stacks_new(o->dir, o->root);
	if (!rc)
		rc = mount_it(&r, err);
	if (!rc)
		rc = record_mounted(&r, o->acked ? errors[1] : lines[1], errors[1], err);
	forget_free(r.forget);
	if (!rc && r.stacks)
		rc = stacks_save(r.stacks, o->stacks, err);
	stacks_free(r.stacks);
	outside_finish(r.outside, out);
	util_close(r.acks.fd);
	for (int i = 0; i < 2; i++) {
		util_close(r.syncs[i]);
		util_close(lines[i]);
		util_close(errors[i]);
	}
	vec_release(&r.before);
	strbuf_release(&r.lines.part);
	strbuf_release(&r.acks.part);
	return rc;
}
