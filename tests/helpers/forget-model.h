/* SPDX-License-Identifier: MIT */
/*
 * forget-model.h - a model of the mount that forgets: what is there, and what a power cut leaves.
 *
 * Written from doc/profiles.md, and in another way than the mount: there is a live and a durable
 * state side by side, and a list of operations that are in the first and not yet in the second. A
 * sync carries some of them over (the mount instead undoes the others when the power fails). All of
 * it is searched from end to end: it is small.
 *
 * A directory has a few names only, "n0" and so on, so that operations meet. What belongs to a
 * thread's directory is changed by that thread; what is durable may be changed by any, under the
 * model's lock.
 */
#ifndef FORGET_MODEL_H
#define FORGET_MODEL_H

#include <pthread.h>
#include <time.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "fs/profile.h"

enum { LIVE, DURABLE, STATES };

enum {
	NAMES = 6,    /* of a directory */
	XATTRS = 3,   /* of an inode */
	VALUE = 24,   /* bytes of one */
	BLOCK = 4096, /* what the mount's cache holds is in blocks */
	BLOCKS = 12,
	FILE_MAX = BLOCK * BLOCKS,
};

#define NO_CUT UINT32_MAX

struct attr {
	unsigned mode, uid, gid;
	bool mtime_known; /* it was set, and nothing was written since */
	time_t mtime;
};

struct value {
	int len; /* -1: none */
	char bytes[VALUE];
};

enum block_is { BLOCK_SAME, BLOCK_WRITTEN, BLOCK_TAKEN_FOR_CLEAN };

struct data {
	unsigned char *bytes[STATES]; /* FILE_MAX; zeros behind the size */
	uint32_t size[STATES];
	unsigned char block[BLOCKS]; /* enum block_is */
	/* What a truncation took away of the durable bytes and is not durable itself; or NO_CUT. */
	uint32_t cut;
	unsigned char *zeroed; /* the same for holes, a byte for each */
	bool size_set;	       /* by a truncation or allocation */
	uint32_t set_size;
	bool emptied;	/* truncated to nothing since it was last written out or closed */
	bool with_next; /* its data comes with the next metadata */
	bool sized;	/* metadata that becomes durable includes its size */
	/* It lost its last name while its making waited: who closes it last may lose its data. */
	bool may_go;
	unsigned char *without; /* after a loss: what it holds if that was so; or NULL */
	uint32_t size_without;
};

struct inode {
	unsigned number;
	mode_t type;
	struct attr attr[STATES];
	struct value xattr[STATES][XATTRS];
	struct inode *entry[STATES][NAMES]; /* of a directory */
	struct data data;		    /* of a file */
	char target[32];		    /* of a symbolic link */
	unsigned opens;
};

enum change_kind { MAKE, LINK, REMOVE, RENAME, SWAP, ATTR, XATTR };

struct slot {
	struct inode *dir;
	int name;
};

struct change {
	enum change_kind kind;
	struct inode *ino, *other;
	struct slot slot[2];
	int xattr;
	struct attr attr;
	struct value value;
	bool chosen;
};

struct model {
	const struct profile *profile;
	pthread_mutex_t lock; /* what is durable, and the changes */
	struct vec_of(struct inode *) inodes;
	struct vec_of(struct change) changes; /* in order */
	struct inode *root;
	unsigned next;
};

void model_init(struct model *m, const struct profile *p);
void model_release(struct model *m);
/* A copy of what is durable, in which everything is as durable. */
void model_snapshot(struct model *m, struct model *out);

/* ---- changes; the model's lock must be held for these ---- */

struct inode *model_inode(struct model *m, mode_t type, unsigned mode);
void model_make(struct model *m, struct inode *dir, int name, struct inode *ino);
void model_link(struct model *m, struct inode *dir, int name, struct inode *ino);
void model_remove(struct model *m, struct inode *dir, int name);
void model_rename(struct model *m, struct inode *dir, int name, struct inode *dir2, int name2);
void model_swap(struct model *m, struct inode *dir, int name, struct inode *dir2, int name2);
void model_attr(struct model *m, struct inode *ino, const struct attr *a);
void model_xattr(struct model *m, struct inode *ino, int which, const struct value *v);

void model_write(struct model *m, struct inode *ino, const void *bytes, uint32_t off, uint32_t len);
void model_truncate(struct model *m, struct inode *ino, uint32_t size);
/* Space, without zeros where something is. */
void model_allocate(struct model *m, struct inode *ino, uint32_t end, bool keep);
void model_zero(struct model *m, struct inode *ino, uint32_t off, uint32_t len, bool keep);
/* These bytes are durable, and no others; `off` and `len` of what is live. */
void model_durable_bytes(struct inode *ino, uint32_t off, uint32_t len);
/* A descriptor of it was closed. */
void model_closed(struct model *m, struct inode *ino);

/*
 * Whether a sync of data alone, after a write of these bytes (`len` may be 0), needs metadata and
 * so commits all of it: for a size, a hole, or for new space. Of a block that is durable and holds
 * nothing but zeros the model cannot know whether it has space.
 */
enum model_commits { COMMITS_NOT, COMMITS, COMMITS_PERHAPS };
enum model_commits model_data_commits(const struct inode *ino, uint32_t off, uint32_t len);
/* fsync, or fdatasync; for the latter the answer above must be known */
void model_sync(struct model *m, struct inode *ino, bool data_only);
/* The data alone, as a kernel that writes back in the background. */
void model_write_back(struct inode *ino);
void model_sync_all(struct model *m);
/* A sync that failed, and what was to be written is taken for clean. */
void model_fail(struct inode *ino);

enum model_survive { SURVIVE_NONE, SURVIVE_DATA, SURVIVE_METADATA };
void model_lose(struct model *m, enum model_survive what);
/* Of a file that may have lost its data: this is what it holds now, and whether it may. */
void model_seen(struct model *m, const struct inode *ino, const void *bytes, uint32_t size);

/* ---- questions ---- */

unsigned model_links(const struct model *m, const struct inode *ino); /* live names */
bool model_is_empty(const struct inode *dir);
/* Whether it is `dir`, or below it. */
bool model_is_below(const struct inode *dir, const struct inode *ino);

#endif
