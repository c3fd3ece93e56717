/* SPDX-License-Identifier: MIT */
/* target.c - finds a target, gives it a place of its own to mount, and checks the calls. */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/similar.h"
#include "check/check.h"
#include "guest/guest_files.h"
#include "target/guest_fs.h"
#include "check/kmsg.h"
#include "base/scratch.h"
#include "target/uml.h"
#include "target/vm.h"

enum { KERNEL_MAX = 512 << 20 };

#define UML_ENTRY(name_, ...) &target_uml_##name_,
#define VM_ENTRY(name_, ...)  &target_vm_##name_,

/* clang-format off */
const struct target_ops *const targets[] = {
	&target_ext4,
	&target_xfs,
	&target_btrfs,
	&target_ext3,
	&target_ext2,
	&target_fuse,
	GUEST_FILE_SYSTEMS(UML_ENTRY)
	GUEST_FILE_SYSTEMS(VM_ENTRY)
	GUEST_FLASH_FILE_SYSTEMS(VM_ENTRY)
	&target_vm_bcachefs,
	&target_vm_ext4_dax,
	&target_vm_xfs_dax,
	&target_vm_nova,
	&target_vm_pm,
	NULL,
};
/* clang-format on */

static const struct target_ops *registered;

void target_register(const struct target_ops *ops)
{
	registered = ops;
}

const struct target_ops *target_find(const char *spec, struct err *err)
{
	static const char any[] = GUEST_ANY_PM ":";
	/* "uml:ext4" is a name; "fuse:" is followed by a command. */
	bool guest = strncmp(spec, "uml:", 4) == 0 || strncmp(spec, "vm:", 3) == 0;
	size_t n = strcspn(spec, guest ? "," : ",:");
	/* "vm:pm:pmfs" has the kernel's name after the second colon. */
	if (strncmp(spec, any, strlen(any)) == 0)
		n = strlen(any) - 1;
	auto_strbuf list = STRBUF_INIT, hint = STRBUF_INIT;

	if (registered && strlen(registered->name) == n && memcmp(registered->name, spec, n) == 0)
		return registered;
	for (size_t i = 0; targets[i]; i++) {
		if (strlen(targets[i]->name) == n && memcmp(targets[i]->name, spec, n) == 0)
			return targets[i];
		strbuf_addf(&list, "%s%s", i ? ", " : "", targets[i]->name);
	}
	auto_free char *name = xmemdupz(spec, n);
	similar_hint(name, strbuf_str(&list), &hint);
	err_set(err, -EINVAL, "there is no target '%.40s'%s; there are %s", name, strbuf_str(&hint),
		strbuf_str(&list));
	return NULL;
}

bool target_is_guest(const char *spec)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *ops = target_find(spec, &ignored);

	return ops && ops->far;
}

const struct target_ops *target_default(struct err *err)
{
	if (geteuid() == 0)
		return &target_ext4;
	auto_free char *kernel = proc_find("linux.uml");
	if (kernel)
		return &target_uml_ext4;
	err_set(err, -ENOENT,
		"without root only user-mode Linux can be tested, and linux.uml is not there; "
		"install it with: apt-get install user-mode-linux");
	return NULL;
}

int target_files(const struct target_opts *opts, struct guest_files *out, struct err *err)
{
	uint64_t memory = opts->guest_memory		   ? opts->guest_memory
			  : strncmp(opts->spec, "uml:", 4) ? TARGET_VM_MEMORY
							   : TARGET_UML_MEMORY;

	return guest_files_read(opts->guest_files, memory, out, err);
}

int target_check(const struct target_opts *opts, struct err *err)
{
	const struct target_ops *target = target_find(opts->spec, err);
	struct guest_named_fs named = { 0 };
	struct guest_files files = { 0 };
	int rc = 0;

	if (!target)
		return -EINVAL;
	if (streq(target->name, GUEST_ANY_PM))
		rc = guest_fs_named(opts->spec, opts->mkfs, &named, err);
	guest_named_fs_release(&named);
	if (rc)
		return rc;
	if (opts->guest_files && !target->far)
		return err_set(err, -EINVAL,
			       "--guest-file is for uml: and vm: targets; commands on %s run on "
			       "this machine, and find its programs",
			       target->name);
	if (opts->guest_files)
		rc = target_files(opts, &files, err);
	guest_files_release(&files);
	/* This check comes last, as it may fetch a kernel. */
	return !rc && strncmp(target->name, "vm:", 3) == 0 ? vm_check(target, opts, err) : rc;
}

