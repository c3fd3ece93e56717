/* SPDX-License-Identifier: MIT */
/*
 * forget_redo.h - the log of changes of names and attributes that wait for a sync (fs/pending), and
 * how one of them is done in ROOT.
 *
 * R1: a change is live before it is in the log, and it is done in ROOT when a sync has chosen it,
 *     after all that it needs (P1 of pending.h). In each directory ROOT then has the names that
 *     the change found there.
 * R2: the chosen changes are done in order, one after the other. If one cannot be done, those
 *     before it are durable, and the others still wait.
 * R3: data that a change brings along is written before the change is done.
 *
 * A profile whose metadata is durable at once, and a file system mounted below ROOT, have no log: a
 * change is done in ROOT first, and then live and durable in one step.
 */
#ifndef FORGET_FORGET_REDO_H
#define FORGET_FORGET_REDO_H

#include "forget/forget_tree.h"
#include "fs/pending.h"

struct redo {
	enum pending_kind kind;
	uint64_t number;
	struct timespec time;
	struct node *node, *other; /* with references */
	struct node_name *slot[2];
	unsigned sets;	    /* of PENDING_ATTR: what it sets of `looks` */
	struct looks looks; /* with all of mode and owner */
	char *xattr;
	struct blob *value; /* of PENDING_XATTR; NULL: it is removed */
	mode_t umask;	    /* of PENDING_MAKE that does not wait */
};

struct told_list;

void forget_redo_open(struct forget *f);
void forget_redo_close(struct forget *f);

/* ---- with the log lock ---- */

/* True if changes of this directory, or of this inode, wait. */
bool forget_redo_waits(const struct forget *f, const struct node *n);
/*
 * Does the change live, and adds it to the log; or does it in ROOT and live at once. Takes
 * `xattr` and `value`, also on failure; the nodes and names must stay meanwhile.
 */
int forget_redo_do(struct forget *f, struct redo *r) must_check;
/* Does fsync of a node whose data is durable already. */
int forget_redo_sync(struct forget *f, struct node *n, bool data_only, bool had_data) must_check;
/* Makes all changes durable. On failure some may be durable, in order. */
int forget_redo_sync_all(struct forget *f) must_check;
/* Called if ROOT is full. Returns 0 if something became durable: then try again. */
int forget_redo_make_room(struct forget *f) must_check;
/* Forgets the changes that wait; those survive for which `keep` is true, as in pending.h. */
void forget_redo_cut(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op),
		     void *ctx, struct told_list *told);
size_t forget_redo_count(struct forget *f);

#endif
