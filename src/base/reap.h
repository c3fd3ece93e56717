/* SPDX-License-Identifier: MIT */
/* reap.h - ends a process that hangs, with the processes that it started. */
#ifndef BASE_REAP_H
#define BASE_REAP_H

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Kills a child of ours. A process that waits for a FUSE server does not end before the server
 * does, so programs below it are killed as well; but not processes that run this very program,
 * which clear up after a worker that is gone. Waits a few seconds; false if the child is still
 * there, stuck in the kernel. `status` is that of waitpid, if the child ended.
 */
bool reap_tree(pid_t pid, int *status);
/* The halves of reap_tree(), for callers that end many: kill all, then wait for each. */
void reap_kill(pid_t pid);
bool reap_wait(pid_t pid, int *status);

/*
 * Ends all processes below the calling process, which inherits orphans (PR_SET_CHILD_SUBREAPER):
 * kills them, waits for a few seconds, and kills processes that were started meanwhile. False if
 * one is still there.
 */
bool reap_below(void);

/*
 * True if a process, or one below it, was stopped, as by SIGSTOP or the terminal; `who` names it.
 * Silence is no sign of a hang then.
 */
bool reap_stopped(pid_t pid, struct strbuf *who);

/* Where in the kernel the process is: its state, and the stack if that can be read. */
void reap_describe(pid_t pid, struct strbuf *out);

#endif
