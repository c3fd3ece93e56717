/* SPDX-License-Identifier: MIT */
/*
 * vfs.h - the reference file system by inode numbers: the calls that a kernel makes to a file
 * system.
 *
 * Each call acts with credentials, which are an argument, and is allowed or refused as Linux would.
 * A call returns 0 or more, or -errno; a call that fails changes nothing. For an inode that no
 * longer exists it returns -ESTALE. Names are single components; "." and ".." are not names.
 *
 * Paths are resolved by vfs_path(). The operations of workloads (reffs_op()) are made of these
 * calls: there is one implementation of each rule.
 */
#ifndef FS_VFS_H
#define FS_VFS_H

#include "fs/reffs.h"

/* ---- credentials and time ---- */

/* The capabilities that a file system asks for; see capabilities(7). */
enum reffs_cap {
	REFFS_CAP_CHOWN = 1 << 0,
	REFFS_CAP_DAC_OVERRIDE = 1 << 1,
	REFFS_CAP_DAC_READ_SEARCH = 1 << 2,
	REFFS_CAP_FOWNER = 1 << 3,
	REFFS_CAP_FSETID = 1 << 4,
	REFFS_CAP_MKNOD = 1 << 5,
	REFFS_CAP_SYS_ADMIN = 1 << 6,
	REFFS_CAP_SETFCAP = 1 << 7,
	REFFS_CAPS_ALL = (1 << 8) - 1,
};

/* The user with all capabilities is root, not the user with number 0. */
struct reffs_cred {
	uint32_t uid, gid;
	const uint32_t *groups; /* supplementary groups */
	size_t n_groups;
	/* Called for a group that is none of these; NULL: the user is not in such a group. */
	bool (*in_group)(const struct reffs_cred *cred, uint32_t gid);
	uint32_t umask;
	unsigned caps; /* enum reffs_cap */
};

/* Number 0 with all capabilities and no umask. */
extern const struct reffs_cred reffs_root;

/* Sets the time; there is no other clock. The time starts at 0. */
void reffs_set_time(struct reffs *r, struct tree_time now);

/* ---- inodes ---- */

int vfs_getattr(struct reffs *r, uint64_t ino, struct reffs_attr *out);

enum vfs_set {
	VFS_SET_MODE = 1 << 0,
	VFS_SET_UID = 1 << 1,
	VFS_SET_GID = 1 << 2,
	VFS_SET_SIZE = 1 << 3,
	VFS_SET_ATIME = 1 << 4,
	VFS_SET_MTIME = 1 << 5,
	VFS_SET_ATIME_NOW = 1 << 6, /* instead of the value; with both, a user who may write may */
	VFS_SET_MTIME_NOW = 1 << 7,
	VFS_SET_OPEN = 1 << 8, /* the size, through a descriptor that is open for writing */
};

struct vfs_setattr {
	unsigned set; /* enum vfs_set; chown(2) sets VFS_SET_UID, even with no new owner */
	uint32_t mode;
	uint32_t uid, gid; /* UINT32_MAX: unchanged */
	uint64_t size;
	struct tree_time atime, mtime;
};

int vfs_setattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino,
		const struct vfs_setattr *a);
/* access(2), `want` of R_OK, W_OK and X_OK. */
int vfs_access(struct reffs *r, const struct reffs_cred *c, uint64_t ino, int want);

struct vfs_statfs {
	uint64_t pages, pages_free; /* of REFFS_PAGE bytes */
	uint64_t inodes, inodes_free;
};

void vfs_statfs(struct reffs *r, struct vfs_statfs *out);

/*
 * A pinned inode stays when it loses its last name. A caller that keeps a number for longer than a
 * call pins it; so does one for an open file. Pins are not part of a state, nor are inodes without
 * a name: after a restore, such a number is -ESTALE.
 */
void vfs_pin(struct reffs *r, uint64_t ino, uint64_t n);
void vfs_unpin(struct reffs *r, uint64_t ino, uint64_t n);
/*
 * Calls reffs_restore(), and calls back for each pinned number whose inode is another one than
 * before, or gone; some may come twice. The cost depends on the difference of the two states.
 */
void vfs_restore(struct reffs *r, struct reffs_state *s, void (*changed)(void *ctx, uint64_t ino),
		 void *ctx);

/* ---- names ---- */

/* All of these give the number of the inode that was found or made in *ino. */
int vfs_lookup(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	       uint64_t *ino);
int vfs_create(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	       uint32_t mode, uint64_t *ino);
int vfs_mkdir(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	      uint32_t mode, uint64_t *ino);
/* `mode` has a type, as for mknod(2). */
int vfs_mknod(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	      uint32_t mode, uint64_t rdev, uint64_t *ino);
int vfs_symlink(struct reffs *r, const struct reffs_cred *c, const char *target, uint64_t dir,
		const char *name, uint64_t *ino);
/* Makes a file without a name, which must be pinned at once; `excl`: it never gets a name. */
int vfs_tmpfile(struct reffs *r, const struct reffs_cred *c, uint64_t dir, uint32_t mode, bool excl,
		uint64_t *ino);
int vfs_link(struct reffs *r, const struct reffs_cred *c, uint64_t ino, uint64_t dir,
	     const char *name);
