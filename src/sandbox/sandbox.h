/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - runs a command of the user's: bounded in time and output, and alone. When it has
 * ended, or its time is up, everything that it started ends, too, and is waited for.
 *
 * The command runs as `/bin/sh -c COMMAND sh ARGUMENT`, or without a shell where that makes no
 * difference (no_shell.h), with standard input from /dev/null, in a session of its own, and where
 * the kernel lets us in a PID namespace with a /proc of its own. Without that namespace a process
 * that left its session is found as long as it is our descendant.
 *
 * How the command ended is data: an error of ours is only that it could not be started.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "base/err.h"
#include "base/strbuf.h"

struct sandbox_opts {
	const char *command;
	const char *argument; /* NULL: `dir` */
	const char *dir;      /* absolute */
	/* Variables set beside our own: "NAME=VALUE", each with its zero; or NULL. */
	const struct strbuf *variables;
	/* A directory on SPACE_DIR that it can see. A path below it in `variables` is changed. */
	const char *notes;
	uint64_t timeout_ms; /* 0: 10 seconds */
	size_t output_limit; /* bytes kept; 0: 16 KiB; at most CHECK_OUTPUT_MAX */
	bool errors_apart;   /* standard error is kept apart, behind the rest */
	/* Limits for each of its processes; 0: none. Of processes: does not bind root. */
	uint64_t file_max, memory_max, processes_max;
	/* If `watched`: the caller is at the other end; when it is gone, so is the command. */
	bool watched;
	int watch;
	/* NULL, or zeros: runs one command after the other, for the same opts but the variables. */
	struct sandbox_keeper *keeper;
	bool shared;	   /* mounts at `dir` are seen in later namespaces: a keeper may stay */
	bool no_namespace; /* for tests: as if there were no PID namespaces */
};

struct sandbox_keeper {
	pid_t pid; /* 0: none */
	int fd;
};

/* Fine if there is none. */
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
	bool left_processes; /* some were still there when it had ended; they are gone now */
	bool filled;	     /* no room was left where the crash state is */
	bool output_cut;
	struct strbuf output; /* both streams */
	size_t errors;	      /* bytes at its end that are standard error's, if that is apart */
	uint64_t took_ns;
};

void check_result_release(struct check_result *r);

/* `r` may be filled from before. */
int sandbox_run(const struct sandbox_opts *opts, struct check_result *r, struct err *err)
	must_check;

#endif
