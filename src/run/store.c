/* SPDX-License-Identifier: MIT */
#include "run/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/number.h"
#include "core/trace_file.h"
#include "run/places.h"
#include "run/plan.h"
#include "run/progress.h"

static int make_dir(const char *path, struct err *err)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", path);
	return 0;
}

/* Below a run: what is there must not lead out of it. */
static int make_inside(const char *path, struct err *err)
{
	struct stat st;
	int rc = make_dir(path, err);

	if (!rc && lstat(path, &st) < 0)
		rc = err_set(err, -errno, "cannot look at %s: %m", path);
	if (!rc && !S_ISDIR(st.st_mode))
		rc = err_set(err, -ENOTDIR, "%s is not a directory: remove it", path);
	return rc;
}

/* What else has a name that a run uses would be overwritten. */
static int check_unused(const char *path, struct err *err)
{
	static const char *const names[] = { "run", "progress", "suppressions", "kernel-log" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *file = xasprintf("%s/%s", path, names[i]);
		struct stat st;

		if (lstat(file, &st) < 0)
			continue;
		return !i ? err_set(err, -EEXIST,
				    "%s holds a run already: give --resume %s to go on with it, "
				    "or another -o",
				    path, path)
			  : err_set(err, -EEXIST, "%s is there already: give another -o", file);
	}
	return 0;
}

int store_create(const char *path, const char *target, char **out, struct err *err)
{
	auto_free char *run = path ? xstrdup(path) : NULL;
	int rc = 0;

	if (path) {
		rc = check_unused(path, err);
		if (!rc)
			rc = make_dir(path, err);
	} else {
		char name[32];
		size_t n = strcspn(target, ",: /");

		rc = make_dir("outage-runs", err);
		snprintf(name, sizeof(name), "%.*s", (int)min(n, (size_t)24), target);
		for (unsigned i = 1; !rc && !run; i++) {
			auto_free char *tried = xasprintf("outage-runs/%s-%04u", name, i);

			if (mkdir(tried, 0777) == 0)
				run = steal(tried);
			else if (errno != EEXIST)
				rc = err_set(err, -errno, "cannot make the directory %s: %m",
					     tried);
		}
	}
	if (rc)
		return rc;
	auto_free char *findings = xasprintf("%s/findings", run);
	rc = make_inside(findings, err);
	if (!rc)
		*out = steal(run);
	return rc;
}

/* Keeps the base image of a worker, once. One that another wrote is of another file system. */
static int store_base(const struct store_place *at, const struct image *base, struct err *err)
{
	auto_free char *path = xasprintf("%s/base-%u.img", at->run, at->base);
	struct stat st;

	if (*at->base_kept)
		return 0;
	if (lstat(path, &st) == 0)
		return err_set(err, -EEXIST, "%s is there, and is not of this worker", path);
	int rc = image_save_file(base, path, err);
	*at->base_kept = !rc;
	return rc;
}

/* The number of a name "base-N.img", or -1. Longer numbers were not given by us. */
static long base_number(const char *name)
{
	int end = 0;
	unsigned number;

	if (sscanf(name, "base-%9u.img%n", &number, &end) != 1 || !end || name[end] ||
	    (name[5] < '0' || name[5] > '9'))
		return -1;
	return (long)number;
}

unsigned store_next_base(const char *run)
{
	DIR *d = opendir(run);
	long last = -1;

	for (struct dirent *e; d && (e = readdir(d));)
		last = max(last, base_number(e->d_name));
	if (d)
		closedir(d);
	return (unsigned)(last + 1);
}

static int write_file(const char *dir, const char *name, const char *text, size_t len,
		      struct err *err)
{
	return io_write_file(dir, name, text, len, 0, err);
}

static void add_field(struct strbuf *out, const char *text, char end)
{
	strbuf_add_flat(out, text);
	strbuf_addch(out, end);
}

enum { CONTENT_KEPT = 1 << 20 }; /* bytes of a tree that are kept with it */

