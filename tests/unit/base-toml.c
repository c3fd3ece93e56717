/* SPDX-License-Identifier: MIT */
/* base-toml.c - TOML: what each form means, and what is refused, with the line it is in. */
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "base/toml.h"
#include "tap.h"

static void dump(const struct toml_value *v, struct strbuf *out)
{
	switch (v->type) {
	case TOML_TABLE:
	case TOML_ARRAY:
		strbuf_addch(out, v->type == TOML_TABLE ? '{' : '[');
		for (const struct toml_value *i = v->first; i; i = i->next) {
			if (i != v->first)
				strbuf_addch(out, ' ');
			if (v->type == TOML_TABLE)
				strbuf_addf(out, "%s=", i->key);
			dump(i, out);
		}
		strbuf_addch(out, v->type == TOML_TABLE ? '}' : ']');
		break;
	case TOML_STRING:
		strbuf_addf(out, "\"%s\"", v->string);
		break;
	case TOML_INTEGER:
		strbuf_addf(out, "%" PRId64, v->integer);
		break;
	case TOML_FLOAT:
		strbuf_addf(out, "%g", v->number);
		break;
	case TOML_BOOL:
		strbuf_adds(out, v->boolean ? "true" : "false");
		break;
	}
}

static void reads(const char *text, const char *want)
{
	auto_strbuf got = STRBUF_INIT, title = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct toml doc;

	strbuf_add_flat(&title, want);
	if (!ok(toml_parse(text, strlen(text), "f", &doc, &err) == 0, "read: %s",
		strbuf_str(&title))) {
		printf("#   %s\n", err.msg);
		return;
	}
	dump(doc.root, &got);
	is_s(strbuf_str(&got), want, "and means that");
	toml_release(&doc);
}

static void refuses(const char *text, const char *want)
{
	struct err err = ERR_INIT;
	struct toml doc;
	int rc = toml_parse(text, strlen(text), "f", &doc, &err);

	is_i(rc, -EINVAL, "refused: %s", want);
	is_s(err.msg, want, "and the sentence");
	if (!rc)
		toml_release(&doc);
}

static void test_values(void)
{
	reads("", "{}");
	reads("\xef\xbb\xbf# only a comment", "{}");
	reads("a=1\r\nb = +2 # two\r\n", "{a=1 b=2}");
	reads("a=-9223372036854775808\nb=9223372036854775807\nc=1_000",
	      "{a=-9223372036854775808 b=9223372036854775807 c=1000}");
	reads("a=0xdead_BEEF\nb=0o17\nc=0b101\nd=0\ne=-0", "{a=3735928559 b=15 c=5 d=0 e=0}");
	reads("a=0.5\nb=1e3\nc=-2.5E-1\nd=6.02_3\ne=0e0\nf=+1.0",
	      "{a=0.5 b=1000 c=-0.25 d=6.023 e=0 f=1}");
	reads("a=inf\nb=-inf\nc=nan", "{a=inf b=-inf c=nan}");
	reads("a=true\nb=false", "{a=true b=false}");
	reads("a=[1,2,]\nb=[]\nc=[[1],['x']]\nd=[ # one\n1 , # two\n\n2\n]",
	      "{a=[1 2] b=[] c=[[1] [\"x\"]] d=[1 2]}");
	reads("a={}\nb={x=1,y.z='q'}\nc=[{k=1},{k=2}]",
	      "{a={} b={x=1 y={z=\"q\"}} c=[{k=1} {k=2}]}");
	refuses("a=9223372036854775808", "f:1: 9223372036854775808 is too large for an integer");
	refuses("a=-9223372036854775809", "f:1: -9223372036854775809 is too large for an integer");
	refuses("a=0x8000000000000000", "f:1: 0x8000000000000000 is too large for an integer");
	refuses("\na=01", "f:2: 01 is no value; a string must be in quotes");
	refuses("a=1__0", "f:1: 1__0 is no value; a string must be in quotes");
	refuses("a=_1", "f:1: _1 is no value; a string must be in quotes");
	refuses("a=1.", "f:1: 1. is no value; a string must be in quotes");
	refuses("a=.5", "f:1: .5 is no value; a string must be in quotes");
	refuses("a=1e", "f:1: 1e is no value; a string must be in quotes");
	refuses("a=+0x1", "f:1: +0x1 is no value; a string must be in quotes");
	refuses("a=yes", "f:1: yes is no value; a string must be in quotes");
	refuses("a=", "f:1: a value is missing, or its quotes are");
	refuses("a=/tmp/x", "f:1: a value is missing, or its quotes are");
	refuses("a=1 2",
		"f:1: something follows a value in its line; put it into a line of its own");
	refuses("a=[1 2]", "f:1: between values of an array there must be a comma");
	refuses("\na=[1,\n2\n\n", "f:2: an array without its end; ] is missing");
	refuses("a={x=1", "f:1: a table in { } without its end in the same line; } is missing");
	refuses("a={x=1,}", "f:1: no key is here; a line is KEY = VALUE or [TABLE]");
	refuses("a={x=1\n}", "f:1: a table in { } without its end in the same line; } is missing");
}

