/* SPDX-License-Identifier: MIT */
/*
 * uml.c - file systems of another kernel than this machine's: user-mode Linux, a kernel that is an
 * ordinary program. Nothing here needs root, and a kernel that panics takes nobody along.
 *
 * The guest is started when something is to be mounted, and kept from then on: crash states are put
 * on its disk while nothing is mounted. It is started anew after a panic, or when it cannot
 * unmount. mkfs and fsck are run here, as this user, on the memory that is the disk; what recovers,
 * and so writes what is to be recorded, is run in the guest, which sees this machine's programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "record/vhost_disk.h"
#include "target/cache.h"
#include "target/host.h"
#include "target/uml.h"
#include "target/uml_impl.h"
#include "target/uml_root.h"

enum { MIB = 1 << 20, START_MS = 60000, VERSION_MS = 10000, VERSION_MAX = 100 };

#define MODULES_DIR "/usr/lib/uml/modules"

/* Those that this machine's kernel is not tested with. */
static const struct host_fs more_file_systems[] = {
	{ .name = "jfs",
	  .mkfs = (const char *const[]){ "mkfs.jfs", "-q", NULL },
	  .size = 16 * MIB,
	  .recover = (const char *const[]){ "fsck.jfs", "-a", NULL },
	  .fsck = (const char *const[]){ "fsck.jfs", "-n", "-f", NULL } },
	{ .name = "reiserfs",
	  .mkfs = (const char *const[]){ "mkfs.reiserfs", "-q", "-ff", NULL },
	  .size = 64 * MIB,
	  .mount_opts = "user_xattr",
	  .fsck = (const char *const[]){ "reiserfsck", "--check", "-y", "-q", NULL } },
	{ .name = "f2fs",
	  .mkfs = (const char *const[]){ "mkfs.f2fs", "-q", "-f", NULL },
	  .size = 64 * MIB,
	  .fsck = (const char *const[]){ "fsck.f2fs", "--dry-run", NULL },
	  .shutdown = true },
	{ .name = "nilfs2",
	  .mkfs = (const char *const[]){ "mkfs.nilfs2", "-q", "-f", "-B", "16", NULL },
	  .size = 64 * MIB },
};

static struct uml *own(struct target *t)
{
	return t->own;
}

const struct host_fs *uml_fs_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(more_file_systems); i++)
		if (streq(more_file_systems[i].name, name))
			return &more_file_systems[i];
	return host_fs_find(name);
}

/* ---- the kernel ---- */

static char *find_kernel(const char *kernel)
{
	return kernel ? realpath(kernel, NULL) : proc_find("linux.uml");
}

/* What it says its version is, which is also the name of its modules' folder; NULL: nothing. */
static char *ask_version(const char *kernel)
{
	const char *argv[] = { kernel, "--version", NULL };
	struct proc_opts how = { .argv = argv, .timeout_ms = VERSION_MS };
	struct proc_result res;
	struct err ignored = ERR_INIT;
	char *out = NULL;

	if (proc_run(&how, &res, &ignored))
		return NULL;
	size_t n = strcspn(strbuf_str(&res.out), "\n");
	if (!res.exit_code && n && n < VERSION_MAX)
		out = xmemdupz(strbuf_str(&res.out), n);
	proc_result_release(&res);
	return out;
}

char *uml_release(const char *kernel)
{
	auto_free char *file = find_kernel(kernel);
	char *version = file ? ask_version(file) : NULL;

	return version ? version : xstrdup("unknown");
}

