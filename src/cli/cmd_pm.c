/* SPDX-License-Identifier: MIT */
/* cmd_pm.c - outage pm: every crash of a program that uses persistent memory. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/words.h"
#include "check/semantic.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "pm/pm_command.h"
#include "pm/reads.h"
#include "pm/pm_record.h"
#include "pm/recovery.h"
#include "pm/pm_search.h"
#include "run/store.h"

enum {
	KEEP_MAX = 64,
	DETAIL_LINES = 4,	 /* of a finding that are printed */
	CRASH_RECOVERY = 1 << 1, /* of the words of --crash */
	EARLY_MAX = 8,		 /* failures that are told before all are known */
};

struct pm {
	struct pm_plan plan;
	struct tracer tracer;
	const char *output, *qemu;
	const char *const *argv; /* of the program */
	uint64_t size, time_ns, jobs, recoveries, recovery_ways;
	uint32_t crash; /* bits of CRASH_... */
	bool crash_recovery;
	bool json, terminal, made;
	bool kept;    /* there may be findings, which need the run */
	bool untried; /* not even one crash state was checked */
	char *dir;    /* of the run */
	struct pm_run run;
	bool loaded;
	struct pm_counts counts;
	struct pm_summary summary;
	uint64_t start_ns, shown_ns;
	double left_out, media_left_out, recovery_left_out;
	struct pm_reasons told; /* why states fail that were told as they came */
	uint64_t early;		/* findings, from number 0 on, that were kept then */
	size_t synced;		/* 1 + the recoveries that are on disk; 0: nothing is */
	char error[512];
	struct err unmarked; /* why nothing gets this user's mark */
};

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static double elapsed(const struct pm *p)
{
	return (double)(util_now_ns() - p->start_ns) / 1e9;
}

static void on_progress(void *ctx, uint64_t checked, uint64_t failing)
{
	struct pm *p = ctx;
	uint64_t now = util_now_ns();

	if (!p->terminal || now - p->shown_ns < 200000000)
		return;
	p->shown_ns = now;
	fprintf(stderr, "\r\033[K%llu states checked, %llu fail, %.0f/s",
		(unsigned long long)checked, (unsigned long long)failing,
		(double)checked / max(elapsed(p), 0.001));
}

/* The first line of what a command said, and how long it is. */
static int first_line(const char *said)
{
	return (int)min(strcspn(said, "\n"), (size_t)200);
}

/* What every finding needs besides itself; each recovery that was traced since then, too. */
static int sync_run(struct pm *p, struct err *err)
{
	int rc = p->synced > p->run.n_nested ? 0 : case_run_sync(&pm_kind, p->dir, err);

	if (!rc)
		p->synced = 1 + p->run.n_nested;
	return rc;
}

/* Whatever happens later, what was told can be replayed. */
static void keep_early(struct pm *p, const struct pm_failure *f)
{
	struct err err = ERR_INIT;
	struct pm_case c;

	if (p->early >= KEEP_MAX)
		return;
	pm_failure_case(&p->run, f, &c);
	p->kept = true;
	int rc = sync_run(p, &err);
	if (!rc)
		rc = pm_case_save(p->dir, p->early, &c, &err);
	/* The end may do better. */
	if (rc)
		log_warn("a failure is not kept yet: %s", err.msg);
	else
		p->early++;
	pm_case_release(&c);
}

/* What fails is told when it is first seen; which of it is one finding is known in the end. */
static void on_failed(void *ctx, const struct pm_failure *f)
{
	struct pm *p = ctx;

	if (!pm_reasons_add(&p->told, &p->run, f))
		return;
	keep_early(p, f);
	if (p->json || p->told.n > EARLY_MAX)
		return;
	if (p->terminal)
		fputs("\r\033[K", stderr);
	printf("fails  at event %llu (%s): %.*s\n", (unsigned long long)f->point,
	       semantic_cause_name(f->cause), first_line(f->said), f->said);
	fflush(stdout);
}

/* ---- the run, and the state at its end ---- */

