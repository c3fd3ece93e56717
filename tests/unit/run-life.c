/* SPDX-License-Identifier: MIT */
/*
 * run-life.c - the texts that outlive a run: what it does, what is done, what is known. They are
 * read back as they were written, and refused or cut where they are not whole.
 */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/rng.h"
#include "core/trace_file.h"
#include "run/earlier.h"
#include "case/given.h"
#include "run/plan.h"
#include "run/progress.h"
#include "run/replay.h"
#include "run/store.h"
#include "case/suppress.h"
#include "trace-build.h"

static char dir[] = "/tmp/outage-life-XXXXXX";

static void write_text(const char *where, const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", where, name);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (io_write_full(fd, text, strlen(text)))
		printf("# cannot write %s\n", path);
}

#define CASE_HEAD "outage-test-case 2\nversion 0.1.0\n"

/* ---- the plan ---- */

static const char good[] = "outage-test-run 2\nversion " OUTAGE_VERSION "\n"
			   "target ext4,barrier=0\n"
			   "kernel 6.1\n"
			   "guarantee linux\n"
			   "crash prefix,reorder\n"
			   "max-subset 3\n"
			   "budget 200\n"
			   "prune none\n"
			   "fsck yes\n"
			   "bounds seq-1\n"
			   "hash 0123\n"
			   "limit 12\n"
			   "seed 7\n"
			   "workloads 12\n"
			   "keep all\n";

static int parse(const char *text, struct plan *p, struct err *err)
{
	err_clear(err);
	return case_plan_parse(&plan_kept, text, strlen(text), "run", p, err);
}

static void test_plan(void)
{
	struct plan p;
	struct run_opts opts;
	struct err err = ERR_INIT;
	auto_strbuf text = STRBUF_INIT;

	is_i(parse(good, &p, &err), 0, "a plan is read");
	record_print(&plan_record, &p, &text);
	is_s(strbuf_str(&text), good, "and printed as it was");
	plan_run_opts(&p, &opts);
	ok(opts.modes == (RUN_PREFIX | RUN_REORDER) && opts.max_subset == 3 && opts.vary_all &&
		   opts.fsck && !opts.paranoid && opts.seed == 7 &&
		   streq(opts.guarantee->name, "linux"),
	   "its options are those of the run");
	is_u(p.keep, UINT64_MAX, "all are kept");
	plan_release(&p);
}

/* Of --budget with --crash reorder. */
static void test_budget(void)
{
	static const struct {
		const char *given;
		uint64_t want;
	} cases[] = { { NULL, 200 }, { "0", 0 }, { "7", 7 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		struct plan p;

		plan_init(&p);
		p.kernel = xstrdup("6.1");
		int rc = plan_set(&p, "target", "ext4", &err);
		if (!rc)
			rc = plan_set(&p, "crash", "reorder", &err);
		if (!rc && cases[i].given)
			rc = plan_set(&p, "budget", cases[i].given, &err);
		if (!rc)
			rc = plan_complete(&p, &err);
		ok(!rc && p.crash.budget == cases[i].want, "--budget %s is %llu",
		   cases[i].given ? cases[i].given : "left out", llu(p.crash.budget));
		plan_release(&p);
	}
}

static void test_plan_refused(void)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{ "outage-test-run 2", "outage-run 1", "run was made by an earlier version" },
		{ "outage-test-run 2", "outage-app-run 2", "run:1: it is of another kind" },
		{ "seed 7", "seed seven", "run:14:" },
		{ "seed 7", "sed 7", "'sed' is no key" },
		{ "seed 7", "seed 7\nseed 8", "run:15: seed is there twice" },
		{ "seed 7", "seed", "seed has no value" },
		{ "guarantee linux", "guarantee firm", "run:5:" },
		{ "crash prefix", "crash sideways", "run:6:" },
		{ "ext4,", "reiserfs5,", "no target" },
		{ "workloads 12\n", "", "is missing" },
		{ "hash 0123\n", "", "is missing" },
		{ "bounds seq-1\n", "", "either bounds or files" },
		{ "bounds seq-1\n", "bounds seq-1\nfile /x\n", "either bounds or files" },
		{ "keep all", "keep some", "--keep" },
		{ "prune none", "prune much", "prune is one of" },
		{ "fsck yes", "fsck perhaps", "fsck is yes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *at = strstr(good, cases[i].from);
		struct plan p;
		struct err err = ERR_INIT;
		auto_free char *text = xasprintf("%.*s%s%s", (int)(at - good), good, cases[i].to,
						 at + strlen(cases[i].from));
		int rc = parse(text, &p, &err);

		ok(rc < 0 && strstr(err.msg, cases[i].says), "%zu: refused: %s", i, err.msg);
	}
	struct plan p;
	struct err err = ERR_INIT;
	is_i(case_plan_parse(&plan_kept, "outage-test-run 2\nversion 0.1.0\n\0x", 34, "run", &p,
			     &err),
	     -EINVAL, "a NUL is refused");
}

