/* SPDX-License-Identifier: MIT */
/*
 * posix_graph.c - draws the calls of an application: a lane for each path, time downwards, a row
 * for each run of equal calls. A repetition is drawn once, with a bracket that counts it.
 *
 * Time is the order of the calls, not the clock: only the order matters.
 *
 * G1: all text from the trace is escaped, and no attribute has any of it.
 * G2: everything that is not drawn is counted, in the picture and for the caller.
 */
#include <inttypes.h>

#include "app/posix_log.h"
#include "report/report.h"
#include "report/texts.h"

enum {
	ROWS = 500,
	LANES = 16,
	LEFT = 178, /* room for numbers, times and brackets */
	LANE = 176,
	BOX = 156,
	BOX_H = 20,
	ROW = 26,
	HEAD = 96, /* title, legend */
	LABEL_H = 44,
	BAND = 44, /* repeats the labels */
	BAND_ROWS = 40,
	FOOT = 46,
	WIDTH_MIN = 900, /* the width of the legend */
	LABEL_CHARS = 22,
	BOX_CHARS = 22,
};

struct lane {
	const char *path; /* NULL: all other files */
	bool is_dir;
	size_t calls;
	int first_y, last_y;
	size_t lost; /* calls whose data was never synced */
	uint64_t lost_bytes;
};

struct row {
	size_t run, group; /* neither is set in a row with a note */
	const struct posix_note *note;
	int y; /* its middle */
};

struct graph {
	const struct posix_log *log;
	const struct posix_selection *sel;
	const struct posix_graph_opts *o;
	struct strbuf *out;
	struct posix_runs runs;
	struct posix_groups groups;
	struct vec_of(struct row) rows;
	struct vec_of(struct lane) lanes;
	struct posix_graph_cut cut;
	int width, height, bottom;
	int *file_lane; /* by file: its last lane; -1: none yet */
};

static const struct posix_call *run_call(const struct graph *g, size_t run)
{
	return &g->log->calls.v[g->sel->v[g->runs.v[run].first]];
}

/* Returns the calls of one row: those of its run in all repetitions. */
static size_t row_calls(const struct graph *g, const struct row *r, uint64_t *bytes)
{
	const struct posix_group *group = &g->groups.v[r->group];
	size_t n = 0;

	*bytes = 0;
	for (size_t i = 0; i < group->times; i++) {
		n += g->runs.v[r->run + i * group->n].n;
		*bytes += g->runs.v[r->run + i * group->n].bytes;
	}
	return n;
}

/* ---- laying out ---- */

static void place_rows(struct graph *g)
{
	size_t most = g->o->rows_max ? g->o->rows_max : ROWS;
	size_t note = 0;
	uint64_t bytes;

	for (size_t i = 0; i < g->groups.n; i++) {
		const struct posix_group *group = &g->groups.v[i];
		size_t at = g->sel->v[g->runs.v[group->first].first];

		for (; note < g->log->notes.n && g->log->notes.v[note].at <= at; note++)
			if (g->rows.n < most)
				vec_push(&g->rows, (struct row){ .note = &g->log->notes.v[note] });
		for (size_t k = 0; k < group->n; k++) {
			struct row r = { .run = group->first + k, .group = i };

			/* A group is drawn whole or not at all. */
			if (g->rows.n + group->n - k <= most) {
				vec_push(&g->rows, r);
				continue;
			}
			most = g->rows.n;
			g->cut.rows++;
			g->cut.calls += row_calls(g, &r, &bytes);
		}
	}
	for (; note < g->log->notes.n && g->rows.n < most; note++)
		vec_push(&g->rows, (struct row){ .note = &g->log->notes.v[note] });
	for (size_t i = 0; i < g->rows.n; i++)
		g->rows.v[i].y =
			HEAD + LABEL_H + ROW * (int)i + BAND * (int)(i / BAND_ROWS) + ROW / 2 + 6;
	g->bottom = HEAD + LABEL_H + 12 + ROW * (int)g->rows.n +
		    (g->rows.n ? BAND * (int)((g->rows.n - 1) / BAND_ROWS) : 0);
	g->height = g->bottom + FOOT;
}

