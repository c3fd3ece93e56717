/* SPDX-License-Identifier: MIT */
/* cmd_pm.c - outage pm: every crash of a program that uses persistent memory. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/signals.h"
#include "base/words.h"
#include "case/suppress.h"
#include "check/semantic.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/kind.h"
#include "cli/ticker.h"
#include "pm/pm_command.h"
#include "pm/pm_pipeline.h"

enum {
	DETAIL_LINES = 4, /* lines of a finding that are printed */
	EARLY_MAX = 8,	  /* failures that are told before all are known */
};

struct pm {
	struct pm_asked asked;
	struct pm_outcome out;
	bool json;
	struct ticker ticker;
	struct err unmarked; /* why nothing gets this user's mark */
};

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static void on_progress(void *ctx, uint64_t checked, uint64_t failing)
{
	struct pm *p = ctx;

	if (!ticker_due(&p->ticker))
		return;
	fprintf(stderr, "%llu states checked, %llu fail, %.0f/s", llu(checked), llu(failing),
		(double)checked / max(ticker_elapsed(&p->ticker), 0.001));
}

/* The first line of what a command said, and how long it is. */
static int first_line(const char *said)
{
	return (int)min(strcspn(said, "\n"), (size_t)200);
}

static void on_failed(void *ctx, const struct pm_failure *f, size_t reasons)
{
	const struct pm *p = ctx;

	if (p->json || reasons > EARLY_MAX)
		return;
	ticker_clear(&p->ticker);
	printf("fails  at event %llu (%s): %.*s\n", llu(f->point), semantic_cause_name(f->cause),
	       first_line(f->said), f->said);
	fflush(stdout);
}

static void print_case(const struct pm *p, const struct pm_case *c)
{
	const char *line = c->detail, *said = strbuf_str(&c->said);

	printf("found  %s\n", c->title);
	if (c->cause)
		printf("       %s\n", c->cause);
	printf("       %s; %llu %s\n", c->seen, COUNT_S(c->states, "state"));
	if (p->asked.plan.check && *said)
		printf("       it said: %.*s\n", first_line(said), said);
	for (size_t i = 0; *line && i < DETAIL_LINES; i++) {
		size_t len = strcspn(line, "\n");

		printf("       %.*s\n", (int)min(len, (size_t)500), line);
		line += len + (line[len] == '\n');
	}
	if (*line)
		printf("       ... (outage report has it all)\n");
}

static void on_case(void *ctx, const struct pm_case *c, size_t number, bool kept)
{
	const struct pm *p = ctx;

	if (p->json)
		return;
	ticker_clear(&p->ticker);
	print_case(p, c);
	if (kept)
		printf("       %s/findings/%zu\n", p->out.dir, number);
}

static void print_json(const struct pm *p)
{
	const struct pm_summary *s = &p->out.summary;
	struct json j;

	cli_json_begin(&j);
	json_kvs(
		&j, KV("run", p->out.dir), KV("tracer", p->asked.plan.preload ? "preload" : "qemu"),
		KV_SOME("emulator", p->asked.tracer.version), KV("operations", s->operations),
		KV("stores", s->stores), KV("flushes", s->flushes), KV("fences", s->fences),
		KV("marks", s->marks), KV("cpus", s->cpus), KV("crash_states", s->crash_states),
		KV("unique_states", s->unique_states), KV("checked", s->checked),
		KV("failing", s->failing), KV("findings", s->findings), KV("not_kept", s->not_kept),
		KV("suppressed", s->suppressed), KV("errors", s->errors),
		KV("elapsed_s", ticker_elapsed(&p->ticker)), KV("budget_hit", (bool)s->budget_hit),
		KV("left_out", s->left_out), KV("known", s->known), KV("dropped", s->dropped),
		KV("copies_not_cut", s->copies), KV("granularity", p->asked.plan.granularity),
		KV("max_subset", p->asked.plan.max_subset),
		KV("model", p->asked.plan.model ? p->asked.plan.model : model_pm.name),
		KV("media_states", s->media_states), KV("media_left_out", p->out.media_left_out),
		KV("pruned", s->pruned), KV("recovery_ways", p->out.recovery_ways),
		KV("recoveries", s->recoveries), KV("recoveries_tried", s->recoveries_tried),
		KV("recovery_states", s->recovery_states),
		KV("recovery_left_out", p->out.recovery_left_out),
		KV("recovery_resized", p->out.recovery_resized));
	cli_json_end(&j);
}

