/* SPDX-License-Identifier: MIT */
/* content.c - makes words of content, and tells from a word where it came from. */
#include "workload/content.h"

#include "base/hash.h"
#include "workload/workload.h"

enum { OP_MAX = 1 << 16, TAG_MAX = 1 << 10, INDEX_MAX = 1 << 22 };
static_assert(WORKLOAD_OPS_MAX <= (int)OP_MAX, "two operations would write the same");

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

uint32_t content_tag(const struct workload *w)
{
	auto_strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < w->ops.n; i++) {
		op_print(&w->ops.v[i], &text);
		strbuf_addch(&text, '\n');
	}
	return (uint32_t)hash64(strbuf_str(&text), text.len) & (TAG_MAX - 1);
}

/*
 * A one-to-one mixing of 48 bits: multiplying by an odd number carries low bits up, the shifts
 * carry high bits down. The same steps backwards, with the number's inverse, undo it.
 */
#define WORD_MASK (((uint64_t)1 << 48) - 1)
#define MIX	  0x9e3779b97f4bULL
#define UNMIX	  0x393dee219263ULL

static uint64_t mix(uint64_t v)
{
	v = v * MIX & WORD_MASK;
	v ^= v >> 24;
	v = v * MIX & WORD_MASK;
	return v ^ v >> 24;
}

static uint64_t unmix(uint64_t v)
{
	v ^= v >> 24;
	v = v * UNMIX & WORD_MASK;
	v ^= v >> 24;
	return v * UNMIX & WORD_MASK;
}

/* Two digits at a time: the reference file system spends most of its time on these words. */
static char pairs[4096][2];

__attribute__((constructor)) static void make_pairs(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++) {
		pairs[i][0] = digits[i >> 6];
		pairs[i][1] = digits[i & 63];
	}
}

static void make_word(uint32_t tag, uint64_t op, uint64_t index, char word[8])
{
	uint64_t value = mix((op & (OP_MAX - 1)) << 32 | (uint64_t)(tag & (TAG_MAX - 1)) << 22 |
			     (index & (INDEX_MAX - 1)));

	for (int i = 0; i < 4; i++)
		memcpy(word + 2 * i, pairs[value >> (36 - 12 * i) & 4095], 2);
}

void content_fill(uint32_t tag, uint64_t op, uint64_t offset, void *data, size_t len)
{
	char *to = data;

	while (len) {
		if (offset % 8 == 0 && len >= 8) {
			make_word(tag, op, offset / 8, to);
			to += 8;
			offset += 8;
			len -= 8;
			continue;
		}
		char word[8];
		size_t skip = offset % 8;
		size_t n = min(len, 8 - skip);

		make_word(tag, op, offset / 8, word);
		memcpy(to, word + skip, n);
		to += n;
		offset += n;
		len -= n;
	}
}

bool content_identify(const unsigned char word[8], struct content_origin *out)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++) {
		const char *digit = word[i] ? strchr(digits, word[i]) : NULL;

		if (!digit)
			return false;
		value = value << 6 | (uint64_t)(digit - digits);
	}
	value = unmix(value);
	*out = (struct content_origin){
		.op = (uint32_t)(value >> 32),
		.tag = value >> 22 & (TAG_MAX - 1),
		.offset = (value & (INDEX_MAX - 1)) * 8,
	};
	return true;
}
