/* SPDX-License-Identifier: MIT */
/*
 * forget_file.c - a file: its durable data in ROOT's file, and its newer data in memory.
 *
 * D1: ROOT's file changes only by a sync, by a rule of the profile, or by a fault that says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "forget/forget_impl.h"

/* ---- ROOT's file ---- */

/*
 * Opens a file that its owner may write to, but not read: to keep the rest of a block, the server
 * must read. The owner gets the right to read for the moment of the opening; the kernel has checked
 * every other reader.
 */
static int open_unreadable(const char *path)
{
	struct stat st, now;
	int fd, rc;

	if (stat(path, &st) || st.st_uid != geteuid() || (st.st_mode & S_IRUSR) ||
	    chmod(path, (st.st_mode & 07777) | S_IRUSR))
		return -1;
	fd = open(path, O_RDWR | O_CLOEXEC);
	/* The old mode is set again, unless the mode was changed meanwhile. */
	rc = stat(path, &now);
	if (!rc && (now.st_mode & 07777) == ((st.st_mode & 07777) | S_IRUSR))
		rc = chmod(path, st.st_mode & 07777);
	if (rc)
		util_close(steal_fd(&fd));
	return fd;
}

/* Opens a node's data. A file that cannot be read may still be open for writing. */
static int open_data(struct forget *f, struct node *n, bool write, bool *reads)
{
	auto_pin at = node_pinned(f, n);
	struct fd_path path = fd_path(at.fd);
	int fd;

	if (at.fd < 0)
		return at.fd;
	*reads = true;
	fd = open(path.text, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && write) {
		fd = open_unreadable(path.text);
		*reads = fd >= 0;
		if (fd < 0)
			fd = open(path.text, O_WRONLY | O_CLOEXEC);
	}
	return result(fd);
}

int forget_data_fd(struct forget *f, struct node *n, bool write)
{
	bool reads;
	int fd;

	if (n->data >= 0 && (write ? n->data_writes : n->data_reads))
		return n->data;
	if (n->data < 0 && f->data_stays && !forget_fds_take(f, FDS_OPEN))
		return forget_fds_refuse(f);
	fd = open_data(f, n, write || n->data_writes, &reads);
	if (fd < 0)
		return fd;
	if (!write && !reads) { /* no more rights than before */
		close(fd);
		return -EACCES;
	}
	if (n->data >= 0) { /* another thread may be reading: the number stays */
		int rc = dup3(fd, n->data, O_CLOEXEC) < 0 ? -errno : 0;

		close(fd);
		if (rc)
			return rc;
	} else {
		n->data = fd;
		atomic_fetch_add(&f->n_data, 1);
	}
	n->data_reads = reads;
	n->data_writes |= write;
	return n->data;
}

static void close_data(struct forget *f, struct node *n)
{
	if (n->data < 0)
		return;
	close(n->data);
	n->data = -1;
	n->data_reads = n->data_writes = false;
	size_t had = atomic_fetch_sub(&f->n_data, 1);
	assert(had > 0 && !n->data_users); /* B2 of forget_fds.c, D2 of forget_data.c */
}

void forget_data_trim(struct forget *f, struct node *n)
{
	/* Without root, a file may not open again, as its mode may have changed. */
	if (!n->data_users && atomic_load(&f->n_data) > forget_fds_each_max(f) &&
	    (!f->data_stays || (!n->opens && !n->data_writes)))
		close_data(f, n);
}

/* Closes data; a node whose lock is taken is in use. */
static void close_if_idle(struct forget *f, struct node *n)
{
	if (!S_ISREG(n->type) || pthread_mutex_trylock(&n->lock))
		return;
	if (!n->data_users)
		close_data(f, n);
	pthread_mutex_unlock(&n->lock);
}

void forget_data_close_idle(struct forget *f)
{
	auto_lock(&f->table);
	for (size_t i = 0; i < f->n_buckets; i++)
		for (struct node *n = f->buckets[i]; n; n = n->hash_next)
			close_if_idle(f, n);
}

/*
 * The functions with which the page cache reads and writes ROOT's file. Their context has the node,
 * whose lock is held.
 */
