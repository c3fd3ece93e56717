/* SPDX-License-Identifier: MIT */
/*
 * pm_selftest.h - tests the tracer with this emulator: runs a program whose trace is known
 * (plugin/selftest.S), and compares.
 */
#ifndef RECORD_PM_SELFTEST_H
#define RECORD_PM_SELFTEST_H

#include "base/err.h"

struct tracer;

enum { SELFTEST_REGION = 8192 }; /* bytes that the program uses; zeros at first */

struct selftest_wrong {
	uint64_t number; /* the first wrong record, from 1; 0: none */
	char what[120];	 /* the record, and the expected one */
};

/*
 * Compares the program's trace with the table. In a machine, a kernel may move the program to
 * another processor, and run other code in between.
 */
int pm_selftest_compare(const void *stream, size_t len, bool in_machine,
			struct selftest_wrong *wrong, struct err *err) must_check;

/* Tries the fast way first, then the safe one, and sets `t->filter` to the one that works. */
int pm_selftest_run(struct tracer *t, struct err *err) must_check;

#endif