static int look_at_kernel(struct uml *u, const struct target_opts *opts, struct err *err)
{
	u->kernel = find_kernel(opts->kernel);
	if (!u->kernel)
		return err_set(err, -ENOENT, "%s is not there; %s",
			       opts->kernel ? opts->kernel : "linux.uml",
			       opts->kernel ? "--kernel is a kernel of user-mode Linux"
					    : "install it with: apt-get install user-mode-linux");
	auto_free char *version = ask_version(u->kernel);
	if (!version)
		return err_set(err, -EINVAL,
			       "%s is no kernel of user-mode Linux: it does not tell its version",
			       u->kernel);
	auto_free char *dir = opts->modules ? xstrdup(opts->modules)
					    : xasprintf(MODULES_DIR "/%s", version);
	/* A kernel of one's own may have all it needs built in. */
	if (opts->modules || access(dir, F_OK) == 0)
		u->modules = steal(dir);
	return 0;
}

/* One of the processors that we may use, another for each worker. */
int uml_choose_cpu(unsigned worker)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) < 0 ? 0 : CPU_COUNT(&set);

	if (n < 2)
		return -1;
	n = (int)(worker % (unsigned)n);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && n-- == 0)
			return cpu;
	return -1;
}

/*
 * What is left out costs time at each start: choosing the fastest of several ways to compute, a
 * cache for swapping, consoles that nobody sees, and a folder in the user's home for its own
 * control socket, which would stay behind.
 */
static int start(struct target *t, struct err *err)
{
	struct uml *u = own(t);
	const char *argv[] = {
		u->kernel,
		"mem=160M",
		"initrd={root}",
		"virtio_uml.device={disk}:2",
		"virtio_uml.device={mail}:2",
		"initcall_blacklist=raid6_select_algo,init_zswap,make_umid_init,mconsole_init",
		"pty.legacy_count=0",
		"lpj=20000000",
		"selinux=0",
		"quiet",
		"loglevel=5",
		"con0=null,fd:1",
		"con=null",
		"ssl=null",
		NULL,
	};
	struct guest_start how = { .argv = argv,
				   .root = u->root,
				   .cpu = uml_choose_cpu(t->opts.worker) };

	return guest_start(&u->guest, &how, START_MS, err);
}

/* ---- questions ---- */

/* What was put into the question: 0 and the answer, 1 if the guest died of it. */
static int ask_all(struct target *t, struct wire_in *answer, struct err *err)
{
	int rc = guest_ask(&own(t)->guest, 0, answer, err);

	if (!guest_runs(&own(t)->guest)) {
		vhost_disk_in_use(t->disk, false);
		own(t)->begun = false;
		own(t)->walked = NULL;
		t->mounted = false;
	}
	return rc;
}

/* The same for one command. */
static int ask(struct target *t, enum agent_command command, struct wire_in *part, struct err *err)
{
	struct wire_in answer;
	int rc = ask_all(t, &answer, err);

	return rc ? rc : guest_part(&answer, command, part, err);
}

static struct strbuf *begin_part(struct target *t, enum agent_command command)
{
	struct guest *g = &own(t)->guest;

	guest_begin(g);
	wire_part(&g->out, command, 0);
	return &g->out.text;
}

/* ---- the operations of a target ---- */

static int uml_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	/* Without the first one there is no disk; crc32_generic is asked for by name only. */
	const char *modules[] = { "virtio_blk", "crc32_generic", NULL, NULL };
	struct uml *u = xcalloc(1, sizeof(*u));

	t->own = u;
	u->root = -1;
	u->start = start;
	u->fs = uml_fs_find(t->ops->name + strlen("uml:"));
	assert(u->fs);
	if (opts->recorder && !streq(opts->recorder, VHOST_RECORDER))
		return err_set(err, -EINVAL,
			       "recorder %s cannot see what a guest writes; leave "
			       "--recorder out",
			       opts->recorder);
	t->mount_opts = host_mount_options(u->fs, opts->spec);
	if (!t->opts.size)
		t->opts.size = u->fs->size;
	int rc = look_at_kernel(u, opts, err);
	if (rc)
		return rc;
	modules[2] = u->fs->name;
	u->root = uml_root(u->modules, modules, NULL, err);
	if (u->root < 0)
		return u->root;
	rc = vhost_disk_open(t->opts.size, &t->disk, err);
	if (!rc)
		guest_init(&u->guest, t->disk, &t->complaints);
	return rc;
}

