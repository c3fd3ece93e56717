/* SPDX-License-Identifier: MIT */
/*
 * config.c - reads the configuration file: LazyFS's, with a table [outage] for settings that LazyFS
 * does not have.
 *
 * A key that some version of LazyFS has, and that has no effect here, is a warning; any other
 * unknown key is an error, as it may be a typing error that would make a test pass for the wrong
 * reason.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/io.h"
#include "base/number.h"
#include "base/similar.h"
#include "base/toml.h"
#include "inject/internal.h"

enum { CONFIG_MAX = 1 << 20, BLOCK = 4096, PAGE_MIN = 512, PAGE_MAX = 1 << 20 };

struct config_reader {
	const char *path;
	struct inject_places at;
	struct inject_config *c;
	uint64_t page_blocks; /* blocks_per_page */
	bool simple, manual;
	struct vec_of(unsigned) lines; /* lines of the faults */
	struct err *err;
};

enum setting_kind {
	SET_TEXT,  /* char *; an empty text is NULL */
	SET_BOOL,  /* bool */
	SET_SIZE,  /* uint64_t: "0.5GB", or an integer */
	SET_COUNT, /* uint64_t: an integer, 1 or more */
	SET_PAGE,  /* uint32_t: an integer, the size of a page or block */
	SET_OLD,   /* has no effect here */
};

struct setting {
	const char *name;
	enum setting_kind kind;
	bool in_reader; /* otherwise it is in inject_config */
	size_t where;
};

#define IN_CONFIG(member) false, offsetof(struct inject_config, member)

static const struct setting faults_settings[] = {
	{ "fifo_path", SET_TEXT, IN_CONFIG(fifo) },
	{ "fifo_path_completed", SET_TEXT, IN_CONFIG(fifo_completed) },
	{ 0 },
};

static const struct setting cache_settings[] = {
	{ "apply_eviction", SET_BOOL, IN_CONFIG(evict) },
	{ 0 },
};

static const struct setting simple_settings[] = {
	{ "custom_size", SET_SIZE, IN_CONFIG(cache_bytes) },
	{ "blocks_per_page", SET_COUNT, true, offsetof(struct config_reader, page_blocks) },
	{ 0 },
};

static const struct setting manual_settings[] = {
	{ "io_block_size", SET_PAGE, IN_CONFIG(block_size) },
	{ "page_size", SET_PAGE, IN_CONFIG(page_size) },
	{ "no_pages", SET_COUNT, IN_CONFIG(pages) },
	{ 0 },
};

static const struct setting filesystem_settings[] = {
	{ "log_all_operations", SET_BOOL, IN_CONFIG(log_all) },
	{ "logfile", SET_TEXT, IN_CONFIG(logfile) },
	{ "sync_after_rename", SET_OLD, false, 0 },
	{ 0 },
};

static const struct setting outage_settings[] = {
	{ "profile", SET_TEXT, IN_CONFIG(profile) },
	{ "socket", SET_TEXT, IN_CONFIG(socket) },
	{ "trace", SET_TEXT, IN_CONFIG(trace) },
	{ 0 },
};

static void printf_like(3, 4) warn(struct config_reader *r, unsigned line, const char *fmt, ...)
{
	auto_strbuf text = STRBUF_INIT;
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	strbuf_addf(&text, "%s:%u: %s", r->path, line, what);
	vec_push(&r->c->warnings, strbuf_detach(&text));
}

static int wrong_type(struct config_reader *r, const struct toml_value *v, const char *want)
{
	return err_set(r->err, -EINVAL, "%s:%u: %s must be %s, not %s", r->path, v->line,
		       v->key ? v->key : "this", want, toml_type_name(v->type));
}

/* ---- settings ---- */

static int get_size(struct config_reader *r, const struct toml_value *v, uint64_t *out)
{
	struct err why = ERR_INIT;

	if (v->type == TOML_INTEGER && v->integer > 0) {
		*out = (uint64_t)v->integer;
		return 0;
	}
	if (v->type != TOML_STRING)
		return wrong_type(r, v, "a size in quotes, as in \"0.5GB\"");
	if (number_parse_size(v->string, out, &why) || !*out)
		return err_set(
			r->err, -EINVAL,
			"%s:%u: %s is '%s', but must be a size, as in \"0.5GB\" or \"100Mb\"",
			r->path, v->line, v->key, v->string);
	return 0;
}

static int get_count(struct config_reader *r, const struct toml_value *v, uint64_t most,
		     uint64_t *out)
{
	if (v->type != TOML_INTEGER)
		return wrong_type(r, v, "an integer");
	if (v->integer < 1 || (uint64_t)v->integer > most)
		return err_set(r->err, -EINVAL,
			       "%s:%u: %s is %" PRId64 ", but must be from 1 to %" PRIu64, r->path,
			       v->line, v->key, v->integer, most);
	*out = (uint64_t)v->integer;
	return 0;
}

