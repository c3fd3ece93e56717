/* SPDX-License-Identifier: MIT */
/*
 * match.c - decides whether a fault is for a path.
 *
 * Regular expressions come in the language that LazyFS's users write, that of ECMAScript. An
 * expression is translated into POSIX's extended language, which matches the same paths: classes,
 * escapes, groups, lazy repetition. Constructs without a counterpart are refused. Bounds on nesting
 * and repetition keep the compiled form small, whatever its source.
 */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <regex.h>

#include "inject/internal.h"

enum { REGEX_MAX = 4096, REGEX_DEPTH_MAX = 32, REGEX_COST_MAX = 10000 };

struct compiled {
	regex_t re;
	bool as_lazyfs;
	char *root, *mnt; /* with a slash at their end; or NULL */
};

/* ---- plain paths ---- */

/* Cleans a path: no double slashes or dots, and no slash at either end. -EINVAL if it has "..". */
static int clean(const char *text, struct strbuf *out)
{
	while (*text) {
		size_t n = strcspn(text, "/");

		if (n == 2 && memcmp(text, "..", 2) == 0)
			return -EINVAL;
		if (n && !(n == 1 && *text == '.')) {
			if (out->len)
				strbuf_addch(out, '/');
			strbuf_add(out, text, n);
		}
		text += n + (text[n] == '/');
	}
	return 0;
}

/* Returns the length of `dir` and the slash behind it, if `path` lies below; else 0. */
static size_t length_below(const char *path, const char *dir)
{
	auto_strbuf d = STRBUF_INIT;

	if (!dir || clean(dir, &d) || !d.len || strncmp(path, d.buf, d.len) != 0)
		return 0;
	if (path[d.len] == '/')
		return d.len + 1;
	return path[d.len] ? 0 : d.len;
}

/*
 * Resolves symbolic links as far as the path exists, but not in the last name. NULL if the path
 * stays the same.
 */
static char *resolved(const char *path)
{
	auto_free char *dir = xstrdup(path);
	char *slash;

	while ((slash = strrchr(dir, '/')) && slash > dir) {
		*slash = '\0';
		auto_free char *real = realpath(dir, NULL);

		if (real && streq(real, dir))
			return NULL;
		if (real)
			return xasprintf("%s%s", real, path + strlen(dir));
	}
	return NULL;
}

/* Returns the length of ROOT or MNT at the front of `path`; 0 if it lies below neither. */
static size_t length_outside(const char *path, const struct inject_places *at)
{
	return max(length_below(path, at->root), length_below(path, at->mnt));
}

/* length_outside() with symbolic links resolved, as `path` is then, too. */
static size_t length_outside_links(struct strbuf *path, const char *text,
				   const struct inject_places *at)
{
	auto_free char *other = resolved(text);
	auto_free char *root = at->root ? realpath(at->root, NULL) : NULL;
	auto_free char *mnt = at->mnt ? realpath(at->mnt, NULL) : NULL;
	auto_strbuf clean_other = STRBUF_INIT;
	size_t n;

	if (clean(other ? other : text, &clean_other))
		return 0;
	n = length_outside(strbuf_str(&clean_other), &(struct inject_places){ root, mnt });
	if (n) {
		strbuf_clear(path);
		strbuf_add(path, clean_other.buf, clean_other.len);
	}
	return n;
}

static int relative(const char *key, const char *text, const struct inject_places *at,
		    struct strbuf *out, struct err *err)
{
	auto_strbuf path = STRBUF_INIT;
	size_t cut = 0;

	if (!*text)
		return err_set(err, -EINVAL, "%s is empty; give a path in the mount", key);
	if (clean(text, &path))
		return err_set(err, -EINVAL,
			       "%s is '%s', but a path cannot go up with '..'; give it as it is in "
			       "the mount",
			       key, text);
	if (*text == '/')
		cut = length_outside(strbuf_str(&path), at);
	if (*text == '/' && !cut)
		cut = length_outside_links(&path, text, at);
	strbuf_adds(out, strbuf_str(&path) + cut);
	return 0;
}

/* Escapes brackets and backslashes of a pattern. */
static char *without_brackets(const char *text)
{
	auto_strbuf out = STRBUF_INIT;

	for (; *text; text++) {
		if (strchr("[]\\", *text))
			strbuf_addch(&out, '\\');
		strbuf_addch(&out, *text);
	}
	return xstrdup(strbuf_str(&out));
}

