/* SPDX-License-Identifier: MIT */
/* keep.c - see keep.h. One table a struct says which members are kept, and under which key. */
#include "pm/keep.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/number.h"

enum { FILE_MAX = 16 << 20 };

struct member {
	const char *key;
	size_t at;
	bool number; /* else a text, which may be NULL */
};

#define TEXT(type, key, name)                                                                      \
	{                                                                                          \
		key, offsetof(struct type, name), false                                            \
	}
#define NUMBER(type, key, name)                                                                    \
	{                                                                                          \
		key, offsetof(struct type, name), true                                             \
	}

static const struct member plan_members[] = {
	TEXT(pm_plan, "file", file),
	TEXT(pm_plan, "dir", dir),
	TEXT(pm_plan, "program", program),
	TEXT(pm_plan, "check", check),
	TEXT(pm_plan, "dump", dump),
	TEXT(pm_plan, "recover", recover),
	NUMBER(pm_plan, "granularity", granularity),
	NUMBER(pm_plan, "max-subset", max_subset),
	NUMBER(pm_plan, "budget", budget),
	NUMBER(pm_plan, "seed", seed),
	NUMBER(pm_plan, "timeout-ms", timeout_ms),
	NUMBER(pm_plan, "eadr", eadr),
	NUMBER(pm_plan, "split", split),
	NUMBER(pm_plan, "first-point", first_point),
	NUMBER(pm_plan, "media", media),
	NUMBER(pm_plan, "media-max", media_max),
	NUMBER(pm_plan, "prune", prune),
	NUMBER(pm_plan, "preload", preload),
	NUMBER(pm_plan, "promises", promises),
	NUMBER(pm_plan, "enough", enough),
};

static const struct member case_members[] = {
	TEXT(pm_case, "state", state),	   TEXT(pm_case, "title", title),
	TEXT(pm_case, "cause", cause),	   TEXT(pm_case, "seen", seen),
	TEXT(pm_case, "detail", detail),   NUMBER(pm_case, "point", point),
	NUMBER(pm_case, "states", states),
};

static const struct member summary_members[] = {
	NUMBER(pm_summary, "operations", operations),
	NUMBER(pm_summary, "stores", stores),
	NUMBER(pm_summary, "flushes", flushes),
	NUMBER(pm_summary, "fences", fences),
	NUMBER(pm_summary, "marks", marks),
	NUMBER(pm_summary, "cpus", cpus),
	NUMBER(pm_summary, "crash-states", crash_states),
	NUMBER(pm_summary, "unique-states", unique_states),
	NUMBER(pm_summary, "checked", checked),
	NUMBER(pm_summary, "failing", failing),
	NUMBER(pm_summary, "findings", findings),
	NUMBER(pm_summary, "errors", errors),
	NUMBER(pm_summary, "left-out", left_out),
	NUMBER(pm_summary, "elapsed-ms", elapsed_ms),
	NUMBER(pm_summary, "budget-hit", budget_hit),
	NUMBER(pm_summary, "media-states", media_states),
	NUMBER(pm_summary, "recoveries", recoveries),
	NUMBER(pm_summary, "recoveries-tried", recoveries_tried),
	NUMBER(pm_summary, "recovery-states", recovery_states),
	NUMBER(pm_summary, "pruned", pruned),
	NUMBER(pm_summary, "reads-traced", reads_traced),
	NUMBER(pm_summary, "reads-whole", reads_whole),
	NUMBER(pm_summary, "known", known),
	NUMBER(pm_summary, "copies", copies),
};

/* ---- lines ---- */

static void put_text(struct strbuf *sb, const char *value)
{
	for (; *value; value++) {
		const char *special = strchr("\n\t\\", *value);

		if (special && *special) {
			strbuf_addch(sb, '\\');
			strbuf_addch(sb, *value == '\n' ? 'n' : *value == '\t' ? 't' : '\\');
		} else {
			strbuf_addch(sb, *value);
		}
	}
}

static char *take_text(const char *s, size_t len)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_grow(&sb, len);
	for (size_t i = 0; i < len; i++) {
		bool special = s[i] == '\\' && i + 1 < len;

		i += special;
		strbuf_addch(&sb, !special ? s[i] : s[i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i]);
	}
	return len ? strbuf_detach(&sb) : (strbuf_release(&sb), xstrdup(""));
}

static char **text_at(void *s, const struct member *m)
{
	return (char **)(void *)((char *)s + m->at);
}

static uint64_t *number_at(void *s, const struct member *m)
{
	return (uint64_t *)(void *)((char *)s + m->at);
}

static int save(const char *dir, const char *name, const struct member *m, size_t n, const void *s,
		struct err *err)
{
	auto_strbuf sb = STRBUF_INIT;
	void *from = (void *)(uintptr_t)s;

	for (size_t i = 0; i < n; i++) {
		const char *text = m[i].number ? "" : *text_at(from, &m[i]);

		if (!text)
			continue;
		strbuf_addf(&sb, "%s\t", m[i].key);
		put_text(&sb, text);
		if (m[i].number)
			strbuf_addu(&sb, *number_at(from, &m[i]));
		strbuf_addch(&sb, '\n');
	}
	return io_write_file(dir, name, strbuf_str(&sb), sb.len, 0, err);
}

