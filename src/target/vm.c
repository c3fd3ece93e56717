/* SPDX-License-Identifier: MIT */
/*
 * vm.c - targets in QEMU, with any kernel that boots in it: by KVM if that works, else emulated.
 *
 * All but the start is as in user-mode Linux: the same agent, the same two disks. As an emulated
 * kernel takes seconds to boot, it boots only once. The machine is then stopped, its memory, which
 * is a file, is copied, and the state of its devices is saved; every worker, and every new start
 * after a panic, is a clone of that. The memory of a clone cannot be shared with the template until
 * it is written to: the disks, which are served by this process, must see what the guest writes.
 */
#include <errno.h>
#include <unistd.h>

#include "base/number.h"
#include "base/proc.h"
#include "record/pm_disk.h"
#include "record/vhost_disk.h"
#include "guest/guest_root.h"
#include "target/machine.h"
#include "guest/modules.h"
#include "target/vm.h"
#include "target/vm_impl.h"

enum {
	FLASH_MAX = 64 * MIB,
	CLOCK_START = 1704067200, /* 2024-01-01 */
	CPUS_MAX = 8,
	PM_UNIT = 2 * MIB, /* a kernel maps it in pieces of this size */
};

#define PM_BELOW_MAX (3ULL << 30)

#define QEMU "qemu-system-x86_64"

/* True if the kernel has a driver, as far as lists tell; that of ext4 may serve ext2 and ext3. */
static bool has_fs(const char *dir, const char *fs)
{
	auto_free char *list = xasprintf("%s/modules.builtin", dir);

	return modules_have(dir, fs) || access(list, F_OK) < 0 ||
	       (strncmp(fs, "ext", 3) == 0 && modules_have(dir, "ext4"));
}

static const char *module_of(const struct host_fs *fs)
{
	return fs->module ? fs->module : fs->name;
}

/* The module to load for a file system. */
static const char *fs_module(const char *dir, const char *fs)
{
	return strncmp(fs, "ext", 3) == 0 && !modules_have(dir, fs) ? "ext4" : fs;
}

static int make_root(struct vm *v, const char *files, struct err *err)
{
	/*
	 * Modules that others request by another name when they are loaded come first.
	 */
	static const char *const first[] = { "virtio_pci",     "virtio_blk",	 "crc32c_generic",
					     "crc32_generic",  "xxhash_generic", "sha256_generic",
					     "blake2b_generic" };
	const struct guest_flash *flash = v->base.flash;
	const struct host_fs *fs = v->base.fs;
	const char *dir = v->kernel.modules;
	const char *const pm[] = { v->nvdimm ? "nfit" : "nd_e820", "nd_pmem" };
	const char *modules[ARRAY_SIZE(first) + ARRAY_SIZE(flash->needs) + ARRAY_SIZE(pm) + 3] = {
		NULL
	};
	const struct guest_module_args args[] = { { flash ? "mtdram" : NULL, v->flash }, { 0 } };
	const char *programs[] = { fs->recover ? fs->recover[0] : NULL,
				   fs->repair ? fs->repair[0] : NULL, NULL };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		modules[n++] = first[i];
	for (size_t i = 0; flash && i < ARRAY_SIZE(flash->needs) && flash->needs[i]; i++)
		modules[n++] = flash->needs[i];
	modules[n++] = dir ? fs_module(dir, module_of(fs)) : fs->name;
	if (flash)
		modules[n++] = "mtdram";
	for (size_t i = 0; v->pm_size && i < ARRAY_SIZE(pm); i++)
		modules[n++] = pm[i];
	struct guest_root root = { .dir = dir,
				   .names = modules,
				   .args = args,
				   .words = &v->base.args,
				   .programs = programs,
				   .selftest = v->pm_size != 0,
				   .files = files,
				   .memory = v->base.memory };

	v->base.root = guest_root(&root, &v->base.files_hash, err);
	return min(v->base.root, 0);
}

/* True if the kernel has a module; also without a list of built-in ones: the boot will show. */
static bool has(const struct vm *v, const char *module)
{
	return !v->kernel.modules || has_fs(v->kernel.modules, module);
}

/* ---- requirements ---- */

static int needs_programs(const struct target_ops *ops, struct err *err)
{
	for (const char *const *p = ops->programs; *p; p++) {
		auto_free char *file = proc_find(*p);

		if (file)
			continue;
		if (streq(*p, QEMU))
			return err_set(err, -ENOENT,
				       QEMU " is not there; install it with: apt-get install "
					    "qemu-system-x86");
		return err_set(err, -ENOENT,
			       "%s needs %s, which is not there; install it with: apt-get install "
			       "%s",
			       ops->name, *p, ops->package);
	}
	return 0;
}

