/* SPDX-License-Identifier: MIT */
/* vm_impl.h - declarations for the files of the vm: targets. */
#ifndef TARGET_VM_IMPL_H
#define TARGET_VM_IMPL_H

#include "record/pm_tracer.h"
#include "target/guest_target.h"
#include "guest/vm_kernel.h"
#include "guest/vm_template.h"

enum { MIB = 1 << 20 };

/* The descriptors that QEMU is started with, after those of every guest. */
enum {
	FD_RAM = GUEST_FD_MORE,
	FD_KERNEL,
	FD_MONITOR,
	FD_STATE,
	FD_PM,
	FD_PLUGIN,
	FD_STREAM,
};

#define NVDIMM_HEAD TARGET_NVDIMM_HEAD /* a multiple of the pages' alignment */
#define PM_START    (4ULL << 30)       /* its physical address: all other memory is below */

struct vm {
	struct guest_target base; /* first */
	struct vm_kernel kernel;
	char *qemu;
	struct vm_template template;
	bool has_template, no_clones, emulate, deterministic;
	bool no_clwb, no_clflushopt; /* its processors lack them */
	unsigned cpus;
	bool doubts_kvm;	     /* a start failed, and KVM may be the cause */
	struct guest_args qemu_args; /* the user's */
	uint64_t flash_size;
	char *flash;	  /* the arguments of the flash driver, or NULL */
	int monitors[3];  /* monitors of the running machines, as `guests`; or -1 */
	uint64_t pm_size; /* 0: it has a disk */
	bool nvdimm;	  /* persistent memory is a device, not a declared range */
	bool eadr;	  /* the device reports that caches are persistent, too */
	struct tracer tracer;
};

static inline struct vm *vm_own(struct target *t)
{
	return t->own;
}

/* The machines, one of which is current. */
enum { PLAIN, TRACED, TRACED_LOADS };

static inline ptrdiff_t vm_machine(const struct vm *v)
{
	return v->base.guest - v->base.guests;
}

static inline bool vm_is_traced(const struct vm *v)
{
	return vm_machine(v) != PLAIN;
}

static inline int *vm_monitor(struct vm *v)
{
	return &v->monitors[vm_machine(v)];
}

/* ---- the command (vm_command.c) ---- */

enum vm_start_kind { START_BOOT, START_KVM, START_CLONE };

struct vm_command {
	const char *argv[64 + GUEST_ARGS_MAX];
	unsigned n;
	char *owned[12];
	unsigned n_owned;
};

void vm_describe(const struct vm *v, enum vm_start_kind kind, struct vm_command *c);
void vm_command_release(struct vm_command *c);

/* ---- the monitor (vm_monitor.c) ---- */

/* Writes the first commands to the monitor of QEMU: for a clone, with the state to load. */
void vm_greet(struct vm *v, enum vm_start_kind kind);
/*
 * Saves the state of a machine, all but its memory, to `state`. The machine is stopped afterwards.
 */
int vm_save_state(struct vm *v, int state, struct err *err) must_check;

/* ---- KVM (vm_kvm.c) ---- */

/* Returns why KVM is not tried, or NULL. */
const char *vm_why_no_kvm(void);
/* No run tries KVM again until this machine is booted anew. */
void vm_remember_kvm_failed(void);

/* ---- starting (vm_start.c) ---- */

/*
 * The boot number of the current machine: each boot has one in this process, which its clones
 * share.
 */
static inline uint64_t *vm_boot(struct vm *v)
{
	return &v->base.boots[vm_machine(v)];
}

/* Sets the key of the template from all that it depends on. */
void vm_init_template(struct target *t);
/* Starts the current machine. */
int vm_start(struct target *t, struct err *err) must_check;

/* ---- persistent memory as a device (vm_nvdimm.c) ---- */

/* Writes the head that a kernel expects at the start of an NVDIMM, before the file system. */
void vm_nvdimm_head(struct image *img);

/* ---- tracing (vm_trace.c) ---- */

/* Checks that the emulator can trace: 0, or -ENOTSUP and what to install. */
int vm_needs_plugins(const char *qemu, struct err *err) must_check;
/* Makes the disk of persistent memory record by a traced machine. */
void vm_drive_tracing(struct target *t);

#endif
