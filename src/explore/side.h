/* SPDX-License-Identifier: MIT */
/*
 * side.h - one of the file systems that are compared: it performs steps of an alphabet, shows its
 * state, and can be put back to a state it was in before.
 *
 * "reffs" is the reference file system in this process; any target of target.h can be a side as
 * well. Tests register more: reference file systems with known bugs.
 *
 * A side belongs to one process. To add one, fill in struct side_ops; side_reffs.c is the smallest.
 */
#ifndef EXPLORE_SIDE_H
#define EXPLORE_SIDE_H

#include "check/finding.h"
#include "explore/differences.h"
#include "explore/inputs.h"
#include "target/target.h"
#include "tree/tree.h"

struct side;
struct side_state; /* a saved state; each kind of side has its own */

enum strategy {
	STRATEGY_SYNC,	  /* save while mounted, mount again only to go back */
	STRATEGY_REMOUNT, /* unmount and mount around every operation, as Metis does */
};

struct side_opts {
	struct target_opts target;
	const struct target_opts *references; /* by their place, from 1; NULL: nothing is said */
	enum strategy strategy;
	const struct differences *relative_to; /* reffs: behaves like that file system; or NULL */
};

struct side_counts {
	uint64_t saves, restores, mounts;
};

struct side_ops {
	const char *name;
	const char *help;
	int (*open)(struct side *s, const struct side_opts *opts, struct err *err);
	void (*close)(struct side *s); /* accepts a half-built side */
	/* From now on operations are those of `w`, as it is now; nothing is open. */
	void (*begin)(struct side *s, const struct workload *w);
	/* Performs operation `i`; what the system call returned, or -errno. */
	int64_t (*op)(struct side *s, size_t i);
	/* After the last operation of a step. 0, 1 if it cannot go on and `said` tells why. */
	int (*settle)(struct side *s, struct strbuf *said, struct err *err);
	/* The tree that a user sees. */
	int (*tree)(struct side *s, const struct tree_opts *opts, struct tree *out,
		    struct err *err);
	/* A hash of what a user sees, without looking at all of it; NULL if there is none. */
	struct hash128 (*hash)(struct side *s);
	/* Nothing may be open. The caller owns the state. */
	int (*save)(struct side *s, struct side_state **out, struct err *err);
	/* Back to it. 1 if the file system cannot be mounted, and `said` tells why. */
	int (*restore)(struct side *s, struct side_state *state, struct strbuf *said,
		       struct err *err);
	void (*drop)(struct side *s, struct side_state *state);
	/*
	 * A state made of what was kept: of its disk, or of what a user saw, content included. A
	 * side has one of them, or cannot begin anywhere but at a new file system.
	 */
	int (*from_image)(struct side *s, const struct image *img, struct side_state **out,
			  struct err *err);
	int (*from_tree)(struct side *s, const struct tree *t, struct side_state **out,
			 struct err *err);
	/*
	 * Uses everything that is there (`seen`), removes it, and tells how many bytes less than in
	 * a new file system can be written then. Entries that cannot be used are added to
	 * `out`. NULL: the side has all the room there is.
	 */
	int (*empty)(struct side *s, const struct tree *seen, struct findings *out,
		     uint64_t *missing, struct err *err);
	/*
	 * How many bytes can be written now; and takes `bytes` of them away for good, by a file
	 * that is not part of the state, so that sides run full at the same time. NULL: no limit.
	 */
	int (*room)(struct side *s, uint64_t *out, struct err *err);
	int (*fill)(struct side *s, uint64_t bytes, struct err *err);
	/* Adds complaints of the kernel; true if there are any. NULL: it has none. */
	bool (*kernel_log)(struct side *s, struct strbuf *out);
};

enum saving {
	SAVING_CHEAP,
	SAVING_UNMOUNTS, /* the side has to be unmounted for that */
	SAVING_NEVER,	 /* only a new file system can be had back */
};

struct side {
	const struct side_ops *ops;
	const char *spec;
	const struct differences *differences;
	struct side_state *base; /* a new file system */
	struct side_counts counts;
	enum saving saving;
	const char *note; /* says what the side cannot do as asked, and does instead; or NULL */
};

extern const struct side_ops side_reffs, side_target, side_mounted;

#define SIDE_FILLER ".outage-filler"

enum { SIDE_KINDS_MAX = 8 };
/* Adds a kind of side, found by its name or by its name and a colon; for tests. */
void side_register(const struct side_ops *ops);
const struct side_ops *side_find(const char *spec, struct err *err);

int side_open(const struct side_opts *opts, struct side **out, struct err *err) must_check;
void side_close(struct side *s); /* NULL is fine */

/* Names in the root that are not part of the state; NULL, or ends with NULL. */
const char *const *side_ignore(const struct side *s);
/* The disk of a state that was saved, and what has it; NULL if there is none. */
const struct image *side_image(const struct side *s, const struct side_state *state);
const struct target *side_target_of(const struct side *s);
/* Whether all of it lives in this process: it cannot hang, and is never mounted. */
bool side_in_process(const struct side *s);

#endif
