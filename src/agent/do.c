/* SPDX-License-Identifier: MIT */
/* do.c - performs the commands of the host in the agent. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/random.h>
#include <mtd/ubi-user.h>
#include <outage/mark.h>

#include "agent/agent.h"
#include "base/io.h"
#include "base/proc.h"
#include "workload/user_command.h"

enum {
	IGNORE_MAX = 16,
	ARGS_MAX = 64,
	FILL_BLOCK = 64 << 10,
	BUSY_TRIES = 500,
	BUSY_NAP_MS = 2,
	FLASH_PAGE = 4096,
	MOUNTS_MAX = 64 << 10,
	SYMBOLS_MAX = 64 << 20
};

#define AGENT_IOC_SHUTDOWN _IOR('X', 125, uint32_t)

/* ---- mounting ---- */

/* Volumes of UBI, "ubi0_0", are there only while UBI is attached to the flash, mtd0. */
static bool is_ubi(const struct agent *a)
{
	return strncmp(a->source, "ubi", 3) == 0;
}

static int attach_ubi(void)
{
	struct ubi_attach_req req = { .ubi_num = 0, .mtd_num = 0 };
	auto_fd fd = open("/dev/ubi_ctrl", O_RDWR | O_CLOEXEC);

	return fd < 0 || ioctl(fd, UBI_IOCATT, &req) < 0 ? errno : 0;
}

static int detach_ubi(void)
{
	int32_t number = 0;
	auto_fd fd = open("/dev/ubi_ctrl", O_RDWR | O_CLOEXEC);

	return fd < 0 || ioctl(fd, UBI_IOCDET, &number) < 0 ? errno : 0;
}

/* True if a mount went on without DAX: some file systems that cannot use DAX only log that. */
static bool lost_dax(const struct agent *a)
{
	auto_strbuf mounts = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	if (!strstr(a->options, "dax") || strstr(a->options, "dax=") ||
	    io_slurp("/proc/self/mounts", MOUNTS_MAX, &mounts, &ignored))
		return false;
	const char *line = strstr(strbuf_str(&mounts), " " AGENT_MNT " ");
	auto_free char *own = xmemdupz(line ? line : "", line ? strcspn(line, "\n") : 0);
	return !strstr(own, "dax") || strstr(own, "dax=never");
}

/* Mounts. Returns 0 or an errno, and the step that failed. */
static int mount_source(struct agent *a, const char **step)
{
	const char *source = *a->source ? a->source : AGENT_DISK;

	*step = "mount";
	if (mount(source, AGENT_MNT, a->type, a->flags, a->options) < 0)
		return errno;
	*step = "the root cannot be opened";
	a->root = open(AGENT_MNT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->root >= 0 && !lost_dax(a))
		return 0;
	int error = a->root < 0 ? errno : EOPNOTSUPP;
	if (a->root >= 0)
		*step = "it mounts without DAX only";
	util_close(steal_fd(&a->root));
	umount2(AGENT_MNT, 0);
	return error;
}

static int mount_again(struct agent *a, const char **step)
{
	int error = is_ubi(a) ? attach_ubi() : 0;

	*step = "UBI cannot be attached";
	if (error)
		return error;
	error = mount_source(a, step);
	if (error && is_ubi(a))
		detach_ubi();
	return error;
}

static int do_mount(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	const char *step, *type = wire_text(in), *source = wire_text(in);
	uint32_t flags = wire_u32(in);
	const char *options = wire_text(in);

	if (in->bad)
		return -EINVAL;
	if (a->root >= 0)
		return -EBUSY;
	free(a->type);
	free(a->source);
	free(a->options);
	a->type = xstrdup(type);
	a->source = xstrdup(source);
	a->options = xstrdup(options);
	a->flags = flags;
	wire_put_u32(out, (uint32_t)mount_again(a, &step));
	wire_put_text(out, step);
	return 0;
}

/*
 * Remounts with the same options, as mount(2) requires: an option that is left out might be
 * dropped.
 */
static int do_remount(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	uint32_t flags = wire_u32(in);

	if (in->bad || a->root < 0 || (flags ^ a->flags) & ~(uint32_t)MS_RDONLY)
		return -EINVAL;
	int rc = mount(NULL, AGENT_MNT, NULL, MS_REMOUNT | flags, a->options);
	wire_put_u32(out, rc < 0 ? (uint32_t)errno : 0);
	if (!rc)
		a->flags = flags;
	return 0;
}

