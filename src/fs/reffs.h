/* SPDX-License-Identifier: MIT */
/*
 * reffs.h - the reference file system: a correct POSIX file system in memory, as a library.
 *
 * A state is immutable: its nodes are shared, and an operation makes new nodes only for the parts
 * that it changes. To save or restore a state is to copy a pointer, for one file as for a million.
 * The hash of all that a user can see is kept up to date.
 *
 * Inode numbers are never used twice in the life of a reffs, also not after a restore, so that a
 * checker can follow an inode through the states of a run.
 *
 * Not thread-safe: a reffs and its states belong to one thread at a time.
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
 * bytes on a host without restrictions, except that reflink works. Where kernels differ (some wrong
 * mixtures of flags), the result is that of Linux 6.12 and later.
 */
struct reffs_opts {
	mode_t root_mode; /* 0: 0755 */
	uid_t uid;	  /* owner of the root, and user of the operations of workloads */
	gid_t gid;
	uint64_t file_max;  /* the largest file; 0: as on ext4, 2^44 - 4096 bytes */
	uint32_t link_max;  /* the most names of a file; 0: as on ext4, 65000 */
	uint32_t dio_align; /* the alignment of direct I/O; 0: 512 bytes */
	uint64_t pages_max; /* the most pages and inodes of all files together; 0: no limit */
	uint64_t inodes_max;
	int full_error;	     /* the error beyond that, such as -EDQUOT; 0: -ENOSPC */
	uint64_t first_ino;  /* the first inode number but the root's; 0: 2 */
	bool no_reflink;     /* reflink gives -EOPNOTSUPP, as on ext4 */
	bool whiteout_to;    /* a whiteout belongs to the directory that the file goes to, as on xfs
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

/* Returns the current state; the caller owns one reference. */
struct reffs_state *reffs_save(struct reffs *r);
/* Makes `s` the current state; open handles are closed. The caller keeps its reference. */
void reffs_restore(struct reffs *r, struct reffs_state *s);
/*
 * Undoes the last operation, `op`, which the tested file system refused: `before` is the state
 * again, except that a file which the operation makes by opening it exists. Handles stay, except
 * one that the operation made.
 */
void reffs_refused(struct reffs *r, struct reffs_state *before, const struct op *op);
void reffs_state_unref(struct reffs_state *s); /* NULL is fine */
/*
 * Two states have the same hash iff their trees are equal for a user. Every operation updates the
 * hash, at a cost that depends on what it changes; moving a directory costs time for all that is
 * below.
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
 * As exec_init(): closes the handles, and computes the tag of the content that `w` writes now.
 * Needed only for a workload that grows or changes while it is performed; otherwise the tag is
 * computed when operation 0, or one of another workload, is performed.
 */
void reffs_begin(struct reffs *r, const struct workload *w);
/* Sets the user who performs operations from now on; the credentials must outlive that. */
struct reffs_cred;
void reffs_become(struct reffs *r, const struct reffs_cred *cred);

/* ---- reading a state ---- */

struct reffs_inode; /* borrowed from its state */

/* Returns NULL if the inode is not in this state, as an unlinked file that is still open. */
const struct reffs_inode *reffs_inode(const struct reffs_state *s, uint64_t ino);

struct reffs_attr {
	uint64_t ino;
	enum tree_type type;
	uint32_t mode; /* permission bits */
	uint32_t uid, gid;
	uint64_t nlink;		/* a directory has 2, and one for each directory in it */
	uint64_t size;		/* a directory has 0 */
	uint64_t rdev;		/* as of makedev(3) */
	const char *target;	/* target of a symbolic link, else NULL */
	struct hash128 content; /* tree_content_hash() of a file */
	uint64_t pages;		/* the number of a file's written pages */
	struct tree_time atime, mtime, ctime, btime;
};

void reffs_attr(const struct reffs_inode *inode, struct reffs_attr *out);
/* Returns page `n` of a regular file, REFFS_PAGE bytes; NULL if it reads as zeros. */
const unsigned char *reffs_page(const struct reffs_inode *inode, uint64_t n);
/* Returns the first page from `n` on that was written; UINT64_MAX if there is none. */
uint64_t reffs_next_page(const struct reffs_inode *inode, uint64_t n);
/* Calls back for each entry in order of name; stops early at a non-zero return, and gives it. */
int reffs_entries(const struct reffs_inode *dir,
		  int (*entry)(void *ctx, const char *name, uint64_t ino), void *ctx);
/* Returns the entry's inode, or 0. */
uint64_t reffs_lookup(const struct reffs_inode *dir, const char *name);
int reffs_xattrs(const struct reffs_inode *inode,
		 int (*xattr)(void *ctx, const char *name, const void *value, size_t len),
		 void *ctx);
/* Calls back for each inode of the state, by number. */
int reffs_inodes(const struct reffs_state *s,
		 int (*inode)(void *ctx, const struct reffs_inode *inode), void *ctx);

/*
 * Calls back for the entries that are not the same in both states, and maybe for others of the same
 * directories. Costs time for what differs. `a` may be NULL: an empty state.
 */
void reffs_differ(const struct reffs_state *a, const struct reffs_state *b,
		  void (*entry)(void *ctx, uint64_t dir, const char *name), void *ctx);

/* Gives the whole state as a tree, as a walk of a mounted directory would. */
void reffs_tree(const struct reffs_state *s, const struct tree_opts *opts, struct tree *out);

#endif
