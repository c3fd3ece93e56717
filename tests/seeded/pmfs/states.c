/* SPDX-License-Identifier: MIT */
/*
 * states.c - the proof of pmfs: every crash of many workloads, in this process, by the model and
 * the enumerator that outage pm uses.
 *
 *	pmfs-states				all tests, as TAP
 *	pmfs-states --table			the table of doc/pm-bugs.md
 *	pmfs-states --claims [BUDGET]		the figures there, which take longer
 *	pmfs-states --workloads FILE		those of outage gen, as far as pmfs knows the
 *operations pmfs-states --show BUG [WORKLOAD]	what is found, for a person ("none": no bug)
 *
 * Without a bug, nothing is found in any workload. With one, its workload shows what bugs.h says of
 * it, in that kind of crash. No bug changes what the live file system shows.
 */
#include <errno.h>

#include "check/semantic.h"
#include "core/crash.h"
#include "core/hashset.h"
#include "core/model_pm.h"
#include "pmfs.h"
#include "record/pm_stream.h"
#include "../../unit/tap.h"

enum { OPS_MAX = 32, LINES = POOL_SIZE / PM_LINE_SIZE, JOIN_MIN = 256, CLAIM_BUDGET = 1000 };

/* ---- a workload that was run ---- */

struct recorded {
	uint64_t bugs;
	size_t n_ops;
	char *text[OPS_MAX];
	char *live[OPS_MAX]; /* what was there when it had returned */
	struct image base;
	struct trace trace;
};

static unsigned char *new_memory(void)
{
	unsigned char *m = aligned_alloc(IMAGE_PAGE, POOL_SIZE);

	assert(m);
	memset(m, 0, POOL_SIZE);
	return m;
}

static void die(const char *what, const struct err *err)
{
	printf("Bail out! %s: %s\n", what, err->msg);
	exit(2);
}

static void split_ops(const char *workload, struct recorded *r)
{
	for (const char *at = workload; *at;) {
		const char *end = strstr(at, "; ");
		size_t len = end ? (size_t)(end - at) : strlen(at);

		assert(r->n_ops < OPS_MAX);
		r->text[r->n_ops++] = xmemdupz(at, len);
		at += len + (end ? 2 : 0);
	}
}

static void start(struct pmfs *fs, unsigned char *memory, uint64_t bugs)
{
	pmfs_init(fs, memory, bugs);
	fs->m.ordinary = true;
	fs->m.how = PM_CLWB;
}

static void record(const char *workload, uint64_t bugs, struct recorded *r)
{
	auto_free unsigned char *memory = new_memory();
	struct pmfs *fs = xcalloc(1, sizeof(*fs));
	struct err err = ERR_INIT;
	int result;

	*r = (struct recorded){ .bugs = bugs };
	split_ops(workload, r);
	start(fs, memory, 0);
	pmfs_mkfs(fs);
	image_init(&r->base, POOL_SIZE);
	image_write(&r->base, 0, memory, POOL_SIZE);
	pmfs_release(fs);
	start(fs, memory, bugs);
	if (pmfs_recover(fs, &err))
		die(workload, &err);
	pm_trace_start(&fs->m);
	for (size_t i = 0; i < r->n_ops; i++) {
		auto_strbuf live = STRBUF_INIT;

		if (script_run_line(fs, r->text[i], (unsigned)i, &result, &err))
			die(workload, &err);
		pmfs_dump(fs, &live);
		r->live[i] = strbuf_detach(&live);
	}
	pm_trace_end(&fs->m);
	trace_init(&r->trace);
	if (pm_stream_read(fs->m.stream, fs->m.len, &r->trace, NULL, &err))
		die(workload, &err);
	pmfs_release(fs);
	free(fs);
}

static void recorded_release(struct recorded *r)
{
	for (size_t i = 0; i < r->n_ops; i++) {
		free(r->text[i]);
		free(r->live[i]);
	}
	image_release(&r->base);
	trace_release(&r->trace);
}

/* ---- one state ---- */

struct seen {
	bool failed;
	struct strbuf text;
	unsigned char read[LINES]; /* lines that recovering and looking at it read */
};

