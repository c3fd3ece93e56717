/* SPDX-License-Identifier: MIT */
/*
 * xfstest.c - exports a test in the form of the xfstests suite.
 *
 * dm-flakey can drop all writes after a moment, and the test does that at the crash point: states
 * in which writes were reordered need more, and the test says so.
 *
 * The test does not contain the expected content: it looks at the files itself, from the operation
 * that made the promise until the crash, and what it finds after the crash must be one of the
 * versions that it saw. If the problem has no path, the test does the same as run/attempt.c: it
 * uses the file system, runs fsck, listens to the kernel. A test whose result is unknown does not
 * pass: it is "not run", in the words of the suite.
 */
#include "report/report.h"
#include "report/reproduce_sh.h"
#include "report/shell.h"

static const struct {
	const char *line; /* a line that a test must have; NULL: none */
} needs[OP_COUNT] = {
#define XFSTESTS(text, ...)				       __VA_ARGS__
#define XFSTESTS_BY(function, ...)			       __VA_ARGS__
#define XFSTESTS_NONE					       NULL
#define OP(name, help, args, is, weight, shell, xfstests, ...) [OP_ID(name)] = { xfstests },
#include "workload/ops.def"
};

/* Puts each required line once, in the order of the operations. */
static void put_requirements(const struct workload *w, struct strbuf *out)
{
	const char *told[OP_COUNT];
	size_t n = 0;

	strbuf_adds(out, "_require_scratch\n_require_dm_target flakey\n");
	for (size_t id = 0; id < OP_COUNT; id++) {
		const char *line = needs[id].line;
		bool used = false;

		for (size_t i = 0; i < w->ops.n; i++)
			used |= op_id(w->ops.v[i].def) == id;
		for (size_t i = 0; i < n && line; i++)
			used &= !streq(told[i], line);
		if (!line || !used)
			continue;
		told[n++] = line;
		strbuf_addf(out, "%s\n", line);
	}
}

/* Returns the operation after which a problem's files were promised; 0 if there is no promise. */
static size_t promised_from(const struct stored_problem *p)
{
	const char *at = strstr(p->promise, "(operation ");
	unsigned n = 0;

	return at && sscanf(at, "(operation %u)", &n) == 1 ? (size_t)n + 1 : 0;
}

/* Puts the paths of a problem: one file with several names must be looked at under all of them. */
static void put_paths(const struct stored_problem *p, struct strbuf *out)
{
	auto_words names = { 0 };

	script_names(p, &names);
	for (size_t i = 0; i < names.n; i++)
		if (!shell_has_control(names.v[i]))
			shell_addf(out, " %s", names.v[i]);
}

/* True if the problem shows in the facts of a path. */
static bool is_shown(const struct stored_problem *p)
{
	if (!*p->path || shell_has_control(p->path))
		return false;
	switch (p->kind) {
	case FINDING_MISSING:
	case FINDING_LOST:
	case FINDING_BOTH:
	case FINDING_BACK:
	case FINDING_NEVER:
	case FINDING_TYPE:
	case FINDING_SIZE:
	case FINDING_CONTENT:
	case FINDING_MODE:
	case FINDING_OWNER:
	case FINDING_NLINK:
	case FINDING_XATTR:
	case FINDING_TARGET:
	case FINDING_RDEV:
	case FINDING_BLOCKS:
	case FINDING_UNREADABLE:
	case FINDING_DOUBLED:
		return true;
	default:
		return false;
	}
}

/*
 * True if the test can show the problem. Others need a crash within an operation or during
 * recovery, which dm-flakey cannot do, or times, or commands of the user.
 */
static bool is_told(const struct view *v, const struct stored_problem *p)
{
	if (v->second.has_trace)
		return false;
	return is_shown(p) || p->kind == FINDING_UNMOUNTABLE || p->kind == FINDING_UNUSABLE ||
	       p->kind == FINDING_FSCK || p->kind == FINDING_KERNEL_LOG;
}

