/* SPDX-License-Identifier: MIT */
#include "run/plan.h"

#include <errno.h>
#include <time.h>

#include "base/below.h"
#include "base/io.h"
#include "base/number.h"
#include "run/bad_media.h"
#include "run/strange.h"
#include "workload/bounds.h"

enum { FILE_MAX = 1 << 20, FILES_MAX = 4096 };
static const char header[] = "outage-run 1", mark_kind[] = "run";

/* ---- the keys ---- */

enum kind {
	TEXT,
	COUNT,
	SIZE,
	NUMBER,
	FLAG,
	MODES,
	PRUNE,
	KEEP,
	GUARANTEE,
	MODEL_NAME,
	SOURCE,
	FILES,
	LINES
};

static const struct key {
	struct trust_key key; /* its name, and what its value leads to */
	enum kind kind;
	size_t at;
	uint64_t otherwise; /* the default of a number */
	const char *option; /* that sets it, if its name is another; "": none does */
} keys[] = {
#define KEY(name, leads, kind, member) { name, leads }, kind, offsetof(struct plan, member)
	{ KEY("target", TRUST_TARGET, TEXT, target), 0, NULL },
	{ KEY("kernel", TRUST_HARMLESS, TEXT, kernel), 0, "" },
	{ KEY("started", TRUST_HARMLESS, TEXT, started), 0, NULL },
	{ KEY("guarantee", TRUST_HARMLESS, GUARANTEE, guarantee), 0, NULL },
	{ KEY("recorder", TRUST_HARMLESS, TEXT, recorder), 0, NULL },
#define TARGET_OPTION(member, kind, leads, key, name, ...)                                         \
	{ KEY(key, leads, kind, member), 0, name },
#define GUEST_OPTION TARGET_OPTION
#include "target/options.def"
	{ KEY("crash", TRUST_HARMLESS, MODES, modes), 0, NULL },
	{ KEY("max-subset", TRUST_HARMLESS, COUNT, max_subset), 0, NULL },
	{ KEY("budget", TRUST_HARMLESS, COUNT, budget), 0, NULL },
	{ KEY("prune", TRUST_HARMLESS, PRUNE, vary_all), 0, NULL },
	{ KEY("lose-flush", TRUST_HARMLESS, COUNT, lose_flush), 0, NULL },
	{ KEY("model", TRUST_HARMLESS, MODEL_NAME, model), 0, NULL },
	{ KEY("eadr", TRUST_HARMLESS, FLAG, eadr), 0, NULL },
	{ KEY("granularity", TRUST_HARMLESS, COUNT, granularity), 0, NULL },
	{ KEY("split", TRUST_HARMLESS, FLAG, split), 0, NULL },
	{ KEY("media", TRUST_HARMLESS, TEXT, media), 0, NULL },
	{ KEY("media-max", TRUST_HARMLESS, COUNT, media_max), BAD_MEDIA_MAX, NULL },
	{ KEY("fsck", TRUST_HARMLESS, FLAG, fsck), 0, NULL },
	{ KEY("dump", TRUST_COMMAND, TEXT, dump), 0, NULL },
	{ KEY("check", TRUST_COMMAND, TEXT, check), 0, NULL },
	{ KEY("paranoid", TRUST_HARMLESS, FLAG, paranoid), 0, NULL },
	{ KEY("bounds", TRUST_FILE, SOURCE, bounds), 0, NULL },
	{ KEY("file", TRUST_FILE, FILES, files), 0, NULL },
	{ KEY("hash", TRUST_HARMLESS, TEXT, hash), 0, NULL },
	{ KEY("skip", TRUST_HARMLESS, COUNT, skip), 0, NULL },
	{ KEY("limit", TRUST_HARMLESS, COUNT, limit), UINT64_MAX, NULL },
	{ KEY("sample", TRUST_HARMLESS, COUNT, sample), 0, NULL },
	{ KEY("seed", TRUST_HARMLESS, NUMBER, seed), 0, NULL },
	{ KEY("workloads", TRUST_HARMLESS, COUNT, workloads), 0, NULL },
	{ KEY("keep", TRUST_HARMLESS, KEEP, keep), PLAN_KEEP_DEFAULT, NULL },
#undef KEY
};
static_assert(ARRAY_SIZE(keys) <= 64, "given has a bit for each");

static const struct {
	const char *name;
	unsigned mode;
} mode_names[] = {
	{ "persist", RUN_PERSIST }, { "last", RUN_LAST }, { "prefix", RUN_PREFIX },
	{ "reorder", RUN_REORDER }, { "torn", RUN_TORN }, { "recovery", RUN_RECOVERY },
};

