/* SPDX-License-Identifier: MIT */
/*
 * model_pm.c - the persistence models of x86 persistent memory: what a cache, or with eADR a write
 * buffer, can lose. doc/pm-model.md says which manual says so, and what is assumed.
 *
 * A segment is a line of 64 bytes, or with a granularity of 8 each aligned word. Stores are cut at
 * segments; the parts are atoms.
 *
 * R1: of each segment, a prefix of its stores survives, in the order of the trace, whichever CPU
 *     made them and whether they are temporal or not.
 * R2: a line flush captures each segment of its line up to the last temporal store to it. clwb
 *     and clflushopt make that durable at the next fence of the CPU that flushed; clflush does so
 *     at once.
 * R3: a non-temporal store is durable at the next fence of the CPU that made it.
 * R4: with eADR, a temporal store is durable once it has been executed. It is in flight only until
 *     the next fence or mark, so that what a crash between two stores leaves is seen as well: a
 *     prefix of all temporal stores. Flushes do nothing.
 *
 * By R1 what is durable of a segment is a prefix as well; so it goes into the durable image at
 * once, and what is in flight lies above it. No piece is ever pinned.
 *
 * Logical writes. Stores of one CPU and one kind that go on where the last one ended, upwards or
 * downwards, without a fence of that CPU, another store of it or a mark between them, are a run if
 * they are most likely one copy: see same_copy(). Of a run, what is adjacent in flight and will
 * become durable by the same fence is one piece.
 *
 * I1: atoms are in the order of the trace. Gone are those that are durable; their places are
 *     closed when they are more than half.
 * I2: the atoms of a segment are a chain from `head` to `tail`. Those that no fence is going to
 *     make durable are the last of it, from `plain` on.
 * I3: an atom joins a run only if what its segment held before is of the same run or older than
 *     all of the run. So between two runs, one comes before the other in all segments they share,
 *     and pieces in the order of their first atoms are in the order in which they take effect.
 * I4: what an event costs does not depend on how much is in flight (but for the pieces, which
 *     cost as much as there is).
 */
#include "core/model_pm.h"

#include <errno.h>

#include "base/arena.h"
#include "base/vec.h"
#include "core/u64map.h"

enum {
	NONE = U64MAP_NONE,
	HOLES_MIN = 4,	  /* fewer are not worth closing */
	COPY_SPAN = 1024, /* bytes of code that one copy is made by */
};

struct atom {
	uint64_t seq; /* its number; never changes, unlike its place */
	uint64_t event, addr;
	const unsigned char *data;
	uint64_t run;
	uint32_t len;
	uint32_t next;	/* in its segment */
	uint32_t cpu;	/* index into `cpus` */
	uint32_t due;	/* 1 + index of the CPU whose fence makes it durable; 0: none will */
	uint32_t piece; /* while pieces are made: its group, then its piece */
	bool nt, gone;
};

struct segment {
	uint64_t number; /* address / granularity */
	uint32_t head, tail, plain;
	uint64_t temporal; /* 1 + seq of the last temporal store; 0: none */
};

/* A segment, up to and with an atom, becomes durable at a fence. */
struct capture {
	uint64_t segment, seq;
};

struct captures vec_of(struct capture);

struct cpu {
	uint32_t id;
	struct captures captures;
	/* The run at hand. */
	bool open, nt;
	uint64_t epoch; /* marks before it */
	int direction;	/* 1, -1, or 0 while it is one store */
	uint64_t run, first_event, from, to;
	/* Its code: from the first store's on, or, once that has jumped back, of the loop. */
	uint64_t pc_low, pc_high, pc_last;
	uint32_t stack;
	bool looped;
	bool flushed; /* one of its lines was, since the last store */
};

/* While pieces are made: atoms that will be one piece or, if they are too few, one each. */
struct group {
	uint64_t addr, len;
	uint32_t piece;
};

/* The atoms of a piece. */
struct members {
	uint32_t first, n;	   /* in `order` */
	const unsigned char *data; /* of all of them; NULL: not put together yet */
};

