/* SPDX-License-Identifier: MIT */
/* Of very many failures some are kept: among them the first for each reason. */
#include "tap.h"

#include "pm/pm_search.h"

enum { MANY = 5000, LATE = 4500 };

static const unsigned char ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

static struct pm_failure failure(uint64_t event, uint64_t recovery)
{
	struct pm_failure f = { .state = xasprintf("4.2.%llu", (unsigned long long)event),
				.point = 2,
				.end = CHECK_FAILED,
				.exit_code = 1,
				.cause = SEMANTIC_ORDERING,
				.n_lost = 1,
				.lost = xcalloc(1, sizeof(*f.lost)),
				.said = xstrdup("bad"),
				.recovery = recovery };

	f.lost[0] = (struct crash_part){ .event = event, .addr = event * 64, .len = 8 };
	return f;
}

static void make_trace(struct trace *t)
{
	trace_init(t);
	t->info.size = 4096;
	for (uint64_t i = 0; i < 2; i++)
		trace_append(t, &(struct event){ .kind = EV_STORE,
						 .addr = i * 64,
						 .len = 8,
						 .data = ones,
						 .pc = 100 + i });
}

static void test_many(struct pm_run *r)
{
	struct pm_found found = { 0 };
	struct pm_cases cases = { 0 };
	unsigned first = 0;

	for (unsigned i = 0; i < MANY; i++) {
		struct pm_failure f = failure(i >= LATE, 0);

		first += pm_found_add(&found, r, &f) && (i == 0 || i == LATE);
	}
	is_u(first, 2, "two reasons are new");
	is_u(found.failures.n + found.dropped, MANY, "each failure is kept or counted");
	ok(found.dropped > 0, "not all are kept");
	pm_cluster(r, &found.failures, &cases);
	is_u(cases.n, 2, "a reason that shows late is a finding");
	for (size_t i = 0; i < cases.n; i++)
		case_finding_release(&pm_kind, &cases.v[i]);
	vec_release(&cases);
	pm_found_release(&found);
}

static void test_recovery(struct pm_run *r)
{
	struct pm_found found = { 0 };
	struct pm_failure f = failure(0, 0), again = failure(0, 1), same = failure(0, 1);

	ok(pm_found_add(&found, r, &f) && pm_found_add(&found, r, &again),
	   "the same store, lost during recovery, is another reason");
	ok(!pm_found_add(&found, r, &same) && found.failures.n == 3 && !found.dropped,
	   "once; while there are few, all are kept");
	pm_found_release(&found);
}

int main(void)
{
	struct pm_run r = { 0 }, nested = { 0 };

	make_trace(&r.trace);
	make_trace(&nested.trace);
	r.nested = &nested;
	r.n_nested = 1;
	test_many(&r);
	test_recovery(&r);
	trace_release(&r.trace);
	trace_release(&nested.trace);
	return done_testing();
}
