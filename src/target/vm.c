/* SPDX-License-Identifier: MIT */
/*
 * vm.c - file systems of any kernel that boots in QEMU: by KVM where that works, else emulated.
 *
 * All but the start is as in user-mode Linux: the same agent, the same two disks. As an emulated
 * kernel takes seconds to boot, that is done once. The machine is then stopped, its memory, which
 * is a file, is copied, and the state of its devices is saved; every worker, and every new start
 * after a panic, is a clone of that. The memory of a clone cannot be shared with the template until
 * it is written to: the disks, which are served by this process, must see what the guest writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/kvm.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "base/number.h"
#include "base/proc.h"
#include "record/pm_disk.h"
#include "record/pm_tracer.h"
#include "record/vhost_disk.h"
#include "target/cache.h"
#include "target/modules.h"
#include "target/guest_root.h"
#include "target/guest_target.h"
#include "target/vm.h"
#include "target/vm_kernel.h"
#include "target/vm_template.h"

enum {
	MIB = 1 << 20,
	FLASH_MAX = 64 * MIB,
	CLOCK_START = 1704067200, /* 2024-01-01 */
	BOOT_MS = 100000,	  /* less than what a worker is given to move at all */
	KVM_MS = 20000,
	CLONE_MS = 30000,
	SAVE_MS = 30000,
	HELP_MS = 20000,
	POLL_MS = 5,
	FD_RAM = GUEST_FD_MORE,
	FD_KERNEL,
	FD_MONITOR,
	FD_STATE,
	FD_PM,
	FD_PLUGIN,
	FD_STREAM,
	CPUS_MAX = 8,
	PM_UNIT = 2 * MIB, /* a kernel maps it in pieces of that size */
};

#define PM_START     (4ULL << 30) /* its physical address: all other memory is below */
#define PM_BELOW_MAX (3ULL << 30)

#define QEMU "qemu-system-x86_64"

struct vm {
	struct guest_target base; /* first */
	struct vm_kernel kernel;
	char *qemu;
	struct vm_template template;
	bool has_template, no_clones, emulate, deterministic;
	bool no_clwb, no_clflushopt; /* its processors lack them */
	unsigned cpus;
	bool doubts_kvm; /* it failed, and nobody knows yet whose fault that was */
	uint64_t flash_size;
	char *flash;	  /* what the driver of the flash is told, or NULL */
	int monitors[3];  /* of the machines that run, as `guests`; or -1 */
	uint64_t pm_size; /* 0: it has a disk */
	struct tracer tracer;
};

static struct vm *own(struct target *t)
{
	return t->own;
}

/* Which of its machines is at hand. */
enum { PLAIN, TRACED, TRACED_LOADS };

static ptrdiff_t machine(const struct vm *v)
{
	return v->base.guest - v->base.guests;
}

static bool is_traced(const struct vm *v)
{
	return machine(v) != PLAIN;
}

static int *monitor(struct vm *v)
{
	return &v->monitors[machine(v)];
}

/* ---- the command ---- */

/*
 * What is left out costs time at each start. Watchdogs of the guest would take a machine that is
 * busy with something else for a kernel that hangs; who runs us watches for that.
 */
static const char append[] =
	"console=ttyS0 panic=-1 quiet loglevel=5 mitigations=off nokaslr nowatchdog audit=0 "
	"rcupdate.rcu_cpu_stall_suppress=1 sysctl.kernel.hung_task_timeout_secs=0 tsc=reliable "
	"no_timer_check random.trust_cpu=on selinux=0 apparmor=0 cgroup_disable=memory "
	"initcall_blacklist=raid6_select_algo,init_zswap";

enum start_kind { START_BOOT, START_KVM, START_CLONE };

struct command {
	const char *argv[64];
	unsigned n;
	char *owned[12];
	unsigned n_owned;
};

static void put(struct command *c, const char *word)
{
	assert(c->n < ARRAY_SIZE(c->argv) - 1);
	c->argv[c->n++] = word;
}

static void put2(struct command *c, const char *option, char *value)
{
	assert(c->n_owned < ARRAY_SIZE(c->owned));
	c->owned[c->n_owned++] = value;
	put(c, option);
	put(c, value);
}

