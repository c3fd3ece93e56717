/* SPDX-License-Identifier: MIT */
/*
 * diff.c - the difference of two trees, in words.
 *
 * Both trees are walked side by side in order of path. Hard links are compared over the names that
 * both trees have: each name's leader is the first such name of its file, and the leaders must
 * agree. So a missing name is one difference, not one for each of its links, and a file that has
 * lost all names but one has no difference itself.
 *
 * The tree_has_*() functions (T4 in tree.c) decide which fields are compared, so that a difference
 * is found iff the hashes differ.
 */
#include "tree/tree_impl.h"

enum { BRIEF = 40, CHUNK = 4096 };

struct differ {
	const struct tree *expected, *seen;
	unsigned fields;
	/* For each link number: 1 + the place in `expected` of its first name in both trees. */
	size_t *leader_expected, *leader_seen;
	const struct tree_entry *blind; /* the last directory of `seen` that could not be read */
	struct tree_diff *out;
	struct strbuf words;
};

/* The two entries of one path. */
struct pair {
	const struct tree_entry *e, *s;
};

void tree_diff_release(struct tree_diff *d)
{
	vec_release(&d->list);
	arena_release(&d->arena);
}

const char *tree_diff_kind_name(enum tree_diff_kind kind)
{
	static const char *const names[] = {
		[TREE_DIFF_MISSING] = "missing",
		[TREE_DIFF_EXTRA] = "extra",
		[TREE_DIFF_TYPE] = "type",
		[TREE_DIFF_MODE] = "mode",
		[TREE_DIFF_OWNER] = "owner",
		[TREE_DIFF_NLINK] = "nlink",
		[TREE_DIFF_LINKS] = "links",
		[TREE_DIFF_SIZE] = "size",
		[TREE_DIFF_CONTENT] = "content",
		[TREE_DIFF_TARGET] = "target",
		[TREE_DIFF_RDEV] = "rdev",
		[TREE_DIFF_XATTR_MISSING] = "xattr-missing",
		[TREE_DIFF_XATTR_EXTRA] = "xattr-extra",
		[TREE_DIFF_XATTR_VALUE] = "xattr-value",
		[TREE_DIFF_BLOCKS] = "blocks",
		[TREE_DIFF_TIMES] = "times",
		[TREE_DIFF_UNREADABLE] = "unreadable",
		[TREE_DIFF_DOUBLED] = "doubled",
	};
	_Static_assert(ARRAY_SIZE(names) == TREE_DIFF_KIND_END, "a name for each kind");

	assert(kind < TREE_DIFF_KIND_END);
	return names[kind];
}

static void add_path(struct strbuf *sb, const char *path)
{
	quote_name(sb, *path ? path : ".");
}

/* Starts the sentence of a difference; the caller adds the rest and calls finish(). */
static struct strbuf *begin(struct differ *d, struct pair p)
{
	strbuf_clear(&d->words);
	add_path(&d->words, p.e ? p.e->path : p.s->path);
	strbuf_adds(&d->words, ": ");
	return &d->words;
}

static struct tree_difference *finish(struct differ *d, struct pair p, enum tree_diff_kind kind)
{
	vec_push(&d->out->list,
		 (struct tree_difference){
			 .kind = kind,
			 .path = p.e ? p.e->path : p.s->path,
			 .expected = p.e,
			 .seen = p.s,
			 .words = arena_memdupz(&d->out->arena, d->words.buf, d->words.len),
		 });
	return &vec_last(&d->out->list);
}

static const char *type_words(enum tree_type type)
{
	static const char *const words[] = {
		[TREE_UNKNOWN] = "something unknown",
		[TREE_FILE] = "a file",
		[TREE_DIR] = "a directory",
		[TREE_SYMLINK] = "a symbolic link",
		[TREE_FIFO] = "a FIFO",
		[TREE_CHAR] = "a character device",
		[TREE_BLOCK] = "a block device",
		[TREE_SOCKET] = "a socket",
	};
	_Static_assert(ARRAY_SIZE(words) == TREE_TYPE_END, "words for each type");

	return words[type];
}

static void describe(struct strbuf *sb, const struct tree_entry *e)
{
	strbuf_adds(sb, type_words(e->type));
	if (e->type == TREE_FILE && tree_has_attrs(e))
		strbuf_addf(sb, " of %llu bytes", (unsigned long long)e->size);
	if (tree_has_rdev(e))
		strbuf_addf(sb, " %u:%u", e->rdev_major, e->rdev_minor);
	if (tree_has_target(e)) {
		strbuf_adds(sb, " to ");
		quote_brief(sb, e->target, strlen(e->target), BRIEF);
	}
}

