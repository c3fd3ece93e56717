/* SPDX-License-Identifier: MIT */
/*
 * launch.h - small processes that run checks for large ones.
 *
 * A check is a new process, and a process that holds a whole history is slow to copy. So a process
 * is put aside before anything is loaded. For each worker it makes a helper, which moves into the
 * worker's namespaces, and starts the checks there.
 *
 * N1: a helper ends, with the check that it is at, when its worker closes the socket or dies; all
 *     end with the process that called launcher_start().
 */
#ifndef SANDBOX_LAUNCH_H
#define SANDBOX_LAUNCH_H

#include "sandbox/check_run.h"

struct launcher;

/* To be called early, by a process with one thread. */
int launcher_start(struct launcher **out, struct err *err) must_check;
void launcher_stop(struct launcher *l); /* NULL is fine */

/* A new helper: the socket to it, or -errno. */
int launcher_open(struct launcher *l) must_check;

/* The helper shall be where this process is, and check as `opts` say. 0 or -errno. */
int launch_enter(int fd, const struct sandbox_opts *opts) must_check;
/* As check_run() does. */
int launch_check(int fd, uint64_t point, const char *acked, size_t acked_len,
		 struct check_result *r, struct err *err) must_check;

#endif
