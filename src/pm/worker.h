/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a process that checks its share of the crash states, and tells its parent what it
 * finds.
 *
 * Each worker is a copy of the parent that enumerates all states by itself, and checks those whose
 * number, divided by the number of workers, leaves its own as the rest: enumerating is a thousand
 * times faster than checking, and nothing has to be sent but what fails. What is in flight at each
 * crash point, which can take longer, is found out before there are workers.
 */
#ifndef PM_WORKER_H
#define PM_WORKER_H

#include "pm/search.h"

enum pm_said { SAID_FAILURE, SAID_CHANGE, SAID_COUNTS, SAID_ERROR, SAID_END };

/*
 * What a worker tells. Behind it come, in this order and without anything between them, the id,
 * what is lost, what survived (of both the first PM_LIST_MAX), and what the command said.
 */
struct pm_message {
	enum pm_said what;
	/* A failure. */
	uint64_t point, n_lost, n_survived;
	enum crash_layer layer;
	enum semantic_cause cause;
	uint64_t prefix;
	enum check_end end;
	int exit_code, signal;
	size_t id_len, said_len;
	bool media;
	struct media_fault fault;
	struct hash128 change;
	/* Counts, since the start; of a failure with it, so that they agree if nothing more comes.
	 */
	uint64_t checked, failing, errors, known, media_states;
	double media_left_out;
	bool stopped;
	struct crash_stats stats;
};

static inline size_t pm_listed(uint64_t n)
{
	return (size_t)min(n, (uint64_t)PM_LIST_MAX);
}

/* What all workers have in common. */
struct pm_worker;
int pm_worker_new(const struct pm_search_opts *o, struct pm_worker **out, struct err *err)
	must_check;
void pm_worker_free(struct pm_worker *w);

/* Which one of how many it is, where it tells, and until when it works (0: no limit). */
struct pm_share {
	unsigned number, of;
	int fd;
	uint64_t until_ns;
	pid_t parent;
};

/* In a child: does its share, tells SAID_END, and ends. */
_Noreturn void pm_work(struct pm_worker *w, const struct pm_share *share);

#endif
