/* SPDX-License-Identifier: MIT */
/*
 * pm_join.h - joins the bytes that one instruction stores one after the other into one store.
 *
 * An emulator executes `rep stosb` byte by byte; each byte would be a store after which a crash can
 * happen. A processor makes much larger stores. So stores of less than PM_ATOMIC bytes that one
 * instruction makes, of one length and kind, each right behind (or, all of them, right before) the
 * last, are joined as far as they lie in the same PM_ATOMIC aligned bytes.
 *
 * J1: no part of a store moves past another event of any CPU, except loads of other bytes. So the
 *     joined store is flushed by the same flushes, and drained by the same fences.
 * J2: the states of a trace with joined stores are those states of the trace without in which no
 *     joined store survives in part.
 */
#ifndef CORE_PM_JOIN_H
#define CORE_PM_JOIN_H

#include "core/event.h"
#include "core/model_pm.h"

struct pm_join {
	void (*put)(void *ctx, const struct event *ev); /* where events go; `data` is borrowed */
	void *ctx;
	struct event held; /* the store that is held back; kind 0: none */
	uint64_t unit;	   /* the size of each of its parts */
	int direction;	   /* 1 upwards, -1 downwards; 0: it has one part */
	unsigned char data[PM_ATOMIC];
};

/* Adds the next event of a trace, whose data is not needed afterwards. */
void pm_join_add(struct pm_join *j, const struct event *ev);
/* Puts the store that is held back, at the end of the trace. */
void pm_join_end(struct pm_join *j);

#endif
