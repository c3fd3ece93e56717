/* SPDX-License-Identifier: MIT */
/* forget_file.c - a file: its base, which is durable, and its newer data in memory. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "forget/forget_mount.h"

struct owned_lock *forget_data_lock(struct forget *f, const struct node *n)
{
	return &f->data_locks[((uintptr_t)n * 0x9e3779b97f4a7c15ULL >> 32) % DATA_LOCKS];
}

enum { DISK_BLOCK = 512, COPY_BUF = 1 << 20 };

/* ---- rings ---- */

enum ring { RING_DIRTY, RING_SIZED };

static struct file_link *link_of(struct node_file *x, enum ring r)
{
	return r == RING_DIRTY ? &x->dirty : &x->sized;
}

static struct node_file **ring_of(struct forget *f, enum ring r)
{
	return r == RING_DIRTY ? &f->dirty : &f->sized;
}

static void ring_add(struct node_file *x, enum ring r)
{
	auto_owned(&x->f->tree.lock);
	struct node_file **first = ring_of(x->f, r);
	struct file_link *l = link_of(x, r);

	if (l->next)
		return;
	if (!*first) {
		*first = l->next = l->prev = x;
		return;
	}
	l->next = *first;
	l->prev = link_of(*first, r)->prev;
	link_of(l->prev, r)->next = x;
	link_of(l->next, r)->prev = x;
}

static void ring_remove(struct node_file *x, enum ring r)
{
	auto_owned(&x->f->tree.lock);
	struct node_file **first = ring_of(x->f, r);
	struct file_link *l = link_of(x, r);

	if (!l->next)
		return;
	link_of(l->prev, r)->next = l->next;
	link_of(l->next, r)->prev = l->prev;
	if (*first == x)
		*first = l->next == x ? NULL : l->next;
	*l = (struct file_link){ 0 };
}

struct node_file *forget_file(struct forget *f, struct node *n)
{
	struct node_file *x = n->file;

	assert_owned(forget_data_lock(f, n));
	if (x)
		return x;
	x = xcalloc(1, sizeof(*x));
	x->f = f;
	x->n = n;
	x->fd = -1;
	auto_owned(&f->tree.lock);
	n->file = x;
	return x;
}

/* ---- ROOT's file ---- */

static int open_data(struct node_file *x, bool write, bool *reads)
{
	auto_owned(&x->f->tree.lock);
	int fd = forget_root_open(x->f, x->n, write ? O_RDWR : O_RDONLY);

	*reads = true;
	if (fd == -EACCES && write) {
		fd = forget_root_open(x->f, x->n, O_WRONLY);
		*reads = false;
	}
	return fd;
}

int forget_file_fd(struct node_file *x, bool write)
{
	bool reads;
	int fd;

	assert_owned(forget_data_lock(x->f, x->n));
	if (x->fd >= 0 && (x->held || (write ? x->writes : x->reads)))
		return x->fd;
	fd = open_data(x, write || x->writes, &reads);
	if (fd < 0)
		return fd;
	if (!write && !reads) { /* no more rights than before */
		close(fd);
		return -EACCES;
	}
	if (x->fd >= 0) { /* another thread may be reading: the number stays */
		int rc = dup3(fd, x->fd, O_CLOEXEC) < 0 ? -errno : 0;

		close(fd);
		if (rc)
			return rc;
	} else {
		x->fd = fd;
		atomic_fetch_add(&x->f->n_data, 1);
	}
	x->reads = reads;
	x->writes |= write;
	return x->fd;
}

static void close_fd(struct node_file *x)
{
	if (x->fd < 0)
		return;
	assert(!x->users); /* D2 */
	close(steal_fd(&x->fd));
	x->reads = x->writes = false;
	atomic_fetch_sub(&x->f->n_data, 1);
	if (!x->held)
		return;
	auto_owned(&x->f->tree.lock);
	x->held = false;
	x->n->stale = !x->n->names[NAME_DURABLE];
	atomic_fetch_sub(&x->f->n_held, 1);
}

void forget_file_trim(struct node_file *x)
{
	if (!x->users && !x->held && atomic_load(&x->f->n_data) > forget_fds_each_max(x->f))
		close_fd(x);
}

/* True if another name in ROOT, which was not looked up yet, leads to the file. */
static bool has_other_names(const struct node_file *x)
{
	struct stat st;

	return !fstat(x->fd, &st) && st.st_nlink > 1;
}