int match_path(struct path_match *out, const char *key, const char *text,
	       const struct inject_places *at, struct err *err)
{
	auto_strbuf path = STRBUF_INIT;
	int rc = relative(key, text, at, &path, err);

	if (rc)
		return rc;
	if (strpbrk(strbuf_str(&path), "*?"))
		*out = (struct path_match){ .kind = PATH_GLOB,
					    .text = without_brackets(strbuf_str(&path)) };
	else
		*out = (struct path_match){ .kind = PATH_EXACT,
					    .text = xstrdup(strbuf_str(&path)) };
	return 0;
}

int match_glob(struct path_match *out, const char *key, const char *text,
	       const struct inject_places *at, struct err *err)
{
	auto_strbuf path = STRBUF_INIT;
	int rc = relative(key, text, at, &path, err);

	if (!rc)
		*out = (struct path_match){ .kind = PATH_GLOB, .text = xstrdup(strbuf_str(&path)) };
	return rc;
}

/* ---- regular expressions ---- */

/*
 * Compiling expands repetitions, x+ to xx*, which doubles the length with each level: the length is
 * computed before that.
 */
struct nesting {
	uint64_t cost; /* the length of the group so far */
	uint64_t last; /* the length that a repetition would repeat; 0: none */
};

struct rewriter {
	const char *at;
	struct strbuf *out;
	unsigned depth;
	struct nesting levels[REGEX_DEPTH_MAX + 1];
};

/* A set of bytes. */
struct set {
	bool has[256];
};

static void add_where(struct set *s, int (*is)(int), bool want)
{
	for (int c = 1; c < 128; c++)
		s->has[c] |= (is(c) != 0) == want;
	for (int c = 128; c < 256; c++)
		s->has[c] |= !want;
}

static int is_word(int c)
{
	return isalnum(c) || c == '_';
}

/* Adds a class, such as \d. */
static bool add_class(struct set *s, char letter)
{
	switch (letter) {
	case 'd':
	case 'D':
		add_where(s, isdigit, letter == 'd');
		return true;
	case 'w':
	case 'W':
		add_where(s, is_word, letter == 'w');
		return true;
	case 's':
	case 'S':
		add_where(s, isspace, letter == 's');
		return true;
	default:
		return false;
	}
}

/* Adds a class such as [:alpha:], after its first bracket. */
static const char *add_named(struct rewriter *r, struct set *s)
{
	static const struct {
		const char *name;
		int (*is)(int);
	} names[] = { { ":alpha:]", isalpha }, { ":digit:]", isdigit },	  { ":alnum:]", isalnum },
		      { ":upper:]", isupper }, { ":lower:]", islower },	  { ":space:]", isspace },
		      { ":punct:]", ispunct }, { ":xdigit:]", isxdigit }, { ":blank:]", isblank },
		      { ":cntrl:]", iscntrl }, { ":print:]", isprint },	  { ":graph:]", isgraph },
		      { ":w:]", is_word },     { ":d:]", isdigit },	  { ":s:]", isspace } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strncmp(r->at, names[i].name, strlen(names[i].name)) != 0)
			continue;
		add_where(s, names[i].is, true);
		r->at += strlen(names[i].name);
		return NULL;
	}
	return "it has a class that is not known";
}

/* The character that \ and this letter stand for; 0 if that is not known. */
static char escaped(char c)
{
	static const char letters[] = "tnrfv", means[] = "\t\n\r\f\v";
	const char *found = c ? strchr(letters, c) : NULL;

	if (found)
		return means[found - letters];
	return isalnum((unsigned char)c) ? '\0' : c;
}

/* One character of a set, which may begin a range. */
static const char *set_char(struct rewriter *r, unsigned char *out)
{
	char c = *r->at++;

	if (c == '\\') {
		c = *r->at ? escaped(*r->at) : '\0';
		if (!c)
			return "it has an escape that is not known";
		r->at++;
	}
	*out = (unsigned char)c;
	return NULL;
}

static const char *set_item(struct rewriter *r, struct set *s)
{
	unsigned char from, to;
	const char *why;

	if (r->at[0] == '[' && r->at[1] == ':') {
		r->at++;
		return add_named(r, s);
	}
	if (r->at[0] == '\\' && add_class(s, r->at[1])) {
		r->at += 2;
		return NULL;
	}
	why = set_char(r, &from);
	if (why)
		return why;
	to = from;
	if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
		r->at++;
		why = set_char(r, &to);
		if (why)
			return why;
	}
	if (from > to)
		return "it has a range that ends before it begins";
	for (int c = from; c <= to; c++)
		s->has[c] = true;
	return NULL;
}

