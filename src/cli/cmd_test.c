/* SPDX-License-Identifier: MIT */
/* cmd_test.c - outage test: workloads, crashes, recovery, check. */
#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/ticker.h"
#include "run/test_run.h"
#include "run/workers.h"
#include "target/guest_fs.h"
#include "target/tune.h"

struct test {
	struct test_run run;
	uint64_t before;	/* workloads that were done when this began, */
	uint64_t states_before; /* and the states of them, */
	uint64_t found_before;	/* and their findings */
	uint64_t time_ns, hang_ns, jobs;
	struct target_line line;
	bool json, tune;
	struct progress_clusters clusters;
	uint64_t missed; /* test_run_missed() */
	const struct earlier_case *first_missed;
	struct ticker ticker;
};

/* ---- while it runs ---- */

static void on_found(void *ctx, const struct worker_finding *f, const char *dir)
{
	struct test *t = ctx;
	size_t known = t->clusters.n;

	progress_count(&t->clusters, &f->what);
	if (t->clusters.n == known || t->json)
		return;
	ticker_clear(&t->ticker);
	printf("found  %s\n       %s\n", f->what.name, f->what.words);
	if (dir)
		printf("       %s\n", dir);
	fflush(stdout);
}

static void on_kept(void *ctx, const struct earlier_case *e)
{
	struct test *t = ctx;

	progress_count(&t->clusters, &e->what);
}

static void on_failed(void *ctx, const char *words)
{
	struct test *t = ctx;

	ticker_fail(&t->ticker, words);
}

static void on_stopping(void *ctx)
{
	const struct test *t = ctx;

	ticker_clear(&t->ticker);
	fprintf(stderr, "outage: stopping; what was found so far is told\n");
}

/* The digits to print: of a slow rate, a tenth counts. */
static int digits(double rate)
{
	return rate < 9.95 && rate > 0 ? 1 + (rate < 0.095) : 0;
}

static void on_progress(void *ctx, const struct run_totals *totals, uint64_t done, uint64_t total)
{
	struct test *t = ctx;
	double elapsed = ticker_elapsed(&t->ticker);
	double rate = elapsed > 0 ? (double)(done - t->before) / elapsed : 0;

	if (!ticker_due(&t->ticker))
		return;
	fprintf(stderr, "%llu of %llu workloads, %llu states, %zu findings, %.*f/s", llu(done),
		llu(total), llu(totals->unique_states), t->clusters.n, digits(rate), rate);
	if (rate > 0)
		fprintf(stderr, ", %.0f s left", (double)(total - done) / rate);
}

/* ---- at the end ---- */

static uint64_t not_kept(const struct test *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->clusters.n; i++)
		n += t->clusters.v[i].count - t->clusters.v[i].kept;
	return n;
}

/* Whether it ended before the first of the workloads that were left to do, and found nothing. */
static bool ran_nothing(const struct test *t, const struct workers_result *r)
{
	return r->totals.workloads <= t->before && t->before < t->run.plan.workloads &&
	       r->totals.findings <= t->found_before + r->earlier;
}

/* Whether workloads were run, and no power was cut. A finding without a crash is worth telling. */
static bool crashed_nothing(const struct workers_result *r)
{
	return !r->totals.crash_states && !r->totals.findings && !r->totals.suppressed;
}

static bool refused_all(const struct workers_result *r)
{
	return r->totals.refused && !r->totals.performed && !r->totals.findings &&
	       !r->totals.suppressed;
}

/*
 * A run that says nothing about the file system must not look like one that found nothing: NULL if
 * it is none, else why, and what to do; to be freed.
 */
static char *why_untried(const struct test *t, const struct workers_result *r)
{
	const char *until = r->signalled ? "a signal came" : "the time was up";
	uint64_t ran = r->totals.workloads;

	if (r->errors)
		return NULL; /* the run has failed, and said why */
	if (ran_nothing(t, r))
		return xasprintf("nothing was tried: %s before the first workload; %s", until,
				 r->signalled ? "begin again, or give --resume"
					      : "give more --time");
	if (refused_all(r))
		return xasprintf("nothing was tried: the file system refused all %llu operations; "
				 "outage -v test tells why",
				 (unsigned long long)r->totals.refused);
	if (!crashed_nothing(r))
		return NULL;
	if (r->signalled)
		return xasprintf("no crash state was tried: %s before the first; begin again, or "
				 "give --resume",
				 until);
	return xasprintf(
		"no crash state was tried: %llu %s run, without a crash, and %s; add an fsync%s",
		COUNT(ran, "workload was", "workloads were"),
		t->run.plan.crash.modes & ~(uint64_t)(RUN_PERSIST | RUN_LAST | RUN_RECOVERY)
			? "nothing was sent to the disk"
			: "none has a persistence point",
		t->run.plan.crash.modes & RUN_REORDER ? "" : ", or give --crash reorder");
}

