/* SPDX-License-Identifier: MIT */
/* tree-tree.c - semantic states: real walks, hash and equality, text, difference in words. */
#include "tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/rng.h"
#include "tap.h"

static const struct tree_opts plain; /* the defaults */
static const struct tree_opts all = {
	.blocks = true,
	.times = true,
	.dir_size = true,
	.dir_nlink = true,
};

/* A directory of our own, which is also the working directory. */
static char home[] = "/tmp/outage-tree.XXXXXX";

/*
 * Damage that no healthy file system shows: the walk's calls end up here, in place of libc's. A
 * directory lists its last name again, and the directory "self" is the one it is in.
 */
static bool damaged;

ssize_t getdents64(int fd, void *buf, size_t len)
{
	static char last[512];
	static int last_fd = -1;
	ssize_t n = syscall(SYS_getdents64, fd, buf, len);

	if (!damaged)
		return n;
	if (n > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)((char *)buf + at);

			at += d->d_reclen;
			if (d->d_name[0] != '.')
				memcpy(last, d, d->d_reclen);
		}
		last_fd = fd;
	} else if (n == 0 && last_fd == fd) {
		n = ((struct dirent64 *)last)->d_reclen;
		memcpy(buf, last, (size_t)n);
		last_fd = -1;
	}
	return n;
}

int statx(int fd, const char *restrict name, int flags, unsigned mask, struct statx *restrict out)
{
	if (damaged && streq(name, "self"))
		name = ".";
	return (int)syscall(SYS_statx, fd, name, flags, mask, out);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void empty_home(void)
{
	if (chdir("/") < 0 || nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0 ||
	    mkdir(home, 0755) < 0 || chmod(home, 0755) < 0 || chdir(home) < 0)
		abort();
}

static void put_file(const char *path, const void *data, size_t len)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, 0644) < 0)
		abort();
}

static int walk(struct tree *t, const struct tree_opts *opts, struct err *err)
{
	auto_fd fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return tree_walk(fd, opts, t, err);
}

static bool walk_ok(struct tree *t, const struct tree_opts *opts)
{
	struct err err = ERR_INIT;

	if (walk(t, opts, &err) == 0)
		return true;
	printf("# walk: %s\n", err.msg);
	return false;
}

static const struct tree_entry *get(const struct tree *t, const char *path)
{
	static const struct tree_entry none = { .path = "(none)", .target = "(none)" };
	const struct tree_entry *e = tree_find(t, path);

	return e ? e : &none;
}

/* Prints, reads back, prints again: the same text and the same tree. */
static void check_text(const struct tree *t, const char *what)
{
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT;
	auto_tree back = TREE_INIT;
	struct err err = ERR_INIT;

	for (unsigned flags = 0; flags <= TREE_TEXT_CONTENT; flags++) {
		strbuf_clear(&text);
		strbuf_clear(&again);
		tree_print(t, &all, flags, &text);
		if (!ok(tree_parse(text.buf, text.len, &back, &err) == 0, "%s: parses", what))
			printf("# %s\n", err.msg);
		tree_print(&back, &all, flags, &again);
		is_s(again.buf, text.buf, "%s: prints the same again", what);
		ok(tree_equal(t, &back, &all), "%s: is the same tree", what);
	}
}

static void test_types(void)
{
	auto_tree t = TREE_INIT;
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "socket" };
	auto_fd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool devices;

	empty_home();
	put_file("file", "hello", 5);
	put_file("empty", "", 0);
	mkdir("dir", 0700);
	put_file("dir/inner", "x", 1);
	put_file("dir.txt", "sorts after what is in dir", 26);
	ok(symlink("file", "symlink") == 0 && symlink("loop", "loop") == 0 &&
		   symlink("/", "root") == 0 && mkfifo("fifo", 0600) == 0 &&
		   bind(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0,
	   "made one of each type");
	devices = mknod("char", S_IFCHR | 0600, makedev(1, 3)) == 0 &&
		  mknod("block", S_IFBLK | 0600, makedev(7, 300)) == 0;

	ok(walk_ok(&t, &plain), "walks all types");
	is_u(t.entries.n, devices ? 13 : 11, "finds every entry");
	is_s(t.entries.v[0].path, "", "the root is first");
	ok(get(&t, "")->type == TREE_DIR && get(&t, "")->mode == 0755, "the root is an entry");
	ok(get(&t, "file")->type == TREE_FILE && get(&t, "file")->size == 5 &&
		   memcmp(get(&t, "file")->content, "hello", 5) == 0,
	   "a file has its content");
	ok(hash_eq(get(&t, "file")->hash, tree_content_hash("hello", 5)), "and its hash");
	ok(get(&t, "empty")->size == 0 && !get(&t, "empty")->content, "an empty file");
	ok(get(&t, "file")->uid == geteuid() && get(&t, "file")->nlink == 1, "owner and links");
	ok(get(&t, "dir")->type == TREE_DIR && get(&t, "dir")->mode == 0700, "a directory");
	ok(get(&t, "dir/inner") == get(&t, "dir") + 1, "is followed by what is in it");
	is_s(get(&t, "symlink")->target, "file", "a symbolic link has its target");
	is_s(get(&t, "loop")->target, "loop", "a link to itself is not followed");
	ok(get(&t, "root")->type == TREE_SYMLINK, "nor one out of the directory");
	ok(get(&t, "fifo")->type == TREE_FIFO && get(&t, "fifo")->mode == 0600, "a FIFO");
	ok(get(&t, "socket")->type == TREE_SOCKET, "a socket");
	if (devices) {
		ok(get(&t, "char")->type == TREE_CHAR && get(&t, "char")->rdev_minor == 3,
		   "a character device");
		ok(get(&t, "block")->rdev_major == 7 && get(&t, "block")->rdev_minor == 300,
		   "a block device");
	} else {
		skip("devices need root");
	}
	check_text(&t, "all types");
	ok(!tree_find(&t, "nothing") && !tree_find(&t, "dir/"), "finds only what is there");

	static const char *const ignore[] = { "dir", "inner", NULL };
	struct tree_opts opts = { .ignore = ignore };
	ok(walk_ok(&t, &opts) && !tree_find(&t, "dir") && !tree_find(&t, "dir/inner") &&
		   tree_find(&t, "dir.txt"),
	   "names to ignore are left out");
	rename("dir", "other");
	ok(walk_ok(&t, &opts) && tree_find(&t, "other/inner"), "but only in the root");
}

