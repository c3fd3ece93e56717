/* SPDX-License-Identifier: MIT */
/* cmd_explore.c - outage explore: model checking against the reference file system. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/explore_kept.h"
#include "cli/groups.h"
#include "case/suppress.h"
#include "cli/ticker.h"
#include "explore/exploration.h"
#include "run/run.h"

struct explore {
	struct exploration run;
	struct explore_opts o;
	struct suppress suppress;
	const char *coverage, *replay;
	struct target_line lines[SIDES_MAX]; /* the target's, and those of references, by place */
	struct target_opts references[SIDES_MAX];
	bool json, overlap;
	struct ticker ticker;
};

/* ---- while it runs ---- */

static void on_found(void *ctx, const char *words, const char *dir, size_t ops)
{
	struct explore *e = ctx;

	ticker_clear(&e->ticker);
	if (!e->json)
		printf("found  %s\n       %zu operation%s, %s\n", words, ops, ops == 1 ? "" : "s",
		       *dir ? dir : "which could not be kept");
	else if (!*dir)
		fprintf(stderr, "outage: found, and could not be kept: %s\n", words);
	fflush(stdout);
}

static void on_failed(void *ctx, const char *words)
{
	struct explore *e = ctx;

	ticker_fail(&e->ticker, words);
}

static void on_warned(void *ctx, const char *words)
{
	struct explore *e = ctx;

	ticker_clear(&e->ticker);
	fprintf(stderr, "outage: %s\n", words);
}

static void on_noted(void *ctx, const char *words)
{
	struct explore *e = ctx;

	ticker_clear(&e->ticker);
	log_info("%s", words);
}

static void on_progress(void *ctx, const struct explore_result *r)
{
	struct explore *e = ctx;
	double elapsed = ticker_elapsed(&e->ticker);

	if (!ticker_due(&e->ticker))
		return;
	fprintf(stderr,
		"%llu operations, %.0f/s, %llu states, depth %llu, %llu restores, "
		"%llu findings",
		llu(r->operations), elapsed > 0 ? (double)r->operations / elapsed : 0,
		llu(r->states), llu(r->depth_max), llu(r->restores), llu(r->findings));
	if (r->shrinking)
		fprintf(stderr, ", %llu made smaller", llu(r->shrinking));
	if (e->o.time_ns > r->searching_ns)
		fprintf(stderr, ", %.0f s left", (double)(e->o.time_ns - r->searching_ns) / 1e9);
}

/* A finding that is made smaller is kept as it is: a user who waits should know. */
static void on_stopping(void *ctx, const struct explore_result *r)
{
	struct explore *e = ctx;

	ticker_clear(&e->ticker);
	if (r->shrinking || r->signalled)
		fprintf(stderr, "outage: stopping%s; what was found so far is kept\n",
			r->signalled ? "" : ", as the time is up");
	else
		log_info("the time is up");
}

/* ---- at the end ---- */

enum { ADOPTED_SHOWN = 5 };

static const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown";
}

static void json_adopted(struct json *j, const struct explore_result *r)
{
	struct coverage_adopted_list list = { 0 };

	coverage_adopted(&r->coverage, &list);
	json_kv_array(j, "adopted_results");
	for (size_t i = 0; i < list.n; i++) {
		json_object_of(j, KV("operation", list.v[i].op),
			       KV("error", error_name(list.v[i].error)),
			       KV("count", list.v[i].count));
	}
	json_end(j);
	vec_release(&list);
}

/* "28 results were the target's own business: write ENOSPC 20, creat ENOSPC 8" */
static void print_adopted(const struct explore_result *r)
{
	struct coverage_adopted_list list = { 0 };
	uint64_t rest = coverage_adopted(&r->coverage, &list);

	printf("%llu %s the target's own business", COUNT(rest, "result was", "results were"));
	for (size_t i = 0; i < list.n && i < ADOPTED_SHOWN; i++) {
		printf("%s%s %s %llu", i ? ", " : ": ", list.v[i].op, error_name(list.v[i].error),
		       llu(list.v[i].count));
		rest -= list.v[i].count;
	}
	if (list.n > ADOPTED_SHOWN)
		printf(", others %llu", llu(rest));
	putchar('\n');
	vec_release(&list);
}

