/* SPDX-License-Identifier: MIT */
/* guest.c - reads registers and memory of the guest, with what each version of QEMU offers. */
#include "guest.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracer.h"

/* ---- registers ---- */

#if PLUGIN_API >= 3

/* Returns the buffer of this thread, emptied. */
static struct qemu_garray *buffer(void)
{
	static __thread struct qemu_garray *buf;

	if (!buf)
		buf = g_byte_array_new();
	g_byte_array_set_size(buf, 0);
	return buf;
}

static void *handles[16];

bool guest_regs_readable(void)
{
	return true;
}

void guest_regs_find(void)
{
	static const char *const names[] = {
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	struct qemu_garray *list = qemu_plugin_get_registers();
	const struct qemu_register *r = (const struct qemu_register *)(const void *)list->data;

	for (unsigned i = 0; i < list->len; i++)
		for (unsigned j = 0; j < 16; j++)
			if (strcmp(r[i].name, names[j]) == 0)
				handles[j] = r[i].handle;
}

uint64_t reg(const void *state, unsigned n)
{
	struct qemu_garray *buf = buffer();
	uint64_t value = 0;

	(void)state;
	if (handles[n])
		qemu_plugin_read_register(handles[n], buf);
	if (buf->len >= 8)
		memcpy(&value, buf->data, 8);
	return value;
}

#else

/* F1: QEMU's entry for the helper that stands for our callbacks: a pointer to its name, followed by
 * flags, of which the first says that no register is read or written. */
static const char helper_name[] = "plugin_vcpu_udata_cb";
enum { NO_READ_GLOBALS = 1, NO_WRITE_GLOBALS = 2, FLAGS_MAX = 0x3f };

struct helper_entry {
	const char *name;
	uint32_t flags;
};

/* Data may look like an address of nothing: only what the program has loaded is looked at. */
static bool is_loaded(const struct dl_phdr_info *info, uintptr_t from, size_t len)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_R && from >= at &&
		    from - at < p->p_filesz && len <= p->p_filesz - (from - at))
			return true;
	}
	return false;
}

static bool patch_segment(const struct dl_phdr_info *info, uintptr_t start, size_t len)
{
	bool found = false;

	for (uintptr_t at = start; at + sizeof(struct helper_entry) <= start + len; at += 8) {
		struct helper_entry *e = (struct helper_entry *)at;
		uint32_t flags = e->flags;

		if (!(flags & NO_READ_GLOBALS) || flags > FLAGS_MAX ||
		    !is_loaded(info, (uintptr_t)e->name, sizeof(helper_name)) ||
		    memcmp(e->name, helper_name, sizeof(helper_name)) != 0)
			continue;
		uintptr_t page = at & ~(uintptr_t)(GUEST_PAGE - 1);
		if (mprotect((void *)page, 2 * GUEST_PAGE, PROT_READ | PROT_WRITE))
			return false;
		e->flags = (flags & ~(uint32_t)NO_READ_GLOBALS) | NO_WRITE_GLOBALS;
		found = true;
	}
	return found;
}

static int patch_program(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;

	if (info->dlpi_name && info->dlpi_name[0])
		return 0; /* a library: the program itself has no name */
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_W && p->p_filesz > 8 &&
		    patch_segment(info, (at + 7) & ~(uintptr_t)7, p->p_filesz - 8))
			*(bool *)found = true;
	}
	return 1;
}

bool guest_regs_readable(void)
{
	bool found = false;

	dl_iterate_phdr(patch_program, &found);
	return found;
}

void guest_regs_find(void)
{
}

#endif

/* ---- memory ---- */

/* From interface 5 on there is a call for it; before, what the monitor asks. */
uint64_t guest_phys(unsigned vcpu, uint64_t vaddr)
{
	uint64_t attrs = 0;

#if PLUGIN_API >= 3
	uint64_t phys;

	if (qemu_plugin_translate_vaddr)
		return qemu_plugin_translate_vaddr(vaddr, &phys) ? phys : UINT64_MAX;
#endif
	if (qemu_get_cpu && cpu_get_phys_page_attrs_debug) {
		uint64_t page = cpu_get_phys_page_attrs_debug(
			qemu_get_cpu((int)vcpu), vaddr & ~(uint64_t)(GUEST_PAGE - 1), &attrs);

		return page == UINT64_MAX ? page : page + vaddr % GUEST_PAGE;
	}
	lock();
	writer_trouble(pm.w, "this QEMU does not say which physical address is flushed");
	unlock();
	return UINT64_MAX;
}

static size_t read_system(unsigned vcpu, uint64_t addr, void *to, size_t len)
{
#if PLUGIN_API >= 3
	struct qemu_garray *buf = buffer();

	(void)vcpu;
	if (!qemu_plugin_read_memory_vaddr || !qemu_plugin_read_memory_vaddr(addr, buf, len))
		return 0;
	if (len > buf->len)
		len = buf->len;
	memcpy(to, buf->data, len);
	return len;
#else
	if (!cpu_memory_rw_debug || !qemu_get_cpu ||
	    cpu_memory_rw_debug(qemu_get_cpu((int)vcpu), addr, to, len, false))
		return 0;
	return len;
#endif
}

size_t guest_read(unsigned vcpu, uint64_t addr, void *to, size_t len)
{
	if (pm.system)
		return read_system(vcpu, addr, to, len);
	struct iovec here = { to, len };
	struct iovec there = { (void *)(uintptr_t)(addr + guest_zero()), len };
	ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}
