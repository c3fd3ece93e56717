/* SPDX-License-Identifier: MIT */
/*
 * forget_sync.c - what a sync makes durable: the data of a file, then what the log says.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fuse/forget_impl.h"

static int data_sync_size(struct forget *f, struct node *n)
{
	int rc = n->pf ? pagefile_sync_size(n->pf, !f->opts.profile->size_with_data) : 0;

	return rc ? rc : data_keep_times(f, n);
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
		data_trim(f, n);
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

static int sync_dir(struct forget *f, struct node *n, bool data_only)
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
		rc = sync_dir(f, n, datasync);
	call_reply(&c, rc);
}