static bool is_last_name(struct forget *f, const struct node *n)
{
	auto_owned(&f->tree.lock);
	return n->names[NAME_DURABLE] && !n->names[NAME_DURABLE]->next[NAME_DURABLE];
}

static void solid_add(struct node_file *x, uint64_t start, uint64_t end)
{
	if (start > x->solid_end || end < x->solid) {
		if (end - start <= x->solid_end - x->solid)
			return; /* keeps the larger of two separate ranges */
		x->solid = start;
		x->solid_end = end;
		return;
	}
	x->solid = min(x->solid, start);
	x->solid_end = max(x->solid_end, end);
}

static void solid_subtract(struct node_file *x, uint64_t start, uint64_t end)
{
	if (start >= x->solid_end || end <= x->solid)
		return;
	if (start > x->solid)
		x->solid_end = start;
	else
		x->solid = x->solid_end = 0;
}

static void solid_written(struct node_file *x, uint64_t start, uint64_t end)
{
	if (start <= x->solid_end && end >= x->solid)
		solid_add(x, start, end);
}

/* ---- the base of a node that is not in ROOT (D3) ---- */

/* Nothing is below a shadow: its pages stay in memory until the file has a name. */
static int none_fill(void *ctx, void *data, uint64_t offset, size_t len)
{
	(void)ctx, (void)offset;
	memset(data, 0, len);
	return 0;
}

static int none_write(void *ctx, const void *data, uint64_t offset, size_t len)
{
	(void)ctx, (void)data, (void)offset, (void)len;
	return -ENOSPC;
}

static int none_resize(void *ctx, uint64_t size)
{
	(void)ctx, (void)size;
	return -ENOSPC;
}

static int64_t none_seek(void *ctx, uint64_t offset, int whence)
{
	(void)ctx;
	return whence == SEEK_DATA ? -ENXIO : (int64_t)offset;
}

static const struct pagefile_ops none = {
	.fill = none_fill,
	.write = none_write,
	.resize = none_resize,
};

static struct pagefile *shadow_of(struct node_file *x)
{
	assert(x->n->unmade); /* D3 */
	if (!x->shadow)
		x->shadow = pagefile_new(x->f->shadows, 0, &none, x);
	return x->shadow;
}

static int shadow_fill(struct node_file *x, void *data, uint64_t offset, size_t len)
{
	int64_t n = x->shadow ? pagefile_read(x->shadow, data, offset, len) : 0;

	if (n >= 0)
		memset((char *)data + n, 0, len - (size_t)n);
	return (int)min(n, (int64_t)0);
}

static int shadow_writev(struct node_file *x, const struct iovec *v, int n, uint64_t offset)
{
	int rc = 0;

	for (int i = 0; !rc && i < n; i++) {
		rc = pagefile_write(shadow_of(x), v[i].iov_base, offset, v[i].iov_len, 0, 0);
		offset += v[i].iov_len;
	}
	return rc;
}

/* True if something that waits gives the file a name, or needs its attributes. */
static bool has_future(struct forget *f, const struct node *n)
{
	auto_owned(&f->tree.lock);
	return n->records > 1 || n->names[NAME_LIVE]; /* one is the removal */
}

/* Copies ROOT's file: the file will have no name in ROOT, but is to get one again. */
static int take_shadow(struct node_file *x)
{
	auto_free char *buf = xmalloc(COPY_BUF);
	off_t at = 0;
	struct stat st;

	if (fstat(x->fd, &st))
		return -errno;
	x->shadow = pagefile_new(x->f->shadows, 0, &none, x);
	while ((at = lseek(x->fd, at, SEEK_DATA)) >= 0) {
		ssize_t got = io_pread_full(x->fd, buf, COPY_BUF, at);
		int rc = got < 0 ? (int)got
				 : pagefile_write(x->shadow, buf, (uint64_t)at, (size_t)got, 0, 0);

		if (rc)
			return rc;
		at += max(got, (ssize_t)1);
	}
	return pagefile_truncate(x->shadow, (uint64_t)st.st_size, 0, 0);
}

static int hold(struct node_file *x)
{
	if (!forget_fds_may_hold(x->f))
		return has_other_names(x) ? forget_file_sync(x) : 0;
	auto_owned(&x->f->tree.lock);
	x->held = true;
	atomic_fetch_add(&x->f->n_held, 1);
	return 0;
}