static bool is_used(const struct view *v)
{
	return script_has(v, FINDING_UNUSABLE) || script_has(v, FINDING_KERNEL_LOG) ||
	       script_has(v, FINDING_UNMOUNTABLE);
}

/* Remembers each problem's files after `done` operations, if they are promised by then. */
static void put_remember(const struct view *v, size_t done, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		if (!is_shown(p) || done < promised_from(p))
			continue;
		strbuf_addf(out, "remember %zu", i);
		put_paths(p, out);
		strbuf_addch(out, '\n');
	}
}

static void put_operations(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	size_t n = stored_case_live(&v->c) ? w->ops.n : min(w->ops.n, v->c.done);

	put_remember(v, 0, out);
	for (size_t i = 0; i < n; i++) {
		shell_comment(&w->ops.v[i], out);
		shell_op(w, i, SHELL_XFSTESTS, out);
		put_remember(v, i + 1, out);
	}
	if (n < w->ops.n)
		strbuf_adds(out, "# The crash came before the rest:\n");
	for (size_t i = n; i < w->ops.n; i++)
		shell_comment(&w->ops.v[i], out);
}

static void put_warning(const struct view *v, struct strbuf *out)
{
	if (v->second.has_trace)
		strbuf_adds(out, "#\n# dm-flakey cannot cut the power a second time, while the "
				 "file system recovers, so\n# this test does not show it; "
				 "crash.img has the state itself.\n");
	if (!v->crash.has_state || !(v->crash.state.lost.n + v->crash.state.torn.n))
		return;
	strbuf_adds(
		out,
		"#\n# The state that was found lost some of the writes that were in flight and\n"
		"# kept others. dm-flakey drops everything from one moment on, so this test may\n"
		"# pass on a kernel that has the bug; crash.img has the state itself.\n");
}

/* Compares only the files that the finding is about: other files may be lost. */
static void put_shown(const struct view *v, struct strbuf *test, struct strbuf *golden)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		if (!is_shown(p))
			continue;
		strbuf_addf(test, "compare %zu", i);
		put_paths(p, test);
		strbuf_addch(test, '\n');
		strbuf_addf(golden, "%s is as it was\n", p->path);
	}
}

/* Puts the functions that reproduce.sh has, too, and the place where they work. */
static void put_functions(const struct view *v, struct strbuf *out)
{
	strbuf_addf(out, "shows=0\nblocks=%s\n",
		    script_has(v, FINDING_BLOCKS) ? "', %b blocks'" : "");
	strbuf_adds(out, xfstest_facts);
	strbuf_adds(out, xfstest_functions);
	if (!is_used(v))
		return;
	strbuf_adds(out, "work=$tmp.work\nmkdir -p $work\nignored=lost+found\ntab=$'\\t'\n\n");
	if (script_has(v, FINDING_KERNEL_LOG))
		shell_kernel_log(v, out);
	else
		strbuf_adds(out, "listen()\n{\n\t:\n}\n\n");
	strbuf_adds(out, shell_use);
}

static void put_step(const char *condition, const char *good, const char *bad, struct strbuf *test,
		     struct strbuf *golden)
{
	strbuf_addf(test, "if %s; then\n\techo '%s'\nelse\n\tshows=1\n\techo '%s'\nfi\n", condition,
		    good, bad);
	strbuf_addf(golden, "%s\n", good);
}

