/* SPDX-License-Identifier: MIT */
/* Names of places as a case keeps them: found by their address alone, and what is no line is none.
 */
#include "run/places.h"
#include "tap.h"

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
	return done_testing();
}
