/* SPDX-License-Identifier: MIT */
/*
 * user_command.h - the user's command that looks at a recovered file system: it prints the content
 * (--dump), or judges it (--check).
 *
 * A shell runs the command in the root of the file system, whose path is also in $1 and OUTAGE_DIR.
 * OUTAGE_DONE is the number of operations that had returned when the power failed, OUTAGE_OPERATION
 * the one that was under way, or empty. The command succeeds if it ends with status 0, and only
 * then: a command that is killed, takes too long or cannot be run fails.
 */
#ifndef WORKLOAD_USER_COMMAND_H
#define WORKLOAD_USER_COMMAND_H

#include "base/err.h"
#include "base/strbuf.h"

enum { USER_OUTPUT_MAX = 1 << 20, USER_TIMEOUT_MS = 60000 };

struct user_command {
	const char *text;
	size_t done;
	const char *operation; /* "" if none was under way */
	const char *input;     /* the command's standard input; NULL: none */
	size_t input_len;
	uint64_t timeout_ms; /* 0: USER_TIMEOUT_MS, which is enough without other load */
};

struct user_end {
	bool ok;
	bool cut;	   /* printed more than USER_OUTPUT_MAX */
	struct strbuf how; /* "exited with status 1" */
	struct strbuf out, err;
};

void user_end_release(struct user_end *e);
#define auto_user_end __attribute__((cleanup(user_end_release))) struct user_end

/* Runs the command in `dir`. Fails only if no process can be started. `end` must be empty. */
int user_command_run(const struct user_command *c, const char *dir, struct user_end *end,
		     struct err *err) must_check;

#endif
