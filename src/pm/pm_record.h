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
	 * For a recovery: the content instead of the file's, and the marks before a point of
	 * another trace. Then it may store nothing, and nothing is written.
	 */
	const struct image *base;
	const struct trace *outer;
	uint64_t outer_point;
};

/* Whether an event says where a program or person is: a check is told events of these kinds. */
static inline bool pm_is_mark(const struct event *ev)
{
	return ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_TEXT;
}

/*
 * The program works on a copy, if the file is there. If not, the program makes it, and `made` says
 * so: the caller removes it when all is done. The stores of the program must explain what the
 * file holds afterwards.
 */
int pm_record(const struct pm_record_opts *o, struct pm_counts *counts, bool *made, struct err *err)
	must_check;

#endif
