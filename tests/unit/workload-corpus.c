/* SPDX-License-Identifier: MIT */
/*
 * The table of doc/generation.md: for each workload of tests/corpus/known-bugs.txt a set that holds
 * it, and the workload there that is the same by workload-match.h; or the reason why there is none.
 *
 *	workload-corpus --find SET...	writes the rows, for the first of the sets that holds it
 */
#include <errno.h>

#include "base/io.h"
#include "tap.h"
#include "workload/gen.h"
#include "workload-match.h"

enum { PAPER_BUGS = 36 };

#define TABLE_HEAD "| bug | set | workload |\n"

struct bugs vec_of(struct workload);

static void read_corpus(struct bugs *bugs)
{
	struct workload_reader r;
	struct err err = ERR_INIT;
	struct workload w;
	int rc = 1;

	auto_file in = fopen(TEST_SOURCE_DIR "/corpus/known-bugs.txt", "r");
	if (!in)
		return;
	workload_reader_init(&r, in, "corpus");
	while (rc > 0) {
		workload_init(&w);
		rc = workload_reader_next(&r, &w, &err);
		if (rc > 0)
			vec_push(bugs, w);
		else
			workload_release(&w);
	}
	if (rc < 0)
		printf("# %s\n", err.msg);
	workload_reader_release(&r);
}

static const struct workload *find_bug(const struct bugs *bugs, const char *name)
{
	for (size_t i = 0; i < bugs->n; i++)
		if (streq(bugs->v[i].name, name))
			return &bugs->v[i];
	return NULL;
}

/* ---- one workload of a set ---- */

struct open_set {
	struct bounds b;
	struct gen *g;
};

static void open_set(struct open_set *s, const char *name)
{
	struct err err = ERR_INIT;

	bounds_init(&s->b);
	s->g = NULL;
	if (bounds_load(name, &s->b, &err) || gen_new(&s->b, &s->g, &err))
		printf("# %s\n", err.msg);
}

static void close_set(struct open_set *s)
{
	gen_free(s->g);
	bounds_release(&s->b);
}

static bool text_matches(const struct workload *bug, const char *text, size_t len,
			 struct workload *scratch)
{
	struct err err = ERR_INIT;

	return !workload_parse(text, len, "gen", scratch, &err) && workloads_match(bug, scratch);
}

/* Whether the workload of that name, in that set, is the bug's. */
static bool holds(const char *set, const char *name, const struct workload *bug)
{
	struct open_set s;
	struct err err = ERR_INIT;
	auto_workload w;
	auto_free char *in = gen_name_set(name);
	const char *text;
	uint64_t index;
	size_t len;
	bool hit = false;

	workload_init(&w);
	open_set(&s, set);
	if (s.g && (!in || !streq(in, set) || gen_name_index(s.g, name, &index, &err))) {
		printf("# %s: %s\n", set, *err.msg ? err.msg : name);
	} else if (s.g) {
		gen_seek(s.g, index);
		hit = gen_next(s.g, &text, &len) && text_matches(bug, text, len, &w);
		if (hit || !text)
			printf("# %.*s", (int)(strchr(text, '\n') - text + 1), text);
		else
			printf("# %.*s\n", (int)len, text);
	}
	close_set(&s);
	return hit;
}

/* ---- the table ---- */

/* Takes the words of a row: "| a | b | c |". Back quotes are dropped. */
static size_t cells(char *row, char *out[4])
{
	size_t n = 0;

	for (char *cell; n < 4 && (cell = strsep(&row, "|"));) {
		cell += strspn(cell, " `");
		for (size_t len = strlen(cell); len && strchr(" `", cell[len - 1]);)
			cell[--len] = '\0';
		if (*cell)
			out[n++] = cell;
	}
	return n;
}

static void test_row(char *row, struct bugs *bugs, size_t *seen)
{
	char *cell[4] = { NULL };
	size_t n = cells(row, cell);

	*seen += 1;
	if (!ok(n >= 2, "a row has a bug and a set, or a reason"))
		return;
	const struct workload *bug = find_bug(bugs, cell[0]);
	if (streq(cell[1], "none"))
		ok(n == 3 && strchr(cell[2], ' '), "%s is in no set, and there is a reason",
		   cell[0]);
	else
		ok(bug && n == 3 && holds(cell[1], cell[2], bug), "%s is in %s", cell[0], cell[1]);
}

static void test_table(struct bugs *bugs)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	size_t seen = 0;

	if (io_slurp(TEST_SOURCE_DIR "/../doc/generation.md", 1 << 20, &text, &err))
		printf("# %s\n", err.msg);
	char *rest = strstr(strbuf_str(&text), TABLE_HEAD);
	for (size_t i = 0; i < bugs->n; i++) {
		auto_free char *begin = xasprintf("\n| %s | ", bugs->v[i].name);

		ok(rest && strstr(rest, begin), "%s has a row", bugs->v[i].name);
	}
	if (rest)
		rest = strstr(rest + strlen(TABLE_HEAD), "\n");
	for (char *row = rest ? rest + 1 : NULL; row && *row == '|';) {
		char *next = strchr(row, '\n');

		*next = '\0';
		test_row(row, bugs, &seen);
		row = next + 1;
	}
	is_u(seen, PAPER_BUGS, "all bugs of the paper have a row");
}

/* ---- making it ---- */

/* Cheap: the operations that are no setup, by their names. */
static bool may_match(const struct workload *bug, const char *text)
{
	size_t i = match_skip(bug, 0);

	for (const char *p = strchr(text, '\n') + 1; *p != '\n'; p = strchr(p, '\n') + 1) {
		if (strncmp(p, "setup ", 6) == 0)
			continue;
		size_t n = strcspn(p, " \n");
		if (i == bug->ops.n || strlen(bug->ops.v[i].def->name) != n ||
		    memcmp(bug->ops.v[i].def->name, p, n) != 0)
			return false;
		i = match_skip(bug, i + 1);
	}
	return i == bug->ops.n;
}

static void find_in(const char *set, const struct bugs *bugs, bool found[])
{
	struct open_set s;
	auto_workload w;
	const char *text;
	size_t len;

	workload_init(&w);
	open_set(&s, set);
	while (s.g && gen_next(s.g, &text, &len))
		for (size_t i = 0; i < bugs->n; i++)
			if (!found[i] && may_match(&bugs->v[i], text) &&
			    text_matches(&bugs->v[i], text, len, &w)) {
				found[i] = true;
				printf("| %s | `%s` | `%s` |\n", bugs->v[i].name, set, w.name);
			}
	close_set(&s);
}

static int find(char **sets, const struct bugs *bugs)
{
	auto_free bool *found = xcalloc(bugs->n + 1, sizeof(*found));

	for (; *sets; sets++)
		find_in(*sets, bugs, found);
	for (size_t i = 0; i < bugs->n; i++)
		if (!found[i])
			printf("| %s | none | |\n", bugs->v[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	struct bugs bugs = { 0 };
	int status = 0;

	read_corpus(&bugs);
	if (argc > 1 && streq(argv[1], "--find"))
		return find(argv + 2, &bugs);
	is_u(bugs.n, PAPER_BUGS - 1, "the corpus has every bug but generic-041");
	test_table(&bugs);
	status = done_testing();
	for (size_t i = 0; i < bugs.n; i++)
		workload_release(&bugs.v[i]);
	vec_release(&bugs);
	return status;
}
