/* SPDX-License-Identifier: MIT */
/* run.c - opens a run, makes the base image, records a workload, and hands its states over. */
#include "run/run.h"

#include <errno.h>

#include "record/disk_bpf.h"
#include "core/patch.h"
#include "run/attempt.h"
#include "run/run_impl.h"

/* One in so many recordings is compared with the device: where it was written, and all of it. */
enum { CHECK_EVERY = 8, VERIFY_EVERY = 64, RECORD_TRIES = 5 };

static int refuse_new(const struct target *t, const struct strbuf *said, struct err *err)
{
	int n = (int)strcspn(strbuf_str(said), "\n");

	if (t->ops->far)
		return err_set(
			err, -EIO,
			"a new %s cannot be mounted; see the options of --target and --mkfs: "
			"%.*s%s%s",
			t->ops->name, n, strbuf_str(said),
			*t->console ? "; the guest's kernel said: " : "", t->console);
	return err_set(err, -EIO,
		       "a new %s cannot be mounted; see dmesg, and the options of --target and "
		       "--mkfs: %.*s",
		       t->ops->name, n, strbuf_str(said));
}

/* A file system that was mounted once writes less when it is mounted again, and always the same. */
static int make_base(struct run *r, struct err *err)
{
	struct image fresh;
	auto_strbuf said = STRBUF_INIT;
	struct err later = ERR_INIT;
	int rc = target_mkfs(&r->target, &fresh, err);

	if (rc)
		return rc;
	rc = disk_load(r->target.disk, &fresh, err);
	image_release(&fresh);
	if (!rc)
		rc = disk_start(r->target.disk, NULL, err);
	if (rc)
		return rc;
	rc = target_mount(&r->target, &said, err);
	if (rc > 0)
		rc = refuse_new(&r->target, &said, err);
	if (!rc)
		rc = target_umount(&r->target, true, err);
	int stopped = disk_stop(r->target.disk, &later);
	if (!rc && stopped) {
		*err = later;
		rc = stopped;
	}
	if (!rc)
		image_snapshot(disk_image(r->target.disk), &r->base);
	return rc;
}

static int open_target(struct run *r, struct err *err)
{
	int rc = target_open(&r->opts.target, &r->target, err);

	if (!rc)
		disk_check_every(r->target.disk, r->opts.paranoid ? 1 : CHECK_EVERY);
	return rc;
}

