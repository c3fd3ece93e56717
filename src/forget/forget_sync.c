/* SPDX-License-Identifier: MIT */
/*
 * forget_sync.c - makes the data of a file durable, and then the operations in the log that a sync
 * includes.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget/forget_impl.h"

int forget_data_sync_sizes(struct forget *f)
{
	auto_vec struct node_walk list = forget_data_sized_nodes(f);
	int rc = 0;

	for (struct node *n; (n = node_next(&list));) {
		int one;

		pthread_mutex_lock(&n->lock);
		one = !n->sized	 ? 0
		      : n->flush ? forget_data_sync(f, n)
				 : forget_data_sync_size(f, n);
		forget_data_idle(f, n);
		pthread_mutex_unlock(&n->lock);
		if (one)
			forget_log(f, "the size of inode %llu could not be made durable: %s",
				   llu(n->ino), strerror(-one));
		rc = rc ? rc : one;
	}
	return rc;
}

static bool is_full(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT;
}

static int sync_locking(struct forget *f, struct node *n)
{
	auto_lock(&n->lock);
	return forget_data_sync(f, n);
}

/* Syncs data; if ROOT is full, frees the space of removed files, as a file system does then. */
int forget_data_sync_freeing(struct forget *f, struct node *n)
{
	int rc = sync_locking(f, n), room;

	if (!is_full(rc) || !f->log)
		return rc;
	names_lock(f);
	room = forget_log_make_room(f);
	names_unlock(f);
	return room ? rc : sync_locking(f, n);
}

static int really_sync(struct forget *f, struct node *n, bool data_only)
{
	int rc = 0, fd;

	auto_lock(&n->lock);
	fd = n->data >= 0 ? n->data : forget_data_fd(f, n, false);
	if (fd < 0)
		rc = fd;
	else if (data_only ? fdatasync(fd) : fsync(fd))
		rc = -errno;
	forget_data_trim(f, n);
	return rc;
}

/*
 * True if the sync includes metadata: for a sync of data alone a size, or new space; otherwise a
 * time is enough, which every write changes.
 */
static bool has_metadata(struct forget *f, struct node *n, bool data_only)
{
	auto_lock(&n->lock);
	return forget_data_is_dirty(n) && (!data_only || forget_data_needs_metadata(f, n));
}

int forget_data_sync_node(struct forget *f, struct node *n, bool data_only)
{
	bool had = has_metadata(f, n, data_only);
	int rc = forget_data_sync_freeing(f, n);

	if (!rc && f->opts.real_sync)
		rc = really_sync(f, n, data_only);
	forget_data_let_go(f, n);
	if (rc || !forget_log_waits(f, n))
		return rc;
	auto_names(f);
	return forget_log_sync(f, n, data_only, had);
}

/*
 * Fails a sync as Linux does: data that was not written counts as clean, unless the fault says
 * otherwise.
 */
static void fail_sync(struct call *c, struct node *n)
{
	if (c->act.keep_dirty)
		return;
	auto_lock(&n->lock);
	if (n->pf)
		pagefile_fail(n->pf);
}

void forget_on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(&c, req, datasync ? POSIX_FDATASYNC : POSIX_FSYNC, .node = n);

	(void)fi;
	if (rc && c.inside)
		fail_sync(&c, n);
	else if (!rc)
		rc = forget_data_sync_node(f, n, datasync);
	call_reply(&c, rc);
}

int forget_dir_sync_node(struct forget *f, struct node *n, bool data_only)
{
	int rc = 0;

	if (forget_log_waits(f, n)) {
		names_lock(f);
		rc = forget_log_sync(f, n, data_only, false);
		names_unlock(f);
	}
	if (!rc && f->opts.real_sync) {
		auto_pin at = node_pinned(f, n);
		auto_fd fd = at.fd < 0 ? at.fd
				       : openat(at.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		rc = fd < 0 || fsync(fd) ? -errno : 0;
	}
	return rc;
}

void forget_on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_FSYNCDIR, .node = n, .arg = (uint32_t)datasync);

	(void)fi;
	if (!rc)
		rc = forget_dir_sync_node(f, n, datasync);
	call_reply(&c, rc);
}
