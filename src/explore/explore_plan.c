/* SPDX-License-Identifier: MIT */
/* explore_plan.c - the record of a run of outage explore, as options set it and RUN/run has it. */
#include "explore/explore_plan.h"

#include <errno.h>

#include "case/given.h"
#include "run/plan.h"
#include "run/strange.h"

enum { DEPTH = 10, DEPTH_WALK = 400, DEPTH_WALK_CRASHES = 40, ROUND = 6000, DRAWN = 500 };
enum { CRASH_BUDGET = 50 };
enum { SWARM_MAX = 100000 };

const char *const explore_made[] = { "kernel-log", EXPLORE_PICKLES, TRUST_MARK, NULL };

/* ---- the record ---- */

#define REFERENCE(...) RECORD_FIELD(struct explore_reference, __VA_ARGS__)
static const struct record_field reference_fields[] = {
	REFERENCE("reference", TRUST_TARGET, TEXT, spec, .option = "ref"),
	REFERENCE("reference-kernel", TRUST_HARMLESS, TEXT, kernel, .option = ""),
	REFERENCE("reference-recorder", TRUST_HARMLESS, TEXT, recorder, .option = "recorder"),
#define TARGET_OPTION(member, kind, leads, key, name, ...)                                         \
	REFERENCE("reference-" key, leads, kind, member, .option = name),
#define GUEST_OPTION TARGET_OPTION
#include "target/options.def"
};
#undef REFERENCE

static const struct record_type reference_record =
	RECORD_TYPE("reference", reference_fields, struct explore_reference);

#define FIELD(...) RECORD_FIELD(struct explore_plan, __VA_ARGS__)
static const struct record_field fields[] = {
	FIELD("target", TRUST_TARGET, TEXT, target, .required = true),
	FIELD("kernel", TRUST_HARMLESS, TEXT, kernel, .option = ""),
	FIELD("started", TRUST_HARMLESS, TEXT, started, .option = ""),
	FIELD("recorder", TRUST_HARMLESS, TEXT, recorder),
#define TARGET_OPTION(member, kind, leads, key, name, ...)                                         \
	FIELD(key, leads, kind, member, .option = name),
#define GUEST_OPTION TARGET_OPTION
#include "target/options.def"
#define PLAN_AS FIELD
#include "explore/explore_options.def"
	FIELD("hash", TRUST_HARMLESS, TEXT, hash, .option = "", .required = true),
	FIELD("reference", TRUST_TARGET, PARTS, references, .option = "ref",
	      .part = &reference_record),
};
#undef FIELD

const struct record_type explore_record = RECORD_TYPE("explore-run", fields, struct explore_plan);
static_assert(ARRAY_SIZE(fields) <= 64, "given has a bit for each");

void explore_plan_init(struct explore_plan *p)
{
	*p = (struct explore_plan){ 0 };
	record_init(&explore_record, p);
}

void explore_plan_release(struct explore_plan *p)
{
	record_release(&explore_record, p);
	p->given = 0;
}

/* ---- set by options ---- */

int explore_plan_set(struct explore_plan *p, const char *option, const char *value, struct err *err)
{
	return given_set(&explore_record, p, &p->given, option, value, err);
}

int explore_plan_add(struct explore_plan *p, const char *spec, struct err *err)
{
	struct explore_reference r = { 0 };

	if (p->references.n == SIDES_MAX - 1)
		return err_set(err, -EINVAL, "there are at most %d references", SIDES_MAX - 1);
	int rc = given_set(&reference_record, &r, NULL, "ref", spec, err);
	if (rc)
		return rc;
	vec_push(&p->references, r);
	p->given |= 1ULL << (ARRAY_SIZE(fields) - 1);
	return 0;
}

int explore_plan_set_ref(struct explore_plan *p, size_t i, const char *option, const char *value,
			 struct err *err)
{
	assert(i < p->references.n);
	return given_set(&reference_record, &p->references.v[i], NULL, option, value, err);
}

/* ---- its sides ---- */

static size_t count_sides(const struct explore_plan *p)
{
	return 1 + p->references.n;
}

/* The options of side `i`; side 0 is the target. */
static struct target_opts opts_of(const struct explore_plan *p, size_t i)
{
	const struct explore_reference *r = i ? &p->references.v[i - 1] : NULL;

