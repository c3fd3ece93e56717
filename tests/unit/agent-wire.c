/* SPDX-License-Identifier: MIT */
/* What is said to the agent and back: it arrives as it was sent, and what is cut short is noticed.
 */
#include "tap.h"

#include <errno.h>

#include "agent/blob.h"
#include "agent/wire.h"

static void put_all(struct wire_out *w)
{
	wire_start(w, 77);
	wire_part(w, AGENT_MOUNT, 0);
	wire_put_text(&w->text, "ext4");
	wire_put_u32(&w->text, 6);
	wire_put_text(&w->text, "");
	wire_part(w, AGENT_END, -5);
	wire_part(w, AGENT_OP, 0);
	wire_put_u64(&w->text, (uint64_t)-28);
	wire_put_bytes(&w->text, "a\0b", 3);
	wire_finish(w);
}

static void test_round(void)
{
	struct wire_out w = { 0 };
	struct wire_head head;
	struct wire_in in, part;
	struct err err = ERR_INIT;
	uint32_t command;
	int32_t status;
	size_t n;

	put_all(&w);
	ok(wire_head((unsigned char *)w.text.buf, &head, &err) == 0, "the head is one");
	is_u(head.count, 3, "with three parts");
	is_u(head.serial, 77, "its number");
	is_u(head.len + WIRE_HEAD, w.text.len, "and its length");
	in = (struct wire_in){ (unsigned char *)w.text.buf + WIRE_HEAD, head.len, false };
	ok(wire_next(&in, &command, &status, &part) && command == AGENT_MOUNT && !status,
	   "the first part");
	is_s(wire_text(&part), "ext4", "a text");
	is_u(wire_u32(&part), 6, "a number");
	is_s(wire_text(&part), "", "an empty text");
	ok(!part.bad && !part.left, "and no more");
	wire_u32(&part);
	ok(part.bad && !wire_u64(&part) && !*wire_text(&part), "what is not there is nothing");
	ok(wire_next(&in, &command, &status, &part) && command == AGENT_END && status == -5 &&
		   !part.left,
	   "the second is empty, and has a status");
	ok(wire_next(&in, &command, &status, &part) && command == AGENT_OP, "the third");
	is_i((int64_t)wire_u64(&part), -28, "a negative number");
	ok(!memcmp(wire_bytes(&part, &n), "a\0b", 3) && n == 3, "bytes");
	ok(!wire_next(&in, &command, &status, &part) && !in.bad, "then there is none");
	wire_release(&w);
}

static void test_fail(void)
{
	struct wire_out w = { 0 };
	struct wire_in in, part;
	uint32_t command;
	int32_t status;

	wire_start(&w, 1);
	wire_part(&w, AGENT_WALK, 0);
	wire_put_text(&w.text, "half an answer");
	wire_fail(&w, -EIO);
	wire_part(&w, AGENT_END, 0);
	wire_finish(&w);
	in = (struct wire_in){ (unsigned char *)w.text.buf + WIRE_HEAD, w.text.len - WIRE_HEAD,
			       false };
	ok(wire_next(&in, &command, &status, &part) && status == -EIO && !part.left,
	   "a part that failed holds nothing");
	ok(wire_next(&in, &command, &status, &part) && command == AGENT_END,
	   "and the next one is found");
	wire_release(&w);
}

/* Cut at each byte, and with each length word made too large: never more than what is there. */
static void test_cut(void)
{
	struct wire_out w = { 0 };
	unsigned whole = 0, bad = 0;

	put_all(&w);
	for (size_t cut = 0; cut < w.text.len - WIRE_HEAD; cut++) {
		struct wire_in in = { (unsigned char *)w.text.buf + WIRE_HEAD, cut, false }, part;
		uint32_t command;
		int32_t status;
		unsigned parts = 0;

		while (wire_next(&in, &command, &status, &part))
			parts++;
		whole += parts == 3;
		bad += in.bad;
	}
	is_u(whole, 0, "no message that was cut has all its parts");
	/* It can end where a part does, three times. */
	is_u(bad, w.text.len - WIRE_HEAD - 3, "and it is noticed, unless a part ends there");
	wire_release(&w);
}

static void test_bad(void)
{
	static const struct {
		unsigned char bytes[12];
		size_t len;
		const char *what;
	} texts[] = {
		{ { 0, 0, 0, 0 }, 4, "a text without an end" },
		{ { 3, 0, 0, 0, 'a', 'b', 'c' }, 7, "a text whose end is missing" },
		{ { 3, 0, 0, 0, 'a', 0, 0 }, 7, "a text with an end inside" },
		{ { 255, 255, 255, 255, 'a', 0 }, 6, "a text that is longer than what is there" },
	};
	struct wire_out w = { 0 };
	struct wire_head head;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct wire_in in = { texts[i].bytes, texts[i].len, false };

		ok(!*wire_text(&in) && in.bad, "%s is none", texts[i].what);
	}
	put_all(&w);
	w.text.buf[0] ^= 1;
	is_i(wire_head((unsigned char *)w.text.buf, &head, &err), -EPROTO, "another magic");
	w.text.buf[0] ^= 1;
	err_clear(&err);
	w.text.buf[4] ^= 2;
	is_i(wire_head((unsigned char *)w.text.buf, &head, &err), -EPROTO, "another version");
	auto_free char *named = xasprintf("version %d", WIRE_VERSION ^ 2);
	ok(strstr(err.msg, named) != NULL, "which is named: %s", err.msg);
	w.text.buf[4] ^= 2;
	err_clear(&err);
	w.text.buf[15] = 127;
	is_i(wire_head((unsigned char *)w.text.buf, &head, &err), -EMSGSIZE, "a length too large");
	wire_release(&w);
}

int main(void)
{
	test_round();
	test_fail();
	test_cut();
	test_bad();
	ok(agent_program_size > 10000 && !memcmp(agent_program, "\177ELF", 4),
	   "the agent is carried along");
	return done_testing();
}
