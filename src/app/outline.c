/* SPDX-License-Identifier: MIT */
/*
 * outline.c - follows the names and content of a set of survivors, only as far as the hash of the
 * state needs them.
 *
 * A name that any change of the history touches is a slot. Its entry in the durable state is looked
 * up when it is first needed in an epoch; its entry in the current state is valid for a round.
 * Objects are handled alike. So nothing has to be cleared between two sets.
 *
 * U2: a directory that exists stays in its place here, so that the hash of a path always follows
 *     from its directory and its last name.
 */
#include "app/outline.h"

#include "app/history_impl.h"
#include "base/util.h"
#include "fs/graft.h"

enum {
	NONE = UINT32_MAX,
	TERMS_MAX = 1 << 20, /* at more terms, all are dropped */
};

struct name_slot {
	uint64_t dir;
	const char *name;
	bool valid; /* the name is valid */
	uint32_t epoch, round;
	uint64_t before, now; /* objects; 0: none */
	struct hash128 dir_path, path;
};

/* One change of an object's content or attributes; parts are chained backwards. */
struct part {
	struct survivor what;
	uint32_t last; /* NONE: this is the first part */
};

struct thing {
	uint32_t epoch, round;
	const struct reffs_inode *before; /* in the durable state; NULL: missing */
	struct reffs_attr attr;		  /* the attributes there */
	struct hash128 before_names, before_term;
	uint64_t before_entries; /* UINT64_MAX: not counted yet */
	uint64_t settled;	 /* the number of durable parts, which identifies them */
	/* In the current state. */
	bool there, fresh; /* fresh: made by a survivor */
	uint64_t names;
	int64_t entries; /* more entries than before */
	struct hash128 paths, parts;
	uint32_t last_part;
};

struct term {
	struct hash128 key, term; /* key 0: free */
};

struct outline {
	struct history *h;
	struct vec_of(struct name_slot) slots;
	struct vec_of(uint32_t) first, second; /* slots of each change; NONE */
	struct vec_of(struct hash128) marks;   /* by change */
	struct vec_of(struct thing) things;    /* by object */
	struct vec_of(uint64_t) touched;       /* objects touched in the current state */
	struct vec_of(struct part) parts;
	struct vec_of(struct survivor) list;
	struct term *terms;
	size_t n_terms, cap;
	struct reffs_state *durable; /* borrowed, for this epoch */
	size_t times;		     /* history_durable()'s `times` */
	uint64_t point;
	uint32_t epoch, round;
};

/* ---- slots ---- */

struct use {
	uint64_t dir;
	const char *name;
	uint32_t change;
	bool second;
};

DEFINE_ORDER(by_place, struct use, order(a->dir, b->dir) ?: strcmp(a->name, b->name))

static bool has_second(const struct change *c)
{
	return c->kind == CHANGE_RENAME || c->kind == CHANGE_SWAP;
}

static bool has_first(const struct change *c)
{
	return c->kind == CHANGE_MAKE || c->kind == CHANGE_LINK || c->kind == CHANGE_REMOVE ||
	       has_second(c);
}

static void make_slots(struct outline *o)
{
	auto_vec struct vec_of(struct use) uses = { 0 };

	for (uint32_t i = 0; i < o->h->changes.n; i++) {
		const struct change *c = &o->h->changes.v[i];

		vec_push(&o->marks, hash_bytes(&i, sizeof(i)));
		vec_push(&o->first, NONE);
		vec_push(&o->second, NONE);
		if (has_first(c))
			vec_push(&uses, (struct use){ c->dir, c->name, i, false });
		if (has_second(c))
			vec_push(&uses, (struct use){ c->dir2, c->name2, i, true });
	}
	vec_sort(&uses, by_place);
	for (size_t i = 0; i < uses.n; i++) {
		const struct use *u = &uses.v[i];

		if (!i || by_place(u, &uses.v[i - 1]))
			vec_push(&o->slots, (struct name_slot){ .dir = u->dir,
								.name = u->name,
								.valid = graft_name_ok(u->name) });
		(u->second ? o->second : o->first).v[u->change] = (uint32_t)o->slots.n - 1;
	}
}

/* ---- objects ---- */