/* Puts the same steps as in reproduce.sh, in the same order. */
static void put_steps(const struct view *v, struct strbuf *test, struct strbuf *golden)
{
	bool again = script_has(v, FINDING_UNMOUNTABLE), fsck = script_has(v, FINDING_FSCK);

	if (fsck || again)
		strbuf_adds(test, "_unmount_flakey\n");
	if (fsck)
		put_step("_check_scratch_fs $FLAKEY_DEV", "fsck has nothing to say",
			 "fsck complains", test, golden);
	if (fsck || again)
		strbuf_adds(test,
			    "_mount_flakey || _fail 'it can be mounted once, and not again'\n");
	if (is_used(v)) {
		strbuf_adds(test, "cd $SCRATCH_MNT\nuse >>$seqres.full 2>&1\ncd /\n");
		put_step("[ $unusable = 1 ]", "it can be used", "it cannot be used", test, golden);
	}
	strbuf_adds(test, "_unmount_flakey\n");
	if (script_has(v, FINDING_KERNEL_LOG)) {
		strbuf_adds(test, "kernel_complained >>$seqres.full\ncomplained=$?\n"
				  "[ $complained != 2 ] || _notrun 'the log of the kernel is not "
				  "there, or not whole'\n");
		put_step("[ $complained = 1 ]", "the kernel has nothing to say",
			 "the kernel complains", test, golden);
	}
}

/* Names problems that the test cannot show: it must not pass then. */
static void put_untold(const struct view *v, struct strbuf *out)
{
	bool any = false;

	for (size_t i = 0; i < v->c.problems.n; i++) {
		if (is_told(v, &v->c.problems.v[i]))
			continue;
		strbuf_adds(out, any ? "" : "\n# Of this the test can tell nothing:\n");
		shell_notef(out, "#   %s\n", v->c.problems.v[i].words);
		any = true;
	}
	if (any)
		strbuf_adds(out,
			    "[ $shows = 1 ] || _notrun 'it cannot be told; see reproduce.sh'\n");
}

void export_xfstest(const struct view *v, struct strbuf *test, struct strbuf *golden)
{
	const char *options = strchr(v->c.target, ',');

	strbuf_adds(test,
		    "#! /bin/bash\n# SPDX-License-Identifier: GPL-2.0\n#\n# FS QA Test NNN\n#\n");
	shell_strange(v->c.ours, "# ", test);
	strbuf_adds(test, "# After a power failure:\n#\n");
	shell_finding(v, test);
	put_warning(v, test);
	strbuf_adds(test, xfstest_head);
	put_functions(v, test);
	put_requirements(&v->c.workload, test);
	strbuf_adds(test, "\n_scratch_mkfs >>$seqres.full 2>&1\n"
			  "_require_metadata_journaling $SCRATCH_DEV\n");
	if (options)
		shell_addf(test, "MOUNT_OPTIONS=\"$MOUNT_OPTIONS -o \"%s\n", options + 1);
	strbuf_adds(test, "_init_flakey\n_mount_flakey\n\n");
	put_operations(v, test);
	strbuf_adds(golden, "QA output created by NNN\n");
	strbuf_addch(test, '\n');
	if (script_has(v, FINDING_KERNEL_LOG))
		strbuf_adds(test, "dev=$(realpath $FLAKEY_DEV)\nfollow_log\n");
	strbuf_adds(test, "_flakey_drop_and_remount || _fail 'it cannot be mounted'\n\n"
			  "# Each must be as it was at some time since it was promised.\n");
	put_shown(v, test, golden);
	put_steps(v, test, golden);
	put_untold(v, test);
	strbuf_adds(test, "\nstatus=0\nexit\n");
}

/* ---- a workload that found nothing yet ---- */

/* The paths that a workload uses, each once. */
static void collect_paths(const struct workload *w, struct words *out)
{
	for (size_t i = 0; i < w->ops.n; i++)
		for (size_t k = 0; w->ops.v[i].def->args[k].kind != ARG_END; k++) {
			enum arg_kind kind = w->ops.v[i].def->args[k].kind;
			const char *text = w->ops.v[i].args[k].text;

			if ((kind != ARG_PATH && kind != ARG_FILE) ||
			    w->ops.v[i].args[k].is_handle ||
			    any_of(n, out->n, streq(out->v[n], text)))
				continue;
			vec_push(out, xstrdup(text));
		}
}

