/* SPDX-License-Identifier: MIT */
/*
 * reffs-probe.c - what a program sees of a mounted reference file system that is saved and restored
 * under its feet.
 *
 *	reffs-probe caches MNT		descriptors, mappings, names and attributes over a restore
 *	reffs-probe kernel MNT		each thing that the kernel keeps, over a restore
 *	reffs-probe users MNT		others who may search a directory no longer; needs root
 *	reffs-probe keeps MNT PID	whether the kernel keeps anything, while the server PID is
 *stopped reffs-probe crowd MNT SECONDS	threads at work while others save and restore reffs-probe
 *errors MNT		calls that must fail reffs-probe measure MNT N	how long it takes; prints
 *"key value" lines
 *
 * Each wrong thing is a line on standard output. Exit status: 0 all is right, 1 not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <outage/reffs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* ---- what the kernel keeps ---- */

static void save(int root)
{
	right(!with_key(root, OUTAGE_REFFS_SAVE, 9, 0), "cannot save: %m");
}

static void restore(int root)
{
	right(!with_key(root, OUTAGE_REFFS_RESTORE, 9, 0), "cannot restore: %m");
}

static uint64_t ino_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

static bool missing(const char *path)
{
	struct stat st;

	return stat(path, &st) && errno == ENOENT;
}

/* Of what is open, of what only a path leads to, and of the working directory. */
static void keep_attributes(int root)
{
	struct stat st, before;

	put("attr", "four");
	mkdir("cwd", 0755);
	auto_fd open_fd = open("attr", O_RDONLY), path_fd = open("attr", O_PATH);
	auto_fd link_fd = (symlink("x", "sym"), open("sym", O_PATH | O_NOFOLLOW));
	right(!chdir("cwd"), "chdir: %m");
	fstat(link_fd, &before);
	save(root);
	fchmod(open_fd, 0600);
	right(!truncate("../attr", 100) && !chown("../attr", 7, 7), "chown: %m");
	utimensat(root, "sym", (struct timespec[2]){ { 5, 0 }, { 5, 0 } }, AT_SYMLINK_NOFOLLOW);
	mkdir("sub", 0755);
	chmod(".", 0700);
	fstat(open_fd, &st);
	fstat(path_fd, &st);
	fstat(link_fd, &st);
	right(st.st_mtim.tv_sec == 5 && !stat(".", &st) && st.st_nlink == 3, "nothing changes");
	restore(root);
	right(!fstat(path_fd, &st) && st.st_size == 4 && st.st_uid != 7, "of a path: attributes");
	right(!fstat(open_fd, &st) && (st.st_mode & 07777) == 0644, "of a file: attributes");
	right(!fstat(link_fd, &st) && st.st_mtim.tv_sec == before.st_mtim.tv_sec,
	      "of a symbolic link: attributes");
	right(!stat(".", &st) && (st.st_mode & 07777) == 0755 && st.st_nlink == 2,
	      "of the working directory: attributes");
	auto_free char *cwd = getcwd(NULL, 0);
	right(cwd && strstr(cwd, "/cwd"), "the working directory is lost");
	right(!stat("../cwd", &st) && fchdir(root) == 0, "it cannot be left");
	unlink("attr"), unlink("sym"), rmdir("cwd");
}

/* Names that are there, that are not, that lead elsewhere, and that are below such names. */
static void keep_names(int root)
{
	put("old", "old");
	put("other", "other");
	mkdir("n", 0755);
	mkdir("n/below", 0755);
	put("n/below/deep", "deep");
	uint64_t old = ino_of("old"), other = ino_of("other");
	save(root);
	unlink("old");
	put("young", "young");
	rename("other", "old");
	rename("n/below", "away");
	mkdir("n/below", 0755);
	right(missing("other") && missing("n/below/deep") && missing("never"), "names are wrong");
	right(ino_of("old") == other && ino_of("young") && ino_of("away/deep"), "names are wrong");
	restore(root);
	right(ino_of("old") == old && file_holds("old", "old"), "a name leads elsewhere");
	right(ino_of("other") == other, "a name that was away is not there");
	right(missing("young") && missing("away") && missing("away/deep"),
	      "a name that came later is there");
	right(file_holds("n/below/deep", "deep"), "a name below one that was away is not there");
	right(missing("never"), "a name that never was is there");
	right(!mkdir("young", 0755) && !rmdir("young"), "it cannot be used again: %m");
	right(!mkdir("never", 0755) && !rmdir("never"), "it cannot be used: %m");
	unlink("old"), unlink("other"), unlink("n/below/deep"), rmdir("n/below"), rmdir("n");
}

