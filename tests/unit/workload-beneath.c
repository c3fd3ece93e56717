/* SPDX-License-Identifier: MIT */
/*
 * workload-beneath.c - paths that are opened by hand, for old kernels, lead where openat2(2) leads,
 * and fail as it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "tap.h"
#include "workload/beneath.h"

static char top[] = "/tmp/workload-beneath-XXXXXX";

static void make_tree(void)
{
	static const char script[] =
		"cd \"$0\" && mkdir -p root/d/e root/loop outside && : >root/f && : >root/d/g && "
		": >outside/secret && cd root && ln -s f lf && ln -s d ld && ln -s d/g lg && "
		"ln -s ../f d/up && ln -s ../../outside/secret d/out && ln -s /etc/passwd abs && "
		"ln -s .. above && ln -s gone dangling && ln -s a loop/b && ln -s b loop/a && "
		"ln -s ld/e/../g far && ln -s d/ slash && ln -s f/ fslash";
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)script, top, NULL };
	pid_t child = fork();

	if (!child) {
		execvp("sh", argv);
		_exit(127);
	}
	ok(child > 0 && waitpid(child, NULL, 0) == child, "a tree is made");
}

/* What was opened: its inode, or why not. */
static long long opened(int fd)
{
	struct stat st;
	long long what = fd;

	if (fd >= 0) {
		what = fstat(fd, &st) ? -1 : (long long)st.st_ino;
		close(fd);
	}
	return what;
}

static void compare(int root, const char *path, int flags)
{
	long long kernel = opened(beneath_open(root, path, flags, 0600));
	long long hand = opened(beneath_open_by_hand(root, path, flags, 0600, NULL));

	if (!ok(kernel == hand, "'%s' with %#x: %lld", path, (unsigned)flags, kernel))
		printf("#   by hand: %lld\n", hand);
}

static void compare_new(int root, const char *path, int flags)
{
	long long kernel = opened(beneath_open(root, path, flags, 0600));
	bool made = faccessat(root, "gone", F_OK, AT_SYMLINK_NOFOLLOW) == 0;

	unlinkat(root, "gone", 0);
	long long hand = opened(beneath_open_by_hand(root, path, flags, 0600, NULL));
	bool made_too = faccessat(root, "gone", F_OK, AT_SYMLINK_NOFOLLOW) == 0;

	unlinkat(root, "gone", 0);
	ok(made == made_too && (kernel < 0 ? kernel == hand : hand >= 0),
	   "'%s' made with %#x: %lld, %lld", path, (unsigned)flags, kernel, hand);
}

/* While others rename, the kernel cannot always be sure of ".."; who opens a file does not see
 * that. */
static void compare_while_renaming(int root)
{
	enum { OPENS = 200000 };
	auto_free char *a = xasprintf("%s/outside/a", top), *b = xasprintf("%s/outside/b", top);
	pid_t parent = getpid(), child = fork();
	unsigned wrong = 0;

	if (!child) {
		mkdir(a, 0755);
		while (getppid() == parent)
			if (rename(a, b) || rename(b, a))
				_exit(1);
		_exit(0);
	}
	for (unsigned i = 0; i < OPENS && !wrong; i++)
		wrong += opened(beneath_open(root, "d/e/../../d/../d/e/../../f", O_PATH, 0)) < 0;
	kill(child, SIGKILL);
	ok(child > 0 && waitpid(child, NULL, 0) == child && !wrong,
	   "a path with .. is found while others rename");
}

int main(void)
{
	static const char *const paths[] = {
		"",	 ".",	    "..",	 "/",	       "/etc",	   "f",		"d",
		"d/",	 "f/",	    "d/g",	 "d//g",       "./d/./g",  "d/../f",	"d/../../x",
		"gone",	 "gone/x",  "gone/../f", "f/../f",     "lf",	   "lf/",	"ld",
		"ld/",	 "ld/g",    "ld/../f",	 "lg",	       "d/up",	   "d/out",	"abs",
		"above", "above/x", "dangling",	 "dangling/x", "loop/a",   "loop/a/x",	"far",
		"slash", "slash/g", "fslash",	 "ld/e/..",    "d/e/../g", "dangling/", "slash/",
	};
	static const int flags[] = {
		O_RDONLY, O_PATH, O_RDONLY | O_NOFOLLOW, O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY,
		O_RDWR
	};
	static const char *const new_paths[] = { "gone",  "dangling", "d/../gone",
						 "gone/", "lf/gone",  "above/gone" };
	static const int new_flags[] = { O_WRONLY | O_CREAT, O_WRONLY | O_CREAT | O_EXCL,
					 O_WRONLY | O_CREAT | O_NOFOLLOW };

	ok(mkdtemp(top) != NULL, "a place");
	make_tree();
	auto_free char *path = xasprintf("%s/root", top);
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ok(root >= 0, "a root");
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
			compare(root, paths[i], flags[k]);
	for (size_t i = 0; i < ARRAY_SIZE(new_paths); i++)
		for (size_t k = 0; k < ARRAY_SIZE(new_flags); k++)
			compare_new(root, new_paths[i], new_flags[k]);
	compare_while_renaming(root);
	close(root);
	auto_free char *clean = xasprintf("rm -rf %s", top);
	ok(system(clean) == 0, "gone again");
	return done_testing();
}
