/* SPDX-License-Identifier: MIT */
/* cmd_app.c - outage app: every crash of an application's run. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app_record.h"
#include "app/app_recovery.h"
#include "app/app_run.h"
#include "app/app_words.h"
#include "base/below.h"
#include "base/io.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "run/store.h"

enum {
	END_CHECKS = 3,
	CRASH_REORDER = 1 << 0,
	CRASH_RECOVERY = 1 << 1, /* of the words of --crash */
};

/* A finding that was told. */
struct told_finding {
	uint64_t states;
	char *cause; /* NULL: not known */
	bool nested;
};

struct app {
	struct app_plan plan;
	struct app_run run;
	const char *output;
	uint64_t time_ns, limit, jobs, recoveries;
	unsigned crash;
	bool json, terminal;
	struct posix_log log;
	/* The searched run, or a restart of it. */
	struct app_run *at;
	const struct posix_log *at_log;
	struct vec_of(struct told_finding) told; /* by the number of the finding */
	struct vec_of(uint64_t) numbers;	 /* of the search's findings */
	struct app_changed changed;
	struct app_summary summary;
	bool by_signal; /* a signal ended the search */
	bool broken;	/* or the search could not go on */
	bool made;	/* the run's directory is ours, and not one that was there */
	size_t synced;	/* files that a finding needs are on disk: 1 + restarts; 0: none */
	uint64_t start_ns, explored_ns, shown_ns;
	double checked_s; /* until all states of the run were checked */
	struct launcher *launcher;
	struct err err;	     /* of a finding that could not be kept */
	struct err unmarked; /* why nothing gets this user's mark */
};

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static void clear_line(const struct app *a)
{
	if (a->terminal)
		fputs("\r\033[K", stderr);
}

static double elapsed(const struct app *a)
{
	return (double)(util_now_ns() - a->start_ns) / 1e9;
}

/* ---- the end, without any crash ---- */

static void take_lines(struct words *out, const struct strbuf *text)
{
	auto_free char *copy = xstrdup(strbuf_str(text));
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line || rest)
			vec_push(out, xstrdup(line));
}

static int end_fails(const struct app *a, const struct verdict *v, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;

	if (a->plan.query && v->harm == APP_ROLLED_BACK)
		return err_set(err, -EINVAL,
			       "%s, and nothing crashed: a line that was acknowledged must stay "
			       "visible; if the run changes or removes what it acknowledged, use "
			       "--check",
			       v->seen);
	strbuf_add_flat(&said, strbuf_str(&v->said));
	return err_set(err, -EINVAL,
		       "the %s fails on the directory as the run left it, without any crash: "
		       "mend that first (%.100s: %.300s)",
		       app_plan_asks(&a->plan), v->seen, strbuf_str(&said));
}

static int end_differs(const struct app *a, struct err *err)
{
	return err_set(err, -EINVAL,
		       "the %s does not always say the same of the directory as the run left it, "
		       "without any crash: it must depend on nothing else",
		       app_plan_asks(&a->plan));
}

static struct app_search_opts search_of(struct app *a, struct app_run *run)
{
	struct app_search_opts o = app_run_search(run);

	o.launcher = a->launcher;
	o.stop = &told_to_stop;
	return o;
}

/* The query's lines before the run may be there after any crash. */
static int show_before(struct app *a, struct strbuf *shown, struct err *err)
{
	struct app_search_opts o = search_of(a, &a->run);
	struct verdict v = { 0 };
	int rc = search_one(&o, "0.0", &v, err);

	/* If it fails there, that is a finding like any other. */
	if (!rc && !v.fails)
		strbuf_add(shown, strbuf_str(&v.said), v.said.len);
	verdict_release(&v);
	return rc;
}

/* Checks the directory as the run left it, several times. */
static int verify_end(struct app *a, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", a->run.trace.events.n);
	auto_strbuf first = STRBUF_INIT;
	struct app_search_opts o = search_of(a, &a->run);
	struct verdict v = { 0 };
	int rc = 0;

	for (int i = 0; !rc && i < END_CHECKS; i++) {
		rc = search_one(&o, id, &v, err);
		if (rc)
			break;
		if (!i && v.fails)
			rc = end_fails(a, &v, err);
		else if (!i)
			strbuf_add(&first, strbuf_str(&v.said), v.said.len);
		else if (v.fails ||
			 (a->plan.query && !streq(strbuf_str(&first), strbuf_str(&v.said))))
			rc = end_differs(a, err);
	}
	verdict_release(&v);
	if (rc || !a->plan.query)
		return rc;
	if (first.len && first.buf[first.len - 1] != '\n')
		strbuf_addch(&first, '\n');
	rc = show_before(a, &first, err);
	if (rc)
		return rc;
	take_lines(&a->run.shown, &first);
	return io_write_file(a->run.dir, "shown", strbuf_str(&first), first.len, 0, err);
}

