/* SPDX-License-Identifier: MIT */
/* cmd_ctl.c - outage ctl: send a command to a mount, and print its answer. */

#include "cli/cli.h"
#include "cli/groups.h"
#include "forget/forget_client.h"
#include "forget/forget_run.h"

struct options {
	bool json;
	const char *socket;
	uint64_t timeout_ns;
};

static int print_commands(void)
{
	auto_strbuf text = STRBUF_INIT;

	forget_run_help(&text);
	fputs(strbuf_str(&text), stdout);
	return cli_flush();
}

static int call(const struct options *o, const char *mnt, char *const *words, size_t n)
{
	struct forget_client client = { .fd = -1 };
	auto_strbuf answer = STRBUF_INIT;
	auto_place place = { 0 };
	struct err err = ERR_INIT;
	bool done = false;
	int rc = forget_place_find(mnt, &place, &err);

	if (!rc)
		rc = forget_client_open(&place, o->socket, &client, &err);
	if (!rc)
		rc = forget_client_call(
			&client, words, n, o->json,
			(unsigned)min(o->timeout_ns / 1000000000, (uint64_t)86400 * 365), &answer,
			&done, &err);
	forget_client_close(&client);
	if (rc)
		return cli_fail(&err);
	if (!done && !o->json)
		return cli_failf("%.*s", (int)strcspn(strbuf_str(&answer), "\n"),
				 strbuf_str(&answer));
	fwrite(strbuf_str(&answer), 1, answer.len, stdout);
	int flushed = cli_flush();
	return done ? flushed : EXIT_FAILED;
}

/* The first word of each line that forget_run_help() has. */
static void list_commands(struct strbuf *out)
{
	auto_strbuf help = STRBUF_INIT;
	char *rest;

	forget_run_help(&help);
	rest = help.buf;
	for (const char *line; rest && (line = strsep(&rest, "\n"));)
		if (*line >= 'a' && *line <= 'z')
			strbuf_addf(out, "%s%.*s", out->len ? " " : "", (int)strcspn(line, " "),
				    line);
}

#define AT(member) OPT_AT(struct options, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "MNT", .hint = HINT_MOUNT, .help = "where it is mounted" },
	{ OPT_ARGUMENT, .arg = "COMMAND", .list = list_commands,
	  .help = "and what it takes: 'outage ctl help' lists them, and outage-faults(5)" },
	{ OPT_FLAG, "json", 0, NULL, AT(json), .help = "the answer as one JSON object" },
	{ OPT_TEXT, "socket", 0, "PATH", AT(socket), .hint = HINT_FILE,
	  .help = "the socket that 'outage mount --socket PATH' made" },
	OPTION_TIMEOUT("how long to wait for the answer", AT(timeout_ns), .otherwise = "300s"),
	OPT_END
};

static int run(void *given, struct args *args)
{
	const struct options *o = given;

	if (args->n == 1 && streq(args->v[0], "help"))
		return print_commands();
	if (args->n < 2)
		return cli_usage(&cmd_ctl, "a mount and a command are needed");
	return call(o, args->v[0], args->v + 1, (size_t)args->n - 1);
}

const struct command cmd_ctl = {
	.name = "ctl",
	.summary = "tell a mount to lose, tear, fail, keep or report something",
	.usage = "[OPTIONS] MNT COMMAND [ARGUMENT...]\n"
		 "help",
	.about = "Sends a command to the server of MNT, which 'outage mount' mounted, and prints "
		 "what it answers. Only the user who mounted it, and root, may.",
	.status = "0 done, 2 not done; one sentence on standard error says why",
	.example = "outage ctl mnt report\n"
		   "outage ctl mnt torn-op file=a.log parts=3 persist=1,3",
	.options = options,
	.size = sizeof(struct options),
	.run = run,
};