static int record(struct pm *p, struct err *err)
{
	struct pm_record_opts o = { .tracer = &p->tracer,
				    .run = p->dir,
				    .file = p->plan.file,
				    .argv = p->argv,
				    .size = p->size,
				    .stop = &told_to_stop,
				    .timeout_ms = p->plan.timeout_ms };
	int rc = pm_record(&o, &p->counts, &p->made, err);

	if (!rc)
		rc = record_save(pm_kind.plan, p->dir, CASE_RUN, &p->plan, err);
	if (!rc)
		rc = case_run_mark(&pm_kind, p->dir, err);
	if (!rc)
		rc = pm_run_load(p->dir, &p->run, err);
	p->loaded = !rc;
	p->run.stop = &told_to_stop;
	if (!rc && p->tracer.preload && !p->counts.flushes && !p->counts.fences)
		log_warn("no flush and no fence was seen: if the program has its own (clwb, "
			 "sfence), what follows is wrong; leave out --tracer preload, so that an "
			 "emulator sees them");
	return rc;
}

static int verify_end(struct pm *p, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", p->run.trace.events.n);
	auto_strbuf said = STRBUF_INIT, seen = STRBUF_INIT;
	struct pm_failure f = { 0 };
	int rc = pm_search_one(&p->run, id, &f, err);

	if (!rc && p->plan.dump && !p->counts.marks)
		rc = err_set(
			err, -EINVAL,
			"the program has no marks, so --dump cannot tell its operations apart: "
			"put outage_mark_begin(n) and outage_mark_end(n) of <outage/mark.h> "
			"around each, or use --check");
	if (!rc && f.end != CHECK_PASSED) {
		struct check_result r = { .end = f.end,
					  .exit_code = f.exit_code,
					  .signal = f.signal };

		check_describe(&r, &seen);
		strbuf_add_flat(&said, f.said);
		rc = err_set(err, -EINVAL,
			     "the check fails on the file as the program left it, without any "
			     "crash: mend that first (the check %s: %.300s)",
			     strbuf_str(&seen), strbuf_str(&said));
	}
	pm_failure_release(&f);
	return rc;
}

/* ---- what was found ---- */

static void print_case(const struct pm *p, const struct pm_case *c)
{
	const char *line = c->detail, *said = strbuf_str(&c->said);

	printf("found  %s\n", c->title);
	if (c->cause)
		printf("       %s\n", c->cause);
	printf("       %s; %llu %s\n", c->seen, (unsigned long long)c->states,
	       plural(c->states, "state", "states"));
	if (p->plan.check && *said)
		printf("       it said: %.*s\n", first_line(said), said);
	for (size_t i = 0; *line && i < DETAIL_LINES; i++) {
		size_t len = strcspn(line, "\n");

		printf("       %.*s\n", (int)min(len, (size_t)500), line);
		line += len + (line[len] == '\n');
	}
	if (*line)
		printf("       ... (outage report has it all)\n");
}

/* Findings whose numbers begin after those that were kept early take the place of these. */
static int replace_early(struct pm *p, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && p->early && i < n; i++)
		rc = case_move_number(p->dir, p->early + i, i, err);
	for (uint64_t i = n; !rc && i < p->early; i++)
		rc = case_remove_number(p->dir, i, err);
	return rc;
}

/* Of an error, the others are kept all the same, and so is what was kept early. */
static int save_cases(struct pm *p, const struct pm_cases *cases, struct err *err)
{
	size_t n = min(cases->n, (size_t)KEEP_MAX);

	if (!n)
		return 0;
	p->kept = true;
	int rc = sync_run(p, err);
	for (size_t i = 0; i < n; i++) {
		int saved = pm_case_save(p->dir, p->early + i, &cases->v[i], err);

		rc = rc ? rc : saved;
	}
	return rc ? rc : replace_early(p, n, err);
}

static int keep_cases(struct pm *p, const struct pm_found *found, struct err *err)
{
	struct pm_cases cases = { 0 };

	if (p->plan.dump)
		pm_judge_dumps(&p->run, &found->failures, &cases, &p->summary.failing);
	else
		pm_cluster(&p->run, &found->failures, &cases);
	p->summary.findings = cases.n;
	int rc = save_cases(p, &cases, err);
	for (size_t i = 0; i < cases.n; i++) {
		if (!p->json && i < KEEP_MAX)
			print_case(p, &cases.v[i]);
		if (!p->json && i < KEEP_MAX && !rc)
			printf("       %s/findings/%zu\n", p->dir, i);
		pm_case_release(&cases.v[i]);
	}
	vec_release(&cases);
	return rc;
}

