/* SPDX-License-Identifier: MIT */
/* machine.c - tries each part of the machine that the program needs, and tells the missing ones. */
#include "target/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/io.h"
#include "base/names_in.h"
#include "record/loop.h"
#include "record/pm_tracer.h"
#include "sandbox/in_child.h"
#include "target/guest_fs.h"
#include "check/kmsg.h"
#include "guest/modules.h"
#include "base/scratch.h"
#include "target/target.h"
#include "target/tune.h"
#include "target/uml.h"
#include "target/vm.h"

enum { WORKER_MIB = 100 }; /* a worker with a disk of 300 MB was measured to need half of that */

const char *machine_status_name(enum machine_status status)
{
	static const char *const names[] = { "ok", "missing", "note" };

	return names[status];
}

/* Adds a line; takes ownership of `words` and `fix`. True if the status is ok. */
static bool add(struct machine *m, const char *name, enum machine_status status, char *words,
		char *fix)
{
	struct machine_check c = {
		.name = xstrdup(name), .status = status, .words = words, .fix = fix
	};

	vec_push(&m->checks, c);
	return status == MACHINE_OK;
}

/* ---- user and namespaces ---- */

static bool look_root(struct machine *m)
{
	if (geteuid() == 0)
		return add(m, "root", MACHINE_OK, xstrdup("yes"), NULL);
	return add(m, "root", MACHINE_MISSING,
		   xstrdup("file systems are mounted as root; outage gen, trace, report and export "
			   "need none"),
		   xstrdup("run outage as root (sudo)"));
}

static int enter(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)ctx, (void)w, (void)out;
	return scratch_enter(err);
}

/* Tries in a child, as a process cannot leave a namespace again. */
static bool look_namespace(struct machine *m)
{
	struct err err = ERR_INIT;
	struct in_child child = { .fn = enter };

	if (!in_child(&child, &err))
		return add(m, "mount namespace", MACHINE_OK, xstrdup("can be made"), NULL);
	return add(m, "mount namespace", MACHINE_MISSING, xstrdup(err.msg),
		   xstrdup("run as root outside of a container, or in a privileged one"));
}

/* ---- recorders ---- */

static void look_btf(struct machine *m)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		add(m, "kernel types (BTF)", MACHINE_OK, xstrdup("/sys/kernel/btf/vmlinux"), NULL);
	else
		add(m, "kernel types (BTF)", MACHINE_MISSING,
		    xstrdup("the bpf recorder needs them; the fuse recorder does not"),
		    xstrdup("boot a kernel with CONFIG_DEBUG_INFO_BTF=y, such as Debian's"));
}

/* True if a recorder works. */
static bool look_recorders(struct machine *m)
{
	const char *name, *first = NULL;

	for (unsigned i = 0; (name = disk_recorder_name(i, NULL)); i++) {
		struct err err = ERR_INIT;
		auto_free char *title = xasprintf("recorder %s", name);

		if (disk_probe(name, &err) == 0) {
			add(m, title, MACHINE_OK,
			    xstrdup(first ? "works" : "works; used unless another is asked for"),
			    NULL);
			first = first ? first : name;
		} else {
			add(m, title, MACHINE_MISSING, xstrdup(err.msg), NULL);
		}
	}
	return first != NULL;
}

static void look_fuse(struct machine *m)
{
	if (access("/dev/fuse", R_OK | W_OK) == 0)
		add(m, "/dev/fuse", MACHINE_OK, xstrdup("FUSE servers can be tested"), NULL);
	else
		add(m, "/dev/fuse", MACHINE_MISSING,
		    xasprintf("FUSE servers cannot be tested: %s", strerror(errno)),
		    xstrdup("modprobe fuse"));
}

static void look_fusermount(struct machine *m)
{
	auto_free char *file = proc_find("fusermount3");

	if (file)
		add(m, "fusermount3", MACHINE_OK,
		    xstrdup("a user can mount with outage reffs and outage mount"), NULL);
	else
		add(m, "fusermount3", MACHINE_MISSING,
		    xstrdup("without root, outage reffs and outage mount cannot mount"),
		    xstrdup("apt-get install fuse3"));
}

static int count_loop(void *ctx, unsigned number, const char *file)
{
	(void)number;
	(void)file;
	++*(unsigned *)ctx;
	return 0;
}

/* The number of loop devices, with a file or without. */
static unsigned all_loops(void)
{
	auto_names_in dir = names_in(AT_FDCWD, "/sys/block");
	unsigned n = 0;

	for (struct dirent *e; (e = names_next(dir));)
		n += strncmp(e->d_name, "loop", 4) == 0;
	return n;
}

static bool look_loop(struct machine *m)
{
	unsigned used = 0;

	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return add(
			m, "loop devices", MACHINE_MISSING,
			xasprintf("/dev/loop-control: %s", strerror(errno)),
			xstrdup(errno == EACCES ? "run outage as root (sudo)" : "modprobe loop"));
	loop_each(count_loop, &used);
	return add(m, "loop devices", MACHINE_OK,
		   xasprintf("%u of %u in use; more are made on demand", used, all_loops()), NULL);
}