/* With the bytes of its files, so that whoever looks at the case later can compare them. */
static int write_tree(const char *dir, const char *name, const struct tree *t,
		      const struct tree_opts *opts, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	tree_print(t, opts, t->kept <= CONTENT_KEPT ? TREE_TEXT_CONTENT : 0, &text);
	return write_file(dir, name, strbuf_str(&text), text.len, err);
}

static int write_trees(const char *dir, const struct run_case *c, struct err *err)
{
	struct tree_opts opts;
	auto_tree expected = TREE_INIT;

	check_tree_opts(&opts, c->target->ops->ignore);
	reffs_tree(c->history->states.v[min(c->done, c->history->states.n - 1)], &opts, &expected);
	int rc = write_tree(dir, "expected", &expected, &opts, err);
	return rc || !c->seen ? rc : write_tree(dir, "seen", c->seen, &opts, err);
}

/* They are named, and not kept: what the guest was given is told by a hash. */
static void print_files(const struct target_opts *t, struct strbuf *out)
{
	auto_free char *list = xstrdup(t->guest_files ? t->guest_files : "");
	char *rest = list;

	for (char *line; t->guest_files && (line = strsep(&rest, "\n"));)
		strbuf_addf(out, "guest-file %s\n", line);
	if (t->files_hash)
		strbuf_addf(out, "guest-files-hash %s\n", t->files_hash);
}

static void print_target(const struct target_opts *t, struct strbuf *out)
{
	auto_free char *kernel = target_kernel(t), *hash = target_kernel_hash(t);

	strbuf_addf(out, "target %s\n", t->spec);
	strbuf_addf(out, "size %llu\n", (unsigned long long)t->size);
	if (t->mkfs_args)
		strbuf_addf(out, "mkfs %s\n", t->mkfs_args);
	if (t->recover)
		strbuf_addf(out, "recover %s\n", t->recover);
	if (t->fsck)
		strbuf_addf(out, "fsck %s\n", t->fsck);
	if (t->kernel)
		strbuf_addf(out, "guest-kernel %s\n", t->kernel);
	if (hash)
		strbuf_addf(out, "guest-kernel-hash %s\n", hash);
	if (t->modules)
		strbuf_addf(out, "guest-modules %s\n", t->modules);
	if (t->guest_cpu)
		strbuf_addf(out, "guest-cpu %s\n", t->guest_cpu);
	if (t->guest_pm)
		strbuf_addf(out, "guest-pm %s\n", t->guest_pm);
	print_files(t, out);
	if (t->guest_memory)
		strbuf_addf(out, "guest-memory %llu\n", (unsigned long long)t->guest_memory);
	if (t->deterministic)
		strbuf_adds(out, "deterministic 1\n");
	strbuf_addf(out, "kernel %s\n", kernel);
}

static void print_opts(unsigned modes, const struct run_opts *o, struct strbuf *out)
{
	strbuf_adds(out, "crash ");
	plan_print_modes(modes ? modes : RUN_PERSIST, out);
	strbuf_addf(out, "\nmax-subset %u\nbudget %llu\nseed %llu\nprune %s\nlose-flush %llu\n",
		    o->max_subset, (unsigned long long)o->budget, (unsigned long long)o->seed,
		    o->vary_all ? "none" : "reads", (unsigned long long)o->lose_flush);
	if (o->pm.eadr)
		strbuf_adds(out, "eadr 1\n");
	if (o->pm.split)
		strbuf_adds(out, "split 1\n");
	if (o->dump)
		strbuf_addf(out, "dump %s\n", o->dump);
	if (o->check)
		strbuf_addf(out, "check %s\n", o->check);
	if (o->pm.granularity)
		strbuf_addf(out, "granularity %llu\n", (unsigned long long)o->pm.granularity);
}

