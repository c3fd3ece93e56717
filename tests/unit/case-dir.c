/* SPDX-License-Identifier: MIT */
/* The directories of runs and findings: what they are taken for, and that marks cover all of it. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/io.h"
#include "case/dir.h"
#include "keys.h"
#include "leaks.h"
#include "record-sample.h"

static char *run, *one;

static const struct record_type plan_type = RECORD_TYPE("sample-run", sample_fields, struct sample);
static const struct record_type finding_type =
	RECORD_TYPE("sample-case", sample_fields, struct sample);
static const struct trust_file files[] = { { .name = CASE_RUN }, { .name = "trace" } };
static const char *const made[] = { "trace", TRUST_MARK, NULL };
static const char *const synced[] = { CASE_RUN, "trace", NULL };
static const struct case_kind kind = {
	.plan = &plan_type,
	.finding = &finding_type,
	.summary = &sample_type,
	.run = { .kind = "sample-run", .files = files, .n = ARRAY_SIZE(files) },
	.synced = synced,
	.made = made,
	.finding_mark = "sample-case",
	.links_trace = true,
};

static void remove_file(const char *name)
{
	auto_free char *path = xasprintf("%s/%s", run, name);

	unlink(path);
}

/* What the directory is taken for, or why not. */
static bool taken(const char *path, const char *for_what)
{
	auto_free char *is = NULL;
	struct err err = ERR_INIT;

	return case_kind_of(path, &is, &err) ? strstr(err.msg, for_what) != NULL
					     : streq(is, for_what);
}

static void test_kinds(void)
{
	ok(taken(dir, "is not the directory of a run, nor of a finding"), "a directory is none");
	ok(taken(run, "is not the directory of a run, nor of a finding"),
	   "findings without a record are none");
	write_below(run, CASE_RUN, "outage-run 1\n");
	ok(taken(run, "r/run was made by an earlier version of outage"), "an older one");
	write_below(run, CASE_RUN, "outage-pm-run 2\n");
	ok(taken(run, "r/run:2: it does not say the version"), "one that nothing made");
	write_below(run, CASE_RUN, "outage-pm-run 2\nversion <b>\n");
	ok(taken(run, "r/run:2: it does not say the version"), "or nobody knows what");
	write_below(run, CASE_RUN, "outage-pm-case 2\nversion 1\n");
	ok(taken(run, "is of another kind"), "a run that says that it is a finding");
	write_below(run, CASE_RUN, "outage-run 2\nversion 1\n");
	ok(taken(run, "is of another kind"), "or nothing");
	write_below(run, CASE_RUN, "outage-pm-run 2\nversion 0.0.9-rc1\ntarget x\n");
	ok(taken(run, "pm") && case_is(run, "pm") && !case_is(run, "app") && !case_is_one(run),
	   "a run");
	auto_free char *version = NULL;
	struct err err = ERR_INIT;
	ok(!case_version_of(run, &version, &err) && streq(version, "0.0.9-rc1"),
	   "of another version: %s", err.msg);
}

static void test_create(void)
{
	char *out = NULL;
	struct err err = ERR_INIT;

	ok(!case_create(run, "x", made, &out, &err) && streq(out, run), "a run is made: %s",
	   err.msg);
	free(out);
	write_below(run, "trace", "trace");
	ok(case_create(run, "x", made, &out, &err) == -EEXIST &&
		   strstr(err.msg, "r/trace is there already"),
	   "not where it would overwrite something: %s", err.msg);
	err_clear(&err);
	static const char *const patterns[] = { "t[0-9]*", "tr*e", NULL };
	ok(case_create(run, "x", patterns, &out, &err) == -EEXIST &&
		   strstr(err.msg, "r/trace is there already"),
	   "nor what a pattern fits: %s", err.msg);
	err_clear(&err);
	write_below(run, CASE_RUN, "");
	ok(case_create(run, "x", made, &out, &err) == -EEXIST && strstr(err.msg, "holds a run"),
	   "nor in another: %s", err.msg);
	remove_file(CASE_RUN);
}

