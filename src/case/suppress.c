/* SPDX-License-Identifier: MIT */
/* suppress.c - parses rules of suppression, and matches findings with them. */
#include "case/suppress.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>

#include "base/below.h"
#include "base/io.h"

enum { TEXT_MAX = 1 << 20, RULES_MAX = 10000 };

void suppress_release(struct suppress *s)
{
	for (size_t i = 0; i < s->rules.n; i++) {
		free(s->rules.v[i].kind);
		free(s->rules.v[i].operations);
		free(s->rules.v[i].target);
		free(s->rules.v[i].why);
	}
	vec_release(&s->rules);
}

/* Without blanks around it, in place. */
static char *trim(char *s)
{
	while (*s && isspace((unsigned char)*s))
		s++;
	for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

static bool knows_kind(const struct suppress *s, const char *name)
{
	return streq(name, "*") || !s->is_kind || s->is_kind(name);
}

/* One rule; the line is cut into pieces. */
static int parse_rule(struct suppress *s, char *line, struct err *err)
{
	char *why = strchr(line, '#');
	if (why)
		*why++ = '\0';
	char *target = strchr(line, '@');
	if (target)
		*target++ = '\0';
	char *operations = strchr(line, ':');
	if (!operations)
		return err_set(err, -EINVAL,
			       "a rule is KIND: OPERATIONS [@ TARGET] [# WHY], not '%.40s'",
			       trim(line));
	*operations++ = '\0';
	const char *kind = trim(line), *pattern = trim(operations);
	if (!knows_kind(s, kind))
		return err_set(err, -EINVAL,
			       "'%.40s' is no kind of problem; * is any, and outage-report(1) has "
			       "the others",
			       kind);
	if (!*pattern)
		return err_set(err, -EINVAL, "there is no pattern after '%s:'; * matches anything",
			       kind);
	if (target && !*trim(target))
		return err_set(err, -EINVAL, "there is no target after @");
	if (s->rules.n >= RULES_MAX)
		return err_set(err, -E2BIG, "more than %d rules", RULES_MAX);
	why = why ? trim(why) : NULL;
	vec_push(&s->rules, (struct suppress_rule){ xstrdup(kind), xstrdup(pattern),
						    target ? xstrdup(trim(target)) : NULL,
						    why && *why ? xstrdup(why) : NULL });
	return 0;
}

int suppress_parse(struct suppress *s, const char *text, size_t len, const char *source,
		   struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	char *rest = copy;
	unsigned number = 0;

	if (strlen(copy) != len)
		return err_set(err, -EINVAL, "%s: there is a NUL in it", source);
	for (char *line; (line = strsep(&rest, "\n"));) {
		number++;
		line = trim(line);
		if (!*line || *line == '#')
			continue;
		if (parse_rule(s, line, err))
			return err_context(err, "%s:%u", source, number);
	}
	return 0;
}

int suppress_load(struct suppress *s, const char *path, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(path, TEXT_MAX, &text, err);

	return rc ? rc : suppress_parse(s, strbuf_str(&text), text.len, path, err);
}

int suppress_load_saved(struct suppress *s, const char *run, struct err *err)
{
	auto_free char *path = xasprintf("%s/suppressions", run);
	auto_strbuf text = STRBUF_INIT;

	if (!below_exists(run, "suppressions"))
		return 0;
	int rc = io_slurp_file(run, "suppressions", TEXT_MAX, &text, err);
	return rc ? rc : suppress_parse(s, strbuf_str(&text), text.len, path, err);
}

int suppress_add_file(char **text, const char *path, bool (*is_kind)(const char *name),
		      struct err *err)
{
	auto_call(suppress_release) struct suppress s = { .is_kind = is_kind };
	auto_strbuf all = STRBUF_INIT;
	int rc = suppress_load(&s, path, err);

	if (*text)
		strbuf_adds(&all, *text);
	suppress_print(&s, &all);
	if (rc || !all.len)
		return rc;
	free(*text);
	*text = strbuf_detach(&all);
	return 0;
}

int suppress_of_plan(const char *text, struct suppress *out, struct err *err)
{
	return text ? suppress_parse(out, text, strlen(text), "suppress", err) : 0;
}

/* As a pattern that fits it; what would end the pattern, or cannot be shown, is any character. */
static void add_pattern(struct strbuf *out, const char *text)
{
	for (const char *c = text; *c; c++)
		strbuf_addch(out, strchr("*?[\\#@", *c) || iscntrl((unsigned char)*c) ? '?' : *c);
}

void suppress_add_rule(const char *cluster, const char *target, const char *why, struct strbuf *out)
{
	add_pattern(out, cluster);
	strbuf_adds(out, " @ ");
	add_pattern(out, target);
	strbuf_adds(out, " # ");
	strbuf_add_flat(out, why);
	strbuf_addch(out, '\n');
}

void suppress_print(const struct suppress *s, struct strbuf *out)
{
	vec_each(r, &s->rules) {
		strbuf_addf(out, "%s: %s", r->kind, r->operations);
		if (r->target)
			strbuf_addf(out, " @ %s", r->target);
		if (r->why)
			strbuf_addf(out, " # %s", r->why);
		strbuf_addch(out, '\n');
	}
}

bool suppress_names(const struct suppress *s, const char *target, const char *cluster)
{
	const char *colon = strchr(cluster, ':');
	size_t kind = colon ? (size_t)(colon - cluster) : strlen(cluster);
	const char *operations = colon ? colon + 1 + strspn(colon + 1, " ") : "";

	vec_each(r, &s->rules) {
		if (!streq(r->kind, "*") &&
		    (strlen(r->kind) != kind || memcmp(r->kind, cluster, kind) != 0))
			continue;
		if (fnmatch(r->operations, operations, FNM_NOESCAPE) == 0 &&
		    (!r->target || fnmatch(r->target, target, FNM_NOESCAPE) == 0))
			return true;
	}
	return false;
}
