/* SPDX-License-Identifier: MIT */
/*
 * trace.c - a trace in memory, and the rules that every trace keeps.
 *
 * T1: the number of an event is its place; events are only ever added at the end.
 * T2: an event's data lives as long as the trace and never moves.
 * T3: in a trace that passed trace_validate(), a completion refers to an earlier request that no
 *     other event completes, and no range leaves the device.
 * T4: `stacks` has the numbers of the events that are stacks, in their order, and no other.
 *
 * Not thread-safe; a trace has one owner.
 */
#include "core/trace.h"

#include <errno.h>
#include <inttypes.h>

#include "core/bytes.h"
#include "core/posix.h"

void trace_init(struct trace *t)
{
	*t = (struct trace){ .info.sector_size = 512 };
}

void trace_release(struct trace *t)
{
	vec_release(&t->events);
	vec_release(&t->stacks);
	arena_release(&t->data);
}

void trace_clear(struct trace *t)
{
	t->machine = 0;
	vec_clear(&t->events);
	vec_clear(&t->stacks);
	arena_clear(&t->data);
}

uint64_t trace_append(struct trace *t, const struct event *ev)
{
	struct event copy = *ev;
	uint64_t number = t->events.n;

	assert(event_kind_name(ev->kind));
	if (event_has_data(ev->kind)) {
		assert(ev->len <= EVENT_DATA_MAX && (ev->data || !ev->len));
		if (ev->kind == EV_OP_BEGIN || ev->kind == EV_TEXT)
			copy.data = (unsigned char *)arena_memdupz(&t->data, ev->data, ev->len);
		else if (ev->len)
			copy.data = memcpy(arena_alloc(&t->data, ev->len), ev->data, ev->len);
	} else {
		copy.data = NULL;
	}
	if (ev->pc || ev->stack)
		t->info.places = true;
	if (ev->kind == EV_STACK)
		vec_push(&t->stacks, number);
	vec_push(&t->events, copy);
	assert(t->events.n == number + 1 && t->stacks.n <= t->events.n); /* T1 */
	return number;
}

void trace_complete(struct trace *t, uint64_t ref, int result)
{
	assert(ref < t->events.n && event_is_request(t->events.v[ref].kind)); /* T3 */
	trace_append(t, &(struct event){ .kind = EV_COMPLETE, .ref = ref, .result = result });
}

void trace_op_end(struct trace *t, uint64_t op, int result)
{
	trace_append(t, &(struct event){ .kind = EV_OP_END, .ref = op, .result = result });
}

void trace_persist(struct trace *t, uint64_t op)
{
	trace_append(t, &(struct event){ .kind = EV_PERSIST, .ref = op });
}

uint32_t trace_add_stack(struct trace *t, const uint64_t *frames, size_t n)
{
	unsigned char data[8 * EVENT_FRAMES_MAX];
	uint32_t number = (uint32_t)t->stacks.n + 1;

	assert(n <= EVENT_FRAMES_MAX);
	for (size_t i = 0; i < n; i++)
		put_le64(data + 8 * i, frames[i]);
	trace_append(
		t, &(struct event){ .kind = EV_STACK, .ref = number, .len = 8 * n, .data = data });
	assert(t->stacks.n == number && vec_last(&t->stacks) == t->events.n - 1); /* T4 */
	return number;
}

size_t trace_stack(const struct trace *t, uint32_t number, uint64_t frames[EVENT_FRAMES_MAX])
{
	if (!number || number > t->stacks.n)
		return 0;
	assert(t->stacks.v[number - 1] < t->events.n); /* T4 */
	const struct event *ev = &t->events.v[t->stacks.v[number - 1]];
	assert(ev->kind == EV_STACK); /* T4 */
	size_t n = min(ev->len / 8, (uint64_t)EVENT_FRAMES_MAX);

	for (size_t i = 0; i < n; i++)
		frames[i] = get_le64(ev->data + 8 * i);
	return n;
}

bool event_is_request(enum event_kind kind)
{
	return kind == EV_WRITE || kind == EV_FLUSH || kind == EV_DISCARD || kind == EV_ZERO ||
	       kind == EV_READ;
}

/* The rules for the fields of an event, by its kind. */
enum rule {
	RULE_RANGE = 1 << 0, /* addr and len are a range in the device; len is not 0 */
	RULE_EMPTY = 1 << 1, /* no length */
	RULE_OP = 1 << 2,    /* ref is an operation */
	RULE_REF = 1 << 3,   /* ref is an earlier request that is not complete yet */
	RULE_LINE = 1 << 4,  /* addr is the address of a cache line */
	RULE_POSIX = 1 << 5, /* data is a record of an application's call */
	RULE_STACK = 1 << 6, /* data is addresses, and ref the next number */
};

