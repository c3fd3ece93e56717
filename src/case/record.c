/* SPDX-License-Identifier: MIT */
/* record.c - reads and writes records by their tables; record.h has the text's form. */
#include "case/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>

#include "base/below.h"
#include "base/io.h"
#include "base/number.h"

enum { VERSION_MAX = 60 };
static const char prefix[] = "outage-", version_key[] = "version ";

/* ---- members ---- */

static void *member_of(const struct record_field *f, const void *s)
{
	return (void *)((uintptr_t)s + f->at);
}

static void *part_at(const struct record_field *f, const struct record_parts *p, size_t i)
{
	return (char *)p->v + i * f->part->size;
}

static bool is_text(const struct record_field *f)
{
	return f->kind == RECORD_TEXT || f->kind == RECORD_PROSE || f->kind == RECORD_LINES;
}

/* Whether a field is kept as a number. */
static bool is_number(const struct record_field *f)
{
	return f->kind == RECORD_NUMBER || f->kind == RECORD_COUNT || f->kind == RECORD_SIZE ||
	       f->kind == RECORD_CHOICE || f->kind == RECORD_SET;
}

void record_init(const struct record_type *t, void *s)
{
	static const size_t sizes[] = {
		[RECORD_LIST] = sizeof(struct words),
		[RECORD_FLAG] = sizeof(bool),
		[RECORD_REAL] = sizeof(double),
		[RECORD_PARTS] = sizeof(struct record_parts),
	};

	assert(t->n <= 64); /* a bit for each, in `seen` */
	for (size_t i = 0; i < t->n; i++) {
		const struct record_field *f = &t->fields[i];

		assert(f->key.leads != TRUST_UNKNOWN);			/* R3 */
		assert((f->kind == RECORD_PARTS) == (f->part != NULL)); /* R2 */
		assert(f->kind != RECORD_OTHER || (f->set && f->put));	/* R2 */
		if (is_number(f))
			*(uint64_t *)member_of(f, s) = f->otherwise;
		else if (is_text(f))
			*(char **)member_of(f, s) = NULL;
		else if (f->kind != RECORD_OTHER)
			memset(member_of(f, s), 0, sizes[f->kind]);
	}
}

static void release_parts(const struct record_field *f, struct record_parts *p)
{
	for (size_t i = 0; i < p->n; i++)
		record_release(f->part, part_at(f, p, i));
	vec_release(p);
}

void record_release(const struct record_type *t, void *s)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct record_field *f = &t->fields[i];
		void *member = member_of(f, s);

		if (is_text(f))
			free(*(char **)member);
		else if (f->kind == RECORD_LIST)
			words_release(member);
		else if (f->kind == RECORD_PARTS)
			release_parts(f, member);
	}
	record_init(t, s);
}

static void set_text(char **to, const char *value, bool more)
{
	char *text = *to && more ? xasprintf("%s\n%s", *to, value) : xstrdup(value);

	free(*to);
	*to = text;
}

static int wrong(const struct record_field *f, const char *what, const char *value, struct err *err)
{
	return err_set(err, -EINVAL, "%s is %s, not '%.40s'", f->key.name, what, value);
}

static int set_real(const struct record_field *f, double *to, const char *value, struct err *err)
{
	char *end;

	*to = strtod(value, &end);
	return !*end && isfinite(*to) ? 0 : wrong(f, "a number", value, err);
}

/* The word at `place`, as long as `*len`; NULL after the last. */
static const char *word_at(const char *words, uint64_t place, size_t *len)
{
	for (; *words; words += *len + (words[*len] == ' ')) {
		*len = strcspn(words, " ");
		if (!place--)
			return words;
	}
	return NULL;
}

static int set_choice(const struct record_field *f, uint64_t *to, const char *value,
		      struct err *err)
{
	const char *word;
	size_t len;

	for (*to = 0; (word = word_at(f->words, *to, &len)); ++*to)
		if (strlen(value) == len && strncmp(word, value, len) == 0)
			return 0;
	*to = f->otherwise;
	return err_set(err, -EINVAL, "%s is one of %s, not '%.40s'", f->key.name, f->words, value);
}

