/* SPDX-License-Identifier: MIT */
/*
 * pending.h - operations on names and attributes that a power cut may still undo.
 *
 * A log in the order in which they took effect. Two operations conflict if they concern the same
 * name in the same directory, the same attribute of the same inode, if one makes or removes the
 * directory that the other needs, or if both move a directory from one parent to another: of two
 * such moves the second alone could put a directory below itself.
 *
 * P1: if an operation is durable, so is every earlier one that it conflicts with. The pending
 *     operations can therefore be undone in reverse order, whatever became durable in between.
 * P2: adding, and each operation that becomes durable, costs the same whatever else is pending.
 *
 * The log knows nothing of how an operation is undone: that is the caller's, in `undo`. Not
 * thread-safe: the caller has a lock.
 */
#ifndef FS_PENDING_H
#define FS_PENDING_H

#include <stdint.h>

#include "base/vec.h"
#include "fs/profile.h"

enum pending_kind {
	PENDING_MAKE,	/* create, mknod, mkdir, symlink: `ino` gets the name in slot 0 */
	PENDING_LINK,	/* another name, slot 0, for `ino` */
	PENDING_REMOVE, /* unlink, rmdir: the name in slot 0 of `ino` goes */
	PENDING_RENAME, /* `ino` from slot 0 to slot 1, where `other` was, or 0 */
	PENDING_SWAP,	/* RENAME_EXCHANGE: `ino` in slot 0 and `other` in slot 1 */
	PENDING_ATTR,	/* mode, owner, times of `ino` */
	PENDING_XATTR,	/* the attribute `xattr` of `ino` */
};

struct pending_slot {
	uint64_t dir; /* an inode's number */
	const char *name;
};

struct pending_op {
	enum pending_kind kind;
	bool is_dir; /* `ino` is a directory */
	uint64_t ino;
	uint64_t other;
	struct pending_slot slot[2];
	const char *xattr;
	uint64_t number; /* of the operation in its mount */
	uint64_t time_ns;
	void *undo; /* the caller's */
};

struct pending;

struct pending *pending_new(const struct profile *p);
void pending_free(struct pending *l); /* nothing must be pending */

/*
 * Adds an operation, which is copied with its strings. With a profile whose metadata is durable at
 * once nothing must be added.
 */
void pending_add(struct pending *l, const struct pending_op *op);

/* Takes the settled operations, one after the other: durable, or undone. */
typedef void (*pending_fn)(void *ctx, const struct pending_op *op);

/*
 * A sync of `ino`, which has unsynced data or size or not (it decides if a sync does anything under
 * PROFILE_ALL; a `data_only` one needs data, or a file that is new). The operations that become
 * durable leave the log, in order, each with a call of `durable`, which must not use the log and
 * may be NULL.
 */
void pending_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only, bool has_data,
		  pending_fn durable, void *ctx);
/* The same for everything. */
void pending_sync_all(struct pending *l, pending_fn durable, void *ctx);
/*
 * The operations that `keep` says shall survive become durable, with all they need (P1), and all
 * before them if the profile is in_order; in order. Then the rest is undone in reverse order, and
 * the log is empty. NULL: nothing survives.
 */
void pending_cut(struct pending *l, bool (*keep)(void *ctx, const struct pending_op *op),
		 pending_fn durable, pending_fn undo, void *ctx);

/*
 * The same in steps, for a caller with something to do first that may fail. Something is chosen,
 * always with all that it needs, and told in order; then either it is settled, or the choice is
 * taken back, and nothing has happened. Between these steps nothing may be added.
 */

/* Chooses the operations that a sync makes durable; as pending_sync(). Gives how many. */
size_t pending_choose_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only,
			   bool has_data);
size_t pending_choose_all(struct pending *l);
/* Chooses the operations that survive a power cut; as pending_cut(). */
size_t pending_choose_kept(struct pending *l, bool (*keep)(void *ctx, const struct pending_op *op),
			   void *ctx);
/*
 * The same for attributes of `ino`: its last name is gone for good, and the file is not open. Such
 * attributes cannot come back, and the number may be given to another file.
 */
size_t pending_choose_gone(struct pending *l, uint64_t ino);
void pending_each_chosen(const struct pending *l, pending_fn fn, void *ctx);
/* All but the first `n` are not chosen any more; the ones left have all they need. */
void pending_unchoose(struct pending *l, size_t n);
void pending_settle_chosen(struct pending *l, pending_fn durable, void *ctx);
/* All that is left is undone, in reverse order. */
void pending_undo_all(struct pending *l, pending_fn undo, void *ctx);

/*
 * Under PROFILE_ALL, whether a sync of this commits; the operations that it would bring are all
 * that there are, perhaps none.
 */
bool pending_commits(const struct pending *l, uint64_t ino, bool is_dir, bool data_only,
		     bool has_data);

/*
 * The pending operations that the newest operation cannot be durable without: each that it needs
 * directly. Under a profile that is in_order that is the one before it as well.
 */
void pending_needs(const struct pending *l, pending_fn need, void *ctx);

/* Whether anything of this inode (attributes, names of it; of a directory also entries) waits. */
bool pending_of(const struct pending *l, uint64_t ino);
size_t pending_count(const struct pending *l);
/* In order; a non-zero return ends it and is given back. */
int pending_each(const struct pending *l, int (*fn)(void *ctx, const struct pending_op *op),
		 void *ctx);

#endif
