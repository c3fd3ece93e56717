/* SPDX-License-Identifier: MIT */
/*
 * fuzz_model.c - whatever the events, the models make pieces that can be, and each crash state is
 * made again from its id.
 *
 * The first byte says which model, the second how it is set, the third how long the text is that is
 * tried as an id; the text; then five bytes for each event.
 */
#include "core/crash.h"
#include "core/model_pm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REGION = 300, EVENTS_MAX = 24, BUDGET = 40, TRIES = 200 };

static void add_event(struct trace *t, const uint8_t *b)
{
	static const enum event_kind kinds[] = { EV_STORE, EV_STORE, EV_STORE,	  EV_LINEFLUSH,
						 EV_FENCE, EV_WRITE, EV_COMPLETE, EV_OP_END };
	unsigned char bytes[REGION];
	struct event ev = { .kind = kinds[b[0] % 8],
			    .cpu = b[0] >> 6,
			    .addr = (b[1] | b[2] << 8) % REGION,
			    .data = bytes };

	memset(bytes, b[4] | 1, sizeof(bytes));
	switch (ev.kind) {
	case EV_STORE:
	case EV_WRITE:
		ev.len = min((uint64_t)b[3] % 96 + 1, REGION - ev.addr);
		if (ev.kind == EV_STORE)
			ev.flags = b[4] & 1 ? EV_NONTEMPORAL : 0;
		else
			ev.flags = b[4] & (EV_FUA | EV_PREFLUSH);
		ev.pc = b[4] & 2 ? (uint64_t)b[3] << 8 : 0;
		break;
	case EV_LINEFLUSH:
		ev.addr = ev.addr / PM_LINE * PM_LINE;
		ev.flags = b[4] & 1 ? EV_CLFLUSH : 0;
		break;
	case EV_COMPLETE:
		ev.ref = b[1];
		if (ev.ref >= t->events.n || t->events.v[ev.ref].kind != EV_WRITE)
			return;
		ev.addr = 0;
		break;
	default:
		ev.addr = 0;
	}
	if (ev.kind != EV_STORE && ev.kind != EV_WRITE)
		ev.data = NULL;
	trace_append(t, &ev);
}

static void must_replay(const struct trace *t, const struct crash_opts *opts,
			const struct crash_state *s)
{
	auto_crash_state again = CRASH_STATE_INIT;

	if (crash_replay(t, opts, strbuf_str(&s->id), &again, NULL) ||
	    !image_equal(&again.image, &s->image))
		abort();
}

static void enumerate(const struct trace *t, struct crash_opts *opts)
{
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_stats stats;
	auto_crash e = NULL;
	uint64_t n = 0;

	if (crash_new(t, opts, &e, NULL))
		return;
	while (crash_next(e, &s))
		if (n++ % 8 == 0)
			must_replay(t, opts, &s);
	crash_stats(e, &stats);
	assert(stats.unique == n && stats.tried == stats.unique + stats.duplicates);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_points points = { 0 };
	struct err err = ERR_INIT;
	struct trace t;

	if (size < 3 || size - 3 < data[2])
		return 0;
	struct model_pm_opts pm = { .granularity = data[1] & 1 ? PM_ATOMIC : 0,
				    .join_min = data[1] & 2   ? PM_JOIN_NEVER
						: data[1] & 4 ? 70
							      : 0 };
	struct crash_opts opts = { .model = model_at(data[0] % 3),
				   .model_ctx = &pm,
				   .layers = CRASH_LAYERS_DEFAULT,
				   .max_subset = 2,
				   .budget = BUDGET,
				   .tries = TRIES,
				   .sample = data[1] >> 6,
				   .tear_unit = data[1] & 8 ? data[0] : 0 };
	auto_free char *id = xmemdupz(data + 3, data[2]);

	if (data[1] & 16)
		opts.layers |= CRASH_WITH_TORN;
	trace_init(&t);
	t.info.size = REGION;
	for (size_t at = 3 + data[2]; size - at >= 5 && t.events.n < EVENTS_MAX; at += 5)
		add_event(&t, data + at);
	if (opts.model == &model_block)
		crash_points_all(&t, &points);
	else
		crash_points_pm(&t, &points);
	opts.points = points.v;
	opts.n_points = points.n;
	enumerate(&t, &opts);
	if (crash_replay(&t, &opts, id, &s, &err))
		assert(err.msg[0]);
	crash_points_release(&points);
	trace_release(&t);
	return 0;
}