static int set_set(const struct record_field *f, uint64_t *to, const char *value, struct err *err)
{
	auto_free char *copy = xstrdup(value);
	char *rest = streq(value, "none") ? NULL : copy;
	uint64_t all = 0, place;

	for (const char *one; (one = strsep(&rest, ","));) {
		if (set_choice(f, &place, one, err))
			return -EINVAL;
		all |= 1ULL << place;
	}
	*to = all;
	return 0;
}

static int set_number(const struct record_field *f, uint64_t *to, const char *value,
		      struct err *err)
{
	int rc = f->kind == RECORD_COUNT   ? number_parse_count(value, to, err)
		 : f->kind == RECORD_SIZE  ? number_parse_size(value, to, err)
		 : number_parse(value, to) ? wrong(f, "a number", value, err)
					   : 0;

	if (rc || (*to >= f->least && (!f->most || *to <= f->most)))
		return rc;
	return err_set(err, -EINVAL, "%s is from %llu to %llu, not %.40s", f->key.name,
		       llu(f->least), llu(f->most ? f->most : UINT64_MAX), value);
}

static void put_words(const struct record_field *f, uint64_t value, struct strbuf *out)
{
	bool any = false;
	const char *word;
	size_t len;

	for (uint64_t i = 0; (word = word_at(f->words, i, &len)); i++)
		if (f->kind == RECORD_CHOICE ? value == i : value >> i & 1) {
			strbuf_addf(out, "%s%.*s", any ? "," : "", (int)len, word);
			any = true;
		}
}

int record_set(const struct record_field *f, void *s, const char *value, struct err *err)
{
	void *to = member_of(f, s);

	if (f->kind != RECORD_PROSE && strchr(value, '\n'))
		return err_set(err, -EINVAL, "%s has a line end in it", f->key.name);
	if (f->set)
		return f->set(to, value, err);
	switch (f->kind) {
	case RECORD_TEXT:
	case RECORD_PROSE:
	case RECORD_LINES:
		set_text(to, value, f->kind == RECORD_LINES);
		return 0;
	case RECORD_LIST:
		vec_push((struct words *)to, xstrdup(value));
		return 0;
	case RECORD_NUMBER:
	case RECORD_COUNT:
	case RECORD_SIZE:
		return set_number(f, to, value, err);
	case RECORD_CHOICE:
		return set_choice(f, to, value, err);
	case RECORD_SET:
		return set_set(f, to, value, err);
	case RECORD_FLAG:
		*(bool *)to = true;
		return streq(value, "yes") ? 0 : wrong(f, "yes", value, err);
	case RECORD_REAL:
		return set_real(f, to, value, err);
	case RECORD_OTHER:
	case RECORD_PARTS:
		break;
	}
	assert(!"a field of this kind has a set()");
	return -EINVAL;
}

void record_put(const struct record_field *f, const void *s, struct strbuf *out)
{
	const void *from = member_of(f, s);
	const struct words *list = from;

	if (f->put) {
		f->put(from, out);
	} else if (is_text(f)) {
		if (*(char *const *)from)
			strbuf_adds(out, *(char *const *)from);
	} else if (f->kind == RECORD_LIST) {
		for (size_t i = 0; i < list->n; i++)
			strbuf_addf(out, "%s%s", i ? "\n" : "", list->v[i]);
	} else if (f->kind == RECORD_FLAG) {
		strbuf_adds(out, *(const bool *)from ? "yes" : "");
	} else if (f->kind == RECORD_REAL) {
		if (*(const double *)from != 0)
			strbuf_addf(out, "%.9g", *(const double *)from);
	} else if (is_number(f) && *(const uint64_t *)from != f->otherwise) {
		if (f->words)
			put_words(f, *(const uint64_t *)from, out);
		else
			strbuf_addu(out, *(const uint64_t *)from);
	}
}

/* ---- as text ---- */

/* The values of a field, one by one: `rest` begins with what record_put() gave. */
static char *next_value(const struct record_field *f, char **rest)
{
	return f->kind == RECORD_LINES || f->kind == RECORD_LIST ? strsep(rest, "\n")
								 : steal(*rest);
}

