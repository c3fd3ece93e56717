/* SPDX-License-Identifier: MIT */
/* main.c - the table of commands, and what they share. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/log.h"
#include "base/similar.h"
#include "cli/cli.h"
#include "cli/mounting.h"
#include "record/disk_fuse.h"
#include "target/machine.h"
#include "trust/trust.h"

static const struct command *const commands[] = {
#define COMMAND(name_) &cmd_##name_,
#include "cli/commands.def"
#undef COMMAND
	NULL,
};

int cli_failf(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("outage: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FAILED;
}

int cli_fail(const struct err *err)
{
	return cli_failf("%s", err->msg);
}

void cli_ready_to_mark(struct err *why)
{
	if (trust_ready(why))
		log_debug("%s", why->msg);
}

void cli_tell_unmarked(const struct err *why)
{
	if (why->code)
		log_warn("%s: what was kept has no mark of yours, and will need --trust", why->msg);
}

void cli_tell_strange(const char *dir)
{
	log_warn("%s was not made by you on this machine: read what is written before it is run",
		 dir);
}

const char *cli_why_untried(bool signalled, uint64_t time_ns)
{
	return signalled ? "nothing was tried: a signal came before the first crash state was "
			   "checked; begin again"
	       : time_ns ? "nothing was tried: the time was up before the first crash state was "
			   "checked; give more --time"
			 : "nothing was tried: no crash state was checked; see --budget and "
			   "--max-subset";
}

int cli_usage(const struct command *cmd, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return cli_failf("%s; try '%s%s --help'", what, cmd->alone ? "" : "outage ", cmd->name);
}

void cli_json_begin(struct json *j)
{
	json_init(j, xcalloc(1, sizeof(*j->out)), true);
	json_object(j);
}

void cli_json_end(struct json *j)
{
	json_end(j);
	fputs(strbuf_str(j->out), stdout);
	strbuf_release(j->out);
	free(j->out);
}

int cli_flush(void)
{
	static bool told;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_OK;
	if (told)
		return EXIT_FAILED;
	told = true;
	if (errno == EPIPE)
		return cli_failf("standard output was closed before everything was written");
	return cli_failf("cannot write to standard output: %m");
}

static void print_commands(const struct command *const *all, const char *before)
{
	for (; *all; all++)
		if ((*all)->summary)
			printf("  %s%-*s %s\n", before, (int)(*before ? 8 : 10),
			       command_short_name(*all), (*all)->summary);
}

/* Each line of `text`: after `first` or, as wide, blanks; and after `name`, if it has one. */
static void print_lines(const char *first, const char *name, const char *text)
{
	for (const char *before = first; text; before = "") {
		const char *end = strchrnul(text, '\n');

		printf("%-*s%s%s%.*s\n", (int)strlen(first), before, name,
		       *name && end > text ? " " : "", (int)(end - text), text);
		text = *end ? end + 1 : NULL;
	}
}

static void print_prose(const char *first, const char *text)
{
	auto_strbuf all = STRBUF_INIT;

	strbuf_adds(&all, first);
	opt_wrap(&all, strlen(first), text, 0);
	fputs(strbuf_str(&all), stdout);
}

static void print_command_help(const struct command *cmd, bool all)
{
	auto_free char *name = xasprintf("%s%s", cmd->alone ? "" : "outage ", cmd->name);
	auto_strbuf text = STRBUF_INIT;
	unsigned more = opt_help(cmd->options, all, &text);

	print_lines("usage: ", name, cmd->usage ? cmd->usage : "");
	if (cmd->about)
		print_prose("\n", cmd->about);
	if (cmd->sub) {
		putchar('\n');
		print_commands(cmd->sub, "");
	}
	printf("%s%s", text.len ? "\n" : "", strbuf_str(&text));
	if (more || cmd->sub || cmd->status || cmd->example)
		putchar('\n');
	if (more)
		printf("'%s --help all' tells %u more options; so does the manual page.\n", name,
		       more);
	if (cmd->sub)
		printf("'%s COMMAND --help' tells more; so does the manual page.\n", name);
	if (cmd->status)
		print_prose("Exit status: ", cmd->status);
	if (cmd->example)
		print_lines("example: ", "", cmd->example);
}

