/* SPDX-License-Identifier: MIT */
/*
 * gen.c - bounded exhaustive generation, after ACE (Mohan et al., OSDI 2018, section 5.2).
 *
 * The four phases of the paper, and where they are here:
 *   1 choose operations, 2 choose arguments: gen_choices.c lists every operation with every
 *     argument once; a workload takes one of them at each position.
 *   3 add persistence points: after each position, one of persist_options().
 *   4 add the operations that these depend on: gen_world.c.
 *
 * The choices that may follow depend only on the names used so far (struct used), not on the order
 * of their use. So the number of workloads below a position is a function of struct used, kept in a
 * memo table; with the table, gen_seek finds the workload of any number by walking down once, and
 * gen_next the next workload by changing the deepest choice that has a next value.
 *
 * Order: lexicographic in (choice 1, persistence 1, choice 2, ...).
 *
 * Symmetry: names that differ only in their spelling (siblings of the same kind whose directories
 * may hold the same names) are taken in order: a name is used only after the names before it. So
 * exactly one of all workloads that are equal up to such renaming is generated.
 */
#include "workload/gen.h"

#include <errno.h>

#include "base/hash.h"
#include "base/number.h"
#include "workload/gen_choices.h"
#include "workload/gen_world.h"

/* A part of the fingerprint: raise it when the same bounds give another order or other texts. */
enum { GEN_VERSION = 1 };

/* The state after earlier positions, on which later ones depend. */
struct used {
	names_t names;	   /* taken by an operation */
	names_t subjects;  /* names that a persistence operation may act on */
	names_t data;	   /* names whose data was changed */
	names_t last_data; /* the file of the operation before, if that was a data operation */
	bool spare;	   /* an operation was followed by no persistence point */
};

struct memo_entry {
	struct used used;
	unsigned position;
	uint64_t count;
	bool full;
};

/* One position of the workload being built. */
struct position {
	size_t choice;
	uint64_t persist;   /* the number of the option */
	uint64_t n_persist; /* the number of options */
	struct used before, after;
	size_t text_before; /* length of the text up to here */
	size_t text_op;	    /* ... with the operation */
	struct gen_world world_before;
	struct gen_world world_op;
};

struct gen_part {
	struct bounds b;
	struct gen *g;
};

struct gen {
	const struct bounds *b;
	struct vec_of(struct gen_part) parts; /* a union uses these and `index` */
	struct arena arena;
	struct gen_pool pool;
	struct gen_choices choices;
	struct memo_entry *memo;
	size_t memo_n, memo_cap;
	uint64_t count_steps;
	bool overflow;
	uint64_t count;
	char prefix[96]; /* "workload NAME.FINGERPRINT/" */
	uint64_t index;	 /* the number of the workload that gen_next() gives next */
	bool started;	 /* levels hold workload index-1 */
	struct position level[BOUNDS_LENGTH_MAX];
	struct strbuf text;
	struct strbuf composed; /* the same, if all setup comes first */
	struct strbuf out;
};

/* ---- which choices may follow ---- */

/* Takes a name into use; false if an interchangeable name should have come first. */
static bool introduce(const struct gen_pool *p, names_t *touched, unsigned name)
{
	for (names_t left = p->name[name].line & ~*touched; left; left &= left - 1) {
		unsigned n = (unsigned)__builtin_ctzll(left);

		/* Ancestors have lower numbers, so they are visited first. */
		if (p->name[n].older & ~*touched)
			return false;
		*touched |= name_bit(n);
	}
	return true;
}

static names_t touched_by(const struct gen_pool *p, names_t names)
{
	names_t touched = 0;

	for (; names; names &= names - 1)
		touched |= p->name[__builtin_ctzll(names)].line;
	return touched;
}

static names_t related(const struct gen_pool *p, names_t names)
{
	names_t all = names;

	for (; names; names &= names - 1) {
		const struct gen_name *name = &p->name[__builtin_ctzll(names)];

		all |= name->siblings | name_bit(name->parent);
	}
	return all;
}

static bool may_follow(const struct gen *g, const struct used *u, const struct gen_choice *c)
{
	names_t touched = touched_by(&g->pool, u->names);

	for (unsigned i = 0; i < 2 && c->name[i] != NAME_NONE; i++)
		if (!introduce(&g->pool, &touched, c->name[i]))
			return false;
	if (!u->names)
		return true;
	if (g->b->reuse == REUSE_SAME && c->uses && !(c->uses & u->names))
		return false;
	if (g->b->reuse == REUSE_RELATED && c->uses && !(c->uses & related(&g->pool, u->names)))
		return false;
	if (g->b->overlap && u->last_data && c->data && !(c->data & u->last_data))
		return false;
	return true;
}

