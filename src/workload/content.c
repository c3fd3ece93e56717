/* SPDX-License-Identifier: MIT */
#include "workload/content.h"

#include "base/hash.h"
#include "workload/workload.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

uint32_t content_tag(const struct workload *w)
{
	auto_strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < w->ops.n; i++) {
		op_print(&w->ops.v[i], &text);
		strbuf_addch(&text, '\n');
	}
	return (uint32_t)hash64(strbuf_str(&text), text.len) & 0xfff;
}

static void make_word(uint32_t tag, uint64_t op, uint64_t index, char word[8])
{
	uint64_t value = (op & 0xfff) << 36 | (uint64_t)(tag & 0xfff) << 24 | (index & 0xffffff);

	for (int i = 0; i < 8; i++)
		word[i] = digits[value >> (42 - 6 * i) & 63];
}

void content_fill(uint32_t tag, uint64_t op, uint64_t offset, void *data, size_t len)
{
	char *to = data;

	while (len) {
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
	*out = (struct content_origin){
		.op = (uint32_t)(value >> 36),
		.tag = value >> 24 & 0xfff,
		.offset = (value & 0xffffff) * 8,
	};
	return true;
}