static void describe_error(struct strbuf *sb, const struct tree_entry *e)
{
	if (!e->error)
		strbuf_adds(sb, "readable");
	else if (e->step == TREE_STEP_MOUNT)
		strbuf_adds(sb, "a mount of another file system");
	else if (e->step == TREE_STEP_LOOP)
		strbuf_adds(sb, "a directory that contains itself");
	else
		strbuf_addf(sb, "unreadable (%s: %s)", tree_step_word(e->step), strerror(e->error));
}

static void diff_number(struct differ *d, struct pair p, enum tree_diff_kind kind, const char *what,
			uint64_t seen, uint64_t expected)
{
	if (seen == expected)
		return;
	strbuf_addf(begin(d, p), "%s is %llu, was %llu", what, (unsigned long long)seen,
		    (unsigned long long)expected);
	finish(d, p, kind);
}

static void diff_attrs(struct differ *d, struct pair p)
{
	const struct tree_entry *e = p.e, *s = p.s;

	if (e->mode != s->mode) {
		strbuf_addf(begin(d, p), "mode is %04o, was %04o", s->mode, e->mode);
		finish(d, p, TREE_DIFF_MODE);
	}
	if (e->uid != s->uid || e->gid != s->gid) {
		strbuf_addf(begin(d, p), "owner is %u:%u, was %u:%u", s->uid, s->gid, e->uid,
			    e->gid);
		finish(d, p, TREE_DIFF_OWNER);
	}
	if (tree_has_nlink(e, d->fields))
		diff_number(d, p, TREE_DIFF_NLINK, "link count", s->nlink, e->nlink);
}

static void add_leader(struct differ *d, struct strbuf *sb, size_t leader, size_t self)
{
	if (leader == self) {
		strbuf_adds(sb, "a file of its own");
		return;
	}
	strbuf_adds(sb, "the same file as ");
	add_path(sb, d->expected->entries.v[leader - 1].path);
}

/* Compares the leaders of a pair. Called for every pair, in order, so that leaders become known. */
static void diff_links(struct differ *d, struct pair p, bool compare)
{
	size_t self = (size_t)(p.e - d->expected->entries.v) + 1;
	size_t *e = p.e->link ? &d->leader_expected[p.e->link] : &self;
	size_t *s = p.s->link ? &d->leader_seen[p.s->link] : &self;

	if (!*e)
		*e = self;
	if (!*s)
		*s = self;
	if (!compare || *e == *s)
		return;
	struct strbuf *sb = begin(d, p);
	strbuf_adds(sb, "is ");
	add_leader(d, sb, *s, self);
	strbuf_adds(sb, ", was ");
	add_leader(d, sb, *e, self);
	finish(d, p, TREE_DIFF_LINKS);
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t len)
{
	size_t at = 0;

	while (len - at >= CHUNK && memcmp(a + at, b + at, CHUNK) == 0)
		at += CHUNK;
	while (at < len && a[at] == b[at])
		at++;
	return at;
}

static void add_content(struct strbuf *sb, const unsigned char *data, size_t len)
{
	if (all_zero(data, len))
		strbuf_adds(sb, "zeros");
	else
		quote_brief(sb, data, len, BRIEF);
}

static void diff_kept_content(struct differ *d, struct pair p)
{
	const unsigned char *e = p.e->content, *s = p.s->content;
	size_t common = (size_t)min(p.e->size, p.s->size);
	size_t at = first_difference(e, s, common), end = at;

	if (at == common)
		return; /* the difference in size is enough */
	while (end < common && e[end] != s[end])
		end++;
	struct strbuf *sb = begin(d, p);
	strbuf_addf(sb, "content differs from byte %zu (", at);
	add_content(sb, s + at, end - at);
	strbuf_adds(sb, " instead of ");
	add_content(sb, e + at, end - at);
	strbuf_addch(sb, ')');
	finish(d, p, TREE_DIFF_CONTENT)->offset = at;
}