static void print_json(const struct test *t, const struct workers_result *r, double elapsed)
{

	cli_json(KV("target", t->run.plan.target), KV("kernel", t->run.plan.kernel),
		 KV("run", t->run.dir), KV("workloads", r->totals.workloads),
		 KV("workloads_total", t->run.plan.workloads), KV("done_before", t->before),
		 KV("crash_states", r->totals.crash_states),
		 KV("unique_states", r->totals.unique_states), KV("findings", r->totals.findings),
		 KV("clusters", t->clusters.n), KV("not_kept", not_kept(t)),
		 KV("not_again", t->missed), KV("suppressed", r->totals.suppressed),
		 KV("errors", r->errors), KV("elapsed_s", elapsed),
		 KV("budget_hit", r->totals.budget_hit), KV("refused", r->totals.refused),
		 KV("pruned", r->totals.pruned), KV("left_out", r->totals.left_out),
		 KV("verified", r->totals.verified), KV("repeated", r->totals.repeated));
}

static void print_missed(const struct test *t)
{
	const struct earlier_case *e = t->first_missed;

	if (!e)
		return;
	printf("%llu of them %s found before the run was resumed, and did not show again: "
	       "%s/findings/%llu-%llu%s\n",
	       COUNT(t->missed, "was", "were"), t->run.dir, llu(e->workload), llu(e->number),
	       t->missed > 1 ? " and others" : "");
}

static void print_findings(const struct test *t, const struct workers_result *r)
{
	uint64_t dropped = not_kept(t);

	if (!r->totals.findings) {
		if ((ran_nothing(t, r) || refused_all(r)) && !r->errors)
			printf("nothing was tried\n");
		else if (crashed_nothing(r) && !r->errors)
			printf("nothing found, and no crash state tried\n");
		else if (r->totals.workloads < t->run.plan.workloads)
			printf("nothing found in %llu of %llu workloads\n",
			       llu(r->totals.workloads), llu(t->run.plan.workloads));
		else
			printf("nothing found\n");
		return;
	}
	printf("%llu %s in %zu %s, ", COUNT_S(r->totals.findings, "finding"), t->clusters.n,
	       plural(t->clusters.n, "cluster", "clusters"));
	if (dropped)
		printf("%llu of them not kept, the others are ", llu(dropped));
	printf("kept in %s\n", t->run.dir);
	print_missed(t);
}

/* Prints signs that the run may not have tested what it was meant to. */
static void print_doubts(const struct test *t, const struct run_totals *s)
{
	if (s->refused)
		printf("%llu %s refused by the file system (outage -v test tells which)\n",
		       COUNT(s->refused, "operation was", "operations were"));
	if (t->run.plan.crash.lose_flush && s->altered < s->workloads)
		printf("%llu of the workloads sent no flush number %llu\n",
		       llu(s->workloads - s->altered), llu(t->run.plan.crash.lose_flush));
}

static void print_summary(const struct test *t, const struct workers_result *r, double elapsed)
{
	const struct run_totals *s = &r->totals;

	/* One workload with many states tells more by its states. */
	bool by_states = s->unique_states > 20 * (s->workloads + 1);

	double rate = (double)(by_states ? s->unique_states - t->states_before
					 : s->workloads - t->before) /
		      elapsed;

	printf("%s: %llu %s, %llu different crash states of %llu tried in %.1f s: %.*f %s a "
	       "second\n",
	       t->run.plan.target, COUNT_S(s->workloads, "workload"), llu(s->unique_states),
	       llu(s->crash_states), elapsed, digits(rate), rate,
	       by_states ? "states" : "workloads");
	if (t->before)
		printf("%llu of the workloads had been done before\n", llu(t->before));
	if (s->budget_hit && s->left_out > 1e15)
		printf("the budget left out more crash states than can be counted\n");
	else if (s->budget_hit)
		printf("the budget left out up to %.0f crash states\n", s->left_out);
	if (r->stopped)
		printf("stopped %s\n", r->signalled ? "by a signal" : "when its time was up");
	if (r->stopped && !plan_from_stdin(&t->run.plan))
		printf("to go on: outage test --resume %s\n", t->run.dir);
	if (r->errors)
		printf("%llu %s: part of the run could not be done\n", COUNT_S(r->errors, "error"));
	if (r->totals.suppressed)
		printf("%llu findings are suppressed\n", llu(r->totals.suppressed));
	print_doubts(t, s);
	print_findings(t, r);
}

