/* SPDX-License-Identifier: MIT */
/* cmd_test.c - outage test: workloads, crashes, recovery, check. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "run/plan.h"
#include "run/store.h"
#include "run/workers.h"
#include "target/guest_fs.h"
#include "target/tune.h"

struct test {
	struct plan plan;
	struct supply source;
	struct suppress suppress;
	struct progress progress;
	struct earlier earlier;
	uint64_t before;	/* workloads that were done when this began, */
	uint64_t states_before; /* and the states of them, */
	uint64_t found_before;	/* and their findings */
	uint64_t time_ns, hang_ns, jobs;
	const char *output, *resume;
	struct target_line line; /* the two options that are a part of its name */
	bool json, tune, trust;
	char *dir;
	struct progress_clusters clusters;
	uint64_t missed; /* earlier findings whose workload is done, and did not show them again, */
	const struct earlier_case *first_missed;
	bool terminal;
	uint64_t start_ns, shown_ns;
	unsigned errors_shown;
	struct err unmarked; /* why nothing gets this user's mark */
};

/* ---- while it runs ---- */

static void clear_line(const struct test *t)
{
	if (t->terminal)
		fputs("\r\033[K", stderr);
}

static void on_found(void *ctx, const struct worker_finding *f, const char *dir)
{
	struct test *t = ctx;
	struct progress_cluster c = { .kinds = f->kinds, .count = 1, .kept = f->kept };
	size_t known = t->clusters.n;

	snprintf(c.name, sizeof(c.name), "%s", f->cluster);
	snprintf(c.words, sizeof(c.words), "%s", f->words);
	progress_count(&t->clusters, &c);
	if (t->clusters.n == known || t->json)
		return;
	clear_line(t);
	printf("found  %s\n       %s\n", f->cluster, f->words);
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

	clear_line(t);
	if (t->errors_shown++ < 10)
		fprintf(stderr, "outage: %s\n", words);
}

static void on_stopping(void *ctx)
{
	clear_line(ctx);
	fprintf(stderr, "outage: stopping; what was found so far is told\n");
}

/* Of what is slow, a tenth counts. */
static int digits(double rate)
{
	return rate < 9.95 && rate > 0 ? 1 + (rate < 0.095) : 0;
}

static void on_progress(void *ctx, const struct run_totals *totals, uint64_t done, uint64_t total)
{
	struct test *t = ctx;
	uint64_t now = util_now_ns();
	double elapsed = (double)(now - t->start_ns) / 1e9;

	if (!t->terminal || now - t->shown_ns < 200000000)
		return;
	t->shown_ns = now;
	double rate = elapsed > 0 ? (double)(done - t->before) / elapsed : 0;
	fprintf(stderr, "\r\033[K%llu of %llu workloads, %llu states, %zu findings, %.*f/s",
		llu(done), llu(total), llu(totals->unique_states), t->clusters.n, digits(rate),
		rate);
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
	return r->totals.workloads <= t->before && t->before < t->plan.workloads &&
	       r->totals.findings <= t->found_before + r->earlier;
}

/* Whether workloads were run, and no power was cut. A finding without a crash is worth telling. */
static bool crashed_nothing(const struct workers_result *r)
{
	return !r->totals.crash_states && !r->totals.findings && !r->suppressed;
}

static bool refused_all(const struct workers_result *r)
{
	return r->totals.refused && !r->totals.performed && !r->totals.findings && !r->suppressed;
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
		t->plan.modes & ~(uint64_t)(RUN_PERSIST | RUN_LAST | RUN_RECOVERY)
			? "nothing was sent to the disk"
			: "none has a persistence point",
		t->plan.modes & RUN_REORDER ? "" : ", or give --crash reorder");
}

static void print_json(const struct test *t, const struct workers_result *r, double elapsed)
{

	cli_json(KV("target", t->plan.target), KV("kernel", t->plan.kernel), KV("run", t->dir),
		 KV("workloads", r->totals.workloads), KV("workloads_total", t->plan.workloads),
		 KV("done_before", t->before), KV("crash_states", r->totals.crash_states),
		 KV("unique_states", r->totals.unique_states), KV("findings", r->totals.findings),
		 KV("clusters", t->clusters.n), KV("not_kept", not_kept(t)),
		 KV("not_again", t->missed), KV("suppressed", r->suppressed),
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
	       COUNT(t->missed, "was", "were"), t->dir, llu(e->workload), llu(e->number),
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
		else if (r->totals.workloads < t->plan.workloads)
			printf("nothing found in %llu of %llu workloads\n",
			       llu(r->totals.workloads), llu(t->plan.workloads));
		else
			printf("nothing found\n");
		return;
	}
	printf("%llu %s in %zu %s, ", COUNT_S(r->totals.findings, "finding"), t->clusters.n,
	       plural(t->clusters.n, "cluster", "clusters"));
	if (dropped)
		printf("%llu of them not kept, the others are ", llu(dropped));
	printf("kept in %s\n", t->dir);
	print_missed(t);
}

