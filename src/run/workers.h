/* SPDX-License-Identifier: MIT */
/*
 * workers.h - many runs at once: processes that share little more than the number of the next
 * workload.
 *
 * The parent never touches a file system under test. The parent hands out numbers, listens,
 * writes down what is done, and watches: a worker that does not move for too long hangs, which is a
 * finding; it is killed and replaced.
 */
#ifndef RUN_WORKERS_H
#define RUN_WORKERS_H

#include "run/earlier.h"
#include "run/progress.h"
#include "run/run.h"
#include "run/supply.h"
#include "case/suppress.h"

enum { WORKERS_MAX = 64, WORKERS_HANG_MS = 120000 };

/* The message of a worker about a finding. */
struct worker_finding {
	uint64_t workload; /* its number */
	uint64_t number;   /* of the case in its workload */
	enum finding_kind kind;
	struct progress_cluster what; /* its cluster, with this case alone */
};

struct workers_opts {
	struct run_opts run;
	struct supply *source;
	unsigned jobs;
	uint64_t time_ns; /* from when all workers are up; 0: no limit */
	uint64_t hang_ms; /* a worker that does not move for longer hangs; 0: WORKERS_HANG_MS */
	const char *dir;  /* where cases are kept */
	uint64_t keep;	  /* cases of a cluster at most */
	const struct suppress *suppress;
	struct progress *progress; /* to append to; what it has is not done again */
	struct earlier *earlier;   /* cases kept of workloads that are not done */
	void *ctx;
	/* `dir` is where it is kept, NULL if it is not. */
	void (*found)(void *ctx, const struct worker_finding *f, const char *dir);
	/* An earlier finding that counts, and was not found again. */
	void (*kept)(void *ctx, const struct earlier_case *e);
	void (*failed)(void *ctx, const char *words);
	/* A signal came: the states at hand are the last. May be NULL. */
	void (*stopping)(void *ctx);
	/* Called several times a second. */
	void (*progressed)(void *ctx, const struct run_totals *t, uint64_t done, uint64_t total);
};

struct workers_result {
	struct run_totals totals; /* of the whole run, what was done before included */
	uint64_t earlier; /* findings of workloads that are still not done, and were not found */
	uint64_t errors;
	bool stopped;	/* by the time limit or a signal */
	bool signalled; /* by a signal */
};

/* Takes back the devices of processes that were killed. */
void workers_clean_up(void);

int workers_run(const struct workers_opts *opts, struct workers_result *out, struct err *err)
	must_check;

#endif
