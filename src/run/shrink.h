/* SPDX-License-Identifier: MIT */
/*
 * shrink.h - makes a case small: the fewest operations that still show it, then the fewest writes
 * that must be lost.
 *
 * Operations are dropped in pieces, half of them first, then smaller, then one by one until none
 * can go; each try runs the workload anew on the target and looks at its crash states. With the
 * operations that are left, the writes that the state lost are tried as they are nearest to a
 * state without loss: none lost, one, two, and then what is left when pieces of them survive.
 *
 * The same case and options give the same tries in the same order. Whether a try shows the problem
 * is the target's doing, which may order its writes differently each time.
 */
#ifndef RUN_SHRINK_H
#define RUN_SHRINK_H

#include "run/store.h"

struct shrink_opts {
	uint64_t max_runs; /* runs of a workload, and states tried after that; 0: 500 */
	void *ctx;
	void (*step)(void *ctx, const char *words); /* one sentence for each try */
	/*
	 * `*dir` holds a case that is smaller than all before; from now on others go where it says
	 * then. NULL: only the smallest is written.
	 */
	int (*smaller)(void *ctx, size_t ops, const char **dir, struct err *err);
	/* As in run_reporter; both may be NULL. */
	void (*phase)(void *ctx, const char *what, const char *on);
	bool (*stopped)(void *ctx);
};

struct shrink_result {
	uint64_t runs;	 /* runs of a workload */
	uint64_t states; /* tried for fewer lost writes */
	bool budget_hit; /* the case might shrink further */
	size_t ops_before, ops_after;
	size_t lost_before, lost_after;
};

/*
 * Whether an operation uses a handle that is not opened in the workload so far: without its open,
 * the name of a handle would read as a path.
 */
bool shrink_lacks_handle(const struct workload *so_far, const struct op *op);

/*
 * Keeps the small case in `dir`, by itself. 0 if it was made, with result.ops_after possibly equal
 * to ops_before; 1 if the case does not show again at all, and nothing is kept; -ECANCELED if it
 * was stopped.
 */
int shrink_case(const struct stored_case *c, const struct shrink_opts *opts, const char *dir,
		struct shrink_result *out, struct err *err) must_check;

#endif
