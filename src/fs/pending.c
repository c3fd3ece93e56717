/* SPDX-License-Identifier: MIT */
/*
 * pending.c - keeps the log and its groups of conflicting operations, and chooses the operations
 * that become durable.
 *
 * An operation is a member of groups: operations that concern the same name, the same directory,
 * the same inode, and so on. A group is a list in order, found by its key in a hash table; it
 * exists while it has members. The needs of an operation are found when it becomes durable, never
 * before: from most groups only the member before it (which needs the one before that), the maker
 * of a directory, and for the removal of a directory all entries in it. Each of these becomes
 * durable itself, so the search costs no more than that.
 */
#include "fs/pending.h"

#include "base/hash.h"

enum group_kind {
	GROUP_SLOT,  /* id: directory, and a name; a member needs the one before */
	GROUP_ATTR,  /* id: inode; a member needs the one before */
	GROUP_XATTR, /* id: inode, and a name; a member needs the one before */
	GROUP_MOVES, /* for all directories that get another parent; likewise */
	GROUP_MAKER, /* id: inode; its maker */
	GROUP_DIR,   /* id: directory; all its entries */
	GROUP_NAMES, /* id: inode; all its names */
	GROUP_ATTRS, /* id: inode; all its attributes */
};

struct link {
	struct group *group;
	struct entry *entry;
	struct link *prev, *next;
};

struct group {
	enum group_kind kind;
	uint64_t id;
	char *name; /* or NULL */
	uint64_t hash;
	struct group *chain; /* in the table */
	struct link *first, *last;
};

enum { LINKS_MAX = 8 };

struct entry {
	struct pending_op op;
	uint64_t order;
	struct entry *prev, *next; /* in the log */
	bool chosen;
	unsigned n_links;
	struct link links[LINKS_MAX];
	char strings[];
};

struct pending {
	const struct profile *profile;
	struct entry *first, *last;
	size_t n;
	uint64_t next_order;
	struct group **table;
	size_t table_size, n_groups; /* the size is a power of two, or 0 */
	struct vec_of(struct entry *) chosen;
};

struct pending *pending_new(const struct profile *p)
{
	struct pending *l = xcalloc(1, sizeof(*l));

	l->profile = p;
	return l;
}

void pending_free(struct pending *l)
{
	if (!l)
		return;
	assert(!l->n && !l->n_groups);
	vec_release(&l->chosen);
	free(l->table);
	free(l);
}

size_t pending_count(const struct pending *l)
{
	return l->n;
}

/* ---- groups ---- */

static uint64_t key_hash(enum group_kind kind, uint64_t id, const char *name)
{
	uint64_t seed[2] = { kind, id };
	uint64_t h = hash64(seed, sizeof(seed));

	return name ? h ^ (hash64(name, strlen(name)) * 0x9e3779b97f4a7c15u) : h;
}

static struct group *find(const struct pending *l, enum group_kind kind, uint64_t id,
			  const char *name)
{
	uint64_t hash = key_hash(kind, id, name);
	struct group *g = l->table ? l->table[hash & (l->table_size - 1)] : NULL;

	for (; g; g = g->chain)
		if (g->hash == hash && g->kind == kind && g->id == id &&
		    (!name || streq(g->name, name)))
			return g;
	return NULL;
}

static void table_grow(struct pending *l)
{
	size_t size = l->table_size ? l->table_size * 2 : 64;
	struct group **table = xcalloc(size, sizeof(*table));

	for (size_t i = 0; i < l->table_size; i++)
		for (struct group *g = l->table[i], *next; g; g = next) {
			struct group **at = &table[g->hash & (size - 1)];

			next = g->chain;
			g->chain = *at;
			*at = g;
		}
	free(l->table);
	l->table = table;
	l->table_size = size;
}

