/* SPDX-License-Identifier: MIT */
/*
 * outage-pm.c - a QEMU plugin that traces persistent memory: every store to it, every flush and
 * fence, and marks. The same source serves user emulation and system emulation.
 *
 *	stream=FILE		where the trace goes: writer.h
 *	region=user:POOL	user emulation: the file POOL, wherever the program maps it (shared)
 *	region=phys:START,SIZE,FILE[,OFFSET]
 *				system emulation: SIZE bytes at the guest's physical address START,
 *				which are the bytes from OFFSET (if not given: START) of FILE
 *	loads=on		loads, too
 *	stacks=on		and call stacks, of what is recorded: shadow.h
 *	filter=off		do not rely on F2, see below
 *	begin=mark		trace nothing before the mark OUTAGE_MARK_START; OUTAGE_MARK_STOP
 *				ends the stream, and the next start begins it anew
 *
 * What is stored is read from memory, after the store: no interface for values is needed, and the
 * trace tells what is there even if threads race. What version 1 of QEMU's interface lacks is got
 * in ways that the interface does not promise; outage tests them at each start by a program whose
 * trace is known, and each run by replaying it.
 *
 * F1: registers. A callback is called from translated code, which holds the pointer to the CPU's
 *     state in a fixed register of the host; the general registers come first in that state. They
 *     are up to date only if the code believes that the callback reads them: we say so in QEMU's
 *     table of helpers. Later versions have a call for it.
 * F2: the filter for stores. In version 1 it compares a number with a mask one off: asked for
 *     loads, it gives the stores of translated code, and asked for stores, everything. Where
 *     stores are made by helpers it works as it should. So we ask by what the instruction is.
 * F3: physical addresses. Version 1 gives the place of RAM among all RAM, not the address. Behind
 *     what it hands out is the host's address, and FILE is mapped there.
 *
 * P1: with several CPUs or processes, a record is made, and its data read, under one lock. One CPU
 *     in one process needs none; a thread or process is announced by the call that makes it, before
 *     there is a second one, and from then on the lock is taken.
 * P2: the stack is not in the region: what is addressed by the stack pointer alone is not looked
 *     at. Where that does not hold, it is noticed when the stack pointer is set, at a mark or
 *flush, or by the replay. P3: what is not in the region costs a callback and two comparisons (user
 *emulation), whatever else there is to do is done when code is translated.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "decode.h"
#include "maps.h"
#include "outage/mark.h"
#include "outage/pm_stream.h"
#include "qemu_api.h"
#include "shadow.h"
#include "writer.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				      char **argv);

#define INLINE	 inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

enum { CPUS_HERE = 4096, PAGE = 4096, MAPS_MAX = 64 };

/* Where the region is in an address space: that of the guest, or (system emulation) of QEMU. */
struct map {
	uint64_t start, end, offset; /* offset: of `start` in the region */
};

struct maps {
	size_t n;
	uint64_t low, high; /* around all of them: most accesses are elsewhere */
	struct map v[MAPS_MAX];
};

struct cpu_here {
	bool known;
	bool since_fence;      /* something was recorded since its last fence */
	uint16_t number;       /* in the stream */
	struct shadow *shadow; /* the stack that it is on; NULL: not known */
	uint64_t next;	       /* where its last store ended */
	uint32_t flow, seen;   /* calls and returns so far; and before that store */
	struct shadows own;    /* user emulation */
};

static struct {
	bool system, loads, stacks, filter;
	bool alone;  /* one CPU in one process: nobody to lock out */
	bool marked; /* begin=mark */
	bool off;    /* nothing is traced now */
	struct writer *w;
	char *maps_path;	   /* a file for what is mapped in the end, or NULL */
	char *path;		   /* the file behind the region */
	int fd;			   /* -1: not opened yet */
	const unsigned char *view; /* the file, mapped by us; of the region the first byte */
	uint64_t view_size;
	uint64_t phys, size, offset; /* system emulation */
	uint64_t guest_base;	     /* user emulation: where the guest's address 0 is */
	struct maps *maps;	     /* never changed, only replaced */
	unsigned char
		*dirty; /* a bit a line: stored to since it was flushed; shared with children */
	struct cpu_here cpu[CPUS_HERE];
} pm = { .fd = -1, .filter = true };

static const struct maps no_maps;

/* ---- records ---- */

static NOINLINE void new_cpu(struct cpu_here *c, unsigned vcpu)
{
	if (vcpu >= CPUS_HERE)
		writer_trouble(pm.w, "more than %d threads were started", CPUS_HERE);
	c->number = writer_new_cpu(pm.w);
	c->known = true;
}

static INLINE struct cpu_here *cpu_here(unsigned vcpu)
{
	struct cpu_here *c = &pm.cpu[vcpu % CPUS_HERE];

	if (!c->known)
		new_cpu(c, vcpu);
	return c;
}

/* Who is alone becomes one of several only where it holds no lock: P1. */
static INLINE void lock(void)
{
	if (!pm.alone)
		writer_lock(pm.w);
}

static INLINE void unlock(void)
{
	if (!pm.alone)
		writer_unlock(pm.w);
}

enum { STACKS = 1 << 16, STACKS_FULL = STACKS / 4 * 3 };

static struct {
	uint32_t epoch, n;
	struct {
		uint64_t hash; /* 0: free */
		uint32_t number;
	} v[STACKS];
} stacks; /* those that have been written */