static char state[] = "1.1";

static void save(uint64_t n)
{
	struct sample s = { .state = state,
			    .target = xasprintf("target %d", (int)n),
			    .limit = UINT64_MAX };
	struct err err = ERR_INIT;

	strbuf_add(&s.said, "a\0b", 3);
	ok(!record_save(&plan_type, run, CASE_RUN, &s, &err) && !case_run_mark(&kind, run, &err) &&
		   !case_put_number(&kind, run, n, &s, &err),
	   "finding %d: %s", (int)n, err.msg);
	case_finding_release(&kind, &s);
}

static void test_findings(void)
{
	auto_free char *trace = xasprintf("%s/trace", one),
		       *empty = xasprintf("%s/findings/x", run);
	auto_words list = { 0 };
	struct sample back = { 0 };
	struct err err = ERR_INIT;

	save(10);
	save(2);
	mkdir(empty, 0755);
	ok(!case_list(run, &list, &err) && list.n == 2 && strstr(list.v[0], "/findings/2") &&
		   streq(list.v[1], one),
	   "are listed by their numbers, and nothing else");
	ok(taken(one, "sample") && case_is_one(one) && access(trace, F_OK) == 0,
	   "one is known for what it is, and has the trace");
	ok(!case_get(&kind, one, &back, &err) && streq(back.target, "target 10") &&
		   back.said.len == 3 && streq(back.dir, one),
	   "and is read back: %s", err.msg);
	case_finding_release(&kind, &back);
	ok(!case_move_number(run, 10, 2, &err) && !case_move_number(run, 2, 10, &err),
	   "it takes the place of another: %s", err.msg);
	ok(!case_remove_number(run, 10, &err) && access(one, F_OK) != 0, "and is removed");
}

/* D3 */
static void test_marks(void)
{
	static const char *const covered[] = {
		"run", "trace", "mark", "findings/10/case", "findings/10/said", "findings/10/mark"
	};
	struct sample plan = { .check = xstrdup("/evil") }, found = { .dir = one, .state = state };
	struct err err = ERR_INIT;
	bool ours;

	for (size_t i = 0; i < ARRAY_SIZE(covered); i++) {
		write_below(run, "trace", "trace");
		save(10);
		ok(!case_trust(&kind, run, &found, &plan, false, &ours, &err) && ours,
		   "one's own: %s", err.msg);
		change_file(run, covered[i]);
		ok(case_trust(&kind, run, &found, &plan, false, &ours, &err) == -EPERM && !ours &&
			   strstr(err.msg, "run '/evil' (check)"),
		   "not with another %s", covered[i]);
		err_clear(&err);
		ok(!case_trust(&kind, run, &found, &plan, true, &ours, &err) && ours,
		   "unless trusted");
	}
	free(plan.check);
}

/* ---- when files cannot be written ---- */

/* Which of two findings is there, and whole; without a key it has no mark (M2 of trust.h). */
static const char *which(const char *path)
{
	struct sample back = { 0 }, plan = { 0 };
	struct err err = ERR_INIT;
	bool ours;

	if (case_get(&kind, path, &back, &err))
		return "";
	bool is_old = streq(back.target, "old"), is_new = streq(back.target, "new");
	back.state = state;
	bool whole = back.said.len == 3 &&
		     (!below_exists(path, TRUST_MARK) ||
		      (!case_trust(&kind, run, &back, &plan, false, &ours, &err) && ours));
	case_finding_release(&kind, &back);
	if (!whole)
		return "";
	return is_old ? "old" : is_new ? "new" : "";
}

static int put(uint64_t n, char *target, struct err *err)
{
	struct sample s = { .state = state, .target = target, .limit = UINT64_MAX };

	strbuf_add(&s.said, "a\0b", 3);
	int rc = case_put_number(&kind, run, n, &s, err);
	strbuf_release(&s.said);
	return rc;
}

/* What failed has left no part of anything. */
static bool is_clean(size_t open_before)
{
	auto_free char *all = xasprintf("%s/findings", run);

	return !hidden_in(run) && !hidden_in(all) && open_files() == open_before;
}

