/* SPDX-License-Identifier: MIT */
/* vm.h - the facts about a virtual machine before it is started. */
#ifndef TARGET_VM_H
#define TARGET_VM_H

#include "base/err.h"
#include "base/strbuf.h"

struct target_opts;
struct target_ops;

/*
 * Checks that the target has all that it needs: 0, or -errno and what to install. Its kernel is
 * checked last, and fetched if needed.
 */
int vm_check(const struct target_ops *ops, const struct target_opts *opts, struct err *err)
	must_check;
/* Returns the release of its kernel, to be freed; "unknown" if there is none. Fetches nothing. */
char *vm_release(const struct target_opts *opts);
/* Checks that a machine starts here: 0 and how, or -errno and what to do. Fetches nothing. */
int vm_probe(struct strbuf *how, struct err *err) must_check;
bool vm_has_program(void);
/* Whether a kernel for the target is in the cache. */
bool vm_has_kernel(const struct target_ops *ops);
/* Whether all its other requirements are there, too. */
bool vm_has(const struct target_ops *ops);

#endif
