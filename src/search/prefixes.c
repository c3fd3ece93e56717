/* SPDX-License-Identifier: MIT */
/* prefixes.c - goes through a trace once, and notes the content of the memory at each point. */
#include "search/prefixes.h"

#include "core/patch.h"

static uint64_t key_of(struct hash128 image, uint64_t marks)
{
	struct hash128 both[2] = { image, { marks, 0 } };

	return hash_bytes(both, sizeof(both)).lo;
}

void prefixes_find(const struct trace *t, const struct image *base,
		   const struct crash_points *points, struct prefixes *out)
{
	auto_image img = IMAGE_INIT;
	struct patch patch;

	assert(!points->n || vec_last(points) <= t->events.n);
	*out = (struct prefixes){ 0 };
	image_snapshot(base, &img);
	patch_init(&patch, &img);
	for (uint64_t at = 0, i = 0; at <= t->events.n; at++) {
		if (i < points->n && points->v[i] == at) {
			patch_finish(&patch);
			uint64_t key = key_of(image_hash(&img), out->marks.n);
			if (at < U64MAP_NONE && u64map_get(&out->at, key) == U64MAP_NONE)
				u64map_add(&out->at, key, (uint32_t)at);
			i++;
		}
		const struct event *ev = at < t->events.n ? &t->events.v[at] : NULL;
		if (ev && ev->kind == EV_STORE)
			patch_write(&patch, ev->addr, ev->data, ev->len);
		if (ev && event_marks(ev->kind))
			vec_push(&out->marks, at);
	}
}

void prefixes_release(struct prefixes *p)
{
	u64map_release(&p->at);
	vec_release(&p->marks);
}

uint32_t prefixes_like(const struct prefixes *p, const struct crash_state *s)
{
	uint64_t marks = 0;

	while (marks < p->marks.n && p->marks.v[marks] < s->point)
		marks++;
	return s->torn.n ? U64MAP_NONE : u64map_get(&p->at, key_of(s->hash, marks));
}
