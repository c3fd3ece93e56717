/* SPDX-License-Identifier: MIT */
/*
 * pm_command.h - the commands of a run, which recover and check its states.
 *
 * A shell runs them. A tracer that follows one program and not its children (QEMU) needs the
 * program itself: then a command must be plain, a program and its arguments, where $1 and
 * $OUTAGE_FILE are the file.
 */
#ifndef PM_PM_COMMAND_H
#define PM_PM_COMMAND_H

#include "base/words.h"
#include "record/pm_tracer.h"

/* Splits a plain command into words. Fails, with advice, if the command is not plain. */
int pm_command_plain(const char *command, const char *file, struct words *out, struct err *err)
	must_check;

/* Makes the words that a tracer runs for a command; the NULL at the end is part of `out`. */
int pm_command_traced(const struct tracer *t, const char *command, const char *file,
		      struct words *out, struct err *err) must_check;

#endif
