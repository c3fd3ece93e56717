/* SPDX-License-Identifier: MIT */
/* app.h - what the files of `outage app` share. */
#ifndef CLI_APP_H
#define CLI_APP_H

#include "app/history.h"
#include "app/keep.h"
#include "app/search.h"
#include "base/err.h"
#include "cli/cli.h"
#include "stack/table.h"

/* ---- app_record.c ---- */

struct app_record_opts {
	const char *dir; /* the application's directory, absolute */
	const char *run; /* the run's directory */
	const struct app_plan *plan;
	uint64_t timeout_ms, trace_max;
};

/*
 * Keeps the directory as RUN/base, runs the application once in front of a recording mount, and
 * writes RUN/trace. Fails if the application could not be run, or failed. Notes for people are
 * added.
 */
int app_record(const struct app_record_opts *o, uint64_t *root_ino, struct words *notes,
	       struct err *err) must_check;

/* Copies a directory with all that is in it. `to` is made. */
int app_copy(const char *from, const char *to, struct err *err) must_check;
/* Removes it with all that is in it; what cannot be removed stays. */
void app_remove(const char *dir);

/* ---- app_load.c ---- */

/* A run as it was recorded. */
struct app_run {
	char *dir;
	struct app_plan plan;
	struct trace trace;
	struct history history;
	struct history_opts made; /* by what */
	bool has_history;
	int base_fd;
	struct stack_table stacks; /* who called; empty if it was not asked for */
	struct words acks;	   /* all lines that were acknowledged */
	struct words shown;	   /* by --query, at the end */
	char *base;
	struct judge judge;
};

/* Reads the trace of a run, of which `plan` is known, and follows it. */
int app_run_open(struct app_run *r, struct err *err) must_check;
int app_run_load(const char *dir, struct app_run *out, struct err *err) must_check;
void app_run_release(struct app_run *r);
/* How its states are checked; borrows from the run. The judge is the run's. */
struct search_opts app_run_search(struct app_run *r);

/* Acknowledgements by writes to a file: they become marks of RUN/trace. */
int app_ack_file(const char *run, const char *name, struct err *err) must_check;

#endif