static const struct {
	unsigned rules;
	uint32_t flags; /* the flags that may be set */
} rules_of[EV_KIND_END] = {
	[EV_WRITE] = { RULE_RANGE, EV_PREFLUSH | EV_FUA | EV_META },
	[EV_FLUSH] = { RULE_EMPTY, EV_PREFLUSH | EV_FUA | EV_META },
	[EV_DISCARD] = { RULE_RANGE, EV_PREFLUSH | EV_FUA | EV_META },
	[EV_ZERO] = { RULE_RANGE, EV_PREFLUSH | EV_FUA | EV_META },
	[EV_READ] = { RULE_RANGE, EV_META },
	[EV_COMPLETE] = { RULE_EMPTY | RULE_REF, 0 },
	[EV_STORE] = { RULE_RANGE, EV_NONTEMPORAL | EV_NEW_CALL },
	[EV_LINEFLUSH] = { RULE_LINE, EV_CLFLUSH },
	[EV_FENCE] = { RULE_EMPTY, 0 },
	[EV_LOAD] = { RULE_RANGE, 0 },
	[EV_OP_BEGIN] = { RULE_OP, 0 },
	[EV_OP_END] = { RULE_EMPTY | RULE_OP, 0 },
	[EV_PERSIST] = { RULE_EMPTY | RULE_OP, 0 },
	[EV_TEXT] = { 0, 0 },
	[EV_POSIX] = { RULE_POSIX, 0 },
	[EV_STACK] = { RULE_STACK, 0 },
};

enum { SEEN_COMPLETE = 0x80 }; /* beside the kind, in trace_check.seen */

void trace_check_release(struct trace_check *c)
{
	vec_release(&c->seen);
}

int trace_check_info(const struct trace_info *info, struct err *err)
{
	uint32_t s = info->sector_size;

	if (!s || s > TRACE_SECTOR_MAX || (s & (s - 1)))
		return err_set(err, -EINVAL,
			       "a sector size of %" PRIu32 " bytes is not a power of two up to %d",
			       s, TRACE_SECTOR_MAX);
	if (info->size >> EVENT_ADDR_BITS)
		return err_set(err, -EINVAL, "a device of %" PRIu64 " bytes is too large",
			       info->size);
	if (!memchr(info->target, '\0', sizeof(info->target)))
		return err_set(err, -EINVAL, "the target's description has no end");
	return 0;
}

#define WRONG(n, ...)                                                                              \
	(err_set(err, -EINVAL, __VA_ARGS__), err_context(err, "event %" PRIu64, (uint64_t)(n)),    \
	 -EINVAL)

static int check_range(uint64_t n, const struct trace_info *info, const struct event *ev,
		       struct err *err)
{
	const char *kind = event_kind_name(ev->kind);

	if (ev->addr >> EVENT_ADDR_BITS || ev->len >> EVENT_ADDR_BITS)
		return WRONG(n, "%s at %" PRIu64 " of %" PRIu64 " bytes is beyond any device", kind,
			     ev->addr, ev->len);
	if (info->size && (ev->addr > info->size || ev->len > info->size - ev->addr))
		return WRONG(n,
			     "%s at %" PRIu64 " of %" PRIu64 " bytes leaves the device of %" PRIu64
			     " bytes",
			     kind, ev->addr, ev->len, info->size);
	return 0;
}

static int check_len(uint64_t n, unsigned rules, const struct event *ev, struct err *err)
{
	const char *kind = event_kind_name(ev->kind);

	if (event_has_data(ev->kind) && ev->len > EVENT_DATA_MAX)
		return WRONG(n, "%s carries %" PRIu64 " bytes, more than %d", kind, ev->len,
			     EVENT_DATA_MAX);
	if ((rules & RULE_RANGE) && !ev->len)
		return WRONG(n, "%s of 0 bytes", kind);
	if ((rules & RULE_EMPTY) && ev->len)
		return WRONG(n, "%s has a length", kind);
	if ((rules & RULE_LINE) && (ev->addr % PM_LINE || (ev->len && ev->len != PM_LINE)))
		return WRONG(n, "%s at %" PRIu64 " is not one line", kind, ev->addr);
	return 0;
}

