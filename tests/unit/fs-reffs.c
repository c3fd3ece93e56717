/* SPDX-License-Identifier: MIT */
/*
 * fs-reffs.c - the reference file system does what the kernel's ext4 does, keeps what was saved,
 * and its hash says what the tree says.
 *
 * The differential test performs random workloads on a real ext4 and on reffs side by side: every
 * result and every resulting tree must be the same. The ext4 lives in a memory file behind a loop
 * device that goes with its last user, mounted in a mount namespace of our own: nothing is left
 * behind, however this program ends. A workload that shows a difference is shrunk and printed.
 *
 *	FS_REFFS_SECONDS=300 FS_REFFS_SEED=7 build/tests/unit/fs-reffs		runs longer
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"
#include "base/rng.h"
#include "fs/map.h"
#include "fs/vfs.h"
#include "tap.h"
#include "workload/exec.h"

enum { WORKLOADS = 4000, DISK_SIZE = 192 << 20, SECONDS_MAX = 8, ENOUGH = 100 };

static const struct tree_opts opts = { .dir_nlink = true };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- random workloads ---- */

/* What the operations of a workload are drawn from. */
struct pool {
	bool small; /* few names and operations, so that states come up again */
};

#define PICK(rng, array) ((array)[rng_below((rng), ARRAY_SIZE(array))])

static bool one_in(struct rng *g, uint64_t n)
{
	return rng_below(g, n) == 0;
}

static void add_name(struct rng *g, const struct pool *pool, struct strbuf *out)
{
	static const char *const names[] = {
		"a",   "a",	"b",	 "b",	  "c",	   "d", "d", "d/a", "d/b",
		"d/e", "d/e/a", "d/e/b", "d/e/f", "l",	   "l", "m", "d/l", "l/a",
		"m/b", "m/e",	"d/l/a", "l/e/a", "d/e/l", "e", "s", "e/a", "d/e/f/a",
	};
	static const char *const few[] = { "a", "b", "d", "d/a", "e", "e/a", "d/e" };

	if (pool->small) {
		strbuf_adds(out, PICK(g, few));
		return;
	}
	if (one_in(g, 60)) { /* names as long as they can be, and one byte more */
		strbuf_adds(out, one_in(g, 2) ? "d/" : "");
		for (size_t i = 0, n = 255 + rng_below(g, 2); i < n; i++)
			strbuf_addch(out, 'n');
		return;
	}
	strbuf_adds(out, one_in(g, 40) ? "." : PICK(g, names));
}

static void add_target(struct rng *g, struct strbuf *out)
{
	static const char *const targets[] = {
		"a",	  "b",	  "d",	  "d/e",     "d/a",  "l",      "m",    "d/l", "..",  "../a",
		"../d/e", ".",	  "d/",	  "a/",	     "e/.",  "d/../a", "e/..", "/a",  "no",  "d/no",
		"no/no",  "../l", "../m", "../../b", "e/..", "d//e",   "l/a",  "./b", "a/.", "no/",
	};

	if (one_in(g, 60)) {
		for (size_t i = 0, n = 4094 + rng_below(g, 3); i < n; i++)
			strbuf_addch(out, i % 200 == 199 ? '/' : 't');
		return;
	}
	strbuf_adds(out, one_in(g, 60) ? "\"\"" : PICK(g, targets));
}

static void add_text(struct rng *g, struct strbuf *out)
{
	static const char *const values[] = { "\"\"", "x", "value", "long-value-of-an-attribute",
					      "another" };

	strbuf_adds(out, PICK(g, values));
}

static void add_xattr(struct rng *g, struct strbuf *out)
{
	static const char *const names[] = { "user.a",
					     "user.a",
					     "user.b",
					     "user.c",
					     "trusted.t",
					     "security.s",
					     "security.capability",
					     "system.posix_acl_access",
					     "system.posix_acl_default",
					     "system.other",
					     "no.space",
					     "user.",
					     "trusted." };

	if (!one_in(g, 40)) {
		strbuf_adds(out, PICK(g, names));
		return;
	}
	strbuf_adds(out, "user.");
	for (int i = 0; i < 250; i++)
		strbuf_addch(out, 'x');
}

static void add_words(struct rng *g, const struct arg_def *arg, struct strbuf *out)
{
	size_t n = 0, first = 0;

	while (arg->words[n].name)
		n++;
	strbuf_adds(out, arg->words[rng_below(g, n)].name);
	if (arg->kind == ARG_CHOICE)
		return;
	for (first = 0; one_in(g, 3) && first < 3; first++)
		strbuf_addf(out, ",%s", arg->words[rng_below(g, n)].name);
	if (arg->words == op_falloc_words && one_in(g, 2))
		strbuf_adds(out, ",keep"); /* which a hole needs */
}

/* Flags of open; `direct` only for the handle of that name (see add_file). */
static void add_open_flags(struct rng *g, const struct arg_def *arg, bool direct,
			   struct strbuf *out)
{
	static const char *const how[] = { "rdonly", "wronly", "rdwr", "rdwr", "rdwr" };

	strbuf_adds(out, PICK(g, how));
	if (one_in(g, 2))
		strbuf_adds(out, ",creat");
	if (direct)
		strbuf_adds(out, ",direct");
	for (const struct word *w = arg->words; w->name; w++)
		if (!streq(w->name, "direct") && one_in(g, 14))
			strbuf_addf(out, ",%s", w->name);
}

static uint64_t some_offset(struct rng *g, bool aligned)
{
	static const uint64_t offsets[] = { 0,	  0,	 0,	1,     100,   511,
					    512,  4000,	 4095,	4096,  4097,  5000,
					    8192, 12288, 16384, 20000, 65536, 1 << 20 };
	static const uint64_t huge[] = {
		1ULL << 31,
		1ULL << 40,
		(1ULL << 44) - 4096,
		(1ULL << 44) - 4097,
		(1ULL << 44) - 8192,
		1ULL << 44,
		(1ULL << 44) - 4096 * 2,
		1ULL << 62,
		1ULL << 32,
		(1ULL << 44) - 5000,
	};
	uint64_t at = one_in(g, 25) ? PICK(g, huge) : PICK(g, offsets);

	return aligned ? at & ~(uint64_t)511 : at;
}

static uint64_t some_length(struct rng *g, bool aligned)
{
	static const uint64_t lengths[] = { 0,	  1,	2,    7,    8,	  100,	 511,  512,
					    4095, 4096, 4096, 4097, 8192, 12288, 20000 };
	uint64_t n = PICK(g, lengths);

	return aligned ? n & ~(uint64_t)511 : n;
}

