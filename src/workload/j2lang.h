/* SPDX-License-Identifier: MIT */
/*
 * j2lang.h - imports templates of workloads as ACE writes them for xfstests (J2-lang).
 *
 * A file begins with "# J2-Lang" and has one operation. Its arguments are names of lists, which
 * stand above it: "file1 foo Afoo", "option1 append overlap_start", "write $file1 $option1". Each
 * choice from the lists is a workload of its own, and so is each file or directory that fsync or
 * fdatasync may act on after it. The needs of the operation become setup.
 */
#ifndef WORKLOAD_J2LANG_H
#define WORKLOAD_J2LANG_H

#include "workload/workload.h"

/* True if a file is in J2-lang. Restores the position; false if the stream cannot seek. */
bool j2lang_recognise(FILE *in);
/*
 * Calls back for each workload, which has a name made from `source`. Stops at a negative value, and
 * returns it.
 */
int j2lang_import(FILE *in, const char *source, int (*each)(void *ctx, struct workload *w),
		  void *ctx, struct err *err) must_check;

#endif
