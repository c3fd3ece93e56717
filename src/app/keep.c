/* SPDX-License-Identifier: MIT */
#include "app/keep.h"

#include <errno.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/number.h"

enum { FILE_MAX = 64 << 20 };

/* ---- keys and values ---- */

static void put(struct strbuf *sb, const char *key, const char *value)
{
	if (!value)
		return;
	strbuf_addf(sb, "%s\t", key);
	for (; *value; value++)
		if (*value == '\n')
			strbuf_adds(sb, "\\n");
		else if (*value == '\t')
			strbuf_adds(sb, "\\t");
		else if (*value == '\\')
			strbuf_adds(sb, "\\\\");
		else
			strbuf_addch(sb, *value);
	strbuf_addch(sb, '\n');
}

static void put_number(struct strbuf *sb, const char *key, uint64_t value)
{
	strbuf_addf(sb, "%s\t%llu\n", key, (unsigned long long)value);
}

static void put_strings(struct strbuf *sb, const char *key, const struct app_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		put(sb, key, s->v[i]);
}

static char *unescape(const char *s, size_t len)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_grow(&sb, len);
	for (size_t i = 0; i < len; i++) {
		if (s[i] != '\\' || i + 1 == len) {
			strbuf_addch(&sb, s[i]);
			continue;
		}
		i++;
		strbuf_addch(&sb, s[i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i]);
	}
	strbuf_add(&sb, "", 0);
	return sb.buf ? strbuf_detach(&sb) : xstrdup("");
}

enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_LIST, FIELD_HARM, FIELD_DOUBLE };

struct field {
	struct trust_key key; /* its name, and what its value leads to */
	enum field_kind kind;
	size_t at;
};

static int take(const struct field *f, void *out, const char *value, size_t len)
{
	void *to = (char *)out + f->at;
	auto_free char *text = unescape(value, len);
	uint64_t n = 0;

	switch (f->kind) {
	case FIELD_TEXT:
		free(*(char **)to);
		*(char **)to = steal(text);
		return 0;
	case FIELD_LIST:
		vec_push((struct app_strings *)to, steal(text));
		return 0;
	case FIELD_HARM:
		*(enum app_harm *)to = app_harm_find(text, strlen(text));
		return *(enum app_harm *)to == APP_HARM_END ? -EINVAL : 0;
	case FIELD_DOUBLE:
		*(double *)to = strtod(text, NULL);
		return 0;
	case FIELD_NUMBER:
	case FIELD_BOOL:
		break;
	}
	if (number_parse(text, &n))
		return -EINVAL;
	if (f->kind == FIELD_BOOL)
		*(bool *)to = n;
	else
		*(uint64_t *)to = n;
	return 0;
}

/* Keys that are not known are passed over: a newer version may have more. */
static int parse(const char *name, const struct strbuf *text, const struct field *fields, size_t n,
		 void *out, struct err *err)
{
	const char *p = strbuf_str(text), *end = p + text->len;
	unsigned line = 0;

	while (p < end) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		const char *last = stop ? stop : end;
		const char *tab = memchr(p, '\t', (size_t)(last - p));

		line++;
		if (!tab)
			return err_set(err, -EINVAL, "%s, line %u: no key and value", name, line);
		for (size_t i = 0; i < n; i++)
			if (strlen(fields[i].key.name) == (size_t)(tab - p) &&
			    strncmp(fields[i].key.name, p, (size_t)(tab - p)) == 0 &&
			    take(&fields[i], out, tab + 1, (size_t)(last - tab - 1)))
				return err_set(err, -EINVAL, "%s, line %u: no such value of %s",
					       name, line, fields[i].key.name);
		p = stop ? stop + 1 : end;
	}
	return 0;
}