static int unknown_command(const struct command *cmd, const char *name)
{
	struct vec_of(const char *) names = { 0 };

	for (size_t i = 0; cmd->sub[i]; i++)
		vec_push(&names, command_short_name(cmd->sub[i]));
	vec_push(&names, NULL);
	const char *like = similar_of(name, names.v);
	vec_release(&names);
	return cli_usage(cmd, "there is no command '%.60s'%s%s%s", name,
			 like ? " (did you mean " : "", like ? like : "", like ? "?)" : "");
}

/* Reads the options of a command, and runs it; argv[0] is its name. An exit status. */
static int cli_run(const struct command *cmd, int argc, char **argv);

static int run_sub(const struct command *cmd, void *o, struct args *args)
{
	if (!args->n && cmd->run)
		return cmd->run(o, args);
	if (!args->n)
		return cli_usage(cmd, "a command is missing");
	for (size_t i = 0; cmd->sub[i]; i++)
		if (streq(args->v[0], command_short_name(cmd->sub[i])))
			return cli_run(cmd->sub[i], args->n, args->v);
	return unknown_command(cmd, args->v[0]);
}

static int cli_run(const struct command *cmd, int argc, char **argv)
{
	auto_free void *o = xcalloc(1, max(cmd->size, (size_t)1));
	struct err err = ERR_INIT;
	struct args args;
	int status = EXIT_OK;

	if (cmd->init)
		cmd->init(o);
	if (opt_parse(cmd->options, cmd->order, o, argc, argv, &args, &err)) {
		status = cli_usage(cmd, "%s", err.msg);
	} else {
		if (args.help)
			print_command_help(cmd, args.help_all);
		else
			status = cmd->sub ? run_sub(cmd, o, &args) : cmd->run(o, &args);
		args_release(&args);
	}
	if (cmd->release)
		cmd->release(o);
	return status;
}

/* ---- the program ---- */

static int say_more(void *unused, const char *arg, struct err *err)
{
	(void)unused, (void)arg, (void)err;
	log_set_level(log_get_level() == LOG_WARN ? LOG_INFO : LOG_DEBUG);
	return 0;
}

static int say_less(void *unused, const char *arg, struct err *err)
{
	(void)unused, (void)arg, (void)err;
	log_set_level(LOG_ERROR);
	return 0;
}

struct main_options {
	bool version;
};

static const struct opt main_options[] = {
	{ OPT_CALL, NULL, 'v', NULL, .call = say_more, .help = "say more; twice: everything" },
	{ OPT_CALL, NULL, 'q', NULL, .call = say_less, .help = "say errors only" },
	{ OPT_FLAG, "version", 0, NULL, OPT_AT(struct main_options, version),
	  .help = "print the version" },
	OPT_END
};

/* Without a command: what can be done, and what of it here, in a screen that is read at once. */
static int overview(void *given, struct args *args)
{
	const struct main_options *o = given;
	auto_strbuf here = STRBUF_INIT;

	(void)args;
	if (o->version) {
		printf("outage %s\n", OUTAGE_VERSION);
		return EXIT_OK;
	}
	printf("outage %s - finds out what is lost when the power goes out\n\n", OUTAGE_VERSION);
	print_commands(commands, "outage ");
	machine_summary(&here);
	printf("\n%s. Begin with: %soutage test -t ext4 --bounds seq-1\n", strbuf_str(&here),
	       geteuid() == 0 ? "" : "sudo ");
	return EXIT_OK;
}

const struct command cmd_outage = {
	.name = "outage",
	.alone = true,
	.usage = "[-v | -q] COMMAND [OPTIONS]",
	.options = main_options,
	.order = OPT_BEFORE,
	.size = sizeof(struct main_options),
	.run = overview,
	.sub = commands,
};

/* mkfs and fsck are where the PATH of an ordinary user does not lead; he needs them for guests. */
static void widen_path(void)
{
	const char *path = getenv("PATH");

	if (geteuid() == 0 || !path)
		return;
	auto_free char *wide = xasprintf("%s:/usr/sbin:/sbin", path);
	setenv("PATH", wide, 1);
}

int main(int argc, char **argv)
{
	bool lazyfs = argc && streq(basename(argv[0]), "lazyfs");

	disk_register(&disk_fuse);
	widen_path();
	/* A reader that goes away shows as EPIPE, which is reported; no silent death. */
	signal(SIGPIPE, SIG_IGN);
	int status = cli_run(lazyfs ? &cmd_lazyfs : &cmd_outage, argc, argv);
	int flushed = cli_flush();
	return status == EXIT_OK ? flushed : status;
}
