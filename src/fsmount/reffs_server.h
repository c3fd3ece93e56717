/* SPDX-License-Identifier: MIT */
/*
 * reffs_server.h - shared by the files of the mounted reference file system.
 *
 * One lock guards the file system and the pool; a request holds the lock while it reads or changes
 * them, and not while it answers, tells the kernel to forget, or uses a file of its own: each of
 * these can wait for another request.
 *
 * S1: the kernel keeps names, missing names and attributes for a second. The kernel knows all
 *     changes, as it requests them; except those of a restore, and those that a call makes to the
 *     mode of a file beside its purpose. After both, the kernel is made to forget.
 * S2: all names are forgotten at once, by increasing the kernel's epoch: this is cheap, and names
 *     in answers that are on their way are of the old epoch, too. A kernel without epochs (before
 *     6.16) keeps neither names nor attributes: their time is 0.
 * S3: names are kept only in directories that all users of the mount may search, because the kernel
 *     does not ask us again. When that changes, names are forgotten.
 * S4: attributes and pages are forgotten by inode: a restore tells the kernel of each known inode
 *     that is another one than before. Pages are kept only while a file is open (without
 *     FOPEN_KEEP_CACHE each open drops them).
 * S5: a listing with attributes adds names when it arrives, whatever the epoch. So before the epoch
 *     is increased, the kernel must have finished all listings that were answered.
 * S6: an inode is pinned as often as the kernel looked it up and did not forget it.
 */
#ifndef FSMOUNT_REFFS_SERVER_H
#define FSMOUNT_REFFS_SERVER_H

#include <pthread.h>

#include "base/vec.h"
#include "fs/reffs_pool.h"
#include "fs/vfs.h"
#include "fuse/guardian.h"
#include "fuse/session.h"

struct open_file {
	uint64_t ino, n;
};

/* An open directory. */
struct reffs_listing {
	struct reffs_listing *next;
	uint64_t ino;
	bool plus; /* has had attributes since the last restore (S5) */
	struct vfs_dir dir;
};

struct reffs_mount {
	struct session session; /* first */
	struct guardian guardian;
	struct reffs *r;
	struct reffs_pool pool;
	struct vec_of(struct open_file) open; /* regular files */
	struct reffs_listing *listings;
	pthread_mutex_t lock;
	uid_t owner;
	bool direct, allow_other;
	double keep_s;	 /* the time for which the kernel keeps names and attributes; 0: none */
	bool setid_ours; /* the kernel knows that we drop set-id bits */
};

static inline struct reffs_mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Takes the lock, and sets the clock. */
void reffs_mount_lock(struct reffs_mount *m);
void reffs_mount_unlock(struct reffs_mount *m);

/* ---- reffs_fuse.c ---- */

extern const struct fuse_lowlevel_ops reffs_operations;
/* True for a regular file that is open or mapped. */
bool reffs_is_open(const struct reffs_mount *m, uint64_t ino);

/* ---- reffs_kernel.c: the first function needs the lock; the others must not have it ---- */

/* True if the kernel may keep the names of a directory (S3). */
bool reffs_kernel_may_keep_names(struct reffs_mount *m, uint64_t dir);
void reffs_kernel_forget_names(struct reffs_mount *m);
void reffs_kernel_forget_attr(struct reffs_mount *m, uint64_t ino);
/* Makes the kernel forget attributes and pages of a regular file. */
void reffs_kernel_forget_file(struct reffs_mount *m, uint64_t ino);
/* Returns when the kernel has finished all listings that were answered before. */
void reffs_kernel_await_listing(struct reffs_mount *m, uint64_t dir);
/* Agrees with the kernel on features; called before the first request, and at it. */
void reffs_kernel_init(struct reffs_mount *m, struct fuse_conn_info *conn);

/* ---- reffs_intake.c ---- */

/* The most data of a write; the pipe of a user without privileges has no room for twice as much. */
enum { INTAKE_WRITE_MAX = VFS_PAGES_MAX * REFFS_PAGE };
/* The `receive` of a session. */
ssize_t reffs_intake_receive(struct session *s, int fd, void *buf, size_t len);
/*
 * Returns the whole pages of the write that this thread received last, ready to be written, as many
 * as there is room for. NULL if this thread has no memory for them.
 */
struct vfs_pages *reffs_intake_pages(const void *data, uint64_t offset, size_t len, int flags);

/* ---- reffs_ioctl.c ---- */

void reffs_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
		 unsigned flags, const void *in, size_t in_size, size_t out_size);
/* Sets numbers for new inodes that no other process gives. */
void reffs_new_numbers(struct reffs_mount *m);

#endif
