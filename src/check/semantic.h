/* SPDX-License-Identifier: MIT */
/*
 * semantic.h - the table of semantic states: the states to which the crashes of each operation
 * recover, their origins, and whether the operation's promises allow them.
 *
 *	semantic_init(&table, false);
 *	op = semantic_op(&table, "rename a b", SEMANTIC_SYNCHRONOUS | SEMANTIC_ATOMIC);
 *	semantic_add(&table, op, &seen, &origin);	for each crash of it
 *	...
 *	semantic_judge(&table, &violations);
 *
 * After "Vinter" by Kalbfleisch and others (USENIX ATC 2022): an operation has a Single Final State
 * if all crashes right after it recover to the same one; it is atomic if all crashes during it
 * recover to the state before it or to the one after it.
 *
 * The state before an operation is that to which a crash at its begin recovers if all that was in
 * flight survived; if no such crash was added, the state after the operation before. The state
 * after an operation is that of such a crash at its end. Violations that cannot be decided without
 * these states are not reported.
 *
 * Other checkers may add complaints (semantic_seen.wrong): a state that one complains of is a
 * violation whatever the operation promises, and gets the same diagnosis.
 *
 * Undecided states carry over to the next operations: a state that was possible at the end of one
 * operation is no violation of the next, until a synchronous operation ends in a single state.
 *
 * No I/O; not thread-safe.
 */
#ifndef CHECK_SEMANTIC_H
#define CHECK_SEMANTIC_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"

/* The promises of an operation; data writes are often not atomic. */
enum {
	SEMANTIC_SYNCHRONOUS = 1 << 0, /* when it returns, its effect is durable */
	SEMANTIC_ATOMIC = 1 << 1,      /* at any time, all of it is seen or nothing */
};

/* A recovered state, as a user sees it. */
struct semantic_seen {
	struct hash128 state; /* without times */
	struct hash128 timed; /* with times; used only if the table has `times` */
	bool failed;	      /* recovery failed: there is no state, and no hash */
	/*
	 * Another checker has complained of it; elsewhere, the same state may be right. A state
	 * that is wrong for another reason is another state.
	 */
	bool wrong;
	struct hash128 why;
	const char *text; /* for a person; NULL: none. Copied. */
};

enum semantic_where { SEMANTIC_BEGIN, SEMANTIC_DURING, SEMANTIC_END };

/*
 * A crash: the events in flight that survived, and those that did not. An event is in both lists if
 * it was cut. All is copied.
 */
struct semantic_origin {
	enum semantic_where where;
	uint64_t point;
	const char *id;		  /* the choice string of the crash state */
	const uint64_t *survived; /* ascending, as `lost` */
	size_t n_survived;
	const uint64_t *lost;
	size_t n_lost;
	bool torn; /* an event survived in part */
};

/* True if nothing in flight was lost: the crash state is a complete prefix of the trace. */
static inline bool semantic_is_complete(const struct semantic_origin *o)
{
	return !o->n_lost && !o->torn;
}

struct semantic_state {
	struct semantic_seen seen;
	struct vec_of(struct semantic_origin) origins; /* in the order in which they were added */
};

struct semantic_op {
	const char *text;
	unsigned promises;
	struct vec_of(struct semantic_state) states;
	/* Indices into `states`, or SEMANTIC_NONE. */
	size_t before, after;
};

#define SEMANTIC_NONE SIZE_MAX

struct semantic_table {
	bool times;
	struct vec_of(struct semantic_op) ops;
	struct arena arena;
};

/* `times`: states that differ only in times are different. */
void semantic_init(struct semantic_table *t, bool times);
void semantic_release(struct semantic_table *t);
#define auto_semantic __attribute__((cleanup(semantic_release))) struct semantic_table

/* Adds the next operation; returns its index. */
size_t semantic_op(struct semantic_table *t, const char *text, unsigned promises);
/* Adds a crash of an operation, and the state to which it recovered. */
void semantic_add(struct semantic_table *t, size_t op, const struct semantic_seen *seen,
		  const struct semantic_origin *origin);

enum semantic_kind {
	SEMANTIC_FAILED,     /* recovery failed */
	SEMANTIC_NOT_ATOMIC, /* a state that is neither that before nor that after */
	SEMANTIC_NOT_SINGLE, /* at the end, another state than that after */
	SEMANTIC_WRONG,	     /* none of these, but another checker complains */
};

/* The remedy for a violation. */
enum semantic_cause {
	SEMANTIC_ORDERING, /* a flush or a fence: each crash lost something in flight */
	SEMANTIC_LOGIC,	   /* neither: a complete prefix shows the violation */
	SEMANTIC_TEARING,  /* neither: only torn stores show it, and must be guarded */
};

/* A store that makes the difference between a state that is allowed and one that is not. */
struct semantic_store {
	uint64_t event;
	bool survived; /* in the state that is not allowed; not in the other */
};

struct semantic_violation {
	enum semantic_kind kind;
	enum semantic_cause cause;
	size_t op, state;		      /* the state that is not allowed */
	const struct semantic_origin *origin; /* the decisive crash that leads to it */
	/*
	 * The nearest crash at the same point that recovers to an allowed state, and all stores in
	 * which the two differ; NULL: there is none.
	 */
	const struct semantic_origin *good;
	struct vec_of(struct semantic_store) decisive;
};

struct semantic_violations vec_of(struct semantic_violation);

/*
 * Appends the violations, one for each wrong state of each operation, in the order of operations.
 * Valid until the table changes.
 */
void semantic_judge(const struct semantic_table *t, struct semantic_violations *out);
void semantic_violations_release(struct semantic_violations *v);

/* Names for machines: "not-atomic"; "ordering", "logic", "tearing". */
const char *semantic_kind_name(enum semantic_kind kind);
const char *semantic_cause_name(enum semantic_cause cause);
/* Adds the first line in which two texts differ: "; unlike before: line 2 is 'b', was 'a'". */
void semantic_difference(const char *was, const char *is, const char *word, struct strbuf *out);
/* Adds one sentence: the state, the operation, and what would mend it. */
void semantic_words(const struct semantic_table *t, const struct semantic_violation *v,
		    struct strbuf *out);

#endif
