/* SPDX-License-Identifier: MIT */
/* cmd_gen.c - outage gen: every workload inside given bounds, as text. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/number.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "report/report.h"
#include "workload/gen.h"
#include "workload/j2lang.h"
#include "workload/jlang.h"
#include "workload/workload.h"

enum form { FORM_WORKLOAD, FORM_XFSTESTS };

struct options {
	const char *bounds, *name, *show, *output;
	unsigned form;
	bool count, list, list_operations, import, json, sampled;
	uint64_t skip, limit, shard, shards, sample, seed;
};

/* ---- writing ---- */

/* Small texts are collected into large writes. */
enum { OUT_SIZE = 128 * 1024 };

static int write_out(struct strbuf *text, struct err *err)
{
	int rc = io_write_full(STDOUT_FILENO, text->buf, text->len);

	if (rc == -EPIPE)
		return err_set(err, rc, "standard output was closed before everything was written");
	if (rc)
		return err_set(err, rc, "cannot write to standard output: %m");
	strbuf_clear(text);
	return 0;
}

/* The place of number `i` of a sample: one from each of `n` equal parts, so that none comes twice.
 */
static uint64_t draw(struct rng *rng, uint64_t span, uint64_t i, uint64_t n)
{
	uint64_t lo = (uint64_t)((unsigned __int128)span * i / n);
	uint64_t hi = (uint64_t)((unsigned __int128)span * (i + 1) / n);

	return lo + rng_below(rng, hi - lo);
}

/* Writes the test of a workload, and what it prints where nothing is wrong. */
static int write_test(const char *dir, uint64_t number, const char *text, size_t len,
		      struct err *err)
{
	auto_free char *name = xasprintf("%03llu", llu(number)), *out = xasprintf("%s.out", name);
	auto_strbuf test = STRBUF_INIT, golden = STRBUF_INIT;
	auto_workload w;

	workload_init(&w);
	int rc = workload_parse(text, len, "generated", &w, err);
	if (rc)
		return rc;
	export_generated_xfstest(&w, name, &test, &golden);
	rc = io_write_file(dir, name, strbuf_str(&test), test.len, 0755, err);
	return rc ? rc : io_write_file(dir, out, strbuf_str(&golden), golden.len, 0644, err);
}

/* All from `from` on, up to and without `to`; or a sample of them. */
static int write_range(struct gen *g, uint64_t from, uint64_t to, const struct options *o,
		       struct err *err)
{
	const struct options *sample = o->sampled ? o : NULL;
	uint64_t n = sample ? min(sample->sample, to - from) : to - from;
	auto_strbuf out = STRBUF_INIT;
	struct rng rng;
	const char *text;
	size_t len;
	int rc = 0;

	rng_init(&rng, sample ? sample->seed : 0);
	gen_seek(g, from);
	for (uint64_t i = 0; i < n && !rc; i++) {
		if (sample)
			gen_seek(g, from + draw(&rng, to - from, i, n));
		if (!gen_next(g, &text, &len))
			break;
		if (o->form == FORM_XFSTESTS)
			rc = write_test(o->output, i + 1, text, len, err);
		else
			strbuf_add(&out, text, len);
		if (out.len >= OUT_SIZE)
			rc = write_out(&out, err);
	}
	return rc || !out.len ? rc : write_out(&out, err);
}

/* ---- the modes ---- */

static int list_sets(bool json)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct json j;

	json_init(&j, &text, true);
	json_object(&j);
	json_kv_array(&j, "sets");
	for (const struct bounds_set *set = bounds_sets; set->name; set++) {
		auto_bounds b;
		struct gen *g;

		bounds_init(&b);
		if (bounds_load(set->name, &b, &err) || gen_new(&b, &g, &err))
			return cli_fail(&err);
		uint64_t n = gen_count(g);
		gen_free(g);
		if (!json)
			printf("%-18s %9llu  %s\n", set->name, llu(n), set->summary);
		json_object_of(&j, KV("name", set->name), KV("workloads", n),
			       KV("summary", set->summary));
	}
	json_end(&j);
	json_end(&j);
	if (json)
		fputs(strbuf_str(&text), stdout);
	return EXIT_OK;
}

static int list_operations(void)
{
	for (const struct op_def *def = op_table; def->name; def++) {
		auto_strbuf line = STRBUF_INIT;

		op_usage(def, &line);
		printf("%s\n        %s\n", strbuf_str(&line), def->help);
	}
	return EXIT_OK;
}

