/* SPDX-License-Identifier: MIT */
/*
 * forget_data.c - the data of a file: what is durable is ROOT's, what is newer is in memory.
 *
 * D1: ROOT's file changes only by a sync, by what a profile makes durable, or by a fault that says
 *     so. D2: a file without data in memory is read from ROOT's, by splicing.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "fuse/forget_impl.h"

/* ---- ROOT's file ---- */

int data_fd(struct forget *f, struct node *n, bool write)
{
	char path[32];
	int at, fd;

	if (n->data >= 0 && (n->data_rw || !write))
		return n->data;
	at = node_pin(f, n);
	if (at < 0)
		return at;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	node_unpin(n);
	if (fd < 0)
		return fd;
	if (n->data >= 0) { /* somebody may be reading from it: the number stays */
		int rc = dup3(fd, n->data, O_CLOEXEC) < 0 ? -errno : 0;

		close(fd);
		if (rc)
			return rc;
	} else {
		n->data = fd;
		atomic_fetch_add(&f->n_data, 1);
	}
	n->data_rw = write;
	return n->data;
}

static void close_data(struct forget *f, struct node *n)
{
	if (n->data < 0)
		return;
	close(n->data);
	n->data = -1;
	n->data_rw = false;
	atomic_fetch_sub(&f->n_data, 1);
}

/* When descriptors run short, a file has one only while it is used. The node lock is held. */
static void trim_data(struct forget *f, struct node *n)
{
	/* A file that nobody may write can be opened for writing again only by root. */
	if (!n->data_users && atomic_load(&f->n_data) > f->data_max && (!n->data_rw || !geteuid()))
		close_data(f, n);
}

/* What the page cache asks of ROOT's file. It knows the node; the node's lock is held. */
struct file_ctx {
	struct forget *f;
	struct node *n;
};

static int ops_fill(void *ctx, void *data, uint64_t offset, size_t len)
{
	struct file_ctx *x = ctx;
	int fd = data_fd(x->f, x->n, false);
	ssize_t n = fd < 0 ? fd : io_pread_full(fd, data, len, (off_t)offset);

	if (n < 0)
		return (int)n;
	memset((char *)data + n, 0, len - (size_t)n);
	return 0;
}

static int ops_write(void *ctx, const void *data, uint64_t offset, size_t len)
{
	struct file_ctx *x = ctx;
	int fd = data_fd(x->f, x->n, true);

	return fd < 0 ? fd : io_pwrite_full(fd, data, len, (off_t)offset);
}

