/* SPDX-License-Identifier: MIT */
/* What was in flight at a crash, and the ids of states in which other parts of it are lost. */
#include "search/flight.h"
#include "tap.h"

static void is_id(const struct in_flight *f, const char *expected, const char *what)
{
	auto_strbuf id = STRBUF_INIT;

	flight_id(f, &id);
	is_s(strbuf_str(&id), expected, "%s", what);
}

int main(void)
{
	auto_crash_state s = { .point = 50 };
	struct in_flight f = { 0 };

	flight_of(&s, &f);
	is_id(&f, "2.50", "nothing is in flight");
	vec_push(&s.lost, 7);
	vec_push(&s.survived, 3);
	vec_push(&s.survived, 9);
	vec_push(&s.torn, (struct crash_tear){ .event = 5 });
	flight_of(&s, &f);
	is_u(f.pieces.n, 4, "what was torn was in flight");
	is_id(&f, "2.50.9", "it counts as lost, at its place");
	f.pieces.v[1].lost = false;
	is_id(&f, "2.50.11", "until it is given back");
	for (uint64_t i = 10; i < 40; i++)
		vec_push(&s.survived, i);
	flight_of(&s, &f);
	is_id(&f, "2.50.4294967289.3", "words have 32 pieces");
	vec_release(&f.pieces);
	return done_testing();
}
