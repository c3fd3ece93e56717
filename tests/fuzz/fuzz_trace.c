/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trace.c - whatever the bytes, a trace or log is read or refused, and what is read is valid.
 *
 * The first byte says what the rest is taken for: a trace file as it is, a trace file whose
 * checksums are put right (or no mutation would get past them), the events of a single frame (and
 * the record of an application's call), or a dm-log-writes log.
 */
#include "base/hash.h"
#include "core/bytes.h"
#include "core/dmlog.h"
#include "core/model.h"
#include "core/posix.h"
#include "core/trace_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is valid may still make no sense to a model; then it says so. */
static void run_models(const struct trace *t)
{
	auto_image zeros;

	image_init(&zeros, min(t->info.size, IMAGE_SIZE_MAX));
	for (size_t i = 0; model_at(i); i++) {
		auto_model m =
			model_new(model_at(i), &(struct model_opts){ .tear_unit = 8 }, &zeros);
		struct err err = ERR_INIT;
		int rc = 0;
		size_t n;

		for (size_t e = 0; !rc && e < t->events.n; e++)
			rc = model_apply(m, e, &t->events.v[e], &err);
		assert(!rc || err.msg[0]);
		if (!rc)
			model_pieces(m, &n);
	}
}

static void must_be_valid(struct trace *t)
{
	struct err err = ERR_INIT;

	if (trace_validate(t, &err)) {
		fprintf(stderr, "accepted, but not valid: %s\n", err.msg);
		abort();
	}
	run_models(t);
	trace_release(t);
}

static void load(const void *data, size_t size)
{
	struct trace_damage damage = { 0 };
	struct err err = ERR_INIT;
	struct trace t;

	if (trace_load_bytes(data, size, &t, &damage, &err) == 0) {
		if (damage.found && (damage.events != t.events.n || !damage.text[0]))
			abort();
		must_be_valid(&t);
	} else if (!err.msg[0]) {
		abort();
	}
}

static void import(const void *data, size_t size)
{
	struct err err = ERR_INIT;
	struct trace t;

	if (dmlog_import_bytes(data, size, &t, &err) == 0)
		must_be_valid(&t);
	else if (!err.msg[0])
		abort();
}

/* Gives the header and every frame that can be found the checksum that belongs there. */
static void load_repaired(const uint8_t *data, size_t size)
{
	auto_free unsigned char *copy = (unsigned char *)xmemdupz(data, size);
	size_t at = TRACE_FILE_HEADER;

	if (size < at)
		return;
	put_le64(copy + at - TRACE_FILE_CHECKSUM, hash64(copy, at - TRACE_FILE_CHECKSUM));
	while (size - at >= TRACE_FRAME_HEADER + TRACE_FILE_CHECKSUM) {
		size_t len = TRACE_FRAME_HEADER + (size_t)get_le32(copy + at + 8);

		if (len > size - at - TRACE_FILE_CHECKSUM)
			break;
		put_le64(copy + at + len, hash64(copy + at, len));
		at += len + TRACE_FILE_CHECKSUM;
	}
	load(copy, size);
}

static void load_events(const uint8_t *data, size_t size)
{
	auto_strbuf file = STRBUF_INIT;

	if (size < 1)
		return;
	strbuf_adds(&file, "\x8aOUTAGE\n");
	strbuf_add_le32(&file, TRACE_FILE_VERSION);
	strbuf_add_le32(&file, 0);
	strbuf_add_le64(&file, 1 << 20);
	strbuf_add_le32(&file, 512);
	while (file.len < TRACE_FILE_HEADER)
		strbuf_addch(&file, '\0');
	strbuf_adds(&file, "EVTS");
	strbuf_add_le32(&file, (uint32_t)(size - 1));
	strbuf_add_le32(&file, (uint32_t)(size - 1));
	strbuf_add_le32(&file, data[0]);
	strbuf_add_le64(&file, 0);
	strbuf_add(&file, data + 1, size - 1);
	strbuf_add_le64(&file, 0);
	load_repaired((const uint8_t *)file.buf, file.len);
}

/* A record that is accepted gives the same bytes again. */
static void decode_call(const uint8_t *data, size_t size)
{
	auto_strbuf again = STRBUF_INIT;
	struct event ev = { .kind = EV_POSIX, .len = size, .data = data };
	struct posix_event p;
	struct err err = ERR_INIT;

	if (posix_decode(&ev, &p, &err)) {
		assert(err.msg[0]);
		return;
	}
	posix_encode(&p, &again);
	assert(again.len == size && memcmp(again.buf, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		load(data + 1, size - 1);
		break;
	case 1:
		load_repaired(data + 1, size - 1);
		break;
	case 2:
		load_events(data + 1, size - 1);
		decode_call(data + 1, size - 1);
		break;
	default:
		import(data + 1, size - 1);
	}
	return 0;
}
