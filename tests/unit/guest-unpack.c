/* SPDX-License-Identifier: MIT */
/* Each format is unpacked whole or not at all, within its limit, and what is damaged is an error.
 */
#include "guest/unpack.h"
#include "packed.h"
#include "tap.h"

#include <errno.h>

static bool is_text(const struct strbuf *out)
{
	return out->len == PACKED_LEN && memcmp(out->buf, packed_text, PACKED_LEN) == 0;
}

static void test_whole(const struct packed *p)
{
	auto_strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	is_s(unpack_format(p->bytes, p->len), p->format, "%s is recognised", p->format);
	is_i(unpack(p->bytes, p->len, PACKED_LEN, &out, &err), 0, "%s is unpacked: %s", p->format,
	     err.msg);
	ok(is_text(&out), "it is what it was");
	is_i(unpack(p->bytes, p->len, 1 << 20, &out, &err), 0, "and again, behind it");
	ok(out.len == 2 * PACKED_LEN && !memcmp(out.buf + PACKED_LEN, packed_text, PACKED_LEN),
	   "it is there twice");
}

static void test_limit(const struct packed *p)
{
	static const size_t limits[] = { PACKED_LEN - 1, 1, 0 };
	auto_strbuf out = STRBUF_INIT;

	strbuf_adds(&out, "before");
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct err err = ERR_INIT;

		is_i(unpack(p->bytes, p->len, limits[i], &out, &err), -EFBIG,
		     "%s of more than %zu bytes: %s", p->format, limits[i], err.msg);
		is_s(strbuf_str(&out), "before", "nothing of it is there");
	}
}

/* Cut off anywhere, also within what only marks the end. */
static void test_cut(const struct packed *p)
{
	enum { HEAD = 8 };
	size_t wrong = 0;

	for (size_t n = HEAD; n < p->len; n++) {
		auto_strbuf out = STRBUF_INIT;
		struct err err = ERR_INIT;
		int rc = unpack(p->bytes, n, 1 << 20, &out, &err);

		if (rc != -EBADMSG || out.len || !strstr(err.msg, "cut off")) {
			printf("# %zu bytes: %d %s\n", n, rc, err.msg);
			wrong++;
		}
	}
	is_u(wrong, 0, "%s that is cut off is none", p->format);
}

/* Some bytes of a head mean nothing. Another text is never taken for this one where a checksum is.
 */
static void test_damaged(const struct packed *p)
{
	unsigned char bytes[256];
	size_t wrong = 0, refused = 0;

	for (size_t i = 0; i < p->len * 8; i++) {
		auto_strbuf out = STRBUF_INIT;
		struct err err = ERR_INIT;

		memcpy(bytes, p->bytes, p->len);
		bytes[i / 8] ^= (unsigned char)(1 << i % 8);
		int rc = unpack(bytes, p->len, 1 << 20, &out, &err);
		refused += rc != 0;
		if ((rc && out.len) || (rc < 0 && !*err.msg) ||
		    (!rc && p->checked && !is_text(&out))) {
			printf("# bit %zu: %d %s\n", i, rc, err.msg);
			wrong++;
		}
	}
	is_u(wrong, 0, "%s that is damaged is an error", p->format);
	ok(refused > p->len, "mostly: %zu of %zu bits", refused, p->len * 8);
}

static void test_behind(const struct packed *p)
{
	auto_strbuf in = STRBUF_INIT, out = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (streq(p->format, "lz4"))
		return; /* its end is that of the file */
	strbuf_add(&in, p->bytes, p->len);
	strbuf_adds(&in, "something else");
	is_i(unpack(in.buf, in.len, 1 << 20, &out, &err), 0, "what stands behind %s is ignored: %s",
	     p->format, err.msg);
	ok(is_text(&out), "it is what it was");
}

static void test_others(void)
{
	auto_strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	ok(!unpack_format("", 0) && !unpack_format("\x1f", 1), "nothing is in no format");
	ok(!unpack_format(packed_text, PACKED_LEN), "nor is what is not compressed");
	is_i(unpack(packed_text, PACKED_LEN, 1 << 20, &out, &err), 1, "it is left alone");
	is_s(unpack_format("BZh91AY&SY", 10), "bzip2", "bzip2 is recognised");
	is_i(unpack("BZh91AY&SY", 10, 1 << 20, &out, &err), 1, "and not unpacked");
	is_s(unpack_format("\x89LZO\0\r\n", 7), "lzo", "so is lzo");
	is_i(unpack("\x89LZO\0\r\n", 7, 1 << 20, &out, &err), 1, "and not unpacked");
	ok(!out.len && !err.code, "nothing was put there");
}

/* The head of lzma says how much memory it takes: here two gibibytes. */
static void test_memory(void)
{
	auto_strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	unsigned char bytes[sizeof(packed_lzma)];

	memcpy(bytes, packed_lzma, sizeof(bytes));
	bytes[4] = 0x80;
	is_i(unpack(bytes, sizeof(bytes), 1 << 20, &out, &err), -ENOMEM,
	     "one that takes too much memory is refused: %s", err.msg);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(packed_all); i++) {
		test_whole(&packed_all[i]);
		test_limit(&packed_all[i]);
		test_cut(&packed_all[i]);
		test_damaged(&packed_all[i]);
		test_behind(&packed_all[i]);
	}
	test_others();
	test_memory();
	return done_testing();
}