void plan_print_modes(uint64_t modes, struct strbuf *out)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++)
		if (modes & mode_names[i].mode) {
			strbuf_addf(out, "%s%s", any ? "," : "", mode_names[i].name);
			any = true;
		}
}

int plan_parse_modes(const char *text, uint64_t *out, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;

	for (char *one; (one = strsep(&rest, ","));) {
		size_t i = 0;

		while (i < ARRAY_SIZE(mode_names) && !streq(mode_names[i].name, one))
			i++;
		if (i == ARRAY_SIZE(mode_names))
			return err_set(
				err, -EINVAL,
				"'%.40s' is none of persist, last, prefix, reorder, torn, recovery",
				one);
		*out |= mode_names[i].mode;
	}
	return 0;
}

void plan_init(struct plan *p)
{
	*p = (struct plan){ .limit = UINT64_MAX,
			    .keep = PLAN_KEEP_DEFAULT,
			    .media_max = BAD_MEDIA_MAX };
}

void plan_release(struct plan *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].kind == TEXT || keys[i].kind == SOURCE || keys[i].kind == GUARANTEE ||
		    keys[i].kind == MODEL_NAME || keys[i].kind == LINES)
			free(*(char **)((char *)p + keys[i].at));
	for (size_t i = 0; i < p->files.n; i++)
		free(p->files.v[i]);
	vec_release(&p->files);
	free(p->files_hash);
	*p = (struct plan){ 0 };
}

/* ---- setting ---- */

static bool is_set(const char *name)
{
	for (size_t i = 0; bounds_sets[i].name; i++)
		if (streq(bounds_sets[i].name, name))
			return true;
	return false;
}

/* What is there is named so that it is found from any directory. */
static char *absolute(const char *path)
{
	char *full = streq(path, "-") ? NULL : realpath(path, NULL);

	return full ? full : xstrdup(path);
}

static int set_keep(const char *value, uint64_t *to, struct err *err)
{
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

static void set_text(char **to, char *value)
{
	free(*to);
	*to = value;
}

static int set_value(struct plan *p, const struct key *k, const char *value, struct err *err)
{
	void *at = (char *)p + k->at;

	switch (k->kind) {
	case TEXT:
		set_text(at, xstrdup(value));
		return 0;
	case SOURCE:
		set_text(at, is_set(value) ? xstrdup(value) : absolute(value));
		return 0;
	case GUARANTEE:
		set_text(at, xstrdup(value));
		return guarantee_known(value, err) ? 0 : -EINVAL;
	case MODEL_NAME:
		set_text(at, xstrdup(value));
		return model_known(value, err) ? 0 : -EINVAL;
	case FILES:
		if (p->files.n >= FILES_MAX)
			return err_set(err, -E2BIG, "more than %d files", FILES_MAX);
		vec_push(&p->files, absolute(value));
		return 0;
	case LINES:
		set_text(at,
			 *(char **)at ? xasprintf("%s\n%s", *(char **)at, value) : xstrdup(value));
		return 0;
	case COUNT:
		return number_parse_count(value, at, err);
	case SIZE:
		return number_parse_size(value, at, err);
	case NUMBER:
		return number_parse(value, at)
			       ? err_set(err, -EINVAL, "--%s is a number, not '%.40s'", k->key.name,
					 value)
			       : 0;
	case FLAG:
		*(bool *)at = true;
		return streq(value, "yes") ? 0 : err_set(err, -EINVAL, "%s is yes", k->key.name);
	case MODES:
		return plan_parse_modes(value, at, err);
	case PRUNE:
		*(bool *)at = streq(value, "none");
		return streq(value, "none") || streq(value, "reads")
			       ? 0
			       : err_set(err, -EINVAL, "--prune is reads or none, not '%.40s'",
					 value);
	case KEEP:
		return set_keep(value, at, err);
	}
	return -EINVAL;
}

static size_t find_key(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(keys) && !streq(keys[i].key.name, name))
		i++;
	return i;
}

static const char *option_name(const struct key *k)
{
	return k->option ? k->option : k->key.name;
}

static int set_key(struct plan *p, size_t i, const char *value, struct err *err)
{
	if (strchr(value, '\n'))
		return err_set(err, -EINVAL, "--%s has a line end in it, which cannot be kept",
			       option_name(&keys[i]));
	p->given |= 1ULL << i;
	return set_value(p, &keys[i], value, err);
}

