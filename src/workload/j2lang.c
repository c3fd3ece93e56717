/* SPDX-License-Identifier: MIT */
/* j2lang.c - reads a template, and goes through the choices of its lists. */
#include "workload/j2lang.h"

#include <ctype.h>
#include <errno.h>

#include "base/words.h"

enum {
	LISTS_MAX = 8,
	WORDS_MAX = 4, /* of the operation */
	LIST_WORDS_MAX = 128,
	TEMPLATE_LINE_MAX = 4096,
	NEEDED_SIZE = 32768, /* the size of a file that must have data */
};

static const char first_line[] = "# J2-Lang";

struct template
{
	const char *source;
	unsigned line;
	struct words list[LISTS_MAX]; /* the first word is the name */
	size_t n_lists;
	struct words op;
	int (*each)(void *ctx, struct workload *w);
	void *ctx;
	struct err *err;
	unsigned number; /* of the workload */
	/* The arguments that are chosen now, paths as ours. */
	char *arg[WORDS_MAX];
	bool is_path[WORDS_MAX];
	struct strbuf text;
};

#define complain(t, ...) err_in_line((t)->err, (t)->source, (t)->line, __VA_ARGS__)

bool j2lang_recognise(FILE *in)
{
	char line[sizeof(first_line)];
	long start = ftell(in);

	if (start < 0)
		return false;
	bool is = fgets(line, sizeof(line), in) &&
		  strncmp(line, first_line, strlen(first_line)) == 0;
	return fseek(in, start, SEEK_SET) == 0 && is;
}

/* ---- paths ---- */

/* "ACfoo" is A/C/foo: a capital letter is a directory. "test" is the root. */
static char *make_path(const char *name)
{
	struct strbuf path = { 0 };

	if (streq(name, "test"))
		return xstrdup(".");
	for (const char *p = name; *p; p++) {
		strbuf_addch(&path, *p);
		if (isupper((unsigned char)*p) && p[1])
			strbuf_addch(&path, '/');
	}
	return strbuf_detach(&path);
}

static bool is_dir(const char *path)
{
	return isupper((unsigned char)path[strlen(path) - 1]) || streq(path, ".");
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? xmemdupz(path, (size_t)(slash - path)) : xstrdup(".");
}

/* Makes the directories above a path, unless that was done for another path. */
static void need_parents(struct template *t, const char *path)
{
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		auto_free char *line = xasprintf("setup mkdir %.*s\n", (int)(slash - path), path);

		if (!strstr(strbuf_str(&t->text), line))
			strbuf_adds(&t->text, line);
	}
}

static void need(struct template *t, const char *path, bool data)
{
	need_parents(t, path);
	if (data)
		strbuf_addf(&t->text, "setup write %s 0 %d\n", path, NEEDED_SIZE);
	else
		strbuf_addf(&t->text, "setup %s %s\n", is_dir(path) ? "mkdir" : "creat", path);
}

/* ---- one workload ---- */

