/* SPDX-License-Identifier: MIT */
/*
 * options_man.c - the options part of a manual page, in scdoc, from the table of a command.
 *
 * A page has, where its options are told,
 *
 *	@options COMMAND
 *	@--name --other
 *		The words about them, in scdoc, indented by a tab.
 *	@end
 *
 * Every option of the table is told, in the order of the table: with what the page says of it, or
 * else a shared file of the same form (without the first and last line), or else its help. Names
 * that stand together are told together. A name that the command does not have is an error.
 */
#include "cli/options_man.h"

#include <ctype.h>
#include <errno.h>

struct man_note {
	char *names; /* with a blank before and after each */
	struct strbuf text;
	bool told;
};

struct notes vec_of(struct man_note);

static void notes_release(struct notes *n)
{
	vec_release_each(p, n, free(p->names), strbuf_release(&p->text));
}

/* One line of a block of notes. */
static void notes_add(struct notes *n, const char *line)
{
	if (*line == '@')
		vec_push(n, (struct man_note){ .names = xasprintf(" %s ", line + 1) });
	else if (n->n)
		strbuf_addf(&vec_last(n).text, "%s\n", line);
}

static struct man_note *notes_find(struct notes *n, const char *name)
{
	auto_free char *padded = xasprintf(" %s ", name);

	return vec_find(i, n, strstr(n->v[i].names, padded));
}

/* ---- one entry ---- */

/* The name in a note: "--name", "-o", "FILE..." or "--ref-OPTION". */
static void entry_name(const struct opt_iter *it, struct strbuf *out)
{
	if (it->group && it->group->prefix)
		strbuf_addf(out, "--%sOPTION", it->group->prefix);
	else if (it->o->kind == OPT_ARGUMENT)
		strbuf_adds(out, it->o->arg);
	else
		opt_print_name(it, out);
}

/* _SET_|_FILE_: words in capital letters are what the reader replaces. */
static void add_placeholder(const char *arg, struct strbuf *out)
{
	for (bool in = false; *arg || in; arg += *arg != '\0') {
		bool capital = isupper((unsigned char)*arg);

		if (capital != in)
			strbuf_addch(out, '_');
		in = capital;
		if (*arg)
			strbuf_addch(out, *arg);
	}
}

/* *-b*, *--bounds* _SET_|_FILE_ */
static void add_head(const struct opt_iter *it, struct strbuf *out)
{
	const struct opt *o = it->o;

	if (it->group && it->group->prefix) {
		strbuf_addf(out, "*--%s*_OPTION_ _VALUE_", it->group->prefix);
		return;
	}
	if (o->kind == OPT_ARGUMENT) {
		add_placeholder(o->arg, out);
		return;
	}
	if (o->letter)
		strbuf_addf(out, "*-%c*%s", o->letter, o->name ? ", " : "");
	if (o->name)
		strbuf_addf(out, "*--%s*", o->name);
	if (o->arg && *o->arg == '[')
		strbuf_adds(out, "[=");
	else if (o->arg)
		strbuf_addch(out, ' ');
	if (o->arg)
		add_placeholder(o->arg + (*o->arg == '['), out);
}

/* The help of the table, as a sentence. */
static void add_help(const struct opt_iter *it, struct strbuf *out)
{
	const struct opt *o = it->o;
	auto_strbuf help = STRBUF_INIT;

	if (it->group && it->group->prefix)
		strbuf_adds(&help, it->group->help);
	else
		opt_print_help(o, &help);
	strbuf_addch(out, '\t');
	for (const char *c = help.buf; *c; c++) {
		if (strchr("_*\\", *c))
			strbuf_addch(out, '\\');
		strbuf_addch(out, (char)(c == help.buf ? toupper((unsigned char)*c) : *c));
	}
	strbuf_adds(out, ".");
	if (o->otherwise)
		strbuf_addf(out, " Default: _%s_.", o->otherwise);
	strbuf_addch(out, '\n');
}

/* ---- a command ---- */

struct teller {
	struct notes page, shared;
	struct words told; /* names of entries: subcommands have some in common */
	const struct opt *section;
	struct strbuf *out;
};

static bool told_before(struct teller *t, const char *name)
{
	bool told = any_of(i, t->told.n, streq(t->told.v[i], name));

	if (!told)
		vec_push(&t->told, xstrdup(name));
	return told;
}

