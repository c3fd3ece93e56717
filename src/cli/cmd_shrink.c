/* SPDX-License-Identifier: MIT */
/* cmd_shrink.c - outage shrink: the smallest case that shows a finding. */
#include <errno.h>
#include <sys/stat.h>

#include "app/keep.h"
#include "base/below.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/guest_opts.h"
#include "cli/pm.h"
#include "pm/keep.h"
#include "run/shrink.h"

enum { PM_TRIES = 500 };

struct shrink_command {
	struct stored_case c;
	struct shrink_opts opts;
	char *output;
	uint64_t time_ns;
	bool json, force, trust;
	struct target_opts guest;
	struct err unmarked; /* why the small one does not get this user's mark */
};

static void on_step(void *ctx, const char *words)
{
	const struct shrink_command *o = ctx;

	if (!o->json) {
		printf("  %s\n", words);
		fflush(stdout);
	}
}

static void print_json(const struct shrink_command *o, const struct shrink_result *r)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "case", o->c.dir);
	json_kv_string(&j, "output", o->output);
	json_kv_uint(&j, "operations_before", r->ops_before);
	json_kv_uint(&j, "operations", r->ops_after);
	json_kv_uint(&j, "lost_before", r->lost_before);
	json_kv_uint(&j, "lost", r->lost_after);
	json_kv_uint(&j, "runs", r->runs);
	json_kv_uint(&j, "states", r->states);
	json_kv_bool(&j, "budget_hit", r->budget_hit);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

static void print_text(const struct shrink_command *o, const struct shrink_result *r)
{
	printf("%s: %zu of %zu %s, %zu of %zu lost %s, after %llu %s and %llu %s\n", o->output,
	       r->ops_after, r->ops_before, plural(r->ops_before, "operation", "operations"),
	       r->lost_after, r->lost_before, plural(r->lost_before, "write", "writes"),
	       (unsigned long long)r->runs, plural(r->runs, "run", "runs"),
	       (unsigned long long)r->states, plural(r->states, "state", "states"));
	if (r->budget_hit)
		printf("more --runs may make it smaller\n");
}

static int shrink(void *ctx)
{
	struct shrink_command *o = ctx;
	struct shrink_result result;
	struct err err = ERR_INIT;
	int rc = shrink_case(&o->c, &o->opts, o->output, &result, &err);

	if (rc < 0)
		return cli_fail(&err);
	if (rc > 0)
		return cli_failf("%s does not show any more: there is nothing to shrink", o->c.dir);
	if (o->json)
		print_json(o, &result);
	else
		print_text(o, &result);
	cli_tell_unmarked(&o->unmarked);
	return EXIT_OK;
}

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

/* Within a run, no link is followed; and what a killed process left there is removed. */
static int make_parent(const char *path)
{
	auto_free char *dir = NULL, *name = NULL;
	struct err err = ERR_INIT;

	if (!below_split(path, &dir, &name))
		return mkdir(dir, 0777) < 0 && errno != EEXIST
			       ? cli_failf("cannot make the directory %s: %m", dir)
			       : 0;
	*strchr(name, '/') = '\0';
	return below_make_dir(dir, name, &err) || below_sweep(dir, name, &err) ? cli_fail(&err) : 0;
}

/* What was made before may have taken half an hour. */
static int check_free(const struct shrink_command *o)
{
	auto_free char *at = below_case(o->output);

	if (o->force || !below_exists(at, "case"))
		return 0;
	return cli_failf("%s holds a finding already: give --force to replace it, or another -o",
			 o->output);
}

/* The program is not run again: only what its crash lost can become less. */
static int shrink_pm(const struct shrink_command *o, const char *dir)
{
	return pm_shrink_case(&(struct pm_shrink_command){
		.dir = dir,
		.output = o->output,
		.max_tries = o->opts.max_runs ? o->opts.max_runs : PM_TRIES,
		.json = o->json,
		.force = o->force,
		.trust = o->trust });
}

#define AT(member) OPT_AT(struct shrink_command, member)
static const struct opt options[] = {
	OPTION_FINDING,
	{ OPT_COPY, "output", 'o', "OUT", AT(output), .hint = HINT_DIR,
	  .help = "where the small one goes; default: RUN/shrunk/NAME" },
	{ OPT_FLAG, "force", 0, NULL, AT(force), .help = "replace the finding that is in OUT" },
	{ OPT_COUNT, "runs", 0, "N", AT(opts.max_runs),
	  .help = "at most so many tries; default: 500" },
	{ OPT_DURATION, "time", 0, "DURATION", AT(time_ns), .help = "give up after that",
	  .otherwise = "30m" },
	OPTION_TRUST(AT(trust)),
	OPTION_JSON(AT(json)),
	{ OPT_GROUP, .group = guest_options, AT(guest) },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct shrink_command *o = given;
	const char *dir = args->v[0];
	struct err err = ERR_INIT;

	if (args->n != 1)
		return cli_usage(&cmd_shrink, "give the directory of one finding");
	if (case_is_finding(dir, app_kind.finding->name))
		return cli_failf("%s is small already: outage app shrinks what it finds", dir);
	if (!o->output)
		o->output = default_output(dir);
	if (case_is_finding(dir, pm_kind.finding->name))
		return shrink_pm(o, dir);
	if (store_load(dir, &o->c, &err) || store_trust(&o->c, NULL, o->trust, &err) ||
	    guest_opts_apply(&o->guest, &o->c, &err))
		return cli_fail(&err);
	if (o->c.ours)
		cli_ready_to_mark(&o->unmarked);
	o->opts.ctx = o;
	o->opts.step = on_step;
	int status = check_free(o);
	if (!status)
		status = make_parent(o->output);
	if (!status)
		status = cli_watch(shrink, o, (unsigned)(o->time_ns / 1000000000) + 1, NULL);
	return status;
}

static void release(void *given)
{
	struct shrink_command *o = given;

	stored_case_release(&o->c);
	free(o->output);
}

const struct command cmd_shrink = {
	.name = "shrink",
	.summary = "makes a finding small: fewest operations, fewest lost writes",
	.usage = "usage: outage shrink FINDING [-o OUT] [OPTIONS]\n"
		 "\n"
		 "Makes a finding small: drops operations of its workload as long as a problem of\n"
		 "the same kind shows, then lets as many of the lost writes survive as possible. "
		 "Of\n"
		 "a finding of outage pm, only the latter: its program is not run again.\n",
	.notes = "Exit status: 0 the small finding is in OUT, 2 it could not be made, or the "
		 "finding\n"
		 "does not show any more.\n"
		 "\n"
		 "example: outage shrink outage-runs/ext4-0001/findings/17-2\n",
	.options = options,
	.size = sizeof(struct shrink_command),
	.release = release,
	.run = run,
};
