/* SPDX-License-Identifier: MIT */
/* cmd_explore.c - outage explore: model checking against the reference file system. */
#include <errno.h>
#include <getopt.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/explore_kept.h"
#include "run/run.h"
#include "run/store.h"

static const char usage[] =
	"usage: outage explore -t TARGET [OPTIONS]\n"
	"       outage explore --replay FINDING [--trust]\n"
	"       outage explore --overlap RUN RUN...\n"
	"\n"
	"Goes through the states of a file system by itself, and compares it with the reference\n"
	"file system after every operation.\n"
	"\n"
	"  -t, --target TARGET     as for outage test; reffs, in this process; or\n"
	"                          'mounted:COMMAND {mnt}', a FUSE server without a disk\n"
	"  -r, --ref TARGET        what to compare with; default: reffs. Given more than once, "
	"the\n"
	"                          majority decides\n"
	"      --ref-mkfs ARGS, --ref-recover CMD, --ref-size BYTES, --ref-kernel FILE,\n"
	"      --ref-modules DIR, --ref-guest-memory SIZE   of the --ref before them\n"
	"      --order HOW         depth (default), breadth, walk\n"
	"      --depth N           steps from the empty file system; default: 10, walks 400\n"
	"      --alphabet N        different steps to choose from; default: 96, walks 4096\n"
	"      --round N           operations with one alphabet, then another is drawn; 0: until "
	"all\n"
	"                          was visited. Default: 6000 with --time or --limit, else 0\n"
	"      --inputs FILE       weights, names and sizes of your own\n"
	"      --dist NAME         uniform, rank, inverse, decay, inverse-decay\n"
	"      --strategy HOW      sync (default): save while mounted; remount: unmount and mount\n"
	"                          around every step\n"
	"      --compare-every N   steps between comparisons of the whole state; default: 1\n"
	"      --crash N           cut the power after every N-th step that makes something "
	"durable,\n"
	"                          and check what recovery makes of it\n"
	"      --crash-modes LIST  as --crash of outage test; default: persist\n"
	"      --guarantee NAME    what is promised to survive: unmount, bare, posix, linux, "
	"sync;\n"
	"                          default: what the target promises\n"
	"      --memory BYTES      for visited states of a task; default: 64M\n"
	"      --limit N           operations; --time DURATION, from when the targets are up; "
	"--seed "
	"N\n"
	"      --hang DURATION     without an answer for so long, it hangs; default: 60s\n"
	"      --findings N        stop a task after so many; default: 10\n"
	"  -j, --jobs N            tasks; default 1\n"
	"      --share             they share what was visited, so that none does another's work\n"
	"      --vary              they differ in search order and distribution, too\n"
	"      --swarm I/N         this is machine I of N; --overlap tells how much they did "
	"twice\n"
	"      --coverage FILE     which inputs were exercised: text, or a picture if it ends in "
	".svg\n"
	"      --mkfs ARGS, --recover CMD, --size BYTES, --recorder NAME, --kernel FILE,\n"
	"      --modules DIR, --guest-memory SIZE   as for outage test\n"
	"  -o, --output DIR        where to keep what is found; default: below ./outage-runs\n"
	"      --resume DIR        go on with the run kept there, with the same options\n"
	"      --trust             with --replay: also if you did not make it on this machine,\n"
	"                          and it leads to more than a guest\n"
	"      --json              one JSON object on standard output\n"
	"\n"
	"Exit status: 0 nothing was found, 1 something was, 2 it could not be run, or part of it,\n"
	"or nothing was tried.\n"
	"\n"
	"example: outage explore -t ext4 --time 10s\n";

struct explore {
	struct explore_opts o;
	struct inputs inputs;
	const char *inputs_file, *output, *coverage, *replay, *resume;
	struct target_opts references[SIDES_MAX]; /* by their place */
	struct vec_of(char *) paths;		  /* that the options of targets point at */
	bool json, terminal, round_given, trust, overlap;
	char *dir;
	uint64_t before; /* findings that the run had when it was resumed */
	uint64_t depth, alphabet, start_ns, shown_ns, rate_ops;
	unsigned errors_shown;
	struct err unmarked; /* why nothing gets this user's mark */
};

/* ---- while it runs ---- */

static void clear_line(const struct explore *e)
{
	if (e->terminal)
		fputs("\r\033[K", stderr);
}

