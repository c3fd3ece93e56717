/* SPDX-License-Identifier: MIT */
/*
 * app_pipeline.c - records the application, verifies its directory, searches its crash states, and
 * keeps the findings.
 */
#include "app/app_pipeline.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app_finding.h"
#include "app/app_record.h"
#include "app/app_recovery.h"
#include "app/app_run.h"
#include "app/app_words.h"
#include "base/below.h"
#include "base/io.h"
#include "base/log.h"
#include "case/given.h"
#include "case/suppress.h"
#include "search/nested.h"

enum { END_CHECKS = 3 };

/* A finding that was reported. */
struct told_finding {
	uint64_t states;
	char *cause; /* NULL: unknown */
	bool nested;
};

struct app_whole {
	struct app_asked *o;
	struct app_outcome *out;
	struct app_run run;
	struct posix_log log;
	/* The searched run, or a restart of it. */
	struct app_run *at;
	const struct posix_log *at_log;
	struct vec_of(struct told_finding) told; /* by the number of the finding */
	struct vec_of(uint64_t) numbers; /* the number of each finding of the current search */
	struct second_ways changed;
	bool made; /* this process made the run's directory */
	struct case_keeper keeper;
	uint64_t explored_ns;
	struct launcher *launcher;
	struct answers *answers;
	struct suppress suppress;
};

static bool recovers(const struct app_whole *p)
{
	return p->o->plan.crash & APP_CRASH_RECOVERY;
}

/* ---- the end of the run, without a crash ---- */

static int end_differs(const struct app_whole *p, struct err *err)
{
	return err_set(err, -EINVAL,
		       "the %s does not always say the same of the directory as the run left it, "
		       "without any crash: it must depend on nothing else",
		       app_plan_asks(&p->o->plan));
}

static struct app_search_opts search_of(struct app_whole *p, struct app_run *run)
{
	struct app_search_opts o = app_run_search(run);

	o.checkers.launcher = p->launcher;
	o.stop = p->o->stop;
	return o;
}

/* Adds the query's answer before the run, as any crash may leave that state. */
static int show_before(struct app_whole *p, struct strbuf *shown, struct err *err)
{
	struct app_search_opts o = search_of(p, &p->run);
	auto_call(verdict_release) struct verdict v = { 0 };
	int rc = search_one(&o, "0.0", &v, err);

	/* A failure there is a finding like any other. */
	if (!rc && !v.fails)
		strbuf_add(shown, strbuf_str(&v.said), v.said.len);
	return rc;
}

/* Checks the final directory of the run several times. */
static int verify_end(struct app_whole *p, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", p->run.trace.events.n);
	auto_strbuf first = STRBUF_INIT;
	struct app_search_opts o = search_of(p, &p->run);
	auto_call(verdict_release) struct verdict v = { 0 };
	int rc = 0;

	for (int i = 0; !rc && i < END_CHECKS; i++) {
		rc = search_one(&o, id, &v, err);
		if (rc)
			break;
		if (!i && v.fails)
			rc = search_end_fails(&o, NULL, &v, err);
		else if (!i)
			strbuf_add(&first, strbuf_str(&v.said), v.said.len);
		else if (v.fails ||
			 (p->o->plan.query && !streq(strbuf_str(&first), strbuf_str(&v.said))))
			rc = end_differs(p, err);
	}
	if (rc || !p->o->plan.query)
		return rc;
	if (first.len && first.buf[first.len - 1] != '\n')
		strbuf_addch(&first, '\n');
	rc = show_before(p, &first, err);
	if (rc)
		return rc;
	app_lines(strbuf_str(&first), &p->run.shown);
	return io_write_file(p->run.dir, "shown", strbuf_str(&first), first.len, 0, err);
}

/* ---- during the search ---- */

static void make_case(struct app_whole *p, const struct search_found *f, struct app_case *c)
{
	app_finding_case(&p->run, &p->log, p->at, p->at_log, f, c);
}

static void save_case(struct app_whole *p, uint64_t n, const struct app_case *c)
{
	if (case_keep(&p->keeper, p->run.nested.n, n, c, &p->out->error))
		p->out->summary.errors++;
}

