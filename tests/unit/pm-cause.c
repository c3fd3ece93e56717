/* SPDX-License-Identifier: MIT */
/* The class of a crash state, what is missing, and what is lost in how few words. */
#include "tap.h"

#include "core/model_pm.h"
#include "pm/cause.h"

enum { REGION = 4096 };

static const unsigned char ones[64] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

static void store(struct trace *t, uint64_t addr, uint64_t len, uint64_t pc)
{
	trace_append(t,
		     &(struct event){
			     .kind = EV_STORE, .addr = addr, .len = len, .data = ones, .pc = pc });
}

static void add(struct trace *t, enum event_kind kind, uint64_t addr)
{
	trace_append(t, &(struct event){ .kind = kind, .addr = addr });
}

/* The class of a state, by its id. */
static enum semantic_cause class_of(const struct trace *t, const char *id, bool noticed,
				    uint64_t *prefix)
{
	static const struct model_pm_opts model = { .join_min = 256 };
	struct crash_opts opts = { .model = &model_pm, .model_ctx = &model };
	auto_crash_state s = CRASH_STATE_INIT;
	auto_image base = IMAGE_INIT;
	struct pm_prefixes p;

	image_init(&base, REGION);
	opts.base = &base;
	if (crash_replay(t, &opts, id, &s, NULL))
		abort();
	pm_prefixes_find(t, &base, noticed, &p);
	enum semantic_cause cause = pm_cause_of(&p, &s, prefix);
	prefixes_release(&p.all);
	return cause;
}

static void test_classes(void)
{
	uint64_t prefix;
	struct trace t;

	/* Two stores to one line, then another line; all in flight at 5. */
	trace_init(&t);
	t.info.size = REGION;
	add(&t, EV_OP_BEGIN, 0);
	store(&t, 0, 8, 100);
	store(&t, 8, 8, 200);
	store(&t, 64, 8, 300);
	add(&t, EV_LINEFLUSH, 0);
	ok(class_of(&t, "4.5.0", false, &prefix) == SEMANTIC_LOGIC && prefix == 2,
	   "the first store alone is what was there after it");
	ok(class_of(&t, "5.5.2", false, &prefix) == SEMANTIC_LOGIC && prefix == 3,
	   "without the last, too");
	ok(class_of(&t, "4.5.2", false, &prefix) == SEMANTIC_ORDERING && prefix == PM_NO_PREFIX,
	   "the last alone is a matter of order");
	ok(class_of(&t, "4.5.0", true, &prefix) == SEMANTIC_ORDERING,
	   "if the order of stores is not known, nothing is said of it");
	add(&t, EV_OP_END, 0);
	ok(class_of(&t, "4.6.0", false, &prefix) == SEMANTIC_ORDERING,
	   "once the operation has returned, it is lost");
	trace_release(&t);
}

static void test_tearing(void)
{
	uint64_t prefix;
	struct trace t;

	/* One instruction of 16 bytes across two lines, as an emulator tells it. */
	trace_init(&t);
	t.info.size = REGION;
	store(&t, 56, 8, 100);
	store(&t, 64, 8, 100);
	ok(class_of(&t, "4.2.0", false, &prefix) == SEMANTIC_TEARING, "half of an instruction");
	ok(class_of(&t, "4.2.1", false, &prefix) == SEMANTIC_TEARING, "the other half");
	store(&t, 128, 8, 200);
	ok(class_of(&t, "5.3.1", false, &prefix) == SEMANTIC_ORDERING,
	   "where a later store is there, a fence would have helped");
	trace_release(&t);

	/* A store that a tracer has as one, across two lines. */
	trace_init(&t);
	t.info.size = REGION;
	store(&t, 56, 16, 100);
	ok(class_of(&t, "4.1.0", false, &prefix) == SEMANTIC_TEARING, "one store in two lines");
	trace_release(&t);

	/* A copy of 6 lines, of which the first survives. */
	trace_init(&t);
	t.info.size = REGION;
	for (uint64_t i = 0; i < 48; i++)
		store(&t, 8 * i, 8, 100);
	ok(class_of(&t, "3.48.64.0.1.0.1", false, &prefix) == SEMANTIC_TEARING, "part of a copy");
	ok(class_of(&t, "0.48", false, &prefix) == SEMANTIC_LOGIC && prefix == 0,
	   "nothing of it is how it was before");
	is_u(pm_count_copies(&t, 256), 1, "it is one copy");
	is_u(pm_count_copies(&t, 384), 0, "and not, if it is not long enough");
	trace_release(&t);
}