/* Prints signs that the run may not have tested what it was meant to. */
static void print_doubts(const struct test *t, const struct run_totals *s)
{
	if (s->refused)
		printf("%llu %s refused by the file system (outage -v test tells which)\n",
		       COUNT(s->refused, "operation was", "operations were"));
	if (t->plan.lose_flush && s->altered < s->workloads)
		printf("%llu of the workloads sent no flush number %llu\n",
		       llu(s->workloads - s->altered), llu(t->plan.lose_flush));
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
	       t->plan.target, COUNT_S(s->workloads, "workload"), llu(s->unique_states),
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
	if (r->stopped && !plan_from_stdin(&t->plan))
		printf("to go on: outage test --resume %s\n", t->dir);
	if (r->errors)
		printf("%llu %s: part of the run could not be done\n", COUNT_S(r->errors, "error"));
	if (r->suppressed)
		printf("%llu findings are suppressed\n", llu(r->suppressed));
	print_doubts(t, s);
	print_findings(t, r);
}

static int finish(struct test *t, const struct workers_result *result)
{
	double elapsed = (double)(util_now_ns() - t->start_ns) / 1e9;
	struct workers_result r = *result;
	auto_free char *untried = why_untried(t, &r);

	clear_line(t);
	if (!t->json)
		print_summary(t, &r, elapsed);
	r.errors += untried != NULL;
	if (t->json)
		print_json(t, &r, elapsed);
	cli_tell_unmarked(&t->unmarked);
	if (untried)
		return cli_failf("%s", untried);
	if (r.errors || r.signalled)
		return EXIT_FAILED;
	return r.totals.findings ? EXIT_FINDINGS : EXIT_OK;
}

/* ---- running it ---- */