/* A piece that needs another. */
struct need {
	uint32_t piece, other;
};

/* Behind a pointer, so that pieces can be made where the model is only looked at. */
struct memory {
	struct vec_of(struct atom) atoms;
	size_t n_gone;
	struct vec_of(struct segment) segments;
	struct u64map segment_of; /* segment number to index */
	struct vec_of(struct cpu) cpus;
	struct u64map cpu_of;
	uint64_t next_seq, next_run;
	uint64_t last_temporal_run;
	uint64_t epoch;		  /* marks so far */
	struct captures executed; /* eADR: temporal stores in flight */

	struct vec_of(struct model_piece) pieces;
	struct vec_of(struct members) members; /* of each piece */
	struct vec_of(uint32_t) order;	       /* atoms by piece */
	struct vec_of(struct group) groups;
	struct vec_of(uint32_t) group_of_cpu; /* the one its next atom may belong to */
	struct vec_of(struct need) need;
	struct vec_of(uint32_t) needs;
	struct arena data;
};

struct pm {
	struct model m;
	struct memory *mem;
	bool eadr;
};

static struct pm *as_pm(struct model *m)
{
	return container_of(m, struct pm, m);
}

static const struct pm *as_const_pm(const struct model *m)
{
	return (const struct pm *)((const char *)m - offsetof(struct pm, m));
}

/* Options. */

static const struct model_pm_opts *opts_of(const struct pm *p)
{
	static const struct model_pm_opts usual;

	return p->m.opts.ctx ? p->m.opts.ctx : &usual;
}

static uint64_t granularity(const struct pm *p)
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
	struct pm *p = xcalloc(1, sizeof(*p));

	p->mem = xcalloc(1, sizeof(*p->mem));
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
	struct pm *p = as_pm(m);
	struct memory *mem = p->mem;

	for (size_t i = 0; i < mem->cpus.n; i++)
		vec_release(&mem->cpus.v[i].captures);
	vec_release(&mem->atoms);
	vec_release(&mem->segments);
	u64map_release(&mem->segment_of);
	vec_release(&mem->cpus);
	u64map_release(&mem->cpu_of);
	vec_release(&mem->executed);
	vec_release(&mem->pieces);
	vec_release(&mem->members);
	vec_release(&mem->order);
	vec_release(&mem->groups);
	vec_release(&mem->group_of_cpu);
	vec_release(&mem->need);
	vec_release(&mem->needs);
	arena_release(&mem->data);
	free(mem);
	free(p);
}

/* Segments and CPUs. */

static struct segment *find_segment(struct memory *mem, uint64_t number)
{
	uint32_t i = u64map_get(&mem->segment_of, number);

	return i == NONE ? NULL : &mem->segments.v[i];
}

static struct segment *get_segment(struct memory *mem, uint64_t number)
{
	struct segment *s = find_segment(mem, number);

	if (s)
		return s;
	u64map_add(&mem->segment_of, number, (uint32_t)mem->segments.n);
	vec_push(&mem->segments, (struct segment){ number, NONE, NONE, NONE, 0 });
	return &vec_last(&mem->segments);
}

static uint32_t get_cpu(struct memory *mem, uint32_t id)
{
	uint32_t i = u64map_get(&mem->cpu_of, id);

	if (i != NONE)
		return i;
	i = (uint32_t)mem->cpus.n;
	u64map_add(&mem->cpu_of, id, i);
	vec_push(&mem->cpus, (struct cpu){ .id = id });
	return i;
}

/* Puts the atom at an index, which is the last so far, at the end of its segment's chain. */
static void link_atom(struct memory *mem, uint32_t i, struct segment *s)
{
	struct atom *a = &mem->atoms.v[i];

	a->next = NONE;
	if (s->head == NONE)
		s->head = i;
	else
		mem->atoms.v[s->tail].next = i;
	s->tail = i;
	if (!a->due && s->plain == NONE)
		s->plain = i;
	if (!a->nt)
		s->temporal = a->seq + 1;
}

