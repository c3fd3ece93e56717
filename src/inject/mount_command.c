/* SPDX-License-Identifier: MIT */
/*
 * mount_command.c - parses commands to a mount: lines of LazyFS's FIFO, and words of `outage ctl`.
 *
 * A line is "lazyfs::NAME::KEY=VALUE::KEY=VALUE". LazyFS cuts it at every "::"; here a "::" belongs
 * to the value before it unless a key follows, so that paths may have any text.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "base/number.h"
#include "base/similar.h"
#include "inject/internal.h"

enum takes { NOTHING, A_FAULT, AN_ID, A_NAME };

static const struct command_info {
	const char *name, *alias; /* the alias is LazyFS's name */
	enum command_kind kind;
	enum takes takes;
	bool in_line; /* LazyFS has this command, too */
	const char *words, *help;
} commands[] = {
	{ "clear-cache", "clear", COMMAND_CLEAR, A_FAULT, true,
	  "[survive=data|metadata|random] [op=OP file=PATH ...] [crash=true]",
	  "lose what is not synced, now or at an operation" },
	{ "crash", NULL, COMMAND_CRASH, A_FAULT, true,
	  "[timing=before|after op=OP from=PATH to=PATH]", "the same, and the mount ends" },
	{ "torn-op", NULL, COMMAND_FAULT, A_FAULT, true,
	  "file=PATH parts=N|parts_bytes=N,... persist=N,...",
	  "of the next write, only some parts are durable, and the mount ends" },
	{ "torn-seq", NULL, COMMAND_FAULT, A_FAULT, true, "file=PATH persist=N,...",
	  "of the writes until the next sync, only some are durable, and the mount ends" },
	{ "sync-pages", NULL, COMMAND_SYNC, A_FAULT, true,
	  "file=PATH "
	  "[pages=all|first|last|first-half|last-half|first-and-last|interleaved|random|N,...]",
	  "some pages of a file, and all other files, become durable" },
	{ "sync", NULL, COMMAND_SYNC, A_FAULT, false, "[file=PATH [pages=...]]",
	  "everything becomes durable, or a file, or some of its pages" },
	{ "error", NULL, COMMAND_FAULT, A_FAULT, true,
	  "op=OP error=EIO [file=PATH] [keep_dirty=true]", "an operation fails" },
	{ "short", NULL, COMMAND_FAULT, A_FAULT, true, "op=write|read bytes=N [file=PATH]",
	  "a write or read stops early" },
	{ "delay", NULL, COMMAND_FAULT, A_FAULT, true, "op=OP delay=100ms [file=PATH]",
	  "an operation waits first" },
	{ "checkpoint", "cache-checkpoint", COMMAND_CHECKPOINT, NOTHING, true, "",
	  "everything becomes durable" },
	{ "usage", "display-cache-usage", COMMAND_USAGE, NOTHING, true, "",
	  "how much of the cache is in use" },
	{ "report", "unsynced-data-report", COMMAND_REPORT, NOTHING, true, "",
	  "the unsynced files, and bytes in them" },
	{ "faults", NULL, COMMAND_FAULTS, NOTHING, false, "", "the faults that were set" },
	{ "cancel", NULL, COMMAND_CANCEL, AN_ID, false, "NUMBER", "remove a fault" },
	{ "snapshot", NULL, COMMAND_SNAPSHOT, A_NAME, false, "NAME",
	  "keep a copy of what is durable now" },
	{ "rollback", NULL, COMMAND_ROLLBACK, A_NAME, false, "NAME", "back to a snapshot" },
	{ "drop", NULL, COMMAND_DROP, A_NAME, false, "NAME", "remove a snapshot" },
	{ "snapshots", NULL, COMMAND_SNAPSHOTS, NOTHING, false, "",
	  "the snapshots that there are" },
	{ "status", NULL, COMMAND_STATUS, NOTHING, false, "", "the mount, and what it is set to" },
	{ "help", NULL, COMMAND_HELP, NOTHING, true, "", "this list" },
};