/* An unbegun run leaves no directory. The run made all of these: it refuses what is there. */
static void remove_unbegun(const struct test *t)
{
	if (t->resume || t->progress.done || t->clusters.n)
		return;
	auto_fd dir = open(t->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	unlinkat(dir, CASE_RUN, 0);
	for (const char *const *name = store_made; *name; name++)
		unlinkat(dir, *name, 0);
	unlinkat(dir, "findings", AT_REMOVEDIR); /* if it is empty */
	if (rmdir(t->dir) == 0 && !t->output)
		rmdir("outage-runs"); /* unless others are there */
}

/* Of the findings that were kept before, those that should have shown again. */
static void count_missed(struct test *t)
{
	for (size_t i = 0; i < t->earlier.n; i++) {
		const struct earlier_case *e = &t->earlier.v[i];

		if (e->again || !e->id || !progress_has(&t->progress, e->workload))
			continue;
		if (!t->missed++)
			t->first_missed = e;
	}
}

static int run_workers(struct test *t)
{
	struct workers_opts opts = { .source = &t->source,
				     .time_ns = t->time_ns,
				     .hang_ms = t->hang_ns / 1000000,
				     .dir = t->dir,
				     .keep = t->plan.keep,
				     .suppress = &t->suppress,
				     .progress = &t->progress,
				     .earlier = &t->earlier,
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
	plan_run_opts(&t->plan, &opts.run);
	opts.jobs = (unsigned)min(t->jobs, (uint64_t)WORKERS_MAX);
	if (opts.jobs > t->plan.workloads - t->before)
		opts.jobs = (unsigned)(t->plan.workloads - t->before);
	t->terminal = isatty(STDERR_FILENO) && !t->json;
	int rc = t->tune ? tune_apply(&tune, &err) : 0;
	if (!rc)
		rc = workers_run(&opts, &result, &err);
	tune_restore(&tune);
	count_missed(t);
	if (rc) {
		clear_line(t);
		remove_unbegun(t);
		return cli_fail(&err);
	}
	return finish(t, &result);
}

static int run_test(struct test *t)
{
	t->before = t->progress.done;
	t->states_before = t->progress.totals.unique_states;
	t->found_before = t->progress.totals.findings;
	t->start_ns = util_now_ns();
	for (size_t i = 0; i < t->progress.clusters.n; i++)
		vec_push(&t->clusters, t->progress.clusters.v[i]);
	if (t->before < t->plan.workloads)
		return run_workers(t);
	if (!t->json)
		printf("%s is finished: there is nothing left to do\n", t->dir);
	return finish(t, &(struct workers_result){ .totals = t->progress.totals,
						   .suppressed = t->progress.suppressed });
}

static int open_source(struct test *t, struct err *err)
{
	const struct plan *p = &t->plan;
	int rc = p->bounds ? supply_open_bounds(&t->source, p->bounds, err) : 0;

	for (size_t i = 0; i < p->files.n && !rc; i++)
		rc = supply_add_path(&t->source, p->files.v[i], err);
	supply_select(&t->source, p->skip, p->limit, p->sample, p->seed);
	if (!rc && !supply_count(&t->source))
		rc = err_set(err, -EINVAL, "there is no workload to run");
	return rc;
}

static int save_suppressions(const struct test *t, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	if (!t->suppress.rules.n)
		return 0;
	suppress_print(&t->suppress, &text);
	return io_write_file(t->dir, "suppressions", text.buf, text.len, 0, err);
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

/* Where RUN/run is, the run can go on, also if it was killed before it had done anything. */
static int begin(struct test *t, struct err *err)
{
	auto_strbuf hash = STRBUF_INIT;

	if (t->plan.bounds && t->plan.files.n)
		return err_set(err, -EINVAL, "give --bounds or files, not both");
	if (!t->plan.bounds && !t->plan.files.n)
		return err_set(err, -EINVAL, "give --bounds SET or files with workloads");
	int rc = t->plan.target ? 0 : choose_target(&t->plan, err);
	if (!rc)
		rc = plan_complete(&t->plan, err);
	if (!rc)
		rc = open_source(t, err);
	if (rc)
		return rc;
	supply_hash(&t->source, &hash);
	t->plan.hash = strbuf_detach(&hash);
	t->plan.workloads = supply_count(&t->source);
	t->plan.ours = true;
	cli_ready_to_mark(&t->unmarked);
	rc = case_create(t->output, t->plan.target, store_made, &t->dir, err);
	if (!rc)
		rc = save_suppressions(t, err);
	if (!rc)
		rc = plan_save(&t->plan, t->dir, err);
	return rc ? rc : progress_create(t->dir, t->plan.workloads, &t->progress, err);
}

/* ---- going on ---- */

/* The numbers in the record must mean what they meant. */
static int check_source(struct test *t, struct err *err)
{
	auto_strbuf hash = STRBUF_INIT;
	int rc = open_source(t, err);

	if (rc)
		return rc;
	supply_hash(&t->source, &hash);
	if (!streq(strbuf_str(&hash), t->plan.hash) ||
	    supply_count(&t->source) != t->plan.workloads)
		return err_set(err, -EINVAL,
			       "the workloads are not those %s began with: begin a new run",
			       t->dir);
	return 0;
}

static int check_resumable(const struct test *t, struct err *err)
{
	struct target_opts target = { .spec = t->plan.target,
				      .mkfs = t->plan.mkfs,
				      .guest_kernel = t->plan.guest_kernel,
				      .guest_files = t->plan.guest_files,
				      .guest_memory = t->plan.guest_memory };

	if (plan_from_stdin(&t->plan))
		return err_set(
			err, -EINVAL,
			"%s took its workloads from standard input, which is gone: begin a new run",
			t->dir);
	auto_free char *kernel = target_kernel(&target);
	if (streq(kernel, t->plan.kernel))
		return 0;
	/* The kernel may have to be fetched first. */
	int rc = target_check(&target, err);
	if (rc)
		return rc;
	auto_free char *now = target_kernel(&target);
	if (streq(now, t->plan.kernel))
		return 0;
	return err_set(err, -EINVAL, "%s began on Linux %s, and this is %s: begin a new run",
		       t->dir, t->plan.kernel, now);
}

static int resume(struct test *t, struct err *err)
{
	struct plan given = t->plan;
	int rc = 0;

	plan_init(&t->plan);
	t->dir = xstrdup(t->resume);
	if (t->output)
		rc = err_set(err, -EINVAL, "--resume goes on in %s: leave -o out", t->dir);
	if (!rc && t->suppress.rules.n)
		rc = err_set(err, -EINVAL,
			     "--resume keeps the suppressions of %s: leave --suppress out", t->dir);
	if (!rc)
		rc = plan_load(t->dir, &t->plan, err);
	if (!rc)
		rc = plan_agrees(&t->plan, &given, err);
	/* In this order: a guest's kernel is asked for its version, and so is run. */
	if (!rc)
		rc = plan_trust(&t->plan, t->dir, t->trust, err);
	if (!rc)
		rc = check_resumable(t, err);
	if (!rc)
		rc = suppress_load_saved(&t->suppress, t->dir, err);
	if (!rc)
		rc = check_source(t, err);
	if (!rc)
		rc = progress_resume(t->dir, t->plan.workloads, &t->progress, err);
	if (!rc)
		rc = case_sweep(t->dir, err);
	if (!rc)
		rc = earlier_load(t->dir, &t->progress, &t->earlier, err);
	if (!rc)
		plan_look_at_files(&t->plan);
	if (!rc && t->plan.ours)
		cli_ready_to_mark(&t->unmarked);
	plan_release(&given);
	return rc;
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
		return plan_set(&t->plan, "crash", "reorder,torn", err);
	return plan_set(&t->plan, o->name, arg ? arg : "yes", err);
}

/* A target with all its options is a part of the plan, but for these two, which are its name. */
static int take_target(void *test, const struct opt *o, const char *arg, struct err *err)
{
	struct test *t = test;

	if (streq(o->name, "fstype"))
		t->line.fstype = arg;
	else if (streq(o->name, "mount-options"))
		t->line.mount_options = arg;
	else
		return take_plan(test, o, arg, err);
	return 0;
}

static int take_suppress(void *suppress, const char *arg, struct err *err)
{
	return suppress_load(suppress, arg, err);
}

/* A plan has, by option name, what must be the same when its run goes on. */
static const struct opt workload_options[] = {
	{ OPT_TEXT, "target", 't', "TARGET", .list = list_targets,
	  .help = "ext4, xfs, btrfs, ...; options for mount after a comma; 'fuse:COMMAND {disk} "
		  "{mnt}'; without root uml:ext4, vm:ext4, ...; 'help' lists them. Default: ext4 "
		  "as root, else uml:ext4" },
	OPTION_BOUNDS(),
	{ OPT_ARGUMENT, .arg = "FILE...", .hint = HINT_FILE,
	  .help = "workloads, j-lang files, directories of them, - for standard input" },
	OPTION_LIMIT("workloads"),
	{ OPT_COUNT, "skip", 0, "N", .rare = true, .help = "leave out the first N" },
	{ OPT_COUNT, "sample", 0, "N", .rare = true, .help = "N of them, spread evenly" },
	OPTION_SEED("samples, of workloads and of crash states", .rare = true),
	OPT_END
};

static const struct opt crash_options[] = {
	{ OPT_SECTION, .help = "Which crashes" },
	OPTION_CRASH("persist last prefix reorder torn recovery",
		     "persist (default), last, prefix, reorder (default for persistent memory), "
		     "torn, recovery"),
	{ OPT_FLAG, "torn", .rare = true, .help = "the same as --crash reorder,torn" },
	OPTION_BUDGET("crash states of one workload; default: 200 for reorder, torn and recovery"),
	OPTION_MAX_SUBSET("reorder: at most N writes lost, or surviving", .otherwise = "2",
			  .rare = true),
	OPTION_PRUNE("reads (default): vary only the writes that recovery or the walk reads; none "
		     "(default for persistent memory): vary them all"),
	{ OPT_COUNT, "lose-flush", 0, "N", .rare = true,
	  .help = "judge as if the N-th flush of each workload had not been sent, to see that it "
		  "is noticed" },
	OPTION_MODEL(OPT_TEXT, list_models),
	OPTION_EADR(OPT_FLAG),
	OPTION_GRANULARITY(),
	OPTION_SPLIT(),
	OPTION_MEDIA(),
	OPTION_MEDIA_MAX("16"),
	{ OPT_SECTION, .help = "Checks" },
	OPTION_GUARANTEE(),
	{ OPT_TEXT, "check", 0, "CMD",
	  .help = "a command that must succeed on every recovered state; it runs in the file "
		  "system, in the guest if there is one" },
	{ OPT_TEXT, "dump", 0, "CMD", .rare = true,
	  .help = "persistent memory: what it prints of a state is the state" },
	{ OPT_FLAG, "fsck", .rare = true,
	  .help = "run the file system's own checker on every state" },
	{ OPT_FLAG, "paranoid", .rare = true, .help = "compare device and record after every run" },
	{ OPT_SECTION, .help = "The run" },
	{ OPT_TEXT, "keep", 0, "WHAT", .words = "findings all none", .rare = true,
	  .help = "of each cluster: findings (5), a number, all, none", .otherwise = "findings" },
	OPT_END
};

#define AT(member) OPT_AT(struct test, member)
static const struct opt options[] = {
	{ OPT_SECTION, .help = "Workloads and target" },
	{ OPT_GROUP, .group = workload_options, .take = take_plan },
	{ OPT_GROUP, .group = target_options, .take = take_target },
	{ OPT_GROUP, .group = guest_options, .take = take_target },
	{ OPT_GROUP, .group = crash_options, .take = take_plan },
	{ OPT_DURATION, "time", 0, "DURATION", AT(time_ns),
	  .help = "stop after that, from when the targets are up" },
	OPTION_JOBS("workers; default: two for each processor", 0, AT(jobs)),
	OPTION_HANG_AFTER(AT(hang_ns), .rare = true, .least = 1000000000, .otherwise = "120s"),
	{ OPT_FLAG, "tune", 0, NULL, AT(tune), .rare = true,
	  .help = "while it runs, lower the console's log level and raise the priority of "
		  "kthreadd, on the whole machine" },
	OPTION_SUPPRESS(AT(suppress), .call = take_suppress),
	OPTION_OUTPUT(AT(output)),
	OPTION_RESUME(AT(resume)),
	OPTION_TRUST(AT(trust), .rare = true),
	OPTION_JSON(AT(json)),
	OPT_END
};

static int name_target(struct test *t, struct err *err)
{
	auto_free char *name = NULL;
	int rc = target_line_name(&t->line, t->plan.target, &name, err);

	return rc || !name ? rc : plan_set(&t->plan, "target", name, err);
}

static int add_files(struct test *t, char **files, struct err *err)
{
	int rc = 0;

	if (t->resume && *files)
		return err_set(err, -EINVAL, "--resume has its workloads from %s: leave %s out",
			       t->resume, *files);
	for (; !rc && *files; files++)
		rc = plan_set(&t->plan, "file", *files, err);
	return rc;
}

static void init(void *test)
{
	struct test *t = test;

	t->jobs = 2 * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	t->progress.fd = -1;
	t->suppress.is_kind = finding_kind_known;
	plan_init(&t->plan);
	supply_init(&t->source);
}

static void release(void *test)
{
	struct test *t = test;

	plan_release(&t->plan);
	supply_release(&t->source);
	suppress_release(&t->suppress);
	progress_release(&t->progress);
	earlier_release(&t->earlier);
	vec_release(&t->clusters);
	free(t->dir);
}

static int run(void *test, struct args *args)
{
	struct test *t = test;
	struct err err = ERR_INIT;

	if (name_target(t, &err) || add_files(t, args->v, &err))
		return cli_usage(&cmd_test, "%s", err.msg);
	if (!t->resume && t->plan.target && streq(t->plan.target, "help"))
		return list_all_targets();
	int rc = t->resume ? resume(t, &err) : begin(t, &err);
	return rc ? cli_fail(&err) : run_test(t);
}

const struct command cmd_test = {
	.name = "test",
	.summary = "runs workloads, cuts the power, and checks what a file system lost",
	.usage = "usage: outage test [-t TARGET] (--bounds SET|FILE | FILE...) [OPTIONS]\n"
		 "       outage test --resume RUN [OPTIONS]\n"
		 "\n"
		 "Runs each workload on the target, cuts the power, lets the file system recover, "
		 "and\n"
		 "checks what was promised.\n",
	.notes = EXIT_STATUS_NOTES "example: outage test -t ext4 --bounds seq-1\n",
	.options = options,
	.size = sizeof(struct test),
	.init = init,
	.release = release,
	.run = run,
};