static void count_lane(struct graph *g, const char *path, bool is_dir, size_t calls)
{
	if (!path)
		return;
	for (size_t i = 0; i < g->lanes.n; i++) {
		if (g->lanes.v[i].path == path) {
			g->lanes.v[i].calls += calls;
			return;
		}
	}
	vec_push(&g->lanes, (struct lane){ .path = path, .is_dir = is_dir, .calls = calls });
}

static bool is_dir(const struct graph *g, uint32_t file)
{
	return file != POSIX_NO_FILE && g->log->names.files.v[file].is_dir;
}

/* True if a call moves or links from one path to another. */
static bool moves(const struct posix_call *c)
{
	return (c->op == POSIX_RENAME || c->op == POSIX_LINK) && c->path && c->path2 &&
	       c->result >= 0;
}

DEFINE_ORDER(compare_calls, size_t, order(*b, *a))

/* Merges the paths with the fewest calls into the last lane. */
static void share_lanes(struct graph *g)
{
	size_t most = g->o->lanes_max ? g->o->lanes_max : LANES;
	auto_free size_t *calls = xcalloc(g->lanes.n + 1, sizeof(*calls));
	size_t kept = 0, equal = 0;
	struct lane rest = { 0 };

	if (g->lanes.n <= most)
		return;
	for (size_t i = 0; i < g->lanes.n; i++)
		calls[i] = g->lanes.v[i].calls;
	qsort(calls, g->lanes.n, sizeof(*calls), compare_calls);
	size_t least = calls[most - 1];

	for (size_t i = 0; i < most; i++)
		equal += calls[i] == least;
	vec_each(l, &g->lanes) {
		bool stays = l->calls > least || (l->calls == least && equal > 0);

		equal -= l->calls == least && equal > 0;
		if (stays) {
			g->lanes.v[kept++] = *l;
		} else {
			rest.calls += l->calls;
			g->cut.lanes++;
			g->cut.others += l->calls;
		}
	}
	g->lanes.n = kept;
	vec_push(&g->lanes, rest);
}

static void place_lanes(struct graph *g)
{
	uint64_t bytes;

	vec_each(r, &g->rows) {
		const struct posix_call *c = r->note ? NULL : run_call(g, r->run);

		if (!c || c->op == POSIX_SYNCFS)
			continue;
		count_lane(g, c->path, is_dir(g, c->file), row_calls(g, r, &bytes));
		if (moves(c))
			count_lane(g, c->path2, is_dir(g, c->file), row_calls(g, r, &bytes));
	}
	share_lanes(g);
	g->width = max(LEFT + LANE * (int)g->lanes.n + 20, WIDTH_MIN);
}

static int find_lane(const struct graph *g, const char *path)
{
	for (size_t i = 0; i < g->lanes.n; i++)
		if (g->lanes.v[i].path == path || !g->lanes.v[i].path)
			return (int)i;
	return -1;
}

static int lane_x(int lane) /* its middle */
{
	return LEFT + LANE * lane + LANE / 2;
}

static void reach(struct graph *g, int lane, int y)
{
	struct lane *l = &g->lanes.v[lane];

	if (!l->first_y)
		l->first_y = y;
	l->last_y = y;
}

/* Finds the end of each lane, and its lost calls. */
static void measure_lanes(struct graph *g)
{
	vec_each(r, &g->rows) {
		const struct posix_call *c = r->note ? NULL : run_call(g, r->run);
		int lane = c && c->path && c->op != POSIX_SYNCFS ? find_lane(g, c->path) : -1;
		uint64_t bytes;

		if (lane < 0)
			continue;
		reach(g, lane, r->y);
		if (moves(c))
			reach(g, find_lane(g, c->path2), r->y);
		if (c->fate == POSIX_FATE_UNSYNCED) {
			g->lanes.v[lane].lost += row_calls(g, r, &bytes);
			g->lanes.v[lane].lost_bytes += bytes;
		}
	}
}

/* ---- drawing ---- */

static void add_escaped(struct strbuf *out, const char *text)
{
	auto_strbuf safe = STRBUF_INIT;

	posix_add_safe(&safe, text, strlen(text));
	report_html_escape(out, strbuf_str(&safe), safe.len);
}

/* Adds a text; if it is too long, without its middle: its end tells the kind of file. */
static void add_short(struct strbuf *out, const char *text, size_t most)
{
	auto_strbuf safe = STRBUF_INIT;
	size_t front = most * 2 / 3, back = most - 1 - front;

	posix_add_safe(&safe, text, strlen(text));
	if (safe.len <= most) {
		report_html_escape(out, strbuf_str(&safe), safe.len);
		return;
	}
	report_html_escape(out, safe.buf, front);
	strbuf_adds(out, "…");
	report_html_escape(out, safe.buf + safe.len - back, back);
}

