/* SPDX-License-Identifier: MIT */
/*
 * keys.c - makes a fault from keys and values, of any source.
 *
 * All three dialects come here with the value as text. The dialects differ in two ways: LazyFS's
 * commands and files must give a path; and a crash that waits for no operation happens at once,
 * which a file cannot ask for.
 */
#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "base/number.h"
#include "base/similar.h"
#include "base/words.h"
#include "inject/internal.h"

enum key {
	K_OP,
	K_FILE,
	K_FILE_GLOB,
	K_FILE_RGX,
	K_FROM,
	K_FROM_GLOB,
	K_FROM_RGX,
	K_TO,
	K_TO_GLOB,
	K_TO_RGX,
	K_TIMING,
	K_OCCURRENCE,
	K_UNTIL,
	K_CRASH,
	K_RETURN,
	K_PERSIST,
	K_PARTS,
	K_PARTS_BYTES,
	K_PAGES,
	K_OTHERS,
	K_SURVIVE,
	K_SURVIVORS,
	K_SEED,
	K_ERROR,
	K_KEEP_DIRTY,
	K_BYTES,
	K_DELAY,
	K_END
};

#define BIT(type) (1u << (type))
#define ANY_TYPE  0xffffu
#define LOSING	  (BIT(FAULT_CRASH) | BIT(FAULT_CLEAR))
#define TEARING	  (BIT(FAULT_TORN_OP) | BIT(FAULT_TORN_SEQ))

static const struct key_info {
	const char *name;
	enum key_kind kind;
	unsigned types; /* faults that take it */
} keys[K_END] = {
	[K_OP] = { "op", KEY_TEXT, ANY_TYPE },
	[K_FILE] = { "file", KEY_TEXT, ANY_TYPE },
	[K_FILE_GLOB] = { "file_glob", KEY_TEXT, ANY_TYPE },
	[K_FILE_RGX] = { "file_rgx", KEY_TEXT, ANY_TYPE },
	[K_FROM] = { "from", KEY_TEXT, ANY_TYPE & ~TEARING },
	[K_FROM_GLOB] = { "from_glob", KEY_TEXT, ANY_TYPE & ~TEARING },
	[K_FROM_RGX] = { "from_rgx", KEY_TEXT, ANY_TYPE & ~TEARING },
	[K_TO] = { "to", KEY_TEXT, ANY_TYPE & ~TEARING },
	[K_TO_GLOB] = { "to_glob", KEY_TEXT, ANY_TYPE & ~TEARING },
	[K_TO_RGX] = { "to_rgx", KEY_TEXT, ANY_TYPE & ~TEARING },
	[K_TIMING] = { "timing", KEY_TEXT, LOSING | BIT(FAULT_SYNC) },
	[K_OCCURRENCE] = { "occurrence", KEY_NUMBER, ANY_TYPE },
	[K_UNTIL] = { "until", KEY_EITHER,
		      BIT(FAULT_CLEAR) | BIT(FAULT_SYNC) | BIT(FAULT_ERROR) | BIT(FAULT_SHORT) |
			      BIT(FAULT_DELAY) },
	[K_CRASH] = { "crash", KEY_BOOL, BIT(FAULT_CLEAR) | BIT(FAULT_SYNC) },
	[K_RETURN] = { "return", KEY_BOOL, LOSING | TEARING | BIT(FAULT_SYNC) },
	[K_PERSIST] = { "persist", KEY_NUMBERS, TEARING },
	[K_PARTS] = { "parts", KEY_NUMBER, BIT(FAULT_TORN_OP) },
	[K_PARTS_BYTES] = { "parts_bytes", KEY_NUMBERS, BIT(FAULT_TORN_OP) },
	[K_PAGES] = { "pages", KEY_PAGES, BIT(FAULT_SYNC) },
	[K_OTHERS] = { "sync_other_files", KEY_BOOL, BIT(FAULT_SYNC) },
	[K_SURVIVE] = { "survive", KEY_TEXT, LOSING },
	[K_SURVIVORS] = { "survivors", KEY_TEXT, LOSING },
	[K_SEED] = { "seed", KEY_NUMBER, LOSING | BIT(FAULT_SYNC) },
	[K_ERROR] = { "error", KEY_EITHER, BIT(FAULT_ERROR) },
	[K_KEEP_DIRTY] = { "keep_dirty", KEY_BOOL, BIT(FAULT_ERROR) },
	[K_BYTES] = { "bytes", KEY_EITHER, BIT(FAULT_SHORT) },
	[K_DELAY] = { "delay", KEY_EITHER, BIT(FAULT_DELAY) },
};