/*
 * Waits in a busy loop: if time is counted in instructions, the time of an idle processor almost
 * stands still, and a sleep of milliseconds would take seconds.
 */
static void nap(unsigned ms)
{
	uint64_t end = util_now_ns() + ms * 1000000ULL;

	do
		sched_yield();
	while (util_now_ns() < end);
}

/* Unmounts. Returns 0 or an errno. A file system may be busy with background work for a while. */
static int unmount(struct agent *a)
{
	util_close(steal_fd(&a->root));
	for (int tries = 0;; tries++) {
		if (umount2(AGENT_MNT, 0) == 0)
			return is_ubi(a) ? detach_ubi() : 0;
		if (errno != EBUSY || tries == BUSY_TRIES)
			return errno;
		nap(BUSY_NAP_MS);
	}
}

static int do_umount(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	uint32_t no_log_flush = 2, cut = wire_u32(in);

	if (in->bad)
		return -EINVAL;
	cut = cut && a->root >= 0 && ioctl(a->root, AGENT_IOC_SHUTDOWN, &no_log_flush) == 0;
	wire_put_u32(out, (uint32_t)unmount(a));
	wire_put_u32(out, cut);
	return 0;
}

/* ---- operations ---- */

static int remount(void *ctx, int *root)
{
	struct agent *a = ctx;
	const char *step;
	int error = unmount(a);

	if (!error)
		error = mount_again(a, &step);
	*root = a->root;
	return -error;
}

static int drop_caches(void *ctx)
{
	auto_fd fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	(void)ctx;
	return fd < 0 || write(fd, "3", 1) != 1 ? -errno : 0;
}

/* Marks for a tracer of persistent memory: see E5 in exec.h. */
static void begin_op(void *ctx, size_t op)
{
	(void)ctx;
	outage_mark_begin(op);
}

static void end_op(void *ctx, size_t op)
{
	(void)ctx;
	outage_mark_end(op);
}

static int do_end(struct agent *a)
{
	if (a->running)
		exec_release(&a->exec);
	a->running = false;
	return 0;
}

static int do_begin(struct agent *a, struct wire_in *in)
{
	struct exec_env env = { .ctx = a,
				.remount = remount,
				.drop_caches = drop_caches,
				.shell = true,
				.begin = begin_op,
				.end = end_op };
	struct err err = ERR_INIT;
	const char *text = wire_text(in);

	do_end(a);
	if (in->bad || a->root < 0)
		return -EINVAL;
	int rc = workload_parse(text, strlen(text), "host", &a->workload, &err);
	if (rc)
		return rc;
	exec_init(&a->exec, a->root, &a->workload, &env);
	a->running = true;
	return 0;
}

static int do_op(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	uint32_t i = wire_u32(in);

	if (in->bad || !a->running || i >= a->workload.ops.n)
		return -EINVAL;
	int64_t result = -EIO;
	if (a->root >= 0) {
		result = exec_op(&a->exec, i);
	} else {
		begin_op(a, i);
		end_op(a, i);
	}
	wire_put_u64(out, (uint64_t)result);
	wire_put_u32(out, a->root >= 0);
	return 0;
}

/* ---- marks for a tracer of persistent memory ---- */

static int do_trace(struct wire_in *in)
{
	uint32_t begin = wire_u32(in);

	if (in->bad)
		return -EINVAL;
	if (begin)
		outage_mark_start();
	else
		outage_mark_stop();
	return 0;
}

static int do_selftest(struct strbuf *out)
{
	const char *argv[] = { "/selftest", "/dev/mem", "4G", NULL };
	struct proc_result res;
	struct err err = ERR_INIT;

	outage_mark_start();
	int rc = proc_run(&(struct proc_opts){ .argv = argv }, &res, &err);
	outage_mark_stop();
	if (rc)
		return rc;
	wire_put_u32(out, (uint32_t)res.exit_code);
	proc_result_release(&res);
	return 0;
}

static int do_mark(struct wire_in *in)
{
	const char *text = wire_text(in);

	if (in->bad)
		return -EINVAL;
	outage_mark_text(text, strlen(text));
	return 0;
}