static int needs_memory(const struct target_opts *opts, struct err *err)
{
	uint64_t mib = (opts->guest_memory ? opts->guest_memory : TARGET_VM_MEMORY) / MIB;
	uint64_t has = machine_free_mib();

	if (!has || has >= mib)
		return 0;
	return err_set(err, -ENOMEM,
		       "a virtual machine has %llu MiB of memory (--guest-memory), and this "
		       "machine has only %llu MiB to spare",
		       (unsigned long long)mib, (unsigned long long)has);
}

/* Checks all requirements but the kernel, which may have to be fetched. */
static int needs_parts(const struct target_ops *ops, const struct target_opts *opts,
		       struct err *err)
{
	int rc = needs_programs(ops, err);
	auto_free char *qemu = proc_find(QEMU);

	if (!rc && ops->pm)
		rc = vm_needs_plugins(qemu, err);
	return rc ? rc : needs_memory(opts, err);
}

static int find_kernel(const struct host_fs *fs, const struct target_opts *opts, bool fetch,
		       struct vm_kernel *out, struct err *err)
{
	if (fs->foreign && !opts->guest_kernel)
		return err_set(err, -ENODEV,
			       "no kernel of Debian 12 has %s: name one that has it with --kernel",
			       module_of(fs));
	return vm_kernel_find(opts->guest_kernel, opts->guest_modules, module_of(fs), fetch, out,
			      err);
}

/* Finds the kernel for a spec: "vm:ext4,OPTIONS", or "vm:pm:NAME,OPTIONS". */
static int find_kernel_of(const struct target_opts *opts, bool fetch, struct vm_kernel *out,
			  struct err *err)
{
	static const char any[] = GUEST_ANY_PM ":";
	const char *name = opts->spec + strlen(strncmp(opts->spec, any, strlen(any)) ? "vm:" : any);
	auto_free char *fs = xmemdupz(name, strcspn(name, ","));
	const struct host_fs *known = guest_fs_find(fs), named = { .name = fs };

	return find_kernel(known ? known : &named, opts, fetch, out, err);
}

int vm_check(const struct target_ops *ops, const struct target_opts *opts, struct err *err)
{
	struct vm_kernel k;
	int rc = needs_parts(ops, opts, err);

	if (!rc)
		rc = find_kernel_of(opts, true, &k, err);
	if (!rc)
		vm_kernel_release(&k);
	return rc;
}

/* ---- opening ---- */

static int find_parts(struct target *t, const struct target_opts *opts, struct err *err)
{
	static const char *const virtio[] = { "virtio_pci", "virtio_blk" };
	struct vm *v = vm_own(t);
	const char *fs = module_of(v->base.fs);

	int rc = needs_parts(t->ops, opts, err);
	if (!rc)
		rc = find_kernel(v->base.fs, opts, true, &v->kernel, err);
	if (rc)
		return rc;
	v->qemu = proc_find(QEMU);
	v->base.kernel = xstrdup(v->kernel.file);
	if (v->nvdimm)
		rc = vm_kernel_complete(&v->kernel, "kernel/drivers/acpi/nfit/nfit.ko", err);
	if (rc)
		return rc;
	/* Other file systems are in no list; mounting shows whether the kernel has them. */
	bool listed = v->base.fs != &v->base.named.fs;
	const char *lacks = listed && !has(v, fs)			     ? fs
			    : v->flash && !has(v, "mtdram")		     ? "mtdram"
			    : v->nvdimm && !has(v, "nfit")		     ? "nfit"
			    : v->pm_size && !v->nvdimm && !has(v, "nd_e820") ? "nd_e820"
			    : v->pm_size && !has(v, "nd_pmem")		     ? "nd_pmem"
									     : NULL;
	if (lacks)
		return err_set(err, -ENODEV,
			       "the kernel %s has no %s: neither built in nor as a module in %s; "
			       "name one that has it with --kernel",
			       v->kernel.file, lacks, v->kernel.modules);
	for (size_t i = 0; v->kernel.modules && !rc && i < ARRAY_SIZE(virtio); i++)
		rc = modules_need(v->kernel.modules, virtio[i], err);
	if (!rc)
		rc = make_root(v, opts->guest_files, err);
	t->opts.files_hash = v->base.files_hash;
	return rc;
}

