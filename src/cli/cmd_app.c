/* SPDX-License-Identifier: MIT */
/* cmd_app.c - outage app: every crash of an application's run. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app_pipeline.h"
#include "app/app_words.h"
#include "base/signals.h"
#include "case/suppress.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/kind.h"
#include "cli/ticker.h"

struct app {
	struct app_asked asked;
	struct app_outcome out;
	bool json;
	struct ticker ticker;
	struct signals signals; /* if they are caught */
	bool caught;
};

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

/* ---- while it runs ---- */

static void on_recorded(void *ctx)
{
	struct app *a = ctx;

	signals_catch(&a->signals, on_signal);
	a->caught = true;
}

static void on_progress(void *ctx, const struct search_totals *t, uint64_t findings)
{
	struct app *a = ctx;
	double elapsed = ticker_elapsed(&a->ticker);
	double rate = (double)t->checked / max(elapsed, 0.001);

	if (!ticker_due(&a->ticker))
		return;
	fprintf(stderr, "%llu states checked, %llu fail, %llu findings, %.0f/s", llu(t->checked),
		llu(t->failing), llu(findings), rate);
	if (a->asked.time_ns)
		fprintf(stderr, ", at most %.0f s left",
			max((double)a->asked.time_ns / 1e9 - elapsed, 0.0));
	else if (a->asked.plan.budget && rate > 0)
		fprintf(stderr, ", at most %.0f s left",
			(double)(a->asked.plan.budget - min(a->asked.plan.budget, t->checked)) /
				rate);
}

static void on_found(void *ctx, const struct app_case *c, uint64_t n)
{
	const struct app *a = ctx;

	if (a->json)
		return;
	ticker_clear(&a->ticker);
	printf("found  %s: %s\n       %s\n", app_harm_name(c->harm), app_harm_words(c->harm),
	       c->title);
	if (c->fix)
		printf("       mend it with: %s\n", c->fix);
	printf("       %s/findings/%llu\n", a->out.dir, llu(n));
	if (c->shown < c->asked)
		printf("       shown %llu of %llu times: the %s depends on more than the "
		       "directory\n",
		       llu(c->shown), llu(c->asked), app_plan_asks(&a->asked.plan));
	fflush(stdout);
}

/* ---- at the end ---- */

static void print_json(const struct app *a)
{
	const struct app_summary *s = &a->out.summary;
	struct json j;

	cli_json_begin(&j);
	json_kvs(&j, KV("run", a->out.dir), KV("profile", a->asked.plan.profile),
		 KV("operations", s->operations), KV("acknowledgements", s->acks),
		 KV("crash_states", s->crash_states), KV("unique_states", s->unique_states),
		 KV("checked", s->checked), KV("patterns", s->patterns),
		 KV("patterns_covered", s->covered), KV("failing", s->failing),
		 KV("findings", s->findings), KV("suppressed", s->suppressed),
		 KV("unexplained", s->unexplained), KV("errors", s->errors),
		 KV("elapsed_s", s->elapsed_s), KV("budget_hit", s->budget_hit),
		 KV("left_out", s->left_out), KV("recovery_ways", s->recovery_ways),
		 KV("recoveries", s->recoveries), KV("recoveries_tried", s->recoveries_tried),
		 KV("recovery_states", s->recovery_states),
		 KV("recovery_left_out", s->recovery_left_out));
	json_kv_array(&j, "notes");
	for (size_t i = 0; i < s->notes.n; i++)
		json_string(&j, s->notes.v[i]);
	json_end(&j);
	cli_json_end(&j);
}

/* Nothing is left out silently. */
static void print_left_out(const struct app *a)
{
	auto_strbuf many = STRBUF_INIT;

	if (a->out.summary.left_out <= 0)
		return;
	app_count_words(a->out.summary.left_out, &many);
	printf("not tried: %s%s\n", strbuf_str(&many),
	       a->out.by_signal || a->out.broken
		       ? ""
		       : "; --budget, --time or --max-subset is the limit");
}

