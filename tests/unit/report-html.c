/* SPDX-License-Identifier: MIT */
/*
 * report-html.c - text in a page: every byte comes back as what it was, in a browser and in an
 * attribute, or is told by its number.
 */
#include "report/report.h"

#include "hostile.h"
#include "tap.h"

static const struct {
	const char *entity, *text;
} entities[] = {
	{ "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" }, { "&#39;", "'" },
};

/* What a browser shows; false if there is a byte that it would not take as text. */
static bool shown(const char *html, struct strbuf *out)
{
	while (*html) {
		size_t i = 0;

		if (strchr("<>\"'", *html) || (unsigned char)*html >= 0x7f ||
		    ((unsigned char)*html < 0x20 && *html != '\n' && *html != '\t'))
			return false;
		while (i < ARRAY_SIZE(entities) &&
		       strncmp(html, entities[i].entity, strlen(entities[i].entity)) != 0)
			i++;
		if (i < ARRAY_SIZE(entities)) {
			strbuf_adds(out, entities[i].text);
			html += strlen(entities[i].entity);
		} else if (*html == '&') {
			return false;
		} else {
			strbuf_addch(out, *html++);
		}
	}
	return true;
}

/* How a person reads a byte. */
static void add_read(struct strbuf *out, unsigned char c)
{
	if ((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t')
		strbuf_addch(out, (char)c);
	else
		strbuf_addf(out, "\\x%02x", c);
}

static void test_bytes(void)
{
	unsigned wrong = 0;

	for (unsigned c = 1; c < 256; c++) {
		char byte = (char)c;
		auto_strbuf html = STRBUF_INIT, got = STRBUF_INIT, want = STRBUF_INIT;

		report_html_escape(&html, &byte, 1);
		add_read(&want, (unsigned char)c);
		if (!shown(strbuf_str(&html), &got) || !streq(strbuf_str(&got), want.buf))
			printf("#   byte %02x is '%s'\n", c, strbuf_str(&html)), wrong++;
	}
	is_u(wrong, 0, "every byte alone is text");
	auto_strbuf nul = STRBUF_INIT;
	report_html_escape(&nul, "a\0b", 3);
	is_s(strbuf_str(&nul), "a\\x00b", "a NUL is told, and not the end");
}

static void test_names(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		auto_strbuf html = STRBUF_INIT, got = STRBUF_INIT, want = STRBUF_INIT;

		report_html_text(&html, hostile_names[i]);
		for (const char *c = hostile_names[i]; *c; c++)
			add_read(&want, (unsigned char)*c);
		ok(shown(strbuf_str(&html), &got), "name %zu is text", i);
		is_s(strbuf_str(&got), want.buf, "name %zu is shown as it is", i);
	}
}

static void test_page(void)
{
	auto_strbuf out = STRBUF_INIT;

	report_page_begin(&out, "outage app", "<b>&'");
	ok(strncmp(out.buf, "<!DOCTYPE html>\n", 16) == 0, "a page begins as one");
	ok(strstr(out.buf, "<title>outage app</title>"), "with a title");
	ok(strstr(out.buf, "<meta charset=\"utf-8\">"), "and its encoding");
	ok(strstr(out.buf, "\n<h1>&lt;b&gt;&amp;&#39;</h1>\n"), "a headline is text");
	ok(!strstr(out.buf, "http") && !strstr(out.buf, "url(") && !strstr(out.buf, "src="),
	   "it loads nothing");
}

int main(void)
{
	test_bytes();
	test_names();
	test_page();
	return done_testing();
}
