/* SPDX-License-Identifier: MIT */
/*
 * run-store.c - cases are kept whole or not at all, wherever writing fails, and can be kept after
 * that; what is in their files has the form that is read again.
 */
#include "tap.h"

#include <errno.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "keys.h"
#include "leaks.h"
#include "record/disk_impl.h"
#include "run/progress.h"
#include "run/replay.h"
#include "run/store.h"
#include "trace-build.h"

enum { SIZE = 64 << 10 };

static const struct disk_ops recorder = { .name = "test" };
static struct disk disk = { .ops = &recorder };
static const struct target_ops target_ops = { .name = "test" };
static struct target target = { .ops = &target_ops, .opts.spec = "ext4", .disk = &disk };

/* All that a case is made of. */
struct world {
	struct workload w;
	struct op_history history;
	struct trace trace;
	struct image base;
	struct findings findings;
	struct run_case found;
	struct run_opts opts;
};

static void begin(struct world *k)
{
	const char text[] = "workload w\ncreat foo\nfsync foo\n";
	struct err err = ERR_INIT;

	*k = (struct world){ .opts = { .target = target.opts,
				       .guarantee = guarantee_find("linux"),
				       .ours = true } };
	workload_init(&k->w);
	ok(!workload_parse(text, strlen(text), "w", &k->w, &err), "a workload");
	op_history_init(&k->history);
	op_history_start(&k->history, &k->w);
	for (size_t i = 0; i < k->w.ops.n; i++)
		op_history_op(&k->history, i, 0, &k->findings);
	trace_init(&k->trace);
	k->trace.info.size = SIZE;
	trace_write(&k->trace, 0, "data", 4, 0);
	image_init(&k->base, SIZE);
	image_write(&k->base, 4096, "base", 4);
	findings_add(&k->findings, FINDING_HANG, xstrdup("foo\tbar"), xstrdup("it\thangs"), NULL);
	k->found = (struct run_case){ .target = &target,
				      .guarantee = k->opts.guarantee,
				      .workload = &k->w,
				      .trace = &k->trace,
				      .base = &k->base,
				      .history = &k->history,
				      .done = 2,
				      .findings = &k->findings,
				      .operation = RUN_NO_OPERATION,
				      .kernel_log = "",
				      .said = "a word" };
}

static void end(struct world *k)
{
	findings_release(&k->findings);
	image_release(&k->base);
	trace_release(&k->trace);
	op_history_release(&k->history);
	workload_release(&k->w);
}

static char *new_run(const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	char *run = NULL;
	struct err err = ERR_INIT;

	if (case_create(path, "x", store_made, &run, &err))
		ok(false, "%s", err.msg);
	write_below(run, CASE_RUN, "outage-test-run 2\nversion 0.1.0\n");
	return run;
}

static void remove_run(char *run)
{
	auto_free char *clear = xasprintf("rm -rf %s", run);

	ok(system(clear) == 0, "it is removed");
	free(run);
}

/* Whether it is there, can be read, and is this user's. */
static bool is_whole(const char *at)
{
	struct stored_case c;
	struct err err = ERR_INIT;
	int rc = store_load(at, &c, &err);

	if (rc)
		return false;
	rc = store_verify(at, c.base, &err);
	bool same = c.problems.n == 1 && streq(c.problems.v[0].words, "it hangs");
	if (rc || !same)
		printf("# %s: %s\n", at, rc ? err.msg : c.problems.v[0].words);
	stored_case_release(&c);
	return !rc && same;
}

/* Without a key for a moment, a case is kept without a mark (M2 of trust.h). */
static bool has_marks(const char *at)
{
	auto_free char *run = below_run_of(at);
	bool apart = below_exists(at, "base.img") || !below_exists(run, "base-0.img");

	return below_exists(at, TRUST_MARK) && (apart || below_exists(run, "base-0.mark"));
}

/* What each loop counts. */
struct tally {
	unsigned failed, wrong;
	size_t open_before;
};

static void judge(struct tally *t, const struct fault_loop *loop, int rc, const struct err *err,
		  const char *run, const char *at)
{
	auto_free char *findings = xasprintf("%s/findings", run);
	bool there = access(at, F_OK) == 0;
	bool bad = rc ? rc != -loop->error || !err->msg[0] || (there && !is_whole(at))
		      : !there || (has_marks(at) && !is_whole(at));

	fault_pause();
	t->failed += rc != 0;
	bad |= hidden_in(run) || hidden_in(findings) || open_files() != t->open_before;
	if (bad)
		printf("# point %d: %d %s, %s\n", loop->round, rc, err->msg,
		       there ? "it is there" : "it is not there");
	t->wrong += bad;
}

typedef int keep_fn(const struct store_place *place, struct world *k, struct err *err);

static int keep_case(const struct store_place *place, struct world *k, struct err *err)
{
	return store_case(place, &k->found, &k->opts, err);
}