/* Prints what was asked for beyond the usual, and what of it was left out. */
static void print_more(const struct pm *p)
{
	const struct pm_summary *s = &p->out.summary;

	if (p->asked.plan.model || p->asked.plan.granularity != 64 || p->asked.plan.split)
		printf("model: %s%s%s\n",
		       model_find(p->asked.plan.model ? p->asked.plan.model : model_pm.name)->help,
		       p->asked.plan.granularity == 64 ? "" : ", stores to one line in any order",
		       p->asked.plan.split ? ", each store of a copy on its own" : "");
	if (p->asked.plan.media)
		printf("%llu of the states have a bad line; %.15g such were left out "
		       "(--media-max)\n",
		       llu(s->media_states), p->out.media_left_out);
	if (p->asked.plan.prune)
		printf("pruned: %llu crash states differ only in lines that are not read, as seen "
		       "in %llu runs (in %llu of them all is read)\n",
		       llu(s->pruned), llu(s->reads_traced), llu(s->reads_whole));
	if (p->asked.plan.crash & PM_CRASH_RECOVERY)
		printf("recovery changes states in %llu %s; %llu traced, %llu of them different: "
		       "%llu crash states of them checked, up to %.15g left out\n",
		       COUNT_S(p->out.recovery_ways, "way"), llu(s->recoveries),
		       llu(s->recoveries_tried), llu(s->recovery_states), p->out.recovery_left_out);
	if (p->out.recovery_resized)
		printf("recovery changes the size of the file in %llu %s: its crashes there are "
		       "not tried\n",
		       COUNT_S(p->out.recovery_resized, "state"));
}

/* Nothing is left out silently. */
static void print_left_out(const struct pm *p)
{
	const struct pm_summary *s = &p->out.summary;
	const char *limit = told_to_stop ? "the signal "
			    : p->out.cut ? "the budget, or the time, "
					 : "--max-subset ";

	if (s->left_out > 1000000000000000)
		printf("%sleft out more crash states than can be counted\n", limit);
	else if (s->left_out)
		printf("%sleft out up to %llu crash %s\n", limit, COUNT_S(s->left_out, "state"));
	if (s->known)
		printf("%llu %s not checked, as what %s fails without more (--enough 0 checks "
		       "%s)\n",
		       COUNT(s->known, "state was", "states were"),
		       plural(s->known, "it loses", "they lose"), plural(s->known, "it", "them"));
	if (s->dropped)
		printf("%llu failing %s not looked at, as thousands of others were\n",
		       COUNT(s->dropped, "state was", "states were"));
	if (s->copies)
		printf("%llu %s not cut at every line; --split does\n",
		       COUNT(s->copies, "copy was", "copies were"));
}

static void print_text(const struct pm *p)
{
	const struct pm_summary *s = &p->out.summary;

	printf("%llu %s, %llu %s, %llu %s; %llu different crash %s of %llu tried; %llu checked in "
	       "%.1f s: %.0f a second\n",
	       COUNT_S(s->stores, "store"), COUNT(s->flushes, "flush", "flushes"),
	       COUNT_S(s->fences, "fence"), COUNT_S(s->unique_states, "state"),
	       llu(s->crash_states), llu(s->checked), ticker_elapsed(&p->ticker),
	       (double)s->checked / max(ticker_elapsed(&p->ticker), 0.001));
	print_left_out(p);
	print_more(p);
	if (p->out.stopped)
		printf("to go on: outage pm --resume %s\n", p->out.dir);
	if (p->asked.plan.preload)
		printf("traced by calls of libpmem: stores are known when the next call is made, "
		       "flush instructions of the program's own are not seen, nor is what a forked "
		       "process calls\n");
	if (s->suppressed)
		printf("%llu %s suppressed\n", COUNT(s->suppressed, "finding is", "findings are"));
	if (!s->findings)
		printf(s->checked ? "nothing found\n" : "nothing was tried\n");
	else
		printf("%llu %s; %llu %s; ", COUNT_S(s->findings, "finding"),
		       COUNT(s->failing, "state fails", "states fail"));
	if (s->not_kept)
		printf("%llu of the findings not kept, the others are ", llu(s->not_kept));
	if (s->findings)
		printf("kept in %s\n", p->out.dir);
}

