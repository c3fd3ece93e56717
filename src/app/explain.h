/* SPDX-License-Identifier: MIT */
/*
 * explain.h - finds why a crash state fails: the fewest operations that must be lost, and the
 * operation that they should have come before.
 *
 * A failing state usually has lost more than matters. The lost changes are restored step by step,
 * as long as the check still fails in the same way; then the crash is moved to an earlier point, to
 * the first at which it fails. The last event before that point was wrongly taken to come after the
 * lost changes: a change that survived, a sync that made one durable, or an acknowledgement. If
 * nothing needs to be lost at all, the application is not consistent between two operations.
 *
 * X1: every state that is checked is one that the profile allows.
 * X2: the explained state fails, by the check, and with the lost changes restored it passes.
 * X3: a call is said to be missing only if the history of the run with that call in it does not
 *     allow the state.
 */
#ifndef APP_EXPLAIN_H
#define APP_EXPLAIN_H

#include "app/app_keep.h"
#include "app/mend.h"
#include "app/roles.h"
#include "app/states.h"

enum explain_kind {
	EXPLAIN_START,	/* the check fails before the first operation */
	EXPLAIN_WINDOW, /* nothing is lost: it is not consistent between two operations */
	EXPLAIN_ORDER,	/* an operation is lost, and a later one is not */
	EXPLAIN_ACK,	/* an operation is lost, and was acknowledged */
	EXPLAIN_NOT,	/* the cause is unknown: `lost` has all that the state has lost */
};

struct explain_lost {
	uint32_t change;
	uint64_t event;
	uint32_t kept, units; /* if it is torn; otherwise 0 */
};

struct explained {
	enum explain_kind kind;
	enum app_harm harm;
	uint64_t point, acked;
	char *id;
	struct vec_of(struct explain_lost) lost;
	uint64_t after; /* the crash comes after this event; UINT64_MAX: none */
	uint64_t until; /* EXPLAIN_WINDOW: the event that ends it; UINT64_MAX: unknown */
	char *cause;	/* equal for states that fail for the same reason; EXPLAIN_NOT: NULL */
	struct vec_of(uint32_t) roles; /* of the lost changes */
	/*
	 * The missing call, after the last lost change: with it, no crash can leave this state, and
	 * the state that a crash then leaves passes. See X3.
	 */
	struct explain_mend {
		bool found;
		enum mend_what what;
		uint32_t lost; /* the index in `lost` of the change to be synced */
	} mend;
	unsigned checks;
	bool cut;      /* the limit of checks was reached: the cause may be simpler */
	bool unsteady; /* EXPLAIN_NOT: checks of the same state differed */
	char *cut_by;  /* EXPLAIN_NOT: why the explanation stopped, "a signal"; NULL: not stopped */
};

void explained_release(struct explained *e);

struct explain_opts {
	struct history *h;
	const struct roles *roles;
	/* Returns 1 if the check fails on this crash state, and the harm; 0 if it passes. */
	int (*check)(void *ctx, const char *id, enum app_harm *harm, struct err *err);
	void *ctx;
	/* How `h` was made; NULL: missing calls are not searched. */
	const struct history_opts *made;
	unsigned checks_max; /* 0: 80; at the limit, the result so far is given, and `cut` set */
};

/* Explains `s`, which fails with `harm`. */
int explain(const struct explain_opts *o, const struct app_state *s, enum app_harm harm,
	    struct explained *out, struct err *err) must_check;

/* Explains a failing state without any check: EXPLAIN_NOT. */
int explain_not(const struct explain_opts *o, const struct app_state *s, enum app_harm harm,
		struct explained *out, struct err *err) must_check;

/*
 * Returns 1 if `s`, which fails, would pass with the losses of `e` restored; or, if `e` lost
 * nothing, if it fails in the same window with nothing lost. Otherwise 0 or -errno.
 */
int explain_same(const struct explain_opts *o, const struct app_state *s, const struct explained *e,
		 struct err *err) must_check;

#endif
