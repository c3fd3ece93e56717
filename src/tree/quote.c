/* SPDX-License-Identifier: MIT */
/*
 * quote.c - prints names and bytes as text for people, and parses that text.
 *
 * bytes = part { "+" part }     part = [ count "*" ] string
 *
 * A string with a count is one byte. Printing is canonical: a run of RUN_MIN or more equal bytes
 * gets a count, the bytes between two runs are one string, and no bytes at all are "".
 */
#include "tree/tree_impl.h"

#include <errno.h>

enum { RUN_MIN = 8 };

static const char hex_digits[] = "0123456789abcdef";

static void add_escaped(struct strbuf *out, unsigned char c, bool graphic)
{
	if (graphic) {
		strbuf_addch(out, (char)c);
		return;
	}
	char escape[] = { '\\', 'x', hex_digits[c >> 4], hex_digits[c & 15] };
	strbuf_add(out, escape, sizeof(escape));
}

void quote_name(struct strbuf *out, const char *name)
{
	for (const unsigned char *s = (const unsigned char *)name; *s; s++)
		add_escaped(out, *s, *s > ' ' && *s < 0x7f && *s != '\\');
}

static void add_in_string(struct strbuf *out, unsigned char c)
{
	if (c == '"' || c == '\\' || c == '\n') {
		strbuf_addch(out, '\\');
		strbuf_addch(out, c == '\n' ? 'n' : (char)c);
	} else {
		add_escaped(out, c, c >= ' ' && c < 0x7f);
	}
}

static size_t run_length(const unsigned char *s, size_t left)
{
	size_t n = 1;

	while (n < left && s[n] == s[0])
		n++;
	return n;
}

/* Returns how many bytes were put into text before it grew longer than `max`. */
static size_t add_parts(struct strbuf *out, const unsigned char *s, size_t len, size_t max)
{
	size_t start = out->len;
	bool in_string = false;
	size_t i = 0;

	while (i < len && out->len - start <= max) {
		size_t run = run_length(s + i, len - i);

		if (run >= RUN_MIN) {
			strbuf_adds(out, in_string ? "\"+" : i ? "+" : "");
			strbuf_addu(out, run);
			strbuf_adds(out, "*\"");
			add_in_string(out, s[i]);
			strbuf_addch(out, '"');
			in_string = false;
			i += run;
			continue;
		}
		if (!in_string)
			strbuf_adds(out, i ? "+\"" : "\"");
		in_string = true;
		add_in_string(out, s[i++]);
	}
	strbuf_adds(out, in_string ? "\"" : i ? "" : "\"\"");
	return i;
}

bool quote_bytes(struct strbuf *out, const void *data, size_t len, size_t max)
{
	size_t start = out->len;
	size_t done = add_parts(out, data, len, max);

	if (done == len && out->len - start <= max)
		return true;
	strbuf_cut(out, start);
	return false;
}

void quote_brief(struct strbuf *out, const void *data, size_t len, size_t max)
{
	if (add_parts(out, data, len, max) < len)
		strbuf_adds(out, "...");
}

static int hex_value(char c)
{
	const char *at = c ? strchr(hex_digits, c) : NULL;

	return at ? (int)(at - hex_digits) : -1;
}

/* Reads an escape, after its backslash. */
static int unescape(const char **p, const char *end, unsigned char *out)
{
	const char *s = *p;
	int high = -1, low = -1;

	if (end - s >= 3 && s[0] == 'x') {
		high = hex_value(s[1]);
		low = hex_value(s[2]);
	}
	if (high >= 0 && low >= 0) {
		*out = (unsigned char)(high << 4 | low);
		*p += 3;
		return 0;
	}
	if (s == end || (*s != 'n' && *s != '"' && *s != '\\'))
		return -EINVAL;
	*out = *s == 'n' ? '\n' : (unsigned char)*s;
	++*p;
	return 0;
}

int tree_unquote_name(const char **p, const char *end, struct strbuf *out)
{
	size_t start = out->len;

	while (*p < end && **p != ' ') {
		unsigned char c = (unsigned char)*(*p)++;

		if (c == '\\' && unescape(p, end, &c))
			return -EINVAL;
		if (!c)
			return -EINVAL;
		strbuf_addch(out, (char)c);
	}
	return out->len > start ? 0 : -EINVAL;
}

static int unquote_string(const char **p, const char *end, size_t limit, struct strbuf *out)
{
	if (*p == end || *(*p)++ != '"')
		return -EINVAL;
	for (; *p < end; limit--) {
		unsigned char c = (unsigned char)*(*p)++;

		if (c == '"')
			return 0;
		if (c == '\\' && unescape(p, end, &c))
			return -EINVAL;
		if (!limit)
			return -EFBIG;
		strbuf_addch(out, (char)c);
	}
	return -EINVAL; /* the closing quote is missing */
}

/* Reads the string of a part whose count was read. */
static int unquote_run(const char **p, const char *end, uint64_t count, size_t limit,
		       struct strbuf *out)
{
	size_t start = out->len;
	int rc = unquote_string(p, end, limit, out);

	if (rc)
		return rc;
	if (out->len - start != 1 || !count)
		return -EINVAL;
	if (count > limit)
		return -EFBIG;
	char c = out->buf[start];
	memset(strbuf_grow(out, (size_t)count - 1), c, (size_t)count - 1);
	out->len += (size_t)count - 1;
	out->buf[out->len] = '\0';
	return 0;
}

int tree_unquote_bytes(const char **p, const char *end, size_t limit, struct strbuf *out)
{
	size_t start = out->len;

	for (;;) {
		size_t left = limit - (out->len - start);
		uint64_t count = 0;
		bool counted = false;
		int rc;

		for (; *p < end && **p >= '0' && **p <= '9'; ++*p, counted = true)
			if (__builtin_mul_overflow(count, 10, &count) ||
			    __builtin_add_overflow(count, (uint64_t)(**p - '0'), &count))
				return -EINVAL;
		if (counted && (*p == end || *(*p)++ != '*'))
			return -EINVAL;
		rc = counted ? unquote_run(p, end, count, left, out)
			     : unquote_string(p, end, left, out);
		if (rc)
			return rc;
		if (*p == end || **p != '+')
			return 0;
		++*p;
	}
}