/* Fills `to` with the atoms of `from` that are not gone; they may be the same. */
static void keep_atoms(const struct memory *from, struct memory *to, uint64_t segment_size)
{
	size_t n = from->atoms.n, kept = 0;

	u64map_clear(&to->segment_of);
	vec_clear(&to->segments);
	if (from != to)
		vec_reserve(&to->atoms, n - from->n_gone);
	for (size_t i = 0; i < n; i++)
		if (!from->atoms.v[i].gone) {
			to->atoms.v[kept] = from->atoms.v[i];
			link_atom(to, (uint32_t)kept,
				  get_segment(to, to->atoms.v[kept].addr / segment_size));
			kept++;
		}
	to->atoms.n = kept;
	to->n_gone = 0;
}

static void copy_captures(const struct captures *from, struct captures *to)
{
	*to = (struct captures){ 0 };
	for (size_t i = 0; i < from->n; i++)
		vec_push(to, from->v[i]);
}

static struct model *pm_clone(const struct model *m)
{
	const struct pm *p = as_const_pm(m);
	const struct memory *from = p->mem;
	struct model *copy = create(p->eadr);
	struct memory *to = as_pm(copy)->mem;

	keep_atoms(from, to, granularity(p));
	for (size_t i = 0; i < from->cpus.n; i++) {
		struct cpu c = from->cpus.v[i];

		copy_captures(&from->cpus.v[i].captures, &c.captures);
		u64map_add(&to->cpu_of, c.id, (uint32_t)i);
		vec_push(&to->cpus, c);
	}
	copy_captures(&from->executed, &to->executed);
	to->next_seq = from->next_seq;
	to->next_run = from->next_run;
	to->last_temporal_run = from->last_temporal_run;
	to->epoch = from->epoch;
	return copy;
}

/* Becoming durable. */

/* What goes into the durable image, a page at a time: each write to it costs a hash of the page. */
struct page_out {
	struct image *img;
	uint64_t addr; /* of the page; UINT64_MAX: none */
	size_t size, from, to;
	unsigned char data[IMAGE_PAGE];
};

static void page_out_flush(struct page_out *o)
{
	if (o->from < o->to)
		image_write(o->img, o->addr + o->from, o->data + o->from, o->to - o->from);
	o->addr = UINT64_MAX;
	o->from = IMAGE_PAGE;
	o->to = 0;
}

static void page_out_add(struct page_out *o, const struct atom *a)
{
	uint64_t page = a->addr / IMAGE_PAGE * IMAGE_PAGE;
	size_t at = a->addr - page;

	if (page != o->addr) {
		page_out_flush(o);
		o->addr = page;
		o->size = min((uint64_t)IMAGE_PAGE, o->img->size - page);
		image_read(o->img, page, o->data, o->size);
	}
	assert(at + a->len <= o->size);
	memcpy(o->data + at, a->data, a->len);
	o->from = min(o->from, at);
	o->to = max(o->to, at + a->len);
}

/* A segment is durable up to and with an atom. */
static void drain(struct memory *mem, struct segment *s, uint64_t seq, struct page_out *out)
{
	bool to_plain = s->plain != NONE && mem->atoms.v[s->plain].seq <= seq;

	while (s->head != NONE && mem->atoms.v[s->head].seq <= seq) {
		struct atom *a = &mem->atoms.v[s->head];

		page_out_add(out, a);
		a->gone = true;
		mem->n_gone++;
		s->head = a->next;
	}
	if (s->head == NONE)
		s->tail = NONE;
	if (to_plain)
		s->plain = s->head;
}

static void drain_captures(struct memory *mem, struct captures *c, struct page_out *out)
{
	for (size_t i = 0; i < c->n; i++) {
		struct segment *s = find_segment(mem, c->v[i].segment);

		if (s)
			drain(mem, s, c->v[i].seq, out);
	}
	vec_clear(c);
}

static void page_out_init(struct page_out *o, struct pm *p)
{
	o->img = &p->m.durable;
	o->from = o->to = 0;
	page_out_flush(o);
}

