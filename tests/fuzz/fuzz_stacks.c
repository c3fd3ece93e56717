/* SPDX-License-Identifier: MIT */
/*
 * fuzz_stacks.c - a table of call stacks is read or refused with a sentence; what is read can be
 * asked for every stack, and is printed as a table that gives the same text again.
 */
#include "stack/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct stack_table *t)
{
	auto_strbuf words = STRBUF_INIT;

	for (size_t i = 0; i < t->stacks.n; i++) {
		const struct stack_frame *f = stack_place(t, &t->stacks.v[i]);

		if (f)
			stack_frame_words(t, f, &words);
	}
	for (size_t i = 0; i < t->calls.n; i++)
		assert(stack_table_find(t, t->calls.v[i].number));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
	struct stack_table t = { 0 }, again = { 0 };
	struct err err = ERR_INIT;

	if (stack_table_parse((const char *)data, size, &t, &err)) {
		assert(err.msg[0]);
		return 0;
	}
	ask(&t);
	stack_table_print(&t, &once);
	int rc = stack_table_parse(strbuf_str(&once), once.len, &again, &err);
	assert(rc == 0);
	stack_table_print(&again, &twice);
	/* Calls of one number may be in any order. */
	assert(once.len == twice.len);
	stack_table_release(&t);
	stack_table_release(&again);
	return 0;
}