static void print_json(const struct explore *e, const struct explore_result *r, double elapsed)
{
	struct json j;
	struct target_opts target = e->o.sides.target;
	struct coverage_summary sum;

	target.spec = e->o.specs[0];
	auto_free char *kernel = target_kernel(&target);
	coverage_summary(&r->coverage, &e->run.inputs, &sum);
	cli_json_begin(&j);
	json_kvs(&j, KV("target", e->o.specs[0]), KV("kernel", kernel), KV("run", e->run.dir),
		 KV("operations", r->operations), KV("states", r->states),
		 KV("distinct_states", r->distinct), KV("overlap", r->overlap),
		 KV("overlap_states", r->overlapped), KV("revisits", r->revisits),
		 KV("restores", r->restores), KV("undone", r->undone), KV("saves", r->saves),
		 KV("mounts", r->mounts), KV("adopted", r->adopted));
	json_adopted(&j, r);
	json_kvs(&j, KV("abandoned", r->abandoned), KV("crash_states", r->crash_states),
		 KV("findings", r->findings), KV("findings_before", e->run.found_before),
		 KV("suppressed", r->suppressed), KV("not_kept", r->not_kept),
		 KV("cut_short", r->cut_short), KV("errors", r->errors), KV("elapsed_s", elapsed),
		 KV("depth_max", r->depth_max), KV("omission", r->omission),
		 KV("bytes_per_state", r->bytes_per_state), KV("partitions_exercised", sum.parts),
		 KV("partitions", sum.all_parts), KV("combinations_exercised", sum.combinations),
		 KV("combinations", sum.all_combinations), KV("errors_exercised", sum.errors),
		 KV("exhausted", r->exhausted));
	cli_json_end(&j);
}

/* Whether it ended without having done anything, although there was something to do. */
static bool tried_nothing(const struct explore_result *r)
{
	return !r->operations && !r->findings && !r->suppressed && !r->exhausted;
}

/* Or no crash, although that was asked for. */
static bool crashed_nothing(const struct explore *e, const struct explore_result *r)
{
	return e->o.crash_every && !r->crash_states && !r->findings && !r->exhausted;
}

/* One that says nothing about the file system must not look like one that found nothing. */
static void check_tried(struct explore *e, struct explore_result *r)
{
	const char *until = r->signalled ? "a signal came" : "the time was up";
	auto_free char *words = NULL;

	if (r->errors)
		return; /* the run has failed, and said why */
	if (tried_nothing(r) && r->stopped)
		words = xasprintf("nothing was tried: %s before the first operation; %s", until,
				  r->signalled ? "begin again" : "give more --time");
	else if (tried_nothing(r))
		words = xstrdup("nothing was tried: no operation was done; see --inputs");
	else if (crashed_nothing(e, r) && r->stopped)
		words = xasprintf("no crash was tried: %s before the first; give more --time, or "
				  "a smaller --crash-every",
				  until);
	else if (crashed_nothing(e, r))
		words = xstrdup("no crash was tried: too few steps made something durable; give a "
				"larger --limit, or a smaller --crash-every");
	if (!words)
		return;
	r->errors++;
	on_failed(e, words);
}

static void print_findings(const struct explore *e, const struct explore_result *r)
{
	if (r->suppressed)
		printf("%llu %s suppressed\n", COUNT(r->suppressed, "finding is", "findings are"));
	if (r->not_kept)
		printf("%llu %s counted, and not kept\n",
		       COUNT(r->not_kept, "more finding of the same kinds is",
			     "more findings of the same kinds are"));
	if (r->findings)
		printf("%llu %s, kept in %s\n", COUNT_S(r->findings, "finding"), e->run.dir);
	else if (tried_nothing(r))
		printf("nothing was tried\n");
	else
		printf("no difference found%s\n",
		       crashed_nothing(e, r) ? ", and no crash tried" : "");
	if (e->run.found_before)
		printf("%llu %s found before, kept in %s\n",
		       COUNT(e->run.found_before, "finding was", "findings were"), e->run.dir);
}

