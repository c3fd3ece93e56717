/* SPDX-License-Identifier: MIT */
/* explore_keep.c - keeps what an exploration found, and reads it back; see explore_keep.h. */
#include "explore/explore_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "explore/explore_plan.h"
#include "explore/finding_dir.h"

static void write_found(struct case_writer *w, const struct findings *list, const struct script *s,
			const struct script *lately)
{
	auto_strbuf text = STRBUF_INIT;

	store_write_found(w, list, &s->w);
	script_print(lately ? lately : s, &text);
	case_write(w, "script", &text);
}

static void write_trees(struct case_writer *w, struct stepper *st)
{
	static const char *const names[] = { "seen", "expected" };

	for (unsigned i = 0; i < 2; i++) {
		auto_strbuf text = STRBUF_INIT;

		tree_print(&st->trees[i], &st->tree_opts, 0, &text);
		case_write(w, names[i], &text);
	}
}

/* The results of the last operation on the target and on the first reference. */
static void write_results(struct case_writer *w, const struct step_result *r)
{
	auto_strbuf text = STRBUF_INIT;

	if (strncmp(r->signature, SIGNATURE_RESULT, strlen(SIGNATURE_RESULT)) == 0)
		strbuf_addf(&text, "%lld %lld\n", (long long)r->seen, (long long)r->expected);
	case_write_any(w, "results", strbuf_str(&text));
}

static_assert(SIDES_MAX <= 5, "the mark of a case covers a disk for each: file_names[] in store.c");

static char *start_name(unsigned side)
{
	return side ? xasprintf("start-%u.img", side) : xstrdup("start.img");
}

/* `ops`: of the workload beside it. */
static void case_init(struct stored_case *c, const struct target_opts *target,
		      const char *guarantee, size_t ops, const char *signature)
{
	stored_case_init(c);
	stored_case_set_target(c, target);
	c->guarantee = xstrdup(guarantee);
	c->state = xstrdup("live");
	c->base = xstrdup("base.img");
	c->done = ops;
	c->signature = xstrdup(signature);
}

/* `begins`: there is a start.img, too. */
static void print_case(const struct kept *k, size_t ops, bool begins, struct strbuf *out)
{
	const struct stepper *st = k->stepper;
	const struct target *t = side_target_of(st->sides[0]);
	struct target_opts here = { .spec = st->sides[0]->spec };
	auto_call(stored_case_release) struct stored_case c;

	case_init(&c, t ? &t->opts : &here, t ? target_guarantee(t) : "linux", ops,
		  k->result->signature);
	c.recorder = t ? xstrdup(disk_recorder(t->disk)) : NULL;
	for (unsigned i = 1; i < st->n; i++) {
		const struct target *r = side_target_of(st->sides[i]);

		stored_case_add_reference(&c, st->sides[i]->spec, r ? &r->opts : NULL);
	}
	c.start = begins ? start_name(0) : NULL;
	c.shown = xasprintf("%llu of %llu", llu(k->shown), llu(k->tries));
	c.ops_before = k->ops_before;
	if (k->runs)
		c.shrunk_by =
			xasprintf("%llu scripts, %llu operations", llu(k->runs), llu(k->steps));
	record_print(&store_explored, &c, out);
}

static void print_hang(const struct target_opts *target, const char *reference, size_t ops,
		       struct strbuf *out)
{
	auto_call(stored_case_release) struct stored_case c;

	case_init(&c, target, "linux", ops, "hang");
	stored_case_add_reference(&c, reference, NULL);
	record_print(&store_explored, &c, out);
}

static int keep_start(const struct kept *k, unsigned i, const char *dir, struct err *err)
{
	const struct image *img = side_image(k->stepper->sides[i], k->start->states[i]);
	auto_free char *name = start_name(i);

	return img ? image_save_below(img, dir, name, false, err) : 0;
}

/* ---- writing ---- */

/* A directory for a finding, or for what takes its place. */
struct new_case {
	const char *run, *name;
	char *next; /* where it is, below the run; NULL: it stands by itself */
	struct io_newdir dir;
	int old; /* the finding as it is, to take files from; -1: there is none */
};

