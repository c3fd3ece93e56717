/* SPDX-License-Identifier: MIT */
/* base-strbuf.c - growing strings. */
#include "base/strbuf.h"

#include <errno.h>

#include "tap.h"

static void test_add(void)
{
	auto_strbuf sb = STRBUF_INIT;

	is_s(strbuf_str(&sb), "", "empty is a string");
	strbuf_adds(&sb, "one");
	strbuf_addch(&sb, ' ');
	strbuf_add(&sb, "two-", 3);
	strbuf_add(&sb, NULL, 0);
	strbuf_addf(&sb, " %d%s", 3, "!");
	is_s(strbuf_str(&sb), "one two 3!", "all ways to add");
	is_u(sb.len, 10, "its length");
	strbuf_cut(&sb, 3);
	is_s(strbuf_str(&sb), "one", "cut");
	strbuf_drop(&sb, 0);
	strbuf_drop(&sb, 2);
	is_s(strbuf_str(&sb), "e", "dropped");
	strbuf_drop(&sb, 1);
	strbuf_adds(&sb, "one");
	strbuf_add(&sb, "a\0b", 3);
	ok(sb.len == 6 && memcmp(sb.buf, "onea\0b", 7) == 0, "zero bytes are bytes");
	strbuf_clear(&sb);
	ok(sb.len == 0 && sb.cap > 0 && *strbuf_str(&sb) == '\0', "cleared, memory kept");
}

static void test_numbers(void)
{
	auto_strbuf sb = STRBUF_INIT;

	strbuf_addu(&sb, 0);
	strbuf_addch(&sb, ' ');
	strbuf_addu(&sb, 10);
	strbuf_addch(&sb, ' ');
	strbuf_addu(&sb, UINT64_MAX);
	is_s(sb.buf, "0 10 18446744073709551615", "numbers");
	strbuf_clear(&sb);
	errno = ENOENT;
	strbuf_addf(&sb, "%m");
	is_s(sb.buf, "No such file or directory", "%%m");
}

static void test_grow(void)
{
	auto_strbuf sb = STRBUF_INIT;
	size_t wrong = 0;

	char *to = strbuf_grow(&sb, 1000);
	is_s(strbuf_str(&sb), "", "room alone is not text");
	memset(to, 'x', 1000);
	ok(strbuf_grow(&sb, 1000) == to, "room that is there is not made again");
	strbuf_clear(&sb);
	for (size_t i = 0; i < 100000; i++)
		strbuf_addch(&sb, (char)('a' + i % 26));
	for (size_t i = 0; i < 100000; i++)
		wrong += sb.buf[i] != (char)('a' + i % 26);
	ok(wrong == 0 && sb.len == 100000 && sb.buf[sb.len] == '\0', "grows far");
	strbuf_clear(&sb);
	strbuf_addf(&sb, "%5000s", "end");
	ok(sb.len == 5000 && streq(sb.buf + 4997, "end"), "grows for a format");
}

static void test_detach(void)
{
	struct strbuf sb = STRBUF_INIT;
	auto_free char *empty = strbuf_detach(&sb);

	is_s(empty, "", "nothing detached is a string");
	strbuf_adds(&sb, "text");
	auto_free char *text = strbuf_detach(&sb);
	is_s(text, "text", "detached");
	ok(!sb.buf && !sb.len && !sb.cap, "and empty again");
	strbuf_release(&sb);
	strbuf_release(&sb);
	ok(!sb.buf, "released twice");
}

static void add_bracketed(struct strbuf *sb, const char *s)
{
	strbuf_addf(sb, "<%s>", s);
}

static void bracketed(struct strbuf *sb, const char *fmt, ...) printf_like(2, 3);

static void bracketed(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf_by(sb, add_bracketed, fmt, ap);
	va_end(ap);
}

static void test_by(void)
{
	auto_strbuf sb = STRBUF_INIT;

	bracketed(&sb, "a %s%%%-6s|%llu %#llx %zu %lu %04d%c%s", "x%d", "y", 1ULL << 40, 255ULL,
		  (size_t)7, 8UL, -9, 'c', "");
	is_s(strbuf_str(&sb), "a <x%d>%<y>   |1099511627776 0xff 7 8 -009c<>",
	     "only texts go through the function");
}

int main(void)
{
	test_by();
	test_add();
	test_numbers();
	test_grow();
	test_detach();
	return done_testing();
}