static void print_summary(const struct explore *e, const struct explore_result *r, double elapsed)
{
	struct coverage_summary sum;

	coverage_summary(&r->coverage, &e->run.inputs, &sum);
	printf("%s: %llu operations in %.1f s, %.0f a second; %llu states, depth %llu\n",
	       e->o.specs[0], llu(r->operations), elapsed,
	       elapsed > 0 ? (double)r->operations / elapsed : 0, llu(r->states),
	       llu(r->depth_max));
	printf("%llu %s put back (%.4f an operation), %llu %s undone by a step instead, "
	       "%llu %s, %llu %s\n",
	       COUNT_S(r->restores, "time"),
	       r->operations ? (double)r->restores / (double)r->operations : 0,
	       COUNT_S(r->undone, "time"), COUNT_S(r->saves, "save"), COUNT_S(r->mounts, "mount"));
	printf("%llu of %llu partitions of arguments exercised, %llu combinations of bits, %llu "
	       "errors\n",
	       llu(sum.parts), llu(sum.all_parts), llu(sum.combinations), llu(sum.errors));
	print_adopted(r);
	printf("%llu %s abandoned\n", COUNT(r->abandoned, "step was", "steps were"));
	if (r->crash_states)
		printf("%llu crash states checked\n", llu(r->crash_states));
	if (e->o.jobs > 1)
		printf("%u tasks; %llu of %llu states, %.1f%%, were visited by more than one\n",
		       e->o.jobs, llu(r->overlapped), llu(r->distinct), 100 * r->overlap);
	if (r->omission > 0)
		printf("the memory for visited states is full: a new state is now taken for an old "
		       "one with odds of %.2g; give more with --memory\n",
		       r->omission);
	if (r->exhausted)
		printf("every state within the bounds was visited\n");
	if (r->stopped)
		printf("stopped %s; --resume %s goes on\n",
		       r->signalled ? "by a signal" : "when its time was up", e->run.dir);
	if (r->cut_short)
		printf("shrinking was cut short for %llu %s: what is kept is the smallest so far\n",
		       COUNT_S(r->cut_short, "finding"));
	print_findings(e, r);
}

static int write_coverage(const struct explore *e, const struct explore_result *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	size_t n = strlen(e->coverage);

	if (n > 4 && streq(e->coverage + n - 4, ".svg"))
		coverage_picture(&r->coverage, &e->run.inputs, &text);
	else
		coverage_print(&r->coverage, &e->run.inputs, &text);
	return io_write_file(NULL, e->coverage, text.buf, text.len, 0, err);
}

