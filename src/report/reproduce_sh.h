/* SPDX-License-Identifier: MIT */
/* reproduce_sh.h - shared by the files that make reproduce.sh; each function appends to `out`. */
#ifndef REPORT_REPRODUCE_SH_H
#define REPORT_REPRODUCE_SH_H

#include "report/view.h"

bool script_has(const struct view *v, enum finding_kind kind);

/* ---- script_fs.c ---- */

/* Functions new_disk, recover and mount_as, and refusals where none of them could work. */
void script_fs(const struct view *v, struct strbuf *out);
/* The function fsck_complains. */
void script_fsck(const struct view *v, struct strbuf *out);

/* ---- script_problem.c ---- */

/*
 * All names of the file that a problem is about: the path, and of a file that is in several places
 * or in none, the others.
 */
struct script_names vec_of(char *);

void script_names(const struct stored_problem *p, struct script_names *out);
void script_names_release(struct script_names *names);
#define auto_script_names __attribute__((cleanup(script_names_release))) struct script_names

/*
 * A command that succeeds if the problem shows in what is mounted, fails with 1 if it does not, and
 * with 2 if that cannot be told.
 */
void script_condition(const struct view *v, const struct stored_problem *p, struct strbuf *out);
/* A function that some of these commands call. */
extern const char script_whole_tree[];

#endif