static void print(struct strbuf *sb, const struct field *fields, size_t n, const void *from)
{
	for (size_t i = 0; i < n; i++) {
		const void *p = (const char *)from + fields[i].at;

		switch (fields[i].kind) {
		case FIELD_TEXT:
			put(sb, fields[i].key.name, *(char *const *)p);
			break;
		case FIELD_LIST:
			put_strings(sb, fields[i].key.name, p);
			break;
		case FIELD_NUMBER:
			put_number(sb, fields[i].key.name, *(const uint64_t *)p);
			break;
		case FIELD_BOOL:
			put_number(sb, fields[i].key.name, *(const bool *)p);
			break;
		case FIELD_HARM:
			put(sb, fields[i].key.name, app_harm_name(*(const enum app_harm *)p));
			break;
		case FIELD_DOUBLE:
			strbuf_addf(sb, "%s\t%.9g\n", fields[i].key.name, *(const double *)p);
			break;
		}
	}
}

/* ---- harm ---- */

static const struct {
	const char *name, *words;
} harms[APP_HARM_END] = {
	[APP_UNAVAILABLE] = { "unavailable", "the application does not come up again" },
	[APP_ROLLED_BACK] = { "rolled-back", "what was acknowledged is gone" },
	[APP_SILENT_LOSS] = { "silent-loss", "data is gone, and nothing says so" },
	[APP_CORRUPT] = { "corruption", "what is there was never written like that" },
	[APP_HANG] = { "hang", "it does not come to an end" },
	[APP_FAILED] = { "failed", "the check fails" },
};

const char *app_harm_name(enum app_harm h)
{
	return harms[h].name;
}

const char *app_harm_words(enum app_harm h)
{
	return harms[h].words;
}

enum app_harm app_harm_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < APP_HARM_END; i++)
		if (strlen(harms[i].name) == len && strncmp(harms[i].name, name, len) == 0)
			return (enum app_harm)i;
	return APP_HARM_END;
}

/* ---- plan ---- */

#define PLAN(key, leads, kind, member)                                                             \
	{                                                                                          \
		{ key, leads }, kind, offsetof(struct app_plan, member)                            \
	}

static const struct field plan_fields[] = {
	PLAN("dir", TRUST_FILE, FIELD_TEXT, dir),
	PLAN("run", TRUST_HARMLESS, FIELD_TEXT,
	     run), /* what was done: it is told, and not run again */
	PLAN("check", TRUST_COMMAND, FIELD_TEXT, check),
	PLAN("restart", TRUST_COMMAND, FIELD_TEXT, restart),
	PLAN("query", TRUST_COMMAND, FIELD_TEXT, query),
	PLAN("stop", TRUST_HARMLESS, FIELD_TEXT, stop), /* the same */
	PLAN("kill", TRUST_HARMLESS, FIELD_BOOL, kill),
	PLAN("profile", TRUST_HARMLESS, FIELD_TEXT, profile),
	PLAN("ack-file", TRUST_HARMLESS, FIELD_TEXT, ack_file), /* its lines are in the trace */
	PLAN("unit", TRUST_HARMLESS, FIELD_NUMBER, unit),
	PLAN("max-subset", TRUST_HARMLESS, FIELD_NUMBER, max_subset),
	PLAN("budget", TRUST_HARMLESS, FIELD_NUMBER, budget),
	PLAN("seed", TRUST_HARMLESS, FIELD_NUMBER, seed),
	PLAN("timeout-ms", TRUST_HARMLESS, FIELD_NUMBER, timeout_ms),
	PLAN("stacks", TRUST_HARMLESS, FIELD_BOOL, stacks),
	PLAN("root-ino", TRUST_HARMLESS, FIELD_NUMBER, root_ino),
};

void app_plan_release(struct app_plan *p)
{
	free(p->dir);
	free(p->run);
	free(p->check);
	free(p->restart);
	free(p->query);
	free(p->stop);
	free(p->profile);
	free(p->ack_file);
	*p = (struct app_plan){ 0 };
}

const char *app_plan_asks(const struct app_plan *p)
{
	return p->check ? "check" : p->restart ? "restart" : "query";
}

