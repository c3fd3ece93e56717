/* SPDX-License-Identifier: MIT */
/* uml.h - the facts about a kernel of user-mode Linux before it is started. */
#ifndef TARGET_UML_H
#define TARGET_UML_H

#include "base/err.h"

/* Returns the release of a kernel, to be freed; "unknown" if there is none. NULL: the installed
 * one.
 */
char *uml_release(const char *kernel);
/* Checks that it starts here, with disks and agent: 0, or -errno and a sentence with a remedy. */
int uml_probe(struct err *err) must_check;

#endif
