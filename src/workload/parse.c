/* SPDX-License-Identifier: MIT */
/*
 * parse.c - parses the text of a workload. The text is hostile: everything is bounded, and every
 * message names the line, the column and what was expected there.
 */
#include "workload/workload.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#include "base/number.h"

enum { TEXT_MAX = 64 << 20 }; /* bytes of one workload, comments included */

/* A line that is being parsed. */
struct line {
	const char *text;
	size_t len;
	size_t pos;
	const char *source;
	unsigned number;
};

/* A word: its column, and its bytes with escapes undone. */
struct word_token {
	size_t column; /* from 1 */
	char *text;
	size_t len;
};

static int complain(const struct line *l, size_t column, struct err *err, const char *fmt, ...)
	printf_like(4, 5);

static int complain(const struct line *l, size_t column, struct err *err, const char *fmt, ...)
{
	char what[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (char *p = what; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?'; /* from an escape; a message is one line */
	return err_set(err, -EINVAL, "%s:%u:%zu: %s", l->source, l->number, column, what);
}

static void skip_blanks(struct line *l)
{
	while (l->pos < l->len && (l->text[l->pos] == ' ' || l->text[l->pos] == '\t'))
		l->pos++;
}

static bool at_end(const struct line *l)
{
	return l->pos >= l->len || l->text[l->pos] == '#';
}

static int hex_digit(char c)
{
	c = (char)tolower((unsigned char)c);
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes one escape; l->pos is at the backslash. */
static int take_escape(struct line *l, char *out, struct err *err)
{
	size_t at = l->pos;
	int hi = -1, lo = -1;

	if (at + 3 < l->len && l->text[at + 1] == 'x') {
		hi = hex_digit(l->text[at + 2]);
		lo = hex_digit(l->text[at + 3]);
	}
	if (hi < 0 || lo < 0)
		return complain(l, at + 1, err, "expected \\xHH with two hex digits");
	if (!hi && !lo)
		return complain(l, at + 1, err, "\\x00 cannot be part of a word");
	*out = (char)(hi << 4 | lo);
	l->pos += 4;
	return 0;
}

/* Takes a word between two '"'; l->pos is at the first; "" is the empty word. */
static int take_quoted(struct line *l, struct word_token *word, struct err *err)
{
	size_t start = l->pos++;

	for (; l->pos < l->len && l->text[l->pos] != '"'; word->len++) {
		unsigned char c = (unsigned char)l->text[l->pos];
		char next = l->pos + 1 < l->len ? l->text[l->pos + 1] : '\0';

		if (c == '\\' && next != '"' && next != '\\') {
			int rc = take_escape(l, &word->text[word->len], err);
			if (rc)
				return rc;
			continue;
		}
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return complain(l, l->pos + 1, err, "byte 0x%02x must be written \\x%02x",
					c, c);
		l->pos += c == '\\';
		word->text[word->len] = l->text[l->pos++];
	}
	if (l->pos >= l->len)
		return complain(l, start + 1, err, "this \" has no second one");
	l->pos++;
	if (l->pos < l->len && l->text[l->pos] != ' ' && l->text[l->pos] != '\t')
		return complain(l, l->pos + 1, err, "expected a blank after the \"");
	word->text[word->len] = '\0';
	return 1;
}

/* Takes the next word. Returns 1, or 0 at the end of the line. */
static int take_word(struct line *l, struct arena *arena, struct word_token *word, struct err *err)
{
	skip_blanks(l);
	if (at_end(l))
		return 0;
	word->column = l->pos + 1;
	bool quoted = l->text[l->pos] == '"';
	size_t room = l->pos;
	while (room < l->len && (quoted || (l->text[room] != ' ' && l->text[room] != '\t')))
		room++;
	word->text = arena_alloc(arena, room - l->pos + 1);
	word->len = 0;
	if (quoted)
		return take_quoted(l, word, err);
	while (l->pos < l->len) {
		unsigned char c = (unsigned char)l->text[l->pos];

		if (c == ' ' || c == '\t')
			break;
		if (c == '\\') {
			int rc = take_escape(l, &word->text[word->len++], err);
			if (rc)
				return rc;
			continue;
		}
		if (c < 0x20 || c == 0x7f || c == '"')
			return complain(l, l->pos + 1, err, "byte 0x%02x must be written \\x%02x",
					c, c);
		word->text[word->len++] = (char)c;
		l->pos++;
	}
	word->text[word->len] = '\0';
	return 1;
}

bool workload_path_ok(const char *path, const char **why)
{
	size_t len = strlen(path);

	*why = NULL;
	if (!len)
		*why = "is empty";
	else if (path[0] == '/')
		*why = "is absolute; paths are relative to the root of the file system";
	else if (len > OP_PATH_MAX)
		*why = "is longer than 4096 bytes";
	for (const char *p = path; !*why && *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			*why = "has a '..', which could leave the root";
		p += n + (p[n] == '/');
	}
	return !*why;
}

/* Drops "./", "//" and a slash at the end, in place. "." stays. */
static void normalise_path(char *path)
{
	char *to = path;

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n && !(n == 1 && p[0] == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n + (p[n] == '/');
	}
	if (to == path)
		*to++ = '.';
	*to = '\0';
}

static bool handle_name_ok(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return strlen(name) <= 64;
}

static int parse_words(const struct line *l, const struct word_token *word,
		       const struct arg_def *def, uint64_t *out, struct err *err)
{
	uint64_t value = 0;
	size_t at = 0;

	for (;;) {
		size_t n = strcspn(word->text + at, ",");
		const struct word *w = def->words;

		while (w->name &&
		       (strlen(w->name) != n || memcmp(w->name, word->text + at, n) != 0))
			w++;
		if (!w->name) {
			auto_strbuf list = STRBUF_INIT;
			for (w = def->words; w->name; w++)
				strbuf_addf(&list, "%s%s", w == def->words ? "" : ", ", w->name);
			return complain(l, word->column + at, err, "'%.*s' is none of %s", (int)n,
					word->text + at, strbuf_str(&list));
		}
		value |= w->value;
		at += n;
		if (word->text[at] != ',')
			break;
		if (def->kind == ARG_CHOICE)
			return complain(l, word->column + at, err, "only one word goes here");
		at++;
	}
	*out = value;
	return 0;
}

static int parse_number(const struct line *l, const struct word_token *word,
			const struct arg_def *def, const struct op_def *op, uint64_t *out,
			struct err *err)
{
	uint64_t limit = OP_OFFSET_MAX;
	struct err why = ERR_INIT;

	if (def->kind == ARG_MODE) {
		char *end;
		unsigned long mode = strtoul(word->text, &end, 8);

		if (*end || !isdigit((unsigned char)word->text[0]) || mode > 07777)
			return complain(l, word->column, err,
					"expected %s, permission bits such as 0644, not '%.40s'",
					def->name, word->text);
		*out = mode;
		return 0;
	}
	if (def->kind == ARG_LENGTH)
		limit = OP_DATA_MAX;
	if (def->kind == ARG_NUMBER)
		limit = UINT32_MAX;
	int rc = number_parse_size(word->text, out, &why);
	if (rc && rc != -ERANGE)
		return complain(l, word->column, err, "expected %s, a number, not '%.40s'",
				def->name, word->text);
	if (rc || *out > limit)
		return complain(l, word->column, err,
				"%s is %.40s, more than %llu, the most that %s takes", def->name,
				word->text, llu(limit), op->name);
	return 0;
}

static int parse_path(const struct line *l, struct word_token *word, struct arg *arg,
		      struct err *err)
{
	const char *why;

	if (!workload_path_ok(word->text, &why))
		return complain(l, word->column, err, "path '%.60s' %s", word->text, why);
	normalise_path(word->text);
	arg->text = word->text;
	return 0;
}

static int parse_arg(const struct line *l, struct word_token *word, const struct arg_def *def,
		     const struct op_def *op, const struct workload *w, struct arg *arg,
		     struct err *err)
{
	arg->given = true;
	switch (def->kind) {
	case ARG_FILE:
		/* A word that is a handle's name means the handle; "./name" is the path. */
		arg->is_handle = workload_handle(w, word->text) != NULL;
		if (arg->is_handle) {
			arg->text = word->text;
			return 0;
		}
		return parse_path(l, word, arg, err);
	case ARG_PATH:
		return parse_path(l, word, arg, err);
	case ARG_HANDLE:
		if (!workload_handle(w, word->text))
			return complain(l, word->column, err, "there is no handle '%.60s'",
					word->text);
		arg->is_handle = true;
		arg->text = word->text;
		return 0;
	case ARG_XATTR:
		if (!strchr(word->text, '.') || word->len > 255)
			return complain(l, word->column, err,
					"expected an attribute such as user.x, not '%.60s'",
					word->text);
		arg->text = word->text;
		return 0;
	case ARG_TEXT:
		arg->text = word->text;
		return 0;
	case ARG_FLAGS:
	case ARG_CHOICE:
		arg->text = word->text; /* printed as it was written */
		return parse_words(l, word, def, &arg->num, err);
	case ARG_OFFSET:
	case ARG_LENGTH:
	case ARG_SIZE:
	case ARG_MODE:
	case ARG_NUMBER:
		return parse_number(l, word, def, op, &arg->num, err);
	case ARG_END:
		break;
	}
	assert(!"no such argument kind");
	return -EINVAL;
}

void op_usage(const struct op_def *def, struct strbuf *out)
{
	if (def->flags & OP_MAKES_HANDLE)
		strbuf_adds(out, "HANDLE = ");
	strbuf_adds(out, def->name);
	for (size_t i = 0; def->args[i].kind != ARG_END; i++)
		strbuf_addf(out, def->args[i].optional ? " [%s]" : " %s", def->args[i].name);
}

static int parse_args(struct line *l, struct workload *w, struct op *op, struct err *err)
{
	const struct op_def *def = op->def;
	struct word_token word;
	int rc;

	for (size_t i = 0; def->args[i].kind != ARG_END; i++) {
		const struct arg_def *arg = &def->args[i];

		rc = take_word(l, &w->arena, &word, err);
		if (rc < 0)
			return rc;
		if (rc == 0 && !arg->optional) {
			auto_strbuf usage = STRBUF_INIT;
			op_usage(def, &usage);
			return complain(l, l->pos + 1, err, "expected %s here: %s", arg->name,
					strbuf_str(&usage));
		}
		if (rc == 0) {
			op->args[i].num = arg->fallback;
			continue;
		}
		rc = parse_arg(l, &word, arg, def, w, &op->args[i], err);
		if (rc)
			return rc;
	}
	rc = take_word(l, &w->arena, &word, err);
	if (rc <= 0)
		return rc;
	auto_strbuf usage = STRBUF_INIT;
	op_usage(def, &usage);
	return complain(l, word.column, err, "'%.40s' is too much: %s", word.text,
			strbuf_str(&usage));
}

/* Takes "NAME = " before an operation; `word` is the name. Returns 1 if it was there. */
static int take_handle(struct line *l, const struct word_token *word, struct op *op,
		       struct err *err)
{
	size_t start = l->pos;

	skip_blanks(l);
	if (l->pos >= l->len || l->text[l->pos] != '=' ||
	    (l->pos + 1 < l->len && l->text[l->pos + 1] != ' ' && l->text[l->pos + 1] != '\t')) {
		l->pos = start;
		return 0;
	}
	l->pos++;
	if (!handle_name_ok(word->text))
		return complain(l, word->column, err,
				"'%.40s' cannot name a handle: use letters, digits and _",
				word->text);
	if (streq(word->text, "setup") || streq(word->text, "workload"))
		return complain(l, word->column, err, "'%s' cannot name a handle: it begins a line",
				word->text);
	op->handle = word->text;
	return 1;
}

/* Checks the ends of ranges, which the checks of single numbers do not cover. */
static int check_ranges(const struct line *l, const struct op *op, struct err *err)
{
	const struct arg_def *args = op->def->args;

	for (size_t i = 0; args[i].kind != ARG_END; i++)
		if (args[i].kind == ARG_OFFSET && args[i + 1].kind == ARG_SIZE &&
		    op->args[i].num + op->args[i + 1].num > OP_OFFSET_MAX)
			return complain(l, 1, err, "the range ends beyond %llu",
					llu(OP_OFFSET_MAX));
	return 0;
}

/* Parses an operation, from the current position to the end of the line or its comment. */
static int parse_op(struct line *l, struct workload *w, struct op *op, struct err *err)
{
	struct word_token word;
	int rc = take_word(l, &w->arena, &word, err);

	if (rc > 0 && streq(word.text, "setup")) {
		op->setup = true;
		rc = take_word(l, &w->arena, &word, err);
	}
	if (rc > 0) {
		rc = take_handle(l, &word, op, err);
		if (rc >= 0)
			rc = rc ? take_word(l, &w->arena, &word, err) : 1;
	}
	if (rc < 0)
		return rc;
	if (rc == 0)
		return complain(l, l->pos + 1, err, "expected an operation");
	op->def = op_find(word.text, word.len);
	if (!op->def)
		return complain(l, word.column, err,
				"unknown operation '%.40s' (outage gen --list-operations)",
				word.text);
	if (!op->handle != !(op->def->flags & OP_MAKES_HANDLE)) {
		if (op->handle)
			return complain(l, word.column, err, "%s makes no handle", word.text);
		return complain(l, word.column, err,
				"expected a name for the handle: NAME = open ...");
	}
	rc = parse_args(l, w, op, err);
	return rc ? rc : check_ranges(l, op, err);
}

static int parse_op_line(struct line *l, struct workload *w, const char *before, struct err *err)
{
	struct op op = { .before = before };
	int rc = parse_op(l, w, &op, err);

	if (rc)
		return rc;
	if (w->ops.n >= WORKLOAD_OPS_MAX)
		return complain(l, 1, err, "a workload has at most %d operations",
				WORKLOAD_OPS_MAX);
	skip_blanks(l);
	if (l->pos < l->len)
		op.comment = arena_memdupz(&w->arena, l->text + l->pos, l->len - l->pos);
	if (op.handle && !workload_handle(w, op.handle) && w->handles.n == WORKLOAD_HANDLES_MAX)
		return complain(l, 1, err, "more than %d handles", WORKLOAD_HANDLES_MAX);
	workload_push(w, &op);
	return 0;
}

int workload_add_line(struct workload *w, const char *text, struct err *err)
{
	struct line l = { .text = text, .len = strlen(text), .source = "operation", .number = 1 };

	return parse_op_line(&l, w, NULL, err);
}

/* True if the line is "workload NAME"; then moves `l` behind the keyword. */
static bool take_header(struct line *l)
{
	static const char keyword[] = "workload";
	size_t n = sizeof(keyword) - 1;

	skip_blanks(l);
	if (l->len - l->pos <= n || memcmp(l->text + l->pos, keyword, n) != 0)
		return l->len - l->pos == n && memcmp(l->text + l->pos, keyword, n) == 0 &&
		       (l->pos += n, true);
	if (l->text[l->pos + n] != ' ' && l->text[l->pos + n] != '\t')
		return false;
	l->pos += n;
	return true;
}

static int parse_header(struct line *l, struct workload *w, struct err *err)
{
	struct word_token word, extra;
	int rc = take_word(l, &w->arena, &word, err);

	if (rc == 0)
		return complain(l, l->pos + 1, err, "expected a name: workload NAME");
	if (rc < 0)
		return rc;
	if (!word.len || word.len > WORKLOAD_NAME_MAX)
		return complain(l, word.column, err, "a name has 1 to %d bytes", WORKLOAD_NAME_MAX);
	rc = take_word(l, &w->arena, &extra, err);
	if (rc > 0)
		return complain(l, extra.column, err, "'%.40s' is too much: workload NAME",
				extra.text);
	if (rc == 0 && l->pos < l->len) { /* a comment behind the name is kept as a line above it */
		auto_strbuf before = STRBUF_INIT;
		strbuf_addf(&before, "%s%.*s\n", w->before ? w->before : "", (int)(l->len - l->pos),
			    l->text + l->pos);
		w->before = arena_strdup(&w->arena, strbuf_str(&before));
	}
	w->name = word.text;
	w->named = true;
	return rc;
}

/* ---- the reader ---- */

void workload_reader_init(struct workload_reader *r, FILE *in, const char *source)
{
	*r = (struct workload_reader){ .in = in, .source = source, .pending = -1 };
}

void workload_reader_release(struct workload_reader *r)
{
	free(r->buf);
	strbuf_release(&r->comments);
}

/* Puts the next line into r->buf and its length into *len. Returns 1, 0 at the end, or -errno. */
static int next_line(struct workload_reader *r, size_t *len, struct err *err)
{
	if (r->pending >= 0) {
		*len = (size_t)r->pending;
		r->pending = -1;
		return 1;
	}
	/* getline() is not used: a stream without line ends must not fill the memory. */
	size_t n = 0;
	int c;
	if (!r->buf) {
		r->cap = WORKLOAD_LINE_MAX + 1;
		r->buf = xmalloc(r->cap);
	}
	r->line++;
	errno = 0;
	while ((c = getc_unlocked(r->in)) != EOF && c != '\n') {
		if (n == WORKLOAD_LINE_MAX)
			return err_set(err, -EINVAL, "%s:%u: the line is longer than %d bytes",
				       r->source, r->line, WORKLOAD_LINE_MAX);
		if (c == '\0')
			return err_set(err, -EINVAL, "%s:%u:%zu: a NUL byte; is this a text file?",
				       r->source, r->line, n + 1);
		r->buf[n++] = (char)c;
	}
	if (c == EOF && ferror(r->in))
		return err_set(err, errno ? -errno : -EIO, "%s:%u: cannot read: %m", r->source,
			       r->line);
	if (c == EOF && !n)
		return 0;
	while (n && r->buf[n - 1] == '\r')
		n--; /* a file with CR LF */
	r->buf[n] = '\0';
	*len = n;
	return 1;
}

static const char *take_comments(struct workload_reader *r, struct workload *w)
{
	const char *text = NULL;

	if (r->comments.len)
		text = arena_memdupz(&w->arena, r->comments.buf, r->comments.len);
	strbuf_clear(&r->comments);
	return text;
}

static bool is_blank_or_comment(struct line *l)
{
	skip_blanks(l);
	return at_end(l);
}

int workload_reader_next(struct workload_reader *r, struct workload *w, struct err *err)
{
	bool any = false;
	size_t len = 0, total = 0;
	int rc;

	workload_clear(w);
	while ((rc = next_line(r, &len, err)) > 0) {
		struct line l = { r->buf, len, 0, r->source, r->line };

		total += len + 1;
		if (total > TEXT_MAX) {
			rc = complain(&l, 1, err, "the workload is longer than %d bytes", TEXT_MAX);
			break;
		}
		if (is_blank_or_comment(&l)) {
			strbuf_add(&r->comments, r->buf, len);
			strbuf_addch(&r->comments, '\n');
			continue;
		}
		if (take_header(&l)) {
			if (any) {
				r->pending = (ssize_t)len; /* the line begins the next workload */
				break;
			}
			w->before = take_comments(r, w);
			rc = parse_header(&l, w, err);
		} else {
			rc = parse_op_line(&l, w, take_comments(r, w), err);
		}
		if (rc < 0)
			break;
		any = true;
	}
	if (rc < 0) {
		workload_clear(w);
		return rc;
	}
	if (!any && (r->any || !r->comments.len))
		return 0;
	/* Comments before the next header belong to that workload; at the end, to this one. */
	if (r->pending < 0)
		w->after = take_comments(r, w);
	r->any = true;
	return any || w->after ? 1 : 0;
}

int workload_parse(const char *text, size_t len, const char *source, struct workload *out,
		   struct err *err)
{
	struct workload_reader r;

	workload_clear(out);
	if (!len)
		return 0;
	auto_file in = fmemopen((void *)(uintptr_t)text, len, "r");
	if (!in)
		return err_set(err, -errno, "%s: cannot read: %m", source);
	workload_reader_init(&r, in, source);
	int rc = workload_reader_next(&r, out, err);
	if (rc >= 0 && r.pending >= 0)
		rc = err_set(err, -EINVAL, "%s:%u: a second workload begins where one is expected",
			     source, r.line);
	workload_reader_release(&r);
	if (rc < 0)
		workload_clear(out);
	return min(rc, 0);
}
