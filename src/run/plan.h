/* SPDX-License-Identifier: MIT */
/*
 * plan.h - says what a run tests: all that must be the same when an interrupted run goes on.
 *
 * RUN/run is its record (case/record.h), "test-run". A key is the name of the option of
 * outage-test(1) that sets it, but for guest-kernel and guest-modules, which --kernel and --modules
 * set; besides them there are
 *
 *	kernel       the release it began on
 *	started      the day and time it began
 *	file         a path with workloads, absolute; "-" is standard input; may come several times
 *	hash         of the workloads' source: of the bounds, or of every text
 *	workloads    how many there are to do
 */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include "case/dir.h"
#include "case/plan_def.h"
#include "run/crashes.h"

enum { PLAN_KEEP_DEFAULT = 5 };

/* Its members are in the order of RUN/run. */
struct plan {
	char *target, *kernel, *started, *guarantee, *recorder;
#define TARGET_OPTION(member, kind, ...) TARGET_OWNED_##kind member;
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
	char *files_hash; /* of the files' content when they were hashed; not saved */
	struct crashes crash;
#define PLAN_AS MEMBER
#include "run/test_options.def"
	bool ours;	/* this user made it, or takes it for his own; not saved */
	uint64_t given; /* a bit for each key that was set */
};

extern const struct record_type plan_record;
/* RUN/run, for case_plan_load() and so on. */
extern const struct case_plan plan_kept;

void plan_init(struct plan *p);
void plan_release(struct plan *p);

/* Sets what an option of outage-test(1) is about, or the "file" that an argument names. */
int plan_set(struct plan *p, const char *option, const char *value, struct err *err) must_check;
/* Fills in what follows from the rest: guarantee, modes, budget, kernel. */
int plan_complete(struct plan *p, struct err *err) must_check;
/* Notes what the guest's files hold: they may become others while the run goes on. */
void plan_look_at_files(struct plan *p);
bool plan_from_stdin(const struct plan *p);
/* Both borrow from the plan. */
struct target_opts plan_target(const struct plan *p);
void plan_run_opts(const struct plan *p, struct run_opts *out);
/* Refuses a run that began on another kernel; a guest's may have to be fetched to be known. */
int plan_same_kernel(const struct target_opts *o, const char *was, const char *run, struct err *err)
	must_check;

/*
 * Sets `ours`: its mark is this user's, or `trust` says that he takes it for his own. Refuses one
 * that is not, and that leads to more than a guest (trust.h).
 */
int plan_trust(struct plan *p, const char *run, bool trust, struct err *err) must_check;

/* The day and the time, as in "started"; to be freed. */
char *plan_now(void);

#endif
