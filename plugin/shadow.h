/* SPDX-License-Identifier: MIT */
/*
 * shadow.h - call stacks, followed by calls and returns: no frame pointers, no tables for
 * unwinding, and nothing of the guest's memory is needed.
 *
 * A call says where its return address lies; the stack grows downwards. So whatever lies below the
 * place of a later call or return is gone, however it was left: by returns, longjmp(), an
 * exception.
 *
 * The stack that is told is right at each call and return. Between them it may be wrong only where
 * code changes its stack without either: after a switch of tasks, coroutines or interrupts, up to
 * the next call or return. A guest's kernel leaves by an instruction that is seen: then nothing is
 * told.
 *
 * Stacks are told apart by where they are:
 *	user	what is less than SHADOW_NEAR from where the last call was; each thread has its own
 *	kernel	the 16 KiB, aligned, that Linux gives to each task and to interrupts; all CPUs
 *		share them, as a task may go on elsewhere, but only one is on a stack at a time
 */
#ifndef PLUGIN_SHADOW_H
#define PLUGIN_SHADOW_H

#include <stddef.h>
#include <stdint.h>

enum {
	SHADOW_FRAMES = 256, /* the innermost, if there are more */
	SHADOW_NEAR = 1 << 20,
	SHADOW_OWN = 4,		 /* stacks that a thread can switch between */
	SHADOW_KERNEL = 1 << 12, /* stacks of a guest's kernel, ever */
};

struct shadow {
	uint64_t key; /* kernel: where it is, and 1 */
	uint32_t n;
	uint32_t number, epoch; /* for the caller: 0 once the frames have changed */
	struct shadow_frame {
		uint64_t slot; /* where the return address is */
		uint64_t ret;
		uint64_t hash; /* covers this and all further out */
	} f[SHADOW_FRAMES];    /* the innermost last */
};

/* The stacks of a thread. */
struct shadows {
	struct shadow *v[SHADOW_OWN];
	unsigned next; /* the one that is given up */
};

/* The stack that an address belongs to; NULL if there is no memory. */
struct shadow *shadow_user(struct shadows *own, uint64_t slot);
/* NULL for an address that is not the kernel's, and if there have been too many stacks. */
struct shadow *shadow_kernel(uint64_t slot);
/* A thread begins, or ends. */
void shadow_forget(struct shadows *own);

/* The return address `ret` is put into `slot`; or the one in `slot` is taken. */
void shadow_call(struct shadow *s, uint64_t slot, uint64_t ret);
void shadow_return(struct shadow *s, uint64_t slot);

/* The value that tells one stack from another; 0 for an empty one. */
static inline uint64_t shadow_hash(const struct shadow *s)
{
	return s->n ? s->f[s->n - 1].hash : 0;
}

/* The return addresses, the innermost first. */
size_t shadow_frames(const struct shadow *s, uint64_t out[SHADOW_FRAMES]);

#endif