/* ---- file systems ---- */

/* Whether some line of the file ends with `word`. */
static bool file_has_line(const char *path, const char *word)
{
	auto_strbuf text = STRBUF_INIT;
	size_t n = strlen(word);

	if (io_slurp(path, 16 << 20, &text, NULL))
		return false;
	char *rest = text.buf;
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		size_t len = strlen(line);

		if (len >= n && memcmp(line + len - n, word, n) == 0 &&
		    (len == n || line[len - n - 1] == '\t'))
			return true;
	}
	return false;
}

enum kernel_has { KERNEL_NO, KERNEL_YES, KERNEL_MODULE };

/* /proc/filesystems lists loaded file systems; the first mount loads a module. */
static enum kernel_has kernel_has(const char *fs)
{
	struct utsname u;

	if (file_has_line("/proc/filesystems", fs))
		return KERNEL_YES;
	if (uname(&u) < 0)
		return KERNEL_NO;
	auto_free char *dir = xasprintf("/lib/modules/%s", u.release);
	/* The module ext4 serves ext2, ext3 and ext4. */
	return modules_have(dir, strncmp(fs, "ext", 3) == 0 ? "ext4" : fs) ? KERNEL_MODULE
									   : KERNEL_NO;
}

/* Lists the missing programs of a target. */
static void missing_programs(const struct target_ops *t, struct strbuf *out)
{
	for (const char *const *p = t->programs; p && *p; p++) {
		auto_free char *file = proc_find(*p);

		if (!file)
			strbuf_addf(out, "%s%s", out->len ? ", " : "", *p);
	}
}

static bool look_target(struct machine *m, const struct target_ops *t)
{
	auto_strbuf missing = STRBUF_INIT;
	enum kernel_has kernel = kernel_has(t->name);

	missing_programs(t, &missing);
	if (kernel == KERNEL_NO)
		return add(
			m, t->name, MACHINE_MISSING, xstrdup("this kernel does not have it"),
			xasprintf("boot a kernel with %s, or test another file system", t->name));
	if (missing.len)
		return add(m, t->name, MACHINE_MISSING,
			   xasprintf("the kernel has it, but there is no %s", strbuf_str(&missing)),
			   xasprintf("apt-get install %s", t->package));
	return add(m, t->name, MACHINE_OK,
		   xstrdup(kernel == KERNEL_YES
				   ? "the kernel has it, and its programs are there"
				   : "the kernel has it as a module, and its programs are there"),
		   NULL);
}

static bool look_targets(struct machine *m)
{
	bool any = false;

	for (size_t i = 0; targets[i]; i++)
		if (targets[i]->in_kernel)
			any |= look_target(m, targets[i]);
	return any;
}

static bool has_programs(const struct target_ops *t)
{
	auto_strbuf missing = STRBUF_INIT;

	missing_programs(t, &missing);
	return !missing.len;
}

/* Lists the file systems that can be tested in a guest of that kind. */
static void list_guests(const char *kind, bool (*has)(const struct target_ops *t),
			struct strbuf *out)
{
	for (size_t i = 0; targets[i]; i++)
		if (strncmp(targets[i]->name, kind, strlen(kind)) == 0 && has(targets[i]))
			strbuf_addf(out, " %s", targets[i]->name);
}

/* User-mode Linux needs none of the above: neither root, nor a device, nor a mount. */
static bool look_uml(struct machine *m)
{
	static const char name[] = "user-mode Linux";
	struct err err = ERR_INIT;

	if (uml_probe(&err))
		return add(m, name, MACHINE_NOTE,
			   xasprintf("uml: targets cannot be tested: %s", err.msg),
			   err.code == -ENOENT ? xstrdup("apt-get install user-mode-linux") : NULL);
	auto_free char *release = uml_release(NULL);
	auto_strbuf list = STRBUF_INIT;
	list_guests("uml:", has_programs, &list);
	return add(m, name, MACHINE_OK,
		   xasprintf("Linux %s starts, without root:%s", release, strbuf_str(&list)), NULL);
}

static bool look_vm(struct machine *m)
{
	static const char name[] = "virtual machine";
	auto_strbuf how = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (!vm_has_program())
		return add(m, name, MACHINE_NOTE,
			   xstrdup("vm: targets cannot be tested: there is no QEMU"),
			   xstrdup("apt-get install qemu-system-x86"));
	if (!vm_has_kernel(&target_vm_ext4))
		return add(
			m, name, MACHINE_NOTE,
			xstrdup("QEMU is there, but no kernel yet; it is fetched with apt-get when "
				"one is needed, and not installed"),
			xstrdup("outage test -t vm:ext4 --bounds seq-1, or with a kernel of your "
				"own: --kernel FILE"));
	if (vm_probe(&how, &err))
		return add(m, name, MACHINE_NOTE,
			   xasprintf("vm: targets cannot be tested: %s", err.msg), NULL);
	list_guests("vm:", vm_has, &how);
	return add(m, name, MACHINE_OK, xstrdup(strbuf_str(&how)), NULL);
}

