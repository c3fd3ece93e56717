/* SPDX-License-Identifier: MIT */
/*
 * reffs_server.h - what the files of the mounted reference file system share.
 *
 * One lock guards the file system and the pool; a request holds it while it looks or changes, and
 * not while it answers, tells the kernel to forget something, or touches a file of its own: each of
 * these can wait for another request.
 *
 * S1: the kernel keeps no names and no attributes (their time is up at once), so a restore has to
 *     tell it nothing about them. Who may search a directory is asked at each lookup.
 * S2: pages are kept only while a file is open (without FOPEN_KEEP_CACHE each open drops them), so
 *     a restore makes the kernel drop those of open files, and of no others.
 * S3: an inode is pinned as often as the kernel looked it up and did not forget it.
 */
#ifndef FUSE_REFFS_SERVER_H
#define FUSE_REFFS_SERVER_H

#define FUSE_USE_VERSION 312

#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>

#include "base/vec.h"
#include "fs/pool.h"
#include "fs/vfs.h"

struct open_file {
	uint64_t ino, n;
};

struct reffs_mount {
	struct reffs *r;
	struct reffs_pool pool;
	struct vec_of(struct open_file) open; /* regular files (S2) */
	pthread_mutex_t lock;
	uid_t owner;
	bool direct;

	struct fuse_session *se;
	bool mounted, signals;
};

static inline struct reffs_mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Takes the lock, and sets the clock. */
void mount_lock(struct reffs_mount *m);
void mount_unlock(struct reffs_mount *m);

/* ---- reffs_fuse.c ---- */

extern const struct fuse_lowlevel_ops reffs_operations;

/* ---- reffs_ioctl.c ---- */

void reffs_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
		 unsigned flags, const void *in, size_t in_size, size_t out_size);
/* Numbers that no other process gives, for what is made from now on. */
void reffs_new_numbers(struct reffs_mount *m);

#endif
