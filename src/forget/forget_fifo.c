/* SPDX-License-Identifier: MIT */
/*
 * forget_fifo.c - LazyFS's way to send commands: lines in a FIFO. Answers go to the log; the end of
 * a command is reported in a second FIFO.
 *
 * Test harnesses wait for words in the log, so these words are LazyFS's: "waiting for fault
 * commands", "cache is cleared", and a few more.
 *
 * The FIFO is open for reading only, so that the end of a writer's text can be seen. The second
 * FIFO is open for both: text that is not read yet stays in it, and a reader sees no end, as with
 * LazyFS.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fd_path.h"
#include "forget/forget_control.h"

enum { CHUNK = 64 << 10, LINE_MAX_BYTES = 256 << 20, LOCK_TRIES = 100, LOCK_MS = 20 };

struct fifo {
	const char *path;
	int fd;
	bool made;  /* we made it, and remove it */
	bool alone; /* only one server may read it */
	int lock;   /* another descriptor, with the lock; -1: none */
	dev_t dev;
	ino_t ino;
};

struct forget_fifo {
	struct forget_control_opts o;
	struct fifo in, completed;
	int wake, watch;
	bool running, missing;
	pthread_t thread;
	struct strbuf text; /* an incomplete line */
};

/* ---- files ---- */

/*
 * Locks a FIFO: two servers would take each other's commands. A server that is just ending is
 * waited for. The lock has a descriptor of its own, because the other one is opened anew for each
 * writer.
 */
