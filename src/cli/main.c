/* SPDX-License-Identifier: MIT */
/* main.c - the table of commands, and what they share. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/mounting.h"
#include "fuse/disk_fuse.h"
#include "target/machine.h"
#include "trust/trust.h"

static const struct command *const commands[] = {
#define COMMAND(name_) &cmd_##name_,
#include "cli/commands.def"
#undef COMMAND
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
	return cli_failf("%s; try 'outage %s --help'", what, cmd->name);
}

int cli_unknown(const struct command *cmd, int option, char *const *argv)
{
	if (option == ':')
		return cli_usage(cmd, "%s needs a value", argv[optind - 1]);
	if (optopt > 0 && optopt < 128) /* perhaps one of several in a word */
		return cli_usage(cmd, "unknown option -%c", optopt);
	if (optopt) /* a known one with a value that it does not take */
		return cli_usage(cmd, "%.*s takes no value", (int)strcspn(argv[optind - 1], "="),
				 argv[optind - 1]);
	return cli_usage(cmd, "unknown option %.60s", argv[optind - 1]);
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

/* Without a command: what can be done, and what of it here, in a screen that is read at once. */
static void print_overview(void)
{
	auto_strbuf here = STRBUF_INIT;

	printf("outage %s - finds out what is lost when the power goes out\n\n", OUTAGE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  outage %-8s %s\n", commands[i]->name, commands[i]->summary);
	machine_summary(&here);
	printf("\n%s. Begin with: %soutage test -t ext4 --bounds seq-1\n", strbuf_str(&here),
	       geteuid() == 0 ? "" : "sudo ");
}

static void print_help(void)
{
	printf("usage: outage [-v | -q] COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n'outage COMMAND --help' tells more; so does 'man outage'.\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (streq(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	const char *names[ARRAY_SIZE(commands)];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i]->name;
	const char *like = opt_most_like(name, names, ARRAY_SIZE(commands));
	return cli_failf("there is no command '%.60s'%s%s%s; 'outage --help' lists them", name,
			 like ? " (did you mean " : "", like ? like : "", like ? "?)" : "");
}

static void print_command_help(const struct command *cmd, bool all)
{
	auto_strbuf text = STRBUF_INIT;
	unsigned more = opt_help(cmd->options, all, &text);

	printf("%s\n%s", cmd->usage, strbuf_str(&text));
	if (more)
		printf("\n'outage %s --help all' tells %u more options; so does the manual page.\n",
		       cmd->name, more);
	if (cmd->notes)
		printf("\n%s", cmd->notes);
}

/* Reads the options of a command, and runs it. */
static int perform(const struct command *cmd, int argc, char **argv)
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
			status = cmd->act(o, &args);
		args_release(&args);
	}
	if (cmd->release)
		cmd->release(o);
	return status;
}

static int perform_sub(const struct command *cmd, int argc, char **argv)
{
	auto_strbuf all = STRBUF_INIT;
	bool help = argc > 1 && (streq(argv[1], "--help") || streq(argv[1], "-h"));

	for (size_t i = 0; cmd->sub[i]; i++) {
		const char *name = cmd->sub[i]->name + strlen(cmd->name) + 1;

		if (argc > 1 && streq(argv[1], name))
			return perform(cmd->sub[i], argc - 1, argv + 1);
		strbuf_addf(&all, "%s%s", !i ? "" : cmd->sub[i + 1] ? ", " : " or ", name);
	}
	if (!help)
		return cli_usage(cmd, "say %s%s%.40s%s", strbuf_str(&all),
				 argc > 1 ? ", not '" : "", argc > 1 ? argv[1] : "",
				 argc > 1 ? "'" : "");
	printf("%s\n", cmd->usage);
	for (size_t i = 0; cmd->sub[i]; i++)
		printf("  outage %-14s %s\n", cmd->sub[i]->name, cmd->sub[i]->summary);
	printf("\nEach has its own --help.\n");
	return EXIT_OK;
}

static int run_command(int argc, char **argv)
{
	const struct command *cmd = find_command(argv[0]);

	if (!cmd)
		return unknown_command(argv[0]);
	if (cmd->run && argc > 1 && (streq(argv[1], "--help") || streq(argv[1], "-h"))) {
		fputs(cmd->usage, stdout);
		return cli_flush();
	}
	int status = cmd->sub	    ? perform_sub(cmd, argc, argv)
		     : cmd->options ? perform(cmd, argc, argv)
				    : cmd->run(argc, argv);
	int flushed = cli_flush();
	return status == EXIT_OK ? flushed : status;
}

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
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	int i = 1;

	disk_register(&disk_fuse);
	widen_path();
	/* A reader that goes away shows as EPIPE, which is reported; no silent death. */
	signal(SIGPIPE, SIG_IGN);
	if (argc && streq(slash ? slash + 1 : argv[0], "lazyfs"))
		return lazyfs_main(argc, argv);
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (streq(argv[i], "--help") || streq(argv[i], "-h")) {
			print_help();
			return cli_flush();
		}
		if (streq(argv[i], "--version")) {
			printf("outage %s\n", OUTAGE_VERSION);
			return cli_flush();
		}
		if (streq(argv[i], "-v"))
			log_set_level(log_get_level() == LOG_WARN ? LOG_INFO : LOG_DEBUG);
		else if (streq(argv[i], "-q"))
			log_set_level(LOG_ERROR);
		else
			return cli_failf("unknown option '%.60s'; try 'outage --help'", argv[i]);
	}
	if (i >= argc) {
		print_overview();
		return cli_flush();
	}
	return run_command(argc - i, argv + i);
}
