/* SPDX-License-Identifier: MIT */
/*
 * semantic.h - the table of semantic states: what the crashes of each operation recover to, where
 * each state comes from, and whether that is what the operation promises.
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
 * The state before an operation is what a crash at its begin recovers to if everything that was in
 * flight survived; where none was added, the state after the operation before. The state after it
 * is the same at its end. Violations that cannot be decided without these states are not reported.
 *
 * Other checkers may have their say, too (semantic_seen.wrong): what they complain of is a
 * violation whatever the operation promises, and gets the same diagnosis.
 *
 * States that an operation leaves undecided go on to the next ones: a state that was possible at
 * the end of one is no news in the next, until one that is synchronous ends in a single state.
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

/* A recovered state, as it was seen. */
struct semantic_seen {
	struct hash128 state; /* without times */
	struct hash128 timed; /* with times; only looked at if the table is asked to */
	bool failed;	      /* recovery failed: there is no state, and no hash */
	/*
	 * Another checker has found something wrong with it: with the same state, and where it was
	 * seen, it may have found nothing. A state that is wrong for another reason is another
	 * state.
	 */
	bool wrong;
	struct hash128 why;
	const char *text; /* for a person; NULL: none. Copied. */
};

enum semantic_where { SEMANTIC_BEGIN, SEMANTIC_DURING, SEMANTIC_END };

/*
 * A crash: what survived of what was in flight, as events. An event can be in both lists if it was
 * cut. All is copied.
 */
struct semantic_origin {
	enum semantic_where where;
	uint64_t point;
	const char *id;		  /* the choice string of the crash state */
	const uint64_t *survived; /* ascending, as `lost` */
	size_t n_survived;
	const uint64_t *lost;
	size_t n_lost;
	bool torn; /* something survived in part */
};

/* Nothing that was in flight got lost: the crash state is a complete prefix of the trace. */
static inline bool semantic_is_complete(const struct semantic_origin *o)
{
	return !o->n_lost && !o->torn;
}

struct semantic_state {
	struct semantic_seen seen;
	struct vec_of(struct semantic_origin) origins; /* in the order they were added */
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

/* `times`: two states that differ in times only are two. */
void semantic_init(struct semantic_table *t, bool times);
void semantic_release(struct semantic_table *t);
#define auto_semantic __attribute__((cleanup(semantic_release))) struct semantic_table

/* The next operation; returns its index. */
size_t semantic_op(struct semantic_table *t, const char *text, unsigned promises);
/* Of an operation, this crash recovered to that. */
void semantic_add(struct semantic_table *t, size_t op, const struct semantic_seen *seen,
		  const struct semantic_origin *origin);

enum semantic_kind {
	SEMANTIC_FAILED,     /* recovery failed */
	SEMANTIC_NOT_ATOMIC, /* a state that is neither that before nor that after */
	SEMANTIC_NOT_SINGLE, /* at the end, a state that is not that after */
	SEMANTIC_WRONG,	     /* none of these, but another checker says so */
};

/* The remedy for a violation. */
enum semantic_cause {
	SEMANTIC_ORDERING, /* a flush or a fence: all its crashes lost some of what was in flight */
	SEMANTIC_LOGIC,	   /* neither: a complete prefix shows it */
	SEMANTIC_TEARING,  /* neither: a torn part must be guarded; nothing whole shows it */
};

/* A store that makes the difference between a state that is allowed and one that is not. */
struct semantic_store {
	uint64_t event;
	bool survived; /* in the one that is not; in the other it is the other way round */
};

struct semantic_violation {
	enum semantic_kind kind;
	enum semantic_cause cause;
	size_t op, state;		      /* the state that should not be */
	const struct semantic_origin *origin; /* one crash that leads to it; the decisive one */
	/*
	 * The nearest crash at the same point that recovers to a state that is allowed, and all in
	 * which it differs; NULL: there is none.
	 */
	const struct semantic_origin *good;
	struct vec_of(struct semantic_store) decisive;
};

struct semantic_violations vec_of(struct semantic_violation);

/*
 * Appends what is wrong, one for each state of each operation, in the order of the operations.
 * Valid as long as nothing is added to the table.
 */
void semantic_judge(const struct semantic_table *t, struct semantic_violations *out);
void semantic_violations_release(struct semantic_violations *v);

/* "not-atomic"; "ordering", "logic", "tearing": for machines. */
const char *semantic_kind_name(enum semantic_kind kind);
const char *semantic_cause_name(enum semantic_cause cause);
/* "; unlike before: line 2 is 'b', was 'a'": the first line in which two texts differ. */
void semantic_difference(const char *was, const char *is, const char *word, struct strbuf *out);
/* One sentence: what was seen during which operation, and what would mend it. */
void semantic_words(const struct semantic_table *t, const struct semantic_violation *v,
		    struct strbuf *out);

#endif