/* Other spellings, of present and older versions of LazyFS. */
static const struct {
	const char *name;
	enum key key;
} key_aliases[] = {
	{ "ocurrence", K_OCCURRENCE },
	{ "sync-other-files", K_OTHERS },
	{ "ret", K_RETURN },
};

static const struct {
	const char *name;
	enum fault_type type;
} types[] = {
	{ "crash", FAULT_CRASH },	{ "clear-cache", FAULT_CLEAR },
	{ "clear", FAULT_CLEAR },	{ "torn-op", FAULT_TORN_OP },
	{ "torn-seq", FAULT_TORN_SEQ }, { "split_write", FAULT_TORN_OP },
	{ "reorder", FAULT_TORN_SEQ },	{ "sync-pages", FAULT_SYNC },
	{ "sync-page", FAULT_SYNC },	{ "sync", FAULT_SYNC },
	{ "error", FAULT_ERROR },	{ "short", FAULT_SHORT },
	{ "delay", FAULT_DELAY },
};

/* ---- keys ---- */

static enum key find_key(const char *name)
{
	int k = 0;

	for (size_t i = 0; i < ARRAY_SIZE(key_aliases); i++)
		if (streq(key_aliases[i].name, name))
			return key_aliases[i].key;
	while (k < K_END && !streq(keys[k].name, name))
		k++;
	return (enum key)k;
}

const char *draft_key(const char *name, enum key_kind *kind)
{
	enum key k = find_key(name);

	if (k == K_END)
		return NULL;
	*kind = keys[k].kind;
	return keys[k].name;
}

void draft_hint(const struct draft *d, const char *key, struct strbuf *out)
{
	const char *all[K_END + 1];
	size_t n = 0;

	for (int k = 0; k < K_END; k++)
		if (keys[k].types & BIT(d->f->type))
			all[n++] = keys[k].name;
	all[n] = NULL;
	const char *like = similar_of(key, all);

	if (like) {
		strbuf_addf(out, "; did you mean '%s'?", like);
		return;
	}
	strbuf_addf(out, "; %s takes", fault_type_name(d->f->type));
	for (size_t i = 0; i < n; i++)
		strbuf_addf(out, "%s %s", i ? "," : "", all[i]);
}

bool draft_begin(struct draft *d, const char *type, enum dialect dialect,
		 const struct inject_places *at)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (!streq(types[i].name, type))
			continue;
		*d = (struct draft){ .f = fault_new(types[i].type), .dialect = dialect, .at = *at };
		/* LazyFS's behaviour; "sync" is our word */
		d->f->others = types[i].type == FAULT_SYNC && !streq(type, "sync");
		strbuf_adds(&d->f->text, fault_type_name(types[i].type));
		return true;
	}
	return false;
}

void draft_release(struct draft *d)
{
	fault_free(d->f);
	d->f = NULL;
}

static bool given(const struct draft *d, enum key k)
{
	return d->given >> k & 1;
}

/* ---- values ---- */

static int set_op(struct draft *d, const char *value, struct err *err)
{
	const char *names[POSIX_OP_END + 2];

	if (streq(value, "any")) {
		d->f->op = POSIX_OP_END;
		return 0;
	}
	d->f->op = posix_op_find(value);
	if (d->f->op != POSIX_OP_END)
		return 0;
	for (int i = 0; i < POSIX_OP_END; i++)
		names[i] = posix_op_name((enum posix_op)i);
	names[POSIX_OP_END] = "any";
	names[POSIX_OP_END + 1] = NULL;
	const char *like = similar_of(value, names);

	if (like)
		return err_set(err, -EINVAL,
			       "op is '%s', which is no operation; did you mean '%s'?", value,
			       like);
	return err_set(
		err, -EINVAL,
		"op is '%s', which is no operation; some are write, read, open, create, fsync, "
		"rename, unlink, truncate, link, symlink, mkdir",
		value);
}

static int set_number(const char *key, const char *value, uint64_t *out, struct err *err)
{
	if (number_parse(value, out) || *out > INT64_MAX)
		return err_set(err, -EINVAL, "%s is '%s', but must be a number", key, value);
	return 0;
}

