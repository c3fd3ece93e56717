/* SPDX-License-Identifier: MIT */
/*
 * pm_selftest.h - does the tracer tell the truth, with this emulator? A program whose trace is
 * known (plugin/selftest.S) is run; what comes must be exactly that.
 */
#ifndef RECORD_PM_SELFTEST_H
#define RECORD_PM_SELFTEST_H

#include "base/err.h"

struct tracer;

/* Tries the fast way first, then the safe one: `t->filter` is left as it must be. */
int selftest_run(struct tracer *t, struct err *err) must_check;

#endif