static int ops_writev(void *ctx, const struct iovec *v, int n, uint64_t offset)
{
	struct file_ctx *x = ctx;
	int fd = data_fd(x->f, x->n, true);
	ssize_t done = fd < 0 ? 0 : pwritev(fd, v, n, (off_t)offset);

	if (fd < 0)
		return fd;
	if (done < 0)
		return -errno;
	for (int i = 0; i < n; i++) { /* what a short write left */
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
	return 0;
}

static int ops_resize(void *ctx, uint64_t size)
{
	struct file_ctx *x = ctx;
	int fd = data_fd(x->f, x->n, true);

	if (fd < 0)
		return fd;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int ops_zero(void *ctx, uint64_t offset, uint64_t len)
{
	static const char zeros[65536];
	struct file_ctx *x = ctx;
	int fd = data_fd(x->f, x->n, true), rc = 0;

	if (fd < 0)
		return fd;
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

bool data_is_dirty(const struct node *n)
{
	return n->pf && !pagefile_is_clean(n->pf);
}

int data_file(struct forget *f, struct node *n)
{
	struct stat st;
	int fd;

	if (n->pf)
		return 0;
	fd = node_pin(f, n);
	if (fd < 0)
		return fd;
	if (fstatat(fd, "", &st, AT_EMPTY_PATH)) {
		node_unpin(n);
		return -errno;
	}
	atomic_store(&n->setid, attr_setid(fd, &st));
	node_unpin(n);
	n->file = (struct file_ctx *)xmalloc(sizeof(struct file_ctx));
	*n->file = (struct file_ctx){ f, n };
	n->pf = pagefile_new(f->cache, (uint64_t)st.st_size, &file_ops, n->file);
	atomic_store(&n->live, true);
	pthread_mutex_lock(&f->dirty);
	n->dirty_prev = NULL;
	n->dirty_next = f->dirty_first;
	if (f->dirty_first)
		f->dirty_first->dirty_prev = n;
	f->dirty_first = n;
	pthread_mutex_unlock(&f->dirty);
	return 0;
}

static void free_file(struct forget *f, struct node *n)
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
	pagefile_free(steal(n->pf));
	free(steal(n->file));
	atomic_store(&n->live, n->times);
}

void data_dirty_nodes(struct forget *f, struct node_list *out)
{
	pthread_mutex_lock(&f->table); /* nobody frees one */
	pthread_mutex_lock(&f->dirty);
	for (struct node *n = f->dirty_first; n; n = n->dirty_next)
		if (!n->dead) {
			n->refs++;
			vec_push(out, n);
		}
	pthread_mutex_unlock(&f->dirty);
	pthread_mutex_unlock(&f->table);
}

void data_touch(struct node *n)
{
	clock_gettime(CLOCK_REALTIME, &n->mtime);
	n->ctime = n->mtime;
	n->times = true;
	if (!atomic_load_explicit(&n->live, memory_order_relaxed))
		atomic_store(&n->live, true);
}

/* Metadata that becomes durable will include its size. */
static void mark_sized(struct forget *f, struct node *n)
{
	if (n->sized || !f->log)
		return;
	n->sized = true;
	pthread_mutex_lock(&f->table);
	n->refs++;
	vec_push(&f->sized, n);
	pthread_mutex_unlock(&f->table);
}

int data_truncate(struct forget *f, struct node *n, uint64_t size, uint64_t number)
{
	int rc = data_file(f, n);

	if (!rc)
		rc = pagefile_truncate(n->pf, size, number, forget_clock_ns());
	if (rc)
		return rc;
	n->was_truncated = n->was_truncated || !size;
	mark_sized(f, n);
	data_touch(n);
	return 0;
}

/* Writing to ROOT's file, or resizing it, changed its time; what was set counts. */
static int keep_times(struct forget *f, struct node *n)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, n->mtime };
	int fd;

	if (!n->times)
		return 0;
	fd = data_fd(f, n, true);
	if (fd < 0)
		return fd;
	return futimens(fd, times) ? -errno : 0;
}

static int write_times(struct forget *f, struct node *n)
{
	int rc = keep_times(f, n);

	if (!rc)
		n->times = false;
	return rc;
}

int data_sync(struct forget *f, struct node *n)
{
	int rc = 0;

	if (n->pf)
		rc = pagefile_sync(n->pf);
	if (!rc)
		rc = write_times(f, n);
	if (!rc)
		n->was_truncated = false;
	trim_data(f, n);
	return rc;
}

void data_drop(struct forget *f, struct node *n)
{
	(void)f;
	if (n->pf)
		pagefile_drop(n->pf);
	n->times = n->was_truncated = n->flush = false;
}

void data_release(struct forget *f, struct node *n)
{
	pthread_mutex_lock(&n->lock);
	free_file(f, n);
	close_data(f, n);
	pthread_mutex_unlock(&n->lock);
}

void data_idle(struct forget *f, struct node *n)
{
	if (n->opens)
		return;
	if (n->pf && pagefile_is_clean(n->pf) && !n->times)
		free_file(f, n);
	if (!n->pf && !n->data_users)
		close_data(f, n);
	trim_data(f, n);
}

int data_write_through(struct forget *f, struct node *n, const void *data, uint64_t offset,
		       size_t len)
{
	int rc = data_file(f, n);

	return rc ? rc : pagefile_write_durable(n->pf, data, offset, len);
}

/* ---- open and close ---- */

int data_open_created(struct forget *f, struct node *n, int fd)
{
	pthread_mutex_lock(&n->lock);
	n->opens++;
	if (fd >= 0 && n->data < 0) {
		n->data = fd;
		n->data_rw = true;
		atomic_fetch_add(&f->n_data, 1);
		fd = -1;
	}
	trim_data(f, n);
	pthread_mutex_unlock(&n->lock);
	util_close(fd);
	return 0;
}

static void close_one(struct forget *f, struct node *n)
{
	pthread_mutex_lock(&n->lock);
	n->opens -= n->opens > 0;
	data_idle(f, n);
	pthread_mutex_unlock(&n->lock);
}

