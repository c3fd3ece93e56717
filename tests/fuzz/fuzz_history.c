/* SPDX-License-Identifier: MIT */
/*
 * fuzz_history.c - calls that no file system would let happen: a trace from outside may hold them.
 * Ten bytes are a call: operation, four inodes, two names, offset, length, and an argument. States
 * must be made of them without harm, the same again by their ids.
 */
#include <stddef.h>
#include <stdint.h>

#include "app/states.h"

enum { RECORD = 10, CALLS_MAX = 48 };

static const char *name_of(unsigned char c)
{
	static const char *const names[] = { "a", "b", "c", "", ".", "x/y", NULL, "user.x" };

	return names[c % 8];
}

/* Small ones, and some that are far too large. */
static uint64_t number_of(unsigned char c)
{
	return c < 0x80 ? (uint64_t)c * 700 : (uint64_t)1 << (c % 63);
}

static void append(struct trace *t, const unsigned char *b)
{
	static unsigned char data[128 << 10];
	auto_strbuf buf = STRBUF_INIT;
	struct event ev;
	size_t len = b[8] < 0x80 ? (size_t)b[8] * 300 : (size_t)b[8] << 9;
	struct posix_event e = { .op = (enum posix_op)(b[0] % POSIX_OP_END),
				 .flags = b[9] & POSIX_FLAGS_ALL,
				 .ino = b[1] % 8,
				 .dir = b[2] % 8,
				 .dir2 = b[3] % 8,
				 .ino2 = b[4] % 8,
				 .name = name_of(b[5]),
				 .name2 = name_of(b[6]),
				 .offset = number_of(b[7]),
				 .len = number_of(b[8]),
				 .arg = b[9],
				 .result = b[9] == 0xff ? -5 : (int64_t)len,
				 .payload = data,
				 .payload_len = len };

	data[0] = b[9];
	posix_to_event(&e, 0, &buf, &ev);
	trace_append(t, &ev);
	if (b[0] == 0xff)
		trace_persist(t, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct app_state a = { 0 }, again = { 0 };
	struct states *s = NULL;
	struct history h;
	struct trace t;

	if (!size)
		return 0;
	trace_init(&t);
	for (size_t i = 1; i + RECORD <= size && i / RECORD < CALLS_MAX; i += RECORD)
		append(&t, bytes + i);
	struct history_opts opts = { .profile = profile_at(bytes[0] % 6),
				     .unit_size = bytes[0] & 0x80 ? 512 : 0,
				     .base = -1,
				     .root_ino = 1 };
	if (history_new(&t, &opts, &h, NULL) == 0) {
		if (states_new(&h, &(struct states_opts){ .budget = 60, .tries = 120 }, &s, NULL) ==
		    0)
			while (states_next(s, &a))
				if (states_replay(&h, a.id, &again, NULL) ||
				    !hash_eq(a.hash, again.hash))
					abort();
		app_state_release(&a);
		app_state_release(&again);
		states_free(s);
		history_release(&h);
	}
	trace_release(&t);
	return 0;
}
