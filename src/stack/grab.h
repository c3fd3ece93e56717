/* SPDX-License-Identifier: MIT */
/*
 * grab.h - the call stack of a thread that waits in the kernel for our answer.
 *
 * Such a thread does not move: /proc/TID/syscall has its program counter and stack pointer, and its
 * memory can be read. The program is not stopped, traced or changed. Only addresses are noted while
 * the thread waits; their names and lines are found at the end of the run.
 *
 * The registers that a function keeps for its caller are unknown. The registers are not needed if a
 * function's frame is found from the stack pointer, as in optimised code; if it is found from a
 * frame pointer that was not saved yet, the frame is searched on the stack: its return address must
 * follow a call of just this function. Other machines than x86-64 have no stacks.
 */
#ifndef STACK_GRAB_H
#define STACK_GRAB_H

#include "base/err.h"

struct stacks;

/*
 * Files that the program sees below `dir` are read below `root` instead, because the server of
 * `dir` must not use its own mount.
 */
struct stacks *stacks_new(const char *dir, const char *root);
void stacks_free(struct stacks *s); /* NULL is fine */

/* Notes the stack of thread `tid`, which waits in operation `number`. */
void stacks_grab(struct stacks *s, uint32_t tid, uint64_t number);
/* Notes that an operation comes from no thread that waits. */
void stacks_none(struct stacks *s);

/* Finds names and lines, and writes the table (table.h). The programs must still exist. */
int stacks_save(struct stacks *s, const char *path, struct err *err) must_check;

#endif