/* Adds up the sizes of files: what ls -l does, and what listings carry attributes for. */
static int64_t list_sizes(int dir, int *names)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY));
	struct dirent *e;
	int64_t sum = 0;
	struct stat st;

	for (*names = 0; d && (e = readdir(d)); ++*names)
		if (!fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			sum += st.st_size;
	if (d)
		closedir(d);
	return sum;
}

static void keep_listings(int root)
{
	enum { FILES = 200 };
	char name[32];
	int n;

	mkdir("list", 0755);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "list/%d", i);
		put(name, "four");
	}
	auto_fd dir = open("list", O_RDONLY | O_DIRECTORY);
	DIR *half = opendir("list"); /* in the middle of a listing when it is restored */
	save(root);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "list/%d", i);
		if (i % 2)
			unlink(name);
		else
			right(!truncate(name, 10), "truncate: %m");
	}
	put("list/new", "a");
	right(list_sizes(dir, &n) == FILES / 2 * 10 + 1 && n == FILES / 2 + 3, "%d names", n);
	for (int i = 0; half && i < 10; i++)
		readdir(half);
	restore(root);
	right(list_sizes(dir, &n) == FILES * 4 && n == FILES + 2, "%d names after it", n);
	right(missing("list/new"), "a name of a listing that came later is there");
	while (half && readdir(half))
		;
	right(list_sizes(dir, &n) == FILES * 4 && missing("list/new"), "an old listing is back");
	if (half)
		closedir(half);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "list/%d", i);
		unlink(name);
	}
	rmdir("list");
}

/* Pages that were read and written, and mappings, private ones too; beyond the end as well. */
static void keep_pages(int root)
{
	static char data[3 * 4096], back[sizeof(data)];
	struct stat st;

	memset(data, 'a', sizeof(data));
	auto_fd fd = open("pages", O_RDWR | O_CREAT, 0644);
	right(pwrite(fd, data, sizeof(data), 0) == sizeof(data), "write: %m");
	auto_fd reader = open("pages", O_RDONLY);
	char *map = mmap(NULL, sizeof(data), PROT_READ, MAP_SHARED, fd, 0);
	char *own = mmap(NULL, sizeof(data), PROT_READ, MAP_PRIVATE, reader, 0);
	bool shared = map != MAP_FAILED, private = own != MAP_FAILED;
	save(root);
	pwrite(fd, "b", 1, 5000);
	right(!ftruncate(fd, 8192) && pread(reader, back, sizeof(back), 0) == 8192, "not cut off");
	right(back[5000] == 'b' && (!shared || map[5000] == 'b') && (!private || own[5000] == 'b'),
	      "not written");
	restore(root);
	right(pread(reader, back, sizeof(back), 0) == sizeof(back) &&
		      !memcmp(data, back, sizeof(data)),
	      "what was read later is there");
	/* Whoever looks through a mapping alone does not learn that the file is longer. */
	right(!fstat(fd, &st) && st.st_size == sizeof(data), "its size");
	right(!shared || !memcmp(map, data, sizeof(data)), "a shared mapping");
	right(!private || !memcmp(own, data, sizeof(data)), "a private mapping");
	if (shared)
		munmap(map, sizeof(data));
	if (private)
		munmap(own, sizeof(data));
	unlink("pages");
}

/* One that is open without a name has one again, or is gone. */
static void keep_nameless(int root)
{
	struct stat st;

	put("named", "named");
	auto_fd fd = open("named", O_RDWR);
	save(root);
	unlink("named");
	put("nameless", "nameless");
	auto_fd later = open("nameless", O_RDWR);
	unlink("nameless");
	right(!fstat(fd, &st) && !st.st_nlink && !fstat(later, &st) && !st.st_nlink, "names left");
	restore(root);
	right(!fstat(fd, &st) && st.st_nlink == 1, "it has no name again");
	right(ino_of("named") == st.st_ino, "its name leads elsewhere");
	right(fstat(later, &st) && errno == ESTALE, "one that never was can be seen");
	unlink("named");
}

static void kernel(int root)
{
	for (int round = 0; round < 3; round++) {
		keep_attributes(root);
		keep_names(root);
		keep_listings(root);
		keep_pages(root);
		keep_nameless(root);
	}
}

/* ---- other users ---- */

enum { NOBODY = 65534 };

/* Runs it as somebody else, and gives what it returns: 0 or errno. */
static int as_nobody(int (*what)(const char *path), const char *path)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(EXDEV);
		_exit(what(path));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : EXDEV;
}

static int try_stat(const char *path)
{
	struct stat st;

	return stat(path, &st) ? errno : 0;
}