static bool is_entry(const char *path, const char *dir)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 1;

	return !streq(path, ".") && strlen(dir) == n && memcmp(slash ? path : ".", dir, n) == 0;
}

static void put_kept(const char *kind, const char *path, struct strbuf *out)
{
	strbuf_addf(out, "\tpromised %s", kind);
	shell_addf(out, " %s", path);
	strbuf_addch(out, '\n');
}

/* Puts what an operation promised of the paths of its workload. */
static void put_promised(const struct op *op, const struct words *paths, struct strbuf *out)
{
	enum op_promise promise = op->def->promise;
	const char *path = op->args[0].text;
	uint64_t from, to;

	if (promise == OP_PROMISES_ALL) {
		for (size_t i = 0; i < paths->n; i++)
			put_kept("all", paths->v[i], out);
	} else if (!op_persists(op) || op->args[0].is_handle) {
		return;
	} else if (promise == OP_PROMISES_OBJECT) {
		put_kept("all", path, out);
		for (size_t i = 0; i < paths->n; i++)
			if (is_entry(paths->v[i], path))
				put_kept("entry", paths->v[i], out);
	} else if (promise == OP_PROMISES_DATA) {
		put_kept("data", path, out);
	} else if (op_range(op, &from, &to)) {
		strbuf_adds(out, "\tpromised bytes");
		shell_addf(out, " %s", path);
		strbuf_addf(out, " %llu %llu\n", llu(from), llu(to - from));
	} else {
		put_kept("entry", path, out);
	}
}

/* Whether an operation persists, and changes nothing that one before it persisted. */
static bool is_point(const struct op *op)
{
	return op->def->promise && !(op->def->flags & OP_DATA);
}

/* Puts what the persistence points at the end of a workload promised. */
static void put_kept_at_end(const struct workload *w, struct strbuf *out)
{
	auto_words paths = { 0 };

	collect_paths(w, &paths);
	for (size_t i = w->ops.n; i-- > 0;) {
		put_promised(&w->ops.v[i], &paths, out);
		if (!is_point(&w->ops.v[i]) || !i || !is_point(&w->ops.v[i - 1]))
			break;
	}
}

void export_generated_xfstest(const struct workload *w, const char *number, struct strbuf *test,
			      struct strbuf *golden)
{
	auto_strbuf kept = STRBUF_INIT;

	strbuf_addf(test,
		    "#! /bin/bash\n# SPDX-License-Identifier: GPL-2.0\n#\n# FS QA Test %s\n#\n",
		    number);
	shell_notef(test, "# After a crash, is there what the end of this workload promised? %s\n",
		    w->name);
	strbuf_adds(test, xfstest_head);
	strbuf_adds(test, "blocks=\n");
	strbuf_adds(test, xfstest_facts);
	strbuf_adds(test, xfstest_promised);
	put_requirements(w, test);
	strbuf_adds(test, "\n_scratch_mkfs >>$seqres.full 2>&1\n"
			  "_require_metadata_journaling $SCRATCH_DEV\n"
			  "_init_flakey\n_mount_flakey\n\n");
	for (size_t i = 0; i < w->ops.n; i++) {
		shell_comment(&w->ops.v[i], test);
		shell_op(w, i, SHELL_XFSTESTS, test);
	}
	put_kept_at_end(w, &kept);
	strbuf_addf(test, "\nkept()\n{\n%s}\n\n", kept.len ? strbuf_str(&kept) : "\t:\n");
	strbuf_adds(test, "kept >$tmp.before\n"
			  "_flakey_drop_and_remount || _fail 'it cannot be mounted'\n"
			  "kept >$tmp.after\n"
			  "diff $tmp.before $tmp.after && echo 'all is as it was'\n"
			  "_unmount_flakey\n\nstatus=0\nexit\n");
	strbuf_addf(golden, "QA output created by %s\nall is as it was\n", number);
}