static void command_release(struct command *c)
{
	for (unsigned i = 0; i < c->n_owned; i++)
		free(c->owned[i]);
}

static char *command_line(const struct vm *v)
{
	const uint64_t kib = v->flash_size / 1024,
		       block = v->base.flash ? v->base.flash->erase_block / 1024 : 0;
	/* For a driver that is built in. */
	auto_free char *flash =
		v->flash ? xasprintf(" mtdram.total_size=%llu mtdram.erase_size=%llu",
				     (unsigned long long)kib, (unsigned long long)block)
			 : xstrdup("");

	auto_free char *pm = v->pm_size ? xasprintf(" numa=off iomem=relaxed memmap=%lluM!%lluM",
						    (unsigned long long)v->pm_size / MIB,
						    (unsigned long long)PM_START / MIB)
					: xstrdup("");

	return xasprintf("%s%s%s%s", append,
			 v->deterministic
				 ? " idle=poll rcu_nocbs=0 rcutree.jiffies_till_first_fqs=0 "
				   "rcutree.jiffies_till_next_fqs=0"
				 : "",
			 flash, pm);
}

/*
 * Memory of the machine is two files, so that the second is ours to read and write, and nothing
 * else: the kernel is told that it is persistent. The firmware has its own things at the end of
 * what is below 4 GiB, so that ends before it.
 */
static void describe_memory(const struct vm *v, enum start_kind kind, struct command *c)
{
	const char *accel = kind == START_KVM ? "kvm" : "tcg";
	unsigned long long memory = v->base.memory / MIB, pm = v->pm_size / MIB;

	put2(c, "-m", xasprintf("%lluM", memory + pm));
	put2(c, "-object",
	     xasprintf("memory-backend-file,id=ram,size=%lluM,mem-path=/proc/self/fd/%d,share=on",
		       memory, FD_RAM));
	if (!pm) {
		put2(c, "-machine", xasprintf("pc,accel=%s,memory-backend=ram", accel));
		return;
	}
	put2(c, "-machine", xasprintf("pc,accel=%s,max-ram-below-4g=%lluM", accel, memory));
	put2(c, "-object",
	     xasprintf("memory-backend-file,id=pm,size=%lluM,mem-path=/proc/self/fd/%d,share=on",
		       pm, FD_PM));
	put(c, "-numa");
	put(c, "node,memdev=ram");
	put(c, "-numa");
	put(c, "node,memdev=pm");
}

static void describe_tracer(const struct vm *v, struct command *c)
{
	put2(c, "-plugin",
	     xasprintf("/proc/self/fd/%d,stream=/proc/self/fd/%d,begin=mark,%s,"
		       "region=phys:%llu,,%llu,,/proc/self/fd/%d,,0",
		       FD_PLUGIN, FD_STREAM, machine(v) == TRACED_LOADS ? "loads=on" : "stacks=on",
		       PM_START, (unsigned long long)v->pm_size, FD_PM));
}

