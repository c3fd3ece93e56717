/* SPDX-License-Identifier: MIT */
/*
 * reffs-probe.c - what a program sees of a mounted reference file system that is saved and restored
 * under its feet.
 *
 *	reffs-probe caches MNT		descriptors, mappings, names and attributes over a restore
 *	reffs-probe crowd MNT SECONDS	threads at work while others save and restore
 *	reffs-probe errors MNT		calls that must fail
 *	reffs-probe measure MNT N	how long it takes; prints "key value" lines
 *
 * Each wrong thing is a line on standard output. Exit status: 0 all is right, 1 not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <outage/reffs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

static int wrong;

#define right(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("line %d: ", __LINE__);                                             \
			printf(__VA_ARGS__);                                                       \
			printf("\n");                                                              \
			wrong = 1;                                                                 \
		}                                                                                  \
	} while (0)

static int with_key(int fd, unsigned long cmd, uint64_t key, uint32_t flags)
{
	struct outage_reffs_key k = { .key = key, .flags = flags };

	return ioctl(fd, cmd, &k) ? -errno : 0;
}

static void put(const char *path, const char *text)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	right(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "cannot write %s: %m", path);
}

static bool holds(int fd, const char *text)
{
	char buf[64];
	ssize_t n = pread(fd, buf, sizeof(buf), 0);

	return n == (ssize_t)strlen(text) && !memcmp(buf, text, (size_t)n);
}

static bool file_holds(const char *path, const char *text)
{
	auto_fd fd = open(path, O_RDONLY);

	return fd >= 0 && holds(fd, text);
}

static int count_names(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY));
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* What is there when it is saved, and what is done to all of it afterwards. */
static void before_save(void)
{
	put("kept", "one");
	put("gone", "gone");
	put("long", "a longer text");
	mkdir("dir", 0755);
	put("dir/file", "in it");
	link("kept", "second");
	symlink("kept", "link");
	setxattr("kept", "user.a", "old", 3, 0);
	chmod("kept", 0640);
}

static void after_save(void)
{
	put("new", "new");
	unlink("gone");
	unlink("second");
	unlink("link");
	symlink("elsewhere", "link");
	setxattr("kept", "user.a", "newer", 5, 0);
	setxattr("kept", "user.b", "more", 4, 0);
	chmod("kept", 0600);
	truncate("long", 1);
	rename("dir/file", "dir/moved");
	mkdir("dir/sub", 0700);
	mkdir("later", 0755);
}

