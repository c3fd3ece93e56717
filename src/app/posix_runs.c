/* SPDX-License-Identifier: MIT */
/*
 * posix_runs.c - finds runs of equal calls, and short sequences of such runs that repeat.
 *
 * R1: every selected call is in exactly one run, and every run in exactly one group, in order.
 */
#include "app/posix_log.h"

enum { PERIOD_MAX = 8 }; /* runs of a sequence that may repeat */

/* True if two calls are equal except for offset and length: folded calls read the same. */
static bool alike(const struct posix_call *a, const struct posix_call *b)
{
	bool failed = a->result < 0 || b->result < 0;

	return a->op == b->op && a->file == b->file && a->path == b->path && a->path2 == b->path2 &&
	       a->fate == b->fate &&
	       (a->flags & (POSIX_SYNC | POSIX_DSYNC)) == (b->flags & (POSIX_SYNC | POSIX_DSYNC)) &&
	       (!failed || a->result == b->result);
}

void posix_find_runs(const struct posix_log *log, const struct posix_selection *sel,
		     struct posix_runs *out)
{
	*out = (struct posix_runs){ 0 };
	for (size_t i = 0; i < sel->n; i++) {
		const struct posix_call *c = &log->calls.v[sel->v[i]];
		uint64_t bytes = c->op == POSIX_WRITE && c->result > 0 ? (uint64_t)c->result : 0;

		if (!out->n || !alike(&log->calls.v[sel->v[vec_last(out).first]], c))
			vec_push(out, (struct posix_run){ .first = i });
		vec_last(out).n++;
		vec_last(out).bytes += bytes;
	}
}

/* Returns how often the `period` runs at `at` repeat. */
static size_t repeats(const struct posix_log *log, const struct posix_selection *sel,
		      const struct posix_runs *runs, size_t at, size_t period)
{
	size_t i = at + period;

	while (i < runs->n && alike(&log->calls.v[sel->v[runs->v[i].first]],
				    &log->calls.v[sel->v[runs->v[i - period].first]]))
		i++;
	return (i - at) / period;
}

/*
 * Goes from the front, and takes the sequence that covers most, the shortest of these. Runs may
 * differ in length: an application that writes two or three times and then syncs does the same each
 * time.
 */
void posix_find_groups(const struct posix_log *log, const struct posix_selection *sel,
		       const struct posix_runs *runs, struct posix_groups *out)
{
	*out = (struct posix_groups){ 0 };
	for (size_t at = 0; at < runs->n;) {
		struct posix_group best = { .first = at, .n = 1, .times = 1 };

		for (size_t period = 2; period <= PERIOD_MAX && at + 2 * period <= runs->n;
		     period++) {
			size_t times = repeats(log, sel, runs, at, period);

			if (times > 1 && times * period > best.times * best.n)
				best = (struct posix_group){ at, period, times };
		}
		/* A sync should end a sequence, not begin it. */
		if (best.times > 1 &&
		    posix_op_persists(log->calls.v[sel->v[runs->v[at].first]].op) &&
		    repeats(log, sel, runs, at + 1, best.n) == best.times) {
			vec_push(out, (struct posix_group){ at, 1, 1 });
			best.first = ++at;
		}
		vec_push(out, best);
		at += best.n * best.times;
	}
}