static char old_target[] = "old", new_target[] = "new";

/* D1: if a finding takes the place of another, one of them is there, whatever fails. */
static void test_put_faults(void)
{
	struct fault_loop loop = { .error = ENOSPC };
	struct err err = ERR_INIT;
	unsigned failed = 0, wrong = 0;
	size_t open_before = open_files();

	while (fault_loop_next(&loop)) {
		fault_pause();
		wrong += put(10, old_target, &err) != 0;
		fault_arm(loop.round, loop.error);
		int rc = put(10, new_target, &err);
		const char *there = (fault_pause(), which(one));
		failed += rc != 0;
		if (rc ? rc != -ENOSPC || !err.msg[0] || !*there : !streq(there, "new")) {
			printf("# point %d: %d %s: %s\n", loop.round, rc, err.msg, there);
			wrong++;
		}
		wrong += !is_clean(open_before);
		err_clear(&err);
	}
	ok(failed >= 20 && !wrong, "keeping one fails at %u places, and one is there", failed);
}

/* Directories of runs are made whole, or not at all, and can be made then. */
static void test_create_faults(bool named)
{
	struct fault_loop loop = { .error = ENOSPC };
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/made", dir);
	auto_free char *clear = xasprintf("cd %s && rm -rf made outage-runs", dir);
	auto_fd here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned failed = 0, wrong = here < 0 || chdir(dir) < 0;
	size_t open_before = open_files();

	while (fault_loop_next(&loop)) {
		auto_free char *out = NULL, *again = NULL;

		fault_pause();
		wrong += system(clear) != 0;
		fault_arm(loop.round, loop.error);
		int rc = case_create(named ? path : NULL, "x", made, &out, &err);
		fault_pause();
		failed += rc != 0;
		wrong += rc ? rc != -ENOSPC || !err.msg[0] || out : !out;
		err_clear(&err);
		wrong += rc && case_create(named ? path : NULL, "x", made, &again, &err);
		wrong += open_files() != open_before;
	}
	ok(failed >= 2 && !wrong, "making a run fails at %u places, and works then: %s", failed,
	   err.msg);
	if (system(clear) || fchdir(here) < 0)
		abort();
}

static void test_move_faults(void)
{
	struct fault_loop loop = { .error = EIO };
	struct err err = ERR_INIT;
	unsigned failed = 0, wrong = 0;
	size_t open_before = open_files();
	auto_free char *sweep = xasprintf("rm -rf %s/findings/.[a-z0-9]*", run);

	while (fault_loop_next(&loop)) {
		fault_pause();
		wrong += put(10, old_target, &err) || put(11, new_target, &err);
		fault_arm(loop.round, loop.error);
		int rc = case_move_number(run, 11, 10, &err);
		const char *there = (fault_pause(), which(one));
		failed += rc != 0;
		wrong += rc ? rc != -EIO || !err.msg[0] ||
					 (!streq(there, "old") && !streq(there, "new"))
			    : !streq(there, "new");
		/* What a removal left is hidden, and the next process sweeps it away. */
		wrong += rc && (open_files() != open_before || system(sweep));
		wrong += !is_clean(open_before);
		err_clear(&err);
	}
	ok(failed >= 6 && !wrong, "moving one fails at %u places, and one is there", failed);
}

/* What a run says of itself is as it was before, or new. */
static void test_run_faults(void)
{
	struct fault_loop loop = { .error = EIO };
	struct sample s = { .target = new_target, .limit = UINT64_MAX };
	struct err err = ERR_INIT;
	unsigned failed = 0, wrong = 0;
	size_t open_before = open_files();

	while (fault_loop_next(&loop)) {
		err_clear(&err);
		fault_pause();
		wrong += case_run_mark(&kind, run, &err) != 0;
		fault_arm(loop.round, loop.error);
		int rc = case_run_mark(&kind, run, &err);
		if (!rc)
			rc = io_sync_run(run, synced, &err);
		if (!rc)
			rc = case_summary_save(&kind, run, &s, &err);
		fault_pause();
		failed += rc != 0;
		wrong += rc && (rc != -EIO || !err.msg[0]);
		wrong += !is_clean(open_before) || (below_exists(run, TRUST_MARK) && !*which(one));
		remove_file(CASE_SUMMARY);
	}
	ok(failed >= 5 && !wrong, "marking and ending a run fails at %u places", failed);
}