/* ---- while it runs ---- */

/* Which restart of the run it is: its directory has that name. */
static const char *nested_number(const struct app *a)
{
	return strrchr(a->at->dir, '/') + 1;
}

/* The state after the first crash is good; the explanation is about the second. */
static void tell_first_crash(const struct app *a, struct app_case *c)
{
	auto_free char *title = steal(c->title), *state = steal(c->state);
	uint64_t point = a->at->plan.outer_point;
	auto_strbuf where = STRBUF_INIT;

	if (point)
		app_words_event(&a->run.trace, &a->log, point - 1, &where);
	c->title = xasprintf("the power failed again while it came up after a crash %s%s: %s",
			     point ? "after " : "before the first operation", strbuf_str(&where),
			     title);
	c->state = xasprintf("r%s:%s", nested_number(a), state);
}

static void make_case(const struct app *a, const struct search_found *f, struct app_case *c)
{
	*c = (struct app_case){ .state = xstrdup(f->why.id),
				.point = f->why.point,
				.acks = f->why.acked,
				.states = f->states,
				.shown = f->shown,
				.asked = f->asked,
				.harm = f->why.harm,
				.cause = f->why.cause ? xstrdup(f->why.cause) : NULL,
				.seen = xstrdup(f->verdict.seen ? f->verdict.seen : "") };
	app_words_case(&a->at->history, a->at_log, &a->at->stacks, &a->plan, &f->why, c);
	if (a->at != &a->run)
		tell_first_crash(a, c);
	strbuf_add(&c->said, strbuf_str(&f->verdict.said), f->verdict.said.len);
}

static void save_case(struct app *a, uint64_t n, const struct app_case *c)
{
	/* With the first one, what all of them need; and again what was recorded since. */
	int rc = a->synced > a->run.nested.n ? 0 : case_run_sync(&app_kind, a->run.dir, &a->err);

	a->synced = 1 + a->run.nested.n;
	if (rc || app_case_save(a->run.dir, n, c, &a->err))
		a->summary.errors++;
}

/* The case has the number of the next finding, which is this one or takes its place. */
static void on_failed(void *ctx, const struct search_found *f)
{
	struct app *a = ctx;
	struct app_case c;

	make_case(a, f, &c);
	save_case(a, a->summary.findings, &c);
	app_case_release(&c);
}

static void on_dropped(void *ctx)
{
	struct app *a = ctx;

	if (case_remove_number(a->run.dir, a->summary.findings, &a->err))
		a->summary.errors++;
}

static void print_case(const struct app *a, const struct app_case *c, uint64_t n)
{
	clear_line(a);
	printf("found  %s: %s\n       %s\n", app_harm_name(c->harm), app_harm_words(c->harm),
	       c->title);
	if (c->fix)
		printf("       mend it with: %s\n", c->fix);
	printf("       %s/findings/%llu\n", a->run.dir, llu(n));
	if (c->shown < c->asked)
		printf("       shown %llu of %llu times: the %s depends on more than the "
		       "directory\n",
		       llu(c->shown), llu(c->asked), app_plan_asks(&a->plan));
	fflush(stdout);
}

/* Restarts are much alike: the finding of an earlier one with the same cause, or UINT64_MAX. */
static uint64_t find_told(const struct app *a, const char *cause)
{
	for (size_t i = 0; a->at != &a->run && cause && i < a->told.n; i++)
		if (a->told.v[i].nested && a->told.v[i].cause && streq(a->told.v[i].cause, cause))
			return i;
	return UINT64_MAX;
}

