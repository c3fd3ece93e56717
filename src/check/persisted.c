/* SPDX-License-Identifier: MIT */
/*
 * persisted.c - compares what a crash left with what the history allows.
 *
 * P1: a path that a promise covers leads to what it led to in some state since the promise, or to
 *     nothing if it led to nothing in one of them. One that none covers may be as in any state.
 * P2: a path has some inode that the history had there: its type fits, and each of its attributes
 *     has the value of some state since the attributes were promised. Where nothing is ordered,
 *     this holds for promised files only.
 * P3: the size is between the least and the largest since it was promised; each 512 bytes of the
 *     data (or what else the storage writes as one) are those of some state since they were
 *     promised, of the same inode.
 * P4: where rename is atomic: an inode that had to exist, and that no state since then removed, is
 *     under one of its names; and under no more of them than it had in any one state.
 * P5: a command of several parts may have left any of them: of what it changed nothing is said
 *     until a promise that is younger covers it.
 *
 * States hold what whole operations left. An operation that makes a file and fills it shows an
 * empty file in between, so a file younger than a promise may be empty.
 */
#include "check/persisted_impl.h"

/*
 * Whether a command may have left this on its way: what is at the path is other after it than
 * before, or nothing is there both times.
 */
static bool changed_by(const struct promises *p, size_t op, const char *path)
{
	uint64_t before = op_history_ino(p->h, op, path),
		 after = op_history_ino(p->h, op + 1, path);

	return before != after || !before || inode_in(p, op, before) != inode_in(p, op + 1, after);
}

/* P5: commands of several parts, whose states in between are unknown. */
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

static void for_each_path(struct comparison *c)
{
	struct op_history *h = c->p->h;

	for (size_t s = 0; s <= c->p->last; s++) {
		const struct history_paths *paths = op_history_paths_at(h, s);

		for (size_t i = 0; i < paths->n; i++) {
			bool before = false;

			for (size_t k = 0; k < s && !before; k++)
				before = op_history_ino(h, k, paths->v[i].path) != 0;
			if (!before)
				persisted_path(c, paths->v[i].path);
		}
	}
	vec_each(e, &c->seen->entries) {
		if (*e->path && !persisted_was_ever(c->p, e->path))
			persisted_path(c, e->path);
		if (*e->path)
			persisted_nlink(c, e);
	}
}

static void for_each_inode(struct comparison *c)
{
	struct op_history *h = c->p->h;

	for (size_t s = 0; s <= c->p->last; s++) {
		const struct history_paths *paths = op_history_paths_at(h, s);

		for (size_t i = 0; i < paths->n; i++) {
			uint64_t ino = paths->v[i].ino;
			bool before = false;

			for (size_t k = 0; k < s && !before; k++)
				before = reffs_inode(h->states.v[k], ino) != NULL;
			for (size_t k = 0; k < i && !before; k++)
				before = paths->v[k].ino == ino;
			if (before)
				continue;
			if (c->p->g->atomic_rename) {
				persisted_lost(c, ino);
				persisted_both(c, ino);
			}
		}
	}
}

void check_persisted(const struct promises *p, const struct tree *seen,
		     const struct check_blocks_list *blocks, struct findings *out)
{
	struct comparison c = { p, seen, blocks, out };

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

	compared.blocks = false; /* which the reference cannot know */
	reffs_tree(expected, &compared, &reference);
	tree_diff(&reference, seen, &compared, &diff);
	for (size_t i = 0; i < diff.list.n; i++)
		if (*diff.list.v[i].path) /* the root's own attributes are mkfs's business */
			findings_add(out, FINDING_LIVE, xstrdup(diff.list.v[i].path),
				     xstrdup(diff.list.v[i].words),
				     xstrdup("nothing had crashed yet"));
}
