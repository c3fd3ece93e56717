/* SPDX-License-Identifier: MIT */
/*
 * shares.h - many steps that are divided among workers, each of which goes through all of them and
 * does its share: going through crash states is a thousand times faster than checking one, and so
 * nothing has to be sent but what comes of it.
 *
 * A worker that dies is replaced by one that goes on after the last step whose message came. A step
 * at which SHARES_TRIES workers died, or one hung, is given up, and the next one tried.
 */
#ifndef PM_SHARES_H
#define PM_SHARES_H

#include <signal.h>

#include "base/pool.h"

enum {
	SHARES_TRIES = 3,    /* tries of a step */
	SHARES_LOST_MAX = 3, /* steps given up in a row, without one done; then so is the share */
	SHARES_SLACK_MS = 30000, /* how long a worker may be silent beyond the time of commands */
};

/* In the worker. */
struct share {
	struct pool_worker *w;
	unsigned number, of;
	uint64_t from; /* earlier steps are done, or given up */
};

struct shares {
	unsigned n; /* shares, and workers; at most POOL_JOBS_MAX */
	uint64_t patience_ms;
	const volatile sig_atomic_t *stop; /* ends it when it is not 0; NULL: nothing does */
	void *ctx;
	/* In a worker: does a share, notes each step with pool_at(), and tells with
	 * share_tell(). */
	void (*work)(void *ctx, struct share *s);
	/* Takes what a worker told. A non-zero return ends it all, and is the result. */
	int (*told)(void *ctx, unsigned share, const void *data, size_t len);
	/* A step, or with `whole` the rest of a share, was given up; the words say why. */
	void (*lost)(void *ctx, unsigned share, bool whole, const char *words);
	void (*tick)(void *ctx); /* may be NULL */
};

int shares_run(const struct shares *o, struct err *err) must_check;

/* In the worker: the steps before `next` are done, and that is what came of it. */
void share_tell(struct share *s, uint64_t next, const void *data, size_t len);

#endif
