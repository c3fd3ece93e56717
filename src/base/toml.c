/* SPDX-License-Identifier: MIT */
/*
 * toml.c - reads TOML.
 *
 * The parser makes one pass over the text. Values nest at most TOML_DEPTH_MAX deep, and so does the
 * recursion.
 *
 * The additions that a table allows depend on how it was made: a header may name a table once, but
 * its path may lead through any table; a dotted key may only go through tables that dotted keys
 * made; an inline table is finished where it ends.
 */
#include "base/toml.h"

#include <errno.h>
#include <math.h>

#include "base/strbuf.h"

enum how {
	BY_PATH,   /* on the way to a table that a header names */
	BY_HEADER, /* [a] */
	BY_DOT,	   /* a.b = 1 makes a */
	BY_VALUE,  /* an inline table, or an array in brackets */
	BY_ITEM,   /* [[a]]: the array */
};

struct parser {
	const char *at, *end;
	const char *name;
	unsigned line;
	unsigned depth;
	struct toml *doc;
	struct toml_value *table; /* the table that the last header named */
	struct err *err;
};

const char *toml_type_name(enum toml_type type)
{
	static const char *const names[] = { "a table",	   "an array", "a string",
					     "an integer", "a float",  "true or false" };

	return names[type];
}

#define wrong(p, ...) err_in_line((p)->err, (p)->name, (p)->line, __VA_ARGS__)

/* ---- characters ---- */

static int peek(const struct parser *p)
{
	return p->at < p->end ? (unsigned char)*p->at : -1;
}

static bool looking_at(const struct parser *p, const char *s)
{
	size_t len = strlen(s);

	return (size_t)(p->end - p->at) >= len && memcmp(p->at, s, len) == 0;
}

static bool take(struct parser *p, const char *s)
{
	bool there = looking_at(p, s);

	if (there)
		p->at += strlen(s);
	return there;
}

static void skip_blanks(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t')
		p->at++;
}

static bool take_newline(struct parser *p)
{
	if (!take(p, "\n") && !take(p, "\r\n"))
		return false;
	p->line++;
	return true;
}

