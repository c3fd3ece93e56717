/* SPDX-License-Identifier: MIT */
/*
 * semantics.c - collects what each state recovered to, and judges all states of an operation
 * together.
 *
 * A state that fails is recovered once more when it is told, so that only what was said of it need
 * be remembered and not what was there. If it then shows nothing, which the kernel's warnings that
 * come once only are known for, what was said counts.
 */
#include "run/semantics.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "check/semantic.h"
#include "run/run_places.h"
#include "search/pm_model.h"
#include "search/prefixes.h"
#include "run/replay.h"

enum { STORES_SHOWN = 8, FRAMES_SHOWN = 16 };

/* The findings of a state that is wrong, made the first time it was seen. */
struct said {
	size_t op;
	struct semantic_seen seen;
	struct findings findings;
	char *kernel_log;
};

struct semantics {
	struct run *r;
	const struct state_judge *j;
	struct semantic_table table;
	struct prefixes complete;
	struct vec_of(struct said) said;
};

/* ---- what operations promise ---- */

static bool writes_data(const struct op *op)
{
	return op->def->flags & (OP_WRITES | OP_COPIES);
}

/* In one call; one that has to make its file first takes two. */
static bool is_one_call(struct run *r, const struct op *op, size_t i)
{
	return !(op->def->flags & OP_MAPS) &&
	       (op->args[0].is_handle || op_history_ino(&r->history, i, op->args[0].text));
}

static unsigned promises_of(struct run *r, const struct workload *w, size_t i)
{
	const struct op *op = &w->ops.v[i];
	const struct guarantee *g = &r->guarantee;

	if (!g->every_op || i >= r->history.results.n)
		return 0;
	if (r->history.results.v[i] < 0 || op->def->flags & OP_WHOLE_FS || op_has_parts(op))
		return SEMANTIC_SYNCHRONOUS;
	if (writes_data(op) && !(g->atomic_data && is_one_call(r, op, i)))
		return SEMANTIC_SYNCHRONOUS;
	return SEMANTIC_SYNCHRONOUS | SEMANTIC_ATOMIC;
}

/* ---- filling the table ---- */

struct semantics *semantics_new(struct run *r, const struct state_judge *j,
				const struct crash_points *points)
{
	struct semantics *s = xcalloc(1, sizeof(*s));

	s->r = r;
	s->j = j;
	semantic_init(&s->table, r->with_times);
	for (size_t i = 0; i < j->w->ops.n; i++) {
		auto_strbuf text = STRBUF_INIT;

		op_print(&j->w->ops.v[i], &text);
		semantic_op(&s->table, strbuf_str(&text), promises_of(r, j->w, i));
	}
	prefixes_find(&r->trace, j->base, points, &s->complete);
	return s;
}

void semantics_free(struct semantics *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->said.n; i++) {
		findings_release(&s->said.v[i].findings);
		free(s->said.v[i].kernel_log);
	}
	vec_release(&s->said);
	semantic_release(&s->table);
	prefixes_release(&s->complete);
	free(s);
}

/* Finds the operation that a point belongs to, and where in it; false: none had begun. */
static bool find_place(const struct semantics *s, uint64_t point, size_t *op,
		       enum semantic_where *where)
{
	const struct trace *t = &s->r->trace;
	bool under_way;
	size_t done = operations_done(s->r, point, &under_way);

	if (!under_way && !done)
		return false;
	*op = under_way ? done : done - 1;
	*where = !under_way				      ? SEMANTIC_END
		 : t->events.v[point - 1].kind == EV_OP_BEGIN ? SEMANTIC_BEGIN
							      : SEMANTIC_DURING;
	return *op < s->table.ops.n;
}

/* Which problems there are, without the words, which tell when the crash was. */
static struct hash128 hash_findings(const struct findings *list)
{
	auto_strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < list->n; i++)
		strbuf_addf(&text, "%s %s\n", finding_kind_name(list->v[i].kind), list->v[i].path);
	return hash_bytes(strbuf_str(&text), text.len);
}