/* Recovers an image. What recovery did to it becomes `trace`, if that is not NULL. */
static void look(const struct image *img, uint64_t bugs, struct seen *s, struct trace *trace)
{
	static unsigned char *memory;
	static struct pmfs fs;
	struct err err = ERR_INIT;

	if (!memory)
		memory = new_memory();
	image_read(img, 0, memory, POOL_SIZE);
	start(&fs, memory, bugs);
	fs.m.read = s->read;
	memset(s->read, 0, sizeof(s->read));
	strbuf_clear(&s->text);
	if (trace)
		pm_trace_start(&fs.m);
	s->failed = pmfs_recover(&fs, &err) != 0;
	if (trace) {
		struct err broken = ERR_INIT;

		pm_trace_end(&fs.m);
		if (pm_stream_read(fs.m.stream, fs.m.len, trace, NULL, &broken))
			die("recovery", &broken);
	}
	if (!s->failed) {
		pmfs_dump(&fs, &s->text);
		s->failed = pmfs_use(&fs, &err) != 0;
	}
	if (s->failed)
		strbuf_addf(&s->text, "%s\n", err.msg);
	pmfs_release(&fs);
}

/* ---- all states ---- */

struct how {
	uint32_t max_subset;
	unsigned layers;
	uint32_t granularity;
	uint64_t join_min;
	bool prune;   /* only what recovery reads is varied */
	bool recrash; /* and recovery is crashed as well */
	bool eadr;
	uint64_t budget;
};

static const struct how usual = { .max_subset = 2,
				  .layers = CRASH_WITH_WHOLE,
				  .join_min = JOIN_MIN };

struct state {
	uint64_t point;
	char *id, *text;
	bool failed;
	uint64_t *lost, *survived;
	size_t n_lost, n_survived;
};

struct found {
	enum bug_kind kind;
	bool reorder;
	size_t op;
	char *text; /* the state that should not be */
	char *words;
};

struct result {
	struct vec_of(struct state) states;
	struct vec_of(struct found) found;
	struct crash_stats stats;
	uint64_t recrashes;
};

/* What was read where everything survived: by the image, and the lines. */
struct reads {
	struct vec_of(struct hash128) image;
	struct vec_of(unsigned char *) lines;
};

static bool vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece)
{
	const struct reads *r = ctx;

	(void)point;
	for (size_t i = 0; i < r->image.n; i++) {
		if (!hash_eq(r->image.v[i], all))
			continue;
		for (uint64_t l = piece->addr / PM_LINE_SIZE;
		     l <= (piece->addr + piece->len - 1) / PM_LINE_SIZE; l++)
			if (r->lines.v[i][l])
				return true;
		return false;
	}
	return true;
}

static void reads_release(struct reads *r)
{
	for (size_t i = 0; i < r->lines.n; i++)
		free(r->lines.v[i]);
	vec_release(&r->lines);
	vec_release(&r->image);
}

static uint64_t *copy_numbers(const uint64_t *v, size_t n)
{
	uint64_t *out = xcalloc(n + 1, sizeof(*out));

	if (n)
		memcpy(out, v, n * sizeof(*out));
	return out;
}

/* Marks before a point: an image that is fine before one may be wrong after it. */
static uint64_t marks_before(const struct trace *t, uint64_t point)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < point; i++)
		n += t->events.v[i].kind == EV_OP_BEGIN || t->events.v[i].kind == EV_OP_END;
	return n;
}

static struct hash128 with_marks(struct hash128 image, uint64_t marks)
{
	struct hash128 both[2] = { image, { marks, 0 } };

	return hash_bytes(both, sizeof(both));
}

/* What the memory held at each point if nothing was lost: such a state is a prefix. */
static void find_complete(const struct trace *t, const struct image *base,
			  const struct crash_points *points, struct hashset *out)
{
	auto_image img = IMAGE_INIT;
	uint64_t at = 0;

	image_snapshot(base, &img);
	for (size_t i = 0; i < points->n; i++) {
		for (; at < points->v[i]; at++)
			if (t->events.v[at].kind == EV_STORE)
				image_write(&img, t->events.v[at].addr, t->events.v[at].data,
					    t->events.v[at].len);
		hashset_insert(out, with_marks(image_hash(&img), marks_before(t, points->v[i])));
	}
}

