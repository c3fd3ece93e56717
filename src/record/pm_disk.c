/* SPDX-License-Identifier: MIT */
/*
 * pm_disk.c - the operations of a recording disk on memory that a guest shares, and of its tracer.
 *
 * Operations are marked twice: in the guest, by an instruction that the tracer sees at its exact
 * place; and here, by disk_mark(), with the text and the result that the guest does not know. At
 * the end each mark made here takes the place of the guest's.
 */
#include "record/pm_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "record/disk_impl.h"
#include "record/pm_selftest.h"
#include "record/pm_stream.h"

#define STREAM_LIMIT ((uint64_t)1 << 30)

enum {
	STREAM_KEEP = 64 << 20, /* bytes of memory that the next stream reuses */
	PM_UNIT = 8,		/* bytes that a processor writes at once */
};

static const struct disk_ops disk_pm;

struct pm_disk {
	struct disk base;
	struct pm_disk_driver driver;
	int stream;
	const unsigned char *view; /* the stream, mapped */
	struct vec_of(struct event) marks;
	struct arena texts; /* texts of the marks */
};

static struct pm_disk *of_disk(struct disk *base)
{
	assert(base->ops == &disk_pm);
	return container_of(base, struct pm_disk, base);
}

/* ---- its life ---- */

static void pm_close(struct disk *base)
{
	struct pm_disk *d = of_disk(base);

	if (d->view)
		munmap((void *)(uintptr_t)d->view, STREAM_LIMIT);
	util_close(d->stream);
	vec_release(&d->marks);
	arena_release(&d->texts);
	/* There is no loop device behind the name. */
	base->loop = (struct loop){ 0 };
	disk_release(base);
	free(d);
}

int pm_disk_open(uint64_t size, struct disk **out, struct err *err)
{
	struct pm_disk *d = xcalloc(1, sizeof(*d));
	int rc = disk_init(&d->base, &disk_pm, size, err);

	d->stream = -1;
	d->base.loop =
		(struct loop){ .path = "the guest's persistent memory", .sector_size = PM_UNIT };
	if (rc) {
		pm_close(&d->base);
		return rc;
	}
	*out = &d->base;
	return 0;
}

void pm_disk_drive(struct disk *d, const struct pm_disk_driver *by)
{
	of_disk(d)->driver = *by;
}

int pm_disk_memory(const struct disk *d)
{
	return d->memfd;
}

int pm_disk_stream(struct disk *base, struct err *err)
{
	struct pm_disk *d = of_disk(base);

	if (d->stream >= 0)
		return d->stream;
	auto_fd fd = memfd_create("outage-pm-stream", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)STREAM_LIMIT) < 0)
		return err_set(err, -errno, "cannot make a file in memory: %m");
	void *view = mmap(NULL, STREAM_LIMIT, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (view == MAP_FAILED)
		return err_set(err, -errno, "cannot map the tracer's stream: %m");
	d->view = view;
	d->stream = steal_fd(&fd);
	return d->stream;
}

static void pm_unmounted(struct disk *base)
{
	/* The trace of a recording tells the changes. */
	if (!base->trace)
		disk_find_changes(base);
}

/* ---- the tracer's test ---- */

static int judge_test(const struct pm_disk *d, struct err *err)
{
	struct selftest_wrong wrong = { 0 };
	int rc = pm_selftest_compare(d->view, STREAM_LIMIT, true, &wrong, err);

	if (!rc && wrong.number)
		rc = err_set(err, -ENOTSUP,
			     "record %" PRIu64 " is not what it must be (%s), so nothing that it "
			     "traces can be believed; use another QEMU",
			     wrong.number, wrong.what);
	return rc ? err_context(err, "the tracer's test failed") : 0;
}

int pm_disk_test(struct disk *base, int (*run)(void *ctx, struct err *err), void *ctx,
		 struct err *err)
{
	struct pm_disk *d = of_disk(base);
	unsigned char before[SELFTEST_REGION];

	assert(!base->in_use && base->size >= SELFTEST_REGION);
	memcpy(before, base->map, sizeof(before));
	memset(base->map, 0, sizeof(before));
	int rc = run(ctx, err);
	if (!rc)
		rc = judge_test(d, err);
	memcpy(base->map, before, sizeof(before));
	return rc;
}

/* ---- marks ---- */

static int pm_mark(struct disk *base, const struct event *ev, struct err *err)
{
	struct pm_disk *d = of_disk(base);
	struct event copy = *ev;

	/* The guest makes the mark of a text, as its exact place matters. */
	if (ev->kind == EV_TEXT) {
		auto_free char *words = xmemdupz((const char *)ev->data, ev->len);

		return d->driver.text(d->driver.ctx, words, err);
	}
	if (ev->data)
		copy.data = (const unsigned char *)arena_memdupz(&d->texts, ev->data, ev->len);
	vec_push(&d->marks, copy);
	return 0;
}

