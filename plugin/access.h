/* SPDX-License-Identifier: MIT */
/* access.h - loads and stores: those of them that are in the region are recorded. */
#ifndef PLUGIN_ACCESS_H
#define PLUGIN_ACCESS_H

#include "qemu_api.h"

/*
 * The function to be called at each access of an instruction, with its address; `nt`: its stores
 * are non-temporal.
 */
qemu_mem_cb *access_cb(bool nt);

/*
 * Tells that the part of [addr, addr + len) in the region was stored, or loaded. The range may
 * reach over the ends of a map. Addresses are those of region_maps().
 */
void access_range(unsigned vcpu, unsigned kind, uint64_t addr, uint64_t len, uint64_t pc);

#endif
