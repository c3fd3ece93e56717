/* SPDX-License-Identifier: MIT */
/* pm_memory.c - keeps the atoms in flight page by page, and drains those that became durable. */
#include "core/pm_memory.h"

#include <assert.h>

#include "base/util.h"

enum { HOLES_MIN = 4 }; /* fewer holes are not closed */

void pm_memory_release(struct pm_memory *mem)
{
	vec_release(&mem->atoms);
	vec_release(&mem->segments);
	u64map_release(&mem->segment_of);
}

/* Fills `to` with the atoms of `from` that are not gone; they may be the same. */
static void keep_atoms(const struct pm_memory *from, struct pm_memory *to)
{
	size_t n = from->atoms.n, kept = 0;

	u64map_clear(&to->segment_of);
	vec_clear(&to->segments);
	if (from != to)
		vec_reserve(&to->atoms, n - from->n_gone);
	for (size_t i = 0; i < n; i++)
		if (!from->atoms.v[i].gone) {
			to->atoms.v[kept] = from->atoms.v[i];
			uint64_t number = to->atoms.v[kept].addr / to->segment_size;

			pm_segment_link(to, (uint32_t)kept, pm_segment_get(to, number));
			kept++;
		}
	to->atoms.n = kept;
	to->n_gone = 0;
}

void pm_memory_copy(const struct pm_memory *from, struct pm_memory *to)
{
	to->segment_size = from->segment_size;
	keep_atoms(from, to);
}

void pm_captures_copy(const struct pm_captures *from, struct pm_captures *to)
{
	*to = (struct pm_captures){ 0 };
	for (size_t i = 0; i < from->n; i++)
		vec_push(to, from->v[i]);
}

static void page_out(struct pm_drain *d)
{
	if (d->from < d->to)
		image_write(d->img, d->addr + d->from, d->data + d->from, d->to - d->from);
	d->addr = UINT64_MAX;
	d->from = IMAGE_PAGE;
	d->to = 0;
}

static void take_atom(struct pm_drain *d, const struct pm_atom *a)
{
	uint64_t page = a->addr / IMAGE_PAGE * IMAGE_PAGE;
	size_t at = a->addr - page;

	if (page != d->addr) {
		page_out(d);
		d->addr = page;
		d->size = min((uint64_t)IMAGE_PAGE, d->img->size - page);
		image_read(d->img, page, d->data, d->size);
	}
	assert(at + a->len <= d->size);
	memcpy(d->data + at, a->data, a->len);
	d->from = min(d->from, at);
	d->to = max(d->to, at + a->len);
}

void pm_drain_segment(struct pm_drain *d, struct pm_segment *s, uint64_t seq)
{
	struct pm_memory *mem = d->mem;
	bool to_plain = s->plain != PM_NONE && mem->atoms.v[s->plain].seq <= seq;

	while (s->head != PM_NONE && mem->atoms.v[s->head].seq <= seq) {
		struct pm_atom *a = &mem->atoms.v[s->head];

		take_atom(d, a);
		a->gone = true;
		mem->n_gone++;
		s->head = a->next;
	}
	if (s->head == PM_NONE)
		s->tail = PM_NONE;
	if (to_plain)
		s->plain = s->head;
}

void pm_drain_captures(struct pm_drain *d, struct pm_captures *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct pm_segment *s = pm_segment_find(d->mem, c->v[i].segment);

		if (s)
			pm_drain_segment(d, s, c->v[i].seq);
	}
	vec_clear(c);
}

void pm_drain_begin(struct pm_drain *d, struct pm_memory *mem, struct image *durable)
{
	d->mem = mem;
	d->img = durable;
	d->from = d->to = 0;
	page_out(d);
}

void pm_drain_end(struct pm_drain *d)
{
	struct pm_memory *mem = d->mem;

	page_out(d);
	if (mem->n_gone > HOLES_MIN && mem->n_gone > mem->atoms.n / 2)
		keep_atoms(mem, mem);
}