static int get_text(struct config_reader *r, const struct toml_value *v, char **out)
{
	if (v->type != TOML_STRING)
		return wrong_type(r, v, "a string");
	free(*out);
	*out = *v->string ? xstrdup(v->string) : NULL;
	return 0;
}

static int get_setting(struct config_reader *r, const struct setting *s, const struct toml_value *v)
{
	char *base = s->in_reader ? (char *)r : (char *)r->c;
	void *to = base + s->where;
	uint64_t n;
	int rc;

	switch (s->kind) {
	case SET_TEXT:
		return get_text(r, v, to);
	case SET_BOOL:
		if (v->type != TOML_BOOL)
			return wrong_type(r, v, "true or false");
		*(bool *)to = v->boolean;
		return 0;
	case SET_SIZE:
		return get_size(r, v, to);
	case SET_COUNT:
		return get_count(r, v, INT64_MAX / PAGE_MAX, to);
	case SET_PAGE:
		rc = get_count(r, v, PAGE_MAX, &n);
		if (!rc)
			*(uint32_t *)to = (uint32_t)n;
		return rc;
	case SET_OLD:
		warn(r, v->line, "%s means nothing here and is left out", v->key);
		return 0;
	}
	return 0;
}

/* Reports an unknown key. `names` are the known tables, such as "simple", beside the settings. */
static int unknown(struct config_reader *r, const struct toml_value *v, const char *where,
		   const struct setting *settings, const char *const *names)
{
	auto_strbuf list = STRBUF_INIT;
	const char *words[16];
	size_t n = 0;

	for (; settings && settings->name; settings++)
		if (settings->kind != SET_OLD)
			words[n++] = settings->name;
	for (; names && *names; names++)
		words[n++] = *names;
	words[n] = NULL;
	const char *like = similar_of(v->key, words);

	if (like)
		return err_set(r->err, -EINVAL, "%s:%u: '%s' is not known%s; did you mean '%s'?",
			       r->path, v->line, v->key, where, like);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&list, "%s%s", i ? ", " : "", words[i]);
	return err_set(r->err, -EINVAL, "%s:%u: '%s' is not known%s; known are %s", r->path,
		       v->line, v->key, where, strbuf_str(&list));
}

static const struct setting *find_setting(const struct setting *s, const char *name)
{
	while (s->name && !streq(s->name, name))
		s++;
	return s->name ? s : NULL;
}

static int read_settings(struct config_reader *r, const struct toml_value *table, const char *where,
			 const struct setting *settings)
{
	int rc = 0;

	if (table->type != TOML_TABLE)
		return wrong_type(r, table, "a table");
	for (const struct toml_value *v = table->first; !rc && v; v = v->next) {
		const struct setting *s = find_setting(settings, v->key);

		if (settings == outage_settings && streq(v->key, "profile"))
			r->c->profile_line = v->line;

		rc = s ? get_setting(r, s, v) : unknown(r, v, where, settings, NULL);
	}
	return rc;
}

static int read_cache(struct config_reader *r, const struct toml_value *table)
{
	static const char *const tables[] = { "simple", "manual", NULL };
	int rc = 0;

	if (table->type != TOML_TABLE)
		return wrong_type(r, table, "a table");
	for (const struct toml_value *v = table->first; !rc && v; v = v->next) {
		const struct setting *s = find_setting(cache_settings, v->key);

		if (s) {
			rc = get_setting(r, s, v);
		} else if (streq(v->key, "simple")) {
			r->simple = true;
			rc = read_settings(r, v, " in [cache.simple]", simple_settings);
		} else if (streq(v->key, "manual")) {
			r->manual = true;
			if (toml_get(table, "simple"))
				warn(r, v->line,
				     "[cache.manual] is left out, as there is [cache.simple]");
			else
				rc = read_settings(r, v, " in [cache.manual]", manual_settings);
		} else {
			rc = unknown(r, v, " in [cache]", cache_settings, tables);
		}
	}
	return rc;
}

static bool is_page(uint64_t size)
{
	return size >= PAGE_MIN && size <= PAGE_MAX && !(size & (size - 1));
}

/* Returns the line of a key in [cache.TABLE]; if there is none, that of the table. */
static unsigned line_of(const struct toml_value *cache, const char *table, const char *key)
{
	const struct toml_value *t = toml_get(cache, table);
	const struct toml_value *v = t ? toml_get(t, key) : NULL;

	return v ? v->line : t ? t->line : cache->line;
}

