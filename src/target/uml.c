/* SPDX-License-Identifier: MIT */
/*
 * uml.c - targets in user-mode Linux, a kernel that is an ordinary program. Such a target needs no
 * root, and a panic of that kernel affects no other process. The guest sees this machine's
 * programs, so its root needs no programs for recovery.
 */
#include "target/uml.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names_in.h"
#include "base/proc.h"
#include "guest/guest_root.h"
#include "target/guest_target.h"
#include "guest/modules.h"
#include "guest/vm_kernel.h"

enum { START_MS = 60000, VERSION_MS = 10000, VERSION_MAX = 100 };

#define MODULES_DIR "/usr/lib/uml/modules"

static struct guest_target *own(struct target *t)
{
	return t->own;
}

/* ---- the kernel ---- */

static char *find_kernel(const char *kernel)
{
	return kernel ? realpath(kernel, NULL) : proc_find("linux.uml");
}

/* True for "6.1.176": other programs print their version as well, but with their name. */
static bool is_release(const char *text, size_t n)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits < n && text[digits] == '.' && !memchr(text, ' ', n);
}

/* Asks the kernel for its version, which is also the name of its modules' folder; NULL: none. */
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
	if (!res.exit_code && n < VERSION_MAX && is_release(strbuf_str(&res.out), n))
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

static int look_at_kernel(struct guest_target *u, const struct target_opts *opts, struct err *err)
{
	u->kernel = find_kernel(opts->guest_kernel);
	if (!u->kernel)
		return err_set(err, -ENOENT, "%s is not there; %s",
			       opts->guest_kernel ? opts->guest_kernel : "linux.uml",
			       opts->guest_kernel
				       ? "--kernel is a kernel of user-mode Linux"
				       : "install it with: apt-get install user-mode-linux");
	enum vm_kernel_form form = vm_kernel_form(u->kernel);
	if (form == VM_KERNEL_BZIMAGE || form == VM_KERNEL_PLAIN)
		return err_set(err, -EINVAL,
			       "%s is a kernel for a machine, and no program: use a vm: target, or "
			       "build one for user-mode Linux (make ARCH=um)",
			       u->kernel);
	auto_free char *version = ask_version(u->kernel);
	if (!version)
		return err_set(err, -EINVAL,
			       "%s is no kernel of user-mode Linux: it does not tell its version",
			       u->kernel);
	auto_free char *dir = opts->guest_modules ? xstrdup(opts->guest_modules)
						  : xasprintf(MODULES_DIR "/%s", version);
	/* A kernel that the user has built may need no modules. */
	if (opts->guest_modules || access(dir, F_OK) == 0)
		u->modules = steal(dir);
	return u->modules ? modules_need(u->modules, "virtio_blk", err) : 0;
}

/* Counts the processes with that name that are pinned to each processor. */
static void count_pinned(const char *name, unsigned count[CPU_SETSIZE])
{
	auto_names_in proc = names_in(AT_FDCWD, "/proc");

	for (struct dirent *d; (d = names_next(proc));) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		auto_free char *path = xasprintf("/proc/%d/comm", (int)pid);
		auto_strbuf comm = STRBUF_INIT;
		struct err ignored = ERR_INIT;
		cpu_set_t set;

		if (pid <= 0 || io_slurp(path, 64, &comm, &ignored) ||
		    strncmp(strbuf_str(&comm), name, min(strlen(name), (size_t)15)) != 0 ||
		    sched_getaffinity(pid, sizeof(set), &set) < 0 || CPU_COUNT(&set) != 1)
			continue;
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			count[cpu] += CPU_ISSET(cpu, &set) != 0;
	}
}

/*
 * Returns the processor, of those that we may use, with the fewest guests, including those of other
 * runs; if there are several, another one for each worker, as workers start together.
 */
static int choose_cpu(const char *kernel, unsigned worker)
{
	unsigned count[CPU_SETSIZE] = { 0 };
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) < 0 ? 0 : CPU_COUNT(&set), best = -1;

	if (n < 2)
		return -1;
	count_pinned(basename(kernel), count);
	n = (int)(worker % (unsigned)n);
	for (int round = 0, seen = 0; round < 2; round++)
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set) && seen++ >= n &&
			    (best < 0 || count[cpu] < count[best]))
				best = cpu;
	return best;
}

/*
 * Starts the guest. The arguments disable what takes time at each start: measuring several
 * algorithms, a cache for swapping, unused consoles; and the control socket in the user's home,
 * which would be left behind.
 */
static int start(struct target *t, struct err *err)
{
	struct guest_target *u = own(t);
	auto_free char *memory = xasprintf("mem=%lluM", (unsigned long long)(u->memory >> 20));
	const char *argv[32 + GUEST_ARGS_MAX] = {
		u->kernel,
		memory,
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
		"oops=panic",
	};
	struct guest_start how = { .argv = argv,
				   .root = u->root,
				   .memory = u->memory,
				   .cpu = choose_cpu(u->kernel, t->opts.worker) };

	unsigned n = 0;

	while (argv[n])
		n++;
	for (unsigned i = 0; i < u->args.n; i++)
		argv[n++] = u->args.v[i];
	assert(n < ARRAY_SIZE(argv));
	return guest_start(u->guest, &how, START_MS, err);
}

static int uml_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	/* The disk needs the first module; crc32_generic is requested by name only. */
	const char *modules[] = { "virtio_blk", "crc32_generic", NULL, NULL };
	struct guest_target *u = xcalloc(1, sizeof(*u));
	int rc = guest_target_init(t, u, opts, TARGET_UML_MEMORY, err);

	u->start = start;
	if (!rc)
		rc = look_at_kernel(u, opts, err);
	if (rc)
		return rc;
	modules[2] = u->fs->name;
	struct guest_root root = { .dir = u->modules,
				   .names = modules,
				   .words = &u->args,
				   .files = opts->guest_files,
				   .memory = u->memory };

	u->root = guest_root(&root, &u->files_hash, err);
	t->opts.files_hash = u->files_hash;
	return u->root < 0 ? u->root : guest_target_ready(t, err);
}

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

#define UML_TARGET(...)                                                                            \
	GUEST_TARGET(uml, "linux.uml", "of user-mode Linux, without root", uml_open,               \
		     guest_target_close, false, __VA_ARGS__)

GUEST_FILE_SYSTEMS(UML_TARGET)
