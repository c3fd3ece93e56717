/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a process that checks its share of the crash states (shares.h), and tells its parent
 * what it finds: those whose number, divided by the number of shares, leaves its own as the rest.
 * The stores in flight at each crash point take longer to enumerate: they are found out before
 * there are workers.
 *
 * A step is a check: of a state, or of a state with a bad line.
 */
#ifndef PM_WORKER_H
#define PM_WORKER_H

#include "pm/pm_search.h"
#include "pm/shares.h"

/* The part of a share that is done, by one worker or several. */
struct pm_tally {
	uint64_t checked, failing, errors, known, media_states;
	uint64_t resized; /* states that recovery gave another size */
	double media_left_out;
	bool stopped;
	struct crash_stats stats;
};

/*
 * A worker's message after each step. Behind it come, without anything between them, the id, what
 * is lost, what survived (of both the first PM_LIST_MAX), and what the command or an error said.
 */
struct pm_message {
	struct pm_tally tally;
	bool failure, changed, error; /* set if there is one */
	size_t id_len, said_len;
	struct hash128 change;
	/* The facts of a failure. */
	uint64_t point, n_lost, n_survived;
	enum crash_layer layer;
	enum semantic_cause cause;
	uint64_t prefix;
	enum check_end end;
	int exit_code, signal;
	bool media;
	struct media_fault fault;
};

static inline size_t pm_listed(uint64_t n)
{
	return (size_t)min(n, (uint64_t)PM_LIST_MAX);
}

/* The part that all workers have in common. */
struct pm_worker;
int pm_worker_new(const struct pm_search_opts *o, struct pm_worker **out, struct err *err)
	must_check;
void pm_worker_free(struct pm_worker *w);

/* In a child: does its share until `until_ns` (0: no limit), and goes on counting from `tally`. */
void pm_work(struct pm_worker *w, struct share *share, const struct pm_tally *tally,
	     uint64_t until_ns);

#endif