static void on_found(void *ctx, const char *words, const char *dir, size_t ops)
{
	struct explore *e = ctx;

	clear_line(e);
	if (!e->json)
		printf("found  %s\n       %zu operation%s, %s\n", words, ops, ops == 1 ? "" : "s",
		       *dir ? dir : "which could not be kept");
	else if (!*dir)
		fprintf(stderr, "outage: found, and could not be kept: %s\n", words);
	fflush(stdout);
}

static void on_failed(void *ctx, const char *words)
{
	struct explore *e = ctx;

	clear_line(e);
	if (e->errors_shown++ < 10)
		fprintf(stderr, "outage: %s\n", words);
}

static void on_warned(void *ctx, const char *words)
{
	struct explore *e = ctx;

	clear_line(e);
	fprintf(stderr, "outage: %s\n", words);
}

static void on_noted(void *ctx, const char *words)
{
	struct explore *e = ctx;

	clear_line(e);
	log_info("%s", words);
}

static void on_progress(void *ctx, const struct explore_result *r)
{
	struct explore *e = ctx;
	uint64_t now = util_now_ns();
	double elapsed = (double)(now - e->start_ns) / 1e9;

	if (!e->terminal || now - e->shown_ns < 200000000)
		return;
	e->shown_ns = now;
	fprintf(stderr,
		"\r\033[K%llu operations, %.0f/s, %llu states, depth %llu, %llu restores, "
		"%llu findings",
		(unsigned long long)r->operations,
		elapsed > 0 ? (double)r->operations / elapsed : 0, (unsigned long long)r->states,
		(unsigned long long)r->depth_max, (unsigned long long)r->restores,
		(unsigned long long)r->findings);
	if (r->shrinking)
		fprintf(stderr, ", %llu made smaller", (unsigned long long)r->shrinking);
	if (e->o.time_ns > r->searching_ns)
		fprintf(stderr, ", %.0f s left", (double)(e->o.time_ns - r->searching_ns) / 1e9);
}

/* What is made smaller is kept as it is: who waits for that should know. */
static void on_stopping(void *ctx, const struct explore_result *r)
{
	struct explore *e = ctx;

	clear_line(e);
	if (r->shrinking || r->signalled)
		fprintf(stderr, "outage: stopping%s; what was found so far is kept\n",
			r->signalled ? "" : ", as the time is up");
	else
		log_info("the time is up");
}

/* ---- at the end ---- */

enum { ADOPTED_SHOWN = 5 };

static const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown";
}

static void json_adopted(struct json *j, const struct explore_result *r)
{
	struct coverage_adopted_list list = { 0 };

	coverage_adopted(&r->coverage, &list);
	json_key(j, "adopted_results");
	json_array(j);
	for (size_t i = 0; i < list.n; i++) {
		json_object(j);
		json_kv_string(j, "operation", list.v[i].op);
		json_kv_string(j, "error", error_name(list.v[i].error));
		json_kv_uint(j, "count", list.v[i].count);
		json_end(j);
	}
	json_end(j);
	vec_release(&list);
}

/* "28 results were the target's own business: write ENOSPC 20, creat ENOSPC 8" */
static void print_adopted(const struct explore_result *r)
{
	struct coverage_adopted_list list = { 0 };
	uint64_t rest = coverage_adopted(&r->coverage, &list);

	printf("%llu %s the target's own business", (unsigned long long)rest,
	       plural(rest, "result was", "results were"));
	for (size_t i = 0; i < list.n && i < ADOPTED_SHOWN; i++) {
		printf("%s%s %s %llu", i ? ", " : ": ", list.v[i].op, error_name(list.v[i].error),
		       (unsigned long long)list.v[i].count);
		rest -= list.v[i].count;
	}
	if (list.n > ADOPTED_SHOWN)
		printf(", others %llu", (unsigned long long)rest);
	putchar('\n');
	vec_release(&list);
}

