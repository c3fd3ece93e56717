/* SPDX-License-Identifier: MIT */
/*
 * forget_fds.c - descriptors: limits their number, and keeps enough of them free.
 *
 * A descriptor that stays cannot be closed and opened again: of an inode without a name, of a
 * directory that is being read, and, for a user who is not root, of a file that is open or has
 * unsynced data. All others only save time; they give way, which means that they are closed when
 * descriptors run short.
 *
 * B1: descriptors that stay leave as many free as a power cut needs. An operation that would need
 *     one of these fails with ENFILE before anything is done, so a power cut never runs out of
 *     descriptors. An inode that loses its last name in a power cut, and for which no descriptor is
 *     free, is abandoned (N4 of forget_node.c).
 * B2: the other descriptors are shared by those that give way: nearly half of them for nodes, and
 *     nearly half for data.
 *
 * Other threads change the counts while a thread reads them. Each thread adds at most one;
 * `fd_other` is large enough for that.
 */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/number.h"
#include "forget/forget_impl.h"

enum {
	FIXED = 32,	    /* the server's own: ROOT, journal, sockets, and so on */
	THREAD = 3,	    /* each thread's, while it lives: a clone of the device, a pipe */
	REQUEST = 4,	    /* each request's, while it works */
	GIVE_WAY = 32,	    /* so many are always left to descriptors that give way */
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
	f->data_stays = geteuid() != 0;
	assert(f->fd_other < f->fd_limit && f->threads > 0); /* B1 */
	return 0;
}

static size_t left_of(size_t all, size_t used)
{
	return all - min(all, used);
}

/* Returns how many descriptors stay now. */
static size_t staying(const struct forget *f)
{
	return atomic_load(&f->n_held) + atomic_load(&f->n_dirs) +
	       (f->data_stays ? atomic_load(&f->n_data) : 0);
}

size_t forget_fds_each_max(const struct forget *f)
{
	size_t rest = left_of(f->fd_limit - f->fd_other, staying(f));

	return min(max(rest / 16 * 7, (size_t)EACH_MIN), (size_t)KEPT_MAX);
}

/* Closes data opened when there was more room: unless used, it would stay open. */
static void give_way(struct forget *f)
{
	size_t all = staying(f) + atomic_load(&f->n_fds) + atomic_load(&f->n_data) + 1;

	if (!f->data_stays && all > f->fd_limit - f->fd_other)
		forget_data_close_idle(f);
}

bool forget_fds_take(struct forget *f, enum fds_for what)
{
	static const unsigned char quarters_left[] = {
		[FDS_OPEN] = 0, [FDS_REMOVED_DIR] = 1, [FDS_LOST_OPEN] = 2, [FDS_LOST] = 3
	};
	size_t most = f->fd_limit - f->fd_other - min(f->fd_limit / 8, (size_t)GIVE_WAY);

	if (left_of(most, staying(f)) <= most / 4 * quarters_left[what])
		return false;
	give_way(f);
	return true;
}

int forget_fds_refuse(struct forget *f)
{
	if (!atomic_exchange(&f->told_short, true))
		forget_log(f,
			   "too many descriptors are in use (%zu of %zu, files that are open, and "
			   "directories that are removed and not synced): more is refused with "
			   "ENFILE; a higher limit helps (ulimit -n)",
			   staying(f), f->fd_limit);
	return -ENFILE;
}

void forget_fds_prepare_cut(struct forget *f)
{
	give_way(f);
	node_give_way(f);
}