	return (struct target_opts){
		.spec = r ? r->spec : p->target,
		.recorder = r ? r->recorder : p->recorder,
#define TARGET_OPTION(member, ...) .member = r ? r->member : p->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
	};
}

static int check_side(const struct target_opts *o, const char *prefix, struct err *err)
{
	return side_find(o->spec, err) ? target_opts_fit(o, o->spec, prefix, err) : -EINVAL;
}

static int note_kernel(const struct target_opts *o, char **kernel, struct err *err)
{
	const struct side_ops *side = side_find(o->spec, err);

	if (!side)
		return -EINVAL;
	if (side != &side_target && side != &side_mounted)
		return 0; /* the side is in this process */
	int rc = side == &side_target ? target_check(o, err) : 0;
	if (!rc)
		*kernel = target_kernel(o);
	return rc;
}

int explore_plan_same_kernels(const struct explore_plan *p, const char *run, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < count_sides(p) && !rc; i++) {
		const char *was = i ? p->references.v[i - 1].kernel : p->kernel;
		struct target_opts o = opts_of(p, i);

		rc = was ? plan_same_kernel(&o, was, run, err) : 0;
	}
	return rc;
}

/* ---- completed ---- */

static int parse_swarm(const char *text, unsigned *i, unsigned *n, struct err *err)
{
	char more;

	*i = *n = 0;
	if (!text)
		return 0;
	if (sscanf(text, "%u/%u%c", i, n, &more) != 2 || *i < 1 || *i > *n || *n > SWARM_MAX)
		return err_set(err, -EINVAL, "--swarm is I/N with I from 1 to N, not '%.40s'",
			       text);
	return 0;
}

/* An option that says how crashes are tried must not be lost where none is. */
static int check_unused(const struct explore_plan *p, struct err *err)
{
	const size_t from = offsetof(struct explore_plan, crash);

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (p->given >> i & 1 && fields[i].at - from < sizeof(p->crash) &&
		    fields[i].at != offsetof(struct explore_plan, crash.modes))
			return err_set(err, -EINVAL,
				       "--%s is about crashes: give --crash or --crash-every, too",
				       fields[i].key.name);
	return 0;
}

/* The values from options or a record must fit together. */
static int check_plan(const struct explore_plan *p, struct err *err)
{
	unsigned i, n;
	int rc = parse_swarm(p->swarm, &i, &n, err);

	if (!rc && p->guarantee && !guarantee_known(p->guarantee, err))
		rc = -EINVAL;
	if (!rc && p->references.n >= SIDES_MAX)
		rc = err_set(err, -EINVAL, "there are at most %d references", SIDES_MAX - 1);
	for (size_t s = 0; s < count_sides(p) && !rc; s++) {
		struct target_opts o = opts_of(p, s);

		rc = check_side(&o, s ? "--ref-" : "--", err);
	}
	if (!rc && p->crash_every && side_find(p->target, err) != &side_target)
		rc = err_set(err, -EINVAL, "%s has no disk that a crash could leave behind",
			     p->target);
	return rc;
}

static void fill_in(struct explore_plan *p, bool bounded)
{
	bool walk = p->order == SEARCH_WALK;

	if (p->crash.modes && !given_has(&explore_record, p->given, "crash-every"))
		p->crash_every = 1;
	if (p->crash_every && !given_has(&explore_record, p->given, "budget"))
		p->crash.budget = CRASH_BUDGET;
	if (!p->crash_every && !given_has(&explore_record, p->given, "prune"))
		p->crash.prune = CRASH_PRUNE_READS; /* every record has a line for it */
	if (!p->depth)
		p->depth = !walk ? DEPTH : p->crash_every ? DEPTH_WALK_CRASHES : DEPTH_WALK;
	if (!given_has(&explore_record, p->given, "round") && !p->alphabet && bounded)
		p->round = ROUND;
	if (!p->references.n)
		vec_push(&p->references, (struct explore_reference){ .spec = xstrdup("reffs") });
	if (!p->started)
		p->started = plan_now();
}

int explore_plan_complete(struct explore_plan *p, bool bounded, struct err *err)
{
	fill_in(p, bounded);
	int rc = check_plan(p, err);

	if (!rc)
		rc = p->crash_every ? crashes_complete(&p->crash, target_find(p->target, err), err)
				    : check_unused(p, err);

	for (size_t i = 0; i < count_sides(p) && !rc; i++) {
		struct target_opts o = opts_of(p, i);

		rc = note_kernel(&o, i ? &p->references.v[i - 1].kernel : &p->kernel, err);
	}
	return rc;
}