static int check_cache(struct config_reader *r, const struct toml_value *cache)
{
	struct inject_config *c = r->c;

	if (r->simple) {
		uint64_t page = r->page_blocks ? r->page_blocks * BLOCK : BLOCK;

		if (!is_page(page))
			return err_set(r->err, -EINVAL,
				       "%s:%u: blocks_per_page is %" PRIu64
				       ", but must be a power of two up to %d",
				       r->path, line_of(cache, "simple", "blocks_per_page"),
				       r->page_blocks, PAGE_MAX / BLOCK);
		c->block_size = BLOCK;
		c->page_size = (uint32_t)page;
		if (c->cache_bytes && c->cache_bytes < page)
			return err_set(r->err, -EINVAL,
				       "%s:%u: custom_size is %" PRIu64
				       " bytes, less than a page of %" PRIu64,
				       r->path, line_of(cache, "simple", "custom_size"),
				       c->cache_bytes, page);
		c->pages = c->cache_bytes / page;
		return 0;
	}
	if (c->page_size && !is_page(c->page_size))
		return err_set(r->err, -EINVAL,
			       "%s:%u: page_size is %" PRIu32
			       ", but must be a power of two from %d to %d",
			       r->path, line_of(cache, "manual", "page_size"), c->page_size,
			       PAGE_MIN, PAGE_MAX);
	if (c->block_size && (c->page_size ? c->page_size : BLOCK) % c->block_size)
		return err_set(r->err, -EINVAL,
			       "%s:%u: io_block_size is %" PRIu32
			       ", but a page must be a whole number of blocks",
			       r->path, line_of(cache, "manual", "io_block_size"), c->block_size);
	if (r->manual)
		c->cache_bytes = c->pages * (c->page_size ? c->page_size : BLOCK);
	return 0;
}

/* ---- faults ---- */

static int numbers_to_text(struct config_reader *r, const struct toml_value *v, const char *want,
			   struct strbuf *out)
{
	for (const struct toml_value *i = v->first; i; i = i->next) {
		if (i->type != TOML_INTEGER)
			return wrong_type(r, v, want);
		strbuf_addf(out, "%s%" PRId64, out->len ? "," : "", i->integer);
	}
	return 0;
}

/* Converts a value to the text that a command would have; checks its type. */
static int to_text(struct config_reader *r, const struct toml_value *v, enum key_kind kind,
		   struct strbuf *out)
{
	static const char *const wants[] = {
		[KEY_TEXT] = "a string",
		[KEY_NUMBER] = "an integer",
		[KEY_NUMBERS] = "an array of integers, as in [1, 3]",
		[KEY_BOOL] = "true or false",
		[KEY_PAGES] = "a string or an array of integers",
		[KEY_EITHER] = "a string or an integer",
	};
	bool text = kind == KEY_TEXT || kind == KEY_PAGES || kind == KEY_EITHER;
	bool numbers = kind == KEY_NUMBERS || kind == KEY_PAGES;
	bool number = kind == KEY_NUMBER || kind == KEY_EITHER || numbers;

	if (v->type == TOML_STRING && text)
		strbuf_adds(out, v->string);
	else if (v->type == TOML_BOOL && kind == KEY_BOOL)
		strbuf_adds(out, v->boolean ? "true" : "false");
	else if (v->type == TOML_INTEGER && number)
		strbuf_addf(out, "%" PRId64, v->integer);
	else if (v->type == TOML_ARRAY && numbers)
		return numbers_to_text(r, v, wants[kind], out);
	else
		return wrong_type(r, v, wants[kind]);
	return 0;
}

static int read_key(struct config_reader *r, struct draft *d, const struct toml_value *v)
{
	auto_strbuf text = STRBUF_INIT;
	enum key_kind kind = KEY_TEXT;
	const char *name = draft_key(v->key, &kind);
	int rc = 0;

	if (name && !streq(name, v->key))
		warn(r, v->line, "'%s' is taken for '%s'", v->key, name);
	if (name)
		rc = to_text(r, v, kind, &text);
	if (rc)
		return rc;
	if (draft_set(d, v->key, strbuf_str(&text), r->err))
		return err_context(r->err, "%s:%u", r->path, v->line);
	return 0;
}

static int begin_fault(struct config_reader *r, const struct toml_value *table, struct draft *d)
{
	static const char *const types[] = { "crash",	 "clear-cache", "torn-op",
					     "torn-seq", "sync-pages",	"error",
					     "short",	 "delay",	NULL };
	const struct toml_value *type = toml_get(table, "type");

	if (!type)
		return err_set(r->err, -EINVAL,
			       "%s:%u: this [[injection]] needs a type, as in type=\"torn-op\"",
			       r->path, table->line);
	if (type->type != TOML_STRING)
		return wrong_type(r, type, "a string");
	if (draft_begin(d, type->string, DIALECT_FILE, &r->at)) {
		if (streq(type->string, "reorder") || streq(type->string, "split_write"))
			warn(r, type->line, "'%s' is taken for '%s'", type->string,
			     fault_type_name(d->f->type));
		return 0;
	}
	const char *like = similar_of(type->string, types);

	if (like)
		return err_set(r->err, -EINVAL, "%s:%u: there is no type '%s'; did you mean '%s'?",
			       r->path, type->line, type->string, like);
	return err_set(r->err, -EINVAL,
		       "%s:%u: there is no type '%s'; there are crash, clear-cache, torn-op, "
		       "torn-seq, sync-pages, error, short and delay",
		       r->path, type->line, type->string);
}