struct merge {
	const struct pm_disk *d;
	struct trace *t;
	struct vec_of(struct event) out;
	size_t next_mark, next_stack;
};

/* Appends a mark made here, whose text is copied into the trace. */
static void put_mark(struct merge *m)
{
	struct event ev = m->d->marks.v[m->next_mark++];

	if (ev.data)
		ev.data = (const unsigned char *)arena_memdupz(&m->t->data, ev.data, ev.len);
	vec_push(&m->out, ev);
}

/* Appends the marks between operations. */
static void put_free_marks(struct merge *m)
{
	while (m->next_mark < m->d->marks.n) {
		enum event_kind kind = m->d->marks.v[m->next_mark].kind;

		if (kind == EV_OP_BEGIN || kind == EV_OP_END)
			return;
		put_mark(m);
	}
}

static int put_operation(struct merge *m, const struct event *seen, struct err *err)
{
	const struct event *ours = m->next_mark < m->d->marks.n ? &m->d->marks.v[m->next_mark]
								: NULL;

	if (!ours || ours->kind != seen->kind || ours->ref != seen->ref)
		return err_set(err, -EPROTO,
			       "the guest marked the %s of operation %" PRIu64
			       ", which it was not asked for",
			       seen->kind == EV_OP_BEGIN ? "begin" : "end", seen->ref);
	put_mark(m);
	vec_last(&m->out).cpu = seen->cpu;
	vec_last(&m->out).pc = seen->pc;
	vec_last(&m->out).stack = seen->stack;
	if (seen->kind == EV_OP_END)
		put_free_marks(m);
	return 0;
}

static int merge_all(struct merge *m, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < m->t->events.n && !rc; i++) {
		const struct event *ev = &m->t->events.v[i];

		if (ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END) {
			rc = put_operation(m, ev, err);
			continue;
		}
		if (ev->kind == EV_STACK)
			m->t->stacks.v[m->next_stack++] = m->out.n;
		vec_push(&m->out, *ev);
	}
	if (rc)
		return rc;
	put_free_marks(m);
	if (m->next_mark < m->d->marks.n)
		return err_set(err, -EPROTO, "the guest did not mark operation %" PRIu64,
			       m->d->marks.v[m->next_mark].ref);
	return 0;
}

/* Replaces the guest's marks in the trace by those made here. */
static int merge_marks(struct pm_disk *d, struct err *err)
{
	struct merge m = { .d = d, .t = d->base.trace };
	int rc = merge_all(&m, err);

	if (rc) {
		vec_release(&m.out);
		return rc;
	}
	vec_release(&m.t->events);
	m.t->events.v = m.out.v;
	m.t->events.n = m.out.n;
	m.t->events.cap = m.out.cap;
	return 0;
}

/* ---- the recorder ---- */

/* Does nothing: the content was compared when the guest unmounted it. */
static int pm_settle(struct disk *base, struct err *err)
{
	(void)base;
	(void)err;
	return 0;
}

static int pm_start(struct disk *base, struct err *err)
{
	struct pm_disk *d = of_disk(base);

	vec_clear(&d->marks);
	arena_clear(&d->texts);
	if (!base->trace)
		return 0;
	if (base->in_use)
		return err_set(err, -EBUSY,
			       "persistent memory that is mounted cannot be recorded from now on");
	return d->driver.start(d->driver.ctx, base->loads, err);
}

static void forget_stream(struct pm_disk *d)
{
	if (d->stream >= 0)
		fallocate(d->stream, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, STREAM_KEEP,
			  (off_t)(STREAM_LIMIT - STREAM_KEEP));
}

static int pm_stop(struct disk *base, struct err *err)
{
	struct pm_disk *d = of_disk(base);
	struct trace *t = base->trace;
	struct pm_counts n;

	if (!t) {
		if (base->in_use)
			disk_find_changes(base);
		return 0;
	}
	uint64_t machine = d->driver.machine ? d->driver.machine(d->driver.ctx) : 0;
	int rc = d->driver.stop(d->driver.ctx, err);
	if (!rc)
		rc = pm_stream_read(d->view, STREAM_LIMIT, t, &n, err);
	if (!rc)
		log_debug("recorded %" PRIu64 " stores, %" PRIu64 " flushes, %" PRIu64
			  " fences and %" PRIu64 " loads of %u processors",
			  n.stores, n.flushes, n.fences, n.loads, n.cpus);
	if (!rc && t->info.size != base->size)
		rc = err_set(err, -EPROTO, "the tracer traced a region of another size");
	if (!rc)
		rc = merge_marks(d, err);
	t->machine = machine;
	forget_stream(d);
	return rc;
}

static const struct disk_ops disk_pm = {
	.name = PM_RECORDER,
	.info = "persistent memory of a guest",
	.kind = DISK_PM,
	.in_guest = "memory",
	.close = pm_close,
	.unmounted = pm_unmounted,
	.settle = pm_settle,
	.start = pm_start,
	.drain = pm_settle,
	.mark = pm_mark,
	.stop = pm_stop,
};
