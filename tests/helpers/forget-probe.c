/* SPDX-License-Identifier: MIT */
/*
 * forget-probe.c - drives the mount that forgets.
 *
 *	forget-probe storm DIR SEED N	N random operations; a fifth of them sync something
 *	forget-probe tree DIR		what a user sees there, as text; the stash is left out
 *	forget-probe calls DIR		what an application may expect of any file system
 *	forget-probe crowd DIR SEED N	storms of four threads in directories of their own
 *	forget-probe links DIR N	counts a file's names N times, while removals of others
 *become durable
 *	forget-probe hold DIR FILE	opens FILE, says so, and for each line on standard input
 *tells what reading, writing and syncing it gives
 *
 * Each wrong thing is a line on standard output. Exit status: 0 all is right, 1 not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/rng.h"
#include "tree/tree.h"

static atomic_int wrong;

#define right(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("line %d: ", __LINE__);                                             \
			printf(__VA_ARGS__);                                                       \
			printf("\n");                                                              \
			wrong = 1;                                                                 \
		}                                                                                  \
	} while (0)

/* ---- storm ---- */

enum { NAMES = 7, DIRS = 3 };

/* A name in one of few directories, so that names meet. */
static void pick(struct rng *r, char *path, size_t size, bool dir)
{
	static const char *const dirs[DIRS + 1] = { "", "p/", "q/", "p/s/" };
	uint64_t d = rng_below(r, DIRS + 1);

	if (dir && !rng_below(r, 3))
		snprintf(path, size, "%s", (const char *const[]){ ".", "p", "q", "p/s" }[d]);
	else
		snprintf(path, size, "%s%c", dirs[d], (char)('a' + (char)rng_below(r, NAMES)));
}

