/* SPDX-License-Identifier: MIT */
/*
 * run-durable.c - a run that is killed at any point: what is counted is there, whole, and going on
 * with the run completes it.
 *
 *	run-durable keep DIR	makes the run DIR, or goes on with it, and tells which findings are
 *counted run-durable check DIR	0 if what is there is sound, as a crash of the machine may leave it,
 *				and has what the file $OUTAGE_ACKED says was counted
 */
#include "tap.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "run/plan.h"
#include "run/progress.h"
#include "run/store.h"

enum { WORKLOADS = 3 };

static bool tells;
static char home[] = "/tmp/outage-durable-XXXXXX";

/* ---- a run, without a target ---- */

static const char plan_text[] =
	"outage-test-run 2\nversion 0.1.0\ntarget ext4\nkernel 6.1\nguarantee linux\n"
	"bounds seq-1\nhash 0123\nworkloads 3\nkeep all\n";

/* Finds something in each workload but the first, as the parent of workers keeps it. */
static int do_workload(const char *run, uint64_t number, const struct run_opts *opts,
		       struct progress *p, struct err *err)
{
	struct progress_record r = { .number = number, .totals = { .workloads = 1 } };
	struct progress_cluster c = { .name = "hang: creat",
				      .words = "it hangs",
				      .count = 1,
				      .kept = 1,
				      .kinds = 1U << FINDING_HANG };
	struct store_place at = { .run = run, .workload = number };
	auto_workload w;
	int rc = 0;

	workload_init(&w);
	if (number) {
		struct store_hang h = { &w, "it hangs", "creating", "all that is said\n", 1000 };
		const char text[] = "workload w\ncreat foo\n";

		rc = workload_parse(text, strlen(text), "w", &w, err);
		if (!rc)
			rc = store_hang(&at, &h, opts, err);
		r.totals.findings = 1;
		vec_push(&r.clusters, c);
	}
	if (!rc)
		rc = progress_add(p, &r, err);
	vec_release(&r.clusters);
	if (!rc && tells && number)
		printf("%llu\n", (unsigned long long)number);
	fflush(stdout);
	return rc;
}

/* Begins the run, or goes on with it. */
static int begin(const char *dir, char **run, struct plan *plan, struct progress *p,
		 struct err *err)
{
	auto_free char *file = xasprintf("%s/run", dir);

	if (access(file, F_OK) == 0) {
		int rc = case_plan_load(&plan_kept, dir, plan, err);

		*run = xstrdup(dir);
		if (!rc)
			rc = progress_resume(dir, WORKLOADS, p, err);
		return rc ? rc : case_sweep(dir, err);
	}
	int rc = case_plan_parse(&plan_kept, plan_text, strlen(plan_text), "plan", plan, err);
	if (!rc)
		rc = case_create(dir, "ext4", store_made, run, err);
	if (!rc)
		rc = case_plan_save(&plan_kept, dir, plan, err);
	return rc ? rc : progress_create(*run, WORKLOADS, p, err);
}

static int keep(const char *dir, struct err *err)
{
	auto_free char *run = NULL;
	struct plan plan = { 0 };
	struct progress p = { .fd = -1 };
	struct run_opts opts;
	int rc = begin(dir, &run, &plan, &p, err);

	if (!rc)
		plan_run_opts(&plan, &opts);
	for (uint64_t i = 0; i < WORKLOADS && !rc; i++)
		if (!progress_has(&p, i))
			rc = do_workload(dir, i, &opts, &p, err);
	if (!rc)
		rc = progress_sync(&p, err);
	progress_release(&p);
	plan_release(&plan);
	return rc;
}

/* ---- what is there ---- */

static bool is_whole(const char *dir, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;
	struct stored_case c;

	if (store_load(dir, &c, err))
		return false;
	bool whole = store_text(&c, "said", &said, err) == 0 &&
		     streq(strbuf_str(&said), "all that is said\n") && c.hang_after_ms == 1000;
	stored_case_release(&c);
	return whole;
}

/* What is listed is whole; what is counted is listed. `done` gets how many workloads are. */
static bool is_sound(const char *run, uint64_t *done, struct err *err)
{
	auto_words list = { 0 };
	struct progress p = { .fd = -1 };
	struct plan plan = { 0 };
	auto_free char *findings = xasprintf("%s/findings", run);
	bool sound = true;

	*done = 0;
	if (access(findings, F_OK))
		return progress_load(run, WORKLOADS, &p, err) == 0 && !p.done;
	sound = case_list(run, &list, err) == 0 && progress_load(run, WORKLOADS, &p, err) == 0;
	/* Findings without the plan of their run would be lost as well. */
	if (sound && list.n)
		sound = case_plan_load(&plan_kept, run, &plan, err) == 0;
	for (size_t i = 0; i < list.n && sound; i++)
		sound = is_whole(list.v[i], err);
	for (uint64_t i = 1; i < WORKLOADS && sound; i++) {
		auto_free char *name = xasprintf("%s/%llu-0", findings, (unsigned long long)i);

		if (progress_has(&p, i))
			sound = is_whole(name, err);
	}
	*done = p.done;
	if (plan.target)
		plan_release(&plan);
	progress_release(&p);
	return sound;
}