/* Whatever is done to the text, reading it does no harm, and what is accepted is whole. */
static void test_plan_harm(void)
{
	struct rng rng;
	unsigned accepted = 0, partly = 0;

	rng_init(&rng, 1);
	for (unsigned i = 0; i < 20000; i++) {
		auto_free char *text = xstrdup(good);
		struct plan p;
		struct err err = ERR_INIT;

		for (uint64_t k = rng_below(&rng, 4) + 1; k; k--)
			text[rng_below(&rng, sizeof(good) - 1)] = (char)rng_below(&rng, 256);
		if (case_plan_parse(&plan_kept, text, sizeof(good) - 1, "run", &p, &err))
			continue;
		accepted++;
		partly += !p.target || !p.kernel || !p.hash || !guarantee_find(p.guarantee);
		plan_release(&p);
	}
	ok(accepted > 0 && !partly, "of 20000 damaged plans %u are accepted, none by half",
	   accepted);
}

static void test_agrees(void)
{
	struct plan saved, given;
	struct err err = ERR_INIT;

	plan_init(&given);
	is_i(parse(good, &saved, &err), 0, "a saved plan");
	is_i(given_agree(&plan_record, &saved, &given, given.given, &err), 0,
	     "what is not given agrees");
	is_i(plan_set(&given, "seed", "7", &err), 0, "the same seed is given");
	is_i(plan_set(&given, "bounds", "seq-1", &err), 0, "and the same bounds");
	is_i(given_agree(&plan_record, &saved, &given, given.given, &err), 0, "that agrees, too");
	is_i(plan_set(&given, "budget", "5", &err), 0, "another budget");
	is_i(given_agree(&plan_record, &saved, &given, given.given, &err), -EINVAL,
	     "does not agree");
	ok(strstr(err.msg, "--budget 200") && strstr(err.msg, "with 5"), "and is named: %s",
	   err.msg);
	err_clear(&err);
	is_i(plan_set(&given, "mkfs", "a\nb", &err), -EINVAL, "a line end cannot be kept");
	plan_release(&saved);
	plan_release(&given);
}

/* ---- progress ---- */

enum { TOTAL = 40 };

static void add(struct progress *p, uint64_t number, uint64_t findings)
{
	struct progress_record r = { .number = number };
	struct progress_cluster c = { .kinds = 8, .count = findings, .kept = findings ? 1 : 0 };
	struct err err = ERR_INIT;

	snprintf(c.name, sizeof(c.name), "missing: creat%s", number % 2 ? " fsync" : "");
	snprintf(c.words, sizeof(c.words), "a\tb\nc");
	r.totals = (struct run_totals){ .workloads = 1,
					.crash_states = 3,
					.unique_states = 2,
					.findings = findings,
					.suppressed = number == 4,
					.left_out = 0.5,
					.budget_hit = number == 3 };
	if (findings)
		vec_push(&r.clusters, c);
	if (progress_add(p, &r, &err))
		printf("# %s\n", err.msg);
	vec_release(&r.clusters);
}

static void write_some(struct progress *p)
{
	static const uint64_t order[] = { 0, 2, 1, 5, 4, 3, 9, 7, 8, 20 };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		add(p, order[i], order[i] % 3);
}

