/* SPDX-License-Identifier: MIT */
/* A worker whose guest starts in the middle of a workload does not hang, however long that takes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "record/disk_impl.h"
#include "run/workers.h"
#include "tap.h"

/* A start takes longer than a hang; one that says nothing sleeps until it is ended. */
enum { HANG_MS = 4000, HANG_MAX_MS = 64000, STARTS_TIMES = 3, SILENT_MS = 900000, NAP_MS = 50 };

static char home[] = "/tmp/outage-run-starts.XXXXXX";
static bool tells; /* whether it says that it starts */
static unsigned hang_ms;

static int start_and_mount(struct target *t, struct strbuf *said, struct err *err)
{
	unsigned most = tells ? STARTS_TIMES * hang_ms : SILENT_MS;

	for (unsigned ms = 0; t->disk->trace && ms < most; ms += NAP_MS) {
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
	printf("# found %s\n", f->what.words);
	*hangs += f->kind == FINDING_HANG;
}

static void on_failed(void *ctx, const char *words)
{
	(void)ctx;
	printf("# failed: %s\n", words);
}

/* How often something hangs in a run in the directory. */
static unsigned hangs_in(const char *dir)
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
				     .hang_ms = hang_ms,
				     .dir = dir,
				     .suppress = &none,
				     .earlier = &earlier,
				     .progress = &progress,
				     .ctx = &hangs,
				     .found = on_found,
				     .failed = on_failed };
	is_i(workers_run(&opts, &result, &err), 0, "it runs: %s", err.msg);
	is_u(result.totals.workloads, 1, "the workload");
	progress_release(&progress);
	supply_release(&source);
	return hangs;
}

/* On a busy machine other things are slow, too: then all gets more time. */
static void test_start(unsigned want, const char *what)
{
	unsigned hangs = want + 1;

	for (hang_ms = HANG_MS; hangs != want && hang_ms <= HANG_MAX_MS; hang_ms *= 4) {
		auto_free char *dir = xasprintf("run-%d-%u", want, hang_ms),
			       *make = xasprintf("mkdir -p %s/findings", dir);

		hangs = system(make) ? want + 1 : hangs_in(dir);
	}
	is_u(hangs, want, "%s", what);
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
	    system("echo creat foo >workload"))
		return 1;
	tells = true;
	test_start(0, "a guest that starts does not hang");
	tells = false;
	test_start(1, "who says nothing for so long does");
	if (system("rm -rf run-* outage workload") || chdir("/") || rmdir(home))
		return 1;
	return done_testing();
}
