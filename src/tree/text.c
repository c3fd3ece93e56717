/* SPDX-License-Identifier: MIT */
/*
 * text.c - prints a tree as text, and parses that text.
 *
 *	tree 2 blocks dir-nlink
 *	dir . mode=0755 uid=0 gid=0 nlink=3
 *	dir A mode=0755 uid=0 gid=0 nlink=2
 *	file A/foo mode=0644 uid=0 gid=0 nlink=2 link=1 size=5 blocks=8 hash=... data="hello"
 *	 xattr user.x1 "value"
 *	file bar mode=0644 uid=0 gid=0 nlink=2 link=1 size=5 blocks=8 hash=... data="hello"
 *	 xattr user.x1 "value"
 *	file odd\x20name error=read:EIO doubled mode=0600 uid=0 gid=0 nlink=1 size=1 blocks=8
 *	symlink s mode=0777 uid=0 gid=0 nlink=1 size=3 blocks=0 target="foo"
 *	unknown t error=stat:EUCLEAN
 *
 * The first line names the version and the optional fields that the text has: blocks, times,
 * dir-size, dir-nlink. Then each entry has a line, in order of path, and each of its attributes a
 * line that starts with a space. The fields of a line follow from the known fields of the entry
 * (the tree_has_*() functions), and their order is fixed:
 *
 *	type path [error=step:errno] [doubled] mode= uid= gid= [nlink=] [link=] [size=] [blocks=]
 *	[atime= mtime=] [rdev=major:minor] [hash= [data=]] [target=]
 *
 * A path is one word, names and bytes are written as quote.c says. data= repeats the content that
 * the hash stands for, if that is short or was asked for; the reader compares the two. Lines may
 * come in any order: the reader sorts. If a text was printed by this file, reading and printing it
 * gives the same text.
 */
#include "tree/tree_impl.h"

#include <errno.h>
#include <limits.h>

enum { VERSION = 2, SHORT_DATA = 80, XATTR_LEN_MAX = 64 * 1024, ERRNO_MAX = 4095 };

static const struct {
	unsigned field;
	const char *word;
} field_words[] = {
	{ TREE_FIELD_BLOCKS, "blocks" },
	{ TREE_FIELD_TIMES, "times" },
	{ TREE_FIELD_DIR_SIZE, "dir-size" },
	{ TREE_FIELD_DIR_NLINK, "dir-nlink" },
};

static void print_error(const struct tree_entry *e, struct strbuf *out)
{
	const char *name = strerrorname_np(e->error);

	strbuf_addf(out, " error=%s:", tree_step_word(e->step));
	if (name)
		strbuf_adds(out, name);
	else
		strbuf_addu(out, (uint64_t)e->error);
}

static void print_number(const char *key, uint64_t value, struct strbuf *out)
{
	strbuf_adds(out, key);
	strbuf_addu(out, value);
}

static void print_attrs(const struct tree_entry *e, unsigned fields, struct strbuf *out)
{
	strbuf_addf(out, " mode=%04o", e->mode);
	print_number(" uid=", e->uid, out);
	print_number(" gid=", e->gid, out);
	if (tree_has_nlink(e, fields))
		print_number(" nlink=", e->nlink, out);
	if (e->link)
		print_number(" link=", e->link, out);
	if (tree_has_size(e, fields))
		print_number(" size=", e->size, out);
	if (tree_has_blocks(e, fields))
		print_number(" blocks=", e->blocks, out);
	if (fields & TREE_FIELD_TIMES)
		strbuf_addf(out, " atime=%lld.%09u mtime=%lld.%09u", (long long)e->atime.sec,
			    e->atime.nsec, (long long)e->mtime.sec, e->mtime.nsec);
	if (tree_has_rdev(e)) {
		print_number(" rdev=", e->rdev_major, out);
		print_number(":", e->rdev_minor, out);
	}
}

