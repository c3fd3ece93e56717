/* SPDX-License-Identifier: MIT */
/*
 * picture.c - a trace and its crash, drawn: time from left to right, a lane for the operations, one
 * for flushes, one for the writes.
 *
 * Time is the order of events, not the clock: what matters is what came before what. An operation
 * is at least as wide as its text, so that it can be read.
 */
#include "report/report.h"

enum {
	LEFT = 74, /* room for the names of the lanes */
	STEP = 13, /* a request */
	STEP_SMALL = 5,
	CHAR = 7,
	TEXT_MAX = 34, /* characters of an operation; fewer until the crash is in sight */
	TEXT_MIN = 5,
	WIDTH = 1160,
	OPS_Y = 22,
	OPS_H = 24,
	FLUSH_Y = 66,
	WRITES_Y = 92,
	ROW = 13,
	ROWS_MAX = 16,
	EVENTS_MAX = 4000,
	CRASH_TEXT = 166, /* room for what stands at the crash */
};

struct picture {
	const struct view_crash *c;
	const struct workload *workload; /* NULL: it is a recovery */
	struct strbuf *out;
	size_t n;     /* events drawn */
	int *x;	      /* where each begins; one more for the end */
	size_t *done; /* the event that completes each; n: none */
	int *row;     /* the row of each write */
	int rows;
	int width, height;
	size_t text; /* characters of an operation that are shown */
};

/* ---- laying out ---- */

/* Reads are not drawn; a bit of room tells that something happened. */
static int step_of(const struct trace *t, const struct event *ev)
{
	switch (ev->kind) {
	case EV_READ:
		return 1;
	case EV_COMPLETE:
		return ev->ref < t->events.n && t->events.v[ev->ref].kind == EV_READ ? 1
										     : STEP_SMALL;
	case EV_PERSIST:
	case EV_TEXT:
		return STEP_SMALL;
	default:
		return STEP;
	}
}

/* An operation after the crash needs less room. */
static int text_width(const struct picture *p, size_t begin)
{
	uint64_t len = p->c->trace.events.v[begin].len;
	bool later = p->c->has_state && begin >= p->c->state.point;
	size_t shown = later ? (size_t)TEXT_MIN : p->text;

	return CHAR * (int)min(len, (uint64_t)shown + 1) + 14;
}

static void place_events(struct picture *p)
{
	int at = LEFT + 10;
	size_t begin = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct event *ev = &p->c->trace.events.v[i];

		if (ev->kind == EV_OP_BEGIN)
			begin = i;
		if (ev->kind == EV_OP_END && p->c->trace.events.v[begin].kind == EV_OP_BEGIN)
			at = max(at, p->x[begin] + text_width(p, begin));
		p->x[i] = at;
		at += step_of(&p->c->trace, ev);
		p->done[i] = p->n;
		if (ev->kind == EV_COMPLETE && ev->ref < i)
			p->done[ev->ref] = i;
	}
	p->x[p->n] = at;
	p->width = at + CRASH_TEXT;
}

/* The part to be seen without scrolling ends at the crash, or has all if there was none. */
static int crash_x(const struct picture *p)
{
	return p->c->has_state && p->c->state.point <= p->n ? p->x[p->c->state.point] + CRASH_TEXT
							    : p->width;
}

/* A write has a row to itself until it completes; more than there are rows share the last. */
static void place_writes(struct picture *p)
{
	int busy_until[ROWS_MAX] = { 0 };

	for (size_t i = 0; i < p->n; i++) {
		if (!event_modifies(p->c->trace.events.v[i].kind))
			continue;
		int r = 0, end = p->x[p->done[i]] + 7;

		while (r < ROWS_MAX - 1 && busy_until[r] > p->x[i])
			r++;
		busy_until[r] = max(busy_until[r], end);
		p->row[i] = r;
		p->rows = max(p->rows, r + 1);
	}
	p->height = WRITES_Y + ROW * max(p->rows, 1) + 22;
}