static struct semantic_seen what_was_seen(const struct run *r, const struct attempt *a)
{
	struct tree_opts opts = r->tree_opts;
	struct semantic_seen seen = { .failed = !a->mounted || (r->opts.dump && !a->dumped),
				      .wrong = a->findings.n > 0 };

	opts.blocks = false; /* preallocation is done as the file system likes */
	if (a->dumped) {
		seen.state = seen.timed = hash_bytes(strbuf_str(&a->dump), a->dump.len);
		seen.text = strbuf_str(&a->dump);
	} else if (!seen.failed)
		seen.state = seen.timed = tree_hash(a->seen, &opts);
	if (a->stamps.n)
		seen.timed = check_times_hash(seen.state, a->seen, a->stamps.v, r->target.clock);
	if (seen.wrong)
		seen.why = hash_findings(&a->findings);
	return seen;
}

static bool same_seen(const struct semantic_seen *a, const struct semantic_seen *b)
{
	return a->failed == b->failed &&
	       (a->failed || (hash_eq(a->timed, b->timed) && hash_eq(a->why, b->why)));
}

static const struct said *find_said(const struct semantics *s, size_t op,
				    const struct semantic_seen *seen)
{
	return vec_find(i, &s->said, s->said.v[i].op == op && same_seen(&s->said.v[i].seen, seen));
}

static void remember(struct semantics *s, size_t op, const struct semantic_seen *seen,
		     const struct attempt *a)
{
	struct said x = { .op = op, .seen = *seen };

	if (!a->findings.n || find_said(s, op, seen))
		return;
	replay_add_findings(&a->findings, &x.findings);
	x.kernel_log = xstrdup(strbuf_str(&a->kernel_log));
	vec_push(&s->said, x);
}

void semantics_add(struct semantics *s, const struct crash_state *state, const struct attempt *a)
{
	struct semantic_seen seen = what_was_seen(s->r, a);
	bool complete = prefixes_like(&s->complete, state) != U64MAP_NONE;
	struct semantic_origin origin = { .point = state->point,
					  .id = strbuf_str(&state->id),
					  .survived = state->survived.v,
					  .n_survived = state->survived.n,
					  .lost = state->lost.v,
					  .n_lost = complete ? 0 : state->lost.n,
					  .torn = state->torn.n > 0 };
	size_t op;

	if (!find_place(s, state->point, &op, &origin.where))
		return;
	remember(s, op, &seen, a);
	semantic_add(&s->table, op, &seen, &origin);
}

/* ---- the diagnosis ---- */

static void add_stack(struct run *r, const struct trace *t, const struct event *ev,
		      struct strbuf *out)
{
	uint64_t frames[EVENT_FRAMES_MAX];
	size_t n = ev->stack ? trace_stack(t, ev->stack, frames) : 0;

	for (size_t i = 0; i < min(n, (size_t)FRAMES_SHOWN); i++) {
		strbuf_adds(out, i ? ", " : "  called from ");
		place_words(r, t, frames[i], out);
	}
	if (n)
		strbuf_addch(out, '\n');
}

static void add_store(const struct semantics *s, const struct pm_pieces *pieces, const char *fate,
		      uint64_t event, struct strbuf *out)
{
	const struct trace *t = &s->r->trace;
	const struct event *ev = &t->events.v[event];
	struct pm_piece p = pm_piece_of(pieces, t, event);

	strbuf_addf(out, "%s event %" PRIu64 ": %s%s of %" PRIu64 " %s at %#" PRIx64, fate, event,
		    ev->flags & EV_NONTEMPORAL ? "non-temporal " : "",
		    p.len > ev->len ? "copy" : "store", p.len, plural(p.len, "byte", "bytes"),
		    p.addr);
	if (ev->pc) {
		strbuf_adds(out, ", made at ");
		place_words(s->r, t, ev->pc, out);
	}
	strbuf_addch(out, '\n');
	add_stack(s->r, t, ev, out);
}

