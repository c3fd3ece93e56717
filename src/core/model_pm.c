/* SPDX-License-Identifier: MIT */
/*
 * model_pm.c - the persistence models of x86 persistent memory: which stores a cache, or with eADR
 * a write buffer, can lose. doc/pm-model.md names the manuals and the assumptions.
 *
 * A segment is a line of 64 bytes, or with a granularity of 8 each aligned word. Stores are cut at
 * the borders of segments; the parts are atoms.
 *
 * R1: a prefix of the stores to each segment survives, in the order of the trace, whichever CPU
 *     made them and whether they are temporal or not.
 * R2: a line flush captures each segment of its line up to the last temporal store to it. clwb
 *     and clflushopt make that durable at the next fence of the CPU that flushed; clflush does so
 *     at once.
 * R3: a non-temporal store is durable at the next fence of the CPU that made it.
 * R4: with eADR, a temporal store is durable once it has been executed. A temporal store is in
 *     flight only until the next fence or mark, so that crashes between two stores are tried as
 *     well: a prefix of all temporal stores survives. Flushes do nothing.
 *
 * By R1 the durable stores of a segment are a prefix as well; so they go into the durable image at
 * once, and stores in flight lie above them. No piece is ever pinned.
 *
 * Logical writes. Stores of one CPU and one kind that go on where the last one ended, upwards or
 * downwards, without a fence of that CPU, another store of it or a mark between them, are a run if
 * they are most likely one copy: see same_copy(). The pieces of runs are in pm_flight.h.
 *
 * I1, I2: pm_memory.h.
 * I3: an atom joins a run only if the atom before it in its segment is of the same run or older
 *     than all of the run. So of two runs, one comes before the other in all segments that they
 *     share, and pieces in the order of their first atoms are in the order in which they take
 *     effect.
 * I4: the cost of an event does not depend on the number of atoms in flight; only making the pieces
 *     does.
 */
#include "core/model_pm.h"

#include <errno.h>

#include "core/pm_flight.h"
#include "core/pm_memory.h"

struct cpu {
	uint32_t id;
	struct pm_captures captures;
	/* The current run. */
	bool open, nt;
	uint64_t epoch; /* the number of marks before the run */
	int direction;	/* 1, -1, or 0 while the run is one store */
	uint64_t run, first_event, from, to;
	/* Its code, from the first store on; once that has jumped back, the code of the loop. */
	uint64_t pc_low, pc_high, pc_last;
	uint32_t stack;
	bool looped;
	bool flushed; /* one of its lines was flushed since the last store */
};

/* Behind a pointer, so that functions with a const model can make pieces. */
struct state {
	struct pm_memory mem;
	struct pm_flight flight;
	struct vec_of(struct cpu) cpus;
	struct u64map cpu_of;
	uint64_t next_seq, next_run;
	uint64_t last_temporal_run;
	uint64_t epoch;		     /* marks so far */
	struct pm_captures executed; /* eADR: temporal stores in flight */
};

struct pm_model {
	struct model m;
	struct state *now;
	bool eadr;
};

static struct pm_model *as_pm(struct model *m)
{
	return container_of(m, struct pm_model, m);
}

static const struct pm_model *as_const_pm(const struct model *m)
{
	return (const struct pm_model *)((const char *)m - offsetof(struct pm_model, m));
}

/* Options. */

static const struct model_pm_opts *opts_of(const struct pm_model *p)
{
	static const struct model_pm_opts usual;

	return p->m.opts.ctx ? p->m.opts.ctx : &usual;
}

static uint64_t granularity(const struct pm_model *p)
{
	uint32_t g = opts_of(p)->granularity;

	return g ? g : PM_LINE;
}

int model_pm_opts_check(const struct model_pm_opts *opts, struct err *err)
{
	uint32_t g = opts->granularity;

	if (g && g != PM_LINE && g != PM_ATOMIC)
		return err_set(err, -EINVAL, "a granularity of %u bytes is neither %d nor %d",
			       (unsigned)g, PM_LINE, PM_ATOMIC);
	return 0;
}

