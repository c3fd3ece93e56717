/* SPDX-License-Identifier: MIT */
/*
 * tune.h - settings of the whole machine that make runs faster, for as long as a run lasts.
 *
 * Console: file systems that are cut off before they are unmounted say so to the kernel's log, and
 * a serial console makes the kernel wait for each line. kthreadd: a mount starts kernel threads,
 * and on a busy machine each waits for its turn; with real-time priority it does not.
 *
 * T1: tune_restore() puts back what was changed; if the process that called tune_apply() ends
 *     without that, whatever ends it, a process of its own, the guardian, does it.
 * T2: nothing is put back that was changed by others meanwhile.
 */
#ifndef TARGET_TUNE_H
#define TARGET_TUNE_H

#include "base/err.h"

enum { TUNE_CONSOLE_LEVEL = 1 }; /* emergencies only */

struct tune {
	pid_t guardian; /* 0: nothing was changed */
	int console;	/* the level that was there; 0: not changed */
	bool kthreadd;	/* kthreadd was raised */
};

/* Needs root. A setting that is as wished already stays as it is, and is not put back either. */
int tune_apply(struct tune *t, struct err *err) must_check;
/* Accepts what tune_apply() made, and zeros. */
void tune_restore(struct tune *t);

/* The console's log level, or 0 if it cannot be read. */
int tune_console_level(void);
/* Whether the kernel waits for a serial line to print its alerts. */
bool tune_console_is_slow(void);
/* Whether kthreadd has real-time priority. */
bool tune_kthreadd_raised(void);

#endif
