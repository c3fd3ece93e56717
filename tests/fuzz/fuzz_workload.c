/* SPDX-License-Identifier: MIT */
/*
 * fuzz_workload.c - a stream of workloads is read or refused with a sentence, and what was read
 * survives being printed and read again.
 */
#include "workload/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every workload of a text and prints them. 0 or -errno. */
static int reprint(const void *text, size_t len, struct strbuf *out)
{
	auto_file in = fmemopen((void *)(uintptr_t)text, len, "r");
	auto_workload w;
	struct workload_reader r;
	struct err err = ERR_INIT;
	int rc;

	assert(in);
	workload_init(&w);
	workload_reader_init(&r, in, "fuzz");
	while ((rc = workload_reader_next(&r, &w, &err)) > 0)
		workload_print(&w, out);
	assert(!rc == !err.code);
	assert(!rc || (strncmp(err.msg, "fuzz:", 5) == 0 && !strchr(err.msg, '\n')));
	assert(!rc || !w.ops.n);
	workload_reader_release(&r);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_strbuf once = STRBUF_INIT, twice = STRBUF_INIT;

	if (!size || reprint(data, size, &once) || !once.len)
		return 0;
	if (reprint(once.buf, once.len, &twice) || !streq(once.buf, strbuf_str(&twice))) {
		fprintf(stderr, "first:\n%s\nthen:\n%s\n", once.buf, strbuf_str(&twice));
		abort();
	}
	return 0;
}