static uint64_t some_number(struct rng *g, const char *what)
{
	static const uint64_t ids[] = { 0, 1, 2, 1000, UINT32_MAX };
	static const uint64_t devices[] = { 0, 259, 16773120, UINT32_MAX, 0x12345 };
	static const uint64_t times[] = { 0, 1, 1000000000, UINT32_MAX };

	if (streq(what, "DEVICE"))
		return PICK(g, devices);
	return streq(what, "UID") || streq(what, "GID") ? PICK(g, ids) : PICK(g, times);
}

static uint64_t some_mode(struct rng *g)
{
	static const unsigned modes[] = { 0644,	 0755,	0777,  0600,  0,     01777, 02755,
					  02770, 04755, 06777, 07777, 01775, 02644, 04644 };

	return PICK(g, modes);
}

/*
 * A file: a path or a handle. The handle `dio` is open with O_DIRECT: ext4 reads holes at any
 * alignment, writes the aligned part of a range before it complains about the rest, and gives up
 * copies half-way. So lengths are aligned there, reads as well, and it is never copied.
 */
static bool add_file(struct rng *g, const struct pool *pool, bool dio_ok, struct strbuf *out)
{
	static const char *const handles[] = { "f1", "f2", "f1", "f2", "dio" };

	if (!pool->small && one_in(g, 3)) {
		const char *name = PICK(g, handles);
		bool dio = streq(name, "dio");

		strbuf_adds(out, dio && !dio_ok ? "f1" : name);
		return dio && dio_ok;
	}
	add_name(g, pool, out);
	return false;
}

/* A line for a random operation. It may be wrong: handles that are not there, and so on. */
static void random_line(struct rng *g, const struct pool *pool, const struct op_def *def,
			struct strbuf *out)
{
	bool copies = streq(def->name, "copy_file_range") || streq(def->name, "reflink");
	bool reads = streq(def->name, "read"), dio = streq(def->name, "dwrite");
	bool makes_handle = def->flags & OP_MAKES_HANDLE;
	static const char *const handles[] = { "f1", "f2", "dio" };
	const char *handle = PICK(g, handles);

	strbuf_clear(out);
	if (makes_handle)
		strbuf_addf(out, "%s = ", handle);
	strbuf_adds(out, def->name);
	for (const struct arg_def *arg = def->args; arg->kind != ARG_END; arg++) {
		if (arg->optional && one_in(g, 2))
			return;
		strbuf_addch(out, ' ');
		if (arg->kind == ARG_PATH)
			add_name(g, pool, out);
		else if (arg->kind == ARG_FILE)
			dio |= add_file(g, pool, !copies, out);
		else if (arg->kind == ARG_HANDLE)
			strbuf_adds(out, handle);
		else if (arg->kind == ARG_TEXT && streq(arg->name, "TARGET"))
			add_target(g, out);
		else if (arg->kind == ARG_TEXT)
			add_text(g, out);
		else if (arg->kind == ARG_XATTR)
			add_xattr(g, out);
		else if (arg->kind == ARG_OFFSET || (arg->kind == ARG_SIZE && arg == def->args + 1))
			strbuf_addu(out, some_offset(g, (dio && reads) || one_in(g, 3)));
		else if (arg->kind == ARG_LENGTH || arg->kind == ARG_SIZE)
			strbuf_addu(out, some_length(g, dio || one_in(g, 3)));
		else if (arg->kind == ARG_MODE)
			strbuf_addf(out, "%#o", (unsigned)some_mode(g));
		else if (arg->kind == ARG_NUMBER)
			strbuf_addu(out, some_number(g, arg->name));
		else if (makes_handle)
			add_open_flags(g, arg, streq(handle, "dio"), out);
		else
			add_words(g, arg, out);
	}
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (streq(name, list[i]))
			return true;
	return false;
}

/* One of all, but what takes long less often, and what has most cases more often. */
static const struct op_def *random_op(struct rng *g, const struct pool *pool)
{
	static const char *const slow[] = { "remount", "sync",	    "syncfs",
					    "fsync",   "fdatasync", "drop_caches" };
	static const char *const rich[] = { "rename", "falloc", "copy_file_range", "open", "link" };
	static const char *const few[] = { "creat",  "mkdir", "rename", "rename",
					   "unlink", "rmdir", "link",	"link" };
	const char *name = pool->small ? PICK(g, few) : one_in(g, 5) ? PICK(g, rich) : NULL;
	size_t n = 0;

	if (name)
		return op_find(name, strlen(name));
	while (op_table[n].name)
		n++;
	for (;;) {
		const struct op_def *def = &op_table[rng_below(g, n)];

		if (!is_one_of(def->name, slow, ARRAY_SIZE(slow)) || one_in(g, 12))
			return def;
	}
}

static bool old_kernel;

/* Kernels before 6.12 answer these in another way, and make a file of creat with directory. */
static bool changed_meaning(const struct op *op)
{
	uint64_t flags = op->args[1].num, mode = flags & ~(uint64_t)FALLOC_FL_KEEP_SIZE;

	if (op->def->flags & OP_MAKES_HANDLE)
		return (flags & O_CREAT) && (flags & O_DIRECTORY);
	if (op->def->args[1].words != op_falloc_words)
		return false;
	return (mode & (mode - 1)) || (mode != flags && mode != FALLOC_FL_PUNCH_HOLE && mode);
}

static void note_kernel(void)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	if (!uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2)
		old_kernel = major < 6 || (major == 6 && minor < 12);
	if (old_kernel)
		printf("# this kernel is old: some flags are not tried\n");
}

static void add_line(struct workload *w, const char *line)
{
	struct err err = ERR_INIT;

	/* It may be wrong: a handle that is not there, a range that ends too far. */
	if (workload_add_line(w, line, &err))
		return;
	if (old_kernel && changed_meaning(&vec_last(&w->ops)))
		w->ops.n--;
}

/* Something to act on; without it, nearly every operation would find nothing. */
static void random_setup(struct rng *g, struct workload *w)
{
	static const char *const lines[] = {
		"mkdir d",
		"mkdir d/e",
		"mkdir e",
		"write a 0 20000",
		"write b 0 4096",
		"write d/a 4000 5000",
		"creat d/e/a 04755",
		"chmod d 02777",
		"chown d 5 6",
		"chmod e 01777",
		"symlink no/ s",
		"link a d/b",
		"symlink d l",
		"symlink d/e m",
		"symlink ../a d/l",
		"write d/e/b 8192 100",
		"mkfifo c",
		"setxattr a user.a old",
		"mkdir d/e/f 02777",
		"f1 = open a rdwr",
		"f2 = open d/a rdwr,append",
		"dio = open b rdwr,direct",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!one_in(g, 4))
			add_line(w, lines[i]);
}