/* Tries the emulator with our tracer, for `outage pm`. */
static void look_pm(struct machine *m)
{
	static const char name[] = "pm programs";
	struct tracer t = TRACER_INIT;
	struct err err = ERR_INIT;

	if (tracer_open(&t, NULL, &err))
		add(m, name, MACHINE_NOTE,
		    xasprintf("outage pm cannot trace them by emulation: %s", err.msg), NULL);
	else
		add(m, name, MACHINE_OK, xasprintf("outage pm traces them, by QEMU %s", t.version),
		    NULL);
	tracer_close(&t);
}

/* ---- other parts ---- */

static uint64_t meminfo_mib(const char *name)
{
	auto_strbuf text = STRBUF_INIT;
	unsigned long long kib = 0;

	if (io_slurp("/proc/meminfo", 1 << 16, &text, NULL))
		return 0;
	const char *line = strstr(strbuf_str(&text), name);
	return line && sscanf(line + strlen(name), "%llu", &kib) == 1 ? kib / 1024 : 0;
}

uint64_t machine_free_mib(void)
{
	return meminfo_mib("MemAvailable:") + meminfo_mib("SwapFree:");
}

static bool look_memory(struct machine *m)
{
	uint64_t have = meminfo_mib("MemAvailable:");
	auto_fd fd = memfd_create("outage", MFD_CLOEXEC);
	unsigned jobs = 2 * (unsigned)max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	uint64_t want = (uint64_t)jobs * WORKER_MIB;

	if (fd < 0)
		return add(m, "memory", MACHINE_MISSING,
			   xasprintf("no memory for disks: %s", strerror(errno)),
			   xstrdup("a kernel with CONFIG_MEMFD_CREATE"));
	if (have && have < want) {
		add(m, "memory", MACHINE_NOTE,
		    xasprintf("%llu MiB are free; %u workers of btrfs would take up to %llu",
			      (unsigned long long)have, jobs, (unsigned long long)want),
		    xasprintf("outage test -j %llu",
			      (unsigned long long)max(have / WORKER_MIB, (uint64_t)1)));
		return true;
	}
	return add(m, "memory", MACHINE_OK,
		   xasprintf("%llu MiB are free for disks", (unsigned long long)have), NULL);
}

static void look_log(struct machine *m)
{
	struct kmsg log;

	kmsg_open(&log, NULL);
	if (log.fd >= 0)
		add(m, "kernel log", MACHINE_OK, xstrdup("can be read"), NULL);
	else
		add(m, "kernel log", MACHINE_NOTE,
		    xasprintf("/dev/kmsg: %s; what the kernel complains of is not seen",
			      strerror(errno)),
		    xstrdup("run as root, and in a container with /dev/kmsg"));
	kmsg_close(&log);
}

static void look_console(struct machine *m)
{
	int level = tune_console_level();

	if (tune_console_is_slow())
		add(m, "console", MACHINE_NOTE,
		    xasprintf("log level %d: the kernel waits for a serial line at each message",
			      level),
		    xstrdup("outage test --tune (lowers it while it runs)"));
	else
		add(m, "console", MACHINE_OK, xasprintf("log level %d", level), NULL);
}

static void look_kthreadd(struct machine *m)
{
	if (tune_kthreadd_raised())
		add(m, "kthreadd", MACHINE_NOTE,
		    xstrdup("has real-time priority, as while a run with --tune lasts"),
		    xstrdup("if there is no such run: chrt --other --pid 0 2"));
}

void machine_look(struct machine *m)
{
	bool usable = look_root(m);

	usable &= look_namespace(m);
	usable &= look_loop(m);
	look_btf(m);
	look_fuse(m);
	look_fusermount(m);
	usable &= look_recorders(m);
	usable &= look_targets(m);
	m->guests = look_uml(m);
	m->guests |= look_vm(m);
	look_pm(m);
	usable &= look_memory(m);
	look_log(m);
	look_console(m);
	look_kthreadd(m);
	m->usable = usable;
}

void machine_release(struct machine *m)
{
	vec_release_each(p, &m->checks, free(p->name), free(p->words), free(p->fix));
}

void machine_summary(struct strbuf *out)
{
	auto_strbuf can = STRBUF_INIT;

	for (size_t i = 0; targets[i]; i++)
		if (targets[i]->in_kernel && has_programs(targets[i]) &&
		    kernel_has(targets[i]->name))
			strbuf_addf(&can, "%s%s", can.len ? ", " : "", targets[i]->name);
	if (access("/dev/fuse", F_OK) == 0)
		strbuf_addf(&can, "%sFUSE servers", can.len ? ", " : "");
	auto_free char *uml = proc_find("linux.uml");
	if (!can.len && uml)
		strbuf_adds(out, "uml:ext4 and other file systems of user-mode Linux can be tested "
				 "here");
	else if (!can.len)
		strbuf_adds(out, "no file system can be tested here");
	else
		strbuf_addf(out, "%s can be tested here%s%s", strbuf_str(&can),
			    geteuid() == 0 ? "" : ", by root",
			    !uml	     ? ""
			    : geteuid() == 0 ? "; so can uml:ext4"
					     : "; uml:ext4 by anyone");
}
