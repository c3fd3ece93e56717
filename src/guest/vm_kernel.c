/* SPDX-License-Identifier: MIT */
/* vm_kernel.c - finds, fetches, unpacks and opens the kernel of a virtual machine. */
#include "guest/vm_kernel.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/names_in.h"
#include "base/owner.h"
#include "base/proc.h"
#include "guest/cache.h"
#include "guest/modules.h"

enum {
	ORDER_MAX = 16 << 20, /* bytes of a list of modules */
	ASK_MS = 30000,
	FETCH_MS = 600000,
};

void vm_kernel_release(struct vm_kernel *k)
{
	free(k->file);
	free(k->modules);
	free(k->release);
	*k = (struct vm_kernel){ 0 };
}

/* ---- the file ---- */

static int open_in_memory(const struct strbuf *text, struct err *err)
{
	auto_fd fd = memfd_create("outage-kernel", MFD_CLOEXEC);

	if (fd < 0 || io_write_full(fd, text->buf, text->len))
		return err_set(err, -ENOMEM, "no memory for a guest's kernel");
	return steal_fd(&fd);
}

enum vm_kernel_form vm_kernel_form(const char *file)
{
	auto_strbuf text = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	return kernel_image_read(file, &text, &ignored) ? VM_KERNEL_NONE : kernel_image_form(&text);
}

int vm_kernel_open_stub(struct err *err)
{
	enum { BYTES = 8192, AT_NOTE = 1024, AT_LOAD = 4096, LOAD = 16 << 20 };
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr part[2];
	} elf = {
		.head = { .e_ident = ELFMAG,
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = LOAD,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.part = { { .p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_offset = AT_LOAD,
			    .p_vaddr = LOAD,
			    .p_paddr = LOAD,
			    .p_filesz = 16,
			    .p_memsz = 16,
			    .p_align = 4096 },
			  { .p_type = PT_NOTE,
			    .p_offset = AT_NOTE,
			    .p_filesz = 24,
			    .p_memsz = 24,
			    .p_align = 4 } },
	};
	struct {
		Elf64_Nhdr head;
		char name[4];
		uint64_t entry;
	} __attribute__((packed)) note = { { 4, 8, KERNEL_NOTE_PVH }, "Xen", LOAD };
	auto_free char *bytes = xcalloc(1, BYTES);
	auto_strbuf text = STRBUF_INIT;

	elf.head.e_ident[EI_CLASS] = ELFCLASS64;
	elf.head.e_ident[EI_DATA] = ELFDATA2LSB;
	elf.head.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(bytes, &elf, sizeof(elf));
	memcpy(bytes + AT_NOTE, &note, sizeof(note));
	strbuf_add(&text, bytes, BYTES);
	assert(kernel_image_form(&text) == VM_KERNEL_PLAIN);
	return open_in_memory(&text, err);
}

int vm_kernel_open(const struct vm_kernel *k, struct err *err)
{
	auto_strbuf text = STRBUF_INIT, out = STRBUF_INIT;
	int rc = kernel_image_read(k->file, &text, err);

	if (!rc) /* the file may have changed since it was checked */
		rc = kernel_image_check(k->file, &text, err);
	if (rc)
		return rc;
	if (kernel_image_form(&text) != VM_KERNEL_BZIMAGE)
		return open_in_memory(&text, err);
	rc = kernel_image_unpack(&text, &out, err);
	if (rc < 0)
		return err_context(err, "the kernel %s cannot be used", k->file);
	if (!rc && kernel_image_form(&out) == VM_KERNEL_PLAIN)
		return open_in_memory(&out, err);
	const char *format = kernel_image_format(&text);
	log_info("%s is booted as it is, which takes a little longer: it %s%s", k->file,
		 rc ? "is compressed by " : "was built without CONFIG_PVH", rc ? format : "");
	return open_in_memory(&text, err);
}

/* Finds the folder of modules, beside the file or on this machine, as in the package. */
static char *find_modules(const char *file, const char *release)
{
	const char *slash = strrchr(file, '/');
	char *near = xasprintf("%.*s/../lib/modules/%s", slash ? (int)(slash - file) : 1,
			       slash ? file : ".", release);

	if (access(near, F_OK) == 0)
		return near;
	free(near);
	char *here = xasprintf("/lib/modules/%s", release);
	if (access(here, F_OK) == 0)
		return here;
	free(here);
	return NULL;
}

static int look_at(const char *file, const char *modules, struct vm_kernel *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = kernel_image_read(file, &text, err);

	if (!rc)
		rc = kernel_image_check(file, &text, err);
	if (rc)
		return rc;
	enum vm_kernel_form form = kernel_image_form(&text);
	if (form == VM_KERNEL_PROGRAM)
		return err_set(err, -EINVAL,
			       "%s is a program, and no machine can boot it: for a kernel of "
			       "user-mode Linux use a uml: target; a vmlinux must have been built "
			       "with CONFIG_PVH, or give the bzImage",
			       file);
	auto_free char *release = form == VM_KERNEL_NONE ? NULL : kernel_image_release(&text);
	if (!release)
		return err_set(err, -EINVAL,
			       "%s is %s: --kernel wants a bzImage (vmlinuz) or a vmlinux", file,
			       text.len ? "no kernel that a virtual machine can boot"
					: "an empty file, and no kernel");
	*out = (struct vm_kernel){ .file = xstrdup(file),
				   .modules = modules ? xstrdup(modules)
						      : find_modules(file, release) };
	out->release = steal(release);
	return 0;
}

