/* SPDX-License-Identifier: MIT */
/* options_help.c - the text of --help on the options in a table. */
#include "cli/options.h"

enum { WIDTH = 79, COLUMN = 25 };

/* The `n` bytes of `words`; `at` of the first line are there already. */
static void wrap_line(struct strbuf *out, size_t at, const char *words, size_t n, size_t column)
{
	size_t start = at, len;

	for (size_t i = 0; i < n; i += len + 1) {
		len = min(strcspn(words + i, " "), n - i);
		if (at > start && at + 1 + len > WIDTH) {
			strbuf_addf(out, "\n%*s", (int)column, "");
			at = start = column;
		} else if (at > start) {
			strbuf_addch(out, ' ');
			at++;
		}
		strbuf_add(out, words + i, len);
		at += len;
	}
}

void opt_wrap(struct strbuf *out, size_t at, const char *text, size_t column)
{
	do {
		size_t n = strcspn(text, "\n");

		if (*text == ' ')
			strbuf_add(out, text, n);
		else
			wrap_line(out, at, text, n, column);
		strbuf_addch(out, '\n');
		text += n + (text[n] == '\n');
		at = column;
	} while (*text);
}

/* "  -b, --bounds SET|FILE" */
static void add_head(const struct opt_iter *it, struct strbuf *out)
{
	const struct opt *o = it->o;

	if (o->kind == OPT_ARGUMENT) {
		strbuf_addf(out, "  %s", o->arg);
		return;
	}
	if (o->name && o->letter)
		strbuf_addf(out, "  -%c, ", o->letter);
	else
		strbuf_adds(out, o->name ? "      " : "  ");
	opt_print_name(it, out);
	if (o->arg && *o->arg == '[')
		strbuf_addf(out, "[=%s", o->arg + 1);
	else if (o->arg)
		strbuf_addf(out, " %s", o->arg);
}

void opt_print_help(const struct opt *o, struct strbuf *out)
{
	strbuf_adds(out, o->help);
	if (o->list && o->strict) {
		strbuf_adds(out, ": ");
		opt_print_choices(o, out);
	}
}

static void add_entry(const struct opt_iter *it, struct strbuf *out)
{
	auto_strbuf head = STRBUF_INIT, text = STRBUF_INIT;

	add_head(it, &head);
	opt_print_help(it->o, &text);
	if (it->o->otherwise)
		strbuf_addf(&text, "; default: %s", it->o->otherwise);
	strbuf_adds(out, strbuf_str(&head));
	if (head.len + 1 > COLUMN)
		strbuf_addf(out, "\n%*s", COLUMN, "");
	else
		strbuf_addf(out, "%*s", (int)(COLUMN - head.len), "");
	opt_wrap(out, COLUMN, strbuf_str(&text), COLUMN);
}

/* A group with a prefix is told in one line. */
static void add_prefixed(const struct opt *group, struct strbuf *out)
{
	auto_free char *name = xasprintf("%sOPTION", group->prefix);
	const struct opt o = { OPT_TEXT, name, .arg = "VALUE", .help = group->help };
	const struct opt_iter it = { .o = &o };

	add_entry(&it, out);
}

unsigned opt_help(const struct opt *table, bool all, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(table);
	const struct opt *section = NULL, *told = NULL;
	unsigned left_out = 0;

	while (opt_next(&it)) {
		bool prefixed = it.group && it.group->prefix;
		bool titled = it.o->kind == OPT_SECTION;

		if (!all && (it.o->rare || (it.group && it.group->rare))) {
			left_out += !titled;
			continue;
		}
		if (titled) {
			section = it.o;
			continue;
		}
		if (prefixed && (told == it.group || !it.group->help))
			continue;
		if (section)
			strbuf_addf(out, "%s%s:\n", out->len ? "\n" : "", section->help);
		section = NULL;
		if (prefixed)
			add_prefixed(told = it.group, out);
		else
			add_entry(&it, out);
	}
	return left_out;
}