static void describe(const struct vm *v, enum start_kind kind, struct command *c)
{
	static const char *const same[] = {
		"-nodefaults",
		"-no-user-config",
		"-no-reboot",
		"-display",
		"none",
		"-serial",
		"chardev:said",
		"-chardev",
		"file,id=said,path=/proc/self/fd/1",
		"-mon",
		"chardev=monitor,mode=control",
		"-initrd",
		"{root}",
	};
	static const char *const disk[] = {
		"-chardev",
		"socket,id=disk,path={disk}",
		"-device",
		"vhost-user-blk-pci,chardev=disk,num-queues=1",
	};
	static const char *const mail[] = {
		"-chardev",
		"socket,id=mail,path={mail}",
		"-device",
		"vhost-user-blk-pci,chardev=mail,num-queues=1",
	};

	put(c, v->qemu);
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		put(c, same[i]);
	for (size_t i = 0; !v->pm_size && i < ARRAY_SIZE(disk); i++)
		put(c, disk[i]);
	for (size_t i = 0; i < ARRAY_SIZE(mail); i++)
		put(c, mail[i]);
	describe_memory(v, kind, c);
	if (is_traced(v) && kind != START_KVM)
		describe_tracer(v, c);
	put2(c, "-cpu",
	     xasprintf("%s%s%s", kind == START_KVM ? "host" : "max,la57=off",
		       v->no_clwb ? ",clwb=off" : "", v->no_clflushopt ? ",clflushopt=off" : ""));
	put2(c, "-smp", xasprintf("%u", v->cpus));
	/*
	 * Time is what was executed. A machine that sleeps would let real time pass, or jump to
	 * whatever a kernel does after seconds, such as writing back; so it never does (idle=poll).
	 */
	if (v->deterministic) {
		put(c, "-icount");
		put(c, "shift=0,sleep=on");
		put(c, "-rtc");
		put(c, "base=2024-01-01T00:00:00,clock=vm");
		put(c, "-seed");
		put(c, "1");
	}
	put2(c, "-append", command_line(v));
	put2(c, "-chardev", xasprintf("socket,id=monitor,fd=%d", FD_MONITOR));
	put2(c, "-kernel", xasprintf("/proc/self/fd/%d", FD_KERNEL));
	/* A machine that was saved while it was stopped goes on all the same. */
	put(c, "-global");
	put(c, "migration.store-global-state=off");
	if (kind == START_CLONE)
		put2(c, "-incoming", xstrdup("defer"));
}

/* ---- the monitor ---- */

#define HELLO "{\"execute\":\"qmp_capabilities\"}\n"
/* Memory that is a shared file is no part of the state. */
#define IGNORE_SHARED                                                                              \
	"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":"               \
	"[{\"capability\":\"x-ignore-shared\",\"state\":true}]}}\n"
#define GO_ON                                                                                      \
	"{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":"                                \
	"\"exec:cat /proc/%d/fd/%d\"}}\n"

/* One command in QEMU's machine protocol, and its answer, a line; the guest is served meanwhile. */
static int monitor_ask(struct vm *v, const char *command, struct strbuf *line, struct err *err)
{
	uint64_t start = util_now_ns();

	if (send(*monitor(v), command, strlen(command), MSG_NOSIGNAL) != (ssize_t)strlen(command))
		return err_set(err, -EIO, "QEMU does not listen: %m");
	strbuf_clear(line);
	for (;;) {
		char c;
		ssize_t n = recv(*monitor(v), &c, 1, MSG_DONTWAIT);

		if (n == 1 && c != '\n') {
			strbuf_addch(line, c);
			continue;
		}
		if (n == 1 && strstr(strbuf_str(line), "\"error\""))
			return err_set(err, -EIO, "QEMU refuses: %.200s", strbuf_str(line));
		if (n == 1 && strncmp(strbuf_str(line), "{\"return\"", 9) == 0)
			return 0;
		if (n == 1)
			strbuf_clear(line); /* a greeting, or an event */
		else if (n == 0 || util_now_ns() - start > SAVE_MS * 1000000ULL)
			return err_set(err, -EIO, "QEMU does not answer");
		else if (guest_serve(v->base.guest, *monitor(v), POLL_MS))
			return err_set(err, -EIO, "QEMU has ended");
	}
}

/* Saves the state of a machine, all but its memory, to `state`. It is stopped afterwards. */
static int save_state(struct vm *v, int state, struct err *err)
{
	auto_free char *save = xasprintf("{\"execute\":\"migrate\",\"arguments\":{\"uri\":"
					 "\"exec:cat >/proc/%d/fd/%d\"}}\n",
					 (int)getpid(), state);
	const char *commands[] = {
		"", /* the answer to the greeting that it got at the start */
		"{\"execute\":\"stop\"}\n",
		IGNORE_SHARED,
		save,
	};
	auto_strbuf line = STRBUF_INIT;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands) && !rc; i++)
		rc = monitor_ask(v, commands[i], &line, err);
	for (uint64_t start = util_now_ns(); !rc;) {
		rc = monitor_ask(v, "{\"execute\":\"query-migrate\"}\n", &line, err);
		if (!rc && strstr(strbuf_str(&line), "\"status\": \"completed\""))
			return 0;
		if (!rc && (strstr(strbuf_str(&line), "\"status\": \"failed\"") ||
			    util_now_ns() - start > SAVE_MS * 1000000ULL))
			rc = err_set(err, -EIO, "QEMU cannot save its state: %.200s",
				     strbuf_str(&line));
		if (!rc)
			guest_serve(v->base.guest, -1, POLL_MS);
	}
	return rc;
}