static void test_links(void)
{
	auto_tree t = TREE_INIT, u = TREE_INIT;

	empty_home();
	mkdir("d", 0755);
	put_file("z", "zz", 2);
	put_file("d/a", "aa", 2);
	put_file("alone", "x", 1);
	ok(link("z", "b") == 0 && link("d/a", "y") == 0 && link("z", "d/c") == 0, "linked");
	ok(walk_ok(&t, &plain), "walks hard links");
	is_u(get(&t, "alone")->link, 0, "a file with one name has no number");
	is_u(get(&t, "b")->link, 1, "numbers follow the first name");
	is_u(get(&t, "d/a")->link, 2, "then the next file");
	ok(get(&t, "z")->link == 1 && get(&t, "d/c")->link == 1 && get(&t, "y")->link == 2,
	   "all names of a file share it");
	is_u(get(&t, "z")->nlink, 3, "the link count is there");
	check_text(&t, "hard links");

	/* The same again, in another order, so with other inode numbers. */
	empty_home();
	put_file("alone", "x", 1);
	mkdir("d", 0755);
	put_file("y", "aa", 2);
	put_file("d/c", "zz", 2);
	ok(link("y", "d/a") == 0 && link("d/c", "b") == 0 && link("b", "z") == 0, "linked again");
	ok(walk_ok(&u, &plain) && tree_equal(&t, &u, &plain), "inode numbers do not count");
	unlink("z");
	put_file("z", "zz", 2);
	ok(walk_ok(&u, &plain) && !tree_equal(&t, &u, &plain), "a copy is not a link");
}

static void test_xattrs(void)
{
	auto_tree t = TREE_INIT;
	static char large[3000];

	empty_home();
	put_file("f", "", 0);
	mkdir("d", 0755);
	memset(large, 'v', sizeof(large));
	if (setxattr("f", "user.b", "value", 5, 0) < 0) {
		skip("no user attributes on this file system");
		return;
	}
	setxattr("f", "user.a", "", 0, 0);
	setxattr("d", "user.bin", "\0\xff\n", 3, 0);
	bool large_fits = setxattr("f", "user.large", large, sizeof(large), 0) == 0;
	ok(walk_ok(&t, &plain), "walks attributes");
	const struct tree_entry *f = get(&t, "f");
	is_u(f->n_xattrs, large_fits ? 3 : 2, "all attributes of a file");
	ok(f->n_xattrs >= 2 && streq(f->xattrs[0].name, "user.a") && f->xattrs[0].len == 0,
	   "in order of name, an empty value");
	ok(f->n_xattrs >= 2 && f->xattrs[1].len == 5 && !memcmp(f->xattrs[1].value, "value", 5),
	   "and a value");
	ok(get(&t, "d")->n_xattrs == 1 && get(&t, "d")->xattrs[0].len == 3, "of a directory");
	check_text(&t, "attributes");

	if (mkfifo("p", 0600) || symlink("x", "s") || lsetxattr("p", "trusted.p", "1", 1, 0) ||
	    lsetxattr("s", "trusted.s", "2", 1, 0)) {
		skip("no trusted attributes here");
		return;
	}
	ok(walk_ok(&t, &plain) && get(&t, "p")->n_xattrs == 1 && get(&t, "s")->n_xattrs == 1,
	   "of a FIFO and of a symbolic link");
}

