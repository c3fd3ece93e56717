/* SPDX-License-Identifier: MIT */
/* reproduce_sh.h - declarations for the files that make reproduce.sh; functions append to `out`. */
#ifndef REPORT_REPRODUCE_SH_H
#define REPORT_REPRODUCE_SH_H

#include "base/words.h"
#include "report/view.h"

bool script_has(const struct view *v, enum finding_kind kind);

/* ---- script_fs.c ---- */

/* Puts functions new_disk, recover and mount_as, and refusals if these could not work. */
void script_fs(const struct view *v, struct strbuf *out);
/* Puts the function fsck_complains. */
void script_fsck(const struct view *v, struct strbuf *out);

/* ---- script_problem.c ---- */

/*
 * All names of a problem's file: its path and, if the file has several places or none, the other
 * names.
 */
void script_names(const struct stored_problem *p, struct words *out);

/*
 * Puts a command that succeeds if the problem shows in the mounted tree, fails with 1 if it does
 * not, and with 2 if that is unknown.
 */
void script_condition(const struct view *v, const struct stored_problem *p, struct strbuf *out);

#endif
