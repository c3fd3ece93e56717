/* SPDX-License-Identifier: MIT */
/* cmd_test.c - outage test: workloads, crashes, recovery, check. */
#include <errno.h>
#include <getopt.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "cli/cli.h"
#include "run/store.h"
#include "run/workers.h"
#include "target/tune.h"

static const char usage[] =
	"usage: outage test -t TARGET (--bounds SET|FILE | FILE...) [OPTIONS]\n"
	"       outage test -t help\n"
	"\n"
	"Runs each workload on the target, cuts the power, lets the file system recover, and\n"
	"checks what was promised.\n"
	"\n"
	"  -t, --target TARGET     ext4, xfs, btrfs, ext3, ext2; options for mount after a comma;\n"
	"                          'fuse:COMMAND {disk} {mnt}' for a FUSE server\n"
	"  -b, --bounds SET|FILE   generated workloads (outage gen --list)\n"
	"  FILE                    workloads, j-lang files, directories of them, - for standard "
	"input\n"
	"      --crash MODE,...    persist (default), last, prefix, reorder, torn, recovery\n"
	"      --max-subset K      reorder: at most K writes lost, or surviving; default 2\n"
	"      --torn              the same as --crash reorder,torn\n"
	"      --prune HOW         reads (default): vary only the writes that recovery or the "
	"walk\n"
	"                          reads; none: vary them all\n"
	"      --lose-flush N      judge as if the N-th flush of each workload had not been sent,\n"
	"                          to see that it is noticed\n"
	"      --budget N          crash states of one workload; default 200 for reorder,\n"
	"                          torn and recovery\n"
	"      --guarantee NAME    posix, linux, sync; default: what the target promises\n"
	"      --recorder NAME     bpf or fuse; default: the best that works here\n"
	"      --mkfs ARGS         more arguments for mkfs; for fuse: the command, with {disk}\n"
	"      --recover CMD       fuse: the command that recovers {disk} before it is mounted\n"
	"      --size BYTES        of the disk\n"
	"      --fsck              run the file system's own checker on every state\n"
	"      --paranoid          compare device and record after every run\n"
	"      --skip N, --limit N, --sample N, --seed N   which of the workloads\n"
	"      --time DURATION     stop after that\n"
	"      --tune              while it runs, lower the console's log level and raise the\n"
	"                          priority of kthreadd, on the whole machine\n"
	"  -j, --jobs N            workers; default: two for each processor\n"
	"  -o, --output DIR        where to keep what is found; default: below ./outage-runs\n"
	"      --json              one JSON object on standard output\n"
	"\n"
	"Exit status: 0 nothing was found, 1 something was, 2 it could not be run, or part of it.\n"
	"\n"
	"example: outage test -t ext4 --bounds seq-1\n";

struct cluster {
	char name[160];
	char words[480];
	char dir[256];
	uint64_t count;
};

struct test {
	struct run_opts run;
	struct supply source;
	const char *bounds;
	uint64_t skip, limit, sample, time_ns, jobs;
	const char *output;
	bool json, tune;
	char *dir;
	struct vec_of(struct cluster) clusters;
	bool terminal;
	uint64_t start_ns, shown_ns;
	unsigned errors_shown;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- while it runs ---- */

static void clear_line(const struct test *t)
{
	if (t->terminal)
		fputs("\r\033[K", stderr);
}

static void on_found(void *ctx, const struct worker_finding *f)
{
	struct test *t = ctx;
	struct cluster *c = t->clusters.v;

	while (c < t->clusters.v + t->clusters.n && !streq(c->name, f->cluster))
		c++;
	if (c < t->clusters.v + t->clusters.n) {
		c->count++;
		return;
	}
	struct cluster fresh = { .count = 1 };
	snprintf(fresh.name, sizeof(fresh.name), "%s", f->cluster);
	snprintf(fresh.words, sizeof(fresh.words), "%s", f->words);
	snprintf(fresh.dir, sizeof(fresh.dir), "%s", f->dir);
	vec_push(&t->clusters, fresh);
	clear_line(t);
	if (!t->json)
		printf("found  %s\n       %s\n       %s\n", f->cluster, f->words, f->dir);
	fflush(stdout);
}

static void on_failed(void *ctx, const char *words)
{
	struct test *t = ctx;

	clear_line(t);
	if (t->errors_shown++ < 10)
		fprintf(stderr, "outage: %s\n", words);
}

static void on_progress(void *ctx, const struct run_totals *totals, uint64_t done, uint64_t total)
{
	struct test *t = ctx;
	uint64_t now = now_ns();
	double elapsed = (double)(now - t->start_ns) / 1e9;

	if (!t->terminal || now - t->shown_ns < 200000000)
		return;
	t->shown_ns = now;
	double rate = elapsed > 0 ? (double)done / elapsed : 0;
	fprintf(stderr, "\r\033[K%llu of %llu workloads, %llu states, %zu findings, %.0f/s",
		(unsigned long long)done, (unsigned long long)total,
		(unsigned long long)totals->unique_states, t->clusters.n, rate);
	if (rate > 0)
		fprintf(stderr, ", %.0f s left", (double)(total - done) / rate);
}

/* ---- at the end ---- */

static void print_json(const struct test *t, const struct workers_result *r, double elapsed)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;
	struct utsname u = { 0 };

