/* SPDX-License-Identifier: MIT */
/*
 * tracer.h - shared by all parts of the plugin: the options, the CPUs, the lock, and how something
 * is recorded. The steps of each store are inlined.
 *
 * P1: with several CPUs or processes, a record is made, and its data read, under one lock. One CPU
 *     in one process needs none; a thread or process is announced by the call that makes it, before
 *     there is a second one, and from then on the lock is taken.
 */
#ifndef PLUGIN_TRACER_H
#define PLUGIN_TRACER_H

#include "shadow.h"
#include "writer.h"

#define INLINE	 inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* Marks data of other files of this library, which is so found without a table. */
#define HERE __attribute__((visibility("hidden")))

enum { CPUS_HERE = 4096 };

struct cpu_here {
	bool known;
	bool since_fence;      /* something was recorded since its last fence */
	uint16_t number;       /* in the stream */
	struct shadow *shadow; /* the stack that it is on; NULL: not known */
	uint64_t next;	       /* where its last store ended */
	uint32_t flow, seen;   /* calls and returns so far; and before that store */
	struct shadows own;    /* user emulation */
};

struct tracer {
	bool system, loads, stacks, filter;
	bool alone;  /* one CPU in one process: no other to lock out */
	bool marked; /* begin=mark */
	bool off;    /* nothing is traced now */
	struct writer *w;
	struct cpu_here cpu[CPUS_HERE];
};

extern struct tracer pm HERE;

/* A process that is alone becomes one of several only where it holds no lock: P1. */
static INLINE void lock(void)
{
	if (!pm.alone)
		writer_lock(pm.w);
}

static INLINE void unlock(void)
{
	if (!pm.alone)
		writer_unlock(pm.w);
}

static INLINE struct cpu_here *cpu_slot(unsigned vcpu)
{
	return &pm.cpu[vcpu % CPUS_HERE];
}

/* A CPU that has no number yet gets one. */
void cpu_number(struct cpu_here *c, unsigned vcpu);

static INLINE struct cpu_here *cpu_here(unsigned vcpu)
{
	struct cpu_here *c = cpu_slot(vcpu);

	if (!c->known)
		cpu_number(c, vcpu);
	return c;
}

/* The number of a stack; 0 if there are too many. With the lock held. */
uint32_t stack_number(struct shadow *s);

static INLINE uint32_t stack_of(const struct cpu_here *c)
{
	struct shadow *s = c->shadow;

	if (!s || !s->n)
		return 0;
	return s->number && s->epoch == pm.w->epoch ? s->number : stack_number(s);
}

/* Whether a store goes on where the last one ended, and is not made by the same call. */
static INLINE bool is_new_call(struct cpu_here *c, unsigned kind, uint64_t addr, uint64_t len)
{
	if (kind != PM_STREAM_STORE && kind != PM_STREAM_NTSTORE)
		return false;
	bool is_new = c->flow != c->seen && addr == c->next;

	c->seen = c->flow;
	c->next = addr + len;
	return is_new;
}

/* The frequent records: 1 << `shift` bytes, or none. With the lock held. */
static INLINE void record_small(unsigned vcpu, unsigned kind, uint64_t addr, unsigned shift,
				uint64_t pc, const void *data)
{
	struct cpu_here *c = cpu_here(vcpu);

	c->since_fence = kind != PM_STREAM_FENCE;
	if (is_new_call(c, kind, addr, (uint64_t)1 << shift))
		writer_new_call(pm.w);
	writer_add_small(pm.w, kind, c->number, pm.stacks ? stack_of(c) : 0, shift, addr, pc, data);
}

/* Everything else. With the lock held. */
void record(unsigned vcpu, unsigned kind, uint64_t addr, uint32_t len, uint64_t pc,
	    const void *data);
/* One process more, or less. Takes the lock. */
void count_process(int n);

#endif
