/* SPDX-License-Identifier: MIT */
/*
 * launch.h - small processes that run checks for large ones.
 *
 * A check is a new process, and a fork of a process that holds a whole history is slow. So a small
 * process, the launcher, is forked before anything is loaded. The launcher makes a helper for each
 * worker, which enters the worker's namespaces, and starts the checks there.
 *
 * N1: a helper ends, with its current check, when its worker closes the socket or dies; all end
 *     with the process that called launcher_start().
 */
#ifndef SANDBOX_LAUNCH_H
#define SANDBOX_LAUNCH_H

#include "sandbox/check_run.h"

struct launcher;

/* Called early, by a process with one thread. */
int launcher_start(struct launcher **out, struct err *err) must_check;
void launcher_stop(struct launcher *l); /* NULL is fine */

/* Makes a helper. Returns the socket to it, or -errno. */
int launcher_open(struct launcher *l) must_check;

/* Moves the helper into this process's namespaces, to check as `opts` say. Returns 0 or -errno. */
int launch_enter(int fd, const struct sandbox_opts *opts) must_check;
/* Runs check_run() in the helper. */
int launch_check(int fd, uint64_t point, const char *acked, size_t acked_len,
		 struct check_result *r, struct err *err) must_check;

#endif