void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(
		&c, req, &(struct call_what){ POSIX_OPEN, .node = n, .arg = (uint32_t)fi->flags });
	int mode = fi->flags & O_ACCMODE;
	bool opened;

	if (!rc)
		rc = attr_allowed(f, n,
				  (mode != O_WRONLY ? R_OK : 0) | (mode != O_RDONLY ? W_OK : 0));
	opened = !rc;
	if (opened)
		data_open_created(f, n, -1);
	rc = call_end(&c, rc);
	fi->keep_cache = 1;
	fi->noflush = data_noflush(f, fi);
	if (rc)
		fuse_reply_err(req, (int)-rc);
	if ((rc || fuse_reply_open(req, fi)) && opened)
		close_one(f, n);
	call_done(&c);
}

bool data_noflush(struct forget *f, const struct fuse_file_info *fi)
{
	bool reads = (fi->flags & O_ACCMODE) == O_RDONLY;

	return !f->watch && !inject_armed(f->faults) &&
	       (reads || !f->opts.profile->truncate_flushes);
}

/*
 * Who closes a file waits for this, and not for its release: so the rule holds for whatever the
 * application does next.
 */
static void flush_truncated(struct forget *f, struct node *n)
{
	if (!f->opts.profile->truncate_flushes)
		return;
	pthread_mutex_lock(&n->lock);
	if (n->was_truncated && data_is_dirty(n)) {
		n->flush = true;
		mark_sized(f, n);
	}
	n->was_truncated = false; /* as ext4 does; nothing keeps it for a file that nobody has */
	pthread_mutex_unlock(&n->lock);
}

void on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct call c;
	int rc = call_begin(&c, req, &(struct call_what){ POSIX_FLUSH, .node = node_of(f, ino) });

	(void)fi;
	if (!rc)
		flush_truncated(f, node_of(f, ino));
	call_reply(&c, rc);
}

void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int rc = call_begin(&c, req, &(struct call_what){ POSIX_RELEASE, .node = n });

	(void)fi;
	close_one(f, n);
	call_reply(&c, rc);
}

/* ---- reading and writing ---- */

static pthread_key_t answer_key;
static pthread_once_t answer_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
	pthread_key_create(&answer_key, free);
}

/* Memory of this thread, for one answer; freed with the thread. */
static char *answer_memory(size_t size)
{
	static _Thread_local char *buf;
	static _Thread_local size_t cap;

	if (size > cap) {
		pthread_once(&answer_once, make_key);
		free(buf);
		buf = xmalloc(size);
		cap = size;
		pthread_setspecific(answer_key, buf);
	}
	return buf;
}

enum { SPLICE_MIN = 64 * 1024 }; /* below, copying is faster */

static void end_use(struct forget *f, struct node *n)
{
	pthread_mutex_lock(&n->lock);
	n->data_users--;
	trim_data(f, n);
	pthread_mutex_unlock(&n->lock);
}

void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct fuse_bufvec splice = FUSE_BUFVEC_INIT(size);
	bool direct = false, spliced = false;
	char *buf = NULL;
	struct call c;
	int64_t rc = call_begin(
		&c, req,
		&(struct call_what){ POSIX_READ, .node = n, .offset = (uint64_t)off, .len = size });

	(void)fi;
	if (c.act.short_bytes >= 0)
		size = min(size, (size_t)c.act.short_bytes);
	if (!rc) {
		pthread_mutex_lock(&n->lock);
		direct = !n->pf || pagefile_is_clean(n->pf);
		if (direct) {
			int fd = data_fd(f, n, false);

			rc = min(fd, 0);
			n->data_users += fd >= 0;
			splice.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
			splice.buf[0].fd = fd;
			splice.buf[0].pos = off;
			splice.buf[0].size = size;
		} else {
			buf = answer_memory(size);
			rc = pagefile_read(n->pf, buf, (uint64_t)off, size);
		}
		pthread_mutex_unlock(&n->lock);
	}
	if (!rc && direct && size < SPLICE_MIN) {
		buf = answer_memory(size);
		rc = io_pread_full(splice.buf[0].fd, buf, size, off);
		direct = false;
		end_use(f, n);
	} else if (!rc && direct) {
		node_ref(f, n); /* once it is answered, nobody else may need it */
		spliced = true;
	}
	rc = call_end(&c, rc);
	if (rc < 0)
		fuse_reply_err(req, (int)-rc);
	else if (direct)
		fuse_reply_data(req, &splice, FUSE_BUF_SPLICE_MOVE);
	else
		fuse_reply_buf(req, buf, (size_t)rc);
	if (spliced) {
		end_use(f, n);
		node_unref(f, n);
	}
	call_done(&c);
}

