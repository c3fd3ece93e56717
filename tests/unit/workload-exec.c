/* SPDX-License-Identifier: MIT */
/*
 * workload-exec.c - operations do what they say, and nothing outside the root.
 *
 * A session is a workload that grows line by line while it is performed in a fresh directory; the
 * effect is then looked at with system calls of the test's own. Beside the root is a directory
 * that no operation may change, whatever links lead there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tap.h"
#include "workload/content.h"
#include "workload/exec.h"

static char top[] = "/tmp/workload-exec-XXXXXX";

static struct session {
	struct workload w;
	struct exec x;
	int root;
	size_t fds;
} s;

/* ---- helpers ---- */

static size_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void sh(const char *fmt, ...) printf_like(1, 2);

static void sh(const char *fmt, ...)
{
	char cmd[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd))
		printf("# failed: %s\n", cmd);
}

static void begin(const struct exec_env *env)
{
	s.fds = count_fds();
	sh("rm -rf %s/root && mkdir %s/root", top, top);
	auto_free char *path = xasprintf("%s/root", top);
	s.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.root < 0)
		abort();
	workload_init(&s.w);
	exec_init(&s.x, s.root, &s.w, env);
}

static void end(const char *what)
{
	exec_release(&s.x);
	workload_release(&s.w);
	close(s.root);
	is_u(count_fds(), s.fds, "%s: no descriptor is left open", what);
}

static int64_t perform(const char *line)
{
	struct err err = ERR_INIT;

	if (workload_add_line(&s.w, line, &err)) {
		printf("# %s: %s\n", line, err.msg);
		return INT64_MIN;
	}
	return exec_op(&s.x, s.w.ops.n - 1);
}

/* Performs a line; what it gives must be `want`. */
static void does(const char *line, int64_t want)
{
	int64_t got = perform(line);

	if (!ok(got == want, "%s", line))
		printf("#   got %lld (%s), want %lld (%s)\n", (long long)got,
		       got < 0 ? strerror((int)-got) : "no error", (long long)want,
		       want < 0 ? strerror((int)-want) : "no error");
}

/* The same where a file system may not have it. True if it was done. */
static bool tries(const char *line, int64_t want)
{
	int64_t got = perform(line);

	if (got == -EOPNOTSUPP || got == -ENOSYS) {
		printf("# %s: not supported here\n", line);
		skip("the file system of /tmp does not support this operation");
		return false;
	}
	if (!ok(got == want, "%s", line))
		printf("#   got %lld, want %lld\n", (long long)got, (long long)want);
	return got == want;
}

static size_t last(void)
{
	return s.w.ops.n - 1;
}

static struct stat look(const char *path)
{
	struct stat st = { 0 };

	if (fstatat(s.root, path, &st, AT_SYMLINK_NOFOLLOW))
		st.st_mode = 0;
	return st;
}

static bool there(const char *path)
{
	return look(path).st_mode != 0;
}

static void has_mode(const char *path, mode_t want)
{
	mode_t got = look(path).st_mode;

	if (!ok(got == want, "%s has mode %o", path, want))
		printf("#   got %o\n", got);
}