static void finish(struct pm *p, struct page_out *o)
{
	struct memory *mem = p->mem;

	page_out_flush(o);
	if (mem->n_gone > HOLES_MIN && mem->n_gone > mem->atoms.n / 2)
		keep_atoms(mem, mem, granularity(p));
}

/* From now on a fence of this CPU will make durable what so far none would. */
static void capture(struct memory *mem, struct segment *s, uint32_t cpu, uint64_t seq)
{
	for (uint32_t i = s->plain; i != NONE; i = mem->atoms.v[i].next)
		mem->atoms.v[i].due = cpu + 1;
	s->plain = NONE;
	struct captures *c = &mem->cpus.v[cpu].captures;

	if (c->n && vec_last(c).segment == s->number)
		vec_last(c).seq = max(vec_last(c).seq, seq);
	else
		vec_push(c, (struct capture){ s->number, seq });
}

/* Stores. */

/*
 * Whether a store that goes on where a run ended is made by what made the run. A commit flag right
 * behind what it commits, or the block after it, is another copy:
 *   - another call, where the tracer tells calls, or another stack, makes it;
 *   - it comes after the loop that made the run; the code before a loop is part of it;
 *   - part of the run was flushed before. Only a loop that flushes what it copies goes on there.
 * What is cut for no reason (the last bytes of a copy, after its loop) costs a few states.
 */
static bool same_copy(const struct cpu *c, const struct event *ev)
{
	if (ev->flags & EV_NEW_CALL || ev->stack != c->stack)
		return false;
	if (!c->pc_last || !ev->pc)
		return !c->flushed;
	if (c->looped || c->flushed)
		return ev->pc >= c->pc_low && ev->pc <= c->pc_high;
	return (ev->pc > c->pc_low ? ev->pc - c->pc_low : c->pc_low - ev->pc) <= COPY_SPAN;
}

/* Whether a store goes on where the last one of its CPU ended. */
static bool continues(const struct pm *p, const struct cpu *c, const struct event *ev)
{
	bool nt = ev->flags & EV_NONTEMPORAL;
	bool up = ev->addr == c->to && c->direction >= 0;
	bool down = ev->addr + ev->len == c->from && c->direction <= 0;

	if (p->eadr && !nt && p->mem->last_temporal_run != c->run)
		return false; /* another CPU's is between them in the one order that counts */
	return c->open && c->epoch == p->mem->epoch && c->nt == nt && (up || down) &&
	       same_copy(c, ev);
}

