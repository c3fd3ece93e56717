/* SPDX-License-Identifier: MIT */
/* uml.h - the facts about a kernel of user-mode Linux before it is started. */
#ifndef TARGET_UML_H
#define TARGET_UML_H

#include "base/err.h"

/* Its release, to be freed; "unknown" if there is no such kernel. NULL: the one that is installed.
 */
char *uml_release(const char *kernel);
/* Whether it starts here, with disks, an agent and all: 0, or -errno and what to do. */
int uml_probe(struct err *err) must_check;

#endif
