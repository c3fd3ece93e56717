/* SPDX-License-Identifier: MIT */
/* options_complete.c - completion for bash, zsh and fish, from the tables of all commands. */
#include "cli/options_complete.h"

/* One value or argument: what it can be completed with. */
struct value {
	const struct opt *o;
	struct strbuf words;
};

static struct value value_of(const struct opt *o)
{
	struct value v = { .o = o };

	opt_print_words(o, &v.words);
	return v;
}

static bool is_hidden(const struct command *cmd)
{
	return !cmd->summary && !cmd->alone;
}

/* 'It'\''s' */
static void add_quoted(struct strbuf *out, const char *text)
{
	strbuf_addch(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			strbuf_adds(out, "'\\'");
		strbuf_addch(out, *text);
	}
	strbuf_addch(out, '\'');
}

/* Calls `fn` for each command that has options or arguments; subcommands come after theirs. */
typedef void each_fn(const struct command *cmd, struct strbuf *out);

static void for_each(const struct command *cmd, each_fn *fn, struct strbuf *out)
{
	if (is_hidden(cmd))
		return;
	fn(cmd, out);
	for (size_t i = 0; cmd->sub && cmd->sub[i]; i++)
		for_each(cmd->sub[i], fn, out);
}

static void add_subcommands(const struct command *cmd, struct strbuf *out)
{
	for (size_t i = 0; cmd->sub && cmd->sub[i]; i++)
		if (!is_hidden(cmd->sub[i]))
			strbuf_addf(out, " %s", command_short_name(cmd->sub[i]));
}

/* ---- bash ---- */

static void bash_value(const struct opt *o, struct strbuf *out)
{
	struct value v = value_of(o);
	size_t before = out->len;

	if (v.words.len) {
		strbuf_addf(out, " %s ", o->kind == OPT_SET ? "_outage_set" : "_outage_words");
		add_quoted(out, v.words.buf);
		strbuf_addch(out, ';');
	}
	if (o->hint == HINT_FILE || o->hint == HINT_DIR)
		strbuf_addf(out, " _outage_files %s;", o->hint == HINT_FILE ? "file" : "directory");
	if (o->hint == HINT_MOUNT)
		strbuf_adds(out, " _outage_mounts;");
	if (out->len == before)
		strbuf_adds(out, " :;");
	strbuf_release(&v.words);
}

static void bash_values(const struct command *cmd, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(cmd->options);

	while (opt_next(&it)) {
		const struct opt *o = it.o;

		if (!opt_is_option(o) || !o->arg || *o->arg == '[')
			continue;
		strbuf_addf(out, "\t'%s ", cmd->name);
		opt_print_name(&it, out);
		strbuf_adds(out, "'");
		if (o->name && o->letter && !(it.group && it.group->prefix))
			strbuf_addf(out, " | '%s -%c'", cmd->name, o->letter);
		strbuf_adds(out, ")");
		bash_value(o, out);
		strbuf_adds(out, ";\n"); /* the second of ";;" */
	}
}

static void bash_options(const struct command *cmd, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(cmd->options);

	strbuf_addf(out, "\t'%s') _outage_words '", cmd->name);
	while (opt_next(&it))
		if (opt_is_option(it.o)) {
			opt_print_name(&it, out);
			strbuf_addch(out, ' ');
		}
	strbuf_adds(out, "--help' ;;\n");
}

static void bash_subs(const struct command *cmd, struct strbuf *out)
{
	if (!cmd->sub)
		return;
	strbuf_addf(out, "\t'%s') echo '", cmd->name);
	add_subcommands(cmd, out);
	strbuf_adds(out, "' ;;\n");
}

static void bash_arguments(const struct command *cmd, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(cmd->options);
	auto_strbuf all = STRBUF_INIT;

	while (opt_next(&it))
		if (it.o->kind == OPT_ARGUMENT && (it.o->hint || it.o->words || it.o->list))
			bash_value(it.o, &all);
	if (all.len)
		strbuf_addf(out, "\t'%s')%s;\n", cmd->name, all.buf);
}

static void bash_function(const char *name, const char *what, each_fn *fn, const char *otherwise,
			  const struct command *const *programs, struct strbuf *out)
{
	strbuf_addf(out, "\n# %s\n%s() {\n\tcase $1 in\n", what, name);
	for (; *programs; programs++)
		for_each(*programs, fn, out);
	strbuf_addf(out, "%s\tesac\n}\n", otherwise);
}

