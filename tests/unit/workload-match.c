/* SPDX-License-Identifier: MIT */
/* The matcher of workload-match.h: what is the same workload, and what is a near miss. */
#include "tap.h"
#include "workload-match.h"

/* One operation a line in the parser's form; here ';' ends a line. */
static void read_ops(const char *text, struct workload *w)
{
	auto_free char *copy = xstrdup(text);
	struct err err = ERR_INIT;

	for (char *p = copy; *p; p++)
		if (*p == ';')
			*p = '\n';
	workload_init(w);
	if (workload_parse(copy, strlen(copy), "test", w, &err))
		printf("# %s\n", err.msg);
}

static void compare(const char *a, const char *b, bool want, const char *why)
{
	auto_workload x, y;

	read_ops(a, &x);
	read_ops(b, &y);
	if (!ok(x.ops.n && y.ops.n && workloads_match(&x, &y) == want, "%s: %s",
		want ? "the same" : "another", why) ||
	    !ok(workloads_match(&y, &x) == want, "... and the other way round"))
		printf("#   %s\n#   %s\n", a, b);
}

/* A workload, the same in other words, and workloads that a forgiving matcher takes for it. */
static const struct {
	const char *text;
	struct {
		const char *why, *text;
	} same[6], other[16];
} cases[] = {
	{ "setup mkdir A; setup sync; rename A B; creat B/foo; fsync B/foo; fsync B",
	  { { "itself",
	      "setup mkdir A; setup sync; rename A B; creat B/foo; fsync B/foo; fsync B" },
	    { "other names",
	      "setup mkdir D; setup sync; rename D C; creat C/x; fsync C/x; fsync C" },
	    { "syncfs is a sync",
	      "setup mkdir A; setup syncfs; rename A B; creat B/foo; fsync B/foo; fsync B" } },
	  { { "nothing is durable before",
	      "setup mkdir A; rename A B; creat B/foo; fsync B/foo; fsync B" },
	    { "an fsync before in place of a sync",
	      "setup mkdir A; setup fsync A; rename A B; creat B/foo; fsync B/foo; fsync B" },
	    { "the sync is an operation",
	      "setup mkdir A; sync; rename A B; creat B/foo; fsync B/foo; fsync B" },
	    { "the sync comes too late",
	      "setup mkdir A; rename A B; setup sync; creat B/foo; fsync B/foo; fsync B" },
	    { "the directory is made by an operation",
	      "mkdir A; setup sync; rename A B; creat B/foo; fsync B/foo; fsync B" },
	    { "the file is made by setup",
	      "setup mkdir A; setup sync; rename A B; setup creat B/foo; fsync B/foo; fsync B" },
	    { "the file is elsewhere",
	      "setup mkdir A; setup sync; rename A B; creat foo; fsync foo; fsync B" },
	    { "fsync of another file",
	      "setup mkdir A; setup sync; rename A B; creat B/foo; setup creat B/bar; "
	      "fsync B/bar; fsync B" },
	    { "fsync of another directory",
	      "setup mkdir A; setup sync; rename A B; creat B/foo; fsync B/foo; fsync ." },
	    { "fdatasync for fsync",
	      "setup mkdir A; setup sync; rename A B; creat B/foo; fdatasync B/foo; fsync B" },
	    { "the other order of the two fsync",
	      "setup mkdir A; setup sync; rename A B; creat B/foo; fsync B; fsync B/foo" },
	    { "one fsync less", "setup mkdir A; setup sync; rename A B; creat B/foo; fsync B/foo" },
	    { "one fsync more", "setup mkdir A; setup sync; rename A B; fsync B; creat B/foo; "
				"fsync B/foo; fsync B" },
	    { "a file that is there, too", "setup mkdir A; setup creat A/bar; setup sync; "
					   "rename A B; creat B/foo; fsync B/foo; fsync B" },
	    { "a directory that is replaced", "setup mkdir A; setup mkdir B; setup sync; "
					      "rename A B; creat B/foo; fsync B/foo; fsync B" } } },
	{ "setup mkdir A; setup creat A/foo; setup creat A/bar; setup sync; link A/foo A/foo2; "
	  "link A/bar A/bar2; fsync A/bar",
	  { { "setup in another order",
	      "setup mkdir A; setup creat A/bar; setup creat A/foo; setup sync; "
	      "link A/foo A/foo2; link A/bar A/bar2; fsync A/bar" },
	    { "two syncs", "setup mkdir A; setup sync; setup creat A/foo; setup creat A/bar; "
			   "setup sync; link A/foo A/foo2; link A/bar A/bar2; fsync A/bar" } },
	  { { "the second file is not durable",
	      "setup mkdir A; setup creat A/foo; setup sync; link A/foo A/foo2; "
	      "setup creat A/bar; link A/bar A/bar2; fsync A/bar" },
	    { "the second file came after the sync",
	      "setup mkdir A; setup creat A/foo; setup sync; setup creat A/bar; "
	      "link A/foo A/foo2; link A/bar A/bar2; fsync A/bar" },
	    { "two links of one file",
	      "setup mkdir A; setup creat A/foo; setup creat A/bar; setup sync; "
	      "link A/foo A/foo2; link A/foo A/bar2; fsync A/bar" },
	    { "a link of the new name",
	      "setup mkdir A; setup creat A/foo; setup creat A/bar; setup sync; "
	      "link A/foo A/foo2; link A/foo2 A/bar2; fsync A/bar" },
	    { "fsync of the other file",
	      "setup mkdir A; setup creat A/foo; setup creat A/bar; setup sync; "
	      "link A/foo A/foo2; link A/bar A/bar2; fsync A/foo" },
	    { "another directory",
	      "setup mkdir A; setup mkdir B; setup creat A/foo; setup creat A/bar; setup sync; "
	      "link A/foo A/foo2; link A/bar B/bar2; fsync A/bar" },
	    { "the files are one file",
	      "setup mkdir A; setup creat A/foo; setup link A/foo A/bar; setup sync; "
	      "link A/foo A/foo2; link A/bar A/bar2; fsync A/bar" },
	    { "a file has data",
	      "setup mkdir A; setup write A/foo 0 4096; setup creat A/bar; setup sync; "
	      "link A/foo A/foo2; link A/bar A/bar2; fsync A/bar" } } },
	{ "setup mkdir A; setup creat A/foo; link A/foo A/bar; sync; remove A/bar; fsync A/foo",
	  { { "what a later sync makes durable anyway",
	      "setup mkdir A; setup sync; setup creat A/foo; link A/foo A/bar; sync; "
	      "remove A/bar; fsync A/foo" } },
	  { { "no sync in between",
	      "setup mkdir A; setup creat A/foo; link A/foo A/bar; remove A/bar; fsync A/foo" },
	    { "an fsync in between", "setup mkdir A; setup creat A/foo; link A/foo A/bar; "
				     "fsync A/foo; remove A/bar; fsync A/foo" },
	    { "unlink for remove",
	      "setup mkdir A; setup creat A/foo; link A/foo A/bar; sync; unlink A/bar; "
	      "fsync A/foo" },
	    { "the other name is removed",
	      "setup mkdir A; setup creat A/foo; link A/foo A/bar; sync; remove A/foo; "
	      "fsync A/bar" },
	    { "the removed name is there again, undurable",
	      "setup mkdir A; setup creat A/foo; link A/foo A/bar; sync; remove A/bar; "
	      "setup creat A/bar; fsync A/foo" } } },
	{ "setup write foo 0 16384; setup sync; falloc foo punch,keep 8000 4096; fsync foo",
	  { { "other numbers",
	      "setup write foo 0 8192; setup sync; falloc foo punch,keep 100 5000; fsync foo" } },
	  { { "whole blocks",
	      "setup write foo 0 16384; setup sync; falloc foo punch,keep 8192 4096; fsync foo" },
	    { "up to the end",
	      "setup write foo 0 16384; setup sync; falloc foo punch,keep 8000 8384; fsync foo" },
	    { "from the start",
	      "setup write foo 0 16384; setup sync; falloc foo punch,keep 0 4000; fsync foo" },
	    { "zeroes for a hole",
	      "setup write foo 0 16384; setup sync; falloc foo zero,keep 8000 4096; fsync foo" },
	    { "in a file that was not durable",
	      "setup write foo 0 16384; falloc foo punch,keep 8000 4096; fsync foo" },
	    { "behind the end", "setup write foo 0 4096; setup sync; falloc foo punch,keep 8000 "
				"4096; fsync foo" } } },
	{ "setup write f 0 16384; setup sync; falloc f punch,keep 12288 4096; "
	  "falloc f punch,keep 8192 16384; fsync f",
	  { { "other numbers",
	      "setup write f 0 131072; setup sync; falloc f punch,keep 98304 32768; "
	      "falloc f punch,keep 65536 131072; fsync f" } },
	  { { "ranges that only touch",
	      "setup write f 0 16384; setup sync; falloc f punch,keep 8192 8192; "
	      "falloc f punch,keep 8192 16384; fsync f" },
	    { "the other order",
	      "setup write f 0 16384; setup sync; falloc f punch,keep 8192 16384; "
	      "falloc f punch,keep 12288 4096; fsync f" },
	    { "in two files",
	      "setup write f 0 16384; setup write g 0 16384; setup sync; "
	      "falloc g punch,keep 12288 4096; falloc f punch,keep 8192 16384; fsync f" } } },
	{ "setup creat f; setup sync; write f 8192 8192; dwrite f 0 4096 sync",
	  { { "other numbers",
	      "setup creat f; setup sync; write f 16384 4096; dwrite f 0 8192 sync" } },
	  { { "not O_SYNC",
	      "setup creat f; setup sync; write f 8192 8192; dwrite f 0 4096; fsync f" },
	    { "O_DSYNC", "setup creat f; setup sync; write f 8192 8192; dwrite f 0 4096 dsync" },
	    { "the write makes the file", "write f 8192 8192; dwrite f 0 4096 sync" },
	    { "ranges that touch",
	      "setup creat f; setup sync; write f 4096 4096; dwrite f 0 4096 sync" },
	    { "no hole", "setup creat f; setup sync; write f 0 8192; dwrite f 0 4096 sync" } } },
	{ "setup creat f; setup setxattr f user.x v; setup setxattr f user.y v; setup sync; "
	  "removexattr f user.x; fsync f",
	  { { "the other attribute",
	      "setup creat f; setup setxattr f user.a v; setup setxattr f user.b v; setup sync; "
	      "removexattr f user.b; fsync f" } },
	  { { "one attribute less", "setup creat f; setup setxattr f user.x v; setup sync; "
				    "removexattr f user.x; fsync f" },
	    { "one that is not durable",
	      "setup creat f; setup setxattr f user.x v; setup sync; setup setxattr f user.y v; "
	      "removexattr f user.x; fsync f" } } },
	{ "setup mkdir A; creat A/foo; sync; rename A B; mkdir A; fsync A",
	  { { "itself", "setup mkdir A; creat A/foo; sync; rename A B; mkdir A; fsync A" } },
	  { { "the new directory has another name",
	      "setup mkdir A; creat A/foo; sync; rename A B; mkdir C; fsync C" },
	    { "fsync of the moved one",
	      "setup mkdir A; creat A/foo; sync; rename A B; mkdir A; fsync B" },
	    { "deeper", "setup mkdir C; setup mkdir C/A; creat C/A/foo; sync; rename C/A C/B; "
			"mkdir C/A; fsync C/A" },
	    { "the file is removed before",
	      "setup mkdir A; creat A/foo; sync; setup unlink A/foo; rename A B; mkdir A; "
	      "fsync A" } } },
	{ "setup mkdir A; setup mkfifo A/foo; setup sync; rename A/foo A/bar; fsync A",
	  { { "itself",
	      "setup mkdir A; setup mkfifo A/x; setup sync; rename A/x A/foo; fsync A" } },
	  { { "of a file", "setup mkdir A; setup creat A/foo; setup sync; rename A/foo A/bar; "
			   "fsync A" },
	    { "of a symbolic link",
	      "setup mkdir A; setup symlink t A/foo; setup sync; rename A/foo A/bar; fsync A" } } },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t j = 0; cases[i].same[j].text; j++)
			compare(cases[i].text, cases[i].same[j].text, true, cases[i].same[j].why);
		for (size_t j = 0; cases[i].other[j].text; j++)
			compare(cases[i].text, cases[i].other[j].text, false,
				cases[i].other[j].why);
	}
	return done_testing();
}