static void diff_content(struct differ *d, struct pair p)
{
	char seen[HASH_HEX_SIZE], expected[HASH_HEX_SIZE];

	if (hash_eq(p.e->hash, p.s->hash))
		return;
	if (p.e->content && p.s->content) {
		diff_kept_content(d, p);
	} else if (p.e->size == p.s->size) {
		strbuf_addf(begin(d, p), "content differs (hash is %s, was %s)",
			    hash_hex(p.s->hash, seen), hash_hex(p.e->hash, expected));
		finish(d, p, TREE_DIFF_CONTENT);
	}
}

static void diff_values(struct differ *d, struct pair p)
{
	const struct tree_entry *e = p.e, *s = p.s;

	if (tree_has_size(e, d->fields))
		diff_number(d, p, TREE_DIFF_SIZE, "size", s->size, e->size);
	if (tree_has_content(e) && tree_has_content(s))
		diff_content(d, p);
	if (tree_has_target(e) && tree_has_target(s) && !streq(e->target, s->target)) {
		struct strbuf *sb = begin(d, p);

		strbuf_adds(sb, "target is ");
		quote_brief(sb, s->target, strlen(s->target), BRIEF);
		strbuf_adds(sb, ", was ");
		quote_brief(sb, e->target, strlen(e->target), BRIEF);
		finish(d, p, TREE_DIFF_TARGET);
	}
	if (tree_has_rdev(e) &&
	    (e->rdev_major != s->rdev_major || e->rdev_minor != s->rdev_minor)) {
		strbuf_addf(begin(d, p), "device is %u:%u, was %u:%u", s->rdev_major, s->rdev_minor,
			    e->rdev_major, e->rdev_minor);
		finish(d, p, TREE_DIFF_RDEV);
	}
}

/* Compares one attribute: `e` or `s` is NULL if that entry does not have it. */
static void diff_xattr(struct differ *d, struct pair p, const struct tree_xattr *e,
		       const struct tree_xattr *s)
{
	enum tree_diff_kind kind = !s	? TREE_DIFF_XATTR_MISSING
				   : !e ? TREE_DIFF_XATTR_EXTRA
					: TREE_DIFF_XATTR_VALUE;
	struct strbuf *sb;

	assert(e || s);
	if (e && s && e->len == s->len && (!e->len || memcmp(e->value, s->value, e->len) == 0))
		return;
	sb = begin(d, p);
	strbuf_adds(sb, "extended attribute ");
	quote_name(sb, e ? e->name : s->name);
	strbuf_adds(sb, s ? " is " : " is missing");
	if (s)
		quote_brief(sb, s->value, s->len, BRIEF);
	strbuf_adds(sb, e ? ", was " : ", was not there");
	if (e)
		quote_brief(sb, e->value, e->len, BRIEF);
	finish(d, p, kind)->xattr = e ? e->name : s->name;
}

static void diff_xattrs(struct differ *d, struct pair p)
{
	size_t i = 0, j = 0;

	while (i < p.e->n_xattrs || j < p.s->n_xattrs) {
		const struct tree_xattr *e = i < p.e->n_xattrs ? &p.e->xattrs[i] : NULL;
		const struct tree_xattr *s = j < p.s->n_xattrs ? &p.s->xattrs[j] : NULL;
		int c = !e ? 1 : !s ? -1 : strcmp(e->name, s->name);

		diff_xattr(d, p, c <= 0 ? e : NULL, c >= 0 ? s : NULL);
		i += c <= 0;
		j += c >= 0;
	}
}

static void diff_time(struct differ *d, struct pair p, const char *what, struct tree_time seen,
		      struct tree_time expected)
{
	if (seen.sec == expected.sec && seen.nsec == expected.nsec)
		return;
	strbuf_addf(begin(d, p), "%s time is %lld.%09u, was %lld.%09u", what, (long long)seen.sec,
		    seen.nsec, (long long)expected.sec, expected.nsec);
	finish(d, p, TREE_DIFF_TIMES);
}

static void diff_readable(struct differ *d, struct pair p)
{
	if (p.e->error != p.s->error || p.e->step != p.s->step) {
		struct strbuf *sb = begin(d, p);

		strbuf_adds(sb, "is ");
		describe_error(sb, p.s);
		strbuf_adds(sb, ", was ");
		describe_error(sb, p.e);
		finish(d, p, TREE_DIFF_UNREADABLE);
	}
	if (p.e->doubled != p.s->doubled) {
		strbuf_adds(begin(d, p), p.s->doubled
						 ? "is listed more than once, was listed once"
						 : "is listed once, was listed more than once");
		finish(d, p, TREE_DIFF_DOUBLED);
	}
}

