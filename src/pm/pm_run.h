/* SPDX-License-Identifier: MIT */
/*
 * pm_run.h - a run of a program on persistent memory, as it was recorded: what was there before,
 * its trace, and what crash states are made of it.
 */
#ifndef PM_PM_RUN_H
#define PM_PM_RUN_H

#include <signal.h>

#include "case/answers.h"
#include "core/crash.h"
#include "core/model_pm.h"
#include "pm/pm_keep.h"
#include "pm/where.h"

struct pm_run {
	/* For a recovery (recovery.h): the state of the whole run that it began with. */
	struct {
		char *state;
		uint64_t point;
	} outer;
	const volatile sig_atomic_t *stop; /* for pm_search_one(); NULL: nothing stops it */
	struct answers *answers;	   /* answers of checks of its states; or NULL */
	struct pm_run *nested;		   /* runs of recoveries */
	size_t n_nested;
	char *dir;
	struct pm_plan plan;
	struct trace trace;
	struct pm_where where;
	struct image base;
	struct model_pm_opts model;
};

int pm_run_load(const char *dir, struct pm_run *out, struct err *err) must_check;
void pm_run_release(struct pm_run *r);
/* Where it crashes; to be released. */
void pm_run_points(const struct pm_run *r, struct crash_points *out);
/* How its crash states are enumerated; without points. */
struct crash_opts pm_run_crash(const struct pm_run *r);
/* Copies that are taken as one, and cut at few places only. */
uint64_t pm_run_copies(const struct pm_run *r);

/* The last of some points before this one; 0: there is none. Stores made since then were on their
 * way. */
uint64_t pm_point_before(const struct crash_points *points, uint64_t point);

/* "begin 3", "end 3", a text: the marks before a point, a line each. */
void pm_marks(const struct trace *t, uint64_t point, struct strbuf *out);

#endif