static void caches(int root)
{
	char text[64];
	struct stat st;

	before_save();
	int fd = open("kept", O_RDWR), end = open("kept", O_WRONLY | O_APPEND);
	int dir = open("dir", O_RDONLY | O_DIRECTORY), long_fd = open("long", O_RDWR);
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool mapped = map != MAP_FAILED;
	right(!with_key(root, OUTAGE_REFFS_SAVE, 7, 0), "cannot save: %m");
	right(holds(fd, "one") && holds(long_fd, "a longer text"), "saving changes something");
	after_save();
	pwrite(fd, "three words", 11, 0);
	int new_fd = open("new", O_RDWR), later = open("later", O_RDONLY | O_DIRECTORY);
	int unnamed = open("unnamed", O_RDWR | O_CREAT, 0600);
	unlink("unnamed");
	right(holds(fd, "three words") && !fstat(fd, &st) && st.st_nlink == 1, "not written");
	right(!mapped || !memcmp(map, "three", 5), "the mapping does not see a write");
	right(count_names(dir) == 4, "%d names in dir", count_names(dir));

	for (int round = 0; round < 2; round++) {
		uint32_t keep = round ? 0 : OUTAGE_REFFS_KEEP;

		right(!with_key(dir, OUTAGE_REFFS_RESTORE, 7, keep), "cannot restore: %m");
		right(holds(fd, "one"), "an open file has what it had later");
		right(!fstat(fd, &st) && st.st_size == 3 && st.st_nlink == 2, "its attributes");
		right((st.st_mode & 07777) == 0640, "its mode is %o", st.st_mode);
		right(!mapped || !memcmp(map, "one\0", 4), "a mapping has what it had later");
		right(file_holds("kept", "one") && file_holds("second", "one"), "kept is wrong");
		right(file_holds("gone", "gone"), "what was removed is not there");
		right(file_holds("long", "a longer text") && holds(long_fd, "a longer text"),
		      "what was cut off is not there");
		right(stat("new", &st) < 0 && errno == ENOENT, "what came later is there");
		right(stat("later", &st) < 0 && errno == ENOENT, "a directory that came later is");
		right(file_holds("dir/file", "in it"), "what was moved is not there");
		right(stat("dir/moved", &st) < 0 && count_names(dir) == 3, "dir is wrong");
		right(readlink("link", text, sizeof(text)) == 4, "the link is wrong");
		right(getxattr("kept", "user.a", text, sizeof(text)) == 3,
		      "the attribute is wrong");
		right(getxattr("kept", "user.b", text, sizeof(text)) < 0, "an attribute too many");
		right(pread(new_fd, text, 1, 0) < 0 && errno == ESTALE,
		      "a file that came later can be read");
		right(pread(unnamed, text, 1, 0) <= 0, "a file without a name can be read");
		right(openat(later, "x", O_CREAT | O_WRONLY, 0600) < 0,
		      "a directory that came later takes names");
		right(write(end, "!", 1) == 1 && holds(fd, "one!"), "appended at a wrong place");
		right(file_holds("second", "one!"), "not the same file");
		after_save();
	}
	right(with_key(root, OUTAGE_REFFS_RESTORE, 7, 0) == -ENOENT, "a state is restored twice");

	/* What is written through a mapping is in the state once it is synced. */
	if (mapped) {
		memcpy(map, "MAP", 3);
		right(!msync(map, 4096, MS_SYNC), "msync: %m");
		with_key(root, OUTAGE_REFFS_SAVE, 8, 0);
		memcpy(map, "map", 3);
		msync(map, 4096, MS_SYNC);
		with_key(root, OUTAGE_REFFS_RESTORE, 8, 0);
		right(!memcmp(map, "MAP", 3) && pread(fd, text, 3, 0) == 3 &&
			      !memcmp(text, "MAP", 3),
		      "what was written through a mapping");
		munmap(map, 4096);
	} else {
		printf("# no shared mappings\n");
	}
	close(fd), close(end), close(dir), close(long_fd), close(new_fd), close(later),
		close(unnamed);
}

/* ---- errors ---- */

static void errors(int root)
{
	struct outage_reffs_key k = { .key = 1, .flags = 4 };
	static struct outage_reffs_file f;

	right(ioctl(root, OUTAGE_REFFS_SAVE, &k) < 0 && errno == EINVAL, "an unknown flag");
	k = (struct outage_reffs_key){ .key = 1, .reserved = 1 };
	right(ioctl(root, OUTAGE_REFFS_SAVE, &k) < 0 && errno == EINVAL, "what is reserved");
	right(with_key(root, OUTAGE_REFFS_SAVE, 1, OUTAGE_REFFS_KEEP) == -EINVAL, "a wrong flag");
	right(with_key(root, OUTAGE_REFFS_RESTORE, 99, 0) == -ENOENT, "no such key");
	right(with_key(root, OUTAGE_REFFS_DROP, 99, 0) == -ENOENT, "no such key to drop");
	right(ioctl(root, _IOW('R', 99, struct outage_reffs_key), &k) < 0 && errno == ENOTTY,
	      "no such call");
	snprintf(f.path, sizeof(f.path), "relative");
	f.flags = OUTAGE_REFFS_ALL;
	right(ioctl(root, OUTAGE_REFFS_PICKLE, &f) < 0 && errno == EINVAL, "a relative path");
	memset(f.path, '/', sizeof(f.path));
	right(ioctl(root, OUTAGE_REFFS_PICKLE, &f) < 0 && errno == EINVAL, "a path with no end");
	snprintf(f.path, sizeof(f.path), "/dev/null");
	f.flags = 0;
	right(ioctl(root, OUTAGE_REFFS_LOAD, &f) < 0 && errno == EBADMSG, "no file of states");
	f.key = 99;
	right(ioctl(root, OUTAGE_REFFS_PICKLE, &f) < 0 && errno == ENOENT, "no such key to write");
}

/* ---- many at once ---- */

