/* SPDX-License-Identifier: MIT */
/*
 * xfstest.c - a test in the form of the xfstests suite.
 *
 * dm-flakey can drop everything after a moment, and that is what the test does at the crash point:
 * states in which writes were reordered need more than it can give, and the test says so.
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

static void put_operations(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	size_t n = stored_case_live(&v->c) ? w->ops.n : min(w->ops.n, v->c.done);

	for (size_t i = 0; i < n; i++) {
		strbuf_adds(out, "# ");
		op_print(&w->ops.v[i], out);
		strbuf_addch(out, '\n');
		shell_op(w, i, SHELL_XFSTESTS, out);
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
		const char *path = v->c.problems.v[i].path;
		const struct tree_entry *e = v->has_expected ? tree_find(&v->expected, path) : NULL;

		if (!*path || shell_has_control(path))
			continue;
		strbuf_adds(test, "show ");
		shell_quote(test, path);
		strbuf_addch(test, '\n');
		if (e)
			shell_entry(e, golden);
		else
			strbuf_addf(golden, "%s is not there\n", path);
	}
}

static const char show_function[] =
	"show()\n{\n"
	"\tlocal line=$(find \"$SCRATCH_MNT/$1\" -maxdepth 0 -type d -printf 'd %m %U:%G' -o \\\n"
	"\t\t-printf '%y %m %U:%G %s bytes, %n links' 2>/dev/null)\n\n"
	"\tif [ -n \"$line\" ]; then\n\t\techo \"$line $1\"\n\telse\n"
	"\t\techo \"$1 is not there\"\n\tfi\n}\n\n";

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
	strbuf_adds(test, show_function);
	put_requirements(&v->c.workload, test);
	strbuf_adds(test, "\n_scratch_mkfs >>$seqres.full 2>&1\n"
			  "_require_metadata_journaling $SCRATCH_DEV\n");
	if (options && strncmp(v->c.target, "fuse", 4) != 0) {
		strbuf_adds(test, "MOUNT_OPTIONS=\"$MOUNT_OPTIONS -o \"");
		shell_quote(test, options + 1);
		strbuf_addch(test, '\n');
	}
	strbuf_adds(test, "_init_flakey\n_mount_flakey\n\n");
	put_operations(v, test);
	strbuf_adds(golden, "QA output created by NNN\n");
	strbuf_adds(test, "\n_flakey_drop_and_remount\n\n# What must be there is in the golden "
			  "output.\n");
	put_shown(v, test, golden);
	strbuf_adds(test, "\n_unmount_flakey\nstatus=0\nexit\n");
}