static void print_data(const struct tree_entry *e, unsigned flags, struct strbuf *out)
{
	char hex[HASH_HEX_SIZE];
	size_t start;

	strbuf_addf(out, " hash=%s", hash_hex(e->hash, hex));
	if (!e->content)
		return;
	start = out->len;
	strbuf_adds(out, " data=");
	if (!quote_bytes(out, e->content, (size_t)e->size,
			 flags & TREE_TEXT_CONTENT ? SIZE_MAX : SHORT_DATA))
		strbuf_cut(out, start);
}

static void print_entry(const struct tree_entry *e, unsigned fields, unsigned flags,
			struct strbuf *out)
{
	strbuf_adds(out, tree_type_word(e->type));
	strbuf_addch(out, ' ');
	quote_name(out, *e->path ? e->path : ".");
	if (e->error)
		print_error(e, out);
	if (e->doubled)
		strbuf_adds(out, " doubled");
	if (tree_has_attrs(e))
		print_attrs(e, fields, out);
	if (tree_has_content(e) && e->size)
		print_data(e, flags, out);
	if (tree_has_target(e)) {
		strbuf_adds(out, " target=");
		quote_bytes(out, e->target, strlen(e->target), SIZE_MAX);
	}
	strbuf_addch(out, '\n');
	for (size_t i = 0; tree_has_xattrs(e) && i < e->n_xattrs; i++) {
		strbuf_adds(out, " xattr ");
		quote_name(out, e->xattrs[i].name);
		strbuf_addch(out, ' ');
		quote_bytes(out, e->xattrs[i].value, e->xattrs[i].len, SIZE_MAX);
		strbuf_addch(out, '\n');
	}
}

void tree_print(const struct tree *t, const struct tree_opts *opts, unsigned flags,
		struct strbuf *out)
{
	unsigned fields = tree_opts_fields(opts) & ~t->lacks;

	assert(t->finished);
	strbuf_addf(out, "tree %d", VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(field_words); i++)
		if (fields & field_words[i].field) {
			strbuf_addch(out, ' ');
			strbuf_adds(out, field_words[i].word);
		}
	strbuf_addch(out, '\n');
	for (size_t i = 0; i < t->entries.n; i++)
		print_entry(&t->entries.v[i], fields, flags, out);
}

struct text_parser {
	const char *p, *end; /* the rest of the current line */
	size_t line;
	unsigned fields;
	struct tree *t;
	struct err *err;
	struct strbuf buf;
	struct vec_of(struct tree_xattr) xattrs;
};

static int bad(struct text_parser *ps, const char *what)
{
	return err_set(ps->err, -EINVAL, "line %zu: %s", ps->line, what);
}

static bool take(struct text_parser *ps, const char *literal)
{
	size_t len = strlen(literal);

	if ((size_t)(ps->end - ps->p) < len || memcmp(ps->p, literal, len) != 0)
		return false;
	ps->p += len;
	return true;
}

/* Takes a word that ends with the line or the field. */
static bool take_word(struct text_parser *ps, const char *word)
{
	const char *start = ps->p;

	if (take(ps, word) && (ps->p == ps->end || *ps->p == ' ' || *ps->p == ':'))
		return true;
	ps->p = start;
	return false;
}

static int take_number(struct text_parser *ps, const char *key, unsigned base, uint64_t most,
		       uint64_t *out)
{
	uint64_t v = 0;
	const char *start;

	if (!take(ps, key))
		return err_set(ps->err, -EINVAL, "line %zu: '%s' is missing", ps->line,
			       key + (*key == ' '));
	for (start = ps->p; ps->p < ps->end; ps->p++) {
		unsigned digit = (unsigned char)*ps->p - (unsigned)'0';

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return bad(ps, "a number is too large");
	}
	if (ps->p == start)
		return bad(ps, "a number is missing");
	if (v > most)
		return bad(ps, "a number is too large");
	*out = v;
	return 0;
}

