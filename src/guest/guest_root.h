/* SPDX-License-Identifier: MIT */
/* guest_root.h - the root of a guest: an archive in memory with the agent, and modules to load. */
#ifndef GUEST_GUEST_ROOT_H
#define GUEST_GUEST_ROOT_H

#include "guest/guest_args.h"

struct guest_module_args {
	const char *module, *text;
};

struct guest_root {
	const char *dir; /* the folder of the kernel's modules; NULL: none */
	/*
	 * The modules to load; built-in ones are left out, and the needs of the others are added.
	 * `args`, up to an entry without a name, or NULL, has their arguments.
	 */
	const char *const *names;
	const struct guest_module_args *args;
	const struct guest_args *words; /* the user's, some of which may be for modules; or NULL */
	/* Programs, with their libraries, for a kernel without this machine's files; NULL: none. */
	const char *const *programs;
	bool selftest;	   /* adds the test of the tracer of persistent memory */
	const char *files; /* the user's files, see guest_files.h; NULL: none */
	uint64_t memory;   /* the guest's memory */
};

/* Returns a descriptor of the archive. A static busybox of this machine is the guest's shell. */
/* `hash` gets the hash of the user's files in it, to be freed; NULL if there are none. */
int guest_root(const struct guest_root *r, char **hash, struct err *err) must_check;
/* Whether guests can run commands. */
bool guest_root_has_shell(void);

#endif
