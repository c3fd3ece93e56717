/* SPDX-License-Identifier: MIT */
/* plan.c - the record of a run of outage test, as options set it and RUN/run has it. */
#include "run/plan.h"

#include <errno.h>
#include <time.h>

#include "base/below.h"
#include "base/number.h"
#include "case/given.h"
#include "run/bad_media.h"
#include "run/strange.h"
#include "workload/bounds.h"

enum { FILES_MAX = 4096 };

/* ---- values ---- */

static const struct record_field crash_modes = { .key = { "crash", TRUST_HARMLESS },
						 .kind = RECORD_SET,
						 .words = PLAN_MODES };

void plan_print_modes(uint64_t modes, struct strbuf *out)
{
	record_put(&crash_modes, &modes, out);
}

int plan_parse_modes(const char *text, uint64_t *out, struct err *err)
{
	uint64_t more = 0;
	int rc = record_set(&crash_modes, &more, text, err);

	*out |= more;
	return rc || more ? rc : err_set(err, -EINVAL, "crash is one of " PLAN_MODES);
}

static int set_modes(void *member, const char *value, struct err *err)
{
	return plan_parse_modes(value, member, err);
}

static int set_keep(void *member, const char *value, struct err *err)
{
	uint64_t *to = member;

	if (streq(value, "all") || streq(value, "none") || streq(value, "findings")) {
		*to = value[0] == 'a' ? UINT64_MAX : value[0] == 'n' ? 0 : PLAN_KEEP_DEFAULT;
		return 0;
	}
	return number_parse(value, to)
		       ? err_set(err, -EINVAL,
				 "--keep is all, findings, none, or how many of a cluster, "
				 "not '%.40s'",
				 value)
		       : 0;
}

static void put_keep(const void *member, struct strbuf *out)
{
	uint64_t number = *(const uint64_t *)member;

	if (number == UINT64_MAX || !number)
		strbuf_adds(out, number ? "all" : "none");
	else
		strbuf_addu(out, number);
}

static void set_text(char **to, char *value)
{
	free(*to);
	*to = value;
}

static int set_guarantee(void *member, const char *value, struct err *err)
{
	set_text(member, xstrdup(value));
	return guarantee_known(value, err) ? 0 : -EINVAL;
}

static int set_model(void *member, const char *value, struct err *err)
{
	set_text(member, xstrdup(value));
	return model_known(value, err) ? 0 : -EINVAL;
}

/* Whether its bounds are in this program. */
static bool is_set(const char *name)
{
	for (size_t i = 0; bounds_sets[i].name; i++)
		if (streq(bounds_sets[i].name, name))
			return true;
	return false;
}

/* The name of an existing file by which it is found from any directory. */
static char *absolute(const char *path)
{
	char *full = streq(path, "-") ? NULL : below_absolute(path);

	return full ? full : xstrdup(path);
}

static int set_bounds(void *member, const char *value, struct err *err)
{
	(void)err;
	set_text(member, is_set(value) ? xstrdup(value) : absolute(value));
	return 0;
}

static int add_file(void *member, const char *value, struct err *err)
{
	struct words *files = member;

	if (files->n >= FILES_MAX)
		return err_set(err, -E2BIG, "more than %d files", FILES_MAX);
	if (strchr(value, '\n'))
		return err_set(err, -EINVAL, "file has a line end in it");
	vec_push(files, absolute(value));
	return 0;
}

/* ---- the record ---- */

#define FIELD(...) RECORD_FIELD(struct plan, __VA_ARGS__)
#define REQUIRED   .required = true
static const struct record_field fields[] = {
	FIELD("target", TRUST_TARGET, TEXT, target, REQUIRED),
	FIELD("kernel", TRUST_HARMLESS, TEXT, kernel, REQUIRED, .option = ""),
	FIELD("started", TRUST_HARMLESS, TEXT, started),
	FIELD("guarantee", TRUST_HARMLESS, TEXT, guarantee, REQUIRED, .set = set_guarantee),
	FIELD("recorder", TRUST_HARMLESS, TEXT, recorder),
#define TARGET_OPTION(member, kind, leads, key, name, ...)                                         \
	FIELD(key, leads, kind, member, .option = name),
#define GUEST_OPTION TARGET_OPTION
#include "target/options.def"
#define PLAN_AS FIELD
#include "run/test_options.def"
};
#undef FIELD

const struct record_type plan_record = RECORD_TYPE("test-run", fields, struct plan);
static_assert(ARRAY_SIZE(fields) <= 64, "given has a bit for each");

void plan_init(struct plan *p)
{
	*p = (struct plan){ 0 };
	record_init(&plan_record, p);
}

void plan_release(struct plan *p)
{
	record_release(&plan_record, p);
	free(p->files_hash);
	*p = (struct plan){ 0 };
}

int plan_set(struct plan *p, const char *option, const char *value, struct err *err)
{
	return given_set(&plan_record, p, &p->given, option, value, err);
}

char *plan_now(void)
{
	char text[40] = "unknown";
	time_t seconds = time(NULL);
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	return xstrdup(text);
}