/* Adds offset and length of a class of range in a file of that size. */
static int add_range(struct template *t, const char *word, uint64_t size)
{
	const struct {
		const char *word;
		uint64_t from, len;
	} ranges[] = {
		{ "append", size, size + NEEDED_SIZE },
		{ "overlap_unaligned_start", 0, 5000 },
		{ "overlap_unaligned_end", size - 5000, 5000 },
		{ "overlap_start", 0, 8192 },
		{ "overlap_end", size - 8192, 8192 },
		{ "overlap_extend", size - 2000, 5000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (streq(ranges[i].word, word)) {
			strbuf_addf(&t->text, " %llu %llu\n", llu(ranges[i].from),
				    llu(ranges[i].len));
			return 0;
		}
	return complain(t, "'%.40s' is no range of J2-lang", word);
}

static int add_write(struct template *t)
{
	bool appends = streq(t->arg[2], "append");

	need(t, t->arg[1], !appends);
	strbuf_addf(&t->text, "%s %s", t->op.v[0], t->arg[1]);
	return add_range(t, t->arg[2], appends ? 0 : NEEDED_SIZE);
}

static int add_falloc(struct template *t)
{
	static const struct {
		const char *word, *modes;
	} modes[] = {
		{ "0", "plain" },
		{ "FALLOC_FL_KEEP_SIZE", "keep" },
		{ "FALLOC_FL_ZERO_RANGE", "zero" },
		{ "FALLOC_FL_ZERO_RANGE|FALLOC_FL_KEEP_SIZE", "zero,keep" },
		{ "FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE", "punch,keep" },
	};

	need(t, t->arg[1], true);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (streq(modes[i].word, t->arg[2])) {
			strbuf_addf(&t->text, "falloc %s %s", t->arg[1], modes[i].modes);
			return add_range(t, t->arg[3], NEEDED_SIZE);
		}
	return complain(t, "'%.60s' is no fallocate mode of J2-lang", t->arg[2]);
}

static int add_two_names(struct template *t)
{
	need(t, t->arg[1], false);
	need_parents(t, t->arg[2]);
	strbuf_addf(&t->text, "%s %s %s\n", t->op.v[0], t->arg[1], t->arg[2]);
	return 0;
}

static int add_made(struct template *t)
{
	need_parents(t, t->arg[1]);
	strbuf_addf(&t->text, "%s %s 0777\n", is_dir(t->arg[1]) ? "mkdir" : "creat", t->arg[1]);
	return 0;
}

static int add_one_name(struct template *t)
{
	need(t, t->arg[1], streq(t->op.v[0], "fdatasync"));
	strbuf_addf(&t->text, "%s %s\n", t->op.v[0], t->arg[1]);
	return 0;
}

static int add_truncate(struct template *t)
{
	need(t, t->arg[1], false);
	strbuf_addf(&t->text, "truncate %s %s\n", t->arg[1], t->arg[2]);
	return 0;
}

static int add_attribute(struct template *t)
{
	bool sets = streq(t->op.v[0], "fsetxattr");

	need(t, t->arg[1], false);
	strbuf_addf(&t->text, "%ssetxattr %s user.xattr1 val1\n", sets ? "" : "setup ", t->arg[1]);
	if (!sets)
		strbuf_addf(&t->text, "removexattr %s user.xattr1\n", t->arg[1]);
	return 0;
}

static const struct template_op {
	const char *name;
	size_t words; /* with the operation */
	int (*add)(struct template *t);
	bool takes_away; /* the first name is not there afterwards */
	bool persists;
} operations[] = {
	{ "open", 4, add_made, false, false },
	{ "mkdir", 3, add_made, false, false },
	{ "falloc", 4, add_falloc, false, false },
	{ "write", 3, add_write, false, false },
	{ "dwrite", 3, add_write, false, false },
	{ "mmapwrite", 3, add_write, false, true },
	{ "link", 3, add_two_names, false, false },
	{ "rename", 3, add_two_names, true, false },
	{ "unlink", 2, add_one_name, true, false },
	{ "remove", 2, add_one_name, true, false },
	{ "fsetxattr", 2, add_attribute, false, false },
	{ "removexattr", 2, add_attribute, false, false },
	{ "truncate", 3, add_truncate, false, false },
	{ "fdatasync", 2, add_one_name, false, false },
};

/* Gives the workload in t->text, with a last line. */
static int give(struct template *t, const char *last)
{
	const char *slash = strrchr(t->source, '/');
	auto_strbuf text = STRBUF_INIT;
	auto_workload w;

	strbuf_addf(&text, "workload %.200s-%u\n%s%s\n", slash && slash[1] ? slash + 1 : t->source,
		    ++t->number, strbuf_str(&t->text), last);
	workload_init(&w);
	int rc = workload_parse(strbuf_str(&text), text.len, t->source, &w, t->err);
	return rc ? rc : t->each(t->ctx, &w);
}

/* Gives a workload for each thing that may be synced: the names that are there, their directories.
 */
static int give_points(struct template *t, const struct template_op *op)
{
	auto_words targets = { 0 };
	int rc = 0;

	for (size_t i = 1; i < t->op.n; i++) {
		if (!t->is_path[i])
			continue;
		vec_push(&targets, parent_of(t->arg[i]));
		if (!(op->takes_away && i == 1))
			vec_push(&targets, xstrdup(t->arg[i]));
	}
	for (size_t i = 0; i < targets.n && !rc; i++) {
		if (any_of(k, i, streq(targets.v[k], targets.v[i])))
			continue;
		for (int data = 0; data < 2 && !rc; data++) {
			auto_free char *last =
				xasprintf("%s %s", data ? "fdatasync" : "fsync", targets.v[i]);
			rc = give(t, last);
		}
	}
	return rc;
}

static bool is_inside(const char *a, const char *b)
{
	size_t n = strlen(b);

	return strncmp(a, b, n) == 0 && (!a[n] || a[n] == '/');
}

/* Whether the operation is possible with these names. */
static bool is_sensible(const struct template *t)
{
	if (t->op.n < 3 || !t->is_path[1] || !t->is_path[2])
		return !t->is_path[1] || !streq(t->arg[1], ".");
	return is_dir(t->arg[1]) == is_dir(t->arg[2]) && !is_inside(t->arg[1], t->arg[2]) &&
	       !is_inside(t->arg[2], t->arg[1]) && !streq(t->arg[1], ".") && !streq(t->arg[2], ".");
}

/* Goes through the choices for word `i` of the operation, and for those after it. */
static int choose(struct template *t, const struct template_op *op, size_t i)
{
	if (i == t->op.n) {
		strbuf_clear(&t->text);
		if (!is_sensible(t))
			return 0;
		int rc = op->add(t);
		return rc ? rc : op->persists ? give(t, "") : give_points(t, op);
	}
	const char *word = t->op.v[i];
	size_t list = 0;

	t->is_path[i] = strncmp(word, "$file", 5) == 0;
	if (*word != '$') {
		t->arg[i] = t->op.v[i];
		return choose(t, op, i + 1);
	}
	while (list < t->n_lists && !streq(t->list[list].v[0], word + 1))
		list++;
	if (list == t->n_lists)
		return complain(t, "there is no list '%.40s'", word + 1);
	for (size_t k = 1; k < t->list[list].n; k++) {
		auto_free char *path = make_path(t->list[list].v[k]);

		t->arg[i] = t->is_path[i] ? path : t->list[list].v[k];
		int rc = choose(t, op, i + 1);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- the file ---- */

static int take_line(struct template *t, const char *line)
{
	struct words words = { 0 };
	int rc = words_split(line, strlen(line), &words, t->err);
	bool is_list =
		!rc && words.n &&
		(strncmp(words.v[0], "file", 4) == 0 || strncmp(words.v[0], "option", 6) == 0);

	if (!rc && is_list && t->n_lists < LISTS_MAX && words.n <= LIST_WORDS_MAX) {
		t->list[t->n_lists++] = words;
		return 0;
	}
	if (!rc && is_list)
		rc = complain(t, "more than %d lists, or %d words in one", LISTS_MAX,
			      LIST_WORDS_MAX);
	else if (!rc && words.n && t->op.n)
		rc = complain(t, "a second operation; J2-lang has one");
	else if (!rc && words.n > WORDS_MAX)
		rc = complain(t, "more than %d words", WORDS_MAX);
	if (rc || !words.n) {
		words_release(&words);
		return rc;
	}
	t->op = words;
	return 0;
}

static int read_template(struct template *t, FILE *in)
{
	char line[TEMPLATE_LINE_MAX];

	for (t->line = 1; fgets(line, sizeof(line), in); t->line++) {
		size_t n = strlen(line);

		if (n == sizeof(line) - 1 && line[n - 1] != '\n')
			return complain(t, "the line is longer than %d bytes", TEMPLATE_LINE_MAX);
		line[strcspn(line, "\r\n")] = '\0';
		int rc = line[0] == '#' ? 0 : take_line(t, line);
		if (rc)
			return rc;
	}
	if (ferror(in))
		return complain(t, "cannot read");
	return t->op.n ? 0 : complain(t, "there is no operation");
}

int j2lang_import(FILE *in, const char *source, int (*each)(void *ctx, struct workload *w),
		  void *ctx, struct err *err)
{
	struct template t = { .source = source, .each = each, .ctx = ctx, .err = err };
	int rc = read_template(&t, in);
	const struct template_op *op = operations;
	const struct template_op *end = operations + ARRAY_SIZE(operations);

	while (!rc && op < end && !streq(op->name, t.op.v[0]))
		op++;
	if (!rc && op == end)
		rc = complain(&t, "unknown J2-lang operation '%.40s'", t.op.v[0]);
	else if (!rc && t.op.n != op->words)
		rc = complain(&t, "%s has %zu words after it", op->name, op->words - 1);
	if (!rc)
		rc = choose(&t, op, 1);
	for (size_t i = 0; i < t.n_lists; i++)
		words_release(&t.list[i]);
	words_release(&t.op);
	strbuf_release(&t.text);
	return rc;
}