int forget_file_hold(struct forget *f, struct node *n)
{
	bool future = has_future(f, n), needed;
	struct node_file *x = future ? forget_file(f, n) : n->file;
	int rc;

	assert_owned(forget_data_lock(f, n));
	needed = x && (x->opens || future || forget_file_is_dirty(x));
	if (!needed || x->held || n->unmade || !is_last_name(f, n))
		return 0;
	if (forget_file_fd(x, true) < 0 && forget_file_fd(x, false) < 0)
		return 0; /* then it is stale */
	if (has_other_names(x) || (x->opens && !future))
		return hold(x);
	if (!future)
		return 0; /* no program will see the data again */
	rc = take_shadow(x);
	if (rc)
		pagefile_free(steal(x->shadow));
	return rc ? rc : 1;
}

void forget_file_unmade(struct node_file *x, bool gone)
{
	if (gone)
		close_fd(x);
	else
		pagefile_free(steal(x->shadow));
}

int forget_file_write_shadow(struct node_file *x, int fd)
{
	auto_free char *buf = xmalloc(COPY_BUF);
	struct pagefile *s = x->shadow;
	int64_t at = 0, end;
	int rc = 0;

	if (!s)
		return 0;
	while (!rc && (at = pagefile_seek(s, (uint64_t)at, SEEK_DATA, none_seek)) >= 0) {
		end = pagefile_seek(s, (uint64_t)at, SEEK_HOLE, none_seek);
		for (; !rc && at < end; at += COPY_BUF) {
			size_t len = (size_t)min(end - at, (int64_t)COPY_BUF);
			int64_t got = pagefile_read(s, buf, (uint64_t)at, len);

			rc = got < 0 ? (int)got : io_pwrite_full(fd, buf, (size_t)got, at);
		}
		at = end;
	}
	return rc ? rc : result(ftruncate(fd, (off_t)pagefile_size(s)));
}

void forget_file_made(struct node_file *x, int fd)
{
	assert_owned(forget_data_lock(x->f, x->n));
	assert(!x->n->unmade); /* D3 */
	pagefile_free(steal(x->shadow));
	if (fd >= 0 && x->fd < 0) {
		x->fd = fd;
		x->reads = x->writes = true;
		atomic_fetch_add(&x->f->n_data, 1);
		fd = -1;
	}
	util_close(fd);
}

/* ---- the functions with which the page cache reads and writes the base; the lock is held ---- */

static int ops_fill(void *ctx, void *data, uint64_t offset, size_t len)
{
	struct node_file *x = ctx;

	if (x->n->unmade)
		return shadow_fill(x, data, offset, len);
	int fd = forget_file_fd(x, false);
	ssize_t n = fd < 0 ? fd : io_pread_full(fd, data, len, (off_t)offset);

	if (n < 0)
		return (int)n;
	memset((char *)data + n, 0, len - (size_t)n);
	return 0;
}

static int ops_write(void *ctx, const void *data, uint64_t offset, size_t len)
{
	struct node_file *x = ctx;

	if (x->n->unmade)
		return pagefile_write(shadow_of(x), data, offset, len, 0, 0);
	int fd = forget_file_fd(x, true);
	int rc = fd < 0 ? fd : io_pwrite_full(fd, data, len, (off_t)offset);

	if (!rc)
		solid_written(x, offset, offset + len);
	return rc;
}

static int ops_writev(void *ctx, const struct iovec *v, int n, uint64_t offset)
{
	struct node_file *x = ctx;

	if (x->n->unmade)
		return shadow_writev(x, v, n, offset);
	int fd = forget_file_fd(x, true);
	ssize_t done = fd < 0 ? 0 : pwritev(fd, v, n, (off_t)offset);
	uint64_t start = offset;

	if (fd < 0)
		return fd;
	if (done < 0)
		return -errno;
	for (int i = 0; i < n; i++) { /* goes on after a short write */
		size_t len = v[i].iov_len, skip = min((size_t)done, len);

		if (skip < len) {
			int rc = io_pwrite_full(fd, (char *)v[i].iov_base + skip, len - skip,
						(off_t)(offset + skip));

			if (rc)
				return rc;
		}
		done -= (ssize_t)skip;
		offset += len;
	}
	solid_written(x, start, offset);
	return 0;
}

