/* SPDX-License-Identifier: MIT */
/* options.c - reads a command line by the table of its options. */
#include "cli/options.h"

#include <errno.h>

#include "base/number.h"
#include "base/similar.h"

/* ---- the table ---- */

bool opt_next(struct opt_iter *it)
{
	for (;;) {
		const struct opt *o = it->next;

		if (o->kind == OPT_LAST && !it->group)
			return false;
		if (o->kind == OPT_LAST) {
			it->next = it->after;
			it->group = NULL;
			continue;
		}
		it->next = o + 1;
		if (o->kind == OPT_GROUP) {
			assert(!it->group);
			it->group = o;
			it->after = o + 1;
			it->next = o->group;
			continue;
		}
		if (it->group && it->group->prefix && !opt_is_option(o))
			continue;
		it->o = o;
		return true;
	}
}

void opt_print_name(const struct opt_iter *it, struct strbuf *out)
{
	if (it->o->name)
		strbuf_addf(out, "--%s%s", it->group && it->group->prefix ? it->group->prefix : "",
			    it->o->name);
	else
		strbuf_addf(out, "-%c", it->o->letter);
}

void opt_print_words(const struct opt *o, struct strbuf *out)
{
	if (o->words)
		strbuf_adds(out, o->words);
	if (o->list)
		o->list(out);
}

static bool is_named(const struct opt_iter *it, const char *name, size_t len)
{
	auto_strbuf full = STRBUF_INIT;

	if (!it->o->name || !opt_is_option(it->o))
		return false;
	opt_print_name(it, &full);
	return full.len == len + 2 && strncmp(full.buf + 2, name, len) == 0;
}

static bool find_name(const struct opt *table, const char *name, size_t len, struct opt_iter *it)
{
	*it = (struct opt_iter)OPT_ITER(table);
	while (opt_next(it))
		if (is_named(it, name, len))
			return true;
	return false;
}

static bool find_letter(const struct opt *table, char letter, struct opt_iter *it)
{
	*it = (struct opt_iter)OPT_ITER(table);
	while (opt_next(it))
		if (it->o->letter == letter && opt_is_option(it->o) &&
		    !(it->group && it->group->prefix))
			return true;
	return false;
}

static int unknown_name(const struct opt *table, const char *word, struct err *err)
{
	auto_free char *given = xmemdupz(word, strcspn(word, "="));
	struct opt_iter it = OPT_ITER(table);
	auto_words names = { 0 };

	while (opt_next(&it)) {
		struct strbuf name = STRBUF_INIT;

		if (!opt_is_option(it.o) || !it.o->name)
			continue;
		opt_print_name(&it, &name);
		vec_push(&names, strbuf_detach(&name));
	}
	vec_push(&names, NULL);
	const char *like = similar_of(given, (const char *const *)names.v);
	return err_set(err, -EINVAL, "unknown option %.60s%s%s%s", given,
		       like ? " (did you mean " : "", like ? like : "", like ? "?)" : "");
}

/* ---- values ---- */

void args_release(struct args *a)
{
	words_release(&a->owned);
	vec_release(&a->given);
	vec_release(&a->rest);
}

bool args_given(const struct args *a, const char *name)
{
	return any_of(i, a->given.n, a->given.v[i]->name && streq(a->given.v[i]->name, name));
}

int opt_existing_path(const char *arg, char **out, struct err *err)
{
	*out = realpath(arg, NULL);
	return *out ? 0 : err_set(err, -errno, "cannot find %s: %m", arg);
}

/* "walk, depth or breadth" */
void opt_print_choices(const struct opt *o, struct strbuf *out)
{
	auto_strbuf all = STRBUF_INIT;
	char *rest;

	opt_print_words(o, &all);
	rest = all.buf;
	for (char *word, *first = rest; rest && (word = strsep(&rest, " "));)
		strbuf_addf(out, "%s%s", word == first ? "" : rest ? ", " : " or ", word);
}

static int find_choice(const struct opt *o, const char *arg, uint64_t *out)
{
	auto_strbuf all = STRBUF_INIT;
	char *rest;

	opt_print_words(o, &all);
	rest = all.buf;
	*out = 0;
	for (char *word; rest && (word = strsep(&rest, " ")); ++*out)
		if (streq(word, arg))
			return 0;
	return -EINVAL;
}

/* `is`: how the choices are told, as in "--crash is a list of". */
static int no_choice(const struct opt *o, const char *name, const char *is, const char *arg,
		     struct err *err)
{
	auto_strbuf all = STRBUF_INIT, choices = STRBUF_INIT, hint = STRBUF_INIT;

	opt_print_choices(o, &choices);
	opt_print_words(o, &all);
	similar_hint(arg, strbuf_str(&all), &hint);
	return err_set(err, -EINVAL, "%s %s %s, not '%.40s'%s", name, is, strbuf_str(&choices), arg,
		       strbuf_str(&hint));
}

