/* SPDX-License-Identifier: MIT */
/*
 * fuzz_suppress.c - suppress_parse takes any bytes without harm; rules that were printed and read
 * again name the same.
 */
#include "case/suppress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const clusters[] = { "missing: write fsync rename fsync",
						"size: dwrite fsync", "lost:", "" };
	struct suppress first = { 0 }, second = { 0 };
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (suppress_parse(&first, (const char *)data, size, "known", &err) < 0) {
		assert(err.code < 0 && strncmp(err.msg, "known:", 6) == 0);
		suppress_release(&first);
		return 0;
	}
	suppress_print(&first, &text);
	if (suppress_parse(&second, strbuf_str(&text), text.len, "known", &err) < 0)
		abort();
	suppress_print(&second, &again);
	assert(streq(strbuf_str(&text), strbuf_str(&again)));
	for (size_t i = 0; i < ARRAY_SIZE(clusters); i++)
		assert(suppress_names(&first, "ext4", clusters[i]) ==
		       suppress_names(&second, "ext4", clusters[i]));
	suppress_release(&first);
	suppress_release(&second);
	return 0;
}
