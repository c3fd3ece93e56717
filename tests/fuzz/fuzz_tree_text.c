/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tree_text.c - tree_parse takes any bytes without harm, and what it accepts survives being
 * printed and read again: the same text, the same hash, no difference.
 */
#include "tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tree_opts all = {
		.blocks = true, .times = true, .dir_size = true, .dir_nlink = true
	};
	auto_tree first = TREE_INIT, second = TREE_INIT;
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT;
	auto_tree_diff diff = { 0 };
	struct err err = ERR_INIT;

	if (tree_parse((const char *)data, size, &first, &err) < 0) {
		assert(err.code < 0 && strstr(err.msg, "line "));
		assert(!first.entries.n);
		return 0;
	}
	if (first.kept > 1 << 20)
		return 0; /* a run with a large count: printing it is only slow */
	tree_print(&first, &all, TREE_TEXT_CONTENT, &text);
	if (tree_parse(text.buf, text.len, &second, &err) < 0)
		abort();
	tree_print(&second, &all, TREE_TEXT_CONTENT, &again);
	assert(streq(text.buf, again.buf) && text.len == again.len);
	assert(tree_equal(&first, &second, &all));
	tree_diff(&first, &second, &all, &diff);
	assert(!diff.list.n);
	return 0;
}
