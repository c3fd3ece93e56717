/* SPDX-License-Identifier: MIT */
/* cmd_mount.c - outage mount: the file system that forgets what was not synced. */
#include <getopt.h>

#include "base/number.h"
#include "cli/mounting.h"

static const char usage[] =
	"usage: outage mount [OPTIONS] ROOT MNT\n"
	"\n"
	"Shows the directory ROOT on the directory MNT, and keeps what programs write there in\n"
	"memory until they sync it. A fault, or 'outage ctl MNT clear-cache', loses the rest, as "
	"a\n"
	"power cut would. It is served until it is unmounted ('outage umount MNT'); then nothing "
	"is\n"
	"lost.\n"
	"\n"
	"  -c, --config FILE     a configuration of LazyFS; faults, FIFOs, cache and log are in "
	"it\n"
	"  -p, --profile NAME    what survives without a sync: ext4-ordered (default),\n"
	"                        ext4-writeback, xfs, btrfs, minimal, lazyfs (default with "
	"--config)\n"
	"  -f, --fault 'FAULT'   what shall go wrong, and when; any number of times:\n"
	"                        'torn-op file=a.log parts=3 persist=1,3'; see outage-faults(5)\n"
	"      --daemon          go into the background once it is mounted and answers\n"
	"      --log FILE        what happens: faults, what they lost, commands; default: "
	"standard\n"
	"                        error\n"
	"      --trace FILE      record all operations, for 'outage trace'; replaces it\n"
	"      --trace-data      with what was written\n"
	"      --trace-reads     and operations that change nothing\n"
	"      --cache-size SIZE room in memory; default: no limit\n"
	"      --page-size SIZE  of a page in it; default 4096\n"
	"      --block-size SIZE the unit in which what is unsynced is told; default: a page\n"
	"      --evict           when it is full, the oldest page becomes durable; else the "
	"newest\n"
	"      --allow-other     other users may use it, too\n"
	"      --no-real-sync    a sync does not sync ROOT's own file system: faster\n"
	"      --socket PATH     one more socket for commands\n"
	"  -o OPTION             a further mount option, as of mount.fuse3(8)\n"
	"\n"
	"Exit status: 0 unmounted, 2 failed, 3 a fault or a command crashed it.\n"
	"\n"
	"example: outage mount --daemon data mnt && outage ctl mnt clear-cache\n";

enum {
	OPT_DAEMON = 256,
	OPT_LOG,
	OPT_TRACE,
	OPT_TRACE_DATA,
	OPT_TRACE_READS,
	OPT_CACHE,
	OPT_PAGE,
	OPT_BLOCK,
	OPT_EVICT,
	OPT_OTHER,
	OPT_NO_SYNC,
	OPT_SOCKET
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "profile", required_argument, NULL, 'p' },
	{ "fault", required_argument, NULL, 'f' },
	{ "daemon", no_argument, NULL, OPT_DAEMON },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "trace-data", no_argument, NULL, OPT_TRACE_DATA },
	{ "trace-reads", no_argument, NULL, OPT_TRACE_READS },
	{ "cache-size", required_argument, NULL, OPT_CACHE },
	{ "page-size", required_argument, NULL, OPT_PAGE },
	{ "block-size", required_argument, NULL, OPT_BLOCK },
	{ "evict", no_argument, NULL, OPT_EVICT },
	{ "allow-other", no_argument, NULL, OPT_OTHER },
	{ "no-real-sync", no_argument, NULL, OPT_NO_SYNC },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int parse_size(const char *option, uint64_t *out)
{
	struct err err = ERR_INIT;

	if (number_parse_size(optarg, out, &err))
		return cli_usage(&cmd_mount, "%s: %s", option, err.msg);
	return *out ? EXIT_OK : cli_usage(&cmd_mount, "%s 0 leaves nothing", option);
}

static int parse_option(struct forget_run_opts *o, bool *background, int option, char *const *argv)
{
	switch (option) {
	case 'c':
		o->config = optarg;
		return EXIT_OK;
	case 'p':
		o->profile = optarg;
		return EXIT_OK;
	case 'f':
		vec_push(&o->faults, optarg);
		return EXIT_OK;
	case 'o':
		vec_push(&o->fuse_options, optarg);
		return EXIT_OK;
	case OPT_DAEMON:
		*background = true;
		return EXIT_OK;
	case OPT_LOG:
		o->log = optarg;
		return EXIT_OK;
	case OPT_TRACE:
		o->trace = optarg;
		return EXIT_OK;
	case OPT_TRACE_DATA:
		o->trace_data = true;
		return EXIT_OK;
	case OPT_TRACE_READS:
		o->trace_reads = true;
		return EXIT_OK;
	case OPT_CACHE:
		return parse_size("--cache-size", &o->cache_size);
	case OPT_PAGE:
		return parse_size("--page-size", &o->page_size);
	case OPT_BLOCK:
		return parse_size("--block-size", &o->block_size);
	case OPT_EVICT:
		o->evict = o->evict_said = true;
		return EXIT_OK;
	case OPT_OTHER:
		o->allow_other = true;
		return EXIT_OK;
	case OPT_NO_SYNC:
		o->real_sync = false;
		return EXIT_OK;
	case OPT_SOCKET:
		o->socket = optarg;
		return EXIT_OK;
	}
	return cli_unknown(&cmd_mount, option, argv);
}

static int parse_and_run(struct forget_run_opts *o, int argc, char **argv)
{
	bool background = false;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":c:p:f:o:h", long_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return cli_flush();
		}
		int rc = parse_option(o, &background, option, argv);
		if (rc)
			return rc;
	}
	if (argc - optind != 2)
		return cli_usage(&cmd_mount, "two directories are needed, ROOT and MNT");
	if ((o->trace_data || o->trace_reads) && !o->trace)
		return cli_usage(&cmd_mount, "--trace-data and --trace-reads go with --trace FILE");
	o->root = argv[optind];
	o->mnt = argv[optind + 1];
	/* What goes into a file is not said twice. */
	return mounting_run(o, background, o->log ? NULL : stderr);
}

static int run(int argc, char **argv)
{
	struct forget_run_opts o = { .real_sync = true, .log_append = true };
	int rc = parse_and_run(&o, argc, argv);

	forget_run_opts_release(&o);
	return rc;
}

const struct command cmd_mount = {
	.name = "mount",
	.summary = "mount the file system that forgets what was not synced",
	.usage = usage,
	.run = run,
};