static void print_json(const struct explore *e, const struct explore_result *r, double elapsed)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;
	struct target_opts target = e->o.sides.target;
	struct coverage_summary sum;

	target.spec = e->o.specs[0];
	auto_free char *kernel = target_kernel(&target);
	coverage_summary(&r->coverage, &e->inputs, &sum);
	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "target", e->o.specs[0]);
	json_kv_string(&j, "kernel", kernel);
	json_kv_string(&j, "run", e->dir);
	json_kv_uint(&j, "operations", r->operations);
	json_kv_uint(&j, "states", r->states);
	json_kv_uint(&j, "distinct_states", r->distinct);
	json_kv_double(&j, "overlap", r->overlap);
	json_kv_uint(&j, "overlap_states", r->overlapped);
	json_kv_uint(&j, "revisits", r->revisits);
	json_kv_uint(&j, "restores", r->restores);
	json_kv_uint(&j, "undone", r->undone);
	json_kv_uint(&j, "saves", r->saves);
	json_kv_uint(&j, "mounts", r->mounts);
	json_kv_uint(&j, "adopted", r->adopted);
	json_adopted(&j, r);
	json_kv_uint(&j, "abandoned", r->abandoned);
	json_kv_uint(&j, "crash_states", r->crash_states);
	json_kv_uint(&j, "findings", r->findings);
	json_kv_uint(&j, "findings_before", e->before);
	json_kv_uint(&j, "cut_short", r->cut_short);
	json_kv_uint(&j, "errors", r->errors);
	json_kv_double(&j, "elapsed_s", elapsed);
	json_kv_uint(&j, "depth_max", r->depth_max);
	json_kv_double(&j, "omission", r->omission);
	json_kv_double(&j, "bytes_per_state", r->bytes_per_state);
	json_kv_uint(&j, "partitions_exercised", sum.parts);
	json_kv_uint(&j, "partitions", sum.all_parts);
	json_kv_uint(&j, "combinations_exercised", sum.combinations);
	json_kv_uint(&j, "combinations", sum.all_combinations);
	json_kv_uint(&j, "errors_exercised", sum.errors);
	json_kv_bool(&j, "exhausted", r->exhausted);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

/* Whether it ended without having done anything, although there was something to do. */
static bool tried_nothing(const struct explore_result *r)
{
	return !r->operations && !r->findings && !r->exhausted;
}

/* Or no crash, although that was asked for. */
static bool crashed_nothing(const struct explore *e, const struct explore_result *r)
{
	return e->o.crash_every && !r->crash_states && !r->findings && !r->exhausted;
}

/* One that says nothing about the file system must not look like one that found nothing. */
static void check_tried(struct explore *e, struct explore_result *r)
{
	const char *until = r->signalled ? "a signal came" : "the time was up";
	auto_free char *words = NULL;

	if (r->errors)
		return; /* it has failed, and said why */
	if (tried_nothing(r) && r->stopped)
		words = xasprintf("nothing was tried: %s before the first operation; %s", until,
				  r->signalled ? "begin again" : "give more --time");
	else if (tried_nothing(r))
		words = xstrdup("nothing was tried: no operation was done; see --inputs");
	else if (crashed_nothing(e, r) && r->stopped)
		words = xasprintf("no crash was tried: %s before the first; give more --time, or "
				  "a smaller --crash",
				  until);
	else if (crashed_nothing(e, r))
		words = xstrdup("no crash was tried: too few steps made something durable; give a "
				"larger --limit, or a smaller --crash");
	if (!words)
		return;
	r->errors++;
	on_failed(e, words);
}

static void print_findings(const struct explore *e, const struct explore_result *r)
{
	if (r->findings)
		printf("%llu %s, kept in %s\n", (unsigned long long)r->findings,
		       plural(r->findings, "finding", "findings"), e->dir);
	else if (tried_nothing(r))
		printf("nothing was tried\n");
	else
		printf("no difference found%s\n",
		       crashed_nothing(e, r) ? ", and no crash tried" : "");
	if (e->before)
		printf("%llu %s found before, kept in %s\n", (unsigned long long)e->before,
		       plural(e->before, "finding was", "findings were"), e->dir);
}

