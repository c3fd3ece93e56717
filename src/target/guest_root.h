/* SPDX-License-Identifier: MIT */
/* guest_root.h - the root of a guest: an archive in memory with the agent, and modules to load. */
#ifndef TARGET_GUEST_ROOT_H
#define TARGET_GUEST_ROOT_H

#include "base/err.h"

struct guest_module_args {
	const char *module, *text;
};

/*
 * A descriptor of the archive. `dir` is the folder of the kernel's modules, with its modules.dep;
 * NULL: there are none. Of `names`, those that the kernel has built in are left out, and each of
 * the others brings along what it needs; `args`, up to one without a name, or NULL, is what modules
 * are told. `programs`, with their libraries, are for a kernel that cannot see this machine's
 * files; NULL: there are none. `selftest`: so is the test of the tracer of persistent memory. Where
 * this machine has a static busybox, it is the guest's shell.
 */
int guest_root(const char *dir, const char *const *names, const struct guest_module_args *args,
	       const char *const *programs, bool selftest, struct err *err) must_check;
/* Whether guests can run commands. */
bool guest_root_has_shell(void);

#endif
