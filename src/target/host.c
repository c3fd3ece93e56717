/* SPDX-License-Identifier: MIT */
/*
 * host.c - file systems of this machine's own kernel, on a recording disk.
 *
 * Journaling file systems recover when they are mounted; ext2 needs its fsck first, as after any
 * crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/vec.h"
#include "guest/cache.h"
#include "target/host.h"
#include "base/scratch.h"
#include "target/tune.h"

enum { MIB = 1 << 20, E2_JOURNAL_SIZE = 8 << 20 };

#define E2_MKFS(type, ...)                                                                         \
	(const char *const[])                                                                      \
	{                                                                                          \
		"mke2fs", "-q", "-F", "-t", type, "-b", "4096", "-E",                              \
			"lazy_itable_init=0,lazy_journal_init=0,nodiscard", ##__VA_ARGS__, NULL    \
	}

static const char *const e2fsck_check[] = { "e2fsck", "-f", "-n", NULL };
/* `e2fsck -p` refuses some states that ext2 may leave after a crash; `-y` repairs these. */
static const char *const e2fsck_preen[] = { "e2fsck", "-p", NULL };
static const char *const e2fsck_repair[] = { "e2fsck", "-y", NULL };

static const struct host_fs file_systems[] = {
	{ .name = "ext2",
	  .mkfs = E2_MKFS("ext2"),
	  .size = 16 * MIB,
	  .recover = e2fsck_preen,
	  .repair = e2fsck_repair,
	  .fsck = e2fsck_check,
	  .shutdown = true },
	{ .name = "ext3",
	  .mkfs = E2_MKFS("ext3"),
	  .size = 16 * MIB,
	  .journal_size = E2_JOURNAL_SIZE,
	  .fsck = e2fsck_check,
	  .shutdown = true },
	{ .name = "ext4",
	  .mkfs = E2_MKFS("ext4"),
	  .size = 16 * MIB,
	  .journal_size = E2_JOURNAL_SIZE,
	  .fsck = e2fsck_check,
	  .shutdown = true },
	{ .name = "xfs",
	  .mkfs = (const char *const[]){ "mkfs.xfs", "-q", "-f", "-K", "--unsupported", NULL },
	  .size = 64 * MIB,
	  .mount_opts = "nouuid",
	  .fsck = (const char *const[]){ "xfs_repair", "-n", NULL },
	  .shutdown = true },
	{ .name = "btrfs",
	  .mkfs = (const char *const[]){ "mkfs.btrfs", "-q", "-f", "-K", NULL },
	  .size = 128 * MIB,
	  .own_id = true,
	  .fsck = (const char *const[]){ "btrfs", "check", "--readonly", NULL } },
};

const struct host_fs *host_fs_find(const char *name)
{
	return array_find(i, file_systems, streq(file_systems[i].name, name));
}

static const struct host_fs *fs_of(const struct target *t)
{
	const struct host_fs *fs = host_fs_find(t->ops->name);

	assert(fs && "a target without a file system");
	return fs;
}

/* ---- programs ---- */

struct host_args vec_of(const char *);

static void args_add_all(struct host_args *a, const char *const *more)
{
	for (; more && *more; more++)
		vec_push(a, *more);
}

int host_run_tool(struct target *t, const char *const *argv, const char *extra, const char *file,
		  int *status, struct strbuf *said, struct err *err)
{
	struct host_args a = { 0 };
	auto_free char *words = extra ? xstrdup(extra) : NULL;
	char *rest = words;
	struct proc_result res;

	args_add_all(&a, argv);
	for (char *w; rest && (w = strsep(&rest, " "));)
		if (*w)
			vec_push(&a, w);
	vec_push(&a, file);
	vec_push(&a, NULL);
	struct proc_opts opts = { .argv = a.v,
				  .timeout_ms = t->opts.timeout_ms,
				  .merge_stderr = true };
	int rc = proc_run(&opts, &res, err);
	if (rc == -ENOENT) {
		err_clear(err);
		err_set(err, rc, "%s is not there; install it with: apt-get install %s", argv[0],
			t->ops->package);
	}
	if (!rc) {
		*status = res.exit_code;
		if (res.out.len)
			strbuf_add(said, res.out.buf, res.out.len);
		if (res.exit_code < 0) {
			strbuf_addf(said, "%s ", argv[0]);
			proc_describe(&res, &opts, said);
			strbuf_addch(said, '\n');
		}
		proc_result_release(&res);
	}
	vec_release(&a);
	return rc;
}

/* ---- the operations of a target ---- */

char *host_mount_options(const struct host_fs *fs, const char *spec)
{
	const char *comma = strchr(spec, ',');

	if (!comma && !fs->mount_opts)
		return NULL;
	return xasprintf("%s%s%s", fs->mount_opts ? fs->mount_opts : "",
			 comma && fs->mount_opts ? "," : "", comma ? comma + 1 : "");
}

static int host_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	const struct host_fs *fs = fs_of(t);

	t->mount_opts = host_mount_options(fs, opts->spec);
	if (!t->opts.size)
		t->opts.size = fs->size;
	return disk_open(opts->recorder, t->opts.size, &t->disk, err);
}

