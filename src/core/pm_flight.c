/* SPDX-License-Identifier: MIT */
/*
 * pm_flight.c - cuts captures into pieces, groups them, and finds what each piece needs. The head
 * of model_pm.c has R1 and R4.
 */
#include "core/pm_flight.h"

#include <assert.h>

#include "base/util.h"
#include "core/model_pm.h"

struct flight_making {
	struct pm_memory *mem;
	struct pm_flight *f;
	const struct pm_flight_opts *o;
};

static bool fits_group(const struct pm_group *g, const struct pm_atom *a)
{
	return a->addr == g->addr + g->len || a->addr + a->len == g->addr;
}

/* Groups the atoms that belong together. */
static void make_groups(struct flight_making *m)
{
	struct pm_memory *mem = m->mem;
	struct pm_flight *f = m->f;

	vec_clear(&f->groups);
	vec_reserve(&f->groups, mem->atoms.n - mem->n_gone);
	vec_clear(&f->group_of_cpu);
	for (size_t i = 0; i < m->o->n_cpus; i++)
		vec_push(&f->group_of_cpu, PM_NONE);
	for (size_t i = 0; i < mem->atoms.n; i++) {
		struct pm_atom *a = &mem->atoms.v[i];
		if (a->gone)
			continue;
		uint32_t *current = &f->group_of_cpu.v[a->cpu];
		struct pm_group *g = *current == PM_NONE ? NULL : &f->groups.v[*current];

		/* While groups are made, `piece` of a group is its last atom. */
		const struct pm_atom *last = g ? &mem->atoms.v[g->piece] : NULL;
		if (g && last->run == a->run && (m->o->eadr || last->due == a->due) &&
		    fits_group(g, a)) {
			g->addr = min(g->addr, a->addr);
			g->len += a->len;
			g->piece = (uint32_t)i;
		} else {
			*current = (uint32_t)f->groups.n;
			f->groups.v[f->groups.n++] =
				(struct pm_group){ a->addr, a->len, (uint32_t)i };
		}
		a->piece = *current;
	}
	for (size_t i = 0; i < f->groups.n; i++)
		f->groups.v[i].piece = PM_NONE;
}

/* Adds a piece that begins with an atom; there is room for it. */
static void new_piece(struct flight_making *m, const struct pm_atom *a)
{
	struct pm_flight *f = m->f;

	f->members.v[f->members.n++] = (struct pm_members){ 0 };
	f->pieces.v[f->pieces.n++] = (struct model_piece){
		.event = a->event, .addr = a->addr, .completed = m->o->eadr ? !a->nt : a->due
	};
}

/* Makes a piece of each group, or of each atom of a small one. */
static void make_members(struct flight_making *m)
{
	struct pm_memory *mem = m->mem;
	struct pm_flight *f = m->f;

	vec_clear(&f->pieces);
	vec_clear(&f->members);
	vec_reserve(&f->pieces, mem->atoms.n - mem->n_gone);
	vec_reserve(&f->members, mem->atoms.n - mem->n_gone);
	vec_each(a, &mem->atoms) {
		if (a->gone)
			continue;
		struct pm_group *g = &f->groups.v[a->piece];
		bool joined = g->len > m->o->join_min;

		if (!joined || g->piece == PM_NONE) {
			g->piece = (uint32_t)f->pieces.n;
			new_piece(m, a);
		}
		a->piece = g->piece;
		struct model_piece *piece = &f->pieces.v[a->piece];
		piece->addr = min(piece->addr, a->addr);
		piece->len += a->len;
		f->members.v[a->piece].n++;
	}
}

/* Lists the atoms of each piece. */
static void order_members(struct flight_making *m)
{
	struct pm_memory *mem = m->mem;
	struct pm_flight *f = m->f;
	uint32_t at = 0;

	vec_clear(&f->order);
	vec_reserve(&f->order, mem->atoms.n - mem->n_gone);
	f->order.n = mem->atoms.n - mem->n_gone;
	for (size_t i = 0; i < f->members.n; i++) {
		f->members.v[i].first = at;
		at += f->members.v[i].n;
		f->members.v[i].n = 0;
	}
	for (size_t i = 0; i < mem->atoms.n; i++) {
		if (mem->atoms.v[i].gone)
			continue;
		struct pm_members *of = &f->members.v[mem->atoms.v[i].piece];

		f->order.v[of->first + of->n++] = (uint32_t)i;
	}
}

