/* SPDX-License-Identifier: MIT */
/* base-json.c - the JSON writer: nesting, commas, escapes, and what is not UTF-8. */
#include "base/json.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static void write_sample(struct json *j)
{
	json_object(j);
	json_kvs(j, KV("s", "text"), KV("u", UINT64_MAX), KV("d", 1.5), KV("b", (bool)true),
		 KV_SOME("none", (const char *)NULL), KV_SOME("zero", 0), KV_SOME("some", 7));
	json_key(j, "list");
	json_array(j);
	json_int(j, INT64_MIN);
	json_bool(j, false);
	json_null(j);
	json_array(j);
	json_end(j);
	json_object(j);
	json_end(j);
	json_end(j);
	json_end(j);
}

static void test_shape(void)
{
	auto_strbuf sb = STRBUF_INIT;
	struct json j;

	json_init(&j, &sb, false);
	write_sample(&j);
	is_s(sb.buf,
	     "{\"s\":\"text\",\"u\":18446744073709551615,\"d\":1.5,\"b\":true,\"some\":7,"
	     "\"list\":[-9223372036854775808,false,null,[],{}]}",
	     "one line");
	strbuf_clear(&sb);
	json_init(&j, &sb, true);
	write_sample(&j);
	is_s(sb.buf,
	     "{\n"
	     "  \"s\": \"text\",\n"
	     "  \"u\": 18446744073709551615,\n"
	     "  \"d\": 1.5,\n"
	     "  \"b\": true,\n"
	     "  \"some\": 7,\n"
	     "  \"list\": [\n"
	     "    -9223372036854775808,\n"
	     "    false,\n"
	     "    null,\n"
	     "    [],\n"
	     "    {}\n"
	     "  ]\n"
	     "}\n",
	     "one member a line");
}

static const char *string(struct strbuf *sb, const char *s, size_t len)
{
	struct json j;

	strbuf_clear(sb);
	json_init(&j, sb, false);
	json_string_len(&j, s, len);
	return sb->buf;
}

static void test_strings(void)
{
	static const struct {
		const char *in, *out, *what;
	} cases[] = {
		{ "", "\"\"", "empty" },
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"", "quotes and backslashes" },
		{ "\n\t\x1f\x7f", "\"\\n\\u0009\\u001f\\u007f\"", "control characters" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "UTF-8 of two, three, four bytes" },
		{ "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"", "the last code point" },
		{ "\x80x", "\"\\ufffdx\"", "a stray continuation" },
		{ "\xff\xfe", "\"\\ufffd\\ufffd\"", "never in UTF-8" },
		{ "\xc0\x80", "\"\\ufffd\\ufffd\"", "overlong, two bytes" },
		{ "\xe0\x80\x80", "\"\\ufffd\\ufffd\\ufffd\"", "overlong, three bytes" },
		{ "\xf0\x8f\xbf\xbf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"", "overlong, four bytes" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"", "a surrogate" },
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"", "past the last" },
		{ "\xf9\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"", "five-byte form" },
		{ "\xfc\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"", "six-byte form" },
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"", "cut off" },
		{ "\xe2\x82z", "\"\\ufffd\\ufffdz\"", "broken off" },
	};
	auto_strbuf sb = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_s(string(&sb, cases[i].in, strlen(cases[i].in)), cases[i].out, "%s",
		     cases[i].what);
	is_s(string(&sb, "a\0b", 3), "\"a\\u0000b\"", "a zero byte");
	is_s(string(&sb, "\xe2\x82\xac", 2), "\"\\ufffd\\ufffd\"", "cut off by its length");
}

static void test_doubles(void)
{
	auto_strbuf sb = STRBUF_INIT;
	struct json j;

	json_init(&j, &sb, false);
	json_array(&j);
	json_double(&j, 0.1);
	json_double(&j, -2);
	json_double(&j, 1e300);
	json_double(&j, (double)NAN);
	json_double(&j, (double)INFINITY);
	json_end(&j);
	is_s(sb.buf, "[0.1,-2,1e+300,null,null]", "numbers, and what is none");
}

static void bad_value(struct json *j)
{
	json_object(j);
	json_uint(j, 1);
}

static void bad_key(struct json *j)
{
	json_array(j);
	json_key(j, "k");
}

static void bad_end(struct json *j)
{
	json_end(j);
}

static void bad_key_end(struct json *j)
{
	json_object(j);
	json_key(j, "k");
	json_end(j);
}

static void bad_depth(struct json *j)
{
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_array(j);
}

/* Invalid JSON is a programmer's error: it must not come out. */
static void asserts(void (*body)(struct json *j), const char *what)
{
	int status = 0;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		auto_strbuf sb = STRBUF_INIT;
		struct json j;

		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		json_init(&j, &sb, false);
		body(&j);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "asserts: %s", what);
}

static void test_members(void)
{
	auto_strbuf sb = STRBUF_INIT, text = STRBUF_INIT;
	const char *none = NULL;
	uint32_t small = 7;
	struct json j;

	strbuf_add(&text, "a\0b", 3);
	json_init(&j, &sb, false);
	json_array(&j);
	json_object_of(&j, KV("s", "x"), KV("none", none), KV("text", &text), KV("u", UINT64_MAX),
		       KV("small", small), KV("d", 1.5), KV("b", (bool)(small & 4)));
	json_object(&j);
	json_kv_array(&j, "list");
	json_end(&j);
	json_kv_object(&j, "o");
	json_end(&j);
	json_end(&j);
	json_end(&j);
	ok(streq(strbuf_str(&sb),
		 "[{\"s\":\"x\",\"none\":null,\"text\":\"a\\u0000b\",\"u\":18446744073709551615,"
		 "\"small\":7,\"d\":1.5,\"b\":true},{\"list\":[],\"o\":{}}]"),
	   "members by the types of their values");
}

int main(void)
{
	test_shape();
	test_members();
	test_strings();
	test_doubles();
	asserts(bad_value, "a value without a key in an object");
	asserts(bad_key, "a key in an array");
	asserts(bad_end, "an end without a beginning");
	asserts(bad_key_end, "a key without a value");
	asserts(bad_depth, "too deep");
	return done_testing();
}