/* Life. */

static struct model *create(bool eadr)
{
	struct pm_model *p = xcalloc(1, sizeof(*p));

	p->now = xcalloc(1, sizeof(*p->now));
	p->eadr = eadr;
	return &p->m;
}

static struct model *pm_create(void)
{
	return create(false);
}

static struct model *eadr_create(void)
{
	return create(true);
}

static void pm_destroy(struct model *m)
{
	struct pm_model *p = as_pm(m);
	struct state *x = p->now;

	vec_release_each(cpu, &x->cpus, vec_release(&cpu->captures));
	u64map_release(&x->cpu_of);
	vec_release(&x->executed);
	pm_memory_release(&x->mem);
	pm_flight_release(&x->flight);
	free(x);
	free(p);
}

/* CPUs. */

static uint32_t get_cpu(struct state *x, uint32_t id)
{
	uint32_t i = u64map_get(&x->cpu_of, id);

	if (i != PM_NONE)
		return i;
	i = (uint32_t)x->cpus.n;
	u64map_add(&x->cpu_of, id, i);
	vec_push(&x->cpus, (struct cpu){ .id = id });
	return i;
}

static struct model *pm_clone(const struct model *m)
{
	const struct pm_model *p = as_const_pm(m);
	const struct state *from = p->now;
	struct model *copy = create(p->eadr);
	struct state *to = as_pm(copy)->now;

	pm_memory_copy(&from->mem, &to->mem);
	for (size_t i = 0; i < from->cpus.n; i++) {
		struct cpu c = from->cpus.v[i];

		pm_captures_copy(&from->cpus.v[i].captures, &c.captures);
		u64map_add(&to->cpu_of, c.id, (uint32_t)i);
		vec_push(&to->cpus, c);
	}
	pm_captures_copy(&from->executed, &to->executed);
	to->next_seq = from->next_seq;
	to->next_run = from->next_run;
	to->last_temporal_run = from->last_temporal_run;
	to->epoch = from->epoch;
	return copy;
}

/* Stores. */

/*
 * True if a store that goes on where a run ended is of the same copy as the run. A commit flag
 * right behind the data that it commits, or the next block, is another copy if
 *   - another call makes it, if the tracer tells calls, or another stack;
 *   - the store comes after the loop that made the run; the code before a loop is part of it;
 *   - part of the run was flushed before. Only a loop that flushes what it copies continues such
 *     a run.
 *
 * A copy that is cut without need (its last bytes, after its loop) costs a few states.
 */
static bool same_copy(const struct cpu *c, const struct event *ev)
{
	if (ev->flags & EV_NEW_CALL || ev->stack != c->stack)
		return false;
	if (!c->pc_last || !ev->pc)
		return !c->flushed;
	if (c->looped || c->flushed)
		return ev->pc >= c->pc_low && ev->pc <= c->pc_high;
	return (ev->pc > c->pc_low ? ev->pc - c->pc_low : c->pc_low - ev->pc) <= PM_COPY_SPAN;
}

/* True if a store goes on where the last store of its CPU ended. */
static bool continues(const struct pm_model *p, const struct cpu *c, const struct event *ev)
{
	bool nt = ev->flags & EV_NONTEMPORAL;
	bool up = ev->addr == c->to && c->direction >= 0;
	bool down = ev->addr + ev->len == c->from && c->direction <= 0;

	if (p->eadr && !nt && p->now->last_temporal_run != c->run)
		return false; /* another CPU's store lies between them in the one order of eADR */
	return c->open && c->epoch == p->now->epoch && c->nt == nt && (up || down) &&
	       same_copy(c, ev);
}

static void begin_run(struct state *x, struct cpu *c, uint64_t number, const struct event *ev)
{
	c->open = true;
	c->epoch = x->epoch;
	c->nt = ev->flags & EV_NONTEMPORAL;
	c->direction = 0;
	c->run = ++x->next_run;
	c->first_event = number;
}

