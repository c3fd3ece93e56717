/* SPDX-License-Identifier: MIT */
/*
 * opman.c - puts the table of operations into a manual page.
 *
 *	opman TEMPLATE > PAGE.scd
 *
 * Copies the template and replaces the line "@OPERATIONS@" by a section made from op_table, so
 * that the page cannot say anything else than the program does. Run by the build.
 */
#include <errno.h>

#include "workload/workload.h"

/* Text in which scdoc must find nothing to interpret. */
static void put_text(const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_`", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void put_underlined(const char *text)
{
	putchar('_');
	put_text(text);
	putchar('_');
}

/* "rename OLD NEW [FLAGS]": the operation bold, its arguments underlined. */
static void put_usage(const struct op_def *def)
{
	auto_strbuf usage = STRBUF_INIT;

	op_usage(def, &usage);
	auto_free char *copy = xstrdup(strbuf_str(&usage));
	char *rest = copy, *word;
	const char *sep = "";
	while ((word = strsep(&rest, " "))) {
		bool optional = word[0] == '[';

		fputs(sep, stdout);
		sep = " ";
		if (optional) {
			word[strlen(word) - 1] = '\0';
			putchar('[');
			put_underlined(word + 1);
			putchar(']');
		} else if (streq(word, def->name)) {
			putchar('*');
			put_text(word);
			putchar('*');
		} else if (streq(word, "=")) {
			putchar('=');
		} else {
			put_underlined(word);
		}
	}
}

static void put_words(const struct arg_def *arg)
{
	put_underlined(arg->name);
	printf("%s: ", arg->kind == ARG_CHOICE ? ", one of these" : "");
	for (const struct word *w = arg->words; w->name; w++) {
		fputs(w == arg->words ? "" : ", ", stdout);
		put_underlined(w->name);
	}
	puts(".");
}

static void put_handles(const struct op_def *def)
{
	size_t n = 0;

	for (const struct arg_def *arg = def->args; arg->kind != ARG_END; arg++) {
		if (arg->kind != ARG_FILE)
			continue;
		fputs(n++ ? " and " : " ", stdout);
		put_underlined(arg->name);
	}
	if (n)
		fputs(n > 1 ? " may be handles." : " may be a handle.", stdout);
}

static void put_fallbacks(const struct op_def *def)
{
	for (const struct arg_def *arg = def->args; arg->kind != ARG_END; arg++) {
		if (!arg->optional || arg->words)
			continue;
		fputs(" Without ", stdout);
		put_underlined(arg->name);
		printf(arg->kind == ARG_MODE ? ": %04llo." : ": %llu.",
		       (unsigned long long)arg->fallback);
	}
}

/* Whether the operation promises something, and which words change that. */
static void put_persistence(const struct op_def *def)
{
	bool plain = op_persists(&(struct op){ .def = def });
	auto_strbuf but = STRBUF_INIT;

	for (size_t i = 0; def->args[i].kind != ARG_END; i++) {
		for (const struct word *w = def->args[i].words; w && w->name; w++) {
			struct op op = { .def = def };

			op.args[i].num = w->value;
			if (op_persists(&op) != plain)
				strbuf_addf(&but, "%s_%s_", but.len ? " or " : "", w->name);
		}
	}
	if (but.len)
		printf(" A persistence point%s %s.", plain ? ", except with" : " with",
		       strbuf_str(&but));
	else if (plain)
		fputs(" A persistence point.", stdout);
}

static void put_operation(const struct op_def *def)
{
	putchar('\n');
	put_usage(def);
	fputs("\n\t", stdout);
	put_text(def->help);
	put_handles(def);
	put_fallbacks(def);
	put_persistence(def);
	putchar('\n');
	for (const struct arg_def *arg = def->args; arg->kind != ARG_END; arg++) {
		if (arg->words) {
			fputs("\n\t", stdout);
			put_words(arg);
		}
	}
}

static int copy_template(FILE *in, const char *path)
{
	auto_free char *line = NULL;
	size_t cap = 0, places = 0;

	while (getline(&line, &cap, in) >= 0) {
		if (!streq(line, "@OPERATIONS@\n")) {
			fputs(line, stdout);
			continue;
		}
		places++;
		puts("# OPERATIONS");
		for (const struct op_def *def = op_table; def->name; def++)
			put_operation(def);
	}
	if (ferror(in) || places != 1) {
		fprintf(stderr, "opman: %s: %s\n", path,
			ferror(in) ? "cannot read" : "expected one line @OPERATIONS@");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: opman TEMPLATE\n", stderr);
		return 2;
	}
	auto_file in = fopen(argv[1], "re");
	if (!in) {
		fprintf(stderr, "opman: cannot open %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	int status = copy_template(in, argv[1]);
	if (fflush(stdout) || ferror(stdout)) {
		fputs("opman: cannot write to standard output\n", stderr);
		return 1;
	}
	return status;
}
