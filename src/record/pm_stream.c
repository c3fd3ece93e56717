/* SPDX-License-Identifier: MIT */
/*
 * pm_stream.c - reads records one by one, checks each, and makes events of them.
 *
 * M1: the current record ends at `at`, inside the stream; a batch ends there, too, and holds the
 *     records that continue it.
 */
#include "record/pm_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/pm_join.h"
#include "core/patch.h"
#include "record/pm_resume.h"

enum {
	HEADER_MAX = 4096,
	TEXT_MAX = 4096,
	MEMORY_MIN = 64 << 20, /* a trace may have so many bytes in memory */
	MEMORY_TIMES = 4,      /* or so many times the stream's limit, */
	MEMORY_PART = 4,       /* but at most this part of the machine's memory */
};

static int damaged(const struct pm_reader *p, struct err *err, const char *what)
{
	return err_set(err, -EINVAL,
		       "record %" PRIu64 " of the tracer's stream %s: the stream is damaged",
		       p->count, what);
}

int pm_reader_init(struct pm_reader *p, const void *data, size_t len, struct err *err)
{
	struct pm_reader r = { .data = data, .len = len, .sum = PM_STREAM_SUM_INIT };

	if (len < sizeof(r.head))
		return err_set(err, -EINVAL, "the tracer's stream has no header");
	memcpy(&r.head, data, sizeof(r.head));
	if (memcmp(r.head.magic, PM_STREAM_MAGIC, sizeof(r.head.magic)) != 0)
		return err_set(err, -EINVAL, "this is not the stream of a tracer");
	if (r.head.version != PM_STREAM_VERSION)
		return err_set(err, -EPROTO,
			       "the tracer's stream has version %" PRIu32
			       ", and only %d is known here: use the tracer that came with this "
			       "program",
			       r.head.version, PM_STREAM_VERSION);
	if (r.head.header_size < sizeof(r.head) ||
	    r.head.header_size > min(len, (size_t)HEADER_MAX) || r.head.header_size % 8 ||
	    r.head.flags & ~(uint32_t)PM_STREAM_HEADER_FLAGS ||
	    r.head.region_size > IMAGE_SIZE_MAX || r.head.cpus > PM_STREAM_CPUS_MAX)
		return err_set(err, -EINVAL, "the header of the tracer's stream is damaged");
	r.at = r.head.header_size;
	*p = r;
	return 0;
}

static int check_range(const struct pm_reader *p, const struct pm_stream_record *r, struct err *err)
{
	if (!r->len || r->len > PM_STREAM_STORE_MAX || r->addr > p->head.region_size ||
	    r->len > p->head.region_size - r->addr)
		return damaged(p, err, "leaves the region");
	return 0;
}

static int check_record(const struct pm_reader *p, const struct pm_stream_record *r,
			struct err *err)
{
	bool may_be_new = r->kind == PM_STREAM_STORE || r->kind == PM_STREAM_NTSTORE ||
			  r->kind == PM_STREAM_BATCH;

	if (r->kind >= PM_STREAM_KINDS || (r->flags && !may_be_new) ||
	    r->flags & ~PM_STREAM_NEW_CALL)
		return damaged(p, err, "is of no known kind");
	if (r->cpu >= max(p->head.cpus, 1u))
		return damaged(p, err, "names a CPU that is not there");
	switch (r->kind) {
	case PM_STREAM_STORE:
	case PM_STREAM_NTSTORE:
	case PM_STREAM_LOAD:
		return check_range(p, r, err);
	case PM_STREAM_FLUSH:
	case PM_STREAM_CLFLUSH:
		if (r->len || r->addr % PM_STREAM_LINE || r->addr >= p->head.region_size)
			return damaged(p, err, "does not flush a line");
		return 0;
	case PM_STREAM_TEXT:
	case PM_STREAM_TROUBLE:
		return r->len > TEXT_MAX ? damaged(p, err, "has too long a text") : 0;
	case PM_STREAM_STACK:
		return r->len % 8 || r->len / 8 > PM_STREAM_FRAMES_MAX
			       ? damaged(p, err, "is not a stack")
			       : 0;
	case PM_STREAM_BATCH:
		return r->len % 8 || r->len > PM_STREAM_BATCH_MAX
			       ? damaged(p, err, "is not a batch")
			       : 0;
	case PM_STREAM_MARK_BEGIN:
	case PM_STREAM_MARK_END:
		if (r->addr >= TRACE_OP_MAX)
			return err_set(err, -EINVAL,
				       "a mark has the number %" PRIu64
				       ": operations are numbered below %d",
				       r->addr, TRACE_OP_MAX);
		/* fall through */
	default:
		return r->len ? damaged(p, err, "has a length") : 0;
	}
}

