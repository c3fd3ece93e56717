/* SPDX-License-Identifier: MIT */
/* op_names.c - follows the names of a history from state to state, by what differs. */
#include "check/op_names.h"

#include "base/hash.h"
#include "tree/tree.h"

_Thread_local uint64_t op_names_work;

void op_names_release(struct op_names *n)
{
	vec_each(name, &n->name)
		vec_release(&name->spans);
	vec_each(inode, &n->inode)
		vec_release(&inode->names);
	vec_release(&n->name);
	vec_release(&n->inode);
	free(n->by_path.v);
	free(n->by_ino.v);
	arena_release(&n->arena);
	*n = (struct op_names){ 0 };
}

/* ---- finding ---- */

static size_t *path_slot(const struct op_names *n, const char *path)
{
	const struct op_places *p = &n->by_path;
	size_t at = (size_t)hash64(path, strlen(path)) & (p->size - 1);

	while (p->v[at] && !streq(n->name.v[p->v[at] - 1].path, path))
		at = (at + 1) & (p->size - 1);
	return &p->v[at];
}

static size_t *ino_slot(const struct op_names *n, uint64_t ino)
{
	const struct op_places *p = &n->by_ino;
	size_t at = (size_t)hash64(&ino, sizeof(ino)) & (p->size - 1);

	while (p->v[at] && n->inode.v[p->v[at] - 1].ino != ino)
		at = (at + 1) & (p->size - 1);
	return &p->v[at];
}

/* Makes room for one more; true if the places must be entered again. */
static bool has_grown(struct op_places *p)
{
	if (2 * (p->n + 1) <= p->size)
		return false;
	free(p->v);
	p->size = max(2 * p->size, (size_t)64);
	p->v = xcalloc(p->size, sizeof(*p->v));
	return true;
}

const struct op_name *op_names_find(const struct op_names *n, const char *path)
{
	op_names_work++;
	size_t at = n->by_path.size ? *path_slot(n, path) : 0;

	return at ? &n->name.v[at - 1] : NULL;
}

const struct op_named *op_names_of(const struct op_names *n, uint64_t ino)
{
	size_t at = n->by_ino.size ? *ino_slot(n, ino) : 0;

	return at ? &n->inode.v[at - 1] : NULL;
}

size_t op_name_span(const struct op_name *name, size_t state)
{
	op_names_work++;
	return first_where(i, name->spans.n, name->spans.v[i].state > state) - 1;
}

uint64_t op_name_at(const struct op_name *name, size_t state)
{
	size_t i = op_name_span(name, state);

	return i == SIZE_MAX ? 0 : name->spans.v[i].ino;
}

/* ---- changing ---- */

static size_t name_place(struct op_names *n, const char *path)
{
	if (has_grown(&n->by_path))
		for (size_t i = 0; i < n->name.n; i++)
			*path_slot(n, n->name.v[i].path) = i + 1;
	size_t *slot = path_slot(n, path);
	if (!*slot) {
		vec_push(&n->name, (struct op_name){ .path = arena_strdup(&n->arena, path) });
		*slot = n->name.n;
		n->by_path.n++;
	}
	return *slot - 1;
}

static struct op_named *named(struct op_names *n, uint64_t ino)
{
	if (has_grown(&n->by_ino))
		for (size_t i = 0; i < n->inode.n; i++)
			*ino_slot(n, n->inode.v[i].ino) = i + 1;
	size_t *slot = ino_slot(n, ino);
	if (!*slot) {
		vec_push(&n->inode, (struct op_named){ .ino = ino });
		*slot = n->inode.n;
		n->by_ino.n++;
	}
	return &n->inode.v[*slot - 1];
}

static uint64_t now_at(const struct op_name *name)
{
	return name->spans.n ? vec_last(&name->spans).ino : 0;
}

/* Lets a path lead to an inode, or to nothing, from the state that is being added on. */
static void set(struct op_names *n, const char *path, uint64_t ino)
{
	size_t place = name_place(n, path);
	struct op_name *name = &n->name.v[place];
	bool had = any_of(i, name->spans.n, name->spans.v[i].ino == ino);

	op_names_work++;
	if (name->spans.n && vec_last(&name->spans).state == n->states)
		name->spans.n--; /* removed and made again by one operation */
	if (now_at(name) == ino)
		return;
	vec_push(&name->spans, (struct name_span){ n->states, ino });			 /* N1 */
	assert(name->spans.n < 2 || name->spans.v[name->spans.n - 2].state < n->states); /* N1 */
	if (!ino || had)
		return;
	struct op_named *inode = named(n, ino);
	vec_push(&inode->names, place); /* N2 */
}