typedef void (*state_fn)(void *ctx, const struct crash_state *s, bool complete);

static void each_state(const struct trace *t, const struct image *base, const struct how *how,
		       struct reads *reads, state_fn fn, void *ctx, struct crash_stats *stats)
{
	struct model_pm_opts model = { .granularity = how->granularity, .join_min = how->join_min };
	struct crash_opts o = CRASH_OPTS_INIT;
	struct crash_points points = { 0 };
	struct hashset complete = { 0 };
	auto_crash_state s = CRASH_STATE_INIT;
	struct err err = ERR_INIT;
	auto_crash e = NULL;

	crash_points_pm(t, &points);
	find_complete(t, base, &points, &complete);
	o.model = how->eadr ? &model_pm_eadr : &model_pm;
	o.model_ctx = &model;
	o.base = base;
	o.points = points.v;
	o.n_points = points.n;
	o.layers = how->layers;
	o.max_subset = how->max_subset;
	o.budget = how->budget;
	if (how->prune) {
		o.vary = vary;
		o.vary_ctx = reads;
	}
	if (crash_new(t, &o, &e, &err))
		die("crash_new", &err);
	while (crash_next(e, &s))
		fn(ctx, &s, hashset_has(&complete, with_marks(s.hash, marks_before(t, s.point))));
	if (stats)
		crash_stats(e, stats);
	hashset_release(&complete);
	crash_points_release(&points);
}

/* ---- a second crash ---- */

struct second {
	struct result *out;
	uint64_t bugs;
	const char *want; /* what recovery left without one */
};

static void look_again(void *ctx, const struct crash_state *s, bool complete)
{
	static struct seen seen;
	struct second *x = ctx;

	x->out->recrashes++;
	look(&s->image, x->bugs, &seen, NULL);
	if (streq(strbuf_str(&seen.text), x->want))
		return;
	vec_push(&x->out->found,
		 (struct found){ .kind = BUG_RECOVERY,
				 .reorder = !complete,
				 .text = xstrdup(strbuf_str(&seen.text)),
				 .words = xasprintf("recovered to\n%sif it crashed, else to\n%s",
						    strbuf_str(&seen.text), x->want) });
}

static void crash_recovery(struct result *out, const struct crash_state *s, uint64_t bugs,
			   const char *want, const struct trace *t)
{
	struct second x = { .out = out, .bugs = bugs, .want = want };
	struct how how = usual;

	how.max_subset = 1;
	each_state(t, &s->image, &how, NULL, look_again, &x, NULL);
}

/* ---- the first ---- */

struct first {
	const struct recorded *r;
	const struct how *how;
	struct result *out;
	struct reads reads;
	struct hashset recrashed;
};

static void look_at(void *ctx, const struct crash_state *s, bool complete)
{
	static struct seen seen;
	struct first *x = ctx;
	bool recrash = x->how->recrash && hashset_insert(&x->recrashed, s->hash);
	auto_trace t;

	trace_init(&t);
	look(&s->image, x->r->bugs, &seen, recrash ? &t : NULL);
	struct state st = { .point = s->point,
			    .id = xstrdup(strbuf_str(&s->id)),
			    .text = xstrdup(strbuf_str(&seen.text)),
			    .failed = seen.failed,
			    .n_lost = complete ? 0 : s->lost.n,
			    .n_survived = s->survived.n };

	st.lost = copy_numbers(s->lost.v, st.n_lost);
	st.survived = copy_numbers(s->survived.v, st.n_survived);
	vec_push(&x->out->states, st);
	if (x->how->prune && s->layer <= CRASH_COMPLETED) {
		vec_push(&x->reads.image, s->hash);
		vec_push(&x->reads.lines, memcpy(xmalloc(LINES), seen.read, LINES));
	}
	if (recrash && !seen.failed && t.events.n)
		crash_recovery(x->out, s, x->r->bugs, st.text, &t);
}

/* ---- the table ---- */

static int by_point(const void *a, const void *b)
{
	const struct state *x = a, *y = b;

	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	if (x->n_lost != y->n_lost)
		return x->n_lost < y->n_lost ? -1 : 1;
	return strcmp(x->id, y->id);
}