static int at_end(const struct pm_reader *p, const struct pm_stream_record *r, struct err *err)
{
	if (r->addr != p->count || r->pc != p->sum)
		return err_set(err, -EINVAL, "the tracer's stream does not add up: it is damaged");
	return 0;
}

static int trouble(const struct pm_record *rec, struct err *err)
{
	char text[sizeof(err->msg)];
	size_t n = min((size_t)rec->r.len, sizeof(text) - 1);

	for (size_t i = 0; i < n; i++)
		text[i] = rec->data[i] < ' ' || rec->data[i] > '~' ? '?' : (char)rec->data[i];
	text[n] = 0;
	return err_set(err, -EIO, "the tracer gave up: %s", text);
}

/* Reads the number of stores that continue a run, and the place of their data. */
static int begin_more(struct pm_reader *p, uint64_t word, struct err *err)
{
	bool same = (word & 0xff) == PM_STREAM_MORE_SAME;
	uint64_t n = same ? word >> 8 & 0xffffff : word >> 3 & 7;
	uint64_t size = same ? (n * p->more.last.len + 7) / 8 * 8 : n * 8;

	if (!pm_stream_has_data(p->more.last.kind) || !n || (!same && word & 0xc0) ||
	    (same && word >> 32))
		return damaged(p, err, "goes on with nothing");
	if (size > p->batch_end - p->batch_at - 8)
		return damaged(p, err, "is cut off");
	p->more.n = (unsigned)n;
	p->more.i = 0;
	p->more.same = same;
	p->more.word = p->batch_at;
	p->more.data = p->batch_at + 8;
	p->batch_at += 8 + size;
	return 0;
}

static int next_of_more(struct pm_reader *p, struct pm_record *out, struct err *err)
{
	struct pm_stream_record *r = &p->more.last;

	assert(p->more.i < p->more.n && p->more.data < p->batch_end); /* M1 */
	r->addr += r->len;
	if (!p->more.same)
		r->pc += (uint64_t)(int64_t)(int8_t)p->data[p->more.word + 1 + p->more.i];
	int rc = check_record(p, r, err);
	if (rc)
		return rc;
	*out = (struct pm_record){ .r = *r, .data = p->data + p->more.data };
	p->more.data += p->more.same ? r->len : 8;
	p->more.i++;
	p->count++;
	return 1;
}

static int small_of_batch(struct pm_reader *p, uint64_t word, struct pm_record *out,
			  struct err *err)
{
	struct pm_record rec = { .r = p->batch };
	struct pm_stream_record *r = &rec.r;

	r->kind = word & 7;
	r->addr += (word & UINT32_MAX) >> 5;
	r->pc += (uint64_t)(int64_t)(int32_t)(word >> 32);
	r->len = 1u << (word >> 3 & 3);
	bool store = pm_stream_has_data(r->kind);
	if (!store && r->kind != PM_STREAM_LOAD)
		r->len--; /* 0, unless the record has a length, which is wrong */
	if (r->kind == PM_STREAM_FENCE)
		r->addr = 0;
	if (store && p->batch_end - p->batch_at < 16)
		return damaged(p, err, "is cut off");
	int rc = check_record(p, r, err);
	if (rc)
		return rc;
	if (store)
		rec.data = p->data + p->batch_at + 8;
	p->batch_at += store ? 16 : 8;
	p->batch.flags = 0;
	p->more.last = *r;
	p->more.last.flags = 0;
	p->count++;
	*out = rec;
	return 1;
}

static int next_of_batch(struct pm_reader *p, struct pm_record *out, struct err *err)
{
	uint64_t word;

	if (p->more.i == p->more.n) {
		assert(p->batch_at + 8 <= p->batch_end); /* M1 */
		memcpy(&word, p->data + p->batch_at, 8);
		if (!(word & 7))
			return damaged(p, err, "is of no known kind");
		if ((word & 7) != PM_STREAM_MORE)
			return small_of_batch(p, word, out, err);
		int rc = begin_more(p, word, err);
		if (rc)
			return rc;
	}
	return next_of_more(p, out, err);
}