/* Sends the kernel's symbols of code: "ffffffff81000000 T _text". */
static int do_symbols(struct strbuf *out)
{
	auto_strbuf all = STRBUF_INIT, code = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = io_slurp("/proc/kallsyms", SYMBOLS_MAX, &all, &err);

	for (const char *line = strbuf_str(&all); !rc && *line;) {
		size_t n = strcspn(line, "\n");
		const char *kind = memchr(line, ' ', n);

		if (kind && strchr("tTwW", kind[1]) && strncmp(line, "0000000000000000", 16) != 0) {
			strbuf_add(&code, line, n);
			strbuf_addch(&code, '\n');
		}
		line += n + (line[n] == '\n');
	}
	if (!rc)
		wire_put_text(out, strbuf_str(&code));
	return rc;
}

/* ---- walking and checking ---- */

static int do_walk(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	const char *ignore[IGNORE_MAX + 1] = { NULL };
	uint32_t fields = wire_u32(in);
	struct tree_opts opts = { .blocks = fields & TREE_FIELD_BLOCKS,
				  .times = fields & TREE_FIELD_TIMES,
				  .dir_size = fields & TREE_FIELD_DIR_SIZE,
				  .dir_nlink = fields & TREE_FIELD_DIR_NLINK,
				  .ignore = ignore };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	uint64_t limit = wire_u64(in);
	opts.content_limit =
		min(limit ? limit : (uint64_t)TREE_CONTENT_LIMIT, (uint64_t)WIRE_CONTENT_FILE);
	uint32_t n = wire_u32(in);
	for (uint32_t i = 0; i < n && i < IGNORE_MAX; i++)
		ignore[i] = wire_text(in);
	if (in->bad || n > IGNORE_MAX || a->root < 0)
		return -EINVAL;
	int rc = tree_walk(a->root, &opts, &a->seen, &err);
	if (rc)
		return rc;
	tree_print(&a->seen, &opts, a->seen.kept > WIRE_CONTENT_ALL ? 0 : TREE_TEXT_CONTENT, &text);
	wire_put_text(out, strbuf_str(&text));
	return 0;
}

static int do_read(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	const char *path = wire_text(in);
	uint64_t at = wire_u64(in);
	uint32_t len = wire_u32(in);

	if (in->bad || a->root < 0 || len > WIRE_READ_MAX || at >> 62)
		return -EINVAL;
	auto_fd fd =
		openat(a->root, path, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_NONBLOCK | O_CLOEXEC);
	auto_free char *data = xmalloc(max(len, 1U));
	ssize_t n = fd < 0 ? -errno : io_pread_full(fd, data, len, (off_t)at);
	wire_put_u32(out, n < 0 ? (uint32_t)-n : 0);
	wire_put_bytes(out, data, n < 0 ? 0 : (size_t)n);
	return 0;
}

static int do_usable(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	auto_findings list = { 0 };
	struct err err = ERR_INIT;
	const char *text = wire_text(in);
	struct check_patience patience = { .ms = wire_u32(in), .nap = nap };

	if (in->bad || a->root < 0)
		return -EINVAL;
	int rc = *text ? tree_parse(text, strlen(text), &a->seen, &err) : 0;
	if (!rc)
		rc = check_usable(a->root, &a->seen, &patience, &list, &err);
	if (rc)
		return rc;
	wire_put_u32(out, (uint32_t)list.n);
	for (size_t i = 0; i < list.n; i++) {
		wire_put_u32(out, list.v[i].kind);
		wire_put_text(out, list.v[i].path);
		wire_put_text(out, list.v[i].words);
		wire_put_text(out, list.v[i].promise);
	}
	return 0;
}