/* More than can be counted is as much as can be. */
static uint64_t saturated(double n)
{
	return n < 18446744073709551615.0 ? (uint64_t)n : UINT64_MAX;
}

static void summarise(struct pm *p, const struct pm_found *f)
{
	struct pm_summary *s = &p->summary;
	const struct pm_counts *c = &p->counts;

	s->stores = c->stores;
	s->flushes = c->flushes;
	s->fences = c->fences;
	s->marks = c->marks;
	s->cpus = c->cpus;
	s->operations = c->stores + c->flushes + c->fences;
	s->crash_states = f->stats.tried;
	s->unique_states = f->stats.unique;
	s->checked = f->checked;
	s->failing = f->failing;
	s->errors = f->errors;
	p->left_out = f->stats.left_out;
	s->left_out = saturated(f->stats.left_out);
	s->known = f->known;
	s->dropped = f->dropped;
	s->copies = pm_run_copies(&p->run);
	s->media_states = f->media;
	p->media_left_out = f->media_left_out;
	s->pruned = saturated(f->stats.pruned);
	s->budget_hit = f->stats.budget_hit || f->stopped;
	s->elapsed_ms = (uint64_t)(elapsed(p) * 1000);
	memcpy(p->error, f->error, sizeof(p->error));
}

static int find_reads(struct pm *p, struct pm_reads **out, struct pm_reads_count *n,
		      struct err *err)
{
	int rc = p->plan.prune ? pm_reads_find(&p->run, &p->tracer, (unsigned)p->jobs,
					       &told_to_stop, out, n, err)
			       : 0;

	p->summary.reads_traced = n->traced;
	p->summary.reads_whole = n->whole;
	return rc;
}

static void add_error(struct pm_found *found, uint64_t n, const char *words)
{
	found->errors += n;
	if (n && !found->error[0])
		snprintf(found->error, sizeof(found->error), "%.500s", words);
}

static void recover_again(struct pm *p, const struct pm_search_opts *search, struct pm_found *found)
{
	struct pm_recovery_opts o = {
		.run = &p->run, .tracer = &p->tracer, .count = p->recoveries, .search = search
	};
	struct pm_search_opts all = *search;
	struct pm_recovered r;

	all.reads = NULL; /* of another trace */
	all.changes = false;
	o.search = &all;
	if (!p->crash_recovery || told_to_stop)
		return;
	struct err why = ERR_INIT;
	/* What was found before is worth telling all the same. */
	if (pm_recoveries(&o, found, &r, &why))
		add_error(found, 1, why.msg);
	p->recovery_ways = r.ways;
	p->summary.recoveries = r.traced;
	p->summary.recoveries_tried = r.different;
	p->summary.recovery_states = r.states;
	p->recovery_left_out = r.left_out;
}

/* A search that checked nothing must not look like one that found nothing. */
static void check_tried(struct pm *p)
{
	p->untried = !p->summary.checked && !p->summary.findings && !p->summary.errors;
	p->summary.errors += p->untried;
}

static int explore(struct pm *p, struct err *err)
{
	struct pm_reads *reads = NULL;
	struct pm_reads_count traced = { 0 };
	int rc = find_reads(p, &reads, &traced, err);

	if (rc)
		return rc;
	struct pm_search_opts o = { .run = &p->run,
				    .changes = p->crash_recovery,
				    .reads = reads,
				    .jobs = (unsigned)p->jobs,
				    .until_ns = p->time_ns ? util_now_ns() + p->time_ns : 0,
				    .stop = &told_to_stop,
				    .progress = on_progress,
				    .failed = on_failed,
				    .ctx = p };
	struct pm_found found;
	rc = pm_search(&o, &found, err);
	if (!rc)
		recover_again(p, &o, &found);

	if (p->terminal)
		fputs("\r\033[K", stderr);
	if (!rc) {
		add_error(&found, traced.lost, traced.error);
		summarise(p, &found);
		rc = keep_cases(p, &found, err);
		check_tried(p);
	}
	pm_found_release(&found);
	pm_reads_free(reads);
	if (!rc)
		rc = case_summary_save(&pm_kind, p->dir, &p->summary, err);
	return rc;
}

