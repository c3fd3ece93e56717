/* SPDX-License-Identifier: MIT */
#include "explore/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/number.h"
#include "run/plan.h"
#include "run/store.h"

static int write_file(const char *dir, const char *name, const struct strbuf *text, struct err *err)
{
	return io_write_file(dir, name, text->buf, text->len, 0, err);
}

static int write_text(const char *dir, const char *name, const char *text, struct err *err)
{
	return *text ? io_write_file(dir, name, text, strlen(text), 0, err) : 0;
}

static int write_problems(const char *dir, const struct findings *list, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	store_print_problems(list, &text);
	return write_file(dir, "problems", &text, err);
}

static int write_scripts(const char *dir, const struct script *s, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	workload_print(&s->w, &text);
	int rc = write_file(dir, "workload", &text, err);
	strbuf_clear(&text);
	script_print(s, &text);
	return rc ? rc : write_file(dir, "script", &text, err);
}

static int write_trees(const char *dir, struct stepper *st, struct err *err)
{
	static const char *const names[] = { "seen", "expected" };
	int rc = 0;

	for (unsigned i = 0; i < 2 && !rc; i++) {
		auto_strbuf text = STRBUF_INIT;

		tree_print(&st->trees[i], &st->tree_opts, 0, &text);
		rc = write_file(dir, names[i], &text, err);
	}
	return rc;
}

/* What the last operation returned, and what it returned on the first reference. */
static int write_results(const char *dir, const struct step_result *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	if (strncmp(r->signature, SIGNATURE_RESULT, strlen(SIGNATURE_RESULT)) != 0)
		return 0;
	strbuf_addf(&text, "%lld %lld\n", (long long)r->seen, (long long)r->expected);
	return write_file(dir, "results", &text, err);
}

static void add_kernel(const struct target_opts *t, struct strbuf *out)
{
	auto_free char *kernel = target_kernel(t);

	strbuf_addf(out, "kernel %s\n", kernel);
}

/* A kernel of one's own, and where its modules are. */
static void add_guest(const struct target_opts *t, const char *prefix, struct strbuf *out)
{
	if (t->kernel)
		strbuf_addf(out, "%sguest-kernel %s\n", prefix, t->kernel);
	if (t->modules)
		strbuf_addf(out, "%sguest-modules %s\n", prefix, t->modules);
	if (t->guest_memory)
		strbuf_addf(out, "%sguest-memory %llu\n", prefix,
			    (unsigned long long)t->guest_memory);
}

/* What was said of it goes below its name. */
static void print_reference(const struct side *s, struct strbuf *out)
{
	const struct target *t = side_target_of(s);

	strbuf_addf(out, "reference %s\n", s->spec);
	if (!t)
		return;
	if (t->opts.mkfs_args)
		strbuf_addf(out, "reference-mkfs %s\n", t->opts.mkfs_args);
	if (t->opts.recover)
		strbuf_addf(out, "reference-recover %s\n", t->opts.recover);
	if (t->opts.size)
		strbuf_addf(out, "reference-size %llu\n", (unsigned long long)t->opts.size);
	add_guest(&t->opts, "reference-", out);
}

static void print_case(const struct kept *k, struct strbuf *out)
{
	const struct stepper *st = k->stepper;
	const struct target *t = side_target_of(st->sides[0]);
	struct target_opts here = { .spec = st->sides[0]->spec };

	strbuf_addf(out, "target %s\n", st->sides[0]->spec);
	strbuf_addf(out, "guarantee %s\nstate live\n", t ? t->ops->guarantee : "linux");
	strbuf_adds(out, "base base.img\n");
	strbuf_addf(out, "done %zu\n", k->script->w.ops.n);
	if (t) {
		strbuf_addf(out, "size %llu\n", (unsigned long long)t->opts.size);
		strbuf_addf(out, "recorder %s\n", disk_recorder(t->disk));
		if (t->opts.mkfs_args)
			strbuf_addf(out, "mkfs %s\n", t->opts.mkfs_args);
		if (t->opts.recover)
			strbuf_addf(out, "recover %s\n", t->opts.recover);
		add_guest(&t->opts, "", out);
	}
	add_kernel(t ? &t->opts : &here, out);
	strbuf_adds(out, "found-by explore\n");
	for (unsigned i = 1; i < st->n; i++)
		print_reference(st->sides[i], out);
	if (k->start)
		strbuf_adds(out, "start start.img\n");
	strbuf_addf(out, "signature %s\n", k->result->signature);
	strbuf_addf(out, "shown %llu of %llu\n", (unsigned long long)k->shown,
		    (unsigned long long)k->tries);
	strbuf_addf(out, "operations-before-shrinking %llu\n", (unsigned long long)k->ops_before);
	strbuf_addf(out, "shrunk-by %llu scripts, %llu operations\n", (unsigned long long)k->runs,
		    (unsigned long long)k->steps);
}