static int keep_fault(struct config_reader *r, struct fault *f, unsigned line)
{
	for (size_t i = 0; i < r->c->faults.n; i++) {
		if (!fault_conflicts(r->c->faults.v[i], f))
			continue;
		fault_free(f);
		return err_set(
			r->err, -EINVAL,
			"%s:%u: this %s is about the same file as the one in line %u; one file "
			"can have one",
			r->path, line, fault_type_name(r->c->faults.v[i]->type), r->lines.v[i]);
	}
	vec_push(&r->c->faults, f);
	vec_push(&r->lines, line);
	return 0;
}

/* Returns the line for a message: that of the key with which it begins, else the table's. */
static unsigned line_meant(const struct toml_value *table, const char *sentence)
{
	size_t n = strcspn(sentence, " ");

	for (const struct toml_value *v = table->first; v; v = v->next)
		if (strlen(v->key) == n && memcmp(v->key, sentence, n) == 0)
			return v->line;
	return table->line;
}

static int read_fault(struct config_reader *r, const struct toml_value *table)
{
	__attribute__((cleanup(draft_release))) struct draft d = { 0 };
	struct fault *f;
	int rc;

	if (table->type != TOML_TABLE)
		return wrong_type(r, table, "a table");
	rc = begin_fault(r, table, &d);
	for (const struct toml_value *v = table->first; !rc && v; v = v->next)
		if (!streq(v->key, "type"))
			rc = read_key(r, &d, v);
	if (rc)
		return rc;
	if (draft_finish(&d, &f, r->err) < 0)
		return err_context(r->err, "%s:%u", r->path, line_meant(table, r->err->msg));
	return keep_fault(r, f, table->line);
}

static int read_faults(struct config_reader *r, const struct toml_value *list)
{
	int rc = 0;

	if (list->type != TOML_ARRAY)
		return err_set(r->err, -EINVAL,
			       "%s:%u: write [[injection]] with two brackets; there may be several",
			       r->path, list->line);
	for (const struct toml_value *v = list->first; !rc && v; v = v->next)
		rc = read_fault(r, v);
	return rc;
}

/* ---- the file ---- */

static int read_table(struct config_reader *r, const struct toml_value *v)
{
	static const char *const names[] = { "faults",	  "cache",  "filesystem", "file system",
					     "injection", "outage", NULL };

	if (streq(v->key, "faults"))
		return read_settings(r, v, " in [faults]", faults_settings);
	if (streq(v->key, "filesystem") || streq(v->key, "file system"))
		return read_settings(r, v, " in [filesystem]", filesystem_settings);
	if (streq(v->key, "outage"))
		return read_settings(r, v, " in [outage]", outage_settings);
	if (streq(v->key, "injection"))
		return read_faults(r, v);
	if (streq(v->key, "cache")) {
		int rc = read_cache(r, v);
		return rc ? rc : check_cache(r, v);
	}
	return unknown(r, v, "", NULL, names);
}

int inject_config_parse(const char *text, size_t len, const char *path, const char *root,
			const char *mnt, struct inject_config *out, struct err *err)
{
	auto_toml doc = { 0 };
	struct inject_config c = { 0 };
	struct config_reader r = { .path = path, .at = { root, mnt }, .c = &c, .err = err };
	int rc = toml_parse(text, len, path, &doc, err);

	for (const struct toml_value *v = rc ? NULL : doc.root->first; !rc && v; v = v->next)
		rc = read_table(&r, v);
	vec_release(&r.lines);
	if (rc)
		inject_config_release(&c);
	else
		*out = c;
	return rc;
}

int inject_config_read(const char *path, const char *root, const char *mnt,
		       struct inject_config *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(path, CONFIG_MAX, &text, err);

	return rc ? rc
		  : inject_config_parse(strbuf_str(&text), text.len, path, root, mnt, out, err);
}

void inject_config_release(struct inject_config *c)
{
	free(c->fifo);
	free(c->fifo_completed);
	free(c->logfile);
	free(c->profile);
	free(c->socket);
	free(c->trace);
	vec_release_each(p, &c->faults, fault_free(*p));
	words_release(&c->warnings);
}
