/* SPDX-License-Identifier: MIT */
/*
 * in_child.h - calls a function in a child, whose namespaces and changes are its own. The child is
 * ended, with all that it started, if it hangs or `stop` is set; what it leaves behind when it
 * returns ends, too. The caller has no other children.
 */
#ifndef SANDBOX_IN_CHILD_H
#define SANDBOX_IN_CHILD_H

#include <signal.h>

#include "base/pool.h"

struct in_child {
	/* Its result, its error and what it leaves at `out` come back. The function tells its phase
	 * by pool_at(). */
	int (*fn)(void *ctx, struct pool_worker *w, void *out, struct err *err);
	void *ctx, *out;
	size_t out_size;
	uint64_t patience_ms;		   /* silence allowed */
	const volatile sig_atomic_t *stop; /* ends it when it is not 0; NULL: nothing does */
};

int in_child(const struct in_child *c, struct err *err) must_check;

#endif
