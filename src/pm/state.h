/* SPDX-License-Identifier: MIT */
/* state.h - one crash state of a run, built and looked at, and made smaller. */
#ifndef PM_STATE_H
#define PM_STATE_H

#include "pm/pm_search.h"

/* A state, with what it is one of. */
struct pm_state {
	const struct pm_run *run; /* the trace that the numbers of its events belong to */
	struct pm_run *nested;	  /* a recovery's, if the state is one of its own */
	struct crash_state s;	  /* with the bad line in its image, if there is one */
	char *prefix;		  /* "r3:", or "" */
	char *fault;		  /* "poison:0x40", or "" */
};

int pm_state_load(const struct pm_run *r, const char *id, struct pm_state *out, struct err *err)
	must_check;
void pm_state_release(struct pm_state *s);

/*
 * Gives back what was lost, store by store, as long as the finding shows. `c` becomes the smaller
 * one. 1: it does not show any more as it is.
 */
int pm_shrink(const struct pm_run *r, struct pm_case *c, uint64_t max_tries,
	      struct case_shrunk *out, struct err *err) must_check;
/* Whether a state that was looked at again shows the finding: of a dump, the same is printed. */
bool pm_shows(const struct pm_run *r, const struct pm_case *c, const struct pm_failure *f);

#endif