static struct thing *thing_of(struct outline *o, uint64_t object)
{
	struct thing *t = &o->things.v[object - REFFS_ROOT_INO];

	if (t->epoch == o->epoch)
		return t;
	t->epoch = o->epoch;
	t->before = reffs_inode(o->durable, object);
	t->before_entries = UINT64_MAX;
	if (t->before) {
		reffs_attr(t->before, &t->attr);
		t->before_names = graft_names(t->before);
		t->before_term = graft_term(t->before, t->before_names);
	}
	t->settled = 0;
	const struct object *x = &o->h->objects.v[object - REFFS_ROOT_INO];
	for (size_t i = 0; i < x->parts.n; i++)
		t->settled += change_is_durable(&o->h->changes.v[x->parts.v[i]], o->point);
	return t;
}

/* Returns an object as well, to be changed in this round. */
static struct thing *touch(struct outline *o, uint64_t object)
{
	struct thing *t = thing_of(o, object);

	if (t->round == o->round)
		return t;
	t->round = o->round;
	t->there = t->before != NULL;
	t->fresh = false;
	t->names = t->there ? t->attr.nlink : 0;
	t->entries = 0;
	t->paths = t->there ? t->before_names : (struct hash128){ 0 };
	t->parts = (struct hash128){ 0 };
	t->last_part = NONE;
	vec_push(&o->touched, object);
	return t;
}

static bool is_there(struct outline *o, uint64_t object)
{
	const struct thing *t = thing_of(o, object);

	return t->round == o->round ? t->there : t->before != NULL;
}

static bool is_dir(const struct outline *o, uint64_t object)
{
	return o->h->objects.v[object - REFFS_ROOT_INO].type == TREE_DIR;
}

static int count_entry(void *ctx, const char *name, uint64_t ino)
{
	(void)name;
	(void)ino;
	++*(uint64_t *)ctx;
	return 0;
}

static bool is_empty(struct outline *o, uint64_t dir)
{
	struct thing *t = touch(o, dir);

	if (t->fresh)
		return t->entries == 0;
	if (t->before_entries == UINT64_MAX) {
		t->before_entries = 0;
		reffs_entries(t->before, count_entry, &t->before_entries);
	}
	return (int64_t)t->before_entries + t->entries == 0;
}

/* Returns a slot whose directory exists; NULL otherwise. */
static struct name_slot *open_slot(struct outline *o, uint32_t n)
{
	struct name_slot *s = &o->slots.v[n];

	if (!s->valid || !is_dir(o, s->dir) || !is_there(o, s->dir))
		return NULL;
	if (s->epoch != o->epoch) {
		const struct reffs_inode *before = thing_of(o, s->dir)->before;

		s->epoch = o->epoch;
		s->before = before ? reffs_lookup(before, s->name) : 0;
	}
	const struct thing *dir = touch(o, s->dir);
	if (s->round != o->round) {
		s->round = o->round;
		s->now = dir->fresh ? 0 : s->before;
	}
	if (!hash_eq(s->dir_path, dir->paths)) {
		s->dir_path = dir->paths;
		s->path = graft_path(dir->paths, s->name);
	}
	return s;
}

static void fill(struct outline *o, struct name_slot *s, uint64_t object)
{
	struct thing *t = touch(o, object);

	s->now = object;
	t->paths = hash_add(t->paths, s->path);
	touch(o, s->dir)->entries++;
}

static void empty(struct outline *o, struct name_slot *s)
{
	struct thing *t = touch(o, s->now);

	t->paths = hash_sub(t->paths, s->path);
	s->now = 0;
	touch(o, s->dir)->entries--;
}

/* ---- changes ---- */

/* Adds a part to a hash that depends on the order of parts, and on the units of torn ones. */
static struct hash128 with_part(struct hash128 parts, struct hash128 what)
{
	static const unsigned __int128 odd = (unsigned __int128)0x9e3779b97f4a7c15 << 64 |
					     0xd1b54a32d192ed03;
	unsigned __int128 x = (unsigned __int128)parts.hi << 64 | parts.lo;
	unsigned __int128 y = (unsigned __int128)what.hi << 64 | what.lo;

	x = x * odd + y;
	return (struct hash128){ (uint64_t)x, (uint64_t)(x >> 64) };
}

