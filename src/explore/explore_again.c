/* SPDX-License-Identifier: MIT */
/* explore_again.c - opens the sides that a finding names, and does its script there. */
#include "explore/explore_again.h"

#include <errno.h>

enum { SHRINK_RUNS = 500 };

struct again {
	const struct kept_case *c;
	struct target_opts references[SIDES_MAX];
	struct stepper st;
	struct point start;
	struct alphabet none; /* between scripts, which have alphabets of their own */
	/* For scripts that become smaller: */
	const struct shrink_opts *opts;
	size_t ops; /* operations of the smallest so far */
};

static void close_sides(struct again *a)
{
	stepper_drop(&a->st, &a->start);
	stepper_close(&a->st);
	alphabet_release(&a->none);
}

static int open_sides(struct again *a, struct err *err)
{
	const struct stored_case *c = &a->c->c;
	const struct image *start[SIDES_MAX] = { NULL };
	struct side_opts opts = { .target = stored_case_target(c), .references = a->references };
	const char *specs[SIDES_MAX] = { c->target };
	unsigned n = 1;

	for (size_t i = 0; i < c->references.n && n < SIDES_MAX; i++) {
		const struct stored_reference *r = &c->references.v[i];

		a->references[n] = (struct target_opts){
#define TARGET_OPTION(member, ...) .member = r->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
		};
		specs[n++] = r->spec;
	}
	int rc = stepper_open(&a->st, &opts, specs, n, err);
	if (rc)
		return rc;
	alphabet_init(&a->none);
	stepper_begin(&a->st, &a->none);
	for (unsigned i = 0; i < SIDES_MAX; i++)
		start[i] = a->c->starts[i] ? &a->c->start[i] : NULL;
	if (start[0])
		rc = stepper_from_images(&a->st, start, &a->start, err);
	a->st.start = start[0] ? &a->start : NULL;
	a->st.room_after = streq(c->signature, SIGNATURE_ROOM);
	if (rc)
		close_sides(a);
	return rc;
}

/* 1 if it shows. */
static int run_once(struct again *a, const struct script *s, struct step_result *result,
		    struct strbuf *log, struct err *err)
{
	size_t at;

	strbuf_clear(log);
	int rc = script_run(s, &a->st, result, &at, log, err);
	return rc ? rc
		  : result->verdict == STEP_DIFFERENT &&
			       streq(result->signature, a->c->c.signature);
}

int explore_replay(const struct kept_case *c, unsigned tries, unsigned *shown,
		   struct step_result *result, struct strbuf *log, struct err *err)
{
	struct again a = { .c = c };
	int rc = open_sides(&a, err);

	*shown = 0;
	if (rc)
		return rc;
	for (unsigned i = 0; i < tries && rc >= 0; i++) {
		rc = run_once(&a, &c->script, result, log, err);
		*shown += rc > 0;
	}
	close_sides(&a);
	return min(rc, 0);
}

/* ---- smaller ---- */

static int on_shown(void *ctx, const struct script *s, const struct shrunk *so_far,
		    struct step_result *result, const struct strbuf *log, struct err *err)
{
	struct again *a = ctx;

	(void)so_far, (void)result, (void)log, (void)err;
	if (s->w.ops.n < a->ops) {
		auto_free char *words = xasprintf("%zu %s: shows", s->w.ops.n,
						  plural(s->w.ops.n, "operation", "operations"));

		a->opts->step(a->opts->ctx, words);
		a->ops = s->w.ops.n;
	}
	return 0;
}

/* Does the script once more, for the log and the trees. */
static int keep(struct again *a, const struct script *s, const struct shrunk *made, const char *dir,
		struct err *err)
{
	auto_call(step_result_release) struct step_result result = { 0 };
	auto_strbuf log = STRBUF_INIT;
	const struct stored_case *c = &a->c->c;
	uint64_t steps = a->st.counts.operations;
	int rc = run_once(a, s, &result, &log, err);

	if (rc <= 0)
		return rc ? rc : err_set(err, -EAGAIN, "%s shows only now and then", c->dir);
	struct err ignored = ERR_INIT; /* a file system that cannot be walked has no tree */
	if (!a->st.room_after && stepper_show(&a->st, &ignored))
		err_clear(&ignored);
	struct kept k = { .script = s,
			  .stepper = &a->st,
			  .result = &result,
			  .log = &log,
			  .shown = made->shown,
			  .tries = made->tries,
			  .ops_before = c->ops_before ? c->ops_before : a->c->script.w.ops.n,
			  .runs = made->runs,
			  .steps = steps,
			  .start = a->st.start,
			  .strange = !c->ours };
	return keep_case_at(&k, dir, err);
}

int explore_shrink(const struct kept_case *c, const struct shrink_opts *opts, const char *dir,
		   struct shrink_result *out, struct err *err)
{
	struct again a = { .c = c, .opts = opts, .ops = c->script.w.ops.n };
	struct shrink_how how = { .signature = c->c.signature,
				  .max_runs = opts->max_runs ? opts->max_runs : SHRINK_RUNS,
				  .shown = on_shown,
				  .ctx = &a };
	struct shrunk made;
	auto_call(script_release) struct script small;

	script_init(&small);
	script_copy(&small, &c->script);
	if (streq(c->c.signature, "hang"))
		return err_set(err, -EINVAL,
			       "%s hangs, and so does each try: it cannot be made small", c->c.dir);
	int rc = open_sides(&a, err);
	if (rc)
		return rc;
	rc = script_shrink(&small, &a.st, &how, &made, err);
	if (!rc)
		rc = keep(&a, &small, &made, dir, err);
	close_sides(&a);
	*out = (struct shrink_result){ .runs = made.runs,
				       .budget_hit = made.budget_hit,
				       .ops_before = c->script.w.ops.n,
				       .ops_after = small.w.ops.n };
	return rc;
}