/* Draws a file's name, with its directory in a line above. */
static void draw_label(struct graph *g, int i, int y)
{
	const struct lane *l = &g->lanes.v[i];
	const char *path = l->path ? l->path : "all other files";
	const char *slash = strrchr(path, '/');

	strbuf_addf(g->out, "<g><title>");
	add_escaped(g->out, path);
	strbuf_addf(g->out, "</title><text class=\"label mid\" x=\"%d\" y=\"%d\">", lane_x(i), y);
	add_short(g->out, slash ? slash + 1 : path, LABEL_CHARS);
	strbuf_adds(g->out, l->is_dir ? "/</text>" : "</text>");
	if (slash) {
		auto_free char *dir = xmemdupz(path, (size_t)(slash + 1 - path));

		strbuf_addf(g->out, "<text class=\"dim mid\" x=\"%d\" y=\"%d\">", lane_x(i),
			    y - 14);
		add_short(g->out, dir, LABEL_CHARS + 2);
		strbuf_adds(g->out, "</text>");
	}
	strbuf_adds(g->out, "</g>\n");
}

static void draw_lane(struct graph *g, int i)
{
	const struct lane *l = &g->lanes.v[i];
	int x = lane_x(i);

	draw_label(g, i, HEAD + 28);
	strbuf_addf(g->out, "<path class=\"line\" d=\"M%d %dV%d\"/>\n", x, l->first_y, l->last_y);
	if (!l->lost)
		return;
	strbuf_addf(g->out, "<text class=\"lost mid\" x=\"%d\" y=\"%d\">never synced: ", x,
		    g->bottom + 16);
	if (l->lost_bytes)
		posix_add_bytes(g->out, l->lost_bytes);
	else
		strbuf_addf(g->out, "%zu %s", l->lost, plural(l->lost, "call", "calls"));
	strbuf_adds(g->out, "</text>\n");
}

/* Draws the labels again between rows, in a picture that is larger than a screen. */
static void draw_band(struct graph *g, int y)
{
	strbuf_addf(g->out, "<rect class=\"band\" x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
		    y, g->width, BAND - 6);
	for (int i = 0; i < (int)g->lanes.n; i++)
		draw_label(g, i, y + 28);
}

static void draw_lanes(struct graph *g)
{
	for (int i = 1; i < (int)g->lanes.n; i += 2)
		strbuf_addf(
			g->out,
			"<rect class=\"stripe\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
			LEFT + LANE * i, HEAD - 4, LANE, g->bottom - HEAD + 4);
	strbuf_addf(g->out, "<path class=\"rule\" d=\"M0 %dH%dM0 %dH%d\"/>\n", HEAD + 36, g->width,
		    g->bottom, g->width);
	for (int i = 0; i < (int)g->lanes.n; i++)
		draw_lane(g, i);
}

/* True if the crash has lost a call of a row. */
static bool is_dead(const struct graph *g, const struct row *r)
{
	const struct posix_run *run = &g->runs.v[r->run];

	for (size_t i = 0; i < run->n; i++)
		for (size_t k = 0; k < g->o->n_lost; k++)
			if (g->log->calls.v[g->sel->v[run->first + i]].event == g->o->lost[k])
				return true;
	return false;
}

static const char *box_class(const struct graph *g, const struct row *r)
{
	const struct posix_call *c = run_call(g, r->run);

	if (is_dead(g, r))
		return "dead";
	if (c->result < 0)
		return "failed";
	if (posix_op_persists(c->op))
		return "sync";
	if (c->fate == POSIX_FATE_UNSYNCED)
		return "unsynced";
	if (c->fate == POSIX_FATE_GONE)
		return "gone";
	if (posix_op_is_data(c->op))
		return "data";
	return posix_op_changes(c->op) ? "name" : "other";
}

/* Adds a rounded number, as a box has little room; the pointer shows the exact one. */
static void box_bytes(struct strbuf *sb, uint64_t n)
{
	static const char units[] = "KMGTPE";
	double v = (double)n;
	const char *unit = units;

	if (n < 10000 || n % 1024 == 0) {
		posix_add_bytes(sb, n);
		return;
	}
	for (v /= 1024; v >= 1000; v /= 1024)
		unit++;
	strbuf_addf(sb, v < 10 ? "%.1f %ciB" : "%.0f %ciB", v, *unit);
}