static void random_workload(struct rng *g, const struct pool *pool, size_t n, struct workload *w)
{
	auto_strbuf line = STRBUF_INIT;

	workload_clear(w);
	if (!pool->small && !one_in(g, 8))
		random_setup(g, w);
	n += w->ops.n;
	while (w->ops.n < n) {
		random_line(g, pool, random_op(g, pool), &line);
		add_line(w, strbuf_str(&line));
	}
}

/* ---- a real ext4 ---- */

static struct real {
	char top[32]; /* a temporary directory; the file system is mounted there */
	char loop[32];
	int loop_fd;
	bool mounted;
	int root; /* where workloads are performed, made anew for each */
} real = { .top = "/tmp/fs-reffs-XXXXXX", .loop_fd = -1, .root = -1 };

static bool make_ext4(int fd)
{
	auto_free char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
	const char *const argv[] = { "mkfs.ext4",
				     "-q",
				     "-F",
				     "-b",
				     "4096",
				     "-E",
				     "lazy_itable_init=0,lazy_journal_init=0",
				     path,
				     NULL };
	struct proc_opts run = { .argv = argv, .timeout_ms = 300000, .merge_stderr = true };
	struct proc_result res = { 0 };
	struct err err = ERR_INIT;
	bool made = !proc_run(&run, &res, &err) && res.exit_code == 0;

	if (!made)
		printf("# mkfs.ext4: %s%s\n", err.msg, strbuf_str(&res.out));
	proc_result_release(&res);
	return made;
}

/* A loop device that the kernel takes away with its last user. */
static bool make_loop(int fd)
{
	auto_fd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = { .fd = (uint32_t)fd, .info.lo_flags = LO_FLAGS_AUTOCLEAR };

	for (int tries = 0; control >= 0 && tries < 20; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			return false;
		snprintf(real.loop, sizeof(real.loop), "/dev/loop%d", n);
		real.loop_fd = open(real.loop, O_RDWR | O_CLOEXEC);
		if (real.loop_fd >= 0 && !ioctl(real.loop_fd, LOOP_CONFIGURE, &config))
			return true;
		util_close(steal_fd(&real.loop_fd)); /* somebody was faster */
	}
	return false;
}

static bool mount_ext4(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	auto_fd disk = memfd_create("fs-reffs", MFD_CLOEXEC);
	if (disk < 0 || ftruncate(disk, DISK_SIZE) || !make_ext4(disk) || !make_loop(disk))
		return false;
	return mount(real.loop, real.top, "ext4", 0, NULL) == 0;
}

/* However the program ends, the temporary directory goes; the rest goes with the process. */
static void clean_up(int sig)
{
	umount2(real.top, MNT_DETACH);
	rmdir(real.top);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_signals(void)
{
	static const int deadly[] = { SIGALRM, SIGINT,	SIGTERM, SIGHUP,
				      SIGABRT, SIGSEGV, SIGBUS,	 SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		signal(deadly[i], clean_up);
}

/* The next best: /tmp, if it is the same file system and we are a root that may do it all. */
static bool tmp_will_do(void)
{
	auto_free char *node = xasprintf("%s/node", real.top);
	struct statfs fs;

	if (statfs(real.top, &fs) || fs.f_type != EXT4_SUPER_MAGIC || fs.f_bsize != REFFS_PAGE)
		return false;
	if (mknod(node, S_IFCHR | 0600, 0))
		return false;
	bool can = !lsetxattr(node, "trusted.x", "", 0, 0) && !lchown(node, 1, 1);
	unlink(node);
	return can;
}

static bool real_begin(void)
{
	if (!mkdtemp(real.top))
		abort();
	catch_signals();
	real.mounted = mount_ext4();
	if (real.mounted)
		return true;
	if (tmp_will_do()) {
		skip("no ext4 can be mounted here: /tmp has to do");
		return true;
	}
	skip("no ext4 can be mounted here, and /tmp is none that would do");
	return false;
}

static void empty_dir(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, ".."))
			continue;
		if (!unlinkat(dir, e->d_name, 0))
			continue;
		auto_fd sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0)
			empty_dir(sub);
		unlinkat(dir, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

static void real_end(void)
{
	if (real.root >= 0)
		empty_dir(real.root);
	util_close(steal_fd(&real.root));
	if (real.mounted && umount2(real.top, 0))
		umount2(real.top, MNT_DETACH);
	util_close(real.loop_fd);
	auto_free char *root = xasprintf("%s/root", real.top);
	rmdir(root);
	rmdir(real.top);
}

static int open_root(void)
{
	auto_free char *path = xasprintf("%s/root", real.top);

	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* An empty root directory. */
static void real_clear(void)
{
	auto_free char *path = xasprintf("%s/root", real.top);

	if (real.root >= 0)
		empty_dir(real.root);
	util_close(steal_fd(&real.root));
	rmdir(path);
	if (mkdir(path, 0755) || (real.root = open_root()) < 0) {
		printf("Bail out! no directory %s: %m\n", path);
		exit(1);
	}
}

/* Whether several users perform the operations of a workload; else root does them all. */
static bool by_users;

static int real_remount(void *ctx, int *root)
{
	(void)ctx;
	if (!real.mounted || by_users)
		return 0;
	util_close(steal_fd(&real.root));
	if (umount2(real.top, 0) || mount(real.loop, real.top, "ext4", 0, NULL))
		return -errno;
	real.root = *root = open_root();
	return *root < 0 ? -errno : 0;
}

static int real_drop(void *ctx)
{
	(void)ctx;
	return 0; /* those of the whole machine: not for a test */
}

/* ---- users ---- */

static const uint32_t more_groups[] = { 6, 1000 };
static const struct reffs_cred users[] = {
	{ .caps = REFFS_CAPS_ALL },
	{ .uid = 5, .gid = 6 },
	{ .uid = 1000, .gid = 1000, .groups = more_groups, .n_groups = 2 },
	{ .uid = 1, .gid = 2, .groups = more_groups, .n_groups = 1 },
	{ .caps = REFFS_CAPS_ALL },
};

static void set_effective(bool all)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	syscall(SYS_capget, &head, caps);
	for (int i = 0; i < 2; i++)
		caps[i].effective = all ? caps[i].permitted : 0;
	if (syscall(SYS_capset, &head, caps))
		abort();
}

static void become(const struct reffs_cred *c)
{
	gid_t groups[2] = { 0 };

	set_effective(true);
	for (size_t i = 0; i < c->n_groups; i++)
		groups[i] = c->groups[i];
	if (setgroups(c->n_groups, groups))
		abort();
	setfsgid(c->gid);
	setfsuid(c->uid);
	set_effective(c->caps);
}

/* From what the operation says, so that it stays the same when others are left out. */
static const struct reffs_cred *who_does(const struct op *op)
{
	auto_strbuf text = STRBUF_INIT;

	op_print(op, &text);
	return &users[by_users ? hash64(text.buf, text.len) % ARRAY_SIZE(users) : 0];
}

/* ---- side by side ---- */

static int read_sysctl(const char *path)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	return io_slurp(path, 64, &text, &err) ? 0 : atoi(strbuf_str(&text));
}

