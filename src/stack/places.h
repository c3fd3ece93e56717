/* SPDX-License-Identifier: MIT */
/*
 * places.h - names for addresses of code of a program that has ended, by what it had mapped then.
 *
 * A mapping is a line "START-END OFFSET PATH", in hexadecimal. Nothing is assumed of the text, nor
 * of the files.
 */
#ifndef STACK_PLACES_H
#define STACK_PLACES_H

#include "base/err.h"
#include "base/strbuf.h"

struct code_places;

struct code_places *code_places_new(const char *maps);
void code_places_free(struct code_places *p); /* NULL is fine */

/*
 * Adds "log.c:40 in append", with the functions that it was put into behind a comma each; without
 * lines "append (liblog.so+0x1234)". False, and nothing is added, if the address is in no file.
 */
bool code_places_words(struct code_places *p, uint64_t addr, struct strbuf *out);

#endif
