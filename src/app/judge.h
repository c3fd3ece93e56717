/* SPDX-License-Identifier: MIT */
/*
 * judge.h - runs the user's command after a crash, and judges its answer.
 *
 *	check     a command that knows what is right: it must succeed
 *	restart   a command that brings the application up again: it must succeed. With one of the
 *		  others it comes before that, and what it starts is there for it
 *	query     a command that prints what is there, a line for each thing: of what was
 *		  acknowledged before the crash each line must be there, and no line that neither
 *		  the run acknowledged nor the query shows when nothing crashed
 *
 * A command may say what went wrong, in a line "outage: silent-loss" (the names of enum app_harm).
 */
#ifndef APP_JUDGE_H
#define APP_JUDGE_H

#include "sandbox/check_run.h"
#include "app/app_keep.h"

struct judge {
	const struct app_plan *plan;
	const struct words *acks;  /* all lines that the run acknowledged */
	const struct words *shown; /* the answer of `query` without a crash; NULL: unknown */
	char *command;		   /* the command, for check_run.h */
	bool errors_apart;	   /* run it with standard error apart: see sandbox.h */
};

void judge_init(struct judge *j, const struct app_plan *plan, const struct words *acks,
		const struct words *shown);
void judge_release(struct judge *j);

struct verdict {
	bool fails;
	bool error; /* the check could not be run; `seen` says why */
	enum app_harm harm;
	struct strbuf said; /* the command's output; bounded */
	char *seen;	    /* shortened: "the check exited with status 1" */
};

void verdict_release(struct verdict *v);

/* Makes the verdict; `out` may have old content. */
void judge_verdict(const struct judge *j, uint64_t acked, const struct check_result *r,
		   struct verdict *out);

#endif