#define NEW_CASE_INIT                                                                              \
	{                                                                                          \
		.dir = IO_NEWDIR_INIT, .old = -1                                                   \
	}

static void new_case_release(struct new_case *n)
{
	io_newdir_release(&n->dir);
	util_close(n->old);
	free(n->next);
}

#define auto_new_case auto_call(new_case_release) struct new_case

static int new_case_open(const char *run, const char *name, struct new_case *out, struct err *err)
{
	auto_free char *now = xasprintf("findings/%s", name);
	int rc = case_plan_sync(&explore_plan_kept, run, err);

	out->run = run;
	out->name = name;
	if (!rc && below_exists(run, now)) {
		out->old = below_open_dir(run, now, err);
		rc = min(out->old, 0);
	}
	if (!rc)
		rc = finding_dir_next(run, name, &out->next, err);
	return rc ? rc : io_newdir_open(run, out->next, &out->dir, err);
}

/* The text of the file "case", which comes last, as its mark is for all of it. */
static int new_case_finish(struct new_case *n, const struct strbuf *text, bool strange,
			   struct err *err)
{
	int rc = store_finish(n->dir.path, text, !strange, err);

	if (!rc)
		rc = io_newdir_commit(&n->dir, err);
	return rc || !n->next ? rc : finding_dir_take(n->run, n->name, n->next, err);
}

/* The base is the same in all findings of a task: a finding takes it from the one it replaces. */
static int save_base(const struct kept *k, const struct new_case *n, struct err *err)
{
	static const char name[] = "base.img";
	const struct side *s = k->stepper->sides[0];
	const struct image *base = side_image(s, s->base);

	if (!base || (n->old >= 0 && linkat(n->old, name, n->dir.fd, name, 0) == 0))
		return 0;
	return image_save_below(base, n->dir.path, name, false, err);
}

/* A file system that is beyond saving has no last image; that is no reason to stop. */
static int save_disk(const struct kept *k, const char *dir, const char *name, bool durable,
		     struct err *err)
{
	struct side *s = k->stepper->sides[0];
	struct side_state *now = NULL;
	struct err ignored = ERR_INIT;

	if (!side_image(s, s->base) || s->ops->save(s, &now, &ignored))
		return 0;
	int rc = image_save_below(side_image(s, now), dir, name, durable, err);
	s->ops->drop(s, now);
	return rc;
}

static int save_images(const struct kept *k, const struct new_case *n, struct err *err)
{
	int rc = save_base(k, n, err);

	for (unsigned i = 0; i < k->stepper->n && k->start && !rc; i++)
		rc = keep_start(k, i, n->dir.path, err);
	return rc || !k->disk ? rc : save_disk(k, n->dir.path, "last.img", false, err);
}

static int fill(const struct kept *k, struct new_case *new, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct case_writer w = { .dir = new->dir.path, .err = err };

	write_found(&w, &k->result->findings, k->script, k->lately);
	write_trees(&w, k->stepper);
	write_results(&w, k->result);
	case_write_any(&w, "log", k->log ? strbuf_str(k->log) : NULL);
	case_write_any(&w, "kernel-log", strbuf_str(&k->result->kernel_log));
	case_write_any(&w, CASE_SAID, strbuf_str(&k->result->said));
	int rc = w.rc ? w.rc : save_images(k, new, err);
	print_case(k, k->script->w.ops.n, k->start, &text);
	return rc ? rc : new_case_finish(new, &text, k->strange, err);
}

int keep_case(const struct kept *k, struct err *err)
{
	auto_new_case new = NEW_CASE_INIT;
	int rc = new_case_open(k->run, k->name, &new, err);

	return rc ? rc : fill(k, &new, err);
}

int keep_case_at(const struct kept *k, const char *path, struct err *err)
{
	auto_new_case new = NEW_CASE_INIT;
	auto_free char *at = below_case(path), *dir = NULL, *name = NULL;
	struct stat st;

	if (lstat(path, &st) == 0 && !below_exists(at, CASE_FILE))
		return err_set(err, -EEXIST,
			       "%s is there already, and is no finding: give another -o", path);
	below_split(path, &dir, &name);
	int rc = io_newdir_open(dir, name, &new.dir, err);
	return rc ? rc : fill(k, &new, err);
}