char *target_kernel(const struct target_opts *opts)
{
	struct utsname u;

	if (strncmp(opts->spec, "uml:", 4) == 0)
		return uml_release(opts->guest_kernel);
	if (strncmp(opts->spec, "vm:", 3) == 0)
		return vm_release(opts);
	return xstrdup(uname(&u) ? "unknown" : u.release);
}

/* A hash is needed because two builds of a kernel mostly have the same release. */
char *target_kernel_hash(const struct target_opts *opts)
{
	auto_strbuf text = STRBUF_INIT;
	struct err ignored = ERR_INIT;
	char hex[HASH_HEX_SIZE];

	if (!opts->guest_kernel || io_slurp(opts->guest_kernel, KERNEL_MAX, &text, &ignored))
		return NULL;
	return xstrdup(hash_hex(hash_bytes(strbuf_str(&text), text.len), hex));
}

char *target_files_hash(const struct target_opts *opts)
{
	struct guest_files files = { 0 };
	struct err ignored = ERR_INIT;

	if (!opts->guest_files || target_files(opts, &files, &ignored))
		return NULL;
	char *hash = guest_files_hash(&files);
	guest_files_release(&files);
	return hash;
}

int target_place(char mnt[TARGET_PLACE_SIZE], struct err *err)
{
	static unsigned opened; /* so that two targets of one process do not share a place */
	int rc = scratch_enter(err);

	if (rc)
		return rc;
	snprintf(mnt, TARGET_PLACE_SIZE, "%s/fs", scratch_path());
	if (opened++)
		snprintf(mnt, TARGET_PLACE_SIZE, "%s/fs%u", scratch_path(), opened);
	if (mkdir(mnt, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make %s: %m", mnt);
	return 0;
}

int target_open(const struct target_opts *opts, struct target *t, struct err *err)
{
	const struct target_ops *ops = target_find(opts->spec, err);

	*t = (struct target){ .root = -1, .kmsg = { .fd = -1 } };
	return ops ? target_open_as(ops, opts, t, err) : -EINVAL;
}

int target_open_as(const struct target_ops *ops, const struct target_opts *opts, struct target *t,
		   struct err *err)
{
	*t = (struct target){ .ops = ops, .opts = *opts, .root = -1, .kmsg = { .fd = -1 } };
	if (ops->needs_root && geteuid() != 0)
		return err_set(
			err, -EPERM,
			"target %s needs root: it mounts on this machine's kernel; "
			"run it with sudo (outage gen and outage trace need no root; nor does "
			"-t uml:ext4)",
			ops->name);
	if (!t->opts.timeout_ms)
		t->opts.timeout_ms = 60000;
	int rc = ops->far ? 0 : target_place(t->mnt, err);
	if (!rc)
		rc = ops->open(t, &t->opts, err);
	/* Reads the log from here on: earlier lines belong to another user of the device. */
	if (!rc && !ops->far)
		kmsg_open(&t->kmsg, opts->kmsg);
	if (rc)
		target_close(t);
	return rc;
}

void target_close(struct target *t)
{
	if (t->performing) {
		exec_release(&t->exec);
		t->performing = false;
	}
	if (t->mounted) {
		struct err ignored = ERR_INIT;
		int rc = target_umount(t, false, &ignored);
		(void)rc;
	}
	if (t->ops)
		t->ops->close(t);
	disk_close(t->disk);
	t->disk = NULL;
	kmsg_close(&t->kmsg);
	strbuf_release(&t->complaints);
	free(t->mount_opts);
	free(t->command);
	t->mount_opts = t->command = NULL;
	t->ops = NULL;
}

int target_mkfs(struct target *t, struct image *out, struct err *err)
{
	assert(t->root < 0);
	return t->ops->mkfs(t, out, err);
}

int target_recover(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->root < 0);
	return t->ops->recover ? t->ops->recover(t, said, err) : 0;
}

static int mount_as(struct target *t, bool read_only, struct strbuf *said, struct err *err)
{
	assert(t->root < 0);
	t->read_only = read_only;
	t->died = false;
	int rc = t->ops->mount(t, said, err);

	assert(t->ops->far || (rc == 0) == (t->root >= 0));
	t->mounted = rc == 0;
	if (t->mounted && t->performing)
		t->exec.root = t->root;
	return rc;
}

int target_mount(struct target *t, struct strbuf *said, struct err *err)
{
	return mount_as(t, false, said, err);
}

int target_mount_read_only(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->ops->remount);
	return mount_as(t, true, said, err);
}