/* Keeps the case under the number of the next finding, which it becomes or which replaces it. */
static void on_failed(void *ctx, const struct search_found *f)
{
	struct app_whole *p = ctx;
	struct app_case c;

	make_case(p, f, &c);
	save_case(p, p->out->summary.findings, &c);
	case_finding_release(&app_kind, &c);
}

static void on_dropped(void *ctx)
{
	struct app_whole *p = ctx;

	if (case_remove_number(p->run.dir, p->out->summary.findings, &p->out->error))
		p->out->summary.errors++;
}

/* Returns the finding of a similar, earlier restart with the same cause, or UINT64_MAX. */
static uint64_t find_told(const struct app_whole *p, const char *cause)
{
	for (size_t i = 0; p->at != &p->run && cause && i < p->told.n; i++)
		if (p->told.v[i].nested && p->told.v[i].cause && streq(p->told.v[i].cause, cause))
			return i;
	return UINT64_MAX;
}

static bool is_suppressed(const struct app_whole *p, const struct app_case *c)
{
	auto_free char *cluster = app_case_cluster(c);

	return suppress_names(&p->suppress, p->o->plan.profile, cluster);
}

/* Counts a finding of the search as part of number `n`, or of none (UINT64_MAX). */
static void join(struct app_whole *p, uint64_t n)
{
	vec_push(&p->numbers, n);
	on_dropped(p);
}

static void add_finding(struct app_whole *p, const struct app_case *c, const char *cause)
{
	uint64_t n = p->out->summary.findings++;

	vec_push(&p->numbers, n);
	vec_push(&p->told,
		 (struct told_finding){ 0, cause ? xstrdup(cause) : NULL, p->at != &p->run });
	save_case(p, n, c);
	p->o->found(p->o->ctx, c, n);
}

static bool on_found(void *ctx, const struct search_found *f)
{
	struct app_whole *p = ctx;
	const char *cause = f->why.kind == EXPLAIN_NOT ? NULL : f->why.cause;
	uint64_t n = find_told(p, cause);
	struct app_case c;

	if (n != UINT64_MAX) {
		join(p, n);
		return false;
	}
	make_case(p, f, &c);
	bool known = is_suppressed(p, &c);
	if (known) {
		p->out->summary.suppressed++;
		join(p, UINT64_MAX);
	} else {
		add_finding(p, &c, cause);
	}
	case_finding_release(&app_kind, &c);
	return !known;
}

static void on_progress(void *ctx, const struct search_totals *t, uint64_t findings)
{
	const struct app_whole *p = ctx;

	p->o->progress(p->o->ctx, t, findings);
}

/* ---- at the end ---- */