static void print_case(const struct run_case *c, const struct run_opts *o, const char *base,
		       struct strbuf *out)
{
	print_target(&c->target->opts, out);
	strbuf_addf(out, "guarantee %s\n", c->guarantee->name);
	strbuf_addf(out, "state %s", c->state ? strbuf_str(&c->state->id) : "live");
	if (c->second)
		strbuf_addf(out, "/%s", strbuf_str(&c->second->id));
	if (c->media)
		strbuf_addf(out, "\nmedia %s", c->media);
	strbuf_addf(out, "\nbase %s\n", base);
	strbuf_addf(out, "done %zu\n", c->done);
	if (c->operation != RUN_NO_OPERATION)
		strbuf_addf(out, "operation %zu\n", c->operation);
	strbuf_addf(out, "recorder %s\n", disk_recorder(c->target->disk));
	print_opts(c->modes ? c->modes : o->modes, o, out);
	if (!c->state)
		return;
	strbuf_addf(out, "point %llu\nlayer %s\nsurvived", (unsigned long long)c->state->point,
		    crash_layer_name(c->state->layer));
	for (size_t i = 0; i < c->state->survived.n; i++)
		strbuf_addf(out, " %llu", (unsigned long long)c->state->survived.v[i]);
	strbuf_adds(out, "\nlost");
	for (size_t i = 0; i < c->state->lost.n; i++)
		strbuf_addf(out, " %llu", (unsigned long long)c->state->lost.v[i]);
	strbuf_addch(out, '\n');
}

void store_print_problems(const struct findings *findings, struct strbuf *out)
{
	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *f = &findings->v[i];

		add_field(out, finding_kind_name(f->kind), '\t');
		add_field(out, f->path, '\t');
		add_field(out, f->words, '\t');
		add_field(out, f->promise, '\n');
	}
}

/* The files of a case; "case" comes last, so that a directory that has it is whole. */
static int write_case(const char *dir, const char *base, const struct run_case *c,
		      const struct run_opts *opts, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *trace = xasprintf("%s/trace", dir);
	auto_free char *recovery = xasprintf("%s/recovery", dir);

	store_print_problems(c->findings, &text);
	int rc = write_file(dir, "problems", strbuf_str(&text), text.len, err);
	strbuf_clear(&text);
	workload_print(c->workload, &text);
	if (!rc)
		rc = write_file(dir, "workload", strbuf_str(&text), text.len, err);
	if (!rc)
		rc = write_trees(dir, c, err);
	if (!rc && c->diagnosis)
		rc = write_file(dir, "diagnosis", c->diagnosis, strlen(c->diagnosis), err);
	strbuf_clear(&text);
	if (!rc && c->places)
		places_print(c->places, c->trace, c->second ? c->recovery : NULL, &text);
	if (!rc && text.len)
		rc = write_file(dir, "places", strbuf_str(&text), text.len, err);
	if (!rc && *c->kernel_log)
		rc = write_file(dir, "kernel-log", c->kernel_log, strlen(c->kernel_log), err);
	if (!rc && *c->said)
		rc = write_file(dir, "said", c->said, strlen(c->said), err);
	if (!rc)
		rc = trace_save(trace, c->trace, err);
	if (!rc && c->second && c->recovery)
		rc = trace_save(recovery, c->recovery, err);
	strbuf_clear(&text);
	print_case(c, opts, base, &text);
	return rc ? rc : write_file(dir, "case", strbuf_str(&text), text.len, err);
}

char *store_name(const struct store_place *at)
{
	return xasprintf("%llu-%llu", (unsigned long long)at->workload,
			 (unsigned long long)at->number);
}

static int make_case_dir(const struct store_place *at, char **out, struct err *err)
{
	auto_free char *name = store_name(at);
	auto_free char *path = xasprintf("%s/findings/%s", at->run, name);
	int rc = make_inside(path, err);

	if (!rc)
		*out = steal(path);
	return rc;
}

int store_case(const struct store_place *at, const struct run_case *c, const struct run_opts *opts,
	       struct err *err)
{
	auto_free char *path = NULL;
	auto_free char *base = xasprintf("../../base-%u.img", at->base);
	int rc = make_case_dir(at, &path, err);

	if (!rc)
		rc = store_base(at, c->base, err);
	return rc ? rc : write_case(path, base, c, opts, err);
}