static struct reffs_opts ref_opts;

/*
 * Going up with ".." fails with -EAGAIN if anything in the system was renamed meanwhile; nothing
 * was done then.
 */
static int64_t perform(struct exec *x, size_t i, const struct reffs_cred *who)
{
	bool root = who->caps;

	if (!root)
		become(who);
	int64_t rc = exec_op(x, i);
	for (int tries = 0; rc == -EAGAIN && tries < 1000; tries++)
		rc = exec_op(x, i);
	if (!root)
		become(&users[0]);
	return rc;
}

/* ext4 takes set-id bits away before it sees that it cannot write or allocate there. */
static bool spoils(const struct op *op, const struct reffs_cred *who, int64_t result)
{
	return !who->caps && result == -EINVAL && (op->def->flags & OP_DATA);
}

/* How a workload differs, in words; nothing if it does not. */
static void compare(const struct workload *w, struct strbuf *words)
{
	struct exec_env env = { .remount = real_remount, .drop_caches = real_drop };
	struct reffs *r = reffs_new(&ref_opts);
	bool early = false;
	struct exec x;

	real_clear();
	fchmod(real.root, ref_opts.root_mode);
	exec_init(&x, real.root, w, &env);
	for (size_t i = 0; i < w->ops.n && !words->len && !early; i++) {
		const struct reffs_cred *who = who_does(&w->ops.v[i]);

		reffs_become(r, who);
		int64_t want = perform(&x, i, who), got = reffs_op(r, w, i);

		if (got == want) {
			early |= spoils(&w->ops.v[i], who, want);
			continue;
		}
		strbuf_addf(words, "operation %zu, ", i + 1);
		op_print(&w->ops.v[i], words);
		strbuf_addf(words, " by user %u", who->uid);
		strbuf_addf(words, ": the kernel gives %lld (%s), reffs %lld (%s)\n",
			    (long long)want, want < 0 ? strerrorname_np((int)-want) : "ok",
			    (long long)got, got < 0 ? strerrorname_np((int)-got) : "ok");
	}
	auto_tree seen = TREE_INIT, expected = TREE_INIT;
	auto_tree_diff diff = { 0 };
	auto_strbuf text = STRBUF_INIT;
	struct reffs_state *s = reffs_save(r);
	struct err err = ERR_INIT;
	if (tree_walk(real.root, &opts, &expected, &err))
		strbuf_addf(words, "cannot walk: %s\n", err.msg);
	reffs_tree(s, &opts, &seen);
	tree_diff(&expected, &seen, &opts, &diff);
	/* Empty capabilities can be set, and not be read. */
	workload_print(w, &text);
	if (!words->len && !early && !strstr(strbuf_str(&text), "security.capability \"\""))
		for (size_t i = 0; i < diff.list.n; i++)
			strbuf_addf(words, "reffs: %s\n", diff.list.v[i].words);
	reffs_state_unref(s);
	exec_release(&x);
	reffs_free(r);
}

static bool differs(const struct workload *w)
{
	auto_strbuf words = STRBUF_INIT;

	compare(w, &words);
	return words.len;
}

/* `w` without operation `skip`. False if what is left cannot be written as a workload. */
static bool without(const struct workload *w, size_t skip_op, struct workload *out)
{
	workload_clear(out);
	for (size_t i = 0; i < w->ops.n; i++) {
		auto_strbuf line = STRBUF_INIT;
		struct err err = ERR_INIT;

		if (i == skip_op)
			continue;
		op_print(&w->ops.v[i], &line);
		if (workload_add_line(out, strbuf_str(&line), &err))
			return false;
	}
	return true;
}

static void shrink(struct workload *w)
{
	auto_workload less;

	workload_init(&less);
	for (bool again = true; again;) {
		again = false;
		for (size_t i = w->ops.n; i-- > 0;) {
			if (!without(w, i, &less) || !differs(&less))
				continue;
			if (!without(&less, SIZE_MAX, w))
				break;
			again = true;
		}
	}
}

static void show(struct workload *w, uint64_t seed, uint64_t n)
{
	auto_strbuf text = STRBUF_INIT, words = STRBUF_INIT;

	shrink(w);
	compare(w, &words);
	workload_print(w, &text);
	strbuf_adds(&text, strbuf_str(&words));
	printf("# seed %llu, workload %llu:\n", (unsigned long long)seed, (unsigned long long)n);
	for (char *line = text.buf, *end; line && *line; line = end) {
		end = strchrnul(line, '\n');
		end += *end == '\n';
		printf("#   %.*s\n", (int)strcspn(line, "\n"), line);
	}
}

