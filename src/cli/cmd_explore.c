/* SPDX-License-Identifier: MIT */
/* cmd_explore.c - outage explore: model checking against the reference file system. */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/explore_kept.h"
#include "cli/groups.h"
#include "run/run.h"
#include "run/store.h"

struct explore {
	struct explore_opts o;
	struct inputs inputs;
	const char *inputs_file, *dist, *output, *coverage, *replay, *resume;
	struct target_line lines[SIDES_MAX]; /* the target's, and those of references, by place */
	struct target_opts references[SIDES_MAX];
	char *names[SIDES_MAX]; /* of targets that --fstype or --mount-options say a part of */
	bool json, terminal, round_given, trust, overlap;
	char *dir;
	uint64_t before; /* findings that the run had when it was resumed */
	uint64_t start_ns, shown_ns, rate_ops;
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
				  "a smaller --crash-every",
				  until);
	else if (crashed_nothing(e, r))
		words = xstrdup("no crash was tried: too few steps made something durable; give a "
				"larger --limit, or a smaller --crash-every");
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
	struct words names = { 0 };
	struct err why = ERR_INIT;
	int rc = below_list(run, "findings", &names, &why);
	uint64_t n = names.n + (rc && rc != -ENOENT);

	words_release(&names);
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
		rc = case_create(said, e->o.specs[0], store_made, &e->dir, &err);
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

static int parse_ref(void *into, const char *arg, struct err *err)
{
	struct explore *e = into;

	if (e->o.n_specs == SIDES_MAX)
		return err_set(err, -EINVAL, "there are at most %d references", SIDES_MAX - 1);
	e->o.specs[e->o.n_specs++] = arg;
	return 0;
}

/* The reference named last. */
static void *last_ref(void *into, struct err *err)
{
	struct explore *e = into;

	if (e->o.n_specs > 1)
		return &e->lines[e->o.n_specs - 1];
	err_set(err, -EINVAL,
		"options that begin with --ref- are about the --ref before them, and there is "
		"none");
	return NULL;
}

static int parse_swarm(void *into, const char *arg, struct err *err)
{
	struct explore *e = into;
	unsigned i, n;
	char more;

	if (sscanf(arg, "%u/%u%c", &i, &n, &more) != 2 || i < 1 || i > n || n > 100000)
		return err_set(err, -EINVAL, "--swarm is I/N with I from 1 to N, not '%.40s'", arg);
	e->o.swarm_i = i;
	e->o.swarm_n = n;
	return 0;
}

static void list_sides(struct strbuf *out)
{
	strbuf_adds(out, "reffs ");
	list_targets(out);
}

