/* SPDX-License-Identifier: MIT */
/* script_problem.c - the part of reproduce.sh that tells whether a problem shows. */
#include "report/reproduce_sh.h"
#include "report/shell.h"

/* ---- a path ---- */

void script_names(const struct stored_problem *p, struct words *out)
{
	bool lost = p->kind == FINDING_LOST, both = p->kind == FINDING_BOTH;
	const char *at = lost ? FINDING_LOST_AT : FINDING_BOTH_AT;
	const char *joint = lost ? FINDING_LOST_JOINT : FINDING_BOTH_JOINT;

	vec_push(out, xstrdup(p->path));
	if (!(lost || both) || strncmp(p->words, at, strlen(at)) != 0)
		return;
	for (const char *name = p->words + strlen(at), *end; *name; name = end) {
		end = strstr(name, joint);
		auto_free char *text = end ? xmemdupz(name, (size_t)(end - name)) : xstrdup(name);

		end = end ? end + strlen(joint) : name + strlen(name);
		/* Words that are too long are cut, and so may be a name in them. */
		if (!streq(text, p->path) && !(!*end && strstr(text, "...")))
			vec_push(out, steal(text));
	}
}

/* Compares the facts of the path, which show the problem only if seen and expected ones differ. */
static void put_facts(const struct view *v, const char *path, struct strbuf *out)
{
	const struct tree_entry *e = tree_find(&v->seen, path), *x = tree_find(&v->expected, path);
	auto_strbuf is = STRBUF_INIT, was = STRBUF_INIT;

	if (e)
		shell_facts(e, &is);
	if (x)
		shell_facts(x, &was);
	if (streq(strbuf_str(&is), strbuf_str(&was))) {
		strbuf_adds(out, "(exit 2)");
		return;
	}
	shell_addf(out, "facts_are %s %s %s", path, strbuf_str(&is), strbuf_str(&was));
}

/* ---- the whole tree ---- */

static bool same_listing(const struct view *v, const struct tree *a, const struct tree *b)
{
	auto_strbuf x = STRBUF_INIT, y = STRBUF_INIT;

	shell_listing(v, a, &x);
	shell_listing(v, b, &y);
	return streq(strbuf_str(&x), strbuf_str(&y));
}

/* Makes the tree after the operation that was under way; false if it is unknown. */
static bool done_wholly(const struct view *v, struct tree *out)
{
	static const struct tree_opts all = { .dir_nlink = true };
	auto_tree_diff diff = { 0 };
	size_t op = view_under_way(v);

	for (size_t i = 0; i <= op; i++)
		if (op >= v->c.workload.ops.n || v->c.workload.ops.v[i].def->flags & OP_COMMAND)
			return false;
	view_reference(v, op, false, out);
	tree_diff(out, &v->expected, &all, &diff);
	if (diff.list.n)
		return false;
	view_reference(v, op + 1, false, out);
	return true;
}

/*
 * Compares the whole tree. After an operation that was not atomic, it is neither the expected tree,
 * which is the one before it, nor the one after it; after one that returned, it is not the expected
 * one. Only the words of a dump are known.
 */
static void put_tree(const struct view *v, enum finding_kind kind, struct strbuf *out)
{
	auto_tree after = TREE_INIT;
	bool with_after = kind == FINDING_HALF_DONE && done_wholly(v, &after);

	if (v->c.dump || !v->has_seen || !v->has_expected ||
	    same_listing(v, &v->seen, &v->expected) ||
	    (with_after && same_listing(v, &v->seen, &after))) {
		strbuf_adds(out, "(exit 2)");
		return;
	}
	strbuf_adds(out, "tree_is_as_found <<'END_OF_LISTING'\n");
	shell_listing(v, &v->seen, out);
	if (with_after) {
		strbuf_adds(out, "----\n");
		shell_listing(v, &after, out);
	}
	strbuf_adds(out, "END_OF_LISTING");
}

/* ---- times ---- */

/* Returns the end of the last ": WHAT is " of the words, as a path may have it, too; or NULL. */
static const char *after_last(const char *words, const char *what)
{
	const char *last = NULL;

	for (const char *p = words; (p = strstr(p, what)); p++)
		last = p + strlen(what);
	return last;
}

static void put_number(const char *p, struct strbuf *out)
{
	size_t n = strspn(p, "-.0123456789");
	auto_free char *number = xmemdupz(p, n);

	shell_addf(out, " %s", number);
}

/* Compares the time in "foo: mtime is 1704067201.000000000, was 1100000000.000000000". */
static void put_time(const struct stored_problem *p, struct strbuf *out)
{
	const char *m = after_last(p->words, ": mtime is "),
		   *c = after_last(p->words, ": ctime is ");
	const char *seen = m > c ? m : c, *had = seen ? strstr(seen, ", was ") : NULL;

	if (!seen || !had) {
		strbuf_adds(out, "(exit 2)");
		return;
	}
	shell_addf(out, "time_is %s %s", seen == m ? "mtime" : "ctime", p->path);
	put_number(seen, out);
	put_number(had + strlen(", was "), out);
}

/* ---- a problem ---- */

void script_condition(const struct view *v, const struct stored_problem *p, struct strbuf *out)
{
	const struct tree_entry *e = v->has_seen ? tree_find(&v->seen, p->path) : NULL;
	auto_strbuf value = STRBUF_INIT;
	const char *what = "", *word = NULL;

	switch (p->kind) {
	case FINDING_MISSING:
	case FINDING_LOST:
		word = "missing";
		break;
	case FINDING_BOTH:
	case FINDING_BACK:
	case FINDING_NEVER:
		word = "there";
		break;
	case FINDING_NLINK:
		word = "miscounted";
		break;
	case FINDING_UNREADABLE:
		word = "unreadable";
		break;
	case FINDING_DOUBLED:
		word = "listed_twice";
		break;
	case FINDING_RECOVERY:
		if (v->has_seen && v->has_expected)
			put_facts(v, p->path, out);
		else
			strbuf_adds(out, "(exit 2)");
		return;
	case FINDING_HALF_DONE:
	case FINDING_UNSETTLED:
		put_tree(v, p->kind, out);
		return;
	case FINDING_TIME:
		put_time(p, out);
		return;
	default:
		/* A tree without block counts has none in any entry. */
		if (p->kind == FINDING_BLOCKS && v->seen.lacks & TREE_FIELD_BLOCKS)
			e = NULL;
		if (e && shell_value(p->kind, e, &what, &value))
			shell_addf(out, "is %s %s %s", what, p->path, strbuf_str(&value));
		else
			strbuf_adds(out, "(exit 2)");
		return;
	}
	auto_words names = { 0 };

	script_names(p, &names);
	for (size_t i = 0; i < names.n; i++)
		shell_addf(out, i ? " && %s %s" : "%s %s", word, names.v[i]);
	/* One of its two places alone does not show the problem. */
	if (p->kind == FINDING_BOTH && names.n < 2)
		strbuf_adds(out, " && (exit 2)");
}
