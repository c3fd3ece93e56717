/* SPDX-License-Identifier: MIT */
/* pm.c - see pm.h. */
#include "pm.h"

#include <cpuid.h>
#include <outage/mark.h>
#include <outage/pm_stream.h>

/* ---- the stream ---- */

static void put(struct pm *m, const void *data, size_t len)
{
	if (m->len + len > m->cap) {
		m->cap = max(m->cap * 2, m->len + len + 4096);
		m->stream = xrealloc(m->stream, m->cap);
	}
	memcpy(m->stream + m->len, data, len);
	m->len += len;
}

static void put_record(struct pm *m, struct pm_stream_record *r, const void *data)
{
	static const unsigned char zeros[8];

	if (!m->traced)
		return;
	put(m, r, sizeof(*r));
	if (pm_stream_has_data(r->kind)) {
		put(m, data, r->len);
		put(m, zeros, -(size_t)r->len & 7);
	}
	m->count++;
}

void pm_trace_start(struct pm *m)
{
	struct pm_stream_header h = { .magic = PM_STREAM_MAGIC,
				      .version = PM_STREAM_VERSION,
				      .header_size = sizeof(h),
				      .region_size = m->size,
				      .flags = PM_STREAM_BY_FUNCTION,
				      .cpus = 1 };

	m->len = 0;
	m->count = 0;
	m->traced = true;
	put(m, &h, sizeof(h));
}

void pm_trace_end(struct pm *m)
{
	size_t head = sizeof(struct pm_stream_header);
	struct pm_stream_record r = { .kind = PM_STREAM_END, .addr = m->count };

	r.pc = pm_stream_sum(PM_STREAM_SUM_INIT, m->stream + head, m->len - head);
	put_record(m, &r, NULL);
	m->traced = false;
}

void pm_trace_release(struct pm *m)
{
	free(m->stream);
	m->stream = NULL;
	m->len = m->cap = 0;
	m->traced = false;
}

/* ---- instructions ---- */

enum pm_flush pm_best_flush(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return PM_CLFLUSH;
	return b & bit_CLWB ? PM_CLWB : b & bit_CLFLUSHOPT ? PM_CLFLUSHOPT : PM_CLFLUSH;
}

int pm_flush_by_name(const char *name)
{
	static const char *const names[] = { "clflush", "clflushopt", "clwb" };

	for (int i = 0; i < (int)ARRAY_SIZE(names); i++)
		if (streq(names[i], name))
			return i;
	return -1;
}

static void check(const struct pm *m, uint64_t addr, size_t len)
{
	assert(len <= m->size && addr <= m->size - len);
}

void pm_load(struct pm *m, uint64_t addr, void *out, size_t len)
{
	check(m, addr, len);
	memcpy(out, m->base + addr, len);
	if (m->read && len)
		memset(m->read + addr / PM_LINE_SIZE, 1,
		       (addr + len - 1) / PM_LINE_SIZE - addr / PM_LINE_SIZE + 1);
}

static void store_word(struct pm *m, uint64_t addr, uint64_t value, bool nt)
{
	struct pm_stream_record r = { .kind = nt ? PM_STREAM_NTSTORE : PM_STREAM_STORE,
				      .len = 8,
				      .addr = addr };
	uint64_t *to = (void *)(m->base + addr);

	if (nt)
		__asm__ volatile("movnti %1, %0" : "=m"(*to) : "r"(value) : "memory");
	else
		__asm__ volatile("movq %1, %0" : "=m"(*to) : "r"(value) : "memory");
	put_record(m, &r, &value);
}

static void store_byte(struct pm *m, uint64_t addr, unsigned char value)
{
	struct pm_stream_record r = { .kind = PM_STREAM_STORE, .len = 1, .addr = addr };

	__asm__ volatile("movb %1, %0" : "=m"(m->base[addr]) : "q"(value) : "memory");
	put_record(m, &r, &value);
}

static void copy(struct pm *m, uint64_t addr, const unsigned char *data, size_t len, bool nt)
{
	uint64_t end = addr + len, word;

	check(m, addr, len);
	while (addr < end) {
		if (addr % 8 || end - addr < 8) {
			store_byte(m, addr++, *data++);
			continue;
		}
		memcpy(&word, data, 8);
		store_word(m, addr, word, nt);
		addr += 8;
		data += 8;
	}
}

void pm_store(struct pm *m, uint64_t addr, const void *data, size_t len)
{
	copy(m, addr, data, len, false);
}

void pm_store8(struct pm *m, uint64_t addr, uint64_t value)
{
	assert(addr % 8 == 0);
	copy(m, addr, (const unsigned char *)&value, 8, false);
}

void pm_copy_nt(struct pm *m, uint64_t addr, const void *data, size_t len)
{
	if (!len)
		return;
	copy(m, addr, data, len, true);
	if (addr % 8)
		pm_flush(m, addr, 1);
	if ((addr + len) % 8 && !m->nt_tail)
		pm_flush(m, addr + len - 1, 1);
}

static void flush_line(const struct pm *m, volatile unsigned char *line)
{
	if (m->ordinary)
		return;
	switch (m->how) {
	case PM_CLWB:
		__asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*line)); /* clwb */
		break;
	case PM_CLFLUSHOPT:
		__asm__ volatile(".byte 0x66; clflush %0" : "+m"(*line)); /* clflushopt */
		break;
	default:
		__asm__ volatile("clflush %0" : "+m"(*line));
	}
}

void pm_flush(struct pm *m, uint64_t addr, size_t len)
{
	uint64_t end = addr + len;

	check(m, addr, len);
	for (addr -= addr % PM_LINE_SIZE; addr < end; addr += PM_LINE_SIZE) {
		struct pm_stream_record r = { .addr = addr };

		r.kind = m->how == PM_CLFLUSH ? PM_STREAM_CLFLUSH : PM_STREAM_FLUSH;
		flush_line(m, m->base + addr);
		put_record(m, &r, NULL);
	}
}

void pm_fence(struct pm *m)
{
	struct pm_stream_record r = { .kind = PM_STREAM_FENCE };

	if (!m->ordinary)
		__asm__ volatile("sfence" ::: "memory");
	put_record(m, &r, NULL);
}

/* ---- marks ---- */

void pm_begin(struct pm *m, unsigned long op, const char *text)
{
	struct pm_stream_record t = { .kind = PM_STREAM_TEXT, .len = (uint32_t)strlen(text) };
	struct pm_stream_record r = { .kind = PM_STREAM_MARK_BEGIN, .addr = op };

	outage_mark_text(text, strlen(text));
	outage_mark_begin(op);
	put_record(m, &t, text);
	put_record(m, &r, NULL);
}

void pm_end(struct pm *m, unsigned long op)
{
	struct pm_stream_record r = { .kind = PM_STREAM_MARK_END, .addr = op };

	outage_mark_end(op);
	put_record(m, &r, NULL);
}