/* ---- Debian's ---- */

/* True if Debian's small kernel for cloud machines has the file system. */
static bool is_in_small(const char *fs)
{
	static const char *const names[] = { "ext4", "ext3", "ext2", "xfs", "btrfs" };

	return any_of(i, ARRAY_SIZE(names), streq(names[i], fs));
}

/* The package with a kernel that has `fs`. */
static const char *vm_kernel_package(const char *fs)
{
	return is_in_small(fs) ? "linux-image-cloud-amd64" : "linux-image-amd64";
}

static bool starts_with(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

static bool ends_with(const char *text, const char *word)
{
	size_t n = strlen(text), w = strlen(word);

	return n >= w && streq(text + n - w, word);
}

/* Compares two packages: the smaller kernel boots faster; otherwise the newer one is better. */
static bool is_better(const char *a, const char *b)
{
	bool small_a = ends_with(a, "-cloud-amd64"), small_b = ends_with(b, "-cloud-amd64");

	return small_a != small_b ? small_a : strverscmp(a, b) > 0;
}

/* Returns the best folder in `dir` with an unpacked package that has `fs`; or NULL. */
static char *find_unpacked(const char *dir, const char *fs)
{
	auto_names_in d = names_in(AT_FDCWD, dir);
	char *best = NULL;

	for (struct dirent *e; (e = names_next(d));) {
		if (!starts_with(e->d_name, "linux-image-") || !ends_with(e->d_name, "-amd64") ||
		    (ends_with(e->d_name, "-cloud-amd64") && !is_in_small(fs)) ||
		    (best && !is_better(e->d_name, best)))
			continue;
		free(best);
		best = xstrdup(e->d_name);
	}
	return best;
}

static int look_at_unpacked(const char *dir, const char *name, const char *modules,
			    struct vm_kernel *out, struct err *err)
{
	auto_free char *file =
		xasprintf("%s/%s/boot/vmlinuz-%s", dir, name, name + strlen("linux-image-"));

	return look_at(file, modules, out, err);
}

/* Runs a program of Debian. Returns 0 and its output, or -errno and the reason. */
static int run(const char *const *argv, const char *cwd, uint64_t timeout_ms, struct strbuf *said,
	       struct err *err)
{
	struct proc_opts how = {
		.argv = argv, .cwd = cwd, .timeout_ms = timeout_ms, .merge_stderr = true
	};
	struct proc_result res;
	int rc = proc_run(&how, &res, err);

	if (rc)
		return rc;
	strbuf_adds(said, strbuf_str(&res.out));
	if (res.exit_code) {
		const char *text = strbuf_str(&res.out), *e = strstr(text, "E: ");

		e = e ? e : text;
		rc = err_set(err, -EIO, "%s failed: %.*s", argv[0], (int)strcspn(e, "\n"), e);
	}
	proc_result_release(&res);
	return rc;
}

/* Asks for the package that a metapackage stands for today. */
static char *ask_apt(const char *package, struct err *err)
{
	const char *argv[] = { "apt-cache", "depends", package, NULL };
	auto_strbuf said = STRBUF_INIT;

	if (run(argv, NULL, ASK_MS, &said, err))
		return NULL;
	const char *at = strstr(strbuf_str(&said), "Depends: linux-image-");
	if (at)
		return kernel_image_word(at + strlen("Depends: "), said.buf + said.len);
	err_set(err, -ENOENT, "apt does not know %s (apt-get update may help)", package);
	return NULL;
}

/*
 * Unpacks the parts that a guest may need into `dir`: a whole package is ten times as large, with
 * drivers for hardware that no emulator has.
 */
static int unpack_package(const char *dir, struct err *err)
{
	static const char script[] =
		"dpkg-deb --fsys-tarfile ./*.deb >all.tar && rm -f ./*.deb && "
		"tar -xf all.tar --wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' "
		"'./lib/modules/*/kernel/fs' './lib/modules/*/kernel/lib' "
		"'./lib/modules/*/kernel/crypto' './lib/modules/*/kernel/arch/x86/crypto' "
		"'./lib/modules/*/kernel/drivers/virtio' './lib/modules/*/kernel/drivers/block' && "
		"{ tar -xf all.tar --wildcards './lib/modules/*/kernel/drivers/mtd' "
		"'./lib/modules/*/kernel/drivers/nvdimm' './lib/modules/*/kernel/drivers/dax' "
		"'./lib/modules/*/kernel/drivers/acpi/nfit' 2>&- || :; } && rm -f all.tar";
	const char *argv[] = { "sh", "-c", script, NULL };
	auto_strbuf said = STRBUF_INIT;

	return run(argv, dir, FETCH_MS, &said, err);
}

static void remove_tree(const char *dir)
{
	const char *argv[] = { "rm", "-rf", "--", dir, NULL };
	struct err ignored = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;
	int rc = run(argv, NULL, ASK_MS, &said, &ignored);

	(void)rc; /* leftovers are found by their name later */
}

/* Fetches and unpacks a package, which appears whole or not at all. */
static int fetch_package(const char *dir, const char *name, struct err *err)
{
	const char *argv[] = { "apt-get", "-q", "download", name, NULL };
	char owner[OWNER_NAME_SIZE];
	auto_free char *tmp = xasprintf("%s/%s", dir, owner_name("fetch", owner));
	auto_free char *to = xasprintf("%s/%s", dir, name);
	auto_strbuf said = STRBUF_INIT;

	log_notice("fetching %s with apt-get, into %s", name, dir);
	if (mkdir(tmp, 0700) < 0)
		return err_set(err, -errno, "cannot make %s: %m", tmp);
	int rc = run(argv, tmp, FETCH_MS, &said, err);
	if (!rc)
		rc = unpack_package(tmp, err);
	/* If it replaces an older one, other users find one of the two at any time. */
	bool fresh = !rc && rename(tmp, to) == 0;
	if (!rc && !fresh && renameat2(AT_FDCWD, tmp, AT_FDCWD, to, RENAME_EXCHANGE) < 0)
		rc = err_set(err, -errno, "cannot make %s: %m", to);
	if (!fresh)
		remove_tree(tmp);
	return rc;
}

/* Removes unfinished folders of processes that are gone. */
static void remove_leftovers(const char *dir)
{
	auto_names_in d = names_in(AT_FDCWD, dir);

	for (struct dirent *e; (e = names_next(d));)
		if (owner_state(e->d_name, NULL) == OWNER_GONE) {
			auto_free char *path = xasprintf("%s/%s", dir, e->d_name);

			remove_tree(path);
		}
}

/* One process fetches, and the others wait for it. */
static int fetch(const char *dir, const char *fs, struct err *err)
{
	auto_free char *lock = xasprintf("%s/lock", dir);
	auto_fd fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, -errno, "cannot lock %s: %m", lock);
	auto_free char *there = find_unpacked(dir, fs);
	if (there)
		return 0;
	remove_leftovers(dir);
	auto_free char *name = ask_apt(vm_kernel_package(fs), err);
	return name ? fetch_package(dir, name, err) : -EIO;
}