/* The number of a stack; 0 if there are too many. With the lock held. */
static NOINLINE uint32_t find_stack(struct shadow *s)
{
	uint64_t frames[SHADOW_FRAMES], hash = shadow_hash(s), at = hash >> 20;

	if (stacks.epoch != pm.w->epoch) {
		memset(&stacks, 0, sizeof(stacks));
		stacks.epoch = pm.w->epoch;
	}
	while (stacks.v[at % STACKS].hash && stacks.v[at % STACKS].hash != hash)
		at++;
	if (!stacks.v[at % STACKS].hash) {
		if (stacks.n == STACKS_FULL)
			return 0;
		stacks.n++;
		stacks.v[at % STACKS].hash = hash;
		stacks.v[at % STACKS].number =
			writer_new_stack(pm.w, frames, shadow_frames(s, frames));
	}
	s->number = stacks.v[at % STACKS].number;
	s->epoch = stacks.epoch;
	return s->number;
}

static INLINE uint32_t stack_of(const struct cpu_here *c)
{
	struct shadow *s = c->shadow;

	if (!s || !s->n)
		return 0;
	return s->number && s->epoch == pm.w->epoch ? s->number : find_stack(s);
}

/* Whether a store goes on where the last one ended, and is not made by the same call. */
static INLINE bool is_new_call(struct cpu_here *c, unsigned kind, uint64_t addr, uint64_t len)
{
	if (kind != PM_STREAM_STORE && kind != PM_STREAM_NTSTORE)
		return false;
	bool is_new = c->flow != c->seen && addr == c->next;

	c->seen = c->flow;
	c->next = addr + len;
	return is_new;
}

/* What comes all the time: 1 << `shift` bytes, or none. With the lock held. */
static INLINE void record_small(unsigned vcpu, unsigned kind, uint64_t addr, unsigned shift,
				uint64_t pc, const void *data)
{
	struct cpu_here *c = cpu_here(vcpu);

	c->since_fence = kind != PM_STREAM_FENCE;
	if (is_new_call(c, kind, addr, (uint64_t)1 << shift))
		writer_new_call(pm.w);
	writer_add_small(pm.w, kind, c->number, pm.stacks ? stack_of(c) : 0, shift, addr, pc, data);
}

/* Everything else. With the lock held. */
static void record(unsigned vcpu, unsigned kind, uint64_t addr, uint32_t len, uint64_t pc,
		   const void *data)
{
	struct cpu_here *c = cpu_here(vcpu);
	struct pm_stream_record r = { .kind = (uint8_t)kind,
				      .cpu = c->number,
				      .len = len,
				      .addr = addr,
				      .pc = pc,
				      .stack = pm.stacks ? stack_of(c) : 0 };

	if (is_new_call(c, kind, addr, len))
		r.flags = PM_STREAM_NEW_CALL;

	c->since_fence = true;
	writer_add(pm.w, &r, data);
}

/* System emulation has no calls that ask what is dirty. */
static INLINE void set_dirty(uint64_t off, uint64_t len)
{
	for (uint64_t line = off / PM_STREAM_LINE; line <= (off + len - 1) / PM_STREAM_LINE; line++)
		pm.dirty[line / 8] |= (unsigned char)(1 << line % 8);
}

/* Takes a part of the region that a CPU stored to, or loaded from; `data` is there. */
static INLINE void accessed_small(unsigned vcpu, unsigned kind, uint64_t off, unsigned shift,
				  uint64_t pc, const void *data)
{
	lock();
	if (off + ((uint64_t)1 << shift) <= pm.view_size) {
		if (kind != PM_STREAM_LOAD && !pm.system)
			set_dirty(off, (uint64_t)1 << shift);
		record_small(vcpu, kind, off, shift, pc, data);
	}
	unlock();
}

/* The same, of any length. */
static void accessed(unsigned vcpu, unsigned kind, uint64_t off, uint64_t len, uint64_t pc)
{
	lock();
	if (off + len <= pm.view_size) {
		if (kind != PM_STREAM_LOAD)
			set_dirty(off, len);
		if (len <= 8 && !(len & (len - 1)))
			record_small(vcpu, kind, off, (unsigned)__builtin_ctzll(len), pc,
				     pm.view + off);
		else
			record(vcpu, kind, off, (uint32_t)len, pc, pm.view + off);
	}
	unlock();
}

static const struct map *find(const struct maps *m, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < m->n; i++)
		if (addr < m->v[i].end && addr + len > m->v[i].start)
			return &m->v[i];
	return NULL;
}

/* What of [addr, addr + len) lies in the region; stores may reach over its ends. */
static void in_maps(unsigned vcpu, unsigned kind, uint64_t addr, uint64_t len, uint64_t pc)
{
	const struct maps *maps = __atomic_load_n(&pm.maps, __ATOMIC_ACQUIRE);

	if (addr + len <= maps->low || addr >= maps->high)
		return;
	while (len) {
		const struct map *m = find(maps, addr, len);
		uint64_t n;

		if (!m)
			return;
		if (addr < m->start) {
			len -= m->start - addr;
			addr = m->start;
		}
		n = m->end - addr < len ? m->end - addr : len;
		accessed(vcpu, kind, m->offset + (addr - m->start), n, pc);
		addr += n;
		len -= n;
	}
}

/* ---- memory accesses ---- */

/* The guest's physical address; UINT64_MAX if there is none. System emulation only. */
static uint64_t phys_of(unsigned vcpu, uint64_t vaddr)
{
#if PLUGIN_API >= 3
	uint64_t phys;

	(void)vcpu;
	if (qemu_plugin_translate_vaddr)
		return qemu_plugin_translate_vaddr(vaddr, &phys) ? phys : UINT64_MAX;
#else
	uint64_t attrs = 0;

	if (qemu_get_cpu && cpu_get_phys_page_attrs_debug) {
		uint64_t page = cpu_get_phys_page_attrs_debug(
			qemu_get_cpu((int)vcpu), vaddr & ~(uint64_t)(PAGE - 1), &attrs);

		return page == UINT64_MAX ? page : page + vaddr % PAGE;
	}
#endif
	lock();
	writer_trouble(pm.w, "this QEMU does not say which physical address is flushed");
	unlock();
	return UINT64_MAX;
}

