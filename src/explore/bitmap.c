/* SPDX-License-Identifier: MIT */
/* bitmap.c - arguments that are bitmaps: which values there are, and what they are called. */
#include <fcntl.h>

#include "explore/inputs.h"

bool bitmap_is(const struct arg_def *arg)
{
	return arg->kind == ARG_FLAGS || arg->kind == ARG_MODE;
}

/* The word with the most bits that `value` has all of; NULL if there is none. */
static const struct word *widest(const struct arg_def *arg, uint64_t value)
{
	const struct word *best = NULL;

	for (const struct word *w = arg->words; w->name; w++)
		if (w->value && (value & w->value) == w->value &&
		    (!best || __builtin_popcount(w->value) > __builtin_popcount(best->value)))
			best = w;
	return best;
}

void bitmap_print(const struct arg_def *arg, uint64_t value, struct strbuf *out)
{
	const char *comma = "";

	if (arg->kind == ARG_MODE) {
		strbuf_addf(out, "%04llo", llu(value));
		return;
	}
	if (!value)
		strbuf_adds(out, "none");
	for (const struct word *w; (w = widest(arg, value)); value &= ~(uint64_t)w->value) {
		strbuf_addf(out, "%s%s", comma, w->name);
		comma = ",";
	}
}

/* A file cannot be opened for writing only and for both. */
static bool possible(const struct arg_def *arg, uint64_t value)
{
	return !streq(arg->words[0].name, "rdonly") || (value & O_ACCMODE) != O_ACCMODE;
}

void bitmap_all(const struct arg_def *arg, struct bitmap_values *out)
{
	unsigned words = 0;

	vec_clear(out);
	if (arg->kind == ARG_MODE) {
		for (uint64_t mode = 0; mode < (uint64_t)1 << MODE_BITS; mode++)
			vec_push(out, mode);
		return;
	}
	while (arg->words[words].name)
		words++;
	assert(words && words <= BITMAP_WORDS_MAX);
	for (uint32_t set = 0; set < (uint32_t)1 << words; set++) {
		uint64_t value = 0;

		for (unsigned i = 0; i < words; i++)
			if (set >> i & 1)
				value |= arg->words[i].value;
		if (possible(arg, value))
			vec_push(out, value);
	}
	/* Words may share bits, so that several sets of them make the same value. */
	vec_sort_unique(out, by_u64);
}
