/* SPDX-License-Identifier: MIT */
/*
 * run-pm.c - how a run looks at a trace of persistent memory: its model, its crash points, what a
 * copy is; and what a plan says of it.
 */
#include "tap.h"

#include "run/plan.h"
#include "search/pm_model.h"
#include "run/run_impl.h"
#include "run/store.h"
#include "trace-build.h"

static void store(struct trace *t, uint64_t addr, uint64_t len, uint32_t cpu, uint32_t flags)
{
	static const unsigned char data[64] = { 1 };

	trace_append(t, &(struct event){ .kind = EV_STORE,
					 .addr = addr,
					 .len = len,
					 .data = data,
					 .cpu = cpu,
					 .flags = flags });
}

static void fence(struct trace *t)
{
	trace_append(t, &(struct event){ .kind = EV_FENCE });
}

static void test_model(void)
{
	struct pm_choice usual = { 0 }, eadr = { .eadr = true, .granularity = 8, .split = true };
	struct crash_opts opts = CRASH_OPTS_INIT;
	struct model_pm_opts ctx;
	auto_trace t;

	trace_init(&t);
	t.info.size = 4096;
	trace_write(&t, 0, "12345678", 8, 0);
	trace_flush(&t);
	ok(!pm_traced(&t), "writes and flushes are of a disk");
	pm_choose_model(&eadr, &t, &ctx, &opts);
	ok(!opts.model, "which has its own model, whatever was chosen");
	trace_clear(&t);
	fence(&t);
	ok(pm_traced(&t), "a fence is of memory");
	pm_choose_model(&usual, &t, &ctx, &opts);
	ok(opts.model == &model_pm && opts.model_ctx == &ctx && ctx.join_min == 256,
	   "the usual model");
	pm_choose_model(&eadr, &t, &ctx, &opts);
	ok(opts.model == &model_pm_eadr && ctx.granularity == 8 && ctx.join_min == PM_JOIN_NEVER,
	   "another one");
	pm_choose_model(&(struct pm_choice){ .model = &model_pm_eadr }, &t, &ctx, &opts);
	ok(opts.model == &model_pm_eadr && opts.model_ctx == &ctx, "one that was named");
	pm_choose_model(&(struct pm_choice){ .model = &model_block }, &t, &ctx, &opts);
	ok(opts.model == &model_pm, "but not one of a disk");
}

static void are_points(const struct trace *t, const char *want, const char *name)
{
	struct crash_points p = { 0 };
	auto_strbuf got = STRBUF_INIT;

	pm_points(t, &p);
	for (size_t i = 0; i < p.n; i++)
		strbuf_addf(&got, "%s%" PRIu64, i ? " " : "", p.v[i]);
	is_s(strbuf_str(&got), want, "%s", name);
	crash_points_release(&p);
}

static void test_points(void)
{
	auto_trace t;

	trace_init(&t);
	t.info.size = 4096;
	trace_op_begin(&t, 0, "creat a");
	store(&t, 0, 8, 0, 0);
	fence(&t);
	store(&t, 64, 8, 0, 0);
	trace_op_end(&t, 0, 0);
	are_points(&t, "1 2 4 5", "after the begin, before the fence, around the end");
	trace_persist(&t, 0);
	trace_text(&t, "blocks 8");
	trace_op_begin(&t, 1, "creat b");
	are_points(&t, "1 2 4 6", "of marks in a row, the last that says that something is done");
	is_u(pm_begin_point(&t, 0), 1, "the begin of the first");
	is_u(pm_begin_point(&t, 1), 6, "that of the next is where the one before ended");
	is_u(pm_begin_point(&t, 2), 0, "there are no more");
	store(&t, 0, 8, 0, 0);
	fence(&t);
	fence(&t);
	trace_op_end(&t, 1, 0);
	are_points(&t, "1 2 4 6 9 12", "a fence that has nothing to order is none");
	trace_clear(&t);
	are_points(&t, "", "nothing at all");
}

static void test_copies(void)
{
	struct pm_choice usual = { 0 }, split = { .split = true };
	uint64_t frame = 0x1234;
	struct pm_pieces p = { 0 };
	auto_trace t;

	trace_init(&t);
	t.info.size = 1 << 20;
	for (uint64_t i = 0; i < 64; i++) {
		store(&t, 4096 + 8 * i, 8, 0, EV_NONTEMPORAL);
		store(&t, 65536 + 16 * i, 8, 1, 0); /* another processor, beside it */
	}
	fence(&t);
	store(&t, 4096 + 512, 8, 0, EV_NONTEMPORAL);
	pm_pieces_at(&usual, &t, 128, &p);
	is_u(pm_piece_of(&p, &t, 0).len, 512, "a copy of 512 bytes, up to its fence");
	is_u(pm_piece_of(&p, &t, 1).len, 8, "stores with room between them are none");
	is_u(pm_piece_of(&p, &t, 129).len, 8, "what is not in flight there is itself");
	pm_pieces_at(&split, &t, 128, &p);
	is_u(pm_piece_of(&p, &t, 0).len, 8, "it is none where copies are split");
	trace_clear(&t);
	/* A page downwards, with a stack that another processor's store needs in the middle of it.
	 */
	for (uint64_t i = 64; i-- > 0;) {
		store(&t, 4096 + 64 * i, 64, 0, EV_NONTEMPORAL);
		if (i == 32)
			trace_add_stack(&t, &frame, 1);
	}
	pm_pieces_at(&usual, &t, t.events.n, &p);
	is_u(p.n, 1, "one copy");
	is_u(pm_piece_of(&p, &t, 0).addr, 4096, "begins where its last store did");
	is_u(pm_piece_of(&p, &t, 0).len, 4096, "and goes on behind a stack that was told");
	trace_clear(&t);
	store(&t, 60, 8, 0, 0);
	pm_pieces_at(&usual, &t, 1, &p);
	ok(p.n == 2 && pm_piece_of(&p, &t, 0).len == 8, "a store across lines is told whole");
	vec_release(&p);
}

