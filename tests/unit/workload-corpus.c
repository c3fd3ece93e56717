/* SPDX-License-Identifier: MIT */
/*
 * Every workload of tests/corpus/known-bugs.txt that is marked reachable is in the set it names,
 * or in the set with the relaxed bounds it names.
 *
 * A generated workload is the bug's if its operations are the bug's, in order, with
 *   - the same operations, flags and classes of data ranges,
 *   - the same names, up to renaming files and directories one to one,
 *   - the same persistence points,
 * where this may be left out of the bug, because generation adds it as dependencies:
 *   - in its setup: what makes or fills files and directories, or persists them,
 *   - in its run: making directories; making an empty file where the generated workload makes it
 *     as a dependency or the next write does; and, before the first operation that is kept, what
 *     only fills a file or persists.
 */
#include <errno.h>

#include "base/io.h"
#include "base/vec.h"
#include "tap.h"
#include "workload/gen.h"
#include "workload/workload.h"

enum { OPS_MAX = 24 };

struct bug {
	char name[64];
	char reach[128];
	struct workload ops; /* op.setup: from its setup line */
};

/* ---- relaxed bounds ---- */

/* What "relaxed: ..." in the corpus means as bounds, and what had to be relaxed beyond its words.
 */
static const struct {
	const char *says, *bounds;
} relaxed[] = {
	/* generic-056 has three names in one directory */
	{ "seq-3-metadata with creat added",
	  "base seq-3-metadata\noperations +creat\nfiles foo bar baz\n" },
	{ "seq-1 with several attribute names", "base seq-1\nxattrs user.x1 user.x2 user.x3\n" },
	/* generic-335 makes a file that shares only a directory with what was used before */
	{ "seq-3-nested with creat added",
	  "base seq-3-nested\noperations +creat\nreuse none\nlast-persist-on latest parents\n" },
	{ "seq-2 with symlink added", "base seq-2\noperations +symlink\n" },
};

static char *bounds_for(const char *reach)
{
	const char *rest = strstr(reach, "relaxed: ");
	char set[64];

	for (size_t i = 0; rest && i < ARRAY_SIZE(relaxed); i++)
		if (streq(rest + strlen("relaxed: "), relaxed[i].says))
			return xstrdup(relaxed[i].bounds);
	return !rest && sscanf(reach, "%63s", set) == 1 ? xstrdup(set) : NULL;
}

/* ---- classes of ranges ---- */

/* How large each file is, by path: enough to tell what a range means. */
struct sizes {
	struct {
		const char *path;
		uint64_t size;
	} file[OPS_MAX];
	size_t n;
};

static uint64_t *size_of(struct sizes *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (streq(s->file[i].path, path))
			return &s->file[i].size;
	if (s->n == OPS_MAX)
		return &s->file[0].size;
	s->file[s->n].path = path;
	s->file[s->n].size = 0;
	return &s->file[s->n++].size;
}

/* Index of the offset argument, or -1. */
static int range_at(const struct op_def *def)
{
	for (int i = 0; def->args[i].kind != ARG_END; i++)
		if (def->args[i].kind == ARG_OFFSET)
			return i;
	return -1;
}

static const char *range_class(const struct op *op, uint64_t size)
{
	int at = range_at(op->def);
	uint64_t off = op->args[at].num, end = off + op->args[at + 1].num;

	return off >= size   ? "append"
	       : end > size  ? "extend"
	       : off == 0    ? "start"
	       : end == size ? "end"
			     : "middle";
}

static void track_size(struct sizes *s, const struct op *op)
{
	const char *name = op->def->name, *path = op->args[0].text;
	int at = range_at(op->def);

	if (streq(name, "creat") || streq(name, "unlink") || streq(name, "remove"))
		*size_of(s, path) = 0;
	else if (streq(name, "rename") || streq(name, "link"))
		*size_of(s, op->args[1].text) = *size_of(s, path);
	else if (streq(name, "truncate"))
		*size_of(s, path) = op->args[1].num;
	else if (at >= 0 && !(streq(name, "falloc") && strstr(op->args[1].text, "keep")))
		*size_of(s, path) = max(*size_of(s, path), op->args[at].num + op->args[at + 1].num);
	if (streq(name, "rename"))
		*size_of(s, path) = 0;
}

/* The class of range of each operation; NULL where there is none. */
static void classify(const struct workload *w, const char *out[])
{
	struct sizes s = { .n = 0 };

	for (size_t i = 0; i < w->ops.n && i < OPS_MAX; i++) {
		const struct op *op = &w->ops.v[i];

		out[i] = range_at(op->def) < 0 ? NULL
					       : range_class(op, *size_of(&s, op->args[0].text));
		track_size(&s, op);
	}
}

/* ---- names, one to one ---- */

struct mapping {
	struct {
		const char *from, *to;
		size_t from_len, to_len;
	} pair[64];
	size_t n;
};

