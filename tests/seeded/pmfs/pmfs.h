/* SPDX-License-Identifier: MIT */
/*
 * pmfs.h - a file system on persistent memory, whose bugs are known.
 *
 * Blocks of 512 bytes:
 *
 *	0	superblock: struct super
 *	1	journal: the number of records, then from byte 64 on a record in each 128 bytes
 *	2	truncate list: an inode (0: none) and the size it gets
 *	3-6	inodes, 64 bytes each; inode 0 is the root directory
 *	7-10	their replicas
 *	11-	log blocks and data
 *
 * I1: an inode and its replica have a checksum each. One is changed, flushed and fenced before
 *     the other is begun, so one of them is always whole; if both are, the inode counts.
 * I2: all that an inode says of its names or data is in its log, from `head` to `tail`. An entry
 *     is durable before a tail covers it; blocks that a durable tail reaches are never
 *     overwritten, but for bytes behind the end of the file. Those may be anything: whoever
 *     moves the end makes them zeros first.
 * I3: what changes several inodes goes through the journal: records, fence, their number, fence,
 *     the inodes, fence, no number.
 * I4: a truncate happens when it is in the truncate list, and stays there until it is done.
 * I5: an inode is in use if a name leads to it. One that no name leads to is free, whatever it
 *     holds.
 * I6: free blocks, free inodes, names and block maps are only in ordinary memory, and made again
 *     by recovery.
 *
 * Every operation is durable when it returns, and atomic, data included.
 */
#ifndef PMFS_H
#define PMFS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "bugs.h"
#include "pm.h"

enum {
	BLOCK = 512,
	POOL_BLOCKS = 128,
	POOL_SIZE = BLOCK * POOL_BLOCKS,
	BLOCK_SUPER = 0,
	BLOCK_JOURNAL = 1,
	BLOCK_TRUNCATE = 2,
	BLOCK_INODES = 3,
	BLOCK_REPLICAS = 7,
	BLOCK_FIRST = 11, /* that can be free */
	N_INODES = 32,
	FILE_BLOCKS = 64, /* of the longest file */
	JOURNAL_MAX = 3,
	RECORD_SIZE = 128,
	LOG_HEAD = 64, /* bytes of a log block before its entries */
	ENTRY = 64,    /* or twice that, for a long name */
	NAME_LEN_MAX = 2 * ENTRY - 8,
};

#define SUPER_MAGIC 0x31736670676174ffull
#define LOG_MAGIC   0x6b6c62676f6c66ffull

struct super {
	uint64_t magic, size;
	uint64_t inodes; /* so many were ever in use; no others are looked at */
	uint64_t sum;	 /* of magic and size */
};

enum inode_type { INODE_FREE, INODE_FILE, INODE_DIR, INODE_SYMLINK };

struct inode {
	uint8_t type, pad;
	uint16_t mode;
	uint32_t nlink; /* names; of a directory it is not kept */
	uint64_t head, tail;
	uint64_t generation; /* so that two uses of an inode differ */
	uint64_t reserved[3];
	uint64_t sum;
};

struct log_head {
	uint64_t magic, next; /* a block's number; valid if the tail is further */
};

enum entry_type { ENTRY_ADD = 1, ENTRY_DEL, ENTRY_WRITE, ENTRY_SIZE, ENTRY_PAD };

struct entry {
	uint8_t type, lines;
	uint16_t name_len;
	uint32_t ino;
	union {
		char name[NAME_LEN_MAX];
		struct {
			uint64_t size;
			uint32_t from, n; /* blocks of the file */
			uint32_t block;	  /* where they are */
		};
	};
};

struct record {
	uint64_t ino;
	struct inode inode;
};

/* What is only in ordinary memory. */
struct name {
	char text[NAME_LEN_MAX + 1];
	uint32_t ino;
};

struct node {
	bool used;	 /* a name leads to it */
	struct inode in; /* as it is in the memory */
	uint64_t size;
	uint32_t map[FILE_BLOCKS]; /* 0: a hole */
	struct vec_of(struct name) names;
};

struct pmfs {
	struct pm m;
	uint64_t bugs;
	bool keeps_list; /* recovery leaves a truncate on its list, as it is to write nothing */
	struct node node[N_INODES];
	bool has_free_list;
	bool in_use[POOL_BLOCKS];
	uint64_t inodes; /* as in the superblock */
	unsigned salt;	 /* of what the next write writes */
};