static struct group *group_new(struct pending *l, enum group_kind kind, uint64_t id,
			       const char *name)
{
	struct group *g = xcalloc(1, sizeof(*g));

	if (l->n_groups >= l->table_size)
		table_grow(l);
	g->kind = kind;
	g->id = id;
	g->name = name ? xstrdup(name) : NULL;
	g->hash = key_hash(kind, id, name);
	struct group **at = &l->table[g->hash & (l->table_size - 1)];
	g->chain = *at;
	*at = g;
	l->n_groups++;
	return g;
}

static void group_free(struct pending *l, struct group *g)
{
	struct group **at = &l->table[g->hash & (l->table_size - 1)];

	assert(l->n_groups > 0 && !g->first && !g->last); /* P2: no group is empty */
	while (*at != g)
		at = &(*at)->chain;
	*at = g->chain;
	l->n_groups--;
	free(g->name);
	free(g);
}

static void join(struct pending *l, struct entry *e, enum group_kind kind, uint64_t id,
		 const char *name)
{
	struct group *g = find(l, kind, id, name);

	if (!g)
		g = group_new(l, kind, id, name);
	if (g->last && g->last->entry == e)
		return; /* both names are in one directory */
	assert(e->n_links < LINKS_MAX);
	struct link *k = &e->links[e->n_links++];
	*k = (struct link){ .group = g, .entry = e, .prev = g->last };
	*(g->last ? &g->last->next : &g->first) = k;
	g->last = k;
}

static void leave(struct pending *l, struct link *k)
{
	struct group *g = k->group;

	*(k->prev ? &k->prev->next : &g->first) = k->next;
	*(k->next ? &k->next->prev : &g->last) = k->prev;
	if (!g->first)
		group_free(l, g);
}

/* ---- operations ---- */

static bool is_attr(const struct pending_op *op)
{
	return op->kind == PENDING_ATTR || op->kind == PENDING_XATTR;
}

static unsigned n_slots(const struct pending_op *op)
{
	if (is_attr(op))
		return 0;
	return op->kind == PENDING_RENAME || op->kind == PENDING_SWAP ? 2 : 1;
}

/* True if a directory may get another parent; the type of an exchange's other inode is unknown. */
static bool moves_dir(const struct pending_op *op)
{
	return n_slots(op) == 2 && op->slot[0].dir != op->slot[1].dir &&
	       (op->is_dir || op->kind == PENDING_SWAP);
}

/* The directory that the operation removes, or 0. */
static uint64_t removed_dir(const struct pending_op *op)
{
	if (!op->is_dir)
		return 0;
	if (op->kind == PENDING_REMOVE)
		return op->ino;
	return op->kind == PENDING_RENAME ? op->other : 0;
}