/* Reads the next record, of a batch or a single one. Returns 1; 0 at the end. */
static int next_whole(struct pm_reader *p, struct pm_record *out, struct err *err)
{
	struct pm_record rec = { 0 };
	size_t left = p->len - p->at;

	if (left >= sizeof(rec.r))
		memcpy(&rec.r, p->data + p->at, sizeof(rec.r));
	if (rec.r.kind == PM_STREAM_NONE)
		return err_set(err, -EPIPE,
			       "the trace has no end: the tracer, or a process that it traced, was "
			       "killed");
	int rc = check_record(p, &rec.r, err);
	if (rc)
		return rc;
	if (rec.r.kind == PM_STREAM_END)
		return at_end(p, &rec.r, err);
	size_t size = pm_stream_record_size(rec.r.kind, rec.r.len);
	if (size > left)
		return damaged(p, err, "is cut off");
	if (pm_stream_has_data(rec.r.kind))
		rec.data = p->data + p->at + sizeof(rec.r);
	if (rec.r.kind == PM_STREAM_TROUBLE)
		return trouble(&rec, err);
	p->sum = pm_stream_sum(p->sum, p->data + p->at, size);
	p->at += size;
	*out = rec;
	return 1;
}

int pm_reader_next(struct pm_reader *p, struct pm_record *out, struct err *err)
{
	struct pm_record rec;

	while (p->batch_at == p->batch_end && p->more.i == p->more.n) {
		int rc = next_whole(p, &rec, err);

		if (rc <= 0)
			return rc;
		if (rec.r.kind != PM_STREAM_BATCH) {
			p->count++;
			*out = rec;
			return 1;
		}
		p->batch = rec.r;
		assert(p->at <= p->len && rec.r.len < p->at); /* M1 */
		p->batch_end = p->at;
		p->batch_at = p->at - rec.r.len;
		p->more.last.kind = PM_STREAM_NONE;
	}
	return next_of_batch(p, out, err);
}

/* ---- as a trace ---- */

static const struct {
	enum event_kind kind; /* 0: none */
	uint32_t flags;
} event_of[PM_STREAM_KINDS] = {
	[PM_STREAM_STORE] = { EV_STORE, 0 },
	[PM_STREAM_NTSTORE] = { EV_STORE, EV_NONTEMPORAL },
	[PM_STREAM_FLUSH] = { EV_LINEFLUSH, 0 },
	[PM_STREAM_CLFLUSH] = { EV_LINEFLUSH, EV_CLFLUSH },
	[PM_STREAM_FENCE] = { EV_FENCE, 0 },
	[PM_STREAM_LOAD] = { EV_LOAD, 0 },
	[PM_STREAM_MARK_BEGIN] = { EV_OP_BEGIN, 0 },
	[PM_STREAM_MARK_END] = { EV_OP_END, 0 },
	[PM_STREAM_TEXT] = { EV_TEXT, 0 },
};

void pm_count(struct pm_counts *c, const struct event *ev)
{
	c->stores += ev->kind == EV_STORE;
	c->bytes += ev->kind == EV_STORE ? ev->len : 0;
	c->flushes += ev->kind == EV_LINEFLUSH;
	c->fences += ev->kind == EV_FENCE;
	c->loads += ev->kind == EV_LOAD;
	c->marks += ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END;
	c->cpus = max(c->cpus, ev->cpu + 1);
}

static int add_stack(struct trace *t, const struct pm_reader *p, const struct pm_record *rec,
		     struct err *err)
{
	uint64_t frames[PM_STREAM_FRAMES_MAX];

	if (rec->r.addr != t->stacks.n + 1)
		return damaged(p, err, "is not the next stack");
	memcpy(frames, rec->data, rec->r.len);
	trace_add_stack(t, frames, rec->r.len / 8);
	return 0;
}

struct stream_reading {
	struct pm_resume resume;
	struct pm_counts *counts;
};

