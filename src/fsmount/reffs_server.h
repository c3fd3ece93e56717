/* SPDX-License-Identifier: MIT */
/*
 * reffs_server.h - shared by the files of the mounted reference file system.
 *
 * One lock guards the file system and the pool; a request holds it while it looks or changes, and
 * not while it answers, tells the kernel to forget something, or touches a file of its own: each of
 * these can wait for another request.
 *
 * S1: the kernel keeps names, names that are not there, and attributes for a second. All that
 *     changes them comes from the kernel, which knows; but for what a restore changes, and what one
 *     call does to the mode of a file besides. Both make the kernel forget.
 * S2: names are forgotten all at once, by counting up the kernel's epoch: it is cheap, and names
 *     that are on their way are of the old epoch, too. A kernel without epochs (before 6.16) keeps
 *     neither names nor attributes: their time is up at once.
 * S3: names are kept only in directories that all who can get here may search, because the kernel
 *     does not ask us any more. When that changes, names are forgotten.
 * S4: attributes and pages are forgotten by inode: a restore tells of each that the kernel knows
 *     and that is another one than before. Pages are kept only while a file is open (without
 *     FOPEN_KEEP_CACHE each open drops them).
 * S5: a listing that carries attributes makes names when it arrives, whatever the epoch. So before
 *     the epoch is counted up, listings that were answered have to be over.
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
	bool plus; /* carried attributes since the last restore (S5) */
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
	double keep_s;	 /* how long the kernel keeps names and attributes; 0: not at all */
	bool setid_ours; /* the kernel knows that set-id bits are ours to see to */
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
/* Whether it is a regular file that is open or mapped. */
bool reffs_is_open(const struct reffs_mount *m, uint64_t ino);

/* ---- reffs_kernel.c: the first needs the lock, the others must not have it ---- */

/* S3 */
bool reffs_kernel_may_keep_names(struct reffs_mount *m, uint64_t dir);
void reffs_kernel_forget_names(struct reffs_mount *m);
void reffs_kernel_forget_attr(struct reffs_mount *m, uint64_t ino);
/* Attributes and pages of a regular file. */
void reffs_kernel_forget_file(struct reffs_mount *m, uint64_t ino);
/* Returns when all listings that were answered before are over. */
void reffs_kernel_await_listing(struct reffs_mount *m, uint64_t dir);
/* Agrees with the kernel on features; before it has asked anything, and when it asks. */
void reffs_kernel_init(struct reffs_mount *m, struct fuse_conn_info *conn);

/* ---- reffs_intake.c ---- */

/* Of a write; twice as much does not fit into the pipe that a user without privileges gets. */
enum { INTAKE_WRITE_MAX = VFS_PAGES_MAX * REFFS_PAGE };
/* A session's `receive`. */
ssize_t reffs_intake_receive(struct session *s, int fd, void *buf, size_t len);
/*
 * Of the write that this thread received last: its whole pages, ready to be written, as many as
 * there is room for. NULL if there is no memory of this thread's own for it.
 */
struct vfs_pages *reffs_intake_pages(const void *data, uint64_t offset, size_t len, int flags);

/* ---- reffs_ioctl.c ---- */

void reffs_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
		 unsigned flags, const void *in, size_t in_size, size_t out_size);
/* Numbers that no other process gives, for what is made from now on. */
void reffs_new_numbers(struct reffs_mount *m);

#endif