	uname(&u);
	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "target", t->run.target.spec);
	json_kv_string(&j, "kernel", u.release);
	json_kv_string(&j, "run", t->dir);
	json_kv_uint(&j, "workloads", r->totals.workloads);
	json_kv_uint(&j, "crash_states", r->totals.crash_states);
	json_kv_uint(&j, "unique_states", r->totals.unique_states);
	json_kv_uint(&j, "findings", r->totals.findings);
	json_kv_uint(&j, "clusters", t->clusters.n);
	json_kv_uint(&j, "errors", r->errors);
	json_kv_double(&j, "elapsed_s", elapsed);
	json_kv_bool(&j, "budget_hit", r->totals.budget_hit);
	json_kv_double(&j, "left_out", r->totals.left_out);
	json_kv_uint(&j, "verified", r->totals.verified);
	json_kv_uint(&j, "repeated", r->totals.repeated);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

static void print_summary(const struct test *t, const struct workers_result *r, double elapsed)
{
	const struct run_totals *s = &r->totals;

	printf("%s: %llu workloads, %llu crash states (%llu tried) in %.1f s: %.0f workloads a "
	       "second\n",
	       t->run.target.spec, (unsigned long long)s->workloads,
	       (unsigned long long)s->unique_states, (unsigned long long)s->crash_states, elapsed,
	       elapsed > 0 ? (double)s->workloads / elapsed : 0);
	if (s->budget_hit)
		printf("the budget left out %.3g crash states\n", s->left_out);
	if (r->stopped)
		printf("stopped %s\n", r->signalled ? "by a signal" : "when its time was up");
	if (r->errors)
		printf("%llu errors: part of the run could not be done\n",
		       (unsigned long long)r->errors);
	if (s->findings)
		printf("%llu findings in %zu clusters, kept in %s\n",
		       (unsigned long long)s->findings, t->clusters.n, t->dir);
	else
		printf("nothing found\n");
}

static int finish(struct test *t, const struct workers_result *r)
{
	double elapsed = (double)(now_ns() - t->start_ns) / 1e9;

	clear_line(t);
	if (t->json)
		print_json(t, r, elapsed);
	else
		print_summary(t, r, elapsed);
	if (r->errors || r->signalled)
		return EXIT_FAILED;
	return r->totals.findings ? EXIT_FINDINGS : EXIT_OK;
}

/* A run that never began leaves no directory. */
static void remove_empty(const struct test *t)
{
	auto_free char *findings = xasprintf("%s/findings", t->dir);

	if (rmdir(findings) == 0 && rmdir(t->dir) == 0 && !t->output)
		rmdir("outage-runs"); /* unless others are there */
}

static int run_test(struct test *t)
{
	struct workers_opts opts = { .source = &t->source,
				     .time_ns = t->time_ns,
				     .ctx = t,
				     .found = on_found,
				     .failed = on_failed,
				     .progress = on_progress };
	struct workers_result result;
	struct tune tune = { 0 };
	struct err err = ERR_INIT;
	unsigned removed = 0;
	int rc = store_create(t->output, t->run.target.spec, &t->dir, &err);

	if (rc)
		return cli_fail(&err);
	/* What a killed run left behind; failing to clear it is no reason not to run. */
	struct err ignored = ERR_INIT;
	if (!disk_clean_up(&removed, &ignored) && removed)
		log_info("cleared %u disks that a killed run had left behind", removed);
	opts.run = t->run;
	opts.dir = t->dir;
	opts.jobs = (unsigned)min(t->jobs, (uint64_t)WORKERS_MAX);
	if (opts.jobs > supply_count(&t->source))
		opts.jobs = (unsigned)max(supply_count(&t->source), (uint64_t)1);
	t->terminal = isatty(STDERR_FILENO) && !t->json;
	t->start_ns = now_ns();
	rc = t->tune ? tune_apply(&tune, &err) : 0;
	if (!rc)
		rc = workers_run(&opts, &result, &err);
	tune_restore(&tune);
	if (rc) {
		clear_line(t);
		remove_empty(t);
		return cli_fail(&err);
	}
	return finish(t, &result);
}