static size_t size_of(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static void copy_string(const char **s, char **to)
{
	size_t size = size_of(*s);

	if (!size)
		return;
	memcpy(*to, *s, size);
	*s = *to;
	*to += size;
}

static struct entry *entry_new(const struct pending_op *op)
{
	const char *const *const names[] = { &op->slot[0].name, &op->slot[1].name, &op->xattr };
	size_t size = sizeof(struct entry);
	struct entry *e;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		size += size_of(*names[i]);
	e = xmalloc(size);
	memset(e, 0, sizeof(*e));
	e->op = *op;
	char *to = e->strings;
	copy_string(&e->op.slot[0].name, &to);
	copy_string(&e->op.slot[1].name, &to);
	copy_string(&e->op.xattr, &to);
	return e;
}

static void join_name_groups(struct pending *l, struct entry *e)
{
	const struct pending_op *op = &e->op;

	for (unsigned i = 0; i < n_slots(op); i++) {
		join(l, e, GROUP_SLOT, op->slot[i].dir, op->slot[i].name);
		join(l, e, GROUP_DIR, op->slot[i].dir, NULL);
	}
	join(l, e, GROUP_NAMES, op->ino, NULL);
	if (op->other && n_slots(op) == 2)
		join(l, e, GROUP_NAMES, op->other, NULL);
	if (op->kind == PENDING_MAKE)
		join(l, e, GROUP_MAKER, op->ino, NULL);
	if (moves_dir(op))
		join(l, e, GROUP_MOVES, 0, NULL);
}

void pending_add(struct pending *l, const struct pending_op *op)
{
	struct entry *e = entry_new(op);

	assert(l->profile->metadata);
	e->order = l->next_order++;
	e->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = e;
	l->last = e;
	l->n++;
	if (is_attr(op)) {
		join(l, e, op->kind == PENDING_ATTR ? GROUP_ATTR : GROUP_XATTR, op->ino,
		     op->kind == PENDING_ATTR ? NULL : op->xattr);
		join(l, e, GROUP_ATTRS, op->ino, NULL);
	} else {
		join_name_groups(l, e);
	}
}

/* Takes an entry out of the log, calls back, and frees it. */
static void settle(struct pending *l, struct entry *e, pending_fn fn, void *ctx)
{
	for (unsigned i = 0; i < e->n_links; i++)
		leave(l, &e->links[i]);
	*(e->prev ? &e->prev->next : &l->first) = e->next;
	*(e->next ? &e->next->prev : &l->last) = e->prev;
	assert(l->n > 0);
	l->n--;
	assert(!l->n == !l->first && !l->first == !l->last);
	if (fn)
		fn(ctx, &e->op);
	free(e);
}

/* ---- what becomes durable together ---- */

typedef void entry_fn(void *ctx, struct entry *e);

/* Calls `fn` for the members of a group before `order`. */
static void each_of_group(const struct pending *l, enum group_kind kind, uint64_t id,
			  uint64_t order, entry_fn *fn, void *ctx)
{
	const struct group *g = find(l, kind, id, NULL);

	for (struct link *k = g ? g->first : NULL; k && k->entry->order < order; k = k->next)
		fn(ctx, k->entry);
}

/* Calls `fn` for each operation that this one needs. */
static void each_needed(const struct pending *l, const struct entry *e, entry_fn *fn, void *ctx)
{
	for (unsigned i = 0; i < e->n_links; i++) {
		const struct link *k = &e->links[i];

		if (k->group->kind <= GROUP_MOVES && k->prev)
			fn(ctx, k->prev->entry);
	}
	for (unsigned i = 0; i < n_slots(&e->op); i++)
		each_of_group(l, GROUP_MAKER, e->op.slot[i].dir, e->order, fn, ctx);
	if (removed_dir(&e->op))
		each_of_group(l, GROUP_DIR, removed_dir(&e->op), e->order, fn, ctx);
}

static void choose(void *ctx, struct entry *e)
{
	struct pending *l = ctx;

	if (e->chosen)
		return;
	e->chosen = true;
	vec_push(&l->chosen, e);
}

static void choose_group(struct pending *l, enum group_kind kind, uint64_t id)
{
	each_of_group(l, kind, id, UINT64_MAX, choose, l);
}

/* Chooses the entries of a directory; not a rename to another directory, which has the new name. */
static void choose_entries(struct pending *l, uint64_t dir)
{
	const struct group *g = find(l, GROUP_DIR, dir, NULL);

	for (struct link *k = g ? g->first : NULL; k; k = k->next)
		if (k->entry->op.kind != PENDING_RENAME || k->entry->op.slot[1].dir == dir)
			choose(l, k->entry);
}

struct telling {
	pending_fn need;
	void *ctx;
};

static void tell(void *ctx, struct entry *e)
{
	struct telling *t = ctx;

	t->need(t->ctx, &e->op);
}

void pending_needs(const struct pending *l, pending_fn need, void *ctx)
{
	const struct entry *e = l->last;

	if (e)
		each_needed(l, e, tell, &(struct telling){ need, ctx });
	if (e && l->profile->in_order && e->prev)
		need(ctx, &e->prev->op);
}

DEFINE_ORDER(by_order, struct entry *, order((*a)->order, (*b)->order))

/* Adds the needs of the chosen operations, and sorts all. */
static size_t close_choice(struct pending *l)
{
	for (size_t i = 0; i < l->chosen.n; i++)
		each_needed(l, l->chosen.v[i], choose, l);
	vec_sort(&l->chosen, by_order);
	assert(l->chosen.n <= l->n); /* P1: no duplicates */
	return l->chosen.n;
}

void pending_each_chosen(const struct pending *l, pending_fn fn, void *ctx)
{
	for (size_t i = 0; i < l->chosen.n; i++)
		fn(ctx, &l->chosen.v[i]->op);
}

void pending_unchoose(struct pending *l, size_t n)
{
	while (l->chosen.n > n) {
		assert(vec_last(&l->chosen)->chosen);
		l->chosen.v[--l->chosen.n]->chosen = false;
	}
}

void pending_settle_chosen(struct pending *l, pending_fn durable, void *ctx)
{
	for (size_t i = 0; i < l->chosen.n; i++)
		settle(l, l->chosen.v[i], durable, ctx);
	vec_clear(&l->chosen);
}

size_t pending_choose_all(struct pending *l)
{
	for (struct entry *e = l->first; e; e = e->next)
		choose(l, e);
	return l->chosen.n; /* in order, and with all needs */
}

void pending_sync_all(struct pending *l, pending_fn durable, void *ctx)
{
	while (l->first)
		settle(l, l->first, durable, ctx);
}

bool pending_of(const struct pending *l, uint64_t ino)
{
	return find(l, GROUP_ATTRS, ino, NULL) || find(l, GROUP_NAMES, ino, NULL) ||
	       find(l, GROUP_DIR, ino, NULL);
}

/* A data-only sync commits the journal only if the data could not be reached otherwise. */
bool pending_commits(const struct pending *l, uint64_t ino, bool is_dir, bool data_only,
		     bool has_data)
{
	if (has_data)
		return true;
	return data_only && !is_dir ? find(l, GROUP_MAKER, ino, NULL) != NULL : pending_of(l, ino);
}

size_t pending_choose_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only,
			   bool has_data)
{
	enum profile_sync what = is_dir ? l->profile->dir : l->profile->file;

	if (what == PROFILE_ALL)
		return pending_commits(l, ino, is_dir, data_only, has_data) ? pending_choose_all(l)
									    : 0;
	if (!data_only)
		choose_group(l, GROUP_ATTRS, ino);
	if (is_dir && what == PROFILE_OWN)
		choose_entries(l, ino);
	else if (is_dir)
		choose_group(l, GROUP_DIR, ino);
	if (what == PROFILE_NAMES)
		choose_group(l, GROUP_NAMES, ino);
	return close_choice(l);
}