static void in_phys(unsigned vcpu, unsigned kind, uint64_t phys, uint64_t len, uint64_t pc)
{
	if (phys < pm.phys + pm.size && phys + len > pm.phys) {
		uint64_t from = phys < pm.phys ? pm.phys : phys;
		uint64_t to = phys + len > pm.phys + pm.size ? pm.phys + pm.size : phys + len;

		accessed(vcpu, kind, from - pm.phys, to - from, pc);
	}
}

#if PLUGIN_API < 3
struct hwaddr_1 { /* F3: what struct qemu_plugin_hwaddr is */
	bool is_io, is_store;
	void *host;
};
#endif

static void in_system(unsigned vcpu, unsigned kind, qemu_plugin_meminfo_t info, uint64_t vaddr,
		      uint64_t len, uint64_t pc)
{
	const struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);
	uint64_t first = PAGE - vaddr % PAGE;

	if (!hw || qemu_plugin_hwaddr_is_io(hw))
		return;
	if (first > len)
		first = len;
#if PLUGIN_API < 3
	const struct hwaddr_1 *h = (const struct hwaddr_1 *)(const void *)hw;

	in_maps(vcpu, kind, (uint64_t)(uintptr_t)h->host, first, pc);
#else
	in_phys(vcpu, kind, qemu_plugin_hwaddr_phys_addr(hw), first, pc);
#endif
	if (first < len) { /* the next page may be anywhere */
		uint64_t phys = phys_of(vcpu, vaddr + first);

		if (phys != UINT64_MAX)
			in_phys(vcpu, kind, phys, len - first, pc);
	}
}

/* What QEMU says of an access, as it says it: its calls are too slow to be made each time, and its
 * answers few. */
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
	const struct map *m = &__atomic_load_n(&pm.maps, __ATOMIC_ACQUIRE)->v[0];
	unsigned a = about(info), shift = shift_of(a);
	uint64_t len = (uint64_t)1 << shift;

	if (!is_store(a)) {
		if (!pm.loads)
			return;
		kind = PM_STREAM_LOAD;
	}
	if (vaddr >= m->start && vaddr + len <= m->end && shift <= 3) {
		uint64_t off = m->offset + (vaddr - m->start);

		/* By the address that was stored to, the processor still has it at hand. */
		accessed_small(vcpu, kind, off, shift, pc,
			       pm.alone ? (const void *)(uintptr_t)(vaddr + pm.guest_base)
					: pm.view + off);
	} else {
		in_maps(vcpu, kind, vaddr, len, pc);
	}
}