/* The length of the first line; the other lines are mostly a usage text. */
static int first_line(const struct strbuf *said)
{
	return (int)min(strcspn(strbuf_str(said), "\n"), (size_t)300);
}

int host_make_fs(struct target *t, const struct host_fs *fs, int fd, const char *path,
		 struct image *out, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;
	int status = 0;
	int rc = host_run_tool(t, fs->mkfs, t->opts.mkfs, path, &status, &said, err);

	if (!rc && status)
		rc = err_set(err, -EINVAL,
			     "%s refused a disk of %llu bytes (--size; %s has %llu by default): "
			     "%.*s",
			     fs->mkfs[0], (unsigned long long)t->opts.size, fs->name,
			     (unsigned long long)fs->size, first_line(&said), strbuf_str(&said));
	return rc ? rc : image_load_fd(fd, path, out, err);
}

/* True if the superblock, which begins at byte 1024, has a journal. */
static bool has_e2_journal(const struct image *img)
{
	enum { AT_COMPATIBLE = 1024 + 92, HAS_JOURNAL = 4 };
	unsigned char flags = 0;

	if (img->size > AT_COMPATIBLE)
		image_read(img, AT_COMPATIBLE, &flags, 1);
	return flags & HAS_JOURNAL;
}

int host_check_new(const struct target *t, const struct host_fs *fs, const struct image *img,
		   struct err *err)
{
	/* A user who tells mkfs about the journal has decided. */
	if (!fs->journal_size || has_e2_journal(img) ||
	    (t->opts.mkfs && strstr(t->opts.mkfs, "has_journal")))
		return 0;
	return err_set(err, -EINVAL,
		       "%s on a disk of %llu bytes has no journal, and so would lose what %s "
		       "promises: --size is at least %lluK (or, without a journal, -t ext2)",
		       fs->name, (unsigned long long)t->opts.size, fs->name,
		       (unsigned long long)fs->journal_size >> 10);
}

/* Runs mkfs on a new file, and reads the result. */
static int make_fs(struct target *t, struct image *out, struct err *err)
{
	auto_free char *path = NULL;
	auto_fd fd = scratch_file(t->opts.size, &path, err);

	if (fd < 0)
		return fd;
	int rc = host_make_fs(t, fs_of(t), fd, path, out, err);
	unlink(path);
	return rc;
}

static int host_mkfs(struct target *t, struct image *out, struct err *err)
{
	const struct host_fs *fs = fs_of(t);
	struct cache_key key;

	/*
	 * Such an id is random, and new each time; if it were given, mkfs.btrfs would open every
	 * block device, also the disks of other runs, to see whether it is in use.
	 */
	if (fs->own_id)
		return make_fs(t, out, err);
	cache_key(&key, fs->mkfs, t->opts.mkfs ? t->opts.mkfs : "", t->opts.size);
	bool kept = cache_find(&key, t->opts.size, out);
	int rc = kept ? 0 : make_fs(t, out, err);
	if (!rc && host_check_new(t, fs, out, err)) {
		image_release(out);
		rc = err->code;
	}
	if (!rc && !kept)
		cache_keep(&key, out);
	return rc;
}

void host_split_options(const char *options, unsigned long *flags, struct strbuf *data)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} words[] = {
		{ "ro", MS_RDONLY },
		{ "sync", MS_SYNCHRONOUS },
		{ "dirsync", MS_DIRSYNC },
		{ "noatime", MS_NOATIME },
		{ "nodiratime", MS_NODIRATIME },
		{ "relatime", MS_RELATIME },
		{ "strictatime", MS_STRICTATIME },
		{ "lazytime", MS_LAZYTIME },
		{ "noexec", MS_NOEXEC },
		{ "mand", MS_MANDLOCK },
		{ "defaults", 0 },
	};
	auto_free char *copy = xstrdup(options ? options : "");
	char *rest = copy;

	for (char *w; (w = strsep(&rest, ","));) {
		size_t i = 0;

		if (!*w)
			continue;
		while (i < ARRAY_SIZE(words) && !streq(words[i].name, w))
			i++;
		if (i < ARRAY_SIZE(words))
			*flags |= words[i].flag;
		else
			strbuf_addf(data, "%s%s", data->len ? "," : "", w);
	}
}

/* Mounts a device that need not be the target's own disk. */
int target_mount_device(struct target *t, const char *device, struct strbuf *said, struct err *err)
{
	unsigned long flags = MS_NODEV | MS_NOSUID;
	auto_strbuf data = STRBUF_INIT;

	host_split_options(t->mount_opts, &flags, &data);
	if (mount(device, t->mnt, t->ops->name, flags, strbuf_str(&data)) < 0) {
		int error = errno;

		/* Missing support is an error of ours; other failures are the file system's. */
		if (error == ENODEV)
			return err_set(err, -error, "this kernel has no %s", t->ops->name);
		strbuf_addf(said, "mount: %s\n", strerror(error));
		return 1;
	}
	t->root = open(t->mnt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root >= 0)
		return 0;
	int error = errno;
	strbuf_addf(said, "the root cannot be opened: %s\n", strerror(error));
	if (umount2(t->mnt, 0) < 0)
		return err_set(err, -errno, "cannot unmount %s: %m", t->mnt);
	return 1;
}

