/* SPDX-License-Identifier: MIT */
/*
 * simplify.c - makes what is left of a script plainer, so that more of it can go: names move up to
 * the root or become one, operations on handles become operations on paths, and numbers, modes and
 * flags become the simplest that still show it. Each change is tried on all operations at once and
 * kept only if the script still shows the same.
 */
#include "base/words.h"
#include "explore/shrink_impl.h"

enum { NAMES_MAX = 64 };

struct simplification {
	enum { CHANGE_PATH, CHANGE_ONE_PATH, CHANGE_NO_RENAME, CHANGE_HANDLE, CHANGE_NUMBER } kind;
	const char *from, *to; /* CHANGE_PATH; CHANGE_ONE_PATH: only in this operation */
	/* CHANGE_ONE_PATH, CHANGE_NO_RENAME: this item goes at the same time */
	size_t drop;
	const char *fresh; /* CHANGE_NO_RENAME: for whatever has the old name after it */
	size_t op;	   /* the others: of this operation */
	unsigned arg;
	uint64_t num;
	const char *path; /* CHANGE_HANDLE: what the handle was opened on */
	struct strbuf *scratch;
};

/* `path` with the directory or file `from` called `to`; NULL if it is not in there. */
static const char *renamed(const struct simplification *c, const char *path, unsigned slot)
{
	size_t n = strlen(c->from);
	struct strbuf *out = &c->scratch[slot];

	if (strncmp(path, c->from, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	strbuf_clear(out);
	strbuf_adds(out, c->to);
	strbuf_adds(out, path + n);
	return strbuf_str(out);
}

static bool is_path(const struct op *op, unsigned i)
{
	enum arg_kind kind = op->def->args[i].kind;

	return (kind == ARG_PATH || kind == ARG_FILE) && !op->args[i].is_handle && op->args[i].text;
}

/* After a rename that is not done, what had the new name still has the old one. */
static void without_rename(const struct simplification *c, struct op *op)
{
	struct simplification back = *c, away = *c;

	back.from = c->to;
	back.to = c->from;
	away.from = c->from;
	away.to = c->fresh;
	for (unsigned k = 0; op->def->args[k].kind != ARG_END; k++) {
		const char *new = NULL;

		if (is_path(op, k))
			new = renamed(&back, op->args[k].text, k);
		if (is_path(op, k) && !new)
			new = renamed(&away, op->args[k].text, k);
		if (new)
			op->args[k].text = new;
	}
}

static void apply(const struct simplification *c, size_t i, struct op *op)
{
	if (c->kind == CHANGE_NO_RENAME) {
		if (i > c->op)
			without_rename(c, op);
		return;
	}
	if (i != c->op && c->kind != CHANGE_PATH)
		return;
	if (c->kind == CHANGE_PATH || c->kind == CHANGE_ONE_PATH) {
		for (unsigned k = 0; op->def->args[k].kind != ARG_END; k++) {
			const char *new = is_path(op, k) ? renamed(c, op->args[k].text, k) : NULL;

			if (new)
				op->args[k].text = new;
		}
	} else if (c->kind == CHANGE_NUMBER) {
		op->args[c->arg].num = c->num;
	} else {
		op->args[0].text = c->path;
		op->args[0].is_handle = false;
		if (op->def->makes)
			op->def = op->def->makes; /* a handle may outlive the name */
	}
}

/* 1 if the script still shows it with this change; then it is the best. */
static int try_change(struct shrink *h, struct simplification *c, struct err *err)
{
	auto_call(script_release) struct script less;
	struct strbuf scratch[OP_ARGS_MAX] = { 0 };
	int rc;

	c->scratch = scratch;
	script_init(&less);
	for (size_t i = 0; i < h->best->items.n; i++) {
		const struct script_item *item = &h->best->items.v[i];

		if ((c->kind == CHANGE_ONE_PATH || c->kind == CHANGE_NO_RENAME) && i == c->drop)
			continue;
		if (item->kind != SCRIPT_OP) {
			script_add(&less, item->kind, item->n);
			continue;
		}
		struct op op = h->best->w.ops.v[item->n];
		apply(c, item->n, &op);
		script_add_op(&less, &op);
	}
	rc = shrink_shows(h, &less, err);
	if (rc > 0)
		shrink_take(h, &less);
	for (unsigned i = 0; i < OP_ARGS_MAX; i++)
		strbuf_release(&scratch[i]);
	return rc;
}

#define TRY(h, ...) try_change(h, &(struct simplification){ __VA_ARGS__ }, err)

/* ---- names ---- */

static void names_add(struct words *names, const char *path)
{
	if (names->n < NAMES_MAX && !any_of(i, names->n, streq(names->v[i], path)))
		vec_push(names, xstrdup(path));
}

static void names_of(const struct script *s, struct words *out)
{
	vec_each(op, &s->w.ops)
		for (unsigned k = 0; op->def->args[k].kind != ARG_END; k++)
			if (is_path(op, k))
				names_add(out, op->args[k].text);
}

static bool in_use(const struct words *names, const char *name)
{
	size_t n = strlen(name);

	return any_of(i, names->n,
		      strncmp(names->v[i], name, n) == 0 &&
			      (!names->v[i][n] || names->v[i][n] == '/'));
}

/* A name in the root that nothing has: the last part of the path, or a new one. */
static void name_in_root(const struct words *names, const char *path, char out[32])
{
	const char *last = strrchr(path, '/') + 1;

	snprintf(out, 32, "%.16s", last);
	for (unsigned i = 0; in_use(names, out) && i < 1000; i++)
		snprintf(out, 32, "g%u", i);
}

/* One name for another, or a place in the root for one below. 1 if something changed. */
static int simpler_names(struct shrink *h, struct err *err)
{
	auto_words names = { 0 };
	int rc = 0;

	names_of(h->best, &names);
	for (unsigned i = 0; i < names.n && !rc && !shrink_spent(h); i++) {
		char root[32];

		if (!strchr(names.v[i], '/'))
			continue;
		name_in_root(&names, names.v[i], root);
		rc = TRY(h, .kind = CHANGE_PATH, .from = names.v[i], .to = root);
	}
	for (unsigned i = 0; i < names.n && !rc; i++)
		for (unsigned k = 0; k < names.n && !rc && !shrink_spent(h); k++)
			if (i != k)
				rc = TRY(h, .kind = CHANGE_PATH, .from = names.v[i],
					 .to = names.v[k]);
	return rc;
}

/*
 * Sometimes an operation is there only because another uses the same name twice: with a name of its
 * own for that one, it can go. Taken only if it does.
 */
static int own_name(struct shrink *h, struct err *err)
{
	size_t n = h->best->items.n;
	auto_words names = { 0 };
	char fresh[32];
	int rc = 0;

	if (n > 10)
		return 0;
	names_of(h->best, &names);
	name_in_root(&names, "/g", fresh);
	for (size_t i = 0; i < n && !rc; i++)
		for (size_t k = 0; k < n && !rc && !shrink_spent(h); k++) {
			const struct script_item *item = &h->best->items.v[i];

			if (i == k || item->kind != SCRIPT_OP ||
			    !is_path(&h->best->w.ops.v[item->n], 0))
				continue;
			auto_free char *from = xstrdup(h->best->w.ops.v[item->n].args[0].text);
			rc = TRY(h, .kind = CHANGE_ONE_PATH, .op = item->n, .from = from,
				 .to = fresh, .drop = k);
		}
	return rc;
}

static int fewer_renames(struct shrink *h, struct err *err)
{
	auto_words names = { 0 };
	char fresh[32];
	int rc = 0;

	names_of(h->best, &names);
	name_in_root(&names, "/g", fresh);
	for (size_t i = 0; i + 1 < h->best->items.n && !rc && !shrink_spent(h); i++) {
		const struct script_item *item = &h->best->items.v[i];
		const struct op *op = &h->best->w.ops.v[item->n];

		if (item->kind != SCRIPT_OP || op->def->args[0].role != ROLE_FROM)
			continue;
		auto_free char *from = xstrdup(op->args[0].text), *to = xstrdup(op->args[1].text);
		rc = TRY(h, .kind = CHANGE_NO_RENAME, .op = item->n, .from = from, .to = to,
			 .fresh = fresh, .drop = i);
	}
	return rc;
}

/* ---- handles ---- */

static const char *opened_on(const struct script *s, size_t op)
{
	const char *handle = s->w.ops.v[op].args[0].text;

	while (op-- > 0)
		if (s->w.ops.v[op].handle && streq(s->w.ops.v[op].handle, handle))
			return s->w.ops.v[op].args[0].text;
	return NULL;
}

static int fewer_handles(struct shrink *h, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < h->best->w.ops.n && !rc && !shrink_spent(h); i++) {
		const struct op *op = &h->best->w.ops.v[i];
		const char *path = op->args[0].is_handle ? opened_on(h->best, i) : NULL;

		if (path && op->def->args[0].kind == ARG_FILE) {
			auto_free char *copy = xstrdup(path);

			rc = TRY(h, .kind = CHANGE_HANDLE, .op = i, .path = copy);
		}
	}
	return rc;
}

/* ---- numbers ---- */

static unsigned simpler_values(const struct arg_def *arg, uint64_t now, uint64_t out[4])
{
	static const uint64_t numbers[] = { 0, 1, 4096 };
	unsigned n = 0;

	switch (arg->kind) {
	case ARG_MODE:
		if (now != 0755 && now != 0644)
			out[n++] = arg->fallback ? arg->fallback : 0644;
		break;
	case ARG_FLAGS:
		if (now)
			out[n++] = 0;
		break;
	case ARG_OFFSET:
	case ARG_LENGTH:
	case ARG_SIZE:
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
			if (numbers[i] < now)
				out[n++] = numbers[i];
		break;
	default:
		break;
	}
	return n;
}

static int simpler_numbers(struct shrink *h, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < h->best->w.ops.n && rc >= 0; i++) {
		const struct op_def *def = h->best->w.ops.v[i].def;

		for (unsigned k = 0; def->args[k].kind != ARG_END && rc >= 0; k++) {
			uint64_t values[4];
			unsigned n = simpler_values(&def->args[k], h->best->w.ops.v[i].args[k].num,
						    values);

			rc = 0;
			for (unsigned x = 0;
			     x < n && !rc && !shrink_spent(h) && i < h->best->w.ops.n; x++)
				rc = TRY(h, .kind = CHANGE_NUMBER, .op = i, .arg = k,
					 .num = values[x]);
			/* The script may have become shorter. */
			if (i >= h->best->w.ops.n)
				break;
		}
	}
	return min(rc, 0);
}

int shrink_simplify(struct shrink *h, struct err *err)
{
	int any = 0, rc;

	if (h->best->items.n > 40)
		return 0;
	do {
		rc = simpler_names(h, err);
		if (!rc)
			rc = fewer_handles(h, err);
		if (!rc)
			rc = fewer_renames(h, err);
		if (!rc)
			rc = own_name(h, err);
		any |= rc > 0;
	} while (rc > 0 && !shrink_spent(h));
	return rc < 0 ? rc : any;
}

int shrink_numbers(struct shrink *h, struct err *err)
{
	return h->best->items.n > 40 ? 0 : simpler_numbers(h, err);
}