static void add_state(struct semantic_table *table, size_t op, uint64_t from, uint64_t to,
		      const struct state *s)
{
	struct semantic_seen seen = { .failed = s->failed, .text = s->text };
	struct semantic_origin origin = { .where = s->point == from ? SEMANTIC_BEGIN
						   : s->point == to ? SEMANTIC_END
								    : SEMANTIC_DURING,
					  .point = s->point,
					  .id = s->id,
					  .survived = s->survived,
					  .n_survived = s->n_survived,
					  .lost = s->lost,
					  .n_lost = s->n_lost };

	if (!s->failed)
		seen.state = seen.timed = hash_bytes(s->text, strlen(s->text));
	semantic_add(table, op, &seen, &origin);
}

/* From right after an operation's begin mark to right after that of its end. */
static void find_op(const struct trace *t, size_t op, uint64_t *from, uint64_t *to)
{
	for (uint64_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->ref == op && ev->kind == EV_OP_BEGIN)
			*from = i + 1;
		if (ev->ref == op && ev->kind == EV_OP_END)
			*to = i + 1;
	}
}

static void fill(const struct recorded *r, const struct result *x, struct semantic_table *table)
{
	for (size_t i = 0; i < r->n_ops; i++) {
		uint64_t from = 0, to = 0;
		size_t op = semantic_op(table, r->text[i], SEMANTIC_SYNCHRONOUS | SEMANTIC_ATOMIC);

		find_op(&r->trace, i, &from, &to);
		for (size_t j = 0; j < x->states.n; j++)
			if (x->states.v[j].point >= from && x->states.v[j].point <= to)
				add_state(table, op, from, to, &x->states.v[j]);
	}
}

static void judge_live(const struct recorded *r, const struct semantic_table *t, struct result *out)
{
	for (size_t i = 0; i < r->n_ops; i++) {
		const struct semantic_op *op = &t->ops.v[i];

		if (op->after == SEMANTIC_NONE)
			continue;
		const struct semantic_seen *s = &op->states.v[op->after].seen;

		if (!s->failed && !streq(s->text, r->live[i]))
			vec_push(&out->found, (struct found){ .kind = BUG_NOT_LIVE,
							      .op = i,
							      .text = xstrdup(s->text),
							      .words = xasprintf("live it was\n%s",
										 r->live[i]) });
	}
}

static void add_found(struct result *out, const struct semantic_violation *v, enum bug_kind kind,
		      const char *text, const char *words)
{
	vec_push(&out->found, (struct found){ .kind = kind,
					      .reorder = v->cause == SEMANTIC_ORDERING,
					      .op = v->op,
					      .text = xstrdup(text ? text : ""),
					      .words = xstrdup(words) });
}

static bool is_at_end(const struct semantic_state *s)
{
	for (size_t i = 0; i < s->origins.n; i++)
		if (s->origins.v[i].where == SEMANTIC_END)
			return true;
	return false;
}

/* A state that is told as not atomic may still be there when the operation has returned. */
static void judge(const struct recorded *r, struct result *out)
{
	static const enum bug_kind kinds[] = { [SEMANTIC_FAILED] = BUG_FAILED,
					       [SEMANTIC_NOT_ATOMIC] = BUG_NOT_ATOMIC,
					       [SEMANTIC_NOT_SINGLE] = BUG_NOT_SINGLE };
	struct semantic_violations bad = { 0 };
	auto_semantic table;

	semantic_init(&table, false);
	qsort(out->states.v, out->states.n, sizeof(*out->states.v), by_point);
	fill(r, out, &table);
	semantic_judge(&table, &bad);
	for (size_t i = 0; i < bad.n; i++) {
		const struct semantic_violation *v = &bad.v[i];
		const char *text = table.ops.v[v->op].states.v[v->state].seen.text;
		auto_strbuf words = STRBUF_INIT;

		semantic_words(&table, v, &words);
		add_found(out, v, kinds[v->kind], text, strbuf_str(&words));
		if (v->kind == SEMANTIC_NOT_ATOMIC &&
		    is_at_end(&table.ops.v[v->op].states.v[v->state]))
			add_found(out, v, BUG_NOT_SINGLE, text, strbuf_str(&words));
	}
	semantic_violations_release(&bad);
	judge_live(r, &table, out);
}