static bool got_lost(const struct crash_state *state, uint64_t event)
{
	return any_of(i, state->lost.n, state->lost.v[i] == event);
}

/* No store makes the difference, so that all there is to show is where between two the crash is. */
static void add_around(const struct semantics *s, const struct pm_pieces *pieces,
		       const struct crash_state *state, struct strbuf *out)
{
	const struct trace *t = &s->r->trace;
	uint64_t last = state->point, next;

	while (last > 0 && (t->events.v[last - 1].kind != EV_STORE || got_lost(state, last - 1)))
		last--;
	for (next = last; next < t->events.n && t->events.v[next].kind != EV_STORE;)
		next++;
	if (last)
		add_store(s, pieces, "the last store that is there:", last - 1, out);
	if (next < t->events.n)
		add_store(s, pieces, "the first that is not:", next, out);
}

/* "ordering: a crash ...", and the stores that make the difference. */
static void explain(const struct semantics *s, const struct semantic_violation *v,
		    const struct crash_state *state, struct strbuf *out)
{
	size_t n_events = s->r->trace.events.n;
	auto_vec struct pm_pieces pieces = { 0 };

	strbuf_addf(out, "%s: ", semantic_cause_name(v->cause));
	semantic_words(&s->table, v, out);
	strbuf_addch(out, '\n');
	pm_pieces_at(&s->r->opts.pm, &s->r->trace, state->point, &pieces);
	for (size_t i = 0; i < min(state->torn.n, (size_t)STORES_SHOWN); i++) {
		const struct crash_tear *torn = &state->torn.v[i];
		auto_free char *fate = xasprintf("%" PRIu64 " of %" PRIu64 " bytes survived of",
						 torn->kept_bytes, torn->bytes);

		add_store(s, &pieces, fate, torn->event, out);
	}
	for (size_t i = 0; i < min(v->decisive.n, (size_t)STORES_SHOWN); i++)
		if (v->decisive.v[i].event < n_events)
			add_store(s, &pieces, v->decisive.v[i].survived ? "survived" : "lost",
				  v->decisive.v[i].event, out);
	if (v->decisive.n > STORES_SHOWN)
		strbuf_addf(out, "and %zu more\n", v->decisive.n - STORES_SHOWN);
	if (v->cause == SEMANTIC_LOGIC && !v->decisive.n && !state->torn.n)
		add_around(s, &pieces, state, out);
}

/* ---- telling ---- */

/* The dump of the state before or after an operation; NULL: that is not known. */
static const char *dumped_at(const struct semantics *s, size_t op, bool after)
{
	const struct semantic_op *o = &s->table.ops.v[op];
	size_t state = after ? o->after : o->before;

	/* The state after one operation is that before the next. */
	if (state == SEMANTIC_NONE && !after && op > 0)
		return dumped_at(s, op - 1, true);
	return state == SEMANTIC_NONE ? NULL : o->states.v[state].seen.text;
}

static void add_dump_difference(const struct semantics *s, const struct semantic_violation *v,
				bool after, const char *word, struct strbuf *out)
{
	const char *is = s->table.ops.v[v->op].states.v[v->state].seen.text;
	const char *was = dumped_at(s, v->op, after);

	if (is && was)
		semantic_difference(was, is, word, out);
}

static void add_tree_difference(struct run *r, size_t state, const struct attempt *a,
				const char *word, struct strbuf *out)
{
	struct tree_opts opts = r->tree_opts;
	auto_tree_diff diff = { 0 };
	auto_tree want = TREE_INIT;

	if (state >= r->history.states.n)
		return;
	opts.blocks = false;
	reffs_tree(r->history.states.v[state], &opts, &want);
	tree_diff(&want, a->seen, &opts, &diff);
	if (diff.list.n)
		strbuf_addf(out, "; unlike %s: %s", word, diff.list.v[0].words);
	else if (a->stamps.n)
		check_times_difference(&r->history, state, a->seen, a->stamps.v, &r->times, word,
				       out);
}

