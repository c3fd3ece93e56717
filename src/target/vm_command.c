/* SPDX-License-Identifier: MIT */
/* vm_command.c - makes the command that starts QEMU, for a boot and for a clone. */
#include "record/pm_disk.h"
#include "target/vm_impl.h"

/*
 * The arguments disable what takes time at each start. Watchdogs of the guest would report a hang
 * on a machine that is only busy; the pool watches for hangs.
 */
static const char append[] =
	"console=ttyS0 panic=-1 oops=panic quiet loglevel=5 mitigations=off nokaslr nowatchdog "
	"audit=0 "
	"workqueue.watchdog_thresh=0 rcupdate.rcu_cpu_stall_suppress=1 "
	"sysctl.kernel.hung_task_timeout_secs=0 tsc=reliable "
	"no_timer_check random.trust_cpu=on selinux=0 apparmor=0 cgroup_disable=memory "
	"initcall_blacklist=raid6_select_algo,init_zswap";

static void put(struct vm_command *c, const char *word)
{
	assert(c->n < ARRAY_SIZE(c->argv) - 1);
	c->argv[c->n++] = word;
}

static void put2(struct vm_command *c, const char *option, char *value)
{
	assert(c->n_owned < ARRAY_SIZE(c->owned));
	c->owned[c->n_owned++] = value;
	put(c, option);
	put(c, value);
}

void vm_command_release(struct vm_command *c)
{
	for (unsigned i = 0; i < c->n_owned; i++)
		free(c->owned[i]);
}

static char *command_line(const struct vm *v)
{
	const uint64_t kib = v->flash_size / 1024,
		       block = v->base.flash ? v->base.flash->erase_block / 1024 : 0;
	/* Arguments for a driver that is built in. */
	auto_free char *flash =
		v->flash ? xasprintf(" mtdram.total_size=%llu mtdram.erase_size=%llu",
				     (unsigned long long)kib, (unsigned long long)block)
			 : xstrdup("");

	auto_free char *pm = v->nvdimm	  ? xstrdup(" iomem=relaxed")
			     : v->pm_size ? xasprintf(" numa=off iomem=relaxed memmap=%lluM!%lluM",
						      (unsigned long long)v->pm_size / MIB,
						      (unsigned long long)PM_START / MIB)
					  : xstrdup("");

	auto_strbuf users = STRBUF_INIT;

	for (unsigned i = 0; i < v->base.args.n; i++)
		strbuf_addf(&users, " %s", v->base.args.v[i]);
	return xasprintf("%s%s%s%s%s", append,
			 v->deterministic
				 ? " idle=poll rcu_nocbs=0 rcutree.jiffies_till_first_fqs=0 "
				   "rcutree.jiffies_till_next_fqs=0"
				 : "",
			 flash, pm, strbuf_str(&users));
}

/*
 * Adds the memory of the machine, in two files, the second of which is the persistent memory, so
 * that this process can read and write it. The firmware uses the end of the space below 4 GiB, so
 * the first one ends before that. As a device, persistent memory is at the same address.
 */
static void describe_memory(const struct vm *v, enum vm_start_kind kind, struct vm_command *c)
{
	const char *accel = kind == START_KVM ? "kvm" : "tcg";
	unsigned long long memory = v->base.memory / MIB, pm = v->pm_size / MIB;

	put2(c, "-m",
	     v->nvdimm ? xasprintf("%lluM,slots=1,maxmem=%lluM", memory, memory + pm)
		       : xasprintf("%lluM", memory + pm));
	put2(c, "-object",
	     xasprintf("memory-backend-file,id=ram,size=%lluM,mem-path=/proc/self/fd/%d,share=on",
		       memory, FD_RAM));
	if (!pm) {
		put2(c, "-machine", xasprintf("pc,accel=%s,memory-backend=ram", accel));
		return;
	}
	if (v->nvdimm) {
		put2(c, "-machine",
		     xasprintf("pc,accel=%s,memory-backend=ram,nvdimm=on%s", accel,
			       v->eadr ? ",nvdimm-persistence=cpu" : ""));
		put2(c, "-device", xasprintf("nvdimm,memdev=pm,addr=%llu", PM_START));
	} else {
		put2(c, "-machine", xasprintf("pc,accel=%s,max-ram-below-4g=%lluM", accel, memory));
	}
	put2(c, "-object",
	     xasprintf("memory-backend-file,id=pm,size=%lluM,mem-path=/proc/self/fd/%d,share=on",
		       pm, FD_PM));
	if (v->nvdimm)
		return;
	put(c, "-numa");
	put(c, "node,memdev=ram");
	put(c, "-numa");
	put(c, "node,memdev=pm");
}

static void describe_tracer(const struct vm *v, struct vm_command *c)
{
	put2(c, "-plugin",
	     xasprintf("/proc/self/fd/%d,stream=/proc/self/fd/%d,begin=mark,%s,"
		       "region=phys:%llu,,%llu,,/proc/self/fd/%d,,0",
		       FD_PLUGIN, FD_STREAM,
		       vm_machine(v) == TRACED_LOADS ? "loads=on" : "stacks=on", PM_START,
		       (unsigned long long)v->pm_size, FD_PM));
}

void vm_describe(const struct vm *v, enum vm_start_kind kind, struct vm_command *c)
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
	if (vm_is_traced(v) && kind != START_KVM)
		describe_tracer(v, c);
	put2(c, "-cpu",
	     xasprintf("%s%s%s", kind == START_KVM ? "host" : "max,la57=off",
		       v->no_clwb ? ",clwb=off" : "", v->no_clflushopt ? ",clflushopt=off" : ""));
	put2(c, "-smp", xasprintf("%u", v->cpus));
	/*
	 * Time is the number of executed instructions. A machine that sleeps would let real time
	 * pass, or jump to the kernel's next timer, such as writing back after seconds; so it never
	 * sleeps (idle=poll).
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
	for (unsigned i = 0; i < v->qemu_args.n; i++)
		put(c, v->qemu_args.v[i]);
	/* A machine that was saved while it was stopped runs after it is loaded. */
	put(c, "-global");
	put(c, "migration.store-global-state=off");
	if (kind == START_CLONE)
		put2(c, "-incoming", xstrdup("defer"));
}
