/* SPDX-License-Identifier: MIT */
/* A worker whose guest starts in the middle of a workload does not hang, however long that takes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "record/disk_impl.h"
#include "run/workers.h"
#include "tap.h"

/* A start takes longer than a hang; one that says nothing sleeps until it is ended. */
enum { HANG_MS = 4000, START_MS = 10000, SILENT_MS = 900000, NAP_MS = 50 };

static char home[] = "/tmp/outage-run-starts.XXXXXX";
static bool tells; /* whether it says that it starts */

static int start_and_mount(struct target *t, struct strbuf *said, struct err *err)
{
	int most = tells ? START_MS : SILENT_MS;

	for (int ms = 0; t->disk->trace && ms < most; ms += NAP_MS) {
		if (tells && t->opts.starting)
			t->opts.starting(t->opts.starting_ctx);
		util_sleep_ms(NAP_MS);
	}
	return target_skeleton.mount(t, said, err);
}

static void on_found(void *ctx, const struct worker_finding *f, const char *dir)
{
	unsigned *hangs = ctx;

	(void)dir;
	printf("# found %s\n", f->words);
	*hangs += f->kind == FINDING_HANG;
}

static void on_failed(void *ctx, const char *words)
{
	(void)ctx;
	printf("# failed: %s\n", words);
}

static void test_start(const char *dir, unsigned want, const char *what)
{
	struct supply source;
	struct suppress none = { 0 };
	struct earlier earlier = { 0 };
	struct progress progress = { 0 };
	struct workers_result result = { 0 };
	struct err err = ERR_INIT;
	unsigned hangs = 0;

	supply_init(&source);
	ok(!supply_add_path(&source, "workload", &err), "a workload: %s", err.msg);
	ok(!progress_create(dir, supply_count(&source), &progress, &err), "a run: %s", err.msg);
	struct workers_opts opts = { .run = { .target = { .spec = "starts" } },
				     .source = &source,
				     .jobs = 1,
				     .hang_ms = HANG_MS,
				     .dir = dir,
				     .suppress = &none,
				     .earlier = &earlier,
				     .progress = &progress,
				     .ctx = &hangs,
				     .found = on_found,
				     .failed = on_failed };
	is_i(workers_run(&opts, &result, &err), 0, "it runs: %s", err.msg);
	is_u(result.totals.workloads, 1, "the workload");
	is_u(hangs, want, "%s", what);
	progress_release(&progress);
	supply_release(&source);
}

int main(void)
{
	struct target_ops ops = target_skeleton;
	struct target_opts opts = { .spec = "starts" };
	struct target t;
	struct err err = ERR_INIT;

	ops.name = "starts";
	ops.mount = start_and_mount;
	if (geteuid() || target_open_as(&ops, &opts, &t, &err)) {
		skip("mounting needs root, and a disk");
		return done_testing();
	}
	target_close(&t);
	target_register(&ops);
	if (!mkdtemp(home) || chdir(home) || setenv("XDG_STATE_HOME", home, 1) ||
	    system("mkdir -p a/findings b/findings && echo creat foo >workload"))
		return 1;
	tells = true;
	test_start("a", 0, "a guest that starts does not hang");
	tells = false;
	test_start("b", 1, "who says nothing for so long does");
	if (system("rm -rf a b outage workload") || chdir("/") || rmdir(home))
		return 1;
	return done_testing();
}