static void test_content(void)
{
	auto_tree t = TREE_INIT, u = TREE_INIT;
	struct tree_opts small = { .content_limit = 1000 };
	static char data[300 * 1024 + 17];
	struct rng rng;

	rng_init(&rng, 1);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)rng_next(&rng);
	memset(data + 8192, 0, 3 * 4096);
	empty_home();
	put_file("big", data, sizeof(data));
	put_file("exact", data, 1000);
	put_file("over", data, 1001);
	auto_fd fd = open("sparse", O_RDWR | O_CREAT, 0644);
	ok(pwrite(fd, "end", 3, 5 << 20) == 3 && pwrite(fd, "mid", 3, 70000) == 3, "sparse file");

	ok(walk_ok(&t, &plain) && walk_ok(&u, &small), "walks with two limits");
	ok(get(&t, "big")->content && !memcmp(get(&t, "big")->content, data, sizeof(data)),
	   "content within the limit is kept");
	ok(!get(&u, "big")->content && get(&u, "big")->size == sizeof(data), "past it, it is not");
	ok(get(&u, "exact")->content && !get(&u, "over")->content, "the limit is exact");
	ok(hash_eq(get(&t, "big")->hash, get(&u, "big")->hash), "the hash is the same");
	ok(tree_equal(&t, &u, &all), "and so are the trees");
	struct tree_opts large = { .content_limit = 16 << 20 };
	ok(!get(&t, "sparse")->content && walk_ok(&u, &large) && get(&u, "sparse")->content &&
		   hash_eq(get(&t, "sparse")->hash, get(&u, "sparse")->hash),
	   "a hole is zeros");
	check_text(&t, "contents");

	char *page = calloc(1, 2 * TREE_PAGE);
	ok(hash_eq(tree_content_hash(page, 2 * TREE_PAGE), tree_content_hash("", 0)),
	   "zeros hash as nothing");
	page[TREE_PAGE] = 1;
	ok(hash_eq(tree_content_hash(page, 2 * TREE_PAGE), tree_page_hash(1, "\1", 1)),
	   "the hash is the sum of its pages");
	ok(!hash_eq(tree_page_hash(1, "\1", 1), tree_page_hash(0, "\1", 1)), "place matters");
	free(page);
	ok(!hash_eq(tree_page_hash(0, "abcdefgh", 8), tree_page_hash(1, "`bcdefgi", 8)),
	   "with whatever is there");
}

static void test_odd_names(void)
{
	static const char *const names[] = { "new\nline",   " blank ",	  "\xff\xfe",
					     "back\\slash", "\"quoted\"", "-",
					     "...",	    "a=b",	  "\\x41" };
	auto_tree t = TREE_INIT;
	auto_strbuf text = STRBUF_INIT;
	size_t found = 0;

	empty_home();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put_file(names[i], names[i], strlen(names[i]));
	ok(symlink("t\n\"\\\x80", "odd target") == 0, "odd target");
	ok(walk_ok(&t, &plain), "walks odd names");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		found += tree_find(&t, names[i]) != NULL;
	is_u(found, ARRAY_SIZE(names), "finds them all");
	check_text(&t, "odd names");
	tree_print(&t, &plain, 0, &text);
	ok(strstr(text.buf, "file new\\x0aline mode") && strstr(text.buf, "file back\\x5cslash "),
	   "escapes them");
	ok(strstr(text.buf, "target=\"t\\n\\\"\\\\\\x80\"\n"), "escapes a target");
}

static void test_depth(void)
{
	auto_tree t = TREE_INIT;
	struct err err = ERR_INIT;
	int made = 0;

	empty_home();
	for (; made < TREE_DEPTH_MAX; made++)
		if (mkdir("d", 0755) < 0 || chdir("d") < 0)
			abort();
	ok(walk_ok(&t, &plain), "walks to the limit of depth");
	is_u(t.entries.n, TREE_DEPTH_MAX + 1, "and sees all of it");
	check_text(&t, "deep");
	if (mkdir("d", 0755) < 0)
		abort();
	is_i(walk(&t, &plain, &err), -E2BIG, "does not go deeper");
	is_s(err.msg, "directories are more than 256 deep, the limit", "and says so");
	is_u(t.entries.n, 0, "then the tree is empty");
	is_i(tree_walk(-1, &plain, &t, NULL), -EBADF, "nothing to walk");
	auto_fd fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	is_i(tree_walk(fd, &plain, &t, NULL), -ENOTDIR, "not a directory");
}

