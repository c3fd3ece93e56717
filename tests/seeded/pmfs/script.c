/* SPDX-License-Identifier: MIT */
/* script.c - operations as text, in the words of outage-workload(5). */
#include <errno.h>

#include "pmfs.h"

enum { WORDS_MAX = 6 };

struct words {
	char *w[WORDS_MAX];
	int n;
	uint64_t number[WORDS_MAX]; /* of those that are numbers, as in C */
};

static void split(char *line, struct words *w)
{
	char *at = line;

	*w = (struct words){ 0 };
	while (w->n < WORDS_MAX) {
		at += strspn(at, " \t");
		if (!*at)
			break;
		w->w[w->n] = at;
		w->number[w->n++] = strtoull(at, NULL, 0);
		at += strcspn(at, " \t");
		if (*at)
			*at++ = '\0';
	}
}

/* In the workload language a write makes the file; here, as an operation before it. */
static void make_file(struct pmfs *fs, const struct words *w)
{
	static const char *const ops[] = { "write", "append", "falloc" };
	uint32_t ino;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (streq(w->w[0], ops[i]) && w->n > 1 && path_find(fs, w->w[1], &ino) == -ENOENT)
			(void)!pmfs_creat(fs, w->w[1]);
}

/* 1: there is no such operation. */
static int perform(struct pmfs *fs, const struct words *w)
{
	const char *op = w->w[0];

	if (streq(op, "creat") && w->n == 2)
		return pmfs_creat(fs, w->w[1]);
	if (streq(op, "mkdir") && w->n == 2)
		return pmfs_mkdir(fs, w->w[1]);
	if (streq(op, "rmdir") && w->n == 2)
		return pmfs_rmdir(fs, w->w[1]);
	if (streq(op, "unlink") && w->n == 2)
		return pmfs_unlink(fs, w->w[1]);
	if (streq(op, "remove") && w->n == 2) {
		int rc = pmfs_unlink(fs, w->w[1]);

		return rc == -EISDIR ? pmfs_rmdir(fs, w->w[1]) : rc;
	}
	if (streq(op, "link") && w->n == 3)
		return pmfs_link(fs, w->w[1], w->w[2]);
	if (streq(op, "symlink") && w->n == 3)
		return pmfs_symlink(fs, w->w[1], w->w[2]);
	if (streq(op, "rename") && w->n == 3)
		return pmfs_rename(fs, w->w[1], w->w[2]);
	if (streq(op, "chmod") && w->n == 3)
		return pmfs_chmod(fs, w->w[1], (unsigned)w->number[2]);
	if (streq(op, "write") && w->n == 4)
		return pmfs_write(fs, w->w[1], w->number[2], w->number[3]);
	if (streq(op, "append") && w->n == 3)
		return pmfs_append(fs, w->w[1], w->number[2]);
	if (streq(op, "truncate") && w->n == 3)
		return pmfs_truncate(fs, w->w[1], w->number[2]);
	if (streq(op, "falloc") && w->n == 5 && (streq(w->w[2], "keep") || streq(w->w[2], "plain")))
		return pmfs_falloc(fs, w->w[1], streq(w->w[2], "keep"), w->number[3], w->number[4]);
	/* Everything is durable already. */
	return streq(op, "sync") || streq(op, "fsync") || streq(op, "fdatasync") ? 0 : 1;
}

int script_run_line(struct pmfs *fs, const char *line, unsigned number, int *result,
		    struct err *err)
{
	auto_free char *copy = xstrdup(line);
	struct words w;

	*result = 0;
	split(copy, &w);
	if (!w.n || *w.w[0] == '#')
		return 0;
	fs->salt = number + 1;
	make_file(fs, &w);
	pm_begin(&fs->m, number, line);
	*result = perform(fs, &w);
	pm_end(&fs->m, number);
	if (*result == 1)
		return err_set(err, -EINVAL, "'%s' is no operation", line);
	return 0;
}