void uml_close(struct target *t)
{
	struct uml *u = own(t);

	if (!u)
		return;
	if (u->guest.disk)
		guest_release(&u->guest);
	util_close(u->root);
	free(u->kernel);
	free(u->modules);
	free(u);
	t->own = NULL;
}

static int make_fs(struct target *t, struct image *out, struct err *err)
{
	auto_fd fd = memfd_create("outage-mkfs", MFD_CLOEXEC);
	auto_free char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);

	if (fd < 0 || ftruncate(fd, (off_t)t->opts.size) < 0)
		return err_set(err, -errno, "cannot make a file of %llu bytes in memory: %m",
			       (unsigned long long)t->opts.size);
	return host_make_fs(t, own(t)->fs, fd, path, out, err);
}

int uml_mkfs(struct target *t, struct image *out, struct err *err)
{
	const struct host_fs *fs = own(t)->fs;
	struct cache_key key;

	cache_key(&key, fs->mkfs, t->opts.mkfs_args ? t->opts.mkfs_args : "", t->opts.size);
	if (cache_find(&key, t->opts.size, out))
		return 0;
	int rc = make_fs(t, out, err);
	if (!rc)
		cache_keep(&key, out);
	return rc;
}

/* Where the guest died while something was tried, that is what there is to say. */
static int told_death(const struct target *t, struct strbuf *said)
{
	strbuf_addf(said, "the kernel died: %.*s\n", (int)strcspn(strbuf_str(&t->complaints), "\n"),
		    strbuf_str(&t->complaints));
	return 1;
}

static int run_in_guest(struct target *t, const char *const *argv, int *status, struct strbuf *said,
			struct err *err)
{
	struct strbuf *out = begin_part(t, AGENT_RUN);
	struct wire_in part;
	uint32_t n = 0;

	while (argv[n])
		n++;
	wire_put_u32(out, n + 1);
	for (uint32_t i = 0; i < n; i++)
		wire_put_text(out, argv[i]);
	wire_put_text(out, "{disk}");
	int rc = ask(t, AGENT_RUN, &part, err);
	if (rc)
		return rc;
	*status = (int)wire_u32(&part);
	strbuf_adds(said, wire_text(&part));
	rc = guest_part_ok(&part, err);
	if (!rc && (*status == 126 || *status == 127))
		rc = err_set(err, -ENOEXEC, "%s cannot be run in the guest (%d)", argv[0], *status);
	return rc;
}

int uml_recover(struct target *t, struct strbuf *said, struct err *err)
{
	const struct host_fs *fs = own(t)->fs;
	int status;
	int rc = !fs->recover || guest_runs(&own(t)->guest) ? 0 : own(t)->start(t, err);

	if (rc || !fs->recover)
		return rc;
	rc = run_in_guest(t, fs->recover, &status, said, err);
	if (!rc && (status < 0 || status > 3) && fs->repair)
		rc = run_in_guest(t, fs->repair, &status, said, err);
	if (rc == 1)
		return told_death(t, said);
	return rc ? rc : status < 0 || status > 3;
}