/* ---- drawing ---- */

static void draw_lanes(struct picture *p)
{
	strbuf_addf(p->out,
		    "<g class=\"lane\"><text x=\"4\" y=\"%d\">operations</text><text x=\"4\" "
		    "y=\"%d\">flushes</text><text x=\"4\" y=\"%d\">writes</text><path d=\"M%d "
		    "%dH%dM%d %dH%d\"/></g>\n",
		    OPS_Y + 16, FLUSH_Y + 4, WRITES_Y + 4, LEFT, FLUSH_Y - 13, p->width, LEFT,
		    FLUSH_Y + 13, p->width);
}

static void draw_operation(struct picture *p, size_t begin, size_t end)
{
	const struct event *ev = &p->c->trace.events.v[begin];
	const char *text = (const char *)ev->data;
	int width = max(p->x[end] - p->x[begin], 4);
	size_t fits = (size_t)max((width - 8) / CHAR, 1);
	size_t len = ev->len <= fits ? ev->len : fits - 1;
	bool persists = ev->ref < p->workload->ops.n && workload_persists(p->workload, ev->ref);

	strbuf_addf(p->out, "<g class=\"op%s\"><title>operation %llu: ", persists ? " persist" : "",
		    llu(ev->ref));
	report_html_escape(p->out, text, ev->len);
	strbuf_addf(p->out,
		    "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/><text "
		    "x=\"%d\" y=\"%d\">",
		    p->x[begin], OPS_Y, width, OPS_H, p->x[begin] + 6, OPS_Y + 16);
	report_html_escape(p->out, text, len);
	strbuf_adds(p->out, ev->len > len ? "…</text></g>\n" : "</text></g>\n");
}

/* Recovery has no marks of operations: it is one box. */
static void draw_recovery(struct picture *p)
{
	strbuf_addf(p->out,
		    "<g class=\"op\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		    "rx=\"3\"/><text x=\"%d\" y=\"%d\">recovery</text></g>\n",
		    p->x[0], OPS_Y, max(p->x[p->n] - p->x[0], 10 * CHAR), OPS_H, p->x[0] + 6,
		    OPS_Y + 16);
}

static void draw_operations(struct picture *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct event *ev = &p->c->trace.events.v[i];
		size_t end = i;

		if (ev->kind != EV_OP_BEGIN)
			continue;
		while (end < p->n && (p->c->trace.events.v[end].kind != EV_OP_END ||
				      p->c->trace.events.v[end].ref != ev->ref))
			end++;
		draw_operation(p, i, end);
	}
}

static void draw_flush(struct picture *p, size_t i, const char *words)
{
	int x = p->x[i] + 5;

	strbuf_addf(p->out,
		    "<g class=\"flush\"><title>event %zu: %s</title><path d=\"M%d %dl6 "
		    "10h-12z\"/><path class=\"through\" d=\"M%d %dV%d\"/></g>\n",
		    i, words, x, FLUSH_Y - 5, x, FLUSH_Y + 5, p->height - 18);
}

static void draw_fua(struct picture *p, size_t i)
{
	strbuf_addf(p->out,
		    "<path class=\"fua\" d=\"M%d %dl5 5l-5 5l-5 -5z\"><title>event %zu: FUA, "
		    "durable when complete</title></path>\n",
		    p->x[i] + 5, FLUSH_Y - 4, i);
}

static void describe(struct picture *p, size_t i)
{
	const struct event *ev = &p->c->trace.events.v[i];

	strbuf_addf(p->out, "<title>event %zu: %s of %llu bytes at %llu, %s; %s", i,
		    event_kind_name(ev->kind), llu(ev->len), llu(ev->addr),
		    ev->flags & EV_META ? "metadata" : "data", view_fate_name(view_fate(p->c, i)));
	const char *place = view_place(p->c, ev);
	if (place) {
		strbuf_adds(p->out, "; made at ");
		report_html_escape(p->out, place, strlen(place));
	}
	if (p->done[i] < p->n)
		strbuf_addf(p->out, "; completed at event %zu</title>", p->done[i]);
	else
		strbuf_adds(p->out, "; never completed</title>");
}

