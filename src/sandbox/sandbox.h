/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - runs the user's command, bounded in time and output. When the command has ended, or
 * its time is up, all processes that it started are ended, too, and waited for.
 *
 * The command runs as `/bin/sh -c COMMAND sh ARGUMENT`, or without a shell if that makes no
 * difference (no_shell.h), with standard input from /dev/null, in a session of its own, and if the
 * kernel allows it in a PID namespace with a /proc of its own. Without that namespace, a process
 * that left the session is found as long as it is our descendant.
 *
 * The end of the command is data: only a failed start is an error.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "base/err.h"
#include "base/strbuf.h"

struct sandbox_opts {
	const char *command;
	const char *argument; /* NULL: `dir` */
	const char *dir;      /* absolute */
	/* Variables beside our own: "NAME=VALUE", each with its NUL; or NULL. */
	const struct strbuf *variables;
	/* A directory on SPACE_DIR for the command. Paths below it in `variables` are adapted. */
	const char *notes;
	uint64_t timeout_ms; /* 0: 10 seconds */
	size_t output_limit; /* bytes kept; 0: 16 KiB; at most CHECK_OUTPUT_MAX */
	bool errors_apart;   /* standard error is kept separately, behind the other output */
	/* Limits for each of its processes; 0: none. processes_max does not bind root. */
	uint64_t file_max, memory_max, processes_max;
	/* If `watched`: the command ends when the caller, at the other end, closes it. */
	bool watched;
	int watch;
	/* NULL, or zeroed: kept for further commands with the same opts, except the variables. */
	struct sandbox_keeper *keeper;
	bool shared;	   /* later mounts at `dir` reach the namespace: a keeper may stay */
	bool no_namespace; /* for tests: behave as without PID namespaces */
};

struct sandbox_keeper {
	pid_t pid; /* 0: none */
	int fd;
};

/* Ends the keeper, if there is one. */
void sandbox_keeper_end(struct sandbox_keeper *k);

enum { CHECK_OUTPUT_MAX = 64 << 10 };

enum check_end {
	CHECK_PASSED, /* status 0 */
	CHECK_FAILED, /* another status */
	CHECK_KILLED, /* a signal ended it; SIGXFSZ: it wrote a file larger than file_max */
	CHECK_HUNG,   /* its time was up */
	CHECK_ERROR,  /* could not be run; `output` says why */
};

struct check_result {
	enum check_end end;
	int exit_code, signal;
	bool left_processes; /* the command left processes, which were ended */
	bool filled;	     /* the file system of the crash state was full */
	bool output_cut;
	struct strbuf output; /* both streams */
	size_t errors;	      /* bytes of standard error at its end, if separate */
	uint64_t took_ns;
};

void check_result_release(struct check_result *r);

/* `r` may hold an earlier result. */
int sandbox_run(const struct sandbox_opts *opts, struct check_result *r, struct err *err)
	must_check;

#endif
