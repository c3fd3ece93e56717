/* SPDX-License-Identifier: MIT */
/* test_replay.h - a finding of outage test that is tried again; that of an exploration is similar.
 */
#ifndef CLI_TEST_REPLAY_H
#define CLI_TEST_REPLAY_H

#include "cli/kind.h"
#include "run/replay.h"

struct test_replay {
	struct replay_request r;
	struct stored_case *c;
	struct strbuf other_kernel; /* what differs, in words */
	void *more;		    /* for who has a function of his own */
};

/* Whether it may be tried, and on which kernel. `script`: see store_trust(). */
int test_replay_ready(struct test_replay *o, const struct workload *script, struct err *err)
	must_check;
/* Runs `fn`, which gets the struct, and tells of a hang. An exit status. */
int test_replay_watched(struct test_replay *o, int (*fn)(void *ctx));
void test_replay_print(const struct test_replay *o, const struct replay_result *r);

int test_replay(const struct replay_request *r);

#endif
