/* SPDX-License-Identifier: MIT */
#include "app/keep.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

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
	const char *key;
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
			if (strlen(fields[i].key) == (size_t)(tab - p) &&
			    strncmp(fields[i].key, p, (size_t)(tab - p)) == 0 &&
			    take(&fields[i], out, tab + 1, (size_t)(last - tab - 1)))
				return err_set(err, -EINVAL, "%s, line %u: no such value of %s",
					       name, line, fields[i].key);
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
			put(sb, fields[i].key, *(char *const *)p);
			break;
		case FIELD_LIST:
			put_strings(sb, fields[i].key, p);
			break;
		case FIELD_NUMBER:
			put_number(sb, fields[i].key, *(const uint64_t *)p);
			break;
		case FIELD_BOOL:
			put_number(sb, fields[i].key, *(const bool *)p);
			break;
		case FIELD_HARM:
			put(sb, fields[i].key, app_harm_name(*(const enum app_harm *)p));
			break;
		case FIELD_DOUBLE:
			strbuf_addf(sb, "%s\t%.9g\n", fields[i].key, *(const double *)p);
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

#define PLAN(key, kind, member)                                                                    \
	{                                                                                          \
		key, kind, offsetof(struct app_plan, member)                                       \
	}

static const struct field plan_fields[] = {
	PLAN("dir", FIELD_TEXT, dir),
	PLAN("run", FIELD_TEXT, run),
	PLAN("check", FIELD_TEXT, check),
	PLAN("restart", FIELD_TEXT, restart),
	PLAN("query", FIELD_TEXT, query),
	PLAN("stop", FIELD_TEXT, stop),
	PLAN("kill", FIELD_BOOL, kill),
	PLAN("profile", FIELD_TEXT, profile),
	PLAN("ack-file", FIELD_TEXT, ack_file),
	PLAN("unit", FIELD_NUMBER, unit),
	PLAN("max-subset", FIELD_NUMBER, max_subset),
	PLAN("budget", FIELD_NUMBER, budget),
	PLAN("seed", FIELD_NUMBER, seed),
	PLAN("timeout-ms", FIELD_NUMBER, timeout_ms),
	PLAN("stacks", FIELD_BOOL, stacks),
	PLAN("root-ino", FIELD_NUMBER, root_ino),
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
	int rc = io_slurp_file(run, "app", FILE_MAX, &text, &p.ours, err);

	if (!rc)
		rc = parse("app", &text, plan_fields, ARRAY_SIZE(plan_fields), &p, err);
	if (!rc && (!p.dir || !p.profile || !(p.check || p.restart || p.query)))
		rc = err_set(err, -EINVAL, "%s/app does not say what was run", run);
	if (rc)
		app_plan_release(&p);
	else
		*out = p;
	return rc;
}

static bool has(const char *dir, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode);
}

bool app_is_run(const char *dir)
{
	return has(dir, "app");
}

bool app_is_finished(const char *dir)
{
	return has(dir, "summary");
}

bool app_is_case(const char *dir)
{
	auto_free char *run = app_run_of(dir);

	return has(dir, "case") && app_is_run(run);
}

char *app_run_of(const char *case_dir)
{
	return xasprintf("%s/../..", case_dir);
}

/* ---- cases ---- */

#define CASE(key, kind, member)                                                                    \
	{                                                                                          \
		key, kind, offsetof(struct app_case, member)                                       \
	}

static const struct field case_fields[] = {
	CASE("state", FIELD_TEXT, state),   CASE("point", FIELD_NUMBER, point),
	CASE("acks", FIELD_NUMBER, acks),   CASE("states", FIELD_NUMBER, states),
	CASE("harm", FIELD_HARM, harm),	    CASE("title", FIELD_TEXT, title),
	CASE("fix", FIELD_TEXT, fix),	    CASE("verified", FIELD_BOOL, verified),
	CASE("cause", FIELD_TEXT, cause),   CASE("lost", FIELD_LIST, lost),
	CASE("after", FIELD_LIST, after),   CASE("seen", FIELD_TEXT, seen),
	CASE("shown", FIELD_NUMBER, shown), CASE("asked", FIELD_NUMBER, asked),
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

static int make_dir(const char *path, struct err *err)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", path);
	return 0;
}