/*
 * Where the file ends, for one that is opened to append: after a loss the kernel does not know it
 * until somebody asks. Then it has the bytes at a wrong place in its memory, and is told.
 */
static uint64_t append_at(struct call *c, struct node *n, uint64_t off)
{
	if (!(c->ev.flags & POSIX_APPEND) || off == pagefile_size(n->pf))
		return off;
	told_add(c->f, &c->told, n, NULL);
	return pagefile_size(n->pf);
}

static int64_t write_node(struct call *c, struct node *n, const char *data, size_t size,
			  uint64_t off, bool page)
{
	struct forget *f = c->f;
	int64_t rc;

	if (c->act.short_bytes >= 0)
		size = min(size, (size_t)c->act.short_bytes);
	pthread_mutex_lock(&n->lock);
	rc = data_file(f, n);
	if (!rc)
		off = append_at(c, n, off);
	if (!rc && c->act.durable)
		rc = pagefile_write_durable(n->pf, data, off, size);
	else if (!rc)
		rc = pagefile_write(n->pf, data, off, size, c->ev.number, forget_clock_ns());
	if (!rc) {
		data_touch(n);
		if (!f->opts.profile->size_with_data)
			mark_sized(f, n);
	}
	trim_data(f, n);
	pthread_mutex_unlock(&n->lock);
	if (!rc && atomic_load_explicit(&n->setid, memory_order_relaxed) && !page)
		attr_drop_setid(c, n);
	return rc ? rc : (int64_t)size;
}

static uint32_t write_flags(const struct fuse_file_info *fi)
{
	if (fi->writepage)
		return POSIX_PAGE;
	return (fi->flags & O_DIRECT ? POSIX_DIRECT : 0) |
	       (fi->flags & O_APPEND ? POSIX_APPEND : 0) |
	       ((fi->flags & O_SYNC) == O_SYNC ? POSIX_SYNC
		: fi->flags & O_DSYNC	       ? POSIX_DSYNC
					       : 0);
}

void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
	      struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc;

	if (fi->writepage && atomic_load(&n->dropping)) {
		/* Stores to a mapped file that a loss came after. */
		fuse_reply_write(req, size);
		return;
	}
	rc = call_begin(&c, req,
			&(struct call_what){ POSIX_WRITE, .node = n, .offset = (uint64_t)off,
					     .len = size, .flags = write_flags(fi), .payload = data,
					     .payload_len = size });
	if (!rc && c.act.tear) {
		rc = call_end(&c, (int64_t)size);
		forget_tear(f, c.act.tear, n, data, (uint64_t)off, size);
		fuse_reply_err(req, ENOTCONN);
		call_done(&c);
		return;
	}
	if (!rc)
		rc = write_node(&c, n, data, size, (uint64_t)off, fi->writepage);
	rc = call_end(&c, rc);
	if (rc < 0)
		fuse_reply_err(req, (int)-rc);
	else
		fuse_reply_write(req, (size_t)rc);
	call_done(&c);
}

/* ---- space ---- */

/* Moves what comes behind: done by ROOT's file system, after everything became durable. */
static int shift(struct forget *f, struct node *n, int mode, off_t off, off_t len)
{
	int rc = data_sync(f, n), fd;

	if (rc)
		return rc;
	free_file(f, n);
	fd = data_fd(f, n, true);
	if (fd < 0)
		return fd;
	return fallocate(fd, mode, off, len) ? -errno : 0;
}

static int allocate(struct call *c, struct node *n, int mode, uint64_t off, uint64_t len)
{
	bool keep = mode & FALLOC_FL_KEEP_SIZE;
	struct forget *f = c->f;
	int rc;

	if (mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE)
		return shift(f, n, mode, (off_t)off, (off_t)len);
	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	rc = data_file(f, n);
	if (rc)
		return rc;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		rc = pagefile_zero(n->pf, off, len, keep, c->ev.number, forget_clock_ns());
	else if (!keep && off + len > pagefile_size(n->pf))
		rc = pagefile_truncate(n->pf, off + len, c->ev.number, forget_clock_ns());
	if (!rc) {
		mark_sized(f, n);
		data_touch(n);
	}
	return rc;
}