static struct used follow(const struct used *u, const struct gen_choice *c)
{
	return (struct used){
		.names = u->names | c->uses,
		.subjects = u->subjects | c->subjects,
		.data = u->data | c->data,
		.last_data = c->data,
		.spare = u->spare,
	};
}

/* ---- persistence points ---- */

static names_t parents_of(const struct gen *g, names_t names)
{
	names_t parents = 0;

	for (; names; names &= names - 1)
		parents |= name_bit(g->pool.name[__builtin_ctzll(names)].parent);
	return parents;
}

/* The files in a directory that are used, and one that is not, which stands for all those. */
static names_t children_of(const struct gen *g, const struct used *u, unsigned dir)
{
	names_t files = g->pool.name[dir].children & gen_pool_names(&g->pool, false);
	names_t unused = files & ~u->names;

	return (files & u->names) | (unused & -unused);
}

/* The names that fsync may act on after `c`. One unused sibling stands for all. */
static names_t fsync_targets(const struct gen *g, const struct used *u, const struct gen_choice *c,
			     unsigned on)
{
	names_t targets = on & ON_USED ? u->subjects : on & ON_LATEST ? c->left : 0;

	names_t more = on & (ON_PARENTS | ON_ANCESTORS) ? parents_of(g, targets) : 0;

	for (names_t last = 0; on & ON_ANCESTORS && more != last;) {
		last = more;
		more |= parents_of(g, more);
	}
	for (names_t left = on & ON_CHILDREN ? targets : 0; left; left &= left - 1)
		more |= children_of(g, u, (unsigned)__builtin_ctzll(left));
	for (names_t left = on & ON_SIBLINGS ? targets : 0; left; left &= left - 1) {
		names_t unused = g->pool.name[__builtin_ctzll(left)].siblings & ~u->names;

		more |= unused & -unused;
	}
	return targets | more;
}

struct persist_point {
	enum persist_kind kind;
	unsigned name; /* for fsync and fdatasync */
};

struct persist_options {
	names_t fsync, fdatasync;
	names_t pair; /* targets of two in a row */
	unsigned n_fsync, n_single, n_pair;
	bool none; /* no persistence point may, or can, follow */
	bool last;
};

static struct persist_options persist_options(const struct gen *g, const struct used *u,
					      const struct gen_choice *c, bool last)
{
	struct persist_options o = { .last = last };
	unsigned kinds = g->b->persist;

	o.none = !kinds || c->persists;
	if (o.none)
		return o;
	if (kinds & 1 << PERSIST_FSYNC)
		o.fsync = fsync_targets(g, u, c, last ? g->b->last_persist_on : g->b->persist_on);
	if (kinds & 1 << PERSIST_FDATASYNC)
		o.fdatasync = u->data;
	o.n_fsync = (unsigned)__builtin_popcountll(o.fsync);
	o.n_single = o.n_fsync + (unsigned)__builtin_popcountll(o.fdatasync) +
		     !!(kinds & 1 << PERSIST_SYNC) + !!(kinds & 1 << PERSIST_SYNCFS);
	/* A data operation touches one file: a second point would tell nothing new. */
	if (last && !c->data &&
	    (g->b->persist_twice == TWICE_ALWAYS || (g->b->persist_twice && u->spare)))
		o.pair = o.fsync & (c->left | parents_of(g, u->subjects));
	unsigned n = (unsigned)__builtin_popcountll(o.pair);
	o.n_pair = n ? n * (n - 1) : 0;
	return o;
}

/* The number of options after the operation. */
static uint64_t persist_count(const struct persist_options *o)
{
	if (o->none)
		return 1;
	return o->last ? o->n_single + o->n_pair : 1 + o->n_single;
}

static unsigned nth_name(names_t names, uint64_t n)
{
	while (n--)
		names &= names - 1;
	return (unsigned)__builtin_ctzll(names);
}

