/* SPDX-License-Identifier: MIT */
/*
 * content.h - what workloads write: bytes that say where they came from.
 *
 * Every aligned 8-byte word of a file is 8 printable characters: the operation that wrote it, the
 * workload, and the word's place in the file. A wrong byte after a crash then tells which write it
 * belongs to; and two writes never put the same word in the same place.
 *
 *	byte 0-1  operation's index modulo 4096     (base 64, most significant first)
 *	byte 2-3  12 bits of the workload's tag
 *	byte 4-7  offset in the file / 8, modulo 2^24
 */
#ifndef WORKLOAD_CONTENT_H
#define WORKLOAD_CONTENT_H

#include "base/util.h"

struct workload;

/* Depends on the operations alone, not on name or comments. */
uint32_t content_tag(const struct workload *w);

/* Fills `len` bytes that operation `op` of the workload writes at `offset` of a file. */
void content_fill(uint32_t tag, uint64_t op, uint64_t offset, void *data, size_t len);

struct content_origin {
	uint32_t tag;	 /* 12 bits */
	uint32_t op;	 /* 12 bits */
	uint64_t offset; /* modulo 2^27 */
};

/* Reads a word back. False if these 8 bytes were not made by content_fill(). */
bool content_identify(const unsigned char word[8], struct content_origin *out);

#endif