static void test_progress(void)
{
	struct progress p, q;
	struct err err = ERR_INIT;

	is_i(progress_create(dir, TOTAL, &p, &err), 0, "a record begins");
	write_some(&p);
	is_i(progress_load(dir, TOTAL, &q, &err), 0, "it is read while it is written");
	ok(q.done == 10 && q.totals.workloads == 10 && q.totals.crash_states == 30 &&
		   q.totals.unique_states == 20 && q.totals.findings == p.totals.findings &&
		   q.totals.suppressed == 1 && q.totals.budget_hit && q.totals.left_out == 5,
	   "the totals are those of all");
	ok(q.clusters.n == 2 && q.clusters.v[0].count + q.clusters.v[1].count == q.totals.findings,
	   "and so are the clusters");
	is_s(q.clusters.v[0].words, "a b c", "words are one line");
	bool right = true;
	for (uint64_t i = 0; i < TOTAL; i++)
		right &= progress_has(&q, i) == (i <= 5 || (i >= 7 && i <= 9) || i == 20);
	ok(right, "it knows which are done");
	is_u(q.spans.n, 3, "in as few spans as there are");
	progress_release(&q);
	progress_release(&p);
	is_i(progress_create(dir, TOTAL, &q, &err), -EEXIST, "there is one already");
}

/* Cut anywhere, what was whole before still counts, and one can go on. */
static void test_progress_cut(void)
{
	auto_free char *path = xasprintf("%s/progress", dir);
	auto_strbuf whole = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct progress p;
	bool right = true;
	uint64_t last = 0;

	ok(io_slurp(path, 1 << 20, &whole, &err) == 0, "the record is read");
	for (size_t len = 0; len <= whole.len; len++) {
		auto_fd fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		right &= io_write_full(fd, whole.buf, len) == 0;
		right &= progress_resume(dir, TOTAL, &p, &err) == 0;
		right &= p.done >= last && p.done <= last + 1 && p.totals.workloads == p.done;
		last = p.done;
		add(&p, 39, 0);
		progress_release(&p);
		right &= progress_load(dir, TOTAL, &p, &err) == 0 && p.done == last + 1 &&
			 progress_has(&p, 39);
		progress_release(&p);
	}
	ok(right, "cut after any of %zu bytes, no record is lost but the last", whole.len);
	is_u(last, 10, "and in the end all count");
	right = true;
	for (size_t i = sizeof("outage-progress 2"); i < whole.len; i++) {
		auto_free char *bad = xmemdupz(whole.buf, whole.len);
		auto_fd fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		bad[i] ^= 1;
		right &= io_write_full(fd, bad, whole.len) == 0;
		right &= progress_load(dir, TOTAL, &p, &err) == 0 && p.done < 10;
		progress_release(&p);
	}
	ok(right, "a byte that was changed is noticed, wherever it is");
}

static void test_progress_refused(void)
{
	auto_free char *path = xasprintf("%s/progress", dir);
	auto_strbuf one = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct progress p;

	unlink(path);
	ok(progress_create(dir, TOTAL, &p, &err) == 0, "a new record");
	add(&p, 30, 1);
	progress_release(&p);
	is_i(progress_load(dir, 30, &p, &err), -EINVAL, "a number that cannot be is refused");
	err_clear(&err);
	ok(io_slurp(path, 1 << 20, &one, &err) == 0, "its text");
	const char *record = one.buf + sizeof("outage-progress 2");
	auto_fd fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	ok(io_write_full(fd, record, strlen(record)) == 0, "the same record again");
	is_i(progress_load(dir, TOTAL, &p, &err), -EINVAL, "is refused");
	ok(strstr(err.msg, "workload 30 twice"), "and named: %s", err.msg);
}

/* ---- suppressions ---- */

static const char rules[] = "# known\n"
			    "\n"
			    "missing: * fsync rename fsync @ btrfs* # since 2014\n"
			    "*: creat fsync @ ext4,barrier=0\n"
			    "  size :  dwrite *  \n";

static void test_suppress(void)
{
	static const struct {
		const char *target, *cluster;
		bool named;
	} cases[] = {
		{ "btrfs", "missing: write fsync rename fsync", true },
		{ "btrfs,compress", "missing: link mkdir fsync rename fsync", true },
		{ "btrfs", "lost: write fsync rename fsync", false },
		{ "btrfs", "missing: write fdatasync rename fsync", false },
		{ "btrfs", "missing: write fsync rename fsync unlink", false },
		{ "ext4", "missing: write fsync rename fsync", false },
		{ "ext4,barrier=0", "size: creat fsync", true },
		{ "ext4", "size: creat fsync", false },
		{ "ext4", "size: dwrite fsync", true },
		{ "xfs", "content: dwrite fsync", false },
		{ "xfs", "size: dwrite", false },
	};
	struct suppress s = { 0 };
	struct err err = ERR_INIT;
	auto_strbuf text = STRBUF_INIT;

	is_i(suppress_parse(&s, rules, strlen(rules), "known", &err), 0, "rules are read");
	is_u(s.rules.n, 3, "three of them");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ok(suppress_names(&s, cases[i].target, cases[i].cluster) == cases[i].named,
		   "%s on %s is %snamed", cases[i].cluster, cases[i].target,
		   cases[i].named ? "" : "not ");
	suppress_print(&s, &text);
	is_s(strbuf_str(&text),
	     "missing: * fsync rename fsync @ btrfs* # since 2014\n"
	     "*: creat fsync @ ext4,barrier=0\n"
	     "size: dwrite *\n",
	     "and printed");
	suppress_release(&s);
	ok(!suppress_names(&s, "ext4", "size: dwrite fsync"), "without rules nothing is named");
}

