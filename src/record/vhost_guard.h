/* SPDX-License-Identifier: MIT */
/*
 * vhost_guard.h - guards accesses to a guest's memory. The memory is a file that its front end
 * owns, and may truncate at any moment; access to a part that is gone raises SIGBUS, which would
 * kill this process.
 *
 * A process that uses a guard must have one thread.
 */
#ifndef RECORD_VHOST_GUARD_H
#define RECORD_VHOST_GUARD_H

#include "record/vhost_ring.h"

/*
 * Calls fn(ctx); false if it touched memory of the guest that is gone. The function is aborted
 * there, so it must hold nothing that needs a release: its allocations belong to `ctx`.
 */
bool vhost_guard(const struct vhost_memory *m, void (*fn)(void *ctx), void *ctx) must_check;

#endif