static void try_all(const struct recorded *r, const struct how *how, struct result *out)
{
	struct first x = { .r = r, .how = how, .out = out };

	*out = (struct result){ 0 };
	each_state(&r->trace, &r->base, how, &x.reads, look_at, &x, &out->stats);
	reads_release(&x.reads);
	hashset_release(&x.recrashed);
	judge(r, out);
}

static void result_release(struct result *x)
{
	for (size_t i = 0; i < x->states.n; i++) {
		struct state *s = &x->states.v[i];

		free(s->id);
		free(s->text);
		free(s->lost);
		free(s->survived);
	}
	for (size_t i = 0; i < x->found.n; i++) {
		free(x->found.v[i].text);
		free(x->found.v[i].words);
	}
	vec_release(&x->states);
	vec_release(&x->found);
}

/* ---- workloads ---- */

/* Each operation once, on what it needs; then some that go together. */
static const char *const healthy[] = {
	"creat foo",
	"mkdir A; creat A/foo",
	"symlink target sl",
	"creat foo; link foo bar",
	"mkdir A; creat foo; link foo A/bar",
	"creat foo; unlink foo",
	"creat foo; link foo bar; unlink foo",
	"mkdir A; rmdir A",
	"creat foo; rename foo bar",
	"creat foo; creat bar; write bar 0 100; rename foo bar",
	"mkdir A; mkdir B; creat A/foo; rename A/foo B/foo",
	"mkdir A; creat foo; creat A/foo; link A/foo bar; rename foo A/foo",
	"mkdir A; mkdir B; rename A B/A",
	"mkdir A; mkdir B; rename A B",
	"creat foo; chmod foo 0600",
	"creat foo; write foo 0 11",
	"creat foo; write foo 100 700",
	"creat foo; write foo 0 1100; write foo 500 100",
	"creat foo; write foo 0 100; append foo 100",
	"creat foo; write foo 0 500; append foo 100",
	"creat foo; write foo 0 600; truncate foo 100; truncate foo 300",
	"creat foo; write foo 0 1500; truncate foo 0; append foo 10",
	"creat foo; falloc foo plain 0 1000; write foo 100 50",
	"creat foo; write foo 0 600; falloc foo keep 0 2048; truncate foo 2000",
	"creat foo; write foo 0 100; write foo 300 5",
	"creat foo; write foo 0 700; link foo bar; unlink foo; creat foo; write foo 0 20",
	"mkdir A; creat A/foo; symlink foo A/s; rename A/foo A/s; unlink A/s; rmdir A",
	SEVEN_NAMES "creat long-name-long-name-long-name-long-name-long-name-long-name-long-name",
};

static bool contains(const struct bug_info *b, const char *text)
{
	bool there = strstr(text, b->shows + 1);

	return *b->shows == '+' ? there : !there;
}

static const struct found *find_bug(const struct bug_info *b, const struct result *x)
{
	for (size_t i = 0; i < x->found.n; i++) {
		const struct found *f = &x->found.v[i];

		if (f->kind == b->kind && f->reorder == (b->layer == LAYER_REORDER) &&
		    contains(b, f->text))
			return f;
	}
	return NULL;
}

static void show_found(const struct result *x, const char *prefix)
{
	static const char *const kinds[] = { "failed", "not-atomic", "not-single", "not-live",
					     "recovery" };

	for (size_t i = 0; i < min(x->found.n, (size_t)12); i++) {
		const struct found *f = &x->found.v[i];
		auto_free char *text = xasprintf("%s, %s, operation %zu: %s\n%s", kinds[f->kind],
						 f->reorder ? "reorder" : "prefix", f->op, f->words,
						 f->text);

		for (char *at = text; *at;) {
			size_t len = strcspn(at, "\n");

			printf("%s%.*s\n", prefix, (int)len, at);
			at += len + (at[len] == '\n');
		}
	}
}

/* ---- tests ---- */

static uint64_t total_states, total_second;

static void test_healthy(const char *workload, const struct how *how, const char *name)
{
	struct recorded r;
	struct result x;

	record(workload, 0, &r);
	try_all(&r, how, &x);
	total_states += x.states.n;
	total_second += x.recrashes;
	if (!ok(!x.found.n && x.states.n > r.n_ops, "%s: %s", name, workload))
		show_found(&x, "# ");
	result_release(&x);
	recorded_release(&r);
}

