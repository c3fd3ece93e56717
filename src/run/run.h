/* SPDX-License-Identifier: MIT */
/*
 * run.h - the pipeline: one workload in, findings out.
 *
 *	run it on the target and record  ->  crash states  ->  load, recover, mount, walk  ->  check
 *
 * A run belongs to one worker process; it owns a target with its disk.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "check/check.h"
#include "core/crash.h"
#include "search/pm_model.h"
#include "target/target.h"

enum run_mode {
	RUN_PERSIST = 1 << 0,  /* right after each persistence point, all completed writes */
	RUN_LAST = 1 << 1,     /* only after the last one */
	RUN_PREFIX = 1 << 2,   /* after every write */
	RUN_REORDER = 1 << 3,  /* subsets of what is in flight */
	RUN_TORN = 1 << 4,     /* with reorder: torn writes as well */
	RUN_RECOVERY = 1 << 5, /* a second crash, while recovering from the first */
};

struct run_opts {
	struct target_opts target;
	const struct guarantee *guarantee; /* NULL: the target's own */
	unsigned modes;			   /* 0: RUN_PERSIST */
	uint32_t max_subset;
	uint64_t budget; /* crash states of one workload; 0: no limit */
	uint64_t sample; /* more of them, drawn at random, once the budget is used up */
	uint64_t seed;
	bool vary_all; /* vary every write in flight, not only those that recovery or the walk reads
			*/
	/*
	 * Proves the checkers: the record is judged as if the file system had not sent its n-th
	 * flush or FUA (in persistent memory: flush of a line, or fence), counted from 1 within the
	 * operations; 0: none.
	 */
	uint64_t lose_flush;
	/* Bytes that the disk writes as a whole; 0: CRASH_SECTOR. Not for persistent memory. */
	uint32_t sector;
	struct pm_choice pm; /* for persistent memory */
	unsigned media;	     /* kinds of faults of its media, 1 << enum media_kind; 0: none */
	uint64_t media_max;  /* bad lines of one state */
	const char *fault;   /* to replay: the faults of the state, or NULL */
	bool fsck;	     /* on every state, not only on those that cannot be mounted */
	/*
	 * Commands that look at every recovered state (user_command.h); NULL: none. The state is
	 * what the dump prints; a state that the check does not pass is wrong.
	 */
	const char *dump, *check;
	bool paranoid; /* compare device and record after every run */
	bool ours;     /* findings get this user's mark: all of this is his own word */
};

struct run_totals {
	uint64_t workloads;
	uint64_t crash_states;	/* tried, duplicates too */
	uint64_t unique_states; /* recovered and checked */
	uint64_t findings;	/* states, or live runs, with something wrong */
	uint64_t suppressed; /* findings that rules name; a worker takes them out of `findings` */
	uint64_t verified;   /* runs whose record was compared with the device */
	uint64_t repeated;   /* runs that were done again, as their record was not whole */
	uint64_t refused;    /* operations that failed, on the target as on the reference */
	uint64_t performed;  /* operations that were not, but for those that only persist */
	uint64_t altered;    /* runs whose record lost a flush, as --lose-flush asked */
	double pruned;	     /* states that cannot differ from others in what is read */
	double left_out;     /* states that a budget cut */
	bool budget_hit;
};

#define RUN_NO_OPERATION SIZE_MAX

/* One thing that went wrong, with all that is needed to keep it. Everything is borrowed. */
struct run_case {
	const struct target *target;
	const struct guarantee *guarantee;
	const struct workload *workload;
	const struct trace *trace;
	const struct image *base;
	const struct crash_state *state; /* NULL: before any crash */
	/*
	 * A second crash: what recovery sent to the disk, and the state that was left of it. The id
	 * of the case is then "STATE/SECOND". NULL: there was none.
	 */
	const struct trace *recovery;
	const struct crash_state *second;
	const char *media; /* faults of the media on top of the state, or NULL */
	unsigned modes;	   /* of the run, so that it can be done again */
	size_t done;	   /* operations that had returned */
	struct op_history *history;
	const char *mounted;	 /* how the state was; see store.h. NULL: writable at once */
	const struct tree *seen; /* NULL if nothing could be mounted */
	const struct findings *findings;
	size_t operation;	/* the blamed one; RUN_NO_OPERATION: all of them together */
	const char *diagnosis;	/* whether a flush or fence would mend it, which store; or NULL */
	struct run *places;	/* to be asked for names of where stores were made; NULL: none */
	const char *kernel_log; /* "" if it said nothing */
	const char *said;	/* by mount, fsck and the like */
};

struct run_reporter {
	int (*found)(void *ctx, const struct run_case *c, struct err *err);
	void *ctx;
	/* Told what is done next, to explain a long wait; may be NULL. */
	void (*phase)(void *ctx, const char *what, const char *on);
	/*
	 * Whether no further state is to be tried: what has been found by then is told, and the
	 * workload ends with -ECANCELED. NULL: never.
	 */
	bool (*stopped)(void *ctx);
};

struct run;

int run_open(const struct run_opts *opts, struct run **out, struct err *err) must_check;
void run_close(struct run *r); /* NULL is fine */

/*
 * Adds to `totals`. Fails if the workload could not be run or checked: that is no finding. -ENODEV:
 * no other workload can be run either.
 */
int run_workload(struct run *r, const struct workload *w, const struct run_reporter *report,
		 struct run_totals *totals, struct err *err) must_check;

/*
 * Builds the crash state `id` of a recorded trace again, and checks it. The history is made anew
 * by performing the operations, with the results in the trace, on the reference. For a second crash
 * the id is "STATE/SECOND", and `recovery` what was recorded of the first recovery; else NULL.
 * `places` are the names that were kept with the traces, for no machine of this run made them.
 */
struct places;
int run_replay(struct run *r, const struct workload *w, const struct trace *t,
	       const struct trace *recovery, const struct places *places, const struct image *base,
	       const char *id, const struct run_reporter *report, struct run_totals *totals,
	       struct err *err) must_check;

#endif