/* Makes the text "write x4 16 KiB". */
static void box_text(const struct graph *g, const struct row *r, bool with_path, struct strbuf *sb)
{
	const struct posix_call *c = run_call(g, r->run);
	const struct posix_run *run = &g->runs.v[r->run];

	strbuf_adds(sb, posix_op_name(c->op));
	if (c->result < 0) {
		const char *name = strerrorname_np((int)-c->result);

		strbuf_addf(sb, " %s", name ? name : "failed");
	}
	if (run->n > 1)
		strbuf_addf(sb, " x%zu", run->n);
	if (with_path) {
		strbuf_addf(sb, " %s", basename(c->path));
	} else if (run->bytes) {
		strbuf_addch(sb, ' ');
		box_bytes(sb, run->bytes);
	} else if (c->op == POSIX_TRUNCATE) {
		strbuf_addf(sb, " to %" PRIu64, c->offset);
	}
	if (c->flags & (POSIX_SYNC | POSIX_DSYNC) && c->op == POSIX_WRITE)
		strbuf_adds(sb, " sync");
}

/* Adds the text that the pointer shows. */
static void describe(struct graph *g, const struct row *r)
{
	const struct posix_call *c = run_call(g, r->run);
	const struct posix_run *run = &g->runs.v[r->run];
	const struct posix_call *last = &g->log->calls.v[g->sel->v[run->first + run->n - 1]];
	static const char *const fates[] = { "", "; synced later", "; never synced",
					     "; never synced, and removed" };

	strbuf_addf(g->out, "<title>event %" PRIu64, c->event);
	if (run->n > 1)
		strbuf_addf(g->out, " to %" PRIu64, last->event);
	strbuf_addf(g->out, ": %s ", posix_op_name(c->op));
	add_escaped(g->out, c->path ? c->path : "-");
	if (c->path2) {
		strbuf_adds(g->out, " to ");
		add_escaped(g->out, c->path2);
	}
	if (c->op == POSIX_WRITE)
		strbuf_addf(g->out, ", %" PRIu64 " bytes from %" PRIu64, run->bytes, c->offset);
	if (c->occurrence)
		strbuf_addf(g->out, ", occurrence %" PRIu64, c->occurrence);
	if (c->pid)
		strbuf_addf(g->out, ", process %" PRIu32, c->pid);
	strbuf_addf(g->out, "%s</title>", fates[c->fate]);
}

static void draw_arrow(struct graph *g, const struct posix_call *c, int from, int to, int y)
{
	int x1 = lane_x(from), x2 = lane_x(to), side = x2 > x1 ? 1 : -1;

	if (from == to)
		return;
	strbuf_addf(g->out, "<path class=\"arrow\"%s d=\"M%d %dH%d\"/>",
		    c->op == POSIX_LINK ? " stroke-dasharray=\"4 3\"" : "", x1 + side * BOX / 2, y,
		    x2 - side * 7);
	strbuf_addf(g->out, "<path class=\"head\" d=\"M%d %dl%d -6v12z\"/>\n", x2, y, -side * 9);
}

/* Draws a line from a file's old lane: a directory was renamed, or the file has several names. */
static void draw_moved(struct graph *g, const struct posix_call *c, int lane, int y)
{
	if (c->file == POSIX_NO_FILE)
		return;
	int *seen = &g->file_lane[c->file];

	if (*seen >= 0 && *seen != lane && g->lanes.v[*seen].path && g->lanes.v[lane].path)
		strbuf_addf(g->out, "<path class=\"moved\" d=\"M%d %dL%d %d\"/>\n", lane_x(*seen),
			    y - ROW, lane_x(lane), y);
	*seen = lane;
}