static struct persist_point nth_single(const struct gen *g, const struct persist_options *o,
				       uint64_t n)
{
	if (n < o->n_fsync)
		return (struct persist_point){ PERSIST_FSYNC, nth_name(o->fsync, n) };
	n -= o->n_fsync;
	if (n < (unsigned)__builtin_popcountll(o->fdatasync))
		return (struct persist_point){ PERSIST_FDATASYNC, nth_name(o->fdatasync, n) };
	n -= (unsigned)__builtin_popcountll(o->fdatasync);
	if (n == 0 && g->b->persist & 1 << PERSIST_SYNC)
		return (struct persist_point){ PERSIST_SYNC, NAME_NONE };
	return (struct persist_point){ PERSIST_SYNCFS, NAME_NONE };
}

/* Gives the points that option `n` stands for; returns their number. */
static unsigned nth_persist(const struct gen *g, const struct persist_options *o, uint64_t n,
			    struct persist_point out[2])
{
	if (o->none || (!o->last && n == 0))
		return 0;
	if (!o->last)
		n--;
	if (n < o->n_single) {
		out[0] = nth_single(g, o, n);
		return 1;
	}
	n -= o->n_single;
	uint64_t others = (unsigned)__builtin_popcountll(o->pair) - 1;
	unsigned first = nth_name(o->pair, n / others);
	out[0] = (struct persist_point){ PERSIST_FSYNC, first };
	out[1] = (struct persist_point){ PERSIST_FSYNC,
					 nth_name(o->pair & ~name_bit(first), n % others) };
	return 2;
}

static void add_point(const struct gen *g, struct gen_world *w, const struct persist_point *point,
		      struct strbuf *out)
{
	static const char *const verbs[] = { [PERSIST_FSYNC] = "fsync ",
					     [PERSIST_FDATASYNC] = "fdatasync ",
					     [PERSIST_SYNC] = "sync",
					     [PERSIST_SYNCFS] = "syncfs" };

	if (point->name != NAME_NONE)
		gen_world_require(w, &g->pool, point->name, out);
	strbuf_adds(out, verbs[point->kind]);
	if (point->name != NAME_NONE)
		strbuf_adds(out, g->pool.name[point->name].path);
	strbuf_addch(out, '\n');
}

/* ---- counting ---- */

/* Limits of the memo table's entries, and of counting: half a gigabyte and a few seconds. */
enum { MEMO_MAX = 1 << 22, COUNT_STEPS_MAX = 100 * 1000 * 1000 };

static struct memo_entry *memo_slot(struct gen *g, unsigned position, const struct used *u)
{
	struct {
		struct used used;
		unsigned position;
	} key;

	memset(&key, 0, sizeof(key)); /* padding is hashed as well */
	key.used.names = u->names;
	key.used.subjects = u->subjects;
	key.used.data = u->data;
	key.used.last_data = u->last_data;
	key.used.spare = u->spare;
	key.position = position;
	for (size_t i = hash64(&key, sizeof(key));; i++) {
		struct memo_entry *e = &g->memo[i & (g->memo_cap - 1)];

		if (!e->full || (e->position == position && e->used.names == u->names &&
				 e->used.subjects == u->subjects && e->used.data == u->data &&
				 e->used.last_data == u->last_data && e->used.spare == u->spare))
			return e;
	}
}

static void memo_grow(struct gen *g)
{
	struct memo_entry *old = g->memo;
	size_t old_cap = g->memo_cap;

	g->memo_cap = old_cap ? old_cap * 2 : 1024;
	g->memo = xcalloc(g->memo_cap, sizeof(*g->memo));
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].full)
			*memo_slot(g, old[i].position, &old[i].used) = old[i];
	free(old);
}

static uint64_t count_from(struct gen *g, unsigned position, const struct used *u);

/* The number of workloads with `c` at `position`, where it may follow `u`. */
static uint64_t count_choice(struct gen *g, unsigned position, const struct used *u,
			     const struct gen_choice *c)
{
	struct used after = follow(u, c);
	bool last = position + 1 == g->b->length;
	struct persist_options o = persist_options(g, &after, c, last);
	uint64_t n = persist_count(&o), with, without;

	if (last)
		return n;
	with = count_from(g, position + 1, &after);
	if (o.none)
		return with;
	after.spare = true;
	without = count_from(g, position + 1, &after);
	if (__builtin_mul_overflow(n - 1, with, &with) ||
	    __builtin_add_overflow(with, without, &with))
		g->overflow = true;
	return with;
}

