/* SPDX-License-Identifier: MIT */
/* pm_record.h - runs the program once, and makes RUN/base.img and RUN/trace. */
#ifndef PM_PM_RECORD_H
#define PM_PM_RECORD_H

#include <signal.h>

#include "pm/pm_keep.h"
#include "record/pm_tracer.h"

struct pm_record_opts {
	const struct tracer *tracer;
	const char *run;
	const char *file;	 /* absolute */
	const char *const *argv; /* the program */
	uint64_t size;		 /* if the file is missing, make it with so many zeros; 0: do not */
	uint64_t timeout_ms;
	const volatile sig_atomic_t *stop; /* `stop`, `base`, `outer` may be NULL */
	/*
	 * A recovery: the content to begin with, instead of the file's, and the marks before a
	 * point of another trace. A recovery that stores nothing gets no files.
	 */
	const struct image *base;
	const struct trace *outer;
	uint64_t outer_point;
};

/* True if an event tells the progress of a program or person: a check gets these events. */
static inline bool pm_is_mark(const struct event *ev)
{
	return ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_TEXT;
}

/*
 * Runs the program on a copy of the file. If the file is missing, the program makes it, and `made`
 * is set: the caller removes the file in the end. Fails if the stores of the program do not explain
 * the file's final content.
 */
int pm_record(const struct pm_record_opts *o, struct pm_counts *counts, bool *made, struct err *err)
	must_check;

#endif