static void test_missing(void)
{
	struct crash_part gone = { 0, 0, 8 };
	struct trace t;

	trace_init(&t);
	t.info.size = REGION;
	store(&t, 0, 8, 100);
	add(&t, EV_LINEFLUSH, 0);
	store(&t, 64, 8, 200);
	add(&t, EV_FENCE, 0);
	struct pm_loss l = pm_loss_of(&t, 0, 3, &gone, 1);
	ok(l.missing == PM_MISSING_FENCE && l.by == 2 && l.flush == 1 && l.fence == 3,
	   "flushed, and not fenced before the next store");
	trace_release(&t);

	trace_init(&t);
	t.info.size = REGION;
	store(&t, 0, 8, 100);
	add(&t, EV_FENCE, 0);
	store(&t, 64, 8, 200);
	l = pm_loss_of(&t, 0, 3, &gone, 1);
	ok(l.missing == PM_MISSING_FLUSH && l.by == 2 && l.flush == UINT64_MAX, "not flushed");
	trace_release(&t);

	trace_init(&t);
	t.info.size = REGION;
	store(&t, 0, 8, 100);
	store(&t, 64, 8, 200);
	l = pm_loss_of(&t, 0, 2, &gone, 1);
	ok(l.missing == (PM_MISSING_FLUSH | PM_MISSING_FENCE), "neither");
	trace_release(&t);
}

static void test_extents(void)
{
	struct crash_part gone[] = { { 0, 8, 64 }, { 8, 72, 8 }, { 9, 512, 8 } };
	struct pm_extents all = { 0 };
	struct trace t;

	trace_init(&t);
	t.info.size = REGION;
	for (uint64_t i = 0; i < 9; i++)
		store(&t, 8 + 8 * i, 8, 100);
	store(&t, 512, 8, 100);
	is_u(pm_extents_of(&t, gone, 3, &all), 10, "ten stores");
	ok(all.n == 2 && all.v[0].stores == 9 && all.v[0].len == 72 && all.v[0].last == 8 &&
		   all.v[1].stores == 1,
	   "are two ranges");
	vec_release(&all);
	trace_release(&t);
}

static struct pm_key key(enum semantic_cause cause, uint64_t a, uint64_t b)
{
	struct pm_key k = { .cause = cause };

	pm_key_add(&k, b);
	pm_key_add(&k, a);
	pm_key_sort(&k);
	return k;
}

static void test_keys(void)
{
	struct pm_key one = key(SEMANTIC_ORDERING, 1, 1), two = key(SEMANTIC_ORDERING, 1, 2),
		      torn = key(SEMANTIC_TEARING, 1, 1), logic = key(SEMANTIC_LOGIC, 1, 1);

	ok(pm_key_explains(&two, &one) && !pm_key_explains(&one, &two), "less explains more");
	ok(pm_key_explains(&torn, &one) && !pm_key_explains(&one, &torn),
	   "what must not get lost must not be torn either");
	ok(!pm_key_explains(&one, &logic) && !pm_key_explains(&logic, &one), "logic is another");
	pm_key_release(&one);
	pm_key_release(&two);
	pm_key_release(&torn);
	pm_key_release(&logic);
}

int main(void)
{
	test_classes();
	test_tearing();
	test_missing();
	test_extents();
	test_keys();
	return done_testing();
}