/* Which fences and flushes are left of "s0 f0 F0 F1": stores, flushes and fences of CPUs. */
static void loses(uint64_t n, const char *want, const char *name)
{
	static const struct event events[] = {
		{ .kind = EV_STORE, .addr = 0, .len = 8, .data = (unsigned char *)"12345678" },
		{ .kind = EV_LINEFLUSH, .len = PM_LINE },
		{ .kind = EV_FENCE },
		{ .kind = EV_FENCE, .cpu = 1 },
		{ .kind = EV_FENCE },
		{ .kind = EV_STORE, .addr = 64, .len = 8, .data = (unsigned char *)"12345678" },
		{ .kind = EV_FENCE },
	};
	auto_strbuf got = STRBUF_INIT;
	auto_trace t;

	trace_init(&t);
	t.info.size = 4096;
	trace_op_begin(&t, 0, "creat a");
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		trace_append(&t, &events[i]);
	trace_op_end(&t, 0, 0);
	bool there = lose_pm_flush(&t, n);
	for (size_t i = 0; i < t.events.n; i++)
		if (t.events.v[i].kind == EV_FENCE || t.events.v[i].kind == EV_LINEFLUSH)
			strbuf_addf(&got, "%c%u", t.events.v[i].kind == EV_FENCE ? 'F' : 'f',
				    t.events.v[i].cpu);
	is_s(there ? strbuf_str(&got) : "none", want, "%s", name);
}

static void test_lost_flushes(void)
{
	loses(1, "F0F1F0F0", "a flush that is lost");
	loses(2, "f0F1F0", "a fence, with the next one of its CPU, not with that of another");
	loses(3, "f0F0F1F0", "one that stands alone");
	loses(4, "none", "there are no more");
}

static void test_plan(void)
{
	static const struct {
		const char *target, *key, *value,
			*want; /* want: a part of the complaint, or NULL */
	} cases[] = {
		{ "vm:ext4-dax", "granularity", "8", NULL },
		{ "vm:ext4-dax", "granularity", "64", NULL },
		{ "vm:ext4-dax", "granularity", "16", "8 or 64" },
		{ "vm:ext4-dax", "eadr", "yes", NULL },
		{ "vm:ext4-dax", "lose-flush", "2", NULL },
		{ "vm:ext4-dax", "model", "pm-eadr", NULL },
		{ "vm:ext4-dax", "model", "block", "--model block is for a disk" },
		{ "ext4", "model", "pm", "--model pm is for persistent memory" },
		{ "ext4", "model", "nothing", "'nothing' is none of block, " },
		{ "ext4", "eadr", "yes", "--eadr is for persistent memory" },
		{ "ext4", "split", "yes", "--split is for persistent memory" },
		{ "ext4", "granularity", "8", "--granularity is for persistent memory" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		struct plan p;
		struct run_opts opts;

		plan_init(&p);
		p.kernel = xstrdup("6.1");
		int rc = plan_set(&p, "target", cases[i].target, &err);
		if (!rc)
			rc = plan_set(&p, cases[i].key, cases[i].value, &err);
		if (!rc)
			rc = plan_complete(&p, &err);
		ok(cases[i].want ? rc && strstr(err.msg, cases[i].want) : !rc, "%s --%s %s: %s",
		   cases[i].target, cases[i].key, cases[i].value, rc ? err.msg : "taken");
		if (!rc) {
			auto_strbuf text = STRBUF_INIT;
			auto_free char *line = xasprintf("\n%s %s\n", cases[i].key, cases[i].value);

			record_print(&plan_record, &p, &text);
			ok(strstr(strbuf_str(&text), line), "and it is kept");
			plan_run_opts(&p, &opts);
			ok(opts.modes == RUN_REORDER && opts.vary_all && opts.budget == 200,
			   "with what suits persistent memory");
		}
		plan_release(&p);
	}
}

static void test_case(void)
{
	struct stored_case c = { .eadr = 1, .split = 1, .granularity = 8 };
	struct pm_choice pm = stored_case_pm(&c);

	ok(pm.eadr && pm.split && pm.granularity == 8, "a case has its model");
	c.granularity = 12345;
	pm = stored_case_pm(&c);
	is_u(pm.granularity, 0, "and none that is not there");
}

int main(void)
{
	test_model();
	test_points();
	test_copies();
	test_lost_flushes();
	test_plan();
	test_case();
	return done_testing();
}
