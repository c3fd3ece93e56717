/* SPDX-License-Identifier: MIT */
/*
 * app_check.h - one run of the check command on a crash state.
 *
 * The command runs as `/bin/sh -c COMMAND sh DIR`, or without a shell where that makes no
 *difference (app_command.h), in the crash directory, DIR, with standard input from /dev/null, and
 *in its environment
 *
 *	OUTAGE_DIR		DIR
 *	OUTAGE_ACKED		a file with the lines that had been acknowledged
 *	OUTAGE_CRASH_POINT	how many events had happened
 *	OUTAGE_FILE, OUTAGE_MARKS	if a file is checked: it, and what else OUTAGE_ACKED is
 *
 * It is in a session of its own, and where the kernel lets us in a PID namespace: when the command
 * has ended, or its time is up, everything it started ends, too. Without that namespace a process
 * that left its session is found as long as it is our descendant.
 *
 * Nothing here is an error of ours unless the command could not be started: how it ended is data.
 */
#ifndef APP_APP_CHECK_H
#define APP_APP_CHECK_H

#include "base/err.h"
#include "base/strbuf.h"

struct check_opts {
	const char *command;
	const char *dir;     /* absolute */
	const char *file;    /* NULL; else what is $1, and OUTAGE_FILE, instead of DIR */
	const char *notes;   /* a directory for OUTAGE_ACKED */
	uint64_t timeout_ms; /* 0: 10 seconds */
	size_t output_limit; /* bytes kept; 0: 16 KiB; at most CHECK_OUTPUT_MAX */
	/* Limits for each of its processes; 0: none. Of processes: does not bind root. */
	uint64_t file_max, memory_max, processes_max;
	/* If `watched`: who asked is at the other end of this; when it is gone, so is the check. */
	bool watched;
	int watch;
	/* NULL, or zeros: who keeps one check after the other. */
	struct check_keeper *keeper;
	bool shared; /* what is mounted at `dir` is seen in later namespaces: a keeper may stay */
	bool no_namespace; /* for tests: as if there were no PID namespaces */
};

struct check_keeper {
	pid_t pid; /* 0: none */
	int fd;
};

/* Fine if there is none. */
void check_keeper_end(struct check_keeper *k);

enum { CHECK_OUTPUT_MAX = 64 << 10 };

enum check_end {
	CHECK_PASSED, /* status 0 */
	CHECK_FAILED, /* another status */
	CHECK_KILLED, /* a signal ended it; SIGXFSZ: it wrote a file larger than file_max */
	CHECK_HUNG,   /* its time was up */
	CHECK_ERROR,  /* it could not be run; `output` says why */
};

struct check_result {
	enum check_end end;
	int exit_code, signal;
	bool left_processes; /* some were still there when it had ended; they are gone now */
	bool filled;	     /* no room was left where the crash state is */
	bool output_cut;
	struct strbuf output; /* both streams */
	uint64_t took_ns;
};

void check_result_release(struct check_result *r);
/* "passed", "exited with status 1", "did not end within 10 s", ... and what else was seen. */
void check_describe(const struct check_result *r, struct strbuf *out);

/* `r` may be filled from before. */
int check_run(const struct check_opts *opts, uint64_t point, const char *acked, size_t acked_len,
	      struct check_result *r, struct err *err) must_check;

#endif