int app_case_save(const char *run, uint64_t n, const struct app_case *c, struct err *err)
{
	auto_free char *dir = xasprintf("%s/findings/%llu", run, (unsigned long long)n);
	auto_free char *all = xasprintf("%s/findings", run);
	auto_free char *trace = xasprintf("%s/trace", run), *own = xasprintf("%s/trace", dir);
	auto_strbuf text = STRBUF_INIT;
	int rc = make_dir(all, err);

	if (!rc)
		rc = make_dir(dir, err);
	print(&text, case_fields, ARRAY_SIZE(case_fields), c);
	if (!rc)
		rc = io_write_file(dir, "said", strbuf_str(&c->said), c->said.len, 0, err);
	if (!rc)
		rc = io_write_file(dir, "case", strbuf_str(&text), text.len, 0, err);
	/* Where links cannot be made, the run's own is read. */
	if (!rc && link(trace, own) < 0)
		errno = 0;
	return rc;
}

int app_case_load(const char *dir, struct app_case *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct app_case c = { 0 };
	int rc = io_slurp_file(dir, "case", FILE_MAX, &text, NULL, err);

	if (!rc)
		rc = parse("case", &text, case_fields, ARRAY_SIZE(case_fields), &c, err);
	if (!rc && (!c.state || !c.title))
		rc = err_set(err, -EINVAL, "%s/case does not say which state it is", dir);
	if (!rc && has(dir, "said"))
		rc = io_slurp_file(dir, "said", FILE_MAX, &c.said, NULL, err);
	if (rc) {
		app_case_release(&c);
		return rc;
	}
	c.dir = xstrdup(dir);
	*out = c;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int app_case_list(const char *run, struct app_strings *out, struct err *err)
{
	auto_free char *all = xasprintf("%s/findings", run);
	struct vec_of(uint64_t) numbers = { 0 };
	DIR *d = opendir(all);
	const struct dirent *e;
	uint64_t n;

	if (!d && errno != ENOENT)
		return err_set(err, -errno, "cannot list %s: %m", all);
	while (d && (e = readdir(d)))
		if (!number_parse(e->d_name, &n))
			vec_push(&numbers, n);
	if (d)
		closedir(d);
	if (numbers.n)
		qsort(numbers.v, numbers.n, sizeof(*numbers.v), by_number);
	for (size_t i = 0; i < numbers.n; i++)
		vec_push(out, xasprintf("%s/%llu", all, (unsigned long long)numbers.v[i]));
	vec_release(&numbers);
	return 0;
}

/* ---- summary ---- */

#define SUMMARY(key, kind, member)                                                                 \
	{                                                                                          \
		key, kind, offsetof(struct app_summary, member)                                    \
	}

static const struct field summary_fields[] = {
	SUMMARY("operations", FIELD_NUMBER, operations),
	SUMMARY("acks", FIELD_NUMBER, acks),
	SUMMARY("crash-states", FIELD_NUMBER, crash_states),
	SUMMARY("unique-states", FIELD_NUMBER, unique_states),
	SUMMARY("checked", FIELD_NUMBER, checked),
	SUMMARY("findings", FIELD_NUMBER, findings),
	SUMMARY("failing", FIELD_NUMBER, failing),
	SUMMARY("patterns", FIELD_NUMBER, patterns),
	SUMMARY("patterns-covered", FIELD_NUMBER, covered),
	SUMMARY("errors", FIELD_NUMBER, errors),
	SUMMARY("elapsed", FIELD_DOUBLE, elapsed_s),
	SUMMARY("left-out", FIELD_DOUBLE, left_out),
	SUMMARY("budget-hit", FIELD_BOOL, budget_hit),
	SUMMARY("note", FIELD_LIST, notes),
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
	return io_write_file(run, "summary", strbuf_str(&text), text.len, 0, err);
}

int app_summary_load(const char *run, struct app_summary *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct app_summary s = { 0 };
	int rc = io_slurp_file(run, "summary", FILE_MAX, &text, NULL, err);

	if (!rc)
		rc = parse("summary", &text, summary_fields, ARRAY_SIZE(summary_fields), &s, err);
	if (rc)
		app_summary_release(&s);
	else
		*out = s;
	return rc;
}
