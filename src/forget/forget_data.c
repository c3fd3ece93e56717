/* SPDX-License-Identifier: MIT */
/*
 * forget_data.c - requests about the data of a file: opens and closes it, reads and writes, manages
 * its space.
 *
 * D2: a file without data in memory is read from its file in ROOT, by splicing.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "forget/forget_impl.h"

/* ---- open and close ---- */

void forget_data_open_created(struct forget *f, struct node *n, int fd)
{
	pthread_mutex_lock(&n->lock);
	n->opens++;
	if (fd >= 0 && n->data < 0) {
		n->data = fd;
		n->data_reads = n->data_writes = true;
		atomic_fetch_add(&f->n_data, 1);
		fd = -1;
	}
	forget_data_trim(f, n);
	pthread_mutex_unlock(&n->lock);
	util_close(fd);
}

static int open_node(struct forget *f, struct node *n, bool write)
{
	auto_lock(&n->lock);
	int fd = forget_data_fd(f, n, write);

	n->opens += fd >= 0;
	forget_data_trim(f, n);
	return min(fd, 0);
}

static void close_one(struct forget *f, struct node *n)
{
	auto_lock(&n->lock);
	n->opens -= n->opens > 0;
	forget_data_idle(f, n);
}

void forget_on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_OPEN, .node = n, .arg = (uint32_t)fi->flags);
	int mode = fi->flags & O_ACCMODE;
	bool opened;

	if (!rc)
		rc = forget_attr_allowed(
			f, n, (mode != O_WRONLY ? R_OK : 0) | (mode != O_RDONLY ? W_OK : 0));
	if (!rc)
		rc = open_node(f, n, mode != O_RDONLY);
	opened = !rc;
	rc = call_end(&c, rc);
	fi->keep_cache = 1;
	fi->noflush = forget_data_noflush(f, fi);
	if (rc)
		fuse_reply_err(req, (int)-rc);
	if ((rc || fuse_reply_open(req, fi)) && opened)
		close_one(f, n);
	call_done(&c);
}

bool forget_data_noflush(struct forget *f, const struct fuse_file_info *fi)
{
	bool reads = (fi->flags & O_ACCMODE) == O_RDONLY;

	return !f->watch && !inject_armed(f->faults) &&
	       (reads || !f->opts.profile->truncate_flushes);
}

/*
 * Applies the profile's rule about truncated files. close(2) waits for this, but not for the file's
 * release: so the rule holds before the application goes on.
 */
static void flush_truncated(struct forget *f, struct node *n, uint64_t number)
{
	if (!f->opts.profile->truncate_flushes)
		return;
	auto_lock(&n->lock);
	if (n->was_truncated && forget_data_is_dirty(n)) {
		n->flush = true;
		forget_data_mark_sized(f, n, number);
	}
	n->was_truncated = false; /* as in ext4; the flag is lost with the node */
}

void forget_on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct call c;
	int rc = call_begin(&c, req, POSIX_FLUSH, .node = node_of(f, ino));

	(void)fi;
	if (!rc)
		flush_truncated(f, node_of(f, ino), c.ev.number);
	call_reply(&c, rc);
}

void forget_on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int rc = call_begin(&c, req, POSIX_RELEASE, .node = n);

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

/* Returns memory of this thread for one answer; freed with the thread. */
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

enum { SPLICE_MIN = 64 * 1024 }; /* for less, copying is faster */

static void end_use(struct forget *f, struct node *n)
{
	auto_lock(&n->lock);
	assert(n->data_users > 0 && n->data >= 0); /* D2 */
	n->data_users--;
	forget_data_trim(f, n);
}

void forget_on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct fuse_bufvec splice = FUSE_BUFVEC_INIT(size);
	bool direct = false, spliced = false;
	char *buf = NULL;
	struct call c;
	int64_t rc =
		call_begin(&c, req, POSIX_READ, .node = n, .offset = (uint64_t)off, .len = size);

	(void)fi;
	if (c.act.short_bytes >= 0)
		size = min(size, (size_t)c.act.short_bytes);
	if (!rc) {
		pthread_mutex_lock(&n->lock);
		direct = !n->pf || pagefile_is_clean(n->pf);
		if (direct) {
			int fd = forget_data_fd(f, n, false);

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
		node_ref(f, n); /* after the answer the kernel may forget the node */
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
 * Returns the end of a file that is opened to append: after a loss the kernel does not know the end
 * until it asks again. The kernel then has the bytes at a wrong place in its cache, and is told.
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
	rc = forget_data_file(f, n);
	if (!rc)
		off = append_at(c, n, off);
	if (!rc && c->act.durable)
		rc = pagefile_write_durable(n->pf, data, off, size);
	else if (!rc)
		rc = pagefile_write(n->pf, data, off, size, c->ev.number, forget_clock_ns());
	if (!rc) {
		forget_data_touch(n);
		if (!f->opts.profile->size_with_data)
			forget_data_mark_sized(f, n, c->ev.number);
	}
	forget_data_trim(f, n);
	pthread_mutex_unlock(&n->lock);
	if (!rc && atomic_load_explicit(&n->setid, memory_order_relaxed) && !page)
		forget_attr_drop_setid(c, n);
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

void forget_on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc;

	if (fi->writepage && atomic_load(&n->dropping)) {
		/* The write has stores to a mapped file from before a loss. */
		fuse_reply_write(req, size);
		return;
	}
	rc = call_begin(&c, req, POSIX_WRITE, .node = n, .offset = (uint64_t)off, .len = size,
			.flags = write_flags(fi), .payload = data, .payload_len = size);
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

/* Moves the data behind a range: ROOT's file system does it, after everything became durable. */
static int shift(struct forget *f, struct node *n, int mode, off_t off, off_t len)
{
	int rc = forget_data_sync(f, n), fd;

	if (rc)
		return rc;
	forget_data_free(f, n);
	fd = forget_data_fd(f, n, true);
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
	rc = forget_data_file(f, n);
	if (rc)
		return rc;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		rc = pagefile_zero(n->pf, off, len, keep, c->ev.number, forget_clock_ns());
	else if (!keep && off + len > pagefile_size(n->pf))
		rc = pagefile_truncate(n->pf, off + len, c->ev.number, forget_clock_ns());
	if (!rc) {
		forget_data_mark_sized(f, n, c->ev.number);
		forget_data_touch(n);
	}
	return rc;
}

void forget_on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_FALLOCATE, .node = n, .offset = (uint64_t)off,
				.len = (uint64_t)len, .arg = (uint32_t)mode);

	(void)fi;
	if (!rc) {
		pthread_mutex_lock(&n->lock);
		rc = allocate(&c, n, mode, (uint64_t)off, (uint64_t)len);
		pthread_mutex_unlock(&n->lock);
		if (!rc && atomic_load(&n->setid))
			forget_attr_drop_setid(&c, n);
	}
	call_reply(&c, rc);
}

void forget_on_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
		     struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	int64_t at;

	(void)fi;
	pthread_rwlock_rdlock(&f->gate);
	pthread_mutex_lock(&n->lock);
	at = off < 0 ? -ENXIO : forget_data_seek(f, n, (uint64_t)off, whence);
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&f->gate);
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}
