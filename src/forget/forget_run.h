/* SPDX-License-Identifier: MIT */
/*
 * forget_run.h - one mount from beginning to end: reads its configuration, checks that it can be,
 * mounts, listens to commands, and serves until it ends.
 */
#ifndef FORGET_FORGET_RUN_H
#define FORGET_FORGET_RUN_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct forget_run_opts {
	const char *root, *mnt;
	const char *config;  /* a LazyFS configuration, or NULL */
	const char *profile; /* a name, or NULL: what the configuration or the program says */
	const char *log, *trace, *socket;   /* paths, or NULL: what the configuration says */
	bool log_append;		    /* or a log is begun anew, as LazyFS does */
	struct vec_of(const char *) faults; /* commands, "torn-op file=a parts=2 persist=1" */
	struct vec_of(const char *) fuse_options;
	uint64_t cache_size; /* bytes; 0: not said */
	uint64_t page_size, block_size;
	bool evict, evict_said;
	bool trace_data, trace_reads;
	bool allow_other;
	bool real_sync;
	bool lazyfs; /* named so, and with its defaults */

	/* Shows a line, from any thread; NULL: lines are not shown. */
	void (*say)(void *ctx, const char *line);
	/* The file system is mounted and answers commands. */
	void (*ready)(void *ctx);
	void *ctx;
};

void forget_run_opts_release(struct forget_run_opts *o);

enum forget_run_end {
	FORGET_RUN_UNMOUNTED, /* nothing is lost */
	FORGET_RUN_CRASHED,   /* as a fault or a command said */
	FORGET_RUN_LOST,      /* ROOT was taken away, or the server failed */
};

/* On failure nothing is mounted, and nothing left behind. */
int forget_run(const struct forget_run_opts *o, enum forget_run_end *end, struct err *err)
	must_check;

/* The commands that a mount takes. */
void forget_run_help(struct strbuf *out);

#endif
