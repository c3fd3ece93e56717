/* SPDX-License-Identifier: MIT */
/* disk_bpf.h - settings of the BPF recorder. */
#ifndef RECORD_DISK_BPF_H
#define RECORD_DISK_BPF_H

#include "base/util.h"

/*
 * Sets the size of the ring buffer (a power of two, at least a page) that this process gets when it
 * next opens its first disk; 0: the default, 16 MiB.
 */
void disk_bpf_set_ring(uint32_t bytes);
/* Doubles the size if a record did not fit since the last time; false if not doubled. */
bool disk_bpf_grow_ring(void);
/* For tests: the next `n` ends of writes are not seen, as may happen by itself. */
void disk_bpf_miss_ends(unsigned n);

#endif
