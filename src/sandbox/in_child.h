/* SPDX-License-Identifier: MIT */
/*
 * in_child.h - calls a function in a child, whose namespaces and changes are its own. The child is
 * ended, with all that it started, if it hangs or `stop` is set; processes that it leaves when it
 * returns are ended, too. The caller has no other children.
 */
#ifndef SANDBOX_IN_CHILD_H
#define SANDBOX_IN_CHILD_H

#include <signal.h>

#include "base/pool.h"

struct in_child {
	/* Its result, error and content of `out` are copied back. Notes its phase by pool_at(). */
	int (*fn)(void *ctx, struct pool_worker *w, void *out, struct err *err);
	void *ctx, *out;
	size_t out_size;
	uint64_t patience_ms;		   /* the longest silence */
	const volatile sig_atomic_t *stop; /* not 0: the child is ended; may be NULL */
};

int in_child(const struct in_child *c, struct err *err) must_check;

#endif
