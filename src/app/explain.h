/* SPDX-License-Identifier: MIT */
/*
 * explain.h - why a crash state fails: the fewest operations that have to be lost, and what they
 * should have come before.
 *
 * A failing state mostly has lost more than matters. The lost changes are given back piece by
 * piece, as long as the check still fails in the same way; then the crash is moved to an earlier
 * point, to the first at which it fails. The last event before that point is what was wrongly taken
 * to come after the lost ones: a change that survived, a sync that made one durable, or an
 * acknowledgement. If nothing needs to be lost at all, the application is not consistent between
 * two operations.
 *
 * X1: every state that is asked about is one that the profile allows.
 * X2: the explained state fails, by the check, and with the lost ones given back it does not.
 * X3: a call is said to be missing only if the run with that call in it was followed, and does not
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
	EXPLAIN_WINDOW, /* nothing is lost: between two operations it is not consistent */
	EXPLAIN_ORDER,	/* lost, and a later operation is not */
	EXPLAIN_ACK,	/* lost, and acknowledged */
	EXPLAIN_NOT,	/* the cause is not known: `lost` is all that the state has lost */
};

struct explain_lost {
	uint32_t change;
	uint64_t event;
	uint32_t kept, units; /* for a torn one; else 0 */
};

struct explained {
	enum explain_kind kind;
	enum app_harm harm;
	uint64_t point, acked;
	char *id;
	struct vec_of(struct explain_lost) lost;
	uint64_t after; /* the event that the crash comes after; UINT64_MAX: none */
	uint64_t until; /* EXPLAIN_WINDOW: the event that mends it, if it is known; or UINT64_MAX */
	char *cause;	/* the same for states that fail for the same reason; EXPLAIN_NOT: NULL */
	struct vec_of(uint32_t) roles; /* roles of the lost changes */
	/*
	 * The call that is missing, after the last of what is lost: with it, this state is none
	 * that a crash could leave, and what it is then passes. See X3.
	 */
	struct explain_mend {
		bool found;
		enum mend_what what;
		uint32_t lost; /* the lost change that it is about */
	} mend;
	unsigned checks;
	bool cut;      /* there were more questions than checks: it may be simpler than told */
	bool unsteady; /* EXPLAIN_NOT: checks of the same state differed */
	char *cut_by; /* EXPLAIN_NOT: what stopped the explanation, "a signal"; NULL: nothing yet */
};

void explained_release(struct explained *e);

struct explain_opts {
	struct history *h;
	const struct roles *roles;
	/* 1 if the check fails on this crash state, and how; 0 if it does not; or -errno. */
	int (*check)(void *ctx, const char *id, enum app_harm *harm, struct err *err);
	void *ctx;
	/* How `h` was made; NULL: no call that is missing is looked for. */
	const struct history_opts *made;
	unsigned checks_max; /* 0: 80; then what is known by then is given, and `cut` is set */
};

/* `s` fails with `harm`. */
int explain(const struct explain_opts *o, const struct app_state *s, enum app_harm harm,
	    struct explained *out, struct err *err) must_check;

/* Tells what is known of such a state without any check: EXPLAIN_NOT. */
int explain_not(const struct explain_opts *o, const struct app_state *s, enum app_harm harm,
		struct explained *out, struct err *err) must_check;

/*
 * Whether `s`, which fails, would pass if what `e` lost were not lost in it; or, if `e` lost
 * nothing, whether it fails in the same window with nothing lost: 1, 0 or -errno.
 */
int explain_same(const struct explain_opts *o, const struct app_state *s, const struct explained *e,
		 struct err *err) must_check;

#endif