static int keep_hang(const struct store_place *place, struct world *k, struct err *err)
{
	const struct store_hang h = { &k->w, "it hangs", "creating", "a word\n", 1000 };

	return store_hang(place, &h, &k->opts, err);
}

/*
 * Each point fails once; then it is kept all the same, as others of the run may be. At least so
 * many points fail.
 */
static void test_kept(const char *what, keep_fn *keep, unsigned least)
{
	struct fault_loop loop = { .error = ENOSPC };
	struct world k;

	begin(&k);
	struct tally t = { .open_before = open_files() };
	while (fault_loop_next(&loop)) {
		fault_pause();
		char *run = new_run("r");
		auto_free char *at = xasprintf("%s/findings/3-1", run);
		bool has_base = false;
		const struct store_place place = {
			.run = run, .base_kept = &has_base, .workload = 3, .number = 1
		};
		struct err err = ERR_INIT, again = ERR_INIT;

		fault_arm(loop.round, loop.error);
		int rc = keep(&place, &k, &err);
		fault_pause();
		judge(&t, &loop, rc, &err, run, at);
		if (rc && keep(&place, &k, &again)) {
			printf("# point %d: not kept afterwards: %s\n", loop.round, again.msg);
			t.wrong++;
		}
		t.wrong += (has_marks(at) && !is_whole(at)) || has_base != (keep == keep_case);
		remove_run(run);
	}
	ok(t.failed >= least && !t.wrong, "%s: %u places fail, and nothing is lost", what,
	   t.failed);
	end(&k);
}

static void test_alone(bool replace)
{
	struct fault_loop loop = { .error = EIO };
	auto_free char *at = xasprintf("%s/alone", dir), *clear = xasprintf("rm -rf %s", at);
	struct world k;

	begin(&k);
	struct tally t = { .open_before = open_files() };
	while (fault_loop_next(&loop)) {
		struct err err = ERR_INIT;

		fault_pause();
		t.wrong += system(clear) != 0;
		if (replace && store_case_alone(at, &k.found, &k.opts, &err))
			ok(false, "%s", err.msg);
		fault_arm(loop.round, loop.error);
		int rc = store_case_alone(at, &k.found, &k.opts, &err);
		fault_pause();
		t.failed += rc != 0;
		/* In a directory of the user's, "case" is gone first and comes last. */
		bool claims = below_exists(at, CASE_FILE);
		bool bad = rc ? rc != -EIO || !err.msg[0] || (claims && !is_whole(at))
			      : !claims || (has_marks(at) && !is_whole(at));
		bad |= hidden_in(dir) || open_files() != t.open_before;
		if (bad)
			printf("# point %d: %d %s\n", loop.round, rc, err.msg);
		t.wrong += bad;
	}
	ok(t.failed >= 12 && !t.wrong,
	   "a case %s: %u places fail, and no half of it is taken for one",
	   replace ? "in place of another" : "alone", t.failed);
	end(&k);
}

/* With --rerun, a finding is looked for as it was found. */
static void test_options(void)
{
	auto_free char *at = xasprintf("%s/options", dir);
	struct stored_case c;
	struct run_opts opts = { 0 };
	struct err err = ERR_INIT;
	struct world k;

	begin(&k);
	k.opts.modes = RUN_REORDER;
	k.opts.budget = 0;
	k.opts.media = 1;
	k.opts.media_max = 4;
	int rc = store_case_alone(at, &k.found, &k.opts, &err);
	if (!rc)
		rc = store_load(at, &c, &err);
	if (ok(!rc, "a case with options is kept: %s", err.msg) &&
	    ok(!replay_opts(&c, &opts, &err), "and read"))
		ok(opts.modes == RUN_REORDER && !opts.budget && opts.media_max == 4,
		   "with no limit of its states, and one of bad lines");
	if (!rc)
		stored_case_release(&c);
	end(&k);
}

/* S3 */
static void test_cluster(void)
{
	struct world k;
	auto_strbuf text = STRBUF_INIT;

	begin(&k);
	for (unsigned i = 0; i < 100; i++)
		strbuf_adds(&text, i ? "fsync foo\n" : "workload w\ncreat foo\n");
	struct err err = ERR_INIT;
	workload_release(&k.w);
	workload_init(&k.w);
	ok(!workload_parse(text.buf, text.len, "w", &k.w, &err), "a long workload: %s", err.msg);
	auto_free char *all = store_cluster(FINDING_HANG, &k.w, RUN_NO_OPERATION);
	auto_free char *one = store_cluster(FINDING_HANG, &k.w, 0);
	ok(strlen(all) < CLUSTER_MAX && strstr(all, "... "), "has a name that is not too long: %s",
	   all);
	is_s(one, "hang: creat", "one of an operation is short");
	end(&k);
}

int main(void)
{
	if (!begin_trust())
		return 1;
	test_kept("a case", keep_case, 12);
	test_alone(false);
	test_alone(true);
	test_kept("a hang", keep_hang, 8);
	test_options();
	test_cluster();
	return done_testing();
}
