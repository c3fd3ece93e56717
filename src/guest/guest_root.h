/* SPDX-License-Identifier: MIT */
/* guest_root.h - the root of a guest: an archive in memory with the agent, and modules to load. */
#ifndef GUEST_GUEST_ROOT_H
#define GUEST_GUEST_ROOT_H

#include "base/err.h"

struct guest_module_args {
	const char *module, *text;
};

struct guest_root {
	const char *dir; /* of the kernel's modules, with its modules.dep; NULL: there are none */
	/*
	 * Of these modules, those that the kernel has built in are left out, and each of the others
	 * brings along what it needs; `args`, up to one without a name, or NULL, is what they are
	 * told.
	 */
	const char *const *names;
	const struct guest_module_args *args;
	/* With their libraries, for a kernel that cannot see this machine's files; NULL: none. */
	const char *const *programs;
	bool selftest;	   /* the test of the tracer of persistent memory */
	const char *files; /* of the user's, as guest_files.h has them; NULL: none */
	uint64_t memory;   /* that the guest has */
};

/* A descriptor of the archive. Where this machine has a static busybox, it is the guest's shell. */
/* `hash` is that of the user's files that are in it, to be freed; NULL: there are none. */
int guest_root(const struct guest_root *r, char **hash, struct err *err) must_check;
/* Whether guests can run commands. */
bool guest_root_has_shell(void);

#endif