static void test_dates(void)
{
	refuses("a=1979-05-27T07:32:00Z",
		"f:1: 1979-05-27T07:32:00Z is a date or a time, which nothing here takes; for a "
		"string put it in quotes");
	refuses("a=07:32:00", "f:1: 07:32:00 is a date or a time, which nothing here takes; for a "
			      "string put it in quotes");
	reads("a='1979-05-27'", "{a=\"1979-05-27\"}");
}

static void test_strings(void)
{
	reads("a=\"x\\t\\\"\\\\\\u00e9\\U0001F600\"", "{a=\"x\t\"\\\xc3\xa9\xf0\x9f\x98\x80\"}");
	reads("a='C:\\x'\nb=''\nc=\"\"", "{a=\"C:\\x\" b=\"\" c=\"\"}");
	reads("a=\"\"\"\none\ntwo\\\n   \n  three\"\"\"", "{a=\"one\ntwothree\"}");
	reads("a='''\nq\\''\n'''\nb=1", "{a=\"q\\''\n\" b=1}");
	reads("a=\"\"\"\"\"\"\nb=\"\"\"x\"\"\"\"\"\nc=''''q'''", "{a=\"\" b=\"x\"\"\" c=\"'q\"}");
	refuses("a=\"x", "f:1: a string without its end; \" is missing");
	refuses("a='x\n'", "f:1: a string without its end; ' is missing");
	refuses("\na='''x\n\n", "f:2: a string without its end; ''' is missing");
	refuses("a=\"\\q\"",
		"f:1: an escape that TOML does not have; a backslash itself is \\\\, or use '...'");
	refuses("a=\"\\u12g4\"", "f:1: \\u needs 4 hexadecimal digits");
	refuses("a=\"\\ud800\"", "f:1: there is no character of the number d800");
	refuses("a=\"\\U00110000\"", "f:1: there is no character of the number 110000");
	refuses("a=\"\\u0000\"", "f:1: a string cannot hold the character NUL");
	refuses("a='\x01'", "f:1: a control character in a string; write it as \\u0001");
	refuses("# \x7f", "f:1: a control character in a comment; remove it");
}

static void test_keys(void)
{
	reads("a.b.c=1\na.b.d=2\na.e=3", "{a={b={c=1 d=2} e=3}}");
	reads("\"a b\"=1\n'c.d' = 2\n1234=3\n\"\"=4", "{a b=1 c.d=2 1234=3 =4}");
	reads("a . \"b\" = 1", "{a={b=1}}");
	refuses("a=1\n\na=2", "f:3: a is there already, in line 1; remove one of them");
	refuses("a=1\na.b=2", "f:2: a is there already (line 1) and cannot be added to");
	refuses("a={}\na.b=2", "f:2: a is there already (line 1) and cannot be added to");
	refuses("=1", "f:1: no key is here; a line is KEY = VALUE or [TABLE]");
	refuses("a", "f:1: after the key a there must be =");
	refuses("a b=1", "f:1: after the key a there must be =");
	refuses("a.=1", "f:1: no key is here; a line is KEY = VALUE or [TABLE]");
	refuses("\"\"\"a\"\"\"=1", "f:1: after the key  there must be =");
}

static void test_tables(void)
{
	reads("[a]\nx=1\n[b]\nx=2", "{a={x=1} b={x=2}}");
	reads("[file system]\nx=1", "{file system={x=1}}");
	reads("[ cache . 'simple' ] # here\nx=1\n[cache]\ny=2", "{cache={simple={x=1} y=2}}");
	reads("[[i]]\nx=1\n[i.t]\ny=1\n[[i]]\n[[i]]\nx=3\n[[i.l]]\n[[i.l]]",
	      "{i=[{x=1 t={y=1}} {} {x=3 l=[{} {}]}]}");
	reads("[f]\na.c=1\n[f.a.t]\nx=1", "{f={a={c=1 t={x=1}}}}");
	refuses("[a]\n[a]", "f:2: a is there already, in line 1; remove one of them");
	refuses("[a]\nb=1\n[a.b]", "f:3: b is there already, in line 2; remove one of them");
	refuses("a=1\n[a.b]", "f:2: a is a value (line 1) and cannot hold tables");
	refuses("a=[1]\n[a.b]", "f:2: a is a value (line 1) and cannot hold tables");
	refuses("a={}\n[a.b]", "f:2: a is a value (line 1) and cannot hold tables");
	refuses("[a]\n[[a]]", "f:2: a is there already, in line 1, and is no list of [[a]]");
	refuses("a=[]\n[[a]]", "f:2: a is there already, in line 1, and is no list of [[a]]");
	refuses("[[a]]\n[a]", "f:2: a is there already, in line 1; remove one of them");
	refuses("[f]\na.c=1\n[f.a]", "f:3: a is there already, in line 2; remove one of them");
	refuses("[a.b.c]\n[a]\nb.c.d=1", "f:3: b is there already (line 1) and cannot be added to");
	refuses("[a", "f:1: after the name a there must be ]");
	refuses("[[a]", "f:1: after the name a there must be ]]");
	refuses("[]", "f:1: a name is missing in [ ]");
	refuses("[a] b=1",
		"f:1: something follows the name of a table in its line; put it into a line of its "
		"own");
}