/* Cases that chance finds too seldom. Results are not said here: the kernel says them. */
static const char *const scripts[] = {
	/* a directory that passes its group on */
	"mkdir d\nchown d 5 6\nchmod d 02755\nmkdir d/e 0700\ncreat d/f 02755\nmknod d/n fifo\n"
	"symlink x d/l\nf1 = open d rdwr,tmpfile 02777\nchown f1 1 1\nrename d/f d/g whiteout",
	/* what others own in sticky directories */
	"mkdir d\nchmod d 01777\nchown d 5 5\ncreat d/f\nchown d/f 7 7\ncreat d/f\nwrite d/f 0 1\n"
	"mkfifo d/p\nchown d/p 7 7\nf1 = open d/p rdwr,creat\nmknod d/s socket\nchown d/s 7 7\n"
	"creat d/s\nread d/s 0 1\nf2 = open d/f rdwr,creat,excl\nchmod d 01775\ncreat d/f\n"
	"f1 = open d/p rdwr,creat\nchown d/f 5 5\ncreat d/f",
	/* set-id bits: writing and truncating keep them, a new owner does not */
	"creat f 06755\nwrite f 0 10\ntruncate f 5\nfalloc f keep 0 4096\nmmapwrite f 0 10\n"
	"creat f\nchown f 4294967295 4294967295\ncreat g 06644\nchown g 0 0\nmkdir d\n"
	"chmod d 06755\nchown d 1 1\nmkfifo p 06755\nchown p 1 1\nchmod g 07777\nchown g 3 3",
	/* capabilities go with a write */
	"creat f\nsetxattr f security.capability \"\"\nsetxattr f security.capability \"\" "
	"replace\n"
	"write f 0 1\nsetxattr f security.capability \"\" replace\n"
	"setxattr f security.capability \"\"\nwrite f 0 0\nfalloc f collapse 1 1\n"
	"setxattr f security.capability \"\" replace\nsetxattr f security.capability \"\"\n"
	"truncate f 0\nremovexattr f security.capability\nsetxattr f security.capability \"\"\n"
	"creat f\nremovexattr f security.capability\nsetxattr f security.capability \"\"\n"
	"chown f 0 0\nremovexattr f security.capability\nsetxattr f security.capability \"\"\n"
	"chmod f 0777\nmmapwrite f 0 1\nremovexattr f security.capability\n"
	"setxattr f security.capability x",
	/* links with slashes behind them */
	"symlink no/ s\ncreat s\nf1 = open s rdonly\nmkdir s\nwrite s 0 1\nsymlink d/ t\nmkdir d\n"
	"creat t\nf1 = open t rdonly\nf1 = open t rdonly,nofollow\ncreat t/x\nsymlink f/ u\n"
	"creat f\nf1 = open u rdonly\ncreat u\nrmdir t\nunlink t\nsymlink f/. v\nread v 0 1\n"
	"symlink d/. v2\nf1 = open v2 rdonly,creat\nf1 = open v2 rdonly,creat,excl\n"
	"symlink d/.. v3\nfsync v3\ncreat v3/g\nchmod v3 0700\nf2 = open v3 wronly,tmpfile\n"
	"write f2 0 10\nf2 = open u wronly,tmpfile\nf2 = open t wronly,tmpfile,nofollow",
	/* copies within one file */
	"write f 0 10000\ncopy_file_range f 0 f 100 100\ncopy_file_range f 0 f 99 100\n"
	"copy_file_range f 100 f 0 100\ncopy_file_range f 100 f 1 100\n"
	"copy_file_range f 4096 f 4096 0\ncopy_file_range f 0 f 4096 4096\n"
	"copy_file_range f 4096 f 16384 4096\ncopy_file_range f 9000 f 9500 5000\n"
	"copy_file_range f 8192 f 30000 5000\nlink f g\ncopy_file_range g 0 f 1 100\n"
	"copy_file_range f 20000 f 20000 1\ncopy_file_range f 0 f 12000 8192\nreflink f g",
	/* files as long as they can be */
	"truncate f 1\nwrite f 17592186040319 10\npwrite f 17592186040320 1\n"
	"write f 17592186040320 1\nwrite f 17592186040321 1\nread f 17592186040310 100\n"
	"append f 1\nfalloc f insert 0 4096\nfalloc f insert 4096 4096\n"
	"falloc f collapse 0 4096\nfalloc f insert 0 4096\nfalloc f insert 0 4096\n"
	"falloc f punch,keep 4096 17592186036224\nfalloc f punch,keep 4096 17592186036225\n"
	"truncate f 17592186040320\ntruncate f 17592186040321\ntruncate f 5\n"
	"copy_file_range f 0 f 17592186040318 5\ncopy_file_range f 0 f 17592186040320 5\n"
	"mmapwrite f 17592186040310 10\nmmapwrite f 17592186040311 10",
	/* a directory into itself, over others, over itself */
	"mkdir a\nmkdir a/b\nmkdir a/b/c\nrename a a/x\nrename a a/b/c\nrename a/b/c a\n"
	"rename a/b/c a exchange\nrename a a/b exchange\nrename a/b/c a/b\nrename a a\n"
	"rename a/b a/b exchange\nrename a a noreplace\nmkdir e\nrename a e\nrename e/b/c a\n"
	"creat f\nrename f a\nrename a f\nrename a f exchange\nlink a g\nrename a g\n"
	"rename a g whiteout\nrename a g exchange\nrename a g noreplace\nrename . x\nrename x .\n"
	"rename f . noreplace\nrename a . exchange\nrename nothing .\nrename e h whiteout\n"
	"rename h/b e noreplace\nrename h/b i whiteout,noreplace",
	/* handles of what is gone */
	"f1 = open f rdwr,creat\nwrite f1 0 100\nunlink f\nappend f1 50\nread f1 0 1000\n"
	"chmod f1 0600\nchown f1 1 1\nsetxattr f1 user.a x\nremovexattr f1 user.a\nfsync f1\n"
	"copy_file_range f1 10 f 0 100\nf2 = open f rdwr\nrename f g\nwrite f2 0 200\n"
	"creat h\nrename h g\nread f2 0 1000\nread g 0 1000\nmkdir d\nf1 = open d rdonly\n"
	"rmdir d\nfsync f1\nchmod f1 0700\nread f1 0 1\nsetxattr f1 user.a x\nclose f1\nclose f1\n"
	"remount\nread f2 0 1",
	/* fifos with and without a reader */
	"mkfifo p\nf1 = open p wronly\nf2 = open p rdonly\nf1 = open p wronly\ncreat p\n"
	"truncate p 1\ntruncate f1 1\nfalloc f1 plain 0 1\nfalloc f2 plain 0 1\nread f2 0 1\n"
	"mmapwrite f1 0 1\nmmapwrite f2 0 1\nmsync p 0 1\nmsync f2 0 1\nclose f2\nappend p 1\n"
	"append f1 1\n"
	"f2 = open p rdwr,wronly\nf2 = open p rdonly,direct\nf2 = open p rdwr,trunc,append\n"
	"setxattr p user.a x\nsetxattr p trusted.a x\nremovexattr p user.a\nremovexattr p "
	"trusted.a\n"
	"copy_file_range p 0 f 0 1\ncopy_file_range f 0 p 0 1\nsync_file_range p 0 1\nunlink p\n"
	"write f2 0 1\nfdatasync f2",
	/* neither reading nor writing */
	"write f 0 100\nf1 = open f wronly,rdwr\nread f1 0 1\nwrite f1 0 1\nwrite f1 0 0\n"
	"truncate f1 0\nfalloc f1 plain 0 1\nmmapwrite f1 0 10\nmmapwrite f1 0 1000\nfsync f1\n"
	"msync f1 0 1\nmsync f 0 1\nmsync f 100000 1\n"
	"copy_file_range f1 0 g 0 1\nf1 = open f wronly,rdwr,trunc\nread f 0 1\n"
	"f1 = open . wronly,rdwr\nf2 = open f wronly\nmmapwrite f2 0 5000\nread f 0 9000",
};

