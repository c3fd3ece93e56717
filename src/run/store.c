/* SPDX-License-Identifier: MIT */
/*
 * store.c - keeps cases of outage test, with their base images and marks; store.h says what is in
 * the files.
 *
 * S1: a base image of a run is on disk, with its mark, before a case that names it is.
 * S2: the file "case" is written last, and its mark before that (D2 of case/dir.h).
 * S3: a line of "problems" has four fields, whatever is in them; the name of a cluster is shorter
 *     than CLUSTER_MAX.
 */
#include "run/store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/io.h"
#include "core/trace_file.h"
#include "run/run_places.h"
#include "run/plan.h"
#include "run/progress.h"
#include "run/strange.h"

const char *const store_made[] = { "progress", "suppressions", "kernel-log", TRUST_MARK, NULL };

/* ---- base images ---- */

/* The number of a name "base-N.img", or -1. Longer numbers were not given by us. */
long store_base_number(const char *name)
{
	int end = 0;
	unsigned number;

	if (sscanf(name, "base-%9u.img%n", &number, &end) != 1 || !end || name[end] ||
	    (name[5] < '0' || name[5] > '9'))
		return -1;
	return (long)number;
}

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

static int read_image_mark(const char *run, unsigned number, struct strbuf *out, struct err *err)
{
	auto_free char *mark = xasprintf("base-%u.mark", number);

	return case_read_mark(run, mark, out, err);
}

/* Every file of a case that is read again. */
static const char *const file_names[] = {
	"base.img",    "diagnosis", "expected",	   "kernel-log",  "places",
	"problems",    "recovery",  "results",	   "said",	  "script",
	"seen",	       "start.img", "start-1.img", "start-2.img", "start-3.img",
	"start-4.img", "trace",	    "workload",	   NULL
};
static const struct case_files files = { "case", file_names };

int store_finish(const char *dir, const struct strbuf *text, bool marked, struct err *err)
{
	static const struct strbuf none;

	return case_finish(dir, &files, &none, 1, text, marked, err);
}

int store_verify(const char *dir, const char *base, struct err *why)
{
	auto_free char *run = below_run_of(dir), *at = below_case(dir);
	auto_strbuf image = STRBUF_INIT;
	size_t n = strlen(STORE_ABOVE);
	int rc = 0;

	if (strncmp(base, STORE_ABOVE, n) == 0) {
		unsigned number = (unsigned)store_base_number(base + n);

		rc = mark_image(run, number, true, why);
		if (!rc)
			rc = read_image_mark(run, number, &image, why);
	}
	return rc ? rc : case_verify(at, &files, &image, 1, why);
}

/* Keeps the base image of a worker, once. One that another wrote is of another file system. */
static int store_base(const struct store_place *at, const struct image *base, bool ours,
		      struct err *err)
{
	auto_free char *name = xasprintf("base-%u.img", at->base);
	struct err ignored = ERR_INIT;

	if (*at->base_kept)
		return 0;
	if (store_base_number(name) != (long)at->base)
		return err_set(err, -EOVERFLOW, "%s has files with the numbers of too many images",
			       at->run);
	if (below_exists(at->run, name))
		return err_set(err, -EEXIST, "%s/%s is there, and is not of this worker", at->run,
			       name);
	int rc = image_save_below(base, at->run, name, true, err);
	if (!rc && ours)
		rc = mark_image(at->run, at->base, false, err);
	if (!rc)
		rc = case_plan_sync(&plan_kept, at->run, err);
	*at->base_kept = !rc;
	/* The next case will try again, and must not take it for another worker's. */
	if (rc && below_remove(at->run, name, &ignored))
		errno = 0;
	return rc;
}

unsigned store_next_base(const char *run)
{
	auto_words names = { 0 };
	struct err ignored = ERR_INIT;
	int rc = below_list(run, NULL, &names, &ignored);
	long last = -1;

	for (size_t i = 0; !rc && i < names.n; i++)
		last = max(last, store_base_number(names.v[i]));
	return (unsigned)(last + 1);
}

/* ---- writing ---- */

static void add_field(struct strbuf *out, const char *text, char end)
{
	size_t at = out->len;

	strbuf_add_flat(out, text);
	strbuf_addch(out, end);
	assert(strcspn(out->buf + at, "\t\n") == out->len - at - 1); /* S3 */
}

enum { CONTENT_KEPT = 1 << 20 }; /* bytes of a tree that are kept with it */