int store_case_alone(const char *dir, const struct run_case *c, const struct run_opts *opts,
		     struct err *err)
{
	/* Of a case that was here before; "case" first, so that no directory seems whole. */
	static const char *const old[] = { "case",     "seen",	    "kernel-log", "said",
					   "recovery", "diagnosis", "places" };
	auto_free char *base = xasprintf("%s/base.img", dir);
	int rc = make_dir(dir, err);

	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		auto_free char *path = xasprintf("%s/%s", dir, old[i]);

		unlink(path);
	}

	if (!rc)
		rc = image_save_file(c->base, base, err);
	return rc ? rc : write_case(dir, "base.img", c, opts, err);
}

int store_hang(const struct store_place *at, const struct store_hang *h,
	       const struct run_opts *opts, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_findings problems = { 0 };
	auto_free char *path = NULL;
	int rc = make_case_dir(at, &path, err);

	findings_add(&problems, FINDING_HANG, NULL, xstrdup(h->words), NULL);
	store_print_problems(&problems, &text);
	if (!rc)
		rc = write_file(path, "problems", strbuf_str(&text), text.len, err);
	strbuf_clear(&text);
	workload_print(h->workload, &text);
	if (!rc)
		rc = write_file(path, "workload", strbuf_str(&text), text.len, err);
	if (!rc && *h->said)
		rc = write_file(path, "said", h->said, strlen(h->said), err);
	strbuf_clear(&text);
	print_target(&opts->target, &text);
	strbuf_addf(&text, "guarantee %s\nstate live\nbase none\nphase ", opts->guarantee->name);
	add_field(&text, h->phase, '\n');
	strbuf_addf(&text, "hang-after-ms %llu\n", (unsigned long long)h->after_ms);
	print_opts(opts->modes, opts, &text);
	return rc ? rc : write_file(path, "case", strbuf_str(&text), text.len, err);
}

char *store_cluster(enum finding_kind kind, const struct workload *w, size_t operation)
{
	struct strbuf out = { 0 };

	strbuf_addf(&out, "%s:", finding_kind_name(kind));
	for (size_t i = 0; i < w->ops.n; i++)
		if (operation < w->ops.n ? i == operation : !w->ops.v[i].setup)
			strbuf_addf(&out, " %s", w->ops.v[i].def->name);
	if (out.len >= CLUSTER_MAX) {
		uint64_t hash = hash64(out.buf, out.len);

		strbuf_cut(&out, CLUSTER_MAX - 24);
		strbuf_addf(&out, "... %016llx", (unsigned long long)hash);
	}
	return strbuf_detach(&out);
}

/* ---- reading back ---- */

enum { TEXT_MAX = 64 << 20 };

static int read_file(const char *dir, const char *name, struct strbuf *out, struct err *err)
{
	return io_slurp_file(dir, name, TEXT_MAX, out, NULL, err);
}

static void take_key(struct stored_case *c, const char *key, const char *value)
{
	struct {
		const char *key;
		char **to;
	} texts[] = { { "target", &c->target },
		      { "guarantee", &c->guarantee },
		      { "state", &c->state },
		      { "base", &c->base },
		      { "kernel", &c->kernel },
		      { "recorder", &c->recorder },
		      { "mkfs", &c->mkfs },
		      { "recover", &c->recover },
		      { "fsck", &c->fsck },
		      { "dump", &c->dump },
		      { "check", &c->check },
		      { "layer", &c->layer },
		      { "crash", &c->crash },
		      { "prune", &c->prune },
		      { "phase", &c->phase },
		      { "guest-kernel", &c->guest_kernel },
		      { "guest-modules", &c->guest_modules },
		      { "guest-cpu", &c->guest_cpu },
		      { "guest-pm", &c->guest_pm },
		      { "media", &c->media },
		      { "guest-files-hash", &c->guest_files_hash },
		      { "guest-kernel-hash", &c->guest_kernel_hash } };
	struct {
		const char *key;
		uint64_t *to;
	} numbers[] = { { "size", &c->size },
			{ "done", &c->done },
			{ "max-subset", &c->max_subset },
			{ "budget", &c->budget },
			{ "seed", &c->seed },
			{ "operation", &c->operation },
			{ "deterministic", &c->deterministic },
			{ "guest-memory", &c->guest_memory },
			{ "lose-flush", &c->lose_flush },
			{ "eadr", &c->eadr },
			{ "split", &c->split },
			{ "granularity", &c->granularity },
			{ "hang-after-ms", &c->hang_after_ms } };

	if (streq(key, "guest-file")) {
		char *all = c->guest_files ? xasprintf("%s\n%s", c->guest_files, value)
					   : xstrdup(value);

		free(c->guest_files);
		c->guest_files = all;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (streq(texts[i].key, key) && !*texts[i].to)
			*texts[i].to = xstrdup(value);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (streq(numbers[i].key, key) && number_parse(value, numbers[i].to))
			*numbers[i].to = 0;
}

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

/* What a case has besides texts is not read here, but must not be waited for later, either. */
static int check_files(const struct stored_case *c, struct err *err)
{
	const char *const names[] = { "trace", "recovery", c->base };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *path = xasprintf("%s/%s", c->dir, names[i]);
		struct stat st;

		if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
			return err_set(err, -EINVAL, "%s is not a regular file", path);
	}
	return 0;
}

