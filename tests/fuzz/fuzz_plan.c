/* SPDX-License-Identifier: MIT */
/*
 * fuzz_plan.c - the plan of a run of outage test takes any bytes without harm, and what it accepts
 * is whole and survives being printed and read again.
 */
#include "case/given.h"
#include "run/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan first, second;
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT;
	struct run_opts opts;
	struct err err = ERR_INIT;

	if (case_plan_parse(&plan_kept, (const char *)data, size, "run", &first, &err) < 0) {
		assert(err.code < 0 && strncmp(err.msg, "run", 3) == 0);
		return 0;
	}
	plan_run_opts(&first, &opts);
	assert(opts.target.spec && opts.guarantee && first.workloads);
	record_print(&plan_record, &first, &text);
	if (case_plan_parse(&plan_kept, text.buf, text.len, "run", &second, &err) < 0)
		abort();
	record_print(&plan_record, &second, &again);
	assert(streq(text.buf, again.buf));
	assert(given_agree(&plan_record, &first, &second, second.given, &err) == 0);
	plan_release(&first);
	plan_release(&second);
	return 0;
}
