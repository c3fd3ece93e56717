/* SPDX-License-Identifier: MIT */
/*
 * forget_sync.c - a sync: makes the data of a file durable, and then the changes in the log that
 * the sync includes.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget/forget_call.h"

static int sync_data(struct forget *f, struct node *n)
{
	auto_data(f, n);
	return n->file ? forget_file_sync(n->file) : 0;
}

int forget_sync_data_freeing(struct forget *f, struct node *n)
{
	int rc = sync_data(f, n), room;

	if (!forget_is_full(rc) || !f->log)
		return rc;
	owned_take(&f->log_lock);
	room = forget_redo_make_room(f);
	owned_give(&f->log_lock);
	return room ? rc : sync_data(f, n);
}

/* Syncs ROOT's file, or its directory, in ROOT's own file system. */
static int really_sync(struct forget *f, struct node *n, bool data_only)
{
	int flags = S_ISDIR(n->type) ? O_RDONLY | O_DIRECTORY : O_RDONLY;

	if (n->unmade || !(S_ISDIR(n->type) || S_ISREG(n->type)))
		return 0;
	owned_take(&f->tree.lock);
	auto_fd fd = forget_root_open(f, n, flags);
	owned_give(&f->tree.lock);
	if (fd < 0)
		return fd == -ESTALE ? 0 : fd;
	return result(data_only ? fdatasync(fd) : fsync(fd));
}

/*
 * True if the sync includes metadata: for a sync of data alone a size, or new space; otherwise a
 * time is enough, which every write changes.
 */
static bool has_metadata(struct forget *f, struct node *n, bool data_only)
{
	auto_data(f, n);
	return forget_file_is_dirty(n->file) && (!data_only || forget_file_needs_metadata(n->file));
}

int forget_sync_node(struct forget *f, struct node *n, bool data_only)
{
	bool is_file = S_ISREG(n->type), had = is_file && has_metadata(f, n, data_only);
	int rc = is_file ? forget_sync_data_freeing(f, n) : 0;

	if (!rc && forget_redo_waits(f, n)) {
		auto_owned(&f->log_lock);
		rc = forget_redo_sync(f, n, data_only, had);
	}
	if (!rc && f->opts.real_sync)
		rc = really_sync(f, n, data_only);
	forget_file_let_go(f, n);
	return rc;
}

/*
 * Fails a sync as Linux does: data that was not written counts as clean, unless the fault says
 * otherwise.
 */
static void fail_sync(struct call *c, struct node *n)
{
	if (c->act.keep_dirty)
		return;
	auto_data(c->f, n);
	if (n->file && n->file->pf)
		pagefile_fail(n->file->pf);
}

void forget_on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct node *n = node_of(forget_of(req), ino);
	struct call c;
	int64_t rc = call_begin(&c, req, datasync ? POSIX_FDATASYNC : POSIX_FSYNC, .node = n);

	(void)fi;
	if (rc && c.inside)
		fail_sync(&c, n);
	else if (!rc)
		rc = forget_sync_node(c.f, n, datasync);
	call_reply(&c, rc);
}

void forget_on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct node *n = node_of(forget_of(req), ino);
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_FSYNCDIR, .node = n, .arg = (uint32_t)datasync);

	(void)fi;
	if (!rc)
		rc = forget_sync_node(c.f, n, datasync);
	call_reply(&c, rc);
}