static int check_case(const struct stored_case *c, struct err *err)
{
	const char *above = "../../";

	if (!c->target || !c->state || !c->guarantee || !c->base)
		return err_set(err, -EINVAL, "%s/case lacks target, guarantee, state or base",
			       c->dir);
	if (!streq(c->base, "none") && !streq(c->base, "base.img") &&
	    (strncmp(c->base, above, strlen(above)) != 0 ||
	     base_number(c->base + strlen(above)) < 0))
		return err_set(err, -EINVAL,
			       "%s/case: its base is base.img or ../../base-N.img, not '%.40s'",
			       c->dir, c->base);
	return check_files(c, err);
}

int store_load(const char *dir, struct stored_case *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	*out = (struct stored_case){ .dir = xstrdup(dir), .operation = RUN_NO_OPERATION };
	workload_init(&out->workload);
	int rc = io_slurp_file(dir, "case", TEXT_MAX, &text, &out->ours, err);
	char *rest = text.buf;
	for (char *line; !rc && (line = strsep(&rest, "\n"));) {
		char *blank = strchr(line, ' ');

		if (blank) {
			*blank = '\0';
			take_key(out, line, blank + 1);
		}
	}
	if (!rc)
		rc = check_case(out, err);
	strbuf_clear(&text);
	if (!rc)
		rc = read_file(dir, "problems", &text, err);
	rest = text.buf;
	for (char *line; !rc && (line = strsep(&rest, "\n"));)
		take_problem(out, line);
	if (!rc && !out->problems.n)
		rc = err_set(err, -EINVAL, "%s/problems names none", dir);
	strbuf_clear(&text);
	if (!rc)
		rc = read_file(dir, "workload", &text, err);
	if (!rc)
		rc = workload_parse(strbuf_str(&text), text.len, "workload", &out->workload, err);
	if (rc)
		stored_case_release(out);
	return rc;
}

int store_trust(const struct stored_case *c, bool trust, struct err *err)
{
	auto_free char *file = xasprintf("%s/case", c->dir);
	const struct op *op = workload_command(&c->workload);

	return trust || c->ours ? 0
				: plan_check_commands(file, c->target, c->mkfs, c->recover,
						      c->fsck		? c->fsck
						      : c->dump		? c->dump
						      : c->check	? c->check
						      : c->guest_kernel ? c->guest_kernel
						      : op		? op->args[0].text
									: c->guest_files,
						      err);
}

void stored_case_release(struct stored_case *c)
{
	free(c->dir);
	free(c->target);
	free(c->guarantee);
	free(c->state);
	free(c->base);
	free(c->kernel);
	free(c->recorder);
	free(c->mkfs);
	free(c->recover);
	free(c->fsck);
	free(c->dump);
	free(c->check);
	free(c->layer);
	free(c->crash);
	free(c->prune);
	free(c->phase);
	free(c->guest_kernel);
	free(c->guest_modules);
	free(c->guest_cpu);
	free(c->guest_pm);
	free(c->media);
	free(c->guest_files);
	free(c->guest_files_hash);
	free(c->guest_kernel_hash);
	for (size_t i = 0; i < c->problems.n; i++) {
		free(c->problems.v[i].path);
		free(c->problems.v[i].words);
		free(c->problems.v[i].promise);
	}
	vec_release(&c->problems);
	workload_release(&c->workload);
	*c = (struct stored_case){ 0 };
}

