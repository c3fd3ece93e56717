/* SPDX-License-Identifier: MIT */
/*
 * pm_selftest.h - does the tracer tell the truth, with this emulator? A program whose trace is
 * known (plugin/selftest.S) is run; its trace must be exactly that.
 */
#ifndef RECORD_PM_SELFTEST_H
#define RECORD_PM_SELFTEST_H

#include "base/err.h"

struct tracer;

enum { SELFTEST_REGION = 8192 }; /* bytes that the program uses; zeros at first */

struct selftest_wrong {
	uint64_t number; /* of the first record, from 1, that is not what it must be; 0: none */
	char what[120];	 /* the record that is there, and the one that should be */
};

/*
 * Compares what was traced of the program. In a machine, a kernel may move it to another processor,
 * and do something else in between.
 */
int pm_selftest_compare(const void *stream, size_t len, bool in_machine,
			struct selftest_wrong *wrong, struct err *err) must_check;

/* Tries the fast way first, then the safe one: `t->filter` is left as it must be. */
int pm_selftest_run(struct tracer *t, struct err *err) must_check;

#endif
