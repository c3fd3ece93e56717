/* SPDX-License-Identifier: MIT */
/*
 * forget_record.h - runs an application in front of a recording mount, and writes down all it does
 * to one directory.
 *
 * The mount lies over the directory, at the same path, in a mount namespace of its own: only the
 * application sees it, and the directory stays as it is. Each line that the application prints is
 * an acknowledgement: a mark in the trace, before the next operation. Lines written to a FIFO,
 * which is named by OUTAGE_ACK, are marks in the same way ('outage ack' does it). The FIFO is in
 * that namespace, too: however the run ends, nothing of it is left.
 *
 * To be called in a process of its own, which then is good for nothing else: it is in another mount
 * namespace, and all processes that the application left belong to it.
 */
#ifndef FORGET_FORGET_RECORD_H
#define FORGET_FORGET_RECORD_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/words.h"
#include "core/trace.h"

struct forget_record_opts {
	const char *dir;    /* absolute, without symbolic links; it is only covered */
	const char *root;   /* a copy of it, which is changed */
	const char *trace;  /* the trace's path */
	const char *stacks; /* where to write who called (stack/table.h); NULL: nowhere */
	const char *run;    /* for a shell */
	/*
	 * If it is no run but a restart after a crash: the lines that had been acknowledged, which
	 * it finds in the file that OUTAGE_ACKED names, and how many events had happened, which is
	 * in OUTAGE_CRASH_POINT. Its output is then no acknowledgement. NULL: it is the run.
	 */
	const struct strbuf *acked;
	uint64_t point;
	const char *stop; /* the same, when `run` has ended and left processes behind; or NULL */
	bool kill; /* processes that `run` leaves behind are to be killed; they are not reported */
	uint64_t timeout_ms;
	uint64_t trace_max; /* bytes; a run that writes more is ended */
	/*
	 * The mount is there: adds the events that shall stand in the trace before the first
	 * operation. NULL: nothing.
	 */
	int (*mounted)(void *ctx, int dir, struct trace *t, struct err *err);
	void *ctx;
};

enum forget_record_end {
	FORGET_RECORD_DONE,
	FORGET_RECORD_TIMEOUT,
	FORGET_RECORD_TOO_LONG, /* more than trace_max */
	FORGET_RECORD_STOPPED,	/* by a signal to us */
};

struct forget_record {
	enum forget_record_end end;
	int exit_code, signal; /* `run`'s; -1 and 0 if it did not end by itself */
	int stop_code;	       /* `stop`'s, or 0 */
	uint64_t root_ino;     /* the directory in the trace */
	uint64_t marks;	       /* acknowledgements */
	struct words left;     /* processes that had to be ended: "4711 redis-server" */
	/* Files that were written outside of the directory, as far as that can be seen. */
	struct words outside;
	uint64_t outside_more; /* files that are not in the list */
	bool outside_unknown;  /* watching was impossible */
	bool syncs_unseen;     /* sync(2) and syncfs(2) could not be watched for */
	struct strbuf said;    /* the end of what it wrote to standard error */
};

/* The variables that the application finds: this, and OUTAGE_DIR. */
#define FORGET_RECORD_ACK "OUTAGE_ACK"

/* Fails if the application could not be run at all; how it ended is in `out`. */
int forget_record(const struct forget_record_opts *o, struct forget_record *out, struct err *err)
	must_check;
void forget_record_release(struct forget_record *r);

#endif