static int try_write(const char *path)
{
	auto_fd fd = open(path, O_WRONLY);

	return fd < 0 || write(fd, "x", 1) != 1 ? errno : 0;
}

static int try_chmod(const char *path)
{
	return chmod(path, 0777) ? errno : 0;
}

static int try_empty(const char *path)
{
	auto_fd fd = open(path, O_WRONLY | O_TRUNC);

	return fd < 0 ? errno : 0;
}

/* An access control list that lets everybody search but nobody: rwxr-xr-x, and one user nothing. */
static int forbid(const char *path)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} v[5];
	} acl = { 2,
		  { { 0x01, 7, UINT32_MAX },
		    { 0x02, 0, NOBODY },
		    { 0x04, 5, UINT32_MAX },
		    { 0x10, 5, UINT32_MAX },
		    { 0x20, 5, UINT32_MAX } } };

	return setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0);
}

/* Nothing but that: a look at all attributes makes the kernel ask if any is not known. */
static unsigned mode_of(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, 0, STATX_MODE, &st) ? 0 : st.stx_mode & 07777;
}

static void users(int root)
{
	struct stat st;

	mkdir("door", 0755);
	put("door/f", "f");
	mkdir("door/in", 0755);
	put("door/in/f", "f");
	right(!as_nobody(try_stat, "door/in/f"), "nobody may look");
	chmod("door", 0700);
	right(as_nobody(try_stat, "door/f") == EACCES, "behind a closed door");
	right(as_nobody(try_stat, "door/in/f") == EACCES, "far behind a closed door");
	right(as_nobody(try_stat, "door/missing") == EACCES, "what is not behind a closed door");
	chmod("door", 0711);
	right(!as_nobody(try_stat, "door/in/f"), "it stays closed");
	right(!forbid("door"), "no access control list: %m");
	right(!stat("door/in/f", &st), "root is forbidden");
	right(as_nobody(try_stat, "door/in/f") == EACCES, "somebody that a list forbids");
	right(!removexattr("door", "system.posix_acl_access"), "it stays: %m");
	right(!as_nobody(try_stat, "door/in/f"), "a list that is gone forbids");

	chmod("door", 0700);
	save(root);
	chmod("door", 0755);
	right(!as_nobody(try_stat, "door/in/f"), "it cannot be opened");
	restore(root);
	right(as_nobody(try_stat, "door/in/f") == EACCES, "a restored door is open");
	put("f", "f");
	right(!as_nobody(try_stat, "f"), "nobody may look");
	right(!rename("f", "door/f"), "rename: %m");
	right(as_nobody(try_stat, "door/f") == EACCES, "moved behind a closed door");
	put("g", "g");
	right(!renameat2(root, "door/f", root, "g", RENAME_EXCHANGE), "exchange: %m");
	right(as_nobody(try_stat, "door/f") == EACCES, "exchanged behind a closed door");
	right(!as_nobody(try_stat, "g"), "moved out of it");
	unlink("g"), unlink("door/in/f"), rmdir("door/in"), unlink("door/f"), rmdir("door");

	/* Who writes takes set-id bits away, and a list is a mode, too: only we know. */
	put("setid", "s");
	chmod("setid", 06777);
	right(mode_of("setid") == 06777, "set-id bits");
	right(as_nobody(try_chmod, "setid") == EPERM, "whoever may write takes them away");
	right(!as_nobody(try_write, "setid"), "cannot write");
	right(mode_of("setid") == 0777, "mode %o after a write", mode_of("setid"));
	chmod("setid", 06777);
	right(mode_of("setid") == 06777, "set-id bits");
	right(!as_nobody(try_empty, "setid"), "cannot empty");
	right(mode_of("setid") == 0777, "mode %o of an emptied file", mode_of("setid"));
	right(!forbid("setid") && mode_of("setid") == 0755, "mode %o with a list",
	      mode_of("setid"));
	unlink("setid");
}

/* ---- whether it keeps anything ---- */

