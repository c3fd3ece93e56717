/* SPDX-License-Identifier: MIT */
#include "run/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/number.h"
#include "core/trace_file.h"
#include "run/places.h"
#include "run/plan.h"
#include "run/progress.h"
#include "run/strange.h"

enum { TEXT_MAX = 64 << 20 };

static int make_dir(const char *path, struct err *err)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", path);
	return 0;
}

/* What each kind of run makes, up to NULL. */
static const char *const names_test[] = { "run",	"progress", "suppressions",
					  "kernel-log", TRUST_MARK, NULL };
static const char *const names_app[] = { "trace", "base",    "shown",	 "stacks",
					 "work",  "summary", TRUST_MARK, NULL };
static const char *const names_pm[] = { "trace",   "places",   "base.img", "recovery",
					"summary", TRUST_MARK, NULL };

/* What else has a name that a run uses would be overwritten. */
static int check_unused(const char *path, const char *target, struct err *err)
{
	const char *const *names = streq(target, "app")	 ? names_app
				   : streq(target, "pm") ? names_pm
							 : names_test;

	if (below_exists(path, "run"))
		return err_set(err, -EEXIST,
			       "%s holds a run already: give --resume %s to go on with it, or "
			       "another -o",
			       path, path);
	for (; *names; names++)
		if (below_exists(path, *names))
			return err_set(err, -EEXIST, "%s/%s is there already: give another -o",
				       path, *names);
	return 0;
}

int store_sweep(const char *run, struct err *err)
{
	static const char *const dirs[] = { NULL, "findings", "shrunk", "whole" };
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !rc; i++)
		rc = below_sweep(run, dirs[i], err);
	return rc;
}