static bool map_prefix(struct mapping *m, const char *a, size_t a_len, const char *b, size_t b_len)
{
	for (size_t i = 0; i < m->n; i++) {
		bool same_from = m->pair[i].from_len == a_len && !memcmp(m->pair[i].from, a, a_len);
		bool same_to = m->pair[i].to_len == b_len && !memcmp(m->pair[i].to, b, b_len);

		if (same_from || same_to)
			return same_from && same_to;
	}
	if (m->n == ARRAY_SIZE(m->pair))
		return false;
	m->pair[m->n].from = a;
	m->pair[m->n].from_len = a_len;
	m->pair[m->n].to = b;
	m->pair[m->n++].to_len = b_len;
	return true;
}

/* Both paths have the same depth, and each directory on the way maps as well. */
static bool map_path(struct mapping *m, const char *a, const char *b)
{
	size_t i = 0, j = 0;

	if (streq(a, ".") || streq(b, "."))
		return streq(a, b);
	for (;;) {
		i += strcspn(a + i, "/");
		j += strcspn(b + j, "/");
		if (!map_prefix(m, a, i, b, j) || !a[i] != !b[j])
			return false;
		if (!a[i])
			return true;
		i++;
		j++;
	}
}

static bool same_op(const struct op *a, const struct op *b, const char *class_a,
		    const char *class_b, struct mapping *paths, struct mapping *attributes)
{
	if (a->def != b->def || !class_a != !class_b || (class_a && !streq(class_a, class_b)))
		return false;
	for (size_t i = 0; a->def->args[i].kind != ARG_END; i++) {
		const struct arg *x = &a->args[i], *y = &b->args[i];

		switch (a->def->args[i].kind) {
		case ARG_PATH:
		case ARG_FILE:
			if (!map_path(paths, x->text, y->text))
				return false;
			break;
		case ARG_XATTR:
			if (!map_prefix(attributes, x->text, strlen(x->text), y->text,
					strlen(y->text)))
				return false;
			break;
		case ARG_FLAGS:
			if (x->num != y->num)
				return false;
			break;
		default: /* ranges are compared by class, texts mean nothing */
			break;
		}
	}
	return true;
}

/* ---- matching ---- */

struct match {
	const struct workload *bug;
	const char *bug_class[OPS_MAX];
	const struct workload *gen;
	const char *gen_class[OPS_MAX];
};

/* Whether an operation of the bug may be missing at all, wherever it stands. */
static bool may_drop(const struct op *op, bool kept_any)
{
	const char *name = op->def->name;

	if (streq(name, "mkdir") || streq(name, "creat"))
		return true;
	if (op->setup)
		return streq(name, "write") || streq(name, "setxattr") || op_persists(op);
	return !kept_any && (streq(name, "write") || op_persists(op));
}

/* Whether what the bug's operation `i` makes is made here too: by a dependency, or by a write. */
static bool made_anyway(const struct match *m, size_t i, size_t from, size_t to,
			struct mapping *paths)
{
	const struct op *op = &m->bug->ops.v[i];

	if (i + 1 < m->bug->ops.n && streq(m->bug->ops.v[i + 1].def->name, "write") &&
	    streq(m->bug->ops.v[i + 1].args[0].text, op->args[0].text))
		return true;
	for (; from < to; from++)
		if (streq(m->gen->ops.v[from].def->name, "creat") &&
		    map_path(paths, op->args[0].text, m->gen->ops.v[from].args[0].text))
			return true;
	return false;
}

/* Whether the bug from operation `i` on is the generated workload from `j` on. */
static bool match_from(const struct match *m, size_t i, size_t j, bool kept_any,
		       const struct mapping *paths, const struct mapping *attributes)
{
	size_t core = j;
	struct mapping p = *paths, a = *attributes;

	while (core < m->gen->ops.n && m->gen->ops.v[core].setup)
		core++;
	if (i == m->bug->ops.n)
		return core == m->gen->ops.n;

	const struct op *op = &m->bug->ops.v[i];
	if (core < m->gen->ops.n &&
	    same_op(op, &m->gen->ops.v[core], m->bug_class[i], m->gen_class[core], &p, &a) &&
	    match_from(m, i + 1, core + 1, true, &p, &a))
		return true;
	p = *paths;
	if (!may_drop(op, kept_any) || (kept_any && !op->setup && streq(op->def->name, "creat") &&
					!made_anyway(m, i, j, core, &p)))
		return false;
	return match_from(m, i + 1, j, kept_any, &p, attributes);
}

