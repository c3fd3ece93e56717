/* SPDX-License-Identifier: MIT */
/*
 * launch.c - the launcher, a small process that is forked before its parent grows large; the
 * helpers that it forks, which run checks; and the sockets for requests to both.
 *
 * Messages over a socket: to the launcher, a byte with the socket of the new helper; to a helper
 * first a description of its worker, a head with the namespaces and the root directory as
 * descriptors, and the texts; then a head and a text for each check, which it answers with a head
 * and a text.
 */
#include "sandbox/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"
#include "sandbox/pass.h"

enum { TEXT_MAX = 16 << 20, PLACES = PASS_MAX };

struct launcher {
	int fd;
	pid_t pid;
};

/* Texts follow, in this order; the pointers in `opts` are not valid. */
struct enter_head {
	struct sandbox_opts opts;
	uint64_t command, dir, notes; /* bytes */
	bool user;
};

struct ask_head {
	uint64_t point, acked;
};

/* The output follows, or an error message. */
struct reply_head {
	int rc;
	struct check_result r;
	uint64_t len;
};

/* ---- the helper ---- */

struct helper {
	int fd;
	struct sandbox_opts opts;
	struct sandbox_keeper keeper;
	struct strbuf acked;
	struct check_result r;
};

static int join(const struct enter_head *h, const int fds[PLACES])
{
	int rc = 0;

	/* The user namespace comes first: it gives the right to enter the other one. */
	if (h->user && setns(fds[2], CLONE_NEWUSER))
		rc = -errno;
	if (!rc && setns(fds[0], CLONE_NEWNS))
		rc = -errno;
	/* Entering a mount namespace has changed the root. */
	if (!rc && (fchdir(fds[1]) || chroot(".") || chdir("/")))
		rc = -errno;
	for (int i = 0; i < 2 + h->user; i++)
		util_close(fds[i]);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of privileges has reset it */
	return rc;
}

static char *read_text(int fd, uint64_t len)
{
	char *text = len < TEXT_MAX ? xmalloc(len + 1) : NULL;

	if (!text || io_read_full(fd, text, len) != (ssize_t)len) {
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

static int enter(struct helper *w)
{
	struct enter_head h = { 0 };
	int fds[PLACES], n = pass_receive(w->fd, &h, sizeof(h), fds);

	if (n != 2 + (n > 0 && h.user))
		return -EPIPE;
	w->opts = h.opts;
	/* Pointers of the asking process are not valid here. */
	w->opts.argument = NULL;
	w->opts.variables = NULL;
	w->opts.command = read_text(w->fd, h.command);
	w->opts.dir = read_text(w->fd, h.dir);
	w->opts.notes = read_text(w->fd, h.notes);
	w->opts.keeper = &w->keeper;
	w->opts.watched = true;
	w->opts.watch = w->fd;
	if (!w->opts.command || !w->opts.dir || !w->opts.notes)
		return -EPIPE;
	int rc = join(&h, fds);
	int told = io_write_full(w->fd, &rc, sizeof(rc));
	return rc ? rc : told;
}

static int reply(struct helper *w, int rc, const char *wrong)
{
	struct reply_head h = { rc, w->r, rc ? strlen(wrong) : w->r.output.len };
	int said = io_write_full(w->fd, &h, sizeof(h));

	return said ? said : io_write_full(w->fd, rc ? wrong : strbuf_str(&w->r.output), h.len);
}

static int serve_one(struct helper *w)
{
	struct err err = ERR_INIT;
	struct ask_head h;

	if (io_read_full(w->fd, &h, sizeof(h)) != (ssize_t)sizeof(h))
		return -EPIPE;
	auto_free char *acked = read_text(w->fd, h.acked);
	if (!acked)
		return -EPIPE;
	int rc = check_run(&w->opts, h.point, acked, h.acked, &w->r, &err);
	return reply(w, rc, err.msg);
}

static void help(int fd, pid_t parent)
{
	struct helper w = { .fd = fd };

	proc_tie(parent);
	if (enter(&w))
		_exit(1);
	while (!serve_one(&w))
		;
	sandbox_keeper_end(&w.keeper);
	_exit(0);
}

/* ---- the launcher ---- */

static void launch(int fd, pid_t parent)
{
	int fds[PLACES];
	char byte;

	proc_tie(parent);
	parent = getpid();
	signal(SIGINT, SIG_IGN); /* a terminal sends these to all processes; the parent decides */
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	while (pass_receive(fd, &byte, 1, fds) == 1) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (fork() == 0) {
			util_close(fd);
			help(fds[0], parent);
		}
		util_close(fds[0]);
	}
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) /* N1 */
		;
	_exit(0);
}

int launcher_start(struct launcher **out, struct err *err)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(err, -errno, "cannot make a pair of sockets: %m");
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		util_close(pair[0]);
		launch(pair[1], parent);
	}
	util_close(pair[1]);
	if (pid < 0) {
		util_close(pair[0]);
		return err_set(err, -EAGAIN, "cannot start a process");
	}
	*out = xcalloc(1, sizeof(**out));
	(*out)->fd = pair[0];
	(*out)->pid = pid;
	return 0;
}

void launcher_stop(struct launcher *l)
{
	if (!l)
		return;
	util_close(l->fd);
	while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(l);
}

int launcher_open(struct launcher *l)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	int rc = pass_send(l->fd, "", 1, &pair[1], 1);
	util_close(pair[1]);
	if (!rc)
		return pair[0];
	util_close(pair[0]);
	return rc;
}

/* ---- the worker ---- */

int launch_enter(int fd, const struct sandbox_opts *o)
{
	struct enter_head h = { *o, strlen(o->command), strlen(o->dir), strlen(o->notes),
				geteuid() != 0 };
	auto_fd mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	auto_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd user = h.user ? open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC) : -1;
	int fds[PLACES] = { mounts, root, user }, joined = -EPIPE;

	if (mounts < 0 || root < 0 || (h.user && user < 0))
		return -ENOENT;
	int rc = pass_send(fd, &h, sizeof(h), fds, (size_t)2 + h.user);
	if (!rc)
		rc = io_write_full(fd, o->command, h.command);
	if (!rc)
		rc = io_write_full(fd, o->dir, h.dir);
	if (!rc)
		rc = io_write_full(fd, o->notes, h.notes);
	if (!rc && io_read_full(fd, &joined, sizeof(joined)) != (ssize_t)sizeof(joined))
		rc = -EPIPE;
	return rc ? rc : joined;
}

int launch_check(int fd, uint64_t point, const char *acked, size_t acked_len,
		 struct check_result *r, struct err *err)
{
	struct ask_head ask = { point, acked_len };
	struct reply_head h;

	check_result_release(r);
	int rc = io_write_full(fd, &ask, sizeof(ask));
	if (!rc)
		rc = io_write_full(fd, acked, acked_len);
	if (rc || io_read_full(fd, &h, sizeof(h)) != (ssize_t)sizeof(h))
		return err_set(err, -EPIPE, "the process that starts checks is gone");
	auto_free char *text = read_text(fd, h.len);
	if (!text)
		return err_set(err, -EPIPE, "the process that starts checks is gone");
	if (h.rc)
		return err_set(err, h.rc, "%s", text);
	*r = h.r;
	r->output = (struct strbuf)STRBUF_INIT;
	strbuf_add(&r->output, text, h.len);
	return 0;
}