static bool same_live(const struct recorded *a, const struct recorded *b)
{
	for (size_t i = 0; i < a->n_ops; i++)
		if (!streq(a->live[i], b->live[i]))
			return false;
	return a->n_ops == b->n_ops;
}

static void test_live(const struct bug_info *b, uint64_t bits)
{
	bool same = true;

	for (size_t i = 0; i < ARRAY_SIZE(healthy); i++) {
		struct recorded with, without;

		record(healthy[i], bits, &with);
		record(healthy[i], 0, &without);
		same = same && same_live(&with, &without);
		recorded_release(&with);
		recorded_release(&without);
	}
	ok(same, "%s changes nothing that is seen live", b->name);
}

static struct how how_for(const struct bug_info *b, uint32_t bound)
{
	struct how how = usual;

	how.max_subset = bound;
	if (!bound)
		how.layers = CRASH_WITH_NONE | CRASH_WITH_ALL;
	how.recrash = b->kind == BUG_RECOVERY;
	return how;
}

/* The smallest bound that shows a bug as it should; -1: none does. */
static int smallest_bound(const struct bug_info *b, const struct recorded *r, uint64_t *states)
{
	for (int bound = 0; bound <= 2; bound++) {
		struct how how = how_for(b, (uint32_t)bound);
		struct result x;

		try_all(r, &how, &x);
		bool hit = find_bug(b, &x);

		*states = x.states.n;
		result_release(&x);
		if (hit)
			return bound;
	}
	return -1;
}

static void test_bug(enum bug bug)
{
	const struct bug_info *b = &bug_table[bug];
	struct how how = how_for(b, 2);
	struct recorded r;
	struct result x;

	record(b->workload, (uint64_t)1 << bug, &r);
	try_all(&r, &how, &x);
	if (!ok(find_bug(b, &x), "%s: %s", b->name, b->consequence))
		show_found(&x, "# ");
	result_release(&x);
	how.prune = true;
	try_all(&r, &how, &x);
	ok(find_bug(b, &x), "%s: found as well if only what recovery reads is varied", b->name);
	result_release(&x);
	how.prune = false;
	recorded_release(&r);
	record(b->workload, 0, &r);
	try_all(&r, &how, &x);
	if (!ok(!x.found.n, "%s: and not without it", b->name))
		show_found(&x, "# ");
	result_release(&x);
	recorded_release(&r);
	test_live(b, (uint64_t)1 << bug);
}

/* ---- what the papers claim ---- */

/* Operation, and what was recovered: as one number each. */
static void semantic_states(const struct recorded *r, const struct result *x, struct hashset *out)
{
	for (size_t i = 0; i < r->n_ops; i++) {
		uint64_t from = 0, to = 0;

		find_op(&r->trace, i, &from, &to);
		for (size_t j = 0; j < x->states.n; j++) {
			const struct state *s = &x->states.v[j];
			uint64_t seed = i * 2 + (s->point == to);

			if (s->point >= from && s->point <= to)
				hashset_insert(out,
					       hash_bytes_seeded(s->text, strlen(s->text), seed));
		}
	}
}

enum { ALL, PRUNED, TWO, N_WAYS };

/* One workload, in each way. */
struct ways {
	struct hashset sem[N_WAYS];
	uint64_t images[N_WAYS];
	bool cut[N_WAYS];   /* the budget was hit */
	bool found[N_WAYS]; /* the bug was */
};

struct claim {
	uint64_t workloads, cut;
	uint64_t images[N_WAYS], sem[N_WAYS];
	uint64_t differ; /* workloads where pruning, without a budget in the way, sees others */
	uint64_t missed[N_WAYS];
};

static bool same_set(const struct hashset *a, const struct hashset *b)
{
	for (size_t i = 0; i < a->cap; i++)
		if (!hash_eq(a->slots[i], (struct hash128){ 0 }) && !hashset_has(b, a->slots[i]))
			return false;
	return a->n == b->n;
}

/* A bug of recovery shows after a second crash, which test_bug() tries, and not here. */
static bool shows_here(const struct bug_info *b)
{
	return b && b->kind != BUG_RECOVERY;
}

