/* SPDX-License-Identifier: MIT */
/* app_record.h - runs an application once in front of a recording mount. */
#ifndef APP_APP_RECORD_H
#define APP_APP_RECORD_H

#include "app/app_keep.h"
#include "app/place.h"
#include "core/trace.h"

/* A restart after a crash, which is recorded instead of the run. */
struct app_restart {
	const struct place_opts *place; /* where the crash state is put to be copied */
	const struct reffs_state *state;
	const struct trace *outer; /* the run, which crashed after `point` events */
	uint64_t point;
	const struct strbuf *acked; /* the lines that had been acknowledged */
};

struct app_record_opts {
	const char *run; /* the run's directory */
	const struct app_plan *plan;
	const struct app_restart *again; /* NULL: record the run */
};

/*
 * Keeps the directory, or the crash state, as RUN/base, runs the application once in front of a
 * recording mount, and writes RUN/trace, which begins with the acknowledgements before the crash.
 * Fails if the application could not be run, or failed. Adds notes for the user.
 */
int app_record(const struct app_record_opts *o, uint64_t *root_ino, struct words *notes,
	       struct err *err) must_check;

#endif
