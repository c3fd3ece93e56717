/* SPDX-License-Identifier: MIT */
/*
 * core-posix.c - calls of an application as records: names, the round trip, and damage.
 *
 * With a file as argument, a trace of such calls is written there, for the shell tests.
 */
#include <errno.h>

#include "base/rng.h"
#include "core/posix.h"
#include "core/trace_file.h"
#include "tap.h"

static const struct posix_event full = {
	.op = POSIX_WRITE,
	.flags = POSIX_SYNC | POSIX_APPEND,
	.pid = 7,
	.tid = 8,
	.uid = 1000,
	.gid = UINT32_MAX,
	.ino = 12,
	.dir = 1,
	.dir2 = 128,
	.ino2 = UINT64_MAX,
	.offset = INT64_MAX,
	.len = 5,
	.arg = 0644,
	.number = 300,
	.duration_ns = 127,
	.result = 5,
	.name = "foo",
	.name2 = "bar'\n",
	.payload = "hel\0o",
	.payload_len = 5,
};

static bool same_text(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static bool same(const struct posix_event *a, const struct posix_event *b)
{
	return a->op == b->op && a->flags == b->flags && a->pid == b->pid && a->tid == b->tid &&
	       a->uid == b->uid && a->gid == b->gid && a->ino == b->ino && a->dir == b->dir &&
	       a->dir2 == b->dir2 && a->ino2 == b->ino2 && a->offset == b->offset &&
	       a->len == b->len && a->arg == b->arg && a->number == b->number &&
	       a->duration_ns == b->duration_ns && a->result == b->result &&
	       same_text(a->name, b->name) && same_text(a->name2, b->name2) &&
	       a->payload_len == b->payload_len &&
	       (!a->payload_len || memcmp(a->payload, b->payload, a->payload_len) == 0);
}

static void test_names(void)
{
	bool found = true, disjoint = true;

	for (int op = 0; op < POSIX_OP_END; op++) {
		found &= posix_op_find(posix_op_name((enum posix_op)op)) == (enum posix_op)op;
		disjoint &= !(posix_op_changes((enum posix_op)op) &&
			      posix_op_persists((enum posix_op)op));
	}
	ok(found, "each operation is found by its name");
	ok(disjoint, "none both changes and persists");
	is_i(posix_op_find("wriet"), POSIX_OP_END, "what is none is not found");
	ok(!posix_op_name(POSIX_OP_END), "and has no name");
	ok(posix_op_changes(POSIX_RENAME) && !posix_op_changes(POSIX_READ), "rename changes");
	ok(posix_op_persists(POSIX_FDATASYNC) && !posix_op_persists(POSIX_WRITE),
	   "fdatasync persists");
	ok(!posix_op_changes(POSIX_OP_END) && !posix_op_persists(POSIX_OP_END), "the end neither");
	for (uint32_t flag = 1; flag & POSIX_FLAGS_ALL; flag <<= 1)
		ok(posix_flag_name(flag), "flag %u has a name", (unsigned)flag);
	ok(!posix_flag_name(1 << 5), "an unknown one has none");
}

static void test_round_trip(void)
{
	auto_strbuf buf = STRBUF_INIT, again = STRBUF_INIT;
	struct posix_event got, none = { .op = POSIX_SYNCFS, .result = -EIO };
	struct err err = ERR_INIT;
	struct event ev;

	posix_to_event(&full, 99, &buf, &ev);
	is_u(ev.time_ns, 99, "the time is the event's");
	is_i(posix_decode(&ev, &got, &err), 0, "a full record");
	ok(same(&full, &got), "is the same");
	posix_encode(&got, &again);
	ok(again.len == buf.len && memcmp(again.buf, buf.buf, buf.len) == 0, "byte for byte");
	posix_to_event(&none, 0, &buf, &ev);
	is_u(ev.len, 2 + 14 + 3, "nothing takes a byte a field");
	is_i(posix_decode(&ev, &got, &err), 0, "an empty record");
	ok(same(&none, &got) && !got.name && !got.payload, "is the same");
	none.result = INT64_MAX;
	posix_to_event(&none, 0, &buf, &ev);
	is_i(ev.result, INT32_MAX, "a result that does not fit is as large as can be");
}

static void refused(const void *data, size_t len, int32_t result, const char *want)
{
	struct event ev = { .kind = EV_POSIX, .len = len, .data = data, .result = result };
	struct posix_event got;
	struct err err = ERR_INIT;

	ok(posix_decode(&ev, &got, &err) == -EINVAL, "refused: %s", want);
	is_s(err.msg, want, "and the sentence");
}

static void test_damage(void)
{
	auto_strbuf buf = STRBUF_INIT;
	struct posix_event got;
	struct event ev;
	bool all = true;

	posix_to_event(&full, 0, &buf, &ev);
	for (uint64_t len = 0; len < buf.len; len++) {
		struct err err = ERR_INIT;

		ev.len = len;
		all &= posix_decode(&ev, &got, &err) == -EINVAL && err.msg[0];
	}
	ok(all, "a record that is cut off is refused, wherever it is");
	refused("", 0, 0, "it holds no call of an application");
	refused("\2\0", 2, 0, "a call in version 2 of its record, of which only 1 is known");
	refused("\1\377", 2, 0, "a call of a kind that is not known, 255");
	refused("\1\0\40", 3, 0, "the record of a call (lookup) is damaged: a number is too large");
	refused("\1\0\200\0", 4, 0,
		"the record of a call (lookup) is damaged: a number is longer than it needs to be");
	refused("\1\0\0\377\377\377\377\377\377\377\377\377\377\1", 14, 0,
		"the record of a call (lookup) is damaged: a number has no end");
	refused("\1\0\0\377\377\377\377\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 23, 0,
		"the record of a call (lookup) is damaged: a number is too large");
	refused("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2ab\0\0", 21, 0,
		"the record of a call (lookup) is damaged: a name does not end with its only NUL");
	refused("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0", 21, 0,
		"the record of a call (lookup) is damaged: a name does not end with its only NUL");
	refused("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 19, 0,
		"the record of a call (lookup) is damaged: it is too short");
	refused("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0!", 20, 0,
		"the record of a call (lookup) is damaged: something follows it");
	refused("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 19, -4096,
		"the record of a call (lookup) is damaged: its result is neither a number nor an "
		"error");
}

/* Whatever a byte is changed to, the record is refused or is one that gives the same bytes. */
static void test_flips(void)
{
	auto_strbuf buf = STRBUF_INIT;
	struct event ev;
	bool all = true;
	unsigned good = 0;

	posix_to_event(&full, 0, &buf, &ev);
	for (size_t i = 0; i < buf.len; i++) {
		char was = buf.buf[i];

		for (int v = 0; v < 256; v++) {
			auto_strbuf again = STRBUF_INIT;
			struct err err = ERR_INIT;
			struct posix_event got;

			buf.buf[i] = (char)v;
			if (posix_decode(&ev, &got, &err)) {
				all &= err.msg[0] != '\0';
				continue;
			}
			good++;
			posix_encode(&got, &again);
			all &= again.len == buf.len && !memcmp(again.buf, buf.buf, buf.len);
		}
		buf.buf[i] = was;
	}
	ok(all && good > buf.len, "changed bytes, of which %u are records", good);
}

static void fill(struct trace *t)
{
	static const struct posix_event rename = { .op = POSIX_RENAME,
						   .ino = 12,
						   .dir = 1,
						   .dir2 = 2,
						   .name = "foo",
						   .name2 = "bar",
						   .result = -ENOSPC };
	auto_strbuf buf = STRBUF_INIT;
	struct event ev;

	trace_init(t);
	posix_to_event(&full, 1000000, &buf, &ev);
	trace_append(t, &ev);
	posix_to_event(&rename, 0, &buf, &ev);
	trace_append(t, &ev);
}

static void test_trace(void)
{
	auto_trace t;
	struct posix_event got;
	struct err err = ERR_INIT;

	fill(&t);
	is_i(trace_validate(&t, &err), 0, "a trace may hold them");
	is_i(posix_decode(&t.events.v[0], &got, &err), 0, "and has a copy");
	ok(same(&full, &got), "of all of it");
	ok(!event_modifies(EV_POSIX) && event_has_data(EV_POSIX), "no storage is modified");
	vec_push(&t.events, (struct event){ .kind = EV_POSIX,
					    .len = 2,
					    .data = (const unsigned char *)"\1\0" });
	ok(trace_validate(&t, &err) == -EINVAL, "but no damaged one");
	is_s(err.msg, "event 2: the record of a call (lookup) is damaged: a number has no end",
	     "which is named");
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		auto_trace t;
		struct err err = ERR_INIT;

		fill(&t);
		return trace_save(argv[1], &t, &err) ? 1 : 0;
	}
	test_names();
	test_round_trip();
	test_damage();
	test_flips();
	test_trace();
	return done_testing();
}