static int lock_fifo(struct fifo *f, int fd, struct err *err)
{
	auto_fd lock = open(fd_path(fd).text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int tries = 0;

	if (lock < 0)
		return err_set(err, -errno, "cannot open the FIFO %s: %m", f->path);
	while (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_set(err, -errno, "cannot lock the FIFO %s: %m", f->path);
		if (++tries == LOCK_TRIES)
			return err_set(err, -EBUSY,
				       "another mount takes commands from the FIFO %s; give this "
				       "one another fifo_path",
				       f->path);
		util_sleep_ms(LOCK_MS);
	}
	util_close(f->lock);
	f->lock = steal_fd(&lock);
	return 0;
}

static int no_fifo(const char *path, struct err *err)
{
	return err_set(err, -EEXIST,
		       "%s is there, and no FIFO; remove it (a command that is written while "
		       "nothing is mounted makes such a file)",
		       path);
}

/* Opens a FIFO; reads and writes then work without a process at the other end. */
static int open_fifo(struct fifo *f, int flags, struct err *err)
{
	auto_fd fd = open(f->path, flags | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot open the FIFO %s: %m", f->path);
	if (!S_ISFIFO(st.st_mode))
		return no_fifo(f->path, err);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(
			err, -EPERM,
			"the FIFO %s belongs to user %u, who could then command us; remove it",
			f->path, (unsigned)st.st_uid);
	if (f->alone && lock_fifo(f, fd, err))
		return err->code;
	util_close(f->fd);
	f->fd = steal_fd(&fd);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return 0;
}

static bool is_same(const struct fifo *f)
{
	struct stat st;

	return stat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino;
}

static int make_fifo(struct fifo *f, const char *path, int flags, struct err *err)
{
	struct stat st;
	int rc;

	/* Something else with that name is not opened: that could block, or have effects. */
	if (stat(path, &st) == 0 && !S_ISFIFO(st.st_mode))
		return no_fifo(path, err);
	f->path = path;
	/* Another server that ended meanwhile may have removed the FIFO: then try again. */
	do {
		f->made = mkfifo(path, 0600) == 0;
		if (!f->made && errno != EEXIST)
			return err_set(err, -errno, "cannot make the FIFO %s: %m", path);
		rc = open_fifo(f, flags, err);
	} while (!rc && !is_same(f));
	return rc;
}

static void close_fifo(struct fifo *f)
{
	if (f->path && f->made && f->fd >= 0 && is_same(f))
		unlink(f->path);
	util_close(steal_fd(&f->fd));
	util_close(steal_fd(&f->lock));
}

/* Opens the FIFO anew, before the old one is closed: poll() never waits after a writer has gone. */
static void reopen(struct fifo *f)
{
	int fd = open(fd_path(f->fd).text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0) {
		util_close(f->fd);
		f->fd = fd;
	}
}

/* ---- commands ---- */

/* The log's words before and after a command, as LazyFS's users know them. */
static const struct {
	const char *before, *after;
} known_words[] = {
	[COMMAND_CLEAR] = { "clear cache request submitted...", "cache is cleared" },
	[COMMAND_CHECKPOINT] = { "cache checkpoint request submitted...", "checkpoint is done" },
	[COMMAND_REPORT] = { "report request submitted...", "report generated" },
};

static void log_known(struct forget_fifo *f, const char *words)
{
	if (words)
		forget_control_logf(&f->o, "fifo: %s", words);
}

static void log_text(struct forget_fifo *f, struct strbuf *text)
{
	char *save = NULL;

	if (!text->len)
		return;
	for (char *line = strtok_r(text->buf, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		forget_control_logf(&f->o, "fifo: %s", line);
}

static void tell_finished(struct forget_fifo *f, const char *what)
{
	struct err err = ERR_INIT;
	auto_free char *line = xasprintf("%s\n", what);

	if (!f->o.fifo_completed)
		return;
	if (!is_same(&f->completed) && open_fifo(&f->completed, O_RDWR, &err)) {
		forget_control_logf(&f->o, "fifo: cannot tell that '%s': %s", what, err.msg);
		return;
	}
	/* A line is shorter than PIPE_BUF: all of it is written, or nothing. */
	if (write(f->completed.fd, line, strlen(line)) < 0)
		forget_control_logf(&f->o, "fifo: '%s' is not told: no program reads %s", what,
				    f->completed.path);
}

static int do_command(struct forget_fifo *f, const struct inject_command *c, struct err *err)
{
	/* The name is taken first, as the mount takes the fault. */
	const char *fault = c->kind == COMMAND_FAULT && c->fault ? fault_type_name(c->fault->type)
								 : NULL;
	bool known = (size_t)c->kind < ARRAY_SIZE(known_words);
	auto_strbuf text = STRBUF_INIT;
	int rc;

	if (known)
		log_known(f, known_words[c->kind].before);
	rc = f->o.command(f->o.command_ctx, c, &text, NULL, err);
	if (rc)
		return rc;
	log_text(f, &text);
	if (known)
		log_known(f, known_words[c->kind].after);
	if (fault)
		forget_control_logf(&f->o, "fifo: received: VALID %s fault", fault);
	if (c->answer)
		tell_finished(f, c->answer);
	return 0;
}

static void do_line(struct forget_fifo *f, char *line, size_t len)
{
	struct inject_command c = { 0 };
	struct err err = ERR_INIT;
	int rc;

	if (len && line[len - 1] == '\r')
		len--;
	line[len] = '\0';
	if (!len)
		return;
	forget_control_logf(&f->o, "fifo: received '%.4000s'", line);
	rc = strlen(line) < len ? err_set(&err, -EINVAL, "there is a NUL byte in it")
				: inject_command_parse_lazyfs(line, f->o.root, f->o.mnt, &c, &err);
	if (!rc) {
		rc = do_command(f, &c, &err);
		inject_command_release(&c);
	}
	if (rc)
		forget_control_logf(&f->o, "fifo: received: INVALID, and not done: %s", err.msg);
}

static void do_lines(struct forget_fifo *f, size_t looked)
{
	size_t begin = 0;
	char *end;

	while ((end = memchr(f->text.buf + looked, '\n', f->text.len - looked))) {
		size_t at = (size_t)(end - f->text.buf);

		do_line(f, f->text.buf + begin, at - begin);
		begin = looked = at + 1;
	}
	strbuf_drop(&f->text, begin);
}

/* ---- the thread ---- */

static void read_some(struct forget_fifo *f)
{
	ssize_t n = read(f->in.fd, strbuf_grow(&f->text, CHUNK), CHUNK);

	if (n > 0) {
		size_t looked = f->text.len;

		f->text.len += (size_t)n;
		f->text.buf[f->text.len] = '\0';
		do_lines(f, looked);
		if (f->text.len > LINE_MAX_BYTES) {
			forget_control_logf(&f->o, "fifo: this is too long for a command");
			strbuf_clear(&f->text);
		}
	} else if (n == 0) {
		/* All writers are gone. */
		if (f->text.len)
			do_line(f, f->text.buf, f->text.len);
		strbuf_clear(&f->text);
		reopen(&f->in);
	}
}

/* After a change of the directory: checks that the FIFO is still the same. */
static void look_again(struct forget_fifo *f)
{
	struct err err = ERR_INIT;
	struct stat st;

	if (is_same(&f->in)) {
		f->missing = false;
		return;
	}
	if (stat(f->in.path, &st) < 0) {
		if (!f->missing)
			forget_control_logf(&f->o, "fifo: %s was removed; a new one would be used",
					    f->in.path);
		f->missing = true;
		return;
	}
	if (!S_ISFIFO(st.st_mode))
		err_set(&err, -EEXIST, "%s is no FIFO any more", f->in.path);
	else if (open_fifo(&f->in, O_RDONLY, &err) == 0)
		f->in.made = f->missing = false;
	if (err.code)
		forget_control_logf(&f->o, "fifo: %s", err.msg);
	else
		forget_control_logf(&f->o, "fifo: there is a new %s, which is used now",
				    f->in.path);
}

static void *fifo_thread(void *arg)
{
	struct forget_fifo *f = arg;

	forget_control_logf(&f->o, "fifo: waiting for fault commands...");
	for (;;) {
		struct pollfd p[] = { { .fd = f->wake, .events = POLLIN },
				      { .fd = f->watch, .events = POLLIN },
				      { .fd = f->in.fd, .events = POLLIN } };

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			break;
		if (p[2].revents)
			read_some(f);
		if (p[1].revents) {
			forget_control_drain(f->watch);
			look_again(f);
		}
	}
	return NULL;
}

static void watch_dir(struct forget_fifo *f)
{
	auto_free char *dir = NULL, *name = NULL;

	below_parent(f->in.path, &dir, &name);

	f->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (f->watch >= 0)
		inotify_add_watch(f->watch, dir,
				  IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO);
}

int forget_fifo_start(const struct forget_control_opts *opts, struct forget_fifo **out,
		      struct err *err)
{
	struct forget_fifo *f = xcalloc(1, sizeof(*f));
	int rc;

	*f = (struct forget_fifo){ .o = *opts,
				   .in = { .fd = -1, .lock = -1, .alone = true },
				   .completed = { .fd = -1, .lock = -1 },
				   .wake = eventfd(0, EFD_CLOEXEC),
				   .watch = -1 };
	rc = make_fifo(&f->in, opts->fifo, O_RDONLY, err);
	if (!rc && opts->fifo_completed)
		rc = make_fifo(&f->completed, opts->fifo_completed, O_RDWR, err);
	if (!rc) {
		watch_dir(f);
		rc = -pthread_create(&f->thread, NULL, fifo_thread, f);
		f->running = rc == 0;
		if (rc)
			err_set(err, rc, "cannot start the thread that reads the FIFO: %m");
	}
	if (rc)
		forget_fifo_stop(f);
	else
		*out = f;
	return rc;
}

void forget_fifo_stop(struct forget_fifo *f)
{
	uint64_t one = 1;

	if (!f)
		return;
	if (f->running) {
		(void)!write(f->wake, &one, sizeof(one));
		pthread_join(f->thread, NULL);
	}
	close_fifo(&f->in);
	close_fifo(&f->completed);
	util_close(f->watch);
	util_close(f->wake);
	strbuf_release(&f->text);
	free(f);
}