static void draw_write(struct picture *p, size_t i)
{
	const struct event *ev = &p->c->trace.events.v[i];
	int x = p->x[i] + 5, y = WRITES_Y + ROW * p->row[i];

	strbuf_addf(p->out, "<g class=\"w %s\">", view_fate_name(view_fate(p->c, i)));
	describe(p, i);
	strbuf_addf(p->out, "<path d=\"M%d %dH%d\"%s/>", x, y, p->x[p->done[i]] + 2,
		    p->done[i] < p->n ? "" : " stroke-dasharray=\"3 3\"");
	if (ev->flags & EV_META)
		strbuf_addf(p->out, "<rect x=\"%d\" y=\"%d\" width=\"9\" height=\"9\"/>", x - 4,
			    y - 4);
	else
		strbuf_addf(p->out, "<circle cx=\"%d\" cy=\"%d\" r=\"4.5\"/>", x, y);
	strbuf_adds(p->out, "</g>\n");
}

static void draw_requests(struct picture *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct event *ev = &p->c->trace.events.v[i];

		if (ev->kind == EV_FLUSH)
			draw_flush(p, i, "flush");
		if (ev->flags & EV_PREFLUSH)
			draw_flush(p, i, "a write that flushes first");
		if (ev->flags & EV_FUA)
			draw_fua(p, i);
	}
	for (size_t i = 0; i < p->n; i++)
		if (event_modifies(p->c->trace.events.v[i].kind))
			draw_write(p, i);
}

static void draw_crash(struct picture *p)
{
	if (!p->c->has_state || p->c->state.point > p->n)
		return;
	uint64_t point = p->c->state.point;
	/* Between two events; after an operation's end at the edge of its box. */
	int x = p->x[point] - (point && p->x[point] - p->x[point - 1] < 4 ? 1 : 2);

	strbuf_addf(p->out,
		    "<g class=\"crash\"><rect x=\"%d\" y=\"14\" width=\"%d\" height=\"%d\"/><path "
		    "d=\"M%d 4V%d\"/><text x=\"%d\" y=\"12\">the power fails%s</text></g>\n",
		    x, p->width - x, p->height - 20, x, p->height - 6, x + 5,
		    p->workload ? "" : " again");
}

static void draw(struct picture *p)
{
	p->text = TEXT_MAX;
	place_events(p);
	while (crash_x(p) > WIDTH && p->text > TEXT_MIN) {
		p->text--;
		place_events(p);
	}
	place_writes(p);
	strbuf_addf(p->out,
		    "<div class=\"scroll\"><svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		    "role=\"img\" aria-label=\"the trace and the crash\">\n",
		    p->width, p->height, p->width, p->height);
	draw_lanes(p);
	draw_crash(p);
	if (p->workload)
		draw_operations(p);
	else
		draw_recovery(p);
	draw_requests(p);
	strbuf_adds(p->out, "</svg></div>\n");
}

void report_picture(const struct view_crash *c, const struct workload *w, struct strbuf *out)
{
	struct picture p = { .c = c, .workload = w, .out = out };
	size_t all = w ? c->trace.events.n : view_recovered(c);

	if (!c->has_trace || !all)
		return;
	p.n = min(all, (size_t)EVENTS_MAX);
	p.x = xcalloc(p.n + 1, sizeof(*p.x));
	p.done = xcalloc(p.n + 1, sizeof(*p.done));
	p.row = xcalloc(p.n + 1, sizeof(*p.row));
	draw(&p);
	if (p.n < all)
		strbuf_addf(out, "<p class=\"note\">The first %zu of %zu events are drawn.</p>\n",
			    p.n, all);
	free(p.x);
	free(p.done);
	free(p.row);
}