/* Links that lead to links: the 40th is followed, the 41st is not. */
static void add_chains(struct workload *w)
{
	add_line(w, "mkdir d");
	add_line(w, "creat d/f");
	add_line(w, "symlink d/f l0");
	add_line(w, "symlink d k0");
	for (int i = 1; i < 45; i++) {
		auto_free char *file = xasprintf("symlink l%d l%d", i - 1, i);
		auto_free char *dir = xasprintf("symlink k%d k%d", i - 1, i);
		auto_free char *open_file = xasprintf("chmod l%d 06%02o", i, i);
		auto_free char *through = xasprintf("chown k%d/f %d 1", i, i);

		add_line(w, file);
		add_line(w, dir);
		add_line(w, open_file);
		add_line(w, through);
	}
	add_line(w, "symlink k20/f mixed");
	add_line(w, "symlink k38/f mixed38");
	add_line(w, "symlink k39/f mixed39");
	add_line(w, "creat mixed");
	add_line(w, "creat mixed38");
	add_line(w, "creat mixed39");
	add_line(w, "symlink self self");
	add_line(w, "creat self");
	add_line(w, "creat self/f");
	add_line(w, "unlink self");
}

static void test_scripts(void)
{
	size_t different = 0;
	auto_workload w;

	workload_init(&w);
	for (size_t i = 0; i <= ARRAY_SIZE(scripts); i++) {
		struct err err = ERR_INIT;

		workload_clear(&w);
		if (i == ARRAY_SIZE(scripts))
			add_chains(&w);
		else if (workload_parse(scripts[i], strlen(scripts[i]), "script", &w, &err))
			printf("# %s\n", err.msg);
		if (!w.ops.n || differs(&w)) {
			different++;
			show(&w, 0, i);
		}
	}
	is_u(different, 0, "%zu scripts: as the kernel does", ARRAY_SIZE(scripts) + 1);
}

static void test_against_kernel(bool with_users)
{
	const char *seconds = getenv("FS_REFFS_SECONDS"), *seed_text = getenv("FS_REFFS_SEED");
	double end = now_s() + (seconds ? atof(seconds) : SECONDS_MAX);
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 1;
	static const struct pool pool = { .small = false };
	uint64_t n = 0, operations = 0, different = 0;
	auto_workload w;

	by_users = with_users;
	workload_init(&w);
	alarm((seconds ? (unsigned)atoi(seconds) : 0) + 900); /* a hang ends the test */
	/* Some are tried, however long they take. */
	for (; different < 10 && (n <= ENOUGH || ((seconds || n < WORKLOADS) && now_s() < end));
	     n++) {
		struct rng top, g;

		rng_init(&top, seed);
		rng_split(&top, n, &g);
		random_workload(&g, &pool, 5 + rng_below(&g, 26), &w);
		operations += w.ops.n;
		if (!differs(&w))
			continue;
		different++;
		show(&w, seed, n);
	}
	is_u(different, 0, "%llu workloads, %llu operations%s: as on %s", (unsigned long long)n,
	     (unsigned long long)operations, with_users ? " by several users" : "",
	     real.mounted ? "a real ext4" : "the host's /tmp");
	ok(n > ENOUGH || different, "that is enough to say something");
}

/* ---- the map ---- */

struct leaf {
	struct map_node node;
	struct map_num key;
};

static struct map_node *leaf_new(struct map_num key);

static struct map_node *leaf_copy(const struct map_node *leaf)
{
	return leaf_new(container_of(leaf, struct leaf, node)->key);
}

static void leaf_free(struct map_node *leaf)
{
	map_node_free(leaf);
}

static const struct map_kind leaf_kind = { offsetof(struct leaf, key), leaf_copy, leaf_free };

static struct map_node *leaf_new(struct map_num key)
{
	struct leaf *l = map_node_alloc(sizeof(*l), &leaf_kind, sizeof(key));

	l->key = key;
	return &l->node;
}

/* The first number in a set of 256 that is not less, or 256. */
static uint64_t ceil_in(const bool set[256], uint64_t n)
{
	while (n < 256 && !set[n])
		n++;
	return n;
}

static bool map_is(const struct map_node *map, const bool set[256])
{
	for (uint64_t n = 0; n < 256; n++) {
		struct map_num key = map_num(n);
		const struct map_node *leaf = map_ceil(map, key.b, sizeof(key));
		uint64_t want = ceil_in(set, n);
		struct map_num want_key = map_num(want);

		if ((map_find(map, key.b, sizeof(key)) != NULL) != set[n])
			return false;
		if (leaf ? memcmp(container_of(leaf, struct leaf, node)->key.b, want_key.b, 8) != 0
			 : want < 256)
			return false;
	}
	return true;
}

static void note_leaf(void *ctx, const struct map_node *leaf)
{
	bool *set = ctx;

	set[container_of(leaf, struct leaf, node)->key.b[7]] = true;
}

/* How many leaves that differ are not told of, or those that are the same are. */
static void count_differences(const struct map_node *a, const struct map_node *b, size_t *missed,
			      size_t *spare)
{
	bool told[256] = { false };

	map_differ(a, b, note_leaf, told);
	for (uint64_t n = 0; n < 256; n++) {
		struct map_num key = map_num(n);
		bool differ = map_find(a, key.b, sizeof(key)) != map_find(b, key.b, sizeof(key));

		*missed += differ && !told[n];
		*spare += !differ && told[n];
	}
}

