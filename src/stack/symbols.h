/* SPDX-License-Identifier: MIT */
/* symbols.h - names of functions, and lines of source, for addresses of a file. */
#ifndef STACK_SYMBOLS_H
#define STACK_SYMBOLS_H

#include "stack/mapped.h"

struct symbols; /* the symbols of one file */

struct symbols *symbols_new(const struct module *m); /* NULL if it has none */
void symbols_free(struct symbols *s);

/*
 * Adds the frames of an address to `out`: one, or several if functions were inlined, the innermost
 * first. Only function, file and line are set; a frame is added in any case.
 */
struct stack_frames vec_of(struct stack_frame);
void symbols_add(const struct symbols *s, uint64_t addr, struct stack_frames *out);

/* The build id of a file, as text to be freed; NULL if it has none. */
char *symbols_build_id(const struct module *m);

#endif
