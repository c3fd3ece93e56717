/* SPDX-License-Identifier: MIT */
/*
 * vm_start.c - starts a machine: by KVM, as a clone of one that has booted, or by booting it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "record/pm_disk.h"
#include "record/vhost_disk.h"
#include "guest/cache.h"
#include "target/vm_impl.h"

enum {
	BOOT_MS = 100000, /* opts.starting tells the pool, which watches for hangs */
	KVM_MS = 20000,
	CLONE_MS = 30000,
};

static uint64_t new_boot(void)
{
	static uint64_t last;

	return ++last;
}

static int launch(struct target *t, enum vm_start_kind kind, int ram, int state, struct err *err)
{
	struct vm *v = vm_own(t);
	struct vm_command c = { 0 };
	uint64_t began = util_now_ns();
	int stream = vm_is_traced(v) ? pm_disk_stream(t->disk, err) : -1;
	auto_fd kernel = kind == START_CLONE ? vm_kernel_open_stub(err)
					     : vm_kernel_open(&v->kernel, err);
	int pair[2];

	if (kernel < 0)
		return kernel;
	if (vm_is_traced(v) && stream < 0)
		return stream;
	util_close(steal_fd(vm_monitor(v)));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "cannot make a socket: %m");
	*vm_monitor(v) = pair[0];
	vm_describe(v, kind, &c);
	vm_greet(v, kind);
	struct guest_start how = { .argv = c.argv,
				   .root = v->base.root,
				   .more = { ram, kernel, pair[1], state,
					     v->pm_size ? pm_disk_memory(t->disk) : -1,
					     v->tracer.plugin, stream },
				   .cpu = -1,
				   .monitor = *vm_monitor(v),
				   .memory = v->base.memory,
				   .emulated = true };
	uint64_t limit = kind == START_KVM ? KVM_MS : kind == START_CLONE ? CLONE_MS : BOOT_MS;
	int rc = guest_start(v->base.guest, &how, limit, err);
	close(pair[1]);
	vm_command_release(&c);
	if (!rc)
		log_debug("the machine answered after %llu ms",
			  (unsigned long long)((util_now_ns() - began) / 1000000));
	return rc;
}

static int boot(struct target *t, enum vm_start_kind kind, int *ram, struct err *err)
{
	auto_fd memory = vm_memory(vm_own(t)->base.memory, -1, err);

	if (memory < 0)
		return memory;
	*vm_boot(vm_own(t)) = new_boot();
	int rc = launch(t, kind, memory, -1, err);
	if (rc && rc != -EBADMSG && !vm_own(t)->kernel.modules)
		err_context(err, "there are no modules for %s (see --modules)",
			    vm_own(t)->kernel.file);
	if (!rc && ram)
		*ram = steal_fd(&memory);
	return rc;
}

static int clone_machine(struct target *t, struct err *err)
{
	struct vm *v = vm_own(t);
	auto_free char *path = xasprintf("/proc/self/fd/%d", v->template.state);
	auto_fd state = open(path, O_RDONLY | O_CLOEXEC); /* opened again, for its own position */
	auto_fd ram = vm_memory(v->base.memory, v->template.ram, err);

	if (state < 0)
		return err_set(err, -errno, "cannot read the state of a machine: %m");
	if (!v->template.boot)
		v->template.boot = new_boot(); /* made by another process, or by this one before */
	*vm_boot(v) = v->template.boot;
	return ram < 0 ? ram : launch(t, START_CLONE, ram, state, err);
}

static void announce_boot(const struct vm *v)
{
	auto_free char *cache = cache_dir();

	log_notice("booting Linux %s in an emulated machine, which takes a while; %s",
		   v->kernel.release,
		   cache ? "the next runs go on from there"
			 : "so does each run, as there is no cache to keep it in (OUTAGE_CACHE is "
			   "empty, or there is no home)");
}

