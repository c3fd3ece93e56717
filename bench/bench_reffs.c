/* SPDX-License-Identifier: MIT */
/*
 * bench_reffs.c - how fast the reference file system is in a tree of 1,000 files: operations with
 * their hash, saving, restoring, calls by inode number, states in files. Prints "key value" lines.
 *
 * "ops" is a mixture in which each file is created, written, linked, renamed and so on; with
 * "saved" a state is kept after every operation, as the model checker does, so that every change
 * has to make new nodes.
 */
#include <time.h>

#include "base/err.h"
#include "fs/reffs_pool.h"
#include "fs/vfs.h"

enum { DIRS = 10, FILES = 100, ROUNDS = 200, SAVES = 100000, KEPT = 64 };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add(struct workload *w, const char *fmt, int d, int f)
{
	struct err err = ERR_INIT;
	auto_strbuf line = STRBUF_INIT;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	strbuf_addf(&line, fmt, d, f);
#pragma GCC diagnostic pop
	if (workload_add_line(w, strbuf_str(&line), &err)) {
		fprintf(stderr, "bench_reffs: %s\n", err.msg);
		exit(2);
	}
}

static void perform(struct reffs *r, const struct workload *w)
{
	for (size_t i = 0; i < w->ops.n; i++)
		if (reffs_op(r, w, i) < 0) {
			fprintf(stderr, "bench_reffs: operation %zu fails\n", i);
			exit(2);
		}
}

static struct reffs *thousand_files(void)
{
	struct reffs *r = reffs_new(NULL);
	auto_workload w;

	workload_init(&w);
	for (int d = 0; d < DIRS; d++) {
		add(&w, "mkdir dir%d", d, 0);
		for (int f = 0; f < FILES; f++)
			add(&w, "write dir%d/file%02d 0 4096", d, f);
	}
	perform(r, &w);
	return r;
}

/* Leaves everything as it was, so that it can be performed again and again. */
static void mixture(struct workload *w)
{
	static const char *const lines[] = {
		"creat dir%d/new%d",
		"write dir%d/new%d 0 1000",
		"chmod dir%d/new%d 0600",
		"append dir%d/new%d 100",
		"setxattr dir%d/new%d user.x value",
		"fsync dir%d/new%d",
		"link dir%1$d/new%2$d dir%1$d/other",
		"rename dir%1$d/new%2$d dir%1$d/file%2$d",
		"truncate dir%d/file%d 10",
		"mkdir dir%d/sub",
		"rename dir%1$d/other dir%1$d/sub/moved",
		"unlink dir%d/sub/moved",
		"rmdir dir%d/sub",
	};

	for (int d = 0; d < DIRS; d++)
		for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
			add(w, lines[i], d, 10 + d);
}

static void measure_ops(const char *key, bool saved)
{
	struct reffs_state *kept[KEPT] = { NULL };
	struct reffs *r = thousand_files();
	auto_workload w;

	workload_init(&w);
	mixture(&w);
	reffs_begin(r, &w);
	double start = now_s();
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < w.ops.n; i++) {
			reffs_op(r, &w, i);
			if (!saved)
				continue;
			reffs_state_unref(kept[i % KEPT]);
			kept[i % KEPT] = reffs_save(r);
		}
	}
	printf("%s %.0f\n", key, ROUNDS * (double)w.ops.n / (now_s() - start));
	for (size_t k = 0; k < KEPT; k++)
		reffs_state_unref(kept[k]);
	reffs_free(r);
}

/* Between save and restore something changes, or there would be nothing to restore. */
static void measure_save_restore(void)
{
	struct reffs *r = thousand_files();
	double saving = 0, restoring = 0;
	auto_workload w;

	workload_init(&w);
	add(&w, "chmod dir%d/file%02d 0600", 3, 42);
	for (int i = 0; i < SAVES; i++) {
		double start = now_s();
		struct reffs_state *s = reffs_save(r);

		saving += now_s() - start;
		reffs_op(r, &w, 0);
		start = now_s();
		reffs_restore(r, s);
		restoring += now_s() - start;
		reffs_state_unref(s);
	}
	printf("reffs_save_ns %.0f\n", saving / SAVES * 1e9);
	printf("reffs_restore_ns %.0f\n", restoring / SAVES * 1e9);
	reffs_free(r);
}

/* By inode number, as a mount does. */
static void measure_calls(void)
{
	enum { CALLS = 4 };
	struct reffs *r = thousand_files();
	char name[32];
	uint64_t ino;

	double start = now_s();
	for (int i = 0; i < SAVES; i++) {
		snprintf(name, sizeof(name), "new%d", i % 100);
		vfs_create(r, &reffs_root, REFFS_ROOT_INO, name, 0644, &ino);
		vfs_write(r, &reffs_root, ino, "text", 0, 4, 0);
		vfs_lookup(r, &reffs_root, REFFS_ROOT_INO, name, &ino);
		vfs_unlink(r, &reffs_root, REFFS_ROOT_INO, name);
	}
	printf("reffs_calls_per_s %.0f\n", CALLS * SAVES / (now_s() - start));
	reffs_free(r);
}

/* A thousand states that differ in a file each, to a file and back. */
static void measure_pickle(void)
{
	enum { STATES = 1000 };
	struct reffs *r = thousand_files();
	struct reffs_pool pool = { 0 }, loaded = { 0 };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	uint64_t ino;

	for (uint64_t i = 0; i < STATES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "new%d", (int)i);
		vfs_create(r, &reffs_root, REFFS_ROOT_INO, name, 0644, &ino);
		struct reffs_state *s = reffs_save(r);
		reffs_pool_put(&pool, i, s);
		reffs_state_unref(s);
	}
	double start = now_s();
	if (reffs_pickle(&pool, NULL, &text, &err))
		exit(2);
	printf("reffs_pickle_states_per_s %.0f\n", STATES / (now_s() - start));
	printf("reffs_pickle_bytes_per_state %.0f\n", (double)text.len / STATES);
	start = now_s();
	if (reffs_load(r, &loaded, text.buf, text.len, &err))
		exit(2);
	printf("reffs_load_states_per_s %.0f\n", STATES / (now_s() - start));
	reffs_pool_release(&pool);
	reffs_pool_release(&loaded);
	reffs_free(r);
}

int main(void)
{
	measure_ops("reffs_ops_per_s", false);
	measure_ops("reffs_ops_saved_per_s", true);
	measure_save_restore();
	measure_calls();
	measure_pickle();
	return 0;
}
