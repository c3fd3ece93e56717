/* SPDX-License-Identifier: MIT */
/*
 * vhost_guard.h - touching a guest's memory. The memory is a file that its front end owns, and may
 * shrink at any moment; touching a part that is gone raises SIGBUS, which would be our end.
 *
 * A process that guards has one thread.
 */
#ifndef RECORD_VHOST_GUARD_H
#define RECORD_VHOST_GUARD_H

#include "record/vhost_ring.h"

/*
 * Calls fn(ctx); false if it touched memory of the guest that is gone. The function is left there
 * and then, so it holds nothing that must be given back: what it allocates belongs to `ctx`.
 */
bool vhost_guard(const struct vhost_memory *m, void (*fn)(void *ctx), void *ctx) must_check;

#endif
