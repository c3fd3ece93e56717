/* SPDX-License-Identifier: MIT */
/*
 * pool_talk.c - reads and writes the sockets of a pool, in its parent: units, messages and results;
 * and puts results in order. P1 to P6 are those of pool.c.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "base/pool_impl.h"

/* ---- results ---- */

void pool_job_release(struct pool_job *j)
{
	strbuf_release(&j->data);
	*j = (struct pool_job){ 0 };
}

static void tell_done(struct pool *p, uint64_t unit, const struct strbuf *data,
		      const struct pool_end *lost)
{
	int rc = p->opts.done ? p->opts.done(p->opts.ctx, unit, strbuf_str(data), data->len, lost)
			      : 0;

	p->rc = p->rc ? p->rc : rc;
	p->killing |= rc != 0;
}

/* The index of the next result in order, or with `all` of the first there is; -1: none. */
static ssize_t next_early(const struct pool *p, bool all)
{
	ssize_t first = -1;

	for (size_t i = 0; i < p->early.n; i++)
		if (first < 0 || p->early.v[i].seq < p->early.v[first].seq)
			first = (ssize_t)i;
	return first >= 0 && (all || p->early.v[first].seq == p->told) ? first : -1;
}

/* Once a callback has failed, results are told only if they stop the run: with `all`. */
void pool_tell_early(struct pool *p, bool all)
{
	ssize_t i;

	while ((all || !p->rc) && (i = next_early(p, all)) >= 0) {
		struct pool_early e = p->early.v[i];

		assert(e.seq >= p->told); /* P3, P5 */
		p->early.v[i] = vec_last(&p->early);
		p->early.n--;
		p->told = e.seq + 1;
		tell_done(p, e.unit, &e.data, e.is_lost ? &e.lost : NULL);
		strbuf_release(&e.data);
	}
}

void pool_finish(struct pool *p, struct pool_slot *s, const void *data, size_t len,
		 const struct pool_end *lost)
{
	struct pool_early e = { .seq = s->job[0].seq, .unit = s->job[0].unit, .is_lost = lost };

	assert(s->n > 0 && s->n <= POOL_DEPTH_MAX); /* P2 */
	assert(s->job[0].turn == s->turns_over);    /* P4 */
	s->turns_over++;
	p->over++;
	assert(p->over <= p->given && s->turns - s->turns_over == s->n - 1); /* P2, P3 */
	pool_job_release(&s->job[0]);
	s->n--;
	memmove(&s->job[0], &s->job[1], (POOL_DEPTH_MAX - 1) * sizeof(s->job[0]));
	s->job[POOL_DEPTH_MAX - 1] = (struct pool_job){ 0 };
	assert(!s->n || s->job[0].seq != e.seq); /* P3 */
	strbuf_add(&e.data, data, len);
	if (lost) {
		e.lost = *lost;
		e.lost.at = e.lost.kernel = e.lost.stopped = NULL;
	}
	if (p->opts.ordered) {
		vec_push(&p->early, e);
		pool_tell_early(p, false);
	} else {
		tell_done(p, e.unit, &e.data, lost);
		strbuf_release(&e.data);
	}
}

/* ---- what comes and goes over the socket ---- */

static void take_frame(struct pool *p, struct pool_slot *s, const struct pool_frame *f,
		       const void *data)
{
	unsigned number = (unsigned)(s - p->slot);

	patience_renew(&s->patience);
	if (f->kind != POOL_RESULT) {
		assert(p->opts.message);
		p->opts.message(p->opts.ctx, number, f->kind, data, f->len);
		return;
	}
	s->wrong |= !s->n || f->seq != s->job[0].seq; /* P4 */
	if (s->wrong)
		return;
	s->deaths = 0;
	s->did = true;
	pool_finish(p, s, data, f->len, NULL);
}

/* Handles all whole frames that have come (P1). */
static void take_frames(struct pool *p, struct pool_slot *s)
{
	size_t at = 0;

	while (!s->wrong && s->in.len - at >= sizeof(struct pool_frame)) {
		struct pool_frame f;

		memcpy(&f, s->in.buf + at, sizeof(f));
		s->wrong = f.magic != POOL_MAGIC || f.len >= POOL_LEN_MAX;
		if (s->wrong || s->in.len - at - sizeof(f) < f.len)
			break;
		assert(at + sizeof(f) + f.len <= s->in.len); /* P1 */
		take_frame(p, s, &f, s->in.buf + at + sizeof(f));
		at += sizeof(f) + f.len;
	}
	strbuf_drop(&s->in, at);
}

void pool_hear(struct pool *p, struct pool_slot *s, size_t limit)
{
	enum { CHUNK = 1 << 16 };

	s->heard = s->eof;
	for (size_t got = 0; !s->eof && !s->wrong && got < limit;) {
		void *to = strbuf_grow(&s->in, CHUNK);
		ssize_t n = fault_fails("pool.recv") ? -1 : recv(s->fd, to, CHUNK, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			s->heard = true;
			break;
		}
		if (n <= 0) {
			s->deaf |= n < 0 && errno != ECONNRESET;
			s->eof = s->heard = true;
			s->eof_ns = util_now_ns();
			break;
		}
		s->in.len += (size_t)n;
		got += (size_t)n;
		take_frames(p, s);
	}
}

/* A write error is ignored: pool_hear() finds out that a worker is dead. */
void pool_send(struct pool_slot *s)
{
	size_t done = 0;
	ssize_t n = 0;

	while (done < s->out.len && n >= 0) {
		n = fault_fails("pool.send") ? -1
					     : send(s->fd, s->out.buf + done, s->out.len - done,
						    MSG_NOSIGNAL | MSG_DONTWAIT);
		done += n > 0 ? (size_t)n : 0;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		s->deaf |= errno != EPIPE && errno != ECONNRESET;
		done = s->out.len;
	}
	strbuf_drop(&s->out, done);
}

void pool_send_job(struct pool_slot *s, const struct pool_job *j)
{
	struct pool_frame f = {
		.magic = POOL_MAGIC, .len = j->data.len, .seq = j->seq, .unit = j->unit
	};

	strbuf_add(&s->out, &f, sizeof(f));
	strbuf_add(&s->out, j->data.buf, j->data.len);
	pool_send(s);
}

void pool_tell_end(struct pool_slot *s)
{
	if (!s->closed && !s->out.len) {
		shutdown(s->fd, SHUT_WR);
		s->closed = true;
		patience_renew(&s->patience);
	}
}
