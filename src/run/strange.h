/* SPDX-License-Identifier: MIT */
/*
 * strange.h - tells what a run or a case of a stranger's would do through its target.
 *
 * A guest is a place of its own, so a target in one needs no trust by itself. This machine's kernel
 * is none: a disk can be made to crash it, and so can an option of mount.
 */
#ifndef RUN_STRANGE_H
#define RUN_STRANGE_H

#include "trust/trust.h"

/* Adds a target's effects in words (trust.h). `disk`: one that came with the case is mounted. */
void strange_target(const char *spec, bool disk, struct strbuf *would);
/* trust_refuse() for what has such a target. */
int strange_refuse(const char *dir, const char *file, const char *spec, const struct err *why,
		   const struct strbuf *would, struct err *err);

#endif
