/* SPDX-License-Identifier: MIT */
/*
 * model.c - the table of persistence models, and the functions through which all callers use them.
 * One model and its clones belong to one worker, as their images do.
 */
#include "core/model.h"

#include <errno.h>

#include "base/strbuf.h"
#include "base/vec.h"

static const struct model_ops *const models[] = {
#define MODEL(name_) &model_##name_,
#include "core/models.def"
#undef MODEL
};

const struct model_ops *model_at(size_t i)
{
	return i < ARRAY_SIZE(models) ? models[i] : NULL;
}

const struct model_ops *model_find(const char *name)
{
	const struct model_ops *const *found = array_find(i, models, streq(models[i]->name, name));

	return found ? *found : NULL;
}

const struct model_ops *model_known(const char *name, struct err *err)
{
	const struct model_ops *found = model_find(name);
	auto_strbuf list = STRBUF_INIT;

	for (size_t i = 0; !found && i < ARRAY_SIZE(models); i++)
		strbuf_addf(&list, "%s%s", i ? ", " : "", models[i]->name);
	if (!found)
		err_set(err, -EINVAL, "'%.40s' is none of %s", name, strbuf_str(&list));
	return found;
}

struct model *model_new(const struct model_ops *ops, const struct model_opts *opts,
			const struct image *base)
{
	struct model *m = ops->create();

	m->ops = ops;
	m->opts = *opts;
	image_snapshot(base, &m->durable);
	return m;
}

struct model *model_clone(const struct model *m)
{
	struct model *copy = m->ops->clone(m);

	copy->ops = m->ops;
	copy->opts = m->opts;
	image_snapshot(&m->durable, &copy->durable);
	return copy;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	image_release(&m->durable);
	m->ops->destroy(m);
}

int model_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	int rc = m->ops->apply(m, number, ev, err);

	assert(rc <= 0);
	return rc;
}

const struct model_piece *model_pieces(const struct model *m, size_t *n)
{
	const struct model_piece *p = m->ops->pieces(m, n);

	assert(p || *n == 0);
	for (size_t i = 0; i < *n; i++) {
		assert(p[i].len > 0 && p[i].units >= 1 && p[i].units <= MODEL_UNITS_MAX);
		assert(image_range_ok(&m->durable, p[i].addr, p[i].len));
		for (uint32_t j = 0; j < p[i].n_needs; j++)
			assert(p[i].needs[j] < i);
	}
	return p;
}

void model_piece_apply(const struct model *m, size_t index, const uint64_t *units, uint64_t from,
		       uint64_t to, struct image *img)
{
	assert(img->size == m->durable.size);
	m->ops->piece_apply(m, index, units, from, to, img);
	assert(img->size == m->durable.size);
}

void model_piece_cut(struct model_piece *p, uint32_t tear_unit)
{
	assert(p->len > 0);
	p->unit_size = tear_unit;
	p->units = 1;
	if (!tear_unit)
		return;
	for (uint64_t size = tear_unit;; size *= 2) {
		uint64_t units = (p->addr + p->len - 1) / size - p->addr / size + 1;

		if (units <= MODEL_UNITS_MAX) {
			p->unit_size = size;
			p->units = (uint32_t)units;
			return;
		}
	}
}

static bool unit_set(const uint64_t *units, uint32_t i)
{
	return units[i / 64] >> (i % 64) & 1;
}

bool model_piece_run(const struct model_piece *p, const uint64_t *units, uint32_t *i,
		     uint64_t *from, uint64_t *to)
{
	uint32_t first = *i;

	while (units && first < p->units && !unit_set(units, first))
		first++;
	if (first >= p->units)
		return false;
	uint32_t end = units ? first + 1 : p->units;
	while (end < p->units && unit_set(units, end))
		end++;
	uint64_t start = p->unit_size ? p->addr / p->unit_size : 0; /* in units */
	*from = first == 0 ? p->addr : (start + first) * p->unit_size;
	*to = end == p->units ? p->addr + p->len : (start + end) * p->unit_size;
	*i = end;
	assert(p->addr <= *from && *from < *to && *to <= p->addr + p->len);
	return true;
}