static char *kernel_dir(void)
{
	auto_free char *cache = cache_dir();
	char *dir = cache ? xasprintf("%s/kernels", cache) : NULL;

	if (dir && mkdir(dir, 0700) < 0 && errno != EEXIST) {
		free(dir);
		return NULL;
	}
	return dir;
}

/* True if the kernel's package has the module, and the unpacked files lack it. */
static bool left_out(const struct vm_kernel *k, const char *module)
{
	auto_free char *order = xasprintf("%s/modules.order", k->modules);
	auto_strbuf text = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	return !modules_has_file(k->modules, module) &&
	       !io_slurp(order, ORDER_MAX, &text, &ignored) && strstr(strbuf_str(&text), module);
}

int vm_kernel_complete(const struct vm_kernel *k, const char *module, struct err *err)
{
	auto_free char *dir = kernel_dir();

	if (!dir || !k->modules || !starts_with(k->file, dir) || !left_out(k, module))
		return 0;
	auto_free char *lock = xasprintf("%s/lock", dir);
	auto_free char *name = xasprintf("linux-image-%s", k->release);
	auto_fd fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, -errno, "cannot lock %s: %m", lock);
	int rc = left_out(k, module) ? fetch_package(dir, name, err) : 0;
	return rc ? err_context(err,
				"the kernel in the cache was unpacked without %s, and is not to "
				"be had anew",
				module)
		  : 0;
}

static int find_debian(const char *modules, const char *fs, bool may_fetch, struct vm_kernel *out,
		       struct err *err)
{
	auto_free char *dir = kernel_dir();
	struct err why = ERR_INIT;

	if (!dir)
		return err_set(err, -ENOENT,
			       "there is no cache to keep a kernel in (OUTAGE_CACHE is empty, or "
			       "there is no home); name one with --kernel FILE");
	auto_free char *name = find_unpacked(dir, fs);
	if (!name && !may_fetch)
		return err_set(err, -ENOENT, "%s is not in the cache yet", vm_kernel_package(fs));
	if (!name) {
		int rc = fetch(dir, fs, &why);

		if (rc)
			return err_set(err, rc,
				       "no kernel for a virtual machine: %s; name one with "
				       "--kernel FILE, or see to it that apt-get download %s works",
				       why.msg, vm_kernel_package(fs));
		name = find_unpacked(dir, fs);
	}
	return name ? look_at_unpacked(dir, name, modules, out, err)
		    : err_set(err, -ENOENT, "the kernel in %s is gone", dir);
}

int vm_kernel_find(const char *file, const char *modules, const char *fs, bool may_fetch,
		   struct vm_kernel *out, struct err *err)
{
	return file ? look_at(file, modules, out, err)
		    : find_debian(modules, fs, may_fetch, out, err);
}
