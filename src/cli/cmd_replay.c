/* SPDX-License-Identifier: MIT */
/* cmd_replay.c - outage replay: does a finding show again? */
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/kind.h"

#define AT(member) OPT_AT(struct replay_request, member)
static const struct opt options[] = {
	OPTION_FINDING,
	{ OPT_FLAG, "rerun", 0, NULL, AT(rerun),
	  .help = "run the workload anew, and try its crash states until one shows it" },
	OPTION_TIME("give up after that; default: 10m", AT(time_ns)),
	OPTION_TRUST(AT(trust)),
	OPTION_JSON(AT(json)),
	{ OPT_GROUP, .group = guest_options, AT(guest) },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct replay_request *r = given;
	const struct case_ops *ops;
	auto_free char *dir = NULL;

	int status = kind_choose(&cmd_replay, args, &dir, &ops);
	if (status)
		return status;
	r->dir = dir;
	return kind_replay(ops, r);
}

const struct command cmd_replay = {
	.name = "replay",
	.summary = "shows a finding again, from its trace or by running its workload",
	.usage = "FINDING [OPTIONS]",
	.about = "Shows a finding again: rebuilds the disk as the crash left it, from the trace "
		 "and the image that are kept with it, lets the target recover, and checks it. "
		 "With another --kernel: is it gone?",
	.status = "1 the finding shows again, 0 it does not, 2 it could not be tried",
	.example = "outage replay outage-runs/ext4-0001/findings/0-0",
	.options = options,
	.size = sizeof(struct replay_request),
	.run = run,
};