int run_open(const struct run_opts *opts, struct run **out, struct err *err)
{
	struct run *r = xcalloc(1, sizeof(*r));

	r->opts = *opts;
	/* A second crash follows a first. */
	if (!(r->opts.modes & ~(unsigned)RUN_RECOVERY))
		r->opts.modes |= RUN_PERSIST;
	r->max_subset = opts->max_subset ? opts->max_subset : 2;
	trace_init(&r->trace);
	trace_init(&r->recovery);
	op_history_init(&r->history);
	image_init(&r->base, 0);
	int rc = open_target(r, err);
	if (!rc && r->target.ops->pm)
		rc = model_pm_opts_check(
			&(struct model_pm_opts){ .granularity = (uint32_t)opts->pm.granularity },
			err);
	if (!rc) {
		r->guarantee = opts->guarantee ? *opts->guarantee
					       : *guarantee_find(target_guarantee(&r->target));
		if (r->target.ops->deaf_to_sync)
			r->guarantee.sync_reaches = false;
		check_tree_opts(&r->tree_opts, r->target.ops->ignore);
		rc = make_base(r, err);
		if (!rc)
			rc = attempt_read_only_first(r, err);
		r->with_times = r->target.ops->pm && r->target.clock && !opts->dump;
	}
	if (rc) {
		run_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

void run_close(struct run *r)
{
	if (!r)
		return;
	if (r->target.ops)
		target_close(&r->target);
	for (size_t i = 0; i < r->names.n; i++)
		kallsyms_release(&r->names.v[i].names);
	vec_release(&r->names);
	image_release(&r->base);
	trace_release(&r->trace);
	trace_release(&r->recovery);
	op_history_release(&r->history);
	tree_release(&r->seen);
	tree_release(&r->seen_again);
	tree_release(&r->left);
	vec_release(&r->blocks);
	vec_release(&r->times);
	vec_release(&r->marks);
	free(r);
}

/* The record must be the truth: replaying it on the base gives what the device holds. */
static int verify(struct run *r, struct run_totals *totals, struct err *err)
{
	struct image replayed;
	struct patch patch;

	if (!r->opts.paranoid && r->runs % VERIFY_EVERY)
		return 0;
	image_snapshot(&r->base, &replayed);
	patch_init(&patch, &replayed); /* a disk has requests, or stores */
	vec_each(ev, &r->trace.events) {
		if (ev->kind == EV_STORE)
			patch_write(&patch, ev->addr, ev->data, ev->len);
		else if (ev->kind == EV_WRITE)
			image_write(&replayed, ev->addr, ev->data, ev->len);
		else if (ev->kind == EV_DISCARD || ev->kind == EV_ZERO)
			image_zero(&replayed, ev->addr, ev->len);
	}
	patch_finish(&patch);
	int rc = disk_verify(r->target.disk, &replayed, err);
	if (rc)
		err_context(err, "the record is not what the device holds");
	totals->verified += !rc;
	image_release(&replayed);
	return rc;
}

/* A line that is not flushed, or a fence that is none: in its place stands a load. */
static void lose_ordering(struct event *ev)
{
	*ev = (struct event){ .kind = EV_LOAD,
			      .addr = ev->kind == EV_LINEFLUSH ? ev->addr : 0,
			      .len = PM_ATOMIC,
			      .cpu = ev->cpu,
			      .pc = ev->pc,
			      .stack = ev->stack };
}

/*
 * Loses a flush of persistent memory: the n-th flush of a line, or fence that has something to
 * order. A fence goes with those of its CPU that follow it at once, as one is as good as two: a
 * driver may have several, and to a processor every lock is one.
 */
bool lose_pm_flush(struct trace *t, uint64_t n)
{
	bool pending = false;
	uint64_t from, to;

	operations_span(t, &from, &to);
	for (size_t i = (size_t)from; i < to && n; i++) {
		struct event *ev = &t->events.v[i];
		bool fence = ev->kind == EV_FENCE;

		if ((fence && pending) || ev->kind == EV_LINEFLUSH)
			n--;
		pending = !fence && (pending || ev->kind == EV_STORE || ev->kind == EV_LINEFLUSH);
		if (n || (!fence && ev->kind != EV_LINEFLUSH))
			continue;
		uint32_t cpu = ev->cpu;

		lose_ordering(ev);
		for (i++; fence && i < t->events.n && t->events.v[i].kind == EV_FENCE; i++)
			if (t->events.v[i].cpu == cpu)
				lose_ordering(&t->events.v[i]);
	}
	return n == 0;
}

/*
 * Forgets the n-th flush or FUA that was sent while operations ran. A flush alone becomes a read,
 * which orders nothing, so that the numbers of events stay what they are.
 */
static bool lose_flush(struct trace *t, uint64_t n)
{
	uint64_t from, to;

	operations_span(t, &from, &to);
	for (size_t i = (size_t)from; i < to && n; i++) {
		struct event *ev = &t->events.v[i];

		if (ev->kind == EV_FLUSH && --n == 0)
			*ev = (struct event){ .kind = EV_READ, .len = t->info.sector_size };
		for (uint32_t flag = EV_PREFLUSH; n && flag <= EV_FUA; flag <<= 1)
			if (ev->kind == EV_WRITE && ev->flags & flag && --n == 0)
				ev->flags &= ~flag;
	}
	return n == 0;
}

/*
 * The record was not whole: more was written between two marks than there is room for, or a busy
 * machine made the recorder miss something. The next try has more room.
 */
static int make_room(struct run *r, struct err *err)
{
	if (!disk_bpf_grow_ring())
		return 0;
	target_close(&r->target);
	return open_target(r, err);
}

struct run_case run_case_of(struct run *r, const struct workload *w, const struct image *base)
{
	return (struct run_case){ .target = &r->target,
				  .guarantee = &r->guarantee,
				  .workload = w,
				  .trace = &r->trace,
				  .base = base,
				  .modes = r->opts.modes,
				  .history = &r->history,
				  .operation = RUN_NO_OPERATION };
}

static int run_on_target(struct run *r, const struct workload *w, const struct run_reporter *report,
			 struct run_totals *totals, struct err *err)
{
	auto_findings live = { 0 };
	auto_strbuf log = STRBUF_INIT;

	r->report = report;
	int rc = record_workload(r, w, &live, err);

	for (int tries = 0; rc == -EOVERFLOW && tries < RECORD_TRIES; tries++) {
		err_clear(err);
		findings_clear(&live);
		totals->repeated++;
		rc = make_room(r, err);
		if (!rc)
			rc = record_workload(r, w, &live, err);
	}

	bool died = rc == 1;
	if (!rc)
		rc = verify(r, totals, err);
	if (rc < 0)
		return rc;
	if (r->opts.lose_flush)
		totals->altered += r->target.ops->pm ? lose_pm_flush(&r->trace, r->opts.lose_flush)
						     : lose_flush(&r->trace, r->opts.lose_flush);
	for (size_t i = 0; i < r->history.results.n; i++) {
		bool refused = r->history.results.v[i] < 0;

		totals->refused += refused;
		totals->performed += !refused && !op_persists(&w->ops.v[i]);
	}
	r->runs++;
	totals->workloads++;
	if (target_kernel_log(&r->target, &log))
		findings_add(&live, FINDING_KERNEL_LOG, NULL,
			     xasprintf("the kernel says: %s", strbuf_str(&log)),
			     xstrdup("nothing had crashed yet"));
	if (live.n) {
		struct run_case c = run_case_of(r, w, &r->base);

		c.done = r->history.results.n;
		c.seen = died ? NULL : &r->seen;
		c.findings = &live;
		c.kernel_log = strbuf_str(&log);
		c.said = "";
		totals->findings++;
		rc = report->found(report->ctx, &c, err);
	}
	/* The promises of a run that has no end are unknown. */
	return rc < 0 || died ? min(rc, 0) : explore_states(r, w, report, totals, err);
}

int run_workload(struct run *r, const struct workload *w, const struct run_reporter *report,
		 struct run_totals *totals, struct err *err)
{
	int rc = r->target.disk ? run_on_target(r, w, report, totals, err)
				: err_set(err, -ENODEV, "the disk is gone");

	/* A target that is still mounted, or has no disk, is good for nothing more. */
	return rc < 0 && (r->target.mounted || !r->target.disk) ? -ENODEV : rc;
}

/* The history of a recorded run, and the blocks it counted, from what its trace says. */
static int rebuild_history(struct run *r, const struct workload *w, const struct trace *t,
			   struct err *err)
{
	auto_findings ignored = { 0 };
	auto_strbuf text = STRBUF_INIT, times = STRBUF_INIT;
	int rc = 0;

	vec_clear(&r->blocks);
	vec_clear(&r->times);
	op_history_start(&r->history, w);
	for (size_t i = 0; i < t->events.n && !rc; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_TEXT) {
			recorded_blocks(r, w, ev);
			recorded_times(r, ev, &times);
			rc = recorded_tree(r, w, ev, &text, err);
		}
		if (ev->kind != EV_OP_END)
			continue;
		if (ev->ref != r->history.results.n || ev->ref >= w->ops.n)
			return err_set(err, -EINVAL,
				       "the trace is not of this workload: operation %llu ends at "
				       "event %zu",
				       llu(ev->ref), i);
		op_history_op(&r->history, ev->ref, ev->result, &ignored);
	}
	return rc;
}

static void copy_trace(const struct trace *from, struct trace *to)
{
	trace_clear(to);
	to->info = from->info;
	for (size_t i = 0; i < from->events.n; i++)
		trace_append(to, &from->events.v[i]);
}

int run_rebuild(const struct pm_choice *pm, const struct trace *t, const struct trace *recovery,
		const struct image *base, const char *id, struct crash_state *state,
		struct crash_state *second, struct err *err)
{
	const char *slash = strchr(id, '/');
	auto_free char *first = slash ? xmemdupz(id, (size_t)(slash - id)) : xstrdup(id);

	if (!slash != !recovery)
		return err_set(err, -EINVAL, "the state %.60s %s", id,
			       slash ? "is of a crash during recovery, of which there is no record"
				     : "has no second crash");
	int rc = pm_choice_replay(pm, t, base, first, state, err);
	if (rc || !slash)
		return rc;
	return pm_choice_replay(pm, recovery, &state->image, slash + 1, second, err);
}

int run_replay(struct run *r, const struct workload *w, const struct trace *t,
	       const struct trace *recovery, const struct places *places, const struct image *base,
	       const char *id, const struct run_reporter *report, struct run_totals *totals,
	       struct err *err)
{
	auto_crash_state state = CRASH_STATE_INIT, second = CRASH_STATE_INIT;
	int rc = rebuild_history(r, w, t, err);

	if (!rc)
		rc = run_rebuild(&r->opts.pm, t, recovery, base, id, &state, &second, err);
	if (rc)
		return rc;
	copy_trace(t, &r->trace);
	if (recovery)
		copy_trace(recovery, &r->recovery);
	r->kept_places = places;
	totals->workloads++;
	totals->crash_states++;
	r->opts.modes &= ~(unsigned)RUN_RECOVERY; /* this state, and none that could follow */
	return check_replayed(r, w, &state, recovery ? &second : NULL, base, report, totals, err);
}
