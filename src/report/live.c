/* SPDX-License-Identifier: MIT */
/* live.c - loads a finding without a crash, and decides what an exported program compares. */
#include "report/live.h"

#include <stdio.h>

#include "check/op_history.h"
#include "report/shell.h"

static bool same_but_content(const struct tree *a, const struct tree *b)
{
	static const struct tree_opts all = { .dir_nlink = true };
	auto_tree_diff diff = { 0 };

	tree_diff(a, b, &all, &diff);
	return !any_of(i, diff.list.n, diff.list.v[i].kind != TREE_DIFF_CONTENT);
}

/*
 * Makes the expected tree with its content by the reference, unless the search began in another
 * state: bytes tell which workload wrote them, and the exported one is not that of the search.
 */
static bool make_whole(const struct view *v, bool no_reflink, struct tree *out)
{
	view_reference(v, v->c.workload.ops.n, no_reflink, out);
	return same_but_content(out, &v->expected);
}

static bool load_results(const struct view *v, struct live *l)
{
	auto_strbuf text = STRBUF_INIT;
	struct err ignored = ERR_INIT;
	long long seen, expected;

	if (store_text(&v->c, "results", &text, &ignored) ||
	    sscanf(strbuf_str(&text), "%lld %lld", &seen, &expected) != 2)
		return false;
	l->seen = seen;
	l->expected = expected;
	return v->c.workload.ops.n > 0;
}

void live_load(const struct view *v, struct live *out)
{
	static const struct tree_opts all = { .dir_nlink = true };

	*out = (struct live){ .kind = LIVE_NONE };
	if (!stored_case_live(&v->c))
		return;
	out->kind = LIVE_UNSEEN;
	if (load_results(v, out)) {
		out->kind = LIVE_RESULT;
		return;
	}
	if (!v->has_expected || !v->has_seen)
		return;
	tree_diff(&v->expected, &v->seen, &all, &out->diff);
	if (!out->diff.list.n)
		return;
	out->kind = LIVE_STATE;
	if (stored_case_has_start(&v->c) ||
	    (!make_whole(v, true, &out->whole) && !make_whole(v, false, &out->whole)))
		tree_clear(&out->whole);
}

void live_release(struct live *l)
{
	tree_diff_release(&l->diff);
	tree_release(&l->whole);
}

bool live_untold(const struct live *l, const struct stored_problem *p)
{
	bool result = strncmp(p->words, HISTORY_RESULT, strlen(HISTORY_RESULT)) == 0;

	return l->kind == LIVE_UNSEEN || p->kind != FINDING_LIVE ||
	       (l->kind == LIVE_STATE && result);
}

bool live_checksum(const struct live *l, const struct tree_entry *expected, struct strbuf *out)
{
	const struct tree_entry *e = l->whole.finished ? tree_find(&l->whole, expected->path)
						       : NULL;

	return e && shell_cksum(e, out);
}