/* ---- the command line ---- */

static int list_targets(void)
{
	for (size_t i = 0; targets[i]; i++)
		printf("%-8s %s (guarantee: %s)\n", targets[i]->name, targets[i]->help,
		       targets[i]->guarantee);
	return EXIT_OK;
}

static int parse_modes(const char *arg, unsigned *out, struct err *err)
{
	static const struct {
		const char *name;
		unsigned mode;
	} modes[] = {
		{ "persist", RUN_PERSIST }, { "last", RUN_LAST }, { "prefix", RUN_PREFIX },
		{ "reorder", RUN_REORDER }, { "torn", RUN_TORN }, { "recovery", RUN_RECOVERY },
	};
	auto_free char *copy = xstrdup(arg);
	char *rest = copy;

	for (char *one; (one = strsep(&rest, ","));) {
		size_t i = 0;

		while (i < ARRAY_SIZE(modes) && !streq(modes[i].name, one))
			i++;
		if (i == ARRAY_SIZE(modes))
			return err_set(
				err, -EINVAL,
				"'%.40s' is none of persist, last, prefix, reorder, torn, recovery",
				one);
		*out |= modes[i].mode;
	}
	return 0;
}

enum {
	OPT_CRASH = 256,
	OPT_MAX_SUBSET,
	OPT_BUDGET,
	OPT_GUARANTEE,
	OPT_RECORDER,
	OPT_MKFS,
	OPT_RECOVER,
	OPT_SIZE,
	OPT_PRUNE,
	OPT_TORN,
	OPT_LOSE_FLUSH,
	OPT_FSCK,
	OPT_PARANOID,
	OPT_SKIP,
	OPT_LIMIT,
	OPT_SAMPLE,
	OPT_SEED,
	OPT_TIME,
	OPT_JSON,
	OPT_TUNE,
};

static const struct option long_options[] = {
	{ "target", required_argument, NULL, 't' },
	{ "bounds", required_argument, NULL, 'b' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "output", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ "crash", required_argument, NULL, OPT_CRASH },
	{ "max-subset", required_argument, NULL, OPT_MAX_SUBSET },
	{ "budget", required_argument, NULL, OPT_BUDGET },
	{ "guarantee", required_argument, NULL, OPT_GUARANTEE },
	{ "recorder", required_argument, NULL, OPT_RECORDER },
	{ "mkfs", required_argument, NULL, OPT_MKFS },
	{ "recover", required_argument, NULL, OPT_RECOVER },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "prune", required_argument, NULL, OPT_PRUNE },
	{ "torn", no_argument, NULL, OPT_TORN },
	{ "lose-flush", required_argument, NULL, OPT_LOSE_FLUSH },
	{ "fsck", no_argument, NULL, OPT_FSCK },
	{ "paranoid", no_argument, NULL, OPT_PARANOID },
	{ "skip", required_argument, NULL, OPT_SKIP },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "sample", required_argument, NULL, OPT_SAMPLE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "tune", no_argument, NULL, OPT_TUNE },
	{ NULL, 0, NULL, 0 },
};

