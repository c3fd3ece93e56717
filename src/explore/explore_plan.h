/* SPDX-License-Identifier: MIT */
/*
 * explore_plan.h - the plan of a run of outage explore: everything that must be the same when the
 * run goes on.
 *
 * RUN/run is its record (case/record.h), "explore-run". A key is the name of the option of
 * outage-explore(1) that sets it, but for guest-kernel and guest-modules, which --kernel and
 * --modules set; besides them there are
 *
 *	kernel       the release it began on
 *	started      the day and time it began
 *	inputs       the text of the file that --inputs names
 *	hash         of what is drawn from the inputs
 *	reference    what is compared with; --ref-OPTION is reference-OPTION below it
 */
#ifndef EXPLORE_EXPLORE_PLAN_H
#define EXPLORE_EXPLORE_PLAN_H

#include "case/dir.h"
#include "case/plan_def.h"
#include "explore/explore.h"
#include "run/crashes.h"

struct explore_reference {
	char *spec, *kernel, *recorder;
#define TARGET_OPTION(member, kind, ...) TARGET_OWNED_##kind member;
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
};

struct explore_plan {
	char *target, *kernel, *started, *recorder, *hash;
#define TARGET_OPTION(member, kind, ...) TARGET_OWNED_##kind member;
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
	struct crashes crash;
#define PLAN_AS MEMBER
#include "explore/explore_options.def"
	struct vec_of(struct explore_reference) references;
	bool ours;	/* this user made it, or takes it for his own; not saved */
	uint64_t given; /* a bit for each key that was set */
};

extern const struct record_type explore_record;
/* RUN/run, for case_plan_load() and so on. */
extern const struct case_plan explore_plan_kept;
#define EXPLORE_PICKLES "task-*.pickle" /* where each task of a run was, by its number */
/* The names of what a run makes besides RUN/run and its findings: patterns, up to NULL. */
extern const char *const explore_made[];

void explore_plan_init(struct explore_plan *p);
void explore_plan_release(struct explore_plan *p);

/* Sets what an option of outage-explore(1) is about; of --inputs, `value` is the text. */
int explore_plan_set(struct explore_plan *p, const char *option, const char *value, struct err *err)
	must_check;
/* Adds a reference; and sets what an option says of one, its name without "ref-". */
int explore_plan_add(struct explore_plan *p, const char *spec, struct err *err) must_check;
int explore_plan_set_ref(struct explore_plan *p, size_t i, const char *option, const char *value,
			 struct err *err) must_check;
/*
 * Fills in what follows from the rest, and looks whether all of it fits together. `bounded`: the
 * run ends by time or by the number of operations.
 */
int explore_plan_complete(struct explore_plan *p, bool bounded, struct err *err) must_check;
/*
 * Makes the inputs; `source` names their file in messages. Notes what is drawn from them, or sees
 * that it is what was drawn when the run began.
 */
int explore_plan_inputs(struct explore_plan *p, const char *source, struct inputs *out,
			struct err *err) must_check;
/* The kernels are those that the run began on. */
int explore_plan_same_kernels(const struct explore_plan *p, const char *run, struct err *err)
	must_check;
/* Borrows from the plan; `references` has SIDES_MAX places. */
void explore_plan_opts(const struct explore_plan *p, struct target_opts *references,
		       struct explore_opts *out);

/*
 * Sets `ours`: its mark is this user's, or `trust` says that he takes it for his own. Refuses one
 * that is not, and that leads to more than a guest (trust.h).
 */
int explore_plan_trust(struct explore_plan *p, const char *run, bool trust, struct err *err)
	must_check;

#endif