static void print_json(const struct pm *p)
{
	const struct pm_summary *s = &p->summary;
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "run", p->dir);
	json_kv_string(&j, "tracer", p->plan.preload ? "preload" : "qemu");
	if (p->tracer.version)
		json_kv_string(&j, "emulator", p->tracer.version);
	json_kv_uint(&j, "operations", s->operations);
	json_kv_uint(&j, "stores", s->stores);
	json_kv_uint(&j, "flushes", s->flushes);
	json_kv_uint(&j, "fences", s->fences);
	json_kv_uint(&j, "marks", s->marks);
	json_kv_uint(&j, "cpus", s->cpus);
	json_kv_uint(&j, "crash_states", s->crash_states);
	json_kv_uint(&j, "unique_states", s->unique_states);
	json_kv_uint(&j, "checked", s->checked);
	json_kv_uint(&j, "failing", s->failing);
	json_kv_uint(&j, "findings", s->findings);
	json_kv_uint(&j, "errors", s->errors);
	json_kv_double(&j, "elapsed_s", elapsed(p));
	json_kv_bool(&j, "budget_hit", s->budget_hit);
	json_kv_uint(&j, "left_out", s->left_out);
	json_kv_uint(&j, "known", s->known);
	json_kv_uint(&j, "dropped", s->dropped);
	json_kv_uint(&j, "copies_not_cut", s->copies);
	json_kv_uint(&j, "granularity", p->plan.granularity);
	json_kv_uint(&j, "max_subset", p->plan.max_subset);
	json_kv_string(&j, "model", p->plan.model ? p->plan.model : model_pm.name);
	json_kv_uint(&j, "media_states", s->media_states);
	json_kv_double(&j, "media_left_out", p->media_left_out);
	json_kv_uint(&j, "pruned", s->pruned);
	json_kv_uint(&j, "recovery_ways", p->recovery_ways);
	json_kv_uint(&j, "recoveries", s->recoveries);
	json_kv_uint(&j, "recoveries_tried", s->recoveries_tried);
	json_kv_uint(&j, "recovery_states", s->recovery_states);
	json_kv_double(&j, "recovery_left_out", p->recovery_left_out);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

/* What was asked for beyond the usual, and what of it was left out. */
static void print_more(const struct pm *p)
{
	const struct pm_summary *s = &p->summary;

	if (p->plan.model || p->plan.granularity != 64 || p->plan.split)
		printf("model: %s%s%s\n",
		       model_find(p->plan.model ? p->plan.model : model_pm.name)->help,
		       p->plan.granularity == 64 ? "" : ", stores to one line in any order",
		       p->plan.split ? ", each store of a copy on its own" : "");
	if (p->plan.media)
		printf("%llu of the states have a bad line; %.15g such were left out "
		       "(--media-max)\n",
		       (unsigned long long)s->media_states, p->media_left_out);
	if (p->plan.prune)
		printf("pruned: %llu crash states differ only in lines that are not read, as seen "
		       "in "
		       "%llu runs (in %llu of them all is read)\n",
		       (unsigned long long)s->pruned, (unsigned long long)s->reads_traced,
		       (unsigned long long)s->reads_whole);
	if (p->crash_recovery)
		printf("recovery changes states in %llu %s; %llu traced, %llu of them different: "
		       "%llu crash states of them checked, up to %.15g left out\n",
		       (unsigned long long)p->recovery_ways,
		       plural(p->recovery_ways, "way", "ways"), (unsigned long long)s->recoveries,
		       (unsigned long long)s->recoveries_tried,
		       (unsigned long long)s->recovery_states, p->recovery_left_out);
}