/* ---- starting ---- */

static int launch(struct target *t, enum start_kind kind, int ram, int state, struct err *err)
{
	struct vm *v = own(t);
	struct command c = { 0 };
	uint64_t began = util_now_ns();
	bool plain = true;
	int stream = is_traced(v) ? pm_disk_stream(t->disk, err) : -1;
	auto_fd kernel = kind == START_CLONE ? vm_kernel_open_stub(err)
					     : vm_kernel_open(&v->kernel, &plain, err);
	int pair[2];

	if (kernel < 0)
		return kernel;
	if (is_traced(v) && stream < 0)
		return stream;
	v->no_clones |= !plain;
	util_close(steal_fd(monitor(v)));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "cannot make a socket: %m");
	*monitor(v) = pair[0];
	describe(v, kind, &c);
	/*
	 * It lies there until QEMU looks. If that does not like it, the guest does not answer. Who
	 * was greeted is told why QEMU ends.
	 */
	if (kind == START_CLONE)
		dprintf(*monitor(v), HELLO IGNORE_SHARED GO_ON, (int)getpid(), v->template.state);
	else
		dprintf(*monitor(v), HELLO);
	struct guest_start how = { .argv = c.argv,
				   .root = v->base.root,
				   .more = { ram, kernel, pair[1], state,
					     v->pm_size ? pm_disk_memory(t->disk) : -1,
					     v->tracer.plugin, stream },
				   .cpu = -1,
				   .monitor = *monitor(v),
				   .memory = v->base.memory,
				   .emulated = true };
	uint64_t limit = kind == START_KVM ? KVM_MS : kind == START_CLONE ? CLONE_MS : BOOT_MS;
	int rc = guest_start(v->base.guest, &how, limit, err);
	close(pair[1]);
	command_release(&c);
	if (!rc)
		log_debug("the machine answered after %llu ms",
			  (unsigned long long)((util_now_ns() - began) / 1000000));
	return rc;
}

static int boot(struct target *t, enum start_kind kind, int *ram, struct err *err)
{
	auto_fd memory = vm_memory(own(t)->base.memory, -1, err);

	if (memory < 0)
		return memory;
	int rc = launch(t, kind, memory, -1, err);
	if (rc && !own(t)->kernel.modules)
		err_context(err, "there are no modules for %s (see --modules)",
			    own(t)->kernel.file);
	if (!rc && ram)
		*ram = steal_fd(&memory);
	return rc;
}

static int clone_machine(struct target *t, struct err *err)
{
	struct vm *v = own(t);
	auto_free char *path = xasprintf("/proc/self/fd/%d", v->template.state);
	auto_fd state = open(path, O_RDONLY | O_CLOEXEC); /* with a position of its own */
	auto_fd ram = vm_memory(v->base.memory, v->template.ram, err);

	if (state < 0)
		return err_set(err, -errno, "cannot read the state of a machine: %m");
	return ram < 0 ? ram : launch(t, START_CLONE, ram, state, err);
}

/* Boots, and makes a template of what has booted. */
static int make_template(struct target *t, struct err *err)
{
	struct vm *v = own(t);
	auto_fd state = memfd_create("outage-state", MFD_CLOEXEC);
	int ram = -1;
	struct err why = ERR_INIT;

	if (state < 0)
		return err_set(err, -errno, "no memory for a guest: %m");
	log_notice(
		"booting Linux %s in an emulated machine, which takes a while; the next runs go on "
		"from there",
		v->kernel.release);
	int rc = boot(t, START_BOOT, &ram, err);
	if (rc || v->no_clones) {
		util_close(ram);
		return rc;
	}
	rc = save_state(v, state, &why);
	guest_stop(v->base.guest);
	if (rc) {
		log_info("the machine is booted anew each time: %s", why.msg);
		close(ram);
		v->no_clones = true;
		return 0;
	}
	vm_template_keep(&v->template, ram, steal_fd(&state));
	return 0;
}

/* ---- KVM ---- */

