/* SPDX-License-Identifier: MIT */
/* stack-table.c - the text that keeps call stacks: written, read again, and refused. */
#include "tap.h"

#include "stack/table.h"

static const char good[] = "stacks\t1\n"
			   "module\t/usr/lib/libc.so.6\tabcd\n"
			   "module\t/opt/wal\t\n"
			   "frame\t0\t1234\twrite\t../write.c\t26\n"
			   "frame\t1\t55\tappend_record\t/src/wal.c\t212\n"
			   "frame\t1\t66\tmain\t\t0\n"
			   "frame\t1\t77\t\t\t0\n"
			   "stack\t0\t1\t2\n"
			   "stack\t0\t2\n"
			   "stack\t0\t3\n"
			   "stack\t0\n"
			   "call\t7\t0\n"
			   "call\t9\t2\n"
			   "missing\t3\tnobody was there\n";

static void place_is(const struct stack_table *t, uint32_t stack, const char *words)
{
	const struct stack_frame *f = stack_place(t, &t->stacks.v[stack]);
	auto_strbuf got = STRBUF_INIT;

	if (f)
		stack_frame_words(t, f, &got);
	is_s(strbuf_str(&got), words, "the place of stack %u is %s", (unsigned)stack, words);
}

static void refused(const char *text, const char *why)
{
	struct stack_table t = { 0 };
	struct err err = ERR_INIT;
	int rc = stack_table_parse(text, strlen(text), &t, &err);

	ok(rc < 0 && err.msg[0], "refused: %s", why);
	if (!rc)
		stack_table_release(&t);
}

int main(void)
{
	struct stack_table t = { 0 };
	auto_strbuf again = STRBUF_INIT;
	struct err err = ERR_INIT;

	ok(!stack_table_parse(good, sizeof(good) - 1, &t, &err), "a table is read");
	stack_table_print(&t, &again);
	is_s(strbuf_str(&again), good, "and written as it was");
	place_is(&t, 0, "wal.c:212 in append_record");
	place_is(&t, 1, "main (wal+0x66)");
	place_is(&t, 2, "wal+0x77");
	place_is(&t, 3, "");
	ok(stack_table_find(&t, 9) == &t.stacks.v[2], "an operation's stack is found");
	ok(!stack_table_find(&t, 8), "one without a stack has none");
	ok(t.missing.n == 1 && t.missing.v[0].count == 3, "what is missing is counted");
	stack_table_release(&t);

	refused("", "nothing");
	refused("stacks\t2\n", "another version");
	refused("stacks\t1\nframe\t0\t1\ta\tb\t1\n", "a frame of no module");
	refused("stacks\t1\nmodule\t/a\t\nframe\t0\tzz\ta\tb\t1\n", "an offset that is none");
	refused("stacks\t1\nmodule\t/a\t\nframe\t0\t1\ta\tb\n", "a frame without a line");
	refused("stacks\t1\nstack\t0\n", "a stack of no frame");
	refused("stacks\t1\ncall\t1\t0\n", "a call with no stack");
	refused("stacks\t1\nmodule\n", "a module without a path");
	refused("stacks\t1\nmissing\t1\n", "something missing without a reason");
	ok(!stack_table_parse("stacks\t1\nnews\t1\n", 16, &t, &err), "other lines are passed over");
	stack_table_release(&t);
	return done_testing();
}