static void on_found(void *ctx, const struct search_found *f)
{
	struct app *a = ctx;
	const char *cause = f->why.kind == EXPLAIN_NOT ? NULL : f->why.cause;
	uint64_t n = find_told(a, cause);
	struct app_case c;

	if (n != UINT64_MAX) {
		vec_push(&a->numbers, n);
		on_dropped(a);
		return;
	}
	n = a->summary.findings++;
	vec_push(&a->numbers, n);
	vec_push(&a->told,
		 (struct told_finding){ 0, cause ? xstrdup(cause) : NULL, a->at != &a->run });
	make_case(a, f, &c);
	save_case(a, n, &c);
	if (!a->json)
		print_case(a, &c, n);
	app_case_release(&c);
}

static void on_progress(void *ctx, const struct search_totals *t, uint64_t findings)
{
	struct app *a = ctx;
	uint64_t now = util_now_ns();
	double rate = (double)t->checked / max(elapsed(a), 0.001);

	if (!a->terminal || now - a->shown_ns < 200000000)
		return;
	a->shown_ns = now;
	fprintf(stderr, "\r\033[K%llu states checked, %llu fail, %llu findings, %.0f/s",
		llu(t->checked), llu(t->failing), llu(findings), rate);
	if (a->time_ns)
		fprintf(stderr, ", at most %.0f s left",
			max((double)a->time_ns / 1e9 - elapsed(a), 0.0));
	else if (a->plan.budget && rate > 0)
		fprintf(stderr, ", at most %.0f s left",
			(double)(a->plan.budget - min(a->plan.budget, t->checked)) / rate);
}

/* ---- at the end ---- */

/* Findings were kept when they were found; only now it is known how many states each has. */
static void keep_counts(struct app *a, const struct search_result *r)
{
	for (size_t i = 0; i < r->found.n; i++) {
		uint64_t n = a->numbers.v[i];
		auto_free char *dir =
			xasprintf("%s/findings/%llu", a->run.dir, (unsigned long long)n);
		struct app_case c = { 0 };

		a->told.v[n].states += r->found.v[i].states;
		if (app_case_load(dir, &c, &a->err))
			continue;
		bool same = c.states == a->told.v[n].states;

		c.states = a->told.v[n].states;
		if (!same)
			save_case(a, n, &c);
		app_case_release(&c);
	}
}

static void summarise(struct app *a, const struct search_result *r)
{
	const struct search_totals *t = &r->totals;
	struct app_summary *s = &a->summary;

	s->acks = a->run.acks.n;
	s->crash_states = t->states.tried;
	s->unique_states = t->states.unique;
	s->checked = t->checked;
	s->failing = t->failing;
	s->patterns = t->states.operations;
	s->covered = t->covered;
	s->errors += t->errors;
	s->left_out = t->states.left_out + (double)t->states.waiting;
	s->budget_hit = t->states.budget_hit || t->stopped;
	s->unexplained = t->unexplained;
	s->elapsed_s = a->checked_s = elapsed(a);
	if (t->unexplained > t->unsteady)
		vec_push(&s->notes,
			 xasprintf("the cause of %llu %s is not known, as the explanation was cut "
				   "short: a longer run tells it",
				   COUNT_S(t->unexplained - t->unsteady, "finding")));
	if (t->unsteady)
		vec_push(&s->notes,
			 xasprintf("the cause of %llu %s is not known, as the %s does not always "
				   "say the same of one state: it depends on more than the "
				   "directory, or what it starts does",
				   COUNT_S(t->unsteady, "finding"), app_plan_asks(&a->plan)));
	if (a->run.history.maps)
		vec_push(&s->notes, xstrdup("files were written through mappings: what was stored "
					    "there is seen only when it is written back"));
	for (size_t i = 0; i < a->run.stacks.missing.n; i++)
		vec_push(&s->notes, xasprintf("%llu %s no call stack: %s",
					      COUNT(a->run.stacks.missing.v[i].count,
						    "operation has", "operations have"),
					      a->run.stacks.missing.v[i].reason));
	if (a->run.history.skipped)
		vec_push(&s->notes, xasprintf("%llu operations on things that the record does not "
					      "know were passed over",
					      llu(a->run.history.skipped)));
	if (t->left)
		vec_push(&s->notes, xasprintf("%llu checks left processes behind, which were ended",
					      llu(t->left)));
	if (t->unlike)
		vec_push(&s->notes,
			 xasprintf("%llu files could not be made as they were: owners, devices or "
				   "attributes; that needs root",
				   llu(t->unlike)));
	if (t->faulty)
		vec_push(&s->notes,
			 xasprintf("%llu %s failed at first, and not when checked again: the %s "
				   "depends on more than the directory",
				   COUNT_S(t->faulty, "state"), app_plan_asks(&a->plan)));
	if (t->faulty) {
		s->errors++;
		end_differs(a, &a->err);
	}
}