static void put_event(void *ctx, const struct event *ev)
{
	struct stream_reading *r = ctx;

	pm_resume_put(&r->resume, ev);
	pm_count(r->counts, ev);
}

static int add_event(const struct trace *t, const struct pm_reader *p, const struct pm_record *rec,
		     struct pm_join *join, struct err *err)
{
	const struct pm_stream_record *r = &rec->r;
	struct event ev = { .kind = event_of[r->kind].kind,
			    .flags = event_of[r->kind].flags,
			    .cpu = r->cpu,
			    .addr = r->addr,
			    .len = r->len,
			    .pc = r->pc,
			    .data = rec->data };

	if (!ev.kind)
		return 0;
	if (r->flags & PM_STREAM_NEW_CALL)
		ev.flags |= EV_NEW_CALL;
	if (r->stack > t->stacks.n)
		return damaged(p, err, "names a stack that did not come before");
	ev.stack = (uint32_t)r->stack;
	if (ev.kind == EV_OP_BEGIN || ev.kind == EV_OP_END) {
		ev.ref = r->addr;
		ev.addr = 0;
	}
	if (ev.kind == EV_OP_BEGIN)
		ev.data = (const unsigned char *)"";
	if (ev.kind == EV_TEXT)
		ev.addr = 0;
	if (ev.kind == EV_LINEFLUSH)
		ev.len = PM_LINE;
	if (ev.kind == EV_LINEFLUSH && PM_LINE > p->head.region_size - ev.addr)
		ev.len = 0; /* the region ends inside its last line */
	pm_join_add(join, &ev);
	return 0;
}

/*
 * Returns the memory limit of a trace. A stream is much shorter than its trace, which needs several
 * times its size for a while, when it grows or is checked.
 */
static uint64_t memory_allowed(size_t len)
{
	uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		there = min(there, (uint64_t)limit.rlim_cur);
	return min(max((uint64_t)MEMORY_MIN, (uint64_t)len * MEMORY_TIMES), there / MEMORY_PART);
}

static int check_memory(const struct trace *t, uint64_t stored, uint64_t allowed, struct err *err)
{
	if (t->events.n * sizeof(*t->events.v) + stored <= allowed)
		return 0;
	return err_set(err, -EFBIG,
		       "the trace has more than %zu events, which take more than %" PRIu64
		       " MiB of memory: let the program do less, or allow it more memory",
		       t->events.n - 1, allowed >> 20);
}

int pm_stream_read(const void *data, size_t len, struct trace *out, struct pm_counts *counts,
		   struct err *err)
{
	struct pm_counts here = { 0 };
	struct stream_reading reading = { .resume.t = out, .counts = &here };
	uint64_t allowed = memory_allowed(len);
	struct pm_join join = { .put = put_event, .ctx = &reading };
	struct pm_reader p;
	struct pm_record rec;
	int rc = pm_reader_init(&p, data, len, err);

	if (rc)
		return rc;
	out->info.size = p.head.region_size;
	out->info.sector_size = 8; /* bytes that a processor writes at once */
	while ((rc = pm_reader_next(&p, &rec, err)) > 0) {
		rc = rec.r.kind == PM_STREAM_STACK ? add_stack(out, &p, &rec, err)
						   : add_event(out, &p, &rec, &join, err);
		if (!rc)
			rc = check_memory(out, here.bytes, allowed, err);
		if (rc)
			return rc;
	}
	pm_join_end(&join);
	if (counts)
		*counts = here;
	return rc;
}

/* ---- checking the trace ---- */

int pm_replay_check(const struct trace *t, const struct image *base, const struct image *after,
		    struct err *err)
{
	auto_image img = IMAGE_INIT;
	uint64_t at;

	if (base->size != after->size || base->size < t->info.size)
		return err_set(err, -EUCLEAN,
			       "the region is %" PRIu64 " bytes long, and was %" PRIu64
			       " when it was traced: its size must not change",
			       after->size, t->info.size);
	image_snapshot(base, &img);
	patch_trace(t, &img);
	if (!image_differs(&img, after, &at))
		return 0;
	return err_set(
		err, -EUCLEAN,
		"the trace does not explain what is there: the byte at %" PRIu64
		" was changed by something that was not traced (write(2), another mapping, a store "
		"by the stack pointer, or a program that was started and not emulated)",
		at);
}