/* Adds a bracket expression of POSIX; special characters stand where they are ordinary ones. */
static void add_set(struct strbuf *out, const struct set *s, bool negated)
{
	unsigned n = 0;

	for (int c = 1; c < 256; c++)
		n += s->has[c];
	if (n == 1 && s->has['^'] && !negated) {
		strbuf_adds(out, "\\^");
		return;
	}
	strbuf_adds(out, negated ? "[^" : "[");
	if (s->has[']'])
		strbuf_addch(out, ']');
	for (int c = 1; c < 256; c++)
		if (s->has[c] && !strchr("]^[-", c))
			strbuf_addch(out, (char)c);
	for (const char *c = "^[-"; *c; c++)
		if (s->has[(unsigned char)*c])
			strbuf_addch(out, *c);
	strbuf_addch(out, ']');
}

/* Rewrites a set, after its bracket. */
static const char *rewrite_set(struct rewriter *r)
{
	struct set s = { 0 };
	bool negated = *r->at == '^';

	r->at += negated;
	if (*r->at == ']')
		return "it has an empty [ ]";
	while (*r->at && *r->at != ']') {
		const char *why = set_item(r, &s);

		if (why)
			return why;
	}
	if (!*r->at)
		return "a ] is missing";
	r->at++;
	add_set(r->out, &s, negated);
	return NULL;
}

/* Rewrites an escape, after its backslash. */
static const char *rewrite_escape(struct rewriter *r)
{
	struct set s = { 0 };
	char c = *r->at;

	if (!c)
		return "it ends with a backslash";
	r->at++;
	if (add_class(&s, c)) {
		add_set(r->out, &s, false);
		return NULL;
	}
	if (c == 'b' || c == 'B') {
		strbuf_addf(r->out, "\\%c", c);
		r->levels[r->depth].last = 0;
		return NULL;
	}
	c = escaped(c);
	if (!c)
		return "it has an escape that is not known";
	if (strchr(".[]{}()*+?^$|\\", c))
		strbuf_addch(r->out, '\\');
	strbuf_addch(r->out, c);
	return NULL;
}

static uint64_t number(struct rewriter *r)
{
	uint64_t v = 0;

	for (; isdigit((unsigned char)*r->at); r->at++)
		v = min(v * 10 + (uint64_t)(*r->at - '0'), (uint64_t)REGEX_COST_MAX + 1);
	return v;
}

/* Rewrites a count, {2}, {2,} or {2,5}, after its brace. */
static const char *rewrite_count(struct rewriter *r, uint64_t *times)
{
	bool digit = isdigit((unsigned char)*r->at);
	uint64_t least = number(r), most = least;

	strbuf_addf(r->out, "{%u", (unsigned)least);
	if (*r->at == ',') {
		r->at++;
		strbuf_addch(r->out, ',');
		if (isdigit((unsigned char)*r->at)) {
			most = number(r);
			strbuf_addf(r->out, "%u", (unsigned)most);
		}
	}
	if (!digit || *r->at != '}')
		return "after { there must be a number and }";
	r->at++;
	strbuf_addch(r->out, '}');
	*times = max(max(least, most), (uint64_t)1);
	return NULL;
}

static const char *rewrite_repeat(struct rewriter *r, char c)
{
	struct nesting *l = &r->levels[r->depth];
	uint64_t times = c == '+' ? 2 : 1;

	if (!l->last)
		return "there is nothing to repeat before a repetition";
	if (c == '{') {
		const char *why = rewrite_count(r, &times);

		if (why)
			return why;
	} else {
		strbuf_addch(r->out, c);
	}
	/* lazy repetition finds the same paths */
	if (*r->at == '?')
		r->at++;
	l->cost += l->last * (times - 1);
	l->last = 0;
	return l->cost > REGEX_COST_MAX ? "it repeats too much" : NULL;
}

static const char *rewrite_group(struct rewriter *r)
{
	if (r->depth == REGEX_DEPTH_MAX)
		return "its groups are nested too deep";
	r->levels[++r->depth] = (struct nesting){ 0 };
	if (*r->at == '?') {
		if (r->at[1] != ':')
			return "of groups that begin with (? only (?: is known";
		r->at += 2;
	}
	strbuf_addch(r->out, '(');
	return NULL;
}

static const char *end_group(struct rewriter *r)
{
	uint64_t cost = r->levels[r->depth].cost + 1;

	if (!r->depth)
		return "a ( is missing";
	r->depth--;
	r->levels[r->depth].cost += cost;
	r->levels[r->depth].last = cost;
	strbuf_addch(r->out, ')');
	return r->levels[r->depth].cost > REGEX_COST_MAX ? "it repeats too much" : NULL;
}