static void add_difference(struct semantics *s, const struct semantic_violation *v, bool after,
			   const struct attempt *a, const char *word, struct strbuf *out)
{
	if (s->r->opts.dump)
		add_dump_difference(s, v, after, word, out);
	else if (a->mounted)
		add_tree_difference(s->r, v->op + after, a, word, out);
}

static void add_half_done(struct semantics *s, const struct semantic_violation *v,
			  struct attempt *a)
{
	struct strbuf words = { 0 };

	strbuf_addf(&words, "'%s' is done in part", s->table.ops.v[v->op].text);
	add_difference(s, v, false, a, "before", &words);
	add_difference(s, v, true, a, "after", &words);
	findings_add(&a->findings, FINDING_HALF_DONE, NULL, strbuf_detach(&words),
		     xasprintf("it is atomic, by the guarantee %s", s->r->guarantee.name));
}

static void add_unsettled(struct semantics *s, const struct semantic_violation *v,
			  struct attempt *a)
{
	struct strbuf words = { 0 };

	strbuf_addf(&words, "after '%s', crashes lead to different states",
		    s->table.ops.v[v->op].text);
	add_difference(s, v, true, a, "it was", &words);
	findings_add(&a->findings, FINDING_UNSETTLED, NULL, strbuf_detach(&words),
		     xasprintf("it had returned, and is durable by the guarantee %s",
			       s->r->guarantee.name));
}

/* Adds the findings of the first time, unless they are made again. */
static void add_said(const struct said *x, struct attempt *a)
{
	if (!x || replay_has_kind(&a->findings, x->findings.v[0].kind))
		return;
	replay_add_findings(&x->findings, &a->findings);
	if (!a->kernel_log.len)
		strbuf_adds(&a->kernel_log, x->kernel_log);
}

static int rebuild(struct semantics *s, const char *id, struct crash_state *out, struct err *err)
{
	return pm_choice_replay(&s->r->opts.pm, &s->r->trace, s->j->base, id, out, err);
}

/*
 * The nearest of equal images is given out, which may have lost something that makes no difference.
 * Where nothing need be lost, nothing should seem to be.
 */
static int rebuild_plain(struct semantics *s, const struct semantic_violation *v, const char *id,
			 struct crash_state *out, struct err *err)
{
	auto_crash_state whole = CRASH_STATE_INIT;
	struct err ignored = ERR_INIT;
	int rc = rebuild(s, id, out, err);

	if (rc || !out->lost.n || !semantic_is_complete(v->origin))
		return rc;
	auto_free char *all = xasprintf("1.%" PRIu32, prefixes_like(&s->complete, out));
	if (rebuild(s, all, &whole, &ignored) == 0 && hash_eq(whole.hash, out->hash)) {
		struct crash_state old = *out;

		*out = whole;
		whole = old;
	}
	return 0;
}

/*
 * The operation that gives a finding its name: where each of them promises something, the one that
 * did not keep it. An operation that only prepares the next one is not under test: then it is
 * the one before that, if there is one.
 */
static size_t blamed(const struct semantics *s, const struct semantic_violation *v)
{
	if (!s->r->guarantee.every_op)
		return RUN_NO_OPERATION;
	for (size_t i = v->op + 1; i-- > 0;)
		if (!s->j->w->ops.v[i].setup)
			return i;
	return RUN_NO_OPERATION;
}

static int tell(struct semantics *s, const struct semantic_violation *v, const char *id, bool plain,
		struct err *err)
{
	const struct semantic_seen *seen = &s->table.ops.v[v->op].states.v[v->state].seen;
	auto_crash_state state = CRASH_STATE_INIT;
	auto_attempt a = ATTEMPT_INIT(&s->r->seen);
	auto_strbuf why = STRBUF_INIT;
	int rc = plain ? rebuild_plain(s, v, id, &state, err) : rebuild(s, id, &state, err);