/* Sorts numbers. A duplicate is an error, as it was most likely meant to be another number. */
static int sort_unique(const char *key, struct fault_numbers *n, struct err *err)
{
	vec_sort(n, by_u64);
	for (size_t i = 1; i < n->n; i++)
		if (n->v[i - 1] == n->v[i])
			return err_set(err, -EINVAL, "%s names %" PRIu64 " twice; say it once", key,
				       n->v[i]);
	return 0;
}

static int set_numbers(const char *key, const char *value, struct fault_numbers *out,
		       struct err *err)
{
	auto_free char *copy = xstrdup(value);
	char *rest = copy, *word;

	vec_clear(out);
	if (!*value) /* an empty list of a file */
		return 0;
	while ((word = strsep(&rest, ","))) {
		uint64_t v;

		if (number_parse(word, &v) || v > INT64_MAX)
			return err_set(
				err, -EINVAL,
				"%s is '%s', but must be numbers with commas between them, as "
				"in %s=1,3",
				key, value, key);
		vec_push(out, v);
	}
	return 0;
}

static int set_bool(const char *key, const char *value, bool *out, struct err *err)
{
	if (strcasecmp(value, "true") != 0 && strcasecmp(value, "false") != 0)
		return err_set(err, -EINVAL, "%s is '%s', but must be true or false", key, value);
	*out = strcasecmp(value, "true") == 0;
	return 0;
}

static int set_timing(struct draft *d, const char *value, struct err *err)
{
	if (streq(value, "now") && d->dialect != DIALECT_FILE) {
		d->now = true;
		return 0;
	}
	if (!streq(value, "before") && !streq(value, "after"))
		return err_set(err, -EINVAL, "timing is '%s', but must be before or after%s", value,
			       d->dialect == DIALECT_FILE ? "" : ", or now");
	d->f->after = streq(value, "after");
	return 0;
}

static int set_pages(struct draft *d, const char *value, struct err *err)
{
	static const char *const names[] = {
		[FAULT_PAGES_ALL] = "all",
		[FAULT_PAGES_FIRST] = "first",
		[FAULT_PAGES_LAST] = "last",
		[FAULT_PAGES_FIRST_HALF] = "first-half",
		[FAULT_PAGES_LAST_HALF] = "last-half",
		[FAULT_PAGES_RANDOM] = "random",
		[FAULT_PAGES_FIRST_AND_LAST] = "first-and-last",
		[FAULT_PAGES_INTERLEAVED] = "interleaved",
	};
	struct err ignored = ERR_INIT;

	const char *const *name = array_find(i, names, streq(names[i], value));
	if (name) {
		d->f->pages = (enum fault_pages)(name - names);
		return 0;
	}
	d->f->pages = FAULT_PAGES_LISTED;
	if (*value && !set_numbers("pages", value, &d->f->page_list, &ignored))
		return sort_unique("pages", &d->f->page_list, err);
	return err_set(err, -EINVAL,
		       "pages is '%s', but must be all, first, last, first-half, last-half, "
		       "first-and-last, interleaved, random, or numbers as in pages=1,3",
		       value);
}

static int set_survive(struct draft *d, const char *value, struct err *err)
{
	static const char *const names[] = {
		[FAULT_SURVIVE_NONE] = "none",	       [FAULT_SURVIVE_DATA] = "data",
		[FAULT_SURVIVE_METADATA] = "metadata", [FAULT_SURVIVE_LISTED] = "listed",
		[FAULT_SURVIVE_RANDOM] = "random",
	};

	const char *const *name = array_find(i, names, streq(names[i], value));
	if (name) {
		d->f->survive = (enum fault_survive)(name - names);
		return 0;
	}
	return err_set(err, -EINVAL,
		       "survive is '%s', but must be none, data, metadata, listed or random",
		       value);
}

static int set_errno(struct draft *d, const char *value, struct err *err)
{
	uint64_t v;

	if (!number_parse(value, &v) && v > 0 && v < 4096) {
		d->f->error = (int)v;
		return 0;
	}
	for (int e = 1; e < 4096; e++) {
		const char *name = strerrorname_np(e);

		if (name && strcasecmp(name, value) == 0) {
			d->f->error = e;
			return 0;
		}
	}
	return err_set(err, -EINVAL,
		       "error is '%s', which is no error; name it as in EIO, ENOSPC or EDQUOT",
		       value);
}