/* Most accesses are elsewhere: they must cost next to nothing. */
static INLINE bool elsewhere(uint64_t vaddr)
{
	const struct maps *maps = __atomic_load_n(&pm.maps, __ATOMIC_ACQUIRE);

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

static qemu_mem_cb *access_cb(bool nt)
{
	if (pm.system)
		return nt ? system_nt_store_cb : system_store_cb;
	return nt ? user_nt_store_cb : user_store_cb;
}

/* ---- instructions that touch no memory that QEMU knows of ---- */

struct known {
	struct insn insn;
	uint64_t pc, next;
};

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

#if PLUGIN_API >= 3
static void *handles[16];

static void find_registers(void)
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

static uint64_t reg(const void *state, unsigned n)
{
	static __thread struct qemu_garray *buf;
	uint64_t value = 0;

	(void)state;
	if (!buf)
		buf = g_byte_array_new();
	g_byte_array_set_size(buf, 0);
	if (handles[n])
		qemu_plugin_read_register(handles[n], buf);
	if (buf->len >= 8)
		memcpy(&value, buf->data, 8);
	return value;
}
#else
static void find_registers(void)
{
}

static uint64_t reg(const void *state, unsigned n)
{
	return ((const uint64_t *)state)[n];
}
#endif

static uint64_t effective(const struct known *k, const void *state)
{
	const struct insn *i = &k->insn;
	uint64_t a = (uint64_t)(int64_t)i->disp;

	if (i->base == INSN_RIP)
		a += k->next;
	else if (i->base != INSN_NO_REG)
		a += reg(state, i->base);
	if (i->index != INSN_NO_REG)
		a += reg(state, i->index) * i->scale;
	return i->addr32 ? (uint32_t)a : a;
}

static void flush_line(unsigned vcpu, unsigned kind, uint64_t off, uint64_t pc)
{
	uint64_t line = off / PM_STREAM_LINE;

	pm.dirty[line / 8] &= (unsigned char)~(1 << line % 8);
	record_small(vcpu, kind, line * PM_STREAM_LINE, 0, pc, NULL);
}

/* P2. With the lock held. */
static void check_stack(unsigned vcpu, const void *state)
{
	uint64_t sp = reg(state, RSP);
	bool in = false;

	if (!pm.system) {
		in = find(pm.maps, sp - 8, 16);
	} else {
		uint64_t phys = phys_of(vcpu, sp);

		in = phys >= pm.phys && phys < pm.phys + pm.size;
	}
	if (in)
		writer_trouble(pm.w,
			       "the program's stack is in the persistent memory, where stores "
			       "by the stack pointer are not traced");
}

/* Before the instruction that follows one which set the stack pointer. */
__attribute__((used)) static void stack_cb(unsigned vcpu, void *udata, const void *state)
{
	(void)udata;
	if (pm.off || !pm.view)
		return;
	lock();
	check_stack(vcpu, state);
	unlock();
}

/* Called from translated code, by way of what captures its register: see F1. */
__attribute__((used)) static void flush_cb(unsigned vcpu, void *udata, const void *state)
{
	const struct known *k = udata;
	uint64_t addr = effective(k, state), off = UINT64_MAX;

	if (pm.off)
		return;
	if (pm.system) {
		uint64_t phys = phys_of(vcpu, addr);

		if (phys >= pm.phys && phys < pm.phys + pm.size)
			off = phys - pm.phys;
	} else {
		const struct map *m = find(__atomic_load_n(&pm.maps, __ATOMIC_ACQUIRE), addr, 1);

		if (m)
			off = m->offset + (addr - m->start);
	}
	lock();
	if (!pm.system)
		check_stack(vcpu, state);
	if (k->insn.segment && pm.view)
		writer_trouble(pm.w,
			       "a flush at %#" PRIx64 " uses a segment register, which this "
			       "tracer does not know",
			       k->pc);
	else if (off < pm.view_size)
		flush_line(vcpu, k->insn.kind == INSN_CLFLUSH ? PM_STREAM_CLFLUSH : PM_STREAM_FLUSH,
			   off, k->pc);
	unlock();
}

static size_t read_guest(unsigned vcpu, uint64_t addr, char *to, size_t len)
{
	if (!pm.system) {
		struct iovec here = { to, len };
		struct iovec there = { (void *)(uintptr_t)(addr + (&guest_base ? guest_base : 0)),
				       len };
		ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

		return n < 0 ? 0 : (size_t)n;
	}
#if PLUGIN_API >= 3
	struct qemu_garray *buf = g_byte_array_new();

	(void)vcpu;
	if (!qemu_plugin_read_memory_vaddr || !qemu_plugin_read_memory_vaddr(addr, buf, len))
		return 0;
	memcpy(to, buf->data, buf->len < len ? buf->len : len);
	return buf->len < len ? buf->len : len;
#else
	if (!cpu_memory_rw_debug || !qemu_get_cpu ||
	    cpu_memory_rw_debug(qemu_get_cpu((int)vcpu), addr, to, len, false))
		return 0;
	return len;
#endif
}

/* Between traces nothing is recorded. The lock is held. */
static void begin_or_end(bool begin)
{
	if (!pm.marked || begin != pm.off)
		return;
	if (begin) {
		writer_restart(pm.w);
		for (size_t i = 0; i < CPUS_HERE; i++)
			pm.cpu[i].since_fence = false;
	} else {
		writer_count(pm.w, -1);
	}
	pm.off = !begin;
}

__attribute__((used)) static void mark_cb(unsigned vcpu, void *udata, const void *state)
{
	static __thread char text[OUTAGE_MARK_TEXT_MAX];
	const struct known *k = udata;
	uint64_t a = reg(state, RDI), b = reg(state, RSI);
	bool control = k->insn.mark == OUTAGE_MARK_START || k->insn.mark == OUTAGE_MARK_STOP;

	if (pm.off && !control)
		return;
	lock();
	check_stack(vcpu, state);
	switch (k->insn.mark) {
	case OUTAGE_MARK_START:
	case OUTAGE_MARK_STOP:
		begin_or_end(k->insn.mark == OUTAGE_MARK_START);
		break;
	case OUTAGE_MARK_BEGIN:
	case OUTAGE_MARK_END:
		record(vcpu,
		       k->insn.mark == OUTAGE_MARK_END ? PM_STREAM_MARK_END : PM_STREAM_MARK_BEGIN,
		       a, 0, k->pc, NULL);
		break;
	case OUTAGE_MARK_TEXT: {
		size_t n = read_guest(vcpu, a, text, b < sizeof(text) ? b : sizeof(text));

		record(vcpu, PM_STREAM_TEXT, 0, (uint32_t)n, k->pc, text);
		break;
	}
	default:
		record(vcpu, PM_STREAM_SELF, a, 0, b, NULL);
		break;
	}
	unlock();
}

static void fence_cb(unsigned vcpu, void *udata)
{
	const struct known *k = udata;

	/* Locks are everywhere: such a one that has nothing to wait for need not be told. */
	if (pm.off)
		return;
	if (k->insn.kind == INSN_LOCKED && !pm.cpu[vcpu % CPUS_HERE].since_fence)
		return;
	lock();
	if (pm.view)
		record_small(vcpu, PM_STREAM_FENCE, 0, 0, k->pc, NULL);
	unlock();
}

/* Before the instruction is carried out. */
static struct shadow *shadow_at(struct cpu_here *c, uint64_t slot)
{
	c->shadow = pm.system ? shadow_kernel(slot) : shadow_user(&c->own, slot);
	return c->shadow;
}

__attribute__((used)) static void call_cb(unsigned vcpu, void *udata, const void *state)
{
	uint64_t slot = reg(state, RSP) - 8;
	struct cpu_here *c = &pm.cpu[vcpu % CPUS_HERE];
	struct shadow *s = shadow_at(c, slot);

	c->flow++;
	if (s)
		shadow_call(s, slot, (uint64_t)(uintptr_t)udata);
}

__attribute__((used)) static void return_cb(unsigned vcpu, void *udata, const void *state)
{
	uint64_t slot = reg(state, RSP);
	struct cpu_here *c = &pm.cpu[vcpu % CPUS_HERE];
	struct shadow *s = shadow_at(c, slot);

	(void)udata;
	c->flow++;
	if (s)
		shadow_return(s, slot);
}

static void leave_cb(unsigned vcpu, void *udata)
{
	(void)udata;
	pm.cpu[vcpu % CPUS_HERE].shadow = NULL;
}

/* F1: the third argument is the register that translated code keeps the CPU's state in. */
void flush_entry(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));
void mark_entry(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));
void call_entry(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));
void return_entry(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));
void stack_entry(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));

