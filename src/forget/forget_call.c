/* SPDX-License-Identifier: MIT */
/*
 * forget_call.c - the frame of every request: asks the faults, executes their actions before and
 * after, and records the operation.
 *
 * K1: an operation with a crash before it did nothing; one with a crash after it is not answered
 *     with success, as the program would not have seen the answer.
 * K2: while a trace is written, operations that change or persist something run one after the
 *     other, so that their order in the trace is the order of their effects.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "forget/forget_call.h"

uint64_t forget_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void forget_log(struct forget *f, const char *fmt, ...)
{
	va_list ap;

	if (!f->opts.log)
		return;
	va_start(ap, fmt);
	auto_free char *line = xvasprintf(fmt, ap);
	va_end(ap);
	f->opts.log(f->opts.log_ctx, line);
}

static void log_call(struct call *c)
{
	forget_log(c->f, "%s path=%s%s%s offset=%llu size=%llu result=%lld",
		   posix_op_name(c->ev.op), c->from, c->to ? " to=" : "", c->to ? c->to : "",
		   llu(c->ev.offset), llu(c->ev.len), (long long)c->ev.result);
}

/* ---- begin ---- */

static char *path_of(struct forget *f, struct node *n, const char *name)
{
	struct strbuf sb = STRBUF_INIT;

	node_path(f, n, name, &sb);
	return sb.buf ? strbuf_detach(&sb) : xstrdup("");
}

static void describe(struct call *c, const struct call_what *w)
{
	const struct fuse_ctx *who = c->req ? fuse_req_ctx(c->req) : NULL;

	c->ev = (struct posix_event){
		.op = w->op,
		.flags = w->flags,
		.pid = who ? (uint32_t)who->pid : 0,
		.tid = who ? (uint32_t)who->pid : 0,
		.uid = who ? who->uid : 0,
		.gid = who ? who->gid : 0,
		.offset = w->offset,
		.len = w->len,
		.arg = w->arg,
		.name = w->name,
		.name2 = w->name2,
		.payload = w->payload,
		.payload_len = w->payload_len,
	};
	if (w->name)
		c->ev.dir = w->node->ino;
	else
		c->ev.ino = w->node->ino;
	if (w->node2)
		c->ev.dir2 = w->node2->ino;
	c->from = path_of(c->f, w->node, w->name);
	if (w->op == POSIX_SYMLINK) { /* from the target to the name */
		c->to = c->from;
		c->from = xstrdup(w->payload);
	} else if (w->node2)
		c->to = path_of(c->f, w->node2, w->name2);
}

static int find_fault(void *ctx, const struct fault *fault)
{
	return fault->id == *(const uint64_t *)ctx;
}

/* Waits, but not longer than the fault exists: a cancelled fault releases its requests. */
static void wait_ms(struct forget *f, uint64_t ms, uint64_t fault)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(ms / 1000);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	auto_lock(&f->wait_lock);
	while (!f->dead && inject_each(f->faults, find_fault, &fault) &&
	       !pthread_cond_timedwait(&f->wait_cond, &f->wait_lock, &until))
		;
}

static const char *when(char *buf, size_t size, const struct call *c, const char *timing)
{
	snprintf(buf, size, "%s %s of %s%s%s", timing, posix_op_name(c->ev.op), c->from,
		 c->to ? " to " : "", c->to ? c->to : "");
	return buf;
}

/* Returns the answer that replaces the operation, or 0. */
static int ask_faults(struct call *c, const struct call_what *w)
{
	struct forget *f = c->f;
	struct inject_op op = { w->op, c->from, c->to, w->offset, w->len };
	char why[512];

	inject_ask(f->faults, &op, &c->act);
	if (c->act.fired) {
		when(why, sizeof(why), c, "at");
		forget_log(f, "fault %llu: %s", llu(c->act.fired), why);
		forget_trace_note(f, "fault %llu: %s", llu(c->act.fired), why);
	}
	if (c->act.misfit)
		forget_log(f,
			   "fault %llu: not done, its parts have another length than %s, of %llu "
			   "bytes",
			   llu(c->act.misfit->id), when(why, sizeof(why), c, "the"), llu(w->len));
	for (size_t i = 0; i < c->act.n_delays; i++)
		wait_ms(f, c->act.delays[i].ms, c->act.delays[i].fault);
	if (c->act.crash_before || c->act.clear_before)
		forget_lose(f, c->act.lose, c->act.crash_before ? LOSE_AND_END : LOSE_GO_ON,
			    when(why, sizeof(why), c, "before"), &c->told);
	if (c->act.crash_before)
		return -ENOTCONN;
	return -c->act.error;
}