/* Completes the options for persistent memory; refuses those that the target cannot have. */
static int complete_pm(struct plan *p, const struct target_ops *target, struct err *err)
{
	if (p->model && model_find(p->model)->pm != target->pm)
		return err_set(err, -EINVAL, "--model %s is for %s; %s has %s", p->model,
			       target->pm ? "a disk" : "persistent memory", target->name,
			       target->pm ? "persistent memory" : "a disk");
	if (p->model && p->eadr)
		return err_set(err, -EINVAL, "--eadr is a model: give it or --model, not both");
	if (!target->pm) {
		if (p->dump)
			return err_set(err, -EINVAL,
				       "--dump is for persistent memory, where the states of an "
				       "operation are compared; %s has a disk: use --check",
				       target->name);
		if (p->eadr || p->split || p->granularity || p->media)
			return err_set(err, -EINVAL, "--%s is for persistent memory; %s has a disk",
				       p->eadr	  ? "eadr"
				       : p->split ? "split"
				       : p->media ? "media"
						  : "granularity",
				       target->name);
		return 0;
	}
	unsigned kinds;
	int rc = p->media ? media_parse_kinds(p->media, &kinds, err) : 0;
	if (rc)
		return rc;
	if (p->granularity && p->granularity != PM_ATOMIC && p->granularity != PM_LINE)
		return err_set(err, -EINVAL, "--granularity is 8 or 64, not %llu",
			       (unsigned long long)p->granularity);
	if (p->prune == PLAN_PRUNE_READS && !target->pm_loads)
		return err_set(err, -EINVAL,
			       "--prune reads is not available for %s: what it reads of its "
			       "memory is not seen; leave it out",
			       target->name);
	return 0;
}

void plan_look_at_files(struct plan *p)
{
	struct target_opts opts = { .spec = p->target,
				    .guest_files = p->guest_files,
				    .guest_memory = p->guest_memory };

	free(p->files_hash);
	p->files_hash = target_files_hash(&opts);
}

int plan_complete(struct plan *p, struct err *err)
{
	const struct target_ops *target = target_find(p->target, err);

	if (!target)
		return -EINVAL;
	if (!p->guarantee)
		p->guarantee = xstrdup(target->guarantee);
	const struct target_opts said = {
#define TARGET_OPTION(member, ...) .member = p->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
	};
	int rc = complete_pm(p, target, err);
	if (!rc)
		rc = target_opts_fit(&said, p->target, "--", err);
	if (rc)
		return rc;
	/* In persistent memory, seeing what is read takes longer than trying a few states more. */
	if (p->prune == PLAN_PRUNE_UNSAID)
		p->prune = target->pm ? PLAN_PRUNE_NONE : PLAN_PRUNE_READS;
	/* There, most of what can go wrong goes wrong within operations. */
	if (!p->modes)
		p->modes = target->pm ? RUN_REORDER : RUN_PERSIST;
	if (p->lose_flush && !(p->modes & (RUN_REORDER | RUN_TORN)))
		return err_set(err, -EINVAL,
			       "--lose-flush needs --crash reorder: where all completed writes "
			       "survive, no flush is missed");
	if (target->coarse && p->modes & RUN_TORN)
		return err_set(err, -EINVAL,
			       "the writes of %s are seen only between operations, so none of them "
			       "can be torn; give --crash without torn",
			       target->name);
	if (!given_has(&plan_record, p->given, "budget") &&
	    p->modes & (RUN_REORDER | RUN_TORN | RUN_RECOVERY))
		p->budget = 200;
	if (!p->kernel) {
		struct target_opts opts = { .spec = p->target,
					    .mkfs = p->mkfs,
					    .guest_kernel = p->guest_kernel,
					    .guest_files = p->guest_files,
					    .guest_memory = p->guest_memory };

		rc = target_check(&opts, err);
		if (rc)
			return rc;
		p->kernel = target_kernel(&opts);
	}
	plan_look_at_files(p);
	if (!p->started)
		p->started = plan_now();
	return 0;
}

bool plan_from_stdin(const struct plan *p)
{
	for (size_t i = 0; i < p->files.n; i++)
		if (streq(p->files.v[i], "-"))
			return true;
	return false;
}

void plan_run_opts(const struct plan *p, struct run_opts *out)
{
	struct err ignored = ERR_INIT; /* checked when the plan was completed */
	unsigned media = 0;

	if (p->media && media_parse_kinds(p->media, &media, &ignored))
		media = 0;
	*out = (struct run_opts){
		.target = { .spec = p->target,
			    .recorder = p->recorder,
			    .eadr = p->eadr,
			    .files_hash = p->files_hash,
#define TARGET_OPTION(member, ...) .member = p->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
		},
		.guarantee = guarantee_find(p->guarantee),
		.modes = (unsigned)p->modes,
		.max_subset = (uint32_t)min(p->max_subset, (uint64_t)UINT32_MAX),
		.budget = p->budget,
		.seed = p->seed,
		.vary_all = p->prune == PLAN_PRUNE_NONE,
		.lose_flush = p->lose_flush,
		.pm = { .model = p->model ? model_find(p->model) : NULL,
			.eadr = p->eadr,
			.split = p->split,
			.granularity = p->granularity },
		.media = media,
		.media_max = p->media_max,
		.fsck = p->fsck,
		.dump = p->dump,
		.check = p->check,
		.paranoid = p->paranoid,
		.ours = p->ours,
	};
}

/* ---- kept ---- */

static int check_whole(const void *plan, struct err *err)
{
	const struct plan *p = plan;

	if (!p->bounds == !p->files.n)
		return err_set(err, -EINVAL, "it must have either bounds or files");
	if (!p->workloads)
		return err_set(err, -EINVAL, "it has no workloads");
	return target_find(p->target, err) ? 0 : -EINVAL;
}

static const char *const marked[] = { "suppressions", NULL };
const struct case_plan plan_kept = { .type = &plan_record,
				     .files = { "run", marked },
				     .check = check_whole,
				     .given = offsetof(struct plan, given) };

int plan_trust(struct plan *p, const char *run, bool trust, struct err *err)
{
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	p->ours = trust || !case_plan_verify(&plan_kept, run, &why);
	if (p->ours)
		return 0;
	strange_target(p->target, false, &would);
	record_would(&plan_record, p, &would);
	return would.len ? strange_refuse(run, CASE_RUN, p->target, &why, &would, err) : 0;
}