int uml_mount(struct target *t, struct strbuf *said, struct err *err)
{
	unsigned long flags = MS_NODEV | MS_NOSUID;
	auto_strbuf data = STRBUF_INIT;
	struct wire_in part;
	int rc = guest_runs(&own(t)->guest) ? 0 : own(t)->start(t, err);

	if (rc)
		return rc;
	host_split_options(t->mount_opts, &flags, &data);
	struct strbuf *out = begin_part(t, AGENT_MOUNT);
	wire_put_text(out, own(t)->fs->name);
	wire_put_u32(out, (uint32_t)flags);
	wire_put_text(out, strbuf_str(&data));
	vhost_disk_in_use(t->disk, true);
	own(t)->begun = false;
	rc = ask(t, AGENT_MOUNT, &part, err);
	if (rc == 1)
		return told_death(t, said);
	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	const char *step = wire_text(&part);
	rc = guest_part_ok(&part, err);
	if (rc || !error)
		return rc;
	vhost_disk_in_use(t->disk, false);
	if (error == ENODEV)
		return err_set(err, -error,
			       "the kernel %s has no %s, and there is no module (see "
			       "--modules)",
			       own(t)->kernel, own(t)->fs->name);
	strbuf_addf(said, "%s: %s\n", step, strerror(error));
	return 1;
}

/* A guest that cannot unmount is given up: its disk is what counts, and that is here. */
static int give_up(struct target *t, bool clean, int error, struct err *err)
{
	log_info("the guest cannot unmount %s (%s), and is started anew", own(t)->fs->name,
		 strerror(error));
	guest_stop(&own(t)->guest);
	vhost_disk_in_use(t->disk, false);
	own(t)->walked = NULL;
	t->mounted = false;
	if (!clean)
		return 0;
	return err_set(err, -error, "cannot unmount %s in the guest: %s", own(t)->fs->name,
		       strerror(error));
}

int uml_umount(struct target *t, bool clean, struct err *err)
{
	struct guest *g = &own(t)->guest;
	struct strbuf *out = begin_part(t, AGENT_UMOUNT);
	bool cut_off = !clean && own(t)->fs->shutdown;
	struct wire_in part;

	guest_listen(g);
	wire_put_u32(out, cut_off);
	/* Cut off before it is unmounted, a file system complains; that is our doing. */
	g->quiet_of_device = cut_off;
	int rc = ask(t, AGENT_UMOUNT, &part, err);
	g->quiet_of_device = false;
	if (rc)
		return min(rc,
			   0); /* a guest that died of it has nothing mounted, and has said so */
	int error = (int)wire_u32(&part);
	wire_u32(&part);
	rc = guest_part_ok(&part, err);
	if (error || rc)
		return give_up(t, clean, rc ? -rc : error, err);
	vhost_disk_in_use(t->disk, false);
	return 0;
}

int uml_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	const struct host_fs *fs = own(t)->fs;
	auto_free char *path = vhost_disk_path(t->disk);
	int status;

	if (!fs->fsck)
		return 0;
	int rc = host_run_tool(t, fs->fsck, NULL, path, &status, said, err);
	return rc ? rc : status != 0;
}

/* ---- what is mounted there ---- */

/* The agent is told with the first operation, and again whenever something was mounted. */
static int far_begin(struct target *t, const struct workload *w, struct err *err)
{
	(void)err;
	own(t)->workload = w;
	own(t)->begun = false;
	return 0;
}

static void put_workload(struct target *t)
{
	struct guest *g = &own(t)->guest;
	auto_strbuf text = STRBUF_INIT;

	workload_print(own(t)->workload, &text);
	wire_part(&g->out, AGENT_BEGIN, 0);
	wire_put_text(&g->out.text, strbuf_str(&text));
}

static int far_op(struct target *t, size_t i, int64_t *result, struct err *err)
{
	struct uml *u = own(t);
	struct wire_in answer, part;
	bool begin = !u->begun;

	assert(u->workload);
	guest_begin(&u->guest);
	if (begin)
		put_workload(t);
	wire_part(&u->guest.out, AGENT_OP, 0);
	wire_put_u32(&u->guest.out.text, (uint32_t)i);
	int rc = ask_all(t, &answer, err);
	if (!rc && begin)
		rc = guest_part(&answer, AGENT_BEGIN, &part, err);
	if (!rc)
		rc = guest_part(&answer, AGENT_OP, &part, err);
	if (rc)
		return rc;
	u->begun = true;
	*result = (int64_t)wire_u64(&part);
	if (!wire_u32(&part)) {
		t->mounted = false;
		vhost_disk_in_use(t->disk, false);
	}
	rc = guest_part_ok(&part, err);
	if (!rc && *result < -4095)
		rc = err_set(err, -EPROTO, "the guest's answer makes no sense");
	return rc;
}