static uint64_t count_from(struct gen *g, unsigned position, const struct used *u)
{
	struct memo_entry *e = memo_slot(g, position, u);

	if (e->full)
		return e->count;
	uint64_t total = 0;
	for (size_t i = 0; i < g->choices.n && !g->overflow; i++) {
		const struct gen_choice *c = &g->choices.v[i];

		if (may_follow(g, u, c) &&
		    __builtin_add_overflow(total, count_choice(g, position, u, c), &total))
			g->overflow = true;
	}
	g->count_steps += g->choices.n;
	if (g->memo_n >= MEMO_MAX || g->count_steps > COUNT_STEPS_MAX)
		g->overflow = true;
	if (g->overflow)
		return 0;
	if (2 * (g->memo_n + 1) > g->memo_cap)
		memo_grow(g);
	e = memo_slot(g, position, u); /* the table may have moved */
	*e = (struct memo_entry){ *u, position, total, true };
	g->memo_n++;
	return total;
}

/* ---- building one ---- */

/* Writes operation `choice` of a level, after the operations that it depends on. */
static void enter_op(struct gen *g, unsigned position, size_t choice)
{
	struct position *l = &g->level[position];
	const struct gen_choice *c = &g->choices.v[choice];
	bool last = position + 1 == g->b->length;

	l->choice = choice;
	l->after = follow(&l->before, c);
	strbuf_cut(&g->text, l->text_before);
	l->world_op = l->world_before;
	gen_world_prepare(&l->world_op, &g->pool, g->b, c, &g->text);
	if (!position && g->b->durable_setup && g->text.len)
		strbuf_adds(&g->text, "setup sync\n");
	gen_world_perform(&l->world_op, &g->pool, c, &g->text);
	l->text_op = g->text.len;
	struct persist_options o = persist_options(g, &l->after, c, last);
	l->n_persist = persist_count(&o);
}

/* Writes the persistence points of a level, and prepares the next level. */
static void enter_persist(struct gen *g, unsigned position, uint64_t persist)
{
	struct position *l = &g->level[position];
	const struct gen_choice *c = &g->choices.v[l->choice];
	bool last = position + 1 == g->b->length;
	struct persist_options o = persist_options(g, &l->after, c, last);
	struct persist_point points[2];
	unsigned n = nth_persist(g, &o, persist, points);

	l->persist = persist;
	strbuf_cut(&g->text, l->text_op);
	if (last) {
		struct gen_world scratch;
		struct gen_world *w = &l->world_op;

		if (n > 1) {
			scratch = l->world_op; /* the first may make a file that the second needs */
			w = &scratch;
		} else if (n && points[0].name != NAME_NONE && !w->at[points[0].name]) {
			scratch = l->world_op;
			w = &scratch;
		}
		for (unsigned i = 0; i < n; i++)
			add_point(g, w, &points[i], &g->text);
		return;
	}
	struct position *next = &g->level[position + 1];
	next->world_before = l->world_op;
	for (unsigned i = 0; i < n; i++)
		add_point(g, &next->world_before, &points[i], &g->text);
	next->before = l->after;
	next->before.spare = l->after.spare || (!n && !o.none);
	next->text_before = g->text.len;
}

/* Returns the first choice from `from` on that is allowed at this level, or n. */
static size_t next_choice(const struct gen *g, unsigned position, size_t from)
{
	while (from < g->choices.n &&
	       !may_follow(g, &g->level[position].before, &g->choices.v[from]))
		from++;
	return from;
}

/* Goes on to the next workload: changes the deepest level that has a next choice. */
static void advance(struct gen *g)
{
	unsigned n = g->b->length, at = n;

	while (at-- > 0) {
		struct position *l = &g->level[at];

		if (l->persist + 1 < l->n_persist) {
			enter_persist(g, at, l->persist + 1);
			break;
		}
		size_t choice = next_choice(g, at, l->choice + 1);
		/* A choice after which no option is left has no workload. */
		for (; choice < g->choices.n; choice = next_choice(g, at, choice + 1)) {
			enter_op(g, at, choice);
			if (l->n_persist)
				break;
		}
		if (choice < g->choices.n) {
			enter_persist(g, at, 0);
			break;
		}
	}
	assert(at < n);
	for (at++; at < n; at++) {
		size_t choice = next_choice(g, at, 0);

		for (; choice < g->choices.n; choice = next_choice(g, at, choice + 1)) {
			enter_op(g, at, choice);
			if (g->level[at].n_persist)
				break;
		}
		if (choice >= g->choices.n) {
			/* No choice is allowed here: go on one level up. */
			g->level[at].choice = g->choices.n;
			g->level[at].persist = g->level[at].n_persist = 0;
			for (unsigned rest = at + 1; rest < n; rest++) {
				g->level[rest].choice = g->choices.n;
				g->level[rest].persist = g->level[rest].n_persist = 0;
			}
			advance(g);
			return;
		}
		enter_persist(g, at, 0);
	}
}