static int unescape(char *value, struct err *err);

/* R2, of one line. Its value is not empty, or it would be refused (R1). */
static void check_line(const char *line, size_t len, const char *key, const char *value)
{
	auto_free char *copy = xmemdupz(line + strlen(key) + 1, len - strlen(key) - 2);
	struct err none = ERR_INIT;

	assert(*value && memchr(line, '\n', len) == line + len - 1); /* R1 */
	int rc = unescape(copy, &none);
	assert(!rc && streq(copy, value)); /* R2 */
}

static void put_line(const char *key, const char *value, struct strbuf *out)
{
	size_t at = out->len;
	const char *c = value;

	strbuf_addf(out, "%s ", key);
	for (; *c; c++) {
		if (*c == '\n' || *c == '\t' || *c == '\\') {
			strbuf_addch(out, '\\');
			strbuf_addch(out, *c == '\n' ? 'n' : *c == '\t' ? 't' : '\\');
		} else {
			strbuf_addch(out, *c);
		}
	}
	strbuf_addch(out, '\n');
	check_line(out->buf + at, out->len - at, key, value);
}

static void print_fields(const struct record_type *t, const void *s, struct strbuf *out);

static void print_field(const struct record_field *f, const void *s, struct strbuf *out)
{
	const struct record_parts *parts = f->part ? member_of(f, s) : NULL;
	auto_strbuf value = STRBUF_INIT;
	char *rest;

	for (size_t i = 0; parts && i < parts->n; i++)
		print_fields(f->part, part_at(f, parts, i), out);
	record_put(f, s, &value);
	rest = value.buf;
	for (const char *one; (one = next_value(f, &rest));)
		if (*one)
			put_line(f->key.name, one, out);
}

static void print_fields(const struct record_type *t, const void *s, struct strbuf *out)
{
	for (size_t i = 0; i < t->n; i++)
		print_field(&t->fields[i], s, out);
}

/* The fields whose values mean the same wherever and whenever they are read. */
static void print_own(const struct record_type *t, const void *s, struct strbuf *out)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->fields[i].set && !t->fields[i].part)
			print_field(&t->fields[i], s, out);
}

/* R2, unless a field refuses its value: then the reader is told. */
static void check_read_back(const struct record_type *t, const void *s, const char *text,
			    size_t len)
{
	auto_free void *back = xcalloc(1, t->size);
	auto_strbuf was = STRBUF_INIT, is = STRBUF_INIT;
	struct err refused = ERR_INIT;

	if (record_parse(t, text, len, t->name, back, NULL, &refused))
		return;
	print_own(t, s, &was);
	print_own(t, back, &is);
	record_release(t, back);
	assert(was.len == is.len && streq(strbuf_str(&was), strbuf_str(&is))); /* R2 */
}

void record_print(const struct record_type *t, const void *s, struct strbuf *out)
{
	size_t at = out->len;

	strbuf_addf(out, "%s%s %d\n%s%s\n", prefix, t->name, RECORD_FORMAT, version_key,
		    OUTAGE_VERSION);
	print_fields(t, s, out);
	check_read_back(t, s, out->buf + at, out->len - at);
}

/* ---- from text ---- */

/* A text that is read, line by line. */
struct record_reader {
	const struct record_type *type;
	void *out;
	uint64_t seen;		       /* a bit for each field that had a line */
	const struct record_field *in; /* the field whose part was begun last; or NULL */
	uint64_t seen_in;	       /* the number of that part */
	struct err *err;
};

/* In place; the value becomes shorter. */
static int unescape(char *value, struct err *err)
{
	char *to = value;

	for (const char *c = value; *c; c++) {
		if (*c == '\\') {
			c++;
			if (*c != 'n' && *c != 't' && *c != '\\')
				return err_set(err, -EINVAL,
					       "a backslash is followed by n, t or a backslash");
			*to++ = *c == 'n' ? '\n' : *c == 't' ? '\t' : '\\';
		} else {
			*to++ = *c;
		}
	}
	*to = '\0';
	return 0;
}

