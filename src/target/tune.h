/* SPDX-License-Identifier: MIT */
/*
 * tune.h - settings of the whole machine that make runs faster, for as long as a run lasts.
 *
 * Console: file systems that are cut off before they are unmounted log that in the kernel's log,
 * and a serial console makes the kernel wait for each line. kthreadd: a mount starts kernel
 * threads, and on a busy machine each waits for its turn; with real-time priority it does not.
 *
 * T1: tune_restore() restores the settings; if the process that called tune_apply() ends without
 *     that, whatever ends it, another process, the guardian, restores them.
 * T2: a setting that another program changed meanwhile is not restored.
 */
#ifndef TARGET_TUNE_H
#define TARGET_TUNE_H

#include "base/err.h"

enum { TUNE_CONSOLE_LEVEL = 1 }; /* emergencies only */

struct tune {
	pid_t guardian; /* 0: nothing was changed */
	int console;	/* the level before; 0: not changed */
	bool kthreadd;	/* kthreadd was raised */
};

/* Needs root. A setting that has the wanted value already is neither changed nor restored. */
int tune_apply(struct tune *t, struct err *err) must_check;
/* `t` comes from tune_apply(), or is all zeros. */
void tune_restore(struct tune *t);

/* The console's log level, or 0 if it cannot be read. */
int tune_console_level(void);
/* Whether the kernel waits for a serial line to print its alerts. */
bool tune_console_is_slow(void);
/* Whether kthreadd has real-time priority. */
bool tune_kthreadd_raised(void);

#endif