static int finish(struct test *t, const struct workers_result *result)
{
	double elapsed = ticker_elapsed(&t->ticker);
	struct workers_result r = *result;
	auto_free char *untried = why_untried(t, &r);

	ticker_clear(&t->ticker);
	if (!t->json)
		print_summary(t, &r, elapsed);
	r.errors += untried != NULL;
	if (t->json)
		print_json(t, &r, elapsed);
	cli_tell_unmarked(&t->run.unmarked);
	if (untried)
		return cli_failf("%s", untried);
	if (r.errors || r.signalled)
		return EXIT_FAILED;
	return r.totals.findings ? EXIT_FINDINGS : EXIT_OK;
}

/* ---- running it ---- */

static int run_workers(struct test *t)
{
	struct workers_opts opts = { .source = &t->run.source,
				     .time_ns = t->time_ns,
				     .hang_ms = t->hang_ns / 1000000,
				     .dir = t->run.dir,
				     .keep = t->run.plan.keep,
				     .suppress = &t->run.suppress,
				     .progress = &t->run.progress,
				     .earlier = &t->run.earlier,
				     .ctx = t,
				     .found = on_found,
				     .kept = on_kept,
				     .failed = on_failed,
				     .stopping = on_stopping,
				     .progressed = on_progress };
	struct workers_result result;
	struct tune tune = { 0 };
	struct err err = ERR_INIT;
	unsigned removed = 0;

	/* A killed run left disks behind; failing to clear them is no reason not to run. */
	struct err ignored = ERR_INIT;
	if (!disk_clean_up(&removed, &ignored) && removed)
		log_info("cleared %u disks that a killed run had left behind", removed);
	plan_run_opts(&t->run.plan, &opts.run);
	opts.jobs = (unsigned)t->jobs;
	if (opts.jobs > t->run.plan.workloads - t->before)
		opts.jobs = (unsigned)(t->run.plan.workloads - t->before);
	int rc = t->tune ? tune_apply(&tune, &err) : 0;
	if (!rc)
		rc = workers_run(&opts, &result, &err);
	tune_restore(&tune);
	t->missed = test_run_missed(&t->run, &t->first_missed);
	if (rc) {
		ticker_clear(&t->ticker);
		if (!t->clusters.n)
			test_run_abandon(&t->run);
		return cli_fail(&err);
	}
	return finish(t, &result);
}

static int run_test(struct test *t)
{
	t->before = t->run.progress.done;
	t->states_before = t->run.progress.totals.unique_states;
	t->found_before = t->run.progress.totals.findings;
	ticker_start(&t->ticker, t->json);
	for (size_t i = 0; i < t->run.progress.clusters.n; i++)
		vec_push(&t->clusters, t->run.progress.clusters.v[i]);
	if (t->before < t->run.plan.workloads)
		return run_workers(t);
	if (!t->json)
		printf("%s is finished: there is nothing left to do\n", t->run.dir);
	return finish(t, &(struct workers_result){ .totals = t->run.progress.totals });
}

/* The default target is ext4: of this machine's kernel as root, else of a guest's. */
static int choose_target(struct plan *p, struct err *err)
{
	bool guest = p->guest_kernel || p->guest_modules;
	const struct target_ops *target = guest ? &target_uml_ext4 : target_default(err);

	if (!target)
		return -EINVAL;
	if (log_get_level() > LOG_ERROR)
		fprintf(stderr, "testing %s, %s; -t names another target\n", target->name,
			target->help);
	return plan_set(p, "target", target->name, err);
}

static int begin(struct test *t, struct err *err)
{
	struct plan *p = &t->run.plan;

	if (p->bounds && p->files.n)
		return err_set(err, -EINVAL, "give --bounds or files, not both");
	if (!p->bounds && !p->files.n)
		return err_set(err, -EINVAL, "give --bounds SET or files with workloads");
	int rc = p->target ? 0 : choose_target(p, err);
	return rc ? rc : test_run_begin(&t->run, err);
}

/* ---- the command line ---- */

static int list_all_targets(void)
{
	for (size_t i = 0; targets[i]; i++)
		printf("%-12s %s (guarantee: %s)\n", targets[i]->name, targets[i]->help,
		       targets[i]->guarantee);
	return EXIT_OK;
}

static int take_plan(void *test, const struct opt *o, const char *arg, struct err *err)
{
	struct test *t = test;

	if (streq(o->name, "torn"))
		return plan_set(&t->run.plan, "crash", "reorder,torn", err);
	return plan_set(&t->run.plan, o->name, arg ? arg : "yes", err);
}