/* clang-format off */
#if defined(__x86_64__)
#define ENTRY(name, to)                                                                            \
	__asm__(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ", @function\n"         \
		#name ":\n\tmov %rbp, %rdx\n\tjmp " #to "\n.size " #name ", . - " #name "\n")
#elif defined(__aarch64__)
#define ENTRY(name, to)                                                                            \
	__asm__(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ", %function\n"         \
		#name ":\n\tmov x2, x19\n\tb " #to "\n.size " #name ", . - " #name "\n")
#else
#error "which register holds the CPU's state in translated code?"
#endif
/* clang-format on */
ENTRY(flush_entry, flush_cb);
ENTRY(mark_entry, mark_cb);
ENTRY(call_entry, call_cb);
ENTRY(return_entry, return_cb);
ENTRY(stack_entry, stack_cb);

/* ---- translation ---- */

static size_t insn_bytes(const struct qemu_plugin_insn *insn, unsigned char *to, size_t room)
{
	size_t n = qemu_plugin_insn_size(insn);

	if (n > room)
		n = room;
#if PLUGIN_API < 3
	memcpy(to, qemu_plugin_insn_data(insn), n);
	return n;
#else
	return qemu_plugin_insn_data(insn, to, n);
#endif
}

static struct known *known(const struct insn *insn, const struct qemu_plugin_insn *q)
{
	struct known *k = malloc(sizeof(*k)); /* as long as the translation: for ever */

	if (!k)
		abort();
	k->insn = *insn;
	k->pc = qemu_plugin_insn_vaddr(q);
	k->next = k->pc + qemu_plugin_insn_size(q);
	return k;
}

static enum qemu_mem_rw which_accesses(const struct insn *i)
{
	if (pm.loads)
		return QEMU_MEM_RW;
	if (PLUGIN_API >= 3)
		return QEMU_MEM_W;
	if (!pm.filter || i->by_helper)
		return QEMU_MEM_RW;
	return QEMU_MEM_R; /* F2 */
}

static void watch_flow(struct qemu_plugin_insn *q, const struct insn *insn)
{
	uint64_t next = qemu_plugin_insn_vaddr(q) + qemu_plugin_insn_size(q);

	switch (insn->flow) {
	case FLOW_CALL:
		qemu_plugin_register_vcpu_insn_exec_cb(q, call_entry, QEMU_CB_R_REGS,
						       (void *)(uintptr_t)next);
		break;
	case FLOW_RETURN:
		qemu_plugin_register_vcpu_insn_exec_cb(q, return_entry, QEMU_CB_R_REGS, NULL);
		break;
	case FLOW_LEAVE:
		qemu_plugin_register_vcpu_insn_exec_cb(q, leave_cb, QEMU_CB_NO_REGS, NULL);
		break;
	default:
		break;
	}
}

static void watch(struct qemu_plugin_insn *q, bool *stack_moved)
{
	unsigned char code[16];
	struct insn insn;

	insn_decode(code, insn_bytes(q, code, sizeof(code)), &insn);
	if (*stack_moved && !pm.system)
		qemu_plugin_register_vcpu_insn_exec_cb(q, stack_entry, QEMU_CB_R_REGS, NULL);
	*stack_moved = insn.moves_stack;
	if (pm.stacks)
		watch_flow(q, &insn);
	switch (insn.kind) {
	case INSN_FLUSH:
	case INSN_CLFLUSH:
		qemu_plugin_register_vcpu_insn_exec_cb(q, flush_entry, QEMU_CB_R_REGS,
						       known(&insn, q));
		return;
	case INSN_MARK:
		qemu_plugin_register_vcpu_insn_exec_cb(q, mark_entry, QEMU_CB_R_REGS,
						       known(&insn, q));
		return;
	case INSN_FENCE:
	case INSN_LOCKED:
		qemu_plugin_register_vcpu_insn_exec_cb(q, fence_cb, QEMU_CB_NO_REGS,
						       known(&insn, q));
		break;
	default:
		break;
	}
	if (insn.kind != INSN_FENCE && !insn.on_stack) /* P2 */
		qemu_plugin_register_vcpu_mem_cb(q, access_cb(insn.kind == INSN_NTSTORE),
						 QEMU_CB_NO_REGS, which_accesses(&insn),
						 (void *)(uintptr_t)qemu_plugin_insn_vaddr(q));
}

static void tb_cb(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	bool stack_moved = false;

	(void)id;
	for (size_t i = 0; i < n; i++)
		watch(qemu_plugin_tb_get_insn(tb, i), &stack_moved);
}

/* ---- where the region is ---- */

/* Opens the file, if it is there, and looks how large it is now. */
static bool open_region(void)
{
	struct stat st;

	if (pm.fd < 0) {
		pm.fd = open(pm.path, O_RDONLY | O_CLOEXEC);
		/* Far from what the program under test expects its own numbers to be. */
		int high = pm.fd < 0 ? -1 : fcntl(pm.fd, F_DUPFD_CLOEXEC, 900);
		if (high >= 0) {
			close(pm.fd);
			pm.fd = high;
		}
	}
	if (pm.fd < 0 || fstat(pm.fd, &st))
		return false;
	uint64_t size = pm.system ? pm.size : (uint64_t)st.st_size;
	if (size <= pm.view_size)
		return true;
	void *view = mmap(NULL, size, PROT_READ, MAP_SHARED, pm.fd, (off_t)pm.offset);
	void *dirty = mmap(NULL, size / PM_STREAM_LINE / 8 + 1, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view == MAP_FAILED || dirty == MAP_FAILED)
		return false;
	if (pm.view) {
		memcpy(dirty, pm.dirty, pm.view_size / PM_STREAM_LINE / 8 + 1);
		munmap((void *)(uintptr_t)pm.view, pm.view_size);
		munmap(pm.dirty, pm.view_size / PM_STREAM_LINE / 8 + 1);
	}
	pm.view = view;
	pm.dirty = dirty;
	pm.view_size = size;
	writer_set_region(pm.w, size);
	return true;
}

static void add_map(struct maps *m, uint64_t start, uint64_t end, uint64_t offset)
{
	uint64_t base = pm.guest_base;

	if (start == (uint64_t)(uintptr_t)pm.view || m->n == MAPS_MAX || offset >= pm.view_size)
		return;
	if (end - start > pm.view_size - offset) /* the rest of the last page, or more */
		end = start + (pm.view_size - offset);
	m->v[m->n++] = (struct map){ start - base, end - base, offset };
	m->low = m->n == 1 || start - base < m->low ? start - base : m->low;
	m->high = end - base > m->high ? end - base : m->high;
}

/* A line of /proc/self/maps. */
struct mapping {
	uint64_t start, end, offset, ino;
	unsigned major, minor;
	bool shared;
};

static bool next_mapping(FILE *f, struct mapping *m)
{
	char line[512], mode[8];

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64,
			   &m->start, &m->end, mode, &m->offset, &m->major, &m->minor,
			   &m->ino) == 7) {
			m->shared = mode[3] == 's';
			return true;
		}
	return false;
}