static int host_mount(struct target *t, struct strbuf *said, struct err *err)
{
	return target_mount_device(t, disk_device(t->disk), said, err);
}

/* ---- unmounting ---- */

#define OUTAGE_IOC_SHUTDOWN _IOR('X', 125, uint32_t)

/*
 * The disk is not read again, so the writes of an unmount are not needed. A shutdown of the file
 * system before the unmount avoids them, but adds lines to the kernel's log, and a serial console
 * takes longer to print these than the writes take. Without a serial console, both ways are tried
 * in turn to find the faster one.
 */
enum { TRIALS = 8, BUSY_TRIES = 2500 };

struct cut_off {
	unsigned tried;
	uint64_t best_ns[2]; /* without, with */
};

static struct cut_off cut_off = { .best_ns = { UINT64_MAX, UINT64_MAX } };

static bool choose_cut_off(void)
{
	if (!cut_off.tried && tune_console_is_slow())
		cut_off = (struct cut_off){ .tried = TRIALS, .best_ns = { 0, UINT64_MAX } };
	return cut_off.tried < TRIALS ? cut_off.tried % 2 : cut_off.best_ns[1] < cut_off.best_ns[0];
}

static int unmount(struct target *t, struct err *err)
{
	util_close(steal_fd(&t->root));
	for (int tries = 0;; tries++) {
		if (umount2(t->mnt, 0) == 0)
			return 0;
		if (errno != EBUSY || tries == BUSY_TRIES)
			return err_set(err, -errno, "cannot unmount %s: %m", t->mnt);
		usleep(2000);
	}
}

static int host_umount(struct target *t, bool clean, struct err *err)
{
	uint32_t no_log_flush = 2;
	uint64_t start = util_now_ns();
	bool may = !clean && fs_of(t)->shutdown && t->root >= 0;
	bool with = may && choose_cut_off();

	/* An older kernel refuses; then the unmount is an ordinary one. */
	t->cut_off = with && ioctl(t->root, OUTAGE_IOC_SHUTDOWN, &no_log_flush) == 0;
	int rc = unmount(t, err);
	if (!rc && may && cut_off.tried++ < TRIALS)
		cut_off.best_ns[with] = min(cut_off.best_ns[with], util_now_ns() - start);
	return rc;
}

static int host_recover(struct target *t, struct strbuf *said, struct err *err)
{
	const struct host_fs *fs = fs_of(t);
	int status;

	if (!fs->recover)
		return 0;
	int rc = host_run_tool(t, fs->recover, NULL, disk_device(t->disk), &status, said, err);
	if (!rc && (status < 0 || status > 3) && fs->repair)
		rc = host_run_tool(t, fs->repair, NULL, disk_device(t->disk), &status, said, err);
	/* 1: errors corrected; 2: and a reboot is needed; more: not repaired. */
	return rc ? rc : status < 0 || status > 3;
}

static int host_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	int status;
	int rc = host_run_tool(t, fs_of(t)->fsck, NULL, disk_device(t->disk), &status, said, err);

	return rc ? rc : status != 0;
}

static void host_close(struct target *t)
{
	(void)t;
}

static const char *const lost_found[] = { "lost+found", NULL };
static const char *const nothing[] = { NULL };
static const char *const e2_programs[] = { "mke2fs", "e2fsck", NULL };
static const char *const xfs_programs[] = { "mkfs.xfs", "xfs_repair", NULL };
static const char *const btrfs_programs[] = { "mkfs.btrfs", "btrfs", NULL };

#define HOST_TARGET(name_, help_, guarantee_, ignore_, programs_, package_)                        \
	const struct target_ops target_##name_ = {                                                 \
		.name = #name_,                                                                    \
		.help = help_,                                                                     \
		.guarantee = guarantee_,                                                           \
		.ignore = ignore_,                                                                 \
		.programs = programs_,                                                             \
		.package = package_,                                                               \
		.in_kernel = true,                                                                 \
		.needs_root = true,                                                                \
		.open = host_open,                                                                 \
		.mkfs = host_mkfs,                                                                 \
		.recover = host_recover,                                                           \
		.mount = host_mount,                                                               \
		.umount = host_umount,                                                             \
		.fsck = host_fsck,                                                                 \
		.close = host_close,                                                               \
	}

HOST_TARGET(ext2, "ext2 of this kernel, recovered by e2fsck -p, or -y where that refuses", "posix",
	    lost_found, e2_programs, "e2fsprogs");
HOST_TARGET(ext3, "ext3 of this kernel", "linux", lost_found, e2_programs, "e2fsprogs");
HOST_TARGET(ext4, "ext4 of this kernel", "linux", lost_found, e2_programs, "e2fsprogs");
HOST_TARGET(xfs, "xfs of this kernel", "linux", nothing, xfs_programs, "xfsprogs");
HOST_TARGET(btrfs, "btrfs of this kernel", "linux", nothing, btrfs_programs, "btrfs-progs");
