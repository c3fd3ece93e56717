/* SPDX-License-Identifier: MIT */
/* state.h - builds one crash state of a run, checks it, and makes it smaller. */
#ifndef PM_STATE_H
#define PM_STATE_H

#include "pm/pm_search.h"

/* A state, with the run that it belongs to. */
struct pm_state {
	const struct pm_run *run; /* the run whose events the state names */
	struct pm_run *nested;	  /* the loaded recovery, if the state belongs to one */
	struct crash_state s;	  /* its image has the bad line, if any */
	char *prefix;		  /* "r3:", or "" */
	char *fault;		  /* "poison:0x40", or "" */
};

int pm_state_load(const struct pm_run *r, const char *id, struct pm_state *out, struct err *err)
	must_check;
void pm_state_release(struct pm_state *s);

/*
 * Restores lost stores, one by one, as long as the finding shows. `c` becomes the smaller case.
 * Returns 1 if the finding does not show any more at all.
 */
int pm_shrink(const struct pm_run *r, struct pm_case *c, uint64_t max_tries,
	      struct case_shrunk *out, struct err *err) must_check;
/* True if a state that was checked again shows the finding; for a dump, by the same output. */
bool pm_shows(const struct pm_run *r, const struct pm_case *c, const struct pm_failure *f);

#endif