/* A finding of which the user was told. */
static bool has_acked(const char *run, struct err *err)
{
	const char *path = getenv("OUTAGE_ACKED");
	auto_strbuf text = STRBUF_INIT;
	struct progress p = { .fd = -1 };
	bool all = true;

	if (!path || io_slurp(path, 4096, &text, err) || !text.len)
		return true;
	if (progress_load(run, WORKLOADS, &p, err))
		return false;
	char *rest = text.buf;
	for (const char *line; all && (line = strsep(&rest, "\n"));)
		all = !*line || progress_has(&p, (uint64_t)strtoull(line, NULL, 10));
	progress_release(&p);
	return all;
}

/* Names that begin with a dot: what is not complete has one. */
static size_t hidden(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	for (const struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] == '.' && !streq(e->d_name, ".") && !streq(e->d_name, "..");
	if (d)
		closedir(d);
	return n;
}

static size_t left_behind(const char *run)
{
	auto_free char *findings = xasprintf("%s/findings", run);

	return hidden(run) + hidden(findings);
}

/* ---- killed ---- */

/* A child goes on with the run, and is killed at the n-th point; whether it was. */
static bool killed_at(const char *run, int n)
{
	struct err err = ERR_INIT;
	int status = 0;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (n)
			fault_arm(n, FAULT_KILL);
		int rc = keep(run, &err);
		if (rc)
			printf("# %s\n", err.msg);
		fflush(stdout);
		_exit(rc ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		ok(false, "at point %d it ended with %#x", n, (unsigned)status);
	return status != 0;
}

static void test_kills(void)
{
	struct err err = ERR_INIT;
	int unsound = 0, incomplete = 0, leftovers = 0, left = 0, n;
	uint64_t done;

	for (n = 1;; n++) {
		auto_free char *run = xasprintf("%s/run-%d", home, n);
		bool killed = killed_at(run, n);

		if (!is_sound(run, &done, &err)) {
			printf("# killed at point %d: %s\n", n, err.msg);
			unsound++;
			err_clear(&err);
		}
		left += left_behind(run) > 0;
		if (!killed)
			break;
		/* A run without a plan did not begin. */
		auto_free char *plan = xasprintf("%s/run", run);
		if (access(plan, F_OK))
			continue;
		incomplete += killed_at(run, 0) || !is_sound(run, &done, &err) || done != WORKLOADS;
		leftovers += left_behind(run) > 0;
	}
	ok(n > 40 && left > 10, "killed at %d points, something was left at %d", n - 1, left);
	is_i(unsound, 0, "what is counted is there, what is there is whole");
	is_i(incomplete, 0, "and --resume completes it");
	is_i(leftovers, 0, "without what was left");
}

/* A run without a plan did not begin: its user removes it. */
static int forget_unbegun(const char *run)
{
	auto_free char *plan = xasprintf("%s/run", run);
	auto_free char *remove = xasprintf("rm -rf %s", run);

	return access(plan, F_OK) ? system(remove) : 0;
}

/* The same once more while it is resumed. */
static void test_kills_again(void)
{
	int wrong = 0, n;
	uint64_t done = 0;
	struct err err = ERR_INIT;
	auto_free char *run = xasprintf("%s/again", home);

	for (n = 8; killed_at(run, n) && n < 1000; n++)
		wrong += !is_sound(run, &done, &err) || forget_unbegun(run);
	ok(n > 20 && is_sound(run, &done, &err) && done == WORKLOADS && !wrong && !left_behind(run),
	   "killed again and again, it ends at last");
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	uint64_t done;

	if (argc == 3) {
		tells = streq(argv[1], "keep");
		bool good = tells ? keep(argv[2], &err) == 0
				  : is_sound(argv[2], &done, &err) && has_acked(argv[2], &err);

		if (!good)
			printf("%s\n", *err.msg ? err.msg : "something is not whole");
		return !good;
	}
	if (!mkdtemp(home))
		abort();
	test_kills();
	test_kills_again();
	auto_free char *remove = xasprintf("rm -rf %s", home);
	if (system(remove))
		ok(false, "%s is removed", home);
	return done_testing();
}