#define AT(member) OPT_AT(struct explore, member)
static const struct opt options[] = {
	{ OPT_SECTION, .help = "What to compare" },
	{ OPT_TEXT, "target", 't', "TARGET", AT(o.specs[0]), .list = list_sides,
	  .help = "as for outage test; reffs, in this process; or 'mounted:COMMAND {mnt}', a FUSE "
		  "server without a disk" },
	{ OPT_CALL, "ref", 'r', "TARGET", .call = parse_ref, .list = list_sides,
	  .help = "what to compare with; default: reffs. Given more than once, the majority "
		  "decides" },
	{ OPT_GROUP, .group = target_options, .prefix = "ref-", .where = last_ref, .rare = true,
	  .help = "an option of the target or its guest, for the --ref before it" },
	{ OPT_GROUP, .group = guest_options, .prefix = "ref-", .where = last_ref, .rare = true },
	{ OPT_GROUP, .group = target_options, AT(lines[0]) },
	{ OPT_GROUP, .group = guest_options, AT(lines[0].o) },
	{ OPT_SECTION, .help = "The search" },
	{ OPT_CHOICE, "order", 0, "HOW", AT(o.search.order), .words = "walk depth breadth",
	  .help = "walk, depth or breadth", .otherwise = "depth" },
	{ OPT_COUNT, "depth", 0, "N", AT(o.search.depth), .least = 1, .most = SCRIPT_MAX / 8,
	  .help = "steps from the empty file system; default: 10, walks 400" },
	{ OPT_COUNT, "alphabet", 0, "N", AT(o.search.alphabet), .least = 1, .most = 8192,
	  .rare = true, .help = "different steps to choose from; default: 96, walks 4096" },
	{ OPT_COUNT, "round", 0, "N", AT(o.search.round), .rare = true,
	  .help = "operations with one alphabet, then another is drawn; 0: until all was visited; "
		  "default: 6000 with --time or --limit, else 0" },
	{ OPT_TEXT, "inputs", 0, "FILE", AT(inputs_file), .hint = HINT_FILE,
	  .help = "weights, names and sizes of your own" },
	{ OPT_TEXT, "dist", 0, "NAME", AT(dist),
	  .words = "uniform rank inverse decay inverse-decay", .strict = true, .rare = true,
	  .help = "uniform, rank, inverse, decay or inverse-decay" },
	{ OPT_CHOICE, "strategy", 0, "HOW", AT(o.sides.strategy), .words = "sync remount",
	  .rare = true,
	  .help = "sync: save while mounted; remount: unmount and mount around every step",
	  .otherwise = "sync" },
	{ OPT_COUNT, "compare-every", 0, "N", AT(o.compare_every), .rare = true,
	  .help = "steps between comparisons of the whole state; default: 1" },
	{ OPT_SIZE, "memory", 0, "BYTES", AT(o.memory), .rare = true,
	  .help = "for visited states of a task", .otherwise = "64M" },
	OPTION_SEED("what is drawn at random", AT(o.search.seed)),
	{ OPT_SECTION, .help = "Which crashes" },
	OPTION_CRASH("persist last prefix reorder",
		     "cut the power now and then: persist (default), last, prefix, reorder",
		     AT(o.crash_modes)),
	{ OPT_COUNT, "crash-every", 0, "N", AT(o.crash_every),
	  .help = "after every N-th step that makes something durable; default with --crash: 1" },
	OPTION_GUARANTEE(AT(o.crash_guarantee)),
	{ OPT_SECTION, .help = "The run" },
	OPTION_LIMIT("operations", AT(o.operations)),
	{ OPT_DURATION, "time", 0, "DURATION", AT(o.time_ns),
	  .help = "stop after that, from when the targets are up" },
	OPTION_FINDINGS("stop a task after so many; default: 10", AT(o.max_cases)),
	OPTION_HANG_AFTER(AT(o.hang_ms), .unit = 1000000, .least = 100, .rare = true,
			  .otherwise = "60s"),
	OPTION_JOBS("tasks", TASKS_MAX, AT(o.jobs), .otherwise = "1"),
	{ OPT_FLAG, "share", 0, NULL, AT(o.share), .rare = true,
	  .help = "they share what was visited, so that none does another's work" },
	{ OPT_FLAG, "vary", 0, NULL, AT(o.vary), .rare = true,
	  .help = "they differ in search order and distribution, too" },
	{ OPT_CALL, "swarm", 0, "I/N", .call = parse_swarm, .rare = true,
	  .help = "this is machine I of N; --overlap tells how much they did twice" },
	{ OPT_FLAG, "overlap", 0, NULL, AT(overlap), .rare = true,
	  .help = "of runs that are given as arguments: how much they did twice" },
	{ OPT_ARGUMENT, .arg = "RUN...", .hint = HINT_DIR, .rare = true, .help = "for --overlap" },
	{ OPT_TEXT, "coverage", 0, "FILE", AT(coverage), .hint = HINT_FILE,
	  .help = "which inputs were exercised: text, or a picture if it ends in .svg" },
	OPTION_OUTPUT(AT(output)),
	{ OPT_TEXT, "resume", 0, "DIR", AT(resume), .hint = HINT_DIR,
	  .help = "go on with the run kept there, with the same options" },
	{ OPT_TEXT, "replay", 0, "FINDING", AT(replay), .hint = HINT_DIR,
	  .help = "do what is kept there again" },
	OPTION_TRUST(AT(trust), .rare = true),
	OPTION_JSON(AT(json)),
	OPT_END
};

