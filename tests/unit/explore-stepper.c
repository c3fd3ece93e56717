/* SPDX-License-Identifier: MIT */
/* Which differences are declared, and that one side in the wrong is noticed, and which. */
#include <errno.h>

#include "explore/script.h"
#include "tap.h"

/* A workload of its own for each operation, which then stays where it is. */
static struct workload parsed[32];
static unsigned n_parsed;

static const struct op *parse(const char *line)
{
	struct workload *w = &parsed[n_parsed++];
	struct err err = ERR_INIT;

	workload_init(w);
	ok(!workload_add_line(w, line, &err) && w->ops.n, "%s", line);
	return &w->ops.v[w->ops.n - 1];
}

static void test_differences(void)
{
	const struct differences *ext4 = differences_of("ext4"), *xfs = differences_of("xfs"),
				 *btrfs = differences_of("btrfs"), *none = differences_of("newfs");
	struct reffs_opts opts;

	const struct op *mkdir = parse("mkdir A");
	ok(differences_excuse(none, mkdir, -ENOSPC, 0) != NULL, "any may be full");
	ok(!differences_excuse(none, mkdir, -EIO, 0), "none may fail to read");
	ok(!differences_excuse(none, mkdir, 0, 0), "success needs no excuse");
	const struct op *dwrite = parse("dwrite f 1 1");
	ok(differences_excuse(ext4, dwrite, -EINVAL, 0) &&
		   !differences_excuse(none, dwrite, -EINVAL, 0),
	   "alignment is declared for file systems that are known");
	ok(!differences_excuse(ext4, mkdir, -EINVAL, 0), "and for direct I/O only");
	ok(!differences_excuse(none, mkdir, -ENOSPC, -ENOENT) &&
		   differences_excuse(none, mkdir, -ENOSPC, -EEXIST),
	   "nor is it full where the path leads nowhere");
	ok(!differences_excuse(none, mkdir, -EOPNOTSUPP, 0) &&
		   differences_excuse(none, dwrite, -EOPNOTSUPP, 0),
	   "mkdir is for all, direct I/O is not");
	ok(differences_excuse(none, parse("remount"), -EOPNOTSUPP, 0) != NULL,
	   "nor can everything be mounted anew");
	ok(!differences_excuse(none, dwrite, -EMLINK, 0) &&
		   differences_excuse(none, mkdir, -EMLINK, 0),
	   "links have limits where there are links");
	ok(!differences_excuse(none, mkdir, -EFBIG, 0) &&
		   differences_excuse(none, dwrite, -EFBIG, 0),
	   "sizes where there are sizes");
	ok(!differences_excuse(none, parse("write f 0 1"), -EXDEV, 0) &&
		   differences_excuse(none, parse("reflink f g"), -EXDEV, 0) &&
		   differences_excuse(none, parse("reflink f g"), -ENOTTY, 0),
	   "a copy may need another way");
	ok(!differences_excuse(none, parse("removexattr f user.a"), -E2BIG, 0) &&
		   differences_excuse(none, parse("setxattr f user.a b"), -E2BIG, 0),
	   "an attribute may be too long to set");
	ok(!differences_excuse(none, parse("g = open f rdwr"), -EOPNOTSUPP, 0) &&
		   differences_excuse(none, parse("h = open . rdwr,tmpfile"), -EOPNOTSUPP, 0),
	   "a file without a name need not be had");
	const struct op *rename = parse("rename a b");
	ok(!differences_excuse(none, rename, -EOPNOTSUPP, 0), "but every rename without flags");
	ok(!differences_excuse(none, mkdir, -ENOSYS, 0) &&
		   differences_excuse(differences_of("fuse"), mkdir, -ENOSYS, 0),
	   "only a FUSE server may lack a call");
	ok(differences_same_failure(rename, -EEXIST, -ENOTEMPTY), "a directory that is not empty");
	ok(!differences_same_failure(rename, -EEXIST, -EINVAL), "is not everything");
	ok(!differences_same_failure(mkdir, -EEXIST, -ENOTEMPTY), "nor for everyone");
	const struct op *whiteout = parse("rename a b whiteout");
	ok(differences_part(xfs, ext4, whiteout) && differences_part(ext4, xfs, whiteout),
	   "a whiteout has another group on xfs than on ext4");
	ok(!differences_part(xfs, ext4, rename) && !differences_part(xfs, xfs, whiteout) &&
		   !differences_part(ext4, btrfs, whiteout),
	   "other renames do not differ, nor do file systems of the same kind");
	const struct differences *fuse = differences_of("fuse");
	ok(differences_excuse(fuse, whiteout, -EINVAL, 0) &&
		   !differences_excuse(fuse, rename, -EINVAL, 0) &&
		   !differences_excuse(fuse, whiteout, -EIO, 0) &&
		   !differences_excuse(ext4, whiteout, -EINVAL, 0),
	   "a FUSE server need not know whiteouts, and that is all");
	const struct op *unshare = parse("falloc f unshare 0 1");
	ok(differences_can_more(xfs, unshare, -EOPNOTSUPP) &&
		   !differences_can_more(ext4, unshare, -EOPNOTSUPP),
	   "xfs can do more than ext4");
	ok(differences_find(btrfs, DIFFER_DIR_NLINK) && !differences_find(ext4, DIFFER_DIR_NLINK),
	   "directories of btrfs have one link");
	differences_reffs(ext4, &opts);
	ok(opts.no_reflink, "the reference behaves like ext4");
	ok(!opts.whiteout_to, "in whiteouts, too");
	differences_reffs(xfs, &opts);
	ok(!opts.no_reflink && opts.whiteout_to, "or like xfs");
	while (n_parsed)
		workload_release(&parsed[--n_parsed]);
}

