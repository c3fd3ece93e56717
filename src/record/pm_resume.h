/* SPDX-License-Identifier: MIT */
/*
 * pm_resume.h - a copy that an interrupt falls into is still one copy.
 *
 * The tracer tells no stack between an interrupt's end and the next call or return: so a store
 * without one, right behind a store with one, and made by the code around it, is by the function
 * that was interrupted. Nothing else looks like this: a function that returns or calls has a stack
 * again.
 *
 * Fences of the interrupt come before the copy then. Such fences make durable what came before
 * them, as they did; that half of the copy is durable as well would be told of an arbitrary place,
 * and differ from run to run. A user who wants copies in parts has them torn (--torn), at every
 * place.
 *
 * U1: stores from before the copy are durable a little earlier than they were. The states that are
 *     lost by that have a part of the copy only, which just --torn tries; in the states that are
 *     added all of the copy is lost, as it could be before the interrupt.
 */
#ifndef RECORD_PM_RESUME_H
#define RECORD_PM_RESUME_H

#include "core/trace.h"

enum { PM_RESUME_CPUS = 64 }; /* copies of others stay as they are */

struct pm_resume {
	struct trace *t;
	struct {
		uint64_t at;	/* the last store is the event before this one; 0: none */
		uint32_t stack; /* by which it was made */
		bool resumed;	/* as the tracer cannot tell it any more */
	} last[PM_RESUME_CPUS];
};

/* The next event of the trace, which may be told of the copy that it goes on with. */
void pm_resume_put(struct pm_resume *r, const struct event *ev);

#endif