static void do_write(int at, const char *path, struct rng *r)
{
	int fd = openat(at, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
	size_t len = rng_below(r, 3) ? rng_below(r, 300) : rng_below(r, 20000);
	char buf[20000];

	memset(buf, (int)('A' + rng_below(r, 26)), len);
	if (fd >= 0 && pwrite(fd, buf, len, (off_t)rng_below(r, 30000)) < 0)
		right(errno == ENOSPC, "write %s: %m", path);
	if (fd >= 0)
		close(fd);
}

static void do_truncate(int at, const char *path, struct rng *r)
{
	int fd = openat(at, path, O_RDWR | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (!rng_below(r, 3)) {
		int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

		right(!fallocate(fd, mode, (off_t)rng_below(r, 20000),
				 (off_t)(1 + rng_below(r, 9000))),
		      "punch %s: %m", path);
	} else {
		right(!ftruncate(fd, (off_t)rng_below(r, 20000)), "truncate %s: %m", path);
	}
	close(fd);
}

static void do_sync(int at, const char *path, struct rng *r)
{
	int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	right(!(rng_below(r, 2) ? fsync(fd) : fdatasync(fd)), "sync %s: %m", path);
	close(fd);
}

static void do_xattr(int at, const char *path, struct rng *r)
{
	int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	char value[8];

	if (fd < 0)
		return;
	snprintf(value, sizeof(value), "%u", (unsigned)rng_below(r, 1000));
	if (rng_below(r, 3))
		right(!fsetxattr(fd, "user.a", value, strlen(value), 0), "setxattr %s: %m", path);
	else
		(void)!fremovexattr(fd, "user.a");
	close(fd);
}

static void one(int at, struct rng *r)
{
	char a[32], b[32];

	pick(r, a, sizeof(a), false);
	pick(r, b, sizeof(b), false);
	switch (rng_below(r, 20)) {
	case 0 ... 4:
		do_write(at, a, r);
		break;
	case 5:
		do_truncate(at, a, r);
		break;
	case 6:
		(void)!unlinkat(at, a, 0);
		break;
	case 7:
		(void)!renameat(at, a, at, b);
		break;
	case 8:
		(void)!syscall(SYS_renameat2, at, a, at, b, 1 + rng_below(r, 2));
		break;
	case 9:
		(void)!linkat(at, a, at, b, 0);
		break;
	case 10:
		(void)!symlinkat(b, at, a);
		break;
	case 11:
		pick(r, a, sizeof(a), true);
		(void)!mkdirat(at, a, 0755);
		break;
	case 12:
		pick(r, a, sizeof(a), true);
		(void)!unlinkat(at, a, AT_REMOVEDIR);
		break;
	case 13:
		(void)!fchmodat(at, a, rng_below(r, 2) ? 0640 : 0600, 0);
		break;
	case 14:
		do_xattr(at, a, r);
		break;
	case 15:
		(void)!mknodat(at, a, S_IFSOCK | 0644, 0);
		break;
	default:
		pick(r, a, sizeof(a), true);
		do_sync(at, a, r);
	}
}

static void storm(int at, uint64_t seed, uint64_t n)
{
	struct rng r;

	rng_init(&r, seed);
	(void)!mkdirat(at, "p", 0755);
	(void)!mkdirat(at, "q", 0755);
	(void)!mkdirat(at, "p/s", 0755);
	while (n--)
		one(at, &r);
}

struct one_storm {
	int at;
	uint64_t seed, n;
};

static void *storm_thread(void *ctx)
{
	struct one_storm *s = ctx;

	storm(s->at, s->seed, s->n);
	return NULL;
}

static void crowd(int at, uint64_t seed, uint64_t n)
{
	struct one_storm s[4];
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++) {
		char name[8];

		/* Two of them share a directory. */
		snprintf(name, sizeof(name), "t%u", i / 2);
		(void)!mkdirat(at, name, 0755);
		s[i] = (struct one_storm){ openat(at, name, O_RDONLY | O_DIRECTORY), seed + i, n };
		right(!pthread_create(&threads[i], NULL, storm_thread, &s[i]), "no thread");
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* ---- links ---- */

static atomic_bool counted;

/* Each sync makes what was removed before durable: then the last trace of it goes. */
static void *sync_thread(void *ctx)
{
	int fd = openat(*(int *)ctx, "synced", O_RDWR | O_CREAT, 0644);

	while (fd >= 0 && !counted)
		right(pwrite(fd, "x", 1, 0) == 1 && !fsync(fd), "cannot be synced: %m");
	close(fd);
	return NULL;
}

static void links(int at, uint64_t n)
{
	int fd = openat(at, "one", O_RDWR | O_CREAT, 0644);
	pthread_t thread;
	struct stat st;

	right(!pthread_create(&thread, NULL, sync_thread, &at), "no thread");
	for (uint64_t i = 0; i < n && !wrong; i++) {
		right(!linkat(at, "one", at, "two", 0) && !unlinkat(at, "two", 0), "links: %m");
		for (int k = 0; k < 3; k++) {
			/* The kernel forgets what it knows about a file whose mode changes. */
			right(!fchmod(fd, 0600 + (mode_t)k) && !fstat(fd, &st), "stat: %m");
			right(st.st_nlink == 1, "%lu names, and one is right",
			      (unsigned long)st.st_nlink);
		}
	}
	counted = true;
	pthread_join(thread, NULL);
	close(fd);
}

/* ---- tree ---- */

static void print_tree(int at)
{
	static const char *const ignore[] = { ".outage-stash", NULL };
	const struct tree_opts opts = { .ignore = ignore };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct tree t = { 0 };

	if (tree_walk(at, &opts, &t, &err)) {
		printf("cannot walk: %s\n", err.msg);
		wrong = 1;
	}
	tree_print(&t, &opts, 0, &text);
	fputs(strbuf_str(&text), stdout);
	tree_release(&t);
}

/* ---- calls ---- */

static void check_mmap(int at)
{
	int fd = openat(at, "map", O_RDWR | O_CREAT, 0644);
	char *p, buf[5] = "";

	right(!ftruncate(fd, 8192), "ftruncate: %m");
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	right(p != MAP_FAILED, "mmap: %m");
	if (p == MAP_FAILED)
		return;
	memcpy(p + 5000, "hello", 5);
	right(!msync(p, 8192, MS_SYNC), "msync: %m");
	right(pread(fd, buf, 5, 5000) == 5 && !memcmp(buf, "hello", 5), "what was stored");
	right(pwrite(fd, "world", 5, 5000) == 5, "pwrite: %m");
	right(!memcmp(p + 5000, "world", 5), "a mapping sees what is written");
	munmap(p, 8192);
	close(fd);
}

static void check_unlinked(int at)
{
	int fd = openat(at, "gone", O_RDWR | O_CREAT, 0644);
	struct stat st;
	char buf[3];

	right(write(fd, "abc", 3) == 3, "write: %m");
	right(!unlinkat(at, "gone", 0), "unlink: %m");
	right(!fstat(fd, &st) && st.st_nlink == 0 && st.st_size == 3, "links of what is gone: %u",
	      (unsigned)st.st_nlink);
	right(pread(fd, buf, 3, 0) == 3 && !memcmp(buf, "abc", 3), "its content");
	right(!fsync(fd), "fsync: %m");
	right(pwrite(fd, "d", 1, 3) == 1 && !fstat(fd, &st) && st.st_size == 4, "its size");
	close(fd);
	right(openat(at, "gone", O_RDONLY) < 0 && errno == ENOENT, "it has no name");
}

static void check_holes(int at)
{
	int fd = openat(at, "holes", O_RDWR | O_CREAT | O_TRUNC, 0644);
	off_t far = (off_t)7 << 40;
	char buf[4096];

	right(pwrite(fd, "x", 1, far) == 1, "write far away: %m");
	right(lseek(fd, 0, SEEK_END) == far + 1, "the end");
	right(lseek(fd, 0, SEEK_DATA) > far - 1048576, "data");
	right(lseek(fd, 0, SEEK_HOLE) == 0, "a hole");
	right(pread(fd, buf, sizeof(buf), 12345) == sizeof(buf) && !buf[0] && !buf[4095], "zeros");
	right(!ftruncate(fd, 100), "shorter: %m");
	right(pwrite(fd, "abc", 3, 50) == 3 && !ftruncate(fd, 51) && !ftruncate(fd, 60), "again");
	right(pread(fd, buf, sizeof(buf), 0) == 60 && buf[50] == 'a' && !buf[51] && !buf[52],
	      "what was cut off does not come back");
	close(fd);
}

static void check_append(int at)
{
	int a = openat(at, "log", O_WRONLY | O_CREAT | O_APPEND | O_TRUNC, 0644);
	int b = openat(at, "log", O_WRONLY | O_APPEND);
	struct stat st;

	for (int i = 0; i < 50; i++)
		right(write(i % 2 ? a : b, "0123456789", 10) == 10, "append: %m");
	right(!fstat(a, &st) && st.st_size == 500, "size %lld", (long long)st.st_size);
	close(a);
	close(b);
}

static void check_links(int at)
{
	int fd = openat(at, "one", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	struct stat a, b;

	right(!linkat(at, "one", at, "two", 0), "link: %m");
	right(write(fd, "1234", 4) == 4, "write: %m");
	right(!fstatat(at, "one", &a, 0) && !fstatat(at, "two", &b, 0), "stat: %m");
	right(a.st_ino == b.st_ino && a.st_nlink == 2 && b.st_nlink == 2 && b.st_size == 4,
	      "two names, one file");
	right(!unlinkat(at, "two", 0) && !fstatat(at, "one", &a, 0) && a.st_nlink == 1,
	      "one name less");
	close(fd);
}

static void check_many(int at)
{
	char name[32], buf[8];
	struct stat st;
	int keep = openat(at, "m0", O_RDWR | O_CREAT, 0644);

	right(write(keep, "kept", 4) == 4, "write: %m");
	for (int i = 1; i < 1500; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		int fd = openat(at, name, O_RDWR | O_CREAT, 0644);

		right(fd >= 0 && write(fd, name, 4) > 0, "%s: %m", name);
		close(fd);
	}
	for (int i = 1; i < 1500; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		right(!fstatat(at, name, &st, 0) && st.st_size == 4, "%s: %m", name);
	}
	right(!unlinkat(at, "m0", 0) && pread(keep, buf, 4, 0) == 4, "what is open stays: %m");
	close(keep);
	for (int i = 1; i < 1500; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		right(!unlinkat(at, name, 0), "unlink %s: %m", name);
	}
}

/* More files open at once than the server may have descriptors. */
static void check_open(int at)
{
	int fds[600];
	char name[32], buf[8];

	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		fds[i] = openat(at, name, O_RDWR | O_CREAT, 0644);
		right(fds[i] >= 0 && write(fds[i], name, 3) > 0, "%s: %m", name);
	}
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		right(i % 2 || !fsync(fds[i]), "fsync %s: %m", name);
		right(i % 30 || !unlinkat(at, name, 0), "unlink %s: %m", name);
	}
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		right(pread(fds[i], buf, 3, 0) > 1 && !memcmp(buf, name, 2), "read %s: %m", name);
		right(pwrite(fds[i], "x", 1, 0) == 1, "write %s: %m", name);
		close(fds[i]);
	}
}

static void check_flags(int at)
{
	void *page = NULL;
	int fd = openat(at, "direct", O_RDWR | O_CREAT | O_DIRECT, 0644);

	right(fd >= 0 && !posix_memalign(&page, 4096, 4096), "open: %m");
	memset(page, 'd', 4096);
	right(pwrite(fd, page, 4096, 4096) == 4096 && pread(fd, page, 4096, 4096) == 4096,
	      "direct: %m");
	free(page);
	close(fd);
	right(copy_file_range(openat(at, "log", O_RDONLY), NULL,
			      openat(at, "copy", O_WRONLY | O_CREAT, 0644), NULL, 500, 0) == 500,
	      "copy_file_range: %m");
	right(openat(at, ".outage-stash", O_RDONLY) < 0 && errno == ENOENT, "the stash is seen");
	right(mkdirat(at, ".outage-stash", 0755) < 0, "the stash can be made");
}

static void calls(int at)
{
	check_mmap(at);
	check_unlinked(at);
	check_holes(at);
	check_append(at);
	check_links(at);
	check_flags(at);
	check_many(at);
	check_open(at);
}

/* ---- hold ---- */

static void hold(int at, const char *name)
{
	int fd = openat(at, name, O_RDWR | O_CREAT, 0644);
	char line[64], buf[64] = "";
	char *map;

	right(!ftruncate(fd, 8), "truncate: %m");
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	printf("open\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		ssize_t n = 0;

		switch (line[0]) {
		case 'r':
			n = pread(fd, buf, sizeof(buf) - 1, 0);
			break;
		case 'w':
			n = pwrite(fd, "new", 3, 0);
			snprintf(buf, sizeof(buf), "%zd", n);
			break;
		case 'f':
			n = fsync(fd);
			snprintf(buf, sizeof(buf), "ok");
			break;
		case 's':
			memcpy(map, "map", 3);
			snprintf(buf, sizeof(buf), "ok");
			break;
		case 'm':
			memcpy(buf, map, 3);
			buf[3] = '\0';
		}
		printf("%s\n", n < 0 ? strerrorname_np(errno) : buf);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int at = argc > 2 ? open(argv[2], O_RDONLY | O_DIRECTORY) : -1;

	if (at < 0)
		return 2;
	if (streq(argv[1], "storm") && argc == 5)
		storm(at, strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
	else if (streq(argv[1], "crowd") && argc == 5)
		crowd(at, strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
	else if (streq(argv[1], "links") && argc == 4)
		links(at, strtoul(argv[3], NULL, 10));
	else if (streq(argv[1], "tree"))
		print_tree(at);
	else if (streq(argv[1], "calls"))
		calls(at);
	else if (streq(argv[1], "hold") && argc == 4)
		hold(at, argv[3]);
	else
		return 2;
	return wrong;
}