static void add_part(struct outline *o, struct thing *t, struct survivor what)
{
	size_t words = change_words(&o->h->changes.v[what.change]);
	struct hash128 which = o->marks.v[what.change];

	if (what.units)
		which = hash_add(which, hash_bytes(what.units, words * sizeof(*what.units)));
	t->parts = with_part(t->parts, which);
	vec_push(&o->parts, (struct part){ what, t->last_part });
	t->last_part = (uint32_t)o->parts.n - 1;
}

/* As in history_build.c: adds parts that were durable, or came before the name. */
static void add_earlier(struct outline *o, struct thing *t, uint32_t maker,
			const struct survivor *v, size_t n)
{
	const struct object *x = &o->h->objects.v[o->h->changes.v[maker].object - REFFS_ROOT_INO];
	size_t k = 0;

	for (size_t i = 0; i < x->parts.n; i++) {
		uint32_t part = x->parts.v[i];

		while (k < n && v[k].change < part)
			k++;
		if (change_is_durable(&o->h->changes.v[part], o->point))
			add_part(o, t, (struct survivor){ part, NULL });
		else if (part < maker && k < n && v[k].change == part)
			add_part(o, t, v[k]);
	}
}

/* False for a link without a target. */
static bool can_make(const struct outline *o, uint64_t object)
{
	const struct object *x = &o->h->objects.v[object - REFFS_ROOT_INO];

	return (x->type == TREE_SYMLINK) == (x->target != NULL);
}

static void name(struct outline *o, uint32_t change, const struct survivor *v, size_t n)
{
	const struct change *c = &o->h->changes.v[change];
	struct name_slot *s = open_slot(o, o->first.v[change]);

	if (!s || s->now)
		return;
	bool old = is_there(o, c->object), dir = is_dir(o, c->object);
	if (old && dir)
		return;
	if (!old && !can_make(o, c->object))
		return;
	struct thing *t = touch(o, c->object);
	if (!old) {
		t->there = t->fresh = true;
		t->names = 0;
		t->entries = 0;
		t->paths = t->parts = (struct hash128){ 0 };
		t->last_part = NONE;
	}
	t->names++;
	fill(o, s, c->object);
	if (!old)
		add_earlier(o, t, change, v, n);
}

/* Removes a name; true if that was possible. */
static bool unname(struct outline *o, struct name_slot *s)
{
	uint64_t object = s->now;
	struct thing *t = touch(o, object);
	bool dir = is_dir(o, object);

	if (dir && !is_empty(o, object))
		return false;
	empty(o, s);
	t->there = !dir && --t->names > 0;
	return true;
}

/* Renames or swaps; false if a directory moves. */
static bool move(struct outline *o, uint32_t change)
{
	bool swap = o->h->changes.v[change].kind == CHANGE_SWAP;
	struct name_slot *from = open_slot(o, o->first.v[change]);
	struct name_slot *to = open_slot(o, o->second.v[change]);

	if (!from || !to || !from->now || (swap && !to->now) || from->now == to->now)
		return true;
	uint64_t object = from->now, other = to->now;
	if (is_dir(o, object) || (swap && is_dir(o, other)))
		return false;
	if (!swap && other && !unname(o, to))
		return true;
	empty(o, from);
	if (swap)
		empty(o, to);
	fill(o, to, object);
	if (swap)
		fill(o, from, other);
	return true;
}

static bool follow(struct outline *o, const struct survivor *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t change = v[i].change;
		const struct change *c = &o->h->changes.v[change];
		struct name_slot *s;

		switch (c->kind) {
		case CHANGE_MAKE:
		case CHANGE_LINK:
			name(o, change, v, n);
			break;
		case CHANGE_REMOVE:
			s = open_slot(o, o->first.v[change]);
			if (s && s->now)
				(void)unname(o, s);
			break;
		case CHANGE_RENAME:
		case CHANGE_SWAP:
			if (!move(o, change))
				return false;
			break;
		default:
			if (is_there(o, c->object))
				add_part(o, touch(o, c->object), v[i]);
		}
	}
	return true;
}

/* ---- terms of the hash ---- */