static int take_line(const struct member *m, size_t n, void *s, const char *line, size_t len)
{
	const char *tab = memchr(line, '\t', len);

	for (size_t i = 0; tab && i < n; i++) {
		if (strlen(m[i].key) != (size_t)(tab - line) ||
		    memcmp(m[i].key, line, (size_t)(tab - line)) != 0)
			continue;
		char *value = take_text(tab + 1, len - (size_t)(tab + 1 - line));
		int rc = m[i].number ? number_parse(value, number_at(s, &m[i])) : 0;

		if (m[i].number) {
			free(value);
		} else {
			free(*text_at(s, &m[i]));
			*text_at(s, &m[i]) = value;
		}
		return rc;
	}
	return tab ? 0 : -EINVAL; /* keys of a later version do no harm */
}

static int load(const char *dir, const char *name, const struct member *m, size_t n, void *s,
		bool *ours, struct err *err)
{
	auto_strbuf sb = STRBUF_INIT;
	int rc = io_slurp_file(dir, name, FILE_MAX, &sb, ours, err);
	const char *p = strbuf_str(&sb), *end = p + sb.len;

	while (!rc && p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		if (!eol || take_line(m, n, s, p, (size_t)(eol - p)))
			rc = err_set(err, -EINVAL, "%s/%s is damaged", dir, name);
		else
			p = eol + 1;
	}
	return rc;
}

static void release(const struct member *m, size_t n, void *s)
{
	for (size_t i = 0; i < n; i++)
		if (!m[i].number) {
			free(*text_at(s, &m[i]));
			*text_at(s, &m[i]) = NULL;
		}
}

/* ---- the files ---- */

void pm_plan_release(struct pm_plan *p)
{
	release(plan_members, ARRAY_SIZE(plan_members), p);
}

int pm_plan_save(const char *run, const struct pm_plan *p, struct err *err)
{
	return save(run, "pm", plan_members, ARRAY_SIZE(plan_members), p, err);
}

int pm_plan_load(const char *run, struct pm_plan *out, struct err *err)
{
	struct pm_plan p = { 0 };
	int rc = load(run, "pm", plan_members, ARRAY_SIZE(plan_members), &p, &p.ours, err);

	if (!rc && (!p.file || !p.dir || !p.program || !p.check == !p.dump))
		rc = err_set(err, -EINVAL, "%s/pm is damaged: it does not say what was run", run);
	if (rc)
		pm_plan_release(&p);
	else
		*out = p;
	return rc;
}

static bool has(const char *dir, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

bool pm_is_run(const char *dir)
{
	return has(dir, "pm") && has(dir, "trace");
}

char *pm_run_of(const char *case_dir)
{
	return xasprintf("%s/../..", case_dir);
}

bool pm_is_case(const char *dir)
{
	auto_free char *run = pm_run_of(dir);

	return has(dir, "case") && pm_is_run(run);
}

void pm_case_release(struct pm_case *c)
{
	release(case_members, ARRAY_SIZE(case_members), c);
	strbuf_release(&c->said);
	free(c->dir);
	*c = (struct pm_case){ 0 };
}

int pm_case_put(const char *dir, const struct pm_case *c, struct err *err)
{
	if (mkdir(dir, 0777) && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", dir);
	int rc = io_write_file(dir, "said", strbuf_str(&c->said), c->said.len, 0, err);
	return rc ? rc : save(dir, "case", case_members, ARRAY_SIZE(case_members), c, err);
}

int pm_case_save(const char *run, uint64_t n, const struct pm_case *c, struct err *err)
{
	auto_free char *all = xasprintf("%s/findings", run);
	auto_free char *dir = xasprintf("%s/%llu", all, (unsigned long long)n);

	if (mkdir(all, 0777) && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", all);
	return pm_case_put(dir, c, err);
}

int pm_case_load(const char *dir, struct pm_case *out, struct err *err)
{
	struct pm_case c = { 0 };
	int rc = load(dir, "case", case_members, ARRAY_SIZE(case_members), &c, NULL, err);

	if (!rc)
		rc = io_slurp_file(dir, "said", FILE_MAX, &c.said, NULL, err);
	if (!rc && (!c.state || !c.title))
		rc = err_set(err, -EINVAL, "%s/case is damaged", dir);
	if (rc) {
		pm_case_release(&c);
	} else {
		c.dir = xstrdup(dir);
		*out = c;
	}
	return rc;
}

int pm_summary_save(const char *run, const struct pm_summary *s, struct err *err)
{
	return save(run, "summary", summary_members, ARRAY_SIZE(summary_members), s, err);
}

int pm_summary_load(const char *run, struct pm_summary *out, struct err *err)
{
	struct pm_summary s = { 0 };
	int rc = load(run, "summary", summary_members, ARRAY_SIZE(summary_members), &s, NULL, err);

	if (!rc)
		*out = s;
	return rc;
}