int target_remount(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->ops->remount && t->mounted && t->read_only);
	int rc = t->ops->remount(t, said, err);

	t->read_only = rc != 0;
	return rc;
}

/* Takes the kernel's complaints about this target; without `of_device` only bugs and warnings. */
static void listen(struct target *t, bool of_device)
{
	/*
	 * With a FUSE server, the kernel has no file system on the device: complaints about it
	 * belong to another user.
	 */
	const char *path = t->disk && !t->command ? disk_device(t->disk) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	kmsg_read(&t->kmsg, slash ? slash + 1 : NULL, of_device, &t->complaints);
}

int target_umount(struct target *t, bool clean, struct err *err)
{
	if (t->performing)
		exec_close_all(&t->exec);
	/* A file system that is cut off before it is unmounted complains, which we have caused. */
	listen(t, true);
	int rc = t->ops->umount(t, clean, err);

	listen(t, clean || !t->cut_off);
	t->cut_off = false;
	if (!rc) {
		util_close(steal_fd(&t->root));
		t->mounted = false;
	}
	return rc;
}

int target_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->root < 0);
	return t->ops->fsck ? t->ops->fsck(t, said, err) : 0;
}

bool target_kernel_log(struct target *t, struct strbuf *out)
{
	listen(t, true);
	bool any = t->complaints.len > 0;
	if (any)
		strbuf_add(out, t->complaints.buf, t->complaints.len);
	strbuf_clear(&t->complaints);
	return any;
}

/* ---- the mounted file system, here or in a guest ---- */

bool target_is_mounted(const struct target *t)
{
	return t->ops->far ? t->mounted : t->root >= 0;
}

const char *target_fs_name(const struct target *t)
{
	const char *colon = strchr(t->ops->name, ':');

	return colon ? colon + 1 : t->ops->name;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; list && *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == n && memcmp(list, word, n) == 0)
			return true;
	return false;
}

