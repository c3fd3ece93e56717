/* SPDX-License-Identifier: MIT */
/* where.c - finds functions and lines of events, and reads and writes RUN/places. */
#include "pm/where.h"

#include <errno.h>
#include <inttypes.h>

#include "base/below.h"
#include "base/io.h"
#include "pm/cause.h"
#include "stack/places.h"

enum { FILE_MAX = 64 << 20, FRAMES_SHOWN = 8 };

/* ---- finding ---- */

struct pcs vec_of(uint64_t);

static uint64_t frame_at(const struct event *ev, uint64_t i)
{
	uint64_t frame;

	memcpy(&frame, ev->data + 8 * i, sizeof(frame));
	return frame;
}

/* Lists each address once. A caller has that of the call: it may return to another line. */
static void collect(const struct trace *t, struct pcs *out)
{
	vec_each(ev, &t->events)
		if (ev->kind == EV_STACK)
			for (uint64_t j = 0; j < ev->len / 8; j++)
				vec_push(out, frame_at(ev, j) - 1);
		else if (ev->pc && ev->kind != EV_LOAD && (!out->n || vec_last(out) != ev->pc))
			vec_push(out, ev->pc);
	vec_sort_unique(out, by_u64);
}

void pm_where_find(const struct trace *t, const char *maps, struct pm_where *out)
{
	struct code_places *p = code_places_new(maps);
	auto_vec struct pcs pcs = { 0 };

	collect(t, &pcs);
	vec_each(pc, &pcs) {
		auto_strbuf words = STRBUF_INIT;

		if (code_places_words(p, *pc, &words))
			vec_push(&out->places, (struct pm_place){ *pc, strbuf_detach(&words) });
	}
	code_places_free(p);
}

void pm_where_release(struct pm_where *w)
{
	for (size_t i = 0; i < w->places.n; i++)
		free(w->places.v[i].words);
	vec_release(&w->places);
}

/* ---- the file ---- */

int pm_where_save(const char *run, const struct pm_where *w, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < w->places.n; i++) {
		strbuf_addf(&text, "%" PRIx64 "\t", w->places.v[i].pc);
		strbuf_add_flat(&text, w->places.v[i].words);
		strbuf_addch(&text, '\n');
	}
	return io_write_file(run, "places", strbuf_str(&text), text.len, 0, err);
}

int pm_where_load(const char *run, struct pm_where *out, struct err *err)
{
	auto_free char *path = below_shown(run, "places");
	auto_strbuf text = STRBUF_INIT;

	*out = (struct pm_where){ 0 };
	if (!below_exists(run, "places"))
		return 0;
	int rc = io_slurp_file(run, "places", FILE_MAX, &text, err);
	if (rc)
		return rc;
	char *rest = text.len ? text.buf : NULL, *line;
	while ((line = strsep(&rest, "\n"))) {
		char *end;
		uint64_t pc = strtoull(line, &end, 16);

		if (!*line)
			continue;
		if (*end != '\t' || (out->places.n && vec_last(&out->places).pc >= pc)) {
			pm_where_release(out);
			return err_set(err, -EINVAL, "%s is damaged", path);
		}
		vec_push(&out->places, (struct pm_place){ pc, xstrdup(end + 1) });
	}
	return 0;
}

/* ---- words ---- */

const char *pm_where_of(const struct pm_where *w, uint64_t pc)
{
	size_t at = first_where(i, w->places.n, w->places.v[i].pc >= pc);

	return at < w->places.n && w->places.v[at].pc == pc ? w->places.v[at].words : NULL;
}

void pm_where_words(const struct pm_where *w, uint64_t pc, struct strbuf *out)
{
	const char *words = pm_where_of(w, pc);

	strbuf_addf(out, "%#" PRIx64, pc);
	if (words)
		strbuf_addf(out, " (%s)", words);
}

static const char *made_at(const struct pm_where *w)
{
	return w->noticed ? ", seen at " : ", made at ";
}