static int show_bounds(const char *spec)
{
	auto_strbuf text = STRBUF_INIT;
	auto_bounds b;
	struct err err = ERR_INIT;

	bounds_init(&b);
	if (bounds_load(spec, &b, &err))
		return cli_fail(&err);
	bounds_print(&b, &text);
	fputs(strbuf_str(&text), stdout);
	return EXIT_OK;
}

/* Workloads without a header get one where several files come out as one text. */
static int import_stream(FILE *in, const char *source, bool need_name, struct err *err)
{
	struct workload_reader r;
	auto_workload w;
	int rc;

	workload_init(&w);
	workload_reader_init(&r, in, source);
	while ((rc = workload_reader_next(&r, &w, err)) > 0) {
		auto_strbuf text = STRBUF_INIT;

		if (need_name && !w.named)
			w.name = basename(source);
		w.named |= need_name;
		workload_print(&w, &text);
		fwrite(text.buf, 1, text.len, stdout);
		if (ferror(stdout))
			break; /* the output is gone; the caller's flush says why */
	}
	workload_reader_release(&r);
	return rc;
}

static int print_imported(void *ctx, struct workload *w)
{
	auto_strbuf out = STRBUF_INIT;

	(void)ctx;
	workload_print(w, &out);
	fputs(strbuf_str(&out), stdout);
	fputc('\n', stdout);
	return 0;
}

static int import_file(const char *path, bool need_name, struct err *err)
{
	bool std_in = streq(path, "-");
	auto_fd fd = std_in ? -1 : below_open_named(path, err);

	if (!std_in && fd < 0)
		return fd;
	auto_file opened = std_in ? NULL : fdopen(steal_fd(&fd), "r");
	FILE *in = std_in ? stdin : opened;
	if (std_in)
		path = "standard input";
	if (j2lang_recognise(in))
		return j2lang_import(in, path, print_imported, NULL, err);
	if (!jlang_recognise(in))
		return import_stream(in, path, need_name, err);

	auto_workload w;
	workload_init(&w);
	int rc = jlang_import(in, path, &w, err);
	return rc ? rc : print_imported(NULL, &w);
}

static int import_files(char **paths)
{
	struct err err = ERR_INIT;
	bool several = paths[0] && paths[1];

	if (!*paths)
		return cli_usage(&cmd_gen, "--import needs a file");
	for (; *paths; paths++)
		if (import_file(*paths, several, &err) < 0)
			return cli_fail(&err);
	return EXIT_OK;
}

static void print_count(const struct options *o, const struct bounds *b, uint64_t n)
{
	if (!o->json) {
		printf("%llu\n", llu(n));
		return;
	}
	cli_json(KV("bounds", b->name), KV("workloads", n));
}

/* The part of the set that --shard, --skip and --limit leave. */
static void select_part(const struct options *o, uint64_t count, uint64_t *from, uint64_t *to)
{
	unsigned __int128 n = count;

	*from = 0;
	*to = count;
	if (o->shards) {
		*from = (uint64_t)(n * (o->shard - 1) / o->shards);
		*to = (uint64_t)(n * o->shard / o->shards);
	}
	*from += min(o->skip, *to - *from);
	*to = *from + min(o->limit, *to - *from);
}