/* ---- all of it ---- */

static int run_pm(struct pm *p)
{
	struct err err = ERR_INIT;
	struct signals signals;

	cli_ready_to_mark(&p->unmarked);
	signals_catch(&signals, on_signal);
	int rc = pm_pipeline(&p->asked, &p->out, &err);
	ticker_clear(&p->ticker);
	signals_restore(&signals);
	if (rc && p->out.kept)
		return cli_failf("%s; what was found until then is in %s", err.msg, p->out.dir);
	if (rc)
		return cli_fail(&err);
	if (p->json)
		print_json(p);
	else
		print_text(p);
	cli_tell_unmarked(&p->unmarked);
	if (p->out.untried)
		return cli_failf("%s", cli_why_untried(told_to_stop, p->asked.time_ns));
	if (told_to_stop)
		return cli_failf("stopped by a signal; what was found is in %s", p->out.dir);
	if (p->out.summary.errors)
		return cli_failf("%llu crash states could not be checked: %s",
				 llu(p->out.summary.errors), p->out.error);
	return p->out.summary.findings ? EXIT_FINDINGS : EXIT_OK;
}

/* ---- the command line ---- */

static int take_eadr(void *model, const char *arg, struct err *err)
{
	char **to = model;

	(void)arg, (void)err;
	free(*to);
	*to = xstrdup(model_pm_eadr.name);
	return 0;
}

/* The path as the program and the check know it; the file itself need not be there. */
static int parse_file(void *file, const char *given, struct err *err)
{
	auto_free char *copy = xstrdup(given);
	char *slash = strrchr(copy, '/'), **to = file;
	struct stat st;

	free(*to);
	*to = realpath(given, NULL);
	if (!*to) {
		const char *name = slash ? slash + 1 : copy;
		auto_free char *dir = NULL;

		if (slash)
			*slash = 0;
		dir = realpath(!slash ? "." : *copy ? copy : "/", NULL);
		if (!dir || !*name)
			return err_set(err, -ENOENT, "cannot use %s: there is no such directory",
				       given);
		*to = xasprintf("%s/%s", streq(dir, "/") ? "" : dir, name);
	}
	if (!stat(*to, &st) && !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL,
			       "%s is no regular file; give the one that the program maps", given);
	return 0;
}

static int take_suppress(void *text, const char *arg, struct err *err)
{
	return suppress_add_file(text, arg, pm_cause_known, err);
}

#define AT(member) OPT_AT(struct pm, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "PROGRAM", .hint = HINT_FILE,
	  .help = "an ordinary x86-64 program, and its arguments" },
	{ OPT_SECTION, .help = "The program" },
#define PLAN_AT(member) , AT(asked.plan.member)
#define PLAN_AS		ENTRY
#include "pm/pm_options.def"
	{ OPT_CALL, "eadr", AT(asked.plan.model), .call = take_eadr, .help = HELP_EADR },
	{ OPT_SECTION, .help = "The run" },
	{ OPT_SIZE, "size", 0, "BYTES", AT(asked.size), .least = 1,
	  .help = "make POOL, of so many zero bytes, if it is not there" },
	OPTION_TIME("stop after that", AT(asked.time_ns)),
	OPTION_JOBS("checks at the same time; default: one for each processor", 256,
		    AT(asked.jobs)),
	OPTION_OUTPUT(AT(asked.output)),
	OPTION_RESUME(AT(asked.resume)),
	OPTION_TRUST(AT(asked.trust), .rare = true),
	OPTION_JSON(AT(json)),
	OPT_END
};

static char *quote_all(char *const *argv)
{
	struct strbuf sb = STRBUF_INIT;

	for (size_t i = 0; argv[i]; i++) {
		if (i)
			strbuf_addch(&sb, ' ');
		words_quote(argv[i], &sb);
	}
	return strbuf_detach(&sb);
}

