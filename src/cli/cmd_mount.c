/* SPDX-License-Identifier: MIT */
/* cmd_mount.c - outage mount: the file system that forgets what was not synced. */

#include "cli/groups.h"
#include "cli/mounting.h"

struct options {
	struct forget_run_opts run;
	bool background;
};

#define AT(member) OPT_AT(struct options, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "ROOT MNT", .hint = HINT_DIR,
	  .help = "where the data is, and where it is shown" },
	{ OPT_TEXT, "config", 'c', "FILE", AT(run.config), .hint = HINT_FILE,
	  .help = "a configuration of LazyFS; faults, FIFOs, cache and log are in it" },
	{ OPT_TEXT, "profile", 'p', "NAME", AT(run.profile), .help = HELP_PROFILE },
	{ OPT_LIST, "fault", 'f', "FAULT", AT(run.faults),
	  .help = "a fault, and when it strikes; any number of times: 'torn-op file=a.log "
		  "parts=3 persist=1,3'; see outage-faults(5)" },
	{ OPT_FLAG, "daemon", 0, NULL, AT(background),
	  .help = "go into the background once it is mounted and answers" },
	{ OPT_TEXT, "log", 0, "FILE", AT(run.log), .hint = HINT_FILE,
	  .help = "the events: faults, what they lost, commands; default: standard error" },
	{ OPT_TEXT, "trace", 0, "FILE", AT(run.trace), .hint = HINT_FILE,
	  .help = "record all operations, for 'outage trace'; replaces it" },
	{ OPT_FLAG, "trace-data", 0, NULL, AT(run.trace_data), .help = "with what was written" },
	{ OPT_FLAG, "trace-reads", 0, NULL, AT(run.trace_reads),
	  .help = "and operations that change nothing" },
	{ OPT_SIZE, "cache-size", 0, "SIZE", AT(run.cache_size), .rare = true, .least = 1,
	  .help = "room in memory; default: no limit" },
	{ OPT_SIZE, "page-size", 0, "SIZE", AT(run.page_size), .rare = true, .least = 1,
	  .help = "of a page in it; default: 4096" },
	{ OPT_SIZE, "block-size", 0, "SIZE", AT(run.block_size), .rare = true, .least = 1,
	  .help = "the unit in which what is unsynced is told; default: a page" },
	{ OPT_FLAG, "evict", 0, NULL, AT(run.evict), .rare = true,
	  .help = "when it is full, the oldest page becomes durable; else the newest" },
	{ OPT_FLAG, "allow-other", 0, NULL, AT(run.allow_other),
	  .help = "other users may use it, too" },
	{ OPT_OFF, "no-real-sync", 0, NULL, AT(run.real_sync), .rare = true,
	  .help = "a sync does not sync ROOT's own file system: faster" },
	{ OPT_TEXT, "socket", 0, "PATH", AT(run.socket), .rare = true, .hint = HINT_FILE,
	  .help = "one more socket for commands" },
	{ OPT_LIST, NULL, 'o', "OPTION", AT(run.fuse_options),
	  .help = "a further mount option, as of mount.fuse3(8)" },
	OPT_END
};

static void init(void *given)
{
	struct options *o = given;

	o->run.real_sync = o->run.log_append = true;
}

static void release(void *given)
{
	forget_run_opts_release(&((struct options *)given)->run);
}

static int run(void *given, struct args *args)
{
	struct options *o = given;
	struct forget_run_opts *r = &o->run;

	if (args->n != 2)
		return cli_usage(&cmd_mount, "two directories are needed, ROOT and MNT");
	if ((r->trace_data || r->trace_reads) && !r->trace)
		return cli_usage(&cmd_mount, "--trace-data and --trace-reads go with --trace FILE");
	r->root = args->v[0];
	r->mnt = args->v[1];
	r->evict_said = r->evict;
	/* A line that goes into a file is not said twice. */
	return mounting_run(r, o->background, r->log ? NULL : stderr);
}

const struct command cmd_mount = {
	.name = "mount",
	.summary = "mount the file system that forgets what was not synced",
	.usage = "[OPTIONS] ROOT MNT",
	.about = "Shows the directory ROOT on the directory MNT, and keeps what programs write "
		 "there in memory until they sync it. A fault, or 'outage ctl MNT clear-cache', "
		 "loses the rest, as a power cut would. It is served until it is unmounted "
		 "('outage umount MNT'); then nothing is lost.",
	.status = "0 unmounted, 2 failed, 3 a fault or a command crashed it",
	.example = "outage mount --daemon data mnt && outage ctl mnt clear-cache",
	.options = options,
	.size = sizeof(struct options),
	.init = init,
	.release = release,
	.run = run,
};