static int parse_numbers(int opt, const char *arg, struct test *t, struct err *err)
{
	uint64_t n = 0;

	switch (opt) {
	case 'j':
		return number_parse_count(arg, &t->jobs, err) ? -EINVAL
		       : t->jobs			      ? 0
				 : err_set(err, -EINVAL, "--jobs is at least 1");
	case OPT_MAX_SUBSET:
		if (number_parse_count(arg, &n, err))
			return -EINVAL;
		t->run.max_subset = (uint32_t)min(n, (uint64_t)UINT32_MAX);
		return 0;
	case OPT_BUDGET:
		return number_parse_count(arg, &t->run.budget, err);
	case OPT_LOSE_FLUSH:
		return number_parse_count(arg, &t->run.lose_flush, err);
	case OPT_SIZE:
		return number_parse_size(arg, &t->run.target.size, err);
	case OPT_SKIP:
		return number_parse_count(arg, &t->skip, err);
	case OPT_LIMIT:
		return number_parse_count(arg, &t->limit, err);
	case OPT_SAMPLE:
		return number_parse_count(arg, &t->sample, err);
	case OPT_SEED:
		return number_parse(arg, &t->run.seed)
			       ? err_set(err, -EINVAL, "--seed is a number, not '%.40s'", arg)
			       : 0;
	case OPT_TIME:
		return number_parse_duration(arg, &t->time_ns, err);
	}
	return -EINVAL;
}

static int parse_option(int opt, const char *arg, struct test *t, struct err *err)
{
	switch (opt) {
	case 't':
		t->run.target.spec = arg;
		return 0;
	case 'b':
		t->bounds = arg;
		return 0;
	case 'o':
		t->output = arg;
		return 0;
	case OPT_CRASH:
		return parse_modes(arg, &t->run.modes, err);
	case OPT_GUARANTEE:
		t->run.guarantee = guarantee_find(arg);
		return t->run.guarantee ? 0
					: err_set(err, -EINVAL,
						  "'%.40s' is none of posix, linux, sync", arg);
	case OPT_RECORDER:
		t->run.target.recorder = arg;
		return 0;
	case OPT_MKFS:
		t->run.target.mkfs_args = arg;
		return 0;
	case OPT_RECOVER:
		t->run.target.recover = arg;
		return 0;
	case OPT_PRUNE:
		t->run.vary_all = streq(arg, "none");
		return streq(arg, "none") || streq(arg, "reads")
			       ? 0
			       : err_set(err, -EINVAL, "--prune is reads or none, not '%.40s'",
					 arg);
	case OPT_TORN:
		t->run.modes |= RUN_TORN | RUN_REORDER;
		return 0;
	case OPT_FSCK:
		t->run.fsck = true;
		return 0;
	case OPT_PARANOID:
		t->run.paranoid = true;
		return 0;
	case OPT_JSON:
		t->json = true;
		return 0;
	case OPT_TUNE:
		t->tune = true;
		return 0;
	default:
		return parse_numbers(opt, arg, t, err);
	}
}

static int open_source(struct test *t, char **files, struct err *err)
{
	if (t->bounds && *files)
		return err_set(err, -EINVAL, "give --bounds or files, not both");
	if (!t->bounds && !*files)
		return err_set(err, -EINVAL, "give --bounds SET or files with workloads");
	int rc = t->bounds ? supply_open_bounds(&t->source, t->bounds, err) : 0;
	for (; !rc && *files; files++)
		rc = supply_add_path(&t->source, *files, err);
	supply_select(&t->source, t->skip, t->limit, t->sample, t->run.seed);
	if (!rc && !supply_count(&t->source))
		rc = err_set(err, -EINVAL, "there is no workload to run");
	return rc;
}

static int run(int argc, char **argv)
{
	struct test t = { .limit = UINT64_MAX,
			  .jobs = 2 * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) };
	struct err err = ERR_INIT;
	int opt, status;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":t:b:j:o:h", long_options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (opt == ':' || opt == '?')
			return cli_usage(&cmd_test,
					 opt == ':' ? "option '%s' needs a value"
						    : "unknown option '%s'",
					 argv[optind - 1]);
		if (parse_option(opt, optarg, &t, &err))
			return cli_usage(&cmd_test, "%s", err.msg);
	}
	if (!t.run.target.spec)
		return cli_usage(&cmd_test, "--target is missing");
	if (streq(t.run.target.spec, "help"))
		return list_targets();
	if (!target_find(t.run.target.spec, &err))
		return cli_fail(&err);
	if (!t.run.budget && t.run.modes & (RUN_REORDER | RUN_TORN | RUN_RECOVERY))
		t.run.budget = 200;
	supply_init(&t.source);
	status = open_source(&t, argv + optind, &err) ? cli_fail(&err) : run_test(&t);
	supply_release(&t.source);
	vec_release(&t.clusters);
	free(t.dir);
	return status;
}

const struct command cmd_test = {
	.name = "test",
	.summary = "runs workloads, cuts the power, and checks what a file system lost",
	.usage = usage,
	.run = run,
};
