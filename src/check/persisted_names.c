/* SPDX-License-Identifier: MIT */
/* persisted_names.c - P4: the names of one inode, all together. */
#include "check/persisted_impl.h"

/* The paths of an inode in all states from `from` on. */
struct name_places {
	const char *path[64];
	size_t n;
	size_t most; /* names in any one state */
	bool always; /* the inode is in each of these states */
};

static void places_add(struct name_places *where, const char *path)
{
	for (size_t i = 0; i < where->n; i++)
		if (streq(where->path[i], path))
			return;
	if (where->n < ARRAY_SIZE(where->path))
		where->path[where->n++] = path;
}

static struct name_places places_of(const struct promises *p, uint64_t ino, size_t from)
{
	struct name_places where = { .always = true };

	for (size_t i = from; i <= p->last; i++) {
		const struct history_paths *paths = op_history_paths_at(p->h, i);
		size_t names = 0;

		for (size_t k = 0; k < paths->n; k++)
			if (paths->v[k].ino == ino) {
				places_add(&where, paths->v[k].path);
				names++;
			}
		where.most = max(where.most, names);
		where.always &= names > 0;
	}
	return where;
}

static bool already_missing(const struct comparison *c, const struct name_places *where)
{
	for (size_t i = 0; i < where->n; i++) {
		if (persisted_below_missing(c, where->path[i]))
			return true;
		for (size_t k = 0; k < c->out->n; k++)
			if (c->out->v[k].kind == FINDING_MISSING &&
			    streq(c->out->v[k].path, where->path[i]))
				return true;
	}
	return false;
}

static void print_places(const struct name_places *where, const char *joint, struct strbuf *out)
{
	for (size_t i = 0; i < where->n; i++)
		strbuf_addf(out, "%s%s", i ? joint : "", where->path[i]);
}

/* True if the inode may be at a path that it never had, in a directory that was moved. */
static bool seen_elsewhere(const struct comparison *c, uint64_t ino)
{
	vec_each(e, &c->seen->entries) {
		if (!*e->path || persisted_was_ever(c->p, e->path))
			continue;
		struct values set = persisted_composed_at(c->p, e->path);
		if (set.n && values_has(&set, ino))
			return true;
	}
	return false;
}

void persisted_lost(struct comparison *c, uint64_t ino)
{
	const struct promise *why = promise_for_existence(c->p, ino);
	struct strbuf words = { 0 };

	if (!why)
		return;
	struct name_places where = places_of(c->p, ino, why->state);
	if (!where.always)
		return;
	if (promise_of_any_name(c->p, why, ino))
		where = places_of(c->p, ino, 0); /* an older name is allowed, too */
	for (size_t i = 0; i < where.n; i++)
		if (tree_find(c->seen, where.path[i]))
			return;
	if (already_missing(c, &where) || seen_elsewhere(c, ino))
		return;
	strbuf_adds(&words, FINDING_LOST_AT);
	print_places(&where, FINDING_LOST_JOINT, &words);
	persisted_report(c, FINDING_LOST, where.path[0], why, &words);
}

/* True if only this inode can be at the path. */
static bool only_this(const struct promises *p, const char *path, uint64_t ino)
{
	for (size_t i = 0; i <= p->last; i++) {
		uint64_t there = op_history_ino(p->h, i, path);

		if (there && there != ino)
			return false;
	}
	return true;
}

void persisted_both(struct comparison *c, uint64_t ino)
{
	struct name_places where = places_of(c->p, ino, 0), found = { .n = 0 };
	struct strbuf words = { 0 };

	for (size_t i = 0; i < where.n; i++)
		if (tree_find(c->seen, where.path[i]) && only_this(c->p, where.path[i], ino))
			places_add(&found, where.path[i]);
	if (found.n <= where.most)
		return;
	strbuf_adds(&words, FINDING_BOTH_AT);
	print_places(&found, FINDING_BOTH_JOINT, &words);
	persisted_report(c, FINDING_BOTH, found.path[0], NULL, &words);
}

/* Checks that a file's link count is the number of its names. */
void persisted_nlink(struct comparison *c, const struct tree_entry *e)
{
	uint64_t names = 0;
	struct strbuf words = { 0 };

	if (e->type == TREE_DIR || e->type == TREE_UNKNOWN || e->error)
		return;
	for (size_t i = 0; e->link && i < c->seen->entries.n; i++)
		names += c->seen->entries.v[i].link == e->link;
	if (e->nlink == (e->link ? names : 1))
		return;
	/* fsck may have put a directory into lost+found, and a name of this file with it. */
	if (!c->p->g->ordered && e->nlink > (e->link ? names : 1))
		return;
	strbuf_addf(&words, "%s: has %llu links, but %llu names", e->path, llu(e->nlink),
		    (unsigned long long)(e->link ? names : 1));
	persisted_report(c, FINDING_NLINK, e->path, promise_for_path(c->p, e->path), &words);
}