static void follow_code(struct cpu *c, const struct event *ev)
{
	if (c->direction == 0) {
		c->pc_low = c->pc_high = ev->pc;
		c->looped = false;
	} else if (!c->looped && ev->pc <= c->pc_last) {
		c->pc_low = ev->pc;
		c->pc_high = c->pc_last;
		c->looped = true;
	} else if (!c->looped) {
		c->pc_high = ev->pc;
	}
	c->pc_last = ev->pc;
	c->stack = ev->stack;
	c->flushed = false;
}

static void extend_run(struct cpu *c, uint64_t number, const struct event *ev)
{
	if (c->first_event == number) { /* the run may have begun in the middle of this store */
		c->from = ev->addr;
		c->to = ev->addr + ev->len;
		c->direction = 0;
	} else if (ev->addr == c->to) {
		c->to = ev->addr + ev->len;
		c->direction = 1;
	} else {
		c->from = ev->addr;
		c->direction = -1;
	}
	follow_code(c, ev);
}

/* True if I3 allows the atom to join the run. */
static bool may_join(const struct pm_memory *mem, const struct cpu *c, const struct pm_segment *s)
{
	if (s->tail == PM_NONE)
		return true;
	const struct pm_atom *last = &mem->atoms.v[s->tail];
	return last->run == c->run || last->event < c->first_event;
}

static void add_atom(struct pm_model *p, uint32_t cpu, uint64_t number, const struct event *ev,
		     uint64_t from, uint64_t to)
{
	struct state *x = p->now;
	struct pm_memory *mem = &x->mem;
	struct pm_segment *s = pm_segment_get(mem, from / mem->segment_size);
	struct cpu *c = &x->cpus.v[cpu];

	if (!may_join(mem, c, s))
		begin_run(x, c, number, ev);
	struct pm_atom a = { .seq = x->next_seq++,
			     .event = number,
			     .addr = from,
			     .len = (uint32_t)(to - from),
			     .data = ev->data + (from - ev->addr),
			     .run = c->run,
			     .cpu = cpu,
			     .nt = ev->flags & EV_NONTEMPORAL };

	a.due = a.nt ? cpu + 1 : 0;
	vec_push(&mem->atoms, a);
	pm_segment_link(mem, (uint32_t)mem->atoms.n - 1, s);
	if (a.nt)
		pm_segment_capture(mem, s, a.seq, cpu, &c->captures);
	else if (p->eadr)
		vec_push(&x->executed, (struct pm_capture){ s->number, a.seq });
}

static int store(struct pm_model *p, uint64_t number, const struct event *ev, struct err *err)
{
	struct state *x = p->now;
	uint64_t g = x->mem.segment_size, end = ev->addr + ev->len;

	if (!image_range_ok(&p->m.durable, ev->addr, ev->len))
		return err_set(err, -EINVAL,
			       "event %llu, a store of %llu bytes at %llu, is outside the region "
			       "of %llu bytes",
			       llu(number), llu(ev->len), llu(ev->addr), llu(p->m.durable.size));
	if (x->mem.atoms.n + ev->len / g + 2 >= PM_NONE)
		return err_set(err, -EFBIG, "event %llu: too many stores are in flight",
			       llu(number));
	uint32_t cpu = get_cpu(x, ev->cpu);
	struct cpu *c = &x->cpus.v[cpu];

	if (!continues(p, c, ev))
		begin_run(x, c, number, ev);
	for (uint64_t at = ev->addr, next; at < end; at = next) {
		next = min(end, (at / g + 1) * g);
		add_atom(p, cpu, number, ev, at, next);
	}
	extend_run(c, number, ev);
	if (!c->nt)
		x->last_temporal_run = c->run;
	return 0;
}

/* Flushes, fences and marks. */

