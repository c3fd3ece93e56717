/* SPDX-License-Identifier: MIT */
/* Names of places as a case keeps them: found by their address alone, and what is no line is none.
 */
#include "run/places.h"
#include "run/run_impl.h"
#include "tap.h"

/* Each place once, and who called it, however often it stores and whatever is between. */
static void test_print(void)
{
	static const char map[] = "ffffffff81000000 T _text\n"
				  "ffffffff81001000 T copy\n"
				  "ffffffff81002000 T caller\n"
				  "ffffffff81003000 T other\n"
				  "ffffffff81004000 T _etext\n";
	static const uint64_t first[] = { 0xffffffff81002010 }, second[] = { 0xffffffff81003010 };
	struct run r = { .asked_names = true, .names = KALLSYMS_INIT };
	struct err err = ERR_INIT;
	auto_strbuf out = STRBUF_INIT;
	auto_trace t;

	trace_init(&t);
	is_i(kallsyms_parse(map, strlen(map), &r.names, &err), 0, "names %s", err.msg);
	uint32_t a = trace_add_stack(&t, first, 1), b = trace_add_stack(&t, second, 1);
	const struct event events[] = {
		{ .kind = EV_STORE, .pc = 0xffffffff81001004, .stack = a },
		{ .kind = EV_STORE, .pc = 0xffffffff81001004, .stack = a },
		{ .kind = EV_FENCE, .pc = 0xffffffff81003004, .stack = a },
		{ .kind = EV_STORE, .pc = 0xffffffff81001008, .stack = a },
		{ .kind = EV_STORE, .pc = 0xffffffff81001008, .stack = b },
		{ .kind = EV_STORE, .pc = 0xffffffff81001004, .stack = a },
		{ .kind = EV_STORE, .pc = 0x401000 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		vec_push(&t.events, events[i]);
	places_print(&r, &t, NULL, &out);
	is_s(strbuf_str(&out),
	     "0xffffffff81001004 copy+0x4\n"
	     "0xffffffff81001008 copy+0x8\n"
	     "0xffffffff81002010 caller+0x10\n"
	     "0xffffffff81003010 other+0x10\n",
	     "stores and callers have names, each once");
	kallsyms_release(&r.names);
}

int main(void)
{
	static const char text[] = "0xffffffff81000020 second+0x10\n"
				   "0xffffffff81000010 first+0x0 [mod]\n"
				   "\n"
				   "nothing\n"
				   "0xffffffff81000030\n"
				   "0xffffffff81000040 \n"
				   "0xffffffff81000050 bad\x1b[31m\n"
				   "0xffffffff81000060 last";
	struct places p = { 0 }, none = { 0 };
	struct strbuf longest = STRBUF_INIT;

	places_parse(text, &p);
	is_u(p.n, 3, "three lines are places");
	is_s(places_find(&p, 0xffffffff81000010), "first+0x0 [mod]", "whatever their order");
	is_s(places_find(&p, 0xffffffff81000020), "second+0x10", "each by its address");
	is_s(places_find(&p, 0xffffffff81000060), "last", "also without a line end");
	ok(!places_find(&p, 0xffffffff81000021), "and by no other");
	ok(!places_find(&p, 0xffffffff81000050), "what a terminal would act on is no name");
	ok(!places_find(&none, 0xffffffff81000010), "of none, none is found");
	strbuf_adds(&longest, "0x10 ");
	for (int i = 0; i < 5000; i++)
		strbuf_addch(&longest, 'a');
	places_parse(strbuf_str(&longest), &none);
	is_u(none.n, 0, "nor is what no kernel calls a function");
	strbuf_release(&longest);
	places_release(&p);
	places_release(&none);
	test_print();
	return done_testing();
}
