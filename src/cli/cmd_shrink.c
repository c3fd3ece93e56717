/* SPDX-License-Identifier: MIT */
/* cmd_shrink.c - outage shrink: the smallest case that shows a finding. */
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/kind.h"

/* RUN/findings/NAME becomes RUN/shrunk/NAME, so that a report of the run has it once. */
static char *default_output(const char *dir)
{
	auto_free char *copy = xstrdup(dir);

	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	char *slash = strrchr(copy, '/');
	if (slash) {
		*slash = '\0';
		char *parent = strrchr(copy, '/');
		const char *name = parent ? parent + 1 : copy;

		if (streq(name, "findings"))
			return xasprintf("%.*sshrunk/%s", (int)(name - copy), copy, slash + 1);
		*slash = '/';
	}
	return xasprintf("%s-shrunk", copy);
}

#define AT(member) OPT_AT(struct shrink_request, member)
static const struct opt options[] = {
	OPTION_FINDING,
	{ OPT_COPY, "output", 'o', "OUT", AT(output), .hint = HINT_DIR,
	  .help = "where the small one goes; default: RUN/shrunk/NAME" },
	{ OPT_FLAG, "force", 0, NULL, AT(force), .help = "replace the finding that is in OUT" },
	{ OPT_COUNT, "runs", 0, "N", AT(max_runs), .help = "at most so many tries; default: 500" },
	OPTION_TIME("give up after that", AT(time_ns), .otherwise = "30m"),
	OPTION_TRUST(AT(trust)),
	OPTION_JSON(AT(json)),
	{ OPT_GROUP, .group = guest_options, AT(guest) },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct shrink_request *r = given;
	const struct case_ops *ops;
	auto_free char *dir = NULL;

	int status = kind_choose(&cmd_shrink, args, &dir, &ops);
	if (status)
		return status;
	r->dir = dir;
	if (!r->output)
		r->output = default_output(dir);
	return kind_shrink(ops, r);
}

static void release(void *given)
{
	struct shrink_request *r = given;

	free(r->output);
}

const struct command cmd_shrink = {
	.name = "shrink",
	.summary = "makes a finding small: fewest operations, fewest lost writes",
	.usage = "FINDING [-o OUT] [OPTIONS]",
	.about = "Makes a finding small: drops operations of its workload as long as a problem of "
		 "the same kind shows, then lets as many of the lost writes survive as possible. "
		 "Of a finding of outage app or outage pm, only the latter: nothing is run again "
		 "but "
		 "the check.",
	.status = "0 the small finding is in OUT, 2 it could not be made, or the finding does not "
		  "show any more",
	.example = "outage shrink outage-runs/ext4-0001/findings/17-2",
	.options = options,
	.size = sizeof(struct shrink_request),
	.release = release,
	.run = run,
};
