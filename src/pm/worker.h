/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a process that checks its share of the crash states (shares.h), and sends its parent
 * the results. States belong to the share whose number is the rest when their number is divided by
 * the number of shares. The stores in flight at each crash point take longer to enumerate: that is
 * done before there are workers.
 *
 * A step is one check: of a state, or of a state with a bad line.
 */
#ifndef PM_WORKER_H
#define PM_WORKER_H

#include "pm/pm_search.h"
#include "pm/shares.h"

/*
 * A worker's message after each step. The id, the losses, the survivors (the first PM_LIST_MAX of
 * both), and the output of the command or the error follow, without anything between them.
 */
struct pm_message {
	struct pm_tally tally;
	bool failure, changed, error; /* set if the message has one */
	size_t id_len, said_len;
	struct hash128 change;
	struct pm_failure f; /* without what follows: its pointers are invalid */
};

/* All that the workers have in common. */
struct pm_worker;
int pm_worker_new(const struct pm_search_opts *o, struct pm_worker **out, struct err *err)
	must_check;
void pm_worker_free(struct pm_worker *w);

/* In a child: does the share until `until_ns` (0: no limit); `tally` has the counts so far. */
void pm_work(struct pm_worker *w, struct share *share, const struct pm_tally *tally,
	     uint64_t until_ns);

#endif
