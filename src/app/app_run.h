/* SPDX-License-Identifier: MIT */
/* app_run.h - a recorded run of an application, read again: its trace, its history, its judge. */
#ifndef APP_APP_RUN_H
#define APP_APP_RUN_H

#include "app/history.h"
#include "app/app_keep.h"
#include "app/app_search.h"
#include "stack/table.h"

/* A run as it was recorded. */
struct app_run {
	char *dir;
	struct app_plan plan;
	struct trace trace;
	struct history history;
	struct history_opts made; /* by what */
	bool has_history;
	int base_fd;
	struct stack_table stacks; /* the callers; empty if not asked for */
	struct words acks;	   /* all lines that were acknowledged */
	struct words shown;	   /* by --query, at the end */
	char *base;
	struct judge judge;
	/* For a restart after a crash: the run that crashed, whose check judges. NULL: a run.
	 */
	struct app_run *whole;
	struct vec_of(struct app_run *) nested; /* restarts, as far as they are loaded */
};

/* Reads the trace of a run, of which `plan` is known, and follows it. */
int app_run_open(struct app_run *r, struct err *err) must_check;
int app_run_load(const char *dir, struct app_run *out, struct err *err) must_check;
void app_run_release(struct app_run *r);
/* The run that a state belongs to by its id: this one, or a restart, which is loaded. */
int app_run_of(struct app_run *r, const char *state, struct app_run **out, struct err *err)
	must_check;
/* How its states are checked; borrows from the run. The judge is the run's. */
struct app_search_opts app_run_search(struct app_run *r);

/* Acknowledgements by writes to a file: they become marks of RUN/trace. */
int app_ack_file(const char *run, const char *name, struct err *err) must_check;

#endif
