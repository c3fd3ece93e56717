/* SPDX-License-Identifier: MIT */
/*
 * user_command.h - a command of the user's that looks at a recovered file system: one that prints
 * what is there (--dump), or one that judges it (--check).
 *
 * A shell runs it in the root of the file system, which it also finds in $1 and OUTAGE_DIR.
 * OUTAGE_DONE is how many operations had returned when the power failed, OUTAGE_OPERATION the one
 * that was under way, or nothing. The command has done its work if it ends with status 0, and only
 * then: one that is killed, takes too long or cannot be run has not.
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
	const char *input;     /* its standard input; NULL: none */
	size_t input_len;
};

struct user_end {
	bool ok;
	bool cut;	   /* printed more than USER_OUTPUT_MAX */
	struct strbuf how; /* "exited with status 1" */
	struct strbuf out, err;
};

void user_end_release(struct user_end *e);
#define auto_user_end __attribute__((cleanup(user_end_release))) struct user_end

/* Runs it in `dir`. Fails only if no process can be had. `end` is empty before. */
int user_command_run(const struct user_command *c, const char *dir, struct user_end *end,
		     struct err *err) must_check;

#endif
