/* SPDX-License-Identifier: MIT */
/* similar.h - finds the word that was probably meant by an unknown one. */
#ifndef BASE_SIMILAR_H
#define BASE_SIMILAR_H

#include "base/strbuf.h"

/* The word that is most like `word`, of those up to NULL; NULL if none is. */
const char *similar_of(const char *word, const char *const *words);
/*
 * Adds " (did you mean ext4?)", or nothing. The words that there are have blanks or commas between
 * them.
 */
void similar_hint(const char *word, const char *words, struct strbuf *out);

#endif
