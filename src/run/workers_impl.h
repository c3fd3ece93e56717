/* SPDX-License-Identifier: MIT */
/* workers_impl.h - shared by the parent (workers.c) and its workers (workers_child.c). */
#ifndef RUN_WORKERS_IMPL_H
#define RUN_WORKERS_IMPL_H

#include <stdatomic.h>

#include "base/pool.h"
#include "run/workers.h"

enum { KEPT_SLOTS = 1 << 14 }; /* clusters that are counted; more are not kept */

/* How a worker ends, but for a signal. */
enum worker_end {
	WORKER_DONE,
	WORKER_NOT_BEGUN = 2, /* after MSG_FATAL */
	WORKER_LOST = 3,      /* its target is good for nothing more; it told MSG_ERROR */
};

/* MSG_DONE is a struct worker_done, MSG_FINDING a struct worker_finding, the others are words. */
enum message_kind { MSG_DONE, MSG_FINDING, MSG_ERROR, MSG_FATAL };

struct worker_done {
	bool failed; /* the workload could not be done */
	uint64_t number;
	struct run_totals totals;
};

/* How many cases of a cluster are kept. */
struct workers_kept {
	_Atomic uint64_t hash; /* of its name; 0: free */
	_Atomic uint64_t count;
};

/* In memory that all processes share. */
struct workers_shared {
	_Atomic bool cut; /* a signal came: also the current workload is cut short */
	struct kmsg_shared kmsg;
	struct workers_kept kept[KEPT_SLOTS];
};

/* The case of a workload, kept or not, with problems of these kinds: bits. */
struct worker_finding workers_finding(uint64_t workload, enum finding_kind kind, uint32_t kinds,
				      const char *cluster, const char *words);
/* The count of a cluster; NULL if there is no room for another one. */
struct workers_kept *workers_find_kept(struct workers_shared *s, const char *cluster);
/* Takes a place among those of the cluster that are kept; false if there is none left. */
bool workers_take_place(struct workers_shared *s, const char *cluster, uint64_t limit);

struct worker {
	const struct workers_opts *opts;
	struct workers_shared *shared;
	struct pool_worker *pool;
	const char *dir; /* the run's directory, as it is reached from here */
	unsigned base;
	bool base_kept;
	uint64_t at; /* the workload at hand */
	uint64_t next_case, suppressed;
};

/* In a process of its own: does workloads as long as there are some. */
enum worker_end workers_child(struct worker *w);

#endif
