/* SPDX-License-Identifier: MIT */
/* vm.h - what is known of a virtual machine before it is started. */
#ifndef TARGET_VM_H
#define TARGET_VM_H

#include "base/err.h"
#include "base/strbuf.h"

/* The release of the kernel for the target `spec`, to be freed; fetched if need be. */
char *vm_release(const char *spec, const char *kernel);
/* Whether a machine starts here: 0 and how, or -errno and what to do. Fetches nothing. */
int vm_probe(struct strbuf *how, struct err *err) must_check;
bool vm_has_program(void);
/* Whether a kernel with that file system is in the cache. */
bool vm_has(const char *fs);

#endif