static int set_delay(struct draft *d, const char *value, struct err *err)
{
	struct err why = ERR_INIT;
	uint64_t ns;

	if (number_parse_duration(value, &ns, &why) || ns / 1000000 > 24 * 3600 * 1000)
		return err_set(err, -EINVAL,
			       "delay is '%s', but must be a time up to a day, as in 100ms or 2s",
			       value);
	d->f->delay_ms = ns / 1000000;
	return 0;
}

/* Sets a path: file, from, to and variants. `file` is the operation's, or for a sync the synced. */
static int set_path(struct draft *d, enum key k, const char *value, struct err *err)
{
	struct path_match *m = &d->f->from;
	struct path_match new = { .kind = PATH_ANY };
	int rc;

	if (k >= K_TO)
		m = &d->f->to;
	else if (k < K_FROM && d->f->type == FAULT_SYNC)
		m = &d->f->file;
	if (m->kind != PATH_ANY)
		return err_set(err, -EINVAL, "%s, but the path was given before; say it once",
			       keys[k].name);
	if (k == K_FILE || k == K_FROM || k == K_TO)
		rc = match_path(&new, keys[k].name, value, &d->at, err);
	else if (k == K_FILE_GLOB || k == K_FROM_GLOB || k == K_TO_GLOB)
		rc = match_glob(&new, keys[k].name, value, &d->at, err);
	else
		rc = match_regex(&new, keys[k].name, value, &d->at, d->dialect == DIALECT_LINE,
				 err);
	if (!rc)
		*m = new;
	return rc;
}

static int set_value(struct draft *d, enum key k, const char *value, struct err *err)
{
	struct fault *f = d->f;
	const char *name = keys[k].name;
	uint64_t size;
	int rc;

	switch (k) {
	case K_OP:
		return set_op(d, value, err);
	case K_TIMING:
		return set_timing(d, value, err);
	case K_OCCURRENCE:
		return set_number(name, value, &f->occurrence, err);
	case K_UNTIL:
		f->until = UINT64_MAX;
		return streq(value, "end") ? 0 : set_number(name, value, &f->until, err);
	case K_CRASH:
		return set_bool(name, value, &f->crash, err);
	case K_RETURN:
		return set_bool(name, value, &f->returns, err);
	case K_PERSIST:
		rc = set_numbers(name, value, &f->persist, err);
		return rc ? rc : sort_unique(name, &f->persist, err);
	case K_PARTS:
		rc = set_number(name, value, &f->parts, err);
		return rc || f->parts ? rc
				      : err_set(err, -EINVAL, "parts is 0, but must be 1 or more");
	case K_PARTS_BYTES:
		return set_numbers(name, value, &f->parts_bytes, err);
	case K_PAGES:
		return set_pages(d, value, err);
	case K_OTHERS:
		return set_bool(name, value, &f->others, err);
	case K_SURVIVE:
		return set_survive(d, value, err);
	case K_SURVIVORS:
		return match_glob(&f->survivors, name, value, &d->at, err);
	case K_SEED:
		return set_number(name, value, &f->seed, err);
	case K_ERROR:
		return set_errno(d, value, err);
	case K_KEEP_DIRTY:
		return set_bool(name, value, &f->keep_dirty, err);
	case K_BYTES:
		if (number_parse_size(value, &size, err))
			return err_context(err, "bytes");
		f->bytes = size;
		return 0;
	case K_DELAY:
		return set_delay(d, value, err);
	default:
		return set_path(d, k, value, err);
	}
}

int draft_set(struct draft *d, const char *key, const char *value, struct err *err)
{
	enum key k = find_key(key);

	if (k == K_END || !(keys[k].types & BIT(d->f->type))) {
		auto_strbuf hint = STRBUF_INIT;

		draft_hint(d, key, &hint);
		return err_set(err, -EINVAL, "'%s' is nothing that %s takes%s", key,
			       fault_type_name(d->f->type), strbuf_str(&hint));
	}
	if (given(d, k))
		return err_set(err, -EINVAL, "%s is given twice; say it once", keys[k].name);
	d->given |= 1ull << k;
	strbuf_addf(&d->f->text, " %s=", keys[k].name);
	if (value[strcspn(value, " \t\n\"'\\")])
		words_quote(value, &d->f->text);
	else
		strbuf_adds(&d->f->text, value);
	return set_value(d, k, value, err);
}

