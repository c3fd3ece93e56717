/* SPDX-License-Identifier: MIT */
/* pm_model.c - chooses the persistence model of a trace, and the crash points in it. */
#include "search/pm_model.h"

struct model_pm_opts pm_model_opts(uint64_t granularity, bool split)
{
	return (struct model_pm_opts){ .granularity = (uint32_t)granularity,
				       .join_min = split ? PM_JOIN_NEVER : PM_JOIN_USUAL };
}

bool pm_traced(const struct trace *t)
{
	for (size_t i = 0; i < t->events.n; i++) {
		enum event_kind kind = t->events.v[i].kind;

		if (kind == EV_STORE || kind == EV_LINEFLUSH || kind == EV_FENCE)
			return true;
	}
	return false;
}

void pm_choose_model(const struct pm_choice *choice, const struct trace *t,
		     struct model_pm_opts *ctx, struct crash_opts *opts)
{
	bool pm = pm_traced(t);

	*ctx = pm_model_opts(choice->granularity, choice->split);
	if (choice->model && choice->model->pm == pm)
		opts->model = choice->model;
	else if (pm)
		opts->model = choice->eadr ? &model_pm_eadr : &model_pm;
	if (pm)
		opts->model_ctx = ctx;
}

int pm_choice_replay(const struct pm_choice *choice, const struct trace *t,
		     const struct image *base, const char *id, struct crash_state *out,
		     struct err *err)
{
	struct crash_opts opts = CRASH_OPTS_INIT;
	struct model_pm_opts model;

	opts.base = base;
	pm_choose_model(choice, t, &model, &opts);
	return crash_replay(t, &opts, id, out, err);
}

static bool is_mark(enum event_kind kind)
{
	return event_marks(kind) || kind == EV_TEXT;
}

/*
 * Returns the only point that is kept of the marks around `point`: after the last EV_OP_END or
 * EV_PERSIST, or after the last mark if there is neither.
 */
static uint64_t point_of_marks(const struct trace *t, uint64_t point)
{
	uint64_t from = point, to = point;

	while (from > 0 && is_mark(t->events.v[from - 1].kind))
		from--;
	while (to < t->events.n && is_mark(t->events.v[to].kind))
		to++;
	for (uint64_t i = to; i > from; i--) {
		enum event_kind kind = t->events.v[i - 1].kind;

		if (kind == EV_OP_END || kind == EV_PERSIST)
			return i;
	}
	return to;
}

/*
 * True if the event before the point is a mark. A point right before the first of several marks is
 * not among them: its states are those of the event before it.
 */
static bool is_among_marks(const struct trace *t, uint64_t point)
{
	return point > 0 && is_mark(t->events.v[point - 1].kind);
}

void pm_points(const struct trace *t, struct crash_points *out)
{
	size_t n = 0;

	crash_points_pm(t, out);
	for (size_t i = 0; i < out->n; i++) {
		uint64_t p = out->v[i];

		if (!is_among_marks(t, p) || point_of_marks(t, p) == p)
			out->v[n++] = p;
	}
	out->n = n;
}

uint64_t pm_begin_point(const struct trace *t, uint64_t op)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].kind == EV_OP_BEGIN && t->events.v[i].ref == op)
			return point_of_marks(t, i + 1);
	return 0;
}

void pm_pieces_at(const struct pm_choice *choice, const struct trace *t, uint64_t point,
		  struct pm_pieces *out)
{
	struct crash_opts opts = CRASH_OPTS_INIT;
	struct model_pm_opts ctx;
	auto_image zeros = IMAGE_INIT;
	struct err ignored = ERR_INIT;
	size_t n;

	vec_clear(out);
	pm_choose_model(choice, t, &ctx, &opts);
	if (!opts.model)
		return;
	image_init(&zeros, t->info.size);
	auto_model m = model_new(opts.model, &(struct model_opts){ .ctx = &ctx }, &zeros);
	for (uint64_t i = 0; i < min(point, (uint64_t)t->events.n); i++)
		if (model_apply(m, i, &t->events.v[i], &ignored))
			return;
	const struct model_piece *p = model_pieces(m, &n);
	for (size_t i = 0; i < n; i++)
		vec_push(out, (struct pm_piece){ p[i].event, p[i].addr, p[i].len });
}

struct pm_piece pm_piece_of(const struct pm_pieces *pieces, const struct trace *t, uint64_t event)
{
	const struct event *ev = &t->events.v[event];
	struct pm_piece found = { event, ev->addr, 0 };

	/* A store across lines is several pieces. */
	for (size_t i = 0; i < pieces->n; i++)
		if (pieces->v[i].event == event) {
			found.addr = found.len ? min(found.addr, pieces->v[i].addr)
					       : pieces->v[i].addr;
			found.len += pieces->v[i].len;
		}
	return found.len ? found : (struct pm_piece){ event, ev->addr, ev->len };
}