static char *start_path(const char *dir, unsigned side)
{
	return side ? xasprintf("%s/start-%u.img", dir, side) : xasprintf("%s/start.img", dir);
}

static int keep_start(const struct kept *k, unsigned i, const char *dir, struct err *err)
{
	const struct image *img = side_image(k->stepper->sides[i], k->start->states[i]);
	auto_free char *path = start_path(dir, i);

	return img ? image_save_file(img, path, err) : 0;
}

static int keep_images(const struct kept *k, const char *dir, struct err *err)
{
	struct side *s = k->stepper->sides[0];
	const struct image *base = side_image(s, s->base);
	struct side_state *now = NULL;
	struct err ignored = ERR_INIT;

	if (!base)
		return 0;
	auto_free char *base_path = xasprintf("%s/base.img", dir);
	int rc = image_save_file(base, base_path, err);
	for (unsigned i = 0; i < k->stepper->n && k->start && !rc; i++)
		rc = keep_start(k, i, dir, err);
	/* A file system that is beyond saving has no last image; that is no reason to stop. */
	if (!rc && !s->ops->save(s, &now, &ignored)) {
		auto_free char *path = xasprintf("%s/last.img", dir);

		rc = image_save_file(side_image(s, now), path, err);
		s->ops->drop(s, now);
	}
	return rc;
}

static int make_dir(const char *run, uint64_t number, unsigned worker, char **out, struct err *err)
{
	auto_free char *dir =
		xasprintf("%s/findings/%llu-%u", run, (unsigned long long)number, worker);

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", dir);
	*out = steal(dir);
	return 0;
}

int keep_case(const struct kept *k, char **out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *dir = NULL;
	int rc = make_dir(k->run, k->number, k->worker, &dir, err);

	if (!rc)
		rc = write_problems(dir, &k->result->findings, err);
	if (!rc)
		rc = write_scripts(dir, k->script, err);
	if (!rc)
		rc = write_trees(dir, k->stepper, err);
	if (!rc)
		rc = write_results(dir, k->result, err);
	if (!rc)
		rc = write_file(dir, "log", k->log, err);
	if (!rc)
		rc = write_text(dir, "kernel-log", strbuf_str(&k->result->kernel_log), err);
	if (!rc)
		rc = write_text(dir, "said", strbuf_str(&k->result->said), err);
	if (!rc)
		rc = keep_images(k, dir, err);
	print_case(k, &text);
	if (!rc)
		rc = write_file(dir, "case", &text, err);
	if (!rc)
		*out = steal(dir);
	return rc;
}

int keep_hang(const char *run, unsigned worker, const struct target_opts *target,
	      const char *reference, const struct script *script, const char *words, char **out,
	      struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_findings list = { 0 };
	auto_free char *dir = NULL;
	int rc = make_dir(run, 999000, worker, &dir, err);

	findings_add(&list, FINDING_HANG, NULL, xstrdup(words), xstrdup("nothing had crashed yet"));
	if (!rc)
		rc = write_problems(dir, &list, err);
	if (!rc)
		rc = write_scripts(dir, script, err);
	strbuf_addf(&text, "target %s\nguarantee linux\nstate live\nbase base.img\ndone %zu\n",
		    target->spec, script->w.ops.n);
	add_guest(target, "", &text);
	add_kernel(target, &text);
	strbuf_addf(&text, "found-by explore\nreference %s\nsignature hang\n", reference);
	if (!rc)
		rc = write_file(dir, "case", &text, err);
	if (!rc)
		*out = steal(dir);
	return rc;
}

/* ---- reading back ---- */