static void draw_box(struct graph *g, const struct row *r, int lane)
{
	const struct posix_call *c = run_call(g, r->run);
	auto_strbuf text = STRBUF_INIT;
	int x = lane_x(lane) - BOX / 2;
	bool sync = c->result >= 0 && posix_op_persists(c->op);

	box_text(g, r, !g->lanes.v[lane].path, &text);
	strbuf_addf(g->out, "<g class=\"%s\">", box_class(g, r));
	describe(g, r);
	if (sync) /* a line that no call crosses */
		strbuf_addf(g->out, "<path d=\"M%d %dH%d\"/>", LEFT + LANE * lane + 2, r->y,
			    LEFT + LANE * (lane + 1) - 2);
	strbuf_addf(g->out,
		    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/><text "
		    "class=\"mid\" x=\"%d\" y=\"%d\">",
		    x, r->y - (sync ? BOX_H - 4 : BOX_H) / 2, BOX, sync ? BOX_H - 4 : BOX_H,
		    sync ? 2 : 4, lane_x(lane), r->y + 4);
	add_short(g->out, strbuf_str(&text), BOX_CHARS);
	strbuf_adds(g->out, "</text></g>\n");
}

static void draw_syncfs(struct graph *g, const struct row *r)
{
	const struct posix_call *c = run_call(g, r->run);

	strbuf_addf(g->out, "<g class=\"%s\">", box_class(g, r));
	describe(g, r);
	strbuf_addf(g->out,
		    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\"/><text "
		    "class=\"mid\" x=\"%d\" y=\"%d\">%s: all files</text></g>\n",
		    LEFT + 2, r->y - 8, max(LANE * (int)g->lanes.n, LANE) - 4, 16,
		    LEFT + max(LANE * (int)g->lanes.n, LANE) / 2, r->y + 4,
		    c->result < 0 ? "syncfs failed" : "syncfs");
}

static void draw_note(struct graph *g, const struct row *r)
{
	strbuf_addf(g->out, "<g class=\"note\"><path d=\"M%d %dH%d\"/><text x=\"%d\" y=\"%d\">",
		    LEFT, r->y + 8, g->width - 20, LEFT + 4, r->y + 4);
	add_escaped(g->out, r->note->text);
	strbuf_adds(g->out, "</text></g>\n");
}

static void draw_numbers(struct graph *g, const struct row *r)
{
	const struct posix_call *c = run_call(g, r->run);

	strbuf_addf(g->out, "<text class=\"dim right\" x=\"52\" y=\"%d\">%" PRIu64 "</text>",
		    r->y + 4, c->event);
	if (c->time_ns)
		strbuf_addf(g->out,
			    "<text class=\"dim right\" x=\"124\" y=\"%d\">%" PRIu64 ".%06" PRIu64
			    "</text>",
			    r->y + 4, c->time_ns / 1000000000, c->time_ns / 1000 % 1000000);
	strbuf_addch(g->out, '\n');
}

static void draw_run(struct graph *g, const struct row *r)
{
	const struct posix_call *c = run_call(g, r->run);
	int lane = find_lane(g, c->path);

	draw_numbers(g, r);
	if (c->op == POSIX_SYNCFS) {
		draw_syncfs(g, r);
		return;
	}
	if (lane < 0 || !c->path)
		return;
	draw_moved(g, c, lane, r->y);
	if (moves(c)) {
		int to = find_lane(g, c->path2);

		draw_arrow(g, c, lane, to, r->y);
		if (c->op == POSIX_RENAME && c->file != POSIX_NO_FILE)
			g->file_lane[c->file] = to;
	}
	draw_box(g, r, lane);
}

/* Draws the bracket beside the rows that repeat. */
static void draw_bracket(struct graph *g, size_t first)
{
	const struct posix_group *group = &g->groups.v[g->rows.v[first].group];
	int top = g->rows.v[first].y - ROW / 2 + 3;
	int end = g->rows.v[first + group->n - 1].y + ROW / 2 - 3;

	strbuf_addf(g->out,
		    "<g class=\"times\"><title>%zu times</title><path d=\"M%d %dh-6V%dh6\"/><text "
		    "class=\"right\" x=\"%d\" y=\"%d\">x%zu</text></g>\n",
		    group->times, LEFT - 2, top, end, LEFT - 12, (top + end) / 2 + 4, group->times);
}

static void draw_crash(struct graph *g, int y)
{
	strbuf_addf(g->out,
		    "<g class=\"note\"><path d=\"M10 %dH%d\"/><text x=\"10\" y=\"%d\">the power "
		    "fails</text></g>\n",
		    y, g->width - 10, y - 3);
}

