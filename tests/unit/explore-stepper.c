/* SPDX-License-Identifier: MIT */
/* Which differences are declared, and that one side in the wrong is noticed, and which. */
#include <errno.h>

#include "explore/script.h"
#include "tap.h"

static const struct op *parse(struct workload *w, const char *line)
{
	struct err err = ERR_INIT;

	ok(!workload_add_line(w, line, &err), "%s", line);
	return &w->ops.v[w->ops.n - 1];
}

static void test_differences(void)
{
	const struct differences *ext4 = differences_of("ext4"), *xfs = differences_of("xfs"),
				 *btrfs = differences_of("btrfs"), *none = differences_of("newfs");
	struct workload w;
	struct reffs_opts opts;

	workload_init(&w);
	const struct op *mkdir = parse(&w, "mkdir A");
	ok(differences_excuse(none, mkdir, -ENOSPC) != NULL, "any may be full");
	ok(!differences_excuse(none, mkdir, -EIO), "none may fail to read");
	ok(!differences_excuse(none, mkdir, 0), "success needs no excuse");
	const struct op *dwrite = parse(&w, "dwrite f 1 1");
	ok(differences_excuse(ext4, dwrite, -EINVAL) && !differences_excuse(none, dwrite, -EINVAL),
	   "alignment is declared for file systems that are known");
	ok(!differences_excuse(ext4, mkdir, -EINVAL), "and for direct I/O only");
	const struct op *rename = parse(&w, "rename a b");
	ok(differences_same_failure(rename, -EEXIST, -ENOTEMPTY), "a directory that is not empty");
	ok(!differences_same_failure(rename, -EEXIST, -EINVAL), "is not everything");
	ok(!differences_same_failure(mkdir, -EEXIST, -ENOTEMPTY), "nor for everyone");
	const struct op *whiteout = parse(&w, "rename a b whiteout");
	ok(differences_part(xfs, ext4, whiteout) && differences_part(ext4, xfs, whiteout),
	   "a whiteout has another group on xfs than on ext4");
	ok(!differences_part(xfs, ext4, rename) && !differences_part(xfs, xfs, whiteout) &&
		   !differences_part(ext4, btrfs, whiteout),
	   "other renames do not differ, nor do file systems of the same kind");
	const struct differences *fuse = differences_of("fuse");
	ok(differences_excuse(fuse, whiteout, -EINVAL) &&
		   !differences_excuse(fuse, rename, -EINVAL) &&
		   !differences_excuse(fuse, whiteout, -EIO) &&
		   !differences_excuse(ext4, whiteout, -EINVAL),
	   "a FUSE server need not know whiteouts, and that is all");
	const struct op *unshare = parse(&w, "falloc f unshare 0 1");
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
	workload_release(&w);
}

/* A side that is wrong in one thing: it says that mkdir failed when it did not. */
static struct side_ops liar;

static int64_t lie(struct side *s, size_t i)
{
	int64_t result = side_reffs.op(s, i);

	return i == 1 && result == 0 ? -EIO : result;
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
	return done_testing();
}
