/* SPDX-License-Identifier: MIT */
/*
 * content.h - the bytes that workloads write, from which their origin can be read.
 *
 * Every aligned 8-byte word of a file is 8 printable characters that hold, well mixed, which
 * operation wrote it, of which workload, and the word's place in the file. A wrong word after a
 * crash then tells which write it belongs to. Two operations never put the same word in the same
 * place; and as each character depends on all three, a part of a word distinguishes them as well
 * (one character does in 63 of 64 cases).
 *
 * The 48 bits of a word, before they are mixed:
 *
 *	bit 32-47  the operation's index
 *	bit 22-31  10 bits of the workload's tag
 *	bit  0-21  offset in the file / 8, modulo 2^22
 */
#ifndef WORKLOAD_CONTENT_H
#define WORKLOAD_CONTENT_H

#include "base/util.h"

struct workload;

/* The tag of a workload: depends on the operations alone, not on name or comments. */
uint32_t content_tag(const struct workload *w);

/* Fills `len` bytes that operation `op` of the workload writes at `offset` of a file. */
void content_fill(uint32_t tag, uint64_t op, uint64_t offset, void *data, size_t len);

struct content_origin {
	uint32_t tag;	 /* 10 bits */
	uint32_t op;	 /* 16 bits */
	uint64_t offset; /* modulo 2^25 */
};

/* Gives the origin of a word. False if content_fill() did not make these 8 bytes. */
bool content_identify(const unsigned char word[8], struct content_origin *out);

#endif