static atomic_bool stop;
static atomic_ulong done;

static void *work(void *arg)
{
	auto_free char *dir = xasprintf("t%ld", (long)(intptr_t)arg);
	auto_free char *a = xasprintf("%s/a", dir), *b = xasprintf("%s/b", dir);
	char buf[4096] = "x";

	while (!stop) {
		mkdir(dir, 0755);
		auto_fd fd = open(a, O_RDWR | O_CREAT, 0644);
		if (fd >= 0 && write(fd, buf, sizeof(buf)) > 0)
			pread(fd, buf, 100, 0);
		rename(a, b);
		link(b, a);
		auto_fd d = open(dir, O_RDONLY | O_DIRECTORY);
		count_names(d);
		unlink(a);
		unlink(b);
		rmdir(dir);
		done++;
	}
	return NULL;
}

static void crowd(int root, unsigned seconds)
{
	enum { THREADS = 4 };
	pthread_t t[THREADS];
	struct outage_reffs_hash first, last;
	unsigned long restores = 0;
	struct timespec pause = { .tv_nsec = 2000000 };
	time_t end;

	put("fixed", "fixed");
	ioctl(root, OUTAGE_REFFS_HASH, &first);
	with_key(root, OUTAGE_REFFS_SAVE, 1, 0);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	end = time(NULL) + (time_t)seconds;
	while (time(NULL) < end) {
		right(!with_key(root, OUTAGE_REFFS_RESTORE, 1, OUTAGE_REFFS_KEEP), "restore: %m");
		right(!with_key(root, OUTAGE_REFFS_SAVE, 2 + restores % 50, 0), "save: %m");
		restores++;
		nanosleep(&pause, NULL);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	with_key(root, OUTAGE_REFFS_RESTORE, 1, 0);
	ioctl(root, OUTAGE_REFFS_HASH, &last);
	right(first.lo == last.lo && first.hi == last.hi, "the state is another");
	right(file_holds("fixed", "fixed") && count_names(root) == 3, "%d names",
	      count_names(root));
	printf("# %lu rounds of work, %lu restores\n", (unsigned long)done, restores);
	right(done > 10 && restores > 10, "too little to say something");
}

/* ---- how long it takes ---- */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(int root, int n)
{
	double start = now_s(), saving = 0, restoring = 0;
	char name[32], data[4096];

	memset(data, 'x', sizeof(data));
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		int fd = open(name, O_RDWR | O_CREAT, 0644);
		right(write(fd, data, sizeof(data)) == sizeof(data), "write: %m");
		close(fd);
		unlink(name);
	}
	printf("create_write_close_unlink_per_s %.0f\n", n / (now_s() - start));
	int fd = open("big", O_RDWR | O_CREAT, 0644);
	start = now_s();
	for (int i = 0; i < n; i++)
		pwrite(fd, data, sizeof(data), (off_t)(i % 256) * 4096);
	printf("write_4k_us %.1f\n", (now_s() - start) / n * 1e6);
	struct stat st;
	start = now_s();
	for (int i = 0; i < n; i++)
		fstatat(root, "big", &st, 0);
	printf("stat_us %.1f\n", (now_s() - start) / n * 1e6);
	for (int i = 0; i < n; i++) {
		start = now_s();
		with_key(root, OUTAGE_REFFS_SAVE, 1, 0);
		saving += now_s() - start;
		pwrite(fd, data, 100, 0);
		start = now_s();
		with_key(root, OUTAGE_REFFS_RESTORE, 1, 0);
		restoring += now_s() - start;
	}
	printf("save_us %.1f\nrestore_us %.1f\n", saving / n * 1e6, restoring / n * 1e6);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 3 || chdir(argv[2]))
		return 2;
	auto_fd root = open(".", O_RDONLY | O_DIRECTORY);
	int n = argc > 3 ? atoi(argv[3]) : 0;

	alarm(100);
	umask(022);
	if (streq(argv[1], "caches"))
		caches(root);
	else if (streq(argv[1], "errors"))
		errors(root);
	else if (streq(argv[1], "crowd"))
		crowd(root, (unsigned)n);
	else if (streq(argv[1], "measure"))
		measure(root, n);
	else
		return 2;
	return wrong;
}