/*
 * Cuts a piece into its units: a single store within a line between its words, others between
 * segments. A copy under eADR is not cut: its stores are executed one after the other, and join_min
 * is there to see each of them.
 */
static void cut_piece(struct flight_making *m, struct model_piece *piece,
		      const struct pm_members *of)
{
	uint32_t unit = min(m->o->tear_unit, (uint32_t)1 << 30);

	unit = (unit + PM_ATOMIC - 1) / PM_ATOMIC * PM_ATOMIC;
	if (of->n > 1 && unit)
		unit = m->o->eadr && piece->completed ? 0
						      : max(unit, (uint32_t)m->mem->segment_size);
	model_piece_cut(piece, unit);
}

static void add_need(struct flight_making *m, uint32_t piece, uint32_t other)
{
	struct pm_flight *f = m->f;

	if (piece == other)
		return;
	assert(other < piece);
	/* Two copies share many segments; one entry is enough. */
	if (f->need.n && vec_last(&f->need).piece == piece && vec_last(&f->need).other == other)
		return;
	vec_push(&f->need, (struct pm_need){ piece, other });
	f->pieces.v[piece].n_needs++;
}

/* Gives each piece its part of the list of needs. */
static void give_needs(struct flight_making *m)
{
	struct pm_flight *f = m->f;
	size_t at = 0;

	vec_clear(&f->needs);
	vec_reserve(&f->needs, f->need.n + 1);
	f->needs.n = f->need.n;
	for (size_t i = 0; i < f->pieces.n; i++) {
		f->pieces.v[i].needs = f->needs.v + at;
		at += f->pieces.v[i].n_needs;
		f->pieces.v[i].n_needs = 0;
	}
	for (size_t i = 0; i < f->need.n; i++) {
		struct model_piece *piece = &f->pieces.v[f->need.v[i].piece];
		size_t first = (size_t)(piece->needs - f->needs.v);

		f->needs.v[first + piece->n_needs++] = f->need.v[i].other;
	}
}

/* By R1 a piece needs the pieces before it in its segments; by R4, the store before it. */
static void find_needs(struct flight_making *m)
{
	struct pm_memory *mem = m->mem;
	struct pm_flight *f = m->f;
	uint32_t before = PM_NONE;

	vec_clear(&f->need);
	vec_each(a, &mem->atoms) {
		if (!a->gone && a->next != PM_NONE)
			add_need(m, mem->atoms.v[a->next].piece, a->piece);
	}
	for (size_t i = 0; m->o->eadr && i < mem->atoms.n; i++) {
		const struct pm_atom *a = &mem->atoms.v[i];

		if (a->gone || a->nt)
			continue;
		if (before != PM_NONE)
			add_need(m, a->piece, before);
		before = a->piece;
	}
	give_needs(m);
}

void pm_flight_make(struct pm_flight *f, struct pm_memory *mem, const struct pm_flight_opts *o)
{
	struct flight_making m = { mem, f, o };

	arena_clear(&f->data);
	make_groups(&m);
	make_members(&m);
	order_members(&m);
	find_needs(&m);
	for (size_t i = 0; i < f->pieces.n; i++)
		cut_piece(&m, &f->pieces.v[i], &f->members.v[i]);
}

const unsigned char *pm_flight_data(struct pm_flight *f, const struct pm_memory *mem, size_t index)
{
	struct pm_members *of = &f->members.v[index];
	const struct model_piece *p = &f->pieces.v[index];
	const struct pm_atom *first = &mem->atoms.v[f->order.v[of->first]];

	if (!of->data && of->n == 1)
		of->data = first->data;
	if (of->data)
		return of->data;
	unsigned char *data = arena_alloc(&f->data, p->len);
	for (uint32_t i = 0; i < of->n; i++) {
		const struct pm_atom *a = &mem->atoms.v[f->order.v[of->first + i]];

		memcpy(data + (a->addr - p->addr), a->data, a->len);
	}
	return of->data = data;
}

void pm_flight_release(struct pm_flight *f)
{
	vec_release(&f->pieces);
	vec_release(&f->members);
	vec_release(&f->order);
	vec_release(&f->groups);
	vec_release(&f->group_of_cpu);
	vec_release(&f->need);
	vec_release(&f->needs);
	arena_release(&f->data);
}
