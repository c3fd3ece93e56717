/* SPDX-License-Identifier: MIT */
/*
 * event.h - the events of a trace: what a target sent to its storage.
 *
 * Three layers share this one form: block requests of a file system, stores of a persistent-memory
 * program, and the calls of an application; with marks for the operations of a workload. A request
 * is recorded when it is submitted; EV_COMPLETE, with the number of the request it completes, says
 * when the storage reported it done. A recorder that cannot see completions writes EV_COMPLETE
 * right after each request and says so in the trace header.
 *
 * The number of an event is its place in the trace, from 0. A crash point p means: events 0 to
 * p-1 have happened, event p has not.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/util.h"

enum event_kind {
	/* block layer */
	EV_WRITE = 1, /* addr, len, data; flags EV_PREFLUSH, EV_FUA, EV_META */
	EV_FLUSH,     /* an empty flush request */
	EV_DISCARD,   /* addr, len; reads as zeros afterwards */
	EV_ZERO,      /* addr, len; write-zeroes */
	EV_READ,      /* addr, len */
	EV_COMPLETE,  /* ref: the request that is done; result 0 or -errno */

	/* persistent memory */
	EV_STORE,     /* addr, len, data, cpu; flags EV_NONTEMPORAL, EV_NEW_CALL */
	EV_LINEFLUSH, /* addr of the 64-byte line, cpu; flag EV_CLFLUSH for the self-ordering one */
	EV_FENCE,     /* cpu */
	EV_LOAD,      /* addr, len, cpu */

	/* marks around them */
	EV_OP_BEGIN, /* ref: index of the operation; data: its text */
	EV_OP_END,   /* ref: index of the operation; result: what it returned, or -errno */
	EV_PERSIST,  /* ref: index of the operation whose promise now holds */
	EV_TEXT,     /* data: a text for the reader of the trace */

	/* an application's calls */
	EV_POSIX, /* data: a record as core/posix.h says; result: what it returned, or -errno */

	/* where events come from */
	EV_STACK, /* ref: its number, from 1; data: return addresses of 8 bytes, inner first */

	EV_KIND_END
};

enum event_flags {
	EV_PREFLUSH = 1 << 0,	 /* a flush is done before the data is written */
	EV_FUA = 1 << 1,	 /* durable on completion */
	EV_META = 1 << 2,	 /* the file system calls it metadata */
	EV_NONTEMPORAL = 1 << 3, /* bypasses the cache, drained by a fence */
	EV_CLFLUSH = 1 << 4,	 /* clflush: ordered with respect to other flushes of its line */
	EV_NEW_CALL = 1 << 5,	 /* another call makes this store than the one before it */
	EV_FLAGS_ALL = (1 << 6) - 1,
};

enum {
	EVENT_DATA_MAX = 64 << 20, /* bytes of data one event may carry */
	EVENT_ADDR_BITS = 56,	   /* addresses and lengths stay below 2^56 */
	EVENT_FRAMES_MAX = 256,	   /* addresses of one stack */
	PM_LINE = 64,		   /* bytes of a cache line */
};

struct event {
	enum event_kind kind;
	uint32_t flags;
	uint32_t cpu;		   /* or thread, if events are ordered by thread */
	int32_t result;		   /* EV_COMPLETE, EV_OP_END, EV_POSIX */
	uint64_t addr;		   /* bytes */
	uint64_t len;		   /* bytes; for kinds that carry data its length */
	uint64_t ref;		   /* an event's number, or an operation's index */
	uint64_t time_ns;	   /* since the start of the trace; 0 where time is not recorded */
	const unsigned char *data; /* `len` bytes for kinds that carry data, else NULL */
	uint64_t pc;		   /* where the program was; 0 where that is not recorded */
	uint32_t stack;		   /* the number of an EV_STACK before it; 0: none */
};

/* "write", "flush", ...; NULL if there is no such kind. */
const char *event_kind_name(enum event_kind kind);
/* Whether `data` holds `len` bytes. */
bool event_has_data(enum event_kind kind);
/* Whether the kind changes the storage's content: write, discard, zero, store. */
bool event_modifies(enum event_kind kind);
/* True for marks that distinguish equal states: those before the mark from those after it. */
static inline bool event_marks(enum event_kind kind)
{
	return kind == EV_OP_BEGIN || kind == EV_OP_END || kind == EV_PERSIST;
}

#endif