/* With the bytes of its files, so that they can be compared later. */
static void write_tree(struct case_writer *w, const char *name, const struct tree *t,
		       const struct tree_opts *opts)
{
	auto_strbuf text = STRBUF_INIT;

	tree_print(t, opts, t->kept <= CONTENT_KEPT ? TREE_TEXT_CONTENT : 0, &text);
	case_write(w, name, &text);
}

static void write_trees(struct case_writer *w, const struct run_case *c)
{
	struct tree_opts opts;
	auto_tree expected = TREE_INIT;

	check_tree_opts(&opts, c->target->ops->ignore);
	reffs_tree(c->history->states.v[min(c->done, c->history->states.n - 1)], &opts, &expected);
	write_tree(w, "expected", &expected, &opts);
	if (c->seen)
		write_tree(w, "seen", c->seen, &opts);
}

/* With what else the case has to say of it. */
static void set_target(struct stored_case *c, const struct target_opts *t)
{
	stored_case_set_target(c, t);
	/* Files are named, and not kept: what the guest was given is told by a hash. */
	c->guest_files_hash = stored_own(t->files_hash);
	c->fsck = stored_own(t->fsck);
	c->guest_kernel_hash = target_kernel_hash(t);
}

static void set_opts(struct stored_case *c, unsigned modes, const struct run_opts *o)
{
	auto_strbuf crash = STRBUF_INIT;

	crashes_print_modes(modes ? modes : RUN_PERSIST, &crash);
	c->crash = strbuf_detach(&crash);
	c->max_subset = o->max_subset;
	c->budget = o->budget;
	c->seed = o->seed;
	c->prune = xstrdup(o->vary_all ? "none" : "reads");
	c->lose_flush = o->lose_flush;
	c->sector = o->sector;
	c->model = stored_own(o->pm.model ? o->pm.model->name : NULL);
	c->eadr = o->pm.eadr;
	c->split = o->pm.split;
	c->dump = stored_own(o->dump);
	c->check = stored_own(o->check);
	c->with_fsck = o->fsck;
	c->granularity = o->pm.granularity;
	if (o->media)
		c->media_max = o->media_max;
}

static void print_state(const struct run_case *c, struct strbuf *out)
{
	strbuf_adds(out, c->state ? strbuf_str(&c->state->id) : "live");
	if (c->second)
		strbuf_addf(out, "/%s", strbuf_str(&c->second->id));
}

/* "3 17 18"; NULL if there is none. */
static char *list_events(const uint64_t *v, size_t n)
{
	struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		strbuf_addf(&text, "%s%llu", i ? " " : "", llu(v[i]));
	return n ? strbuf_detach(&text) : NULL;
}

static void print_case(const struct run_case *c, const struct run_opts *o, const char *base,
		       struct strbuf *out)
{
	struct stored_case s;
	auto_strbuf state = STRBUF_INIT;

	stored_case_init(&s);
	set_target(&s, &c->target->opts);
	set_opts(&s, c->modes ? c->modes : o->modes, o);
	print_state(c, &state);
	s.guarantee = xstrdup(c->guarantee->name);
	s.state = strbuf_detach(&state);
	s.media = stored_own(c->media);
	s.base = xstrdup(base);
	s.done = c->done;
	s.operation = c->operation;
	s.mounted = stored_own(c->mounted);
	s.recorder = stored_own(disk_recorder(c->target->disk));
	if (c->state) {
		s.point = c->state->point;
		s.layer = stored_own(crash_layer_name(c->state->layer));
		s.survived = list_events(c->state->survived.v, c->state->survived.n);
		s.lost = list_events(c->state->lost.v, c->state->lost.n);
	}
	record_print(&store_record, &s, out);
	stored_case_release(&s);
}

void store_print_problems(const struct findings *findings, struct strbuf *out)
{
	vec_each(f, findings) {
		add_field(out, finding_kind_name(f->kind), '\t');
		add_field(out, f->path, '\t');
		add_field(out, f->words, '\t');
		add_field(out, f->promise, '\n');
	}
}

void store_write_found(struct case_writer *w, const struct findings *problems,
		       const struct workload *workload)
{
	auto_strbuf text = STRBUF_INIT;

	store_print_problems(problems, &text);
	case_write(w, "problems", &text);
	workload_print(workload, &text);
	case_write(w, "workload", &text);
}