/*
 * Our own mapping of the file shows what the others of it are called there. stat() does not: on
 * some file systems it tells another device than this list.
 */
static bool find_view(FILE *f, struct mapping *view)
{
	uint64_t at = (uint64_t)(uintptr_t)pm.view;

	while (next_mapping(f, view))
		if (at >= view->start && at < view->end)
			return true;
	return false;
}

/* What the kernel says is mapped of our file, shared. The lock is held. */
static void look_at_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct maps *m = calloc(1, sizeof(*m));
	struct mapping view, l;
	bool known = f && m && find_view(f, &view);

	if (f)
		rewind(f);
	while (known && next_mapping(f, &l)) {
		if (l.ino != view.ino || l.major != view.major || l.minor != view.minor ||
		    !l.shared)
			continue;
		if (pm.system && l.offset < pm.offset) {
			l.start += pm.offset - l.offset;
			l.offset = pm.offset;
		}
		if (l.start < l.end)
			add_map(m, l.start, l.end, l.offset - pm.offset);
	}
	if (f)
		fclose(f);
	if (!known)
		writer_trouble(pm.w, "the list of what is mapped (/proc/self/maps) cannot be read");
	if (m && m->n == MAPS_MAX)
		writer_trouble(pm.w, "the region is mapped more than %d times", MAPS_MAX);
	if (m) /* the old one may be in use: it stays */
		__atomic_store_n(&pm.maps, m, __ATOMIC_RELEASE);
}

static void mapped(void)
{
	lock();
	if (!pm.system && &guest_base) /* known once the guest has been loaded */
		pm.guest_base = guest_base;
	if (open_region())
		look_at_maps();
	unlock();
}

/* ---- system calls of user emulation ---- */

enum { /* of an x86-64 guest */
       NR_READ = 0,
       NR_MMAP = 9,
       NR_MUNMAP = 11,
       NR_PREAD64 = 17,
       NR_READV = 19,
       NR_MREMAP = 25,
       NR_MSYNC = 26,
       NR_RECVFROM = 45,
       NR_RECVMSG = 47,
       NR_CLONE = 56,
       NR_FORK = 57,
       NR_VFORK = 58,
       NR_EXECVE = 59,
       NR_FSYNC = 74,
       NR_FDATASYNC = 75,
       NR_PREADV = 295,
       NR_RECVMMSG = 299,
       NR_PROCESS_VM_READV = 310,
       NR_EXECVEAT = 322,
       NR_PREADV2 = 327,
       NR_CLONE3 = 435,
       CLONE_VM_ = 0x100,
       CLONE_VFORK_ = 0x4000,
       MAP_FIXED_ = 0x10,
       MS_SYNC_ = 4,
};

static __thread struct {
	uint64_t a[6];
	pid_t pid; /* who asked; a child answers, too */
} call;

/*
 * What the kernel stores into the region for the program. Of the calls that read as much as is
 * asked for it is known where and how much; any other that is given a place in the region may have
 * filled in what is there: it is compared with what was there before.
 */
enum { ARGS = 6, ANSWER_MAX = 4096, IOVECS_MAX = 1024 };

static __thread struct {
	uint64_t len[ARGS]; /* 0: not in the region, or not looked at */
	unsigned char data[ARGS][ANSWER_MAX];
} before;

/* Of one call, so that nothing before or behind it is taken for part of it. */
static void kernel_stored(unsigned vcpu, uint64_t addr, uint64_t len)
{
	struct cpu_here *c = &pm.cpu[vcpu % CPUS_HERE];

	c->flow++;
	for (uint64_t n; len; addr += n, len -= n) {
		n = len < PM_STREAM_STORE_MAX ? len : PM_STREAM_STORE_MAX;
		in_maps(vcpu, PM_STREAM_STORE, addr, n, 0);
	}
	c->flow++;
}

static void kernel_filled(unsigned vcpu, uint64_t iov, uint64_t n, uint64_t left)
{
	struct {
		uint64_t base, len;
	} v;

	for (uint64_t i = 0; i < n && i < IOVECS_MAX && left; i++) {
		if (read_guest(vcpu, iov + i * sizeof(v), (char *)&v, sizeof(v)) != sizeof(v))
			return;
		v.len = v.len < left ? v.len : left;
		kernel_stored(vcpu, v.base, v.len);
		left -= v.len;
	}
}

