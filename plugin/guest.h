/* SPDX-License-Identifier: MIT */
/*
 * guest.h - the guest's registers, its memory, and its physical addresses, in whichever way this
 * version of QEMU gives them: see F1 in outage-pm.c.
 */
#ifndef PLUGIN_GUEST_H
#define PLUGIN_GUEST_H

#include "qemu_api.h"

enum { GUEST_PAGE = 4096 };
enum guest_reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

/* Makes registers readable in callbacks; false if this QEMU is not one that we know. */
bool guest_regs_readable(void);
/* In a CPU's thread, before one of its registers is read. */
void guest_regs_find(void);

/* A register by number, in a callback; `state` is what it was called with. */
#if PLUGIN_API >= 3
uint64_t reg(const void *state, unsigned n);
#else
static inline uint64_t reg(const void *state, unsigned n)
{
	return ((const uint64_t *)state)[n];
}
#endif

/* The guest's physical address; UINT64_MAX if there is none. System emulation only. */
uint64_t guest_phys(unsigned vcpu, uint64_t vaddr);
/* How many bytes of its memory could be read. */
size_t guest_read(unsigned vcpu, uint64_t addr, void *to, size_t len);

/* User emulation: where the guest's address 0 is; known once it has been loaded. */
static inline uint64_t guest_zero(void)
{
	return &guest_base ? guest_base : 0;
}

#endif