/* The heads of all entries that a note is about, in the order of the table. */
static void add_heads(const struct command *cmd, const struct man_note *note, struct strbuf *out)
{
	struct opt_iter it = OPT_ITER(cmd->options);
	bool any = false;

	while (opt_next(&it)) {
		auto_strbuf name = STRBUF_INIT;

		if (it.o->kind == OPT_SECTION)
			continue;
		entry_name(&it, &name);
		auto_free char *padded = xasprintf(" %s ", name.buf);
		if (!strstr(note->names, padded))
			continue;
		if (any)
			strbuf_adds(out, ", ");
		add_head(&it, out);
		any = true;
		if (it.group && it.group->prefix)
			break; /* one for all */
	}
}

static void tell_entry(struct teller *t, const struct command *cmd, const struct opt_iter *it)
{
	auto_strbuf name = STRBUF_INIT;

	entry_name(it, &name);
	if (told_before(t, name.buf))
		return;
	struct man_note *note = notes_find(&t->page, name.buf);
	if (!note)
		note = notes_find(&t->shared, name.buf);
	if (note && note->told)
		return;
	if (t->section)
		strbuf_addf(t->out, "## %s\n\n", t->section->help);
	t->section = NULL;
	if (note)
		add_heads(cmd, note, t->out);
	else
		add_head(it, t->out);
	strbuf_addch(t->out, '\n');
	if (note) {
		strbuf_adds(t->out, strbuf_str(&note->text));
		note->told = true;
	} else {
		add_help(it, t->out);
		strbuf_addch(t->out, '\n');
	}
}

static void tell_command(struct teller *t, const struct command *cmd)
{
	struct opt_iter it = OPT_ITER(cmd->options);

	while (opt_next(&it)) {
		if (it.o->kind == OPT_SECTION)
			t->section = it.o;
		else
			tell_entry(t, cmd, &it);
	}
}

/* Every name of a note of the page must be one that was told. */
static int check_notes(struct teller *t, const char *command, struct err *err)
{
	for (size_t i = 0; i < t->page.n; i++) {
		auto_free char *names = xstrdup(t->page.v[i].names);
		char *rest = names;

		for (char *name; (name = strsep(&rest, " "));) {
			if (*name && !any_of(k, t->told.n, streq(t->told.v[k], name)))
				return err_set(
					err, -EINVAL,
					"the page tells of %s, which outage %s does not have", name,
					command);
		}
	}
	return 0;
}

static const struct command *find(const struct command *cmd, const char *name)
{
	const struct command *found = streq(cmd->name, name) ? cmd : NULL;

	for (size_t i = 0; !found && cmd->sub && cmd->sub[i]; i++)
		found = find(cmd->sub[i], name);
	return found;
}

static int tell(const struct command *const *programs, const char *name, struct teller *t,
		struct err *err)
{
	const struct command *cmd = NULL;

	for (; !cmd && *programs; programs++)
		cmd = find(*programs, name);
	if (!cmd)
		return err_set(err, -EINVAL, "there is no command '%s'", name);
	tell_command(t, cmd);
	/* The options of subcommands, in one list; those of commands have pages of their own. */
	for (size_t i = 0; cmd->sub && !cmd->alone && cmd->sub[i]; i++) {
		tell_command(t, cmd->sub[i]);
		t->section = NULL;
	}
	strbuf_addf(t->out, "*-h*, *--help*%s\n\tPrint how it is used%s.\n",
		    cmd->sub ? "" : " [*all*]",
		    cmd->sub ? "" : "; with *all*, also what is rarely needed");
	return check_notes(t, name, err);
}

/* ---- a page ---- */

int man_page(const struct command *const *programs, char *page, char *shared, struct strbuf *out,
	     struct err *err)
{
	static const char begin[] = "@options ", end[] = "@end";
	struct teller t = { .out = out };
	const char *command = NULL;
	int rc = 0;

	for (char *line; shared && (line = strsep(&shared, "\n"));)
		notes_add(&t.shared, line);
	for (char *line; !rc && page && (line = strsep(&page, "\n"));) {
		if (strncmp(line, begin, strlen(begin)) == 0)
			command = line + strlen(begin);
		else if (command && streq(line, end)) {
			rc = tell(programs, command, &t, err);
			command = NULL;
		} else if (command)
			notes_add(&t.page, line);
		else if (*line || page)
			strbuf_addf(out, "%s\n", line);
	}
	if (!rc && command)
		rc = err_set(err, -EINVAL, "@options %s has no @end", command);
	notes_release(&t.page);
	notes_release(&t.shared);
	words_release(&t.told);
	return rc;
}
