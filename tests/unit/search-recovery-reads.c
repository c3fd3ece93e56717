/* SPDX-License-Identifier: MIT */
/* Which writes matter: those that somebody reads after the crash, at that point or in that image.
 */
#include "search/recovery_reads.h"
#include "tap.h"

static const struct hash128 here = { 1, 1 }, elsewhere = { 2, 2 };

static void add(struct trace *t, enum event_kind kind, uint64_t addr, uint64_t len)
{
	static const unsigned char zeros[256];

	trace_append(t, &(struct event){ .kind = kind, .addr = addr, .len = len, .data = zeros });
}

static bool varies(struct reads *r, uint64_t point, struct hash128 image, uint64_t addr,
		   uint64_t len)
{
	return reads_vary(r, point, image, &(struct model_piece){ .addr = addr, .len = len });
}

/* Reads 100 to 110, 256 to 512 and 600 to 700; stores to 800. */
static struct reads_of learn(uint64_t point, uint64_t unit, bool stores)
{
	struct reads_of of = { .point = point, .image = here };
	auto_trace t;

	trace_init(&t);
	add(&t, EV_LOAD, 650, 50);
	add(&t, EV_LOAD, 600, 60);
	add(&t, EV_READ, 256, 256);
	add(&t, EV_LOAD, 100, 10);
	add(&t, EV_LOAD, 100, 10);
	add(&t, EV_STORE, 800, 8);
	reads_learn(&of, &t, unit, stores);
	reads_settle(&of);
	return of;
}

static void test_bytes(void)
{
	struct reads r = { 0 };

	ok(varies(&r, 5, here, 0, 8), "where nothing is known all is varied");
	vec_push(&r, learn(5, 1, false));
	is_u(r.v[0].where.n, 3, "what overlaps is one");
	ok(varies(&r, 5, here, 109, 1) && varies(&r, 5, here, 0, 101), "what is read is varied");
	ok(!varies(&r, 5, here, 110, 100) && !varies(&r, 5, here, 0, 100), "next to it nothing is");
	ok(varies(&r, 5, here, 690, 500) && !varies(&r, 5, here, 700, 500), "nor behind the last");
	ok(!varies(&r, 5, here, 800, 8), "what is stored to is not read");
	ok(varies(&r, 5, elsewhere, 109, 1), "it counts at its point,");
	ok(varies(&r, 6, here, 109, 1) && !varies(&r, 6, here, 110, 1), "and in its image");
	ok(varies(&r, 5, elsewhere, 110, 1), "where another image was never read, all is varied");
	reads_release(&r);
}

static void test_lines(void)
{
	struct reads r = { 0 };
	struct reads_of whole = { .point = READS_ANYWHERE, .image = elsewhere, .whole = true };

	vec_push(&r, learn(READS_ANYWHERE, 64, true));
	reads_settle(&whole);
	vec_push(&r, whole);
	ok(varies(&r, 5, here, 64, 8) && !varies(&r, 5, here, 128, 128), "a line is read whole");
	ok(varies(&r, 5, here, 768, 8) && !varies(&r, 5, here, 832, 8), "or stored to");
	ok(varies(&r, 5, here, 127, 0) && !varies(&r, 5, here, 128, 0), "nothing is a byte");
	ok(varies(&r, 5, elsewhere, 128, 8), "where everything is read all is varied");
	reads_release(&r);
}

int main(void)
{
	test_bytes();
	test_lines();
	return done_testing();
}