static int generate(const struct options *o)
{
	auto_bounds b;
	auto_free char *set = o->name ? gen_name_set(o->name) : NULL;
	const char *spec = o->bounds ? o->bounds : set;
	struct err err = ERR_INIT;
	struct gen *g = NULL;
	uint64_t from, to;

	bounds_init(&b);
	if (!spec)
		return o->name ? cli_usage(&cmd_gen,
					   "'%.100s' is not the name of a workload, such as "
					   "seq-1.0000/7",
					   o->name)
			       : cli_usage(&cmd_gen, "--bounds is missing");
	int rc = bounds_load(spec, &b, &err);
	if (rc == -ENOENT && !o->bounds)
		return cli_failf(
			"'%s' is not a named set; give the file it came from with --bounds", spec);
	if (!rc)
		rc = gen_new(&b, &g, &err);
	if (!rc && o->name) {
		rc = gen_name_index(g, o->name, &from, &err);
		if (!rc)
			rc = write_range(g, from, from + 1, o, &err);
	} else if (!rc) {
		select_part(o, gen_count(g), &from, &to);
		if (o->count)
			print_count(o, &b, o->sampled ? min(o->sample, to - from) : to - from);
		else
			rc = write_range(g, from, to, o, &err);
	}
	gen_free(g);
	return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- the command line ---- */

static int parse_shard(void *into, const char *arg, struct err *err)
{
	struct options *o = into;
	auto_free char *copy = xstrdup(arg);
	char *slash = strchr(copy, '/');

	if (slash)
		*slash++ = '\0';
	if (!slash || number_parse(copy, &o->shard) || number_parse(slash, &o->shards) ||
	    !o->shard || o->shard > o->shards)
		return err_set(err, -EINVAL, "--shard is I/N with 1 <= I <= N, not '%.40s'", arg);
	return 0;
}

#define AT(member) OPT_AT(struct options, member)
static const struct opt options[] = {
	{ OPT_SECTION, .help = "Which workloads" },
	{ OPT_TEXT, "bounds", .arg = "SET|FILE", AT(bounds), .help = HELP_BOUNDS },
	{ OPT_CALL, "shard", 0, "I/N", .call = parse_shard,
	  .help = "the I-th of N equal parts, I from 1 to N" },
	{ OPT_COUNT, "skip", 0, "N", AT(skip), .help = "leave out the first N" },
	OPTION_LIMIT("workloads", AT(limit)),
	{ OPT_COUNT, "sample", 0, "N", AT(sample),
	  .help = "N of them, spread evenly, at places drawn from the seed" },
	{ OPT_NUMBER, "seed", 0, "N", AT(seed), .help = "for --sample", .otherwise = "0" },
	{ OPT_TEXT, "name", 0, "NAME", AT(name), .help = "the one workload of that name" },
	{ OPT_SECTION, .help = "Output" },
	{ OPT_CHOICE, "as", 0, "FORM", AT(form), .words = "workload xfstests",
	  .help = "workload, or xfstests: a test of that suite for each", .otherwise = "workload" },
	{ OPT_TEXT, "output", 'o', "DIR", AT(output), .hint = HINT_DIR,
	  .help = "where the tests of xfstests go" },
	{ OPT_FLAG, "count", 'c', NULL, AT(count), .help = "how many there are, and nothing else" },
	{ OPT_FLAG, "list", 0, NULL, AT(list), .help = "the named sets, with their counts" },
	{ OPT_TEXT, "show", 0, "SET|FILE", AT(show), .list = list_bounds, .hint = HINT_FILE,
	  .help = "the bounds themselves, in full" },
	{ OPT_FLAG, "list-operations", 0, NULL, AT(list_operations),
	  .help = "the operations of the workload language" },
	{ OPT_FLAG, "import", 0, NULL, AT(import),
	  .help = "read workloads, or CrashMonkey's j-lang, and print them in our form" },
	{ OPT_FLAG, "json", 0, NULL, AT(json), .help = "for --count and --list: one JSON object" },
	{ OPT_ARGUMENT, .arg = "FILE...", .hint = HINT_FILE,
	  .help = "the files that --import reads" },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct options *o = given;

	o->sampled = args_given(args, "sample");
	if (!args_given(args, "limit"))
		o->limit = UINT64_MAX;
	if (o->import)
		return import_files(args->v);
	if (args->n)
		return cli_usage(&cmd_gen, "'%.60s' is not expected here", args->v[0]);
	if (o->json && !o->list && !o->count)
		return cli_usage(&cmd_gen, "--json goes with --count or --list");
	if ((o->form == FORM_XFSTESTS) != (o->output != NULL))
		return cli_usage(&cmd_gen, "--as xfstests and --output go together");
	if (o->output && mkdir(o->output, 0777) < 0 && errno != EEXIST)
		return cli_failf("cannot make %s: %m", o->output);
	if (o->list)
		return list_sets(o->json);
	if (o->list_operations)
		return list_operations();
	return o->show ? show_bounds(o->show) : generate(o);
}

const struct command cmd_gen = {
	.name = "gen",
	.summary = "writes every workload inside stated bounds",
	.usage = "--bounds SET|FILE [OPTIONS]\n"
		 "--name NAME [--bounds FILE]\n"
		 "--import FILE...\n"
		 "--list | --show SET|FILE | --list-operations",
	.about = "Writes every workload inside the bounds to standard output.",
	.example = "outage gen --bounds seq-1 --limit 3",
	.options = options,
	.size = sizeof(struct options),
	.run = run,
};