/* The machine as it was started; what failed on it once is not tried again. */
static void boot_id(struct strbuf *out)
{
	struct err ignored = ERR_INIT;

	if (io_slurp("/proc/sys/kernel/random/boot_id", 64, out, &ignored))
		strbuf_adds(out, "unknown");
}

static bool kvm_failed(void)
{
	auto_free char *dir = cache_dir();
	auto_strbuf now = STRBUF_INIT, then = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	if (!dir || io_slurp_file(dir, "vm-no-kvm", 64, &then, NULL, &ignored))
		return false;
	boot_id(&now);
	return streq(strbuf_str(&now), strbuf_str(&then));
}

static void remember_kvm_failed(void)
{
	auto_free char *dir = cache_dir();
	auto_strbuf now = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	boot_id(&now);
	if (dir && io_write_file(dir, "vm-no-kvm", now.buf, now.len, 0, &ignored))
		log_debug("%s", ignored.msg);
}

/* Why it is not even tried; NULL: it is. */
static const char *why_no_kvm(void)
{
	auto_fd fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno == EACCES ? "this user may not open /dev/kvm, which the group kvm may"
				       : "there is no /dev/kvm that can be opened";
	if (ioctl(fd, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return "/dev/kvm is of another kind";
	return kvm_failed() ? "KVM failed since this machine was booted" : NULL;
}

/* 0 if the machine runs; 1 if it must be emulated. With KVM it boots in no time each time. */
static int try_kvm(struct target *t)
{
	struct err why = ERR_INIT;

	if (own(t)->emulate || why_no_kvm())
		own(t)->emulate = true;
	else if (boot(t, START_KVM, NULL, &why)) {
		log_info("the machine does not boot by KVM: %s", why.msg);
		own(t)->doubts_kvm = why.code != -EINTR;
		own(t)->emulate = true;
	}
	return own(t)->emulate;
}

/* What does not boot by KVM may not boot at all; where it does, that was KVM's fault. */
static void blame_kvm(struct target *t)
{
	if (!own(t)->doubts_kvm)
		return;
	own(t)->doubts_kvm = false;
	log_warn("KVM is there, but no machine starts with it: it is emulated, until this machine "
		 "is booted again");
	remember_kvm_failed();
}

static int start_emulated(struct target *t, struct err *err)
{
	struct vm *v = own(t);
	struct err why = ERR_INIT;

	if (!v->no_clones && !vm_template_find(&v->template)) {
		int rc = make_template(t, err);

		vm_template_unlock(&v->template);
		if (rc < 0 || guest_runs(v->base.guest))
			return rc;
	}
	if (!v->no_clones) {
		if (!clone_machine(t, &why))
			return 0;
		log_info("the machine is booted anew each time: %s", why.msg);
		vm_template_drop(&v->template);
		v->no_clones = true;
	}
	return boot(t, START_BOOT, NULL, err);
}

/*
 * The driver has taken pages wherever there were some; the agent marks them, and they are looked
 * for. The mark is one that nobody else writes: of this process, and of this moment.
 */
static int find_flash(struct target *t, struct err *err)
{
	uint64_t mark = util_now_ns() << 20 ^ (uint64_t)getpid();
	struct strbuf *out = guest_target_begin(t, AGENT_FLASH);
	struct wire_in part;

	wire_put_u64(out, t->opts.size);
	wire_put_u64(out, mark);
	int rc = guest_target_ask(t, AGENT_FLASH, &part, err);
	if (rc)
		return rc < 0 ? rc
			      : err_set(err, -EIO, "the guest died when its flash was numbered");
	int error = (int)wire_u32(&part);
	rc = guest_part_ok(&part, err);
	if (!rc && error)
		rc = err_set(err, -error, "the guest has no flash: %s", strerror(error));
	return rc ? rc : vhost_disk_find_flash(t->disk, mark, err);
}

static int start(struct target *t, struct err *err)
{
	size_t before = t->complaints.len;
	int rc = is_traced(own(t)) ? 1 : try_kvm(t);

	if (rc) {
		rc = start_emulated(t, err);
		if (!rc)
			blame_kvm(t);
	}
	if (!rc && own(t)->flash)
		rc = find_flash(t, err);
	if (t->complaints.len > before)
		strbuf_cut(&t->complaints, before);
	own(t)->base.guest->collecting = 0;
	own(t)->base.guest->steady = !rc && own(t)->deterministic;
	return rc;
}

/* ---- tracing ---- */

/* An emulator that was built without plugins does not speak of them. */
static int needs_plugins(const struct vm *v, struct err *err)
{
	const char *const argv[] = { v->qemu, "-help", NULL };
	struct proc_result r = { 0 };
	int rc = proc_run(&(struct proc_opts){ .argv = argv, .timeout_ms = HELP_MS }, &r, err);

	if (!rc && !strstr(strbuf_str(&r.out), "-plugin "))
		rc = err_set(err, -ENOTSUP,
			     "%s was built without plugins, by which persistent memory is traced; "
			     "Debian's has them: apt-get install qemu-system-x86",
			     v->qemu);
	proc_result_release(&r);
	return rc;
}

static int tell_tracer(struct target *t, enum agent_command command, uint32_t begin,
		       const char *text, struct err *err)
{
	struct strbuf *out = guest_target_begin(t, command);
	struct wire_in part;

	if (text)
		wire_put_text(out, text);
	else
		wire_put_u32(out, begin);
	int rc = guest_target_ask(t, command, &part, err);
	return rc > 0 ? err_set(err, -EIO, "the guest died when it was asked for a mark") : rc;
}

/* The program makes its own marks, in a stream of its own. */
static int run_test(void *ctx, struct err *err)
{
	struct target *t = ctx;
	struct wire_in part;

	guest_target_begin(t, AGENT_SELFTEST);
	int rc = guest_target_ask(t, AGENT_SELFTEST, &part, err);
	if (rc)
		return rc < 0 ? rc : err_set(err, -EIO, "the guest died of the tracer's test");
	uint32_t status = wire_u32(&part);
	rc = guest_part_ok(&part, err);
	return rc ? rc : status != 0;
}

static int start_traced(struct target *t, struct err *err)
{
	struct vm *v = own(t);
	int rc = start(t, err);

	if (rc)
		return rc;
	rc = pm_disk_test(t->disk, run_test, t, err);
	if (rc > 0)
		log_info("this kernel lets nobody map its persistent memory (/dev/mem), so the "
			 "tracer is not tested in it");
	if (rc < 0)
		guest_stop(v->base.guest);
	return min(rc, 0);
}

/* From now on the traced machine is the one that is asked; the other one rests. */
static int begin_tracing(void *ctx, bool loads, struct err *err)
{
	struct target *t = ctx;
	struct vm *v = own(t);
	int rc = 0;

	v->base.guest = &v->base.guests[loads ? TRACED_LOADS : TRACED];
	if (v->tracer.plugin < 0)
		rc = tracer_unpack(&v->tracer, v->qemu, err);
	if (!rc && !guest_runs(v->base.guest))
		rc = start_traced(t, err);
	if (!rc)
		rc = tell_tracer(t, AGENT_TRACE, 1, NULL, err);
	if (rc)
		v->base.guest = &v->base.guests[PLAIN];
	return rc;
}

static int mark_text(void *ctx, const char *text, struct err *err)
{
	return tell_tracer(ctx, AGENT_MARK, 0, text, err);
}

static int end_tracing(void *ctx, struct err *err)
{
	struct target *t = ctx;
	struct vm *v = own(t);
	int rc = guest_runs(v->base.guest)
			 ? tell_tracer(t, AGENT_TRACE, 0, NULL, err)
			 : err_set(err, -EPIPE, "the guest ended while it was traced");

	v->base.guest = &v->base.guests[PLAIN];
	return rc;
}

/* ---- the target ---- */

/* All that a template depends on. */
static void init_template(struct target *t)
{
	struct vm *v = own(t);
	const char *files[] = { v->qemu, v->kernel.file };
	auto_strbuf text = STRBUF_INIT;
	struct command c = { 0 };
	struct stat st = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (stat(files[i], &st) == 0)
			strbuf_addf(&text, "%s %lld %lld.%ld\n", files[i], (long long)st.st_size,
				    (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	describe(v, START_BOOT, &c);
	for (unsigned i = 0; i < c.n; i++)
		strbuf_addf(&text, "%s\n", c.argv[i]);
	command_release(&c);
	strbuf_addf(&text, "%llu\n", (unsigned long long)t->opts.size);
	if (fstat(v->base.root, &st) == 0 && st.st_size > 0) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, v->base.root, 0);
		char hex[HASH_HEX_SIZE];

		if (p != MAP_FAILED) {
			strbuf_adds(&text, hash_hex(hash_bytes(p, (size_t)st.st_size), hex));
			munmap(p, (size_t)st.st_size);
		}
	}
	vm_template_init(&v->template, &text);
	v->has_template = true;
}

/* ext4's driver may serve the two older ones. What was built in is not known without its list. */
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

/* What has to be loaded for it. */
static const char *fs_module(const char *dir, const char *fs)
{
	return strncmp(fs, "ext", 3) == 0 && !modules_have(dir, fs) ? "ext4" : fs;
}

static int make_root(struct vm *v, struct err *err)
{
	/* What the others need when they are loaded, but ask for by another name, comes first. */
	static const char *const first[] = { "virtio_pci",     "virtio_blk",	 "crc32c_generic",
					     "crc32_generic",  "xxhash_generic", "sha256_generic",
					     "blake2b_generic" };
	const struct guest_flash *flash = v->base.flash;
	const struct host_fs *fs = v->base.fs;
	const char *dir = v->kernel.modules;
	static const char *const pm[] = { "nd_e820", "nd_pmem" };
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
	v->base.root = guest_root(dir, modules, args, programs, v->pm_size != 0, err);
	return min(v->base.root, 0);
}

/* Without a list of what is built in, booting shows whether it has it. */
static bool has(const struct vm *v, const char *module)
{
	return !v->kernel.modules || has_fs(v->kernel.modules, module);
}

static int find_parts(struct target *t, const struct target_opts *opts, struct err *err)
{
	static const char *const virtio[] = { "virtio_pci", "virtio_blk" };
	struct vm *v = own(t);
	const char *fs = module_of(v->base.fs);

	v->qemu = proc_find(QEMU);
	if (!v->qemu)
		return err_set(err, -ENOENT,
			       QEMU " is not there; install it with: apt-get install "
				    "qemu-system-x86");
	if (v->base.fs->foreign && !opts->kernel)
		return err_set(err, -ENODEV,
			       "no kernel of Debian has %s: name one that has it with --kernel",
			       fs);
	int rc = vm_kernel_find(opts->kernel, opts->modules, fs, true, &v->kernel, err);
	if (rc)
		return rc;
	v->base.kernel = xstrdup(v->kernel.file);
	/* The list has only what could be a module; mounting shows whether there is another. */
	bool listed = v->base.fs != &v->base.named.fs;
	const char *lacks = listed && !has(v, fs)	       ? fs
			    : v->flash && !has(v, "mtdram")    ? "mtdram"
			    : v->pm_size && !has(v, "nd_e820") ? "nd_e820"
			    : v->pm_size && !has(v, "nd_pmem") ? "nd_pmem"
							       : NULL;
	if (lacks)
		return err_set(err, -ENODEV,
			       "the kernel %s has no %s: neither built in nor as a module in %s; "
			       "name one that has it with --kernel",
			       v->kernel.file, lacks, v->kernel.modules);
	for (size_t i = 0; v->kernel.modules && !rc && i < ARRAY_SIZE(virtio); i++)
		rc = modules_need(v->kernel.modules, virtio[i], err);
	return rc ? rc : make_root(v, err);
}

/* Of what size the driver shall play flash. */
static int place_flash(struct target *t, struct err *err)
{
	struct vm *v = own(t);
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

static int place_pm(struct target *t, struct err *err)
{
	struct vm *v = own(t);

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

/* How many, and the newest instruction to flush with: "2,clflush". */
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

	v->base.start = start;
	v->tracer = (struct tracer)TRACER_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(v->monitors); i++)
		v->monitors[i] = -1;
	v->deterministic = v->emulate = opts->deterministic;
	v->base.clock = opts->deterministic ? CLOCK_START : 0;
	if (!rc)
		rc = choose_cpus(v, opts->guest_cpu, err);
	if (!rc && v->base.flash)
		rc = place_flash(t, err);
	if (!rc && t->ops->pm)
		rc = place_pm(t, err);
	if (!rc)
		rc = find_parts(t, opts, err);
	if (!rc && v->pm_size)
		rc = needs_plugins(v, err);
	if (!rc)
		rc = guest_target_ready(t, err);
	if (rc)
		return rc;
	init_template(t);
	if (!v->pm_size)
		vhost_offer_log(vhost_disk_device(t->disk));
	else
		pm_disk_drive(t->disk,
			      &(struct pm_disk_driver){ t, begin_tracing, mark_text, end_tracing });
	for (size_t i = 0; i < ARRAY_SIZE(v->base.guests); i++)
		vhost_offer_log(&v->base.guests[i].mail.device);
	return 0;
}

static void vm_close(struct target *t)
{
	struct vm *v = own(t);

	if (!v)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(v->monitors); i++)
		util_close(v->monitors[i]);
	vm_kernel_release(&v->kernel);
	free(v->qemu);
	free(v->flash);
	tracer_close(&v->tracer);
	if (v->has_template)
		vm_template_release(&v->template);
	guest_target_close(t);
}

char *vm_release(const char *spec, const char *kernel)
{
	const char *name = spec + strlen("vm:");
	struct vm_kernel k;
	struct err ignored = ERR_INIT;

	if (strncmp(spec, GUEST_ANY_PM ":", strlen(GUEST_ANY_PM ":")) == 0)
		name = spec + strlen(GUEST_ANY_PM ":");
	auto_free char *fs = xmemdupz(name, strcspn(name, ","));
	const struct host_fs *known = guest_fs_find(fs);

	if (((known ? known->foreign : streq(spec, GUEST_ANY_PM)) && !kernel) ||
	    vm_kernel_find(kernel, NULL, known ? known->name : fs, true, &k, &ignored))
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
	rc = start(&t, err);
	const char *why = why_no_kvm();
	if (!rc)
		strbuf_addf(how, "Linux %s starts, %s%s;", own(&t)->kernel.release,
			    own(&t)->emulate ? "emulated: " : "by KVM",
			    !own(&t)->emulate ? ""
			    : why	      ? why
					      : "KVM does not work here");
	target_close(&t);
	return rc;
}

bool vm_has_program(void)
{
	auto_free char *qemu = proc_find(QEMU);

	return qemu != NULL;
}

bool vm_has(const char *fs)
{
	struct err ignored = ERR_INIT;
	struct vm_kernel k;

	const struct host_fs *known = guest_fs_find(fs);

	if (!known || known->foreign ||
	    vm_kernel_find(NULL, NULL, known->name, false, &k, &ignored))
		return false;
	vm_kernel_release(&k);
	return true;
}

#define VM_TARGET_AS(coarse_, ...)                                                                 \
	GUEST_TARGET(vm, QEMU, "of any kernel, in a virtual machine, without root", vm_open,       \
		     vm_close, coarse_, __VA_ARGS__)
#define VM_TARGET(...)	     VM_TARGET_AS(false, __VA_ARGS__)
#define VM_FLASH_TARGET(...) VM_TARGET_AS(true, __VA_ARGS__)

GUEST_FILE_SYSTEMS(VM_TARGET)
GUEST_FLASH_FILE_SYSTEMS(VM_FLASH_TARGET)
/* No kernel of Debian 12 has it; one that is named may. */
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
		GUEST_TARGET_CALLS,                                                                \
	};

VM_PM_TARGET(ext4_dax, "ext4-dax", "linux", guest_lost_found, "e2fsprogs", "mke2fs", "e2fsck")
VM_PM_TARGET(xfs_dax, "xfs-dax", "linux", guest_nothing, "xfsprogs", "mkfs.xfs", "xfs_repair")
/* File systems for persistent memory alone: what an operation has done is durable when it ends. */
VM_PM_TARGET(nova, "nova", "sync", guest_nothing, "qemu-system-x86")
VM_PM_TARGET(pm, "pm", "sync", guest_lost_found, "qemu-system-x86")