/* Cheap: the operations in the text that are not setup, against the bug's, by their names. */
static bool may_match(const struct bug *bug, const char *text)
{
	size_t i = 0;
	bool kept_any = false;

	for (const char *p = strchr(text, '\n') + 1; *p && *p != '\n'; p = strchr(p, '\n') + 1) {
		size_t n = strcspn(p, " \n");

		if (n == 5 && memcmp(p, "setup", 5) == 0)
			continue;
		for (;; i++) {
			if (i == bug->ops.ops.n)
				return false;
			const struct op *op = &bug->ops.ops.v[i];
			if (strlen(op->def->name) == n && memcmp(op->def->name, p, n) == 0)
				break;
			if (!may_drop(op, kept_any))
				return false;
		}
		kept_any = true;
		i++;
	}
	return true;
}

static bool is_bug(const struct bug *bug, const char *text, size_t len, struct workload *scratch)
{
	struct match m = { .bug = &bug->ops, .gen = scratch };
	struct mapping none = { .n = 0 };
	struct err err = ERR_INIT;

	if (!may_match(bug, text) || workload_parse(text, len, "gen", scratch, &err) ||
	    scratch->ops.n > OPS_MAX)
		return false;
	classify(&bug->ops, m.bug_class);
	classify(scratch, m.gen_class);
	return match_from(&m, 0, 0, false, &none, &none);
}

/* The first workload of the set that is the bug's; false if there is none. */
static bool find_bug(const struct bug *bug, const char *bounds_text, struct strbuf *found)
{
	auto_bounds b;
	auto_workload scratch;
	struct err err = ERR_INIT;
	struct gen *g = NULL;
	const char *text;
	size_t len;
	bool hit = false;

	bounds_init(&b);
	workload_init(&scratch);
	/* A named set is loaded by its name, so that the workload's name is the real one. */
	int rc = bounds_text[0] == 'b'
			 ? bounds_parse(bounds_text, strlen(bounds_text), "corpus", &b, &err)
			 : bounds_load(bounds_text, &b, &err);
	if (rc || gen_new(&b, &g, &err))
		printf("# %s\n", err.msg);
	while (g && !hit && gen_next(g, &text, &len)) {
		hit = is_bug(bug, text, len, &scratch);
		if (hit)
			strbuf_add(found, text, len);
	}
	gen_free(g);
	return hit;
}

/* ---- the corpus ---- */

static int add_ops(struct bug *bug, char *list, bool setup, struct err *err)
{
	for (char *one; (one = strsep(&list, ";"));) {
		int rc = workload_add_line(&bug->ops, one, err);

		if (rc)
			return rc;
		vec_last(&bug->ops.ops).setup = setup;
	}
	return 0;
}

static size_t read_corpus(struct bug *bugs, size_t bugs_max)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	size_t n = 0;

	if (io_slurp(TEST_SOURCE_DIR "/corpus/known-bugs.txt", 1 << 20, &text, &err)) {
		printf("# %s\n", err.msg);
		return 0;
	}
	char *rest = text.buf;
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (sscanf(line, "bug %63s", bugs[min(n, bugs_max - 1)].name) == 1) {
			assert(n < bugs_max);
			workload_init(&bugs[n++].ops);
		} else if (n && (!strncmp(line, "setup ", 6) || !strncmp(line, "run ", 4))) {
			if (add_ops(&bugs[n - 1], strchr(line, ' '), line[0] == 's', &err))
				printf("# %s: %s\n", bugs[n - 1].name, err.msg);
		} else if (n && !strncmp(line, "reach ", 6)) {
			snprintf(bugs[n - 1].reach, sizeof(bugs[n - 1].reach), "%s", line + 6);
		}
	}
	return n;
}

static void test_bug(const struct bug *bug)
{
	auto_free char *bounds = bounds_for(bug->reach);
	auto_strbuf found = STRBUF_INIT;
	bool hit = bounds && find_bug(bug, bounds, &found);

	ok(hit, "%s is in %s", bug->name, bug->reach);
	for (char *rest = found.buf, *line; (line = strsep(&rest, "\n"));)
		if (*line)
			printf("#   %s\n", line);
}

/* A matcher that finds everything everywhere would prove nothing. */
static void test_absent(const struct bug *bugs, size_t n, const char *name, const char *set)
{
	auto_strbuf found = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		if (streq(bugs[i].name, name))
			ok(!find_bug(&bugs[i], set, &found), "%s is not in %s", name, set);
}

int main(void)
{
	static struct bug bugs[64];
	size_t n = read_corpus(bugs, ARRAY_SIZE(bugs));

	ok(n >= 18, "the corpus has %zu bugs", n);
	for (size_t i = 0; i < n; i++)
		test_bug(&bugs[i]);
	test_absent(bugs, n, "new-1", "seq-1");
	test_absent(bugs, n, "generic-335", "seq-2");
	test_absent(bugs, n, "generic-348", "seq-2");
	test_absent(bugs, n, "generic-066", "seq-3-metadata");
	test_absent(bugs, n, "new-5", "seq-1");
	test_absent(bugs, n, "generic-059", "seq-3-metadata");
	for (size_t i = 0; i < n; i++)
		workload_release(&bugs[i].ops);
	return done_testing();
}