int plan_set(struct plan *p, const char *option, const char *value, struct err *err)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(keys) && !streq(option_name(&keys[i]), option))
		i++;
	assert(i < ARRAY_SIZE(keys));
	return set_key(p, i, value, err);
}

static char *now(void)
{
	char text[40] = "unknown";
	time_t seconds = time(NULL);
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	return xstrdup(text);
}

static bool was_given(const struct plan *p, const char *key)
{
	return p->given >> find_key(key) & 1;
}

/* What is meant for persistent memory, and what it cannot have. */
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
	if (was_given(p, "prune") && !p->vary_all && !target->pm_loads)
		return err_set(err, -EINVAL,
			       "--prune reads is not available for %s: what it reads of its "
			       "memory is not seen; leave it out",
			       target->name);
	/* Seeing what is read takes longer than trying a few states more. */
	if (!was_given(p, "prune"))
		p->vary_all = true;
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
	/* In persistent memory, most of what can go wrong goes wrong within operations. */
	if (!p->modes)
		p->modes = target->pm ? RUN_REORDER : RUN_PERSIST;
	if (p->lose_flush && !(p->modes & (RUN_REORDER | RUN_TORN)))
		return err_set(err, -EINVAL,
			       "--lose-flush needs --crash reorder: where all completed writes "
			       "survive, no flush is missed");
	if (target->coarse && p->modes & RUN_TORN)
		return err_set(err, -EINVAL,
			       "what %s writes is seen only between operations, so nothing of it "
			       "can be torn; give --crash without torn",
			       target->name);
	if (!p->budget && p->modes & (RUN_REORDER | RUN_TORN | RUN_RECOVERY))
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
		p->started = now();
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
	struct err ignored = ERR_INIT; /* it was looked at when the plan was completed */
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
		.vary_all = p->vary_all,
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

/* ---- as text ---- */

static void put_value(const struct plan *p, const struct key *k, struct strbuf *out)
{
	const void *at = (const char *)p + k->at;
	uint64_t number;

	switch (k->kind) {
	case TEXT:
	case SOURCE:
	case GUARANTEE:
	case MODEL_NAME:
	case LINES:
		if (*(char *const *)at)
			strbuf_adds(out, *(char *const *)at);
		break;
	case FILES:
		for (size_t i = 0; i < p->files.n; i++)
			strbuf_addf(out, "%s%s", i ? "\n" : "", p->files.v[i]);
		break;
	case FLAG:
		strbuf_adds(out, *(const bool *)at ? "yes" : "");
		break;
	case MODES:
		plan_print_modes(*(const uint64_t *)at, out);
		break;
	case PRUNE:
		strbuf_adds(out, *(const bool *)at ? "none" : "reads");
		break;
	case KEEP:
		number = *(const uint64_t *)at;
		if (number == UINT64_MAX || !number)
			strbuf_adds(out, number ? "all" : "none");
		else
			strbuf_addu(out, number);
		break;
	case COUNT:
	case SIZE:
	case NUMBER:
		number = *(const uint64_t *)at;
		if (number != k->otherwise)
			strbuf_addu(out, number);
	}
}

bool plan_value(const struct plan *p, size_t i, const char **key, struct strbuf *value)
{
	if (i >= ARRAY_SIZE(keys))
		return false;
	*key = keys[i].key.name;
	put_value(p, &keys[i], value);
	return true;
}

int plan_agrees(const struct plan *saved, const struct plan *given, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		auto_strbuf was = STRBUF_INIT, is = STRBUF_INIT;

		if (!(given->given & 1ULL << i))
			continue;
		put_value(saved, &keys[i], &was);
		put_value(given, &keys[i], &is);
		if (!streq(strbuf_str(&was), strbuf_str(&is)))
			return err_set(err, -EINVAL,
				       "the run began with --%s %s and cannot go on with %s: leave "
				       "the option out, or begin a new run",
				       option_name(&keys[i]), was.len ? was.buf : "left out",
				       is.len ? is.buf : "its default");
	}
	return 0;
}

void plan_print(const struct plan *p, struct strbuf *out)
{
	strbuf_addf(out, "%s\n", header);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		auto_strbuf value = STRBUF_INIT;
		char *rest;

		put_value(p, &keys[i], &value);
		rest = value.buf;
		for (const char *line; value.len && (line = strsep(&rest, "\n"));)
			strbuf_addf(out, "%s %s\n", keys[i].key.name, line);
	}
}