void inject_command_help(struct strbuf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command_info *c = &commands[i];

		strbuf_addf(out, "%s%s%s\n    %s", c->name, *c->words ? " " : "", c->words,
			    c->help);
		if (c->in_line)
			strbuf_addf(out, "; in the FIFO: lazyfs::%s%s",
				    c->takes == A_FAULT || !c->alias ? c->name : c->alias,
				    *c->words ? "::KEY=VALUE..." : "");
		strbuf_addch(out, '\n');
	}
	strbuf_adds(out, "Every fault takes op, file (or from, to; as file_glob or file_rgx, too), "
			 "occurrence and until.\n");
}

void inject_command_release(struct inject_command *c)
{
	fault_free(c->fault);
	free(c->name);
	free(c->answer);
	*c = (struct inject_command){ 0 };
}

static int find_command(const char *name, bool line, const struct command_info **out,
			struct err *err)
{
	const char *names[2 * ARRAY_SIZE(commands) + 1];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command_info *c = &commands[i];

		if (line && !c->in_line)
			continue;
		if (streq(c->name, name) || (c->alias && streq(c->alias, name))) {
			*out = c;
			return 0;
		}
		if (!line || !c->alias || c->takes == A_FAULT)
			names[n++] = c->name;
		if (c->alias && c->takes != A_FAULT)
			names[n++] = c->alias;
	}
	names[n] = NULL;
	const char *like = similar_of(name, names);

	if (like)
		return err_set(err, -EINVAL, "there is no command '%s'; did you mean '%s'?", name,
			       like);
	return err_set(err, -EINVAL, "there is no command '%s'; '%s' lists them", name,
		       line ? "lazyfs::help" : "help");
}

/* Turns a fault that waits for no operation into a command. */
static void do_now(const struct draft *d, struct fault *f, bool lazyfs, struct inject_command *out)
{
	if (f->type == FAULT_SYNC) {
		out->kind = COMMAND_SYNC;
		out->fault = f;
		return;
	}
	out->kind = f->crash ? COMMAND_CRASH : COMMAND_CLEAR;
	if (lazyfs && out->kind == COMMAND_CLEAR)
		out->answer = xstrdup("finished::clear-cache");
	if (d->given)
		out->fault = f;
	else
		fault_free(f);
}

/* Parses a fault, whose words are KEY=VALUE. */
static int parse_fault(const char *name, char *const *words, size_t n, bool line,
		       const struct inject_places *at, struct inject_command *out, struct err *err)
{
	__attribute__((cleanup(draft_release))) struct draft d = { 0 };
	struct fault *f;
	bool known = draft_begin(&d, name, line ? DIALECT_LINE : DIALECT_OURS, at);

	assert(known);
	for (size_t i = 0; i < n; i++) {
		const char *eq = strchr(words[i], '=');

		if (!eq)
			return err_set(err, -EINVAL,
				       "'%s' means nothing to %s, which takes words of the form "
				       "KEY=VALUE",
				       words[i], name);
		auto_free char *key = xmemdupz(words[i], (size_t)(eq - words[i]));
		int rc = draft_set(&d, key, eq + 1, err);

		if (rc)
			return rc;
	}
	int rc = draft_finish(&d, &f, err);

	if (rc < 0)
		return rc;
	if (rc) {
		out->kind = COMMAND_FAULT;
		out->fault = f;
	} else {
		do_now(&d, f, line, out);
	}
	return 0;
}

static int parse_id(const char *word, uint64_t *out, struct err *err)
{
	if (number_parse(word, out) || !*out)
		return err_set(err, -EINVAL,
			       "'%s' is not the number of a fault; 'faults' lists them", word);
	return 0;
}

/* Parses the name of a snapshot, which becomes a directory's name. */
static int parse_name(const char *word, char **out, struct err *err)
{
	bool good = *word && *word != '.' && strlen(word) <= 64;

	for (const char *c = word; *c; c++)
		good &= isalnum((unsigned char)*c) || strchr("._-", *c) != NULL;
	if (!good)
		return err_set(err, -EINVAL,
			       "'%s' cannot be the name of a snapshot; take up to 64 letters, "
			       "digits, '_', '-' and '.'",
			       word);
	*out = xstrdup(word);
	return 0;
}

