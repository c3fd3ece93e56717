/* SPDX-License-Identifier: MIT */
/*
 * seedfs.h - a small journaling file system whose defects are known.
 *
 * The disk, in blocks of 4096 bytes, all numbers little-endian:
 *
 *	0		superblock; all of it in the first sector, so that it cannot be torn
 *	journal		transactions, from its first block on after every checkpoint (journal.c)
 *	log		the fast fsync log: batches of records since the last commit (fastlog.c)
 *	bitmap		one bit a block of the disk
 *	inode table	256 bytes an inode; number 1 is the root, a mode of 0 means free
 *	the rest	file data, directory blocks, indirect blocks, attribute blocks
 *
 * What always holds on a correct run:
 * I1: the state after a crash is the state after some operation, none earlier than the last one
 *     that fsync, fdatasync or sync made durable. Data is part of it: a block that a durable state
 *     reaches is never written in place, a changed block of a file goes to a new place.
 * I2: metadata reaches its home only after the transaction that holds it has committed.
 * I3: a block freed since the last commit is not used again before the next.
 * I4: what is in the cache when no operation runs is the state the user sees; a commit or a log
 *     batch takes all of it.
 *
 * One thread. All blocks stay in memory once read. An operation returns 0 or -errno.
 */
#ifndef SEEDFS_H
#define SEEDFS_H

#include "base/util.h"
#include "base/vec.h"

#include <sys/stat.h>

#include "bugs.h"

#define BLOCK_BYTES  4096
#define SECTOR_SIZE  512
#define ROOT_INO     1
#define NAME_MAX_LEN 255
#define N_DIRECT     12
#define N_PER_BLOCK  (BLOCK_BYTES / 4)
#define INODES_BLOCK (BLOCK_BYTES / sizeof(struct dinode))
#define MIN_BLOCKS   256
#define MAX_BLOCKS   (1U << 18)

/* disk.c: a file, or memory that a test looks at. */
struct disk {
	int fd;		    /* -1 in memory */
	unsigned char *mem; /* not owned */
	uint32_t n_blocks;
	/* Sees each write (data) and each flush (data is NULL) before it is made. */
	void (*watch)(void *ctx, uint32_t block, const void *data);
	void *watch_ctx;
};

int disk_open(const char *path, struct disk *out) must_check;
void disk_close(struct disk *d);
int disk_read(struct disk *d, uint32_t block, void *data) must_check;
int disk_write(struct disk *d, uint32_t block, const void *data) must_check;
int disk_flush(struct disk *d) must_check;

struct super {
	uint64_t magic;
	uint32_t version, n_blocks;
	uint32_t journal, journal_len;
	uint32_t log, log_len;
	uint32_t bitmap, bitmap_len;
	uint32_t itable, itable_len;
	uint32_t data;
	uint32_t clean; /* unmounted: journal and log are empty */
	uint64_t seq;	/* of the transaction at the journal's first block, if there is one */
	uint64_t sum;	/* of what is before it */
};

struct dinode {
	uint32_t mode, uid, gid, n_link;
	uint64_t size;
	int64_t atime, mtime, ctime; /* nanoseconds */
	uint32_t rdev;
	uint32_t parent;  /* of a directory */
	uint32_t entries; /* of a directory, not counting . and .. */
	uint32_t xattr;	  /* block of attributes, or 0 */
	uint32_t blocks;  /* all that belong to the inode */
	uint32_t direct[N_DIRECT];
	uint32_t indirect[2]; /* single, double */
	uint32_t unused;
	char target[128]; /* of a symbolic link that is short enough */
};
_Static_assert(sizeof(struct dinode) == 256, "16 inodes a block");

/* What memory knows of an inode beyond what is on the disk. */
struct minode {
	uint64_t refs;	   /* lookups of the kernel; an inode without names lives until 0 */
	uint64_t log_size; /* the size that the log will hold */
	bool dirty;	   /* changed since it was last logged or committed */
	bool logged;	   /* in the log since the last commit */
	bool made;	   /* made since the last commit */
	bool linked;	   /* got a hard link since the last commit */
	bool named;	   /* a name was logged since the last commit */
};

