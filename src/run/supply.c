/* SPDX-License-Identifier: MIT */
/* supply.c - reads workloads from their sources, and gives the one with a number. */
#include "run/supply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/below.h"
#include "base/hash.h"
#include "base/rng.h"
#include "run/store.h"
#include "workload/j2lang.h"
#include "workload/jlang.h"

enum { TEXTS_MAX = 10 * 1000 * 1000 };

void supply_init(struct supply *s)
{
	*s = (struct supply){ 0 };
	bounds_init(&s->bounds);
}

void supply_release(struct supply *s)
{
	gen_free(s->gen);
	bounds_release(&s->bounds);
	for (size_t i = 0; i < s->texts.n; i++)
		free(s->texts.v[i]);
	vec_release(&s->texts);
	free(s->command);
}

int supply_open_bounds(struct supply *s, const char *spec, struct err *err)
{
	int rc = bounds_load(spec, &s->bounds, err);

	if (!rc)
		rc = gen_new(&s->bounds, &s->gen, err);
	if (!rc)
		s->count = gen_count(s->gen);
	return rc;
}

static int keep(struct supply *s, struct workload *w, const char *path, struct err *err)
{
	struct strbuf text = { 0 };
	const char *slash = strrchr(path, '/');
	const struct op *op = s->command ? NULL : workload_command(w);

	if (s->texts.n >= TEXTS_MAX)
		return err_set(err, -E2BIG, "%s: more than %d workloads", path, TEXTS_MAX);
	if (!w->named) {
		w->name = slash && slash[1] ? slash + 1 : path;
		w->named = true;
	}
	if (op)
		s->command = xstrdup(op->args[0].text);
	workload_print(w, &text);
	vec_push(&s->texts, strbuf_detach(&text));
	s->count = s->texts.n;
	return 0;
}

struct keeping {
	struct supply *s;
	const char *path;
	struct err *err;
};

static int keep_imported(void *ctx, struct workload *w)
{
	struct keeping *k = ctx;

	return keep(k->s, w, k->path, k->err);
}

static int add_stream(struct supply *s, FILE *in, const char *path, struct err *err)
{
	auto_workload w;
	struct workload_reader r;
	int rc;

	workload_init(&w);
	if (j2lang_recognise(in)) {
		struct keeping keeping = { s, path, err };

		return j2lang_import(in, path, keep_imported, &keeping, err);
	}
	if (jlang_recognise(in)) {
		rc = jlang_import(in, path, &w, err);
		return rc ? rc : keep(s, &w, path, err);
	}
	workload_reader_init(&r, in, path);
	while ((rc = workload_reader_next(&r, &w, err)) > 0) {
		rc = w.ops.n ? keep(s, &w, path, err) : 0;
		if (rc)
			break;
	}
	workload_reader_release(&r);
	return rc;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int add_directory(struct supply *s, int fd, const char *path, struct err *err)
{
	struct dirent **names;
	int n = scandirat(fd, ".", &names, not_hidden, by_name);
	int rc = n < 0 ? err_set(err, -errno, "cannot read %s: %m", path) : 0;

	for (int i = 0; i < n; i++) {
		auto_free char *inner = xasprintf("%s/%s", path, names[i]->d_name);

		free(names[i]);
		if (!rc)
			rc = supply_add_path(s, inner, err);
	}
	if (n >= 0)
		free(names);
	return rc;
}

/* A file of a finding is a word of the user who made that; others are this user's own. */
static int check_command(const char *command, const char *dir, const char *name, struct err *err)
{
	auto_free char *shown = below_shown(dir, NULL);
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT, ignored = ERR_INIT;
	struct stored_case c;
	int rc = store_load(shown, &c, &ignored);

	if (rc || !streq(name, "workload"))
		err_set(&why, -EPERM, "was not made by you on this machine, or is no finding");
	if (!rc) {
		rc = why.code ? why.code : store_verify(shown, c.base, &why);
		stored_case_release(&c);
	}
	if (!rc)
		return 0;
	trust_would((struct trust_key){ "shell", TRUST_COMMAND }, command, &would);
	return trust_refuse(shown, name, &why, &would, "", err);
}

/* Whether a file lies in a run, or in a finding that is kept alone; then both are set. */
static bool is_kept(const char *path, char **dir, char **name)
{
	auto_free char *kind = NULL;
	struct err ignored = ERR_INIT;

	if (below_named(path, dir, name))
		return true;
	below_parent(path, dir, name);
	return case_is_one(*dir) && !case_kind_of(*dir, &kind, &ignored);
}

int supply_add_path(struct supply *s, const char *path, struct err *err)
{
	auto_free char *dir = NULL, *name = NULL;
	struct err ignored = ERR_INIT;

	if (streq(path, "-"))
		return add_stream(s, stdin, "standard input", err);
	bool kept = is_kept(path, &dir, &name);
	int rc = kept ? below_hold(dir, err) : 0;
	if (rc)
		return rc;
	auto_fd all = kept ? below_open_dir(dir, name, &ignored)
			   : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all >= 0)
		return add_directory(s, all, path, err);
	auto_fd fd = kept ? below_open(dir, name, O_RDONLY, err) : below_open_named(path, err);
	if (fd < 0)
		return fd;
	auto_file in = fdopen(steal_fd(&fd), "r");
	free(s->command);
	s->command = NULL;
	rc = add_stream(s, in, path, err);
	return !rc && kept && s->command && !s->trust ? check_command(s->command, dir, name, err)
						      : rc;
}

void supply_select(struct supply *s, uint64_t skip, uint64_t limit, uint64_t sample, uint64_t seed)
{
	s->from = min(skip, s->count);
	s->count = min(limit, s->count - s->from);
	s->sample = min(sample, s->count);
	s->seed = seed;
}

void supply_hash(const struct supply *s, struct strbuf *out)
{
	auto_strbuf text = STRBUF_INIT;
	char hex[HASH_HEX_SIZE];

	if (s->gen) {
		/* The name has what the text of the bounds does not tell: how they are numbered. */
		gen_identity(s->gen, &text);
		bounds_print(&s->bounds, &text);
	}
	for (size_t i = 0; i < s->texts.n; i++)
		strbuf_add(&text, s->texts.v[i], strlen(s->texts.v[i]) + 1);
	strbuf_adds(out, hash_hex(hash_bytes(strbuf_str(&text), text.len), hex));
}

uint64_t supply_count(const struct supply *s)
{
	return s->sample ? s->sample : s->count;
}

/* The place in the whole that number `i` stands for. */
static uint64_t place(const struct supply *s, uint64_t i)
{
	unsigned __int128 span = s->count;
	struct rng rng, own;

	if (!s->sample)
		return s->from + i;
	uint64_t lo = (uint64_t)(span * i / s->sample), hi = (uint64_t)(span * (i + 1) / s->sample);
	rng_init(&rng, s->seed);
	rng_split(&rng, i, &own);
	return s->from + lo + rng_below(&own, hi - lo);
}

int supply_get(struct supply *s, uint64_t i, struct workload *out, struct err *err)
{
	uint64_t at = place(s, i);
	const char *text;
	size_t len;

	if (!s->gen)
		return workload_parse(s->texts.v[at], strlen(s->texts.v[at]), "workload", out, err);
	gen_seek(s->gen, at);
	if (!gen_next(s->gen, &text, &len))
		return err_set(err, -ERANGE, "there is no workload %llu", llu(at));
	return workload_parse(text, len, "generated", out, err);
}