int app_plan_save(const char *run, const struct app_plan *p, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	print(&text, plan_fields, ARRAY_SIZE(plan_fields), p);
	return io_write_file(run, "app", strbuf_str(&text), text.len, 0, err);
}

int app_plan_load(const char *run, struct app_plan *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct app_plan p = { 0 };
	int rc = io_slurp_file(run, "app", FILE_MAX, &text, err);

	if (!rc)
		rc = parse("app", &text, plan_fields, ARRAY_SIZE(plan_fields), &p, err);
	if (!rc && (!p.dir || !p.run || !p.profile || !(p.check || p.restart || p.query)))
		rc = err_set(err, -EINVAL, "%s/app does not say what was run", run);
	if (rc)
		app_plan_release(&p);
	else
		*out = p;
	return rc;
}

bool app_is_run(const char *dir)
{
	return below_has_file(dir, "app");
}

bool app_is_finished(const char *dir)
{
	return below_has_file(dir, "summary");
}

bool app_is_case(const char *dir)
{
	auto_free char *run = app_run_of(dir), *at = below_case(dir);

	return below_has_file(at, "case") && app_is_run(run);
}

char *app_run_of(const char *case_dir)
{
	return below_run_of(case_dir);
}

/* ---- cases ---- */

#define CASE(key, leads, kind, member)                                                             \
	{                                                                                          \
		{ key, leads }, kind, offsetof(struct app_case, member)                            \
	}

static const struct field case_fields[] = {
	CASE("state", TRUST_HARMLESS, FIELD_TEXT, state),
	CASE("point", TRUST_HARMLESS, FIELD_NUMBER, point),
	CASE("acks", TRUST_HARMLESS, FIELD_NUMBER, acks),
	CASE("states", TRUST_HARMLESS, FIELD_NUMBER, states),
	CASE("harm", TRUST_HARMLESS, FIELD_HARM, harm),
	CASE("title", TRUST_HARMLESS, FIELD_TEXT, title),
	CASE("fix", TRUST_HARMLESS, FIELD_TEXT, fix),
	CASE("verified", TRUST_HARMLESS, FIELD_BOOL, verified),
	CASE("cause", TRUST_HARMLESS, FIELD_TEXT, cause),
	CASE("lost", TRUST_HARMLESS, FIELD_LIST, lost),
	CASE("after", TRUST_HARMLESS, FIELD_LIST, after),
	CASE("seen", TRUST_HARMLESS, FIELD_TEXT, seen),
	CASE("shown", TRUST_HARMLESS, FIELD_NUMBER, shown),
	CASE("asked", TRUST_HARMLESS, FIELD_NUMBER, asked),
	CASE("unexplained", TRUST_HARMLESS, FIELD_BOOL, unexplained),
};

void app_strings_release(struct app_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	vec_release(s);
}

void app_case_release(struct app_case *c)
{
	free(c->dir);
	free(c->state);
	free(c->title);
	free(c->fix);
	free(c->cause);
	free(c->seen);
	app_strings_release(&c->lost);
	app_strings_release(&c->after);
	strbuf_release(&c->said);
	*c = (struct app_case){ 0 };
}

/* ---- marks ---- */

static int mark_run(const char *run, bool verify, struct err *err)
{
	static const struct trust_file files[] = {
		{ .name = "app" }, { .name = "trace" }, { .name = "stacks" }, { .name = "shown" }
	};
	static const struct trust_set set = { .kind = "app-run",
					      .files = files,
					      .n = ARRAY_SIZE(files),
					      .tree = "base",
					      .keep = true };

	return verify ? trust_verify(run, &set, err) : trust_mark(run, &set, err);
}

