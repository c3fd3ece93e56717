/* SPDX-License-Identifier: MIT */
/*
 * forget_data.c - requests about the data of a file: opens and closes it, reads and writes, manages
 * its space.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "forget/forget_call.h"

/* ---- open and close ---- */

static int open_node(struct forget *f, struct node *n, bool write)
{
	auto_data(f, n);
	struct node_file *x = forget_file(f, n);
	int fd = n->unmade ? 0 : forget_file_fd(x, write);

	x->opens += fd >= 0;
	forget_file_trim(x);
	if (fd < 0)
		forget_file_idle(f, n);
	return min(fd, 0);
}

static void close_one(struct forget *f, struct node *n)
{
	auto_data(f, n);
	if (n->file)
		n->file->opens -= n->file->opens > 0;
	forget_file_idle(f, n);
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
	auto_data(f, n);
	struct node_file *x = n->file;

	if (!x)
		return;
	if (x->was_truncated && forget_file_is_dirty(x)) {
		x->flush = true;
		forget_file_mark_sized(x, number);
	}
	x->was_truncated = false; /* as in ext4; the flag is lost with the node */
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
	auto_data(f, n);
	assert(n->file->users > 0 && n->file->fd >= 0); /* D2 */
	n->file->users--;
	forget_file_trim(n->file);
}

/* Begins a read: from ROOT's file if nothing is newer, else into `buf`. */
static int64_t begin_read(struct forget *f, struct node *n, struct fuse_buf *direct, char **buf)
{
	auto_data(f, n);
	struct node_file *x = forget_file(f, n);

	if (n->unmade || forget_file_is_dirty(x)) {
		*buf = answer_memory(direct->size);
		return forget_file_read(x, *buf, (uint64_t)direct->pos, direct->size);
	}
	direct->fd = forget_file_fd(x, false);
	x->users += direct->fd >= 0;
	return min(direct->fd, 0);
}

void forget_on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct fuse_bufvec splice = FUSE_BUFVEC_INIT(size);
	struct fuse_buf *from = &splice.buf[0];
	bool direct = false, spliced = false;
	char *buf = NULL;
	struct call c;
	int64_t rc =
		call_begin(&c, req, POSIX_READ, .node = n, .offset = (uint64_t)off, .len = size);

	(void)fi;
	if (c.act.short_bytes >= 0)
		size = min(size, (size_t)c.act.short_bytes);
	from->flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	from->fd = -1;
	from->pos = off;
	from->size = size;
	if (!rc)
		rc = begin_read(f, n, from, &buf);
	direct = rc >= 0 && from->fd >= 0;
	if (direct && size < SPLICE_MIN) {
		buf = answer_memory(size);
		rc = io_pread_full(from->fd, buf, size, off);
		direct = false;
		end_use(f, n);
	} else if (direct) {
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
static uint64_t append_at(struct call *c, struct node_file *x, uint64_t off)
{
	if (!(c->ev.flags & POSIX_APPEND) || off == pagefile_size(x->pf))
		return off;
	told_add(c->f, &c->told, x->n, NULL);
	return pagefile_size(x->pf);
}

static int write_file(struct call *c, struct node_file *x, const char *data, size_t size,
		      uint64_t off)
{
	uint64_t number = c->ev.number;
	int rc = forget_file_pages(x);

	if (rc)
		return rc;
	off = append_at(c, x, off);
	if (c->act.durable)
		rc = pagefile_write_durable(x->pf, data, off, size);
	else
		rc = pagefile_write(x->pf, data, off, size, number, forget_clock_ns());
	if (rc)
		return rc;
	forget_file_touch(x, number);
	if (!c->f->opts.profile->size_with_data)
		forget_file_mark_sized(x, number);
	return 0;
}

static int64_t write_node(struct call *c, struct node *n, const char *data, size_t size,
			  uint64_t off, bool page)
{
	struct owned_lock *lock = forget_data_lock(c->f, n);
	unsigned setid;
	int rc;

	if (c->act.short_bytes >= 0)
		size = min(size, (size_t)c->act.short_bytes);
	owned_take(lock);
	struct node_file *x = forget_file(c->f, n);
	rc = write_file(c, x, data, size, off);
	setid = x->setid;
	forget_file_trim(x);
	owned_give(lock);
	if (!rc && setid && !page)
		forget_attr_drop_setid(c, n, setid);
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

static int allocate(struct call *c, struct node_file *x, int mode, uint64_t off, uint64_t len)
{
	bool keep = mode & FALLOC_FL_KEEP_SIZE;
	uint64_t number = c->ev.number;
	int rc;

	/* The kernel does not pass the modes that move data. */
	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	rc = forget_file_pages(x);
	if (rc)
		return rc;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		rc = pagefile_zero(x->pf, off, len, keep, number, forget_clock_ns());
	else if (!keep && off + len > pagefile_size(x->pf))
		rc = pagefile_truncate(x->pf, off + len, number, forget_clock_ns());
	if (!rc) {
		forget_file_mark_sized(x, number);
		forget_file_touch(x, number);
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
		owned_take(forget_data_lock(f, n));
		struct node_file *x = forget_file(f, n);
		rc = allocate(&c, x, mode, (uint64_t)off, (uint64_t)len);
		unsigned setid = x->setid;
		owned_give(forget_data_lock(f, n));
		if (!rc && setid)
			forget_attr_drop_setid(&c, n, setid);
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
	owned_take(forget_data_lock(f, n));
	at = off < 0 ? -ENXIO : forget_file_seek(forget_file(f, n), (uint64_t)off, whence);
	owned_give(forget_data_lock(f, n));
	pthread_rwlock_unlock(&f->gate);
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}
