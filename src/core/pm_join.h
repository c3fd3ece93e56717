/* SPDX-License-Identifier: MIT */
/*
 * pm_join.h - bytes that one instruction stores one after the other, as one store.
 *
 * An emulator carries out `rep stosb` byte by byte, and so does a loop; each byte would be a store
 * that a crash can fall behind. A processor makes much larger ones of them. So stores of less than
 * PM_ATOMIC bytes that one instruction makes, of one length and kind, each right behind (or, all
 * of them, right before) the last, are joined as far as they lie in the same PM_ATOMIC aligned
 * bytes.
 *
 * J1: nothing of a store is moved past another event of any CPU, but for loads of something else.
 *     So what is joined is flushed by the same flushes, and drained by the same fences.
 * J2: the states of a trace with joined stores are states of the trace without: those where no
 *     joined store survives in part.
 */
#ifndef CORE_PM_JOIN_H
#define CORE_PM_JOIN_H

#include "core/event.h"
#include "core/model_pm.h"

struct pm_join {
	void (*put)(void *ctx, const struct event *ev); /* where events go; `data` is borrowed */
	void *ctx;
	struct event held; /* kind 0: none */
	uint64_t unit;	   /* bytes of each of its parts */
	int direction;	   /* 1: upwards; -1; 0: it has one part */
	unsigned char data[PM_ATOMIC];
};

/* The next event of a trace. Its data is not needed afterwards. */
void pm_join_add(struct pm_join *j, const struct event *ev);
/* There are no more. */
void pm_join_end(struct pm_join *j);

#endif