static void print_json(const struct app *a)
{
	const struct app_summary *s = &a->summary;
	struct json j;

	cli_json_begin(&j);
	json_kvs(&j, KV("run", a->run.dir), KV("profile", a->plan.profile),
		 KV("operations", s->operations), KV("acknowledgements", s->acks),
		 KV("crash_states", s->crash_states), KV("unique_states", s->unique_states),
		 KV("checked", s->checked), KV("patterns", s->patterns),
		 KV("patterns_covered", s->covered), KV("failing", s->failing),
		 KV("findings", s->findings), KV("unexplained", s->unexplained),
		 KV("errors", s->errors), KV("elapsed_s", s->elapsed_s),
		 KV("budget_hit", s->budget_hit), KV("left_out", s->left_out),
		 KV("recovery_ways", s->recovery_ways), KV("recoveries", s->recoveries),
		 KV("recoveries_tried", s->recoveries_tried),
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

	if (a->summary.left_out <= 0)
		return;
	app_count_words(a->summary.left_out, &many);
	printf("not tried: %s%s\n", strbuf_str(&many),
	       a->by_signal || a->broken ? "" : "; --budget, --time or --max-subset is the limit");
}

static void print_text(const struct app *a)
{
	const struct app_summary *s = &a->summary;

	for (size_t i = 0; i < s->notes.n; i++)
		printf("note: %s\n", s->notes.v[i]);
	printf("%llu %s, %llu acknowledged %s, %llu different crash %s of %llu tried; %llu checked "
	       "in %.1f s: %.0f a second\n",
	       COUNT_S(s->operations, "operation"), COUNT_S(s->acks, "line"),
	       COUNT_S(s->unique_states, "state"), llu(s->crash_states), llu(s->checked),
	       a->checked_s, (double)s->checked / max(a->checked_s, 0.001));
	printf("%llu of %llu %s of operations covered\n", llu(s->covered),
	       COUNT_S(s->patterns, "pattern"));
	print_left_out(a);
	if (a->crash & CRASH_RECOVERY)
		printf("recovery changes states in %llu %s; %llu traced, %llu of them different: "
		       "%llu crash states of them checked, up to %.15g left out\n",
		       COUNT_S(s->recovery_ways, "way"), llu(s->recoveries),
		       llu(s->recoveries_tried), llu(s->recovery_states), s->recovery_left_out);
	if (!s->findings && !s->checked)
		printf("nothing was tried\n");
	else if (!s->findings)
		printf("nothing found with profile %s%s\n", a->plan.profile,
		       streq(a->plan.profile, profile_at(0)->name)
			       ? "; -p minimal tries what other file systems may lose"
			       : "");
	else
		printf("%llu %s with profile %s; %llu %s; kept in %s\n",
		       COUNT_S(s->findings, "finding"), a->plan.profile,
		       COUNT(s->failing, "state fails", "states fail"), a->run.dir);
}

static uint64_t count_operations(const struct trace *t)
{
	struct posix_event e;
	uint64_t n = 0;

	for (size_t i = 0; i < t->events.n; i++)
		n += t->events.v[i].kind == EV_POSIX && !posix_decode(&t->events.v[i], &e, NULL) &&
		     (posix_op_changes(e.op) || posix_op_persists(e.op));
	return n;
}

/* A search that checked nothing must not look like one that found nothing. */
static void check_tried(struct app *a)
{
	const struct app_summary *s = &a->summary;

	if (s->checked || s->findings || s->errors)
		return;
	a->summary.errors++;
	err_set(&a->err, -ENODATA, "%s", cli_why_untried(a->by_signal, a->time_ns));
}

/* Of the run, or of a restart; with what is left of the limits. */
static struct app_search_opts search_all_of(struct app *a, struct app_run *run)
{
	struct app_search_opts o = search_of(a, run);
	uint64_t spent = util_now_ns() - a->explored_ns;

	o.jobs = (unsigned)a->jobs;
	if (a->time_ns)
		o.time_ns = max(a->time_ns - min(a->time_ns, spent), (uint64_t)1);
	if (a->limit)
		o.limit = a->limit - min(a->limit, a->summary.findings);
	o.failed = on_failed;
	o.found = on_found;
	o.dropped = on_dropped;
	o.progress = on_progress;
	o.ctx = a;
	vec_clear(&a->numbers);
	return o;
}

/* ---- the power fails again ---- */

static void on_changed(void *ctx, const struct app_state *s, const struct app_change *change)
{
	struct app *a = ctx;

	app_changed_add(&a->changed, s, change);
}

static bool is_over(void *ctx)
{
	const struct app *a = ctx;

	return told_to_stop || a->by_signal || (a->limit && a->summary.findings >= a->limit) ||
	       (a->time_ns && util_now_ns() - a->explored_ns > a->time_ns);
}

static void add_totals(struct app *a, const struct search_totals *t)
{
	struct app_summary *s = &a->summary;

	s->recovery_states += t->checked;
	s->recovery_left_out += t->states.left_out + (double)t->states.waiting;
	s->failing += t->failing;
	s->errors += t->errors;
	s->unexplained += t->unexplained;
	s->budget_hit |= t->states.budget_hit || t->stopped;
	a->by_signal |= t->by_signal;
	if (t->errors)
		err_set(&a->err, -EIO, "%llu %s could not be checked: %s",
			(unsigned long long)t->errors, plural(t->errors, "state", "states"),
			t->error);
	if (t->faulty) {
		s->errors++;
		end_differs(a, &a->err);
	}
}

/* A check that fails because one was there before it says nothing about a crash. */
static int nested_end(struct app *a, struct app_run *nested, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", nested->trace.events.n);
	struct app_search_opts o = search_of(a, nested);
	auto_strbuf said = STRBUF_INIT;
	struct verdict v = { 0 };
	int rc = search_one(&o, id, &v, err);

	strbuf_add_flat(&said, strbuf_str(&v.said));
	if (!rc && v.fails)
		rc = err_set(err, -EINVAL,
			     "the %s fails where the application had come up once after a crash, "
			     "without a second one: it must not change what is good%s "
			     "(%.100s: %.300s)",
			     app_plan_asks(&a->plan), a->plan.restart ? "" : ", or give --restart",
			     v.seen, strbuf_str(&said));
	verdict_release(&v);
	return rc;
}

static int search_restart(void *ctx, struct app_run *nested, struct err *err)
{
	struct app *a = ctx;
	struct search_result r = { 0 };
	auto_posix_log log;
	struct err why = ERR_INIT;

	posix_log_init(&log);
	int rc = app_log(&nested->trace, &log, err);
	if (rc)
		return rc;
	if (nested_end(a, nested, &why)) {
		a->by_signal |= told_to_stop;
		a->summary.errors += !told_to_stop;
		if (!told_to_stop && !a->err.code)
			a->err = why;
		return 0;
	}
	a->at = nested;
	a->at_log = &log;
	struct app_search_opts o = search_all_of(a, nested);
	rc = search(&o, &r, err);
	keep_counts(a, &r);
	add_totals(a, &r.totals);
	search_result_release(&r);
	a->at = &a->run;
	a->at_log = &a->log;
	return rc;
}

static void recover_again(struct app *a)
{
	struct app_recovery_opts o = { .run = &a->run,
				       .count = a->recoveries,
				       .budget = a->plan.budget,
				       .stop = is_over,
				       .search = search_restart,
				       .ctx = a };
	struct app_summary *s = &a->summary;
	struct app_recovered r;
	struct err err = ERR_INIT;

	if (!(a->crash & CRASH_RECOVERY))
		return;
	/* Earlier findings are worth telling all the same. */
	if (app_recoveries(&o, &a->changed, &r, &err)) {
		s->errors++;
		err_set(&a->err, err.code, "%s", err.msg);
	}
	s->recovery_ways = r.ways;
	s->recoveries = r.recorded;
	s->recoveries_tried = r.different;
	a->by_signal |= r.by_signal || told_to_stop;
	s->budget_hit |= r.recorded < min(r.ways, a->recoveries);
	if (r.failed) {
		s->errors += r.failed;
		err_set(&a->err, r.why.code, "%llu of %llu restarts could not be recorded: %s",
			(unsigned long long)r.failed, (unsigned long long)r.recorded, r.why.msg);
	}
	if (r.left)
		vec_push(&s->notes,
			 xasprintf("%s of no use could not be removed: %s",
				   plural(r.left, "a record of a restart", "records of restarts"),
				   r.why_left.msg));
	s->elapsed_s = elapsed(a);
}

static int explore(struct app *a, struct err *err)
{
	struct search_result r = { 0 };

	a->explored_ns = util_now_ns();
	struct app_search_opts o = search_all_of(a, &a->run);
	o.changed = a->crash & CRASH_RECOVERY ? on_changed : NULL;
	int rc = search(&o, &r, err);

	clear_line(a);
	/* Earlier findings are told, as part of a run that is not whole. */
	a->broken = rc && (r.totals.checked || r.found.n);
	if (a->broken) {
		a->summary.errors++;
		vec_push(&a->summary.notes, xasprintf("the run is not whole: %s", err->msg));
		err_set(&a->err, rc, "%s; what was found before is in %s", err->msg, a->run.dir);
		err_clear(err);
		rc = 0;
	}
	if (!rc) {
		keep_counts(a, &r);
		summarise(a, &r);
		a->by_signal = r.totals.by_signal;
		check_tried(a);
		if (!a->broken)
			recover_again(a);
		rc = case_summary_save(&app_kind, a->run.dir, &a->summary, err);
	}
	if (!rc && r.totals.errors)
		fprintf(stderr, "outage: %llu %s could not be checked: %s\n",
			COUNT_S(r.totals.errors, "state"), r.totals.error);
	search_result_release(&r);
	return rc;
}

static int record(struct app *a, struct err *err)
{
	struct app_record_opts o = { .dir = a->plan.dir,
				     .run = a->run.dir,
				     .plan = &a->plan,
				     .timeout_ms = a->plan.timeout_ms,
				     .trace_max = (uint64_t)2 << 30 };
	/* Known from the start, so that one that was killed can be told from nothing. */
	int rc = record_save(app_kind.plan, a->run.dir, CASE_RUN, &a->plan, err);

	if (!rc)
		rc = app_record(&o, &a->plan.root_ino, &a->summary.notes, err);
	if (!rc && a->plan.ack_file)
		rc = app_ack_file(a->run.dir, a->plan.ack_file, err);
	if (!rc)
		rc = record_save(app_kind.plan, a->run.dir, CASE_RUN, &a->plan, err);
	if (!rc)
		rc = app_plan_load(a->run.dir, &a->run.plan, err);
	if (!rc)
		rc = app_run_open(&a->run, err);
	if (!rc)
		rc = app_log(&a->run.trace, &a->log, err);
	if (rc)
		return rc;
	a->summary.operations = count_operations(&a->run.trace);
	if (!a->summary.operations)
		return err_set(err, -EINVAL,
			       "the run did nothing below %s: does it use that directory?",
			       a->plan.dir);
	return 0;
}

static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Where a path's last name is; slashes at its end do not count. */
static char *directory_of(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	return n ? xmemdupz(path, n) : xstrdup(".");
}

/* Asked before anything is made: the directory must not get as much as a name by us. */
static int check_output(const struct app *a, struct err *err)
{
	auto_free char *above = a->output ? directory_of(a->output) : xstrdup(".");
	auto_free char *parent = realpath(above, NULL);

	if (!parent)
		return err_set(err, -errno, "cannot make %s: %m", a->output ? a->output : "a run");
	if (is_inside(parent, a->plan.dir))
		return err_set(err, -EINVAL,
			       "the results would be inside of the application's directory, %s; "
			       "give another -o",
			       a->plan.dir);
	if (a->output && case_is(a->output, "app"))
		return err_set(err, -EEXIST,
			       case_has_ended(a->output)
				       ? "%s holds a run already: give another -o"
				       : "%s holds a run that was not finished: remove it, or give "
					 "another -o",
			       a->output);
	return 0;
}

static int make_run(struct app *a, struct err *err)
{
	auto_free char *dir = NULL;
	bool was_there = a->output && access(a->output, F_OK) == 0;
	int rc = check_output(a, err);

	if (!rc)
		rc = case_create(a->output, "app", app_kind.made, &dir, err);
	if (rc)
		return rc;
	a->made = !was_there;
	a->run.dir = realpath(dir, NULL);
	return a->run.dir ? 0 : err_set(err, -errno, "cannot use %s: %m", dir);
}

/* Of a run that was none, nothing is worth keeping. */
static void discard(const struct app *a)
{
	auto_free char *run = xasprintf("%s/" CASE_RUN, a->run.dir);
	struct err ignored = ERR_INIT;

	unlink(run);
	for (const char *const *name = app_kind.made; *name; name++)
		if (below_remove(a->run.dir, *name, &ignored))
			log_debug("%s", ignored.msg);
	auto_free char *findings = xasprintf("%s/findings", a->run.dir);
	rmdir(findings);
	rmdir(a->run.dir); /* if it was there before, there may be more in it */
}

/* A directory that cannot be read as a whole is no reason not to go on. */
static void mark(struct app *a)
{
	/*
	 * Kept files have the owners and modes that they have in the application's directory. No
	 * other user shall reach them from now on, neither to read nor to change them. (While they
	 * were recorded, other users' processes may have had to.)
	 */
	if (a->made && chmod(a->run.dir, 0700))
		log_debug("cannot close %s: %m", a->run.dir);
	if (case_run_mark(&app_kind, a->run.dir, &a->unmarked))
		log_debug("%s", a->unmarked.msg);
}

static int run_app(struct app *a)
{
	struct signals signals;
	struct err err = ERR_INIT;
	int rc = make_run(a, &err);

	if (rc)
		return cli_fail(&err);
	cli_ready_to_mark(&a->unmarked);
	/* Now, while there is little to copy. */
	rc = launcher_start(&a->launcher, &err);
	if (!rc)
		rc = record(a, &err);
	signals_catch(&signals, on_signal);
	if (!rc)
		rc = verify_end(a, &err);
	if (!rc)
		mark(a);
	if (rc)
		discard(a);
	else
		rc = explore(a, &err);
	signals_restore(&signals);
	launcher_stop(steal(a->launcher));
	if (rc && a->summary.findings)
		return cli_failf("%s; what was found until then is in %s", err.msg, a->run.dir);
	if (rc)
		return cli_fail(&err);
	if (a->json)
		print_json(a);
	else
		print_text(a);
	cli_tell_unmarked(&a->unmarked);
	int status = a->summary.errors	   ? EXIT_FAILED
		     : a->summary.findings ? EXIT_FINDINGS
					   : EXIT_OK;
	if (a->err.code)
		status = cli_fail(&a->err);
	if (a->by_signal && a->summary.checked)
		status = cli_failf("stopped by a signal after %llu of %llu states that were known "
				   "by then; what was found is in %s",
				   llu(a->summary.checked), llu(a->summary.unique_states),
				   a->run.dir);
	return status;
}

/* ---- the command line ---- */

static int parse_unit(void *at, const char *arg, struct err *err)
{
	(void)err;
	*(uint64_t *)at = streq(arg, "page") ? 4096 : 512;
	return 0;
}

#define AT(member) OPT_AT(struct app, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "DIR", .hint = HINT_DIR,
	  .help = "the directory that the application keeps its data in; it is never changed" },
	{ OPT_SECTION, .help = "The application" },
	{ OPT_COPY, "run", 0, "CMD", AT(plan.run), .hint = HINT_FILE,
	  .help = "what is done; a line that it prints is an acknowledgement" },
	{ OPT_COPY, "check", 0, "CMD", AT(plan.check), .hint = HINT_FILE,
	  .help = "must succeed on every state; $1 and OUTAGE_DIR name the directory, OUTAGE_ACKED "
		  "a file with the lines that were acknowledged" },
	{ OPT_COPY, "restart", 0, "CMD", AT(plan.restart), .hint = HINT_FILE,
	  .help = "brings the application up again, before the check or query if there is one; "
		  "must "
		  "succeed" },
	{ OPT_COPY, "query", 0, "CMD", AT(plan.query), .hint = HINT_FILE,
	  .help = "prints what is there; what was acknowledged must be among it" },
	{ OPT_COPY, "stop", 0, "CMD", AT(plan.stop), .hint = HINT_FILE,
	  .help = "ends a server that the run left" },
	{ OPT_FLAG, "kill", 0, NULL, .rare = true, AT(plan.kill),
	  .help = "kill what the run leaves" },
	{ OPT_COPY, "ack-file", 0, "NAME", .rare = true, AT(plan.ack_file), .hint = HINT_FILE,
	  .help = "lines written to this file below DIR are acknowledgements, too" },
	{ OPT_FLAG, "stacks", 0, NULL, .rare = true, AT(plan.stacks),
	  .help = "record who called, with lines of source" },
	{ OPT_SECTION, .help = "Which crashes" },
	OPTION_CRASH("reorder recovery",
		     "reorder: what is in flight is lost during the run; recovery: also while the "
		     "application comes up after a crash",
		     AT(crash), .otherwise = "reorder"),
	{ OPT_COUNT, "recoveries", 0, "N", AT(recoveries), .least = 1, .rare = true,
	  .help = "how many of these are traced", .otherwise = "16" },
	OPTION_PROFILE(OPT_COPY, AT(plan.profile)),
	{ OPT_CALL, "unit", 0, "WHAT", .rare = true, AT(plan.unit), .call = parse_unit,
	  .words = "page sector", .strict = true,
	  .help = "what is written back together: page or sector", .otherwise = "page" },
	OPTION_MAX_SUBSET("operations lost, or surviving, at once; 0: no bound",
			  AT(plan.max_subset), .otherwise = "0", .rare = true),
	OPTION_BUDGET("states that are checked; 0: no limit", AT(plan.budget),
		      .otherwise = "20000"),
	OPTION_SEED("what is drawn at random beyond the budget", AT(plan.seed), .rare = true),
	OPTION_FINDINGS("stop after so many", AT(limit)),
	{ OPT_SECTION, .help = "The run" },
	OPTION_TIME(AT(time_ns)),
	OPTION_TIMEOUT("for the run and for each check", AT(plan.timeout_ms), .unit = 1000000,
		       .least = 1, .otherwise = "60s"),
	OPTION_JOBS("checks at the same time; default: one for each processor", 256, AT(jobs)),
	OPTION_OUTPUT(AT(output)),
	OPTION_JSON(AT(json)),
	OPT_END
};