static size_t find_field(const struct record_type *t, const char *key)
{
	size_t i = 0;

	while (i < t->n && !streq(t->fields[i].key.name, key))
		i++;
	return i;
}

static int take(const struct record_type *t, size_t i, void *s, uint64_t *seen, const char *value,
		struct err *err)
{
	const struct record_field *f = &t->fields[i];

	assert(i < t->n);
	if (*seen >> i & 1 && f->kind != RECORD_LINES && f->kind != RECORD_LIST)
		return err_set(err, -EINVAL, "%s is there twice", f->key.name);
	*seen |= 1ULL << i;
	return record_set(f, s, value, err);
}

static int take_part(struct record_reader *r, const struct record_field *f, size_t i,
		     const char *value)
{
	struct record_parts *parts = member_of(f, r->out);

	if (i == 0) {
		vec_reserve_(&parts->v, parts->n, &parts->cap, 1, f->part->size);
		memset(part_at(f, parts, parts->n), 0, f->part->size);
		record_init(f->part, part_at(f, parts, parts->n++));
		r->in = f;
		r->seen_in = 0;
	}
	if (r->in != f)
		return err_set(r->err, -EINVAL, "%s comes before any %s",
			       f->part->fields[i].key.name, f->key.name);
	return take(f->part, i, part_at(f, parts, parts->n - 1), &r->seen_in, value, r->err);
}

static int take_line(struct record_reader *r, char *line)
{
	const struct record_type *t = r->type;
	char *value = strchr(line, ' ');

	if (value)
		*value++ = '\0';
	size_t i = find_field(t, line);
	const struct record_field *part = NULL;
	size_t in_part = 0;
	for (size_t k = 0; k < t->n && !part; k++)
		if (t->fields[k].kind == RECORD_PARTS &&
		    (in_part = find_field(t->fields[k].part, line)) < t->fields[k].part->n)
			part = &t->fields[k];
	if (i == t->n && !part)
		return err_set(r->err, -EINVAL, "'%.40s' is no key", line);
	if (!value || !*value)
		return err_set(r->err, -EINVAL, "%s has no value", line);
	if (unescape(value, r->err))
		return -EINVAL;
	if (part) {
		r->seen |= 1ULL << (part - t->fields);
		return take_part(r, part, in_part, value);
	}
	return take(t, i, r->out, &r->seen, value, r->err);
}

/* The type that a first line names, to be freed; NULL: it is of another version, which is told. */
static char *read_head(const char *line, const char *source, struct err *err)
{
	const char *blank = strrchr(line, ' ');
	uint64_t format = 0;

	if (strncmp(line, prefix, strlen(prefix)) != 0 || !blank ||
	    number_parse(blank + 1, &format) || format != RECORD_FORMAT) {
		err_set(err, -EINVAL,
			"%s was made by %s version of outage, and cannot be read by this one",
			source, format > RECORD_FORMAT ? "a later" : "an earlier");
		return NULL;
	}
	line += strlen(prefix);
	return xmemdupz(line, (size_t)max(blank - line, (ptrdiff_t)0));
}

/* Reports tell it, so it is nothing but letters, digits and marks. */
static bool is_version(const char *text)
{
	size_t n = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				".+~_-");

	return n && n <= VERSION_MAX && !text[n];
}

/* The first two lines; `rest` goes on behind them. `out` is set if they are as they should be. */
static int take_head(char **rest, const char *source, struct record_head *out, struct err *err)
{
	auto_free char *type = read_head(strsep(rest, "\n"), source, err);
	const char *line = strsep(rest, "\n");

	if (!type)
		return -EINVAL;
	if (!line || strncmp(line, version_key, strlen(version_key)) != 0 ||
	    !is_version(line + strlen(version_key)))
		return err_set(err, -EINVAL, "%s:2: it does not say the version that made it",
			       source);
	*out = (struct record_head){ steal(type), xstrdup(line + strlen(version_key)) };
	return 0;
}