static void line_flush(struct pm_model *p, const struct event *ev)
{
	struct state *x = p->now;
	struct pm_memory *mem = &x->mem;
	uint64_t g = mem->segment_size, first = ev->addr / PM_LINE * PM_LINE;
	uint32_t cpu = get_cpu(x, ev->cpu);
	struct cpu *c = &x->cpus.v[cpu];
	struct pm_drain d;

	if (first < c->to && first + PM_LINE > c->from)
		c->flushed = true;
	pm_drain_begin(&d, &x->mem, &p->m.durable);
	for (uint64_t at = first; at < first + PM_LINE; at += g) {
		struct pm_segment *s = pm_segment_find(mem, at / g);

		if (!s || s->head == PM_NONE || s->temporal <= mem->atoms.v[s->head].seq)
			continue; /* no temporal store in flight */
		if (ev->flags & EV_CLFLUSH)
			pm_drain_segment(&d, s, s->temporal - 1);
		else
			pm_segment_capture(mem, s, s->temporal - 1, cpu, &c->captures);
	}
	pm_drain_end(&d);
}

static void fence(struct pm_model *p, const struct event *ev)
{
	struct state *x = p->now;
	uint32_t cpu = get_cpu(x, ev->cpu);
	struct cpu *c = &x->cpus.v[cpu];
	struct pm_drain d;

	pm_drain_begin(&d, &x->mem, &p->m.durable);
	pm_drain_captures(&d, &x->executed);
	pm_drain_captures(&d, &c->captures);
	c->open = false;
	pm_drain_end(&d);
}

static void mark(struct pm_model *p)
{
	struct state *x = p->now;
	struct pm_drain d;

	pm_drain_begin(&d, &x->mem, &p->m.durable);
	pm_drain_captures(&d, &x->executed);
	x->epoch++;
	pm_drain_end(&d);
}

static int pm_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	struct pm_model *p = as_pm(m);

	p->now->mem.segment_size = granularity(p); /* options are known from the first event on */
	switch (ev->kind) {
	case EV_STORE:
		return store(p, number, ev, err);
	case EV_LINEFLUSH:
		if (!p->eadr)
			line_flush(p, ev);
		return 0;
	case EV_FENCE:
		fence(p, ev);
		return 0;
	case EV_OP_BEGIN:
	case EV_OP_END:
	case EV_PERSIST:
		mark(p);
		return 0;
	default:
		return 0;
	}
}

/* Pieces. */

static const struct model_piece *pm_pieces(const struct model *m, size_t *n)
{
	const struct pm_model *p = as_const_pm(m);
	struct state *x = p->now;
	struct pm_flight_opts o = { .eadr = p->eadr,
				    .join_min = opts_of(p)->join_min,
				    .tear_unit = m->opts.tear_unit,
				    .n_cpus = x->cpus.n };

	pm_flight_make(&x->flight, &x->mem, &o);
	*n = x->flight.pieces.n;
	return x->flight.pieces.v;
}

static void pm_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			   uint64_t from, uint64_t to, struct image *img)
{
	struct state *x = as_const_pm(m)->now;
	const struct model_piece *p = &x->flight.pieces.v[index];
	uint64_t first, end;

	assert(index < x->flight.pieces.n);
	for (uint32_t i = 0; model_piece_run(p, units, &i, &first, &end);) {
		first = max(first, from);
		end = min(end, to);
		if (first < end)
			image_write(img, first,
				    pm_flight_data(&x->flight, &x->mem, index) + (first - p->addr),
				    end - first);
	}
}

/* The members that both models have in common: all but name and create. */
#define PM_MODEL                                                                                   \
	.pm = true, .clone = pm_clone, .destroy = pm_destroy, .apply = pm_apply,                   \
	.pieces = pm_pieces, .piece_apply = pm_piece_apply

const struct model_ops model_pm = {
	.name = "pm",
	.help = "persistent memory behind a volatile cache: durable after a flush and a fence",
	.create = pm_create,
	PM_MODEL,
};

const struct model_ops model_pm_eadr = {
	.name = "pm-eadr",
	.help = "persistent memory behind a persistent cache: durable once stored, in order",
	.create = eadr_create,
	PM_MODEL,
};