static inline bool has_bug(const struct pmfs *fs, enum bug bug)
{
	return fs->bugs >> bug & 1;
}

/* fs.c: the file system as a whole. The memory is the caller's. */
void pmfs_init(struct pmfs *fs, unsigned char *memory, uint64_t bugs);
void pmfs_release(struct pmfs *fs);
void pmfs_mkfs(struct pmfs *fs);
int pmfs_recover(struct pmfs *fs, struct err *err) must_check;

/* store.c: inodes, logs, blocks. */
struct change {
	struct pmfs *fs;
	size_t n;
	uint32_t ino[JOURNAL_MAX];
	struct inode to[JOURNAL_MAX];
};

uint64_t inode_sum(const struct inode *in);
uint64_t super_sum(const struct super *s);
void inode_write(struct pmfs *fs, uint32_t ino, const struct inode *to, bool flush);
/* What the inode will be; the same one for the same number. */
struct inode *change_inode(struct change *c, uint32_t ino);
/* All inodes of a change, at once. */
void change_commit(struct change *c);
/* Adds an entry behind the tail, and moves the tail of the change over it. -ENOSPC. */
int change_log(struct change *c, uint32_t ino, struct entry *e) must_check;
int change_name(struct change *c, uint32_t dir, enum entry_type type, const char *name,
		uint32_t ino) must_check;
/* The address of a run of free blocks that are now in use; 0: there is none. */
uint32_t block_alloc(struct pmfs *fs, uint32_t n);
int block_free(struct pmfs *fs, uint32_t block, struct err *err) must_check;
void put_journal_clear(struct pmfs *fs);

/* index.c: from a log to what is in ordinary memory. */
int index_inode(struct pmfs *fs, uint32_t ino, struct err *err) must_check;
void index_apply(struct node *n, const struct entry *e);
int index_claim(struct pmfs *fs, uint32_t ino, struct err *err) must_check;
/* The next entry of a log at *at; 1, 0 at the end, or -errno. */
int log_next(struct pmfs *fs, uint32_t ino, const struct inode *in, uint64_t *at, struct entry *e,
	     struct err *err) must_check;

/* ops.c: 0 or -errno, as the system calls do. */
int pmfs_creat(struct pmfs *fs, const char *path) must_check;
int pmfs_mkdir(struct pmfs *fs, const char *path) must_check;
int pmfs_symlink(struct pmfs *fs, const char *target, const char *path) must_check;
int pmfs_link(struct pmfs *fs, const char *old, const char *path) must_check;
int pmfs_unlink(struct pmfs *fs, const char *path) must_check;
int pmfs_rmdir(struct pmfs *fs, const char *path) must_check;
int pmfs_rename(struct pmfs *fs, const char *old, const char *path) must_check;
int pmfs_chmod(struct pmfs *fs, const char *path, unsigned mode) must_check;
/* data.c */
int file_write(struct pmfs *fs, uint32_t ino, uint64_t off, const void *data, uint64_t len,
	       bool cached) must_check;
int pmfs_write(struct pmfs *fs, const char *path, uint64_t off, uint64_t len) must_check;
int pmfs_append(struct pmfs *fs, const char *path, uint64_t len) must_check;
int pmfs_truncate(struct pmfs *fs, const char *path, uint64_t size) must_check;
int pmfs_falloc(struct pmfs *fs, const char *path, bool keep, uint64_t off, uint64_t len)
	must_check;
int file_truncate(struct pmfs *fs, uint32_t ino, uint64_t size, struct err *err) must_check;
/* Ends a truncate: zeros behind the end, and off the list. */
void truncate_finish(struct pmfs *fs, uint32_t ino);
void file_read(struct pmfs *fs, uint32_t ino, unsigned char *out); /* all of it */

int path_find(struct pmfs *fs, const char *path, uint32_t *ino) must_check;

/* dump.c: the tree as text, a line for each name, sorted. */
void pmfs_dump(struct pmfs *fs, struct strbuf *out);
/* Whether each file has as many names as it counts. */
int pmfs_check_links(struct pmfs *fs, struct err *err) must_check;
/* Whether everything can be removed, and something made; the tree is gone then. */
int pmfs_use(struct pmfs *fs, struct err *err) must_check;

/* script.c: one operation; `number` is for its marks. Fails if it is none; `*result` is its own. */
int script_run_line(struct pmfs *fs, const char *line, unsigned number, int *result,
		    struct err *err) must_check;

#endif