static int far_end(struct target *t, struct err *err)
{
	struct wire_in part;
	bool begun = own(t)->begun;

	own(t)->begun = false;
	own(t)->workload = NULL;
	begin_part(t, AGENT_END);
	return begun ? ask(t, AGENT_END, &part, err) : 0;
}

static int far_walk(struct target *t, const struct tree_opts *opts, struct tree *seen,
		    struct err *err)
{
	struct strbuf *out = begin_part(t, AGENT_WALK);
	struct wire_in part;
	uint32_t n = 0;

	wire_put_u32(out, (opts->blocks ? TREE_FIELD_BLOCKS : 0U) |
				  (opts->times ? TREE_FIELD_TIMES : 0U) |
				  (opts->dir_size ? TREE_FIELD_DIR_SIZE : 0U) |
				  (opts->dir_nlink ? TREE_FIELD_DIR_NLINK : 0U));
	wire_put_u64(out, opts->content_limit);
	while (opts->ignore && opts->ignore[n])
		n++;
	wire_put_u32(out, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_text(out, opts->ignore[i]);
	int rc = ask(t, AGENT_WALK, &part, err);
	if (rc)
		return rc;
	const char *text = wire_text(&part);
	rc = guest_part_ok(&part, err);
	if (!rc)
		rc = tree_parse(text, strlen(text), seen, err);
	if (rc)
		err_context(err, "what the guest saw");
	own(t)->walked = rc ? NULL : seen;
	return rc;
}

static int far_usable(struct target *t, const struct tree *seen, struct findings *list,
		      struct err *err)
{
	struct strbuf *out = begin_part(t, AGENT_USABLE);
	auto_strbuf text = STRBUF_INIT;
	struct wire_in part;