int vfs_unlink(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name);
int vfs_rmdir(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name);
/* `flags` are those of renameat2(2). */
int vfs_rename(struct reffs *r, const struct reffs_cred *c, uint64_t from_dir, const char *from,
	       uint64_t to_dir, const char *to, unsigned flags);
/* Gives the target, borrowed until the link is gone. */
int vfs_readlink(struct reffs *r, uint64_t ino, const char **target);

/*
 * Lists names of an open directory in the order of their cookies, from the first after `cookie`, 0
 * for all. The cookie of a name depends on the name alone: it stays the same whatever happens to
 * the directory, also when a state is restored or loaded. "." and ".." come first. A non-zero
 * return of `entry` ends the list.
 */
struct vfs_dirent {
	const char *name;
	uint64_t ino;
	enum tree_type type;
	uint64_t cookie;
};

/* The state of one reader of a directory, kept from call to call; all zeros at first. */
struct vfs_dir {
	struct map_node *map;
	struct vfs_dir_slot *v; /* in the order of cookies */
	size_t n;
};

int vfs_readdir(struct reffs *r, uint64_t ino, struct vfs_dir *d, uint64_t cookie,
		int (*entry)(void *ctx, const struct vfs_dirent *e), void *ctx);
void vfs_dir_release(struct vfs_dir *d);

/* ---- content ---- */

/* A flag beside those of open(2): open for execution, which needs another right than reading. */
enum { VFS_OPEN_EXEC = 0x20 };

/*
 * Checks that a file may be opened with these flags of open(2); O_TRUNC empties it. Returns -ENXIO
 * for devices and sockets, which a caller may open by itself.
 */
int vfs_open(struct reffs *r, const struct reffs_cred *c, uint64_t ino, int flags);
/* The functions below act on an open file, and do not check permissions again. */
int64_t vfs_read(struct reffs *r, uint64_t ino, void *data, uint64_t offset, uint64_t len);
struct vfs_pages;
/* Writes, at the end with O_APPEND. Returns less than `len` if there is no more room. */
int64_t vfs_write(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const void *data,
		  uint64_t offset, uint64_t len, int flags);
/*
 * Whole pages made ahead of a write: copying and hashing them is the main cost of a large write,
 * and needs no state, so a caller does that before it takes its lock; and a caller that receives
 * the bytes puts them here at once. A write takes the pages that it needs, and leaves those that it
 * replaced, so that the same memory serves many writes. Such pages belong to one thread, and to one
 * write at a time.
 */
enum { VFS_PAGES_MAX = 128 };
struct vfs_pages *vfs_pages_new(void);
void vfs_pages_free(struct vfs_pages *p); /* NULL is fine */
/* Returns the memory for page `n`, REFFS_PAGE bytes, to be filled before vfs_pages_ready(). */
void *vfs_pages_at(struct vfs_pages *p, size_t n);
/* The first `n` pages are filled, for this offset, a multiple of the page size. */
void vfs_pages_ready(struct vfs_pages *p, uint64_t offset, size_t n);
/* Fills pages from memory: all whole pages of a range, as many as there is room for. */
void vfs_pages_copy(struct vfs_pages *p, const void *data, uint64_t offset, uint64_t len);
/*
 * vfs_write() of data, a part of which is in `pages`; that part of `data` is read only with
 * O_APPEND. Afterwards no page is ready any more, whether the write succeeds or not.
 */
int64_t vfs_write_pages(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const void *data,
			struct vfs_pages *pages, uint64_t offset, uint64_t len, int flags);
int vfs_fallocate(struct reffs *r, const struct reffs_cred *c, uint64_t ino, int mode,
		  uint64_t offset, uint64_t len);
/* lseek(2) with SEEK_DATA and SEEK_HOLE. */
int64_t vfs_seek(struct reffs *r, uint64_t ino, uint64_t offset, int whence);
/* copy_file_range(2); holes stay holes. */
int64_t vfs_copy(struct reffs *r, const struct reffs_cred *c, uint64_t from, uint64_t from_offset,
		 uint64_t to, uint64_t to_offset, uint64_t len);
/* The ioctl FICLONE. */
int vfs_clone(struct reffs *r, const struct reffs_cred *c, uint64_t from, uint64_t to);

/* ---- extended attributes ---- */

int vfs_setxattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name,
		 const void *value, size_t len, int flags);
/* The value is borrowed until the attributes of the inode change. */
int vfs_getxattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name,
		 const void **value, size_t *len);
/* Lists names with a NUL after each. Returns the length, or -ERANGE; size 0: only the length. */
int64_t vfs_listxattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, char *list,
		      size_t size);
int vfs_removexattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name);

/* ---- paths ---- */

/*
 * Finds the inode of a path, from the root and never out of it (RESOLVE_BENEATH of openat2(2)),
 * with the flags O_NOFOLLOW and O_DIRECTORY of open(2).
 */
int vfs_path(struct reffs *r, const struct reffs_cred *c, const char *path, int flags,
	     uint64_t *ino);
/* Gives the directory of the last component, and that component, which need not exist. */
int vfs_path_parent(struct reffs *r, const struct reffs_cred *c, const char *path, uint64_t *dir,
		    const char **name);

#endif