/* Nothing is left out silently. */
static void print_left_out(const struct pm *p)
{
	const struct pm_summary *s = &p->summary;
	const char *limit = told_to_stop    ? "the signal "
			    : s->budget_hit ? "the budget, or the time, "
					    : "--max-subset ";

	if (s->left_out > 1000000000000000)
		printf("%sleft out more crash states than can be counted\n", limit);
	else if (s->left_out)
		printf("%sleft out up to %llu crash %s\n", limit, (unsigned long long)s->left_out,
		       plural(s->left_out, "state", "states"));
	if (s->known)
		printf("%llu %s not checked, as what %s fails without more (--enough 0 checks "
		       "%s)\n",
		       (unsigned long long)s->known, plural(s->known, "state was", "states were"),
		       plural(s->known, "it loses", "they lose"), plural(s->known, "it", "them"));
	if (s->dropped)
		printf("%llu failing %s not looked at, as thousands of others were\n",
		       (unsigned long long)s->dropped,
		       plural(s->dropped, "state was", "states were"));
	if (s->copies)
		printf("%llu %s not cut at every line; --split does\n",
		       (unsigned long long)s->copies, plural(s->copies, "copy was", "copies were"));
}

static void print_text(const struct pm *p)
{
	const struct pm_summary *s = &p->summary;

	printf("%llu %s, %llu %s, %llu %s; %llu different crash %s of %llu tried; "
	       "%llu checked in %.1f s: %.0f a second\n",
	       (unsigned long long)s->stores, plural(s->stores, "store", "stores"),
	       (unsigned long long)s->flushes, plural(s->flushes, "flush", "flushes"),
	       (unsigned long long)s->fences, plural(s->fences, "fence", "fences"),
	       (unsigned long long)s->unique_states, plural(s->unique_states, "state", "states"),
	       (unsigned long long)s->crash_states, (unsigned long long)s->checked, elapsed(p),
	       (double)s->checked / max(elapsed(p), 0.001));
	print_left_out(p);
	print_more(p);
	if (p->plan.preload)
		printf("traced by calls of libpmem: stores are known when the next call is made, "
		       "flush "
		       "instructions of the program's own are not seen, nor is what a forked "
		       "process "
		       "calls\n");
	if (!s->findings)
		printf(s->checked ? "nothing found\n" : "nothing was tried\n");
	else
		printf("%llu %s; %llu %s; kept in %s\n", (unsigned long long)s->findings,
		       plural(s->findings, "finding", "findings"), (unsigned long long)s->failing,
		       plural(s->failing, "state fails", "states fail"), p->dir);
}

/* ---- all of it ---- */

static int make_run(struct pm *p, struct err *err)
{
	auto_free char *dir = NULL;

	if (p->output && case_is(p->output, "pm"))
		return err_set(err, -EEXIST, "%s holds a run already: give another -o", p->output);
	int rc = case_create(p->output, "pm", pm_kind.made, &dir, err);
	if (rc)
		return rc;
	p->dir = realpath(dir, NULL);
	return p->dir ? 0 : err_set(err, -errno, "cannot use %s: %m", dir);
}

/* Of a run that was none, nothing is worth keeping. */
static void discard(const struct pm *p)
{
	auto_fd dir = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	unlinkat(dir, CASE_RUN, 0);
	for (const char *const *name = pm_kind.made; *name; name++)
		unlinkat(dir, *name, 0);
	unlinkat(dir, "findings", AT_REMOVEDIR); /* if it is empty */
	rmdir(p->dir);
}

static int run_all(struct pm *p, struct err *err)
{
	int rc = tracer_open(&p->tracer, p->qemu, err);

	if (!rc)
		rc = make_run(p, err);
	if (rc)
		return rc;
	rc = record(p, err);
	if (!rc)
		rc = verify_end(p, err);
	if (!rc)
		rc = explore(p, err);
	if (rc && !p->kept)
		discard(p);
	return rc;
}

