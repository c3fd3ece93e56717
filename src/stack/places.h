/* SPDX-License-Identifier: MIT */
/*
 * places.h - names for code addresses of a program that has ended, by the mappings that it had.
 *
 * A mapping is a line "START-END OFFSET PATH", in hexadecimal. Neither the text nor the files are
 * trusted.
 */
#ifndef STACK_PLACES_H
#define STACK_PLACES_H

#include "base/err.h"
#include "base/strbuf.h"

struct code_places;

struct code_places *code_places_new(const char *maps);
void code_places_free(struct code_places *p); /* NULL is fine */

/*
 * Adds "log.c:40 in append", followed by the functions into which it was inlined, each after a
 * comma; without lines "append (liblog.so+0x1234)". False, and nothing is added, if the address is
 * in no file.
 */
bool code_places_words(struct code_places *p, uint64_t addr, struct strbuf *out);

#endif