/* A look at names while the server cannot answer; the machine may be so slow that they are old. */
static bool sees_alone(pid_t server)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	bool seen = false;
	int status;

	try_stat("kept"), try_stat("missing");
	kill(server, SIGSTOP);
	pid_t pid = fork();
	if (!pid)
		_exit(try_stat("kept") || try_stat("missing") != ENOENT);
	for (int i = 0; i < 50 && !seen; i++) {
		nanosleep(&pause, NULL);
		seen = waitpid(pid, &status, WNOHANG) == pid;
	}
	kill(server, SIGCONT);
	if (!seen)
		waitpid(pid, &status, 0);
	return seen && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void keeps(pid_t server)
{
	int tries = 0;

	put("kept", "kept");
	while (tries < 20 && !sees_alone(server))
		tries++;
	right(tries < 20, "the kernel asks for each name and attribute");
	unlink("kept");
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
	while (time(NULL) < end || done <= 10 || restores <= 10) {
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

/* ---- lookers ---- */

enum { RACE_FILES = 40 };

static const char *race_file(int i)
{
	static _Thread_local char name[32];

	snprintf(name, sizeof(name), "race/%d", i);
	return name;
}

static void *look(void *arg)
{
	struct stat st;
	int n;

	for (unsigned long i = 0; !stop; i++) {
		auto_fd dir = open("race", O_RDONLY | O_DIRECTORY);

		if ((i + (uintptr_t)arg) % 2)
			list_sizes(dir, &n);
		for (int f = 0; f < RACE_FILES; f++)
			stat(race_file(f), &st);
		done++;
	}
	return NULL;
}

/* Other inodes under the same names, of another size; every other name only in one of them. */
static void race_state(int root, int state)
{
	for (int i = 0; i < RACE_FILES; i++) {
		unlink(race_file(i));
		if (!state || i % 2)
			put(race_file(i), state ? "two" : "one is longer");
	}
	with_key(root, OUTAGE_REFFS_SAVE, (uint64_t)(100 + state), 0);
}

static bool is_race_state(int state)
{
	struct stat st;
	bool same = true;

	for (int i = 0; i < RACE_FILES; i++) {
		int rc = stat(race_file(i), &st);

		same &= !state || i % 2 ? !rc && st.st_size == (state ? 3 : 13)
					: rc && errno == ENOENT;
	}
	return same;
}

static void race(int root, unsigned seconds)
{
	enum { THREADS = 3 };
	time_t end = time(NULL) + (time_t)seconds;
	unsigned long restores = 0, bad = 0;
	pthread_t t[THREADS];

	mkdir("race", 0755);
	race_state(root, 0);
	race_state(root, 1);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, look, (void *)i);
	for (; time(NULL) < end || done <= 10 || restores <= 10; restores++) {
		int state = (int)(restores % 2);

		right(!with_key(root, OUTAGE_REFFS_RESTORE, (uint64_t)(100 + state),
				OUTAGE_REFFS_KEEP),
		      "restore: %m");
		bad += !is_race_state(state);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	right(!bad, "something of the other state was there after %lu of %lu restores", bad,
	      restores);
	printf("# %lu looks, %lu restores\n", (unsigned long)done, restores);
	right(done > 10 && restores > 10, "too little to say something");
	for (int i = 0; i < RACE_FILES; i++)
		unlink(race_file(i));
	rmdir("race");
}

/* ---- how long it takes ---- */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of a thousand files that the kernel knows, with so many of them changed. */
enum { KNOWN = 1000 };

static void measure_restores(int root, int n, int changed)
{
	double restoring = 0;
	char name[32];

	n = max(n / changed, 20);
	for (int i = 0; i < KNOWN; i++) {
		snprintf(name, sizeof(name), "known%d", i);
		put(name, "x");
	}
	for (int i = 0; i < n; i++) {
		with_key(root, OUTAGE_REFFS_SAVE, 1, 0);
		for (int k = 0; k < changed; k++) {
			snprintf(name, sizeof(name), "known%d", k);
			chmod(name, 0600);
		}
		double start = now_s();
		with_key(root, OUTAGE_REFFS_RESTORE, 1, 0);
		restoring += now_s() - start;
	}
	printf("restore_%d_of_%d_us %.1f\n", changed, (int)KNOWN, restoring / n * 1e6);
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
	measure_restores(root, n, 1);
	measure_restores(root, n, KNOWN);
}

int main(int argc, char **argv)
{
	if (argc < 3 || chdir(argv[2]))
		return 2;
	auto_fd root = open(".", O_RDONLY | O_DIRECTORY);
	int n = argc > 3 ? atoi(argv[3]) : 0;

	alarm(900);
	umask(022);
	if (streq(argv[1], "caches"))
		caches(root);
	else if (streq(argv[1], "kernel"))
		kernel(root);
	else if (streq(argv[1], "users"))
		users(root);
	else if (streq(argv[1], "keeps"))
		keeps(n);
	else if (streq(argv[1], "errors"))
		errors(root);
	else if (streq(argv[1], "crowd"))
		crowd(root, (unsigned)n);
	else if (streq(argv[1], "race"))
		race(root, (unsigned)n);
	else if (streq(argv[1], "measure"))
		measure(root, n);
	else
		return 2;
	return wrong;
}