static void test_bounds(void)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct toml doc;

	strbuf_adds(&text, "a=");
	for (int i = 0; i < TOML_DEPTH_MAX; i++)
		strbuf_addch(&text, '[');
	for (int i = 0; i < TOML_DEPTH_MAX; i++)
		strbuf_addch(&text, ']');
	is_i(toml_parse(text.buf, text.len, "f", &doc, &err), 0, "as deep as may be");
	toml_release(&doc);
	strbuf_cut(&text, 2);
	for (int i = 0; i < 100000; i++)
		strbuf_adds(&text, i % 2 ? "[" : "{a=");
	ok(toml_parse(text.buf, text.len, "f", &doc, &err) == -EINVAL, "deeper");
	is_s(err.msg, "f:1: values are nested more than 32 deep", "is refused");
	err_clear(&err);
	strbuf_clear(&text);
	for (int i = 0; i <= TOML_DEPTH_MAX; i++)
		strbuf_adds(&text, i ? ".a" : "[a");
	strbuf_adds(&text, "]");
	ok(toml_parse(text.buf, text.len, "f", &doc, &err) == -EINVAL, "a long name");
	is_s(err.msg, "f:1: a key of more than 32 parts", "is refused");
	err_clear(&err);
	strbuf_clear(&text);
	for (int i = 0; i <= TOML_KEYS_MAX; i++)
		strbuf_addf(&text, "k%d=1\n", i);
	ok(toml_parse(text.buf, text.len, "f", &doc, &err) == -EINVAL, "many keys");
	is_s(err.msg, "f:4097: more than 4096 keys in one table", "are refused");
	err_clear(&err);
	ok(toml_parse("a=1\0b", 5, "f", &doc, &err) == -EINVAL, "a NUL is no white space");
}

static void test_get(void)
{
	static const char text[] = "a=1\n[b]\n\nx='y'\n";
	auto_toml doc;
	struct err err = ERR_INIT;

	is_i(toml_parse(text, strlen(text), "f", &doc, &err), 0, "a document");
	const struct toml_value *b = toml_get(doc.root, "b");
	ok(b && b->type == TOML_TABLE && b->line == 2 && b->n == 1, "a table, with its line");
	ok(toml_get(b, "x") && toml_get(b, "x")->line == 4, "and a value in it");
	ok(!toml_get(b, "a") && !toml_get(toml_get(doc.root, "a"), "x"), "what is not there");
	is_s(toml_type_name(b->type), "a table", "types have names");
}

/* Any change of a few bytes is read or refused, and never anything else. */
static void test_noise(void)
{
	static const char good[] =
		"[a]\nx = \"q\\n\" # c\ny=[1,{k='v'}]\n[[b.c]]\nz=\"\"\"\nm\\\n\"\"\"\n";
	static const char alphabet[] = "[]{}=.,\"'\\#\n\r\t 0x1eau_-+:";
	struct rng rng;
	unsigned read = 0, refused = 0;
	bool all = true;

	rng_init(&rng, 1);
	for (int i = 0; i < 20000; i++) {
		char text[sizeof(good)];
		struct err err = ERR_INIT;
		struct toml doc;

		memcpy(text, good, sizeof(good));
		for (unsigned k = 0; k < 1 + i % 4u; k++)
			text[rng_below(&rng, sizeof(good) - 1)] =
				alphabet[rng_below(&rng, sizeof(alphabet) - 1)];
		if (toml_parse(text, sizeof(good) - 1, "f", &doc, &err)) {
			refused++;
			all &= strncmp(err.msg, "f:", 2) == 0;
		} else {
			read++;
			toml_release(&doc);
		}
	}
	ok(all && read > 100 && refused > 100, "noise: %u read, %u refused", read, refused);
}

int main(void)
{
	test_values();
	test_dates();
	test_strings();
	test_keys();
	test_tables();
	test_bounds();
	test_get();
	test_noise();
	return done_testing();
}
