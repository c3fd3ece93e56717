/* SPDX-License-Identifier: MIT */
/*
 * run_places.h - where in a guest's kernel something was done, with names. Modules are elsewhere in
 * each machine that boots, and so may be the kernel itself, so the names are those of the machine
 * that made the trace. The machine gives them as long as it runs; a case keeps those that its
 * traces need, in a file "places", a line each:
 *
 *	0xffffffff819c1175 __memcpy_flushcache+0x85
 *	0xffffffffc02837d2 pmem_do_write+0xa2 [nd_pmem]
 */
#ifndef RUN_RUN_PLACES_H
#define RUN_RUN_PLACES_H

#include "run/run.h"

/* Adds a place in the trace: "0xffffffff819c1175 (__memcpy_flushcache+0x85)", or the address alone.
 */
void place_words(struct run *r, const struct trace *t, uint64_t addr, struct strbuf *out);
/* Prints the named places of all stores of the traces, and of their callers; `more` may be NULL. */
void places_print(struct run *r, const struct trace *t, const struct trace *more,
		  struct strbuf *out);

/* Read back, by address. */
struct place_name {
	uint64_t addr;
	char *name;
};

struct places vec_of(struct place_name);

/* The text may come from anywhere: lines that are none are left out. */
void places_parse(const char *text, struct places *out);
void places_release(struct places *p);
/* NULL: it has none. */
const char *places_find(const struct places *p, uint64_t addr);

#endif