static void print_text(const struct app *a)
{
	const struct app_summary *s = &a->out.summary;

	for (size_t i = 0; i < s->notes.n; i++)
		printf("note: %s\n", s->notes.v[i]);
	printf("%llu %s, %llu acknowledged %s, %llu different crash %s of %llu tried; %llu checked "
	       "in %.1f s: %.0f a second\n",
	       COUNT_S(s->operations, "operation"), COUNT_S(s->acks, "line"),
	       COUNT_S(s->unique_states, "state"), llu(s->crash_states), llu(s->checked),
	       a->out.checked_s, (double)s->checked / max(a->out.checked_s, 0.001));
	printf("%llu of %llu %s of operations covered\n", llu(s->covered),
	       COUNT_S(s->patterns, "pattern"));
	print_left_out(a);
	if (a->out.stopped)
		printf("to go on: outage app --resume %s\n", a->out.dir);
	if (a->asked.plan.crash & APP_CRASH_RECOVERY)
		printf("recovery changes states in %llu %s; %llu traced, %llu of them different: "
		       "%llu crash states of them checked, up to %.15g left out\n",
		       COUNT_S(s->recovery_ways, "way"), llu(s->recoveries),
		       llu(s->recoveries_tried), llu(s->recovery_states), s->recovery_left_out);
	if (s->suppressed)
		printf("%llu %s suppressed\n", COUNT(s->suppressed, "finding is", "findings are"));
	if (!s->findings && !s->checked)
		printf("nothing was tried\n");
	else if (!s->findings)
		printf("nothing found with profile %s%s\n", a->asked.plan.profile,
		       streq(a->asked.plan.profile, profile_at(0)->name)
			       ? "; -p minimal tries what other file systems may lose"
			       : "");
	else
		printf("%llu %s with profile %s; %llu %s; kept in %s\n",
		       COUNT_S(s->findings, "finding"), a->asked.plan.profile,
		       COUNT(s->failing, "state fails", "states fail"), a->out.dir);
}

static int status_of(const struct app *a)
{
	const struct app_outcome *out = &a->out;
	int status = out->summary.errors     ? EXIT_FAILED
		     : out->summary.findings ? EXIT_FINDINGS
					     : EXIT_OK;

	if (out->untried)
		status = cli_failf("%s", cli_why_untried(out->by_signal, a->asked.time_ns));
	else if (out->error.code)
		status = cli_fail(&out->error);
	if (out->by_signal && out->summary.checked)
		status = cli_failf("stopped by a signal after %llu of %llu states that were known "
				   "by then; what was found is in %s",
				   llu(out->summary.checked), llu(out->summary.unique_states),
				   out->dir);
	return status;
}

static int run_app(struct app *a)
{
	struct app_outcome *out = &a->out;
	struct err err = ERR_INIT;

	cli_ready_to_mark(&out->unmarked);
	int rc = app_pipeline(&a->asked, out, &err);
	ticker_clear(&a->ticker);
	if (a->caught)
		signals_restore(&a->signals);
	if (rc && out->summary.findings)
		return cli_failf("%s; what was found until then is in %s", err.msg, out->dir);
	if (rc)
		return cli_fail(&err);
	if (out->unchecked)
		fprintf(stderr, "outage: %llu %s could not be checked: %s\n",
			COUNT_S(out->unchecked, "state"), out->why_unchecked);
	if (a->json)
		print_json(a);
	else
		print_text(a);
	cli_tell_unmarked(&out->unmarked);
	return status_of(a);
}

/* ---- the command line ---- */

static int parse_unit(void *at, const char *arg, struct err *err)
{
	(void)err;
	*(uint64_t *)at = streq(arg, "page") ? 4096 : 512;
	return 0;
}

static int take_suppress(void *text, const char *arg, struct err *err)
{
	return suppress_add_file(text, arg, app_harm_known, err);
}

