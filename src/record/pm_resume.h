/* SPDX-License-Identifier: MIT */
/*
 * pm_resume.h - makes a copy with an interrupt in the middle one copy again.
 *
 * The tracer knows no stack between an interrupt's end and the next call or return. So a store
 * without a stack, right behind a store with one, and made by code near that one, belongs to the
 * function that was interrupted. No other store looks like this: after a call or return the stack
 * is known again.
 *
 * Fences of the interrupt are moved before the copy. Such fences still make older stores durable;
 * but that half of the copy is durable as well would be true of an arbitrary place, which differs
 * from run to run. A user who wants parts of copies has them torn (--torn), at every place.
 *
 * U1: stores before the copy become durable a little earlier. The states that are missing thereby
 *     have only a part of the copy, which --torn tries; in the states that are added the whole copy
 *     is lost, as it could be before the interrupt.
 */
#ifndef RECORD_PM_RESUME_H
#define RECORD_PM_RESUME_H

#include "core/trace.h"

enum { PM_RESUME_CPUS = 64 }; /* copies of other CPUs are not joined */

struct pm_resume {
	struct trace *t;
	struct {
		uint64_t at;	/* the last store is the event before this one; 0: none */
		uint32_t stack; /* the stack of that store */
		bool resumed;	/* its stack is that of a resumed copy */
	} last[PM_RESUME_CPUS];
};

/* Appends the next event of the trace; may give it the stack of the copy that it continues. */
void pm_resume_put(struct pm_resume *r, const struct event *ev);

#endif