/* The files of a case. `image` is the mark of a base image that is not among them. */
static int write_case(const char *dir, const char *base, const struct strbuf *image,
		      const struct run_case *c, const struct run_opts *opts, struct err *err)
{
	struct case_writer w = { .dir = dir, .err = err };
	auto_strbuf text = STRBUF_INIT;

	store_write_found(&w, c->findings, c->workload);
	write_trees(&w, c);
	case_write_any(&w, "diagnosis", c->diagnosis);
	if (c->places)
		places_print(c->places, c->trace, c->second ? c->recovery : NULL, &text);
	case_write_any(&w, "places", strbuf_str(&text));
	case_write_any(&w, "kernel-log", c->kernel_log);
	case_write_any(&w, CASE_SAID, c->said);
	int rc = w.rc ? w.rc : trace_save_below(dir, "trace", c->trace, err);
	if (!rc && c->second && c->recovery)
		rc = trace_save_below(dir, "recovery", c->recovery, err);
	strbuf_clear(&text);
	print_case(c, opts, base, &text);
	assert(text.len > 0 && image); /* S2: there is something to cover */
	return rc ? rc : case_finish(dir, &files, image, 1, &text, opts->ours, err);
}

char *store_name(const struct store_place *at)
{
	return xasprintf("%llu-%llu", llu(at->workload), llu(at->number));
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

/* A case of a run appears whole: one that could be lost is not counted. */
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
	auto_free char *base = xasprintf(STORE_ABOVE "base-%u.img", at->base);
	auto_strbuf image = STRBUF_INIT;
	int rc = open_case(at, &dir, err);

	if (!rc)
		rc = store_base(at, c->base, opts->ours, err);
	assert(rc || *at->base_kept); /* S1 */
	if (!rc)
		rc = read_image_mark(at->run, at->base, &image, err);
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
	/* The files of an older case; "case" comes first, so that no directory seems whole. */
	static const char *const old[] = { "case", TRUST_MARK, "seen",	    "kernel-log",
					   "said", "recovery", "diagnosis", "places" };
	static const char *const now[] = { "problems",	"workload", "expected",	  "seen",
					   "diagnosis", "places",   "kernel-log", "said",
					   "trace",	"recovery", "base.img",	  "case",
					   TRUST_MARK,	NULL };
	auto_fd fd = below_open_dir(dir, NULL, err);

	if (fd < 0)
		return fd;
	/* A directory of that name is not of a case, and stays. */
	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		if ((fault_fails("store.unlink") || unlinkat(fd, old[i], 0) < 0) &&
		    errno != ENOENT && errno != EISDIR)
			return err_set(err, -errno, "cannot remove %s/%s: %m", dir, old[i]);
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

static void print_hang(const struct store_hang *h, const struct run_opts *opts, struct strbuf *out)
{
	struct stored_case s;
	auto_strbuf phase = STRBUF_INIT;

	stored_case_init(&s);
	set_target(&s, &opts->target);
	set_opts(&s, opts->modes, opts);
	strbuf_add_flat(&phase, h->phase);
	s.guarantee = xstrdup(opts->guarantee->name);
	s.state = xstrdup("live");
	s.base = xstrdup("none");
	s.phase = phase.len ? strbuf_detach(&phase) : NULL;
	s.hang_after_ms = h->after_ms;
	record_print(&store_record, &s, out);
	stored_case_release(&s);
}

int store_hang(const struct store_place *at, const struct store_hang *h,
	       const struct run_opts *opts, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_findings problems = { 0 };
	auto_newdir dir = IO_NEWDIR_INIT;
	int rc = case_plan_sync(&plan_kept, at->run, err);

	if (!rc)
		rc = open_case(at, &dir, err);
	struct case_writer w = { .dir = dir.path, .err = err, .rc = rc };
	findings_add(&problems, FINDING_HANG, NULL, xstrdup(h->words), NULL);
	store_write_found(&w, &problems, h->workload);
	case_write_any(&w, CASE_SAID, h->said);
	print_hang(h, opts, &text);
	rc = w.rc ? w.rc : store_finish(dir.path, &text, opts->ours, err);
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
		strbuf_addf(&out, "... %016llx", llu(hash));
	}
	assert(out.len < CLUSTER_MAX); /* S3 */
	return strbuf_detach(&out);
}

bool store_suppressed(const struct suppress *rules, const char *target,
		      const struct findings *problems, const struct workload *w, size_t operation)
{
	for (size_t i = 0; i < problems->n; i++) {
		auto_free char *cluster = store_cluster(problems->v[i].kind, w, operation);

		if (!suppress_names(rules, target, cluster))
			return false;
	}
	return true;
}
