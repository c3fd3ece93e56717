/* SPDX-License-Identifier: MIT */
/*
 * words.h - a line of words, as a shell would read it: blanks separate, 'single quotes' keep
 * everything, in "double quotes" a backslash quotes the next character (and \n is a line end), and
 * so it does outside of quotes. Nothing is expanded.
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct words vec_of(char *);

void words_release(struct words *w);
#define auto_words auto_call(words_release) struct words

/* Appends the words of `line`. Fails if a quote stays open, or a NUL is in it. */
int words_split(const char *line, size_t len, struct words *out, struct err *err) must_check;
/* Appends `word` such that words_split() gives it back, on one line whatever is in it. */
void words_quote(const char *word, struct strbuf *out);

#endif
