/* SPDX-License-Identifier: MIT */
/*
 * workload_sh.c - exports the workload as a shell script. For a finding without a crash, the script
 * tells whether the problem shows.
 */
#include "report/live.h"
#include "report/report.h"
#include "report/shell.h"

/* Gives the name of a difference for `value` of shell_functions, and the expected value, if any. */
static bool expected_value(const struct tree_difference *d, const char **what, struct strbuf *value)
{
	static const enum finding_kind kinds[TREE_DIFF_KIND_END] = {
		[TREE_DIFF_TYPE] = FINDING_TYPE,	   [TREE_DIFF_MODE] = FINDING_MODE,
		[TREE_DIFF_OWNER] = FINDING_OWNER,	   [TREE_DIFF_SIZE] = FINDING_SIZE,
		[TREE_DIFF_TARGET] = FINDING_TARGET,	   [TREE_DIFF_RDEV] = FINDING_RDEV,
		[TREE_DIFF_XATTR_MISSING] = FINDING_XATTR, [TREE_DIFF_XATTR_EXTRA] = FINDING_XATTR,
		[TREE_DIFF_XATTR_VALUE] = FINDING_XATTR,
	};

	if (d->kind == TREE_DIFF_NLINK) {
		*what = "links";
		strbuf_addu(value, d->expected->nlink);
		return *d->path; /* only mkfs knows the number of links that the root begins with */
	}
	/* The script writes other content than the workload: content tells nothing. */
	return d->expected && kinds[d->kind] &&
	       shell_value(kinds[d->kind], d->expected, what, value);
}

static void put_live_difference(const struct tree_difference *d, struct strbuf *out)
{
	auto_strbuf value = STRBUF_INIT;
	const char *what = "";

	if (d->kind == TREE_DIFF_MISSING || d->kind == TREE_DIFF_EXTRA) {
		shell_addf(out, d->kind == TREE_DIFF_MISSING ? "! there %s" : "there %s", d->path);
	} else if (expected_value(d, &what, &value)) {
		shell_addf(out, "differs %s %s %s", what, d->path, strbuf_str(&value));
	} else {
		strbuf_adds(out, "(exit 2) # workload.c may tell");
	}
	strbuf_addch(out, '\n');
	shell_put_judge(out, "$?", d->words);
}

/* Judges the last operation. A command tells only its success, and many do more than one call. */
static void put_live_result(const struct view *v, const struct live *l, struct strbuf *out)
{
	if ((l->seen < 0) == (l->expected < 0) || !shell_is_one_call(&vec_last(&v->c.workload.ops)))
		strbuf_adds(out, "(exit 2) # workload.c can tell\n");
	else
		strbuf_addf(out, "[ \"$last\" %s 0 ]\n", l->expected < 0 ? "=" : "!=");
	strbuf_adds(out, "judge $? 'the last operation'\n");
}

/* Puts problems that show neither in the last operation nor in the directory. */
static void put_live_rest(const struct view *v, const struct live *l, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++)
		if (live_untold(l, &v->c.problems.v[i]))
			shell_put_judge(out, "2", v->c.problems.v[i].words);
}

static void put_live_end(const struct view *v, const struct live *l, struct strbuf *out)
{
	auto_strbuf target = STRBUF_INIT;

	strbuf_adds(out, "last=$?\n\n");
	if (l->kind == LIVE_RESULT)
		put_live_result(v, l, out);
	for (size_t i = 0; i < l->diff.list.n; i++)
		put_live_difference(&l->diff.list.v[i], out);
	put_live_rest(v, l, out);
	/* On another file system, or with other options, success proves nothing. */
	shell_clean(&target, v->c.target);
	shell_addf(out,
		   "printf 'DIR is on %%s; it was found on %%s\\n' \"$(stat -f -c %%T .)\" %s\n"
		   "[ \"$left_out\" = 0 ] || exit 2 # what was left out might be why\n"
		   "finish\n",
		   strbuf_str(&target));
}

void export_workload_sh(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	auto_live l;

	live_load(v, &l);
	strbuf_adds(out, "#!/bin/sh\n");
	shell_strange(v->c.ours, "# ", out);
	strbuf_adds(
		out,
		"# workload.sh DIR: does what the workload did, in DIR, an empty directory of a "
		"file\n# system like the one below, mounted with the same options. What it "
		"writes differs:\n# the bytes say which operation wrote them, no more.\n#\n");
	shell_finding(v, out);
	strbuf_adds(out, l.kind == LIVE_NONE ? "#\n# It does not tell whether the problem shows: "
					       "reproduce.sh does.\n"
					     : "# Exit status: 1 if the problem shows, 0 if all is "
					       "as it should be, 2 if it\n# cannot be told.\n");
	strbuf_adds(out, workload_head);
	if (l.kind != LIVE_NONE) {
		strbuf_adds(out, shell_judge);
		strbuf_adds(out, shell_functions);
		strbuf_adds(out, workload_live);
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		strbuf_addf(out, "# %zu: %s", i, w->ops.v[i].setup ? "setup " : "");
		op_print(&w->ops.v[i], out);
		strbuf_addch(out, '\n');
		shell_op(w, i, SHELL_PLAIN, out);
		if (!stored_case_live(&v->c) && i + 1 == v->c.done)
			strbuf_adds(out, "# ---- the power fails about here ----\n");
	}
	if (l.kind != LIVE_NONE)
		put_live_end(v, &l, out);
}