static int ops_resize(void *ctx, uint64_t size)
{
	struct node_file *x = ctx;

	if (x->n->unmade)
		return pagefile_truncate(shadow_of(x), size, 0, 0);
	int fd = forget_file_fd(x, true);
	if (fd < 0)
		return fd;
	solid_subtract(x, size, UINT64_MAX);
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int ops_zero(void *ctx, uint64_t offset, uint64_t len)
{
	static const char zeros[65536];
	struct node_file *x = ctx;

	if (x->n->unmade)
		return pagefile_zero(shadow_of(x), offset, len, true, 0, 0);
	int fd = forget_file_fd(x, true), rc = 0;
	if (fd < 0)
		return fd;
	solid_subtract(x, offset, offset + len);
	if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len))
		return 0;
	if (errno != EOPNOTSUPP)
		return -errno;
	for (uint64_t done = 0; !rc && done < len; done += sizeof(zeros))
		rc = io_pwrite_full(fd, zeros, (size_t)min(len - done, (uint64_t)sizeof(zeros)),
				    (off_t)(offset + done));
	return rc;
}

static bool ops_trylock(void *ctx)
{
	struct node_file *x = ctx;

	return owned_try(forget_data_lock(x->f, x->n));
}

static void ops_unlock(void *ctx)
{
	struct node_file *x = ctx;

	owned_give(forget_data_lock(x->f, x->n));
}

static const struct pagefile_ops file_ops = {
	.fill = ops_fill,
	.write = ops_write,
	.writev = ops_writev,
	.resize = ops_resize,
	.zero = ops_zero,
	.trylock = ops_trylock,
	.unlock = ops_unlock,
};

/* ---- data in memory ---- */

bool forget_file_is_dirty(const struct node_file *x)
{
	return x && x->pf && !pagefile_is_clean(x->pf);
}

static int base_size(struct node_file *x, uint64_t *size)
{
	struct stat st;
	int fd;

	if (x->n->unmade) {
		*size = x->shadow ? pagefile_size(x->shadow) : 0;
		return 0;
	}
	fd = forget_file_fd(x, true);
	if (fd >= 0 && fstat(fd, &st))
		return -errno;
	*size = fd < 0 ? 0 : (uint64_t)st.st_size;
	return min(fd, 0);
}

int forget_file_pages(struct node_file *x)
{
	uint64_t size;
	int rc;

	if (x->pf)
		return 0;
	rc = base_size(x, &size);
	if (rc)
		return rc;
	x->setid = forget_attr_setid(x->f, x->n);
	x->pf = pagefile_new(x->f->cache, size, &file_ops, x);
	ring_add(x, RING_DIRTY);
	return 0;
}

int64_t forget_file_read(struct node_file *x, void *data, uint64_t offset, size_t len)
{
	uint64_t size;
	int rc;

	if (x->pf)
		return pagefile_read(x->pf, data, offset, len);
	rc = base_size(x, &size);
	if (rc || offset >= size)
		return rc;
	len = (size_t)min((uint64_t)len, size - offset);
	rc = ops_fill(x, data, offset, len);
	return rc ? rc : (int64_t)len;
}

/* ---- sizes that wait for metadata ---- */

/*
 * Notes that a size changed. For profiles without an order of metadata, only a sync of the file
 * itself makes its size durable.
 */
void forget_file_mark_sized(struct node_file *x, uint64_t number)
{
	if (!x->f->log || !x->f->opts.profile->in_order)
		return;
	x->size_last = number;
	if (x->is_sized)
		return;
	x->size_first = number;
	x->is_sized = true;
	ring_add(x, RING_SIZED);
}

static void unmark_sized(struct node_file *x)
{
	x->flush = false;
	if (x->is_sized)
		ring_remove(x, RING_SIZED);
	x->is_sized = false;
}

uint64_t forget_file_first_size(struct forget *f)
{
	uint64_t first = UINT64_MAX;

	auto_owned(&f->tree.lock);
	for (struct node_file *x = f->sized; x;
	     x = x->sized.next == f->sized ? NULL : x->sized.next)
		first = min(first, x->size_first);
	return first;
}

/* ---- walks ---- */

static struct node_walk walk(struct forget *f, enum ring r)
{
	struct node_walk w = { .f = f };

	auto_owned(&f->tree.lock);
	struct node_file *first = *ring_of(f, r), *x = first;
	while (x) {
		if (!x->n->dead) {
			x->n->refs++;
			vec_push(&w.list, x->n);
		}
		x = link_of(x, r)->next;
		if (x == first)
			break;
	}
	return w;
}

