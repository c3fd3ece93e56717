/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says of the file system that power is cut from, before any power was cut, is
 * found: the ones that are compared step by step are others, and may have nothing to say.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/below.h"
#include "explore/explore.h"
#include "record/disk_impl.h"
#include "tap.h"

static const char bug[] = "BUG: unable to do what a test asks for";
static char home[] = "/tmp/outage-explore-crash.XXXXXX";

/* Of those that are compared, nothing is recorded. */
static int complain_umount(struct target *t, bool clean, struct err *err)
{
	if (t->disk->trace)
		strbuf_addf(&t->complaints, "%s\n", bug);
	return target_skeleton.umount(t, clean, err);
}

static struct {
	unsigned found, failed;
	char dir[300];
} told;

static void on_found(void *ctx, const char *words, const char *dir, size_t ops)
{
	(void)ctx;
	printf("# found %s in %s, %zu operations\n", words, dir, ops);
	if (strstr(words, bug)) {
		told.found++;
		snprintf(told.dir, sizeof(told.dir), "%s", dir);
	}
}

static void on_failed(void *ctx, const char *words)
{
	(void)ctx;
	told.failed++;
	printf("# failed: %s\n", words);
}

static void on_noted(void *ctx, const char *words)
{
	(void)ctx;
	printf("# %s\n", words);
}

static void test_kernel_log(const struct inputs *in)
{
	struct explore_opts o = { .specs = { "complains", "reffs" },
				  .n_specs = 2,
				  .search = { .order = SEARCH_WALK, .seed = 1, .depth = 20 },
				  .inputs = in,
				  .jobs = 1,
				  .memory = 1 << 20,
				  .operations = 2000,
				  .max_cases = 1,
				  .crash_every = 1,
				  .dir = "run",
				  .found = on_found,
				  .failed = on_failed,
				  .noted = on_noted,
				  .warned = on_noted };
	struct explore_result *result = xcalloc(1, sizeof(*result));
	struct err err = ERR_INIT;

	is_i(explore_run(&o, result, &err), 0, "it explores: %s", err.msg);
	is_u(told.failed, 0, "nothing fails");
	is_u(told.found, 1, "what the kernel says is told");
	is_u(result->findings, 1, "and counted");
	ok(*told.dir && below_exists(told.dir, "kernel-log") && below_exists(told.dir, "case"),
	   "and kept");
	free(result);
}

int main(void)
{
	static const char world[] = "names files 2\nnames dirs 1\nnames depth 1\n"
				    "only creat fsync sync\n";
	struct target_ops ops = target_skeleton;
	struct target_opts opts = { .spec = "complains" };
	struct target t;
	struct inputs in;
	struct err err = ERR_INIT;

	ops.name = "complains";
	ops.umount = complain_umount;
	if (geteuid() || target_open_as(&ops, &opts, &t, &err)) {
		skip("mounting needs root, and a disk");
		return done_testing();
	}
	target_close(&t);
	target_register(&ops);
	inputs_init(&in);
	if (!mkdtemp(home) || chdir(home) || setenv("XDG_STATE_HOME", home, 1) ||
	    system("mkdir -p run/findings"))
		return 1;
	ok(!inputs_parse(&in, world, strlen(world), "text", &err) && !inputs_finish(&in, &err),
	   "a small world: %s", err.msg);
	test_kernel_log(&in);
	inputs_release(&in);
	if (system("rm -rf run outage") || chdir("/") || rmdir(home))
		return 1;
	return done_testing();
}
