/* SPDX-License-Identifier: MIT */
/*
 * forget_fds.c - descriptors: limits their number.
 *
 * The descriptors of directories and of data only save time: they are closed when there are too
 * many, and opened again when needed. One that stays is that of a file that is open, and whose last
 * name in ROOT went; beyond half of all, such a file is lost (ESTALE). Everything that is not
 * durable is in memory, and needs none.
 */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/number.h"
#include "forget/forget_mount.h"

enum {
	FIXED = 32,	    /* the server's own: ROOT, sockets, and so on */
	THREAD = 3,	    /* each thread's, while it lives: a clone of the device, a pipe */
	REQUEST = 4,	    /* each request's, while it works */
	EACH_MIN = 8,	    /* for each kind */
	KEPT_MAX = 1 << 19, /* for each kind: more would not be faster */
	THREADS_MIN = 4,    /* a thread may have to wait for another one */
	LIMIT_MIN = 64,
	LIMIT_UNKNOWN = 1024,
};

static rlim_t most_of_all(void)
{
	auto_strbuf text = STRBUF_INIT;
	uint64_t n = 0;

	if (io_slurp("/proc/sys/fs/nr_open", 64, &text, NULL))
		return 0;
	if (text.len && text.buf[text.len - 1] == '\n')
		text.buf[--text.len] = '\0';
	return number_parse(strbuf_str(&text), &n) ? 0 : (rlim_t)n;
}

static void raise_to(struct rlimit *r, rlim_t limit)
{
	struct rlimit more = { limit, limit };

	if (r->rlim_cur < limit && !setrlimit(RLIMIT_NOFILE, &more))
		*r = more;
}

/* Raises the limit as far as the kernel allows: for root, beyond the hard limit. */
static size_t raise_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return LIMIT_UNKNOWN;
	raise_to(&r, r.rlim_max);
	raise_to(&r, most_of_all());
	return r.rlim_cur == RLIM_INFINITY ? (size_t)1 << 30 : (size_t)r.rlim_cur;
}

int forget_fds_init(struct forget *f, unsigned threads, struct err *err)
{
	size_t limit = raise_limit();

	if (limit < LIMIT_MIN)
		return err_set(err, -EMFILE,
			       "only %zu files may be open at once; a mount needs %d (ulimit -n)",
			       limit, LIMIT_MIN);
	f->fd_limit = limit;
	f->fd_other = min(FIXED + (size_t)threads * (THREAD + REQUEST), limit / 2);
	f->threads =
		min(threads, max((unsigned)(f->fd_other - FIXED) / THREAD, (unsigned)THREADS_MIN));
	assert(f->fd_other < f->fd_limit && f->threads > 0);
	return 0;
}

size_t forget_fds_each_max(const struct forget *f)
{
	size_t all = f->fd_limit - f->fd_other;
	size_t rest = all - min(all, atomic_load(&f->n_held));

	return min(max(rest / 16 * 7, (size_t)EACH_MIN), (size_t)KEPT_MAX);
}

bool forget_fds_may_hold(const struct forget *f)
{
	return atomic_load(&f->n_held) < (f->fd_limit - f->fd_other) / 2;
}
