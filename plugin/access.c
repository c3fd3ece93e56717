/* SPDX-License-Identifier: MIT */
/*
 * access.c - records loads and stores that fall into the region, for user emulation and for whole
 * machines.
 */
#include "access.h"

#include "guest.h"
#include "region.h"
#include "tracer.h"

/* ---- what is in the region ---- */

/* Takes a part of the region that a CPU of user emulation stored to, or loaded from; `data` is
 * there. */
static INLINE void accessed_small(unsigned vcpu, unsigned kind, uint64_t off, unsigned shift,
				  uint64_t pc, const void *data)
{
	lock();
	if (off + ((uint64_t)1 << shift) <= region.view_size) {
		if (kind != PM_STREAM_LOAD)
			region_set_dirty(off, (uint64_t)1 << shift);
		record_small(vcpu, kind, off, shift, pc, data);
	}
	unlock();
}

/* Reports an access of any length. */
static void accessed(unsigned vcpu, unsigned kind, uint64_t off, uint64_t len, uint64_t pc)
{
	lock();
	if (off + len <= region.view_size) {
		if (kind != PM_STREAM_LOAD &&
		    !pm.system) /* the emulator has no calls that ask for it */
			region_set_dirty(off, len);
		if (len <= 8 && !(len & (len - 1)))
			record_small(vcpu, kind, off, (unsigned)__builtin_ctzll(len), pc,
				     region.view + off);
		else
			record(vcpu, kind, off, (uint32_t)len, pc, region.view + off);
	}
	unlock();
}

void access_range(unsigned vcpu, unsigned kind, uint64_t addr, uint64_t len, uint64_t pc)
{
	const struct maps *maps = region_maps();

	if (addr + len <= maps->low || addr >= maps->high)
		return;
	while (len) {
		const struct map *m = map_find(maps, addr, len);
		uint64_t n;

		if (!m)
			return;
		if (addr < m->start) {
			len -= m->start - addr;
			addr = m->start;
		}
		n = m->end - addr < len ? m->end - addr : len;
		accessed(vcpu, kind, map_offset(m, addr), n, pc);
		addr += n;
		len -= n;
	}
}

/* ---- system emulation ---- */

static void in_phys(unsigned vcpu, unsigned kind, uint64_t phys, uint64_t len, uint64_t pc)
{
	if (phys < region.phys + region.size && phys + len > region.phys) {
		uint64_t from = phys < region.phys ? region.phys : phys;
		uint64_t to = phys + len > region.phys + region.size ? region.phys + region.size
								     : phys + len;

		accessed(vcpu, kind, from - region.phys, to - from, pc);
	}
}

#if PLUGIN_API < 3
struct hwaddr_1 { /* F3: the contents of struct qemu_plugin_hwaddr */
	bool is_io, is_store;
	void *host;
};
#endif

static void in_system(unsigned vcpu, unsigned kind, qemu_plugin_meminfo_t info, uint64_t vaddr,
		      uint64_t len, uint64_t pc)
{
	const struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);
	uint64_t first = GUEST_PAGE - vaddr % GUEST_PAGE;

	if (!hw || qemu_plugin_hwaddr_is_io(hw))
		return;
	if (first > len)
		first = len;
#if PLUGIN_API < 3
	const struct hwaddr_1 *h = (const struct hwaddr_1 *)(const void *)hw;

	access_range(vcpu, kind, (uint64_t)(uintptr_t)h->host, first, pc);
#else
	in_phys(vcpu, kind, qemu_plugin_hwaddr_phys_addr(hw), first, pc);
#endif
	if (first < len) { /* the next page may be anywhere */
		uint64_t phys = guest_phys(vcpu, vaddr + first);

		if (phys != UINT64_MAX)
			in_phys(vcpu, kind, phys, len - first, pc);
	}
}

/* ---- what QEMU calls ---- */

/*
 * QEMU's facts about an access, remembered: its calls are too slow to be made each time, and its
 * answers few.
 */
static INLINE unsigned about(qemu_plugin_meminfo_t info)
{
	enum { KNOWN = 64, STORE = 1 << 8 };
	static uint64_t known[KNOWN]; /* the number, and the answer + 1 above it */
	uint64_t *slot = &known[(info ^ info >> 4 ^ info >> 14) % KNOWN];
	uint64_t k = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if ((uint32_t)k != info || !k) {
		k = (qemu_plugin_mem_is_store(info) ? STORE : 0) | qemu_plugin_mem_size_shift(info);
		k = info | (k | 1 << 9) << 32;
		__atomic_store_n(slot, k, __ATOMIC_RELAXED);
	}
	return (unsigned)(k >> 32);
}

static INLINE bool is_store(unsigned about_it)
{
	return about_it >> 8 & 1;
}

static INLINE unsigned shift_of(unsigned about_it)
{
	return about_it & 0xff;
}

/* User emulation: an access to the region, or close to it. */
static NOINLINE void user_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
				 uint64_t pc, unsigned kind)
{
	const struct map *m = &region_maps()->v[0];
	unsigned a = about(info), shift = shift_of(a);
	uint64_t len = (uint64_t)1 << shift;

	if (!is_store(a)) {
		if (!pm.loads)
			return;
		kind = PM_STREAM_LOAD;
	}
	if (vaddr >= m->start && vaddr + len <= m->end && shift <= 3) {
		uint64_t off = map_offset(m, vaddr);

		/* By the address that was stored to, the processor still has it at hand. */
		accessed_small(vcpu, kind, off, shift, pc,
			       pm.alone ? (const void *)(uintptr_t)(vaddr + region.guest_base)
					: region.view + off);
	} else {
		access_range(vcpu, kind, vaddr, len, pc);
	}
}

/* Most accesses are elsewhere: they must cost next to nothing. */
static INLINE bool elsewhere(uint64_t vaddr)
{
	const struct maps *maps = region_maps();

	return vaddr >= maps->high || vaddr + 64 <= maps->low || pm.off;
}

static void system_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata,
			  unsigned kind)
{
	if (pm.off)
		return;
	unsigned a = about(info);

	if (!is_store(a)) {
		if (!pm.loads)
			return;
		kind = PM_STREAM_LOAD;
	}
	in_system(vcpu, kind, info, vaddr, (uint64_t)1 << shift_of(a), (uint64_t)(uintptr_t)udata);
}

static void user_store_cb(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	if (!elsewhere(vaddr))
		user_access(vcpu, info, vaddr, (uint64_t)(uintptr_t)udata, PM_STREAM_STORE);
}

static void user_nt_store_cb(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	if (!elsewhere(vaddr))
		user_access(vcpu, info, vaddr, (uint64_t)(uintptr_t)udata, PM_STREAM_NTSTORE);
}

static void system_store_cb(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	system_access(vcpu, info, vaddr, udata, PM_STREAM_STORE);
}

static void system_nt_store_cb(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
			       void *udata)
{
	system_access(vcpu, info, vaddr, udata, PM_STREAM_NTSTORE);
}

qemu_mem_cb *access_cb(bool nt)
{
	if (pm.system)
		return nt ? system_nt_store_cb : system_store_cb;
	return nt ? user_nt_store_cb : user_store_cb;
}
