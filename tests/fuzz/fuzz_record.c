/* SPDX-License-Identifier: MIT */
/*
 * fuzz_record.c - record_parse takes any bytes without harm, and what it accepts survives being
 * printed and read again.
 */
#include "../unit/record-sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample first = { 0 }, second = { 0 };
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT, would = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (record_parse(&sample_type, (const char *)data, size, "case", &first, NULL, &err)) {
		assert(err.code < 0 && strncmp(err.msg, "case", 4) == 0);
		assert(!first.target && !first.parts.n && !first.files.n);
		return 0;
	}
	assert(first.target && *first.target);
	record_would(&sample_type, &first, &would);
	record_print(&sample_type, &first, &text);
	if (record_parse(&sample_type, text.buf, text.len, "case", &second, NULL, &err))
		abort();
	record_print(&sample_type, &second, &again);
	assert(streq(text.buf, again.buf));
	record_release(&sample_type, &first);
	record_release(&sample_type, &second);
	return 0;
}
