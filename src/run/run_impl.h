/* SPDX-License-Identifier: MIT */
/* run_impl.h - shared by the files of this room that drive one run. */
#ifndef RUN_RUN_IMPL_H
#define RUN_RUN_IMPL_H

#include "run/run.h"
#include "stack/kallsyms.h"

/* The functions of the kernel of one machine; none, if they are unknown. */
struct machine_names {
	uint64_t machine; /* as in trace.machine */
	struct kallsyms names;
};

struct places;

struct run {
	struct run_opts opts;
	struct guarantee guarantee; /* as it holds for this target */
	struct target target;
	struct vec_of(struct machine_names) names; /* names of machines that were asked */
	const struct places *kept_places; /* names for a trace from a file; NULL: there are none */
	struct image base;		  /* a new file system that has been mounted once */
	struct trace trace;
	struct vec_of(uint64_t) marks; /* the events of it that are marks; see find_marks() */
	struct op_history history;
	struct check_blocks_list blocks;
	bool read_only_first; /* a state is walked before it is made writable; see attempt.h */
	bool with_times;      /* times are part of a state: the target has a clock that is set */
	struct check_times_list times;
	struct tree seen, seen_again, left; /* the last: by a check, which may write */
	struct trace recovery; /* requests of recovery to the disk, recorded the last time */
	uint32_t max_subset;
	struct tree_opts tree_opts;
	uint64_t runs;
	const struct run_reporter *report; /* of the workload at hand */
};

static inline bool run_stopped(const struct run_reporter *report)
{
	return report->stopped && report->stopped(report->ctx);
}

static inline void run_phase(struct run *r, const char *what, const char *on)
{
	if (r->report && r->report->phase)
		r->report->phase(r->report->ctx, what, on);
}

/*
 * Runs a workload on the target, from the base image; fills trace, history and blocks. 1 if the
 * system under test died of it; it has said why.
 */
int record_workload(struct run *r, const struct workload *w, struct findings *live, struct err *err)
	must_check;
/* Takes over what a text of the trace says of the operation that ended last. */
void recorded_blocks(struct run *r, const struct workload *w, const struct event *ev);
/* Records the tree that a command left; `text` keeps what came so far. */
int recorded_tree(struct run *r, const struct workload *w, const struct event *ev,
		  struct strbuf *text, struct err *err) must_check;
/* And for times that were noted. */
void recorded_times(struct run *r, const struct event *ev, struct strbuf *text);
/* The part of a trace in which operations ran. */
void operations_span(const struct trace *t, uint64_t *from, uint64_t *to);
/* Forgets the n-th flush or fence of persistent memory; false if there is none. */
bool lose_pm_flush(struct trace *t, uint64_t n);
/* Tries the crash states of the trace; -ECANCELED if asked to stop before the last. */
int explore_states(struct run *r, const struct workload *w, const struct run_reporter *report,
		   struct run_totals *totals, struct err *err) must_check;
/* Rebuilds both states of "STATE" or "STATE/SECOND"; `recovery` is NULL if there is no second. */
int run_rebuild(const struct pm_choice *pm, const struct trace *t, const struct trace *recovery,
		const struct image *base, const char *id, struct crash_state *state,
		struct crash_state *second, struct err *err) must_check;
/* Returns the members that all cases of a run have in common. */
struct run_case run_case_of(struct run *r, const struct workload *w, const struct image *base);
/* Recovers one state, or one of a second crash while recovering from it, and checks it. */
int check_replayed(struct run *r, const struct workload *w, struct crash_state *state,
		   const struct crash_state *second, const struct image *base,
		   const struct run_reporter *report, struct run_totals *totals, struct err *err)
	must_check;

#endif