/* Builds workload `index` without the one before it. */
static void build(struct gen *g, uint64_t index)
{
	g->level[0].before = (struct used){ 0 };
	g->level[0].text_before = 0;
	gen_world_init(&g->level[0].world_before);
	for (unsigned at = 0; at < g->b->length; at++) {
		struct position *l = &g->level[at];
		size_t choice = next_choice(g, at, 0);
		uint64_t below = 0;

		for (;; choice = next_choice(g, at, choice + 1)) {
			assert(choice < g->choices.n);
			below = count_choice(g, at, &l->before, &g->choices.v[choice]);
			if (index < below)
				break;
			index -= below;
		}
		enter_op(g, at, choice);
		uint64_t persist = 0;
		for (;; persist++) {
			assert(persist < l->n_persist);
			enter_persist(g, at, persist);
			if (at + 1 == g->b->length) {
				if (!index--)
					break;
				continue;
			}
			below = count_from(g, at + 1, &g->level[at + 1].before);
			if (index < below)
				break;
			index -= below;
		}
	}
}

/*
 * Writes the workload that the levels hold once more, with the setup of all operations before the
 * first one, as far as that is possible.
 */
static void compose(struct gen *g)
{
	struct gen_world w;
	names_t used = 0;

	gen_world_init(&w);
	strbuf_clear(&g->composed);
	for (unsigned at = 0; at < g->b->length; at++) {
		const struct gen_choice *c = &g->choices.v[g->level[at].choice];

		gen_world_prepare_first(&w, &g->pool, g->b, c, used, &g->composed);
		used |= c->uses;
	}
	if (g->b->durable_setup && g->composed.len)
		strbuf_adds(&g->composed, "setup sync\n");
	for (unsigned at = 0; at < g->b->length; at++) {
		const struct position *l = &g->level[at];
		const struct gen_choice *c = &g->choices.v[l->choice];
		struct persist_options o = persist_options(g, &l->after, c, at + 1 == g->b->length);
		struct persist_point points[2];
		unsigned n = nth_persist(g, &o, l->persist, points);

		gen_world_prepare(&w, &g->pool, g->b, c, &g->composed);
		gen_world_perform(&w, &g->pool, c, &g->composed);
		for (unsigned i = 0; i < n; i++)
			add_point(g, &w, &points[i], &g->composed);
	}
}

/* ---- the interface ---- */

static void make_prefix(struct gen *g)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "%d\n", GEN_VERSION);
	bounds_print(g->b, &text);
	snprintf(g->prefix, sizeof(g->prefix), "workload %s.%04x/", g->b->name,
		 (unsigned)(hash64(strbuf_str(&text), text.len) & 0xffff));
}

/* A union has its parts, which are named sets. */
static int add_parts(struct gen *g, struct err *err)
{
	for (size_t i = 0; i < g->b->parts.n; i++) {
		vec_push(&g->parts, (struct gen_part){ .g = NULL });
		struct gen_part *part = &vec_last(&g->parts);
		bounds_init(&part->b);
		int rc = bounds_load(g->b->parts.v[i]->name, &part->b, err);

		/* The vector may move what it holds: the generator gets its bounds at the end. */
		if (rc)
			return rc;
	}
	vec_each(part, &g->parts) {
		int rc = gen_new(&part->b, &part->g, err);

		if (rc)
			return rc;
		g->count += gen_count(part->g);
	}
	return 0;
}