/* With the mark of its run, so that all of that is covered; `text` is what "case" will hold. */
static int mark_case(const char *run, const char *dir, const struct strbuf *text, bool verify,
		     struct err *err)
{
	auto_strbuf above = STRBUF_INIT;
	struct err none = ERR_INIT;
	/* Where it is not there, nothing is. */
	int rc = io_slurp_file(run, TRUST_MARK, FILE_MAX, &above, &none);
	const struct trust_file files[] = {
		{ "run", rc ? "" : strbuf_str(&above), rc ? 0 : above.len },
		{ "case", text ? strbuf_str(text) : NULL, text ? text->len : 0 },
		{ .name = "said" },
	};
	const struct trust_set set = { .kind = "app-case", .files = files, .n = ARRAY_SIZE(files) };

	return verify ? trust_verify(dir, &set, err) : trust_mark(dir, &set, err);
}

int app_run_mark(const char *run, struct err *err)
{
	return mark_run(run, false, err);
}

bool app_key(size_t i, struct trust_key *out)
{
	bool plan = i < ARRAY_SIZE(plan_fields);
	size_t n = plan ? i : i - ARRAY_SIZE(plan_fields);

	if (!plan && n >= ARRAY_SIZE(case_fields))
		return false;
	*out = plan ? plan_fields[n].key : case_fields[n].key;
	return true;
}

/* Commands first: a directory alone would be harmless. */
static void plan_would(const struct app_plan *p, struct strbuf *would)
{
	for (size_t i = 0; i < 2 * ARRAY_SIZE(plan_fields); i++) {
		const struct field *f = &plan_fields[i % ARRAY_SIZE(plan_fields)];
		char *const *value = (char *const *)((const char *)p + f->at);
		bool first = i < ARRAY_SIZE(plan_fields);

		if (f->kind == FIELD_TEXT && *value && (f->key.leads == TRUST_COMMAND) == first)
			trust_would(f->key, *value, would);
	}
}

int app_trust(const char *run, const char *case_dir, struct app_plan *p, bool trust,
	      struct err *err)
{
	auto_free char *shown = below_run_of(case_dir), *at = below_case(case_dir);
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	p->ours = trust || (!mark_run(run, true, &why) && !mark_case(run, at, NULL, true, &why));
	plan_would(p, &would);
	return p->ours ? 0 : trust_refuse(shown, "app", &why, &would, "", err);
}

/* ---- a case in its directory ---- */

/* Where links cannot be made, the run's own is read. */
static void link_trace(const char *run, const struct io_newdir *to)
{
	struct err ignored = ERR_INIT;
	auto_fd from = below_open_dir(run, NULL, &ignored);

	if (from >= 0 && linkat(from, "trace", to->fd, "trace", 0) < 0)
		errno = 0;
}

static int save_case(const char *run, uint64_t n, const struct app_case *c, bool durable,
		     struct err *err)
{
	auto_free char *name = xasprintf("findings/%llu", (unsigned long long)n);
	auto_newdir dir = IO_NEWDIR_INIT;
	auto_strbuf text = STRBUF_INIT;
	int rc = below_make_dir(run, "findings", err);

	if (!rc)
		rc = io_newdir_open(run, name, &dir, err);
	print(&text, case_fields, ARRAY_SIZE(case_fields), c);
	if (!rc)
		rc = io_write_file(dir.path, "said", strbuf_str(&c->said), c->said.len, 0, err);
	if (!rc)
		rc = mark_case(run, dir.path, &text, false, err);
	if (!rc)
		rc = io_write_file(dir.path, "case", strbuf_str(&text), text.len, 0, err);
	if (rc)
		return rc;
	link_trace(run, &dir);
	dir.unsynced = !durable;
	return io_newdir_commit(&dir, err);
}

int app_case_save(const char *run, uint64_t n, const struct app_case *c, struct err *err)
{
	return save_case(run, n, c, true, err);
}

int app_case_save_first(const char *run, uint64_t n, const struct app_case *c, struct err *err)
{
	return save_case(run, n, c, false, err);
}

int app_run_sync(const char *run, struct err *err)
{
	static const char *const names[] = { "app", "base", "trace", "stacks", "shown", NULL };

	return io_sync_run(run, names, err);
}