const char *target_guarantee(const struct target *t)
{
	/* doc/guarantees.md has the sources. */
	static const struct {
		const char *fs, *mount_option, *guarantee;
	} more[] = {
		{ "f2fs", "fsync_mode=strict", "linux" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (streq(target_fs_name(t), more[i].fs) &&
		    has_word(t->mount_opts, more[i].mount_option))
			return more[i].guarantee;
	return t->ops->guarantee;
}

/* If the whole system is gone, so is the mount. */
static int far_result(struct target *t, int rc)
{
	if (rc == 1)
		t->mounted = false;
	return rc;
}

int target_begin(struct target *t, const struct workload *w, const struct exec_env *env,
		 struct err *err)
{
	assert(!t->performing);
	if (t->ops->far)
		return far_result(t, t->ops->far->begin(t, w, err));
	exec_init(&t->exec, t->root, w, env);
	t->performing = true;
	return 0;
}

int target_op(struct target *t, size_t i, int64_t *result, struct err *err)
{
	if (t->ops->far)
		return far_result(t, t->ops->far->op(t, i, result, err));
	*result = exec_op(&t->exec, i);
	return 0;
}

int target_end(struct target *t, struct err *err)
{
	if (t->ops->far)
		return t->mounted ? far_result(t, t->ops->far->end(t, err)) : 0;
	if (t->performing)
		exec_release(&t->exec);
	t->performing = false;
	return 0;
}

int target_walk(struct target *t, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	return t->ops->far ? far_result(t, t->ops->far->walk(t, opts, out, err))
			   : tree_walk(t->root, opts, out, err);
}

int target_usable(struct target *t, const struct tree *seen, struct findings *out, struct err *err)
{
	static const struct check_patience patience = { TARGET_PATIENCE_MS, util_sleep_ms };

	return t->ops->far ? far_result(t, t->ops->far->usable(t, seen, out, err))
			   : check_usable(t->root, seen, &patience, out, err);
}

int target_stat(struct target *t, const char *path, struct target_stat *out, struct err *err)
{
	struct stat st;

	*out = (struct target_stat){ 0 };
	if (t->ops->far)
		return far_result(t, t->ops->far->stat(t, path, out, err));
	if (fstatat(t->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*out = (struct target_stat){ S_ISREG(st.st_mode), (uint64_t)st.st_size,
					     (uint64_t)st.st_blocks };
	return 0;
}

int target_sync(struct target *t, struct err *err)
{
	if (t->ops->far)
		return far_result(t, t->ops->far->sync(t, err));
	return syncfs(t->root) < 0 ? err_set(err, -errno, "it cannot be synced: %m") : 0;
}

int target_symbols(struct target *t, uint64_t machine, struct strbuf *out, struct err *err)
{
	if (!t->ops->far || !t->ops->far->symbols)
		return err_set(err, -EOPNOTSUPP, "the names of its kernel are not known");
	return far_result(t, t->ops->far->symbols(t, machine, out, err));
}

int target_command(struct target *t, const struct user_command *c, struct user_end *end,
		   struct err *err)
{
	if (!t->ops->far)
		return user_command_run(c, t->mnt, end, err);
	if (!t->ops->far->command)
		return err_set(err, -EOPNOTSUPP,
			       "commands cannot be run in %s: leave --dump and --check out",
			       t->ops->name);
	return far_result(t, t->ops->far->command(t, c, end, err));
}

static struct tree_time time_of(const struct timespec *ts)
{
	return (struct tree_time){ ts->tv_sec, (uint32_t)ts->tv_nsec };
}

int target_times(struct target *t, const char *const *paths, size_t n, struct check_stamp *out,
		 struct err *err)
{
	struct stat st;

	if (t->ops->far && !t->ops->far->times)
		return err_set(err, -EOPNOTSUPP, "the times of files in %s are not known",
			       t->ops->name);
	if (t->ops->far)
		return far_result(t, t->ops->far->times(t, paths, n, out, err));
	for (size_t i = 0; i < n; i++) {
		out[i] = (struct check_stamp){ 0 };
		if (fstatat(t->root, paths[i], &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0)
			out[i] = (struct check_stamp){ true, time_of(&st.st_mtim),
						       time_of(&st.st_ctim) };
	}
	return 0;
}

int target_room(struct target *t, uint64_t *bytes, struct err *err)
{
	struct statvfs st;

	if (t->ops->far)
		return far_result(t, t->ops->far->room(t, bytes, err));
	if (syncfs(t->root) < 0 || fstatvfs(t->root, &st) < 0)
		return err_set(err, -errno, "it does not say how much room it has: %m");
	*bytes = (uint64_t)st.f_bfree * st.f_frsize;
	return 0;
}

/* The file is written, not allocated, as some file systems cannot allocate. */
int target_fill(struct target *t, const char *name, uint64_t bytes, struct err *err)
{
	enum { FILL_BLOCK = 64 << 10 };

	if (t->ops->far)
		return far_result(t, t->ops->far->fill(t, name, bytes, err));
	auto_fd fd = openat(t->root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	auto_free char *block = xcalloc(1, FILL_BLOCK);
	int rc = fd < 0 ? -errno : 0;
	for (uint64_t at = 0; at < bytes && !rc; at += FILL_BLOCK)
		rc = io_pwrite_full(fd, block, min(bytes - at, (uint64_t)FILL_BLOCK), (off_t)at);
	if (rc && rc != -ENOSPC)
		return err_set(err, rc, "room cannot be taken away: %s", strerror(-rc));
	return 0;
}

/* ---- the options of options.def ---- */

int target_opts_fit(const struct target_opts *o, const char *spec, const char *prefix,
		    struct err *err)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *t = target_find(spec, &ignored);
	bool guest = t && t->far, machine = t && strncmp(t->name, "vm:", 3) == 0;
	const struct {
		bool said, fits;
		const char *name, *whose;
	} rules[] = {
		{ o->recover, t && streq(t->name, "fuse"), "recover", "fuse: targets" },
		{ o->guest_kernel, guest, "kernel", "uml: and vm: targets" },
		{ o->guest_modules, guest, "modules", "uml: and vm: targets" },
		{ o->guest_memory, guest, "guest-memory", "uml: and vm: targets" },
		{ o->guest_files, guest, "guest-file", "uml: and vm: targets" },
		{ o->guest_cpu, machine, "guest-cpu", "vm: targets" },
		{ o->kernel_args, guest, "kernel-args", "uml: and vm: targets" },
		{ o->qemu_args, machine, "qemu-args", "vm: targets" },
		{ o->deterministic, machine, "deterministic", "vm: targets" },
		{ o->guest_pm, t && t->pm, "guest-pm",
		  "targets on persistent memory, such as vm:ext4-dax" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].said && !rules[i].fits)
			return err_set(err, -EINVAL, "%s%s is for %s; %s is none of them", prefix,
				       rules[i].name, rules[i].whose, t ? t->name : spec);
	return 0;
}
