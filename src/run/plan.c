/* SPDX-License-Identifier: MIT */
/* plan.c - the record of a run of outage test, as options set it and RUN/run has it. */
#include "run/plan.h"

#include <errno.h>
#include <time.h>

#include "base/below.h"
#include "base/number.h"
#include "case/given.h"
#include "run/strange.h"
#include "workload/bounds.h"

enum { FILES_MAX = 4096 };

/* ---- values ---- */

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

/* Whether its bounds are in this program. */
static bool is_set(const char *name)
{
	size_t i = 0;

	while (bounds_sets[i].name && !streq(bounds_sets[i].name, name))
		i++;
	return bounds_sets[i].name;
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

struct target_opts plan_target(const struct plan *p)
{
	return (struct target_opts){
		.spec = p->target,
		.recorder = p->recorder,
		.eadr = p->crash.eadr,
		.files_hash = p->files_hash,
#define TARGET_OPTION(member, ...) .member = p->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
	};
}

int plan_same_kernel(const struct target_opts *o, const char *was, const char *run, struct err *err)
{
	for (int fetched = 0; fetched < 2; fetched++) {
		int rc = fetched ? target_check(o, err) : 0;
		auto_free char *now = rc ? NULL : target_kernel(o);

		if (rc || streq(now, was))
			return rc;
		if (fetched || !target_is_guest(o->spec))
			return err_set(err, -EINVAL,
				       "%s began on Linux %s, and this is %s: begin a new run", run,
				       was, now);
	}
	return 0;
}

void plan_look_at_files(struct plan *p)
{
	struct target_opts opts = plan_target(p);

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
	const struct target_opts opts = plan_target(p);
	/* In persistent memory, most of what can go wrong goes wrong within operations. */
	if (!p->crash.modes)
		p->crash.modes = target->pm ? RUN_REORDER : RUN_PERSIST;
	int rc = crashes_complete(&p->crash, target, err);
	if (!rc)
		rc = target_opts_fit(&opts, p->target, "--", err);
	if (rc)
		return rc;
	if (!given_has(&plan_record, p->given, "budget") &&
	    p->crash.modes & (RUN_REORDER | RUN_TORN | RUN_RECOVERY))
		p->crash.budget = 200;
	if (!p->kernel) {
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
	return any_of(i, p->files.n, streq(p->files.v[i], "-"));
}

void plan_run_opts(const struct plan *p, struct run_opts *out)
{
	*out = (struct run_opts){
		.target = plan_target(p),
		.guarantee = guarantee_find(p->guarantee),
		.seed = p->seed,
		.ours = p->ours,
	};
	crashes_opts(&p->crash, out);
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