static void test_suppress_refused(void)
{
	static const char *const bad[] = { "\nmising: *", "\nmissing *",
					   "\nmissing:", "\nmissing: * @ # why" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct suppress s = { .is_kind = finding_kind_known };
		struct err err = ERR_INIT;
		int rc = suppress_parse(&s, bad[i], strlen(bad[i]), "known", &err);

		ok(rc == -EINVAL && strncmp(err.msg, "known:2: ", 9) == 0, "refused: %s", err.msg);
		suppress_release(&s);
	}
}

/* ---- what was kept of workloads that are not done ---- */

static void add_case(const char *run, const char *name, const char *state)
{
	auto_free char *path = xasprintf("%s/findings/%s", run, name);
	auto_free char *text = xasprintf(CASE_HEAD
					 "target ext4\nguarantee linux\nstate %s\nbase base.img\n"
					 "size 65536\n",
					 state);

	mkdir(path, 0777);
	write_text(path, "problems", "missing\tfoo\tfoo: is missing\t\n");
	write_text(path, "workload", "creat foo\nfsync foo\n");
	write_text(path, "case", text);
}

static uint64_t next(struct earlier *e, const char *id, uint64_t *counter, bool same)
{
	bool got;
	uint64_t number = earlier_number(e, 5, "missing: creat fsync", id, counter, &got);

	ok(got == same, "%s is %s", id, same ? "an earlier one" : "a new one");
	return number;
}

static void test_earlier(void)
{
	static const char *const no_cases[] = { "5-3", "notes", "6-0-mine" };
	auto_free char *findings = xasprintf("%s/findings", dir);
	struct progress p = { .fd = -1 };
	struct earlier e = { 0 };
	struct err err = ERR_INIT;
	uint64_t counter = 0;

	mkdir(findings, 0777);
	add_case(dir, "4-0", "0.1");
	add_case(dir, "5-0", "0.1");
	add_case(dir, "5-2", "0.2\nmedia poison:4096");
	add_case(dir, "17-2", "0.2");
	for (size_t i = 0; i < ARRAY_SIZE(no_cases); i++) {
		auto_free char *path = xasprintf("%s/%s", findings, no_cases[i]);

		mkdir(path, 0777);
	}
	vec_push(&p.spans, (struct progress_span){ 0, 5 });
	is_i(case_sweep(dir, &err), 0, "what is not complete is removed");
	is_i(earlier_load(dir, &p, &e, &err), 0, "what was kept is read");
	if (!ok(e.n == 4 && e.v[0].id && e.v[1].id && !e.v[2].id && e.v[3].workload == 17,
		"of workloads that are not done, also what is no case"))
		return;
	is_s(e.v[0].what.name, "missing: creat fsync", "with its cluster");
	ok(e.v[0].what.count == 1 && e.v[0].what.kept == 1 &&
		   e.v[0].what.kinds == 1U << FINDING_MISSING,
	   "and what counts");
	is_u(next(&e, "0.7", &counter, false), 1, "a number that none has");
	is_u(next(&e, "0.1", &counter, true), 0, "the number of the same one");
	is_u(next(&e, "0.1", &counter, false), 4, "which it has once");
	is_u(next(&e, "0.2", &counter, false), 5, "without the fault of the media it is another");
	is_u(next(&e, "0.2 poison:4096", &counter, true), 2, "with it, the same");
	is_u(next(&e, "0.9", &counter, false), 6, "those after it go on");
	earlier_again(&e, 17, 2);
	ok(e.v[3].again && !e.v[2].again, "another process tells that it was found again");
	earlier_release(&e);
	counter = 0;
	is_u(next(&e, "0.1", &counter, false), 0, "of a run that was not interrupted, the first");
	is_u(next(&e, "0.1", &counter, false), 1, "and the second");
	vec_release(&p.spans);
}