static ssize_t contents(const char *path, void *buf, size_t len, off_t off)
{
	auto_fd fd = openat(s.root, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : pread(fd, buf, len, off);
}

/* Whether operation `op` wrote this range of the file; `shift` is how far it moved since. */
static void wrote(const char *path, off_t off, size_t len, size_t op, off_t shift)
{
	auto_free unsigned char *got = xcalloc(1, len), *want = xcalloc(1, len);
	struct content_origin origin;

	content_fill(s.x.tag, op, (uint64_t)(off - shift), want, len);
	ok(contents(path, got, len, off) == (ssize_t)len && memcmp(got, want, len) == 0,
	   "%s: %zu bytes at %lld are those of operation %zu", path, len, (long long)off, op);
	size_t skip_bytes = (size_t)(-(off - shift) & 7);
	if (skip_bytes + 8 <= len)
		ok(content_identify(got + skip_bytes, &origin) && origin.op == op &&
			   origin.tag == s.x.tag &&
			   origin.offset == (uint64_t)(off - shift) + skip_bytes,
		   "and say so");
}

static void zeros(const char *path, off_t off, size_t len)
{
	auto_free unsigned char *got = xmalloc(len);
	size_t n = 0;

	memset(got, 1, len);
	ok(contents(path, got, len, off) == (ssize_t)len, "%s: read %zu at %lld", path, len,
	   (long long)off);
	while (n < len && !got[n])
		n++;
	is_u(n, len, "zeros");
}

/* ---- content ---- */

static void test_content(void)
{
	unsigned char whole[1000], pieces[1000];
	struct content_origin o;
	size_t bad = 0;

	content_fill(0x2bc, 50000, 12345, whole, sizeof(whole));
	for (size_t i = 0, n = 1; i < sizeof(pieces); i += n, n = n % 13 + 1)
		content_fill(0x2bc, 50000, 12345 + i, pieces + i, min(n, sizeof(pieces) - i));
	ok(memcmp(whole, pieces, sizeof(whole)) == 0, "content does not depend on how it is cut");
	for (size_t i = 7; i + 8 <= sizeof(whole); i += 8) /* 12345 + 7 is aligned */
		bad += !content_identify(whole + i, &o) || o.op != 50000 || o.tag != 0x2bc ||
		       o.offset != 12345 + i;
	is_u(bad, 0, "every word tells where it came from");

	/* Two operations at the same place: hardly a byte is the same, whatever part is looked at.
	 */
	unsigned char other[1000];
	size_t same[8] = { 0 };
	content_fill(0x2bc, 50001, 12345, other, sizeof(other));
	for (size_t i = 0; i < sizeof(whole); i++)
		same[i % 8] += whole[i] == other[i];
	for (size_t i = 0; i < 8; i++)
		ok(same[i] < 20, "byte %zu of a word depends on the operation (%zu of 125 equal)",
		   i, same[i]);
	ok(!content_identify((const unsigned char *)"ABCDEFG\0", &o), "a NUL is no content");
	ok(!content_identify((const unsigned char *)"ABCD EFG", &o), "nor is a blank");
	ok(!content_identify((const unsigned char *)"ABCDEF\xff_", &o), "nor other bytes");

	auto_workload a, b;
	struct err err = ERR_INIT;
	workload_init(&a);
	workload_init(&b);
	if (workload_parse("mkdir A\n", 8, "t", &a, &err) ||
	    workload_parse("# c\nworkload x\nsetup mkdir A # d\n", 33, "t", &b, &err))
		printf("# %s\n", err.msg);
	ok(a.ops.n == 1 && content_tag(&a) == content_tag(&b), "a tag is of the operations alone");
	ok(workload_add_line(&b, "sync", &err) == 0 && content_tag(&a) != content_tag(&b),
	   "and another for other operations");
}

/* ---- names ---- */

static void test_creat(void)
{
	begin(NULL);
	does("creat f", 0);
	has_mode("f", S_IFREG | 0644);
	does("creat g 0777", 0);
	has_mode("g", S_IFREG | 0777);
	does("creat h 0000", 0);
	has_mode("h", S_IFREG);
	does("creat i 04755", 0);
	has_mode("i", S_IFREG | 04755);
	does("write f 0 100", 100);
	does("creat f 0600", 0);
	has_mode("f", S_IFREG | 0644);
	is_i(look("f").st_size, 0, "creat truncates");
	does("creat no/f", -ENOENT);
	does("creat f/f", -ENOTDIR);
	does("creat .", -EISDIR);
	end("creat");
}

static void test_directories(void)
{
	begin(NULL);
	does("mkdir A", 0);
	has_mode("A", S_IFDIR | 0755);
	does("mkdir A/B 0777", 0);
	has_mode("A/B", S_IFDIR | 0777);
	does("mkdir A/C 01700", 0);
	has_mode("A/C", S_IFDIR | 01700);
	does("mkdir A", -EEXIST);
	does("mkdir no/A", -ENOENT);
	does("rmdir A", -ENOTEMPTY);
	does("rmdir A/B", 0);
	ok(!there("A/B"), "rmdir removes");
	does("rmdir A/B", -ENOENT);
	does("creat A/f", 0);
	does("rmdir A/f", -ENOTDIR);
	does("unlink A/C", -EISDIR);
	does("remove A/C", 0);
	ok(!there("A/C"), "remove takes a directory");
	does("remove A", -ENOTEMPTY);
	does("remove A/f", 0);
	ok(!there("A/f"), "and a file");
	does("remove A/f", -ENOENT);
	does("rmdir .", -EINVAL);
	does("unlink .", -EISDIR);
	does("fsync A", 0);
	does("fdatasync .", 0);
	end("directories");
}

static void test_nodes(void)
{
	begin(NULL);
	does("mkfifo p", 0);
	has_mode("p", S_IFIFO | 0644);
	does("mkfifo q 0622", 0);
	has_mode("q", S_IFIFO | 0622);
	does("mkfifo p", -EEXIST);
	does("mknod r regular", 0);
	has_mode("r", S_IFREG | 0644);
	does("mknod s socket", 0);
	has_mode("s", S_IFSOCK | 0644);
	does("mknod f fifo", 0);
	has_mode("f", S_IFIFO | 0644);
	if (geteuid() == 0) {
		does("mknod c char 1283", 0); /* major 5, minor 3 */
		has_mode("c", S_IFCHR | 0644);
		ok(look("c").st_rdev == makedev(5, 3), "the device number");
		does("mknod b block 1792", 0);
		has_mode("b", S_IFBLK | 0644);
		ok(look("b").st_rdev == makedev(7, 0), "the device number");
	} else {
		skip("making device nodes needs root");
	}
	end("nodes");
}

static void test_links(void)
{
	char buf[64];

	begin(NULL);
	does("creat f", 0);
	does("mkdir A", 0);
	does("link f A/g", 0);
	ok(look("f").st_ino == look("A/g").st_ino && look("f").st_nlink == 2,
	   "one file, two names");
	does("link f A/g", -EEXIST);
	does("link f no/g", -ENOENT);
	does("link no g", -ENOENT);
	does("link A B", -EPERM);
	does("unlink f", 0);
	ok(!there("f") && look("A/g").st_nlink == 1, "one name is gone");
	does("unlink f", -ENOENT);
	does("symlink A/g l", 0);
	ssize_t n = readlinkat(s.root, "l", buf, sizeof(buf));
	ok(n == 3 && memcmp(buf, "A/g", 3) == 0, "the target of a link");
	does("symlink any\\x20text\\x2f%s m", 0);
	n = readlinkat(s.root, "m", buf, sizeof(buf));
	ok(n == 11 && memcmp(buf, "any text/%s", 11) == 0, "is any text");
	does("symlink \"\" n", -ENOENT);
	does("symlink x l", -EEXIST);
	does("write l 0 10", 10);
	is_i(look("A/g").st_size, 10, "a link inside the root is followed");
	does("link l l2", 0);
	ok(S_ISLNK(look("l2").st_mode), "link does not follow one");
	does("h = open l rdonly,nofollow", -ELOOP);
	does("unlink l", 0);
	ok(there("A/g"), "nor does unlink");
	end("links");
}

static void test_rename(void)
{
	begin(NULL);
	does("creat f", 0);
	does("write g 0 10", 10);
	does("mkdir A", 0);
	does("mkdir B", 0);
	ino_t f = look("f").st_ino, g = look("g").st_ino, a = look("A").st_ino;

	does("rename f A/f", 0);
	ok(!there("f") && look("A/f").st_ino == f, "rename moves");
	does("rename A/f g noreplace", -EEXIST);
	ok(look("A/f").st_ino == f && look("g").st_ino == g, "noreplace does not replace");
	does("rename A/f new noreplace", 0);
	ok(look("new").st_ino == f, "and moves where nothing is");
	does("rename new A exchange", 0);
	ok(look("new").st_ino == a && look("A").st_ino == f, "exchange exchanges");
	does("rename A new exchange", 0);
	does("rename A none exchange", -ENOENT);
	does("rename new g exchange,noreplace", -EINVAL);
	does("rename new g", 0);
	ok(!there("new") && look("g").st_ino == f, "rename replaces");
	does("creat B/x", 0);
	does("rename A B", -ENOTEMPTY);
	does("rename g B", -EISDIR);
	does("rename B g", -ENOTDIR);
	does("rename A A/sub", -EINVAL);
	does("rename none x", -ENOENT);
	does("rename none/x g/y", -ENOENT); /* the old name is looked at first */
	does("rename g/x none/y", -ENOTDIR);
	does("link none/x g/y", -ENOENT);
	does("rename . x", -EBUSY);
	int64_t rc = perform("rename g w whiteout");
	if (rc == -EINVAL || rc == -EPERM || rc == -EOPNOTSUPP) {
		skip("whiteouts are not supported here");
	} else {
		is_i(rc, 0, "rename g w whiteout");
		ok(look("w").st_ino == f && S_ISCHR(look("g").st_mode) && look("g").st_rdev == 0,
		   "whiteout leaves one");
	}
	end("rename");
}

/* ---- data ---- */

static void test_write(void)
{
	begin(NULL);
	does("write f 0 5000", 5000);
	has_mode("f", S_IFREG | 0644);
	wrote("f", 0, 5000, last(), 0);
	does("write f 1001 3000", 3000);
	wrote("f", 0, 1001, last() - 1, 0);
	wrote("f", 1001, 3000, last(), 0);
	wrote("f", 4001, 999, last() - 1, 0);
	is_i(look("f").st_size, 5000, "size");
	does("append f 77", 77);
	wrote("f", 5000, 77, last(), 0);
	does("append new 9 sync", 9);
	wrote("new", 0, 9, last(), 0);
	does("pwrite f 10000 100 dsync", 100);
	wrote("f", 10000, 100, last(), 0);
	zeros("f", 5077, 10000 - 5077);
	is_i(look("f").st_size, 10100, "size");
	does("pwrite none 0 1", -ENOENT);
	ok(!there("none"), "pwrite makes no file");
	does("write f 0 0", 0);
	does("write empty 0 0", 0);
	ok(there("empty") && look("empty").st_size == 0, "a write of nothing makes a file");
	does("mkdir A", 0);
	does("write A 0 1", -EISDIR);
	does("append A 1", -EISDIR);
	does("pwrite A 0 1", -EISDIR);
	does("write A/x/y 0 1", -ENOENT);
	does("read f 0 100", 100);
	does("read f 10000 1000", 100);
	does("read f 20000 1", 0);
	does("read A 0 1", -EISDIR);
	does("read none 0 1", -ENOENT);
	does("pwrite f 4611686018427387904 1", -EFBIG);
	end("write");
}

static void test_direct_and_mmap(void)
{
	begin(NULL);
	int64_t rc = perform("dwrite d 4096 8192");
	if (rc == -EINVAL) {
		skip("no O_DIRECT here");
	} else {
		is_i(rc, 8192, "dwrite d 4096 8192");
		wrote("d", 4096, 8192, last(), 0);
		zeros("d", 0, 4096);
		does("dwrite d 100 8192", -EINVAL);
		does("dwrite d 0 4096 sync", 4096);
		wrote("d", 0, 4096, last(), 0);
	}
	if (tries("mmapwrite m 5000 10000", 10000)) {
		wrote("m", 5000, 10000, last(), 0);
		zeros("m", 0, 5000);
		is_i(look("m").st_size, 15000, "size");
		does("mmapwrite m 1 4097 nosync", 4097);
		wrote("m", 1, 4097, last(), 0);
		wrote("m", 5000, 10000, last() - 1, 0);
		is_i(look("m").st_size, 15000, "size stays");
		does("mmapwrite m 20000 1", 1);
		is_i(look("m").st_size, 20001, "size grows");
		does("msync m 5000 10000", 0);
		does("msync m 0 1048576", 0);
		does("msync m 4611686018427387904 1", 0);
		does("msync m 0 0", 0);
		is_i(look("m").st_size, 20001, "msync leaves the size");
	}
	does("msync none 0 1", -ENOENT);
	does("mmapwrite e 0 0", 0);
	ok(there("e"), "a mapping of nothing makes the file");
	does("mkdir A", 0);
	does("mmapwrite A 0 1", -EISDIR);
	does("msync A 0 1", -EISDIR);
	end("direct and mmap");
}

static void test_sizes(void)
{
	size_t op;

	begin(NULL);
	does("write f 0 16384", 16384);
	op = last();
	does("truncate f 20000", 0);
	wrote("f", 0, 16384, op, 0);
	zeros("f", 16384, 20000 - 16384);
	does("truncate f 16384", 0);
	does("truncate none 0", -ENOENT);
	does("truncate . 0", -EISDIR);
	if (tries("falloc f keep 0 40000", 0))
		is_i(look("f").st_size, 16384, "keep keeps the size");
	if (tries("falloc f plain 0 20000", 0)) {
		is_i(look("f").st_size, 20000, "plain extends");
		wrote("f", 0, 16384, op, 0);
		does("truncate f 16384", 0);
	}
	if (tries("falloc f punch,keep 4096 4096", 0)) {
		zeros("f", 4096, 4096);
		wrote("f", 0, 4096, op, 0);
		wrote("f", 8192, 8192, op, 0);
	}
	does("falloc f punch 0 4096", -EOPNOTSUPP); /* the kernel wants keep with it */
	if (tries("falloc f zero 8192 1000", 0)) {
		zeros("f", 8192, 1000);
		wrote("f", 9192, 16384 - 9192, op, 0);
	}
	if (tries("falloc f zero,keep 16000 1000", 0)) {
		zeros("f", 16000, 384);
		is_i(look("f").st_size, 16384, "size");
	}
	does("write c 0 16384", 16384);
	op = last();
	if (tries("falloc c collapse 4096 4096", 0)) {
		is_i(look("c").st_size, 12288, "collapse takes the range out");
		wrote("c", 0, 4096, op, 0);
		wrote("c", 4096, 8192, op, -4096);
		does("falloc c collapse 100 4096", -EINVAL);
	}
	does("write i 0 8192", 8192);
	op = last();
	if (tries("falloc i insert 4096 4096", 0)) {
		is_i(look("i").st_size, 12288, "insert puts a hole in");
		wrote("i", 0, 4096, op, 0);
		zeros("i", 4096, 4096);
		wrote("i", 8192, 4096, op, 4096);
	}
	if (tries("falloc i unshare 0 4096", 0))
		wrote("i", 0, 4096, op, 0);
	does("falloc none plain 0 1", -ENOENT);
	does("falloc f plain 0 0", -EINVAL);
	end("sizes");
}

static void test_copies(void)
{
	begin(NULL);
	does("write f 0 8192", 8192);
	size_t op = last();
	if (tries("copy_file_range f 4096 g 0 4096", 4096)) {
		wrote("g", 0, 4096, op, -4096);
		does("copy_file_range f 8000 g 4096 1000", 192);
		is_i(look("g").st_size, 4096 + 192, "no more than there is");
	}
	does("copy_file_range none 0 h 0 1", -ENOENT);
	ok(!there("h"), "a copy of nothing makes nothing");
	does("copy_file_range f 0 no/h 0 1", -ENOENT);
	does("reflink none h", -ENOENT);
	ok(!there("h"), "neither does a reflink");
	if (tries("reflink f r", 0)) {
		wrote("r", 0, 8192, op, 0);
		does("write r 0 1", 1);
		wrote("f", 0, 8192, op, 0);
	}
	end("copies");
}

/* ---- attributes ---- */

static void test_attributes(void)
{
	char buf[64];

	begin(NULL);
	does("creat f", 0);
	does("mkdir A", 0);
	does("chmod f 04712", 0);
	has_mode("f", S_IFREG | 04712);
	does("chmod A 01777", 0);
	has_mode("A", S_IFDIR | 01777);
	does("chmod none 0", -ENOENT);
	does("utimens f 1000 4294967295", 0);
	ok(look("f").st_atime == 1000 && look("f").st_mtime == 4294967295, "utimens");
	does("utimens A 1 2", 0);
	ok(look("A").st_atime == 1 && look("A").st_mtime == 2, "utimens of a directory");
	if (geteuid() == 0) {
		does("chown f 12 34", 0);
		ok(look("f").st_uid == 12 && look("f").st_gid == 34, "chown");
		does("chown A 4294967295 7", 0);
		ok(look("A").st_uid == 0 && look("A").st_gid == 7, "chown leaves the owner");
	} else {
		skip("chown needs root");
	}
	if (tries("setxattr f user.a one\\x20two", 0)) {
		auto_fd fd = openat(s.root, "f", O_RDONLY);
		ssize_t n = fgetxattr(fd, "user.a", buf, sizeof(buf));
		ok(n == 7 && memcmp(buf, "one two", 7) == 0, "the value");
		does("setxattr f user.a x create", -EEXIST);
		does("setxattr f user.b x replace", -ENODATA);
		does("setxattr f user.a \"\" replace", 0);
		is_i(fgetxattr(fd, "user.a", buf, sizeof(buf)), 0, "an empty value");
		does("setxattr A user.c v", 0);
		does("removexattr f user.a", 0);
		is_i(fgetxattr(fd, "user.a", buf, sizeof(buf)), -1, "removed");
		does("removexattr f user.a", -ENODATA);
		does("setxattr none user.a v", -ENOENT);
	}
	end("attributes");
}

/* ---- handles ---- */

static void test_handles(void)
{
	begin(NULL);
	does("h = open f rdwr", -ENOENT);
	does("fsync h", -EBADF);
	does("h = open f rdwr,creat,excl 0640", 0);
	has_mode("f", S_IFREG | 0640);
	does("g = open f rdwr,creat,excl", -EEXIST);
	does("write h 0 100", 100);
	wrote("f", 0, 100, last(), 0);
	does("rename f moved", 0);
	does("write h 100 50", 50);
	wrote("moved", 100, 50, last(), 0);
	does("append h 10", 10);
	wrote("moved", 150, 10, last(), 0);
	does("pwrite h 0 8", 8);
	wrote("moved", 0, 8, last(), 0);
	does("fsync h", 0);
	does("unlink moved", 0);
	does("write h 0 20", 20);
	does("read h 0 1000", 160);
	does("truncate h 5", 0);
	does("read h 0 1000", 5);
	does("chmod h 0600", 0);
	does("utimens h 5 6", 0);
	does("creat f", 0);
	does("write ./h 0 3", 3);
	is_i(look("h").st_size, 3, "./h is the path");
	does("close h", 0);
	does("write h 0 1", -EBADF);
	does("fdatasync h", -EBADF);
	does("mmapwrite h 0 1", -EBADF);
	does("copy_file_range f 0 h 0 1", -EBADF);
	does("copy_file_range h 0 newly 0 1", -EBADF);
	ok(!there("newly"), "and nothing is made");
	does("chown h 0 0", -EBADF);
	does("close h", -EBADF);
	end("handles");
}

static void test_handle_kinds(void)
{
	begin(NULL);
	does("write f 0 100", 100);
	does("r = open f rdonly", 0);
	does("write r 0 1", -EBADF);
	does("read r 0 10", 10);
	does("w = open f wronly", 0);
	does("read w 0 1", -EBADF);
	does("mmapwrite w 0 1", -EACCES);
	does("msync w 0 1", -EACCES);
	does("msync r 0 1", -EACCES);
	does("a = open f wronly,append", 0);
	does("write a 0 10", 10);
	is_i(look("f").st_size, 110, "a handle that appends");
	does("t = open f rdwr,trunc", 0);
	is_i(look("f").st_size, 0, "a handle that truncates");
	does("d = open . rdonly,directory", 0);
	does("fsync d", 0);
	does("write d 0 1", -EBADF);
	does("d = open f rdonly,directory", -ENOTDIR);
	does("fsync d", 0);
	does("d = open f rdonly", 0);
	does("read d 0 1", 0);
	if (tries("n = open . rdwr,tmpfile 0600", 0))
		does("write n 0 10", 10);
	does("x = open . rdwr", -EISDIR);
	int64_t rc = perform("o = open f rdwr,direct");
	if (rc == -EINVAL)
		skip("no O_DIRECT here");
	else
		does("dwrite o 0 4096", 4096);
	end("kinds of handles");
}

/* Dirty pages of a file, or -1 if the kernel does not tell. */
static long dirty_pages(const char *path)
{
	struct {
		uint64_t off, len;
	} range = { 0, 1 << 20 };
	struct {
		uint64_t cache, dirty, writeback, evicted, recently_evicted;
	} got = { 0 };
	auto_fd fd = openat(s.root, path, O_RDONLY | O_CLOEXEC);
	enum { SYS_CACHESTAT = 451 };

	if (syscall(SYS_CACHESTAT, fd, &range, &got, 0))
		return -1;
	return (long)(got.dirty + got.writeback);
}

/* op_persists() calls a write with `sync` a promise: it must be kept on a handle without O_SYNC. */
static void test_synced_writes(void)
{
	static const char *const lines[] = {
		"write f 0 4096 sync", "write h 0 4096 sync",  "write h 0 4096 dsync",
		"append h 4096 sync",  "pwrite h 0 4096 sync", "pwrite h 0 4096 dsync",
		"mmapwrite h 0 4096",  "append h 4096 dsync",
	};

	begin(NULL);
	does("h = open f rdwr,creat", 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (perform("write h 0 4096") != 4096 || dirty_pages("f") <= 0 ||
		    perform("fsync h")) {
			skip("dirty pages are not shown here");
			continue;
		}
		does(lines[i], 4096);
		is_i(dirty_pages("f"), 0, "nothing is left to be written");
	}
	end("synced writes");
}

/* ---- the whole file system ---- */

struct mounter {
	int root;
	int remounts, drops;
	int fail;
};

static int stub_remount(void *ctx, int *root)
{
	struct mounter *m = ctx;

	m->remounts++;
	if (m->fail)
		return m->fail;
	*root = m->root;
	return 0;
}

static int stub_drop(void *ctx)
{
	((struct mounter *)ctx)->drops++;
	return 0;
}

static void test_env(void)
{
	struct mounter m = { 0 };
	struct exec_env env = { .ctx = &m,
				.remount = stub_remount,
				.drop_caches = stub_drop,
				.global_sync = true,
				.shell = true };

	begin(&env);
	does("sync", 0);
	does("syncfs", 0);
	does("write f 0 10", 10);
	does("sync_file_range f 0 10", 0);
	does("h = open f rdwr", 0);
	does("mkdir other", 0);
	m.root = openat(s.root, "other", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	does("remount", 0);
	is_i(m.remounts, 1, "remount asks who mounted");
	does("write h 0 1", -EBADF);
	does("creat here", 0);
	ok(there("other/here"), "and goes on in the new root");
	m.fail = -EIO;
	does("remount", -EIO);
	does("drop_caches", 0);
	is_i(m.drops, 1, "so does drop_caches");
	close(m.root);
	end("environment");

	begin(NULL);
	does("h = open . rdonly", 0);
	does("remount", -EOPNOTSUPP);
	does("fsync h", 0);
	does("drop_caches", -EOPNOTSUPP);
	does("sync", 0);
	end("no environment");
}

static void test_umask(void)
{
	umask(0077);
	begin(NULL);
	does("mkdir A 0777", 0);
	has_mode("A", S_IFDIR | 0777);
	does("write f 0 1", 1);
	has_mode("f", S_IFREG | 0644);
	end("umask");
	is_u(umask(0022), 0077, "the umask is as it was");
}

/* ---- nothing outside the root ---- */

/* All that can be seen of the directory beside the root; the change times tell most. */
static void outside_state(struct strbuf *out)
{
	static const char *const names[] = { "", "/secret", "/dir", "/dir/deep" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *path = xasprintf("%s/outside%s", top, names[i]);
		struct stat st = { 0 };

		if (lstat(path, &st))
			strbuf_addf(out, "%s is gone\n", names[i]);
		strbuf_addf(out, "%s %o %lld %lu %u %lld.%09ld %lld.%09ld\n", names[i], st.st_mode,
			    (long long)st.st_size, (unsigned long)st.st_nlink, st.st_uid,
			    (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
			    (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	}
}

/* A line for an operation with `path` as its argument number `which`; false if that is no path. */
static bool make_line(const struct op_def *def, size_t which, size_t word, const char *path,
		      struct strbuf *out)
{
	const struct arg_def *arg = def->args;
	size_t n = 0;

	if (arg[which].kind != ARG_PATH && arg[which].kind != ARG_FILE)
		return false;
	strbuf_clear(out);
	strbuf_addf(out, "%s%s", def->flags & OP_MAKES_HANDLE ? "h = " : "", def->name);
	for (size_t i = 0; arg[i].kind != ARG_END; i++) {
		switch (arg[i].kind) {
		case ARG_PATH:
		case ARG_FILE:
			strbuf_addf(out, " %s", i == which ? path : i ? "A/new" : "A/old");
			break;
		case ARG_FLAGS:
		case ARG_CHOICE:
			for (n = 0; arg[i].words[n].name;)
				n++;
			strbuf_addf(out, " %s", arg[i].words[word % n].name);
			if (def->flags & OP_MAKES_HANDLE)
				strbuf_adds(out, ",creat");
			break;
		case ARG_XATTR:
			strbuf_adds(out, " user.x");
			break;
		case ARG_MODE:
			strbuf_adds(out, " 0777");
			break;
		case ARG_OFFSET:
			strbuf_adds(out, " 0");
			break;
		default:
			strbuf_adds(out, " 4096");
		}
	}
	return true;
}

/* Links that lead outside, made again where an operation took or replaced one. */
static void make_traps(void)
{
	static const struct {
		const char *name, *target; /* below `top` if it begins with a tilde */
	} traps[] = {
		{ "abs", "~/outside/secret" }, { "rel", "../outside/secret" },
		{ "absd", "~/outside" },       { "reld", "../outside" },
		{ "A/up", "../../outside" },   { "chain", "abs" },
		{ "chaind", "A/up/dir" },      { "absnew", "~/outside/none" },
		{ "magic", "/proc/self/cwd" }, { "above", "~" },
	};

	mkdirat(s.root, "A", 0755);
	unlinkat(s.root, "A/old", 0); /* it may be a trap by now */
	close(openat(s.root, "A/old", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	if (unlinkat(s.root, "A/new", 0))
		unlinkat(s.root, "A/new", AT_REMOVEDIR);
	for (size_t i = 0; i < ARRAY_SIZE(traps); i++) {
		const char *target = traps[i].target;
		auto_free char *full = xasprintf("%s%s", top, target + 1);
		char now[256] = "";

		if (target[0] == '~')
			target = full;
		if (readlinkat(s.root, traps[i].name, now, sizeof(now) - 1) > 0 &&
		    streq(now, target))
			continue;
		if (unlinkat(s.root, traps[i].name, 0))
			unlinkat(s.root, traps[i].name, AT_REMOVEDIR);
		if (symlinkat(target, s.root, traps[i].name))
			printf("# no link %s: %m\n", traps[i].name);
	}
}

/* Every operation of the table, with every path that leads outside, in every place. */
static void test_outside(void)
{
	static const char *const through[] = {
		/* no operation may get there */
		"absd/secret",	 "reld/secret",	 "absd/dir",
		"A/up/secret",	 "A/up/new",	 "chaind/deep",
		"A/up/dir/new",	 "magic/secret", "above/outside/secret",
		"reld/dir/deep",
	};
	static const char *const at_end[] = {
		/* some operations act on the link itself */
		"abs", "rel", "absd", "reld", "chain", "absnew", "A/up", "magic",
	};
	size_t n = 0, reached = 0, followed = 0, changed = 0;
	auto_strbuf before = STRBUF_INIT, line = STRBUF_INIT;

	begin(NULL);
	sh("cd %s && rm -rf outside && mkdir -p outside/dir && echo s >outside/secret && "
	   "echo d >outside/dir/deep",
	   top);
	/* All of it is below `top`: if this fails, no more than that is lost. */
	auto_free char *outside = xasprintf("%s/outside", top);
	if (chdir(outside))
		printf("# cannot enter %s\n", outside);
	outside_state(&before);
	for (const struct op_def *def = op_table; def->name; def++)
		for (size_t i = 0; i < ARRAY_SIZE(through) + ARRAY_SIZE(at_end); i++)
			for (size_t arg = 0; arg < op_count_args(def); arg++)
				for (size_t word = 0; word < 8; word++) {
					bool link = i >= ARRAY_SIZE(through);
					const char *path = link ? at_end[i - ARRAY_SIZE(through)]
								: through[i];
					auto_strbuf after = STRBUF_INIT;
					bool follows = def->args[arg].kind == ARG_FILE ||
						       streq(def->name, "creat");

					if (!make_line(def, arg, word, path, &line))
						continue;
					make_traps();
					int64_t rc = perform(strbuf_str(&line));
					outside_state(&after);
					n++;
					if (!link && rc >= 0 && !reached++)
						printf("#   %s gives %lld\n", strbuf_str(&line),
						       (long long)rc);
					if (link && follows && rc >= 0 && !followed++)
						printf("#   %s gives %lld\n", strbuf_str(&line),
						       (long long)rc);
					if (!streq(after.buf, before.buf) && !changed++)
						printf("#   %s changed\n%s\n", strbuf_str(&line),
						       after.buf);
				}
	ok(n > 1000, "%zu attempts to get outside", n);
	is_u(reached, 0, "no path goes through a link that leads outside");
	is_u(followed, 0, "nor through one at its end");
	is_u(changed, 0, "nothing outside changed");
	make_traps();
	does("h = open abs rdonly", -EXDEV);
	does("h = open rel rdwr,creat,trunc", -EXDEV);
	does("unlink abs", 0);
	does("rename rel A/moved", 0);
	does("link absd A/linked", 0);
	ok(S_ISLNK(look("A/linked").st_mode), "the link itself got a second name");
	does("rename absd reld exchange", 0);
	does("chmod reld 0777", -EXDEV);
	does("mkdir above", -EEXIST);
	auto_strbuf after = STRBUF_INIT;
	outside_state(&after);
	is_s(strbuf_str(&after), strbuf_str(&before), "still nothing outside changed");
	if (chdir("/"))
		printf("# cannot leave\n");
	end("outside");
}

/* A device node is a way out as well: opening one is refused, acting on the node is not. */
static void test_devices(void)
{
	static const char *const refused[] = {
		"write n 0 1",
		"append n 1",
		"h = open n rdonly",
		"read n 0 1",
		"creat n",
		"fsync n",
		"dwrite n 0 512",
		"truncate n 0",
		"write l 0 1",
		"pwrite b 0 1",
		"chmod n 0600",
		"read b 0 1",
		"h = open b rdwr,nofollow",
	};

	if (geteuid() != 0) {
		skip("making device nodes needs root");
		return;
	}
	begin(NULL);
	does("mknod n char 259", 0);	   /* 1:3, the null device: harmless if this test fails */
	does("mknod b block 16773120", 0); /* a device that nobody has */
	does("symlink n l", 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		does(refused[i], -EACCES);
	does("chown n 1 2", 0);
	is_u(look("n").st_uid, 1, "the node's own owner");
	does("rename n m", 0);
	does("unlink b", 0);
	end("devices");
}

/* With a fifo in every place nothing waits for a partner that never comes. */
static void test_fifo(void)
{
	auto_strbuf line = STRBUF_INIT;
	size_t n = 0;

	begin(NULL);
	alarm(900); /* a hang ends the test */
	for (const struct op_def *def = op_table; def->name; def++)
		for (size_t arg = 0; arg < op_count_args(def); arg++)
			for (size_t word = 0; word < 8; word++) {
				if (!make_line(def, arg, word, "p", &line))
					continue;
				if (word == 0)
					sh("cd %s/root && rm -rf ./* && mkdir A && mkfifo p && "
					   "echo old >A/old",
					   top);
				perform(strbuf_str(&line));
				n++;
			}
	sh("cd %s/root && rm -rf ./* && mkfifo p", top);
	ok(n > 100, "%zu operations on a fifo came back", n);
	does("append p 1", -ENXIO);
	does("truncate p 1", -ENXIO);
	does("write p 0 1", -ESPIPE);
	does("h = open p rdwr", 0);
	does("write h 0 1", -ESPIPE);
	does("append h 1", -ESPIPE);
	does("read h 0 1", -ESPIPE);
	does("fsync h", -EINVAL);
	does("g = open p wronly", 0);
	does("chmod p 0600", 0);
	has_mode("p", S_IFIFO | 0600);
	alarm(0);
	end("fifo");
}

static bool private_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void test_mounts(void)
{
	auto_free char *outside = xasprintf("%s/outside", top);
	auto_free char *point = xasprintf("%s/root/mnt", top);
	auto_strbuf before = STRBUF_INIT, after = STRBUF_INIT;

	begin(NULL);
	does("mkdir mnt", 0);
	does("mkdir A", 0);
	does("creat A/f", 0);
	if (mount(outside, point, NULL, MS_BIND, NULL)) {
		skip("bind mounts are not allowed here");
		end("mounts");
		return;
	}
	outside_state(&before);
	does("write mnt/secret 0 1", -EXDEV);
	does("creat mnt/new", -EXDEV);
	does("mkdir mnt/new", -EXDEV);
	does("unlink mnt/secret", -EXDEV);
	does("rename mnt/secret A/x", -EXDEV);
	does("rename A/f mnt/x", -EXDEV);
	does("link A/f mnt/x", -EXDEV);
	does("symlink x mnt/x", -EXDEV);
	does("chmod mnt 0700", -EXDEV);
	does("chown mnt 1 1", -EXDEV);
	does("fsync mnt", -EXDEV);
	does("h = open mnt rdonly", -EXDEV);
	does("rmdir mnt", -EBUSY);
	does("rename mnt A/mnt", -EBUSY);
	outside_state(&after);
	is_s(strbuf_str(&after), strbuf_str(&before),
	     "what is mounted below the root is untouched");
	umount2(point, MNT_DETACH);
	end("mounts");
}

/* A file system without a page to give answers a store with a signal; here it is an error. */
static void test_full(void)
{
	auto_free char *point = xasprintf("%s/full", top);

	mkdir(point, 0755);
	if (mount("none", point, "tmpfs", 0, "size=64k")) {
		skip("tmpfs cannot be mounted here");
		return;
	}
	size_t fds = count_fds();
	struct workload w;
	struct exec x;
	struct err err = ERR_INIT;
	auto_fd root = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	workload_init(&w);
	if (workload_add_line(&w, "creat f", &err) ||
	    workload_add_line(&w, "truncate f 1048576", &err) ||
	    workload_add_line(&w, "mmapwrite f 0 1048576", &err) ||
	    workload_add_line(&w, "mmapwrite g 0 1048576", &err))
		printf("# %s\n", err.msg);
	exec_init(&x, root, &w, NULL);
	ok(exec_op(&x, 0) == 0 && exec_op(&x, 1) == 0, "a large sparse file");
	is_i(exec_op(&x, 2), -EFAULT, "a mapping that cannot be filled");
	is_i(exec_op(&x, 3), -ENOSPC, "a file that cannot be extended");
	exec_release(&x);
	workload_release(&w);
	is_u(count_fds(), fds + 1, "no descriptor is left open");
	umount2(point, MNT_DETACH);
}

int main(void)
{
	if (!mkdtemp(top))
		return 1;
	test_content();
	test_creat();
	test_directories();
	test_nodes();
	test_links();
	test_rename();
	test_write();
	test_direct_and_mmap();
	test_sizes();
	test_copies();
	test_attributes();
	test_handles();
	test_handle_kinds();
	test_synced_writes();
	test_env();
	test_umask();
	test_outside();
	test_devices();
	test_fifo();
	if (private_mounts()) {
		test_mounts();
		test_full();
	} else {
		skip("a private mount namespace needs root");
	}
	sh("rm -rf %s", top);
	return done_testing();
}
