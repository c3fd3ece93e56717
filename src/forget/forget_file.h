/* SPDX-License-Identifier: MIT */
/*
 * forget_file.h - the data of a file: what is durable, in ROOT's file, and what is newer, in
 * memory.
 *
 * D1: ROOT's file changes only by a sync, by a rule of the profile, or by a fault that says so.
 * D2: a file without data in memory is read from its file in ROOT, by splicing.
 * D3: the base of a page file is ROOT's file, or, for an unmade node, `shadow`, the data that is
 *     durable as soon as the file has a name. The base changes under the data lock, and only
 *     between two with the same content.
 */
#ifndef FORGET_FORGET_FILE_H
#define FORGET_FORGET_FILE_H

#include <stdatomic.h>

#include "base/vec.h"
#include "forget/forget_tree.h"
#include "fs/pagecache.h"

enum { DATA_LOCKS = 256 };

/* A place in a ring of files; under the tree lock. */
struct file_link {
	struct node_file *prev, *next; /* NULL: not in it */
};

/* Data lock, all of it. Exists while a program has the file open, or something is not durable. */
struct node_file {
	struct forget *f;
	struct node *n;
	int fd;		    /* ROOT's file, or -1 */
	bool reads, writes; /* the access rights of `fd` */
	bool held;	    /* the file has no name in ROOT: `fd` stays */
	unsigned users;	    /* requests reading from it without the lock */
	unsigned opens;
	struct pagefile *pf;	       /* NULL: nothing is newer than the base */
	struct pagefile *shadow;       /* the base of an unmade node; NULL: empty */
	struct file_link dirty, sized; /* in the rings of files with `pf`, and with `sized` */
	bool times;		       /* the times below are newer than the base's */
	struct timespec mtime, ctime;
	uint64_t touched;   /* the last operation that set `mtime` */
	bool was_truncated; /* truncated to nothing since it was last written out or closed */
	bool flush;	    /* its data becomes durable with the next metadata */
	/*
	 * If its size or holes changed, and metadata that becomes durable includes these: the first
	 * and last operation that changed them.
	 */
	bool is_sized;
	uint64_t size_first, size_last;
	unsigned setid; /* set-id bits that a write may remove */
	/*
	 * A range of ROOT's file without holes. To find the next hole, ROOT's file system may have
	 * to look at all of the file before it. No other process makes holes.
	 */
	uint64_t solid, solid_end;
};

struct owned_lock *forget_data_lock(struct forget *f, const struct node *n);
#define auto_data(f, n) auto_owned(forget_data_lock(f, n))

/* ---- forget_file.c; the data lock is held for all of these, unless they say so ---- */

/* Returns what the node has, made if it has none. */
struct node_file *forget_file(struct forget *f, struct node *n);
/*
 * Returns a descriptor of ROOT's file, for reading or for writing; or -errno. If its mode does not
 * let the server in, the owner gets the right for a moment: the kernel has checked every program.
 */
int forget_file_fd(struct node_file *x, bool write) must_check;
/*
 * Called before the last known name in ROOT goes. A file that is open, or has data that another
 * name will show, is kept open, if there is room. Returns 1 if the file will get a name again: then
 * its data is copied, and forget_file_unmade() follows. Or -errno.
 */
int forget_file_hold(struct forget *f, struct node *n) must_check;
void forget_file_unmade(struct node_file *x, bool gone);
/* Closes an unused descriptor if descriptors run short. */
void forget_file_trim(struct node_file *x);
/* Makes `pf`. */
int forget_file_pages(struct node_file *x) must_check;
int64_t forget_file_read(struct node_file *x, void *data, uint64_t offset, size_t len) must_check;
int forget_file_truncate(struct node_file *x, uint64_t size, uint64_t number) must_check;
/* Notes that operation `number` changed the size, which metadata that becomes durable includes. */
void forget_file_mark_sized(struct node_file *x, uint64_t number);
void forget_file_touch(struct node_file *x, uint64_t number); /* sets the times to now */
/* Sets the times again after a write to ROOT's file, or a resize, changed them. */
int forget_file_keep_times(struct node_file *x) must_check;
/* Makes the content durable, with its times: in ROOT, or ready for it. */
int forget_file_sync(struct node_file *x) must_check;
/* Makes durable what metadata includes: a size that was set, holes; not the content. */
int forget_file_sync_size(struct node_file *x) must_check;
bool forget_file_is_dirty(const struct node_file *x); /* NULL is fine */
/* True if a sync of its data needs new metadata: a size, or space for a hole. */
bool forget_file_needs_metadata(struct node_file *x);
/* True if the base has a hole at these bytes, or ends before them. */
bool forget_file_needs_space(struct node_file *x, const struct pagefile_risk *r);
/* Loses the data that is not durable. */
void forget_file_drop(struct node_file *x);
/* Frees what is not needed any more; `x` may be gone then. */
void forget_file_idle(struct forget *f, struct node *n);
/* Writes the data that waits for a name to ROOT's new file `fd`. */
int forget_file_write_shadow(struct node_file *x, int fd) must_check;
/* The node is in ROOT now: the base is ROOT's file. Takes the descriptor, or -1. */
void forget_file_made(struct node_file *x, int fd);
/* Does the same as lseek with SEEK_DATA or SEEK_HOLE. */
int64_t forget_file_seek(struct node_file *x, uint64_t offset, int whence) must_check;
/* The size and times that programs see. */
void forget_file_overlay(struct node_file *x, struct stat *st);

/* ---- these take the data lock ---- */

void forget_file_let_go(struct forget *f, struct node *n); /* forget_file_idle() */
/* Frees all, of a node that is not in use. */
void forget_file_release(struct forget *f, struct node *n);
/* Frees the data of a file that was made and removed, neither of which is durable. */
void forget_file_forget_removed(struct forget *f, struct node *n);
/* Makes sizes durable, as metadata. A size that cannot be written still waits. */
int forget_file_sync_sizes(struct forget *f) must_check;
/* The first change of a size that waits, or UINT64_MAX. */
uint64_t forget_file_first_size(struct forget *f);
/*
 * A walk over all nodes with data in memory, or over those whose size waits for metadata. Each node
 * has a reference until the next one is taken; a walk must go to its end:
 *
 *	auto_vec struct node_walk walk = forget_file_dirty(f);
 *	for (struct node *n; (n = node_next(&walk));) ...
 */
struct node_walk {
	struct vec_of(struct node *) list;
	size_t next;
	struct node *at;
	struct forget *f;
};
struct node_walk forget_file_dirty(struct forget *f);
struct node_walk forget_file_sized(struct forget *f);
struct node *node_next(struct node_walk *w);

#endif
