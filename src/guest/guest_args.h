/* SPDX-License-Identifier: MIT */
/* guest_args.h - the user's words for the command line of a guest's kernel, or of QEMU. */
#ifndef GUEST_GUEST_ARGS_H
#define GUEST_GUEST_ARGS_H

#include "base/err.h"
#include "base/strbuf.h"

/* The command line of a kernel has 2047 bytes on x86, some of which we need. */
enum { GUEST_ARGS_MAX = 32, GUEST_ARGS_BYTES_MAX = 1000 };

struct guest_args {
	const char *v[GUEST_ARGS_MAX];
	unsigned n;
	char *text; /* the memory of the words */
};

/* Splits the words of `option` at blanks; NULL: none. The caller releases the words. */
int guest_args_split(const char *words, const char *option, struct guest_args *out, struct err *err)
	must_check;
void guest_args_release(struct guest_args *a);
/*
 * Appends to the parameters of the module in file `path` those words that are for it, as
 * modprobe(8) does: of "MODULE.NAME=VALUE" it gets "NAME=VALUE".
 */
void guest_args_of_module(const struct guest_args *a, const char *path, struct strbuf *out);

#endif