/* Whatever leads out of the run is not read, and stays as it is. */
static void test_earlier_links(void)
{
	auto_free char *run = xasprintf("%s/links", dir);
	auto_free char *outside = xasprintf("%s/outside", dir);
	auto_free char *findings = xasprintf("%s/findings", run);
	auto_free char *link = xasprintf("%s/7-0", findings);
	auto_free char *theirs = xasprintf("%s/findings", outside);
	struct progress p = { .fd = -1 };
	struct earlier e = { 0 };
	struct err err = ERR_INIT;

	mkdir(run, 0777);
	mkdir(outside, 0777);
	mkdir(findings, 0777);
	mkdir(theirs, 0777);
	add_case(outside, "9-0", "0.1");
	ok(symlink("../../outside/findings/9-0", link) == 0, "a link out of a run");
	is_i(earlier_load(run, &p, &e, &err), 0, "the others are read");
	ok(e.n == 1 && !e.v[0].id, "what the link leads to is not");
	earlier_release(&e);
	unlink(link);
	rmdir(findings);
	ok(symlink(theirs, findings) == 0, "all findings are elsewhere");
	ok(earlier_load(run, &p, &e, &err) < 0 && strstr(err.msg, "symbolic link"),
	   "then it is refused: %s", err.msg);
}

/* ---- the store ---- */

/* A worker keeps its own base image, whatever others left. */
static void test_bases(void)
{
	auto_free char *run = xasprintf("%s/bases", dir);
	auto_free char *link = xasprintf("%s/base-6.img", run);

	mkdir(run, 0777);
	is_u(store_next_base(run), 0, "a new run begins with base 0");
	write_text(run, "base-1.img", "of the second worker");
	is_u(store_next_base(run), 2, "a number below one in use is not taken");
	write_text(run, "base-3.img.tmp", "");
	write_text(run, "base--7.img", "");
	write_text(run, "base-99999999999.img", "");
	write_text(run, "xbase-8.img", "");
	is_u(store_next_base(run), 2, "other names are no numbers");
	ok(symlink("/nowhere", link) == 0, "a link that leads nowhere");
	is_u(store_next_base(run), 7, "is a number in use");
}

static void test_cluster(void)
{
	auto_workload w;
	struct err err = ERR_INIT;

	workload_init(&w);
	ok(!workload_add_line(&w, "creat foo", &err) && !workload_add_line(&w, "fsync foo", &err),
	   "a workload");
	auto_free char *name = store_cluster(FINDING_LOST, &w, RUN_NO_OPERATION);
	is_s(name, "lost: creat fsync", "its cluster");
	auto_free char *blamed = store_cluster(FINDING_LOST, &w, 1);
	is_s(blamed, "lost: fsync", "one operation is blamed");
	ok(!workload_add_line(&w, "setup creat bar", &err), "something is prepared");
	auto_free char *prepared = store_cluster(FINDING_LOST, &w, RUN_NO_OPERATION);
	is_s(prepared, name, "which does not name it");
	for (int i = 0; i < 100; i++)
		if (workload_add_line(&w, "fsync foo", &err))
			break;
	auto_free char *one = store_cluster(FINDING_LOST, &w, RUN_NO_OPERATION);
	ok(!workload_add_line(&w, "fsync foo", &err), "one more");
	auto_free char *two = store_cluster(FINDING_LOST, &w, RUN_NO_OPERATION);
	ok(strlen(one) < CLUSTER_MAX && strlen(two) < CLUSTER_MAX && !streq(one, two),
	   "a long one is cut, and still its own");
}

/* ---- a second crash ---- */

/* A trace of one write, and the id of the state in which it survived. */
static char *one_write(const char *path, const struct image *base, uint64_t addr, const char *page,
		       struct image *after)
{
	auto_trace t;
	struct crash_opts opts = CRASH_OPTS_INIT;
	auto_crash_state state = CRASH_STATE_INIT;
	auto_crash e = NULL;
	struct err err = ERR_INIT;
	char byte, *id = NULL;