static int check_choice(const struct opt *o, const char *name, const char *arg, uint64_t *out,
			struct err *err)
{
	return find_choice(o, arg, out) ? no_choice(o, name, "is", arg, err) : 0;
}

/* A bit for each word of "a,c"; "none" is the empty set. */
static int parse_set(const struct opt *o, const char *name, const char *arg, uint64_t *out,
		     struct err *err)
{
	auto_free char *copy = xstrdup(arg);
	char *rest = copy;

	*out = 0;
	if (streq(arg, "none"))
		return 0;
	for (char *word; (word = strsep(&rest, ","));) {
		uint64_t place;

		if (find_choice(o, word, &place))
			return no_choice(o, name, "is a list of", word, err);
		*out |= UINT64_C(1) << place;
	}
	return 0;
}

static int parse_number(const struct opt *o, const char *name, const char *arg, uint64_t *out,
			struct err *err)
{
	struct err why = ERR_INIT;
	int rc = 0;

	switch (o->kind) {
	case OPT_COUNT:
		rc = number_parse_count(arg, out, &why);
		break;
	case OPT_SIZE:
		rc = number_parse_size(arg, out, &why);
		break;
	case OPT_DURATION:
		rc = number_parse_duration(arg, out, &why);
		if (!rc && o->unit)
			*out /= o->unit;
		break;
	case OPT_CHOICE:
		return check_choice(o, name, arg, out, err);
	case OPT_SET:
		return parse_set(o, name, arg, out, err);
	default:
		if (number_parse(arg, out))
			return err_set(err, -EINVAL, "%s is a number, not '%.40s'", name, arg);
	}
	return rc ? err_set(err, rc, "%s: %s", name, why.msg) : 0;
}

static int check_range(const struct opt *o, const char *name, const char *arg, uint64_t n,
		       struct err *err)
{
	uint64_t most = o->most ? o->most : o->width == 4 ? UINT32_MAX : UINT64_MAX;
	auto_strbuf range = STRBUF_INIT;
	const char *unit = "";
	uint64_t per = 1;

	if (n >= o->least && n <= most)
		return 0;
	if (o->kind == OPT_DURATION) {
		bool whole = o->least * max(o->unit, (uint64_t)1) % 1000000000 == 0;

		per = max((whole ? 1000000000 : 1000000) / max(o->unit, (uint64_t)1), (uint64_t)1);
		unit = whole ? "s" : "ms";
	}
	if (o->most && o->least)
		strbuf_addf(&range, "from %llu%s to %llu%s", llu(o->least / per), unit,
			    llu(most / per), unit);
	else if (n < o->least && !(o->least / per))
		strbuf_adds(&range, "more than 0");
	else if (n < o->least)
		strbuf_addf(&range, "at least %llu%s", llu(o->least / per), unit);
	else
		strbuf_addf(&range, "at most %llu%s", llu(most / per), unit);
	return err_set(err, -ERANGE, "%s is %s, not %.40s", name, strbuf_str(&range), arg);
}

static int to_number(const struct opt *o, const char *name, const char *arg, uint64_t *out,
		     struct err *err)
{
	int rc = parse_number(o, name, arg, out, err);

	return rc ? rc : check_range(o, name, arg, *out, err);
}

static void store_number(const struct opt *o, void *at, uint64_t n)
{
	switch (o->width) {
	case sizeof(bool):
		*(bool *)at = n;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)at = (uint32_t)n;
		break;
	default:
		assert(o->width == sizeof(uint64_t));
		*(uint64_t *)at = n;
	}
}

static char *own(struct args *a, char *text)
{
	vec_push(&a->owned, text);
	return text;
}

static void add_line(struct args *a, const char **at, const char *line)
{
	*at = *at ? own(a, xasprintf("%s\n%s", *at, line)) : line;
}

/* The value goes to its member, which is at `at`. */
static int store(const struct opt *o, const char *name, void *at, const char *arg, struct args *a,
		 struct err *err)
{
	struct vec_of(const char *) *list = at;
	uint64_t n;
	int rc;

	switch (o->kind) {
	case OPT_FLAG:
	case OPT_OFF:
		store_number(o, at, o->kind == OPT_FLAG);
		return 0;
	case OPT_TEXT:
		*(const char **)at = arg;
		return 0;
	case OPT_COPY:
		free(*(char **)at);
		*(char **)at = xstrdup(arg);
		return 0;
	case OPT_LINES:
		add_line(a, at, arg);
		return 0;
	case OPT_LIST:
		vec_push(list, arg);
		return 0;
	case OPT_CALL:
		return o->call(at, arg, err);
	default:
		rc = to_number(o, name, arg, &n, err);
		if (!rc)
			store_number(o, at, n);
		return rc;
	}
}

