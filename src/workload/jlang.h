/* SPDX-License-Identifier: MIT */
/*
 * jlang.h - imports CrashMonkey's workload files (j-lang).
 *
 * A file has the sections "# define" (the paths used), "# declare" (ignored), "# setup" and "# run"
 * with one operation a line. Operations name a path with its slashes dropped ("Afoo" is A/foo), and
 * act on the descriptor that "open" left for that path; "test" is the root. CrashMonkey's setup is
 * on disk before it records: here these operations are marked setup and synced.
 */
#ifndef WORKLOAD_JLANG_H
#define WORKLOAD_JLANG_H

#include "workload/workload.h"

/* True if a file looks like j-lang. Restores the position; false if the stream cannot seek. */
bool jlang_recognise(FILE *in);
/* Reads a whole j-lang file. The workload is named after `source`. */
int jlang_import(FILE *in, const char *source, struct workload *out, struct err *err) must_check;

#endif