struct node_walk forget_file_dirty(struct forget *f)
{
	return walk(f, RING_DIRTY);
}

struct node_walk forget_file_sized(struct forget *f)
{
	return walk(f, RING_SIZED);
}

struct node *node_next(struct node_walk *w)
{
	if (w->at)
		node_unref(w->f, w->at);
	w->at = w->next < w->list.n ? w->list.v[w->next++] : NULL;
	return w->at;
}

/* ---- changing ---- */

void forget_file_touch(struct node_file *x, uint64_t number)
{
	clock_gettime(CLOCK_REALTIME, &x->mtime);
	x->ctime = x->mtime;
	x->times = true;
	x->touched = number;
}

int forget_file_truncate(struct node_file *x, uint64_t size, uint64_t number)
{
	int rc = forget_file_pages(x);

	if (!rc)
		rc = pagefile_truncate(x->pf, size, number, forget_clock_ns());
	if (rc)
		return rc;
	x->was_truncated = x->was_truncated || !size;
	forget_file_mark_sized(x, number);
	forget_file_touch(x, number);
	return 0;
}

static bool is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

void forget_file_overlay(struct node_file *x, struct stat *st)
{
	if (x->n->unmade && x->shadow) {
		st->st_size = (off_t)pagefile_size(x->shadow);
		st->st_blocks = (st->st_size + DISK_BLOCK - 1) / DISK_BLOCK;
	}
	if (x->pf) {
		uint64_t more = pagefile_dirty_bytes(x->pf) / DISK_BLOCK;
		uint64_t most = (pagefile_size(x->pf) + DISK_BLOCK - 1) / DISK_BLOCK;

		st->st_size = (off_t)pagefile_size(x->pf);
		/*
		 * The space to be allocated is unknown; this counts the data still to be written.
		 */
		if (more)
			st->st_blocks = (blkcnt_t)max(min((uint64_t)st->st_blocks + more, most),
						      min(more, most));
	}
	if (!x->times)
		return;
	st->st_mtim = x->mtime;
	if (is_later(x->ctime, st->st_ctim))
		st->st_ctim = x->ctime;
}

/* ---- becoming durable ---- */

int forget_file_keep_times(struct node_file *x)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, x->mtime };
	int fd;

	if (!x->times)
		return 0;
	if (x->n->unmade) {
		auto_owned(&x->f->tree.lock);
		x->n->unmade->looks.mtime = x->mtime;
		return 0;
	}
	fd = forget_file_fd(x, true);
	if (fd < 0)
		return fd;
	return futimens(fd, times) ? -errno : 0;
}

static int write_times(struct node_file *x)
{
	int rc = forget_file_keep_times(x);

	if (rc || !x->times)
		return rc;
	x->times = false;
	auto_owned(&x->f->tree.lock);
	if (x->n->looks) {
		x->n->looks->mtime = x->mtime;
		x->n->looks->ctime = x->ctime;
	}
	return 0;
}

int forget_file_sync(struct node_file *x)
{
	int rc;

	if (x->n->stale) /* no program can reach the data */
		forget_file_drop(x);
	rc = x->pf ? pagefile_sync(x->pf) : 0;
	if (!rc)
		rc = write_times(x);
	if (!rc) {
		x->was_truncated = false;
		unmark_sized(x);
	}
	forget_file_trim(x);
	return rc;
}

int forget_file_sync_size(struct node_file *x)
{
	int rc;

	if (x->n->stale)
		forget_file_drop(x);
	rc = x->pf ? pagefile_sync_size(x->pf, !x->f->opts.profile->size_with_data) : 0;
	if (!rc)
		rc = forget_file_keep_times(x);
	if (!rc)
		unmark_sized(x);
	forget_file_trim(x);
	return rc;
}

int forget_file_sync_sizes(struct forget *f)
{
	auto_vec struct node_walk list = forget_file_sized(f);
	int rc = 0;

	for (struct node *n; (n = node_next(&list));) {
		int one;

		auto_data(f, n);
		one = !n->file || !n->file->is_sized ? 0
		      : n->file->flush		     ? forget_file_sync(n->file)
						     : forget_file_sync_size(n->file);
		forget_file_idle(f, n);
		if (one)
			forget_log(f, "the size of inode %llu could not be made durable: %s",
				   llu(n->ino), strerror(-one));
		rc = rc ? rc : one;
	}
	return rc;
}

