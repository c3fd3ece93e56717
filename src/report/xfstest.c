/* SPDX-License-Identifier: MIT */
/*
 * xfstest.c - a test in the form of the xfstests suite.
 *
 * dm-flakey can drop everything after a moment, and that is what the test does at the crash point:
 * states in which writes were reordered need more than it can give, and the test says so.
 *
 * What must be there after the crash is not written down: the test looks at the files itself, from
 * the operation on that made the promise until the crash, and what it finds after the crash must be
 * one of the things it saw.
 */
#include "report/report.h"
#include "report/shell.h"

static bool uses(const struct workload *w, const char *name)
{
	for (size_t i = 0; i < w->ops.n; i++)
		if (streq(w->ops.v[i].def->name, name))
			return true;
	return false;
}

static void put_requirements(const struct workload *w, struct strbuf *out)
{
	static const struct {
		const char *op, *line;
	} needs[] = {
		{ "setxattr", "_require_attrs" },
		{ "removexattr", "_require_attrs" },
		{ "falloc", "_require_xfs_io_command falloc" },
		{ "copy_file_range", "_require_xfs_io_command copy_range" },
		{ "reflink", "_require_cp_reflink" },
		{ "mknod", "_require_mknod" },
		{ "symlink", "_require_symlinks" },
	};

	strbuf_adds(out, "_require_scratch\n_require_dm_target flakey\n");
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (uses(w, needs[i].op))
			strbuf_addf(out, "%s\n", needs[i].line);
}

/* The operation from whose end on a problem's files were promised; 0: no promise, so any will do.
 */
static size_t promised_from(const struct stored_problem *p)
{
	const char *at = strstr(p->promise, "(operation ");
	unsigned n = 0;

	return at && sscanf(at, "(operation %u)", &n) == 1 ? (size_t)n + 1 : 0;
}

static void put_path(const char *path, struct strbuf *out)
{
	strbuf_addch(out, ' ');
	shell_quote(out, path);
}

/* One file with several names must be looked at under all of them at once. */
static void put_paths(const struct view *v, const struct stored_problem *p, struct strbuf *out)
{
	const struct tree *trees[] = { &v->expected, &v->seen };

	put_path(p->path, out);
	if (p->kind != FINDING_LOST && p->kind != FINDING_BOTH)
		return;
	for (size_t t = 0; t < ARRAY_SIZE(trees); t++)
		for (size_t i = 0; i < trees[t]->entries.n; i++) {
			const char *path = trees[t]->entries.v[i].path;
			bool twice = t && v->has_expected && tree_find(&v->expected, path);

			if (*path && !twice && !streq(path, p->path) && view_about(v, path) &&
			    !shell_has_control(path))
				put_path(path, out);
		}
}

static bool is_shown(const struct stored_problem *p)
{
	return *p->path && !shell_has_control(p->path);
}

/* After `done` operations: each problem's files, if they are promised by now. */
static void put_remember(const struct view *v, size_t done, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		if (!is_shown(p) || done < promised_from(p))
			continue;
		strbuf_addf(out, "remember %zu", i);
		put_paths(v, p, out);
		strbuf_addch(out, '\n');
	}
}

static void put_operations(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	size_t n = stored_case_live(&v->c) ? w->ops.n : min(w->ops.n, v->c.done);

	put_remember(v, 0, out);
	for (size_t i = 0; i < n; i++) {
		strbuf_adds(out, "# ");
		op_print(&w->ops.v[i], out);
		strbuf_addch(out, '\n');
		shell_op(w, i, SHELL_XFSTESTS, out);
		put_remember(v, i + 1, out);
	}
	if (n < w->ops.n)
		strbuf_adds(out, "# The crash came before the rest:\n");
	for (size_t i = n; i < w->ops.n; i++) {
		strbuf_adds(out, "# ");
		op_print(&w->ops.v[i], out);
		strbuf_addch(out, '\n');
	}
}

static void put_warning(const struct view *v, struct strbuf *out)
{
	if (v->second.has_trace)
		strbuf_adds(out,
			    "#\n# dm-flakey cannot cut the power a second time, while the file "
			    "system recovers, so\n# this test does not show it; crash.img has "
			    "the state itself.\n");
	if (!v->crash.has_state || !(v->crash.state.lost.n + v->crash.state.torn.n))
		return;
	strbuf_adds(
		out,
		"#\n# The state that was found lost some of the writes that were in flight and\n"
		"# kept others. dm-flakey drops everything from one moment on, so this test may\n"
		"# pass on a kernel that has the bug; crash.img has the state itself.\n");
}

