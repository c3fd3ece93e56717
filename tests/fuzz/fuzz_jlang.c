/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jlang.c - a j-lang file is imported or refused with a sentence, and what was imported is a
 * workload: its text can be read, and printing that gives the same text.
 */
#include "workload/jlang.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_file in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	auto_workload w, again;
	auto_strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
	struct err err = ERR_INIT;

	workload_init(&w);
	workload_init(&again);
	if (!in)
		return 0;
	jlang_recognise(in);
	assert(ftell(in) == 0);
	if (jlang_import(in, "fuzz", &w, &err)) {
		assert(strncmp(err.msg, "fuzz:", 5) == 0 && !strchr(err.msg, '\n'));
		assert(!w.ops.n);
		return 0;
	}
	workload_print(&w, &once);
	if (workload_parse(once.buf, once.len, "imported", &again, &err)) {
		fprintf(stderr, "%s\n%s", err.msg, once.buf);
		abort();
	}
	workload_print(&again, &twice);
	assert(streq(once.buf, strbuf_str(&twice)));
	return 0;
}