static int take_dir(struct app *a, const char *given)
{
	struct stat st;

	a->plan.dir = realpath(given, NULL);
	if (!a->plan.dir || stat(a->plan.dir, &st))
		return cli_failf("cannot use %s: %s", given, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return cli_failf("%s is no directory; give the one that the application keeps its "
				 "data in",
				 given);
	if (streq(a->plan.dir, "/"))
		return cli_failf("/ cannot be covered by a mount; give a directory below it");
	return EXIT_OK;
}

static void init(void *given)
{
	struct app *a = given;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	a->plan.profile = xstrdup(profile_at(0)->name);
	a->jobs = cpus > 0 ? (uint64_t)cpus : 1;
	a->terminal = isatty(2);
	a->start_ns = util_now_ns();
	posix_log_init(&a->log);
	trace_init(&a->run.trace);
	a->at = &a->run;
	a->at_log = &a->log;
}

static void release(void *given)
{
	struct app *a = given;

	for (size_t i = 0; i < a->told.n; i++)
		free(a->told.v[i].cause);
	vec_release(&a->told);
	vec_release(&a->numbers);
	app_changed_release(&a->changed);
	posix_log_release(&a->log);
	app_run_release(&a->run);
	app_plan_release(&a->plan);
	record_release(app_kind.summary, &a->summary);
}

static int run(void *given, struct args *args)
{
	struct app *a = given;

	if (!a->plan.run)
		return cli_usage(&cmd_app, "--run is missing: what shall be done?");
	if (!a->plan.check && !a->plan.restart && !a->plan.query)
		return cli_usage(&cmd_app, "give one of --check, --restart and --query: what is a "
					   "good state?");
	if (a->plan.check && a->plan.query)
		return cli_usage(&cmd_app, "give one of --check and --query; --restart goes with "
					   "either of them");
	if (args->n != 1)
		return cli_usage(&cmd_app, "give one directory, which the application works in");
	int rc = take_dir(a, args->v[0]);
	return rc ? rc : run_app(a);
}

const struct command cmd_app = {
	.name = "app",
	.summary = "every crash of an application's run is tried, and what fails explained",
	.usage =
		"usage: outage app --run CMD (--check | --restart | --query) CMD [OPTIONS] -- DIR\n"
		"\n"
		"Runs an application once, on a copy of the directory DIR, and writes down all it\n"
		"does there. Then every state in which a power cut could have left the directory, "
		"at\n"
		"every moment of the run, is built and checked; what fails is explained.\n",
	.notes = EXIT_STATUS_NOTES "example: outage app --run \"$PWD/writer\" --check "
				   "\"$PWD/checker\" -- data\n",
	.options = options,
	.size = sizeof(struct app),
	.init = init,
	.release = release,
	.run = run,
};
