/* SPDX-License-Identifier: MIT */
/*
 * persisted.c - compares a recovered state with the history.
 *
 * P1: a path that a promise covers leads to the inode that it had in some state since the promise,
 *     or to none if it had none in one of these. A path that no promise covers may be as in any
 *     state.
 * P2: a path has some inode that the history had there: its type fits, and each of its attributes
 *     has the value of some state since the attributes were promised. If the guarantee has no
 *     order, this holds for promised files only.
 * P3: the size is between the least and the largest since it was promised; each 512 bytes of the
 *     data (or the unit that the storage writes atomically) are those of some state since they were
 *     promised, of the same inode.
 * P4: if rename is atomic: an inode that had to exist, and that no state since then removed, has
 *     one of its names; and no more of them than it had in any one state.
 * P5: any part of a command with several parts may survive: what the command changed is not judged
 *     until a younger promise covers it.
 *
 * States are those after whole operations. An operation that makes a file and fills it has an empty
 * file in between, so a file younger than a promise may be empty.
 */
#include "check/persisted_impl.h"

/*
 * True if a command may have made this in between: the path differs before and after the command,
 * or does not exist both times.
 */
static bool changed_by(const struct promises *p, size_t op, const char *path)
{
	uint64_t before = op_history_ino(p->h, op, path),
		 after = op_history_ino(p->h, op + 1, path);

	return before != after || !before || inode_in(p, op, before) != inode_in(p, op + 1, after);
}

/* True if a command of several parts may have made this, in a state that is unknown (P5). */
static bool may_be_part(const struct promises *p, const char *path, size_t from)
{
	for (size_t i = from; i < p->last && i < p->h->w->ops.n; i++)
		if (op_has_parts(&p->h->w->ops.v[i]) && changed_by(p, i, path))
			return true;
	return false;
}

void persisted_report(struct comparison *c, enum finding_kind kind, const char *path,
		      const struct promise *why, struct strbuf *words)
{
	if (kind != FINDING_UNREADABLE && kind != FINDING_DOUBLED && kind != FINDING_NLINK &&
	    may_be_part(c->p, path, state_of(why))) {
		strbuf_release(words);
		return;
	}
	findings_add(c->out, kind, xstrdup(path), strbuf_detach(words), promise_words(c->p, why));
}

/* Whether a name led to anything, up to the last state. */
static bool has_been(const struct op_name *name, size_t last)
{
	return name->spans.v[0].state <= last;
}

/* How many names the file of each link number has; the number 0 is that of files with one name. */
static uint32_t *count_names(const struct tree *seen)
{
	uint32_t most = 0;

	vec_each(e, &seen->entries)
		most = max(most, e->link);
	uint32_t *names = xcalloc((size_t)most + 1, sizeof(*names));
	vec_each(e, &seen->entries)
		names[e->link]++;
	return names;
}

static void for_each_path(struct comparison *c)
{
	const struct op_names *names = op_history_names(c->p->h);
	auto_free uint32_t *count = count_names(c->seen);

	vec_each(name, &names->name)
		if (has_been(name, c->p->last))
			persisted_path(c, name->path);
	vec_each(e, &c->seen->entries) {
		if (*e->path && !persisted_was_ever(c->p, e->path))
			persisted_path(c, e->path);
		if (*e->path)
			persisted_nlink(c, e, e->link ? count[e->link] : 1);
	}
}

static void for_each_inode(struct comparison *c)
{
	const struct op_names *names = op_history_names(c->p->h);

	vec_each(inode, &names->inode) {
		const struct op_name *first = &names->name.v[inode->names.v[0]];

		if (!c->p->g->atomic_rename)
			break;
		if (!any_of(i, op_name_span(first, c->p->last) + 1,
			    first->spans.v[i].ino == inode->ino))
			continue;
		persisted_lost(c, inode->ino);
		persisted_both(c, inode->ino);
	}
}

void check_persisted(const struct promises *p, const struct tree *seen,
		     const struct check_blocks_list *blocks, struct findings *out)
{
	struct comparison_memo memo = { .may_skip = !workload_command(p->h->w) };
	struct comparison c = { p, seen, blocks, out, &memo };

	for_each_path(&c);
	for_each_inode(&c);
}

void check_tree_opts(struct tree_opts *opts, const char *const *ignore)
{
	*opts = (struct tree_opts){ .blocks = true,
				    .ignore = ignore,
				    .content_limit = CHECK_CONTENT_LIMIT };
}

void check_live(const struct reffs_state *expected, const struct tree *seen,
		const struct tree_opts *opts, struct findings *out)
{
	auto_tree reference = TREE_INIT;
	auto_tree_diff diff = { 0 };
	struct tree_opts compared = *opts;

	compared.blocks = false; /* the reference does not know them */
	reffs_tree(expected, &compared, &reference);
	tree_diff(&reference, seen, &compared, &diff);
	for (size_t i = 0; i < diff.list.n; i++)
		if (*diff.list.v[i].path) /* mkfs sets the root's attributes */
			findings_add(out, FINDING_LIVE, xstrdup(diff.list.v[i].path),
				     xstrdup(diff.list.v[i].words),
				     xstrdup("nothing had crashed yet"));
}