static int take(const struct opt_iter *it, void *into, const char *arg, struct args *a,
		struct err *err)
{
	const struct opt *o = it->o, *group = it->group;
	auto_strbuf name = STRBUF_INIT;
	char *at = into;
	uint64_t unused;

	opt_print_name(it, &name);
	if (o->strict && check_choice(o, strbuf_str(&name), arg, &unused, err))
		return -EINVAL;
	if (arg && o->normal) {
		char *text = NULL;
		int rc = o->normal(arg, &text, err);

		if (rc)
			return rc;
		arg = own(a, text);
	}
	if (group && group->where)
		at = group->where(into, err);
	else if (group)
		at += group->at;
	if (!at)
		return -EINVAL;
	if (!group || !group->take)
		return store(o, strbuf_str(&name), at + o->at, arg, a, err);
	/* The sentence about a wrong number is the same for all. */
	if (o->kind >= OPT_NUMBER && o->kind < OPT_CALL &&
	    to_number(o, strbuf_str(&name), arg, &unused, err))
		return -EINVAL;
	return group->take(at, o, arg, err);
}

static int take_defaults(const struct opt *table, void *into, struct args *a, struct err *err)
{
	struct opt_iter it = OPT_ITER(table);
	int rc = 0;

	while (!rc && opt_next(&it))
		if (it.o->otherwise && !(it.group && (it.group->take || it.group->where)))
			rc = take(&it, into, it.o->otherwise, a, err);
	return rc;
}

/* ---- the command line ---- */

struct command_line {
	const struct opt *table;
	void *into;
	char **argv;
	int argc, i;
	struct args *args;
};

static bool may_have_value(const struct opt *o)
{
	return o->arg && *o->arg == '[';
}

/* `value` is what follows in the same word, or NULL. */
static int take_one(struct command_line *l, const struct opt_iter *it, const char *value,
		    struct err *err)
{
	const struct opt *o = it->o;
	auto_strbuf name = STRBUF_INIT;

	opt_print_name(it, &name);
	if (!o->arg && value)
		return err_set(err, -EINVAL, "%s takes no value", strbuf_str(&name));
	if (o->arg && !value && !may_have_value(o)) {
		if (l->i + 1 >= l->argc)
			return err_set(err, -EINVAL, "%s needs a value, %s", strbuf_str(&name),
				       o->arg);
		value = l->argv[++l->i];
	}
	vec_push(&l->args->given, o);
	return take(it, l->into, value, l->args, err);
}

static int take_long(struct command_line *l, const char *word, struct err *err)
{
	const char *equals = strchr(word, '=');
	struct opt_iter it;

	if (!find_name(l->table, word + 2, strcspn(word + 2, "="), &it))
		return unknown_name(l->table, word, err);
	return take_one(l, &it, equals ? equals + 1 : NULL, err);
}

/* "-cn5": flags may be joined, and the last of them may have its value there. */
static int take_letters(struct command_line *l, const char *word, struct err *err)
{
	int rc = 0;

	for (const char *c = word + 1; *c && !rc; c++) {
		struct opt_iter it;

		if (!find_letter(l->table, *c, &it))
			return err_set(err, -EINVAL, "unknown option -%c", *c);
		if (it.o->arg)
			return take_one(l, &it, c[1] ? c + 1 : NULL, err);
		rc = take_one(l, &it, NULL, err);
	}
	return rc;
}

static bool asks_for_help(struct command_line *l)
{
	const char *word = l->argv[l->i], *next = l->i + 1 < l->argc ? l->argv[l->i + 1] : "";

	if (!streq(word, "-h") && !streq(word, "--help") && !streq(word, "--help=all"))
		return false;
	l->args->help = true;
	l->args->help_all = streq(word, "--help=all") || streq(next, "all");
	return true;
}

int opt_parse(const struct opt *table, enum opt_order order, void *into, int argc, char **argv,
	      struct args *out, struct err *err)
{
	struct command_line l = { table, into, argv, argc, 1, out };
	int rc;

	*out = (struct args){ 0 };
	rc = take_defaults(table, into, out, err);
	for (; !rc && l.i < argc; l.i++) {
		char *word = argv[l.i];
		bool text = (order == OPT_NOWHERE && l.i > 1) ||
			    (order == OPT_BEFORE && out->rest.n);

		if (!text && streq(word, "--")) {
			order = OPT_NOWHERE;
			if (++l.i >= argc)
				break;
			word = argv[l.i];
			text = true;
		}
		if (!text && asks_for_help(&l))
			break;
		if (text || order == OPT_NOWHERE || word[0] != '-' || !word[1])
			vec_push(&out->rest, word);
		else if (word[1] == '-')
			rc = take_long(&l, word, err);
		else
			rc = take_letters(&l, word, err);
	}
	out->n = (int)out->rest.n;
	vec_push(&out->rest, NULL);
	out->v = out->rest.v;
	if (rc)
		args_release(out);
	return rc;
}