void complete_bash(const struct command *const *programs, struct strbuf *out)
{
	strbuf_adds(out, complete_bash_head);
	bash_function("_outage_sub", "COMMAND: its subcommands", bash_subs, "", programs, out);
	bash_function("_outage_options", "COMMAND", bash_options, "", programs, out);
	bash_function("_outage_arguments", "COMMAND", bash_arguments, "", programs, out);
	bash_function("_outage_value", "'COMMAND OPTION': fails if the option takes no value",
		      bash_values, "\t*) return 1 ;;\n", programs, out);
	strbuf_adds(out, complete_bash_tail);
}

/* ---- zsh ---- */

static void zsh_action(const struct opt *o, struct strbuf *out)
{
	struct value v = value_of(o);
	const char *words = strbuf_str(&v.words);
	bool files = o->hint == HINT_FILE || o->hint == HINT_DIR;

	if (v.words.len && o->kind == OPT_SET)
		strbuf_addf(out, "_sequence compadd - %s", words);
	else if (v.words.len && files)
		strbuf_addf(out, "_outage_words_or_%s %s", o->hint == HINT_FILE ? "files" : "dirs",
			    words);
	else if (v.words.len && o->hint == HINT_MOUNT)
		strbuf_addf(out, "_outage_words_or_mounts %s", words);
	else if (v.words.len)
		strbuf_addf(out, "(%s)", words);
	else if (files)
		strbuf_adds(out, o->hint == HINT_FILE ? "_files" : "_files -/");
	else if (o->hint == HINT_MOUNT)
		strbuf_adds(out, "_outage_mounts");
	else
		strbuf_addch(out, ' ');
	strbuf_release(&v.words);
}

/* Escapes a text between brackets, or before a colon, in a specification of _arguments. */
static void zsh_escaped(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			strbuf_addch(out, '\\');
		strbuf_addch(out, *text);
	}
}

static void zsh_option(const struct opt_iter *it, struct strbuf *out)
{
	const struct opt *o = it->o;
	bool letter = o->name && o->letter && !(it->group && it->group->prefix);
	auto_strbuf spec = STRBUF_INIT;

	strbuf_adds(out, "\t\t'*'");
	if (letter)
		strbuf_addf(out, "{-%c%s,", o->letter, o->arg ? "+" : "");
	opt_print_name(it, out);
	if (o->arg)
		strbuf_adds(out, !o->name ? "+" : *o->arg == '[' ? "=-" : "=");
	if (letter)
		strbuf_addch(out, '}');
	strbuf_addch(&spec, '[');
	zsh_escaped(&spec, o->help);
	strbuf_addch(&spec, ']');
	if (o->arg) {
		strbuf_adds(&spec, *o->arg == '[' ? "::" : ":");
		zsh_escaped(&spec, o->arg);
		strbuf_addch(&spec, ':');
		zsh_action(o, &spec);
	}
	add_quoted(out, spec.buf);
	strbuf_adds(out, " \\\n");
}

static void zsh_function_name(const struct command *cmd, struct strbuf *out)
{
	strbuf_adds(out, "_outage_");
	for (const char *c = cmd->name; *c; c++)
		strbuf_addch(out, *c == ' ' ? '_' : *c);
}

static void zsh_subs(const struct command *cmd, struct strbuf *out)
{
	strbuf_adds(out, "\tcase $state in\n\tcommand)\n\t\t_values command");
	for (size_t i = 0; cmd->sub[i]; i++) {
		auto_strbuf one = STRBUF_INIT;

		if (is_hidden(cmd->sub[i]))
			continue;
		strbuf_addf(&one, "%s[", command_short_name(cmd->sub[i]));
		zsh_escaped(&one, cmd->sub[i]->summary);
		strbuf_adds(&one, "]");
		strbuf_adds(out, " \\\n\t\t\t");
		add_quoted(out, one.buf);
	}
	strbuf_adds(out, "\n\t\t;;\n\targuments)\n\t\tcase $words[1] in\n");
	for (size_t i = 0; cmd->sub[i]; i++) {
		if (is_hidden(cmd->sub[i]))
			continue;
		strbuf_addf(out, "\t\t%s) ", command_short_name(cmd->sub[i]));
		zsh_function_name(cmd->sub[i], out);
		strbuf_adds(out, " ;;\n");
	}
	strbuf_adds(out, "\t\tesac\n\t\t;;\n\tesac\n");
}