static int parse_line(char *line, struct plan *p, struct err *err)
{
	char *value = strchr(line, ' ');

	if (value)
		*value++ = '\0';
	size_t i = find_key(line);
	if (i == ARRAY_SIZE(keys))
		return err_set(err, -EINVAL, "'%.40s' is no key", line);
	if (!value || !*value)
		return err_set(err, -EINVAL, "%s has no value", line);
	if (p->given & 1ULL << i && keys[i].kind != FILES && keys[i].kind != LINES)
		return err_set(err, -EINVAL, "%s is there twice", line);
	return set_key(p, i, value, err);
}

static int check_whole(const struct plan *p, struct err *err)
{
	if (!p->target || !p->kernel || !p->guarantee || !p->hash || !p->workloads)
		return err_set(err, -EINVAL,
			       "target, kernel, guarantee, hash or workloads is missing");
	if (!p->bounds == !p->files.n)
		return err_set(err, -EINVAL, "it must have either bounds or files");
	return target_find(p->target, err) ? 0 : -EINVAL;
}

int plan_parse(const char *text, size_t len, const char *source, struct plan *out, struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	char *rest = copy;
	unsigned number = 1;
	int rc = 0;

	plan_init(out);
	if (strlen(copy) != len)
		rc = err_set(err, -EINVAL, "%s: there is a NUL in it", source);
	else if (!streq(strsep(&rest, "\n"), header))
		rc = err_set(err, -EINVAL, "%s:1: it does not begin with '%s'", source, header);
	for (char *line; !rc && rest && (line = strsep(&rest, "\n"));) {
		number++;
		if (!*line && !rest)
			break; /* after the last line end */
		rc = parse_line(line, out, err);
		if (rc)
			err_context(err, "%s:%u", source, number);
	}
	if (!rc && check_whole(out, err))
		rc = err_context(err, "%s", source);
	if (rc)
		plan_release(out);
	return rc;
}

int plan_save(const struct plan *p, const char *run, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	plan_print(p, &text);
	/* The mark comes first: where RUN/run is, its owner can go on. */
	const struct trust_file files[] = { { .name = "run", .text = text.buf, .len = text.len },
					    { .name = "suppressions" } };
	const struct trust_set set = { .kind = mark_kind, .files = files, .n = ARRAY_SIZE(files) };
	int rc = trust_mark(run, &set, err);
	return rc ? rc : io_write_file(run, "run", text.buf, text.len, 0, err);
}

int plan_sync(const char *run, struct err *err)
{
	static const char *const names[] = { TRUST_MARK, "run", "suppressions", NULL };

	return io_sync_run(run, names, err);
}

int plan_load(const char *run, struct plan *out, struct err *err)
{
	auto_free char *path = xasprintf("%s/run", run);
	auto_strbuf text = STRBUF_INIT;

	if (!below_exists(run, "run"))
		return err_set(err, -ENOENT, "%s is not the directory of a run: it has no file run",
			       run);
	int rc = io_slurp_file(run, "run", FILE_MAX, &text, err);
	return rc ? rc : plan_parse(strbuf_str(&text), text.len, path, out, err);
}

/* ---- whose it is ---- */

bool plan_key(size_t i, struct trust_key *out)
{
	if (i < ARRAY_SIZE(keys))
		*out = keys[i].key;
	return i < ARRAY_SIZE(keys);
}

/* Those that may come several times are lines of one text. */
static void add_would(const struct key *k, char *value, struct strbuf *would)
{
	for (char *line; (line = strsep(&value, "\n"));)
		if (k->kind != SOURCE || !is_set(line)) /* its bounds are in this program */
			trust_would(k->key, line, would);
}

static void plan_would(const struct plan *p, struct strbuf *would)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		auto_strbuf value = STRBUF_INIT;

		put_value(p, &keys[i], &value);
		if (keys[i].key.leads == TRUST_TARGET)
			strange_target(p->target, false, would);
		else if (value.len)
			add_would(&keys[i], value.buf, would);
	}
}

int plan_trust(struct plan *p, const char *run, bool trust, struct err *err)
{
	const struct trust_file files[] = { { .name = "run" }, { .name = "suppressions" } };
	const struct trust_set set = { .kind = mark_kind, .files = files, .n = ARRAY_SIZE(files) };
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	p->ours = trust || !trust_verify(run, &set, &why);
	if (p->ours)
		return 0;
	plan_would(p, &would);
	return would.len ? strange_refuse(run, "run", p->target, &why, &would, err) : 0;
}