static struct term *term_place(const struct outline *o, struct hash128 key)
{
	size_t i = key.lo & (o->cap - 1);

	while (!hash_eq(o->terms[i].key, key) && (o->terms[i].key.lo || o->terms[i].key.hi))
		i = (i + 1) & (o->cap - 1);
	return &o->terms[i];
}

static void grow_terms(struct outline *o)
{
	struct term *old = o->terms;
	size_t n = o->cap;

	if (o->n_terms >= TERMS_MAX) {
		memset(old, 0, n * sizeof(*old));
		o->n_terms = 0;
		return;
	}
	o->cap = n ? 2 * n : 1024;
	o->terms = xcalloc(o->cap, sizeof(*o->terms));
	for (size_t i = 0; i < n; i++)
		if (old[i].key.lo || old[i].key.hi)
			*term_place(o, old[i].key) = old[i];
	free(old);
}

/* Builds an object from its parts, and returns its hash. */
static struct hash128 make_term(struct outline *o, uint64_t object, const struct thing *t)
{
	vec_clear(&o->list);
	for (uint32_t i = t->last_part; i != NONE; i = o->parts.v[i].last)
		vec_push(&o->list, o->parts.v[i].what);
	for (size_t i = 0, j = o->list.n; i + 1 < j; i++) {
		struct survivor one = o->list.v[i];

		o->list.v[i] = o->list.v[--j];
		o->list.v[j] = one;
	}
	struct reffs_state *s = history_object_state(o->h, o->point, t->fresh ? NULL : o->durable,
						     object, o->list.v, o->list.n);
	struct hash128 term = graft_term(reffs_inode(s, object), t->paths);
	reffs_state_unref(s);
	return term;
}

static struct hash128 term_of(struct outline *o, uint64_t object, const struct thing *t)
{
	struct {
		uint64_t object, settled;
		struct hash128 before, parts, paths;
	} what = { object, t->settled, { 0 }, t->parts, t->paths };

	if (!t->fresh)
		what.before = t->before_term;
	struct hash128 key = hash_bytes(&what, sizeof(what));
	if (2 * o->n_terms >= o->cap)
		grow_terms(o);
	struct term *x = term_place(o, key);
	if (!hash_eq(x->key, key)) {
		o->n_terms++;
		*x = (struct term){ key, make_term(o, object, t) };
	}
	return x->term;
}

/* ---- the hash ---- */

static void begin(struct outline *o, uint64_t point)
{
	size_t times;
	struct reffs_state *durable = history_durable(o->h, point, &times);

	o->round++;
	vec_clear(&o->touched);
	vec_clear(&o->parts);
	if (o->epoch && times == o->times)
		return;
	o->epoch++;
	o->durable = durable;
	o->times = times;
	o->point = point; /* the durable state is the same at all points of an epoch */
}

bool outline_hash(struct outline *o, uint64_t point, const struct survivor *v, size_t n,
		  struct hash128 *out)
{
	begin(o, point);
	if (!follow(o, v, n))
		return false;
	struct hash128 sum = reffs_state_hash(o->durable);
	for (size_t i = 0; i < o->touched.n; i++) {
		const struct thing *t = &o->things.v[o->touched.v[i] - REFFS_ROOT_INO];

		if (t->there && !t->fresh && t->last_part == NONE &&
		    hash_eq(t->paths, t->before_names))
			continue;
		if (t->before)
			sum = hash_sub(sum, t->before_term);
		if (t->there)
			sum = hash_add(sum, term_of(o, o->touched.v[i], t));
	}
	*out = sum;
	return true;
}

struct outline *outline_new(struct history *h)
{
	struct outline *o = xcalloc(1, sizeof(*o));

	o->h = h;
	make_slots(o);
	for (size_t i = 0; i < h->objects.n; i++)
		vec_push(&o->things, (struct thing){ 0 });
	return o;
}

void outline_free(struct outline *o)
{
	if (!o)
		return;
	vec_release(&o->slots);
	vec_release(&o->first);
	vec_release(&o->second);
	vec_release(&o->marks);
	vec_release(&o->things);
	vec_release(&o->touched);
	vec_release(&o->parts);
	vec_release(&o->list);
	free(o->terms);
	free(o);
}