static int take_u32(struct text_parser *ps, const char *key, uint32_t *out)
{
	uint64_t v;
	int rc = take_number(ps, key, 10, UINT32_MAX, &v);

	if (!rc)
		*out = (uint32_t)v;
	return rc;
}

static int take_time(struct text_parser *ps, const char *key, struct tree_time *out)
{
	uint64_t sec, nsec;
	bool negative;
	int rc;

	if (!take(ps, key))
		return bad(ps, "a time is missing");
	negative = take(ps, "-");
	rc = take_number(ps, "", 10, negative ? (uint64_t)1 << 63 : INT64_MAX, &sec);
	if (rc)
		return rc;
	const char *dot = ps->p;
	rc = take_number(ps, ".", 10, 999999999, &nsec);
	if (rc)
		return rc;
	if (ps->p - dot != 10 || (negative && !sec))
		return bad(ps, "a time is not seconds, a dot, and nine digits");
	*out = (struct tree_time){ (int64_t)(negative ? 0 - sec : sec), (uint32_t)nsec };
	return 0;
}

static int take_error(struct text_parser *ps, struct tree_entry *e)
{
	uint64_t number;
	int rc;

	for (int step = TREE_STEP_NONE + 1; step < TREE_STEP_END; step++)
		if (take_word(ps, tree_step_word((enum tree_step)step))) {
			e->step = (enum tree_step)step;
			break;
		}
	if (e->step == TREE_STEP_NONE)
		return bad(ps, "error= does not name a known step");
	if (!take(ps, ":"))
		return bad(ps, "error= does not name an errno");
	for (int i = 1; i <= ERRNO_MAX; i++) {
		const char *name = strerrorname_np(i);

		if (name && take_word(ps, name)) {
			e->error = i;
			return 0;
		}
	}
	rc = take_number(ps, "", 10, ERRNO_MAX, &number);
	if (rc)
		return rc;
	if (!number)
		return bad(ps, "error= names errno 0");
	e->error = (int)number;
	return 0;
}

static int take_attrs(struct text_parser *ps, struct tree_entry *e)
{
	uint64_t mode = 0, link = 0;
	int rc = take_number(ps, " mode=", 8, 07777, &mode);

	if (rc || (rc = take_u32(ps, " uid=", &e->uid)) || (rc = take_u32(ps, " gid=", &e->gid)))
		return rc;
	e->mode = (uint32_t)mode;
	if (tree_has_nlink(e, ps->fields) &&
	    (rc = take_number(ps, " nlink=", 10, UINT64_MAX, &e->nlink)))
		return rc;
	if (take(ps, " link=")) {
		if ((rc = take_number(ps, "", 10, UINT32_MAX, &link)))
			return rc;
		e->inode = link; /* names with the same number are the same file */
	}
	if (tree_has_size(e, ps->fields) &&
	    (rc = take_number(ps, " size=", 10, UINT64_MAX, &e->size)))
		return rc;
	if (tree_has_blocks(e, ps->fields) &&
	    (rc = take_number(ps, " blocks=", 10, UINT64_MAX, &e->blocks)))
		return rc;
	if ((ps->fields & TREE_FIELD_TIMES) && ((rc = take_time(ps, " atime=", &e->atime)) ||
						(rc = take_time(ps, " mtime=", &e->mtime))))
		return rc;
	if (tree_has_rdev(e) && ((rc = take_u32(ps, " rdev=", &e->rdev_major)) ||
				 (rc = take_u32(ps, ":", &e->rdev_minor))))
		return rc;
	return 0;
}

static int hex_half(struct text_parser *ps, uint64_t *out)
{
	uint64_t v = 0;

	for (int i = 0; i < 16; i++, ps->p++) {
		if (ps->p == ps->end)
			return bad(ps, "hash= is not 32 hex digits");
		if (*ps->p >= '0' && *ps->p <= '9')
			v = v << 4 | (uint64_t)(*ps->p - '0');
		else if (*ps->p >= 'a' && *ps->p <= 'f')
			v = v << 4 | (uint64_t)(*ps->p - 'a' + 10);
		else
			return bad(ps, "hash= is not 32 hex digits");
	}
	*out = v;
	return 0;
}

