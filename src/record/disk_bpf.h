/* SPDX-License-Identifier: MIT */
/* disk_bpf.h - settings of the BPF recorder that only its tests have a use for. */
#ifndef RECORD_DISK_BPF_H
#define RECORD_DISK_BPF_H

#include "base/util.h"

/*
 * Bytes of the ring buffer (a power of two, at least a page) that this process gets when it next
 * opens its first disk; 0: the default, 64 MiB.
 */
void disk_bpf_set_ring(uint32_t bytes);

#endif