bool stored_case_live(const struct stored_case *c)
{
	return streq(c->state, "live");
}

char *stored_case_start(const struct stored_case *c)
{
	char *path = xasprintf("%s/start.img", c->dir);

	if (stored_case_live(c) && access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

struct pm_choice stored_case_pm(const struct stored_case *c)
{
	return (struct pm_choice){ .eadr = c->eadr != 0,
				   .split = c->split != 0,
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
	auto_free char *path = xasprintf("%s/%s", c->dir, name);

	return access(path, F_OK) < 0 ? 0 : read_file(c->dir, name, out, err);
}

/* ---- all of them ---- */

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

int store_list(const char *run, struct store_list *out, struct err *err)
{
	auto_free char *path = xasprintf("%s/findings", run);
	struct dirent **names;
	int n = scandir(path, &names, not_hidden, by_number);

	if (n < 0)
		return err_set(err, -errno, "%s is not the directory of a run: %s: %m", run, path);
	for (int i = 0; i < n; i++) {
		auto_free char *dir = xasprintf("%s/%s", path, names[i]->d_name);
		auto_free char *file = xasprintf("%s/case", dir);

		/* One that is being written right now has no such file yet. */
		if (access(file, F_OK) == 0)
			vec_push(out, steal(dir));
		free(names[i]);
	}
	free(names);
	return 0;
}

void store_list_release(struct store_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	vec_release(l);
}

/* ---- going on with a run ---- */

/* Never through a link: what it leads to is not of this run. */
static int open_inside(int dir, const char *name, const char *path, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(err, -errno,
				errno == ENOTDIR || errno == ELOOP
					? "%s is not a directory: it may be a link to others' files"
					: "cannot open %s: %m",
				path)
		      : fd;
}

/* Removes a file, or a directory of files. */
static int remove_case(int findings, const char *name, const char *path, struct err *err)
{
	struct dirent **names;

	if (unlinkat(findings, name, 0) == 0)
		return 0;
	auto_fd dir = open_inside(findings, name, path, err);
	if (dir < 0)
		return dir;
	int n = scandirat(dir, ".", &names, NULL, NULL);
	int rc = n < 0 ? err_set(err, -errno, "cannot read %s: %m", path) : 0;
	for (int i = 0; i < n; i++) {
		const char *file = names[i]->d_name;
		bool itself = streq(file, ".") || streq(file, "..");

		if (!rc && !itself && unlinkat(dir, file, 0) < 0)
			rc = err_set(err, -errno, "cannot remove %s/%s: %m", path, file);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	if (!rc && unlinkat(findings, name, AT_REMOVEDIR) < 0)
		rc = err_set(err, -errno, "cannot remove %s: %m", path);
	return rc;
}

int store_forget(const char *run, bool (*is_done)(const void *ctx, uint64_t workload),
		 const void *ctx, struct err *err)
{
	auto_free char *path = xasprintf("%s/findings", run);
	struct dirent **names;
	auto_fd dir = open_inside(AT_FDCWD, path, path, err);

	if (dir < 0)
		return dir;
	int n = scandirat(dir, ".", &names, not_hidden, by_number);
	int rc = n < 0 ? err_set(err, -errno, "cannot read %s: %m", path) : 0;
	for (int i = 0; i < n; i++) {
		auto_free char *one = xasprintf("%s/%s", path, names[i]->d_name);
		unsigned long long workload, number;
		char more;

		/* What was put there by others is not ours to remove. */
		if (!rc &&
		    sscanf(names[i]->d_name, "%llu-%llu%c", &workload, &number, &more) == 2 &&
		    !is_done(ctx, workload))
			rc = remove_case(dir, names[i]->d_name, one, err);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return rc;
}