static int sync_by_fault(struct call *c, bool after)
{
	if (!c->act.sync || c->act.sync->after != after)
		return 0;
	return forget_sync_pages(c->f, c->node, c->act.sync);
}

/* torn-seq: the first write of a run survives, as only a later write has shown. */
static int first_of_run(struct call *c)
{
	auto_free char *data = xmalloc(c->act.first_len);
	struct node *n = c->node;
	int64_t rc = 0;

	auto_data(c->f, n);
	struct pagefile *pf = n->file ? n->file->pf : NULL;

	if (pf)
		rc = pagefile_read(pf, data, c->act.first_offset, c->act.first_len);
	if (rc > 0)
		rc = pagefile_write_durable(pf, data, c->act.first_offset, (size_t)rc);
	return rc < 0 ? (int)rc : 0;
}

int call_begin_what(struct call *c, fuse_req_t req, const struct call_what *w)
{
	struct forget *f = forget_of(req);
	int rc = 0;

	*c = (struct call){ .f = f, .req = req, .node = w->node, .node2 = w->node2 };
	c->act.short_bytes = -1;
	c->ev.op = w->op;
	c->ev.flags = w->flags;
	c->ev.number = atomic_fetch_add(&f->number, 1) + 1;
	if (f->dead)
		return -ENOTCONN;
	if (f->watch || inject_armed(f->faults)) {
		uint64_t number = c->ev.number;

		describe(c, w);
		c->ev.number = number;
		c->watched = true;
		c->start_ns = util_now_ns();
		rc = ask_faults(c, w);
		/* A sync that fails still has effects. */
		if (rc == -ENOTCONN && c->act.crash_before)
			return rc;
		if (rc && !posix_op_persists(w->op))
			return rc;
	}
	pthread_rwlock_rdlock(&f->gate);
	if (f->dead) {
		pthread_rwlock_unlock(&f->gate);
		return -ENOTCONN;
	}
	c->inside = true;
	c->epoch = atomic_load(&f->epoch);
	if (c->watched && forget_trace_wants(c)) {
		pthread_mutex_lock(&f->trace_lock);
		c->tracing = true;
	}
	if (!rc)
		rc = sync_by_fault(c, false);
	if (!rc && c->act.first_len)
		rc = first_of_run(c);
	return rc;
}

/* ---- end ---- */

static void record(struct call *c, int64_t rc)
{
	struct forget *f = c->f;

	c->ev.result = rc;
	c->ev.duration_ns = util_now_ns() - c->start_ns;
	if (f->opts.log_all)
		log_call(c);
	/* The trace may have ended while this call waited for the lock. */
	if (!c->tracing && !forget_trace_wants(c))
		return;
	if (!c->tracing)
		pthread_mutex_lock(&f->trace_lock);
	c->tracing = false;
	if (f->trace)
		forget_trace_call(c);
	pthread_mutex_unlock(&f->trace_lock);
}

int64_t call_end(struct call *c, int64_t rc)
{
	struct forget *f = c->f;
	char why[512];

	if (c->inside && rc >= 0) {
		int one = sync_by_fault(c, true);

		rc = one ? one : rc;
	}
	if (c->watched)
		record(c, rc);
	if (c->inside)
		pthread_rwlock_unlock(&f->gate);
	c->inside = false;
	if (c->act.crash_after && c->act.lose && c->act.lose->returns)
		return rc; /* call_done() cuts the power */
	if (c->act.tear)
		return -ENOTCONN; /* the caller cuts the power: forget_tear() */
	if (c->act.crash_after || c->act.clear_after) {
		forget_lose(f, c->act.lose, c->act.crash_after ? LOSE_AND_END : LOSE_GO_ON,
			    when(why, sizeof(why), c, "after"), &c->told);
		if (c->act.crash_after)
			return -ENOTCONN;
	}
	return f->dead ? -ENOTCONN : rc;
}

/*
 * Tells the kernel what to forget, after the answer to any operation: before, the kernel holds
 * locks, of directories or the file, that it would need.
 */
void call_done(struct call *c)
{
	char why[512];

	if (c->act.crash_after && c->act.lose && c->act.lose->returns && !c->act.tear)
		forget_lose(c->f, c->act.lose, LOSE_AND_END, when(why, sizeof(why), c, "after"),
			    NULL);
	if (c->told.n)
		forget_tell(c->f, &c->told);
	vec_release(&c->told);
	free(c->from);
	free(c->to);
	c->from = c->to = NULL;
}

void call_reply(struct call *c, int64_t rc)
{
	rc = call_end(c, rc);
	fuse_reply_err(c->req, rc < 0 ? (int)-rc : 0);
	call_done(c);
}