/* Options that do not go together are told before anything is run. */
static int check_options(const struct pm *p)
{
	const char *look = p->asked.plan.check ? p->asked.plan.check : p->asked.plan.dump;
	const char *recover = p->asked.plan.recover ? p->asked.plan.recover : look;
	struct err err = ERR_INIT;
	auto_words words = { 0 }, other = { 0 };

	if (p->asked.plan.media && p->asked.plan.dump)
		return cli_usage(&cmd_pm, "--media goes with --check, which says what is to be "
					  "survived, not with --dump");
	if (p->asked.plan.stacks && p->asked.plan.preload)
		return cli_usage(&cmd_pm, "--stacks wants an emulator, which sees calls and "
					  "returns: leave out --tracer preload");
	if (p->asked.plan.prune && p->asked.plan.preload)
		return cli_usage(&cmd_pm, "--prune reads wants an emulator, which alone sees what "
					  "is read: leave out --tracer preload");
	if ((p->asked.plan.prune || p->asked.plan.crash & PM_CRASH_RECOVERY) &&
	    !p->asked.plan.preload && pm_command_plain(recover, p->asked.plan.file, &words, &err))
		return cli_fail(&err);
	if (p->asked.plan.prune && pm_command_plain(look, p->asked.plan.file, &other, &err))
		return cli_fail(&err);
	return EXIT_OK;
}

static void init(void *given)
{
	struct pm *p = given;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	p->asked.tracer = (struct tracer)TRACER_INIT;
	p->asked.jobs = cpus > 0 ? (uint64_t)cpus : 1;
	ticker_start(&p->ticker, false);
	p->asked.start_ns = p->ticker.start_ns;
	p->asked.stop = &told_to_stop;
	p->asked.progress = on_progress;
	p->asked.failed = on_failed;
	p->asked.found = on_case;
	p->asked.ctx = p;
}

static void release(void *given)
{
	struct pm *p = given;

	tracer_close(&p->asked.tracer);
	pm_plan_release(&p->asked.plan);
	free(p->out.dir);
}

/* All of it is in the plan of the run. */
static int resume(struct pm *p, const struct args *args)
{
	static const char *const others[] = { "size", "eadr" };

	if (args->n)
		return cli_usage(&cmd_pm, "--resume has the program's run from %s: leave %s out",
				 p->asked.resume, args->v[0]);
	if (p->asked.output)
		return cli_usage(&cmd_pm, "--resume goes on in %s: leave -o out", p->asked.resume);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (args_given(args, others[i]))
			return cli_usage(&cmd_pm, "--resume has it from %s: leave --%s out",
					 p->asked.resume, others[i]);
	p->asked.given = kind_given(pm_kind.plan, args);
	return run_pm(p);
}

static int run(void *given, struct args *args)
{
	struct pm *p = given;

	if (p->asked.resume)
		return resume(p, args);
	if (!p->asked.plan.file)
		return cli_usage(&cmd_pm, "--file is missing: which file is persistent memory?");
	if (!p->asked.plan.check == !p->asked.plan.dump)
		return cli_usage(&cmd_pm, "give one of --check and --dump: what is a good state?");
	if (!args->n)
		return cli_usage(&cmd_pm, "give a program to run");
	int rc = check_options(p);
	if (rc)
		return rc;
	p->asked.argv = (const char *const *)args->v;
	p->asked.plan.program = quote_all(args->v);
	p->asked.plan.dir = realpath(".", NULL);
	if (!p->asked.plan.dir)
		return cli_failf("cannot tell where we are: %s", strerror(errno));
	return run_pm(p);
}

const struct command cmd_pm = {
	.name = "pm",
	.summary = "every crash of a program that uses persistent memory is tried",
	.usage = "--file POOL (--check | --dump) CMD [OPTIONS] -- PROGRAM ARG...\n"
		 "--resume RUN [OPTIONS]",
	.about = "Runs PROGRAM once in an emulator that sees every store, flush and fence to the "
		 "file POOL, which the program maps as persistent memory. Then every content that "
		 "the memory could have had after a power cut, by the rules of x86 processors, is "
		 "put in the file's place, and checked. POOL itself is not changed.",
	.status = EXIT_STATUS_SEARCH,
	.example = "outage pm --file pool --size 1M --check ./verify -- ./writer pool",
	.options = options,
	.order = OPT_BEFORE, /* the program's own options are its own */
	.size = sizeof(struct pm),
	.init = init,
	.release = release,
	.run = run,
};