/* ---- the whole ---- */

static int needs(const struct draft *d, enum key k, struct err *err)
{
	static const char *const examples[K_END] = {
		[K_BYTES] = "bytes, after how many it stops, as in bytes=512",
		[K_ERROR] = "error, what it fails with, as in error=EIO",
		[K_PERSIST] = "persist, what of it is durable, as in persist=1,3",
	};

	assert(examples[k]);
	return given(d, k) ? 0
			   : err_set(err, -EINVAL, "%s needs %s", fault_type_name(d->f->type),
				     examples[k]);
}

static int check_tearing(struct draft *d, struct err *err)
{
	if (!given(d, K_OP))
		d->f->op = POSIX_WRITE; /* no other operation can be torn */
	if (d->f->from.kind == PATH_ANY)
		return err_set(err, -EINVAL,
			       "%s needs file, the path of the file whose writes it tears",
			       fault_type_name(d->f->type));
	d->f->crash = true;
	return needs(d, K_PERSIST, err);
}

/* Checks a sync: without a path of its own, it syncs the file of its operation. */
static int check_sync(struct draft *d, bool waits, struct err *err)
{
	struct fault *f = d->f;

	if (f->file.kind == PATH_ANY && f->from.kind == PATH_ANY)
		return err_set(err, -EINVAL, "%s needs file, the path of what becomes durable",
			       fault_type_name(f->type));
	if (waits && f->from.kind == PATH_ANY && f->to.kind == PATH_ANY) {
		f->from = f->file;
		f->file = (struct path_match){ .kind = PATH_ANY };
	}
	return 0;
}

static bool says_where(const struct fault *f)
{
	return f->from.kind != PATH_ANY || f->to.kind != PATH_ANY;
}

/* Refuses the commands that LazyFS refuses. */
static int check_where(const struct draft *d, struct err *err)
{
	const struct fault *f = d->f;

	if (d->dialect == DIALECT_OURS || says_where(f) || f->type == FAULT_SYNC)
		return 0;
	return err_set(err, -EINVAL, "%s needs %s, the path of the file that it is about",
		       fault_type_name(f->type), d->dialect == DIALECT_LINE ? "from_rgx" : "from");
}

/* Returns 1 if the fault waits for an operation, 0 if it strikes now. */
static int check_when(const struct draft *d, struct err *err)
{
	const struct fault *f = d->f;
	bool may_be_now =
		(f->type == FAULT_CRASH || f->type == FAULT_CLEAR || f->type == FAULT_SYNC) &&
		d->dialect != DIALECT_FILE;
	bool waits = given(d, K_OP) || says_where(f) || given(d, K_OCCURRENCE) || given(d, K_UNTIL);

	if (d->now && waits)
		return err_set(err, -EINVAL,
			       "timing is now, so %s cannot wait for an operation as well",
			       fault_type_name(f->type));
	if (given(d, K_OP))
		return 1;
	if (may_be_now && !waits && (d->now || !given(d, K_TIMING)))
		return 0;
	return err_set(err, -EINVAL, "%s needs op, the operation that it waits for",
		       fault_type_name(f->type));
}

int draft_finish(struct draft *d, struct fault **out, struct err *err)
{
	struct fault *f = d->f;
	bool tears = TEARING & BIT(f->type);
	int rc = 0, waits = 1;

	if (f->type == FAULT_CRASH)
		f->crash = true;
	if (f->type == FAULT_SHORT)
		rc = needs(d, K_BYTES, err);
	if (f->type == FAULT_ERROR)
		rc = needs(d, K_ERROR, err);
	if (f->survivors.kind != PATH_ANY && !given(d, K_SURVIVE))
		f->survive = FAULT_SURVIVE_LISTED;
	if (!rc && tears)
		rc = check_tearing(d, err);
	else if (!rc)
		rc = waits = check_when(d, err);
	if (rc >= 0 && f->type == FAULT_SYNC)
		rc = check_sync(d, waits, err);
	if (rc >= 0 && waits)
		rc = check_where(d, err);
	if (rc >= 0)
		rc = fault_check(f, err);
	if (rc < 0)
		return rc;
	*out = steal(d->f);
	return waits;
}
