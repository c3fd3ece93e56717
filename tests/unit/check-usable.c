/* SPDX-License-Identifier: MIT */
/* A full file system is usable; one that stays full when everything was removed is not. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

static unsigned naps;

static void count_nap(unsigned ms)
{
	naps++;
	util_sleep_ms(ms);
}

/* How many problems there are; `list` has them. Room may take so long to come back. */
static size_t problems_within(unsigned ms, int root, struct findings *list)
{
	auto_tree seen = TREE_INIT;
	struct err err = ERR_INIT;
	struct tree_opts opts = { 0 };
	struct check_patience patience = { ms, count_nap };

	naps = 0;

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
	ok(naps > 1, "after some time for its room to come back (%u naps)", naps);
	while (k)
		close(held[--k]);
	is_u(problems(root, &list), 0, "until its room comes back");
}

/* From now on, this process can make no file: ENOSPC. */
static bool lose_room(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The root's own directory, with room, as on a disk whose bitmaps were lost. */
static void try_damaged(const char *dir)
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		auto_findings list = { 0 };
		int root = mount("none", dir, "tmpfs", 0, "nr_inodes=1000,size=1m")
				   ? -1
				   : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool found = root >= 0 && lose_room() && problems(root, &list) == 1 &&
			     list.v[0].kind == FINDING_UNUSABLE;

		_exit(!found ? 1 : naps ? 2 : 0);
	}
	waitpid(child, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) != 1,
	   "one that has room, and none for a file, is not usable");
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "which no time would change");
	umount2(dir, MNT_DETACH);
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
	try_damaged(dir);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	return done_testing();
}