static void take_reference_key(struct kept_reference *r, const char *key, const char *value)
{
	if (streq(key, "reference-mkfs") && !r->mkfs)
		r->mkfs = xstrdup(value);
	if (streq(key, "reference-recover") && !r->recover)
		r->recover = xstrdup(value);
	if (streq(key, "reference-guest-kernel") && !r->guest_kernel)
		r->guest_kernel = xstrdup(value);
	if (streq(key, "reference-guest-modules") && !r->guest_modules)
		r->guest_modules = xstrdup(value);
	if (streq(key, "reference-guest-memory") && number_parse(value, &r->guest_memory))
		r->guest_memory = 0;
	if (streq(key, "reference-size") && number_parse(value, &r->size))
		r->size = 0;
}

static void take_key(struct kept_case *c, const char *key, const char *value)
{
	struct {
		const char *key;
		char **to;
	} texts[] = { { "target", &c->target },
		      { "signature", &c->signature },
		      { "mkfs", &c->mkfs },
		      { "recover", &c->recover },
		      { "guest-kernel", &c->guest_kernel },
		      { "guest-modules", &c->guest_modules } };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (streq(texts[i].key, key) && !*texts[i].to)
			*texts[i].to = xstrdup(value);
	if (streq(key, "reference"))
		vec_push(&c->references, (struct kept_reference){ .spec = xstrdup(value) });
	if (streq(key, "guest-memory") && number_parse(value, &c->guest_memory))
		c->guest_memory = 0;
	if (streq(key, "size") && number_parse(value, &c->size))
		c->size = 0;
	if (c->references.n)
		take_reference_key(&vec_last(&c->references), key, value);
}

/* The target's is there, or nothing is. A reference without one needs none. */
static int find_start(const char *dir, struct kept_case *c, struct err *err)
{
	for (unsigned i = 0; i < SIDES_MAX; i++) {
		auto_free char *path = start_path(dir, i);

		if (access(path, R_OK) == 0)
			c->start[i] = steal(path);
		else if (!i)
			return err_set(err, -errno, "cannot read %s, which it begins with: %m",
				       path);
	}
	return 0;
}

int kept_load(const char *dir, struct kept_case *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *script = xasprintf("%s/script", dir);

	*out = (struct kept_case){ 0 };
	script_init(&out->script);
	int rc = io_slurp_file(dir, "case", 1 << 20, &text, &out->ours, err);
	char *rest = text.buf;
	bool starts = false;
	for (char *line; !rc && (line = strsep(&rest, "\n"));) {
		char *blank = strchr(line, ' ');

		if (!blank)
			continue;
		*blank = '\0';
		take_key(out, line, blank + 1);
		starts |= streq(line, "start");
	}
	if (!rc && (!out->target || !out->references.n || !out->signature))
		rc = err_set(err, -EINVAL, "%s was not found by outage explore", dir);
	if (!rc && starts)
		rc = find_start(dir, out, err);
	strbuf_clear(&text);
	if (!rc)
		rc = io_slurp(script, 64 << 20, &text, err);
	if (!rc)
		rc = script_parse(strbuf_str(&text), text.len, script, &out->script, err);
	if (rc)
		kept_release(out);
	return rc;
}

int kept_trust(const struct kept_case *c, const char *dir, bool trust, struct err *err)
{
	auto_free char *file = xasprintf("%s/case", dir);

	if (trust || c->ours)
		return 0;
	int rc = plan_check_commands(file, c->target, c->mkfs, c->recover, c->guest_kernel, err);
	for (size_t i = 0; i < c->references.n && !rc; i++) {
		const struct kept_reference *r = &c->references.v[i];

		rc = plan_check_commands(file, r->spec, r->mkfs, r->recover, r->guest_kernel, err);
	}
	return rc;
}

void kept_release(struct kept_case *c)
{
	script_release(&c->script);
	for (size_t i = 0; i < c->references.n; i++) {
		free(c->references.v[i].spec);
		free(c->references.v[i].mkfs);
		free(c->references.v[i].recover);
		free(c->references.v[i].guest_kernel);
		free(c->references.v[i].guest_modules);
	}
	vec_release(&c->references);
	for (unsigned i = 0; i < SIDES_MAX; i++)
		free(c->start[i]);
	free(c->target);
	free(c->signature);
	free(c->mkfs);
	free(c->recover);
	free(c->guest_kernel);
	free(c->guest_modules);
	*c = (struct kept_case){ 0 };
}