static int run_pm(struct pm *p)
{
	struct err err = ERR_INIT;
	struct signals signals;

	cli_ready_to_mark(&p->unmarked);
	signals_catch(&signals, on_signal);
	int rc = run_all(p, &err);
	signals_restore(&signals);
	if (p->made) /* it was not there before */
		unlink(p->plan.file);
	if (rc && p->kept)
		return cli_failf("%s; what was found until then is in %s", err.msg, p->dir);
	if (rc)
		return cli_fail(&err);
	if (p->json)
		print_json(p);
	else
		print_text(p);
	cli_tell_unmarked(&p->unmarked);
	if (p->untried)
		return cli_failf("%s", cli_why_untried(told_to_stop, p->time_ns));
	if (told_to_stop)
		return cli_failf("stopped by a signal; what was found is in %s", p->dir);
	if (p->summary.errors)
		return cli_failf("%llu crash states could not be checked: %s",
				 (unsigned long long)p->summary.errors, p->error);
	return p->summary.findings ? EXIT_FINDINGS : EXIT_OK;
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

#define AT(member) OPT_AT(struct pm, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "PROGRAM", .hint = HINT_FILE,
	  .help = "an ordinary x86-64 program, and its arguments" },
	{ OPT_SECTION, .help = "The program" },
	{ OPT_CALL, "file", 0, "POOL", AT(plan.file), .call = parse_file, .hint = HINT_FILE,
	  .help = "the file; if it is not there, PROGRAM must make it" },
	{ OPT_SIZE, "size", 0, "BYTES", AT(size), .least = 1,
	  .help = "make it, of so many zero bytes, if it is not there" },
	{ OPT_COPY, "check", 0, "CMD", AT(plan.check), .hint = HINT_FILE,
	  .help = "must succeed on every state; $1 and OUTAGE_FILE name the file, OUTAGE_MARKS a "
		  "file with the marks that were passed" },
	{ OPT_COPY, "dump", 0, "CMD", AT(plan.dump), .hint = HINT_FILE,
	  .help = "prints what is there: each operation that the program marks must be seen whole "
		  "or not at all, and stay once it has returned" },
	{ OPT_COPY, "recover", 0, "CMD", AT(plan.recover), .hint = HINT_FILE,
	  .help = "is run on every state before that; else what looks also recovers" },
	{ OPT_SET, "promise", 0, "WHAT,...", AT(plan.promises), .words = "sync atomic",
	  .rare = true, .help = "with --dump, of each operation: sync, atomic, both, or none",
	  .otherwise = "sync,atomic" },
	{ OPT_SECTION, .help = "Which crashes" },
	OPTION_CRASH(
		"reorder recovery",
		"reorder: stores in flight are lost while PROGRAM runs; recovery: also while a "
		"crash is recovered from",
		AT(crash), .otherwise = "reorder"),
	{ OPT_COUNT, "recoveries", 0, "N", AT(recoveries), .least = 1, .rare = true,
	  .help = "how many of these are traced", .otherwise = "16" },
	OPTION_MODEL(OPT_COPY, list_pm_models, AT(plan.model)),
	OPTION_EADR(OPT_CALL, AT(plan.model), .call = take_eadr),
	OPTION_GRANULARITY(AT(plan.granularity)),
	OPTION_SPLIT(AT(plan.split)),
	OPTION_MEDIA(AT(plan.media)),
	OPTION_MEDIA_MAX("64", AT(plan.media_max), .least = 1),
	OPTION_PRUNE("none, or reads: only lines that are read are varied", AT(plan.prune),
		     .otherwise = "none"),
	OPTION_MAX_SUBSET("stores lost, or surviving, at once", AT(plan.max_subset),
			  .otherwise = "2"),
	OPTION_BUDGET("states that are checked; 0: no limit", AT(plan.budget),
		      .otherwise = "20000"),
	{ OPT_COUNT, "enough", 0, "N", AT(plan.enough), .rare = true, .otherwise = "32",
	  .help = "failures for one reason at one crash point, after which only some of its "
		  "states are checked; 0: check all" },
	{ OPT_SECTION, .help = "The run" },
	OPTION_TIME(AT(time_ns)),
	OPTION_TIMEOUT("for the run and for each check", AT(plan.timeout_ms), .unit = 1000000,
		       .least = 1, .otherwise = "60s"),
	OPTION_JOBS("checks at the same time; default: one for each processor", 256, AT(jobs)),
	{ OPT_CHOICE, "tracer", 0, "WHAT", AT(tracer.preload), .words = "qemu preload",
	  .otherwise = "qemu", .rare = true,
	  .help = "qemu: an emulator sees every instruction; preload: the program runs as it is, "
		  "and calls of libpmem are seen" },
	{ OPT_FLAG, "stacks", 0, NULL, AT(tracer.stacks),
	  .help = "with qemu: also who called the function that a store is in" },
	{ OPT_SIZE, "trace-limit", 0, "BYTES", AT(tracer.limit), .least = 65536, .rare = true,
	  .help = "of the trace; default: 1G" },
	{ OPT_TEXT, "qemu", 0, "PROGRAM", AT(qemu), .hint = HINT_FILE, .rare = true,
	  .help = "the emulator; default: qemu-x86_64" },
	OPTION_OUTPUT(AT(output)),
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

