/* SPDX-License-Identifier: MIT */
/*
 * trace.h - a trace in memory, and the rules that every trace keeps.
 *
 * In memory a trace is an array of events and the arena that holds their data. On disk it is the
 * format described at the top of trace_format.h.
 */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "core/event.h"

/* Bounds on input from outside, so that tables by operation, CPU or sector stay small. */
enum {
	TRACE_OP_MAX = 1 << 24,	    /* operations are numbered below this */
	TRACE_CPU_MAX = 1 << 23,    /* CPUs and threads are numbered below this */
	TRACE_SECTOR_MAX = 1 << 20, /* bytes of the largest sector */
	TRACE_TARGET_SIZE = 64,	    /* bytes of the target's description, NUL included */
};

struct trace_info {
	uint64_t size;			/* bytes of the device or region; 0 if unknown */
	uint32_t sector_size;		/* bytes written atomically; the default tear unit */
	bool completions;		/* EV_COMPLETE tells when requests ended, as observed */
	bool places;			/* events may have pc and stack; trace_append() sets it */
	char target[TRACE_TARGET_SIZE]; /* name of what was recorded, for a person */
};

struct trace {
	struct trace_info info;
	struct vec_of(struct event) events;
	struct vec_of(
		uint64_t) stacks; /* the event of each EV_STACK; that of stack 1 comes first */
	struct arena data;
	/*
	 * The machine that made the trace, whose kernel has names for its places: a number that
	 * means something to this process only. 0: not known, as for a trace from a file.
	 */
	uint64_t machine;
};

void trace_init(struct trace *t); /* no events, sectors of 512 bytes */
void trace_release(struct trace *t);
#define auto_trace __attribute__((cleanup(trace_release))) struct trace
void trace_clear(struct trace *t); /* removes the events and the machine; info stays */

/*
 * Appends a copy of the event and its data. Returns its number. The copy of a text is followed by
 * a NUL that `len` does not count.
 */
uint64_t trace_append(struct trace *t, const struct event *ev);

/* Append the usual events. */
void trace_complete(struct trace *t, uint64_t ref, int result);
void trace_op_end(struct trace *t, uint64_t op, int result);
void trace_persist(struct trace *t, uint64_t op);
/* Adds a call stack of at most EVENT_FRAMES_MAX frames, inner frame first. Returns its number. */
uint32_t trace_add_stack(struct trace *t, const uint64_t *frames, size_t n);
/* Copies the frames of a stack. Returns their number; 0: no such stack. */
size_t trace_stack(const struct trace *t, uint32_t number, uint64_t frames[EVENT_FRAMES_MAX]);

/* Whether EV_COMPLETE may refer to an event of this kind. */
bool event_is_request(enum event_kind kind);

/*
 * Checks all that can be wrong in a trace from outside: kinds, flags, lengths, references that
 * point forward or to no request, addresses outside the device. The message names the event.
 */
int trace_validate(const struct trace *t, struct err *err) must_check;

/*
 * Checks one event at a time, for callers that never hold the whole trace. The check remembers a
 * byte for each event that it did not refuse.
 */
struct trace_check {
	struct vec_of(unsigned char) seen;
	uint32_t stacks; /* the number of stacks so far */
};

#define TRACE_CHECK_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void trace_check_release(struct trace_check *c);
#define auto_trace_check __attribute__((cleanup(trace_check_release))) struct trace_check

int trace_check_info(const struct trace_info *info, struct err *err) must_check;
int trace_check_event(struct trace_check *c, const struct trace_info *info, const struct event *ev,
		      struct err *err) must_check;

#endif
