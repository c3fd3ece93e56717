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

/* The states from `from` on, up to and without `to`, in which an inode has this name. */
struct name_while {
	size_t from, to;
	const char *path;
};

struct name_whiles vec_of(struct name_while);

DEFINE_ORDER(by_begin, struct name_while,
	     order(a->from, b->from) ?: tree_path_cmp(a->path, b->path))

static void add_whiles(const struct op_name *name, uint64_t ino, size_t from, size_t last,
		       struct name_whiles *out)
{
	for (size_t i = 0; i < name->spans.n; i++) {
		const struct name_span *span = &name->spans.v[i];
		size_t begin = max(span->state, from);
		size_t end = i + 1 < name->spans.n ? span[1].state : SIZE_MAX;

		if (span->ino == ino && begin < end && begin <= last)
			vec_push(out, (struct name_while){ begin, min(end, last + 1), name->path });
	}
}

/* Sets how many names there are at most, and whether there always is one. */
static void count_at_once(const struct name_whiles *whiles, size_t from, size_t last,
			  struct name_places *where)
{
	auto_free size_t *ends = xcalloc(whiles->n + 1, sizeof(*ends));
	size_t gone = 0, covered = from;

	for (size_t i = 0; i < whiles->n; i++)
		ends[i] = whiles->v[i].to;
	if (whiles->n)
		qsort(ends, whiles->n, sizeof(*ends), by_u64);
	where->always = true;
	for (size_t i = 0; i < whiles->n; i++) {
		while (ends[gone] <= whiles->v[i].from)
			gone++;
		where->always &= whiles->v[i].from <= covered;
		covered = max(covered, whiles->v[i].to);
		where->most = max(where->most, i + 1 - gone);
	}
	where->always &= covered > last;
}

static struct name_places places_of(const struct promises *p, uint64_t ino, size_t from)
{
	const struct op_names *names = op_history_names(p->h);
	const struct op_named *inode = op_names_of(names, ino);
	struct name_places where = { .n = 0 };
	auto_vec struct name_whiles whiles = { 0 };

	for (size_t i = 0; inode && i < inode->names.n; i++)
		add_whiles(&names->name.v[inode->names.v[i]], ino, from, p->last, &whiles);
	vec_sort(&whiles, by_begin);
	for (size_t i = 0; i < whiles.n && where.n < ARRAY_SIZE(where.path); i++)
		places_add(&where, whiles.v[i].path);
	count_at_once(&whiles, from, p->last, &where);
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
	const struct op_name *name = op_names_find(op_history_names(p->h), path);

	return !name || !any_of(i, op_name_span(name, p->last) + 1,
				name->spans.v[i].ino && name->spans.v[i].ino != ino);
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

void persisted_nlink(struct comparison *c, const struct tree_entry *e, uint64_t names)
{
	struct strbuf words = { 0 };

	if (e->type == TREE_DIR || e->type == TREE_UNKNOWN || e->error)
		return;
	if (e->nlink == names)
		return;
	/* fsck may have put a directory into lost+found, and a name of this file with it. */
	if (!c->p->g->ordered && e->nlink > names)
		return;
	strbuf_addf(&words, "%s: has %llu links, but %llu names", e->path, llu(e->nlink),
		    llu(names));
	persisted_report(c, FINDING_NLINK, e->path, promise_for_path(c->p, e->path), &words);
}