static void print_summary(const struct explore *e, const struct explore_result *r, double elapsed)
{
	struct coverage_summary sum;

	coverage_summary(&r->coverage, &e->inputs, &sum);
	printf("%s: %llu operations in %.1f s, %.0f a second; %llu states, depth %llu\n",
	       e->o.specs[0], (unsigned long long)r->operations, elapsed,
	       elapsed > 0 ? (double)r->operations / elapsed : 0, (unsigned long long)r->states,
	       (unsigned long long)r->depth_max);
	printf("%llu %s put back (%.4f an operation), %llu %s undone by a step instead, "
	       "%llu %s, %llu %s\n",
	       (unsigned long long)r->restores, plural(r->restores, "time", "times"),
	       r->operations ? (double)r->restores / (double)r->operations : 0,
	       (unsigned long long)r->undone, plural(r->undone, "time", "times"),
	       (unsigned long long)r->saves, plural(r->saves, "save", "saves"),
	       (unsigned long long)r->mounts, plural(r->mounts, "mount", "mounts"));
	printf("%llu of %llu partitions of arguments exercised, %llu combinations of bits, %llu "
	       "errors\n",
	       (unsigned long long)sum.parts, (unsigned long long)sum.all_parts,
	       (unsigned long long)sum.combinations, (unsigned long long)sum.errors);
	print_adopted(r);
	printf("%llu %s abandoned\n", (unsigned long long)r->abandoned,
	       plural(r->abandoned, "step was", "steps were"));
	if (r->crash_states)
		printf("%llu crash states checked\n", (unsigned long long)r->crash_states);
	if (e->o.jobs > 1)
		printf("%u tasks; %llu of %llu states, %.1f%%, were visited by more than one\n",
		       e->o.jobs, (unsigned long long)r->overlapped,
		       (unsigned long long)r->distinct, 100 * r->overlap);
	if (r->omission > 0)
		printf("the memory for visited states is full: a new state is now taken for an old "
		       "one with odds of %.2g; give more with --memory\n",
		       r->omission);
	if (r->exhausted)
		printf("every state within the bounds was visited\n");
	if (r->stopped)
		printf("stopped %s; --resume %s goes on\n",
		       r->signalled ? "by a signal" : "when its time was up", e->dir);
	if (r->cut_short)
		printf("shrinking was cut short for %llu %s: what is kept is the smallest so far\n",
		       (unsigned long long)r->cut_short,
		       plural(r->cut_short, "finding", "findings"));
	print_findings(e, r);
}

static int write_coverage(const struct explore *e, const struct explore_result *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	size_t n = strlen(e->coverage);

	if (n > 4 && streq(e->coverage + n - 4, ".svg"))
		coverage_picture(&r->coverage, &e->inputs, &text);
	else
		coverage_print(&r->coverage, &e->inputs, &text);
	return io_write_file(NULL, e->coverage, text.buf, text.len, 0, err);
}

/* A run that could not begin leaves no directory behind, unless there is something in it. */
static void leave_nothing(const struct explore *e, bool was_there)
{
	auto_free char *findings = e->dir ? xasprintf("%s/findings", e->dir) : NULL;

	if (!findings || (e->resume && was_there) || rmdir(findings) || was_there || rmdir(e->dir))
		return;
	if (!e->resume && !e->output)
		rmdir("outage-runs"); /* there may be others in it */
}

static uint64_t count_findings(const char *run)
{
	struct below_names names = { 0 };
	struct err why = ERR_INIT;
	int rc = below_list(run, "findings", &names, &why);
	uint64_t n = names.n + (rc && rc != -ENOENT);

	below_names_release(&names);
	return n;
}

/* What another exploration kept would be mixed with what this one finds. */
static int check_unused(const struct explore *e, struct err *err)
{
	if (e->resume || !e->output)
		return 0;
	if (!below_exists(e->output, "task-0.pickle") && !count_findings(e->output))
		return 0;
	return err_set(err, -EEXIST,
		       "%s holds a run already: give --resume %s to go on with it, or another -o",
		       e->output, e->output);
}