/* Against an array, with versions that must stay what they were. */
static void test_map(void)
{
	enum { ROUNDS = 3000, KEPT = 16 };
	struct map_node *map = NULL, *kept[KEPT] = { NULL };
	bool set[256] = { false }, kept_set[KEPT][256] = { { false } };
	uint64_t live = map_stats.made - map_stats.freed;
	size_t wrong = 0, missed = 0, spare = 0, compared = 0;
	struct rng g;

	rng_init(&g, 1);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t n = rng_below(&g, 256);
		struct map_num key = map_num(n);
		size_t k = rng_below(&g, KEPT);

		if (!set[n])
			map_insert(&map, leaf_new(key));
		else if (one_in(&g, 3))
			map_own(&map, key.b, sizeof(key));
		else
			map_remove(&map, key.b, sizeof(key)), set[n] = false;
		set[n] = map_find(map, key.b, sizeof(key)) != NULL;
		if (one_in(&g, 3))
			wrong += set[n] != (map_try_own(&map, key.b, sizeof(key)) != NULL);
		if (one_in(&g, 4)) {
			wrong += !map_is(kept[k], kept_set[k]);
			map_unref(kept[k]);
			kept[k] = map_ref(map);
			memcpy(kept_set[k], set, sizeof(set));
		}
		if (i % 16 == 0)
			wrong += !map_is(map, set);
		count_differences(map, kept[rng_below(&g, KEPT)], &missed, &spare);
		compared += 256;
	}
	for (size_t k = 0; k < KEPT; k++) {
		wrong += !map_is(kept[k], kept_set[k]);
		map_unref(kept[k]);
	}
	map_unref(map);
	is_u(wrong, 0, "every version of a map is what it was");
	is_u(missed, 0, "no difference between two versions is missed");
	ok(spare < compared / 50, "and little is told of besides: %zu of %zu", spare, compared);
	is_u(map_stats.made - map_stats.freed, live, "and no node is left");
}

/* ---- save and restore ---- */

static struct hash128 exact_hash(const struct reffs_state *s)
{
	auto_tree t = TREE_INIT;

	reffs_tree(s, &opts, &t);
	return tree_hash(&t, &opts);
}

struct saved {
	struct reffs_state *state;
	struct hash128 hash, tree;
};

static struct saved save(struct reffs *r)
{
	struct reffs_state *s = reffs_save(r);

	return (struct saved){ s, reffs_state_hash(s), exact_hash(s) };
}

static bool still(const struct saved *s)
{
	return hash_eq(s->hash, reffs_state_hash(s->state)) &&
	       hash_eq(s->tree, exact_hash(s->state));
}

static void test_save_restore(void)
{
	enum { KEPT = 12, ROUNDS = 400 };
	static const struct pool pool = { .small = false };
	uint64_t live = map_stats.made - map_stats.freed;
	size_t changed = 0, restored = 0, wrong = 0;
	struct saved kept[KEPT];
	auto_workload w;
	struct rng g;

	workload_init(&w);
	rng_init(&g, 2);
	struct reffs *r = reffs_new(NULL);
	for (size_t k = 0; k < KEPT; k++)
		kept[k] = save(r);
	for (int round = 0; round < ROUNDS; round++) {
		struct saved *s = &kept[rng_below(&g, KEPT)];

		random_workload(&g, &pool, 10, &w);
		for (size_t i = 0; i < w.ops.n; i++)
			reffs_op(r, &w, i);
		if (one_in(&g, 2)) {
			reffs_restore(r, s->state);
			struct saved now = save(r);
			wrong += !hash_eq(now.hash, s->hash) || !hash_eq(now.tree, s->tree);
			reffs_state_unref(now.state);
			restored++;
		} else {
			changed += !still(s);
			reffs_state_unref(s->state);
			*s = save(r);
		}
	}
	for (size_t k = 0; k < KEPT; k++) {
		changed += !still(&kept[k]);
		reffs_state_unref(kept[k].state);
	}
	reffs_free(r);
	ok(restored > ROUNDS / 3, "%zu states were restored", restored);
	is_u(wrong, 0, "each is what it was when it was saved");
	is_u(changed, 0, "a saved state does not change");
	is_u(map_stats.made - map_stats.freed, live, "no node is left");
}

static int64_t does(struct reffs *r, struct workload *w, const char *line)
{
	add_line(w, line);
	return reffs_op(r, w, w->ops.n - 1);
}

static uint64_t nodes_for(struct reffs *r, struct workload *w, const char *line)
{
	struct reffs_state *before = reffs_save(r);
	uint64_t made = map_stats.made;

	if (does(r, w, line) < 0)
		printf("# %s failed\n", line);
	made = map_stats.made - made;
	reffs_state_unref(before);
	return made;
}

static void test_sharing(void)
{
	struct reffs *r = reffs_new(NULL);
	auto_workload w;

	workload_init(&w);
	reffs_begin(r, &w);
	for (int d = 0; d < 10; d++) {
		auto_free char *dir = xasprintf("mkdir dir%d", d);

		does(r, &w, dir);
		for (int f = 0; f < 100; f++) {
			auto_free char *line = xasprintf("write dir%d/file%02d 0 4096", d, f);

			does(r, &w, line);
		}
	}
	static const struct {
		const char *line;
		uint64_t most;
	} costs[] = {
		{ "write dir3/file42 0 4096", 20 },
		{ "chmod dir3/file42 0600", 20 },
		{ "creat dir3/new", 50 },
		{ "unlink dir3/file17", 60 },
		{ "rename dir1/file01 dir2/moved", 80 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
		uint64_t made = nodes_for(r, &w, costs[i].line);

		ok(made > 0 && made <= costs[i].most, "%s: %llu new nodes in a tree of 1,000 files",
		   costs[i].line, (unsigned long long)made);
	}
	is_u(nodes_for(r, &w, "read dir3/file42 0 10"), 0, "reading makes none");
	reffs_free(r);
}

/* ---- the hash says what the tree says ---- */

struct both {
	struct hash128 hash, tree;
};

static int cmp_hash(struct hash128 a, struct hash128 b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	return a.lo < b.lo ? -1 : a.lo > b.lo;
}

static int cmp_by_hash(const void *a, const void *b)
{
	return cmp_hash(((const struct both *)a)->hash, ((const struct both *)b)->hash);
}

static int cmp_by_tree(const void *a, const void *b)
{
	return cmp_hash(((const struct both *)a)->tree, ((const struct both *)b)->tree);
}

static void check_hashes(struct both *v, size_t n, const char *what)
{
	size_t same = 0, wrong = 0;

	qsort(v, n, sizeof(*v), cmp_by_hash);
	for (size_t i = 1; i < n; i++)
		if (hash_eq(v[i].hash, v[i - 1].hash)) {
			same++;
			wrong += !hash_eq(v[i].tree, v[i - 1].tree);
		}
	is_u(wrong, 0, "%s: the same hash, the same tree (%zu of %zu states come up again)", what,
	     same, n);
	wrong = 0;
	qsort(v, n, sizeof(*v), cmp_by_tree);
	for (size_t i = 1; i < n; i++)
		if (hash_eq(v[i].tree, v[i - 1].tree))
			wrong += !hash_eq(v[i].hash, v[i - 1].hash);
	is_u(wrong, 0, "%s: the same tree, the same hash", what);
}

static void test_hash(bool small, size_t workloads, const char *what)
{
	struct pool pool = { .small = small };
	struct vec_of(struct both) all = { 0 };
	auto_workload w;
	struct rng g;

	workload_init(&w);
	rng_init(&g, 3);
	for (size_t n = 0; n < workloads; n++) {
		struct reffs *r = reffs_new(NULL);

		random_workload(&g, &pool, 20, &w);
		for (size_t i = 0; i < w.ops.n; i++) {
			reffs_op(r, &w, i);
			struct saved s = save(r);
			vec_push(&all, (struct both){ s.hash, s.tree });
			reffs_state_unref(s.state);
		}
		reffs_free(r);
	}
	check_hashes(all.v, all.n, what);
	vec_release(&all);
}

/* States that differ in nothing but which names are the same file; and ways to the same state. */
static void test_hash_links(void)
{
	static const char *const ways[][8] = {
		{ "creat a", "creat c", "link a b", "link c d" },
		{ "creat a", "creat b", "link a c", "link b d" },
		{ "creat x", "link x d", "link x c", "rename x y", "unlink y", "creat b",
		  "link b a" },
	};
	struct hash128 hash[ARRAY_SIZE(ways)];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct reffs *r = reffs_new(NULL);
		auto_workload w;

		workload_init(&w);
		for (size_t n = 0; n < 8 && ways[i][n]; n++)
			if (does(r, &w, ways[i][n]))
				printf("# %s failed\n", ways[i][n]);
		struct saved s = save(r);
		hash[i] = s.hash;
		reffs_state_unref(s.state);
		reffs_free(r);
	}
	ok(!hash_eq(hash[0], hash[1]), "which names are the same file counts");
	ok(hash_eq(hash[0], hash[2]), "the way to a state does not");
}