static int check_ref(const struct trace_check *c, unsigned rules, const struct event *ev,
		     struct err *err)
{
	uint64_t n = c->seen.n;
	const char *kind = event_kind_name(ev->kind);

	if ((rules & RULE_OP) && ev->ref >= TRACE_OP_MAX)
		return WRONG(n, "%s of operation %" PRIu64 ", a number that is too large", kind,
			     ev->ref);
	if (!(rules & RULE_REF))
		return 0;
	if (ev->ref >= n)
		return WRONG(n, "completes event %" PRIu64 ", which is not before it", ev->ref);

	unsigned char seen = c->seen.v[ev->ref];

	if (!event_is_request((enum event_kind)(seen & ~SEEN_COMPLETE)))
		return WRONG(n, "completes event %" PRIu64 ", which is not a request", ev->ref);
	if (seen & SEEN_COMPLETE)
		return WRONG(n, "completes event %" PRIu64 " a second time", ev->ref);
	if (ev->result > 0 || ev->result < -4095)
		return WRONG(n, "a result of %" PRId32 " is neither 0 nor an error", ev->result);
	return 0;
}

static int check_posix(uint64_t n, const struct event *ev, struct err *err)
{
	struct posix_event p;

	if (posix_decode(ev, &p, err))
		return err_context(err, "event %" PRIu64, n);
	return 0;
}

static int check_stack(const struct trace_check *c, const struct event *ev, struct err *err)
{
	uint64_t n = c->seen.n;

	if (ev->len % 8 || ev->len / 8 > EVENT_FRAMES_MAX)
		return WRONG(n, "a stack of %" PRIu64 " bytes is not one of up to %d addresses",
			     ev->len, EVENT_FRAMES_MAX);
	if (ev->ref != (uint64_t)c->stacks + 1 || c->stacks == UINT32_MAX)
		return WRONG(n, "stack %" PRIu64 " comes after stack %" PRIu32, ev->ref, c->stacks);
	return 0;
}

static int check_place(const struct trace_check *c, const struct trace_info *info,
		       const struct event *ev, struct err *err)
{
	if (!info->places && (ev->pc || ev->stack))
		return WRONG(c->seen.n, "has a place in a program, which no event of this trace "
					"should have");
	if (ev->stack > c->stacks)
		return WRONG(c->seen.n,
			     "its stack %" PRIu32 " is not among the %" PRIu32 " before it",
			     ev->stack, c->stacks);
	return 0;
}

int trace_check_event(struct trace_check *c, const struct trace_info *info, const struct event *ev,
		      struct err *err)
{
	uint64_t n = c->seen.n;
	int rc;

	if (!event_kind_name(ev->kind))
		return WRONG(n, "there is no kind %u", (unsigned)ev->kind);

	unsigned rules = rules_of[ev->kind].rules;

	if (ev->flags & ~rules_of[ev->kind].flags)
		return WRONG(n, "flags 0x%" PRIx32 " do not belong to a %s", ev->flags,
			     event_kind_name(ev->kind));
	if (ev->cpu >= TRACE_CPU_MAX)
		return WRONG(n, "CPU %" PRIu32 " is too large", ev->cpu);
	rc = check_len(n, rules, ev, err);
	if (!rc && (rules & (RULE_RANGE | RULE_LINE)))
		rc = check_range(n, info, ev, err);
	if (!rc)
		rc = check_ref(c, rules, ev, err);
	if (!rc && (rules & RULE_POSIX))
		rc = check_posix(n, ev, err);
	if (!rc && (rules & RULE_STACK))
		rc = check_stack(c, ev, err);
	if (!rc)
		rc = check_place(c, info, ev, err);
	if (rc)
		return rc;
	c->stacks += ev->kind == EV_STACK;
	if (rules & RULE_REF) {
		assert(ev->ref < c->seen.n && !(c->seen.v[ev->ref] & SEEN_COMPLETE)); /* T3 */
		c->seen.v[ev->ref] |= SEEN_COMPLETE;
	}
	vec_push(&c->seen, (unsigned char)ev->kind);
	assert(c->stacks <= c->seen.n && ev->stack <= c->stacks); /* T4 */
	return 0;
}

int trace_validate(const struct trace *t, struct err *err)
{
	auto_trace_check check = TRACE_CHECK_INIT;
	int rc = trace_check_info(&t->info, err);

	for (size_t i = 0; !rc && i < t->events.n; i++)
		rc = trace_check_event(&check, &t->info, &t->events.v[i], err);
	return rc;
}