static int take_data(struct text_parser *ps, struct tree_entry *e)
{
	int rc;

	if (!take(ps, " hash="))
		return bad(ps, "hash= is missing");
	if ((rc = hex_half(ps, &e->hash.hi)) || (rc = hex_half(ps, &e->hash.lo)))
		return rc;
	if (!take(ps, " data="))
		return 0;
	struct tree_opts all = { .content_limit = TREE_CONTENT_TOTAL };
	if (!tree_keep(ps->t, &all, e->size))
		return bad(ps, "there is more content than a tree can keep");
	strbuf_clear(&ps->buf);
	rc = tree_unquote_bytes(&ps->p, ps->end, (size_t)e->size, &ps->buf);
	if (rc == -EINVAL)
		return bad(ps, "data= is not properly quoted");
	if (rc || ps->buf.len != e->size)
		return bad(ps, "data= is not as long as size= says");
	if (!hash_eq(tree_content_hash(ps->buf.buf, ps->buf.len), e->hash))
		return bad(ps, "data= does not have the hash that hash= says");
	e->content = arena_memdupz(&ps->t->arena, ps->buf.buf, ps->buf.len);
	return 0;
}

static int take_target(struct text_parser *ps, struct tree_entry *e)
{
	strbuf_clear(&ps->buf);
	if (!take(ps, " target=") || tree_unquote_bytes(&ps->p, ps->end, XATTR_LEN_MAX, &ps->buf))
		return bad(ps, "target= is missing or not properly quoted");
	if (memchr(strbuf_str(&ps->buf), '\0', ps->buf.len))
		return bad(ps, "target= has a zero byte in it");
	e->target = arena_memdupz(&ps->t->arena, ps->buf.buf, ps->buf.len);
	return 0;
}