static int take_target(void *test, const struct opt *o, const char *arg, struct err *err)
{
	struct test *t = test;

	return target_line_take(&t->line, o, arg) ? 0 : take_plan(test, o, arg, err);
}

static int take_suppress(void *suppress, const char *arg, struct err *err)
{
	return suppress_load(suppress, arg, err);
}

/* A plan has, by option name, what must be the same when its run goes on. */
static const struct opt named_options[] = {
	{ OPT_TEXT, "target", 't', "TARGET", .list = list_targets,
	  .help = "ext4, xfs, ...; without root uml:ext4, vm:ext4, ...; 'help' lists all; "
		  "default: ext4 or uml:ext4" },
	OPT_END
};

static const struct opt plan_options[] = {
	{ .kind = OPT_SECTION, .help = "Crashes and checks" },
	{ .kind = OPT_TEXT, .name = "guarantee", .arg = "NAME", .help = HELP_GUARANTEE },
#define PLAN_AT(member)
#define PLAN_AS ENTRY
#include "run/test_options.def"
	OPT_END
};

#define AT(member) OPT_AT(struct test, member)
static const struct opt options[] = {
	{ OPT_SECTION, .help = "The target" },
	{ OPT_GROUP, .group = named_options, .take = take_plan },
	{ OPT_GROUP, .group = target_options, .take = take_target, .rare = true },
	{ OPT_GROUP, .group = guest_options, .take = take_target, .rare = true },
	{ OPT_GROUP, .group = plan_options, .take = take_plan },
	OPTION_TIME("stop after that, from when the targets are up", AT(time_ns)),
	OPTION_JOBS("workers; default: two for each processor", WORKERS_MAX, AT(jobs)),
	OPTION_HANG_AFTER(AT(hang_ns), .rare = true, .least = 1000000000, .otherwise = "120s"),
	{ OPT_FLAG, "tune", 0, NULL, AT(tune), .rare = true,
	  .help = "while it runs, lower the console's log level and raise the priority of "
		  "kthreadd, on the whole machine" },
	{ OPT_CALL, "suppress", 0, "FILE", AT(run.suppress), .call = take_suppress,
	  .help = HELP_SUPPRESS },
	OPTION_OUTPUT(AT(run.output)),
	OPTION_RESUME(AT(run.resume)),
	OPTION_TRUST(AT(run.trust), .rare = true),
	OPTION_JSON(AT(json)),
	OPT_END
};

static int name_target(struct test *t, struct err *err)
{
	auto_free char *name = NULL;
	int rc = target_line_name(&t->line, t->run.plan.target, &name, err);

	return rc || !name ? rc : plan_set(&t->run.plan, "target", name, err);
}

static int add_files(struct test *t, char **files, struct err *err)
{
	int rc = 0;

	if (t->run.resume && *files)
		return err_set(err, -EINVAL, "--resume has its workloads from %s: leave %s out",
			       t->run.resume, *files);
	for (; !rc && *files; files++)
		rc = plan_set(&t->run.plan, "file", *files, err);
	return rc;
}

static void init(void *test)
{
	struct test *t = test;

	t->jobs = min(2 * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), (uint64_t)WORKERS_MAX);
	test_run_init(&t->run);
	t->run.suppress.is_kind = finding_kind_known;
}

static void release(void *test)
{
	struct test *t = test;

	test_run_release(&t->run);
	vec_release(&t->clusters);
}

static int run(void *test, struct args *args)
{
	struct test *t = test;
	struct err err = ERR_INIT;

	if (name_target(t, &err) || add_files(t, args->v, &err))
		return cli_usage(&cmd_test, "%s", err.msg);
	if (!t->run.resume && t->run.plan.target && streq(t->run.plan.target, "help"))
		return list_all_targets();
	int rc = t->run.resume ? test_run_resume(&t->run, &err) : begin(t, &err);
	return rc ? cli_fail(&err) : run_test(t);
}

const struct command cmd_test = {
	.name = "test",
	.summary = "runs workloads, cuts the power, and checks what a file system lost",
	.usage = "[-t TARGET] (--bounds SET|FILE | FILE...) [OPTIONS]\n"
		 "--resume RUN [OPTIONS]",
	.about = "Runs each workload on the target, cuts the power, lets the file system recover, "
		 "and checks what was promised.",
	.status = EXIT_STATUS_SEARCH,
	.example = "outage test -t ext4 --bounds seq-1",
	.options = options,
	.size = sizeof(struct test),
	.init = init,
	.release = release,
	.run = run,
};
