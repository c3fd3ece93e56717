/* SPDX-License-Identifier: MIT */
/*
 * crashes.h - which crashes of a workload are tried, and what looks at each state: the part that
 * the plans of outage test and outage explore share.
 */
#ifndef RUN_CRASHES_H
#define RUN_CRASHES_H

#include "case/plan_def.h"
#include "case/record.h"
#include "run/bad_media.h"
#include "run/run.h"

/* In the order of enum run_mode. */
#define RUN_MODE_WORDS "persist last prefix reorder torn recovery"

/* The options of crash_options.def, in a plan that has a struct crashes as its `crash`. */
#define CRASH_OPTION(member, kind, name, ...)                                                      \
	CRASH_OPTION_AS(name, kind, member, kind, name, __VA_ARGS__)
#define CRASH_OPTION_AS(...) PLAN_CALL(PLAN_AS, CRASH, (__VA_ARGS__))
#define PLAN_MEMBER_CRASH(...)
#define PLAN_FIELD_CRASH(key, kind, member, ...)                                                   \
	PLAN_FIELD_OPTION(key, kind, crash.member, __VA_ARGS__)
#define PLAN_ENTRY_CRASH PLAN_ENTRY_OPTION

/* Its own members. */
#define PLAN_CRASHES_CRASH PLAN_MEMBER_OPTION
#define PLAN_CRASHES_SHORT PLAN_MEMBER_SHORT

enum crash_prune { CRASH_PRUNE_READS, CRASH_PRUNE_NONE, CRASH_PRUNE_UNSAID };

struct crashes {
#define PLAN_AS CRASHES
#include "run/crash_options.def"
#undef PLAN_AS
};

/* For these fields. */
int crashes_set_modes(void *member, const char *value, struct err *err) must_check;
int crashes_set_model(void *member, const char *value, struct err *err) must_check;
/* "persist,reorder", as cases have them, too. */
void crashes_print_modes(uint64_t modes, struct strbuf *out);

/*
 * Refuses what does not fit together, or not to the target; fills in what follows from the rest,
 * but for modes and budget.
 */
int crashes_complete(struct crashes *c, const struct target_ops *target, struct err *err)
	must_check;
/* The members of `out` that it is about. Borrows from the plan. */
void crashes_opts(const struct crashes *c, struct run_opts *out);

#endif