/* A side that is wrong in one thing: it says that mkdir failed when it did not. */
static struct side_ops liar;

static int64_t lie(struct side *s, size_t i)
{
	int64_t result = side_reffs.op(s, i);

	return i == 1 && result == 0 ? -EIO : result;
}

/* Another one, of another mind. */
static struct side_ops fibber;

static int64_t fib(struct side *s, size_t i)
{
	int64_t result = side_reffs.op(s, i);

	return i == 1 && result == 0 ? -EPERM : result;
}

/* mkfs gave it another root, with a directory in it that is not shown; that is all. */
static struct side_ops other_root;

static int show_other(struct side *s, const struct tree_opts *opts, struct tree *out,
		      struct err *err)
{
	int rc = side_reffs.tree(s, opts, out, err);

	out->entries.v[0].nlink++;
	out->entries.v[0].mode = 0700;
	out->entries.v[0].uid = 7;
	return rc;
}

/* These do something to the root when B is made. */
static struct side_ops miscounts, opens_up;

static int show_miscounted(struct side *s, const struct tree_opts *opts, struct tree *out,
			   struct err *err)
{
	int rc = show_other(s, opts, out, err);

	out->entries.v[0].nlink += tree_find(out, "B") != NULL;
	return rc;
}

static int show_open(struct side *s, const struct tree_opts *opts, struct tree *out,
		     struct err *err)
{
	int rc = show_other(s, opts, out, err);

	if (tree_find(out, "B"))
		out->entries.v[0].mode = 0777;
	return rc;
}

static void add_side(struct side_ops *ops, const char *name)
{
	*ops = side_reffs;
	ops->name = name;
	ops->hash = NULL;
	side_register(ops);
}

static void run(const char *const *specs, unsigned n, enum step_verdict want, const char *words)
{
	struct side_opts opts = { 0 };
	struct stepper st;
	struct script s;
	struct step_result r = { 0 };
	struct err err = ERR_INIT;
	const char *text = "mkdir A\nmkdir B\nrmdir A\n";
	auto_strbuf log = STRBUF_INIT;
	bool told = !*words;
	size_t at;

	script_init(&s);
	ok(!script_parse(text, strlen(text), "text", &s, &err), "a script");
	ok(!stepper_open(&st, &opts, specs, n, &err), "%u sides: %s", n, err.msg);
	ok(!script_run(&s, &st, &r, &at, &log, &err), "it is run: %s", err.msg);
	ok(r.verdict == want, "%s against %s: %d", specs[0], specs[1], (int)r.verdict);
	for (size_t i = 0; i < r.findings.n; i++)
		told |= strstr(r.findings.v[i].words, words) != NULL;
	ok(told, "it says: %s", words);
	ok(strstr(strbuf_str(&log), "mkdir A") && strstr(strbuf_str(&log), "# state "),
	   "the log has operations and states");
	if (want == STEP_DIFFERENT)
		is_u(at, 2, "at the second operation");
	step_result_release(&r);
	stepper_close(&st);
	script_release(&s);
}

int main(void)
{
	test_differences();
	liar = side_reffs;
	liar.name = "liar";
	liar.op = lie;
	side_register(&liar);
	run((const char *const[]){ "reffs", "reffs" }, 2, STEP_SAME, "");
	run((const char *const[]){ "liar", "reffs" }, 2, STEP_DIFFERENT,
	    "mkdir B: liar fails with EIO; reffs returns 0");
	run((const char *const[]){ "reffs", "liar", "reffs" }, 3, STEP_DIFFERENT,
	    "a reference is at fault");
	run((const char *const[]){ "liar", "reffs", "reffs" }, 3, STEP_DIFFERENT,
	    "liar fails with EIO");
	add_side(&fibber, "fibber");
	fibber.op = fib;
	run((const char *const[]){ "reffs", "liar", "fibber" }, 3, STEP_DIFFERENT,
	    "there is no majority");
	run((const char *const[]){ "reffs", "liar", "liar", "reffs" }, 4, STEP_DIFFERENT,
	    "there is no majority");
	run((const char *const[]){ "liar", "reffs", "fibber", "reffs", "reffs" }, 5, STEP_DIFFERENT,
	    "fibber fails with EPERM");
	add_side(&other_root, "other-root");
	other_root.tree = show_other;
	add_side(&miscounts, "miscounts");
	miscounts.tree = show_miscounted;
	add_side(&opens_up, "opens-up");
	opens_up.tree = show_open;
	run((const char *const[]){ "other-root", "reffs" }, 2, STEP_SAME, "");
	run((const char *const[]){ "reffs", "other-root" }, 2, STEP_SAME, "");
	run((const char *const[]){ "miscounts", "reffs" }, 2, STEP_DIFFERENT,
	    "(miscounts, compared with reffs)");
	run((const char *const[]){ "opens-up", "reffs" }, 2, STEP_DIFFERENT, "mode is 0777");
	run((const char *const[]){ "reffs", "opens-up", "reffs" }, 3, STEP_DIFFERENT,
	    "the majority is with the target");
	run((const char *const[]){ "reffs", "opens-up", "miscounts" }, 3, STEP_DIFFERENT,
	    "there is no majority");
	return done_testing();
}
