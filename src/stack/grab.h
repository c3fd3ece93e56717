/* SPDX-License-Identifier: MIT */
/*
 * grab.h - the call stack of a thread that waits in the kernel for our answer.
 *
 * Such a thread does not move: /proc/TID/syscall tells where its program and its stack are, and its
 * memory can be read. Nothing is stopped, traced or put into the program. Only addresses are taken
 * down while it waits; their names and lines are found when the run is over.
 *
 * The registers that a function keeps for its caller are not told. The registers are not needed
 * where a function's frame is found from the stack pointer, which compilers do when they optimise;
 * where it is found from a frame pointer that was not saved yet, that is looked for on the stack:
 * its return address must come after a call of just this function. On x86-64 only; elsewhere there
 * is no stack.
 */
#ifndef STACK_GRAB_H
#define STACK_GRAB_H

#include "base/err.h"

struct stacks;

/*
 * Files that the program sees below `dir` are read below `root` instead: the server of `dir` must
 * not ask for it.
 */
struct stacks *stacks_new(const char *dir, const char *root);
void stacks_free(struct stacks *s); /* NULL is fine */

/* The thread `tid` is in operation `number`, and waits. */
void stacks_grab(struct stacks *s, uint32_t tid, uint64_t number);
/* Operation `number` comes from no thread that waits. */
void stacks_none(struct stacks *s);

/* Finds names and lines, and writes the table (table.h). The programs must still be there. */
int stacks_save(struct stacks *s, const char *path, struct err *err) must_check;

#endif
