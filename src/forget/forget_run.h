/* SPDX-License-Identifier: MIT */
/*
 * forget_run.h - one mount from begin to end: reads its configuration, checks the options, mounts,
 * takes commands, and serves until the mount ends.
 */
#ifndef FORGET_FORGET_RUN_H
#define FORGET_FORGET_RUN_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct forget_run_opts {
	const char *root, *mnt;
	const char *config;  /* a LazyFS configuration, or NULL */
	const char *profile; /* a name; NULL: that of the configuration or the program */
	const char *log, *trace, *socket;   /* paths; NULL: those of the configuration */
	bool log_append;		    /* otherwise a log is begun anew, as LazyFS does */
	struct vec_of(const char *) faults; /* commands, "torn-op file=a parts=2 persist=1" */
	struct vec_of(const char *) fuse_options;
	uint64_t cache_size; /* bytes; 0: not given */
	uint64_t page_size, block_size;
	bool evict, evict_said;
	bool trace_data, trace_reads;
	bool allow_other;
	bool real_sync;
	bool lazyfs; /* type and defaults of LazyFS */

	/* Shows a line, from any thread; may be NULL. */
	void (*say)(void *ctx, const char *line);
	/* Called when the file system is mounted and takes commands. */
	void (*ready)(void *ctx);
	void *ctx;
};

void forget_run_opts_release(struct forget_run_opts *o);

enum forget_run_end {
	FORGET_RUN_UNMOUNTED, /* nothing is lost */
	FORGET_RUN_CRASHED,   /* by a fault or a command */
	FORGET_RUN_LOST,      /* ROOT was removed, or the server failed */
};

/* On failure nothing is mounted, and no files are left. */
int forget_run(const struct forget_run_opts *o, enum forget_run_end *end, struct err *err)
	must_check;

/* Lists the commands that a mount takes. */
void forget_run_help(struct strbuf *out);

#endif