static int check_head(const struct record_type *t, char **rest, const char *source, struct err *err)
{
	auto_record_head head = { 0 };
	int rc = take_head(rest, source, &head, err);

	if (rc || streq(head.type, t->name))
		return rc;
	return err_set(err, -EINVAL, "%s:1: it is of another kind, %.40s, not %s", source,
		       head.type, t->name);
}

static int check_whole(const struct record_reader *r)
{
	for (size_t i = 0; i < r->type->n; i++)
		if (r->type->fields[i].required && !(r->seen >> i & 1))
			return err_set(r->err, -EINVAL, "%s is missing",
				       r->type->fields[i].key.name);
	return 0;
}

static int parse(struct record_reader *r, char *text, size_t len, const char *source)
{
	bool ended = len && text[len - 1] == '\n';
	char *rest = text;

	if (strlen(text) != len)
		return err_set(r->err, -EINVAL, "%s: there is a NUL in it", source);
	int rc = check_head(r->type, &rest, source, r->err);
	if (!rc && !ended)
		return err_set(r->err, -EINVAL, "%s: its last line has no end", source);
	for (unsigned n = 3; !rc && rest && *rest; n++) {
		rc = take_line(r, strsep(&rest, "\n"));
		if (rc)
			err_context(r->err, "%s:%u", source, n);
	}
	if (!rc && check_whole(r))
		rc = err_context(r->err, "%s", source);
	return rc;
}

int record_parse(const struct record_type *t, const char *text, size_t len, const char *source,
		 void *out, uint64_t *given, struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	struct record_reader r = { .type = t, .out = out, .err = err };

	record_init(t, out);
	int rc = parse(&r, copy, len, source);
	if (rc)
		record_release(t, out);
	else if (given)
		*given = r.seen;
	return rc;
}

int record_load(const struct record_type *t, const char *dir, const char *name, void *out,
		struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *shown = below_shown(dir, name);
	int rc = io_slurp_file(dir, name, RECORD_MAX, &text, err);

	return rc ? rc : record_parse(t, strbuf_str(&text), text.len, shown, out, NULL, err);
}

int record_head_of(const char *dir, const char *name, struct record_head *out, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	char head[256] = "", *rest = head;
	auto_fd fd = below_open(dir, name, O_RDONLY, err);

	if (fd < 0)
		return fd;
	ssize_t n = io_read_full(fd, head, sizeof(head) - 1);
	if (n < 0)
		return err_set(err, (int)n, "cannot read %s: %s", shown, strerror((int)-n));
	return take_head(&rest, shown, out, err);
}

void record_head_release(struct record_head *h)
{
	free(h->type);
	free(h->version);
	*h = (struct record_head){ 0 };
}

int record_save(const struct record_type *t, const char *dir, const char *name, const void *s,
		struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	record_print(t, s, &text);
	return io_write_file(dir, name, text.buf, text.len, 0, err);
}

/* ---- whose it is ---- */

bool record_key(const struct record_type *t, size_t i, struct trust_key *out)
{
	for (size_t k = 0; k < t->n; k++) {
		const struct record_type *part = t->fields[k].part;

		if (i < (part ? part->n : 1)) {
			*out = part ? part->fields[i].key : t->fields[k].key;
			return true;
		}
		i -= part ? part->n : 1;
	}
	return false;
}

static void field_would(const struct record_field *f, const void *s, struct strbuf *would)
{
	auto_strbuf value = STRBUF_INIT;
	char *rest;

	record_put(f, s, &value);
	rest = value.buf;
	for (const char *one; (one = next_value(f, &rest));)
		if (*one && (!f->harmless || !f->harmless(one)))
			trust_would(f->key, one, would);
}

void record_would(const struct record_type *t, const void *s, struct strbuf *would)
{
	for (int first = 1; first >= 0; first--)
		for (size_t i = 0; i < t->n; i++) {
			const struct record_field *f = &t->fields[i];
			enum trust_leads leads = f->key.leads;

			if (leads != TRUST_TARGET && leads != TRUST_IMAGE &&
			    f->kind != RECORD_PARTS && (leads == TRUST_COMMAND) == first)
				field_would(f, s, would);
		}
}
