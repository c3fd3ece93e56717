/* SPDX-License-Identifier: MIT */
/*
 * fuzz_wire.c - a message of a guest may be anything: what is read from it lies inside it, texts
 * end, and once it is found to be cut short nothing more comes of it.
 */
#include "agent/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_part(struct wire_in *part, const uint8_t *end)
{
	for (unsigned i = 0; part->left && !part->bad; i++) {
		size_t n;

		switch (i % 4) {
		case 0:
			wire_u32(part);
			break;
		case 1:
			assert(strlen(wire_text(part)) <= (size_t)(end - part->p) + 65536);
			break;
		case 2:
			wire_u64(part);
			break;
		default:
			wire_bytes(part, &n);
			assert(n <= 65536);
		}
		assert(part->p <= end);
	}
	if (part->bad)
		assert(!wire_u32(part) && !wire_u64(part) && !*wire_text(part));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct wire_head head;
	struct wire_in part;
	uint32_t command;
	int32_t status;

	if (size < WIRE_HEAD)
		return 0;
	if (wire_head(data, &head, &err)) {
		assert(err.code < 0);
		return 0;
	}
	struct wire_in in = { data + WIRE_HEAD, size - WIRE_HEAD, false };
	while (wire_next(&in, &command, &status, &part)) {
		assert(part.p + part.left <= data + size);
		read_part(&part, part.p + part.left);
	}
	return 0;
}
