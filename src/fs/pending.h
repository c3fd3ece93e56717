/* SPDX-License-Identifier: MIT */
/*
 * pending.h - the log of operations on names and attributes that a power cut may still undo.
 *
 * The log has operations in the order in which they took effect. Two operations conflict if they
 * concern the same name in the same directory, the same attribute of the same inode, if one makes
 * or removes the directory that the other needs, or if both move a directory from one parent to
 * another: the second of two such moves alone could put a directory below itself.
 *
 * P1: if an operation is durable, so is every earlier one that it conflicts with. So a chosen
 *     operation can be done to what is durable as soon as the chosen ones before it are done, and
 *     those left can be undone in reverse order.
 * P2: the cost of adding an operation, and of making one durable, does not depend on the others.
 *
 * The caller does and undoes operations, by its data in `undo`; the log does not look at it. Not
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
	PENDING_REMOVE, /* unlink, rmdir: removes the name of `ino` in slot 0 */
	PENDING_RENAME, /* `ino` from slot 0 to slot 1; `other` was there, or 0 */
	PENDING_SWAP,	/* RENAME_EXCHANGE: `ino` in slot 0 and `other` in slot 1 */
	PENDING_ATTR,	/* mode, owner, times of `ino` */
	PENDING_XATTR,	/* the attribute `xattr` of `ino` */
};

struct pending_slot {
	uint64_t dir; /* a directory's inode number */
	const char *name;
};

struct pending_op {
	enum pending_kind kind;
	bool is_dir; /* `ino` is a directory */
	uint64_t ino;
	uint64_t other;
	struct pending_slot slot[2];
	const char *xattr;
	uint64_t number; /* the operation's number in its mount */
	uint64_t time_ns;
	void *undo; /* the caller's data */
};

struct pending;

struct pending *pending_new(const struct profile *p);
void pending_free(struct pending *l); /* nothing must be pending */

/*
 * Adds an operation, which is copied with its strings. With a profile whose metadata is durable at
 * once, no operation may be added.
 */
void pending_add(struct pending *l, const struct pending_op *op);

/* Takes the settled operations, one after the other: durable, or undone. */
typedef void (*pending_fn)(void *ctx, const struct pending_op *op);

/*
 * Performs a sync of `ino`. `has_data`: it has unsynced data or size (under PROFILE_ALL a sync with
 * nothing to do has no effect; a `data_only` one needs data, or a new file). The operations that
 * become durable leave the log, in order, each with a call of `durable`, which must not use the log
 * and may be NULL.
 */
void pending_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only, bool has_data,
		  pending_fn durable, void *ctx);
/* Makes all operations durable. */
void pending_sync_all(struct pending *l, pending_fn durable, void *ctx);
/*
 * Performs a power cut: operations for which `keep` is true become durable, with all that they need
 * (P1), and all before them if the profile is in_order; in order. Then all others are undone in
 * reverse order, and the log is empty. `keep` NULL: no operation survives.
 */
void pending_cut(struct pending *l, bool (*keep)(void *ctx, const struct pending_op *op),
		 pending_fn durable, pending_fn undo, void *ctx);

/*
 * A sync or a power cut in steps, for a caller whose own steps may fail. Operations are chosen,
 * always with all that they need, and listed in order; then they are settled, or the choice is
 * taken back without an effect. Between these steps no operation may be added.
 */

/* Chooses the operations that a sync makes durable, as pending_sync(). Returns their number. */
size_t pending_choose_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only,
			   bool has_data);
size_t pending_choose_all(struct pending *l);
/* Chooses the operations that survive a power cut; as pending_cut(). */
size_t pending_choose_kept(struct pending *l, bool (*keep)(void *ctx, const struct pending_op *op),
			   void *ctx);
/*
 * Chooses operations on attributes of `ino`, whose last name is gone for good, and which is not
 * open. Such attributes cannot come back, and another file may get the number.
 */
size_t pending_choose_gone(struct pending *l, uint64_t ino);
void pending_each_chosen(const struct pending *l, pending_fn fn, void *ctx);
/* Takes back the choice of all but the first `n`; these have all that they need. */
void pending_unchoose(struct pending *l, size_t n);
void pending_settle_chosen(struct pending *l, pending_fn durable, void *ctx);
/* Undoes all remaining operations, in reverse order. */
void pending_undo_all(struct pending *l, pending_fn undo, void *ctx);

/*
 * Under PROFILE_ALL: true if a sync of `ino` commits the journal, and so makes all operations
 * durable, if there are any.
 */
bool pending_commits(const struct pending *l, uint64_t ino, bool is_dir, bool data_only,
		     bool has_data);

/*
 * Calls `need` for each pending operation that the newest one needs directly; under a profile that
 * is in_order, also for the one before it.
 */
void pending_needs(const struct pending *l, pending_fn need, void *ctx);

/* True if an operation on this inode (attributes, names, entries of a directory) is pending. */
bool pending_of(const struct pending *l, uint64_t ino);
size_t pending_count(const struct pending *l);
/* Calls back for each, in order; a non-zero return ends the calls and is returned. */
int pending_each(const struct pending *l, int (*fn)(void *ctx, const struct pending_op *op),
		 void *ctx);

#endif