/* Boots a machine, and makes a template of it. */
static int make_template(struct target *t, struct err *err)
{
	struct vm *v = vm_own(t);
	auto_fd state = memfd_create("outage-state", MFD_CLOEXEC);
	int ram = -1;
	struct err why = ERR_INIT;

	if (state < 0)
		return err_set(err, -errno, "no memory for a guest: %m");
	announce_boot(v);
	int rc = boot(t, START_BOOT, &ram, err);
	if (rc) {
		util_close(ram);
		return rc;
	}
	rc = vm_save_state(v, state, &why);
	guest_stop(v->base.guest);
	if (rc) {
		if (why.code != -EINTR)
			log_warn("the machine is booted anew each time: %s", why.msg);
		close(ram);
		v->no_clones = true;
		return 0;
	}
	if (vm_template_keep(&v->template, ram, steal_fd(&state), &why))
		log_warn("the next run has to boot the machine again: %s", why.msg);
	return 0;
}

/* Tries KVM, with which a boot is fast. Returns 0 if the machine runs, 1 to emulate it. */
static int try_kvm(struct target *t)
{
	struct err why = ERR_INIT;

	if (vm_own(t)->emulate || vm_why_no_kvm())
		vm_own(t)->emulate = true;
	else if (boot(t, START_KVM, NULL, &why)) {
		log_info("the machine does not boot by KVM: %s", why.msg);
		vm_own(t)->doubts_kvm = why.code != -EINTR;
		vm_own(t)->emulate = true;
	}
	return vm_own(t)->emulate;
}

/* Called when an emulated guest runs: if a start by KVM failed before, KVM was the cause. */
static void blame_kvm(struct target *t)
{
	bool doubts = vm_own(t)->doubts_kvm;

	vm_own(t)->doubts_kvm = false;
	if (!doubts || vm_why_no_kvm()) /* another worker may have told the user */
		return;
	log_warn("KVM is there, but no machine starts with it: it is emulated, until this machine "
		 "is booted again");
	vm_remember_kvm_failed();
}

static int start_emulated(struct target *t, struct err *err)
{
	struct vm *v = vm_own(t);
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
		if (why.code == -EINTR)
			return err_set(err, why.code, "%s", why.msg);
		log_warn("a machine that had booted does not go on, and another one is booted: %s",
			 why.msg);
		vm_template_drop(&v->template);
		v->no_clones = true;
	}
	return boot(t, START_BOOT, NULL, err);
}

/*
 * Finds the pages of the flash, which the driver took from anywhere in memory: the agent marks
 * them. The mark contains the process and the time, so that no other program writes it.
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

int vm_start(struct target *t, struct err *err)
{
	size_t before = t->complaints.len;
	int rc = vm_is_traced(vm_own(t)) ? 1 : try_kvm(t);

	if (rc) {
		rc = start_emulated(t, err);
		if (!rc)
			blame_kvm(t);
	}
	if (!rc && vm_own(t)->flash)
		rc = find_flash(t, err);
	if (t->complaints.len > before)
		strbuf_cut(&t->complaints, before);
	vm_own(t)->base.guest->collecting = 0;
	vm_own(t)->base.guest->steady = !rc && vm_own(t)->deterministic;
	return rc;
}

/* Computes the key of the template from all that it depends on. */
void vm_init_template(struct target *t)
{
	struct vm *v = vm_own(t);
	const char *files[] = { v->qemu, v->kernel.file };
	auto_strbuf text = STRBUF_INIT;
	struct vm_command c = { 0 };
	struct stat st = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (stat(files[i], &st) == 0)
			strbuf_addf(&text, "%s %lld %lld.%ld\n", files[i], (long long)st.st_size,
				    (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	vm_describe(v, START_BOOT, &c);
	for (unsigned i = 0; i < c.n; i++)
		strbuf_addf(&text, "%s\n", c.argv[i]);
	vm_command_release(&c);
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
	v->template.waiting = t->opts.starting;
	v->template.waiting_ctx = t->opts.starting_ctx;
	v->has_template = true;
}