int app_case_remove(const char *run, uint64_t n, struct err *err)
{
	auto_free char *name = xasprintf("findings/%llu", (unsigned long long)n);

	return below_remove_whole(run, name, err);
}

int app_case_load(const char *dir, struct app_case *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *at = below_case(dir);
	struct app_case c = { 0 };
	int rc = io_slurp_file(at, "case", FILE_MAX, &text, err);

	if (!rc)
		rc = parse("case", &text, case_fields, ARRAY_SIZE(case_fields), &c, err);
	if (!rc && (!c.state || !c.title))
		rc = err_set(err, -EINVAL, "%s/case does not say which state it is", dir);
	if (!rc && below_exists(at, "said"))
		rc = io_slurp_file(at, "said", FILE_MAX, &c.said, err);
	if (rc) {
		app_case_release(&c);
		return rc;
	}
	c.dir = xstrdup(dir);
	*out = c;
	return 0;
}

int app_case_list(const char *run, struct app_strings *out, struct err *err)
{
	struct below_names names = { 0 };
	uint64_t n;
	int rc = below_exists(run, "findings") ? below_list(run, "findings", &names, err) : 0;

	for (size_t i = 0; i < names.n; i++)
		if (!number_parse(names.v[i], &n))
			vec_push(out, xasprintf("%s/findings/%s", run, names.v[i]));
	below_names_release(&names);
	return rc;
}

/* ---- summary ---- */

#define SUMMARY(key, leads, kind, member)                                                          \
	{                                                                                          \
		{ key, leads }, kind, offsetof(struct app_summary, member)                         \
	}

static const struct field summary_fields[] = {
	SUMMARY("operations", TRUST_HARMLESS, FIELD_NUMBER, operations),
	SUMMARY("acks", TRUST_HARMLESS, FIELD_NUMBER, acks),
	SUMMARY("crash-states", TRUST_HARMLESS, FIELD_NUMBER, crash_states),
	SUMMARY("unique-states", TRUST_HARMLESS, FIELD_NUMBER, unique_states),
	SUMMARY("checked", TRUST_HARMLESS, FIELD_NUMBER, checked),
	SUMMARY("findings", TRUST_HARMLESS, FIELD_NUMBER, findings),
	SUMMARY("unexplained", TRUST_HARMLESS, FIELD_NUMBER, unexplained),
	SUMMARY("failing", TRUST_HARMLESS, FIELD_NUMBER, failing),
	SUMMARY("patterns", TRUST_HARMLESS, FIELD_NUMBER, patterns),
	SUMMARY("patterns-covered", TRUST_HARMLESS, FIELD_NUMBER, covered),
	SUMMARY("errors", TRUST_HARMLESS, FIELD_NUMBER, errors),
	SUMMARY("elapsed", TRUST_HARMLESS, FIELD_DOUBLE, elapsed_s),
	SUMMARY("left-out", TRUST_HARMLESS, FIELD_DOUBLE, left_out),
	SUMMARY("budget-hit", TRUST_HARMLESS, FIELD_BOOL, budget_hit),
	SUMMARY("note", TRUST_HARMLESS, FIELD_LIST, notes),
};

void app_summary_release(struct app_summary *s)
{
	app_strings_release(&s->notes);
	*s = (struct app_summary){ 0 };
}

int app_summary_save(const char *run, const struct app_summary *s, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	print(&text, summary_fields, ARRAY_SIZE(summary_fields), s);
	return io_keep_file(run, "summary", strbuf_str(&text), text.len, err);
}

int app_summary_load(const char *run, struct app_summary *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct app_summary s = { 0 };
	int rc = io_slurp_file(run, "summary", FILE_MAX, &text, err);

	if (!rc)
		rc = parse("summary", &text, summary_fields, ARRAY_SIZE(summary_fields), &s, err);
	if (rc)
		app_summary_release(&s);
	else
		*out = s;
	return rc;
}
