/* SPDX-License-Identifier: MIT */
/*
 * guest_opts.h - options of replay and shrink that put another kernel under a finding: is it gone
 * with my fix?
 */
#ifndef CLI_GUEST_OPTS_H
#define CLI_GUEST_OPTS_H

#include <getopt.h>

#include "run/store.h"

enum { OPT_GUEST_KERNEL = 1000, OPT_GUEST_MODULES, OPT_GUEST_MEMORY };

#define GUEST_OPTIONS                                                                              \
	{ "kernel", required_argument, NULL, OPT_GUEST_KERNEL },                                   \
		{ "modules", required_argument, NULL, OPT_GUEST_MODULES },                         \
	{                                                                                          \
		"guest-memory", required_argument, NULL, OPT_GUEST_MEMORY                          \
	}

struct guest_opts {
	char *kernel, *modules;
	uint64_t memory;
};

/* Takes one of those options: 1 if it is none of them. */
int guest_opts_take(struct guest_opts *g, int opt, const char *arg, struct err *err) must_check;
/* Puts them into a case, which must have been found in a guest if there are any. */
int guest_opts_apply(struct guest_opts *g, struct stored_case *c, struct err *err) must_check;
void guest_opts_release(struct guest_opts *g);

/*
 * Looks for the kernel that the case would be tried on. `out` gets one sentence if that is another
 * than the one it was found on, else nothing.
 */
int guest_opts_compare(const struct stored_case *c, struct strbuf *out, struct err *err) must_check;

#endif