struct file_ctx {
	struct forget *f;
	struct node *n;
	/*
	 * A range without holes. To find the next hole, ROOT's file system may have to look at all
	 * of the file before it. No other process makes holes.
	 */
	uint64_t solid, solid_end;
};

static void solid_add(struct file_ctx *x, uint64_t start, uint64_t end)
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

static void solid_subtract(struct file_ctx *x, uint64_t start, uint64_t end)
{
	if (start >= x->solid_end || end <= x->solid)
		return;
	if (start > x->solid)
		x->solid_end = start;
	else
		x->solid = x->solid_end = 0;
}

static void solid_written(struct file_ctx *x, uint64_t start, uint64_t end)
{
	if (start <= x->solid_end && end >= x->solid)
		solid_add(x, start, end);
}

static int ops_fill(void *ctx, void *data, uint64_t offset, size_t len)
{
	struct file_ctx *x = ctx;
	int fd = forget_data_fd(x->f, x->n, false);
	ssize_t n = fd < 0 ? fd : io_pread_full(fd, data, len, (off_t)offset);

	if (n < 0)
		return (int)n;
	memset((char *)data + n, 0, len - (size_t)n);
	return 0;
}

static int ops_write(void *ctx, const void *data, uint64_t offset, size_t len)
{
	struct file_ctx *x = ctx;
	int fd = forget_data_fd(x->f, x->n, true);
	int rc = fd < 0 ? fd : io_pwrite_full(fd, data, len, (off_t)offset);

	if (!rc)
		solid_written(x, offset, offset + len);
	return rc;
}

