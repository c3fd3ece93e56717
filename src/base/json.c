/* SPDX-License-Identifier: MIT */
/* json.c - writes JSON values with their commas and indentation, and escapes strings. */
#include "base/json.h"

#include <math.h>

void json_init(struct json *j, struct strbuf *out, bool pretty)
{
	*j = (struct json){ .out = out, .pretty = pretty };
}

static void newline(struct json *j)
{
	if (!j->pretty)
		return;
	strbuf_addch(j->out, '\n');
	for (int i = 0; i < j->depth; i++)
		strbuf_adds(j->out, "  ");
}

/* Writes the separator before the next value or key at this level. */
static void separate(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->depth)
		return;
	if (j->level[j->depth - 1].any)
		strbuf_addch(j->out, ',');
	j->level[j->depth - 1].any = true;
	newline(j);
}

static void before_value(struct json *j)
{
	/* In an object a value follows a key; elsewhere it stands alone. */
	assert(j->after_key || !j->depth || j->level[j->depth - 1].close == ']');
	separate(j);
}

static void open_level(struct json *j, char open, char close)
{
	before_value(j);
	assert(j->depth < JSON_DEPTH_MAX);
	strbuf_addch(j->out, open);
	j->level[j->depth].close = close;
	j->level[j->depth].any = false;
	j->depth++;
}

void json_object(struct json *j)
{
	open_level(j, '{', '}');
}

void json_array(struct json *j)
{
	open_level(j, '[', ']');
}

void json_end(struct json *j)
{
	assert(j->depth > 0 && !j->after_key);
	j->depth--;
	if (j->level[j->depth].any)
		newline(j);
	strbuf_addch(j->out, j->level[j->depth].close);
	if (!j->depth && j->pretty)
		strbuf_addch(j->out, '\n');
}

/* Length of the UTF-8 sequence at s, or 0 if there is none (overlong, surrogate, cut off). */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;

	if (n <= 1)
		return n;
	if (n > left || s[0] >= 0xf8) /* longer forms are not UTF-8 any more */
		return 0;
	uint32_t cp = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	return cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000) ? 0 : n;
}

static void add_quoted(struct strbuf *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	strbuf_addch(out, '"');
	for (size_t i = 0; i < len;) {
		size_t n = utf8_len(s + i, len - i);

		if (n == 0) {
			strbuf_adds(out, "\\ufffd");
			n = 1;
		} else if (s[i] == '"' || s[i] == '\\') {
			strbuf_addch(out, '\\');
			strbuf_addch(out, (char)s[i]);
		} else if (s[i] == '\n') {
			strbuf_adds(out, "\\n");
		} else if (s[i] < 0x20 || s[i] == 0x7f) {
			strbuf_addf(out, "\\u%04x", s[i]);
		} else {
			strbuf_add(out, s + i, n);
		}
		i += n;
	}
	strbuf_addch(out, '"');
}

void json_key(struct json *j, const char *key)
{
	assert(j->depth > 0 && j->level[j->depth - 1].close == '}' && !j->after_key);
	separate(j);
	add_quoted(j->out, key, strlen(key));
	strbuf_adds(j->out, j->pretty ? ": " : ":");
	j->after_key = true;
}

void json_string_len(struct json *j, const char *s, size_t len)
{
	before_value(j);
	add_quoted(j->out, s, len);
}

void json_string(struct json *j, const char *s)
{
	json_string_len(j, s, strlen(s));
}

void json_uint(struct json *j, uint64_t v)
{
	before_value(j);
	strbuf_addu(j->out, v);
}

void json_int(struct json *j, int64_t v)
{
	before_value(j);
	strbuf_addf(j->out, "%lld", (long long)v);
}

void json_double(struct json *j, double v)
{
	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	before_value(j);
	strbuf_addf(j->out, "%.9g", v);
}

void json_bool(struct json *j, bool v)
{
	before_value(j);
	strbuf_adds(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	before_value(j);
	strbuf_adds(j->out, "null");
}

void json_kv_object(struct json *j, const char *key)
{
	json_key(j, key);
	json_object(j);
}

void json_kv_array(struct json *j, const char *key)
{
	json_key(j, key);
	json_array(j);
}

void json_add_members(struct json *j, const struct json_member *m, size_t n)
{
	for (const struct json_member *end = m + n; m < end; m++) {
		if (m->left_out)
			continue;
		json_key(j, m->key);
		if (m->type == JSON_UINT)
			json_uint(j, m->uint);
		else if (m->type == JSON_BOOL)
			json_bool(j, m->truth);
		else if (m->type == JSON_DOUBLE)
			json_double(j, m->real);
		else if (m->type == JSON_STRBUF)
			json_string_len(j, strbuf_str(m->strbuf), m->strbuf->len);
		else if (m->string)
			json_string(j, m->string);
		else
			json_null(j);
	}
}
