/* SPDX-License-Identifier: MIT */
/*
 * bench_explore.c - how fast the model checker is: the reference against itself, in this process;
 * file systems of the kernel by walks and depth first, saved while mounted and, as the ratio that
 * counts, with a mount around every step. Prints "key value" lines. Each measurement is a process
 * of its own. Without root only the first.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explore/explore_search.h"

/*
 * Both strategies do the same operations. A depth-first search begins with a dive in which nothing
 * has to be put back, and some alphabets lead nowhere: these were chosen because the target is put
 * back 0.07 times an operation within so few, which is more often than in a long run (0.04).
 */
enum { SEED = 3, SMALL_ALPHABET = 48, OPERATIONS = 2000 };

struct measure {
	double ops_per_s, ops_per_cpu_s, restores_per_op, bytes_per_state;
};

static double clock_s(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int on_found(void *ctx, struct search *s, const struct script *script,
		    struct step_result *result, struct err *err)
{
	(void)ctx;
	(void)s;
	(void)script;
	(void)err;
	fprintf(stderr, "bench_explore: found %s\n", result->findings.v[0].words);
	return 0;
}

static int run(const char *target, enum search_order order, enum strategy strategy,
	       uint64_t operations, struct measure *out)
{
	const char *specs[] = { target, "reffs" };
	struct side_opts sides = { .strategy = strategy };
	bool walk = order == SEARCH_WALK;
	struct search_opts opts = { .order = order,
				    .seed = SEED,
				    .depth = walk ? 400 : 10,
				    .alphabet = walk ? 0 : SMALL_ALPHABET };
	struct search_progress *progress = xcalloc(1, sizeof(*progress));
	struct stepper st;
	struct inputs in;
	struct visited *v = NULL;
	struct err err = ERR_INIT;

	inputs_init(&in);
	int rc = inputs_finish(&in, &err);
	if (!rc)
		rc = stepper_open(&st, &sides, specs, 2, &err);
	if (!rc)
		rc = visited_open(64 << 20, &v, &err);
	struct search s = { .opts = &opts,
			    .in = &in,
			    .stepper = &st,
			    .visited = v,
			    .progress = progress,
			    .found = on_found,
			    .until = operations };
	double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	if (!rc) {
		search_init(&s);
		rc = search_run(&s, &err);
	}
	if (rc) {
		fprintf(stderr, "bench_explore: %s: %s\n", target, err.msg);
		return 1;
	}
	wall = clock_s(CLOCK_MONOTONIC) - wall;
	cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	double n = (double)st.counts.operations;
	*out = (struct measure){ n / wall, n / cpu, (double)st.sides[0]->counts.restores / n,
				 (double)v->bytes / (double)(v->places / 8 * 7) };
	search_release(&s);
	stepper_close(&st);
	visited_close(v);
	inputs_release(&in);
	free(progress);
	return 0;
}

/* In a process of its own; false if it failed. */
static bool measure(const char *target, enum search_order order, enum strategy strategy,
		    uint64_t operations, struct measure *out)
{
	struct measure *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 1;

	if (shared == MAP_FAILED)
		return false;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(300);
		_exit(run(target, order, strategy, operations, shared));
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	*out = *shared;
	munmap(shared, sizeof(*shared));
	return status == 0;
}

static void compare(const char *target, enum search_order order, const char *name)
{
	struct measure ours, theirs;

	if (!measure(target, order, STRATEGY_SYNC, OPERATIONS, &ours) ||
	    !measure(target, order, STRATEGY_REMOUNT, OPERATIONS, &theirs))
		return;
	printf("explore_%s_%s_ops_per_s %.0f\n", target, name, ours.ops_per_s);
	printf("explore_%s_%s_restores_per_op %.4f\n", target, name, ours.restores_per_op);
	printf("explore_%s_%s_remount_restores_per_op %.4f\n", target, name,
	       theirs.restores_per_op);
	printf("explore_%s_%s_remount_ops_per_s %.0f\n", target, name, theirs.ops_per_s);
	printf("explore_%s_%s_times_remount %.1f\n", target, name,
	       ours.ops_per_s / theirs.ops_per_s);
}

int main(void)
{
	static const char *const kernel[] = { "ext4", "xfs", "btrfs" };
	struct measure m;

	if (measure("reffs", SEARCH_WALK, STRATEGY_SYNC, 300000, &m)) {
		printf("explore_reffs_walk_ops_per_s %.0f\n", m.ops_per_s);
		printf("explore_reffs_walk_ops_per_cpu_s %.0f\n", m.ops_per_cpu_s);
		printf("explore_bytes_per_visited_state %.1f\n", m.bytes_per_state);
	}
	if (geteuid() != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(kernel); i++) {
		compare(kernel[i], SEARCH_WALK, "walk");
		compare(kernel[i], SEARCH_DEPTH, "depth");
	}
	return 0;
}