	trace_init(&t);
	t.info.size = 65536;
	t.info.sector_size = 512;
	trace_write(&t, addr, page, 4096, 0);
	uint64_t end = t.events.n;
	opts.base = base;
	opts.points = &end;
	opts.n_points = 1;
	opts.layers = CRASH_WITH_WHOLE;
	if (trace_save(path, &t, &err) || crash_new(&t, &opts, &e, &err))
		printf("# %s\n", err.msg);
	while (e && crash_next(e, &state)) {
		image_read(&state.image, addr, &byte, 1);
		if (byte != page[0])
			continue;
		free(id);
		id = xstrdup(strbuf_str(&state.id));
		image_release(after);
		image_snapshot(&state.image, after);
	}
	return id;
}

static void test_second(void)
{
	auto_free char *where = xasprintf("%s/second", dir);
	auto_free char *trace = xasprintf("%s/trace", where);
	auto_free char *recovery = xasprintf("%s/recovery", where);
	auto_free char *base_path = xasprintf("%s/base.img", where);
	auto_image base = IMAGE_INIT, first = IMAGE_INIT, both = IMAGE_INIT;
	struct stored_case c;
	auto_crash_state state = CRASH_STATE_INIT;
	struct err err = ERR_INIT;
	char page[4096];
	const char *second;

	mkdir(where, 0777);
	image_init(&base, 65536);
	ok(image_save_file(&base, base_path, &err) == 0, "a disk");
	memset(page, 'a', sizeof(page));
	auto_free char *id = one_write(trace, &base, 0, page, &first);
	memset(page, 'b', sizeof(page));
	auto_free char *other = one_write(recovery, &first, 8192, page, &both);
	auto_free char *text =
		xasprintf(CASE_HEAD "target ext4\nguarantee linux\nstate %s/%s\nbase base.img\n"
				    "size 65536\ncrash reorder,recovery\nmax-subset 4\n"
				    "budget 77\nseed 5\nprune none\nlose-flush 2\nmedia-max 4\n",
			  id, other);
	write_text(where, "case", text);
	write_text(where, "problems", "missing\tfoo\tfoo: is missing\t\n");
	write_text(where, "workload", "creat foo\nfsync foo\n");
	if (!ok(store_load(where, &c, &err) == 0, "a case with two crashes is read"))
		return;
	auto_free char *got = stored_case_state(&c, &second);
	is_s(got, id, "it has the first state");
	is_s(second, other, "and the second");
	is_i(replay_state(&c, &state, &err), 0, "the disk is rebuilt");
	ok(hash_eq(image_hash(&state.image), image_hash(&both)) &&
		   !hash_eq(image_hash(&both), image_hash(&first)),
	   "as the second crash left it");
	struct run_opts opts;
	is_i(replay_opts(&c, &opts, &err), 0, "its options");
	ok(opts.modes == (RUN_REORDER | RUN_RECOVERY) && opts.max_subset == 4 &&
		   opts.budget == 77 && opts.seed == 5 && opts.vary_all && opts.lose_flush == 2 &&
		   opts.media_max == 4,
	   "are those of the run that found it");
	c.budget = 0;
	is_i(replay_opts(&c, &opts, &err), 0, "of a run without a budget");
	is_u(opts.budget, 0, "none is its limit");
	unlink(recovery);
	crash_state_release(&state);
	state = (struct crash_state)CRASH_STATE_INIT;
	ok(replay_state(&c, &state, &err) < 0, "without the recovery it cannot be");
	stored_case_release(&c);
}

/* ---- what comes from others ---- */

static const char a_case[] = CASE_HEAD
	"target ext4\nguarantee linux\nstate live\nbase %s\nsize 65536\n%s";

static int load_with(const char *where, const char *base, const char *more, struct stored_case *c,
		     struct err *err)
{
	auto_free char *text = xasprintf(a_case, base, more);

	err_clear(err);
	write_text(where, "case", text);
	return store_load(where, c, err);
}

static void make_case(const char *where)
{
	mkdir(where, 0755);
	chmod(where, 0755);
	write_text(where, "problems", "missing\tfoo\tfoo: is missing\t\n");
	write_text(where, "workload", "creat foo\nfsync foo\n");
}

