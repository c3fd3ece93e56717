/* SPDX-License-Identifier: MIT */
/* reap.h - ends a process that hangs, with what it had started. */
#ifndef BASE_REAP_H
#define BASE_REAP_H

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Kills a child of ours. A process that waits for a FUSE server does not end before the server
 * does, so programs below it are killed as well; but not processes that run this very program,
 * which tidy up after a worker that is gone. Gives it a few seconds; false if it is still there,
 * stuck in the kernel. `status` is that of waitpid, if it ended.
 */
bool reap_tree(pid_t pid, int *status);
/* Its two halves, for callers that end many: kill all of them first, then wait for each. */
void reap_kill(pid_t pid);
bool reap_wait(pid_t pid, int *status);

/*
 * Ends everything below the calling process, which gets those who lost their parents
 * (PR_SET_CHILD_SUBREAPER): kills, waits for a few seconds, and kills who was started meanwhile.
 * False if something is still there.
 */
bool reap_below(void);

/*
 * Whether a process, or one below it, was stopped, as by SIGSTOP or the terminal, and which: then
 * it cannot be said that something hangs.
 */
bool reap_stopped(pid_t pid, struct strbuf *who);

/* Where in the kernel the process is: its state, and the stack if that can be read. */
void reap_describe(pid_t pid, struct strbuf *out);

#endif
