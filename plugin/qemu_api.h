/* SPDX-License-Identifier: MIT */
/*
 * qemu_api.h - the part of QEMU's plugin interface that we use, declared by hand: Debian ships
 * QEMU without its header.
 *
 * PLUGIN_API is the version that we ask for, and what the interface then looks like:
 *
 *	1	QEMU 4.2 to 8.2 (Debian 12: 7.2). No registers, no memory, and a filter for loads
 *		and stores that lets pass what it should not; see outage-pm.c.
 *	4	QEMU 9.2 to 11.0, which say that they have 4 to 6. Registers by name, memory by
 *		address; physical addresses from 5 on. Reading a register returned a number of
 *		bytes, and tells whether it worked from 6 on: only the buffer is looked at.
 *
 * QEMU 9.0 and 9.1 (2 and 3) take neither. QEMU 11.1 has 7, and takes nothing older: there all
 * callbacks have other arguments.
 *
 * A function that only some versions have is weak, and may be NULL.
 */
#ifndef PLUGIN_QEMU_API_H
#define PLUGIN_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

#define PLUGIN_EXPORT __attribute__((visibility("default")))
#define PLUGIN_WEAK   __attribute__((weak))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

struct qemu_info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
};

enum qemu_cb_flags { QEMU_CB_NO_REGS, QEMU_CB_R_REGS, QEMU_CB_RW_REGS };
enum qemu_mem_rw { QEMU_MEM_R = 1, QEMU_MEM_W, QEMU_MEM_RW };

typedef void qemu_udata_cb(qemu_plugin_id_t id, void *udata);
typedef void qemu_simple_cb(qemu_plugin_id_t id);
typedef void qemu_vcpu_cb(qemu_plugin_id_t id, unsigned vcpu);
typedef void qemu_vcpu_udata_cb(unsigned vcpu, void *udata);
typedef void qemu_mem_cb(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata);
typedef void qemu_tb_cb(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void qemu_syscall_cb(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1,
			     uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
			     uint64_t a7, uint64_t a8);
typedef void qemu_syscall_ret_cb(qemu_plugin_id_t id, unsigned vcpu, int64_t num, int64_t ret);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_vcpu_cb *cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_tb_cb *cb);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, qemu_syscall_cb *cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, qemu_syscall_ret_cb *cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_udata_cb *cb, void *udata);
void qemu_plugin_register_flush_cb(qemu_plugin_id_t id, qemu_simple_cb *cb);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
#if PLUGIN_API < 3
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#else
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);
#endif
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_vcpu_udata_cb *cb,
					    enum qemu_cb_flags flags, void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_mem_cb *cb,
				      enum qemu_cb_flags flags, enum qemu_mem_rw rw, void *udata);

unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *addr);

/* ---- from version 3 on ---- */

#if PLUGIN_API >= 3
struct qemu_garray { /* GLib's GArray and GByteArray, as far as they can be seen */
	char *data;
	unsigned len;
};
struct qemu_register {
	void *handle;
	const char *name, *feature;
};
struct qemu_garray *qemu_plugin_get_registers(void);
void qemu_plugin_read_register(void *handle, struct qemu_garray *buf); /* see above */
PLUGIN_WEAK bool qemu_plugin_read_memory_vaddr(uint64_t addr, struct qemu_garray *data, size_t len);
PLUGIN_WEAK bool qemu_plugin_translate_vaddr(uint64_t vaddr, uint64_t *hwaddr);
struct qemu_garray *g_byte_array_new(void);
struct qemu_garray *g_byte_array_set_size(struct qemu_garray *array, unsigned length);
#endif

/* ---- QEMU's own functions, which 7.2 happens to export ---- */

struct qemu_cpu;
PLUGIN_WEAK struct qemu_cpu *qemu_get_cpu(int index);
PLUGIN_WEAK uint64_t cpu_get_phys_page_attrs_debug(struct qemu_cpu *cpu, uint64_t vaddr,
						   void *attrs);
PLUGIN_WEAK int cpu_memory_rw_debug(struct qemu_cpu *cpu, uint64_t vaddr, void *buf, size_t len,
				    bool write);
extern uintptr_t guest_base PLUGIN_WEAK; /* for user emulation */

#endif