/* Saves the numbers of states of the findings, which were kept before all states were checked. */
static void keep_counts(struct app_whole *p, const struct search_result *r)
{
	for (size_t i = 0; i < r->found.n; i++) {
		uint64_t n = p->numbers.v[i];

		if (n == UINT64_MAX)
			continue;
		auto_free char *dir = xasprintf("%s/findings/%llu", p->run.dir, llu(n));
		struct app_case c = { 0 };

		p->told.v[n].states += r->found.v[i].states;
		if (case_get(&app_kind, dir, &c, &p->out->error))
			continue;
		bool same = c.states == p->told.v[n].states;

		c.states = p->told.v[n].states;
		if (!same)
			save_case(p, n, &c);
		case_finding_release(&app_kind, &c);
	}
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

printf_like(2, 3) static void note(struct app_whole *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vec_push(&p->out->summary.notes, xvasprintf(fmt, args));
	va_end(args);
}

/* Notes a search that --time or a signal has stopped, but not one that --limit has. */
static void note_stop(struct app_whole *p, const struct search_totals *t)
{
	p->out->stopped |= t->stopped &&
			   !(p->o->plan.limit && p->out->summary.findings >= p->o->plan.limit);
}

static void summarise(struct app_whole *p, const struct search_result *r)
{
	const struct search_totals *t = &r->totals;
	struct app_summary *s = &p->out->summary;

	for (size_t i = 0; i < p->o->plan.notes.n; i++)
		note(p, "%s", p->o->plan.notes.v[i]);
	s->operations = count_operations(&p->run.trace);
	s->acks = p->run.acks.n;
	s->crash_states = t->states.tried;
	s->unique_states = t->states.unique;
	s->checked = t->checked;
	s->failing = t->failing;
	s->patterns = t->states.operations;
	s->covered = t->covered;
	s->errors += t->errors;
	p->out->unchecked = t->errors;
	memcpy(p->out->why_unchecked, t->error, sizeof(p->out->why_unchecked));
	s->left_out = t->states.left_out + (double)t->states.waiting;
	s->budget_hit = t->states.budget_hit || t->stopped;
	note_stop(p, t);
	s->unexplained = t->unexplained;
	s->elapsed_s = p->out->checked_s = (double)(util_now_ns() - p->o->start_ns) / 1e9;
	if (t->unexplained > t->unsteady)
		note(p,
		     "the cause of %llu %s is not known, as the explanation was cut short: a "
		     "longer run tells it",
		     COUNT_S(t->unexplained - t->unsteady, "finding"));
	if (t->unsteady)
		note(p,
		     "the cause of %llu %s is not known, as the %s does not always say the same of "
		     "one state: it depends on more than the directory, or what it starts does",
		     COUNT_S(t->unsteady, "finding"), app_plan_asks(&p->o->plan));
	if (p->run.history.maps)
		note(p, "files were written through mappings: what was stored there is seen only "
			"when it is written back");
	vec_each(m, &p->run.stacks.missing)
		note(p, "%llu %s no call stack: %s",
		     COUNT(m->count, "operation has", "operations have"), m->reason);
	if (p->run.history.skipped)
		note(p, "%llu operations on things that the record does not know were passed over",
		     llu(p->run.history.skipped));
	if (t->left)
		note(p, "%llu checks left processes behind, which were ended", llu(t->left));
	if (t->unlike)
		note(p,
		     "%llu files could not be made as they were: owners, devices or attributes; "
		     "that needs root",
		     llu(t->unlike));
	if (t->faulty) {
		note(p,
		     "%llu %s failed at first, and not when checked again: the %s depends on more "
		     "than the directory",
		     COUNT_S(t->faulty, "state"), app_plan_asks(&p->o->plan));
		s->errors++;
		end_differs(p, &p->out->error);
	}
}

/* A run that checked no state ends with an error: it must not look like one without findings. */
static void check_tried(struct app_whole *p)
{
	struct app_summary *s = &p->out->summary;

	/* Findings that an earlier part of the run has kept count, though none was tried now. */
	p->out->untried = !s->checked && !s->findings && !s->suppressed && !s->errors;
	s->errors += p->out->untried;
}

/* ---- second crashes ---- */

/* Returns the options to search the run, or a restart, within the rest of the limits. */
static struct app_search_opts search_all_of(struct app_whole *p, struct app_run *run)
{
	struct app_search_opts o = search_of(p, run);
	uint64_t spent = util_now_ns() - p->explored_ns;

	o.checkers.answers = p->answers;
	o.checkers.jobs = (unsigned)p->o->jobs;
	if (p->o->time_ns)
		o.time_ns = max(p->o->time_ns - min(p->o->time_ns, spent), (uint64_t)1);
	if (p->o->plan.limit)
		o.limit = p->o->plan.limit - min(p->o->plan.limit, p->out->summary.findings);
	o.failed = on_failed;
	o.found = on_found;
	o.dropped = on_dropped;
	o.progress = on_progress;
	o.ctx = p;
	vec_clear(&p->numbers);
	return o;
}

static void on_changed(void *ctx, const struct app_state *s, const struct app_change *change)
{
	struct app_whole *p = ctx;

	/* The states with the most acknowledgements come first: they have most to lose. */
	vec_push(&p->changed, (struct second_way){ .what = change->what,
						   .state = xstrdup(s->id),
						   .kind = change->kind,
						   .leads = change->net,
						   .worth = s->acked,
						   .turn = s->number });
}

/* True if a signal or the time limit ends the run before all is done. */
static bool ends_early(const struct app_whole *p)
{
	return *p->o->stop || p->out->by_signal ||
	       (p->o->time_ns && util_now_ns() - p->explored_ns > p->o->time_ns);
}

static bool is_over(void *ctx)
{
	const struct app_whole *p = ctx;

	return ends_early(p) || (p->o->plan.limit && p->out->summary.findings >= p->o->plan.limit);
}

static void add_totals(struct app_whole *p, const struct search_totals *t)
{
	struct app_summary *s = &p->out->summary;

	s->recovery_states += t->checked;
	s->recovery_left_out += t->states.left_out + (double)t->states.waiting;
	s->failing += t->failing;
	s->errors += t->errors;
	s->unexplained += t->unexplained;
	s->budget_hit |= t->states.budget_hit || t->stopped;
	p->out->by_signal |= t->by_signal;
	note_stop(p, t);
	if (t->errors)
		err_set(&p->out->error, -EIO, "%llu %s could not be checked: %s",
			COUNT_S(t->errors, "state"), t->error);
	if (t->faulty) {
		s->errors++;
		end_differs(p, &p->out->error);
	}
}

/* Checks the final directory of a restart: a check that fails there tells nothing about a crash. */
static int nested_end(struct app_whole *p, struct app_run *nested, struct err *err)
{
	struct app_search_opts o = search_of(p, nested);

	return search_end(&o,
			  p->o->plan.restart ? "it must not change what is good"
					     : "it must not change what is good, or give --restart",
			  err);
}

static int search_restart(void *ctx, struct app_run *nested, uint64_t *states, struct err *err)
{
	struct app_whole *p = ctx;
	auto_call(search_result_release) struct search_result r = { 0 };
	auto_posix_log log;
	struct err why = ERR_INIT;

	posix_log_init(&log);
	int rc = app_log(&nested->trace, &log, err);
	if (rc)
		return rc;
	if (nested_end(p, nested, &why)) {
		p->out->by_signal |= *p->o->stop;
		p->out->summary.errors += !*p->o->stop;
		if (!*p->o->stop && !p->out->error.code)
			p->out->error = why;
		return 0;
	}
	p->at = nested;
	p->at_log = &log;
	struct app_search_opts o = search_all_of(p, nested);
	o.checkers.restart = p->run.nested.n;
	rc = search(&o, &r, err);
	keep_counts(p, &r);
	add_totals(p, &r.totals);
	*states = r.totals.states.given;
	p->at = &p->run;
	p->at_log = &p->log;
	return rc;
}

static void recover_again(struct app_whole *p, uint64_t spent)
{
	struct app_recovery_opts o = { .run = &p->run,
				       .count = p->o->plan.recoveries,
				       .budget = p->o->plan.budget,
				       .spent = spent,
				       .stop = is_over,
				       .search = search_restart,
				       .ctx = p };
	struct app_summary *s = &p->out->summary;
	struct app_recovered r;
	struct err err = ERR_INIT;

	if (!recovers(p))
		return;
	/* Earlier findings are reported even if this fails. */
	if (app_recoveries(&o, &p->changed, &r, &err)) {
		s->errors++;
		err_set(&p->out->error, err.code, "%s", err.msg);
	}
	s->recovery_ways = r.ways;
	s->recoveries = r.recorded;
	s->recoveries_tried = r.different;
	p->out->by_signal |= r.by_signal || *p->o->stop;
	s->budget_hit |= r.recorded < min(r.ways, p->o->plan.recoveries);
	if (r.failed) {
		s->errors += r.failed;
		err_set(&p->out->error, r.why.code,
			"%llu of %llu restarts could not be recorded: %s", llu(r.failed),
			llu(r.recorded), r.why.msg);
	}
	if (r.left)
		note(p, "%s of no use could not be removed: %s",
		     plural(r.left, "a record of a restart", "records of restarts"),
		     r.why_left.msg);
	s->elapsed_s = (double)(util_now_ns() - p->o->start_ns) / 1e9;
	p->out->stopped |= ends_early(p);
}

/* Counts the findings of a resumed run, so that none of them is lost or left out of the summary. */
static int settle(struct app_whole *p, bool end, struct err *err)
{
	auto_words kept = { 0 };
	int rc = case_settle(p->run.dir, end, err);

	if (!rc)
		rc = case_list(p->run.dir, &kept, err);
	p->out->summary.findings = max(p->out->summary.findings, (uint64_t)kept.n);
	return rc;
}

/* ---- the whole pipeline ---- */

static int explore(struct app_whole *p, struct err *err)
{
	auto_call(search_result_release) struct search_result r = { 0 };

	p->explored_ns = util_now_ns();
	struct app_search_opts o = search_all_of(p, &p->run);
	if (recovers(p)) {
		o.changed = on_changed;
		o.states.budget = nested_firsts(o.states.budget);
	}
	int rc = search(&o, &r, err);

	/* Earlier findings are reported, as those of an incomplete run. */
	p->out->broken = rc && (r.totals.checked || r.found.n);
	if (p->out->broken) {
		p->out->summary.errors++;
		note(p, "the run is not whole: %s", err->msg);
		err_set(&p->out->error, rc, "%s; what was found before is in %s", err->msg,
			p->run.dir);
		err_clear(err);
		rc = 0;
	}
	if (!rc) {
		keep_counts(p, &r);
		summarise(p, &r);
		p->out->by_signal = r.totals.by_signal;
		if (!p->out->broken)
			recover_again(p, r.totals.states.given);
	}
	if (p->o->resume) {
		struct err why = ERR_INIT;
		bool end = !rc && !p->out->stopped && !p->out->summary.errors &&
			   p->out->summary.checked;
		int late = settle(p, end, &why);

		if (!rc && late)
			rc = err_set(err, late, "%s", why.msg);
	}
	if (!rc)
		check_tried(p);
	return rc ? rc : case_summary_save(&app_kind, p->run.dir, &p->out->summary, err);
}

static int record(struct app_whole *p, struct err *err)
{
	struct app_plan *plan = &p->o->plan;
	struct app_record_opts o = { .run = p->run.dir, .plan = plan };
	/* The plan is saved first, so that a run that is killed while recording is recognised. */
	int rc = record_save(app_kind.plan, p->run.dir, CASE_RUN, plan, err);

	if (!rc)
		rc = app_record(&o, &plan->root_ino, &plan->notes, err);
	if (!rc && plan->ack_file)
		rc = app_ack_file(p->run.dir, plan->ack_file, err);
	if (!rc)
		rc = app_plan_load(p->run.dir, &p->run.plan, err);
	p->run.plan.root_ino = plan->root_ino;
	if (!rc)
		rc = app_run_open(&p->run, err);
	if (!rc)
		rc = app_log(&p->run.trace, &p->log, err);
	if (!rc && !count_operations(&p->run.trace))
		rc = err_set(err, -EINVAL,
			     "the run did nothing below %s: does it use that directory?",
			     plan->dir);
	return rc;
}

static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Returns the directory of a path; slashes at the end of the path do not count. */
static char *directory_of(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	return n ? xmemdupz(path, n) : xstrdup(".");
}

/* Called before anything is made: no name may appear in the application's directory. */
static int check_output(const struct app_whole *p, struct err *err)
{
	auto_free char *above = p->o->output ? directory_of(p->o->output) : xstrdup(".");
	auto_free char *parent = realpath(above, NULL);

	if (!parent)
		return err_set(err, -errno, "cannot make %s: %m",
			       p->o->output ? p->o->output : "a run");
	if (is_inside(parent, p->o->plan.dir))
		return err_set(err, -EINVAL,
			       "the results would be inside of the application's directory, %s; "
			       "give another -o",
			       p->o->plan.dir);
	if (p->o->output && case_is(p->o->output, "app"))
		return err_set(
			err, -EEXIST,
			case_has_ended(p->o->output)
				? "%s holds a run already: give another -o"
				: "%s holds a run that was not finished: remove it, go on with it "
				  "by --resume, or give another -o",
			p->o->output);
	return 0;
}

static int find_run(struct app_whole *p, struct err *err)
{
	int rc = case_hold(p->o->resume, err);

	if (rc)
		return rc;
	p->out->dir = below_real(p->o->resume);
	return p->out->dir ? 0 : err_set(err, -errno, "cannot use %s: %m", p->o->resume);
}

static int make_run(struct app_whole *p, struct err *err)
{
	auto_free char *dir = NULL;
	bool was_there = p->o->output && access(p->o->output, F_OK) == 0;
	int rc = check_output(p, err);

	if (!rc)
		rc = case_create(p->o->output, "app", app_kind.made, &dir, err);
	if (rc)
		return rc;
	p->made = !was_there;
	p->out->dir = realpath(dir, NULL);
	if (!p->out->dir)
		return err_set(err, -errno, "cannot use %s: %m", dir);
	p->run.dir = xstrdup(p->out->dir);
	return 0;
}

/* Marks the run as this user's; a failure is noted, and the run goes on. */
static void mark(struct app_whole *p)
{
	/*
	 * Kept files have the owners and modes that they have in the application's directory. No
	 * other user shall reach them from now on, neither to read nor to change them. (While they
	 * were recorded, other users' processes may have had to.)
	 */
	if (p->made && chmod(p->run.dir, 0700))
		log_debug("cannot close %s: %m", p->run.dir);
	if (case_run_mark(&app_kind, p->run.dir, &p->out->unmarked))
		log_debug("%s", p->out->unmarked.msg);
}

/* Records the run, and checks its end. The saved plan is complete once it names its root. */
static int begin(struct app_whole *p, struct err *err)
{
	int rc = record(p, err);

	p->o->recorded(p->o->ctx);
	if (!rc)
		rc = verify_end(p, err);
	if (!rc)
		rc = record_save(app_kind.plan, p->run.dir, CASE_RUN, &p->o->plan, err);
	if (!rc)
		mark(p);
	else
		case_discard(p->run.dir, app_kind.made);
	return rc;
}

/* Resumes an interrupted run, as it was recorded. */
static int go_on(struct app_whole *p, struct err *err)
{
	struct app_asked *o = p->o;
	int rc = app_run_load(p->out->dir, &p->run, err);

	if (!rc)
		rc = given_agree(app_kind.plan, &p->run.plan, &o->plan, o->given, err);
	if (!rc)
		rc = case_trust_run(&app_kind, p->run.dir, &p->run.plan, o->trust,
				    &p->run.plan.ours, err);
	if (!rc)
		rc = answers_open(p->run.dir, &p->answers, err);
	if (!rc)
		rc = case_sweep(p->run.dir, err);
	if (!rc)
		rc = case_settle(p->run.dir, false, err);
	if (!rc && case_has_ended(p->run.dir))
		rc = below_remove(p->run.dir, CASE_SUMMARY, err);
	if (!rc)
		rc = app_log(&p->run.trace, &p->log, err);
	if (rc)
		return rc;
	app_plan_release(&o->plan);
	rc = app_plan_load(p->run.dir, &o->plan, err);
	o->recorded(o->ctx);
	if (rc)
		return rc;
	/* The user may have changed the check. */
	struct app_search_opts search = search_of(p, &p->run);
	return search_end(&search, NULL, err);
}

static int run_all(struct app_whole *p, struct err *err)
{
	int rc = p->o->resume ? find_run(p, err) : make_run(p, err);

	if (rc)
		return rc;
	/* The launcher starts now, while there is little memory to copy. */
	rc = launcher_start(&p->launcher, err);
	if (!rc)
		rc = p->o->resume ? go_on(p, err) : begin(p, err);
	if (!rc && !p->answers)
		rc = answers_open(p->run.dir, &p->answers, err);
	if (!rc)
		rc = suppress_of_plan(p->o->plan.suppress, &p->suppress, err);
	if (!rc && p->o->resume)
		rc = case_set_aside(p->run.dir, err);
	p->keeper = (struct case_keeper){ .kind = &app_kind, .run = p->run.dir };
	if (!rc)
		rc = explore(p, err);
	answers_close(p->answers);
	launcher_stop(steal(p->launcher));
	return rc;
}

int app_pipeline(struct app_asked *asked, struct app_outcome *out, struct err *err)
{
	struct app_whole p = { .o = asked, .out = out, .at = &p.run, .at_log = &p.log };

	posix_log_init(&p.log);
	trace_init(&p.run.trace);
	int rc = run_all(&p, err);
	for (size_t i = 0; i < p.told.n; i++)
		free(p.told.v[i].cause);
	vec_release(&p.told);
	vec_release(&p.numbers);
	suppress_release(&p.suppress);
	second_ways_release(&p.changed);
	posix_log_release(&p.log);
	app_run_release(&p.run);
	return rc;
}

void app_outcome_release(struct app_outcome *o)
{
	record_release(app_kind.summary, &o->summary);
	free(o->dir);
}
