/* SPDX-License-Identifier: MIT */
/* unwind.h - finds the callers of a thread's place, by the compilers' tables for exceptions. */
#ifndef STACK_UNWIND_H
#define STACK_UNWIND_H

#include "stack/mapped.h"

enum { UNWIND_MAX = 64 }; /* addresses of a stack */

/* The part of a stack that was copied, from the stack pointer on. */
struct stack_copy {
	uint64_t at;
	const unsigned char *data;
	size_t len;
};

/* Gives addresses, the innermost first; all but the first are return addresses. */
size_t unwind(const struct modules *m, const struct process *p, uint64_t pc,
	      const struct stack_copy *stack, uint64_t out[UNWIND_MAX]);

#endif