static void test_base_paths(void)
{
	static const char *const fine[] = { "base.img", "../../base-0.img", "../../base-12.img",
					    "none" };
	static const char *const bad[] = {
		"/dev/sda",	   "../base.img",	"../../../base-0.img",
		"../../base-.img", "../../base-0.imgx", "../../base-1/../x.img",
		"base-0.img",	   "../../base--1.img"
	};
	auto_free char *where = xasprintf("%s/paths", dir);
	struct stored_case c;
	struct err err = ERR_INIT;

	make_case(where);
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		is_i(load_with(where, fine[i], "", &c, &err), 0, "base %s", fine[i]);
		stored_case_release(&c);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ok(load_with(where, bad[i], "", &c, &err) == -EINVAL && strstr(err.msg, bad[i]),
		   "refused: %s", err.msg);
}

/* A pipe in place of a file would be waited for; an alarm ends the test if it is. */
static void test_pipes(void)
{
	static const char *const of_case[] = { "case",	"problems", "workload",
					       "trace", "recovery", "base.img" };
	auto_free char *where = xasprintf("%s/pipes", dir);
	struct stored_case c;
	struct plan plan;
	struct progress progress;
	struct suppress s = { 0 };
	struct err err = ERR_INIT;

	make_case(where);
	alarm(600);
	for (size_t i = 0; i < ARRAY_SIZE(of_case); i++) {
		auto_free char *path = xasprintf("%s/%s", where, of_case[i]);

		unlink(path);
		ok(mkfifo(path, 0600) == 0 || i == 0, "a pipe %s", of_case[i]);
		int rc = i ? load_with(where, "base.img", "", &c, &err)
			   : store_load(where, &c, &err);
		ok(rc == -EINVAL && strstr(err.msg, "not a regular file"), "refused: %s", err.msg);
		err_clear(&err);
		unlink(path);
		make_case(where);
	}
	static const char *const of_run[] = { "run", "progress", "suppressions" };
	for (size_t i = 0; i < ARRAY_SIZE(of_run); i++) {
		auto_free char *path = xasprintf("%s/%s", where, of_run[i]);

		ok(mkfifo(path, 0600) == 0, "a pipe %s", of_run[i]);
	}
	ok(case_plan_load(&plan_kept, where, &plan, &err) == -EINVAL, "refused: %s", err.msg);
	err_clear(&err);
	ok(progress_load(where, TOTAL, &progress, &err) == -EINVAL, "refused: %s", err.msg);
	err_clear(&err);
	ok(progress_resume(where, TOTAL, &progress, &err) == -EINVAL, "refused: %s", err.msg);
	err_clear(&err);
	ok(suppress_load_saved(&s, where, &err) == -EINVAL, "refused: %s", err.msg);
	alarm(0);
}

/* Who goes on with a run does not cut what a link leads to; and no line is read without end. */
static void test_progress_hostile(void)
{
	auto_free char *where = xasprintf("%s/hostile", dir);
	auto_free char *path = xasprintf("%s/progress", where);
	auto_free char *line = xmalloc(100001);
	auto_strbuf text = STRBUF_INIT;
	struct progress p;
	struct err err = ERR_INIT;

	mkdir(where, 0755);
	write_text(where, "short", "mine\n");
	ok(symlink("short", path) == 0, "the record is a link");
	ok(progress_resume(where, TOTAL, &p, &err) < 0, "it is not gone on with: %s", err.msg);
	err_clear(&err);
	ok(!io_slurp_file(where, "short", 100, &text, &err) && streq(text.buf, "mine\n"),
	   "and what it leads to is as it was");
	unlink(path);
	memset(line, 'x', 100000);
	line[100000] = '\0';
	auto_free char *long_one = xasprintf("outage-progress 2\nfound %s\ndone 1\n", line);
	write_text(where, "progress", long_one);
	ok(progress_load(where, TOTAL, &p, &err) == 0 && p.done == 0,
	   "a line that is too long ends it");
	progress_release(&p);
}

int main(void)
{
	umask(022);
	if (!mkdtemp(dir))
		return 1;
	test_plan();
	test_budget();
	test_plan_refused();
	test_plan_harm();
	test_agrees();
	test_progress();
	test_progress_cut();
	test_progress_refused();
	test_suppress();
	test_suppress_refused();
	test_earlier();
	test_earlier_links();
	test_bases();
	test_cluster();
	test_second();
	test_base_paths();
	test_pipes();
	test_progress_hostile();
	auto_free char *command = xasprintf("rm -rf %s", dir);
	if (system(command))
		printf("# %s is left\n", dir);
	return done_testing();
}