static void try_ways(const char *workload, uint64_t bugs, const struct bug_info *bug,
		     uint64_t budget, struct ways *w)
{
	struct how all = { .max_subset = UINT32_MAX,
			   .layers = CRASH_WITH_WHOLE,
			   .granularity = PM_ATOMIC,
			   .join_min = JOIN_MIN,
			   .budget = budget };
	struct how how[N_WAYS] = { all, all, all };
	struct recorded r;

	how[PRUNED].prune = true;
	how[TWO].max_subset = 2;
	record(workload, bugs, &r);
	for (int i = 0; i < N_WAYS; i++) {
		struct result x;

		try_all(&r, &how[i], &x);
		semantic_states(&r, &x, &w->sem[i]);
		w->images[i] = x.states.n;
		w->cut[i] = x.stats.budget_hit;
		result_release(&x);
		how[i].granularity = 0; /* by lines, as processors have it, bugs show as they are */
		if (shows_here(bug)) {
			try_all(&r, &how[i], &x);
			w->found[i] = find_bug(bug, &x);
			result_release(&x);
		}
	}
	recorded_release(&r);
}

static void print_ways(const struct bug_info *b, const struct ways *w)
{
	printf("| `%s` ", b->name);
	for (int i = 0; i < N_WAYS; i++)
		printf("| %llu%s | %zu | %s ", (unsigned long long)w->images[i],
		       w->cut[i] ? " (cut)" : "", w->sem[i].n,
		       !shows_here(b) ? "second"
		       : w->found[i]  ? "yes"
				      : "no");
	printf("|\n");
}

static void compare(const char *workload, uint64_t bugs, const struct bug_info *bug,
		    uint64_t budget, bool print, struct claim *c)
{
	struct ways w = { 0 };

	try_ways(workload, bugs, bug, budget, &w);
	c->workloads++;
	c->cut += w.cut[ALL];
	bool differ = !w.cut[ALL] && !w.cut[PRUNED] && !same_set(&w.sem[ALL], &w.sem[PRUNED]);
	if (differ)
		printf("# pruning sees other states: %s: %s\n", bug ? bug->name : "no bug",
		       workload);
	c->differ += differ;
	for (int i = 0; i < N_WAYS; i++) {
		c->images[i] += w.images[i];
		c->sem[i] += w.sem[i].n;
		c->missed[i] += shows_here(bug) && !w.found[i];
	}
	if (bug && print)
		print_ways(bug, &w);
	for (int i = 0; i < N_WAYS; i++)
		hashset_release(&w.sem[i]);
}

static void print_claim(const char *what, const struct claim *c)
{
	static const char *const ways[N_WAYS] = { "all subsets", "pruned", "bound 2" };

	printf("# %s: %llu workloads (%llu cut)", what, (unsigned long long)c->workloads,
	       (unsigned long long)c->cut);
	for (int i = 0; i < N_WAYS; i++)
		printf("; %s %llu images, %llu semantic states", ways[i],
		       (unsigned long long)c->images[i], (unsigned long long)c->sem[i]);
	printf("\n");
}

static void test_claims(uint64_t budget, bool print)
{
	struct claim good = { 0 }, bad = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(healthy); i++)
		compare(healthy[i], 0, NULL, budget, print, &good);
	for (int i = 0; i < N_BUGS; i++)
		compare(bug_table[i].workload, (uint64_t)1 << i, &bug_table[i], budget, print,
			&bad);
	print_claim("without bugs", &good);
	print_claim("with bugs", &bad);
	ok(!good.differ && good.cut < good.workloads,
	   "without a bug, pruned, the same states are seen in each workload");
	ok(!bad.differ && bad.cut < bad.workloads / 2, "with each bug as well");
	is_u(good.sem[TWO], good.sem[ALL], "with a bound of two, as many states are seen");
	is_u(bad.missed[PRUNED], 0, "pruned, no bug is missed");
	is_u(bad.missed[TWO], 0, "nor with a bound of two");
	ok(good.images[PRUNED] <= good.images[ALL] && bad.images[PRUNED] <= bad.images[ALL],
	   "pruning leaves fewer images");
}

/* ---- */

