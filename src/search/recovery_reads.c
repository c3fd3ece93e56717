/* SPDX-License-Identifier: MIT */
/* recovery_reads.c - remembers the reads of each recovery, and finds the writes among them. */
#include "search/recovery_reads.h"

void reads_release(struct reads *r)
{
	for (size_t i = 0; i < r->n; i++)
		vec_release(&r->v[i].where);
	vec_release(r);
}

void reads_learn(struct reads_of *of, const struct trace *record, uint64_t unit, bool stores)
{
	assert(unit > 0);
	vec_each(ev, &record->events) {
		bool read = ev->kind == EV_READ || ev->kind == EV_LOAD;

		if (!ev->len || !(read || (stores && ev->kind == EV_STORE)))
			continue;
		struct reads_span s = { ev->addr / unit * unit,
					((ev->addr + ev->len - 1) / unit + 1) * unit };
		if (!of->where.n || vec_last(&of->where).from != s.from ||
		    vec_last(&of->where).to != s.to)
			vec_push(&of->where, s);
	}
}

static int compare(const void *a, const void *b)
{
	const struct reads_span *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

void reads_settle(struct reads_of *of)
{
	struct reads_span *v = of->where.v;
	size_t n = of->whole ? 0 : of->where.n, kept = 0;

	if (n)
		qsort(v, n, sizeof(*v), compare);
	for (size_t i = 0; i < n; i++)
		if (kept && v[i].from <= v[kept - 1].to)
			v[kept - 1].to = max(v[kept - 1].to, v[i].to);
		else
			v[kept++] = v[i];
	of->where.n = kept;
}

static bool overlaps(const struct reads_of *of, uint64_t from, uint64_t to)
{
	size_t low = 0, high = of->where.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (of->where.v[mid].to <= from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < of->where.n && of->where.v[low].from < to;
}

bool reads_vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece)
{
	const struct reads *r = ctx;
	bool known = false;

	vec_each(of, r) {
		bool same = hash_eq(of->image, all);

		if (!same && of->point != point)
			continue;
		known |= same;
		if (of->whole ||
		    overlaps(of, piece->addr, piece->addr + max(piece->len, (uint64_t)1)))
			return true;
	}
	return !known;
}
