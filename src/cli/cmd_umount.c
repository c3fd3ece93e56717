/* SPDX-License-Identifier: MIT */
/* cmd_umount.c - outage umount: end a mount, and wait until its server has gone. */
#include "cli/cli.h"
#include "cli/groups.h"
#include "forget/forget_umount.h"

struct options {
	uint64_t timeout_ms;
	bool lazy;
};

#define AT(member) OPT_AT(struct options, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "MNT", .hint = HINT_MOUNT, .help = "where it is mounted" },
	{ OPT_FLAG, "lazy", 'l', NULL, AT(lazy),
	  .help = "take it out of sight at once; it ends when no process uses it any more" },
	OPTION_TIMEOUT("how long to wait for the server", AT(timeout_ms), .unit = 1000000,
		       .otherwise = "60s", .most = 86400000),
	OPT_END
};

static int run(void *given, struct args *args)
{
	const struct options *o = given;
	struct err err = ERR_INIT;

	if (args->n != 1)
		return cli_usage(&cmd_umount, "one directory is needed");
	if (forget_umount(args->v[0], o->lazy, o->timeout_ms, &err))
		return cli_fail(&err);
	return EXIT_OK;
}

const struct command cmd_umount = {
	.name = "umount",
	.summary = "unmount it, and wait until its server has gone",
	.usage = "[OPTIONS] MNT",
	.about = "Unmounts what 'outage mount' mounted. Everything that was written becomes "
		 "durable, as at any unmount ('outage ctl MNT crash' ends a mount and loses it). "
		 "Waits until the server has ended.",
	.status = "0 done, 2 failed: a process uses it (it is named), it is no such mount, or not "
		  "everything could be written",
	.example = "outage umount mnt",
	.options = options,
	.size = sizeof(struct options),
	.run = run,
};