int gen_new(const struct bounds *b, struct gen **out, struct err *err)
{
	struct gen *g = xcalloc(1, sizeof(*g));
	struct used none = { 0 };
	int rc = 0;

	g->b = b;
	if (b->parts.n) {
		rc = add_parts(g, err);
		if (rc)
			gen_free(g);
		else
			*out = g;
		return rc;
	}
	gen_pool_init(&g->pool, b, &g->arena);
	gen_choices_init(&g->choices, b, &g->pool, &g->arena);
	memo_grow(g);
	g->count = count_from(g, 0, &none);
	make_prefix(g);
	if (g->overflow || g->count > INT64_MAX)
		rc = err_set(err, -EOVERFLOW,
			     "%s: more workloads than can be counted; "
			     "make the bounds narrower",
			     b->name);
	else if (!g->count)
		rc = err_set(
			err, -EINVAL,
			"%s: no workload fits these bounds; see that its operations find files, "
			"directories, ranges, falloc-modes, sizes and xattrs, and fsync "
			"something to act on",
			b->name);
	if (rc) {
		gen_free(g);
		return rc;
	}
	*out = g;
	return 0;
}

void gen_free(struct gen *g)
{
	if (!g)
		return;
	vec_each(part, &g->parts) {
		gen_free(part->g);
		bounds_release(&part->b);
	}
	vec_release(&g->parts);
	gen_choices_release(&g->choices);
	free(g->memo);
	strbuf_release(&g->text);
	strbuf_release(&g->composed);
	strbuf_release(&g->out);
	arena_release(&g->arena);
	free(g);
}

uint64_t gen_count(const struct gen *g)
{
	return g->count;
}

/* The part that holds a workload; `index` becomes its number there. */
static struct gen *part_at(const struct gen *g, uint64_t *index)
{
	size_t i = 0;

	for (; i + 1 < g->parts.n && *index >= gen_count(g->parts.v[i].g); i++)
		*index -= gen_count(g->parts.v[i].g);
	return g->parts.v[i].g;
}

void gen_seek(struct gen *g, uint64_t index)
{
	g->index = index;
	g->started = false;
}

bool gen_next(struct gen *g, const char **text, size_t *len)
{
	if (g->index >= g->count)
		return false;
	if (g->parts.n) {
		uint64_t index = g->index++;
		struct gen *part = part_at(g, &index);

		if (part->index != index)
			gen_seek(part, index);
		return gen_next(part, text, len);
	}
	if (g->started)
		advance(g);
	else
		build(g, g->index);
	g->started = true;
	strbuf_clear(&g->out);
	strbuf_adds(&g->out, g->prefix);
	strbuf_addu(&g->out, g->index);
	strbuf_addch(&g->out, '\n');
	if (g->b->setup_first)
		compose(g);
	const struct strbuf *body = g->b->setup_first ? &g->composed : &g->text;
	strbuf_add(&g->out, body->buf, body->len);
	strbuf_addch(&g->out, '\n');
	g->index++;
	*text = g->out.buf;
	*len = g->out.len;
	return true;
}

void gen_name(const struct gen *g, uint64_t index, struct strbuf *out)
{
	if (g->parts.n)
		g = part_at(g, &index);
	strbuf_adds(out, g->prefix + strlen("workload "));
	strbuf_addu(out, index);
}

void gen_identity(const struct gen *g, struct strbuf *out)
{
	if (!g->parts.n)
		gen_name(g, 0, out);
	vec_each(part, &g->parts)
		gen_name(part->g, 0, out);
}

char *gen_name_set(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *dot = slash ? memrchr(name, '.', (size_t)(slash - name)) : NULL;

	return dot && dot > name ? xmemdupz(name, (size_t)(dot - name)) : NULL;
}

int gen_name_index(const struct gen *g, const char *name, uint64_t *index, struct err *err)
{
	const char *prefix = g->prefix + strlen("workload ");
	size_t n = strlen(prefix);
	uint64_t before = 0;

	vec_each(part, &g->parts) {
		auto_free char *set = gen_name_set(name);

		if (set && streq(set, part->b.name)) {
			int rc = gen_name_index(part->g, name, index, err);
			*index += before;
			return rc;
		}
		before += gen_count(part->g);
	}
	if (g->parts.n)
		return err_set(err, -EINVAL, "'%.100s' is in no set of %s", name, g->b->name);
	if (strncmp(name, prefix, n) != 0)
		return err_set(err, -EINVAL,
			       "'%.100s' is not a workload of %.*s: the bounds, or the "
			       "generator, have changed since it was named",
			       name, (int)(n - 1), prefix);
	if (number_parse(name + n, index))
		return err_set(err, -EINVAL, "'%.100s' does not end with a number", name);
	if (*index >= g->count)
		return err_set(err, -ERANGE,
			       "%.*s has %llu workloads, numbered from 0; there is no %s",
			       (int)(n - 1), prefix, llu(g->count), name + n);
	return 0;
}
