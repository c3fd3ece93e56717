/* SPDX-License-Identifier: MIT */
/* stored.c - a case as it is kept: its record, reading it back, and whose it is; see store.h. */
#include "run/store.h"

#include <errno.h>
#include <fcntl.h>

#include "base/below.h"
#include "base/hash.h"
#include "base/io.h"
#include "run/bad_media.h"
#include "run/strange.h"

/* ---- the record ---- */

#define REFERENCE(...) RECORD_FIELD(struct stored_reference, __VA_ARGS__)
static const struct record_field reference_fields[] = {
	REFERENCE("reference", TRUST_TARGET, TEXT, spec),
#define TARGET_OPTION(member, kind, leads, key, ...)                                               \
	REFERENCE("reference-" key, leads, kind, member),
#define GUEST_OPTION TARGET_OPTION
#include "target/options.def"
};
#undef REFERENCE

static const struct record_type reference_record =
	RECORD_TYPE("reference", reference_fields, struct stored_reference);

#define FIELD(...) RECORD_FIELD(struct stored_case, __VA_ARGS__)
#define REQUIRED   .required = true
static const struct record_field fields[] = {
	FIELD("target", TRUST_TARGET, TEXT, target, REQUIRED),
#define TARGET_OPTION(member, kind, leads, key, ...) FIELD(key, leads, kind, member),
#define GUEST_OPTION				     TARGET_OPTION
#include "target/options.def"
	FIELD("guest-files-hash", TRUST_HARMLESS, TEXT, guest_files_hash),
	FIELD("fsck", TRUST_COMMAND, TEXT, fsck),
	FIELD("guest-kernel-hash", TRUST_HARMLESS, TEXT, guest_kernel_hash),
	FIELD("kernel", TRUST_HARMLESS, TEXT, kernel),
	FIELD("guarantee", TRUST_HARMLESS, TEXT, guarantee, REQUIRED),
	FIELD("state", TRUST_HARMLESS, TEXT, state, REQUIRED),
	FIELD("media", TRUST_HARMLESS, TEXT, media),
	FIELD("base", TRUST_IMAGE, TEXT, base, REQUIRED),
	FIELD("phase", TRUST_HARMLESS, TEXT, phase),
	FIELD("hang-after-ms", TRUST_HARMLESS, NUMBER, hang_after_ms),
	FIELD("done", TRUST_HARMLESS, NUMBER, done),
	FIELD("operation", TRUST_HARMLESS, NUMBER, operation, .otherwise = RUN_NO_OPERATION),
	FIELD("mounted", TRUST_HARMLESS, TEXT, mounted),
	FIELD("recorder", TRUST_HARMLESS, TEXT, recorder),
	FIELD("crash", TRUST_HARMLESS, TEXT, crash),
	FIELD("max-subset", TRUST_HARMLESS, NUMBER, max_subset),
	FIELD("budget", TRUST_HARMLESS, NUMBER, budget),
	FIELD("seed", TRUST_HARMLESS, NUMBER, seed),
	FIELD("prune", TRUST_HARMLESS, TEXT, prune),
	FIELD("lose-flush", TRUST_HARMLESS, NUMBER, lose_flush),
	FIELD("sector", TRUST_HARMLESS, NUMBER, sector),
	FIELD("model", TRUST_HARMLESS, TEXT, model),
	FIELD("eadr", TRUST_HARMLESS, FLAG, eadr),
	FIELD("split", TRUST_HARMLESS, FLAG, split),
	FIELD("dump", TRUST_COMMAND, TEXT, dump),
	FIELD("check", TRUST_COMMAND, TEXT, check),
	FIELD("with-fsck", TRUST_HARMLESS, FLAG, with_fsck),
	FIELD("granularity", TRUST_HARMLESS, NUMBER, granularity),
	FIELD("media-max", TRUST_HARMLESS, NUMBER, media_max, .otherwise = BAD_MEDIA_MAX),
	FIELD("point", TRUST_HARMLESS, NUMBER, point),
	FIELD("layer", TRUST_HARMLESS, TEXT, layer),
	FIELD("survived", TRUST_HARMLESS, TEXT, survived),
	FIELD("lost", TRUST_HARMLESS, TEXT, lost),
	FIELD("reference", TRUST_TARGET, PARTS, references, .part = &reference_record),
	FIELD("start", TRUST_IMAGE, TEXT, start),
	FIELD("signature", TRUST_HARMLESS, TEXT, signature),
	FIELD("shown", TRUST_HARMLESS, TEXT, shown),
	FIELD("operations-before-shrinking", TRUST_HARMLESS, NUMBER, ops_before),
	FIELD("shrunk-by", TRUST_HARMLESS, TEXT, shrunk_by),
};
#undef FIELD