/* Of a block, in memory. */
enum {
	B_META = 1,	  /* changed metadata of the running transaction */
	B_DATA = 2,	  /* file data not yet written */
	B_FRESH = 4,	  /* allocated since the last commit or batch: no durable state has it */
	B_FREED = 8,	  /* freed since the last commit */
	B_LOG = 16,	  /* metadata changed since the last batch */
	B_JOURNALED = 32, /* committed, not at home yet: the journal holds the only durable copy */
};

/* A change of a directory that the log does not hold yet. */
struct name_change {
	bool add, rename, cross, over, link;
	uint32_t dir, ino;
	char *name;
};

struct fs {
	struct disk *disk;
	struct super sb;
	unsigned char **buf; /* by block; NULL if not read yet */
	uint8_t *state;	     /* by block: B_* */
	struct minode *mi;   /* by inode */
	uint32_t n_inodes;
	uint64_t seq; /* of the next transaction */
	uint32_t journal_pos;
	uint32_t log_pos, log_batch;
	uint32_t n_meta, n_freed; /* blocks that are B_META, B_FREED */
	struct vec_of(uint32_t) revoked;
	struct vec_of(struct name_change) names;
	bool full_only;	  /* the running transaction has something the log cannot express */
	bool fixed_clock; /* one second an operation, from a fixed start */
	int64_t clock;
	int failed;    /* -errno of the write that failed: nothing is written any more */
	char why[256]; /* why recovery or a check gave up */
};

struct recovered {
	bool was_dirty;
	unsigned transactions, batches, orphans;
};

/* fs.c */
int fs_mkfs(struct disk *d, uint32_t n_blocks) must_check;
/* Recovers what has to be. With `why`, says there what is wrong. */
int fs_open(struct disk *d, bool fixed_clock, struct recovered *rec, char *why, size_t why_size,
	    struct fs **out) must_check;
int fs_close(struct fs *fs) must_check; /* a clean unmount */
void fs_free(struct fs *fs);		/* forgets everything, as a crash does */
int64_t fs_now(struct fs *fs);
int fs_write_super(struct fs *fs, bool clean) must_check;
/* Starts an operation that needs at most so many blocks; may commit what came before. */
int fs_begin(struct fs *fs, uint64_t n_blocks) must_check;
int fs_fsync(struct fs *fs, uint32_t ino) must_check;
int fs_sync(struct fs *fs) must_check;

/* block.c */
unsigned char *block_get(struct fs *fs, uint32_t block); /* NULL: cannot be read */
unsigned char *block_new(struct fs *fs, uint32_t block); /* zeroed, not read */
void block_meta(struct fs *fs, uint32_t block);
int block_alloc(struct fs *fs, uint32_t *out) must_check;
void block_free(struct fs *fs, uint32_t block);
bool block_used(struct fs *fs, uint32_t block);
void block_mark(struct fs *fs, uint32_t block, bool used);
uint32_t block_count_free(struct fs *fs, bool and_freed);

/* inode.c */
struct dinode *inode_get(struct fs *fs, uint32_t ino);
struct dinode *inode_live(struct fs *fs, uint32_t ino); /* NULL if free or out of range */
void inode_touch(struct fs *fs, uint32_t ino);		/* the transaction has it */
void inode_change(struct fs *fs, uint32_t ino);		/* so does the next fsync */
int inode_alloc(struct fs *fs, uint32_t dir, mode_t mode, uid_t uid, gid_t gid, uint32_t *out)
	must_check;
int inode_drop(struct fs *fs, uint32_t ino) must_check; /* frees it if nothing holds it */
void inode_ref(struct fs *fs, uint32_t ino);
void inode_unref(struct fs *fs, uint32_t ino, uint64_t n);
/* The disk block of a file's block, 0 for a hole. */
int inode_map(struct fs *fs, uint32_t ino, uint64_t lblock, uint32_t *out) must_check;
/* Adds a block of metadata (a directory's) to the end. */
int inode_add_block(struct fs *fs, uint32_t ino, uint64_t lblock, uint32_t *out) must_check;
/* Calls fn for every block of the inode, indirect ones with `meta`; stops at its first error. */
typedef int inode_block_fn(void *ctx, uint32_t block, bool meta);
int inode_each_block(struct fs *fs, const struct dinode *di, inode_block_fn *fn, void *ctx);
void inode_reset_log(struct fs *fs); /* after a commit */