static int ops_writev(void *ctx, const struct iovec *v, int n, uint64_t offset)
{
	struct file_ctx *x = ctx;
	int fd = forget_data_fd(x->f, x->n, true);
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
	struct file_ctx *x = ctx;
	int fd = forget_data_fd(x->f, x->n, true);

	if (fd < 0)
		return fd;
	solid_subtract(x, size, UINT64_MAX);
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int ops_zero(void *ctx, uint64_t offset, uint64_t len)
{
	static const char zeros[65536];
	struct file_ctx *x = ctx;
	int fd = forget_data_fd(x->f, x->n, true), rc = 0;

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
	struct file_ctx *x = ctx;

	return !pthread_mutex_trylock(&x->n->lock);
}

static void ops_unlock(void *ctx)
{
	struct file_ctx *x = ctx;

	pthread_mutex_unlock(&x->n->lock);
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

bool forget_data_is_dirty(const struct node *n)
{
	return n->pf && !pagefile_is_clean(n->pf);
}

int forget_data_file(struct forget *f, struct node *n)
{
	struct stat st;
	int fd;

	if (n->pf)
		return 0;
	fd = forget_data_fd(f, n, true); /* while it is still possible */
	if (fd < 0)
		return fd;
	auto_pin at = node_pinned(f, n);
	if (at.fd < 0)
		return at.fd;
	if (fstatat(at.fd, "", &st, AT_EMPTY_PATH))
		return -errno;
	atomic_store(&n->setid, forget_attr_setid(at.fd, &st));
	n->file = (struct file_ctx *)xmalloc(sizeof(struct file_ctx));
	*n->file = (struct file_ctx){ .f = f, .n = n };
	n->pf = pagefile_new(f->cache, (uint64_t)st.st_size, &file_ops, n->file);
	atomic_store(&n->live, true);
	auto_lock(&f->dirty);
	n->dirty_prev = NULL;
	n->dirty_next = f->dirty_first;
	if (f->dirty_first)
		f->dirty_first->dirty_prev = n;
	f->dirty_first = n;
	return 0;
}

/* ---- sizes that wait for metadata ---- */

/*
 * Notes that a size changed. For profiles without an order of metadata, only a sync of the file
 * itself makes its size durable.
 */
void forget_data_mark_sized(struct forget *f, struct node *n, uint64_t number)
{
	if (!f->log || !f->opts.profile->in_order)
		return;
	n->size_last = number;
	if (n->sized)
		return;
	n->sized = true;
	n->size_first = number;
	auto_lock(&f->table);
	n->refs++;
	n->sized_at = f->sized.n;
	vec_push(&f->sized, n);
}

void forget_data_unmark_sized(struct forget *f, struct node *n)
{
	n->flush = false;
	if (!n->sized)
		return;
	n->sized = false;
	auto_lock(&f->table);
	if (n->sized_at < f->sized.n && f->sized.v[n->sized_at] == n) {
		f->sized.v[n->sized_at] = vec_last(&f->sized);
		f->sized.v[n->sized_at]->sized_at = n->sized_at;
		f->sized.n--;
		n->refs--;
	}
}

/* ---- losing data ---- */

void forget_data_free(struct forget *f, struct node *n)
{
	if (!n->pf)
		return;
	pthread_mutex_lock(&f->dirty);
	if (n->dirty_prev)
		n->dirty_prev->dirty_next = n->dirty_next;
	else
		f->dirty_first = n->dirty_next;
	if (n->dirty_next)
		n->dirty_next->dirty_prev = n->dirty_prev;
	n->dirty_prev = n->dirty_next = NULL;
	pthread_mutex_unlock(&f->dirty);
	forget_data_unmark_sized(f, n);
	pagefile_free(steal(n->pf));
	free(steal(n->file));
	atomic_store(&n->live, n->times);
}

static void walk_to(struct node_walk *w, struct node *n)
{
	n->refs++;
	vec_push(&w->list, n);
}

struct node_walk forget_data_dirty_nodes(struct forget *f)
{
	struct node_walk w = { .f = f };

	auto_lock(&f->table); /* so that no node is freed */
	auto_lock(&f->dirty);
	for (struct node *n = f->dirty_first; n; n = n->dirty_next)
		if (!n->dead)
			walk_to(&w, n);
	return w;
}

struct node_walk forget_data_sized_nodes(struct forget *f)
{
	struct node_walk w = { .f = f };

	auto_lock(&f->table);
	for (size_t i = 0; i < f->sized.n; i++)
		walk_to(&w, f->sized.v[i]);
	return w;
}

struct node *node_next(struct node_walk *w)
{
	if (w->at)
		node_unref(w->f, w->at);
	w->at = w->next < w->list.n ? w->list.v[w->next++] : NULL;
	return w->at;
}

void forget_data_touch(struct node *n)
{
	clock_gettime(CLOCK_REALTIME, &n->mtime);
	n->ctime = n->mtime;
	n->times = true;
	if (!atomic_load_explicit(&n->live, memory_order_relaxed))
		atomic_store(&n->live, true);
}

int forget_data_truncate(struct forget *f, struct node *n, uint64_t size, uint64_t number)
{
	int rc = forget_data_file(f, n);

	if (!rc)
		rc = pagefile_truncate(n->pf, size, number, forget_clock_ns());
	if (rc)
		return rc;
	n->was_truncated = n->was_truncated || !size;
	forget_data_mark_sized(f, n, number);
	forget_data_touch(n);
	return 0;
}

int forget_data_keep_times(struct forget *f, struct node *n)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, n->mtime };
	int fd;

	if (!n->times)
		return 0;
	fd = forget_data_fd(f, n, true);
	if (fd < 0)
		return fd;
	return futimens(fd, times) ? -errno : 0;
}

static int write_times(struct forget *f, struct node *n)
{
	int rc = forget_data_keep_times(f, n);

	if (!rc)
		n->times = false;
	return rc;
}

int forget_data_sync(struct forget *f, struct node *n)
{
	int rc = 0;

	if (n->pf)
		rc = pagefile_sync(n->pf);
	if (!rc)
		rc = write_times(f, n);
	if (!rc) {
		n->was_truncated = false;
		forget_data_unmark_sized(f, n);
	}
	forget_data_trim(f, n);
	return rc;
}

int forget_data_sync_size(struct forget *f, struct node *n)
{
	int rc = n->pf ? pagefile_sync_size(n->pf, !f->opts.profile->size_with_data) : 0;

	if (!rc)
		rc = forget_data_keep_times(f, n);
	if (!rc)
		forget_data_unmark_sized(f, n);
	forget_data_trim(f, n);
	return rc;
}

