/* SPDX-License-Identifier: MIT */
/*
 * session.c - makes and mounts a FUSE session, and changes its first request and answer.
 */
#include "fuse/session.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "base/util.h"

/* ---- messages of libfuse ---- */

static char last_words[256];
static bool unfinished;

static void keep_words(enum fuse_log_level level, const char *fmt, va_list ap)
{
	/* A sentence may come in pieces; the last piece ends with the line. */
	size_t len = unfinished ? strlen(last_words) : 0;

	(void)level;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(last_words + len, sizeof(last_words) - len, fmt, ap);
#pragma GCC diagnostic pop
	unfinished = !strchr(last_words, '\n');
	last_words[strcspn(last_words, "\n")] = '\0';
	if (!unfinished)
		log_debug("libfuse: %s", last_words);
}

const char *session_words(void)
{
	return last_words;
}

/* ---- the first request and its answer ---- */

static ssize_t receive(int fd, void *buf, size_t len, void *data)
{
	struct session *s = data;
	ssize_t n = s->receive && s->init_seen ? s->receive(s, fd, buf, len) : read(fd, buf, len);
	const struct fuse_in_header *h = buf;
	const struct fuse_init_in *in = (const void *)(h + 1);

	if (!s->init_seen && n >= (ssize_t)(sizeof(*h) + 16) && h->opcode == FUSE_INIT) {
		s->init_seen = true; /* there is only one thread so far */
		s->init_unique = h->unique;
		s->killpriv = in->flags & FUSE_HANDLE_KILLPRIV_V2;
	}
	return n;
}

static ssize_t answer(int fd, struct iovec *iov, int count, void *data)
{
	const struct session *s = data;
	const struct fuse_out_header *h = iov[0].iov_base;

	if (s->killpriv && count >= 2 && h->unique == s->init_unique && !h->error &&
	    iov[1].iov_len >= FUSE_COMPAT_22_INIT_OUT_SIZE) {
		struct fuse_init_out *out = iov[1].iov_base;

		if (out->major == FUSE_KERNEL_VERSION)
			out->flags |= FUSE_HANDLE_KILLPRIV_V2;
	}
	return writev(fd, iov, count);
}

static ssize_t move(int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags,
		    void *data)
{
	(void)data;
	return splice(in, in_off, out, out_off, len, flags);
}

/*
 * Sees requests and answers, to change the first answer; later versions of libfuse need no change.
 * The number of a request is used again only after some 2^63 others, so no other answer is taken
 * for the first one.
 */
static void take_over_io(struct session *s)
{
	static const struct fuse_custom_io io = {
		.writev = answer, .read = receive, .splice_receive = move, .splice_send = move
	};

#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
	if (!s->receive)
		return;
#endif
	if (fuse_session_custom_io(s->se, &io, fuse_session_fd(s->se)))
		log_debug("writes cost more: libfuse does not let us see requests and answers");
}

bool session_take_killpriv(struct session *s, struct fuse_conn_info *conn)
{
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
	s->killpriv = conn->capable & FUSE_CAP_HANDLE_KILLPRIV_V2;
	conn->want |= conn->capable & FUSE_CAP_HANDLE_KILLPRIV_V2;
#else
	(void)conn;
#endif
	return s->killpriv;
}

/* ---- life ---- */

/*
 * Mounts with signals blocked: a signal to our process group (by a terminal, timeout(1)) must not
 * end fusermount3 between mounting and telling us, which would leave the mount behind. The child
 * inherits the blocked signals.
 */
static int mount_undisturbed(struct fuse_session *se, const char *dir)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	int rc = fuse_session_mount(se, dir);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/*
 * Explains a failed mount. For a user, fusermount3 mounts, and writes its reasons to standard
 * error.
 */
static int cannot_mount(const char *dir, struct err *err)
{
	auto_free char *helper = proc_find("fusermount3");

	if (access("/dev/fuse", F_OK) < 0)
		return err_set(err, -EIO,
			       "cannot mount on %s: there is no /dev/fuse; load the module fuse, "
			       "or let the container have it",
			       dir);
	if (*last_words)
		return err_set(err, -EIO, "cannot mount on %s: %s", dir, last_words);
	if (!helper)
		return err_set(err, -ENOENT,
			       "cannot mount on %s: fusermount3 is not there; install it with: "
			       "apt-get install fuse3",
			       dir);
	return err_set(err, -EIO,
		       "cannot mount on %s: fusermount3 (package fuse3) did not do it; what it "
		       "says stands above",
		       dir);
}

int session_open(struct session *s, struct fuse_args *args, const struct fuse_lowlevel_ops *ops,
		 const char *dir, struct err *err)
{
	fuse_set_log_func(keep_words);
	last_words[0] = '\0';
	unfinished = false;
	s->se = fuse_session_new(args, ops, sizeof(*ops), s);
	if (!s->se)
		return err_set(err, -EINVAL, "cannot start a FUSE session: %s", last_words);
	/* Before the mount, so that a signal leaves nothing mounted. */
	if (fuse_set_signal_handlers(s->se))
		return err_set(err, -EIO, "cannot catch signals: %s", last_words);
	s->signals = true;
	if (mount_undisturbed(s->se, dir))
		return cannot_mount(dir, err);
	s->mounted = true;
	take_over_io(s);
	return 0;
}

void session_close(struct session *s)
{
	if (s->signals)
		fuse_remove_signal_handlers(s->se);
	if (s->mounted)
		fuse_session_unmount(s->se);
	if (s->se)
		fuse_session_destroy(s->se);
	*s = (struct session){ 0 };
}
