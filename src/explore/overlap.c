/* SPDX-License-Identifier: MIT */
/* overlap.c - counts the states that more than one run has visited. */
#include "explore/overlap.h"

#include <errno.h>

#include "base/below.h"
#include "core/hashset.h"
#include "explore/explore.h"
#include "explore/explore_pickle.h"
#include "explore/explore_plan.h"

struct counting {
	struct hashset own, *all, *more;
};

static void take_state(void *ctx, struct hash128 state)
{
	struct counting *c = ctx;

	/* Tasks of one run may have been there twice: that is the run's own business. */
	if (hashset_insert(&c->own, state) && !hashset_insert(c->all, state))
		hashset_insert(c->more, state);
}

static int count_run(const char *run, struct counting *c, uint64_t *by_bits, struct err *err)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TASKS_MAX; i++) {
		auto_free char *name = xasprintf("task-%u.pickle", i);
		auto_free char *path = xasprintf("%s/%s", run, name);
		uint64_t bits = 0;

		/* A task that was killed early has written nothing. */
		if (!below_exists(run, name))
			continue;
		int rc = pickle_each_state(path, take_state, c, &bits, err);
		if (rc)
			return rc;
		*by_bits += bits;
		n++;
	}
	return n ? 0
		 : err_set(err, -ENOENT,
			   "%s has no %s: give directories of runs of outage explore that came to "
			   "an end",
			   run, EXPLORE_PICKLES);
}

int overlap_of_runs(char *const *runs, size_t n, uint64_t *states, struct overlap *out,
		    struct err *err)
{
	auto_hashset all = HASHSET_INIT, more = HASHSET_INIT;
	int rc = 0;

	*out = (struct overlap){ 0 };
	for (size_t i = 0; i < n && !rc; i++) {
		struct counting c = { .all = &all, .more = &more };

		rc = count_run(runs[i], &c, &out->by_bits, err);
		states[i] = c.own.n;
		hashset_release(&c.own);
	}
	out->distinct = all.n;
	out->overlapped = more.n;
	return rc;
}