/* ---- what the kernel's ext4 cannot show ---- */

static void gives(struct reffs *r, struct workload *w, const char *line, int64_t want)
{
	is_i(does(r, w, line), want, "%s", line);
}

static void test_reflink(void)
{
	struct reffs *r = reffs_new(NULL);
	auto_workload w;
	struct reffs_attr attr;

	workload_init(&w);
	reffs_begin(r, &w);
	gives(r, &w, "write a 0 10000", 10000);
	gives(r, &w, "reflink a b", 0);
	gives(r, &w, "reflink a a", -EINVAL);
	gives(r, &w, "mkdir d", 0);
	gives(r, &w, "reflink a d", -EISDIR);
	gives(r, &w, "write big 0 20000", 20000);
	gives(r, &w, "reflink a big", -EINVAL); /* a tail would be left in the last block */
	gives(r, &w, "truncate a 8192", 0);
	gives(r, &w, "reflink a big", 0);
	struct reffs_state *s = reffs_save(r);
	const struct reffs_inode *root = reffs_inode(s, REFFS_ROOT_INO);
	const struct reffs_inode *a = reffs_inode(s, reffs_lookup(root, "a"));
	const struct reffs_inode *big = reffs_inode(s, reffs_lookup(root, "big"));
	ok(reffs_page(a, 1) == reffs_page(big, 1), "the page is shared");
	ok(reffs_page(big, 4) && !reffs_page(a, 2), "what was longer is left");
	reffs_attr(big, &attr);
	is_u(attr.size, 20000, "and so is the size");
	gives(r, &w, "write a 4096 10", 10);
	ok(reffs_page(a, 1) == reffs_page(big, 1), "a saved state sees nothing of a later write");
	reffs_state_unref(s);
	reffs_free(r);
}

static void test_limits(void)
{
	struct reffs_opts small = { .file_max = 8192, .link_max = 2, .dio_align = 4096 };
	struct reffs *r = reffs_new(&small);
	auto_workload w;

	workload_init(&w);
	reffs_begin(r, &w);
	gives(r, &w, "write a 8000 1000", 192);
	gives(r, &w, "pwrite a 8192 1", -EFBIG);
	gives(r, &w, "write a 8193 1", -EINVAL);
	gives(r, &w, "truncate a 8193", -EFBIG);
	gives(r, &w, "falloc a plain 8000 200", -EFBIG);
	gives(r, &w, "dwrite a 512 512", -EINVAL);
	gives(r, &w, "link a b", 0);
	gives(r, &w, "link a c", -EMLINK);
	reffs_free(r);
}

/* Numbers are never used twice, and an inode without a name is in no state. */
static void test_inodes(void)
{
	struct reffs *r = reffs_new(NULL);
	auto_workload w;

	workload_init(&w);
	reffs_begin(r, &w);
	struct reffs_state *empty = reffs_save(r);
	gives(r, &w, "h = open a rdwr,creat", 0);
	struct reffs_state *s = reffs_save(r);
	uint64_t first = reffs_lookup(reffs_inode(s, REFFS_ROOT_INO), "a");
	gives(r, &w, "unlink a", 0);
	gives(r, &w, "write h 0 100", 100);
	gives(r, &w, "read h 0 1000", 100);
	struct reffs_state *after = reffs_save(r);
	ok(reffs_inode(s, first) && !reffs_inode(after, first), "an open file without a name");
	ok(hash_eq(reffs_state_hash(after), reffs_state_hash(empty)), "cannot be seen");
	reffs_restore(r, empty);
	gives(r, &w, "read h 0 1", -EBADF);
	gives(r, &w, "creat a", 0);
	reffs_state_unref(after);
	after = reffs_save(r);
	ok(reffs_lookup(reffs_inode(after, REFFS_ROOT_INO), "a") > first,
	   "no inode number is used twice");
	reffs_state_unref(after);
	reffs_state_unref(s);
	reffs_state_unref(empty);
	reffs_free(r);
}

int main(void)
{
	ref_opts = (struct reffs_opts){
		.root_mode = 0777,
		.no_reflink = true,
		.protect_hardlinks = read_sysctl("/proc/sys/fs/protected_hardlinks"),
		.protect_symlinks = read_sysctl("/proc/sys/fs/protected_symlinks"),
		.protect_regular = read_sysctl("/proc/sys/fs/protected_regular"),
		.protect_fifos = read_sysctl("/proc/sys/fs/protected_fifos"),
	};
	test_map();
	test_save_restore();
	test_sharing();
	test_hash(false, 100, "all operations");
	test_hash(true, 400, "few names");
	test_hash_links();
	test_reflink();
	test_limits();
	test_inodes();
	note_kernel();
	if (real_begin()) {
		test_scripts();
		test_against_kernel(false);
		test_against_kernel(true);
	}
	real_end();
	return done_testing();
}