/* struct msghdr has the list at 16 and its length at 24. */
static void kernel_received(unsigned vcpu, uint64_t msg, uint64_t len)
{
	uint64_t iov[2];

	if (read_guest(vcpu, msg + 16, (char *)iov, sizeof(iov)) == sizeof(iov))
		kernel_filled(vcpu, iov[0], iov[1], len);
}

/* struct mmsghdr: a msghdr of 56 bytes, how long the message is, and 4 bytes more. */
static void kernel_received_many(unsigned vcpu, uint64_t list, uint64_t n)
{
	uint32_t len;

	for (uint64_t i = 0; i < n && i < IOVECS_MAX; i++)
		if (read_guest(vcpu, list + i * 64 + 56, (char *)&len, 4) == 4)
			kernel_received(vcpu, list + i * 64, len);
}

static bool reads_much(int64_t num)
{
	return num == NR_READ || num == NR_PREAD64 || num == NR_READV || num == NR_RECVFROM ||
	       num == NR_RECVMSG || num == NR_PREADV || num == NR_RECVMMSG ||
	       num == NR_PROCESS_VM_READV || num == NR_PREADV2;
}

/* What is there before the call; most calls are given nothing of the region. */
static void before_call(int64_t num)
{
	const struct maps *maps = __atomic_load_n(&pm.maps, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < ARGS; i++) {
		const struct map *m = maps->n ? find(maps, call.a[i], 1) : NULL;

		before.len[i] = 0;
		if (!m || reads_much(num) || num == NR_MMAP || num == NR_MUNMAP || num == NR_MREMAP)
			continue;
		uint64_t off = m->offset + (call.a[i] - m->start), left = m->end - call.a[i];

		before.len[i] = left < ANSWER_MAX ? left : ANSWER_MAX;
		memcpy(before.data[i], pm.view + off, before.len[i]);
	}
}

/* The bytes that changed, and what is between them. */
static void after_call(unsigned vcpu)
{
	const struct maps *maps = __atomic_load_n(&pm.maps, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < ARGS; i++) {
		const struct map *m = before.len[i] ? find(maps, call.a[i], 1) : NULL;
		uint64_t from = 0, to = before.len[i];

		if (!m)
			continue;
		const unsigned char *now = pm.view + m->offset + (call.a[i] - m->start);
		while (from < to && now[from] == before.data[i][from])
			from++;
		while (to > from && now[to - 1] == before.data[i][to - 1])
			to--;
		kernel_stored(vcpu, call.a[i] + from, to - from);
		before.len[i] = 0;
	}
}

static void after_read(unsigned vcpu, int64_t num, uint64_t n)
{
	switch (num) {
	case NR_READ:
	case NR_PREAD64:
	case NR_RECVFROM:
		kernel_stored(vcpu, call.a[1], n);
		break;
	case NR_RECVMSG:
		kernel_received(vcpu, call.a[1], n);
		break;
	case NR_RECVMMSG:
		kernel_received_many(vcpu, call.a[1], n);
		break;
	default: /* readv and its like */
		kernel_filled(vcpu, call.a[1], call.a[2], n);
		break;
	}
}

static bool is_fork(int64_t num, uint64_t flags)
{
	return num == NR_FORK || num == NR_VFORK ||
	       (num == NR_CLONE && (!(flags & CLONE_VM_) || (flags & CLONE_VFORK_)));
}

static bool is_ours(uint64_t fd)
{
	struct stat st, named;

	if (fstat((int)fd, &st) || stat(pm.path, &named))
		return false;
	return st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

static void syscall_cb(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)id;
	(void)vcpu;
	(void)a7;
	(void)a8;
	uint64_t a[6] = { a1, a2, a3, a4, a5, a6 };

	memcpy(call.a, a, sizeof(a));
	before_call(num);
	if (num == NR_CLONE || num == NR_CLONE3 || is_fork(num, a1))
		pm.alone = false;
	if (is_fork(num, a1)) {
		call.pid = getpid();
		lock();
		writer_count(pm.w, 1);
		unlock();
	} else if (num == NR_EXECVE || num == NR_EXECVEAT) {
		/* What is run there is not emulated: nothing more will come from this process.
		 * Another one may be left, and the count is put right if it does not happen. */
		lock();
		writer_count(pm.w, -1);
		unlock();
	}
}

/* A child has what its parent had, but is a CPU of its own. */
static void after_fork(int64_t ret)
{
	if (getpid() != call.pid) {
		writer_forked();
		for (size_t i = 0; i < CPUS_HERE; i++)
			pm.cpu[i].known = pm.cpu[i].since_fence = false;
	} else if (ret < 0) {
		lock();
		writer_count(pm.w, -1);
		unlock();
	}
}

/* The kernel wrote back what was stored to part of the region: as if flushed and fenced. */
static void wrote_back(unsigned vcpu, uint64_t from, uint64_t to)
{
	if (to > pm.view_size)
		to = pm.view_size;
	for (uint64_t off = from / PM_STREAM_LINE * PM_STREAM_LINE; off < to;
	     off += PM_STREAM_LINE) {
		uint64_t line = off / PM_STREAM_LINE;

		if (pm.dirty[line / 8] & 1 << line % 8)
			flush_line(vcpu, PM_STREAM_FLUSH, off, 0);
	}
	record_small(vcpu, PM_STREAM_FENCE, 0, 0, 0, NULL);
}

static void after_sync(unsigned vcpu, int64_t num)
{
	lock();
	if (num != NR_MSYNC && pm.view && is_ours(call.a[0]))
		wrote_back(vcpu, 0, pm.view_size);
	for (size_t i = 0; num == NR_MSYNC && (call.a[2] & MS_SYNC_) && i < pm.maps->n; i++) {
		const struct map *m = &pm.maps->v[i];
		uint64_t from = call.a[0] > m->start ? call.a[0] : m->start;
		uint64_t end = call.a[0] + call.a[1];
		uint64_t to = end < m->end ? end : m->end;

		if (from < to)
			wrote_back(vcpu, m->offset + (from - m->start),
				   m->offset + (to - m->start));
	}
	unlock();
}