enum { WRITE_DIRECT = 1, WRITE_MAPPED = 2 };
ssize_t file_read(struct fs *fs, uint32_t ino, void *data, size_t len, uint64_t off) must_check;
ssize_t file_write(struct fs *fs, uint32_t ino, const void *data, size_t len, uint64_t off,
		   unsigned flags) must_check;
/* The target of a long symbolic link: inside an operation, at most a block. */
int file_put_small(struct fs *fs, uint32_t ino, const void *data, size_t len) must_check;
int file_truncate(struct fs *fs, uint32_t ino, uint64_t size) must_check;
int file_fallocate(struct fs *fs, uint32_t ino, int mode, uint64_t off, uint64_t len) must_check;
int64_t file_seek(struct fs *fs, uint32_t ino, uint64_t off, bool hole) must_check;

enum { SET_MODE = 1, SET_UID = 2, SET_GID = 4, SET_ATIME = 8, SET_MTIME = 16, SET_CTIME = 32 };
struct attr_change {
	unsigned set;
	uint32_t mode, uid, gid;
	int64_t atime, mtime, ctime;
};
int inode_set_attr(struct fs *fs, uint32_t ino, const struct attr_change *c) must_check;

/* xattr.c */
int xattr_set(struct fs *fs, uint32_t ino, const char *name, const void *value, size_t len,
	      int flags) must_check;
ssize_t xattr_get(struct fs *fs, uint32_t ino, const char *name, void *value, size_t len)
	must_check;
ssize_t xattr_list(struct fs *fs, uint32_t ino, char *list, size_t len) must_check;
int xattr_remove(struct fs *fs, uint32_t ino, const char *name) must_check;
/* Bytes in use, or 0 if the block is not one of attributes. */
size_t xattr_used(const unsigned char *block);

/* dir.c */
struct dir_entry {
	uint32_t ino;
	mode_t type;
	uint64_t next; /* where to go on */
	char name[NAME_MAX_LEN + 1];
};
int dir_find(struct fs *fs, uint32_t dir, const char *name, uint32_t *out) must_check;
/* The entry at `pos` or after it; -ENOENT at the end. */
int dir_next(struct fs *fs, uint32_t dir, uint64_t pos, struct dir_entry *out) must_check;
/* Entries alone: no link counts, no log. */
int dir_insert(struct fs *fs, uint32_t dir, const char *name, uint32_t ino, mode_t type) must_check;
int dir_delete(struct fs *fs, uint32_t dir, const char *name) must_check;

struct owner {
	uid_t uid;
	gid_t gid;
};
int dir_make(struct fs *fs, uint32_t dir, const char *name, mode_t mode, dev_t rdev,
	     struct owner owner, uint32_t *out) must_check;
int dir_symlink(struct fs *fs, uint32_t dir, const char *name, const char *target,
		struct owner owner, uint32_t *out) must_check;
int dir_link(struct fs *fs, uint32_t ino, uint32_t dir, const char *name) must_check;
int dir_unlink(struct fs *fs, uint32_t dir, const char *name) must_check;
int dir_rmdir(struct fs *fs, uint32_t dir, const char *name) must_check;
int dir_rename(struct fs *fs, uint32_t dir, const char *name, uint32_t new_dir,
	       const char *new_name, unsigned flags) must_check;

/* journal.c */
uint32_t journal_limit(const struct fs *fs); /* blocks of metadata in a transaction */
int journal_write_data(struct fs *fs) must_check;
int journal_commit(struct fs *fs) must_check;
int journal_checkpoint(struct fs *fs) must_check;
int journal_replay(struct fs *fs, unsigned *n) must_check;

/* fastlog.c */
void log_name_added(struct fs *fs, const struct name_change *c);
void log_name_removed(struct fs *fs, const struct name_change *c);
void log_forget(struct fs *fs); /* a commit has made it void */
/* Makes everything durable through the log; -ENOSPC if it does not fit. */
int log_write(struct fs *fs, uint32_t synced) must_check;
int log_replay(struct fs *fs, unsigned *n) must_check;

/* check.c: what is wrong goes to `out`, one line each; returns how many there are. */
unsigned check_all(struct fs *fs, FILE *out);
/* The bitmap and the block counts from what the inodes hold. */
int check_rebuild_bitmap(struct fs *fs) must_check;
/* Frees inodes without a name; with `links`, counts names first. */
int check_orphans(struct fs *fs, bool links, unsigned *n) must_check;

#endif