static int do_stat(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	const char *path = wire_text(in);
	struct stat st = { 0 };

	if (in->bad || a->root < 0)
		return -EINVAL;
	int error = fstatat(a->root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
	wire_put_u32(out, (uint32_t)error);
	wire_put_u32(out, st.st_mode);
	wire_put_u64(out, (uint64_t)st.st_size);
	wire_put_u64(out, (uint64_t)st.st_blocks);
	return 0;
}

static void put_time(struct strbuf *out, const struct timespec *t)
{
	wire_put_u64(out, (uint64_t)t->tv_sec);
	wire_put_u32(out, (uint32_t)t->tv_nsec);
}

static int do_times(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	uint32_t n = wire_u32(in);

	if (in->bad || a->root < 0 || n > TREE_ENTRIES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		struct stat st = { 0 };
		int rc = fstatat(a->root, wire_text(in), &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);

		if (in->bad)
			return -EINVAL;
		wire_put_u32(out, rc < 0 ? (uint32_t)errno : 0);
		put_time(out, &st.st_mtim);
		put_time(out, &st.st_ctim);
	}
	return 0;
}

/* Runs a user's command, whose output depends on the tested file system, and may be anything. */
static int do_user(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	struct user_command c = { .text = wire_text(in) };
	auto_user_end end = { 0 };
	struct err err = ERR_INIT;

	c.done = wire_u32(in);
	c.operation = wire_text(in);
	c.input = (const char *)wire_bytes(in, &c.input_len);
	c.timeout_ms = wire_u64(in);
	if (in->bad || a->root < 0)
		return -EINVAL;
	int rc = user_command_run(&c, AGENT_MNT, &end, &err);
	if (rc)
		return rc;
	wire_put_u32(out, end.ok);
	wire_put_u32(out, end.cut);
	wire_put_text(out, strbuf_str(&end.how));
	wire_put_bytes(out, strbuf_str(&end.out), end.out.len);
	wire_put_bytes(out, strbuf_str(&end.err), end.err.len);
	return 0;
}

static int do_sync(struct agent *a, struct strbuf *out)
{
	wire_put_u32(out, a->root < 0 ? EBADF : syncfs(a->root) < 0 ? (uint32_t)errno : 0);
	return 0;
}

/* Freezes the file system, or thaws it. A frozen file system blocks writers, but there are none. */
static int do_freeze(struct agent *a, bool freeze, struct strbuf *out)
{
	int rc = a->root < 0 ? -1 : ioctl(a->root, freeze ? FIFREEZE : FITHAW, 0);

	wire_put_u32(out, a->root < 0 ? EBADF : rc < 0 ? (uint32_t)errno : 0);
	return 0;
}

static int do_clock(struct wire_in *in, struct strbuf *out)
{
	struct timespec t = { .tv_sec = (time_t)wire_u64(in) };

	if (in->bad)
		return -EINVAL;
	wire_put_u32(out, clock_settime(CLOCK_REALTIME, &t) < 0 ? (uint32_t)errno : 0);
	return 0;
}

/* Numbers a page; 0 or an errno. The arrays begin no page of memory, so none looks like flash. */
static int number_page(int fd, uint64_t mark, uint64_t number)
{
	uint64_t first[2] = { mark, number }, second[2] = { ~mark, number };
	off_t at = (off_t)number * FLASH_PAGE;
	int rc = io_pwrite_full(fd, first, sizeof(first), at);

	if (!rc)
		rc = io_pwrite_full(fd, second, sizeof(second), at + FLASH_PAGE / 2);
	return -rc;
}

static int do_flash(struct wire_in *in, struct strbuf *out)
{
	uint64_t bytes = wire_u64(in), mark = wire_u64(in);
	auto_fd fd = open("/dev/mtd0", O_RDWR | O_CLOEXEC);
	int error = fd < 0 ? errno : 0;

	if (in->bad)
		return -EINVAL;
	for (uint64_t i = 0; i < bytes / FLASH_PAGE && !error; i++)
		error = number_page(fd, mark, i);
	wire_put_u32(out, (uint32_t)error);
	return 0;
}

static int do_room(struct agent *a, struct strbuf *out)
{
	struct statvfs st = { 0 };

	if (a->root < 0)
		return -EINVAL;
	wire_put_u32(out, syncfs(a->root) < 0 || fstatvfs(a->root, &st) < 0 ? (uint32_t)errno : 0);
	wire_put_u64(out, (uint64_t)st.f_bfree * st.f_frsize);
	return 0;
}

static int do_fill(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	const char *name = wire_text(in);
	uint64_t bytes = wire_u64(in);

	if (in->bad || a->root < 0 || strchr(name, '/'))
		return -EINVAL;
	auto_fd fd = openat(a->root, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	auto_free char *block = xcalloc(1, FILL_BLOCK);
	int rc = fd < 0 ? -errno : 0;
	for (uint64_t at = 0; at < bytes && !rc; at += FILL_BLOCK)
		rc = io_pwrite_full(fd, block, min(bytes - at, (uint64_t)FILL_BLOCK), (off_t)at);
	wire_put_u32(out, (uint32_t)-rc);
	return 0;
}

/* ---- programs of the host ---- */

/*
 * Enters the host's files, which hostfs shows read-only, with the guest's devices over the host's;
 * the program sees no other files. The mounts end with the child's mount namespace.
 */
static void enter_host(void)
{
	/* A kernel without hostfs has the programs that it will run in its own root. */
	if (unshare(CLONE_NEWNS) < 0 ||
	    (mount("none", "/host", "hostfs", MS_RDONLY | MS_NOSUID, "/") < 0 && errno != ENODEV) ||
	    mount("/dev", "/host/dev", NULL, MS_BIND, NULL) < 0 || chroot("/host") < 0 ||
	    chdir("/") < 0)
		_exit(126);
}

static int do_run(struct agent *a, struct wire_in *in, struct strbuf *out)
{
	const char *argv[ARGS_MAX + 1] = { NULL };
	uint32_t n = wire_u32(in);
	struct proc_result res;
	struct err err = ERR_INIT;

	for (uint32_t i = 0; i < n && i < ARGS_MAX; i++) {
		argv[i] = wire_text(in);
		if (streq(argv[i], "{disk}"))
			argv[i] = AGENT_DISK;
	}
	if (in->bad || !n || n > ARGS_MAX || a->root >= 0)
		return -EINVAL;
	proc_in_child = enter_host;
	int rc = proc_run(&(struct proc_opts){ .argv = argv, .merge_stderr = true }, &res, &err);
	proc_in_child = NULL;
	if (rc)
		return rc;
	wire_put_u32(out, (uint32_t)res.exit_code);
	wire_put_text(out, strbuf_str(&res.out));
	proc_result_release(&res);
	return 0;
}

/*
 * Reseeds the kernel's random numbers now: machines are cloned from here on, and their random
 * numbers must be the same until the kernel's next reseeding.
 */
static void stir_random(void)
{
	auto_fd fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
		fprintf(stderr, "outage-agent: random numbers stay as they were: %s\n",
			strerror(errno));
}

static int do_hello(const struct agent *a, struct strbuf *out)
{
	struct utsname u;

	if (uname(&u) < 0)
		return -errno;
	stir_random();
	wire_put_text(out, u.release);
	wire_put_text(out, a->disk);
	return 0;
}

int agent_do(struct agent *a, enum agent_command command, struct wire_in *in, struct strbuf *out)
{
	switch (command) {
	case AGENT_HELLO:
		return do_hello(a, out);
	case AGENT_MOUNT:
		return do_mount(a, in, out);
	case AGENT_UMOUNT:
		do_end(a);
		return do_umount(a, in, out);
	case AGENT_BEGIN:
		return do_begin(a, in);
	case AGENT_OP:
		return do_op(a, in, out);
	case AGENT_END:
		return do_end(a);
	case AGENT_WALK:
		return do_walk(a, in, out);
	case AGENT_USABLE:
		return do_usable(a, in, out);
	case AGENT_STAT:
		return do_stat(a, in, out);
	case AGENT_SYNC:
		return do_sync(a, out);
	case AGENT_ROOM:
		return do_room(a, out);
	case AGENT_FILL:
		return do_fill(a, in, out);
	case AGENT_RUN:
		return do_run(a, in, out);
	case AGENT_FREEZE:
		return do_freeze(a, true, out);
	case AGENT_THAW:
		return do_freeze(a, false, out);
	case AGENT_READ:
		return do_read(a, in, out);
	case AGENT_CLOCK:
		return do_clock(in, out);
	case AGENT_FLASH:
		return do_flash(in, out);
	case AGENT_TRACE:
		return do_trace(in);
	case AGENT_SELFTEST:
		return do_selftest(out);
	case AGENT_MARK:
		return do_mark(in);
	case AGENT_SYMBOLS:
		return do_symbols(out);
	case AGENT_USER:
		return do_user(a, in, out);
	case AGENT_TIMES:
		return do_times(a, in, out);
	case AGENT_REMOUNT:
		return do_remount(a, in, out);
	case AGENT_COMMAND_END:
		break;
	}
	return -EOPNOTSUPP;
}