static void zsh_command(const struct command *cmd, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(cmd->options);
	struct opt argument = { .kind = OPT_ARGUMENT }; /* all of them */
	auto_strbuf words = STRBUF_INIT;

	strbuf_addch(out, '\n');
	zsh_function_name(cmd, out);
	strbuf_addf(out,
		    "() {\n\tlocal curcontext=$curcontext context state line\n\t_arguments %s \\\n",
		    cmd->sub ? "-C" : "-s");
	while (opt_next(&it)) {
		if (opt_is_option(it.o))
			zsh_option(&it, out);
		if (it.o->kind != OPT_ARGUMENT)
			continue;
		argument.arg = argument.arg ? argument.arg : it.o->arg;
		argument.hint = max(argument.hint, it.o->hint);
		if (words.len && (it.o->words || it.o->list))
			strbuf_addch(&words, ' ');
		opt_print_words(it.o, &words);
	}
	strbuf_adds(out, "\t\t'(-)'{-h,--help}'[print how it is used]'");
	if (cmd->sub)
		strbuf_adds(out, " \\\n\t\t'1:command:->command' '*::arguments:->arguments'");
	argument.words = words.len ? words.buf : NULL;
	if (argument.words || argument.hint) {
		auto_strbuf spec = STRBUF_INIT;

		strbuf_adds(&spec, "*:");
		zsh_escaped(&spec, argument.arg);
		strbuf_addch(&spec, ':');
		zsh_action(&argument, &spec);
		strbuf_adds(out, " \\\n\t\t");
		add_quoted(out, spec.buf);
	}
	strbuf_addch(out, '\n');
	if (cmd->sub)
		zsh_subs(cmd, out);
	strbuf_adds(out, "}\n");
}

void complete_zsh(const struct command *const *programs, struct strbuf *out)
{
	strbuf_adds(out, complete_zsh_head);
	for (; *programs; programs++)
		for_each(*programs, zsh_command, out);
	strbuf_adds(out, complete_zsh_tail);
}

/* ---- fish ---- */

static void fish_begin(const struct command *cmd, bool exactly, struct strbuf *out)
{
	strbuf_addf(out, "complete -c %s", streq(cmd->name, "lazyfs") ? "lazyfs" : "outage");
	if (!cmd->alone)
		strbuf_addf(out, " -n '__outage_at %s%s'", exactly ? "-x " : "", cmd->name);
	else if (cmd->sub)
		strbuf_adds(out, " -n '__outage_at -x'");
}

static void fish_value(const struct opt *o, struct strbuf *out)
{
	struct value v = value_of(o);
	bool files = o->hint == HINT_FILE || o->hint == HINT_DIR;

	if (files)
		strbuf_adds(out, " -F");
	if (o->hint == HINT_MOUNT) {
		strbuf_adds(out, " -a '(__outage_mounts)'");
	} else if (v.words.len) {
		strbuf_adds(out, " -a ");
		add_quoted(out, v.words.buf);
	}
	strbuf_release(&v.words);
}

static void fish_options(const struct command *cmd, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(cmd->options);

	while (opt_next(&it)) {
		const struct opt *o = it.o;
		bool option = opt_is_option(o);

		if (!option && (o->kind != OPT_ARGUMENT || (!o->hint && !o->words && !o->list)))
			continue;
		fish_begin(cmd, false, out);
		if (option && o->name) {
			auto_strbuf name = STRBUF_INIT;

			opt_print_name(&it, &name);
			strbuf_addf(out, " -l %s", name.buf + 2);
		}
		if (option && o->letter && !(it.group && it.group->prefix))
			strbuf_addf(out, " -s %c", o->letter);
		if (option && o->arg && *o->arg != '[')
			strbuf_adds(out,
				    o->hint == HINT_FILE || o->hint == HINT_DIR ? " -r" : " -x");
		fish_value(o, out);
		strbuf_adds(out, " -d ");
		add_quoted(out, o->help);
		strbuf_addch(out, '\n');
	}
}

static void fish_command(const struct command *cmd, struct strbuf *out)
{
	strbuf_addf(out, "\n# %s\n", cmd->name);
	for (size_t i = 0; cmd->sub && cmd->sub[i]; i++) {
		if (is_hidden(cmd->sub[i]))
			continue;
		fish_begin(cmd, true, out);
		strbuf_addf(out, " -a %s -d ", command_short_name(cmd->sub[i]));
		add_quoted(out, cmd->sub[i]->summary);
		strbuf_addch(out, '\n');
	}
	fish_options(cmd, out);
	fish_begin(cmd, false, out);
	strbuf_adds(out, " -l help -s h -d 'print how it is used'\n");
}

void complete_fish(const struct command *const *programs, struct strbuf *out)
{
	strbuf_adds(out, complete_fish_head);
	strbuf_adds(out, "complete -c outage -f\ncomplete -c lazyfs -f\n");
	for (; *programs; programs++)
		for_each(*programs, fish_command, out);
}
