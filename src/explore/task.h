/* SPDX-License-Identifier: MIT */
/* task.h - one task: what the files that make it up share. */
#ifndef EXPLORE_TASK_H
#define EXPLORE_TASK_H

#include "core/hashset.h"
#include "explore/explore_impl.h"
#include "run/store.h"

enum { CASES_MAX = 10, SAME_MAX = 2 };

struct task {
	struct task_opts o;
	const struct explore_opts *opts;
	struct stepper stepper;
	struct run *run; /* for crashes; or NULL */
	struct run_opts run_opts;
	unsigned base; /* the number of its base image */
	bool base_kept;
	uint64_t transitions;
	uint64_t since_room; /* transitions since room was asked for, where no walk does */
	struct hashset seen; /* scripts that were kept */
	struct vec_of(char *) signatures; /* a signature for each finding */
};

void task_tell(struct task *t, enum message_kind kind, const char *words, const char *dir,
	       uint64_t ops);
/* Whether it was told to end what it does. */
bool task_cut(const struct task *t);
/* Counts a finding; its number. */
uint64_t task_next_case(struct task *t);
/* Whether the same was found so often before that it is only counted; counts this time. */
bool task_has_enough(struct task *t, const char *signature, unsigned most);
/* Stops the search if enough was found. */
void task_count_cases(const struct task *t, struct search *s);

/* A search_found: keeps what was found, then makes it smaller. */
int task_found(void *ctx, struct search *s, const struct script *script, struct step_result *result,
	       struct err *err) must_check;

/* From now on the parent is told while a guest of that target starts. */
void task_watch_starts(struct task *t, struct target_opts *target);
/* Makes what is needed to cut the power: a file system of its own. */
int task_open_crashes(struct task *t, struct err *err) must_check;
/* A search_hook: cuts the power after this transition, if it is its turn. */
int task_after_step(void *ctx, struct search *s, struct err *err) must_check;

#endif