static bool is_control(int c)
{
	return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

static bool is_bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int skip_comment(struct parser *p)
{
	if (peek(p) != '#')
		return 0;
	while (p->at < p->end && !looking_at(p, "\n") && !looking_at(p, "\r\n")) {
		if (is_control(peek(p)))
			return wrong(p, "a control character in a comment; remove it");
		p->at++;
	}
	return 0;
}

/* Skips blanks, line ends and comments between the values of an array. */
static int skip_space(struct parser *p)
{
	for (;;) {
		skip_blanks(p);
		int rc = skip_comment(p);
		if (rc)
			return rc;
		if (!take_newline(p))
			return 0;
	}
}

static int end_of_line(struct parser *p, const char *after)
{
	skip_blanks(p);
	int rc = skip_comment(p);
	if (rc)
		return rc;
	if (p->at == p->end || take_newline(p))
		return 0;
	return wrong(p, "something follows %s in its line; put it into a line of its own", after);
}

/* ---- strings ---- */

static void add_utf8(struct strbuf *out, uint32_t c)
{
	if (c < 0x80) {
		strbuf_addch(out, (char)c);
	} else if (c < 0x800) {
		strbuf_addch(out, (char)(0xc0 | c >> 6));
		strbuf_addch(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		strbuf_addch(out, (char)(0xe0 | c >> 12));
		strbuf_addch(out, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_addch(out, (char)(0x80 | (c & 0x3f)));
	} else {
		strbuf_addch(out, (char)(0xf0 | c >> 18));
		strbuf_addch(out, (char)(0x80 | (c >> 12 & 0x3f)));
		strbuf_addch(out, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_addch(out, (char)(0x80 | (c & 0x3f)));
	}
}

static int digit_of(int c, int base)
{
	int v = -1;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if (c >= 'a' && c <= 'f')
		v = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		v = c - 'A' + 10;
	return v < base ? v : -1;
}

static int read_unicode(struct parser *p, unsigned digits, struct strbuf *out)
{
	uint32_t c = 0;

	for (unsigned i = 0; i < digits; i++) {
		int v = digit_of(peek(p), 16);

		if (v < 0)
			return wrong(p, "\\%c needs %u hexadecimal digits", digits == 4 ? 'u' : 'U',
				     digits);
		c = c << 4 | (uint32_t)v;
		p->at++;
	}
	if (!c)
		return wrong(p, "a string cannot hold the character NUL");
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return wrong(p, "there is no character of the number %x", (unsigned)c);
	add_utf8(out, c);
	return 0;
}

/* Reads an escape after its backslash. */
static int read_escape(struct parser *p, bool multi, struct strbuf *out)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	int c = peek(p);
	const char *found = c > 0 ? strchr(from, c) : NULL;

	if (found) {
		strbuf_addch(out, to[found - from]);
		p->at++;
		return 0;
	}
	if (c == 'u' || c == 'U') {
		p->at++;
		return read_unicode(p, c == 'u' ? 4 : 8, out);
	}
	if (multi) { /* at the end of a line: skip to the next character that is no space */
		const char *back = p->at;

		skip_blanks(p);
		if (take_newline(p)) {
			do
				skip_blanks(p);
			while (take_newline(p));
			return 0;
		}
		p->at = back;
	}
	return wrong(p, "an escape that TOML does not have; a backslash itself is \\\\, or use "
			"'...'");
}

/* Reads a string after its opening `quote`. */
static int read_line_string(struct parser *p, char quote, struct strbuf *out)
{
	for (;;) {
		int c = peek(p);
		int rc = 0;

		if (c < 0 || looking_at(p, "\n") || looking_at(p, "\r\n"))
			return wrong(p, "a string without its end; %c is missing", quote);
		if (is_control(c))
			return wrong(p, "a control character in a string; write it as \\u%04X", c);
		p->at++;
		if (c == quote)
			return 0;
		if (c == '\\' && quote == '"')
			rc = read_escape(p, false, out);
		else
			strbuf_addch(out, (char)c);
		if (rc)
			return rc;
	}
}

/* Reads a string in three quotes. Up to two more quotes may stand before its end. */
static int read_multi_string(struct parser *p, char quote, struct strbuf *out)
{
	const char three[] = { quote, quote, quote, '\0' };
	unsigned began = p->line;

	take_newline(p);
	for (;;) {
		int c = peek(p);
		int rc = 0;

		if (c < 0) {
			p->line = began;
			return wrong(p, "a string without its end; %s is missing", three);
		}
		if (take(p, three)) {
			for (int i = 0; i < 2 && peek(p) == quote; i++, p->at++)
				strbuf_addch(out, quote);
			return 0;
		}
		if (take_newline(p)) {
			strbuf_addch(out, '\n');
			continue;
		}
		if (is_control(c))
			return wrong(p, "a control character in a string; write it as \\u%04X", c);
		p->at++;
		if (c == '\\' && quote == '"')
			rc = read_escape(p, true, out);
		else
			strbuf_addch(out, (char)c);
		if (rc)
			return rc;
	}
}

static int read_string(struct parser *p, bool may_be_multi, const char **out)
{
	auto_strbuf text = STRBUF_INIT;
	char quote = *p->at;
	int rc;

	if (may_be_multi && (take(p, "\"\"\"") || take(p, "'''"))) {
		rc = read_multi_string(p, quote, &text);
	} else {
		p->at++;
		rc = read_line_string(p, quote, &text);
	}
	if (!rc)
		*out = arena_memdupz(&p->doc->arena, strbuf_str(&text), text.len);
	return rc;
}

/* ---- tables ---- */

static struct toml_value *find(const struct toml_value *table, const char *key)
{
	struct toml_value *v = table->first;

	while (v && !streq(v->key, key))
		v = v->next;
	return v;
}

const struct toml_value *toml_get(const struct toml_value *table, const char *key)
{
	return table->type == TOML_TABLE ? find(table, key) : NULL;
}

static struct toml_value *new_value(struct parser *p, enum toml_type type, enum how how)
{
	struct toml_value *v = arena_zalloc(&p->doc->arena, sizeof(*v));

	v->type = type;
	v->line = p->line;
	v->how = (unsigned char)how;
	return v;
}

static void append(struct toml_value *to, struct toml_value *v)
{
	if (to->last)
		to->last->next = v;
	else
		to->first = v;
	to->last = v;
	to->n++;
}

static int put(struct parser *p, struct toml_value *table, const char *key, struct toml_value *v)
{
	if (table->n >= TOML_KEYS_MAX)
		return wrong(p, "more than %d keys in one table", TOML_KEYS_MAX);
	v->key = key;
	append(table, v);
	return 0;
}

/* ---- keys ---- */

struct path {
	const char *part[TOML_DEPTH_MAX];
	size_t n;
};

/* Reads a plain word; in a header, several words with blanks between them. */
static int read_bare(struct parser *p, bool header, const char **out)
{
	const char *begin = p->at, *end;

	do {
		while (is_bare(peek(p)))
			p->at++;
		end = p->at;
		if (!header)
			break;
		skip_blanks(p);
	} while (is_bare(peek(p)));
	p->at = end;
	if (begin == end)
		return wrong(p, header ? "a name is missing in [ ]"
				       : "no key is here; a line is KEY = VALUE or [TABLE]");
	*out = arena_memdupz(&p->doc->arena, begin, (size_t)(end - begin));
	return 0;
}

static int read_path(struct parser *p, bool header, struct path *out)
{
	out->n = 0;
	do {
		int rc;

		if (out->n == TOML_DEPTH_MAX)
			return wrong(p, "a key of more than %d parts", TOML_DEPTH_MAX);
		skip_blanks(p);
		if (peek(p) == '"' || peek(p) == '\'')
			rc = read_string(p, false, &out->part[out->n]);
		else
			rc = read_bare(p, header, &out->part[out->n]);
		if (rc)
			return rc;
		out->n++;
		skip_blanks(p);
	} while (take(p, "."));
	return 0;
}

/* ---- values ---- */

static int read_value(struct parser *p, struct toml_value **out);

static int read_array(struct parser *p, struct toml_value *array)
{
	unsigned began = p->line;
	bool comma = true;

	for (;;) {
		struct toml_value *v = NULL;
		int rc = skip_space(p);

		if (rc || take(p, "]"))
			return rc;
		if (p->at == p->end) {
			p->line = began;
			return wrong(p, "an array without its end; ] is missing");
		}
		if (!comma)
			return wrong(p, "between values of an array there must be a comma");
		rc = read_value(p, &v);
		if (!rc)
			rc = skip_space(p);
		if (rc)
			return rc;
		append(array, v);
		comma = take(p, ",");
	}
}

static int read_pair(struct parser *p, struct toml_value *table);

static int read_inline_table(struct parser *p, struct toml_value *table)
{
	skip_blanks(p);
	if (take(p, "}"))
		return 0;
	do {
		int rc = read_pair(p, table);

		if (rc)
			return rc;
		skip_blanks(p);
	} while (take(p, ","));
	if (!take(p, "}"))
		return wrong(p, "a table in { } without its end in the same line; } is missing");
	return 0;
}

/* Removes underlines between digits. False if one is anywhere else. */
static bool without_underlines(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++) {
		if (*from != '_')
			*to++ = *from;
		else if (from == text || digit_of((unsigned char)from[-1], 16) < 0 ||
			 digit_of((unsigned char)from[1], 16) < 0)
			return false;
	}
	*to = '\0';
	return true;
}

/* Returns 1, 0 if `s` is no integer, or -ERANGE. */
static int parse_integer(const char *s, int64_t *out)
{
	bool minus = *s == '-', sign = *s == '+' || minus;
	uint64_t v = 0, most = minus ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	int base = 10;

	s += sign;
	if (*s == '0' && s[1] && !sign) {
		base = s[1] == 'x' ? 16 : s[1] == 'o' ? 8 : s[1] == 'b' ? 2 : 0;
		s += 2;
	}
	if (!base || !*s || (base == 10 && *s == '0' && s[1]))
		return 0;
	for (; *s; s++) {
		int d = digit_of((unsigned char)*s, base);

		if (d < 0)
			return 0;
		if (v > (most - (uint64_t)d) / (uint64_t)base)
			return -ERANGE;
		v = v * (uint64_t)base + (uint64_t)d;
	}
	*out = minus ? (int64_t)(0 - v) : (int64_t)v;
	return 1;
}

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

/* The form is checked here: strtod() takes more than TOML does. */
static bool parse_float(const char *text, double *out)
{
	const char *s = text + (*text == '+' || *text == '-');
	const char *digits = s;

	if (streq(s, "inf") || streq(s, "nan")) {
		*out = *s == 'n' ? NAN : *text == '-' ? -INFINITY : INFINITY;
		return true;
	}
	s = skip_digits(s);
	if (s == digits || (*digits == '0' && s > digits + 1))
		return false;
	if (*s == '.') {
		const char *fraction = ++s;

		s = skip_digits(s);
		if (s == fraction)
			return false;
	}
	if (*s == 'e' || *s == 'E') {
		s += s[1] == '+' || s[1] == '-' ? 2 : 1;
		const char *exponent = s;

		s = skip_digits(s);
		if (s == exponent)
			return false;
	}
	if (*s)
		return false;
	*out = strtod(text, NULL);
	return true;
}

static bool is_date(const char *s)
{
	size_t n = (size_t)(skip_digits(s) - s);

	return (n == 4 && s[4] == '-') || (n == 2 && s[2] == ':');
}

/* Reads a value that is one word: true, false, or a number. */
static int read_word(struct parser *p, struct toml_value *v)
{
	char text[128];
	size_t n = 0;

	while (n < sizeof(text) - 1 &&
	       (is_bare(peek(p)) || (p->at < p->end && strchr("+.:", *p->at) && *p->at)))
		text[n++] = *p->at++;
	text[n] = '\0';
	if (!n)
		return wrong(p, "a value is missing, or its quotes are");
	if (streq(text, "true") || streq(text, "false")) {
		v->type = TOML_BOOL;
		v->boolean = text[0] == 't';
		return 0;
	}
	if (is_date(text))
		return wrong(
			p,
			"%s is a date or a time, which nothing here takes; for a string put it in "
			"quotes",
			text);
	bool good = without_underlines(text);
	int rc = good ? parse_integer(text, &v->integer) : 0;

	if (rc < 0)
		return wrong(p, "%s is too large for an integer", text);
	v->type = rc ? TOML_INTEGER : TOML_FLOAT;
	if (rc || (good && parse_float(text, &v->number)))
		return 0;
	return wrong(p, "%s is no value; a string must be in quotes", text);
}

static int read_value(struct parser *p, struct toml_value **out)
{
	struct toml_value *v = new_value(p, TOML_STRING, BY_VALUE);
	int rc;

	skip_blanks(p);
	if (p->depth == TOML_DEPTH_MAX)
		return wrong(p, "values are nested more than %d deep", TOML_DEPTH_MAX);
	p->depth++;
	if (peek(p) == '"' || peek(p) == '\'') {
		rc = read_string(p, true, &v->string);
	} else if (take(p, "[")) {
		v->type = TOML_ARRAY;
		rc = read_array(p, v);
	} else if (take(p, "{")) {
		v->type = TOML_TABLE;
		rc = read_inline_table(p, v);
	} else {
		rc = read_word(p, v);
	}
	p->depth--;
	if (!rc)
		*out = v;
	return rc;
}

/* ---- lines ---- */

/* Adds a.b.c = VALUE to `table`, or to a table in it. */
static int put_pair(struct parser *p, struct toml_value *table, const struct path *path,
		    struct toml_value *v)
{
	for (size_t i = 0; i + 1 < path->n; i++) {
		struct toml_value *next = find(table, path->part[i]);

		if (!next) {
			next = new_value(p, TOML_TABLE, BY_DOT);
			int rc = put(p, table, path->part[i], next);
			if (rc)
				return rc;
		} else if (next->type != TOML_TABLE || next->how != BY_DOT) {
			return wrong(p, "%s is there already (line %u) and cannot be added to",
				     path->part[i], next->line);
		}
		table = next;
	}

	const char *key = path->part[path->n - 1];
	struct toml_value *other = find(table, key);

	if (other)
		return wrong(p, "%s is there already, in line %u; remove one of them", key,
			     other->line);
	return put(p, table, key, v);
}

static int read_pair(struct parser *p, struct toml_value *table)
{
	struct path path = { .n = 0 };
	struct toml_value *v = NULL;
	int rc = read_path(p, false, &path);

	if (rc)
		return rc;
	if (!take(p, "="))
		return wrong(p, "after the key %s there must be =", path.part[path.n - 1]);
	unsigned line = p->line;

	rc = read_value(p, &v);
	if (rc)
		return rc;

	unsigned now = p->line;

	p->line = line; /* a message names the line where the value began */
	rc = put_pair(p, table, &path, v);
	p->line = now;
	return rc;
}

/* Enters the table `key` on the path of a header; makes it if it does not exist. */
static int step(struct parser *p, struct toml_value **table, const char *key)
{
	struct toml_value *next = find(*table, key);

	if (!next) {
		next = new_value(p, TOML_TABLE, BY_PATH);
		int rc = put(p, *table, key, next);
		if (rc)
			return rc;
	}
	if (next->type == TOML_ARRAY && next->how == BY_ITEM)
		next = next->last;
	if (next->type != TOML_TABLE || next->how == BY_VALUE)
		return wrong(p, "%s is a value (line %u) and cannot hold tables", key, next->line);
	*table = next;
	return 0;
}

static int open_table(struct parser *p, struct toml_value *table, const char *key)
{
	struct toml_value *v = find(table, key);
	int rc = 0;

	if (!v) {
		v = new_value(p, TOML_TABLE, BY_HEADER);
		rc = put(p, table, key, v);
	} else if (v->type == TOML_TABLE && v->how == BY_PATH) {
		v->how = BY_HEADER;
		v->line = p->line;
	} else {
		rc = wrong(p, "%s is there already, in line %u; remove one of them", key, v->line);
	}
	p->table = v;
	return rc;
}

static int open_item(struct parser *p, struct toml_value *table, const char *key)
{
	struct toml_value *v = find(table, key);
	int rc = 0;

	if (!v) {
		v = new_value(p, TOML_ARRAY, BY_ITEM);
		rc = put(p, table, key, v);
	} else if (v->type != TOML_ARRAY || v->how != BY_ITEM) {
		rc = wrong(p, "%s is there already, in line %u, and is no list of [[%s]]", key,
			   v->line, key);
	}
	if (rc)
		return rc;
	p->table = new_value(p, TOML_TABLE, BY_HEADER);
	append(v, p->table);
	return 0;
}

static int read_header(struct parser *p)
{
	bool item = take(p, "[[");
	struct toml_value *table = p->doc->root;
	struct path path = { .n = 0 };

	if (!item)
		p->at++;
	int rc = read_path(p, true, &path);
	if (rc)
		return rc;
	if (!take(p, item ? "]]" : "]"))
		return wrong(p, "after the name %s there must be %s", path.part[path.n - 1],
			     item ? "]]" : "]");
	for (size_t i = 0; !rc && i + 1 < path.n; i++)
		rc = step(p, &table, path.part[i]);
	if (rc)
		return rc;
	return (item ? open_item : open_table)(p, table, path.part[path.n - 1]);
}

static int read_line(struct parser *p)
{
	skip_blanks(p);
	if (p->at == p->end || peek(p) == '#' || looking_at(p, "\n") || looking_at(p, "\r\n"))
		return end_of_line(p, "");
	if (peek(p) == '[') {
		int rc = read_header(p);
		return rc ? rc : end_of_line(p, "the name of a table");
	}
	int rc = read_pair(p, p->table);
	return rc ? rc : end_of_line(p, "a value");
}

int toml_parse(const char *text, size_t len, const char *name, struct toml *out, struct err *err)
{
	struct toml doc = { .arena = ARENA_INIT };
	struct parser p = {
		.at = text, .end = text + len, .name = name, .line = 1, .doc = &doc, .err = err
	};
	int rc = 0;

	p.table = doc.root = new_value(&p, TOML_TABLE, BY_HEADER);
	take(&p, "\xef\xbb\xbf"); /* a byte order mark */
	while (!rc && p.at < p.end)
		rc = read_line(&p);
	if (rc)
		toml_release(&doc);
	else
		*out = doc;
	return rc;
}

void toml_release(struct toml *t)
{
	arena_release(&t->arena);
	t->root = NULL;
}
