/* SPDX-License-Identifier: MIT */
/*
 * workers.h - many runs at once: processes that share nothing but the number of the next workload.
 *
 * The parent never touches a file system under test. It hands out numbers, listens, and watches:
 * a worker that says nothing for too long is reported as hung and replaced.
 */
#ifndef RUN_WORKERS_H
#define RUN_WORKERS_H

#include "run/run.h"
#include "run/supply.h"

enum { WORKERS_MAX = 64 };

/* What a worker tells about something it found. */
struct worker_finding {
	uint64_t workload; /* its number */
	enum finding_kind kind;
	char cluster[160];
	char words[480];
	char dir[256]; /* where it is kept */
};

struct workers_opts {
	struct run_opts run;
	struct supply *source;
	unsigned jobs;
	uint64_t time_ns;   /* 0: no limit */
	uint64_t silent_ms; /* a worker that is silent for longer hangs; 0: 120 s */
	const char *dir;    /* where cases are kept */
	void *ctx;
	void (*found)(void *ctx, const struct worker_finding *f);
	void (*failed)(void *ctx, const char *words);
	/* Called several times a second. */
	void (*progress)(void *ctx, const struct run_totals *t, uint64_t done, uint64_t total);
};

struct workers_result {
	struct run_totals totals;
	uint64_t errors;
	bool stopped;	/* by the time limit or a signal */
	bool signalled; /* by a signal */
};

int workers_run(const struct workers_opts *opts, struct workers_result *out, struct err *err)
	must_check;

#endif
