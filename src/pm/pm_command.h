/* SPDX-License-Identifier: MIT */
/*
 * pm_command.h - the commands of a run: what recovers, and what looks at it.
 *
 * A shell runs them. A tracer that follows one program and not those that it starts (QEMU) wants
 * the program itself: then a command must be plain, a program and its arguments, where $1 and
 * $OUTAGE_FILE are the file.
 */
#ifndef PM_PM_COMMAND_H
#define PM_PM_COMMAND_H

#include "base/words.h"
#include "record/pm_tracer.h"

/* The words of a plain command. Fails, and says what to do, if it is none. */
int pm_command_plain(const char *command, const char *file, struct words *out, struct err *err)
	must_check;

/* The words that a tracer runs for a command; NULL at the end is part of `out`. */
int pm_command_traced(const struct tracer *t, const char *command, const char *file,
		      struct words *out, struct err *err) must_check;

#endif