static void syscall_ret_cb(qemu_plugin_id_t id, unsigned vcpu, int64_t num, int64_t ret)
{
	bool good = ret >= 0 || ret < -4095;

	(void)id;
	switch (num) {
	case NR_MMAP:
		if (good && ((!(call.a[3] & 0x20) && is_ours(call.a[4])) ||
			     find(pm.maps, call.a[0], call.a[1])))
			mapped();
		break;
	case NR_MUNMAP:
	case NR_MREMAP:
		if (good && find(pm.maps, call.a[0], call.a[1] ? call.a[1] : 1))
			mapped();
		break;
	case NR_CLONE:
	case NR_FORK:
	case NR_VFORK:
		if (is_fork(num, call.a[0]))
			after_fork(ret);
		break;
	case NR_EXECVE:
	case NR_EXECVEAT:
		lock();
		writer_count(pm.w, 1);
		unlock();
		break;
	case NR_MSYNC:
	case NR_FSYNC:
	case NR_FDATASYNC:
		if (!ret)
			after_sync(vcpu, num);
		break;
	default:
		if (!reads_much(num))
			after_call(vcpu);
		else if (ret > 0)
			after_read(vcpu, num, (uint64_t)ret);
		break;
	}
}

/* ---- begin and end ---- */

static void vcpu_init_cb(qemu_plugin_id_t id, unsigned vcpu)
{
	(void)id;
	find_registers();
	/* A thread may get the number of one that has ended: its fences are its own. */
	if (!pm.system) {
		pm.cpu[vcpu % CPUS_HERE].known = false;
		pm.cpu[vcpu % CPUS_HERE].shadow = NULL;
		shadow_forget(&pm.cpu[vcpu % CPUS_HERE].own);
	}
	if (pm.system) /* now, not before, the guest's memory is mapped */
		mapped();
}

static void atexit_cb(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	if (pm.maps_path && !pm.system)
		maps_write(pm.maps_path, &guest_base ? guest_base : 0);
	lock();
	writer_count(pm.w, -1);
	unlock();
}

#if PLUGIN_API < 3

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
		uintptr_t page = at & ~(uintptr_t)(PAGE - 1);
		if (mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_WRITE))
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

static bool registers_readable(void)
{
	bool found = false;

	dl_iterate_phdr(patch_program, &found);
	return found;
}

#else

static bool registers_readable(void)
{
	return true;
}

#endif

static bool region_arg(char *value, bool system)
{
	char *rest, *comma;

	if (!system && strncmp(value, "user:", 5) == 0) {
		pm.path = strdup(value + 5);
		return pm.path && pm.path[0] == '/';
	}
	if (!system || strncmp(value, "phys:", 5) != 0)
		return false;
	pm.phys = strtoull(value + 5, &rest, 0);
	if (*rest != ',')
		return false;
	pm.size = strtoull(rest + 1, &rest, 0);
	if (*rest != ',' || !pm.size)
		return false;
	pm.path = strdup(rest + 1);
	pm.offset = pm.phys;
	comma = pm.path ? strrchr(pm.path, ',') : NULL;
	if (comma) {
		*comma = 0;
		pm.offset = strtoull(comma + 1, &rest, 0);
	}
	return pm.path && pm.path[0] == '/';
}

static int refuse(const char *why)
{
	fprintf(stderr, "outage-pm: %s\n", why);
	return -1;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	const char *stream = NULL;

	pm.system = info->system_emulation;
	pm.alone = !pm.system || info->system.max_vcpus == 1;
	pm.maps = (struct maps *)(uintptr_t)&no_maps;
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return refuse("an argument has no value");
		*value++ = 0;
		if (strcmp(argv[i], "stream") == 0)
			stream = strdup(value);
		else if (strcmp(argv[i], "maps") == 0)
			pm.maps_path = strdup(value);
		else if (strcmp(argv[i], "loads") == 0)
			pm.loads = strcmp(value, "on") == 0;
		else if (strcmp(argv[i], "stacks") == 0)
			pm.stacks = strcmp(value, "on") == 0;
		else if (strcmp(argv[i], "filter") == 0)
			pm.filter = strcmp(value, "off") != 0;
		else if (strcmp(argv[i], "begin") == 0)
			pm.off = pm.marked = strcmp(value, "mark") == 0;
		else if (strcmp(argv[i], "region") != 0 || !region_arg(value, pm.system))
			return refuse("an argument is unknown, or its value wrong");
	}
	if (strcmp(info->target_name, "x86_64") != 0)
		return refuse("only x86_64 can be traced");
	if (!stream || !pm.path)
		return refuse("stream= and region= must be given");
	pm.w = writer_open(stream, PM_STREAM_HAS_PC | (pm.loads ? PM_STREAM_HAS_LOADS : 0) |
					   (pm.stacks ? PM_STREAM_HAS_STACKS : 0));
	if (!pm.w)
		return refuse("the stream cannot be written");
	if (!registers_readable())
		return refuse("registers cannot be read in this version of QEMU");
	if (pm.system && !open_region())
		return refuse("the file behind the region cannot be mapped");
	qemu_plugin_register_vcpu_tb_trans_cb(id, tb_cb);
	qemu_plugin_register_atexit_cb(id, atexit_cb, NULL);
	qemu_plugin_register_vcpu_init_cb(id, vcpu_init_cb);
	if (!pm.system) {
		qemu_plugin_register_vcpu_syscall_cb(id, syscall_cb);
		qemu_plugin_register_vcpu_syscall_ret_cb(id, syscall_ret_cb);
	}
	return 0;
}