static void add_at(const struct trace *t, const struct pm_where *w, uint64_t event,
		   struct strbuf *out)
{
	strbuf_addf(out, "event %" PRIu64, event);
	if (t->events.v[event].pc) {
		strbuf_adds(out, made_at(w));
		pm_where_words(w, t->events.v[event].pc, out);
	}
}

/* Names the store, or the end of its operation, that came too early. */
static void add_too_early(const struct trace *t, const struct pm_loss *l, struct strbuf *out)
{
	if (l->by == UINT64_MAX)
		return;
	strbuf_addf(out, " before event %" PRIu64 ", %s", l->by,
		    t->events.v[l->by].kind == EV_STORE ? "a store that is there"
							: "where its operation has returned");
}

static void add_why(const struct trace *t, const struct pm_where *w, uint64_t event,
		    const struct pm_loss *l, struct strbuf *out)
{
	bool nt = t->events.v[event].flags & EV_NONTEMPORAL;
	uint64_t step = nt ? l->fence : l->flush;

	strbuf_adds(out, "           ");
	if (step == UINT64_MAX) {
		strbuf_adds(out, nt ? "its processor makes no fence any more"
				    : "its line is never flushed afterwards");
	} else if (nt) {
		strbuf_adds(out, "no fence");
		add_too_early(t, l, out);
		strbuf_adds(out, "; fenced only by ");
		add_at(t, w, step, out);
	} else if (l->missing & PM_MISSING_FLUSH) {
		strbuf_adds(out, "no flush of its line");
		add_too_early(t, l, out);
		strbuf_adds(out, "; flushed only by ");
		add_at(t, w, step, out);
	} else {
		strbuf_adds(out, "its line is flushed by ");
		add_at(t, w, step, out);
		strbuf_adds(out, ", but there is no fence");
		add_too_early(t, l, out);
		if (l->fence == UINT64_MAX)
			strbuf_adds(out, ", and none afterwards");
		else
			strbuf_addf(out, "; the next is event %" PRIu64, l->fence);
	}
	strbuf_addch(out, '\n');
}

static void add_callers(const struct trace *t, const struct pm_where *w, uint32_t stack,
			struct strbuf *out)
{
	const struct event *ev =
		stack && stack <= t->stacks.n ? &t->events.v[t->stacks.v[stack - 1]] : NULL;

	for (uint64_t i = 0; ev && i < min(ev->len / 8, (uint64_t)FRAMES_SHOWN); i++) {
		const char *words = pm_where_of(w, frame_at(ev, i) - 1);

		strbuf_adds(out, "           called from ");
		if (words)
			strbuf_adds(out, words);
		else
			strbuf_addf(out, "%#" PRIx64, frame_at(ev, i));
		strbuf_addch(out, '\n');
	}
}

void pm_store_words(const struct trace *t, const struct pm_where *w, const char *fate,
		    const struct pm_extent *x, const struct pm_loss *loss, struct strbuf *out)
{
	const struct event *ev = &t->events.v[x->event];
	const char *kind = ev->flags & EV_NONTEMPORAL ? "non-temporal " : "";

	if (x->stores > 1)
		strbuf_addf(out,
			    "%-8s events %" PRIu64 " to %" PRIu64 ": %" PRIu64 " %sstores, %" PRIu64
			    " bytes at %#" PRIx64,
			    fate, x->event, x->last, x->stores, kind, x->len, x->addr);
	else
		strbuf_addf(out, "%-8s event %-6" PRIu64 " %sstore of %" PRIu64 " %s at %#" PRIx64,
			    fate, x->event, kind, x->len, plural(x->len, "byte", "bytes"), x->addr);
	if (ev->pc) {
		strbuf_adds(out, made_at(w));
		pm_where_words(w, ev->pc, out);
	}
	strbuf_addch(out, '\n');
	add_callers(t, w, ev->stack, out);
	if (loss)
		add_why(t, w, x->event, loss, out);
}
