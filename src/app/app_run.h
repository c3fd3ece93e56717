/* SPDX-License-Identifier: MIT */
/* app_run.h - a recorded run of an application, loaded: its trace, its history, its judge. */
#ifndef APP_APP_RUN_H
#define APP_APP_RUN_H

#include "app/history.h"
#include "app/app_keep.h"
#include "app/app_search.h"
#include "stack/table.h"

/* A recorded run. */
struct app_run {
	char *dir;
	struct app_plan plan;
	struct trace trace;
	struct history history;
	struct history_opts made; /* the options of `history` */
	bool has_history;
	int base_fd;
	struct stack_table stacks; /* the callers; empty if not recorded */
	struct words acks;	   /* all lines that were acknowledged */
	struct words shown;	   /* by --query, at the end of the run */
	char *base;
	struct judge judge;
	/* A restart: the run that crashed, whose judge is used. A run: NULL. */
	struct app_run *whole;
	struct vec_of(struct app_run *) nested; /* the restarts that are loaded */
};

/* Reads the trace of a run whose `plan` is known, and makes its history. */
int app_run_open(struct app_run *r, struct err *err) must_check;
int app_run_load(const char *dir, struct app_run *out, struct err *err) must_check;
void app_run_release(struct app_run *r);
/* Finds the run of a state by its id: this one, or a restart, which is loaded. */
int app_run_of(struct app_run *r, const char *state, struct app_run **out, struct err *err)
	must_check;
/* Adds the lines of a text. */
void app_lines(const char *text, struct words *out);
/* Returns how states of the run are checked; borrows from the run, which owns the judge. */
struct app_search_opts app_run_search(struct app_run *r);

/* Turns writes to a file of acknowledgements into marks of RUN/trace. */
int app_ack_file(const char *run, const char *name, struct err *err) must_check;

#endif