	/* The agent still has what it saw, unless it was started anew since. */
	if (own(t)->walked != seen)
		tree_print(seen, &(struct tree_opts){ 0 }, 0, &text);
	wire_put_text(out, strbuf_str(&text));
	int rc = ask(t, AGENT_USABLE, &part, err);
	if (rc)
		return rc;
	uint32_t n = wire_u32(&part);
	for (uint32_t i = 0; i < n && !part.bad; i++) {
		uint32_t kind = wire_u32(&part);
		const char *path = wire_text(&part), *words = wire_text(&part),
			   *promise = wire_text(&part);

		if (!part.bad && kind < FINDING_KIND_END)
			findings_add(list, kind, xstrdup(path), xstrdup(words), xstrdup(promise));
	}
	return guest_part_ok(&part, err);
}

static int far_stat(struct target *t, const char *path, struct target_stat *st, struct err *err)
{
	struct wire_in part;

	wire_put_text(begin_part(t, AGENT_STAT), path);
	int rc = ask(t, AGENT_STAT, &part, err);
	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	uint32_t mode = wire_u32(&part);
	st->is_file = !error && S_ISREG(mode);
	st->size = wire_u64(&part);
	st->blocks = wire_u64(&part);
	return guest_part_ok(&part, err);
}

/* What answers with an errno, and perhaps a number. */
static int far_call(struct target *t, enum agent_command command, const char *what,
		    uint64_t *number, struct err *err)
{
	struct wire_in part;
	int rc = ask(t, command, &part, err);

	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	if (number)
		*number = wire_u64(&part);
	rc = guest_part_ok(&part, err);
	if (!rc && error)
		rc = err_set(err, -error, "%s in the guest: %s", what, strerror(error));
	return rc;
}

static int far_sync(struct target *t, struct err *err)
{
	begin_part(t, AGENT_SYNC);
	return far_call(t, AGENT_SYNC, "it cannot be synced", NULL, err);
}

static int far_room(struct target *t, uint64_t *bytes, struct err *err)
{
	begin_part(t, AGENT_ROOM);
	return far_call(t, AGENT_ROOM, "it does not say how much room it has", bytes, err);
}

static int far_fill(struct target *t, const char *name, uint64_t bytes, struct err *err)
{
	struct strbuf *out = begin_part(t, AGENT_FILL);

	wire_put_text(out, name);
	wire_put_u64(out, bytes);
	int rc = far_call(t, AGENT_FILL, "room cannot be taken away", NULL, err);
	if (rc == -ENOSPC) {
		err_clear(err);
		rc = 0;
	}
	return rc;
}

const struct target_far uml_far = {
	.begin = far_begin,
	.op = far_op,
	.end = far_end,
	.walk = far_walk,
	.usable = far_usable,
	.stat = far_stat,
	.sync = far_sync,
	.room = far_room,
	.fill = far_fill,
};

int uml_probe(struct err *err)
{
	struct target_opts opts = { .spec = "uml:ext4", .size = 1 << 20 };
	struct target t;
	int rc = target_open_as(&target_uml_ext4, &opts, &t, err);

	if (rc)
		return rc;
	rc = start(&t, err);
	target_close(&t);
	return rc;
}

static const char *const lost_found[] = { "lost+found", NULL };
static const char *const nothing[] = { NULL };
static const char *const nilfs_own[] = { ".nilfs", NULL };

#define PROGRAMS(name_, ...)                                                                       \
	static const char *const name_##_programs[] = { "linux.uml", __VA_ARGS__, NULL }

PROGRAMS(ext2, "mke2fs", "e2fsck");
PROGRAMS(ext3, "mke2fs", "e2fsck");
PROGRAMS(ext4, "mke2fs", "e2fsck");
PROGRAMS(xfs, "mkfs.xfs", "xfs_repair");
PROGRAMS(btrfs, "mkfs.btrfs", "btrfs");
PROGRAMS(jfs, "mkfs.jfs", "fsck.jfs");
PROGRAMS(reiserfs, "mkfs.reiserfs", "reiserfsck");
PROGRAMS(f2fs, "mkfs.f2fs", "fsck.f2fs");
PROGRAMS(nilfs2, "mkfs.nilfs2");

#define UML_TARGET(name_, guarantee_, ignore_, package_)                                           \
	const struct target_ops target_uml_##name_ = {                                             \
		.name = "uml:" #name_,                                                             \
		.help = #name_ " of user-mode Linux, without root",                                \
		.guarantee = guarantee_,                                                           \
		.ignore = ignore_,                                                                 \
		.programs = name_##_programs,                                                      \
		.package = package_,                                                               \
		.open = uml_open,                                                                  \
		.mkfs = uml_mkfs,                                                                  \
		.recover = uml_recover,                                                            \
		.mount = uml_mount,                                                                \
		.umount = uml_umount,                                                              \
		.fsck = uml_fsck,                                                                  \
		.close = uml_close,                                                                \
		.far = &uml_far,                                                                   \
	}

UML_TARGET(ext2, "bare", lost_found, "e2fsprogs");
UML_TARGET(ext3, "linux", lost_found, "e2fsprogs");
UML_TARGET(ext4, "linux", lost_found, "e2fsprogs");
UML_TARGET(xfs, "linux", nothing, "xfsprogs");
UML_TARGET(btrfs, "linux", nothing, "btrfs-progs");
UML_TARGET(jfs, "bare", lost_found, "jfsutils");
UML_TARGET(reiserfs, "bare", nothing, "reiserfsprogs");
UML_TARGET(f2fs, "posix", nothing, "f2fs-tools");
UML_TARGET(nilfs2, "posix", nilfs_own, "nilfs-tools");