void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
		  struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc =
		call_begin(&c, req,
			   &(struct call_what){ POSIX_FALLOCATE, .node = n, .offset = (uint64_t)off,
						.len = (uint64_t)len, .arg = (uint32_t)mode });

	(void)fi;
	if (!rc) {
		pthread_mutex_lock(&n->lock);
		rc = allocate(&c, n, mode, (uint64_t)off, (uint64_t)len);
		pthread_mutex_unlock(&n->lock);
		if (!rc && atomic_load(&n->setid))
			attr_drop_setid(&c, n);
	}
	call_reply(&c, rc);
}

static int64_t seek_below(void *ctx, uint64_t offset, int whence)
{
	struct file_ctx *x = ctx;
	int fd = data_fd(x->f, x->n, false);
	off_t at = fd < 0 ? fd : lseek(fd, (off_t)offset, whence);

	return fd < 0 ? fd : at < 0 ? -errno : at;
}

void on_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct file_ctx below = { f, n };
	int64_t at;

	(void)fi;
	pthread_rwlock_rdlock(&f->gate);
	pthread_mutex_lock(&n->lock);
	if (off < 0)
		at = -ENXIO;
	else if (n->pf)
		at = pagefile_seek(n->pf, (uint64_t)off, whence, seek_below);
	else
		at = seek_below(&below, (uint64_t)off, whence);
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&f->gate);
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}

/* ---- syncing ---- */

static int data_sync_size(struct forget *f, struct node *n)
{
	int rc = n->pf ? pagefile_sync_size(n->pf, !f->opts.profile->size_with_data) : 0;

	return rc ? rc : keep_times(f, n);
}

void data_sync_sizes(struct forget *f)
{
	struct node_list list = { 0 };

	pthread_mutex_lock(&f->table);
	list = (struct node_list){ f->sized.v, f->sized.n, f->sized.cap };
	f->sized.v = NULL;
	f->sized.n = f->sized.cap = 0;
	pthread_mutex_unlock(&f->table);
	for (size_t i = 0; i < list.n; i++) {
		struct node *n = list.v[i];

		pthread_mutex_lock(&n->lock);
		n->sized = false;
		if (n->flush ? data_sync(f, n) : data_sync_size(f, n))
			forget_log(f, "the size of inode %llu could not be made durable",
				   (unsigned long long)n->ino);
		n->flush = false;
		pthread_mutex_unlock(&n->lock);
		node_unref(f, n);
	}
	vec_release(&list);
}

int data_sync_node(struct forget *f, struct node *n, bool data_only)
{
	bool dirty;
	int rc, fd;

	pthread_mutex_lock(&n->lock);
	dirty = data_is_dirty(n);
	rc = data_sync(f, n);
	if (!rc && f->opts.real_sync) {
		fd = data_fd(f, n, dirty);
		if (fd < 0)
			rc = fd;
		else if (data_only ? fdatasync(fd) : fsync(fd))
			rc = -errno;
		trim_data(f, n);
	}
	pthread_mutex_unlock(&n->lock);
	if (rc || !log_waits(f, n))
		return rc;
	names_lock(f);
	log_sync(f, n, data_only, dirty);
	names_unlock(f);
	return 0;
}

/* As on Linux: what could not be written is taken for clean, unless the fault says otherwise. */
static void fail_sync(struct call *c, struct node *n)
{
	if (c->act.keep_dirty)
		return;
	pthread_mutex_lock(&n->lock);
	if (n->pf)
		pagefile_fail(n->pf);
	pthread_mutex_unlock(&n->lock);
}

void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(
		&c, req,
		&(struct call_what){ datasync ? POSIX_FDATASYNC : POSIX_FSYNC, .node = n });

	(void)fi;
	if (rc && c.inside)
		fail_sync(&c, n);
	else if (!rc)
		rc = data_sync_node(f, n, datasync);
	call_reply(&c, rc);
}

int dir_sync_node(struct forget *f, struct node *n, bool data_only)
{
	int rc = 0;

	if (log_waits(f, n)) {
		names_lock(f);
		log_sync(f, n, data_only, false);
		names_unlock(f);
	}
	if (f->opts.real_sync) {
		int at = node_pin(f, n);
		auto_fd fd = at < 0 ? at : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		rc = fd < 0 || fsync(fd) ? -errno : 0;
		if (at >= 0)
			node_unpin(n);
	}
	return rc;
}

void on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(
		&c, req,
		&(struct call_what){ POSIX_FSYNCDIR, .node = n, .arg = (uint32_t)datasync });

	(void)fi;
	if (!rc)
		rc = dir_sync_node(f, n, datasync);
	call_reply(&c, rc);
}