static const char *rewrite_one(struct rewriter *r)
{
	char c = *r->at++;

	if (c == '(')
		return rewrite_group(r);
	if (c == ')')
		return end_group(r);
	if (strchr("*+?{", c))
		return rewrite_repeat(r, c);
	if (strchr("^$|", c)) {
		r->levels[r->depth].last = 0;
		strbuf_addch(r->out, c);
		return NULL;
	}
	r->levels[r->depth].cost++;
	r->levels[r->depth].last = 1;
	if (c == '\\')
		return rewrite_escape(r);
	if (c == '[')
		return rewrite_set(r);
	strbuf_addch(r->out, c);
	return NULL;
}

/* Rewrites an expression. Returns NULL, or the fault in it. */
static const char *rewrite(const char *text, struct strbuf *out)
{
	struct rewriter r = { .at = text, .out = out };

	static_assert(REGEX_MAX == 4096, "the sentence below says so");
	if (strlen(text) > REGEX_MAX)
		return "it has more than 4096 characters";
	while (*r.at) {
		const char *why = rewrite_one(&r);

		if (why)
			return why;
	}
	return r.depth ? "a ) is missing" : NULL;
}

static char *with_slash(const char *dir)
{
	auto_strbuf path = STRBUF_INIT;

	if (!dir)
		return NULL;
	strbuf_adds(&path, dir);
	while (path.len && path.buf[path.len - 1] == '/')
		strbuf_cut(&path, path.len - 1);
	strbuf_addch(&path, '/');
	return xstrdup(strbuf_str(&path));
}

/* Refuses an expression. The message cuts a long one, so that it has room for the reason. */
static int refuse_regex(const char *key, const char *text, const char *why, struct err *err)
{
	enum { SHOWN = 100 };
	bool all = strlen(text) <= SHOWN;

	return err_set(err, -EINVAL, "%s is '%.*s%s', which is no regular expression: %s", key,
		       SHOWN, text, all ? "" : "...", why);
}

int match_regex(struct path_match *out, const char *key, const char *text,
		const struct inject_places *at, bool as_lazyfs, struct err *err)
{
	auto_strbuf posix = STRBUF_INIT;
	char why[128];
	const char *wrong = *text ? rewrite(text, &posix) : "it is empty";

	if (wrong)
		return refuse_regex(key, text, wrong, err);

	struct compiled *c = xcalloc(1, sizeof(*c));
	int rc = regcomp(&c->re, strbuf_str(&posix), REG_EXTENDED);

	if (rc) {
		regerror(rc, &c->re, why, sizeof(why));
		free(c);
		return refuse_regex(key, text, why, err);
	}
	c->as_lazyfs = as_lazyfs;
	c->root = with_slash(at->root);
	c->mnt = with_slash(at->mnt);
	*out = (struct path_match){ .kind = PATH_REGEX, .text = xstrdup(text), .regex = c };
	return 0;
}

void match_release(struct path_match *m)
{
	struct compiled *c = m->regex;

	if (c) {
		regfree(&c->re);
		free(c->root);
		free(c->mnt);
		free(c);
	}
	free(m->text);
	*m = (struct path_match){ .kind = PATH_ANY };
}

bool match_same(const struct path_match *a, const struct path_match *b)
{
	return a->kind == b->kind && (a->kind == PATH_ANY || streq(a->text, b->text));
}

/* ---- matching ---- */

/* True if the expression matches in DIR/PATH; a match in DIR alone counts only if `alone`. */
static bool found_below(const struct compiled *c, const char *dir, const char *path, bool alone)
{
	auto_strbuf whole = STRBUF_INIT;
	regmatch_t m;

	if (!dir)
		return false;
	strbuf_adds(&whole, dir);
	strbuf_adds(&whole, path);
	if (regexec(&c->re, strbuf_str(&whole), 1, &m, 0) != 0)
		return false;
	return alone || (size_t)m.rm_eo > strlen(dir);
}

bool inject_path_matches(const struct path_match *m, const char *path)
{
	const struct compiled *c = m->regex;

	if (m->kind == PATH_ANY)
		return true;
	if (!path)
		return false;
	switch (m->kind) {
	case PATH_EXACT:
		return streq(m->text, path);
	case PATH_GLOB:
		return fnmatch(m->text, path, 0) == 0;
	default:
		return regexec(&c->re, path, 0, NULL, 0) == 0 ||
		       found_below(c, c->root, path, c->as_lazyfs) ||
		       found_below(c, c->mnt, path, false);
	}
}