/* Returns the present path of a directory, "" for the root, or NULL if it has none. */
static const char *dir_path(const struct op_names *n, uint64_t dir)
{
	const struct op_named *inode = dir == REFFS_ROOT_INO ? NULL : op_names_of(n, dir);

	if (dir == REFFS_ROOT_INO)
		return "";
	for (size_t i = inode ? inode->names.n : 0; i-- > 0;)
		if (now_at(&n->name.v[inode->names.v[i]]) == dir)
			return n->name.v[inode->names.v[i]].path;
	return NULL;
}

/* ---- what one operation changed ---- */

struct name_change {
	uint64_t dir;
	char *name;
};

struct added {
	char *path;
	uint64_t ino;
};

struct adding {
	struct op_names *n;
	const struct reffs_state *before, *after;
	struct vec_of(struct name_change) changes;
	struct vec_of(struct added) added;
};

static void note_change(void *ctx, uint64_t dir, const char *name)
{
	struct adding *a = ctx;

	op_names_work++;
	vec_push(&a->changes, (struct name_change){ dir, xstrdup(name) });
}

static char *join(const char *dir, const char *name)
{
	return *dir ? xasprintf("%s/%s", dir, name) : xstrdup(name);
}

static uint64_t entry_in(const struct reffs_state *s, const struct name_change *c)
{
	const struct reffs_inode *dir = s ? reffs_inode(s, c->dir) : NULL;

	return dir ? reffs_lookup(dir, c->name) : 0;
}

/* A directory of a state, or NULL. */
static const struct reffs_inode *dir_in(const struct reffs_state *s, uint64_t ino)
{
	const struct reffs_inode *inode = reffs_inode(s, ino);
	struct reffs_attr attr;

	if (!inode)
		return NULL;
	reffs_attr(inode, &attr);
	return attr.type == TREE_DIR ? inode : NULL;
}

/* A path, and what is below it: is it taken away, or added? */
struct subtree {
	struct adding *a;
	const struct reffs_state *state;
	const char *dir;
	bool adds;
};

static int go_below(void *ctx, const char *name, uint64_t ino)
{
	const struct subtree *t = ctx;
	auto_free char *path = join(t->dir, name);
	struct subtree inner = { t->a, t->state, path, t->adds };
	const struct reffs_inode *dir = dir_in(t->state, ino);

	if (t->adds)
		vec_push(&t->a->added, (struct added){ xstrdup(path), ino });
	else
		set(t->a->n, path, 0);
	return dir ? reffs_entries(dir, go_below, &inner) : 0;
}

DEFINE_ORDER(by_path, struct added, tree_path_cmp(a->path, b->path))

void op_names_add(struct op_names *n, const struct reffs_state *before,
		  const struct reffs_state *state)
{
	struct adding a = { .n = n, .before = before, .after = state };

	reffs_differ(before, state, note_change, &a);
	/* An entry that is no longer there goes first; a directory that moves goes with all that is
	 * below.
	 */
	vec_each(c, &a.changes) {
		uint64_t was = entry_in(before, c);
		const char *dir = dir_path(n, c->dir);

		if (was && dir && was != entry_in(state, c))
			go_below(&(struct subtree){ &a, before, dir, false }, c->name, was);
	}
	/* A directory that has no path now moved or is new: one above it adds what is below. */
	vec_each(c, &a.changes) {
		uint64_t is = entry_in(state, c);
		const char *dir = dir_path(n, c->dir);

		if (is && dir && is != entry_in(before, c))
			go_below(&(struct subtree){ &a, state, dir, true }, c->name, is);
	}
	vec_sort(&a.added, by_path); /* N2 */
	vec_each(x, &a.added) {
		set(n, x->path, x->ino);
		free(x->path);
	}
	vec_each(c, &a.changes)
		free(c->name);
	vec_release(&a.changes);
	vec_release(&a.added);
	n->states++;
}