/* Better said now than after hours. */
static int check_coverage(const struct explore *e, struct err *err)
{
	struct stat st;

	if (!e->coverage)
		return 0;
	auto_free char *dir = xstrdup(e->coverage);
	char *slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (access(slash ? dir : ".", W_OK | X_OK) < 0)
		return err_set(err, -errno, "--coverage cannot be written to %s: %m", e->coverage);
	if (stat(e->coverage, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "--coverage is a file, and %s is a directory",
			       e->coverage);
	return 0;
}

static int run_explore(struct explore *e)
{
	const char *said = e->resume ? e->resume : e->output;
	bool was_there = said && access(said, F_OK) == 0;
	struct explore_result *r = xcalloc(1, sizeof(*r));
	struct err err = ERR_INIT, ignored = ERR_INIT;
	unsigned removed = 0;
	int rc = check_coverage(e, &err);

	if (!rc)
		rc = check_unused(e, &err);
	if (!rc)
		cli_ready_to_mark(&e->unmarked);
	if (!rc)
		rc = store_create(said, e->o.specs[0], &e->dir, &err);
	if (!rc && e->resume)
		e->before = count_findings(e->dir);
	if (!rc && !disk_clean_up(&removed, &ignored) && removed)
		log_info("cleared %u disks that a killed run had left behind", removed);
	e->o.inputs = &e->inputs;
	e->o.dir = e->dir;
	e->o.ctx = e;
	e->o.found = on_found;
	e->o.failed = on_failed;
	e->o.noted = on_noted;
	e->o.warned = on_warned;
	e->o.stopping = on_stopping;
	e->o.progress = on_progress;
	e->terminal = isatty(STDERR_FILENO) && !e->json;
	e->start_ns = util_now_ns();
	if (!rc)
		rc = explore_run(&e->o, r, &err);
	double elapsed = (double)(util_now_ns() - e->start_ns) / 1e9;
	clear_line(e);
	if (!rc)
		check_tried(e, r);
	if (rc || (!r->operations && !r->findings))
		leave_nothing(e, was_there);
	if (!rc && e->json)
		print_json(e, r, elapsed);
	else if (!rc)
		print_summary(e, r, elapsed);
	if (!rc)
		cli_tell_unmarked(&e->unmarked);
	if (!rc && e->coverage)
		rc = write_coverage(e, r, &err);
	int status = rc				 ? cli_fail(&err)
		     : r->errors || r->signalled ? EXIT_FAILED
		     : r->findings || e->before	 ? EXIT_FINDINGS
						 : EXIT_OK;
	free(r);
	return status;
}

/* ---- the command line ---- */

enum {
	OPT_ORDER = 256,
	OPT_DEPTH,
	OPT_ALPHABET,
	OPT_ROUND,
	OPT_INPUTS,
	OPT_DIST,
	OPT_STRATEGY,
	OPT_COMPARE_EVERY,
	OPT_CRASH,
	OPT_CRASH_MODES,
	OPT_GUARANTEE,
	OPT_MEMORY,
	OPT_LIMIT,
	OPT_TIME,
	OPT_SEED,
	OPT_HANG,
	OPT_FINDINGS,
	OPT_SHARE,
	OPT_VARY,
	OPT_SWARM,
	OPT_COVERAGE,
	OPT_REF_MKFS,
	OPT_REF_RECOVER,
	OPT_REF_SIZE,
	OPT_REF_KERNEL,
	OPT_REF_MODULES,
	OPT_MKFS,
	OPT_RECOVER,
	OPT_KERNEL,
	OPT_MODULES,
	OPT_TRUST,
	OPT_OVERLAP,
	OPT_GUEST_MEMORY,
	OPT_REF_GUEST_MEMORY,
	OPTION_SIZE,
	OPT_RECORDER,
	OPT_RESUME,
	OPT_REPLAY,
	OPT_JSON,
};

static const struct option long_options[] = {
	{ "target", required_argument, NULL, 't' },
	{ "ref", required_argument, NULL, 'r' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "output", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ "order", required_argument, NULL, OPT_ORDER },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "alphabet", required_argument, NULL, OPT_ALPHABET },
	{ "round", required_argument, NULL, OPT_ROUND },
	{ "inputs", required_argument, NULL, OPT_INPUTS },
	{ "dist", required_argument, NULL, OPT_DIST },
	{ "strategy", required_argument, NULL, OPT_STRATEGY },
	{ "compare-every", required_argument, NULL, OPT_COMPARE_EVERY },
	{ "crash", required_argument, NULL, OPT_CRASH },
	{ "crash-modes", required_argument, NULL, OPT_CRASH_MODES },
	{ "guarantee", required_argument, NULL, OPT_GUARANTEE },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "hang", required_argument, NULL, OPT_HANG },
	{ "findings", required_argument, NULL, OPT_FINDINGS },
	{ "share", no_argument, NULL, OPT_SHARE },
	{ "vary", no_argument, NULL, OPT_VARY },
	{ "swarm", required_argument, NULL, OPT_SWARM },
	{ "coverage", required_argument, NULL, OPT_COVERAGE },
	{ "ref-mkfs", required_argument, NULL, OPT_REF_MKFS },
	{ "ref-recover", required_argument, NULL, OPT_REF_RECOVER },
	{ "ref-size", required_argument, NULL, OPT_REF_SIZE },
	{ "ref-kernel", required_argument, NULL, OPT_REF_KERNEL },
	{ "ref-modules", required_argument, NULL, OPT_REF_MODULES },
	{ "mkfs", required_argument, NULL, OPT_MKFS },
	{ "recover", required_argument, NULL, OPT_RECOVER },
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "modules", required_argument, NULL, OPT_MODULES },
	{ "guest-memory", required_argument, NULL, OPT_GUEST_MEMORY },
	{ "ref-guest-memory", required_argument, NULL, OPT_REF_GUEST_MEMORY },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "recorder", required_argument, NULL, OPT_RECORDER },
	{ "resume", required_argument, NULL, OPT_RESUME },
	{ "replay", required_argument, NULL, OPT_REPLAY },
	{ "trust", no_argument, NULL, OPT_TRUST },
	{ "overlap", no_argument, NULL, OPT_OVERLAP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

static int parse_order(const char *arg, struct explore *e, struct err *err)
{
	static const char *const names[] = { "walk", "depth", "breadth" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(names[i], arg)) {
			e->o.search.order = (enum search_order)i;
			return 0;
		}
	return err_set(err, -EINVAL, "--order is walk, depth or breadth, not '%.40s'", arg);
}

static int parse_swarm(const char *arg, struct explore *e, struct err *err)
{
	unsigned i, n;
	char more;

	if (sscanf(arg, "%u/%u%c", &i, &n, &more) != 2 || i < 1 || i > n || n > 100000)
		return err_set(err, -EINVAL, "--swarm is I/N with I from 1 to N, not '%.40s'", arg);
	e->o.swarm_i = i;
	e->o.swarm_n = n;
	return 0;
}

static int parse_modes(const char *arg, unsigned *out, struct err *err)
{
	static const struct {
		const char *name;
		unsigned mode;
	} modes[] = { { "persist", RUN_PERSIST },
		      { "last", RUN_LAST },
		      { "prefix", RUN_PREFIX },
		      { "reorder", RUN_REORDER } };
	auto_free char *copy = xstrdup(arg);
	char *rest = copy;

	for (char *one; (one = strsep(&rest, ","));) {
		size_t i = 0;

		while (i < ARRAY_SIZE(modes) && !streq(modes[i].name, one))
			i++;
		if (i == ARRAY_SIZE(modes))
			return err_set(err, -EINVAL,
				       "'%.40s' is none of persist, last, prefix, reorder", one);
		*out |= modes[i].mode;
	}
	return 0;
}

static int parse_jobs(const char *arg, struct explore *e, struct err *err)
{
	uint64_t n;

	if (number_parse_count(arg, &n, err))
		return -EINVAL;
	if (!n || n > TASKS_MAX)
		return err_set(err, -EINVAL, "--jobs is from 1 to %d", TASKS_MAX);
	e->o.jobs = (unsigned)n;
	return 0;
}

static int parse_positive(const char *option, const char *arg, uint64_t *out, struct err *err)
{
	int rc = number_parse_count(arg, out, err);

	return rc || *out ? rc : err_set(err, -EINVAL, "%s is at least 1", option);
}

static int parse_numbers(int opt, const char *arg, struct explore *e, struct err *err)
{
	uint64_t ns = 0;

	switch (opt) {
	case 'j':
		return parse_jobs(arg, e, err);
	case OPT_DEPTH:
		return parse_positive("--depth", arg, &e->depth, err);
	case OPT_ALPHABET:
		return parse_positive("--alphabet", arg, &e->alphabet, err);
	case OPT_ROUND:
		e->round_given = true;
		return number_parse_count(arg, &e->o.search.round, err);
	case OPT_COMPARE_EVERY:
		return number_parse_count(arg, &e->o.compare_every, err);
	case OPT_CRASH:
		return number_parse_count(arg, &e->o.crash_every, err);
	case OPT_LIMIT:
		return number_parse_count(arg, &e->o.operations, err);
	case OPT_FINDINGS:
		return number_parse_count(arg, &e->o.max_cases, err);
	case OPT_MEMORY:
		return number_parse_size(arg, &e->o.memory, err);
	case OPTION_SIZE:
		return number_parse_size(arg, &e->o.sides.target.size, err);
	case OPT_GUEST_MEMORY:
		return number_parse_size(arg, &e->o.sides.target.guest_memory, err);
	case OPT_TIME:
		return number_parse_duration(arg, &e->o.time_ns, err);
	case OPT_HANG:
		if (number_parse_duration(arg, &ns, err))
			return -EINVAL;
		e->o.hang_ms = max(ns / 1000000, (uint64_t)100);
		return 0;
	case OPT_SEED:
		return number_parse(arg, &e->o.search.seed)
			       ? err_set(err, -EINVAL, "--seed is a number, not '%.40s'", arg)
			       : 0;
	}
	return -EINVAL;
}

/* What is kept is looked at from elsewhere: the whole path, which lives as long as `e`. */
static int parse_path(const char *arg, struct explore *e, const char **out, struct err *err)
{
	char *path = realpath(arg, NULL);

	if (!path)
		return err_set(err, -errno, "cannot find %s: %m", arg);
	vec_push(&e->paths, path);
	*out = path;
	return 0;
}

/* Of the reference named last. */
static int parse_ref(int opt, const char *arg, struct explore *e, struct err *err)
{
	struct target_opts *r = &e->references[e->o.n_specs - 1];

	if (e->o.n_specs < 2)
		return err_set(err, -EINVAL,
			       "options that begin with --ref- are about the --ref before them, "
			       "and there is none");
	if (opt == OPT_REF_MKFS)
		r->mkfs_args = arg;
	else if (opt == OPT_REF_RECOVER)
		r->recover = arg;
	else if (opt == OPT_REF_KERNEL)
		return parse_path(arg, e, &r->kernel, err);
	else if (opt == OPT_REF_MODULES)
		return parse_path(arg, e, &r->modules, err);
	else if (opt == OPT_REF_GUEST_MEMORY)
		return number_parse_size(arg, &r->guest_memory, err);
	else
		return number_parse_size(arg, &r->size, err);
	return 0;
}

static int parse_option(int opt, const char *arg, struct explore *e, struct err *err)
{
	switch (opt) {
	case 't':
		e->o.specs[0] = arg;
		return 0;
	case 'r':
		if (e->o.n_specs == SIDES_MAX)
			return err_set(err, -EINVAL, "there are at most %d references",
				       SIDES_MAX - 1);
		e->o.specs[e->o.n_specs++] = arg;
		return 0;
	case 'o':
		e->output = arg;
		return 0;
	case OPT_ORDER:
		return parse_order(arg, e, err);
	case OPT_INPUTS:
		e->inputs_file = arg;
		return 0;
	case OPT_DIST:
		return inputs_distribute(&e->inputs, arg, err);
	case OPT_STRATEGY:
		e->o.sides.strategy = streq(arg, "remount") ? STRATEGY_REMOUNT : STRATEGY_SYNC;
		return streq(arg, "remount") || streq(arg, "sync")
			       ? 0
			       : err_set(err, -EINVAL, "--strategy is sync or remount, not '%.40s'",
					 arg);
	case OPT_CRASH_MODES:
		return parse_modes(arg, &e->o.crash_modes, err);
	case OPT_GUARANTEE:
		e->o.crash_guarantee = arg;
		return guarantee_known(arg, err) ? 0 : -EINVAL;
	case OPT_SHARE:
		e->o.share = true;
		return 0;
	case OPT_VARY:
		e->o.vary = true;
		return 0;
	case OPT_SWARM:
		return parse_swarm(arg, e, err);
	case OPT_COVERAGE:
		e->coverage = arg;
		return 0;
	case OPT_REF_MKFS:
	case OPT_REF_RECOVER:
	case OPT_REF_SIZE:
	case OPT_REF_KERNEL:
	case OPT_REF_MODULES:
	case OPT_REF_GUEST_MEMORY:
		return parse_ref(opt, arg, e, err);
	case OPT_MKFS:
		e->o.sides.target.mkfs_args = arg;
		return 0;
	case OPT_RECOVER:
		e->o.sides.target.recover = arg;
		return 0;
	case OPT_KERNEL:
		return parse_path(arg, e, &e->o.sides.target.kernel, err);
	case OPT_MODULES:
		return parse_path(arg, e, &e->o.sides.target.modules, err);
	case OPT_RECORDER:
		e->o.sides.target.recorder = arg;
		return 0;
	case OPT_RESUME:
		e->resume = arg;
		e->o.resume = true;
		return 0;
	case OPT_REPLAY:
		e->replay = arg;
		return 0;
	case OPT_TRUST:
		e->trust = true;
		return 0;
	case OPT_OVERLAP:
		e->overlap = true;
		return 0;
	case OPT_JSON:
		e->json = true;
		return 0;
	default:
		return parse_numbers(opt, arg, e, err);
	}
}

/* A kernel is for who has one of his own. */
static int check_kernels(const struct explore *e, struct err *err)
{
	for (unsigned i = 0; i < e->o.n_specs; i++) {
		const struct target_opts *t = i ? &e->references[i] : &e->o.sides.target;
		struct err ignored = ERR_INIT;
		const struct target_ops *ops = target_find(e->o.specs[i], &ignored);

		if ((t->kernel || t->modules) && (!ops || !ops->far))
			return err_set(err, -EINVAL,
				       "%skernel and %smodules are for uml: and vm: targets; %s is "
				       "not in a kernel of its own",
				       i ? "--ref-" : "--", i ? "--ref-" : "--", e->o.specs[i]);
		if (t->guest_memory && (!ops || !ops->far))
			return err_set(err, -EINVAL,
				       "%sguest-memory is for uml: and vm: targets; %s is in no "
				       "guest",
				       i ? "--ref-" : "--", e->o.specs[i]);
	}
	return 0;
}

/* Defaults, and what does not fit together. */
static int finish_options(struct explore *e, struct err *err)
{
	bool walk = e->o.search.order == SEARCH_WALK;

	e->o.sides.references = e->references;
	if (e->o.n_specs == 1)
		e->o.specs[e->o.n_specs++] = "reffs";
	for (unsigned i = 0; i < e->o.n_specs; i++)
		if (!side_find(e->o.specs[i], err))
			return -EINVAL;
	if (check_kernels(e, err))
		return -EINVAL;
	if (e->o.crash_every && side_find(e->o.specs[0], err) != &side_target)
		return err_set(err, -EINVAL, "%s has no disk that a crash could leave behind",
			       e->o.specs[0]);
	if (!e->depth)
		e->depth = !walk ? 10 : e->o.crash_every ? 40 : 400;
	if (e->depth > SCRIPT_MAX / 8)
		return err_set(err, -EINVAL, "--depth is at most %d", SCRIPT_MAX / 8);
	if (e->alphabet > 8192)
		return err_set(err, -EINVAL, "--alphabet is at most 8192");
	if (!e->round_given && !e->alphabet && (e->o.time_ns || e->o.operations))
		e->o.search.round = 6000;
	e->o.search.depth = (uint32_t)e->depth;
	e->o.search.alphabet = (uint32_t)e->alphabet;
	if (e->inputs_file) {
		auto_strbuf text = STRBUF_INIT;

		if (io_slurp(e->inputs_file, 1 << 20, &text, err) ||
		    inputs_parse(&e->inputs, strbuf_str(&text), text.len, e->inputs_file, err))
			return -EINVAL;
	}
	return inputs_finish(&e->inputs, err);
}

static int run(int argc, char **argv)
{
	struct explore e = { .o = { .n_specs = 1,
				    .jobs = 1,
				    .memory = 64 << 20,
				    .search = { .order = SEARCH_DEPTH } } };
	struct err err = ERR_INIT;
	int opt, status;

	inputs_init(&e.inputs);
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":t:r:j:o:h", long_options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (opt == ':' || opt == '?')
			return cli_usage(&cmd_explore,
					 opt == ':' ? "option '%s' needs a value"
						    : "unknown option '%s'",
					 argv[optind - 1]);
		if (opt == OPT_CRASH)
			inputs_for_crashes(&e.inputs);
		if (parse_option(opt, optarg, &e, &err))
			return cli_usage(&cmd_explore, "%s", err.msg);
	}
	if (e.overlap)
		return argc - optind < 2
			       ? cli_usage(&cmd_explore, "--overlap needs two runs or more")
			       : explore_overlap(argv + optind, e.json);
	if (argv[optind])
		return cli_usage(&cmd_explore, "'%s' is no option", argv[optind]);
	if (e.replay) {
		struct explore_again again = { &e.o, e.replay, e.trust };

		return cli_watch(explore_again, &again, 300, NULL);
	}
	if (!e.o.specs[0])
		return cli_usage(&cmd_explore, "--target is missing");
	status = finish_options(&e, &err) ? cli_fail(&err) : run_explore(&e);
	inputs_release(&e.inputs);
	for (size_t i = 0; i < e.paths.n; i++)
		free(e.paths.v[i]);
	vec_release(&e.paths);
	free(e.dir);
	return status;
}

const struct command cmd_explore = {
	.name = "explore",
	.summary = "searches the states of a file system for differences from the reference",
	.usage = usage,
	.run = run,
};