/* What does not go together is told before anything is run. */
static int check_options(const struct pm *p)
{
	const char *look = p->plan.check ? p->plan.check : p->plan.dump;
	const char *recover = p->plan.recover ? p->plan.recover : look;
	struct err err = ERR_INIT;
	auto_words words = { 0 }, other = { 0 };

	if (p->plan.media && p->plan.dump)
		return cli_usage(&cmd_pm, "--media goes with --check, which says what is to be "
					  "survived, not with --dump");
	if (p->tracer.stacks && p->tracer.preload)
		return cli_usage(&cmd_pm,
				 "--stacks wants an emulator, which sees calls and returns: "
				 "leave out --tracer preload");
	if (p->plan.prune && p->tracer.preload)
		return cli_usage(&cmd_pm,
				 "--prune reads wants an emulator, which alone sees what is "
				 "read: leave out --tracer preload");
	if ((p->plan.prune || p->crash_recovery) && !p->tracer.preload &&
	    command_plain(recover, p->plan.file, &words, &err))
		return cli_fail(&err);
	if (p->plan.prune && command_plain(look, p->plan.file, &other, &err))
		return cli_fail(&err);
	return EXIT_OK;
}

static void init(void *given)
{
	struct pm *p = given;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	p->tracer = (struct tracer)TRACER_INIT;
	p->jobs = cpus > 0 ? (uint64_t)cpus : 1;
	p->terminal = isatty(2);
	p->start_ns = util_now_ns();
}

static void release(void *given)
{
	struct pm *p = given;

	if (p->loaded)
		pm_run_release(&p->run);
	pm_reasons_release(&p->told);
	tracer_close(&p->tracer);
	pm_plan_release(&p->plan);
	free(p->dir);
}

static int run(void *given, struct args *args)
{
	struct pm *p = given;

	p->plan.preload = p->tracer.preload;
	p->crash_recovery = p->crash & CRASH_RECOVERY;
	if (!p->plan.file)
		return cli_usage(&cmd_pm, "--file is missing: which file is persistent memory?");
	if (!p->plan.check == !p->plan.dump)
		return cli_usage(&cmd_pm, "give one of --check and --dump: what is a good state?");
	if (!args->n)
		return cli_usage(&cmd_pm, "give a program to run");
	int rc = check_options(p);
	if (rc)
		return rc;
	p->argv = (const char *const *)args->v;
	p->plan.program = quote_all(args->v);
	p->plan.dir = realpath(".", NULL);
	if (!p->plan.dir)
		return cli_failf("cannot tell where we are: %s", strerror(errno));
	return run_pm(p);
}

const struct command cmd_pm = {
	.name = "pm",
	.summary = "every crash of a program that uses persistent memory is tried",
	.usage = "usage: outage pm --file POOL (--check | --dump) CMD [OPTIONS] -- PROGRAM "
		 "[ARGUMENTS]\n"
		 "\n"
		 "Runs PROGRAM once in an emulator that sees every store, flush and fence to the "
		 "file\n"
		 "POOL, which the program maps as persistent memory. Then every content that the\n"
		 "memory could have had after a power cut, by the rules of x86 processors, is put "
		 "in\n"
		 "the file's place, and checked. POOL itself is not changed.\n",
	.notes = EXIT_STATUS_NOTES
	"example: outage pm --file pool --size 1M --check ./verify -- ./writer pool\n",
	.options = options,
	.order = OPT_BEFORE, /* the program's own options are its own */
	.size = sizeof(struct pm),
	.init = init,
	.release = release,
	.run = run,
};