/* Only what the finding is about: the rest may be lost by right. */
static void put_shown(const struct view *v, struct strbuf *test, struct strbuf *golden)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		if (!is_shown(p))
			continue;
		strbuf_addf(test, "compare %zu", i);
		put_paths(v, p, test);
		strbuf_addch(test, '\n');
		strbuf_addf(golden, "%s is as it was\n", p->path);
	}
}

static const char functions[] =
	"# What can be seen of some paths, in one line: type, mode, owner, size, links, target,\n"
	"# attributes, data. The number of allocated blocks only if this test is about it.\n"
	"facts()\n{\n"
	"\tlocal path\n\n"
	"\tfor path; do\n"
	"\t\techo -n \"$path: \"\n"
	"\t\tfind \"$SCRATCH_MNT/$path\" -maxdepth 0 -type d -printf 'd %m %U:%G' -o \\\n"
	"\t\t\t-printf \"%y %m %U:%G %s bytes, %n links, %l$blocks\" 2>/dev/null ||\n"
	"\t\t\techo -n 'not there'\n"
	"\t\tif [ -f \"$SCRATCH_MNT/$path\" ] && [ ! -L \"$SCRATCH_MNT/$path\" ]; then\n"
	"\t\t\techo -n \" $(md5sum <\"$SCRATCH_MNT/$path\")\"\n"
	"\t\tfi\n"
	"\t\t[ -z \"$GETFATTR_PROG\" ] || [ ! -e \"$SCRATCH_MNT/$path\" ] ||\n"
	"\t\t\techo -n \" $($GETFATTR_PROG -h -d -m '^(user|trusted)\\.' -e hex \\\n"
	"\t\t\t\t--absolute-names \"$SCRATCH_MNT/$path\" 2>/dev/null |\n"
	"\t\t\t\tsed '/^#/d; /^$/d' | sort | tr '\\n' ' ')\"\n"
	"\t\techo -n '; '\n"
	"\tdone\n"
	"\techo\n}\n\n"
	"# remember NUMBER PATH...: so it may be after the crash\n"
	"remember()\n{\n"
	"\tlocal number=$1\n\n"
	"\tshift\n"
	"\tfacts \"$@\" >>$tmp.$number\n}\n\n"
	"# compare NUMBER PATH...\n"
	"compare()\n{\n"
	"\tlocal number=$1\n\n"
	"\tshift\n"
	"\tif grep -qxF -e \"$(facts \"$@\")\" $tmp.$number; then\n"
	"\t\techo \"$1 is as it was\"\n"
	"\telse\n"
	"\t\techo \"$1 is not as it was:\"\n"
	"\t\tfacts \"$@\"\n"
	"\t\techo 'It could be:'\n"
	"\t\tsort -u $tmp.$number\n"
	"\tfi\n}\n\n";

static bool about_blocks(const struct view *v)
{
	for (size_t i = 0; i < v->c.problems.n; i++)
		if (v->c.problems.v[i].kind == FINDING_BLOCKS)
			return true;
	return false;
}

void export_xfstest(const struct view *v, struct strbuf *test, struct strbuf *golden)
{
	const char *options = strchr(v->c.target, ',');

	strbuf_adds(test,
		    "#! /bin/bash\n# SPDX-License-Identifier: GPL-2.0\n#\n# FS QA Test NNN\n#\n"
		    "# After a power failure:\n#\n");
	shell_finding(v, test);
	put_warning(v, test);
	strbuf_adds(test, "#\n. ./common/preamble\n_begin_fstest auto quick log\n\n"
			  "_cleanup()\n{\n\t_cleanup_flakey\n\tcd /\n\trm -r -f $tmp.*\n}\n\n"
			  ". ./common/filter\n. ./common/attr\n. ./common/reflink\n"
			  ". ./common/dmflakey\n\n"
			  "skip()\n{\n\t_notrun \"no command for: $1\"\n}\n\n");
	strbuf_addf(test, "blocks=%s\n", about_blocks(v) ? "', %b blocks'" : "");
	strbuf_adds(test, functions);
	put_requirements(&v->c.workload, test);
	strbuf_adds(test, "\n_scratch_mkfs >>$seqres.full 2>&1\n"
			  "_require_metadata_journaling $SCRATCH_DEV\n");
	if (options) {
		strbuf_adds(test, "MOUNT_OPTIONS=\"$MOUNT_OPTIONS -o \"");
		shell_quote(test, options + 1);
		strbuf_addch(test, '\n');
	}
	strbuf_adds(test, "_init_flakey\n_mount_flakey\n\n");
	put_operations(v, test);
	strbuf_adds(golden, "QA output created by NNN\n");
	strbuf_adds(test, "\n_flakey_drop_and_remount\n\n# Each must be as it was at some "
			  "time since it was promised.\n");
	put_shown(v, test, golden);
	strbuf_adds(test, "\n_unmount_flakey\nstatus=0\nexit\n");
}
