/* SPDX-License-Identifier: MIT */
/*
 * replay.h - a stored case, seen again: rebuilt from its trace, or by running its workload.
 *
 * A case shows again if a problem of the kind of its first one does. The details may differ:
 * another run writes in another order.
 */
#ifndef RUN_REPLAY_H
#define RUN_REPLAY_H

#include "run/store.h"

enum { REPLAY_BUDGET = 2000 }; /* crash states of one run of the workload */

/* The options of a run that judges the case as the one that found it did. Borrows from `c`. */
int replay_opts(const struct stored_case *c, struct run_opts *out, struct err *err) must_check;

int replay_trace(const struct stored_case *c, struct trace *out, struct err *err) must_check;
/* Of the recovery that a second crash cut; empty if there was none. */
int replay_recovery(const struct stored_case *c, struct trace *out, struct err *err) must_check;
/* The state the crash left, with its image. Fails for a case from before any crash. */
int replay_state(const struct stored_case *c, struct crash_state *out, struct err *err) must_check;
/* Saves its image below a directory, as others mount it: of an NVDIMM, what is behind its head. */
int replay_save_image(const struct stored_case *c, const char *dir, const char *name,
		      struct err *err) must_check;
/* Whether the trace says enough; else only running the workload again can show the case. */
bool replay_from_trace(const struct stored_case *c);

struct replay_result {
	bool shown;
	struct findings problems; /* of the state that shows it; else of the last one with any */
	struct strbuf state;	  /* its id */
	struct run_totals totals;
};

void replay_result_release(struct replay_result *r);

/* Tries the case again in a target of its own. `rerun`: runs the workload, too. */
int replay_case(const struct stored_case *c, bool rerun, struct replay_result *out, struct err *err)
	must_check;

/* Adds copies of what was found. */
void replay_add_findings(const struct findings *from, struct findings *to);
bool replay_has_kind(const struct findings *list, enum finding_kind kind);

#endif