static void diff_pair(struct differ *d, struct pair p)
{
	const struct tree_entry *e = p.e, *s = p.s;
	bool same_type = e->type == s->type;
	bool compare = same_type && tree_has_attrs(e) && tree_has_attrs(s);

	if (!same_type && e->type != TREE_UNKNOWN && s->type != TREE_UNKNOWN) {
		strbuf_addf(begin(d, p), "is %s, was %s", type_words(s->type), type_words(e->type));
		finish(d, p, TREE_DIFF_TYPE);
	}
	if (compare)
		diff_attrs(d, p);
	diff_links(d, p, compare);
	if (compare) {
		diff_values(d, p);
		if (tree_has_xattrs(e) && tree_has_xattrs(s))
			diff_xattrs(d, p);
		if (tree_has_blocks(e, d->fields))
			diff_number(d, p, TREE_DIFF_BLOCKS, "number of blocks", s->blocks,
				    e->blocks);
		if (d->fields & TREE_FIELD_TIMES) {
			diff_time(d, p, "access", s->atime, e->atime);
			diff_time(d, p, "modification", s->mtime, e->mtime);
		}
	}
	diff_readable(d, p);
}

/* True for entries below a directory: if it could not be read, they may still be there. */
static bool is_below(const char *path, const struct tree_entry *dir)
{
	size_t len = strlen(dir->path);

	return !len || (strncmp(path, dir->path, len) == 0 && path[len] == '/');
}

static void diff_missing(struct differ *d, const struct tree_entry *e)
{
	struct pair p = { .e = e };
	struct strbuf *sb = begin(d, p);

	if (d->blind && is_below(e->path, d->blind)) {
		strbuf_adds(sb, "cannot be seen, because ");
		add_path(sb, d->blind->path);
		strbuf_adds(sb, " is ");
		describe_error(sb, d->blind);
		finish(d, p, TREE_DIFF_UNREADABLE);
		return;
	}
	strbuf_adds(sb, "missing, was ");
	describe(sb, e);
	finish(d, p, TREE_DIFF_MISSING);
}

static void diff_extra(struct differ *d, const struct tree_entry *s)
{
	struct pair p = { .s = s };
	struct strbuf *sb = begin(d, p);

	strbuf_adds(sb, "is ");
	describe(sb, s);
	strbuf_adds(sb, ", was not there");
	finish(d, p, TREE_DIFF_EXTRA);
}

static void note_blind(struct differ *d, const struct tree_entry *s)
{
	assert(s);
	bool has_names = s->type == TREE_DIR || s->type == TREE_UNKNOWN;

	if (s->error && has_names && s->step != TREE_STEP_LISTXATTR)
		if (!d->blind || !is_below(s->path, d->blind))
			d->blind = s;
}

static void diff_trees(struct differ *d)
{
	size_t i = 0, j = 0, n = d->expected->entries.n, m = d->seen->entries.n;

	while (i < n || j < m) {
		const struct tree_entry *e = i < n ? &d->expected->entries.v[i] : NULL;
		const struct tree_entry *s = j < m ? &d->seen->entries.v[j] : NULL;
		int c = !e ? 1 : !s ? -1 : tree_path_cmp(e->path, s->path);

		if (c >= 0)
			note_blind(d, s);
		if (c == 0)
			diff_pair(d, (struct pair){ e, s });
		else if (c < 0)
			diff_missing(d, e);
		else
			diff_extra(d, s);
		i += c <= 0;
		j += c >= 0;
	}
}

static uint32_t last_link(const struct tree *t)
{
	uint32_t last = 0;

	for (size_t i = 0; i < t->entries.n; i++)
		last = max(last, t->entries.v[i].link);
	return last;
}

void tree_diff(const struct tree *expected, const struct tree *seen, const struct tree_opts *opts,
	       struct tree_diff *out)
{
	struct differ d = {
		.expected = expected,
		.seen = seen,
		.fields = tree_opts_fields(opts) & ~(expected->lacks | seen->lacks),
		.out = out,
	};

	assert(expected->finished && seen->finished);
	vec_clear(&out->list);
	arena_clear(&out->arena);
	d.leader_expected = xcalloc((size_t)last_link(expected) + 1, sizeof(size_t));
	d.leader_seen = xcalloc((size_t)last_link(seen) + 1, sizeof(size_t));
	diff_trees(&d);
	free(d.leader_expected);
	free(d.leader_seen);
	strbuf_release(&d.words);
}
