/* SPDX-License-Identifier: MIT */
/* test_findings.h - the commands on findings of outage test, and mostly of outage explore. */
#ifndef CLI_TEST_FINDINGS_H
#define CLI_TEST_FINDINGS_H

#include "cli/kind.h"
#include "report/view.h"
#include "run/replay.h"
#include "run/shrink.h"

/* See struct case_ops. */
int test_title(const char *dir, struct strbuf *out, struct err *err) must_check;
int test_replay(const struct replay_request *r);
int test_export(const struct export_request *r);

/* Prints a run that was loaded. */
int test_report_view(const struct run_view *r, enum report_form form, struct strbuf *out,
		     struct err *err) must_check;

/* ---- for a finding of an exploration, which is tried in another way ---- */

struct test_replay {
	struct replay_request r;
	struct stored_case *c;
	struct strbuf other_kernel; /* the difference, in words */
	void *more;		    /* for a caller with its own function */
};

/* Whether it may be tried, and on which kernel. `script`: see store_trust(). */
int test_replay_ready(struct test_replay *o, const struct workload *script, struct err *err)
	must_check;
/* Runs `fn`, which gets the struct, and tells of a hang. An exit status. */
int test_replay_watched(struct test_replay *o, int (*fn)(void *ctx));
void test_replay_print(const struct test_replay *o, const struct replay_result *r);
/* As shrink_case(), of what `from` is. */
typedef int test_shrink_fn(const void *from, const struct shrink_opts *opts, const char *dir,
			   struct shrink_result *out, struct err *err);
/* Makes it small, and tells how small. An exit status. `script`: see store_trust(). */
int test_shrink_by(const struct shrink_request *r, struct stored_case *c,
		   const struct workload *script, test_shrink_fn *fn, const void *from);
/* Tells that something else was found. An exit status: neither does it show, nor is it mended. */
int test_replay_other(void);

#endif
