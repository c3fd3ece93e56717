/* SPDX-License-Identifier: MIT */
/*
 * preload.c - a tracer without an emulator: a library for LD_PRELOAD that stands in front of
 * libpmem and writes the stream of outage/pm_stream.h, by calls instead of instructions.
 *
 *	truncate -s 64M stream
 *	OUTAGE_PM_STREAM=stream PMEM_IS_PMEM_FORCE=1 LD_PRELOAD=outage-preload.so PROGRAM
 *
 * The first file that pmem_map_file() maps is the region; OUTAGE_PM_FILE names another one.
 *
 * What the program stores by itself is not seen when it happens. At each call the whole region is
 * compared with a copy, and every word that differs is a store, in the order of addresses: so no
 * store is missed, also one that is never flushed, but their order between two calls is not known.
 * Look at such a trace with a granularity of 8, which takes no order for granted.
 *
 * One region, one process: what a forked child calls is not seen, what it stores is found with the
 * next call of its parent. A second mapping of the region is a trouble that the stream tells.
 */
#include <dlfcn.h>
#include <libpmem.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outage/mark.h"
#include "writer.h"

#define EXPORT	 __attribute__((visibility("default")))
#define REAL(fn) ((__typeof__(&(fn)))real(#fn))

enum {
	WORD = 8,
	PAGE = 4096,
	NT_MIN = 256,	/* libpmem copies from so many bytes on past the cache */
	CUT = 64 << 10, /* bytes of one record */
};

static struct {
	struct writer *w; /* NULL: nothing is traced */
	unsigned char *base, *copy;
	size_t size;
	int pid;
} region;

static __thread int cpu = -1;
static __thread int inside; /* libpmem, which calls its own functions as a program would */

/* A call of libpmem's own, which is traced once. */
#define CALL(fn, ...)                                                                              \
	({                                                                                         \
		inside++;                                                                          \
		__typeof__(fn(__VA_ARGS__)) out_ = REAL(fn)(__VA_ARGS__);                          \
		inside--;                                                                          \
		out_;                                                                              \
	})
#define CALL_VOID(fn, ...)                                                                         \
	do {                                                                                       \
		inside++;                                                                          \
		REAL(fn)(__VA_ARGS__);                                                             \
		inside--;                                                                          \
	} while (0)

static void *real(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	if (!fn) {
		static const char words[] = "outage: there is no libpmem behind the library\n";

		(void)!write(2, words, sizeof(words) - 1);
		abort();
	}
	return fn;
}

/* ---- records; all want the lock ---- */

static void add(unsigned kind, uint64_t addr, uint32_t len, const void *data)
{
	struct pm_stream_record r = { .kind = (uint8_t)kind, .addr = addr, .len = len };

	if (cpu < 0)
		cpu = writer_new_cpu(region.w);
	r.cpu = (uint16_t)cpu;
	writer_add(region.w, &r, data);
}

static void compare_words(size_t from, size_t to)
{
	for (size_t at = from; at < to; at += WORD) {
		size_t len = to - at < WORD ? to - at : WORD;

		if (!memcmp(region.base + at, region.copy + at, len))
			continue;
		memcpy(region.copy + at, region.base + at, len);
		add(PM_STREAM_STORE, at, (uint32_t)len, region.copy + at);
	}
}

/* What was stored since the last call. */
static void find_stores(void)
{
	for (size_t at = 0; at < region.size; at += PAGE) {
		size_t len = region.size - at < PAGE ? region.size - at : PAGE;

		if (memcmp(region.base + at, region.copy + at, len))
			compare_words(at, at + len);
	}
}

/* Whether this call is traced; if so, the lock is held and all stores before it are known. */
static int begin(void)
{
	if (inside || !region.w || getpid() != region.pid)
		return 0;
	writer_lock(region.w);
	if (region.base)
		find_stores();
	return 1;
}

static void end(void)
{
	writer_unlock(region.w);
}

