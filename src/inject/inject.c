/* SPDX-License-Identifier: MIT */
/*
 * inject.c - keeps the set of faults, and finds the faults of each operation.
 *
 * I1: every operation is counted once by each fault that it matches, in some order, under one lock:
 *     exactly one of many threads is told that its operation is the n-th.
 * I2: a fault is freed with the set, so that a thread that was told about it may use it.
 * I3: a fault's number is its place, and `armed` counts those that are neither done nor removed.
 *
 * Only a sync of the file ends a run of writes (torn-seq). A run counts, and gets a number, when
 * its second write comes: LazyFS does not count a single write between two syncs. So the first
 * write can be made durable only when the second comes.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "inject/internal.h"

/* The writes to one file since it was synced. */
struct write_run {
	char *path;
	uint64_t count;
	uint64_t number;      /* its number among the fault's runs; 0: one write so far */
	uint64_t offset, len; /* of the first write */
};

struct fault_slot {
	struct fault *f;
	bool removed;
	struct vec_of(struct write_run) runs; /* FAULT_TORN_SEQ */
};

struct inject {
	pthread_mutex_t lock;
	atomic_uint armed; /* faults that can still happen */
	struct vec_of(struct fault_slot *) slots;
};

struct inject *inject_new(void)
{
	struct inject *s = xcalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void clear_runs(struct fault_slot *slot)
{
	vec_release_each(p, &slot->runs, free(p->path));
}

void inject_free(struct inject *s)
{
	if (!s)
		return;
	vec_release_each(p, &s->slots, clear_runs(*p), fault_free((*p)->f), free(*p));
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int check_conflicts(const struct inject *s, const struct fault *f, struct err *err)
{
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct fault_slot *slot = s->slots.v[i];

		if (!slot->removed && !slot->f->done && fault_conflicts(slot->f, f))
			return err_set(err, -EEXIST,
				       "fault %" PRIu64
				       " (%s) tears the same file already; cancel it "
				       "first",
				       slot->f->id, strbuf_str(&slot->f->text));
	}
	return 0;
}

int inject_add(struct inject *s, struct fault *f, uint64_t *id, struct err *err)
{
	int rc = fault_check(f, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	rc = check_conflicts(s, f, err);
	if (!rc) {
		struct fault_slot *slot = xcalloc(1, sizeof(*slot));

		slot->f = f;
		f->seen = 0;
		f->done = false;
		vec_push(&s->slots, slot);
		f->id = s->slots.n;
		assert(vec_last(&s->slots)->f == f && atomic_load(&s->armed) < s->slots.n); /* I3 */
		if (id)
			*id = f->id;
		atomic_fetch_add(&s->armed, 1);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void end_fault(struct inject *s, struct fault_slot *slot)
{
	if (!slot->f->done && !slot->removed) {
		unsigned before = atomic_fetch_sub(&s->armed, 1);

		assert(before > 0); /* I3 */
	}
	slot->f->done = true;
	clear_runs(slot);
}

int inject_remove(struct inject *s, uint64_t id, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	if (!id || id > s->slots.n || s->slots.v[id - 1]->removed) {
		rc = err_set(err, -ENOENT, "there is no fault %" PRIu64, id);
	} else {
		end_fault(s, s->slots.v[id - 1]);
		s->slots.v[id - 1]->removed = true;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int inject_each(struct inject *s, int (*fn)(void *ctx, const struct fault *f), void *ctx)
{
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; !rc && i < s->slots.n; i++)
		if (!s->slots.v[i]->removed)
			rc = fn(ctx, s->slots.v[i]->f);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

bool inject_armed(const struct inject *s)
{
	return atomic_load_explicit(&s->armed, memory_order_relaxed) > 0;
}

/* ---- what a fault does ---- */

static void fire(const struct fault *f, struct inject_action *out)
{
	if (!out->fired)
		out->fired = f->id;
}

static void lose(struct fault *f, bool crash, struct inject_action *out)
{
	if (!out->lose)
		out->lose = f;
	if (f->after) {
		out->crash_after |= crash;
		out->clear_after |= !crash;
	} else {
		out->crash_before |= crash;
		out->clear_before |= !crash;
	}
	fire(f, out);
}

static void tear(struct fault *f, const struct inject_op *op, struct inject_action *out)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->parts_bytes.n; i++)
		sum += f->parts_bytes.v[i];
	if (f->parts_bytes.n && sum != op->len) {
		out->misfit = f;
		f->misfit = true;
		f->misfit_len = op->len;
		return;
	}
	if (out->tear || (out->durable && out->crash_after))
		return; /* another fault tears it, and the mount ends */
	out->tear = f;
	lose(f, true, out);
}

/*
 * If an operation has too many delays, the last ones become one: no user cancels one of them by
 * itself.
 */
static void delay(const struct fault *f, struct inject_action *out)
{
	if (out->n_delays == INJECT_DELAYS_MAX) {
		out->delays[INJECT_DELAYS_MAX - 1].ms += f->delay_ms;
		return;
	}
	out->delays[out->n_delays++] = (struct inject_delay){ f->delay_ms, f->id };
}

static void apply(struct fault *f, const struct inject_op *op, struct inject_action *out)
{
	switch (f->type) {
	case FAULT_CRASH:
		lose(f, true, out);
		return;
	case FAULT_CLEAR:
		lose(f, f->crash, out);
		return;
	case FAULT_TORN_OP:
		tear(f, op, out);
		return;
	case FAULT_SYNC:
		if (!out->sync)
			out->sync = f;
		if (f->crash)
			lose(f, true, out);
		break;
	case FAULT_ERROR:
		if (!out->error) {
			out->error = f->error;
			out->keep_dirty = f->keep_dirty;
		}
		break;
	case FAULT_SHORT:
		if (f->bytes >= op->len)
			return; /* another fault makes it as short */
		if (out->short_bytes < 0 || f->bytes < (uint64_t)out->short_bytes)
			out->short_bytes = (int64_t)f->bytes;
		break;
	case FAULT_DELAY:
		delay(f, out);
		break;
	case FAULT_TORN_SEQ:
		break;
	}
	fire(f, out);
}

/* ---- runs ---- */

static struct write_run *run_of(struct fault_slot *slot, const char *path)
{
	return vec_find(i, &slot->runs, streq(slot->runs.v[i].path, path));
}

/* Ends a run at a sync of its file. If the fault waited for this run, it is done. */
static void end_run(struct inject *s, struct fault_slot *slot, const char *path)
{
	struct write_run *run = run_of(slot, path);

	if (!run)
		return;
	bool last = run->number == slot->f->occurrence;

	free(run->path);
	*run = vec_last(&slot->runs);
	slot->runs.n--;
	if (last)
		end_fault(s, slot);
}

static bool persists(const struct fault *f, uint64_t n)
{
	return any_of(i, f->persist.n, f->persist.v[i] == n);
}

static void count_in_run(struct inject *s, struct fault_slot *slot, const struct inject_op *op,
			 struct inject_action *out)
{
	struct fault *f = slot->f;
	struct write_run *run = run_of(slot, op->from);

	if (!run) {
		vec_push(&slot->runs, (struct write_run){ .path = xstrdup(op->from),
							  .offset = op->offset,
							  .len = op->len });
		run = &vec_last(&slot->runs);
	}
	run->count++;
	if (run->count == 2)
		run->number = ++f->seen;
	if (run->number != f->occurrence)
		return;
	if (run->count == 2 && persists(f, 1)) {
		out->first_offset = run->offset;
		out->first_len = run->len;
		fire(f, out);
	}
	if (persists(f, run->count)) {
		out->durable = true;
		fire(f, out);
	}
	/* the first write was kept just now, when the second came */
	if (run->count >= max(vec_last(&f->persist), (uint64_t)2)) {
		lose(f, true, out);
		end_fault(s, slot);
	}
}

/* ---- the interface ---- */

static bool syncs(enum posix_op op)
{
	return op == POSIX_FSYNC || op == POSIX_FDATASYNC || op == POSIX_MSYNC;
}

static void ask_one(struct inject *s, struct fault_slot *slot, const struct inject_op *op,
		    struct inject_action *out)
{
	struct fault *f = slot->f;
	uint64_t last = f->until ? f->until : f->occurrence;

	if (f->type == FAULT_TORN_SEQ && syncs(op->op) && op->from) {
		end_run(s, slot, op->from);
		return;
	}
	if (!fault_wants(f, op) || (f->type == FAULT_TORN_SEQ && !op->from))
		return;
	if (f->type == FAULT_TORN_SEQ) {
		count_in_run(s, slot, op, out);
		return;
	}
	f->seen++;
	if (f->seen >= f->occurrence && f->seen <= last)
		apply(f, op, out);
	if (f->seen >= last)
		end_fault(s, slot);
}

void inject_ask(struct inject *s, const struct inject_op *op, struct inject_action *out)
{
	*out = (struct inject_action){ .short_bytes = -1 };
	if (!inject_armed(s))
		return;
	pthread_mutex_lock(&s->lock);
	/* runs first: a write that ends one is not torn as well */
	for (int runs = 1; runs >= 0; runs--)
		for (size_t i = 0; i < s->slots.n; i++)
			if (!s->slots.v[i]->f->done &&
			    (s->slots.v[i]->f->type == FAULT_TORN_SEQ) == runs)
				ask_one(s, s->slots.v[i], op, out);
	pthread_mutex_unlock(&s->lock);
}