struct asking {
	struct forget *f;
	struct node *n;
};

bool forget_data_range_needs_space(struct forget *f, struct node *n, const struct pagefile_risk *r)
{
	uint64_t end = min(r->offset + r->len, pagefile_size(n->pf));
	struct file_ctx *x = n->file;
	off_t hole;
	int fd;

	if (r->offset >= x->solid && end <= x->solid_end)
		return false;
	fd = forget_data_fd(f, n, false);
	hole = fd < 0 ? -1 : lseek(fd, (off_t)r->offset, SEEK_HOLE);
	if (hole < 0)
		return true;
	solid_add(x, r->offset, (uint64_t)hole);
	return (uint64_t)hole < end;
}

static int needs_metadata(void *ctx, const struct pagefile_risk *r)
{
	struct asking *a = ctx;

	if (r->kind != RISK_DATA)
		return 1;
	return !r->failed && forget_data_range_needs_space(a->f, a->n, r);
}

bool forget_data_needs_metadata(struct forget *f, struct node *n)
{
	struct asking a = { f, n };

	if (!n->pf)
		return false;
	return pagefile_size(n->pf) != pagefile_durable_size(n->pf) ||
	       pagefile_risks(n->pf, needs_metadata, &a);
}

void forget_data_drop(struct forget *f, struct node *n)
{
	if (n->pf)
		pagefile_drop(n->pf);
	forget_data_unmark_sized(f, n);
	n->times = n->was_truncated = false;
}

/* With the node lock: true if the kernel does not know it, and all its names are in the stash. */
static bool is_removed(struct forget *f, struct node *n)
{
	nlink_t links;
	bool unknown;
	int fd;

	pthread_mutex_lock(&f->table);
	unknown = !n->nlookup && !n->names.n && n->made && !n->replaced;
	pthread_mutex_unlock(&f->table);
	fd = unknown ? node_pin(f, n) : -1;
	if (fd < 0)
		return false;
	unknown = !forget_attr_links(n, fd, &links) && !links;
	node_unpin(n);
	return unknown;
}

/*
 * Frees the data of a removed file, which a power cut and a sync would do, too: until then, files
 * that are written and removed would take memory. If only a part of the metadata survives, the file
 * may come back empty, but with the size or data that belongs to that part.
 */
void forget_data_forget_removed(struct forget *f, struct node *n)
{
	auto_lock(&n->lock);
	if (n->pf && !n->opens && !n->sized && !n->flush && is_removed(f, n)) {
		forget_data_drop(f, n);
		forget_data_idle(f, n);
	}
}

void forget_data_release(struct forget *f, struct node *n)
{
	auto_lock(&n->lock);
	forget_data_free(f, n);
	close_data(f, n);
}

void forget_data_idle(struct forget *f, struct node *n)
{
	if (n->opens)
		return;
	if (n->gone) /* no name leads to it, before or after a power cut */
		forget_data_unmark_sized(f, n);
	if (n->pf && pagefile_is_clean(n->pf) && !n->times)
		forget_data_free(f, n);
	if (!n->pf && !n->data_users)
		close_data(f, n);
	forget_data_trim(f, n);
}

void forget_data_let_go(struct forget *f, struct node *n)
{
	auto_lock(&n->lock);
	forget_data_idle(f, n);
}

int forget_data_write_through(struct forget *f, struct node *n, const void *data, uint64_t offset,
			      size_t len)
{
	int rc = forget_data_file(f, n);

	return rc ? rc : pagefile_write_durable(n->pf, data, offset, len);
}

static int64_t seek_below(void *ctx, uint64_t offset, int whence)
{
	struct file_ctx *x = ctx;
	int fd = forget_data_fd(x->f, x->n, false);
	off_t at = fd < 0 ? fd : lseek(fd, (off_t)offset, whence);

	return fd < 0 ? fd : at < 0 ? -errno : at;
}

int64_t forget_data_seek(struct forget *f, struct node *n, uint64_t offset, int whence)
{
	struct file_ctx below = { .f = f, .n = n };

	if (n->pf)
		return pagefile_seek(n->pf, offset, whence, seek_below);
	return seek_below(&below, offset, whence);
}