/* The part of a range that lies in the region; 0: none does. */
static size_t clip(const void *addr, size_t len, uint64_t *at)
{
	uintptr_t from = (uintptr_t)addr, base = (uintptr_t)region.base;

	if (!base || from < base || from >= base + region.size)
		return 0;
	*at = from - base;
	return len < region.size - *at ? len : region.size - *at;
}

static void add_flush(const void *addr, size_t len)
{
	uint64_t at = 0, n = clip(addr, len, &at);

	for (uint64_t line = at / PM_STREAM_LINE * PM_STREAM_LINE; n && line < at + n;
	     line += PM_STREAM_LINE)
		add(PM_STREAM_FLUSH, line, 0, NULL);
}

/* A copy that libpmem has just made. */
static void add_copy(const void *addr, size_t len, unsigned flags)
{
	unsigned cached = PMEM_F_MEM_TEMPORAL | PMEM_F_MEM_WB | PMEM_F_MEM_NOFLUSH;
	unsigned past = PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_WC;
	int nt = !(flags & cached) && (len >= NT_MIN || flags & past);
	uint64_t at = 0, n = clip(addr, len, &at);

	for (uint64_t done = 0, part; done < n; done += part) {
		part = n - done < CUT ? n - done : CUT;
		memcpy(region.copy + at + done, region.base + at + done, part);
		add(nt ? PM_STREAM_NTSTORE : PM_STREAM_STORE, at + done, (uint32_t)part,
		    region.copy + at + done);
	}
	if (!nt && !(flags & PMEM_F_MEM_NOFLUSH))
		add_flush(addr, len);
	if (!(flags & (PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH)))
		add(PM_STREAM_FENCE, 0, 0, NULL);
}

/* ---- libpmem ---- */

static void watch(void *base, size_t size)
{
	if (region.base) {
		writer_trouble(region.w, "the file was mapped twice: without an emulator only one "
					 "mapping can be followed");
		return;
	}
	region.copy = malloc(size);
	if (!region.copy) {
		writer_trouble(region.w, "there is no memory for a copy of the file");
		return;
	}
	memcpy(region.copy, base, size);
	region.base = base;
	region.size = size;
	writer_set_region(region.w, size);
}

/* Not before there is something to trace: programs that start others are none of our business. */
static void start(void)
{
	const char *path = getenv("OUTAGE_PM_STREAM");
	static const char words[] =
		"outage: OUTAGE_PM_STREAM must name a file of the size that the "
		"trace may have\n";

	if (!path || region.w)
		return;
	region.w = writer_open(path, PM_STREAM_BY_FUNCTION);
	region.pid = getpid();
	if (!region.w)
		(void)!write(2, words, sizeof(words) - 1);
	unsetenv("OUTAGE_PM_STREAM"); /* a program that this one starts must not begin it anew */
}

EXPORT void *pmem_map_file(const char *path, size_t len, int flags, mode_t mode, size_t *mapped,
			   int *is_pmem)
{
	const char *want = getenv("OUTAGE_PM_FILE");
	size_t size = 0;
	void *base = CALL(pmem_map_file, path, len, flags, mode, &size, is_pmem);

	if (mapped)
		*mapped = size;
	if (!base || (want && strcmp(want, path) != 0) || (!want && region.base))
		return base;
	start();
	if (begin()) {
		watch(base, size);
		end();
	}
	return base;
}

EXPORT int pmem_unmap(void *addr, size_t len)
{
	if (begin()) {
		if (addr == region.base) {
			region.base = NULL;
			free(region.copy);
			region.copy = NULL;
			region.size = 0;
		}
		end();
	}
	return CALL(pmem_unmap, addr, len);
}

static void trace_sync(const void *addr, size_t len, int flush, int fence)
{
	if (!begin())
		return;
	if (flush)
		add_flush(addr, len);
	if (fence)
		add(PM_STREAM_FENCE, 0, 0, NULL);
	end();
}

EXPORT void pmem_flush(const void *addr, size_t len)
{
	trace_sync(addr, len, 1, 0);
	CALL_VOID(pmem_flush, addr, len);
}

