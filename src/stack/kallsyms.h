/* SPDX-License-Identifier: MIT */
/*
 * kallsyms.h - names of a kernel's functions by their addresses, from a text: System.map, the
 * output of `nm` for a vmlinux, or /proc/kallsyms of the running kernel.
 *
 *	ffffffff81000000 T _text
 *	ffffffffc0201000 t ext4_init_fs	[ext4]
 *
 * Lines are in any order. Only symbols of code are kept.
 */
#ifndef STACK_KALLSYMS_H
#define STACK_KALLSYMS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum {
	KALLSYMS_NAME_MAX = 511,    /* as in the kernel */
	KALLSYMS_REACH = 256 << 10, /* the longest function: code behind has no name */
};

struct kallsym {
	uint64_t addr;
	uint32_t line; /* from 1 on */
	/* In `text`; module 0: the kernel itself. */
	uint32_t name, module;
	bool global;
};

struct kallsyms {
	struct vec_of(struct kallsym) all; /* by address, ascending, no two with the same */
	char *text;
};

#define KALLSYMS_INIT                                                                              \
	{                                                                                          \
		.text = NULL                                                                       \
	}

void kallsyms_release(struct kallsyms *k);

/* Parses a text that need not be trusted. A line of another form is an error, with its number. */
int kallsyms_parse(const char *text, size_t len, struct kallsyms *out, struct err *err) must_check;
int kallsyms_load(const char *path, struct kallsyms *out, struct err *err) must_check;

/* Finds the function around an address; false if there is none. `module` is "" for the kernel. */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **name, const char **module,
		   uint64_t *offset);

#endif
