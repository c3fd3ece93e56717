/* SPDX-License-Identifier: MIT */
/*
 * forget_record.h - runs an application in front of a recording mount, and records all its changes
 * to one directory.
 *
 * The mount is over the directory, at the same path, in a mount namespace of its own: only the
 * application sees it, and the directory does not change. Each line that the application prints is
 * an acknowledgement: a mark in the trace, before the next operation. Lines written to the FIFO
 * OUTAGE_ACK are marks in the same way ('outage ack' writes them). The FIFO is in that namespace,
 * too: however the run ends, nothing of it is left.
 *
 * The functions need a process of their own, which cannot be used for anything else: it is in
 * another mount namespace, and adopts all processes that the application leaves.
 */
#ifndef FORGET_FORGET_RECORD_H
#define FORGET_FORGET_RECORD_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/words.h"
#include "core/trace.h"

struct forget_record_opts {
	const char *dir;    /* absolute, without symbolic links; it is only hidden */
	const char *root;   /* a copy of `dir`, which is changed */
	const char *trace;  /* the trace's path */
	const char *stacks; /* the file for the callers (stack/table.h); NULL: none */
	const char *run;    /* a shell command */
	/*
	 * For a restart after a crash: the lines that had been acknowledged, in the file that
	 * OUTAGE_ACKED names, and the number of events that had happened, in OUTAGE_CRASH_POINT.
	 * The restart's output is then no acknowledgement. For the run: NULL.
	 */
	const struct strbuf *acked;
	uint64_t point;
	const char *stop; /* a command for when `run` has ended and left processes; or NULL */
	bool kill;	  /* processes that `run` leaves are killed, and not reported */
	uint64_t timeout_ms;
	uint64_t trace_max; /* bytes; a run with a larger trace is ended */
	/*
	 * Called with the mount in place: adds the events that come in the trace before the first
	 * operation. May be NULL.
	 */
	int (*mounted)(void *ctx, int dir, struct trace *t, struct err *err);
	void *ctx;
};

enum forget_record_end {
	FORGET_RECORD_DONE,
	FORGET_RECORD_TIMEOUT,
	FORGET_RECORD_TOO_LONG, /* larger than trace_max */
	FORGET_RECORD_STOPPED,	/* by a signal to this process */
};

struct forget_record {
	enum forget_record_end end;
	int exit_code, signal; /* `run`'s; -1 and 0 if it was ended */
	int stop_code;	       /* `stop`'s, or 0 */
	uint64_t root_ino;     /* the directory's inode number in the trace */
	uint64_t marks;	       /* acknowledgements */
	struct words left;     /* processes that were ended: "4711 redis-server" */
	/* Files written outside of the directory, as far as visible. */
	struct words outside;
	uint64_t outside_more; /* further files */
	bool outside_unknown;  /* watching was impossible */
	bool syncs_unseen;     /* sync(2) and syncfs(2) could not be watched */
	struct strbuf said;    /* the end of its standard error */
};

/* The variables of the application: this one, and OUTAGE_DIR. */
#define FORGET_RECORD_ACK "OUTAGE_ACK"

/* Fails only if the application could not be run; `out` tells how it ended. */
int forget_record(const struct forget_record_opts *o, struct forget_record *out, struct err *err)
	must_check;
void forget_record_release(struct forget_record *r);

#endif
