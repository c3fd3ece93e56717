/* SPDX-License-Identifier: MIT */
/*
 * What one reference file system shows, another takes over: of two that did different things, the
 * second then has the state of the first, whatever was there, and goes on from it.
 */
#include "tap.h"

#include <errno.h>

#include "base/rng.h"
#include "fs/adopt.h"

enum { ROUNDS = 300, OPS = 25 };

static const char *const lines[] = {
	"creat a",
	"creat b",
	"creat A/a",
	"creat A/b",
	"mkdir A",
	"mkdir B",
	"mkdir A/C",
	"mkdir b",
	"rmdir B",
	"rmdir A/C",
	"unlink a",
	"unlink A/a",
	"link a A/l",
	"link b l",
	"link A/a B/l",
	"rename a A/b",
	"rename A B",
	"rename A/a b",
	"rename a b exchange",
	"symlink a s",
	"symlink b s",
	"unlink s",
	"mknod n char 5",
	"mknod n block 7",
	"unlink n",
	"mkfifo p",
	"write a 0 100",
	"write b 5000 3000",
	"append A/a 10",
	"truncate a 9000",
	"truncate b 1",
	"write A/b 0 4096",
	"setxattr a user.x 1",
	"setxattr a user.y 22",
	"removexattr a user.x",
	"chmod b 0600",
	"chown A 5 6",
	"setxattr A user.d \"\"",
};

static void perform_some(struct reffs *r, struct workload *w, struct rng *g, size_t n)
{
	struct err err = ERR_INIT;

	for (size_t i = 0; i < n; i++) {
		if (workload_add_line(w, lines[rng_below(g, ARRAY_SIZE(lines))], &err))
			printf("# %s\n", err.msg);
		else
			reffs_op(r, w, w->ops.n - 1);
	}
}

static bool same(struct reffs *a, struct reffs *b)
{
	struct reffs_state *x = reffs_save(a), *y = reffs_save(b);
	bool equal = hash_eq(reffs_state_hash(x), reffs_state_hash(y));

	reffs_state_unref(x);
	reffs_state_unref(y);
	return equal;
}

static int take_over(struct reffs *from, struct reffs *to, bool text, struct err *err)
{
	struct tree_opts opts = { .content_limit = 1 << 20 };
	struct reffs_state *state = reffs_save(from);
	auto_strbuf words = STRBUF_INIT;
	auto_tree tree = TREE_INIT;
	int rc = 0;

	reffs_tree(state, &opts, &tree);
	reffs_state_unref(state);
	if (text) { /* as it comes out of a trace */
		tree_print(&tree, &opts, TREE_TEXT_CONTENT, &words);
		rc = tree_parse(strbuf_str(&words), words.len, &tree, err);
	}
	return rc ? rc : reffs_adopt(to, &tree, err);
}

static void test_random(void)
{
	struct rng g;
	size_t differed = 0, wrong = 0;

	rng_init(&g, 1);
	for (size_t round = 0; round < ROUNDS; round++) {
		struct reffs *a = reffs_new(NULL), *b = reffs_new(NULL);
		auto_workload w, v;
		struct err err = ERR_INIT;

		workload_init(&w);
		workload_init(&v);
		perform_some(a, &w, &g, OPS);
		perform_some(b, &v, &g, OPS);
		differed += !same(a, b);
		if (take_over(a, b, round % 2, &err) || !same(a, b)) {
			printf("# round %zu: %s\n", round, err.msg);
			wrong++;
		}
		perform_some(b, &v, &g, OPS); /* it is whole, and can be used */
		reffs_free(a);
		reffs_free(b);
	}
	ok(differed > ROUNDS / 2, "%zu of %d pairs differ", differed, ROUNDS);
	is_u(wrong, 0, "and are equal when one has taken over the other");
}

static uint64_t ino_of(struct reffs *r, const char *name)
{
	struct reffs_state *s = reffs_save(r);
	uint64_t ino = reffs_lookup(reffs_inode(s, REFFS_ROOT_INO), name);

	reffs_state_unref(s);
	return ino;
}

/* What a checker follows: a file that is still at its path is the same file. */
static void test_identity(void)
{
	struct reffs *a = reffs_new(NULL), *b = reffs_new(NULL);
	struct err err = ERR_INIT;
	auto_workload w, v;

	workload_init(&w);
	workload_init(&v);
	static const char *const first[] = { "write a 0 10", "link a l", "creat b", "mkdir t" };
	static const char *const second[] = { "write a 0 20", "write l 0 5", "creat c", "creat t" };
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		is_i(workload_add_line(&v, first[i], &err), 0, "%s", first[i]);
		reffs_op(b, &v, i);
		is_i(workload_add_line(&w, second[i], &err), 0, "%s", second[i]);
		reffs_op(a, &w, i);
	}
	uint64_t old_a = ino_of(b, "a"), old_t = ino_of(b, "t");
	is_i(take_over(a, b, false, &err), 0, "one is taken over");
	ok(same(a, b), "they are equal");
	ok(ino_of(b, "a") == old_a, "a changed file is the same inode");
	ok(ino_of(b, "l") && ino_of(b, "l") != old_a,
	   "a second name of it that is not, is another");
	ok(ino_of(b, "t") != old_t, "a file in place of a directory is another");
	ok(!ino_of(b, "b") && ino_of(b, "c"), "names go and come");
	reffs_free(a);
	reffs_free(b);
}

static void test_refused(void)
{
	struct tree_opts opts = { .content_limit = 1 << 20 };
	struct reffs *r = reffs_new(NULL);
	struct err err = ERR_INIT;
	auto_tree tree = TREE_INIT;

	tree_add(&tree, &(struct tree_entry){ .path = "", .type = TREE_DIR }, &opts);
	tree_add(&tree,
		 &(struct tree_entry){
			 .path = "big", .type = TREE_FILE, .size = 9, .hash = { 1, 2 } },
		 &opts);
	tree_finish(&tree);
	is_i(reffs_adopt(r, &tree, &err), -EFBIG, "a file whose content is not known");
	is_s(err.msg, "the change of a command at big cannot be followed: File too large",
	     "says so");
	reffs_free(r);
}

int main(void)
{
	test_random();
	test_identity();
	test_refused();
	return done_testing();
}