/* Chooses the size of the flash that the driver emulates. */
static int place_flash(struct target *t, struct err *err)
{
	struct vm *v = vm_own(t);
	uint32_t block = v->base.flash->erase_block;

	if (t->opts.size % block || t->opts.size > FLASH_MAX)
		return err_set(err, -EINVAL,
			       "flash of %llu bytes cannot be: --size is a multiple of %u, and at "
			       "most %dM",
			       (unsigned long long)t->opts.size, block, FLASH_MAX / MIB);
	if (v->base.memory < TARGET_MEMORY_MIN + t->opts.size)
		return err_set(err, -EINVAL,
			       "flash takes a part of the guest's memory: --guest-memory is at "
			       "least %lluM for it",
			       (unsigned long long)(TARGET_MEMORY_MIN + t->opts.size) / MIB);
	v->flash_size = t->opts.size;
	v->flash = xasprintf("total_size=%llu erase_size=%u",
			     (unsigned long long)t->opts.size / 1024, block / 1024);
	return 0;
}

static int place_pm(struct target *t, const struct target_opts *opts, struct err *err)
{
	struct vm *v = vm_own(t);

	v->nvdimm = opts->guest_pm && streq(opts->guest_pm, "nvdimm");
	if (opts->guest_pm && !v->nvdimm && !streq(opts->guest_pm, "e820"))
		return err_set(err, -EINVAL, "--guest-pm is e820 or nvdimm, not '%.40s'",
			       opts->guest_pm);
	/* A range of e820 has no firmware that could report it. */
	v->eadr = v->nvdimm && opts->eadr;
	if (v->nvdimm) {
		v->base.head = NVDIMM_HEAD;
		v->base.put_head = vm_nvdimm_head;
		if (!opts->size)
			t->opts.size += NVDIMM_HEAD;
		else if (opts->size <= NVDIMM_HEAD)
			return err_set(err, -EINVAL,
				       "an NVDIMM of %llu bytes cannot be: its first %dM are for "
				       "the kernel",
				       (unsigned long long)opts->size, NVDIMM_HEAD / MIB);
	}
	if (t->opts.size % PM_UNIT)
		return err_set(err, -EINVAL,
			       "persistent memory of %llu bytes cannot be: --size is a multiple of "
			       "%dM",
			       (unsigned long long)t->opts.size, PM_UNIT / MIB);
	if (v->base.memory > PM_BELOW_MAX)
		return err_set(err, -EINVAL,
			       "a guest with persistent memory has other memory of at most %lluM: "
			       "see --guest-memory",
			       PM_BELOW_MAX / MIB);
	v->pm_size = t->opts.size;
	return 0;
}

/* Parses the number of processors and their newest flush instruction: "2,clflush". */
static int choose_cpus(struct vm *v, const char *words, struct err *err)
{
	static const char *const flush[] = { "clwb", "clflushopt", "clflush" };
	auto_free char *copy = xstrdup(words ? words : "1");
	char *rest = copy;

	v->cpus = 1;
	for (char *word; (word = strsep(&rest, ","));) {
		uint64_t n = 0;
		size_t i = 0;

		while (i < ARRAY_SIZE(flush) && !streq(word, flush[i]))
			i++;
		if (i == ARRAY_SIZE(flush) && (number_parse(word, &n) || !n || n > CPUS_MAX))
			return err_set(err, -EINVAL,
				       "--guest-cpu is a number of processors from 1 to %d, clwb, "
				       "clflushopt or clflush, or both with a comma; not '%.40s'",
				       CPUS_MAX, words);
		if (i == ARRAY_SIZE(flush)) {
			v->cpus = (unsigned)n;
			continue;
		}
		v->no_clwb = i >= 1;
		v->no_clflushopt = i >= 2;
	}
	if (v->deterministic && v->cpus > 1)
		return err_set(err, -EINVAL, "--deterministic is for one processor");
	return 0;
}

static int vm_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	struct vm *v = xcalloc(1, sizeof(*v));
	int rc = guest_target_init(t, &v->base, opts, TARGET_VM_MEMORY, err);

	v->base.start = vm_start;
	v->tracer = (struct tracer)TRACER_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(v->monitors); i++)
		v->monitors[i] = -1;
	v->deterministic = v->emulate = opts->deterministic;
	v->base.clock = opts->deterministic ? CLOCK_START : 0;
	if (!rc)
		rc = choose_cpus(v, opts->guest_cpu, err);
	if (!rc)
		rc = guest_args_split(opts->qemu_args, "--qemu-args", &v->qemu_args, err);
	if (!rc && v->base.flash)
		rc = place_flash(t, err);
	if (!rc && t->ops->pm)
		rc = place_pm(t, opts, err);
	if (!rc)
		rc = find_parts(t, opts, err);
	if (!rc)
		rc = guest_target_ready(t, err);
	if (rc)
		return rc;
	vm_init_template(t);
	if (!v->pm_size)
		vhost_offer_log(vhost_disk_device(t->disk));
	else
		vm_drive_tracing(t);
	for (size_t i = 0; i < ARRAY_SIZE(v->base.guests); i++)
		vhost_offer_log(&v->base.guests[i].mail.device);
	return 0;
}

