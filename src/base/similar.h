/* SPDX-License-Identifier: MIT */
/* similar.h - finds the word that was probably meant by an unknown one. */
#ifndef BASE_SIMILAR_H
#define BASE_SIMILAR_H

#include "base/strbuf.h"

/* Returns the word of a NULL-terminated list that is most like `word`; NULL if none is like it. */
const char *similar_of(const char *word, const char *const *words);
/*
 * Adds " (did you mean ext4?)", or nothing. Blanks or commas separate `words`.
 */
void similar_hint(const char *word, const char *words, struct strbuf *out);

#endif
