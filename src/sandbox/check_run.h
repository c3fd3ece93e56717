/* SPDX-License-Identifier: MIT */
/*
 * check_run.h - one run of the check command on a crash state, in a sandbox.
 *
 * Its environment has
 *
 *	OUTAGE_DIR		its directory
 *	OUTAGE_ACKED		a file with the lines that had been acknowledged
 *	OUTAGE_CRASH_POINT	the number of events that had happened
 *	OUTAGE_FILE, OUTAGE_MARKS	if a file is checked, its argument: it, and what else
 *				OUTAGE_ACKED is
 */
#ifndef SANDBOX_CHECK_RUN_H
#define SANDBOX_CHECK_RUN_H

#include "sandbox/sandbox.h"

/* `opts` has notes, but no variables. `r` may hold an earlier result. */
int check_run(const struct sandbox_opts *opts, uint64_t point, const char *acked, size_t acked_len,
	      struct check_result *r, struct err *err) must_check;
/* Adds "passed", "exited with status 1", "did not end within 10 s", ... and other facts. */
void check_describe(const struct check_result *r, struct strbuf *out);

/*
 * Adds a result as bytes, for another process of ours or for answers that are kept; and reads it
 * back: false if there is no whole one. `out` may hold an earlier result.
 */
void check_result_add(const struct check_result *r, struct strbuf *out);
bool check_result_read(const char *data, size_t len, struct check_result *out);
/* False for results that a busy or small machine may have caused: these are not reused. */
bool check_result_is_final(const struct check_result *r);

#endif