int keep_disk(const struct kept *k, struct err *err)
{
	auto_free char *name = xasprintf("findings/%s/last.img", k->name);

	return save_disk(k, k->run, name, true, err);
}

static int count_operations(const char *dir, size_t *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_workload w;
	int rc = io_slurp_file(dir, "workload", 64 << 20, &text, err);

	workload_init(&w);
	if (!rc)
		rc = workload_parse(strbuf_str(&text), text.len, "workload", &w, err);
	*out = w.ops.n;
	return rc;
}

/*
 * The script tried last may not be the one that is kept, and may begin elsewhere: so what the case
 * says of the files beside it comes from them. File by file: a process that dies in between leaves
 * a mark that does not fit, and all of the finding.
 */
int keep_update(const struct kept *k, struct err *err)
{
	auto_free char *name = xasprintf("findings/%s", k->name);
	auto_free char *path = xasprintf("%s/%s", k->run, name), *dir = below_case(path);
	const char *const names[] = { name, NULL };
	auto_strbuf text = STRBUF_INIT;
	auto_free char *start = start_name(0);
	size_t ops;
	int rc = count_operations(dir, &ops, err);

	if (!rc && k->log)
		rc = io_write_file(dir, "log", k->log->buf, k->log->len, 0, err);
	print_case(k, ops, below_exists(dir, start), &text);
	if (!rc)
		rc = store_finish(dir, &text, !k->strange, err);
	return rc ? rc : io_sync_run(k->run, names, err);
}

int keep_hang(const char *run, unsigned worker, const struct target_opts *target,
	      const char *reference, const struct script *script, const char *words, bool strange,
	      char **out, struct err *err)
{
	auto_new_case new = NEW_CASE_INIT;
	auto_strbuf text = STRBUF_INIT;
	auto_findings list = { 0 };
	uint64_t number = finding_dir_free(run, FINDING_HANGS, worker);
	auto_free char *name = finding_dir_name(number, worker);
	int rc = new_case_open(run, name, &new, err);
	struct case_writer w = { .dir = new.dir.path, .err = err, .rc = rc };

	findings_add(&list, FINDING_HANG, NULL, xstrdup(words), xstrdup("nothing had crashed yet"));
	write_found(&w, &list, script, NULL);
	print_hang(target, reference, script->w.ops.n, &text);
	rc = w.rc ? w.rc : new_case_finish(&new, &text, strange, err);
	if (!rc)
		*out = xasprintf("%s/findings/%s", run, name);
	return rc;
}

/* ---- reading back ---- */

/* The target's is there, or nothing is. A reference without one needs none. */
static int load_start(const char *at, struct kept_case *c, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < SIDES_MAX && !rc; i++) {
		auto_free char *name = start_name(i);

		if (!below_exists(at, name)) {
			auto_free char *shown = below_shown(at, name);

			rc = i ? 0
			       : err_set(err, -ENOENT,
					 "%s is not there, and the finding begins with it", shown);
			continue;
		}
		rc = image_load_below(at, name, &c->start[i], err);
		c->starts[i] = !rc;
	}
	return rc;
}

int kept_load(const char *dir, struct kept_case *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *script = xasprintf("%s/script", dir);

	*out = (struct kept_case){ 0 };
	script_init(&out->script);
	int rc = store_load(dir, &out->c, err);
	if (!rc && (!out->c.explored || !out->c.references.n || !out->c.signature))
		rc = err_set(err, -EINVAL, "%s was not found by outage explore", dir);
	if (!rc && out->c.start)
		rc = load_start(out->c.at, out, err);
	if (!rc)
		rc = io_slurp_file(out->c.at, "script", RECORD_MAX, &text, err);
	if (!rc)
		rc = script_parse(strbuf_str(&text), text.len, script, &out->script, err);
	if (rc)
		kept_release(out);
	return rc;
}

void kept_release(struct kept_case *c)
{
	script_release(&c->script);
	for (unsigned i = 0; i < SIDES_MAX; i++)
		image_release(&c->start[i]);
	stored_case_release(&c->c);
	*c = (struct kept_case){ 0 };
}
