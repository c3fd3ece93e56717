/* SPDX-License-Identifier: MIT */
/*
 * reffs.h - the reference file system: what a correct POSIX file system does, as a library.
 *
 * A state is immutable: its nodes are shared, and an operation makes new nodes only for what it
 * changes. Saving a state is keeping a pointer, restoring it is swapping one; both cost the same
 * for one file and for a million. The hash of what a user can see is kept up to date.
 *
 * Inode numbers are never used twice in the life of a reffs, also not after a restore, so that an
 * inode can be followed through the states of a run: a checker asks of each what became of it.
 *
 * Not thread-safe: one reffs, and the states it made, belong to one thread at a time.
 */
#ifndef FS_REFFS_H
#define FS_REFFS_H

#include "base/hash.h"
#include "tree/tree.h"
#include "workload/workload.h"

enum { REFFS_ROOT_INO = 1, REFFS_PAGE = 4096 };

struct reffs;
struct reffs_state; /* reference-counted */

/*
 * The differences between file systems, and between hosts. All zeros is ext4 with blocks of 4096
 * bytes on a host without restrictions, but for reflink, which works. Where kernels differ (some
 * wrong mixtures of flags), the answer is that of Linux 6.12 and later.
 */
struct reffs_opts {
	mode_t root_mode; /* 0: 0755 */
	uid_t uid;	  /* owner of the root, and user of the operations of workloads */
	gid_t gid;
	uint64_t file_max;  /* the largest file; 0: ext4's, 2^44 - 4096 bytes */
	uint32_t link_max;  /* the most names of a file; 0: ext4's, 65000 */
	uint32_t dio_align; /* the alignment of direct I/O; 0: 512 bytes */
	uint64_t pages_max; /* the most pages and inodes of all files together; 0: no limit */
	uint64_t inodes_max;
	int full_error;	    /* beyond that; 0: -ENOSPC; -EDQUOT, say */
	uint64_t first_ino; /* the first inode number but the root's; 0: 2 */
	bool no_reflink;    /* reflink gives -EOPNOTSUPP, as on ext4 */
	bool whiteout_to;   /* a whiteout is made for the directory that the file goes to, as on xfs
			     */
	int protect_regular; /* the sysctls fs.protected_regular, _fifos, _hardlinks, _symlinks */
	int protect_fifos;
	int protect_hardlinks;
	int protect_symlinks;
	enum reffs_atime { REFFS_NOATIME, REFFS_RELATIME, REFFS_STRICTATIME } atime;
	bool times; /* access and modification times count for the hash, and are in the tree */
};

struct reffs *reffs_new(const struct reffs_opts *opts); /* NULL: defaults */
void reffs_free(struct reffs *r);

/* The current state; the caller owns one reference. */
struct reffs_state *reffs_save(struct reffs *r);
/* Makes `s` the current state; open handles are closed. The caller keeps its reference. */
void reffs_restore(struct reffs *r, struct reffs_state *s);
/*
 * The file system refused the last operation, `op`, which succeeded here: `before` is the state
 * again, but a file that the operation opens to make it is there. Handles stay, but for the one
 * that it made.
 */
void reffs_refused(struct reffs *r, struct reffs_state *before, const struct op *op);
void reffs_state_unref(struct reffs_state *s); /* NULL is fine */
/*
 * Two states have the same hash iff a user cannot tell them apart, that is iff their trees are
 * equal. Kept up to date by every operation at the cost of what it changes; moving a directory
 * costs as much as there is below it.
 */
struct hash128 reffs_state_hash(const struct reffs_state *s);

/*
 * Performs operation `i` of a workload with the credentials of reffs_become(), at first as the user
 * of the options with all capabilities, with the result that exec_op() would have on a real file
 * system: what the system call returns, or -errno. Content is that of content.h. Handles stay open
 * from call to call, whatever the workload, until closed or until reffs_restore().
 */
int64_t reffs_op(struct reffs *r, const struct workload *w, size_t i);
/*
 * As exec_init(): closes the handles, and fixes the tag of the content that `w` writes as it is
 * now. Needed only for a workload that grows or changes while it is performed; else the tag is
 * taken when operation 0, or one of another workload than before, is performed.
 */
void reffs_begin(struct reffs *r, const struct workload *w);
/* Sets who performs operations from now on; the credentials must stay. */
struct reffs_cred;
void reffs_become(struct reffs *r, const struct reffs_cred *cred);

/* ---- reading a state ---- */

struct reffs_inode; /* borrowed from the state it was asked from */

/* NULL if the inode is not in this state. An unlinked file that is still open is not. */
const struct reffs_inode *reffs_inode(const struct reffs_state *s, uint64_t ino);

struct reffs_attr {
	uint64_t ino;
	enum tree_type type;
	uint32_t mode; /* permission bits */
	uint32_t uid, gid;
	uint64_t nlink;		/* of a directory: 2 and one for each directory in it */
	uint64_t size;		/* of a directory: 0 */
	uint64_t rdev;		/* as of makedev(3) */
	const char *target;	/* of a symbolic link, else NULL */
	struct hash128 content; /* tree_content_hash() of a file */
	uint64_t pages;		/* written ones, of a file */
	struct tree_time atime, mtime, ctime, btime;
};

void reffs_attr(const struct reffs_inode *inode, struct reffs_attr *out);
/* Page `n` of a regular file, REFFS_PAGE bytes; NULL if it reads as zeros. */
const unsigned char *reffs_page(const struct reffs_inode *inode, uint64_t n);
/* The first page from `n` on that was written; UINT64_MAX if there is none. */
uint64_t reffs_next_page(const struct reffs_inode *inode, uint64_t n);
/* Calls back for each entry in order of name; stops early at a non-zero return, and gives it. */
int reffs_entries(const struct reffs_inode *dir,
		  int (*entry)(void *ctx, const char *name, uint64_t ino), void *ctx);
/* The entry's inode, or 0. */
uint64_t reffs_lookup(const struct reffs_inode *dir, const char *name);
int reffs_xattrs(const struct reffs_inode *inode,
		 int (*xattr)(void *ctx, const char *name, const void *value, size_t len),
		 void *ctx);
/* Calls back for each inode of the state, by number. */
int reffs_inodes(const struct reffs_state *s,
		 int (*inode)(void *ctx, const struct reffs_inode *inode), void *ctx);

/* The whole state as a tree, as a walk of a mounted directory would give it. */
void reffs_tree(const struct reffs_state *s, const struct tree_opts *opts, struct tree *out);

#endif
