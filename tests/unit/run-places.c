/* SPDX-License-Identifier: MIT */
/* Names of places as a case keeps them: found by their address alone, and what is no line is none.
 */
#include "run/run_places.h"

#include <errno.h>
#include <inttypes.h>

#include "run/run_impl.h"
#include "tap.h"

/* Two machines that have booted: in the second, all is 0x1000 further on. A third is gone. */
enum { FIRST = 1, SECOND, GONE };

static unsigned asked;

static int fake_symbols(struct target *t, uint64_t machine, struct strbuf *out, struct err *err)
{
	static const char *const names[] = { "_text", "copy", "caller", "other", "_etext" };

	(void)t;
	asked++;
	if (machine == GONE)
		return err_set(err, -ESTALE, "it is gone");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		strbuf_addf(out, "%" PRIx64 " T %s\n",
			    0xffffffff81000000 + (i + (machine == SECOND)) * 0x1000, names[i]);
	return 0;
}

static const struct target_far fake_far = { .symbols = fake_symbols };
static const struct target_ops fake_ops = { .name = "vm:fake", .far = &fake_far };

static void fake_run(struct run *r)
{
	*r = (struct run){ .target = { .ops = &fake_ops } };
}

static void end_run(struct run *r)
{
	for (size_t i = 0; i < r->names.n; i++)
		kallsyms_release(&r->names.v[i].names);
	vec_release(&r->names);
}

/* Each place once, and who called it, however often it stores and whatever is between. */
static void test_print(void)
{
	static const uint64_t first[] = { 0xffffffff81002010 }, second[] = { 0xffffffff81003010 };
	auto_strbuf out = STRBUF_INIT;
	struct run r;
	auto_trace t;

	fake_run(&r);
	trace_init(&t);
	t.machine = FIRST;
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
	end_run(&r);
}

static void one_store(struct trace *t, uint64_t machine, uint64_t pc)
{
	trace_init(t);
	vec_push(&t->events, ((struct event){ .kind = EV_STORE, .pc = pc }));
	t->machine = machine;
}

static const char *words(struct run *r, uint64_t machine, struct strbuf *out)
{
	auto_trace t;

	one_store(&t, machine, 0);
	strbuf_clear(out);
	place_words(r, &t, 0xffffffff81002010, out);
	return strbuf_str(out);
}

/* The same address is another place in another machine. */
static void test_machines(void)
{
	auto_strbuf out = STRBUF_INIT;
	struct places kept = { 0 };
	struct run r;

	fake_run(&r);
	asked = 0;
	is_s(words(&r, FIRST, &out), "0xffffffff81002010 (caller+0x10)", "a place of one machine");
	is_s(words(&r, SECOND, &out), "0xffffffff81002010 (copy+0x10)", "and of another");
	is_s(words(&r, FIRST, &out), "0xffffffff81002010 (caller+0x10)", "which are not mixed up");
	is_u(asked, 2, "each is asked once");
	is_s(words(&r, GONE, &out), "0xffffffff81002010", "what is gone has no names");
	is_s(words(&r, GONE, &out), "0xffffffff81002010", "and none of others");
	is_u(asked, 3, "nor is it asked again");
	is_s(words(&r, 0, &out), "0xffffffff81002010", "nor has a trace from a file");
	places_parse("0xffffffff81002010 once+0x1 [mod]\n", &kept);
	r.kept_places = &kept;
	is_s(words(&r, 0, &out), "0xffffffff81002010 (once+0x1 [mod])",
	     "unless they were kept with it");
	is_s(words(&r, FIRST, &out), "0xffffffff81002010 (caller+0x10)",
	     "and these are no other trace's");
	is_u(asked, 3, "nobody is asked for them");
	places_release(&kept);
	end_run(&r);
}

/* A case has one list for the trace and that of its recovery. */
static void test_two_traces(void)
{
	auto_strbuf out = STRBUF_INIT;
	auto_trace a, b, c;
	struct run r;

	fake_run(&r);
	one_store(&a, FIRST, 0xffffffff81002010);
	one_store(&b, SECOND, 0xffffffff81003020);
	one_store(&c, SECOND, 0xffffffff81002010);
	places_print(&r, &a, &b, &out);
	is_s(strbuf_str(&out),
	     "0xffffffff81002010 caller+0x10\n"
	     "0xffffffff81003020 caller+0x20\n",
	     "two traces, of a machine each");
	strbuf_clear(&out);
	places_print(&r, &a, &c, &out);
	is_s(strbuf_str(&out), "", "an address that is two places has no name");
	end_run(&r);
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
	test_machines();
	test_two_traces();
	return done_testing();
}
