/* SPDX-License-Identifier: MIT */
/* cmd_export.c - outage export: a finding for people who do not have this program. */
#include "cli/cli.h"
#include "cli/kind.h"

#define AT(member) OPT_AT(struct export_request, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "FINDING", .hint = HINT_DIR,
	  .help = "its directory, RUN/findings/NAME, or that of a run with one finding" },
	{ OPT_TEXT, "output", 'o', "OUT", AT(output), .hint = HINT_DIR,
	  .help = "a directory, which is made if it is not there" },
	{ OPT_FLAG, "trust", 0, NULL, AT(trust),
	  .help = "take it for your own, also if you did not make it on this machine" },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct export_request *r = given;
	const struct case_ops *ops;
	auto_free char *dir = NULL;

	if (args->n == 1 && !r->output)
		return cli_usage(&cmd_export_case, "--output is missing");
	int status = kind_choose(&cmd_export_case, args, &dir, &ops);
	if (status)
		return status;
	r->dir = dir;
	return ops->export(r);
}

const struct command cmd_export_case = {
	.name = "export",
	.summary = "writes a finding as scripts, a C program, a disk image, a test",
	.usage = "FINDING -o OUT [--trust]",
	.about = "Writes a finding in forms that need nothing of this program:\n"
		 "\n"
		 "  crash.img      the disk as the crash left it (sparse)\n"
		 "  reproduce.sh   shows the problem (status 1), or not (0), or cannot (2);\n"
		 "                 of a finding of outage app or pm, there is no more\n"
		 "  lazyfs.toml    of outage app: a fault for LazyFS or outage mount that does it\n"
		 "  workload.sh    the workload as shell commands, where there are such\n"
		 "  workload.c     the workload as a C program\n"
		 "  generic-NNN    the workload as a test of the xfstests suite\n"
		 "  guest/         what --guest-file gave to the guest\n"
		 "  start.img      of outage explore: the disk to begin with, if one is needed",
	.status = "0 all was written, 2 it could not be",
	.example = "outage export outage-runs/ext4-0001/findings/0-0 -o reproducer",
	.options = options,
	.size = sizeof(struct export_request),
	.run = run,
};