/* Both have the same fields: what an exploration adds is not required. */
const struct record_type store_record = RECORD_TYPE("test-case", fields, struct stored_case);
const struct record_type store_explored = RECORD_TYPE("explore-case", fields, struct stored_case);

char *stored_own(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

#define OWN_TEXT(value)	 stored_own(value)
#define OWN_LINES(value) stored_own(value)
#define OWN_SIZE(value)	 (value)
#define OWN_FLAG(value)	 (value)

void stored_case_init(struct stored_case *c)
{
	*c = (struct stored_case){ 0 };
	record_init(&store_record, c);
	workload_init(&c->workload);
}

void stored_case_set_target(struct stored_case *c, const struct target_opts *t)
{
	c->target = xstrdup(t->spec);
	c->kernel = target_kernel(t);
#define TARGET_OPTION(member, kind, ...) c->member = OWN_##kind(t->member);
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
}

void stored_case_add_reference(struct stored_case *c, const char *spec, const struct target_opts *t)
{
	struct stored_reference r = { .spec = xstrdup(spec) };

	if (t) {
#define TARGET_OPTION(member, kind, ...) r.member = OWN_##kind(t->member);
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
	}
	vec_push(&c->references, r);
}

void stored_case_release(struct stored_case *c)
{
	record_release(&store_record, c);
	free(c->dir);
	free(c->at);
	for (size_t i = 0; i < c->problems.n; i++) {
		free(c->problems.v[i].path);
		free(c->problems.v[i].words);
		free(c->problems.v[i].promise);
	}
	vec_release(&c->problems);
	workload_release(&c->workload);
	*c = (struct stored_case){ 0 };
}

/* ---- reading back ---- */

static void take_problem(struct stored_case *c, char *line)
{
	const char *kind = strsep(&line, "\t");
	const char *path = strsep(&line, "\t"), *words = strsep(&line, "\t");

	if (!path || !words || finding_kind_find(kind) == FINDING_KIND_END)
		return;
	vec_push(&c->problems,
		 (struct stored_problem){ finding_kind_find(kind), xstrdup(path), xstrdup(words),
					  xstrdup(line ? line : "") });
}

/* Opens the files besides the texts: they are not read here, but must not block a reader later. */
static int check_files(const struct stored_case *c, struct err *err)
{
	static const char *const names[] = { "trace", "recovery", "base.img", "start.img" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!below_exists(c->at, names[i]))
			continue;
		auto_fd fd = below_open(c->at, names[i], O_RDONLY, err);
		if (fd < 0)
			return fd;
	}
	return 0;
}

static int check_case(const struct stored_case *c, struct err *err)
{
	if (!streq(c->base, "none") && !streq(c->base, "base.img") &&
	    (strncmp(c->base, STORE_ABOVE, strlen(STORE_ABOVE)) != 0 ||
	     store_base_number(c->base + strlen(STORE_ABOVE)) < 0))
		return err_set(err, -EINVAL,
			       "%s/case: its base is base.img or ../../base-N.img, not '%.40s'",
			       c->dir, c->base);
	return check_files(c, err);
}

static int load_problems(struct stored_case *c, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp_file(c->at, "problems", RECORD_MAX, &text, err);
	char *rest = text.buf;

	for (char *line; !rc && (line = strsep(&rest, "\n"));)
		take_problem(c, line);
	return rc || c->problems.n ? rc : err_set(err, -EINVAL, "%s/problems names none", c->dir);
}

static int load_workload(struct stored_case *c, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp_file(c->at, "workload", RECORD_MAX, &text, err);

	return rc ? rc : workload_parse(strbuf_str(&text), text.len, "workload", &c->workload, err);
}

