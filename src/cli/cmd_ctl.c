/* SPDX-License-Identifier: MIT */
/* cmd_ctl.c - outage ctl: send a command to a mount, and print its answer. */
#include <getopt.h>

#include "base/number.h"
#include "cli/cli.h"
#include "fuse/forget_client.h"
#include "fuse/forget_run.h"

enum { DEFAULT_TIMEOUT_S = 300 };

static const char usage[] =
	"usage: outage ctl [OPTIONS] MNT COMMAND [ARGUMENT...]\n"
	"       outage ctl help\n"
	"\n"
	"Sends a command to the server of MNT, which 'outage mount' mounted, and prints what it\n"
	"answers. Only the user who mounted it, and root, may. 'outage ctl help' lists the "
	"commands\n"
	"and what they take; so do outage-ctl(1) and outage-faults(5).\n"
	"\n"
	"      --json            the answer as one JSON object\n"
	"      --socket PATH     the socket that 'outage mount --socket PATH' made\n"
	"      --timeout TIME    how long to wait for the answer; default 300s\n"
	"\n"
	"Exit status: 0 done, 2 not done; one sentence on standard error says why.\n"
	"\n"
	"example: outage ctl mnt report\n"
	"         outage ctl mnt torn-op file=a.log parts=3 persist=1,3\n";

enum { OPT_JSON = 256, OPT_SOCKET, OPT_TIMEOUT };

static const struct option long_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

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

static int run(int argc, char **argv)
{
	struct options o = { .timeout_ns = (uint64_t)DEFAULT_TIMEOUT_S * 1000000000 };
	struct err err = ERR_INIT;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (option) {
		case 'h':
			fputs(usage, stdout);
			return cli_flush();
		case OPT_JSON:
			o.json = true;
			break;
		case OPT_SOCKET:
			o.socket = optarg;
			break;
		case OPT_TIMEOUT:
			if (number_parse_duration(optarg, &o.timeout_ns, &err))
				return cli_fail(&err);
			break;
		default:
			return cli_unknown(&cmd_ctl, option, argv);
		}
	}
	argc -= optind;
	argv += optind;
	if (argc == 1 && streq(argv[0], "help"))
		return print_commands();
	if (argc < 2)
		return cli_usage(&cmd_ctl, "a mount and a command are needed");
	return call(&o, argv[0], argv + 1, (size_t)argc - 1);
}

const struct command cmd_ctl = {
	.name = "ctl",
	.summary = "tell a mount to lose, tear, fail, keep or report something",
	.usage = usage,
	.run = run,
};
