/* SPDX-License-Identifier: MIT */
/*
 * fuzz_pm_stream.c - any bytes as the stream of a tracer: what is accepted is a valid trace, and
 * its stores can be replayed. Sums are made right first, for no fuzzer would guess them.
 */
#include "record/pm_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REGION_MAX = 1 << 20 };

/* Puts the end where records stop to make sense, with the right count and sum. */
static void mend(unsigned char *data, size_t size)
{
	struct pm_stream_record r, end = { .kind = PM_STREAM_END };
	uint64_t sum = PM_STREAM_SUM_INIT;
	size_t at = sizeof(struct pm_stream_header);

	while (at + sizeof(r) <= size) {
		memcpy(&r, data + at, sizeof(r));
		size_t n = pm_stream_record_size(r.kind, r.len);

		if (r.kind == PM_STREAM_END || !r.kind || n > size - at) {
			end.pc = sum;
			memcpy(data + at, &end, sizeof(end));
			return;
		}
		sum = pm_stream_sum(sum, data + at, n);
		end.addr++;
		at += n;
	}
}

static void try(const unsigned char *data, size_t size)
{
	struct err err = ERR_INIT;
	struct pm_counts counts;
	auto_trace t;

	trace_init(&t);
	int rc = pm_stream_read(data, size, &t, &counts, &err);
	if (rc && (!err.code || !err.msg[0]))
		abort();
	if (!rc && trace_validate(&t, &err))
		abort();
	if (!rc && t.info.size && t.info.size <= REGION_MAX) {
		auto_image base = IMAGE_INIT;

		image_init(&base, t.info.size);
		(void)!pm_replay_check(&t, &base, &base, &err);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free unsigned char *copy = xmalloc(size + 1);

	memcpy(copy, data, size);
	try(copy, size);
	mend(copy, size);
	try(copy, size);
	return 0;
}
