/* SPDX-License-Identifier: MIT */
/* pm_record.h - the one run of the program: RUN/base.img and RUN/trace are made of it. */
#ifndef PM_PM_RECORD_H
#define PM_PM_RECORD_H

#include <signal.h>

#include "pm/pm_keep.h"
#include "record/pm_tracer.h"

struct pm_record_opts {
	const struct tracer *tracer;
	const char *run;
	const char *file;	 /* absolute */
	const char *const *argv; /* of the program */
	uint64_t size; /* make the file, of so many zeros, if it is not there; 0: do not */
	uint64_t timeout_ms;
	const volatile sig_atomic_t *stop; /* may be NULL, as below */
	/*
	 * Of a recovery: what is there instead of what the file holds, and the marks before a point
	 * of another trace. Then it may store nothing, and nothing is written.
	 */
	const struct image *base;
	const struct trace *outer;
	uint64_t outer_point;
};

/* What a program or person says about where it is: the kinds that a check is told. */
static inline bool pm_is_mark(const struct event *ev)
{
	return ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_TEXT;
}

/*
 * The program works on a copy, if the file is there. If not, the program makes it, and `made` says
 * so: whoever asked removes it when all is done. What the program stored must explain what the
 * file holds afterwards.
 */
int pm_record(const struct pm_record_opts *o, struct pm_counts *counts, bool *made, struct err *err)
	must_check;

/*
 * Calls `fn` in a child, whose namespaces and changes are its own. What it returns, says and leaves
 * at `out` comes back. When `stop` becomes true, the child is ended, with all that it started. The
 * caller has no other children.
 */
int pm_in_child(int (*fn)(void *ctx, void *out, struct err *err), void *ctx, void *out,
		size_t out_size, const volatile sig_atomic_t *stop, struct err *err) must_check;

#endif