static void nested_new(const char *words)
{
	auto_free char *at = xasprintf("%s/" CASE_NESTED, run);
	struct err err = ERR_INIT;

	ok(!below_make_dir(run, CASE_NESTED, &err) &&
		   !io_write_file(at, "words", words, strlen(words), 0, &err),
	   "a nested run, %s", words);
}

/* The findings from 10 on, and what the nested run says. */
static void is_now(const char *want, const char *what)
{
	auto_strbuf out = STRBUF_INIT, words = STRBUF_INIT;
	auto_free char *at = xasprintf("%s/" CASE_NESTED, run);

	for (int i = 10; i < 14; i++) {
		auto_free char *path = xasprintf("%s/findings/%d", run, i);

		if (*which(path))
			strbuf_addf(&out, "%d %s, ", i, which(path));
	}
	if (!io_slurp_file(at, "words", 64, &words, NULL))
		strbuf_adds(&out, strbuf_str(&words));
	is_s(strbuf_str(&out), want, "%s", what);
	ok(!below_exists(run, CASE_BEFORE), "and nothing else");
}

/* A search that begins anew, ends early, and is killed, loses no finding. */
static void test_set_aside(void)
{
	struct err err = ERR_INIT;

	ok(!case_remove_from(run, 0, &err), "%s", err.msg);
	nested_new("old");
	ok(!put(10, old_target, &err) && !put(11, old_target, &err), "two findings of it");
	ok(!case_set_aside(run, &err) && !*which(one), "are set aside: %s", err.msg);
	nested_new("new");
	ok(!put(10, new_target, &err) && !case_settle(run, false, &err), "fewer: %s", err.msg);
	is_now("10 old, 11 old, old", "give way to these again");
	ok(!case_set_aside(run, &err) && !put(10, new_target, &err) && !put(11, new_target, &err) &&
		   !case_settle(run, false, &err),
	   "as many: %s", err.msg);
	is_now("10 new, 11 new, ", "stay");
	nested_new("old");
	ok(!case_set_aside(run, &err) && !case_settle(run, true, &err), "none: %s", err.msg);
	is_now("", "stay, if the search came to its end");
}

/* Whatever fails: the next process gets back what there was. */
static void test_set_aside_faults(void)
{
	struct fault_loop loop = { .error = EIO };
	struct err err = ERR_INIT;
	unsigned failed = 0, lost = 0;

	while (fault_loop_next(&loop)) {
		err_clear(&err);
		fault_pause();
		lost += case_remove_from(run, 0, &err) || put(10, old_target, &err) ||
			put(11, old_target, &err) || below_make_dir(run, CASE_NESTED, &err);
		fault_arm(loop.round, loop.error);
		int rc = case_set_aside(run, &err);
		if (!rc)
			rc = case_settle(run, false, &err);
		fault_pause();
		failed += rc != 0;
		err_clear(&err);
		auto_free char *second = xasprintf("%s/findings/11", run);
		lost += case_settle(run, false, &err) || !streq(which(one), "old") ||
			!streq(which(second), "old") || !below_exists(run, CASE_NESTED) ||
			below_exists(run, CASE_BEFORE);
	}
	ok(failed >= 24 && !lost, "setting aside fails at %u places, and nothing is lost", failed);
}

int main(void)
{
	if (!begin_trust())
		return 1;
	run = xasprintf("%s/r", dir);
	one = xasprintf("%s/findings/10", run);
	test_create();
	test_kinds();
	test_findings();
	test_marks();
	test_put_faults();
	test_create_faults(true);
	test_create_faults(false);
	test_move_faults();
	test_run_faults();
	test_set_aside();
	test_set_aside_faults();
	free(run);
	free(one);
	return done_testing();
}