static void vm_close(struct target *t)
{
	struct vm *v = vm_own(t);

	if (!v)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(v->monitors); i++)
		util_close(v->monitors[i]);
	vm_kernel_release(&v->kernel);
	free(v->qemu);
	free(v->flash);
	guest_args_release(&v->qemu_args);
	tracer_close(&v->tracer);
	if (v->has_template)
		vm_template_release(&v->template);
	guest_target_close(t);
}

char *vm_release(const struct target_opts *opts)
{
	struct vm_kernel k;
	struct err ignored = ERR_INIT;

	if (find_kernel_of(opts, false, &k, &ignored))
		return xstrdup("unknown");
	char *release = steal(k.release);
	vm_kernel_release(&k);
	return release;
}

int vm_probe(struct strbuf *how, struct err *err)
{
	struct target_opts opts = { .spec = "vm:ext4" };
	struct vm_kernel k;
	struct target t;
	int rc = vm_kernel_find(NULL, NULL, "ext4", false, &k, err);

	if (rc)
		return rc;
	vm_kernel_release(&k);
	rc = target_open_as(&target_vm_ext4, &opts, &t, err);
	if (rc)
		return rc;
	rc = vm_start(&t, err);
	const char *why = vm_why_no_kvm();
	if (!rc)
		strbuf_addf(how, "Linux %s starts, %s%s;", vm_own(&t)->kernel.release,
			    vm_own(&t)->emulate ? "emulated: " : "by KVM",
			    !vm_own(&t)->emulate ? ""
			    : why		 ? why
						 : "KVM does not work here");
	target_close(&t);
	return rc;
}

bool vm_has_program(void)
{
	auto_free char *qemu = proc_find(QEMU);

	return qemu != NULL;
}

bool vm_has_kernel(const struct target_ops *ops)
{
	struct target_opts opts = { .spec = ops->name };
	struct err ignored = ERR_INIT;
	struct vm_kernel k;

	/* The name of the file system is not given. */
	if (streq(ops->name, GUEST_ANY_PM) || find_kernel_of(&opts, false, &k, &ignored))
		return false;
	vm_kernel_release(&k);
	return true;
}

bool vm_has(const struct target_ops *ops)
{
	struct target_opts opts = { .spec = ops->name };
	struct err ignored = ERR_INIT;

	return vm_has_kernel(ops) && !needs_parts(ops, &opts, &ignored);
}

#define VM_TARGET_AS(coarse_, ...)                                                                 \
	GUEST_TARGET(vm, QEMU, "of any kernel, in a virtual machine, without root", vm_open,       \
		     vm_close, coarse_, __VA_ARGS__)
#define VM_TARGET(...)	     VM_TARGET_AS(false, __VA_ARGS__)
#define VM_FLASH_TARGET(...) VM_TARGET_AS(true, __VA_ARGS__)

GUEST_FILE_SYSTEMS(VM_TARGET)
GUEST_FLASH_FILE_SYSTEMS(VM_FLASH_TARGET)
/* No kernel of Debian 12 has bcachefs; a kernel that the user names may. */
VM_TARGET(bcachefs, "posix", guest_lost_found, "bcachefs-tools", "bcachefs")

#define VM_PM_TARGET(id_, name_, guarantee_, ignore_, package_, ...)                               \
	static const char *const id_##_programs[] = { QEMU, ##__VA_ARGS__, NULL };                 \
	const struct target_ops target_vm_##id_ = {                                                \
		.name = "vm:" name_,                                                               \
		.help = name_ " of any kernel, on persistent memory of a virtual machine",         \
		.guarantee = guarantee_,                                                           \
		.ignore = ignore_,                                                                 \
		.programs = id_##_programs,                                                        \
		.package = package_,                                                               \
		.pm = true,                                                                        \
		.pm_loads = true,                                                                  \
		.open = vm_open,                                                                   \
		.close = vm_close,                                                                 \
		.remount = guest_target_remount,                                                   \
		GUEST_TARGET_CALLS,                                                                \
	};

VM_PM_TARGET(ext4_dax, "ext4-dax", "linux", guest_lost_found, "e2fsprogs", "mke2fs", "e2fsck")
VM_PM_TARGET(xfs_dax, "xfs-dax", "linux", guest_nothing, "xfsprogs", "mkfs.xfs", "xfs_repair")
/* File systems for persistent memory alone: the effect of an operation is durable when it ends. */
VM_PM_TARGET(nova, "nova", "sync", guest_nothing, "qemu-system-x86")
VM_PM_TARGET(pm, "pm", "sync", guest_lost_found, "qemu-system-x86")
