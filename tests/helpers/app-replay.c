/* SPDX-License-Identifier: MIT */
/*
 * app-replay.c - drives the engine for crashes of applications with recorded runs, for the tests.
 *
 *	app-replay numbers ROOT FILE
 *		writes down which inode is what in ROOT, before the run
 *	app-replay all NUMBERS TRACE BASE ROOT PROFILE
 *		whether ROOT, after a run that began with what BASE is, is the state in which
 *everything survives; prints what differs app-replay check NUMBERS TRACE BASE ROOT PROFILE BUDGET
 *COMMAND runs a check on crash states, which stand where BASE does; prints how each failed
 *
 * Exit status: 0 the same, or all checks passed; 1 not; 2 failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "app/checkers.h"
#include "core/trace_file.h"

static _Noreturn void die(const struct err *err)
{
	fprintf(stderr, "app-replay: %s\n", err->msg);
	exit(2);
}

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static int numbers(const char *dir, const char *file)
{
	auto_fd fd = open_dir(dir);
	struct err err = ERR_INIT;
	auto_trace t;

	trace_init(&t);
	if (history_lookups(fd, &t, &err) || trace_save(file, &t, &err))
		die(&err);
	return 0;
}

struct run {
	struct trace t;
	struct history h;
	int base, live;
};

static void add_trace(struct trace *to, const char *file)
{
	struct trace_damage damage = { 0 };
	struct err err = ERR_INIT;
	auto_trace t;

	trace_init(&t);
	if (trace_load(file, &t, &damage, &err))
		die(&err);
	for (size_t i = 0; i < t.events.n; i++)
		trace_append(to, &t.events.v[i]);
}

static void load(struct run *r, char **arg)
{
	struct err err = ERR_INIT;
	struct stat st;

	trace_init(&r->t);
	add_trace(&r->t, arg[0]);
	add_trace(&r->t, arg[1]);
	r->base = open_dir(arg[2]);
	r->live = open_dir(arg[3]);
	if (fstat(r->live, &st) || !profile_find(arg[4]))
		exit(2);
	struct history_opts opts = { .profile = profile_find(arg[4]),
				     .base = r->base,
				     .root_ino = st.st_ino };
	if (history_new(&r->t, &opts, &r->h, &err))
		die(&err);
	if (r->h.skipped)
		printf("skipped %" PRIu64 " events\n", r->h.skipped);
}

static void unload(struct run *r)
{
	history_release(&r->h);
	trace_release(&r->t);
	util_close(r->base);
	util_close(r->live);
}

static int all(char **arg)
{
	struct vec_of(struct survivor) v = { 0 };
	auto_tree want = TREE_INIT, seen = TREE_INIT;
	auto_tree_diff d = { 0 };
	struct tree_opts opts = { 0 };
	struct err err = ERR_INIT;
	uint32_t from, to;
	struct run r;

	load(&r, arg);
	uint64_t point = r.t.events.n;
	history_window(&r.h, point, &from, &to);
	for (uint32_t i = from; i < to; i++)
		if (!change_is_durable(&r.h.changes.v[i], point))
			vec_push(&v, (struct survivor){ i, NULL });
	struct reffs_state *s = history_build(&r.h, point, v.v, v.n);
	reffs_tree(s, &opts, &want);
	reffs_state_unref(s);
	if (tree_walk(r.live, &opts, &seen, &err))
		die(&err);
	tree_diff(&want, &seen, &opts, &d);
	for (size_t i = 0; i < d.list.n; i++)
		printf("%s\n", d.list.v[i].words);
	printf("%zu changes, %zu may be lost\n", r.h.changes.n, v.n);
	bool same = !d.list.n && !r.h.skipped;
	vec_release(&v);
	unload(&r);
	return !same;
}

static int print_failed(void *ctx, const struct app_state *s, const struct check_result *r)
{
	auto_strbuf words = STRBUF_INIT;

	(void)ctx;
	check_describe(r, &words);
	if (r->end != CHECK_PASSED)
		printf("%s: %s: %s\n", s->id, strbuf_str(&words), strbuf_str(&r->output));
	return 0;
}

static int check(char **arg)
{
	struct checkers_stats stats;
	struct states_stats all_states;
	struct states *s = NULL;
	struct err err = ERR_INIT;
	struct run r;

	load(&r, arg);
	struct checkers_opts o = { .jobs = 2,
				   .place = { .base = arg[2], .before = r.h.before, .at = arg[2] },
				   .check = { .command = arg[6] },
				   .done = print_failed };
	if (states_new(&r.h, &(struct states_opts){ .budget = strtoul(arg[5], NULL, 10) }, &s,
		       &err) ||
	    checkers_run(&r.h, s, &o, &stats, &err))
		die(&err);
	states_stats(s, &all_states);
	printf("%" PRIu64 " points, %" PRIu64 " tried, %" PRIu64 " unique, %" PRIu64
	       " checked, %" PRIu64 " failed, %" PRIu64 " errors\n",
	       all_states.points, all_states.tried, all_states.unique, stats.checked, stats.failed,
	       stats.errors);
	states_free(s);
	unload(&r);
	return stats.failed || stats.errors;
}

int main(int argc, char **argv)
{
	if (argc == 4 && streq(argv[1], "numbers"))
		return numbers(argv[2], argv[3]);
	if (argc == 7 && streq(argv[1], "all"))
		return all(argv + 2);
	if (argc == 9 && streq(argv[1], "check"))
		return check(argv + 2);
	fprintf(stderr, "usage: app-replay numbers|all|check ...\n");
	return 2;
}