	if (rc)
		return rc;
	/* The layer says only that the state was rebuilt, not how to find it by running again. */
	state.layer = state.torn.n ? CRASH_TEAR_ALL : state.lost.n ? CRASH_ALL_BUT : CRASH_ALL;
	rc = judge_attempt(s->r, &state, NULL, &a, err);
	if (rc)
		return rc;
	add_said(seen->wrong ? find_said(s, v->op, seen) : NULL, &a);
	if (v->kind == SEMANTIC_NOT_ATOMIC)
		add_half_done(s, v, &a);
	else if (v->kind == SEMANTIC_NOT_SINGLE && !a.findings.n)
		add_unsettled(s, v, &a);
	explain(s, v, &state, &why);
	return judge_tell(s->r, s->j, &state, NULL, &a, blamed(s, v), strbuf_str(&why), err);
}

/* Whether a state has that crash among its own. */
static bool has_id(const struct semantics *s, const struct semantic_violation *v, const char *id)
{
	const struct semantic_state *x = &s->table.ops.v[v->op].states.v[v->state];

	return any_of(i, x->origins.n, streq(x->origins.v[i].id, id));
}

int semantics_tell(struct semantics *s, const char *only, struct err *err)
{
	auto_call(semantic_violations_release) struct semantic_violations bad = { 0 };
	int rc = 0;

	semantic_judge(&s->table, &bad);
	for (size_t i = 0; i < bad.n && !rc; i++)
		if (!only || has_id(s, &bad.v[i], only))
			rc = tell(s, &bad.v[i], only ? only : bad.v[i].origin->id, !only, err);
	return rc;
}

/* ---- one state ---- */

/* Right after the begin of the operation a point belongs to, and after its end. */
static void find_ends(const struct semantics *s, uint64_t point, uint64_t ends[2])
{
	const struct trace *t = &s->r->trace;
	enum semantic_where where;
	size_t op;

	ends[0] = ends[1] = UINT64_MAX;
	if (!find_place(s, point, &op, &where))
		return;
	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_OP_BEGIN && ev->ref == op)
			ends[0] = i + 1;
		if ((ev->kind == EV_OP_END || ev->kind == EV_PERSIST) && ev->ref == op)
			ends[1] = i + 1;
	}
}

static int add_by_id(struct semantics *s, const char *id, struct err *err)
{
	auto_crash_state state = CRASH_STATE_INIT;
	auto_attempt a = ATTEMPT_INIT(&s->r->seen);
	int rc = rebuild(s, id, &state, err);

	if (!rc)
		rc = judge_attempt(s->r, &state, NULL, &a, err);
	if (!rc)
		semantics_add(s, &state, &a);
	return rc;
}

/*
 * Adds the states to compare with: before and after the operation, and of the same point those
 * where everything survived and where nothing did.
 */
static int add_others(struct semantics *s, const struct crash_state *state, struct err *err)
{
	uint64_t ends[2];
	int rc = 0;

	find_ends(s, state->point, ends);
	for (int i = 0; i < 4 && !rc; i++) {
		uint64_t point = i < 2 ? ends[i] : state->point;
		auto_free char *id = xasprintf("%d.%" PRIu64, i < 3, point);

		/* At the ends themselves, that everything survived is there once only. */
		if (point == UINT64_MAX || streq(id, strbuf_str(&state->id)) ||
		    (i == 2 && (point == ends[0] || point == ends[1])))
			continue;
		rc = add_by_id(s, id, err);
	}
	return rc;
}

int semantics_check_one(struct run *r, const struct state_judge *j, const struct crash_state *state,
			struct err *err)
{
	auto_call(crash_points_release) struct crash_points points = { 0 };
	auto_attempt a = ATTEMPT_INIT(&r->seen);
	struct semantics *s;

	pm_points(&r->trace, &points);
	s = semantics_new(r, j, &points);
	int rc = add_others(s, state, err);
	if (!rc)
		rc = judge_attempt(r, state, NULL, &a, err);
	if (!rc) {
		semantics_add(s, state, &a);
		rc = semantics_tell(s, strbuf_str(&state->id), err);
	}
	semantics_free(s);
	return rc;
}