int store_create(const char *path, const char *target, char **out, struct err *err)
{
	auto_free char *run = path ? xstrdup(path) : NULL;
	int rc = 0;

	if (path) {
		rc = check_unused(path, target, err);
		if (!rc)
			rc = make_dir(path, err);
	} else {
		char name[32];
		size_t n = strcspn(target, ",: /");

		rc = make_dir("outage-runs", err);
		snprintf(name, sizeof(name), "%.*s", (int)min(n, (size_t)24), target);
		for (unsigned i = 1; !rc && !run; i++) {
			auto_free char *tried = xasprintf("outage-runs/%s-%04u", name, i);

			if (mkdir(tried, 0755) == 0)
				run = steal(tried);
			else if (errno != EEXIST)
				rc = err_set(err, -errno, "cannot make the directory %s: %m",
					     tried);
		}
	}
	if (rc)
		return rc;
	rc = below_make_dir(run, "findings", err);
	if (!rc)
		rc = store_sweep(run, err);
	if (!rc)
		*out = steal(run);
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

/* ---- marks ---- */

static const char above_case[] = "../../"; /* a case's base image, if it is one of its run */

/* An image has a mark of its own, as many cases have the same one. */
static int mark_image(const char *run, unsigned number, bool verify, struct err *err)
{
	auto_free char *img = xasprintf("base-%u.img", number);
	auto_free char *mark = xasprintf("base-%u.mark", number);
	const struct trust_file file = { .name = img };
	const struct trust_set set = {
		.kind = "image", .mark = mark, .files = &file, .n = 1, .keep = true
	};

	return verify ? trust_verify(run, &set, err) : trust_mark(run, &set, err);
}

/* Reads that mark; where it is not there, nothing is. */
static void read_image_mark(const char *run, unsigned number, struct strbuf *out)
{
	auto_free char *mark = xasprintf("base-%u.mark", number);
	struct err none = ERR_INIT;

	if (io_slurp_file(run, mark, TEXT_MAX, out, &none))
		strbuf_clear(out);
}

/* Every file of a case that is read again by anybody. */
static int mark_case(const char *dir, const struct strbuf *text, const struct strbuf *image,
		     bool verify, struct err *err)
{
	const struct trust_file files[] = {
		{ "base", strbuf_str(image), image->len },
		{ "case", text ? strbuf_str(text) : NULL, text ? text->len : 0 },
		{ .name = "base.img" },
		{ .name = "diagnosis" },
		{ .name = "expected" },
		{ .name = "kernel-log" },
		{ .name = "places" },
		{ .name = "problems" },
		{ .name = "recovery" },
		{ .name = "results" },
		{ .name = "said" },
		{ .name = "script" },
		{ .name = "seen" },
		{ .name = "start.img" },
		{ .name = "start-1.img" },
		{ .name = "start-2.img" },
		{ .name = "start-3.img" },
		{ .name = "start-4.img" },
		{ .name = "trace" },
		{ .name = "workload" },
	};
	const struct trust_set set = { .kind = "case", .files = files, .n = ARRAY_SIZE(files) };

	return verify ? trust_verify(dir, &set, err) : trust_mark(dir, &set, err);
}

int store_mark(const char *dir, const struct strbuf *text, struct err *err)
{
	static const struct strbuf none;

	return mark_case(dir, text, &none, false, err);
}

int store_verify(const char *dir, const char *base, struct err *why)
{
	auto_free char *run = below_run_of(dir), *at = below_case(dir);
	auto_strbuf image = STRBUF_INIT;
	size_t n = strlen(above_case);
	int rc = 0;

	if (strncmp(base, above_case, n) == 0) {
		unsigned number = (unsigned)base_number(base + n);

		rc = mark_image(run, number, true, why);
		read_image_mark(run, number, &image);
	}
	return rc ? rc : mark_case(at, NULL, &image, true, why);
}

/* Keeps the base image of a worker, once. One that another wrote is of another file system. */
static int store_base(const struct store_place *at, const struct image *base, bool ours,
		      struct err *err)
{
	auto_free char *name = xasprintf("base-%u.img", at->base);

	if (*at->base_kept)
		return 0;
	if (below_exists(at->run, name))
		return err_set(err, -EEXIST, "%s/%s is there, and is not of this worker", at->run,
			       name);
	int rc = image_save_below(base, at->run, name, true, err);
	if (!rc && ours)
		rc = mark_image(at->run, at->base, false, err);
	if (!rc)
		rc = plan_sync(at->run, err);
	*at->base_kept = !rc;
	return rc;
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

/* ---- writing ---- */

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

static void print_target(const struct target_opts *t, struct strbuf *out)
{
	auto_free char *kernel = target_kernel(t), *hash = target_kernel_hash(t);

	strbuf_addf(out, "target %s\n", t->spec);
	target_opts_print(t, "", out);
	/* Files are named, and not kept: what the guest was given is told by a hash. */
	if (t->files_hash)
		strbuf_addf(out, "guest-files-hash %s\n", t->files_hash);
	if (t->fsck)
		strbuf_addf(out, "fsck %s\n", t->fsck);
	if (hash)
		strbuf_addf(out, "guest-kernel-hash %s\n", hash);
	strbuf_addf(out, "kernel %s\n", kernel);
}

static void print_opts(unsigned modes, const struct run_opts *o, struct strbuf *out)
{
	strbuf_adds(out, "crash ");
	plan_print_modes(modes ? modes : RUN_PERSIST, out);
	strbuf_addf(out, "\nmax-subset %u\nbudget %llu\nseed %llu\nprune %s\nlose-flush %llu\n",
		    o->max_subset, (unsigned long long)o->budget, (unsigned long long)o->seed,
		    o->vary_all ? "none" : "reads", (unsigned long long)o->lose_flush);
	if (o->pm.model)
		strbuf_addf(out, "model %s\n", o->pm.model->name);
	if (o->pm.eadr)
		strbuf_adds(out, "eadr 1\n");
	if (o->pm.split)
		strbuf_adds(out, "split 1\n");
	if (o->dump)
		strbuf_addf(out, "dump %s\n", o->dump);
	if (o->check)
		strbuf_addf(out, "check %s\n", o->check);
	if (o->fsck)
		strbuf_adds(out, "with-fsck 1\n");
	if (o->pm.granularity)
		strbuf_addf(out, "granularity %llu\n", (unsigned long long)o->pm.granularity);
}

static void print_state(const struct run_case *c, struct strbuf *out)
{
	strbuf_adds(out, c->state ? strbuf_str(&c->state->id) : "live");
	if (c->second)
		strbuf_addf(out, "/%s", strbuf_str(&c->second->id));
}

static void print_case(const struct run_case *c, const struct run_opts *o, const char *base,
		       struct strbuf *out)
{
	print_target(&c->target->opts, out);
	strbuf_addf(out, "guarantee %s\n", c->guarantee->name);
	strbuf_adds(out, "state ");
	print_state(c, out);
	if (c->media)
		strbuf_addf(out, "\nmedia %s", c->media);
	strbuf_addf(out, "\nbase %s\n", base);
	strbuf_addf(out, "done %zu\n", c->done);
	if (c->operation != RUN_NO_OPERATION)
		strbuf_addf(out, "operation %zu\n", c->operation);
	if (c->mounted)
		strbuf_addf(out, "mounted %s\n", c->mounted);
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

/* Whoever has the file "case" has all of it, so that comes last; the mark is for what it will be.
 */
static int finish_case(const char *dir, const struct strbuf *text, const struct strbuf *image,
		       bool ours, struct err *err)
{
	int rc = ours ? mark_case(dir, text, image, false, err) : 0;

	return rc ? rc : write_file(dir, "case", strbuf_str(text), text->len, err);
}

/* The files of a case. `image` is the mark of a base image that is not among them. */
static int write_case(const char *dir, const char *base, const struct strbuf *image,
		      const struct run_case *c, const struct run_opts *opts, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

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
		rc = trace_save_below(dir, "trace", c->trace, err);
	if (!rc && c->second && c->recovery)
		rc = trace_save_below(dir, "recovery", c->recovery, err);
	strbuf_clear(&text);
	print_case(c, opts, base, &text);
	return rc ? rc : finish_case(dir, &text, image, opts->ours, err);
}

char *store_name(const struct store_place *at)
{
	return xasprintf("%llu-%llu", (unsigned long long)at->workload,
			 (unsigned long long)at->number);
}

char *store_id(const char *state, const char *media)
{
	return media ? xasprintf("%s %s", state, media) : xstrdup(state);
}

char *store_id_of(const struct run_case *c)
{
	auto_strbuf state = STRBUF_INIT;

	print_state(c, &state);
	return store_id(strbuf_str(&state), c->media);
}

/* A case of a run appears whole: nobody counts one that could be lost. */
static int open_case(const struct store_place *at, struct io_newdir *out, struct err *err)
{
	auto_free char *name = store_name(at);
	auto_free char *path = xasprintf("findings/%s", name);

	return io_newdir_open(at->run, path, out, err);
}

int store_case(const struct store_place *at, const struct run_case *c, const struct run_opts *opts,
	       struct err *err)
{
	auto_newdir dir = IO_NEWDIR_INIT;
	auto_free char *base = xasprintf("%sbase-%u.img", above_case, at->base);
	auto_strbuf image = STRBUF_INIT;
	int rc = open_case(at, &dir, err);

	if (!rc)
		rc = store_base(at, c->base, opts->ours, err);
	read_image_mark(at->run, at->base, &image);
	if (!rc)
		rc = write_case(dir.path, base, &image, c, opts, err);
	return rc ? rc : io_newdir_commit(&dir, err);
}

static int write_alone(const char *dir, const struct run_case *c, const struct run_opts *opts,
		       struct err *err)
{
	static const struct strbuf none;
	int rc = image_save_below(c->base, dir, "base.img", false, err);

	return rc ? rc : write_case(dir, "base.img", &none, c, opts, err);
}

/* A directory of the user's, which may hold more than a case. */
static int replace_files(const char *dir, const struct run_case *c, const struct run_opts *opts,
			 struct err *err)
{
	/* Of a case that was here before; "case" first, so that no directory seems whole. */
	static const char *const old[] = { "case", TRUST_MARK, "seen",	    "kernel-log",
					   "said", "recovery", "diagnosis", "places" };
	static const char *const now[] = { "problems",	"workload", "expected",	  "seen",
					   "diagnosis", "places",   "kernel-log", "said",
					   "trace",	"recovery", "base.img",	  "case",
					   TRUST_MARK,	NULL };
	auto_fd fd = below_open_dir(dir, NULL, err);

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		unlinkat(fd, old[i], 0); /* a directory of that name is not of a case, and stays */
	int rc = write_alone(dir, c, opts, err);
	return rc ? rc : io_sync_run(dir, now, err);
}

int store_case_alone(const char *path, const struct run_case *c, const struct run_opts *opts,
		     struct err *err)
{
	auto_newdir new = IO_NEWDIR_INIT;
	auto_free char *dir = NULL, *name = NULL;

	if (!below_split(path, &dir, &name) && access(path, F_OK) == 0)
		return replace_files(path, c, opts, err);
	int rc = io_newdir_open(dir, name, &new, err);
	if (!rc)
		rc = write_alone(new.path, c, opts, err);
	return rc ? rc : io_newdir_commit(&new, err);
}

int store_hang(const struct store_place *at, const struct store_hang *h,
	       const struct run_opts *opts, struct err *err)
{
	static const struct strbuf none;
	auto_strbuf text = STRBUF_INIT;
	auto_findings problems = { 0 };
	auto_newdir dir = IO_NEWDIR_INIT;
	int rc = plan_sync(at->run, err);

	if (!rc)
		rc = open_case(at, &dir, err);
	findings_add(&problems, FINDING_HANG, NULL, xstrdup(h->words), NULL);
	store_print_problems(&problems, &text);
	if (!rc)
		rc = write_file(dir.path, "problems", strbuf_str(&text), text.len, err);
	strbuf_clear(&text);
	workload_print(h->workload, &text);
	if (!rc)
		rc = write_file(dir.path, "workload", strbuf_str(&text), text.len, err);
	if (!rc && *h->said)
		rc = write_file(dir.path, "said", h->said, strlen(h->said), err);
	strbuf_clear(&text);
	print_target(&opts->target, &text);
	strbuf_addf(&text, "guarantee %s\nstate live\nbase none\nphase ", opts->guarantee->name);
	add_field(&text, h->phase, '\n');
	strbuf_addf(&text, "hang-after-ms %llu\n", (unsigned long long)h->after_ms);
	print_opts(opts->modes, opts, &text);
	if (!rc)
		rc = finish_case(dir.path, &text, &none, opts->ours, err);
	return rc ? rc : io_newdir_commit(&dir, err);
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

static int read_file(const char *dir, const char *name, struct strbuf *out, struct err *err)
{
	return io_slurp_file(dir, name, TEXT_MAX, out, err);
}

/* What a case says of itself: no other key of its file is read. */
enum value { TEXT, LINES, NUMBER, SIZE = NUMBER, FLAG };

static const struct key {
	struct trust_key key; /* its name, and what its value leads to */
	enum value value;
	size_t at;
} keys[] = {
#define KEY(name, leads, value, member)                                                            \
	{                                                                                          \
		{ name, leads }, value, offsetof(struct stored_case, member)                       \
	}
	KEY("target", TRUST_TARGET, TEXT, target),
	KEY("guarantee", TRUST_HARMLESS, TEXT, guarantee),
	KEY("state", TRUST_HARMLESS, TEXT, state),
	KEY("base", TRUST_IMAGE, TEXT, base),
	KEY("kernel", TRUST_HARMLESS, TEXT, kernel),
	KEY("recorder", TRUST_HARMLESS, TEXT, recorder),
	KEY("fsck", TRUST_COMMAND, TEXT, fsck),
	KEY("dump", TRUST_COMMAND, TEXT, dump),
	KEY("check", TRUST_COMMAND, TEXT, check),
	KEY("layer", TRUST_HARMLESS, TEXT, layer),
	KEY("crash", TRUST_HARMLESS, TEXT, crash),
	KEY("prune", TRUST_HARMLESS, TEXT, prune),
	KEY("phase", TRUST_HARMLESS, TEXT, phase),
	KEY("mounted", TRUST_HARMLESS, TEXT, mounted),
	KEY("guest-files-hash", TRUST_HARMLESS, TEXT, guest_files_hash),
	KEY("guest-kernel-hash", TRUST_HARMLESS, TEXT, guest_kernel_hash),
	KEY("media", TRUST_HARMLESS, TEXT, media),
#define TARGET_OPTION(member, kind, leads, key, ...) KEY(key, leads, kind, member),
#define GUEST_OPTION				     TARGET_OPTION
#include "target/options.def"
	KEY("done", TRUST_HARMLESS, NUMBER, done),
	KEY("max-subset", TRUST_HARMLESS, NUMBER, max_subset),
	KEY("budget", TRUST_HARMLESS, NUMBER, budget),
	KEY("seed", TRUST_HARMLESS, NUMBER, seed),
	KEY("operation", TRUST_HARMLESS, NUMBER, operation),
	KEY("lose-flush", TRUST_HARMLESS, NUMBER, lose_flush),
	KEY("model", TRUST_HARMLESS, TEXT, model),
	KEY("eadr", TRUST_HARMLESS, NUMBER, eadr),
	KEY("split", TRUST_HARMLESS, NUMBER, split),
	KEY("granularity", TRUST_HARMLESS, NUMBER, granularity),
	KEY("with-fsck", TRUST_HARMLESS, NUMBER, with_fsck),
	KEY("hang-after-ms", TRUST_HARMLESS, NUMBER, hang_after_ms),
#undef KEY
};

static bool is_text(const struct key *k)
{
	return k->value == TEXT || k->value == LINES;
}

static char **text_at(const struct stored_case *c, const struct key *k)
{
	return (char **)((uintptr_t)c + k->at);
}

/* Of a text that is there twice, the first counts; LINES has all of them. */
static void take_text(char **to, enum value kind, const char *value)
{
	char *all = *to && kind == LINES ? xasprintf("%s\n%s", *to, value) : NULL;

	if (*to && !all)
		return;
	free(*to);
	*to = all ? all : xstrdup(value);
}

static void take_key(struct stored_case *c, const char *key, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		uint64_t *number = (uint64_t *)((char *)c + keys[i].at);

		if (!streq(keys[i].key.name, key))
			continue;
		if (is_text(&keys[i]))
			take_text(text_at(c, &keys[i]), keys[i].value, value);
		else if (keys[i].value == FLAG)
			*(bool *)number = streq(value, "1");
		else if (number_parse(value, number))
			*number = 0;
	}
}

bool store_key(size_t i, struct trust_key *out)
{
	if (i < ARRAY_SIZE(keys))
		*out = keys[i].key;
	return i < ARRAY_SIZE(keys);
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

static const char above[] = "../../"; /* of a base image that is the run's */

static int check_case(const struct stored_case *c, struct err *err)
{
	if (!c->target || !c->state || !c->guarantee || !c->base)
		return err_set(err, -EINVAL, "%s/case lacks target, guarantee, state or base",
			       c->dir);
	if (!streq(c->base, "none") && !streq(c->base, "base.img") &&
	    (strncmp(c->base, above_case, strlen(above_case)) != 0 ||
	     base_number(c->base + strlen(above_case)) < 0))
		return err_set(err, -EINVAL,
			       "%s/case: its base is base.img or ../../base-N.img, not '%.40s'",
			       c->dir, c->base);
	return check_files(c, err);
}

int store_load(const char *dir, struct stored_case *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	*out = (struct stored_case){ .dir = xstrdup(dir),
				     .at = below_case(dir),
				     .operation = RUN_NO_OPERATION };
	workload_init(&out->workload);
	int rc = io_slurp_file(out->at, "case", TEXT_MAX, &text, err);
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
		rc = read_file(out->at, "problems", &text, err);
	rest = text.buf;
	for (char *line; !rc && (line = strsep(&rest, "\n"));)
		take_problem(out, line);
	if (!rc && !out->problems.n)
		rc = err_set(err, -EINVAL, "%s/problems names none", dir);
	strbuf_clear(&text);
	if (!rc)
		rc = read_file(out->at, "workload", &text, err);
	if (!rc)
		rc = workload_parse(strbuf_str(&text), text.len, "workload", &out->workload, err);
	if (rc)
		stored_case_release(out);
	return rc;
}

/* ---- whose it is ---- */

static void case_would(const struct stored_case *c, struct strbuf *would)
{
	const struct op *op = workload_command(&c->workload);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = is_text(&keys[i]) ? *text_at(c, &keys[i]) : NULL;

		if (keys[i].key.leads == TRUST_TARGET)
			strange_target(c->target, true, would);
		else if (keys[i].key.leads != TRUST_IMAGE && value)
			trust_would(keys[i].key, value, would);
	}
	if (op)
		trust_would((struct trust_key){ "shell", TRUST_COMMAND }, op->args[0].text, would);
	/* The checker of a guest's file system is a program of this machine. */
	if (stored_case_uses_fsck(c))
		trust_would_also(would, "have its disk read by a checker (fsck) of this machine");
}

int store_trust(struct stored_case *c, bool trust, struct err *err)
{
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	c->ours = trust || !store_verify(c->dir, c->base, &why);
	if (c->ours)
		return 0;
	case_would(c, &would);
	return would.len ? strange_refuse(c->dir, "case", c->target, &why, &would, err) : 0;
}

void stored_case_release(struct stored_case *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (is_text(&keys[i]))
			free(*text_at(c, &keys[i]));
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
	bool alone = strncmp(c->base, above, strlen(above)) != 0;
	auto_free char *run = alone ? NULL : below_run_of(c->dir);

	return alone ? image_load_below(c->at, c->base, out, err)
		     : image_load_below(run, c->base + strlen(above), out, err);
}

struct pm_choice stored_case_pm(const struct stored_case *c)
{
	return (struct pm_choice){ .model = c->model ? model_find(c->model) : NULL,
				   .eadr = c->eadr != 0,
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
	return below_exists(c->at, name) ? read_file(c->at, name, out, err) : 0;
}

/* ---- all of them ---- */

int store_list(const char *run, struct store_list *out, struct err *err)
{
	struct below_names names = { 0 };
	struct err why = ERR_INIT;
	int rc = below_list(run, "findings", &names, &why);

	if (rc)
		return err_set(err, rc, "%s is not the directory of a run: %s", run, why.msg);
	for (size_t i = 0; i < names.n; i++) {
		auto_free char *dir = xasprintf("%s/findings/%s", run, names.v[i]);
		auto_free char *file = xasprintf("findings/%s/case", names.v[i]);

		/* What is no case may have been put there by others. */
		if (below_exists(run, file))
			vec_push(out, steal(dir));
	}
	below_names_release(&names);
	return 0;
}

void store_list_release(struct store_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	vec_release(l);
}