/* Better said now than after hours. */
static int check_coverage(const struct explore *e, struct err *err)
{
	struct stat st;

	if (!e->coverage)
		return 0;
	auto_free char *dir = xstrdup(e->coverage);
	char *slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (access(slash ? dir : ".", W_OK | X_OK) < 0)
		return err_set(err, -errno, "--coverage cannot be written to %s: %m", e->coverage);
	if (stat(e->coverage, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "--coverage is a file, and %s is a directory",
			       e->coverage);
	return 0;
}

static int run_explore(struct explore *e)
{
	struct explore_result *r = xcalloc(1, sizeof(*r));
	struct err err = ERR_INIT, ignored = ERR_INIT;
	unsigned removed = 0;

	if (!disk_clean_up(&removed, &ignored) && removed)
		log_info("cleared %u disks that a killed run had left behind", removed);
	explore_plan_opts(&e->run.plan, e->references, &e->o);
	e->o.inputs = &e->run.inputs;
	e->o.dir = e->run.dir;
	e->o.ctx = e;
	e->o.found = on_found;
	e->o.failed = on_failed;
	e->o.noted = on_noted;
	e->o.warned = on_warned;
	e->o.stopping = on_stopping;
	e->o.progress = on_progress;
	ticker_start(&e->ticker, e->json);
	e->o.suppress = &e->suppress;
	int rc = suppress_of_plan(e->run.plan.suppress, &e->suppress, &err);
	if (!rc)
		rc = explore_run(&e->o, r, &err);
	double elapsed = ticker_elapsed(&e->ticker);
	ticker_clear(&e->ticker);
	if (!rc)
		check_tried(e, r);
	if (rc || (!r->operations && !r->findings))
		exploration_abandon(&e->run);
	if (!rc && e->json)
		print_json(e, r, elapsed);
	else if (!rc)
		print_summary(e, r, elapsed);
	if (!rc)
		cli_tell_unmarked(&e->run.unmarked);
	if (!rc && e->coverage)
		rc = write_coverage(e, r, &err);
	int status = rc					  ? cli_fail(&err)
		     : r->errors || r->signalled	  ? EXIT_FAILED
		     : r->findings || e->run.found_before ? EXIT_FINDINGS
							  : EXIT_OK;
	free(r);
	return status;
}

/* ---- the command line ---- */

static int take_ref(void *into, const char *arg, struct err *err)
{
	struct explore *e = into;

	return explore_plan_add(&e->run.plan, arg, err);
}

/* The plan has what a file says, not where it is. */
static int take_inputs(struct explore *e, const char *arg, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(arg, 1 << 20, &text, err);

	if (!rc && strlen(strbuf_str(&text)) != text.len)
		rc = err_set(err, -EINVAL, "%s is no text: it holds a zero byte", arg);
	e->run.inputs_file = arg;
	return rc ? rc : explore_plan_set(&e->run.plan, "inputs", strbuf_str(&text), err);
}

/* Adds a file of suppressions: all files make one text of rules. */
static int take_suppress(struct explore *e, const char *arg, struct err *err)
{
	auto_free char *rules = e->run.plan.suppress ? xstrdup(e->run.plan.suppress) : NULL;
	int rc = suppress_add_file(&rules, arg, finding_kind_known, err);

	return rc || !rules ? rc : explore_plan_set(&e->run.plan, "suppress", rules, err);
}

static int take_plan(void *into, const struct opt *o, const char *arg, struct err *err)
{
	struct explore *e = into;

	if (streq(o->name, "suppress"))
		return take_suppress(e, arg, err);
	if (streq(o->name, "inputs"))
		return take_inputs(e, arg, err);
	if (streq(o->name, "torn"))
		return explore_plan_set(&e->run.plan, "crash", "reorder,torn", err);
	return explore_plan_set(&e->run.plan, o->name, arg ? arg : "yes", err);
}

static int take_target(void *into, const struct opt *o, const char *arg, struct err *err)
{
	struct explore *e = into;

	return target_line_take(&e->lines[0], o, arg) ? 0 : take_plan(into, o, arg, err);
}

/* The options of the reference named last go to the command's struct, too. */
static void *last_ref(void *into, struct err *err)
{
	const struct explore *e = into;

	if (e->run.plan.references.n)
		return into;
	err_set(err, -EINVAL,
		"options that begin with --ref- are about the --ref before them, and there is "
		"none");
	return NULL;
}

static int take_ref_option(void *into, const struct opt *o, const char *arg, struct err *err)
{
	struct explore *e = into;
	size_t n = e->run.plan.references.n;

	return target_line_take(&e->lines[n], o, arg)
		       ? 0
		       : explore_plan_set_ref(&e->run.plan, n - 1, o->name, arg ? arg : "yes", err);
}

static void list_sides(struct strbuf *out)
{
	strbuf_adds(out, "reffs ");
	list_targets(out);
}

/* A plan has, by option name, what must be the same when its run goes on. */
static const struct opt named_options[] = {
	{ OPT_TEXT, "target", 't', "TARGET", .list = list_sides,
	  .help = "as for outage test; reffs, in this process; or 'mounted:COMMAND {mnt}', a FUSE "
		  "server without a disk" },
	OPT_END
};

static const struct opt plan_options[] = {
#define PLAN_AT(member)
#define PLAN_AS ENTRY
#include "explore/explore_options.def"
	OPT_END
};

#define AT(member) OPT_AT(struct explore, member)
static const struct opt options[] = {
	{ OPT_SECTION, .help = "Comparison" },
	{ OPT_GROUP, .group = named_options, .take = take_plan },
	{ OPT_CALL, "ref", 'r', "TARGET", .call = take_ref, .list = list_sides,
	  .help = "the target to compare with; default: reffs. Given more than once, the majority "
		  "decides" },
	{ OPT_GROUP, .group = target_options, .prefix = "ref-", .where = last_ref,
	  .take = take_ref_option, .rare = true,
	  .help = "an option of the target or its guest, for the --ref before it" },
	{ OPT_GROUP, .group = guest_options, .prefix = "ref-", .where = last_ref,
	  .take = take_ref_option, .rare = true },
	{ OPT_GROUP, .group = target_options, .take = take_target, .rare = true },
	{ OPT_GROUP, .group = guest_options, .take = take_target, .rare = true },
	{ OPT_GROUP, .group = plan_options, .take = take_plan },
	OPTION_LIMIT("operations", AT(o.operations)),
	OPTION_TIME("stop after that, from when the targets are up", AT(o.time_ns)),
	{ OPT_COUNT, "findings", 0, "N", AT(o.max_cases), .least = 1, .rare = true,
	  .help = "stop after so many, of all tasks; default: 10 of each task" },
	OPTION_HANG_AFTER(AT(o.hang_ms), .unit = 1000000, .least = 100, .rare = true,
			  .otherwise = "60s"),
	{ OPT_FLAG, "overlap", 0, NULL, AT(overlap), .rare = true,
	  .help = "of runs that are given as arguments: how much they did twice" },
	{ OPT_ARGUMENT, .arg = "RUN...", .hint = HINT_DIR, .rare = true, .help = "for --overlap" },
	{ OPT_TEXT, "coverage", 0, "FILE", AT(coverage), .hint = HINT_FILE, .rare = true,
	  .help = "which inputs were exercised: text, or a picture if it ends in .svg" },
	OPTION_OUTPUT(AT(run.output)),
	OPTION_RESUME(AT(run.resume)),
	{ OPT_TEXT, "replay", 0, "FINDING", AT(replay), .hint = HINT_DIR,
	  .help = "do what is kept there again" },
	OPTION_TRUST(AT(run.trust), .rare = true),
	OPTION_JSON(AT(json)),
	OPT_END
};

/* Names become what --fstype and --mount-options make of them, as if they were given so. */
static int name_target(struct explore *e, struct err *err)
{
	auto_free char *name = NULL;
	int rc = target_line_name(&e->lines[0], e->run.plan.target, &name, err);

	return rc || !name ? rc : explore_plan_set(&e->run.plan, "target", name, err);
}

static int name_reference(struct explore *e, size_t i, struct err *err)
{
	auto_free char *name = NULL;
	int rc = target_line_name(&e->lines[i + 1], e->run.plan.references.v[i].spec, &name, err);

	return rc || !name ? rc : explore_plan_set_ref(&e->run.plan, i, "ref", name, err);
}

static int name_sides(struct explore *e, struct err *err)
{
	int rc = name_target(e, err);

	for (size_t i = 0; i < e->run.plan.references.n && !rc; i++)
		rc = name_reference(e, i, err);
	return rc;
}

static void init(void *given)
{
	struct explore *e = given;

	exploration_init(&e->run);
}

static void release(void *given)
{
	struct explore *e = given;

	exploration_release(&e->run);
	suppress_release(&e->suppress);
}

static int run(void *given, struct args *args)
{
	struct explore *e = given;
	struct err err = ERR_INIT;

	if (e->overlap)
		return args->n < 2 ? cli_usage(&cmd_explore, "--overlap needs two runs or more")
				   : explore_overlap(args->v, e->json);
	if (args->n)
		return cli_usage(&cmd_explore, "'%.60s' is not expected here", args->v[0]);
	if (e->replay)
		return kind_replay(&kind_explore,
				   &(struct replay_request){ .dir = e->replay,
							     .json = e->json,
							     .trust = e->run.trust });
	if (!e->run.resume && !e->run.plan.target && !e->lines[0].fstype)
		return cli_usage(&cmd_explore, "--target is missing");
	e->o.resume = e->run.resume;
	int rc = name_sides(e, &err);
	if (!rc)
		rc = check_coverage(e, &err);
	if (!rc)
		rc = e->run.resume
			     ? exploration_resume(&e->run, &err)
			     : exploration_begin(&e->run, e->o.time_ns || e->o.operations, &err);
	return rc ? cli_fail(&err) : run_explore(e);
}

const struct command cmd_explore = {
	.name = "explore",
	.summary = "searches a file system's states for differences from a reference",
	.usage = "-t TARGET [OPTIONS]\n"
		 "--resume RUN | --replay FINDING [--trust]\n"
		 "--overlap RUN RUN...",
	.about = "Goes through the states of a file system by itself, and compares it with the "
		 "reference file system after every operation.",
	.status = EXIT_STATUS_SEARCH,
	.example = "outage explore -t ext4 --time 10s",
	.options = options,
	.size = sizeof(struct explore),
	.init = init,
	.release = release,
	.run = run,
};
