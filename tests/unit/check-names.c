/* SPDX-License-Identifier: MIT */
/*
 * The names of a history: as every state has them, at random; and the work that a history and its
 * judgement cost, which must grow with the operations and not with operations times names.
 */
#include "base/rng.h"
#include "check/check.h"
#include "tap.h"

/* Performs a workload on the reference alone. */
static void perform(struct op_history *h, const struct workload *w)
{
	auto_findings live = { 0 };

	op_history_start(h, w);
	struct reffs *target = reffs_new(NULL);
	for (size_t i = 0; i < w->ops.n; i++)
		op_history_op(h, i, reffs_op(target, w, i), &live);
	reffs_free(target);
}

static void add_line(struct workload *w, const char *line)
{
	struct err err = ERR_INIT;

	if (workload_add_line(w, line, &err))
		printf("# %s\n", err.msg);
}

/* ---- the names themselves ---- */

static const char *const any_names[] = { "a",	"b",	 "D",	  "E",	    "D/a",   "D/b",
					 "E/a", "D/E",	 "D/E/a", "E/F",    "E/F/a", "E/D",
					 "F",	"E/F/b", "D/E/D", "D/E/D/a" };

static const char *pick(struct rng *rng)
{
	return any_names[rng_below(rng, ARRAY_SIZE(any_names))];
}

/* Operations on names that may or may not be there; those that fail change nothing. */
static void add_random(struct workload *w, struct rng *rng)
{
	static const char *const forms[] = { "creat %s", "mkdir %s",   "mkdir %s",  "unlink %s",
					     "rmdir %s", "rename %s",  "rename %s", "rename %s",
					     "link %s",	 "exchange %s" };
	const char *form = forms[rng_below(rng, ARRAY_SIZE(forms))];
	const char *a = pick(rng), *b = pick(rng);
	auto_strbuf line = STRBUF_INIT;

	if (form[0] == 'e')
		strbuf_addf(&line, "rename %s %s exchange", a, b);
	else
		strbuf_addf(&line, "%.*s %s", (int)strcspn(form, " "), form, a);
	if (strncmp(form, "rename", 6) == 0 || strncmp(form, "link", 4) == 0)
		strbuf_addf(&line, " %s", b);
	add_line(w, strbuf_str(&line));
}

struct walk {
	const struct reffs_state *state;
	struct op_history *h;
	size_t at, n, wrong;
	const char *dir;
};

/* Compares one entry of a state, and what is below it, with the history's names. */
static int compare_entry(void *ctx, const char *name, uint64_t ino)
{
	struct walk *w = ctx;
	auto_free char *path = *w->dir ? xasprintf("%s/%s", w->dir, name) : xstrdup(name);
	struct walk inner = { w->state, w->h, w->at, 0, 0, path };
	const struct reffs_inode *inode = reffs_inode(w->state, ino);
	const char *found, *any = NULL;
	struct reffs_attr attr;

	reffs_attr(inode, &attr);
	w->n++;
	w->wrong += op_history_ino(w->h, w->at, path) != ino;
	for (size_t i = 0; (found = op_history_next_name(w->h, w->at, ino, &i));)
		any = streq(found, path) ? found : any;
	w->wrong += !any;
	if (attr.type == TREE_DIR)
		reffs_entries(inode, compare_entry, &inner);
	w->n += inner.n;
	w->wrong += inner.wrong;
	return 0;
}

static void test_random(void)
{
	struct op_history h;
	struct rng rng;
	size_t wrong = 0, compared = 0, moved = 0;

	op_history_init(&h);
	rng_init(&rng, 7);
	for (int round = 0; round < 300; round++) {
		auto_workload w;

		workload_init(&w);
		for (int i = 0; i < 60; i++)
			add_random(&w, &rng);
		perform(&h, &w);
		for (size_t s = 0; s < h.states.n; s++) {
			struct walk walk = { h.states.v[s], &h, s, 0, 0, "" };
			auto_vec struct history_paths paths = { 0 };

			reffs_entries(reffs_inode(h.states.v[s], REFFS_ROOT_INO), compare_entry,
				      &walk);
			op_history_paths_at(&h, s, &paths);
			wrong += walk.wrong + (paths.n != walk.n);
			compared += walk.n;
		}
		for (size_t i = 0; i < w.ops.n; i++)
			moved += h.results.v[i] == 0 && w.ops.v[i].def->args[0].role == ROLE_FROM;
	}
	op_history_release(&h);
	is_u(wrong, 0, "%zu names of random histories are those of their states", compared);
	ok(moved > 200, "%zu of the operations moved something", moved);
}

/* ---- what it costs ---- */

/* Judges the state after `done` operations, as if nothing was lost; returns the findings. */
static size_t judge(struct op_history *h, size_t done)
{
	auto_tree seen = TREE_INIT;
	auto_findings out = { 0 };
	struct promises p = { 0 };
	struct tree_opts opts;

	check_tree_opts(&opts, NULL);
	reffs_tree(h->states.v[done], &opts, &seen);
	promises_make(&p, h, guarantee_find("linux"), done, false);
	check_recovered(&(struct recovered){ .p = &p, .seen = &seen }, &out);
	promises_release(&p);
	return out.n;
}

/* The work of a history with `n` links of one file, and of judging its end, and what was before. */
static uint64_t work_of_links(size_t n, size_t *findings)
{
	auto_workload w;
	struct op_history h;
	uint64_t before = op_names_work;

	workload_init(&w);
	op_history_init(&h);
	add_line(&w, "creat foo");
	for (size_t i = 0; i < n; i++) {
		auto_free char *line = xasprintf("link foo foo%zu", i);
		add_line(&w, line);
	}
	add_line(&w, "sync");
	add_line(&w, "unlink foo0");
	add_line(&w, "link foo foo0");
	add_line(&w, "fsync foo");
	perform(&h, &w);
	*findings = judge(&h, w.ops.n) + judge(&h, n + 1); /* with promises, and without */
	op_history_release(&h);
	return op_names_work - before;
}

static void test_work(void)
{
	size_t findings = 0, more = 0;
	uint64_t once = work_of_links(1000, &findings), thrice = work_of_links(3000, &more);

	is_u(findings + more, 0, "many names of one file raise no alarm");
	ok(once > 1000, "the work is counted: %llu", (unsigned long long)once);
	ok(thrice < once * 33 / 10, "three times the links are three times the work: %llu",
	   (unsigned long long)thrice);
}

int main(void)
{
	test_random();
	test_work();
	return done_testing();
}
