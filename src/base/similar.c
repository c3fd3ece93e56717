/* SPDX-License-Identifier: MIT */
/* similar.c - finds the word with the fewest letters different from another. */
#include "base/similar.h"

#include "base/vec.h"

/* The number of letters to change, add, drop or swap to make one word the other. */
static size_t letters_between(const char *a, const char *b)
{
	enum { MOST = 40 };
	size_t n = strlen(a), m = strlen(b), row[3][MOST + 1];

	if (n > MOST || m > MOST)
		return SIZE_MAX;
	for (size_t i = 0; i <= n; i++) {
		size_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

		for (size_t j = 0; j <= m; j++) {
			if (!i || !j) {
				now[j] = i + j;
				continue;
			}
			now[j] = min(before[j - 1] + (a[i - 1] != b[j - 1]),
				     min(before[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min(now[j], earlier[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

const char *similar_of(const char *word, const char *const *words)
{
	size_t best = 1 + (strlen(word) >= 6) + (strlen(word) >= 12);
	const char *found = NULL;

	for (; *words; words++) {
		size_t d = letters_between(word, *words);

		if (d <= best && d < strlen(*words)) {
			best = d - !!d;
			found = *words;
		}
	}
	return found;
}

void similar_hint(const char *word, const char *words, struct strbuf *out)
{
	auto_free char *copy = xstrdup(words);
	auto_vec struct vec_of(const char *) all = { 0 };
	char *rest = copy;

	for (const char *one; (one = strsep(&rest, " ,"));)
		if (*one)
			vec_push(&all, one);
	vec_push(&all, NULL);
	const char *like = similar_of(word, all.v);
	if (like)
		strbuf_addf(out, " (did you mean %s?)", like);
}
