/* SPDX-License-Identifier: MIT */
/* keep.c - see keep.h. One table a struct says which members are kept, and under which key. */
#include "pm/keep.h"

#include <errno.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/number.h"

enum { FILE_MAX = 16 << 20 };

struct member {
	struct trust_key key; /* its name, and what its value leads to */
	size_t at;
	bool number; /* else a text, which may be NULL */
};

#define TEXT(type, leads, key, name)                                                               \
	{                                                                                          \
		{ key, leads }, offsetof(struct type, name), false                                 \
	}
/* A number leads nowhere. */
#define NUMBER(type, key, name)                                                                    \
	{                                                                                          \
		{ key, TRUST_HARMLESS }, offsetof(struct type, name), true                         \
	}

static const struct member plan_members[] = {
	TEXT(pm_plan, TRUST_FILE, "file", file),
	TEXT(pm_plan, TRUST_FILE, "dir", dir),
	TEXT(pm_plan, TRUST_HARMLESS, "program", program), /* it is told, and not run again */
	TEXT(pm_plan, TRUST_COMMAND, "check", check),
	TEXT(pm_plan, TRUST_COMMAND, "dump", dump),
	TEXT(pm_plan, TRUST_COMMAND, "recover", recover),
	TEXT(pm_plan, TRUST_HARMLESS, "model", model),
	NUMBER(pm_plan, "granularity", granularity),
	NUMBER(pm_plan, "max-subset", max_subset),
	NUMBER(pm_plan, "budget", budget),
	NUMBER(pm_plan, "seed", seed),
	NUMBER(pm_plan, "timeout-ms", timeout_ms),
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
	TEXT(pm_case, TRUST_HARMLESS, "state", state),
	TEXT(pm_case, TRUST_HARMLESS, "title", title),
	TEXT(pm_case, TRUST_HARMLESS, "cause", cause),
	TEXT(pm_case, TRUST_HARMLESS, "seen", seen),
	TEXT(pm_case, TRUST_HARMLESS, "detail", detail),
	NUMBER(pm_case, "point", point),
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
	NUMBER(pm_summary, "dropped", dropped),
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

static void print(const struct member *m, size_t n, const void *s, struct strbuf *sb)
{
	void *from = (void *)(uintptr_t)s;

	for (size_t i = 0; i < n; i++) {
		const char *text = m[i].number ? "" : *text_at(from, &m[i]);

		if (!text)
			continue;
		strbuf_addf(sb, "%s\t", m[i].key.name);
		put_text(sb, text);
		if (m[i].number)
			strbuf_addu(sb, *number_at(from, &m[i]));
		strbuf_addch(sb, '\n');
	}
}

static int save(const char *dir, const char *name, const struct member *m, size_t n, const void *s,
		struct err *err)
{
	auto_strbuf sb = STRBUF_INIT;

	print(m, n, s, &sb);
	return io_write_file(dir, name, strbuf_str(&sb), sb.len, 0, err);
}

static int take_line(const struct member *m, size_t n, void *s, const char *line, size_t len)
{
	const char *tab = memchr(line, '\t', len);

	for (size_t i = 0; tab && i < n; i++) {
		if (strlen(m[i].key.name) != (size_t)(tab - line) ||
		    memcmp(m[i].key.name, line, (size_t)(tab - line)) != 0)
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
		struct err *err)
{
	auto_strbuf sb = STRBUF_INIT;
	auto_free char *shown = below_shown(dir, name);
	int rc = io_slurp_file(dir, name, FILE_MAX, &sb, err);
	const char *p = strbuf_str(&sb), *end = p + sb.len;

	while (!rc && p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));

		if (!eol || take_line(m, n, s, p, (size_t)(eol - p)))
			rc = err_set(err, -EINVAL, "%s is damaged", shown);
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
	int rc = load(run, "pm", plan_members, ARRAY_SIZE(plan_members), &p, err);

	if (!rc && (!p.file || !p.dir || !p.program || !p.check == !p.dump))
		rc = err_set(err, -EINVAL, "%s/pm is damaged: it does not say what was run", run);
	if (rc)
		pm_plan_release(&p);
	else
		*out = p;
	return rc;
}

bool pm_is_run(const char *dir)
{
	return below_has_file(dir, "pm") && below_has_file(dir, "trace");
}

char *pm_run_of(const char *case_dir)
{
	return below_run_of(case_dir);
}

bool pm_is_case(const char *dir)
{
	auto_free char *run = pm_run_of(dir), *at = below_case(dir);

	return below_has_file(at, "case") && pm_is_run(run);
}

void pm_case_release(struct pm_case *c)
{
	release(case_members, ARRAY_SIZE(case_members), c);
	strbuf_release(&c->said);
	free(c->dir);
	*c = (struct pm_case){ 0 };
}

/* ---- marks ---- */

static int mark_run(const char *run, bool verify, struct err *err)
{
	static const struct trust_file files[] = {
		{ .name = "pm" }, { .name = "base.img" }, { .name = "trace" }, { .name = "places" }
	};
	static const struct trust_set set = {
		.kind = "pm-run", .files = files, .n = ARRAY_SIZE(files), .keep = true
	};

	return verify ? trust_verify(run, &set, err) : trust_mark(run, &set, err);
}

/* The recovery that a state is one of, which is a run of its own; NULL: none. To be freed. */
static char *nested_run(const char *run, const char *state)
{
	unsigned long long n;

	return sscanf(state, "r%llu:", &n) == 1 ? xasprintf("%s" BELOW_MARK "recovery/%llu", run, n)
						: NULL;
}

/* The mark of a run, or nothing. */
static void read_mark(const char *run, struct strbuf *out)
{
	struct err none = ERR_INIT;

	if (run && io_slurp_file(run, TRUST_MARK, FILE_MAX, out, &none))
		strbuf_clear(out);
}

/* With the marks of its runs, so that all of these is covered; `text` is what "case" will hold. */
static int mark_case(const char *run, const char *dir, const char *state, const struct strbuf *text,
		     bool verify, struct err *err)
{
	auto_free char *nested = nested_run(run, state);
	auto_strbuf above = STRBUF_INIT, recovery = STRBUF_INIT;

	read_mark(run, &above);
	read_mark(nested, &recovery);
	const struct trust_file files[] = {
		{ "run", strbuf_str(&above), above.len },
		{ "recovery", strbuf_str(&recovery), recovery.len },
		{ "case", text ? strbuf_str(text) : NULL, text ? text->len : 0 },
		{ .name = "said" },
	};
	const struct trust_set set = { .kind = "pm-case", .files = files, .n = ARRAY_SIZE(files) };

	return verify ? trust_verify(dir, &set, err) : trust_mark(dir, &set, err);
}

static int verify(const char *run, const char *case_dir, const char *state, struct err *why)
{
	auto_free char *nested = nested_run(run, state), *at = below_case(case_dir);
	int rc = mark_run(run, true, why);

	if (!rc && nested)
		rc = mark_run(nested, true, why);
	return rc ? rc : mark_case(run, at, state, NULL, true, why);
}

int pm_run_mark(const char *run, struct err *err)
{
	return mark_run(run, false, err);
}

bool pm_key(size_t i, struct trust_key *out)
{
	bool plan = i < ARRAY_SIZE(plan_members);
	size_t n = plan ? i : i - ARRAY_SIZE(plan_members);

	if (!plan && n >= ARRAY_SIZE(case_members))
		return false;
	*out = plan ? plan_members[n].key : case_members[n].key;
	return true;
}

/* Commands first: a file alone would be harmless. */
static void plan_would(struct pm_plan *p, struct strbuf *would)
{
	for (size_t i = 0; i < 2 * ARRAY_SIZE(plan_members); i++) {
		const struct member *m = &plan_members[i % ARRAY_SIZE(plan_members)];
		bool first = i < ARRAY_SIZE(plan_members);

		if (!m->number && *text_at(p, m) && (m->key.leads == TRUST_COMMAND) == first)
			trust_would(m->key, *text_at(p, m), would);
	}
}

int pm_trust(const char *run, const struct pm_case *c, struct pm_plan *p, bool trust,
	     struct err *err)
{
	auto_free char *shown = below_run_of(c->dir);
	auto_strbuf would = STRBUF_INIT;
	struct err why = ERR_INIT;

	p->ours = trust || !verify(run, c->dir, c->state, &why);
	plan_would(p, &would);
	return p->ours ? 0 : trust_refuse(shown, "pm", &why, &would, "", err);
}

/* ---- cases ---- */

int pm_case_put(const char *run, const char *name, const struct pm_case *c, struct err *err)
{
	auto_newdir dir = IO_NEWDIR_INIT;
	auto_strbuf text = STRBUF_INIT;
	int rc = io_newdir_open(run, name, &dir, err);

	print(case_members, ARRAY_SIZE(case_members), c, &text);
	if (!rc)
		rc = io_write_file(dir.path, "said", strbuf_str(&c->said), c->said.len, 0, err);
	if (!rc)
		rc = mark_case(run, dir.path, c->state, &text, false, err);
	if (!rc)
		rc = io_write_file(dir.path, "case", strbuf_str(&text), text.len, 0, err);
	return rc ? rc : io_newdir_commit(&dir, err);
}

int pm_case_save(const char *run, uint64_t n, const struct pm_case *c, struct err *err)
{
	auto_free char *name = xasprintf("findings/%llu", (unsigned long long)n);
	int rc = below_make_dir(run, "findings", err);

	return rc ? rc : pm_case_put(run, name, c, err);
}

int pm_case_remove(const char *run, uint64_t n, struct err *err)
{
	auto_free char *name = xasprintf("findings/%llu", (unsigned long long)n);

	return below_remove_whole(run, name, err);
}

int pm_case_move(const char *run, uint64_t n, uint64_t to, struct err *err)
{
	auto_free char *from = xasprintf("%llu", (unsigned long long)n);
	auto_free char *name = xasprintf("%llu", (unsigned long long)to);
	auto_free char *dir = xasprintf("%s" BELOW_MARK "findings", run);
	auto_fd fd = below_open_dir(run, "findings", err);

	if (fd < 0)
		return fd;
	if (below_exists(dir, name)) {
		int rc = io_exchange_below(dir, name, from, err);

		return rc ? rc : pm_case_remove(run, n, err);
	}
	if (renameat(fd, from, fd, name) < 0)
		return err_set(err, -errno, "cannot make %s/findings/%s: %m", run, name);
	return io_sync_fd(fd, dir, err);
}

int pm_run_sync(const char *run, struct err *err)
{
	static const char *const names[] = {
		"pm", "base.img", "trace", "places", "recovery", NULL
	};

	return io_sync_run(run, names, err);
}

int pm_case_load(const char *dir, struct pm_case *out, struct err *err)
{
	auto_free char *at = below_case(dir);
	struct pm_case c = { 0 };
	int rc = load(at, "case", case_members, ARRAY_SIZE(case_members), &c, err);

	if (!rc)
		rc = io_slurp_file(at, "said", FILE_MAX, &c.said, err);
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

int pm_cases_load(const char *run, struct pm_cases *out, struct err *err)
{
	struct below_names names = { 0 };
	int rc = below_exists(run, "findings") ? below_list(run, "findings", &names, err) : 0;

	for (size_t i = 0; !rc && i < names.n; i++) {
		auto_free char *file = xasprintf("findings/%s/case", names.v[i]);
		auto_free char *dir = xasprintf("%s/findings/%s", run, names.v[i]);
		struct pm_case c;
		uint64_t n;

		if (number_parse(names.v[i], &n) || !below_exists(run, file))
			continue;
		rc = pm_case_load(dir, &c, err);
		if (!rc)
			vec_push(out, c);
	}
	below_names_release(&names);
	return rc;
}

bool pm_has_ended(const char *run)
{
	return below_exists(run, "summary"); /* what is no file is refused when it is read */
}

int pm_summary_save(const char *run, const struct pm_summary *s, struct err *err)
{
	static const char *const names[] = { "summary", NULL };
	int rc = save(run, "summary", summary_members, ARRAY_SIZE(summary_members), s, err);

	return rc ? rc : io_sync_run(run, names, err);
}

int pm_summary_load(const char *run, struct pm_summary *out, struct err *err)
{
	struct pm_summary s = { 0 };
	int rc = load(run, "summary", summary_members, ARRAY_SIZE(summary_members), &s, err);

	if (!rc)
		*out = s;
	return rc;
}
