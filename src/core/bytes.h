/* SPDX-License-Identifier: MIT */
/* bytes.h - little-endian fields of the file formats, one at a time. */
#ifndef CORE_BYTES_H
#define CORE_BYTES_H

#include "base/strbuf.h"

static inline uint32_t get_le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t get_le64(const unsigned char *p)
{
	return (uint64_t)get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

static inline void put_le32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static inline void put_le64(unsigned char *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline void strbuf_add_le32(struct strbuf *sb, uint32_t v)
{
	unsigned char b[4];

	put_le32(b, v);
	strbuf_add(sb, b, sizeof(b));
}

static inline void strbuf_add_le64(struct strbuf *sb, uint64_t v)
{
	unsigned char b[8];

	put_le64(b, v);
	strbuf_add(sb, b, sizeof(b));
}

#endif