static int name_sides(struct explore *e, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < e->o.n_specs && !rc; i++) {
		rc = target_line_name(&e->lines[i], e->o.specs[i], &e->names[i], err);
		if (e->names[i])
			e->o.specs[i] = e->names[i];
		e->references[i] = e->lines[i].o;
	}
	e->o.sides.target = e->lines[0].o;
	e->o.sides.references = e->references;
	return rc;
}

/* Defaults, and what does not fit together. */
static int finish_options(struct explore *e, struct err *err)
{
	bool walk = e->o.search.order == SEARCH_WALK;

	if (name_sides(e, err))
		return -EINVAL;
	if (e->o.crash_every)
		inputs_for_crashes(&e->inputs);
	if (e->dist && inputs_distribute(&e->inputs, e->dist, err))
		return -EINVAL;
	if (e->o.n_specs == 1)
		e->o.specs[e->o.n_specs++] = "reffs";
	for (unsigned i = 0; i < e->o.n_specs; i++)
		if (!side_find(e->o.specs[i], err))
			return -EINVAL;
	for (unsigned i = 0; i < e->o.n_specs; i++)
		if (target_opts_fit(&e->references[i], e->o.specs[i], i ? "--ref-" : "--", err))
			return -EINVAL;
	if (e->o.crash_every && side_find(e->o.specs[0], err) != &side_target)
		return err_set(err, -EINVAL, "%s has no disk that a crash could leave behind",
			       e->o.specs[0]);
	if (!e->o.search.depth)
		e->o.search.depth = !walk ? 10 : e->o.crash_every ? 40 : 400;
	if (!e->round_given && !e->o.search.alphabet && (e->o.time_ns || e->o.operations))
		e->o.search.round = 6000;
	if (e->inputs_file) {
		auto_strbuf text = STRBUF_INIT;

		if (io_slurp(e->inputs_file, 1 << 20, &text, err) ||
		    inputs_parse(&e->inputs, strbuf_str(&text), text.len, e->inputs_file, err))
			return -EINVAL;
	}
	return inputs_finish(&e->inputs, err);
}

static void init(void *given)
{
	struct explore *e = given;

	e->o.n_specs = 1;
	inputs_init(&e->inputs);
}

static void release(void *given)
{
	struct explore *e = given;

	inputs_release(&e->inputs);
	for (unsigned i = 0; i < SIDES_MAX; i++)
		free(e->names[i]);
	free(e->dir);
}

static int run(void *given, struct args *args)
{
	struct explore *e = given;
	struct err err = ERR_INIT;

	if (e->overlap)
		return args->n < 2 ? cli_usage(&cmd_explore, "--overlap needs two runs or more")
				   : explore_overlap(args->v, e->json);
	if (args->n)
		return cli_usage(&cmd_explore, "'%.60s' is not expected here", args->v[0]);
	if (e->replay)
		return explore_again(&(struct replay_request){
			.dir = e->replay, .json = e->json, .trust = e->trust });
	if (!e->o.specs[0] && !e->lines[0].fstype)
		return cli_usage(&cmd_explore, "--target is missing");
	e->o.resume = e->resume;
	if (e->o.crash_modes && !args_given(args, "crash-every"))
		e->o.crash_every = 1;
	e->round_given = args_given(args, "round");
	return finish_options(e, &err) ? cli_fail(&err) : run_explore(e);
}

const struct command cmd_explore = {
	.name = "explore",
	.summary = "searches the states of a file system for differences from the reference",
	.usage = "usage: outage explore -t TARGET [OPTIONS]\n"
		 "       outage explore --replay FINDING [--trust]\n"
		 "       outage explore --overlap RUN RUN...\n"
		 "\n"
		 "Goes through the states of a file system by itself, and compares it with the\n"
		 "reference file system after every operation.\n",
	.notes = EXIT_STATUS_NOTES "example: outage explore -t ext4 --time 10s\n",
	.options = options,
	.size = sizeof(struct explore),
	.init = init,
	.release = release,
	.run = run,
};