static void draw_rows(struct graph *g)
{
	bool crashed = !g->o->crash;

	for (size_t i = 0; i < g->rows.n; i++) {
		const struct row *r = &g->rows.v[i];

		if (i && i % BAND_ROWS == 0)
			draw_band(g, r->y - ROW / 2 - BAND + 3);
		if (!crashed && !r->note && run_call(g, r->run)->event >= g->o->crash_at) {
			draw_crash(g, r->y - ROW / 2);
			crashed = true;
		}
		if (r->note) {
			draw_note(g, r);
			continue;
		}
		draw_run(g, r);
		if (r->run == g->groups.v[r->group].first && g->groups.v[r->group].times > 1)
			draw_bracket(g, i);
	}
	if (!crashed && g->rows.n)
		draw_crash(g, vec_last(&g->rows).y + ROW / 2);
}

static void draw_legend(struct graph *g)
{
	static const struct {
		const char *class, *text;
	} boxes[] = {
		{ "data", "data, synced later" }, { "unsynced", "data never synced" },
		{ "gone", "file removed since" }, { "name", "names, attributes" },
		{ "sync", "sync, a barrier" },	  { "failed", "failed" },
	};
	int x = 10;

	for (size_t i = 0; i < ARRAY_SIZE(boxes); i++) {
		strbuf_addf(g->out,
			    "<g class=\"%s\"><rect x=\"%d\" y=\"60\" width=\"22\" height=\"14\" "
			    "rx=\"3\"/></g><text class=\"words\" x=\"%d\" y=\"72\">%s</text>",
			    boxes[i].class, x, x + 28, boxes[i].text);
		x += 46 + 7 * (int)strlen(boxes[i].text);
	}
	strbuf_adds(g->out, "\n");
}

static void draw_head(struct graph *g)
{
	strbuf_adds(g->out, "<text class=\"title\" x=\"10\" y=\"24\">");
	add_escaped(g->out, g->o->title ? g->o->title : "calls of an application");
	strbuf_addf(g->out,
		    "</text><text class=\"words\" x=\"10\" y=\"44\">%zu %s in the order in which "
		    "they took effect, from the top down; equal ones in one box, with their "
		    "number; brackets count what repeats; arrows are renames.</text>\n",
		    g->sel->n, plural(g->sel->n, "call", "calls"));
	strbuf_addf(g->out,
		    "<text class=\"dim right\" x=\"52\" y=\"%d\">event</text><text class=\"dim "
		    "right\" x=\"124\" y=\"%d\">seconds</text>\n",
		    HEAD + 28, HEAD + 28);
	draw_legend(g);
}

static void draw_cut(struct graph *g)
{
	int y = g->bottom + 36;

	if (g->cut.calls)
		strbuf_addf(
			g->out,
			"<text class=\"cut\" x=\"10\" y=\"%d\">%zu further %s not drawn.</text>\n",
			y, g->cut.calls, plural(g->cut.calls, "call is", "calls are"));
	if (g->cut.lanes)
		strbuf_addf(g->out,
			    "<text class=\"cut\" x=\"%d\" y=\"%d\">%zu files with few calls share "
			    "the last lane.</text>\n",
			    g->cut.calls ? 230 : 10, y, g->cut.lanes);
}

void posix_graph(const struct posix_log *log, const struct posix_selection *sel,
		 const struct posix_graph_opts *o, struct strbuf *out, struct posix_graph_cut *cut)
{
	struct graph g = { .log = log, .sel = sel, .o = o, .out = out };

	posix_find_runs(log, sel, &g.runs);
	posix_find_groups(log, sel, &g.runs, &g.groups);
	g.file_lane = xcalloc(log->names.files.n, sizeof(*g.file_lane));
	for (size_t i = 0; i < log->names.files.n; i++)
		g.file_lane[i] = -1;
	place_rows(&g);
	place_lanes(&g);
	measure_lanes(&g);
	strbuf_addf(out,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		    "viewBox=\"0 0 %d %d\" role=\"img\">\n<style>%s</style>\n"
		    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		    g.width, g.height, g.width, g.height, style_graph);
	draw_head(&g);
	draw_lanes(&g);
	draw_rows(&g);
	draw_cut(&g);
	strbuf_adds(out, "</svg>\n");
	*cut = g.cut;
	free(g.file_lane);
	vec_release(&g.runs);
	vec_release(&g.groups);
	vec_release(&g.rows);
	vec_release(&g.lanes);
}