EXPORT void pmem_deep_flush(const void *addr, size_t len)
{
	trace_sync(addr, len, 1, 0);
	CALL_VOID(pmem_deep_flush, addr, len);
}

EXPORT void pmem_drain(void)
{
	trace_sync(NULL, 0, 0, 1);
	CALL_VOID(pmem_drain);
}

EXPORT int pmem_deep_drain(const void *addr, size_t len)
{
	trace_sync(addr, len, 0, 1);
	return CALL(pmem_deep_drain, addr, len);
}

EXPORT void pmem_persist(const void *addr, size_t len)
{
	trace_sync(addr, len, 1, 1);
	CALL_VOID(pmem_persist, addr, len);
}

EXPORT int pmem_deep_persist(const void *addr, size_t len)
{
	trace_sync(addr, len, 1, 1);
	return CALL(pmem_deep_persist, addr, len);
}

EXPORT int pmem_msync(const void *addr, size_t len)
{
	trace_sync(addr, len, 1, 1);
	return CALL(pmem_msync, addr, len);
}

/* The copy is made under the lock, so that nobody takes it for stores of the program. */
#define COPY(fn, dest, len, flags, ...)                                                            \
	do {                                                                                       \
		int traced = begin();                                                              \
		void *out = CALL(fn, dest, __VA_ARGS__);                                           \
		if (traced) {                                                                      \
			add_copy(dest, len, flags);                                                \
			end();                                                                     \
		}                                                                                  \
		return out;                                                                        \
	} while (0)

EXPORT void *pmem_memmove(void *dest, const void *src, size_t len, unsigned flags)
{
	COPY(pmem_memmove, dest, len, flags, src, len, flags);
}

EXPORT void *pmem_memcpy(void *dest, const void *src, size_t len, unsigned flags)
{
	COPY(pmem_memcpy, dest, len, flags, src, len, flags);
}

EXPORT void *pmem_memset(void *dest, int c, size_t len, unsigned flags)
{
	COPY(pmem_memset, dest, len, flags, c, len, flags);
}

EXPORT void *pmem_memmove_persist(void *dest, const void *src, size_t len)
{
	COPY(pmem_memmove_persist, dest, len, 0, src, len);
}

EXPORT void *pmem_memcpy_persist(void *dest, const void *src, size_t len)
{
	COPY(pmem_memcpy_persist, dest, len, 0, src, len);
}

EXPORT void *pmem_memset_persist(void *dest, int c, size_t len)
{
	COPY(pmem_memset_persist, dest, len, 0, c, len);
}

EXPORT void *pmem_memmove_nodrain(void *dest, const void *src, size_t len)
{
	COPY(pmem_memmove_nodrain, dest, len, PMEM_F_MEM_NODRAIN, src, len);
}

EXPORT void *pmem_memcpy_nodrain(void *dest, const void *src, size_t len)
{
	COPY(pmem_memcpy_nodrain, dest, len, PMEM_F_MEM_NODRAIN, src, len);
}

EXPORT void *pmem_memset_nodrain(void *dest, int c, size_t len)
{
	COPY(pmem_memset_nodrain, dest, len, PMEM_F_MEM_NODRAIN, c, len);
}

/* ---- marks, and life ---- */

EXPORT void outage_mark_hook(int kind, unsigned long a, unsigned long b)
{
	if (!begin())
		return;
	if (kind == OUTAGE_MARK_BEGIN)
		add(PM_STREAM_MARK_BEGIN, a, 0, NULL);
	else if (kind == OUTAGE_MARK_END)
		add(PM_STREAM_MARK_END, a, 0, NULL);
	else if (kind == OUTAGE_MARK_TEXT)
		add(PM_STREAM_TEXT, 0,
		    b < OUTAGE_MARK_TEXT_MAX ? (uint32_t)b : OUTAGE_MARK_TEXT_MAX, (const void *)a);
	end();
}

__attribute__((destructor)) static void stop(void)
{
	if (!begin())
		return;
	writer_count(region.w, -1);
	end();
}