static int parse_words(const struct command_info *c, char *const *words, size_t n, bool line,
		       const struct inject_places *at, struct inject_command *out, struct err *err)
{
	if (c->takes == A_FAULT && c->kind == COMMAND_SYNC && !n && !line) {
		out->kind = COMMAND_CHECKPOINT;
		return 0;
	}
	if (c->takes == A_FAULT)
		return parse_fault(c->name, words, n, line, at, out, err);
	out->kind = c->kind;
	if (c->takes == NOTHING && n)
		return err_set(err, -EINVAL, "%s takes nothing; what is '%s'?", c->name, words[0]);
	if (c->takes != NOTHING && n != 1)
		return err_set(err, -EINVAL, "%s takes one word, %s", c->name,
			       c->takes == AN_ID ? "the number of a fault" : "a name");
	if (c->takes == AN_ID)
		return parse_id(words[0], &out->id, err);
	if (c->takes == A_NAME)
		return parse_name(words[0], &out->name, err);
	return 0;
}

int inject_command_parse(char *const *words, size_t n, const char *root, const char *mnt,
			 struct inject_command *out, struct err *err)
{
	const struct inject_places at = { root, mnt };
	const struct command_info *c;
	struct inject_command cmd = { 0 };
	int rc;

	if (!n)
		return err_set(err, -EINVAL, "which command? 'help' lists them");
	rc = find_command(words[0], false, &c, err);
	if (!rc)
		rc = parse_words(c, words + 1, n - 1, false, &at, &cmd, err);
	if (rc)
		inject_command_release(&cmd);
	else
		*out = cmd;
	return rc;
}

/* ---- lines ---- */

/* True if "KEY=" follows. */
static bool key_follows(const char *s)
{
	const char *c = s;

	while ((*c >= 'a' && *c <= 'z') || *c == '_' || *c == '-')
		c++;
	return c > s && *c == '=';
}

/* Cuts the text at the next separator, and returns the part behind it, or NULL. */
static char *cut(char *s)
{
	for (char *sep = strstr(s, "::"); sep; sep = strstr(sep + 1, "::")) {
		if (!key_follows(sep + 2))
			continue;
		*sep = '\0';
		return sep + 2;
	}
	return NULL;
}

static int parse_line(char *line, const struct inject_places *at, struct inject_command *out,
		      struct err *err)
{
	static const char prefix[] = "lazyfs::";
	auto_vec struct vec_of(char *) words = { 0 };
	const struct command_info *c;
	char *name, *rest;
	int rc;

	if (strncmp(line, prefix, strlen(prefix)) != 0)
		return err_set(err, -EINVAL,
			       "a command begins with lazyfs::, as in lazyfs::clear-cache; this is "
			       "'%.64s'",
			       line);
	name = line + strlen(prefix);
	rest = cut(name);
	if (streq(name, "snapshot") || strncmp(name, "snapshot::", 10) == 0)
		return err_set(
			err, -EINVAL,
			"snapshots are made with 'outage ctl MNT snapshot NAME', not through "
			"the FIFO");
	rc = find_command(name, true, &c, err);
	while (!rc && rest) {
		char *word = rest;

		rest = cut(word);
		vec_push(&words, word);
	}
	if (!rc)
		rc = parse_words(c, words.v, words.n, true, at, out, err);
	return rc;
}

int inject_command_parse_lazyfs(const char *line, const char *root, const char *mnt,
				struct inject_command *out, struct err *err)
{
	const struct inject_places at = { root, mnt };
	auto_free char *copy = xstrdup(line);
	struct inject_command cmd = { 0 };
	size_t len = strlen(copy);

	while (len && strchr("\r\n", copy[len - 1]))
		copy[--len] = '\0';
	int rc = parse_line(copy, &at, &cmd, err);

	if (rc)
		inject_command_release(&cmd);
	else
		*out = cmd;
	return rc;
}
