/* SPDX-License-Identifier: MIT */
/* A full file system is usable; one that stays full when everything was removed is not. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/check.h"
#include "tap.h"

static int make_file(int root, const char *name)
{
	return openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

/* Files until no more can be made; how many there are. */
static unsigned fill(int root, const char *below)
{
	unsigned n = 0;

	for (;; n++) {
		char name[64];

		snprintf(name, sizeof(name), "%sf%u", below, n);
		int fd = make_file(root, name);
		if (fd < 0)
			return n;
		close(fd);
	}
}

/* How many problems there are; `list` has them. Room may take so long to come back. */
static size_t problems_within(unsigned ms, int root, struct findings *list)
{
	auto_tree seen = TREE_INIT;
	struct err err = ERR_INIT;
	struct tree_opts opts = { 0 };
	struct check_patience patience = { ms, util_sleep_ms };

	findings_clear(list);
	if (tree_walk(root, &opts, &seen, &err) || check_usable(root, &seen, &patience, list, &err))
		return 999;
	return list->n;
}

static size_t problems(int root, struct findings *list)
{
	return problems_within(300000, root, list);
}

static void try_all(int root)
{
	auto_findings list = { 0 };

	is_u(problems(root, &list), 0, "an empty file system is usable");
	ok(fill(root, "") > 4, "it is full of files");
	is_u(problems(root, &list), 0, "and is usable");
	ok(!mkdirat(root, "a", 0755) && !mkdirat(root, "z", 0755) && fill(root, "a/"),
	   "it is full, with directories");
	is_u(problems(root, &list), 0, "and is usable");
	unsigned n = 0;
	for (char name[16]; n < 100; n++) {
		snprintf(name, sizeof(name), "d%u", n);
		if (mkdirat(root, name, 0755) < 0)
			break;
	}
	ok(n > 4 && errno == ENOSPC, "it is full of directories");
	is_u(problems(root, &list), 0, "and is usable");

	/* Files that are held open and have no name keep all there is. */
	int held[100];
	unsigned k = 0;
	while (k < 100 && (held[k] = make_file(root, "held")) >= 0) {
		unlinkat(root, "held", 0);
		k++;
	}
	is_u(problems_within(200, root, &list), 1, "one that stays full when it is empty is not");
	ok(list.n == 1 && list.v[0].kind == FINDING_UNUSABLE && strstr(list.v[0].words, "the root"),
	   "which is said of the root");
	while (k)
		close(held[--k]);
	is_u(problems(root, &list), 0, "until its room comes back");
}

int main(void)
{
	char dir[] = "/tmp/check-usable-XXXXXX";

	if (geteuid() != 0 || !mkdtemp(dir)) {
		puts("1..0 # SKIP mounting needs root");
		return 77;
	}
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "nr_inodes=16,size=1m") < 0) {
		rmdir(dir);
		puts("1..0 # SKIP cannot mount here");
		return 77;
	}
	int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ok(root >= 0, "it is mounted"))
		try_all(root);
	close(root);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	return done_testing();
}