static int64_t seek_below(void *ctx, uint64_t offset, int whence)
{
	struct node_file *x = ctx;

	if (x->n->unmade)
		return x->shadow && offset < pagefile_size(x->shadow)
			       ? pagefile_seek(x->shadow, offset, whence, none_seek)
			       : none_seek(x, offset, whence);
	int fd = forget_file_fd(x, false);
	off_t at = fd < 0 ? fd : lseek(fd, (off_t)offset, whence);
	return fd < 0 ? fd : at < 0 ? -errno : at;
}

int64_t forget_file_seek(struct node_file *x, uint64_t offset, int whence)
{
	uint64_t size;
	int rc = 0;

	if (x->pf)
		return pagefile_seek(x->pf, offset, whence, seek_below);
	if (x->n->unmade)
		rc = base_size(x, &size);
	if (!rc && x->n->unmade && offset >= size)
		return -ENXIO;
	return rc ? rc : seek_below(x, offset, whence);
}

bool forget_file_needs_space(struct node_file *x, const struct pagefile_risk *r)
{
	uint64_t end = min(r->offset + r->len, pagefile_size(x->pf));
	int64_t hole;

	if (r->offset >= x->solid && end <= x->solid_end)
		return false;
	hole = seek_below(x, r->offset, SEEK_HOLE);
	if (hole < 0)
		return true;
	if (!x->n->unmade)
		solid_add(x, r->offset, (uint64_t)hole);
	return (uint64_t)hole < end;
}

static int needs_metadata(void *ctx, const struct pagefile_risk *r)
{
	if (r->kind != RISK_DATA)
		return 1;
	return !r->failed && forget_file_needs_space(ctx, r);
}

bool forget_file_needs_metadata(struct node_file *x)
{
	if (!x->pf)
		return false;
	return pagefile_size(x->pf) != pagefile_durable_size(x->pf) ||
	       pagefile_risks(x->pf, needs_metadata, x);
}

/* ---- losing data ---- */

void forget_file_drop(struct node_file *x)
{
	if (x->pf)
		pagefile_drop(x->pf);
	unmark_sized(x);
	x->times = x->was_truncated = false;
}

static void free_pages(struct node_file *x)
{
	if (!x->pf)
		return;
	ring_remove(x, RING_DIRTY);
	unmark_sized(x);
	pagefile_free(steal(x->pf));
}

static bool is_found(struct forget *f, const struct node *n)
{
	auto_owned(&f->tree.lock);
	return n->names[NAME_LIVE] || n->names[NAME_DURABLE] || n->records;
}

void forget_file_idle(struct forget *f, struct node *n)
{
	struct node_file *x = n->file;

	assert_owned(forget_data_lock(f, n));
	if (!x || x->opens)
		return;
	if (!is_found(f, n)) /* no name leads to it, before or after a power cut */
		unmark_sized(x);
	if (x->pf && pagefile_is_clean(x->pf) && !x->times)
		free_pages(x);
	if (!x->pf && !x->users)
		close_fd(x);
	forget_file_trim(x);
	auto_owned(&f->tree.lock);
	if (x->pf || x->shadow || x->users || x->times || x->is_sized || n->looks)
		return;
	n->file = NULL;
	free(x);
}

void forget_file_let_go(struct forget *f, struct node *n)
{
	auto_data(f, n);
	forget_file_idle(f, n);
}

void forget_file_release(struct forget *f, struct node *n)
{
	auto_data(f, n);
	struct node_file *x = n->file;

	if (!x)
		return;
	free_pages(x);
	unmark_sized(x);
	pagefile_free(steal(x->shadow));
	x->users = 0;
	close_fd(x);
	free(steal(n->file));
}

/* True if the kernel does not know it, and it has no name that was not removed. */
static bool is_removed(struct forget *f, const struct node *n)
{
	auto_owned(&f->tree.lock);
	return !n->nlookup && !n->names[NAME_LIVE] && n->made && !n->replaced;
}

/*
 * Frees the data of a removed file, which a power cut and a sync would do, too: until then, files
 * that are written and removed would take memory. If only a part of the metadata survives, the file
 * may come back empty, but with the size or data that belongs to that part.
 */
void forget_file_forget_removed(struct forget *f, struct node *n)
{
	auto_data(f, n);
	struct node_file *x = n->file;

	if (x && x->pf && !x->opens && !x->is_sized && !x->flush && is_removed(f, n)) {
		forget_file_drop(x);
		forget_file_idle(f, n);
	}
}
