/* SPDX-License-Identifier: MIT */
/*
 * fuzz_plan.c - plan_parse takes any bytes without harm, and what it accepts is whole and survives
 * being printed and read again.
 */
#include "run/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan first, second;
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT;
	struct run_opts opts;
	struct err err = ERR_INIT;

	if (plan_parse((const char *)data, size, "run", &first, &err) < 0) {
		assert(err.code < 0 && strncmp(err.msg, "run", 3) == 0);
		return 0;
	}
	plan_run_opts(&first, &opts);
	assert(opts.target.spec && opts.guarantee && first.workloads);
	plan_print(&first, &text);
	if (plan_parse(text.buf, text.len, "run", &second, &err) < 0)
		abort();
	plan_print(&second, &again);
	assert(streq(text.buf, again.buf));
	assert(plan_agrees(&first, &second, &err) == 0);
	plan_release(&first);
	plan_release(&second);
	return 0;
}