void pending_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only, bool has_data,
		  pending_fn durable, void *ctx)
{
	pending_choose_sync(l, ino, is_dir, data_only, has_data);
	pending_settle_chosen(l, durable, ctx);
}

size_t pending_choose_gone(struct pending *l, uint64_t ino)
{
	choose_group(l, GROUP_ATTRS, ino);
	return close_choice(l);
}

size_t pending_choose_kept(struct pending *l, bool (*keep)(void *ctx, const struct pending_op *op),
			   void *ctx)
{
	struct entry *last = NULL;

	for (struct entry *e = l->first; e && keep; e = e->next)
		if (keep(ctx, &e->op)) {
			choose(l, e);
			last = e;
		}
	if (l->profile->in_order)
		for (; last; last = last->prev)
			choose(l, last);
	return close_choice(l);
}

void pending_undo_all(struct pending *l, pending_fn undo, void *ctx)
{
	while (l->last)
		settle(l, l->last, undo, ctx);
}

void pending_cut(struct pending *l, bool (*keep)(void *ctx, const struct pending_op *op),
		 pending_fn durable, pending_fn undo, void *ctx)
{
	pending_choose_kept(l, keep, ctx);
	pending_settle_chosen(l, durable, ctx);
	pending_undo_all(l, undo, ctx);
}

int pending_each(const struct pending *l, int (*fn)(void *ctx, const struct pending_op *op),
		 void *ctx)
{
	int rc = 0;

	for (const struct entry *e = l->first; !rc && e; e = e->next)
		rc = fn(ctx, &e->op);
	return rc;
}
