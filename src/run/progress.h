/* SPDX-License-Identifier: MIT */
/*
 * progress.h - which workloads of a run are done, and what they found. RUN/progress.
 *
 * Text, appended to; a run that goes on begins a new file with what is whole of the old one.
 * The first line is "outage-progress 2"; then comes a record for each workload that was done, which
 * the parent of the workers writes at once:
 *
 *	found COUNT KEPT KINDS CLUSTER<tab>WORDS      for each cluster the workload fell into
 *	done NUMBER STATES UNIQUE FINDINGS SUPPRESSED VERIFIED REPEATED REFUSED PERFORMED
 *	     ALTERED PRUNED LEFT_OUT BUDGET_HIT CHECK     all on one line
 *
 * KINDS has a bit for each kind of problem seen, in hexadecimal; WORDS tell the first. CHECK is
 * the hash of the record up to there, so that one that was cut is known.
 *
 * P1: a workload is in no more than one record.
 * P2: a record behind the first that is not whole does not count; a run that goes on leaves it
 *     out. So a killed run loses no more than the workloads under way.
 * P3: one process at a time appends; it holds a lock, which its workers inherit.
 * P4: a record that counts findings is written when they are on disk, and is itself on disk when
 *     progress_add() returns. Others are at most SYNC_MS old before they are, since without them a
 *     workload that found nothing is run again, and no more.
 */
#ifndef RUN_PROGRESS_H
#define RUN_PROGRESS_H

#include "run/run.h"

enum { CLUSTER_MAX = 160, WORDS_MAX = 400 };

/* Cases that are wrong in the same way are one cluster: they are counted under its name. */
struct progress_cluster {
	char name[CLUSTER_MAX];
	char words[WORDS_MAX]; /* of the first */
	uint32_t kinds;	       /* bits 1 << enum finding_kind */
	uint64_t count, kept;
};
static_assert(FINDING_KIND_END <= 32, "a bit for each");

struct progress_clusters vec_of(struct progress_cluster);

struct progress_span {
	uint64_t from, to; /* to: not included */
};

struct progress {
	int fd;		    /* -1: only read */
	const char *run;    /* its plan and name may not be on disk; NULL: they are */
	bool unsynced;	    /* neither may be what was added */
	uint64_t synced_ns; /* when all of it was */
	uint64_t total;	    /* workloads of the run */
	struct run_totals totals;
	uint64_t done;
	struct progress_clusters clusters;	   /* in the order in which they came */
	struct vec_of(struct progress_span) spans; /* done; ascending, with gaps between them */
};

struct progress_record {
	uint64_t number;
	struct run_totals totals;
	struct progress_clusters clusters;
};

/* A new one, in a run that has none; `run` must outlive it. */
int progress_create(const char *run, uint64_t total, struct progress *out, struct err *err)
	must_check;
/* For who only looks. A run that has none has done nothing. */
int progress_load(const char *run, uint64_t total, struct progress *out, struct err *err)
	must_check;
/* To go on. Waits a while for processes that are at work on the run to end. */
int progress_resume(const char *run, uint64_t total, struct progress *out, struct err *err)
	must_check;
void progress_release(struct progress *p);

bool progress_has(const struct progress *p, uint64_t number);
int progress_add(struct progress *p, const struct progress_record *r, struct err *err) must_check;
/* All that was added is on disk. */
int progress_sync(struct progress *p, struct err *err) must_check;

/* Adds to the cluster of that name, or makes it. */
void progress_count(struct progress_clusters *list, const struct progress_cluster *c);
void progress_add_totals(struct run_totals *to, const struct run_totals *t);

#endif