int store_load(const char *dir, struct stored_case *out, struct err *err)
{
	stored_case_init(out);
	out->dir = xstrdup(dir);
	out->at = below_case(dir);
	out->explored = case_is(dir, "explore");
	int rc = record_load(out->explored ? &store_explored : &store_record, out->at, CASE_FILE,
			     out, err);
	if (!rc)
		rc = check_case(out, err);
	if (!rc)
		rc = load_problems(out, err);
	if (!rc)
		rc = load_workload(out, err);
	if (rc)
		stored_case_release(out);
	return rc;
}

/* ---- whose it is ---- */

/* A disk of its own is mounted, unless it begins with a new one. */
static void case_would(const struct stored_case *c, const struct workload *w, struct strbuf *would)
{
	const struct op *op = workload_command(w);
	bool disk = !c->explored || c->start;

	strange_target(c->target, disk, would);
	record_would(&store_record, c, would);
	for (size_t i = 0; i < c->references.n; i++) {
		strange_target(c->references.v[i].spec, disk, would);
		record_would(&reference_record, &c->references.v[i], would);
	}
	if (op)
		trust_would((struct trust_key){ "shell", TRUST_COMMAND }, op->args[0].text, would);
	/* The checker of a guest's file system is a program of this machine. */
	if (stored_case_uses_fsck(c))
		trust_would_also(would, "have its disk read by a checker (fsck) of this machine");
}

int store_trust(struct stored_case *c, const struct workload *script, bool trust, struct err *err)
{
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	c->ours = trust || !store_verify(c->dir, c->base, &why);
	if (c->ours)
		return 0;
	case_would(c, script ? script : &c->workload, &would);
	return would.len ? strange_refuse(c->dir, CASE_FILE, c->target, &why, &would, err) : 0;
}

bool stored_case_uses_fsck(const struct stored_case *c)
{
	return c->with_fsck || stored_case_first(c)->kind == FINDING_FSCK;
}

bool stored_case_live(const struct stored_case *c)
{
	return streq(c->state, "live");
}

bool stored_case_has_start(const struct stored_case *c)
{
	return stored_case_live(c) && below_exists(c->at, "start.img");
}

int stored_case_start(const struct stored_case *c, struct image *out, struct err *err)
{
	return image_load_below(c->at, "start.img", out, err);
}

int stored_case_base(const struct stored_case *c, struct image *out, struct err *err)
{
	bool alone = strncmp(c->base, STORE_ABOVE, strlen(STORE_ABOVE)) != 0;
	auto_free char *run = alone ? NULL : below_run_of(c->dir);

	return alone ? image_load_below(c->at, c->base, out, err)
		     : image_load_below(run, c->base + strlen(STORE_ABOVE), out, err);
}

struct target_opts stored_case_target(const struct stored_case *c)
{
	return (struct target_opts){ .spec = c->target,
				     .fsck = c->fsck,
				     .eadr = c->eadr,
#define TARGET_OPTION(member, ...) .member = c->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
				     .strange = !c->ours };
}

struct pm_choice stored_case_pm(const struct stored_case *c)
{
	return (struct pm_choice){ .model = c->model ? model_find(c->model) : NULL,
				   .eadr = c->eadr,
				   .split = c->split,
				   .granularity = c->granularity == PM_ATOMIC ? PM_ATOMIC : 0 };
}

char *stored_case_state(const struct stored_case *c, const char **second)
{
	char *id = xstrdup(c->state);
	char *slash = strchr(id, '/');

	*second = slash ? c->state + (slash - id) + 1 : NULL;
	if (slash)
		*slash = '\0';
	return id;
}

char *stored_case_cluster(const struct stored_case *c)
{
	return store_cluster(stored_case_first(c)->kind, &c->workload, (size_t)c->operation);
}

const struct stored_problem *stored_case_first(const struct stored_case *c)
{
	assert(c->problems.n);
	return &c->problems.v[0];
}

int store_text(const struct stored_case *c, const char *name, struct strbuf *out, struct err *err)
{
	return below_exists(c->at, name) ? io_slurp_file(c->at, name, RECORD_MAX, out, err) : 0;
}