static int show(const char *bug, const char *workload)
{
	uint64_t bits = 0;
	struct recorded r;
	struct result x;
	struct how how = usual;

	if (!streq(bug, "none") && bugs_parse(bug, &bits))
		return 2;
	for (int i = 0; i < N_BUGS && !workload; i++)
		if (bits >> i & 1)
			workload = bug_table[i].workload;
	if (!workload)
		return 2;
	how.recrash = true;
	record(workload, bits, &r);
	try_all(&r, &how, &x);
	printf("%zu states, %llu second crashes, %zu found\n", x.states.n,
	       (unsigned long long)x.recrashes, x.found.n);
	show_found(&x, "");
	result_release(&x);
	recorded_release(&r);
	return 0;
}

/* One workload of outage gen, "; " between its operations, if pmfs can do it. */
static void try_generated(struct strbuf *workload, uint64_t *n, uint64_t *unknown)
{
	static const char *const not_ours[] = { "zero", "punch", "collapse", "insert" };
	const char *text = strbuf_str(workload);
	bool known = true;

	if (!*text)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(not_ours); i++)
		known = known && !strstr(text, not_ours[i]);
	*unknown += !known;
	if (known) {
		test_healthy(text, &usual, "right");
		++*n;
	}
	strbuf_clear(workload);
}

static int generated(const char *path)
{
	auto_strbuf workload = STRBUF_INIT;
	auto_file f = fopen(path, "r");
	uint64_t n = 0, unknown = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || !strncmp(line, "workload ", 9)) {
			try_generated(&workload, &n, &unknown);
			continue;
		}
		strbuf_addf(&workload, "%s%s", workload.len ? "; " : "",
			    line + (strncmp(line, "setup ", 6) ? 0 : 6));
	}
	try_generated(&workload, &n, &unknown);
	ok(n > 0, "there were workloads");
	printf("# %llu workloads, %llu states, %llu workloads left out\n", (unsigned long long)n,
	       (unsigned long long)total_states, (unsigned long long)unknown);
	return done_testing();
}

static int table(void)
{
	static const char *const kinds[] = { "recovery fails", "not atomic", "not synchronous",
					     "not what was there", "recovery cannot be repeated" };

	printf("| bug | workload | crash | bound | states | seen as | consequence | stems from |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (int i = 0; i < N_BUGS; i++) {
		const struct bug_info *b = &bug_table[i];
		struct recorded r;
		uint64_t states = 0;

		record(b->workload, (uint64_t)1 << i, &r);
		int bound = smallest_bound(b, &r, &states);

		printf("| `%s` | %s | %s%s | %d | %llu | %s | %s | %s |\n", b->name, b->workload,
		       b->layer == LAYER_REORDER ? "reorder" : "prefix",
		       b->kind == BUG_RECOVERY ? ", second" : "", bound, (unsigned long long)states,
		       kinds[b->kind], b->consequence, b->stems);
		recorded_release(&r);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct how words = usual, twice = usual, eadr = usual;

	if (argc == 2 && streq(argv[1], "--table"))
		return table();
	if (argc >= 2 && streq(argv[1], "--claims")) {
		test_claims(argc > 2 ? strtoull(argv[2], NULL, 10) : 20 * CLAIM_BUDGET, true);
		return done_testing();
	}
	if (argc == 3 && streq(argv[1], "--workloads"))
		return generated(argv[2]);
	if (argc >= 3 && streq(argv[1], "--show"))
		return show(argv[2], argc > 3 ? argv[3] : NULL);
	words.granularity = PM_ATOMIC;
	twice.recrash = true;
	twice.max_subset = 1;
	eadr.eadr = true;
	for (size_t i = 0; i < ARRAY_SIZE(healthy); i++) {
		test_healthy(healthy[i], &usual, "right");
		test_healthy(healthy[i], &words, "right by words");
		test_healthy(healthy[i], &twice, "right after two crashes");
		test_healthy(healthy[i], &eadr, "right with persistent caches");
	}
	for (int i = 0; i < N_BUGS; i++)
		test_bug((enum bug)i);
	test_claims(CLAIM_BUDGET, false);
	printf("# %llu states, and %llu of recovery, of the file system without bugs\n",
	       (unsigned long long)total_states, (unsigned long long)total_second);
	return done_testing();
}