/* The steps drawn depend on the inputs and on the version of the program. */
static char *hash_of(const struct explore_plan *p, const struct inputs *in)
{
	auto_strbuf drawn = STRBUF_INIT;
	auto_call(alphabet_release) struct alphabet a;
	char hex[HASH_HEX_SIZE];

	alphabet_init(&a);
	alphabet_draw(&a, in, p->seed, DRAWN, false);
	workload_print(&a.w, &drawn);
	return xstrdup(hash_hex(hash_bytes(drawn.buf, drawn.len), hex));
}

int explore_plan_inputs(struct explore_plan *p, const char *source, struct inputs *out,
			struct err *err)
{
	int rc = 0;

	if (p->crash_every)
		inputs_for_crashes(out);
	if (p->dist)
		rc = inputs_distribute(out, p->dist, err);
	if (!rc && p->inputs)
		rc = inputs_parse(out, p->inputs, strlen(p->inputs), source, err);
	if (!rc)
		rc = inputs_finish(out, err);
	if (rc)
		return rc;
	auto_free char *hash = hash_of(p, out);
	if (p->hash && !streq(p->hash, hash))
		return err_set(err, -EINVAL,
			       "the steps drawn from the inputs are not those drawn when the run "
			       "began: begin a new run");
	if (!p->hash)
		p->hash = steal(hash);
	return 0;
}

static void sides_of(const struct explore_plan *p, struct target_opts *references,
		     struct explore_opts *out)
{
	assert(p->references.n < SIDES_MAX);
	out->sides.target = opts_of(p, 0);
	out->sides.references = references;
	out->sides.strategy = (enum strategy)p->strategy;
	out->specs[0] = p->target;
	out->n_specs = 1;
	for (size_t i = 0; i < p->references.n; i++) {
		references[out->n_specs] = opts_of(p, i + 1);
		out->specs[out->n_specs++] = p->references.v[i].spec;
	}
}

void explore_plan_opts(const struct explore_plan *p, struct target_opts *references,
		       struct explore_opts *out)
{
	struct err ignored = ERR_INIT; /* the swarm was checked when the plan was completed */

	sides_of(p, references, out);
	out->search.order = (enum search_order)p->order;
	out->search.seed = p->seed;
	out->search.depth = (uint32_t)p->depth;
	out->search.alphabet = (uint32_t)p->alphabet;
	out->search.round = p->round;
	out->jobs = (unsigned)p->jobs;
	if (parse_swarm(p->swarm, &out->swarm_i, &out->swarm_n, &ignored))
		out->swarm_i = out->swarm_n = 0;
	out->vary = p->vary;
	out->share = p->share;
	out->compare_every = p->compare_every;
	out->memory = p->memory;
	out->crash_every = p->crash_every;
	out->crash.guarantee = p->guarantee ? guarantee_find(p->guarantee) : NULL;
	out->crash.seed = p->seed;
	crashes_opts(&p->crash, &out->crash);
	out->strange = !p->ours;
}

/* ---- kept ---- */

static int check_loaded(const void *plan, struct err *err)
{
	const struct explore_plan *p = plan;

	if (!p->references.n || !p->depth)
		return err_set(err, -EINVAL, "it must have a reference and a depth");
	return check_plan(p, err);
}

static const char *const no_other[] = { NULL };
const struct case_plan explore_plan_kept = { .type = &explore_record,
					     .files = { "explore-run", no_other },
					     .check = check_loaded,
					     .given = offsetof(struct explore_plan, given) };

int explore_plan_trust(struct explore_plan *p, const char *run, bool trust, struct err *err)
{
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	p->ours = trust || !case_plan_verify(&explore_plan_kept, run, &why);
	if (p->ours)
		return 0;
	strange_target(p->target, false, &would);
	record_would(&explore_record, p, &would);
	for (size_t i = 0; i < p->references.n; i++) {
		strange_target(p->references.v[i].spec, false, &would);
		record_would(&reference_record, &p->references.v[i], &would);
	}
	return would.len ? strange_refuse(run, CASE_RUN, p->target, &why, &would, err) : 0;
}