/* Runs `body` in a child, as nobody if we are root; true if it says so. */
static bool as_user(bool (*body)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(3);
		_exit(body() ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool sees_denied(void)
{
	auto_tree t = TREE_INIT, u = TREE_INIT;
	auto_strbuf text = STRBUF_INIT;

	if (!walk_ok(&t, &plain) || t.entries.n != 6)
		return false;
	const struct tree_entry *f = get(&t, "denied"), *d = get(&t, "closed");
	const struct tree_entry *x = get(&t, "no-search/x");
	tree_print(&t, &plain, 0, &text);
	return f->error == EACCES && f->step == TREE_STEP_OPEN && f->size == 2 && !f->content &&
	       d->error == EACCES && d->step == TREE_STEP_OPEN && d->type == TREE_DIR &&
	       x->error == EACCES && x->step == TREE_STEP_STAT && x->type == TREE_UNKNOWN &&
	       get(&t, "open")->content && !get(&t, "open")->error &&
	       tree_parse(text.buf, text.len, &u, NULL) == 0 && tree_equal(&t, &u, &plain);
}

static void test_denied(void)
{
	empty_home();
	put_file("open", "ok", 2);
	put_file("denied", "no", 2);
	mkdir("closed", 0755);
	put_file("closed/inside", "", 0);
	mkdir("no-search", 0755);
	put_file("no-search/x", "", 0);
	chmod("denied", 0);
	chmod("closed", 0);
	chmod("no-search", 0444);
	ok(as_user(sees_denied), "what a user may not read is part of what the user sees");
	chmod("closed", 0755);
	chmod("no-search", 0755);
}

static bool sees_mount(void)
{
	auto_tree t = TREE_INIT;

	if (!walk_ok(&t, &plain))
		return false;
	const struct tree_entry *m = get(&t, "m");
	return t.entries.n == 3 && m->error == EXDEV && m->step == TREE_STEP_MOUNT &&
	       m->type == TREE_DIR && get(&t, "n")->error == EXDEV;
}

static void test_damage(void)
{
	auto_tree t = TREE_INIT;
	size_t n = 0, n_doubled = 0;

	empty_home();
	mkdir("d", 0755);
	mkdir("d/self", 0755);
	put_file("d/self/x", "", 0);
	mkdir("e", 0755);
	put_file("e/x", "x", 1);
	put_file("f", "f", 1);
	damaged = true;
	ok(walk_ok(&t, &plain), "walks a damaged directory");
	damaged = false;
	for (n = 0; n < t.entries.n; n++)
		n_doubled += t.entries.v[n].doubled;
	is_u(n, 6, "sees each name once");
	is_u(n_doubled, 3, "one name in each directory is listed twice");
	ok(get(&t, "e/x")->doubled && get(&t, "d/self")->doubled, "these, for instance");
	ok(get(&t, "d/self")->error == ELOOP && get(&t, "d/self")->step == TREE_STEP_LOOP,
	   "a directory that contains itself is not entered");
	check_text(&t, "damaged");
}

static void test_mount(void)
{
	int status = -1;
	pid_t pid;

	empty_home();
	mkdir("m", 0755);
	mkdir("n", 0755);
	put_file("n/x", "", 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", "m", "tmpfs", 0, NULL) < 0 ||
		    mount("n", "n", NULL, MS_BIND, NULL) < 0)
			_exit(77);
		_exit(sees_mount() ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip("no mount namespace here");
	else
		ok(status == 0, "does not enter another mount, even of the same file system");
}

static void test_atime(void)
{
	struct timespec old[] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	auto_tree t = TREE_INIT, u = TREE_INIT;

	empty_home();
	put_file("f", "x", 1);
	mkdir("d", 0755);
	utimensat(AT_FDCWD, "f", old, 0);
	utimensat(AT_FDCWD, "d", old, 0);
	ok(walk_ok(&t, &all) && walk_ok(&u, &all), "walks twice");
	is_i(get(&u, "f")->atime.sec, 1000, "reading a file leaves its access time");
	is_i(get(&u, "d")->atime.sec, 1000, "and that of a directory");
	ok(tree_equal(&t, &u, &all), "two walks see the same");
}

/* Every call of the walk fails once: the entry says so, the rest is there, nothing leaks. */
static void test_faults(void)
{
	static const char *const places[] = { "tree.stat",     "tree.open",    "tree.read",
					      "tree.readlink", "tree.readdir", "tree.listxattr",
					      "tree.getxattr" };
	auto_tree good = TREE_INIT, t = TREE_INIT;
	auto_tree_diff diff = { 0 };
	bool hit[ARRAY_SIZE(places)] = { 0 };
	int rounds = 0, wrong = 0, fd_before, fd_after;
	bool fault = true;

	empty_home();
	mkdir("d", 0755);
	put_file("d/f", "data", 4);
	put_file("f", "data", 4);
	bool xattr = setxattr("f", "user.x", "1", 1, 0) == 0;
	ok(symlink("t", "s") == 0 && mkfifo("p", 0600) == 0 && walk_ok(&good, &plain), "ready");
	fd_before = dup(0);
	close(fd_before);
	/* Like a fault_loop, but what failed in each round must be known. */
	while (fault) {
		const char *name = NULL;
		struct err err = ERR_INIT;
		size_t n_errors = 0;

		fault_arm(++rounds, EIO);
		int rc = walk(&t, &plain, &err);
		fault = fault_disarm(&name);
		for (size_t i = 0; name && i < ARRAY_SIZE(places); i++)
			hit[i] |= streq(name, places[i]);
		for (size_t i = 0; i < t.entries.n; i++)
			n_errors += t.entries.v[i].error == EIO;
		tree_diff(&good, &t, &plain, &diff);
		wrong += rc != 0 || n_errors != fault || (diff.list.n > 0) != fault ||
			 tree_equal(&good, &t, &plain) == fault;
	}
	fd_after = dup(0);
	close(fd_after);
	ok(rounds > 20, "every call failed once (%d)", rounds - 1);
	is_i(wrong, 0, "each failure is one unreadable entry");
	is_i(fd_after, fd_before, "no descriptor is left open");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (i < ARRAY_SIZE(places) - 1 || xattr)
			ok(hit[i], "%s failed", places[i]);

	struct fault_loop loop = { .error = EMFILE };
	for (wrong = 0; fault_loop_next(&loop);) {
		struct err err = ERR_INIT;
		int rc = walk(&t, &plain, &err);

		wrong += rc ? rc != -EMFILE || t.entries.n || !strstr(err.msg, "Too many open")
			    : !tree_equal(&good, &t, &plain);
	}
	is_i(wrong, 0, "our own lack of descriptors is not blamed on the file system");
}

/* Trees built in process, one entry of each type, to be changed one field at a time. */
static const struct tree_xattr two_xattrs[] = { { "user.b", "2", 1 }, { "user.a", "1", 1 } };

static struct tree_entry file_entry(void)
{
	return (struct tree_entry){
		.path = "f",
		.type = TREE_FILE,
		.mode = 0644,
		.uid = 1,
		.gid = 2,
		.nlink = 1,
		.size = 8,
		.blocks = 8,
		.atime = { 10, 1 },
		.mtime = { 20, 2 },
		.content = "aaaabbbb",
		.xattrs = two_xattrs,
		.n_xattrs = 2,
	};
}

static struct tree_entry other_entry(const char *path, enum tree_type type)
{
	return (struct tree_entry){ .path = path,
				    .type = type,
				    .mode = 0755,
				    .nlink = 2,
				    .size = 4096,
				    .rdev_major = 1,
				    .rdev_minor = 3,
				    .target = type == TREE_SYMLINK ? "to" : NULL };
}

/* The root, the entry given, and a directory with a file in it. */
static void build(struct tree *t, const struct tree_entry *e)
{
	struct tree_entry root = other_entry("", TREE_DIR), dir = other_entry("z", TREE_DIR);
	struct tree_entry inner = file_entry();

	tree_clear(t);
	inner.path = "z/inner";
	tree_add(t, &inner, &plain); /* not in order: tree_finish sorts */
	tree_add(t, &dir, &plain);
	if (e)
		tree_add(t, e, &plain);
	tree_add(t, &root, &plain);
	tree_finish(t);
}

/*
 * Compares the trees with `before` and `after` under all options: exactly one difference, of this
 * kind and in these words; the hash says the same; under the default options the difference is
 * there iff `always`.
 */
static void differs(const struct tree_entry *before, const struct tree_entry *after,
		    enum tree_diff_kind kind, bool always, const char *words)
{
	auto_tree a = TREE_INIT, b = TREE_INIT;
	auto_tree_diff diff = { 0 };

	build(&a, before);
	build(&b, after);
	ok(!hash_eq(tree_hash(&a, &all), tree_hash(&b, &all)) && !tree_equal(&a, &b, &all),
	   "%s: changes the hash", tree_diff_kind_name(kind));
	tree_diff(&a, &b, &all, &diff);
	is_u(diff.list.n, 1, "%s: is one difference", tree_diff_kind_name(kind));
	if (diff.list.n) {
		is_s(diff.list.v[0].words, words, "%s: in words", tree_diff_kind_name(kind));
		ok(diff.list.v[0].kind == kind, "%s: is its kind", tree_diff_kind_name(kind));
	}
	bool same = hash_eq(tree_hash(&a, &plain), tree_hash(&b, &plain));
	tree_diff(&a, &b, &plain, &diff);
	ok(same == !always && same == !diff.list.n && same == tree_equal(&a, &b, &plain),
	   "%s: %s by default", tree_diff_kind_name(kind), always ? "counts" : "does not count");
	check_text(&b, tree_diff_kind_name(kind));
}

static void test_file_fields(void)
{
	struct tree_entry f = file_entry(), g;
	const struct tree_xattr changed[] = { { "user.a", "1", 1 }, { "user.b", "3\n", 2 } };
	const struct tree_xattr added[] = { { "user.a", "1", 1 },
					    { "user.b", "2", 1 },
					    { "user.x2", "", 0 } };

	differs(&f, NULL, TREE_DIFF_MISSING, true, "f: missing, was a file of 8 bytes");
	differs(NULL, &f, TREE_DIFF_EXTRA, true, "f: is a file of 8 bytes, was not there");
	g = f, g.mode = 04600;
	differs(&f, &g, TREE_DIFF_MODE, true, "f: mode is 4600, was 0644");
	g = f, g.uid = 5;
	differs(&f, &g, TREE_DIFF_OWNER, true, "f: owner is 5:2, was 1:2");
	g = f, g.gid = 5;
	differs(&f, &g, TREE_DIFF_OWNER, true, "f: owner is 1:5, was 1:2");
	g = f, g.nlink = 2;
	differs(&f, &g, TREE_DIFF_NLINK, true, "f: link count is 2, was 1");
	g = f, g.size = 4;
	differs(&f, &g, TREE_DIFF_SIZE, true, "f: size is 4, was 8");
	g.size = 0;
	differs(&f, &g, TREE_DIFF_SIZE, true, "f: size is 0, was 8");
	g = f, g.content = "aaaabbxb";
	differs(&f, &g, TREE_DIFF_CONTENT, true,
		"f: content differs from byte 6 (\"x\" instead of \"b\")");
	g.content = "aaaa\0\0\0\0";
	differs(&f, &g, TREE_DIFF_CONTENT, true,
		"f: content differs from byte 4 (zeros instead of \"bbbb\")");
	g.content = NULL, g.hash = (struct hash128){ 1, 2 };
	differs(&f, &g, TREE_DIFF_CONTENT, true,
		"f: content differs (hash is 00000000000000020000000000000001, "
		"was 1c86491e0d3c46e2e9e60b70516f8d86)");
	g = f, g.xattrs = changed;
	differs(&f, &g, TREE_DIFF_XATTR_VALUE, true,
		"f: extended attribute user.b is \"3\\n\", was \"2\"");
	g = f, g.xattrs = changed, g.n_xattrs = 1;
	differs(&f, &g, TREE_DIFF_XATTR_MISSING, true,
		"f: extended attribute user.b is missing, was \"2\"");
	g = f, g.xattrs = added, g.n_xattrs = 3;
	differs(&f, &g, TREE_DIFF_XATTR_EXTRA, true,
		"f: extended attribute user.x2 is \"\", was not there");
	g = f, g.blocks = 0;
	differs(&f, &g, TREE_DIFF_BLOCKS, false, "f: number of blocks is 0, was 8");
	g = f, g.mtime.nsec = 3;
	differs(&f, &g, TREE_DIFF_TIMES, false,
		"f: modification time is 20.000000003, was 20.000000002");
	g = f, g.atime.sec = -7;
	differs(&f, &g, TREE_DIFF_TIMES, false, "f: access time is -7.000000001, was 10.000000001");
	g = f, g.error = EIO, g.step = TREE_STEP_READ;
	differs(&f, &g, TREE_DIFF_UNREADABLE, true,
		"f: is unreadable (read: Input/output error), was readable");
	g.error = 4000, g.step = TREE_STEP_LISTXATTR;
	differs(&g, &f, TREE_DIFF_UNREADABLE, true,
		"f: is readable, was unreadable (listxattr: Unknown error 4000)");
	g = (struct tree_entry){ .path = "f", .error = EUCLEAN, .step = TREE_STEP_STAT };
	differs(&f, &g, TREE_DIFF_UNREADABLE, true,
		"f: is unreadable (stat: Structure needs cleaning), was readable");
	g = f, g.doubled = true;
	differs(&f, &g, TREE_DIFF_DOUBLED, true, "f: is listed more than once, was listed once");
	differs(&g, &f, TREE_DIFF_DOUBLED, true, "f: is listed once, was listed more than once");
}

static void test_other_fields(void)
{
	struct tree_entry d = other_entry("d", TREE_DIR), f = other_entry("d", TREE_FIFO), g;
	struct tree_entry s = other_entry("s", TREE_SYMLINK), c = other_entry("c", TREE_CHAR);

	differs(&d, &f, TREE_DIFF_TYPE, true, "d: is a FIFO, was a directory");
	g = d, g.size = 0;
	differs(&d, &g, TREE_DIFF_SIZE, false, "d: size is 0, was 4096");
	g = d, g.nlink = 3;
	differs(&d, &g, TREE_DIFF_NLINK, false, "d: link count is 3, was 2");
	g = d, g.error = EXDEV, g.step = TREE_STEP_MOUNT;
	differs(&d, &g, TREE_DIFF_UNREADABLE, true,
		"d: is a mount of another file system, was readable");
	g = d, g.error = ELOOP, g.step = TREE_STEP_LOOP;
	differs(&d, &g, TREE_DIFF_UNREADABLE, true,
		"d: is a directory that contains itself, was readable");
	g = s, g.target = "elsewhere";
	differs(&s, &g, TREE_DIFF_TARGET, true, "s: target is \"elsewhere\", was \"to\"");
	differs(&s, NULL, TREE_DIFF_MISSING, true, "s: missing, was a symbolic link to \"to\"");
	g = c, g.rdev_minor = 5;
	differs(&c, &g, TREE_DIFF_RDEV, true, "c: device is 1:5, was 1:3");
	g = c, g.size = 1;
	auto_tree a = TREE_INIT, b = TREE_INIT;
	build(&a, &c);
	build(&b, &g);
	ok(tree_equal(&a, &b, &all), "the size of a device does not count");

	g = d, g.blocks = 16;
	struct tree_opts blocks_only = { .blocks = true };
	build(&a, &d);
	build(&b, &g);
	ok(tree_equal(&a, &b, &blocks_only) && !tree_equal(&a, &b, &all),
	   "blocks of a directory count with its size");
	b.lacks = TREE_FIELD_BLOCKS;
	ok(tree_equal(&a, &b, &all), "what a tree lacks is not compared");
}

static void test_link_diff(void)
{
	auto_tree a = TREE_INIT, b = TREE_INIT;
	auto_tree_diff diff = { 0 };
	struct tree_entry f = file_entry();

	/* Expected: a, b and c are one file. Seen: b is a copy, c is a link of d, a is alone. */
	for (int seen = 0; seen < 2; seen++) {
		struct tree *t = seen ? &b : &a;
		static const uint64_t inode[2][4] = { { 7, 7, 7, 9 }, { 1, 2, 3, 3 } };

		for (size_t i = 0; i < 4; i++) {
			char path[] = { (char)('a' + i), '\0' };

			f.path = path;
			f.inode = inode[seen][i];
			tree_add(t, &f, &plain);
		}
		tree_finish(t);
	}
	tree_diff(&a, &b, &plain, &diff);
	is_u(diff.list.n, 3, "each name that moved is a difference");
	if (diff.list.n == 3) {
		is_s(diff.list.v[0].words, "b: is a file of its own, was the same file as a",
		     "no longer a link");
		is_s(diff.list.v[1].words, "c: is a file of its own, was the same file as a",
		     "the first name of another file");
		is_s(diff.list.v[2].words, "d: is the same file as c, was a file of its own",
		     "a new link");
		ok(diff.list.v[0].kind == TREE_DIFF_LINKS, "kind");
	}

	/* One of three names is missing: that, and not how the others are linked. */
	tree_clear(&b);
	f.inode = 3;
	f.path = "b";
	tree_add(&b, &f, &plain);
	f.path = "c";
	tree_add(&b, &f, &plain);
	f.inode = 4;
	f.path = "d";
	tree_add(&b, &f, &plain);
	tree_finish(&b);
	tree_diff(&a, &b, &plain, &diff);
	is_u(diff.list.n, 1, "a missing name is one difference");
	if (diff.list.n)
		is_s(diff.list.v[0].words, "a: missing, was a file of 8 bytes", "namely itself");
}

static void test_diff_order(void)
{
	auto_tree a = TREE_INIT, b = TREE_INIT;
	auto_tree_diff diff = { 0 };
	struct tree_entry f = file_entry(), root = other_entry("", TREE_DIR);

	build(&a, &f);
	root.mode = 0700;
	tree_add(&b, &root, &plain);
	f.mode = 0, f.uid = 0, f.size = 1, f.doubled = true;
	tree_add(&b, &f, &plain);
	struct tree_entry z = other_entry("z", TREE_DIR);
	z.error = EIO, z.step = TREE_STEP_READDIR;
	tree_add(&b, &z, &plain);
	f.path = "z.txt";
	tree_add(&b, &f, &plain);
	tree_finish(&b);
	tree_diff(&a, &b, &plain, &diff);
	static const char *const want[] = {
		".: mode is 0700, was 0755",
		"f: mode is 0000, was 0644",
		"f: owner is 0:2, was 1:2",
		"f: size is 1, was 8",
		"f: is listed more than once, was listed once",
		"z: is unreadable (readdir: Input/output error), was readable",
		"z/inner: cannot be seen, because z is unreadable (readdir: Input/output error)",
		"z.txt: is a file of 1 bytes, was not there",
	};
	is_u(diff.list.n, ARRAY_SIZE(want), "all differences");
	for (size_t i = 0; i < min(diff.list.n, ARRAY_SIZE(want)); i++)
		is_s(diff.list.v[i].words, want[i], "difference %zu, in order", i);
	ok(diff.list.n > 6 && diff.list.v[6].kind == TREE_DIFF_UNREADABLE && !diff.list.v[6].seen &&
		   streq(diff.list.v[6].path, "z/inner"),
	   "what cannot be seen is not called missing");
	tree_diff(&a, &a, &all, &diff);
	is_u(diff.list.n, 0, "a tree does not differ from itself");
}

static void test_finish(void)
{
	auto_tree t = TREE_INIT, one = TREE_INIT;
	struct tree_entry f = file_entry();

	tree_finish(&t);
	ok(t.entries.n == 0 && !tree_find(&t, ""), "an empty tree");
	check_text(&t, "empty");
	tree_clear(&t);
	tree_add(&t, &f, &plain);
	tree_add(&t, &f, &plain);
	tree_finish(&t);
	is_u(t.entries.n, 1, "a name that is added twice");
	ok(t.entries.n == 1 && t.entries.v[0].doubled, "is doubled");
	tree_add(&one, &f, &plain);
	tree_finish(&one);
	ok(!tree_equal(&t, &one, &plain), "which a user could tell");
	ok(tree_path_cmp("a", "a/b") < 0 && tree_path_cmp("a/b", "a.b") < 0 &&
		   tree_path_cmp("a/b", "a b") < 0 && tree_path_cmp("", "a") < 0 &&
		   tree_path_cmp("a", "\xff") < 0 && tree_path_cmp("x", "x") == 0,
	   "order of paths");
}

static void test_print(void)
{
	auto_tree t = TREE_INIT;
	auto_strbuf text = STRBUF_INIT;
	struct tree_entry f = file_entry();
	static char big[5000];

	memset(big, 'a', 4096);
	memset(big + 4096, 0, 900);
	memset(big + 4996, 'e', 4);
	f.content = big;
	f.size = sizeof(big);
	tree_add(&t, &f, &plain);
	tree_finish(&t);
	tree_print(&t, &plain, 0, &text);
	is_s(text.buf,
	     "tree 2\n"
	     "file f mode=0644 uid=1 gid=2 nlink=1 size=5000 hash=f84639ee893dac7f1b14da435c7dc94f "
	     "data=4096*\"a\"+900*\"\\x00\"+\"eeee\"\n"
	     " xattr user.a \"1\"\n"
	     " xattr user.b \"2\"\n",
	     "the text of a file");
	check_text(&t, "runs");
}

/* Each text must be refused with this message. */
static void refuses(const char *text, size_t len, const char *message)
{
	auto_tree t = TREE_INIT;
	struct err err = ERR_INIT;

	int rc = tree_parse(text, len, &t, &err);
	is_i(rc, -EINVAL, "refused: %s", message);
	is_s(err.msg, message, "with this message");
	is_u(t.entries.n, 0, "and nothing kept");
}

#define ATTRS	  " mode=0644 uid=0 gid=0 nlink=1"
#define ZERO_HASH " hash=00000000000000000000000000000000"

static void test_bad_text(void)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "", "line 1: a tree is missing" },
		{ "tree 2", "line 1: is cut off" },
		{ "twig 1\n", "line 1: does not start with 'tree 2'" },
		{ "tree 1\n", "line 1: version 1 of a tree is not known here" },
		{ "tree 2 times blocks\n",
		  "line 1: names a field that is not known, or not in order" },
		{ "tree 2\n\n", "line 2: does not start with a type such as file or dir" },
		{ "tree 2\nfile\n", "line 2: does not start with a type such as file or dir" },
		{ "tree 2\nfile a\\q\n", "line 2: the path is missing or not properly quoted" },
		{ "tree 2\nfile a\\x00\n", "line 2: the path is missing or not properly quoted" },
		{ "tree 2\nfile ../a\n", "line 2: the path has an empty part, '.' or '..' in it" },
		{ "tree 2\nfile a/\n", "line 2: the path has an empty part, '.' or '..' in it" },
		{ "tree 2\nfile a\n", "line 2: 'mode=' is missing" },
		{ "tree 2\nfile a mode=9\n", "line 2: a number is missing" },
		{ "tree 2\nfile a mode=10000\n", "line 2: a number is too large" },
		{ "tree 2\nfile a mode=0 uid=4294967296\n", "line 2: a number is too large" },
		{ "tree 2\nfile a" ATTRS " size=18446744073709551616\n",
		  "line 2: a number is too large" },
		{ "tree 2\nfile a" ATTRS " size=1\n", "line 2: hash= is missing" },
		{ "tree 2\nfile a" ATTRS " size=1 hash=12\n",
		  "line 2: hash= is not 32 hex digits" },
		{ "tree 2\nfile a" ATTRS " size=1" ZERO_HASH " data=\"ab\"\n",
		  "line 2: data= is not as long as size= says" },
		{ "tree 2\nfile a" ATTRS " size=2" ZERO_HASH " data=\"a\n",
		  "line 2: data= is not properly quoted" },
		{ "tree 2\nfile a" ATTRS " size=1" ZERO_HASH " data=\"a\"\n",
		  "line 2: data= does not have the hash that hash= says" },
		{ "tree 2\nfile a" ATTRS " size=999999999999" ZERO_HASH
		  " data=999999999999*\"a\"\n",
		  "line 2: there is more content than a tree can keep" },
		{ "tree 2\nfile a" ATTRS " size=0 more\n",
		  "line 2: has something at its end that does not belong there" },
		{ "tree 2\nsymlink a" ATTRS " size=0\n",
		  "line 2: target= is missing or not properly quoted" },
		{ "tree 2\nunknown a\n", "line 2: unknown and error=stat go together" },
		{ "tree 2\nfile a error=nap:EIO\n", "line 2: error= does not name a known step" },
		{ "tree 2\nfile a error=read:0\n", "line 2: error= names errno 0" },
		{ "tree 2\n xattr a \"\"\n",
		  "line 2: an attribute, but of no entry that can have one" },
		{ "tree 2\ndir . mode=0 uid=0 gid=0\n xattr b \"\"\n xattr a \"\"\n",
		  "attributes before line 4 are not in order of name" },
		{ "tree 2\ndir . mode=0 uid=0 gid=0\n xattr b 70000*\"x\"\n",
		  "line 3: the attribute's value is not properly quoted" },
		{ "tree 2 times\ndir . mode=0 uid=0 gid=0 atime=1.5 mtime=1.5\n",
		  "line 2: a time is not seconds, a dot, and nine digits" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuses(cases[i].text, strlen(cases[i].text), cases[i].message);
	refuses("tree 2\nfile a\0b\n", 16, "line 2: the path is missing or not properly quoted");
}

/* A thousand random pairs of trees: equal iff no difference is found, and text keeps them. */
static void test_random(void)
{
	struct rng rng;
	int equal = 0, wrong = 0;

	rng_init(&rng, 42);
	for (int round = 0; round < 1000; round++) {
		struct tree t[2] = { 0 };
		auto_tree_diff diff = { 0 };

		for (int k = 0; k < 2; k++) {
			for (uint64_t n = rng_below(&rng, 4); n; n--) {
				struct tree_entry e = file_entry();
				char path[] = { (char)('a' + rng_below(&rng, 3)), '\0' };

				e.path = path;
				e.inode = rng_below(&rng, 3);
				e.size = rng_below(&rng, 2);
				e.doubled = rng_below(&rng, 8) == 0;
				tree_add(&t[k], &e, &plain);
			}
			tree_finish(&t[k]);
		}
		tree_diff(&t[0], &t[1], &all, &diff);
		equal += !diff.list.n;
		wrong += tree_equal(&t[0], &t[1], &all) != !diff.list.n;
		tree_release(&t[1]);
		tree_release(&t[0]);
	}
	is_i(wrong, 0, "equal iff no difference");
	ok(equal > 10 && equal < 990, "both happened (%d equal)", equal);
}

int main(void)
{
	umask(022);
	if (!mkdtemp(home))
		return 2;
	test_types();
	test_links();
	test_xattrs();
	test_content();
	test_odd_names();
	test_depth();
	test_denied();
	test_damage();
	test_mount();
	test_atime();
	test_faults();
	test_file_fields();
	test_other_fields();
	test_link_diff();
	test_diff_order();
	test_finish();
	test_print();
	test_bad_text();
	test_random();
	empty_home();
	if (chdir("/") < 0 || rmdir(home) < 0)
		printf("# %s is left behind\n", home);
	return done_testing();
}
