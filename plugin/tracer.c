/* SPDX-License-Identifier: MIT */
/* tracer.c - numbers CPUs and stacks, and hands records to the writer. */
#include "tracer.h"

struct tracer pm = { .filter = true };

NOINLINE void cpu_number(struct cpu_here *c, unsigned vcpu)
{
	if (vcpu >= CPUS_HERE)
		writer_trouble(pm.w, "more than %d threads were started", CPUS_HERE);
	c->number = writer_new_cpu(pm.w);
	c->known = true;
}

enum { STACKS = 1 << 16, STACKS_FULL = STACKS / 4 * 3 };

static struct {
	uint32_t epoch, n;
	struct {
		uint64_t hash; /* 0: free */
		uint32_t number;
	} v[STACKS];
} stacks; /* stacks that have been written */

NOINLINE uint32_t stack_number(struct shadow *s)
{
	uint64_t frames[SHADOW_FRAMES], hash = shadow_hash(s), at = hash >> 20;

	if (stacks.epoch != pm.w->epoch) {
		memset(&stacks, 0, sizeof(stacks));
		stacks.epoch = pm.w->epoch;
	}
	while (stacks.v[at % STACKS].hash && stacks.v[at % STACKS].hash != hash)
		at++;
	if (!stacks.v[at % STACKS].hash) {
		if (stacks.n == STACKS_FULL)
			return 0;
		stacks.n++;
		stacks.v[at % STACKS].hash = hash;
		stacks.v[at % STACKS].number =
			writer_new_stack(pm.w, frames, shadow_frames(s, frames));
	}
	s->number = stacks.v[at % STACKS].number;
	s->epoch = stacks.epoch;
	return s->number;
}

void record(unsigned vcpu, unsigned kind, uint64_t addr, uint32_t len, uint64_t pc,
	    const void *data)
{
	struct cpu_here *c = cpu_here(vcpu);
	struct pm_stream_record r = { .kind = (uint8_t)kind,
				      .cpu = c->number,
				      .len = len,
				      .addr = addr,
				      .pc = pc,
				      .stack = pm.stacks ? stack_of(c) : 0 };

	if (is_new_call(c, kind, addr, len))
		r.flags = PM_STREAM_NEW_CALL;

	c->since_fence = true;
	writer_add(pm.w, &r, data);
}

void count_process(int n)
{
	lock();
	writer_count(pm.w, n);
	unlock();
}