static int take_path(struct text_parser *ps, struct tree_entry *e)
{
	strbuf_clear(&ps->buf);
	if (tree_unquote_name(&ps->p, ps->end, &ps->buf))
		return bad(ps, "the path is missing or not properly quoted");
	char *path = arena_memdupz(&ps->t->arena, ps->buf.buf, ps->buf.len);
	e->path = path;
	if (streq(path, ".")) {
		path[0] = '\0';
		return 0;
	}
	for (const char *part = path;; part++) {
		size_t len = strcspn(part, "/");

		if (!len || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return bad(ps, "the path has an empty part, '.' or '..' in it");
		part += len;
		if (!*part)
			return 0;
	}
}

static int parse_entry(struct text_parser *ps)
{
	struct tree_entry e = { 0 };
	int type, rc;

	for (type = 0; type < TREE_TYPE_END; type++)
		if (take_word(ps, tree_type_word((enum tree_type)type)))
			break;
	if (type == TREE_TYPE_END || !take(ps, " "))
		return bad(ps, "does not start with a type such as file or dir");
	e.type = (enum tree_type)type;
	if ((rc = take_path(ps, &e)))
		return rc;
	if (take(ps, " error=") && (rc = take_error(ps, &e)))
		return rc;
	e.doubled = take_word(ps, " doubled");
	if ((e.type == TREE_UNKNOWN) != (e.step == TREE_STEP_STAT))
		return bad(ps, "unknown and error=stat go together");
	if (tree_has_attrs(&e) && (rc = take_attrs(ps, &e)))
		return rc;
	if (tree_has_content(&e) && e.size && (rc = take_data(ps, &e)))
		return rc;
	if (tree_has_target(&e) && (rc = take_target(ps, &e)))
		return rc;
	if (ps->p != ps->end)
		return bad(ps, "has something at its end that does not belong there");
	if (ps->t->entries.n >= TREE_ENTRIES_MAX)
		return bad(ps, "there are more entries than a tree can have");
	tree_push(ps->t, &e);
	return 0;
}

/* Gives the collected attributes to the last entry. */
static int finish_xattrs(struct text_parser *ps)
{
	size_t n = ps->xattrs.n;

	if (!n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (strcmp(ps->xattrs.v[i - 1].name, ps->xattrs.v[i].name) >= 0)
			return err_set(ps->err, -EINVAL,
				       "attributes before line %zu are not in order of name",
				       ps->line);
	struct tree_entry *e = &vec_last(&ps->t->entries);
	struct tree_xattr *own = arena_alloc(&ps->t->arena, n * sizeof(*own));
	memcpy(own, ps->xattrs.v, n * sizeof(*own));
	e->xattrs = own;
	e->n_xattrs = n;
	vec_clear(&ps->xattrs);
	return 0;
}

static int parse_xattr(struct text_parser *ps)
{
	struct tree_xattr x;

	if (!ps->t->entries.n || !tree_has_xattrs(&vec_last(&ps->t->entries)))
		return bad(ps, "an attribute, but of no entry that can have one");
	strbuf_clear(&ps->buf);
	if (tree_unquote_name(&ps->p, ps->end, &ps->buf) || !take(ps, " "))
		return bad(ps, "the attribute's name is missing or not properly quoted");
	x.name = arena_memdupz(&ps->t->arena, ps->buf.buf, ps->buf.len);
	strbuf_clear(&ps->buf);
	if (tree_unquote_bytes(&ps->p, ps->end, XATTR_LEN_MAX, &ps->buf) || ps->p != ps->end)
		return bad(ps, "the attribute's value is not properly quoted");
	x.len = ps->buf.len;
	x.value = arena_memdupz(&ps->t->arena, ps->buf.buf, ps->buf.len);
	vec_push(&ps->xattrs, x);
	return 0;
}

static int parse_header(struct text_parser *ps)
{
	uint64_t version = 0;
	int rc;

	if (!take(ps, "tree"))
		return bad(ps, "does not start with 'tree 2'");
	rc = take_number(ps, " ", 10, UINT32_MAX, &version);
	if (rc)
		return rc;
	if (version != VERSION)
		return err_set(ps->err, -EINVAL, "line 1: version %llu of a tree is not known here",
			       (unsigned long long)version);
	for (size_t i = 0; i < ARRAY_SIZE(field_words); i++) {
		const char *start = ps->p;

		if (take(ps, " ") && take_word(ps, field_words[i].word))
			ps->fields |= field_words[i].field;
		else
			ps->p = start;
	}
	if (ps->p != ps->end)
		return bad(ps, "names a field that is not known, or not in order");
	ps->t->lacks = TREE_FIELD_ALL & ~ps->fields;
	return 0;
}

static int parse_line(struct text_parser *ps)
{
	int rc;

	if (ps->line == 1)
		return parse_header(ps);
	if (take(ps, " xattr "))
		return parse_xattr(ps);
	rc = finish_xattrs(ps);
	return rc ? rc : parse_entry(ps);
}

int tree_parse(const char *text, size_t len, struct tree *out, struct err *err)
{
	struct text_parser ps = { .p = text, .t = out, .err = err };
	const char *text_end = text + len;
	int rc = 0;

	tree_clear(out);
	if (!len) {
		ps.line = 1;
		rc = bad(&ps, "a tree is missing");
	}
	while (!rc && ps.p < text_end) {
		ps.line++;
		ps.end = memchr(ps.p, '\n', (size_t)(text_end - ps.p));
		if (!ps.end) {
			rc = bad(&ps, "is cut off");
			break;
		}
		rc = parse_line(&ps);
		ps.p = ps.end + 1;
	}
	if (!rc)
		rc = finish_xattrs(&ps);
	strbuf_release(&ps.buf);
	vec_release(&ps.xattrs);
	if (rc) {
		tree_clear(out);
		return rc;
	}
	tree_finish(out);
	return 0;
}