#define AT(member) OPT_AT(struct app, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "DIR", .hint = HINT_DIR,
	  .help = "where its data is; it is never changed" },
#define PLAN_AT(member) , AT(asked.plan.member)
#define PLAN_AS		ENTRY
#include "app/app_options.def"
	{ OPT_SECTION, .help = "The run" },
	OPTION_TIME("stop after that", AT(asked.time_ns)),
	OPTION_JOBS("checks at the same time; default: one for each processor", 256,
		    AT(asked.jobs)),
	OPTION_OUTPUT(AT(asked.output)),
	OPTION_RESUME(AT(asked.resume)),
	OPTION_TRUST(AT(asked.trust), .rare = true),
	OPTION_JSON(AT(json)),
	OPT_END
};

static int take_dir(struct app *a, const char *given)
{
	struct stat st;

	a->asked.plan.dir = realpath(given, NULL);
	if (!a->asked.plan.dir || stat(a->asked.plan.dir, &st))
		return cli_failf("cannot use %s: %s", given, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return cli_failf("%s is no directory; give the one that the application keeps its "
				 "data in",
				 given);
	if (streq(a->asked.plan.dir, "/"))
		return cli_failf("/ cannot be covered by a mount; give a directory below it");
	return EXIT_OK;
}

static void init(void *given)
{
	struct app *a = given;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	a->asked.plan.profile = xstrdup(profile_at(0)->name);
	a->asked.jobs = cpus > 0 ? (uint64_t)cpus : 1;
	ticker_start(&a->ticker, false);
	a->asked.start_ns = a->ticker.start_ns;
	a->asked.stop = &told_to_stop;
	a->asked.recorded = on_recorded;
	a->asked.progress = on_progress;
	a->asked.found = on_found;
	a->asked.ctx = a;
}

static void release(void *given)
{
	struct app *a = given;

	app_plan_release(&a->asked.plan);
	app_outcome_release(&a->out);
}

/* All of it but DIR is in the plan of the run. */
static int resume(struct app *a, const struct args *args)
{
	if (args->n)
		return cli_usage(&cmd_app, "--resume has the directory from %s: leave %s out",
				 a->asked.resume, args->v[0]);
	if (a->asked.output)
		return cli_usage(&cmd_app, "--resume goes on in %s: leave -o out", a->asked.resume);
	a->asked.given = kind_given(app_kind.plan, args);
	return run_app(a);
}

static int run(void *given, struct args *args)
{
	struct app *a = given;

	if (a->asked.resume)
		return resume(a, args);
	if (!a->asked.plan.run)
		return cli_usage(&cmd_app, "--run is missing: what shall be done?");
	if (!a->asked.plan.check && !a->asked.plan.restart && !a->asked.plan.query)
		return cli_usage(&cmd_app, "give one of --check, --restart and --query: what is a "
					   "good state?");
	if (a->asked.plan.check && a->asked.plan.query)
		return cli_usage(&cmd_app, "give one of --check and --query; --restart goes with "
					   "either of them");
	if (args->n != 1)
		return cli_usage(&cmd_app, "give one directory, which the application works in");
	int rc = take_dir(a, args->v[0]);
	return rc ? rc : run_app(a);
}

const struct command cmd_app = {
	.name = "app",
	.summary = "tries every crash of an application's run, and explains what fails",
	.usage = "--run CMD (--check | --restart | --query) CMD [OPTIONS] -- DIR\n"
		 "--resume RUN [OPTIONS]",
	.about = "Runs an application once, on a copy of the directory DIR, and writes down all it "
		 "does there. Then every state in which a power cut could have left the directory "
		 "is built and checked; what fails is explained.",
	.status = EXIT_STATUS_SEARCH,
	.example = "outage app --run \"$PWD/writer\" --check \"$PWD/checker\" -- data",
	.options = options,
	.size = sizeof(struct app),
	.init = init,
	.release = release,
	.run = run,
};
