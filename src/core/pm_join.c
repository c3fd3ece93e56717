/* SPDX-License-Identifier: MIT */
/* pm_join.c - holds a store back as long as the next one may continue it. */
#include "core/pm_join.h"

static bool in_one_word(uint64_t from, uint64_t to)
{
	return from / PM_ATOMIC == (to - 1) / PM_ATOMIC;
}

/* True if a store may be part of a joined one. Without a place, the instruction is unknown. */
static bool may_be_part(const struct event *ev)
{
	return ev->kind == EV_STORE && ev->pc && ev->len && ev->len < PM_ATOMIC &&
	       in_one_word(ev->addr, ev->addr + ev->len);
}

static void hold(struct pm_join *j, const struct event *ev)
{
	j->held = *ev;
	j->unit = ev->len;
	j->direction = 0;
	memcpy(j->data, ev->data, ev->len);
	j->held.data = j->data;
}

/* Returns 1 if the event is the next part upwards, -1 downwards, 0 if it is no part. */
static int continues(const struct pm_join *j, const struct event *ev)
{
	const struct event *h = &j->held;

	if (!h->kind || !may_be_part(ev) || ev->len != j->unit || ev->pc != h->pc ||
	    ev->cpu != h->cpu || ev->flags != (h->flags & ~(uint32_t)EV_NEW_CALL) ||
	    ev->stack != h->stack)
		return 0;
	if (ev->addr == h->addr + h->len && j->direction >= 0)
		return in_one_word(h->addr, ev->addr + ev->len) ? 1 : 0;
	if (ev->addr + ev->len == h->addr && j->direction <= 0)
		return in_one_word(ev->addr, h->addr + h->len) ? -1 : 0;
	return 0;
}

static void extend(struct pm_join *j, const struct event *ev, int direction)
{
	struct event *h = &j->held;

	if (direction > 0) {
		memcpy(j->data + h->len, ev->data, ev->len);
	} else {
		memmove(j->data + ev->len, j->data, h->len);
		memcpy(j->data, ev->data, ev->len);
		h->addr = ev->addr;
	}
	h->len += ev->len;
	j->direction = direction;
}

void pm_join_end(struct pm_join *j)
{
	if (j->held.kind)
		j->put(j->ctx, &j->held);
	j->held.kind = 0;
}

/* True if the held store may stay: `rep movsb` loads between its stores. */
static bool passes(const struct pm_join *j, const struct event *ev)
{
	return ev->kind == EV_LOAD &&
	       (ev->addr >= j->held.addr + j->held.len || ev->addr + ev->len <= j->held.addr);
}

void pm_join_add(struct pm_join *j, const struct event *ev)
{
	int direction = continues(j, ev);

	if (direction) {
		extend(j, ev, direction);
		return;
	}
	if (!passes(j, ev))
		pm_join_end(j);
	if (may_be_part(ev))
		hold(j, ev);
	else
		j->put(j->ctx, ev);
}