static void begin_run(struct memory *mem, struct cpu *c, uint64_t number, const struct event *ev)
{
	c->open = true;
	c->epoch = mem->epoch;
	c->nt = ev->flags & EV_NONTEMPORAL;
	c->direction = 0;
	c->run = ++mem->next_run;
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
	if (c->first_event == number) { /* it may have begun in the middle of it */
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

/* I3. */
static bool may_join(const struct memory *mem, const struct cpu *c, const struct segment *s)
{
	if (s->tail == NONE)
		return true;
	const struct atom *last = &mem->atoms.v[s->tail];
	return last->run == c->run || last->event < c->first_event;
}

static void add_atom(struct pm *p, uint32_t cpu, uint64_t number, const struct event *ev,
		     uint64_t from, uint64_t to)
{
	struct memory *mem = p->mem;
	struct segment *s = get_segment(mem, from / granularity(p));
	struct cpu *c = &mem->cpus.v[cpu];

	if (!may_join(mem, c, s))
		begin_run(mem, c, number, ev);
	struct atom a = { .seq = mem->next_seq++,
			  .event = number,
			  .addr = from,
			  .len = (uint32_t)(to - from),
			  .data = ev->data + (from - ev->addr),
			  .run = c->run,
			  .cpu = cpu,
			  .nt = ev->flags & EV_NONTEMPORAL };

	a.due = a.nt ? cpu + 1 : 0;
	vec_push(&mem->atoms, a);
	link_atom(mem, (uint32_t)mem->atoms.n - 1, s);
	if (a.nt)
		capture(mem, s, cpu, a.seq);
	else if (p->eadr)
		vec_push(&mem->executed, (struct capture){ s->number, a.seq });
}

static int store(struct pm *p, uint64_t number, const struct event *ev, struct err *err)
{
	struct memory *mem = p->mem;
	uint64_t g = granularity(p), end = ev->addr + ev->len;

	if (!image_range_ok(&p->m.durable, ev->addr, ev->len))
		return err_set(err, -EINVAL,
			       "event %llu, a store of %llu bytes at %llu, is outside the region "
			       "of %llu bytes",
			       (unsigned long long)number, (unsigned long long)ev->len,
			       (unsigned long long)ev->addr, (unsigned long long)p->m.durable.size);
	if (mem->atoms.n + ev->len / g + 2 >= NONE)
		return err_set(err, -EFBIG, "event %llu: too many stores are in flight",
			       (unsigned long long)number);
	uint32_t cpu = get_cpu(mem, ev->cpu);
	struct cpu *c = &mem->cpus.v[cpu];

	if (!continues(p, c, ev))
		begin_run(mem, c, number, ev);
	for (uint64_t at = ev->addr, next; at < end; at = next) {
		next = min(end, (at / g + 1) * g);
		add_atom(p, cpu, number, ev, at, next);
	}
	extend_run(c, number, ev);
	if (!c->nt)
		mem->last_temporal_run = c->run;
	return 0;
}

/* Flushes, fences and marks. */

static void line_flush(struct pm *p, const struct event *ev)
{
	struct memory *mem = p->mem;
	uint64_t g = granularity(p), first = ev->addr / PM_LINE * PM_LINE;
	uint32_t cpu = get_cpu(mem, ev->cpu);
	struct cpu *c = &mem->cpus.v[cpu];
	struct page_out out;

	if (first < c->to && first + PM_LINE > c->from)
		c->flushed = true;
	page_out_init(&out, p);
	for (uint64_t at = first; at < first + PM_LINE; at += g) {
		struct segment *s = find_segment(mem, at / g);

		if (!s || s->head == NONE || s->temporal <= mem->atoms.v[s->head].seq)
			continue; /* no temporal store in flight */
		if (ev->flags & EV_CLFLUSH)
			drain(mem, s, s->temporal - 1, &out);
		else
			capture(mem, s, cpu, s->temporal - 1);
	}
	finish(p, &out);
}

static void fence(struct pm *p, const struct event *ev)
{
	struct memory *mem = p->mem;
	uint32_t cpu = get_cpu(mem, ev->cpu);
	struct cpu *c = &mem->cpus.v[cpu];
	struct page_out out;

	page_out_init(&out, p);
	drain_captures(mem, &mem->executed, &out);
	drain_captures(mem, &c->captures, &out);
	c->open = false;
	finish(p, &out);
}

static void mark(struct pm *p)
{
	struct memory *mem = p->mem;
	struct page_out out;

	page_out_init(&out, p);
	drain_captures(mem, &mem->executed, &out);
	mem->epoch++;
	finish(p, &out);
}

static int pm_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	struct pm *p = as_pm(m);

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

static bool fits_group(const struct group *g, const struct atom *a)
{
	return a->addr == g->addr + g->len || a->addr + a->len == g->addr;
}

/* Finds out which atoms belong together. */
static void make_groups(const struct pm *p)
{
	struct memory *mem = p->mem;

	vec_clear(&mem->groups);
	vec_reserve(&mem->groups, mem->atoms.n - mem->n_gone);
	vec_clear(&mem->group_of_cpu);
	for (size_t i = 0; i < mem->cpus.n; i++)
		vec_push(&mem->group_of_cpu, NONE);
	for (size_t i = 0; i < mem->atoms.n; i++) {
		struct atom *a = &mem->atoms.v[i];
		if (a->gone)
			continue;
		uint32_t *current = &mem->group_of_cpu.v[a->cpu];
		struct group *g = *current == NONE ? NULL : &mem->groups.v[*current];

		/* While it is at hand, `piece` of a group is the last atom in it. */
		const struct atom *last = g ? &mem->atoms.v[g->piece] : NULL;
		if (g && last->run == a->run && (p->eadr || last->due == a->due) &&
		    fits_group(g, a)) {
			g->addr = min(g->addr, a->addr);
			g->len += a->len;
			g->piece = (uint32_t)i;
		} else {
			*current = (uint32_t)mem->groups.n;
			mem->groups.v[mem->groups.n++] =
				(struct group){ a->addr, a->len, (uint32_t)i };
		}
		a->piece = *current;
	}
	for (size_t i = 0; i < mem->groups.n; i++)
		mem->groups.v[i].piece = NONE;
}

/* There is room for it. */
static void new_piece(struct pm *p, const struct atom *a)
{
	struct memory *mem = p->mem;

	mem->members.v[mem->members.n++] = (struct members){ 0 };
	mem->pieces.v[mem->pieces.n++] = (struct model_piece){
		.event = a->event, .addr = a->addr, .completed = p->eadr ? !a->nt : a->due
	};
}

/* Makes a piece of each group, or of each atom of a small one. */
static void make_members(struct pm *p)
{
	struct memory *mem = p->mem;
	uint64_t join_min = opts_of(p)->join_min;
	uint32_t at = 0;

	vec_clear(&mem->pieces);
	vec_clear(&mem->members);
	vec_reserve(&mem->pieces, mem->atoms.n - mem->n_gone);
	vec_reserve(&mem->members, mem->atoms.n - mem->n_gone);
	for (size_t i = 0; i < mem->atoms.n; i++) {
		struct atom *a = &mem->atoms.v[i];
		if (a->gone)
			continue;
		struct group *g = &mem->groups.v[a->piece];
		bool joined = g->len > join_min;

		if (!joined || g->piece == NONE) {
			g->piece = (uint32_t)mem->pieces.n;
			new_piece(p, a);
		}
		a->piece = g->piece;
		struct model_piece *piece = &mem->pieces.v[a->piece];
		piece->addr = min(piece->addr, a->addr);
		piece->len += a->len;
		mem->members.v[a->piece].n++;
	}
	vec_clear(&mem->order);
	vec_reserve(&mem->order, mem->atoms.n - mem->n_gone);
	mem->order.n = mem->atoms.n - mem->n_gone;
	for (size_t i = 0; i < mem->members.n; i++) {
		mem->members.v[i].first = at;
		at += mem->members.v[i].n;
		mem->members.v[i].n = 0;
	}
	for (size_t i = 0; i < mem->atoms.n; i++) {
		if (mem->atoms.v[i].gone)
			continue;
		struct members *of = &mem->members.v[mem->atoms.v[i].piece];

		mem->order.v[of->first + of->n++] = (uint32_t)i;
	}
}

/*
 * How a piece can be torn: a single store within a line between its words, anything else between
 * segments. A copy under eADR cannot: its stores are executed one after the other, and to see each
 * of them is what join_min is for.
 */
static void cut_piece(const struct pm *p, struct model_piece *piece, const struct members *of)
{
	uint32_t unit = min(p->m.opts.tear_unit, (uint32_t)1 << 30);

	unit = (unit + PM_ATOMIC - 1) / PM_ATOMIC * PM_ATOMIC;
	if (of->n > 1 && unit)
		unit = p->eadr && piece->completed ? 0 : max(unit, (uint32_t)granularity(p));
	model_piece_cut(piece, unit);
}

static void add_need(struct memory *mem, uint32_t piece, uint32_t other)
{
	if (piece == other)
		return;
	assert(other < piece);
	/* Two copies share many segments; once is enough. */
	if (mem->need.n && vec_last(&mem->need).piece == piece &&
	    vec_last(&mem->need).other == other)
		return;
	vec_push(&mem->need, (struct need){ piece, other });
	mem->pieces.v[piece].n_needs++;
}

/* Gives each piece its own, one after the other. */
static void give_needs(struct memory *mem)
{
	size_t at = 0;

	vec_clear(&mem->needs);
	vec_reserve(&mem->needs, mem->need.n + 1);
	mem->needs.n = mem->need.n;
	for (size_t i = 0; i < mem->pieces.n; i++) {
		mem->pieces.v[i].needs = mem->needs.v + at;
		at += mem->pieces.v[i].n_needs;
		mem->pieces.v[i].n_needs = 0;
	}
	for (size_t i = 0; i < mem->need.n; i++) {
		struct model_piece *piece = &mem->pieces.v[mem->need.v[i].piece];
		size_t first = (size_t)(piece->needs - mem->needs.v);

		mem->needs.v[first + piece->n_needs++] = mem->need.v[i].other;
	}
}

/* By R1 a piece needs what comes before it in its segments; by R4, the store before. */
static void find_needs(struct pm *p)
{
	struct memory *mem = p->mem;
	uint32_t before = NONE;

	vec_clear(&mem->need);
	for (size_t i = 0; i < mem->atoms.n; i++) {
		const struct atom *a = &mem->atoms.v[i];

		if (!a->gone && a->next != NONE)
			add_need(mem, mem->atoms.v[a->next].piece, a->piece);
	}
	for (size_t i = 0; p->eadr && i < mem->atoms.n; i++) {
		const struct atom *a = &mem->atoms.v[i];

		if (a->gone || a->nt)
			continue;
		if (before != NONE)
			add_need(mem, a->piece, before);
		before = a->piece;
	}
	give_needs(mem);
}

static const struct model_piece *pm_pieces(const struct model *m, size_t *n)
{
	struct pm p = *as_const_pm(m);
	struct memory *mem = p.mem;

	arena_clear(&mem->data);
	make_groups(&p);
	make_members(&p);
	find_needs(&p);
	for (size_t i = 0; i < mem->pieces.n; i++)
		cut_piece(&p, &mem->pieces.v[i], &mem->members.v[i]);
	*n = mem->pieces.n;
	return mem->pieces.v;
}

/* The bytes of a piece, which are put together when they are first wanted. */
static const unsigned char *piece_data(struct memory *mem, size_t index)
{
	struct members *of = &mem->members.v[index];
	const struct model_piece *p = &mem->pieces.v[index];
	const struct atom *first = &mem->atoms.v[mem->order.v[of->first]];

	if (!of->data && of->n == 1)
		of->data = first->data;
	if (of->data)
		return of->data;
	unsigned char *data = arena_alloc(&mem->data, p->len);
	for (uint32_t i = 0; i < of->n; i++) {
		const struct atom *a = &mem->atoms.v[mem->order.v[of->first + i]];

		memcpy(data + (a->addr - p->addr), a->data, a->len);
	}
	return of->data = data;
}

static void pm_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			   uint64_t from, uint64_t to, struct image *img)
{
	struct memory *mem = as_const_pm(m)->mem;
	const struct model_piece *p = &mem->pieces.v[index];
	uint64_t first, end;

	assert(index < mem->pieces.n);
	for (uint32_t i = 0; model_piece_run(p, units, &i, &first, &end);) {
		first = max(first, from);
		end = min(end, to);
		if (first < end)
			image_write(img, first, piece_data(mem, index) + (first - p->addr),
				    end - first);
	}
}

const struct model_ops model_pm = {
	.name = "pm",
	.help = "persistent memory behind a volatile cache: durable after a flush and a fence",
	.create = pm_create,
	.clone = pm_clone,
	.destroy = pm_destroy,
	.apply = pm_apply,
	.pieces = pm_pieces,
	.piece_apply = pm_piece_apply,
};

const struct model_ops model_pm_eadr = {
	.name = "pm-eadr",
	.help = "persistent memory behind a persistent cache: durable once stored, in order",
	.create = eadr_create,
	.clone = pm_clone,
	.destroy = pm_destroy,
	.apply = pm_apply,
	.pieces = pm_pieces,
	.piece_apply = pm_piece_apply,
};
