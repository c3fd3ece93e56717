/* SPDX-License-Identifier: MIT */
/* persisted_impl.h - declarations for the parts of check_persisted(). */
#ifndef CHECK_PERSISTED_IMPL_H
#define CHECK_PERSISTED_IMPL_H

#include "check/check.h"

/*
 * Remembers the last comparison: all names of one file are compared with the same inode, and it
 * takes time to go through all states of that.
 */
struct comparison_memo {
	bool may_skip;			/* no command: problems do not depend on the path (P5) */
	const struct tree_entry *clean; /* had no problems as `clean_ino` */
	uint64_t clean_ino;
	uint64_t lapsed_ino; /* 0: none */
	bool lapsed;
};

/* One comparison: the problems of one inode at one path. */
struct comparison {
	const struct promises *p;
	const struct tree *seen;
	const struct check_blocks_list *blocks;
	struct findings *out;
	struct comparison_memo *memo;
};

static inline const struct reffs_inode *inode_in(const struct promises *p, size_t state,
						 uint64_t ino)
{
	op_names_work++;
	return reffs_inode(p->h->states.v[state], ino);
}

static inline size_t state_of(const struct promise *x)
{
	return x ? x->state : 0;
}

/* Adds a finding, unless a command of several parts may be the cause (P5). Takes the words. */
void persisted_report(struct comparison *c, enum finding_kind kind, const char *path,
		      const struct promise *why, struct strbuf *words);

/* A set of values that one attribute had; few, so a list will do. */
struct values {
	uint64_t v[64];
	size_t n;
};

void values_add(struct values *set, uint64_t v);
bool values_has(const struct values *set, uint64_t v);

/* Reports the differences between the entry and this inode. */
void persisted_inode(struct comparison *c, const struct tree_entry *e, uint64_t ino,
		     const struct reffs_attr *attr);

void persisted_path(struct comparison *c, const char *path);
/* True if a missing directory above the path was reported already. */
bool persisted_below_missing(const struct comparison *c, const char *path);
bool persisted_was_ever(const struct promises *p, const char *path);
/* The inodes that may be at a path that no state had, but parts of several states give. */
struct values persisted_composed_at(const struct promises *p, const char *path);

/* Check that an inode that had to exist has one of its names, ... */
void persisted_lost(struct comparison *c, uint64_t ino);
/* ... and no more of them than it ever had at once. */
void persisted_both(struct comparison *c, uint64_t ino);
/* Checks that a file's link count is the number of its names. */
void persisted_nlink(struct comparison *c, const struct tree_entry *e, uint64_t names);

#endif
