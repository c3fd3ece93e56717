/* SPDX-License-Identifier: MIT */
/*
 * preload.c - a tracer without an emulator: a library for LD_PRELOAD that stands in front of
 * libpmem and writes the stream of outage/pm_stream.h, by calls instead of instructions.
 *
 *	truncate -s 64M stream
 *	OUTAGE_PM_STREAM=stream PMEM_IS_PMEM_FORCE=1 LD_PRELOAD=outage-preload.so PROGRAM
 *
 * OUTAGE_PM_FILE names the file that is the region; else it is the first that pmem_map_file()
 * maps. OUTAGE_PM_MAPS names a file for what maps_write() writes in the end.
 *
 * Stores of the program itself are not seen when they happen. At each call the region is compared
 * with a copy, and a difference in a line is a store: so no store is missed, also one that is never
 * flushed, but their order between two calls is not known. In one line they are one store, which
 * survives as a whole or not at all; a granularity of 8 tries all combinations.
 *
 * P1: comparing goes by a mapping of our own, so that it does not matter where and how often the
 *     program maps the file, or whether another process stores to it. Holes are not looked at.
 * P2: in a large file, only pages that were stored to or flushed before are compared at each call;
 *     the whole at each mark, at every FULL_EVERY-th call, and at the end.
 *
 * One process: the calls of a forked child are not seen, its stores are found with the next call of
 * its parent. Flush instructions that the program does not leave to libpmem are not seen at all.
 */
#undef _FILE_OFFSET_BITS /* the macro would give mmap() another name here */
#include <dlfcn.h>
#include <fcntl.h>
#include <libpmem.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "maps.h"
#include "outage/mark.h"
#include "writer.h"

#define EXPORT	 __attribute__((visibility("default")))
#define REAL(fn) ((__typeof__(&(fn)))real(#fn))
#define CALLER	 ((uint64_t)(uintptr_t)__builtin_return_address(0) - 1) /* in the call */

enum {
	WORD = 8,
	LINE = PM_STREAM_LINE,
	PAGE = 4096,
	NT_MIN = 256,	 /* libpmem copies from so many bytes on past the cache */
	CUT = 64 << 10,	 /* bytes of one record */
	LARGE = 4 << 20, /* bytes of data that are not compared at each call: P2 */
	FULL_EVERY = 64,
	MAPS_MAX = 256,
};

/* A part of the file that the program has mapped. */
struct map {
	uintptr_t start, end;
	uint64_t offset;
};

static struct {
	struct writer *w; /* NULL: nothing is traced */
	int fd;
	const unsigned char *view;
	unsigned char *copy;
	unsigned char *dirty; /* a bit for each line that was stored to and not flushed */
	unsigned char *hot;   /* a bit for each page of P2 */
	size_t size;
	uint64_t data; /* bytes that the last comparison of all looked at */
	uint64_t calls;
	struct map maps[MAPS_MAX];
	int n_maps;
	int pid;
	uint64_t pc; /* of the call at hand */
} region = { .fd = -1 };

static __thread int cpu = -1;
static __thread int inside;   /* libpmem, which calls its own functions as a program would */
static __thread int starting; /* the writer maps files of its own */
static __thread int mapping;  /* pmem_map_file() */

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
	struct pm_stream_record r = {
		.kind = (uint8_t)kind, .addr = addr, .len = len, .pc = region.pc
	};

	if (cpu < 0)
		cpu = writer_new_cpu(region.w);
	r.cpu = (uint16_t)cpu;
	writer_add(region.w, &r, data);
}

static void set_bit(unsigned char *bits, uint64_t i)
{
	bits[i / 8] |= (unsigned char)(1 << i % 8);
}

static bool get_bit(const unsigned char *bits, uint64_t i)
{
	return bits[i / 8] >> i % 8 & 1;
}

static void stored(uint64_t at, size_t len, bool in_cache)
{
	for (uint64_t p = at / PAGE; p <= (at + len - 1) / PAGE; p++)
		set_bit(region.hot, p);
	for (uint64_t l = at / LINE; in_cache && l <= (at + len - 1) / LINE; l++)
		set_bit(region.dirty, l);
}

/* From the first to the last word of a line that differs. */
static void compare_line(size_t from, size_t to)
{
	const unsigned char *now = region.view + from;
	size_t n = to - from, first = 0, last = (n - 1) / WORD * WORD, len;

	while (first < n && !memcmp(now + first, region.copy + from + first,
				    n - first < WORD ? n - first : WORD))
		first += WORD;
	if (first >= n)
		return;
	while (last > first &&
	       !memcmp(now + last, region.copy + from + last, n - last < WORD ? n - last : WORD))
		last -= WORD;
	len = (n - last < WORD ? n : last + WORD) - first;
	memcpy(region.copy + from + first, now + first, len);
	stored(from + first, len, true);
	add(PM_STREAM_STORE, from + first, (uint32_t)len, region.copy + from + first);
}

static void compare(size_t from, size_t to)
{
	for (size_t at = from; at < to; at += PAGE - at % PAGE) {
		size_t end = at / PAGE * PAGE + PAGE < to ? at / PAGE * PAGE + PAGE : to;

		if (!memcmp(region.view + at, region.copy + at, end - at))
			continue;
		for (size_t line = at; line < end; line += LINE - line % LINE) {
			size_t stop = line / LINE * LINE + LINE;

			compare_line(line, stop < end ? stop : end);
		}
	}
}

/* Calls `fn` for each part of the file that is no hole. */
static void each_data(void (*fn)(size_t from, size_t end))
{
	for (off_t at = 0, end; at < (off_t)region.size; at = end) {
		off_t from = lseek(region.fd, at, SEEK_DATA);

		if (from < 0 || from >= (off_t)region.size)
			return;
		end = lseek(region.fd, from, SEEK_HOLE);
		if (end < 0 || end > (off_t)region.size)
			end = (off_t)region.size;
		fn((size_t)from, (size_t)end);
	}
}

static void compare_data(size_t from, size_t end)
{
	region.data += end - from;
	compare(from, end);
}

/* Not a second time what was found to be a hole: it cost as much memory as it is long. */
static void compare_all(void)
{
	region.data = 0;
	each_data(compare_data);
}

static void compare_hot(void)
{
	size_t pages = (region.size + PAGE - 1) / PAGE;

	for (size_t p = 0; p < pages; p++)
		if (!region.hot[p / 8])
			p |= 7;
		else if (get_bit(region.hot, p))
			compare(p * PAGE,
				p * PAGE + PAGE < region.size ? p * PAGE + PAGE : region.size);
}

/* Finds the stores since the last call. */
static void find_stores(bool all)
{
	if (all || region.data <= LARGE || region.calls++ % FULL_EVERY == 0)
		compare_all();
	else
		compare_hot();
}

/* Whether this call is traced; if so, the lock is held and all stores before it are known. */
static int begin(uint64_t pc, bool all)
{
	if (inside || !region.w || getpid() != region.pid)
		return 0;
	writer_lock(region.w);
	region.pc = pc;
	if (region.view)
		find_stores(all);
	return 1;
}

static void end(void)
{
	writer_unlock(region.w);
}

/* The part of a range, from its start on, that lies in a mapping of the file; 0: none does. */
static size_t clip(const void *addr, size_t len, uint64_t *at)
{
	uintptr_t from = (uintptr_t)addr;

	for (int i = 0; i < region.n_maps; i++) {
		const struct map *m = &region.maps[i];

		if (from < m->start || from >= m->end)
			continue;
		*at = m->offset + (from - m->start);
		len = len < m->end - from ? len : m->end - from;
		return *at >= region.size ? 0 : len < region.size - *at ? len : region.size - *at;
	}
	return 0;
}

static void flush_line(uint64_t line)
{
	region.dirty[line / LINE / 8] &= (unsigned char)~(1 << line / LINE % 8);
	set_bit(region.hot, line / PAGE);
	add(PM_STREAM_FLUSH, line, 0, NULL);
}

static void add_flush(const void *addr, size_t len)
{
	uint64_t at = 0, n = clip(addr, len, &at);

	if (!n)
		return;
	compare(at / LINE * LINE, at + n);
	for (uint64_t line = at / LINE * LINE; line < at + n; line += LINE)
		flush_line(line);
}

/* The kernel wrote back what was stored to a part: as if it were flushed and fenced. */
static void wrote_back(uint64_t from, uint64_t to)
{
	for (uint64_t line = from / LINE * LINE; line < to; line += LINE)
		if (get_bit(region.dirty, line / LINE))
			flush_line(line);
	add(PM_STREAM_FENCE, 0, 0, NULL);
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
		memcpy(region.copy + at + done, region.view + at + done, part);
		stored(at + done, part, !nt);
		add(nt ? PM_STREAM_NTSTORE : PM_STREAM_STORE, at + done, (uint32_t)part,
		    region.copy + at + done);
	}
	if (!nt && !(flags & PMEM_F_MEM_NOFLUSH))
		add_flush(addr, len);
	if (!(flags & (PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH)))
		add(PM_STREAM_FENCE, 0, 0, NULL);
}

/* ---- the file, and where it is mapped ---- */

static void *memory(size_t size)
{
	void *p = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Moves what there is of a table to a larger one. */
static void *grow(void *old, size_t used, size_t size)
{
	void *p = memory(size);

	if (p && old) {
		memcpy(p, old, used);
		syscall(SYS_munmap, old, used);
	}
	return p;
}

static void copy_data(size_t from, size_t end)
{
	memcpy(region.copy + from, region.view + from, end - from);
}

/* Takes the file as it is now for what was there before. */
static void copy_all(void)
{
	each_data(copy_data);
}

/* The new part of a file that has grown was zero. */
static void watch(int fd, size_t size)
{
	size_t old = region.size;
	bool first = !region.view;

	if (size <= old)
		return;
	if (first)
		region.fd = fcntl(fd, F_DUPFD_CLOEXEC, 500);
	void *view = region.fd < 0 ? MAP_FAILED
				   : (void *)syscall(SYS_mmap, NULL, size, PROT_READ, MAP_SHARED,
						     region.fd, 0);
	region.copy = grow(region.copy, old, size);
	region.dirty = grow(region.dirty, old / LINE / 8 + 1, size / LINE / 8 + 1);
	region.hot = grow(region.hot, old / PAGE / 8 + 1, size / PAGE / 8 + 1);
	if (view == MAP_FAILED || !region.copy || !region.dirty || !region.hot) {
		writer_trouble(region.w, "there is no memory for a copy of the file");
		region.view = NULL;
		region.size = 0;
		return;
	}
	if (region.view)
		syscall(SYS_munmap, region.view, old);
	region.view = view;
	region.size = size;
	if (first)
		copy_all();
	writer_set_region(region.w, size);
}

static void add_map(struct map m)
{
	if (region.n_maps < MAPS_MAX)
		region.maps[region.n_maps++] = m;
	else
		writer_trouble(region.w, "the file is mapped in more than %d parts", MAPS_MAX);
}

/* Something else is at these addresses now, or nothing. */
static void forget(uintptr_t from, uintptr_t to)
{
	struct map old[MAPS_MAX];
	int n = region.n_maps;

	memcpy(old, region.maps, sizeof(old));
	region.n_maps = 0;
	for (int i = 0; i < n; i++) {
		struct map m = old[i];

		if (m.end <= from || m.start >= to) {
			add_map(m);
			continue;
		}
		if (m.start < from)
			add_map((struct map){ m.start, from, m.offset });
		if (m.end > to)
			add_map((struct map){ to, m.end, m.offset + (to - m.start) });
	}
}

/* Not before there is something to trace: programs that start others are none of our business. */
static void start(void)
{
	const char *path = getenv("OUTAGE_PM_STREAM");
	static const char words[] =
		"outage: OUTAGE_PM_STREAM must name a file of the size that the "
		"trace may have\n";

	if (!path || region.w || starting)
		return;
	starting = 1;
	region.w = writer_open(path, PM_STREAM_BY_FUNCTION | PM_STREAM_HAS_PC);
	starting = 0;
	region.pid = getpid();
	if (!region.w)
		(void)!write(2, words, sizeof(words) - 1);
	unsetenv("OUTAGE_PM_STREAM"); /* a program that this one starts must not begin it anew */
}

static bool is_region(int fd, struct stat *st)
{
	const char *want = getenv("OUTAGE_PM_FILE");
	struct stat ours;

	if (fd < 0 || fstat(fd, st) || !S_ISREG(st->st_mode))
		return false;
	if (want)
		return !stat(want, &ours) && ours.st_ino == st->st_ino && ours.st_dev == st->st_dev;
	if (region.fd < 0)
		return mapping > 0;
	return !fstat(region.fd, &ours) && ours.st_ino == st->st_ino && ours.st_dev == st->st_dev;
}

static int enter(void)
{
	int was = inside;

	inside = 0; /* libpmem maps for the program */
	return was;
}

static void *map_file(void *p, size_t len, int flags, int fd, off_t offset)
{
	bool shared = (flags & MAP_TYPE) != MAP_PRIVATE && !(flags & MAP_ANONYMOUS);

	if (starting)
		return p;
	int was = enter();
	struct stat st;

	if (shared && is_region(fd, &st)) {
		start();
		if (begin(0, false)) {
			watch(fd, (size_t)st.st_size);
			forget((uintptr_t)p, (uintptr_t)p + len);
			add_map((struct map){ (uintptr_t)p, (uintptr_t)p + len, (uint64_t)offset });
			end();
		}
	} else if (flags & MAP_FIXED && region.n_maps && begin(0, false)) {
		forget((uintptr_t)p, (uintptr_t)p + len);
		end();
	}
	inside = was;
	return p;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *p = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);

	return p == MAP_FAILED ? p : map_file(p, len, flags, fd, offset);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return mmap(addr, len, prot, flags, fd, offset);
}

EXPORT int munmap(void *addr, size_t len)
{
	int was = enter();

	if (region.n_maps && begin(0, false)) {
		forget((uintptr_t)addr, (uintptr_t)addr + len);
		end();
	}
	inside = was;
	return (int)syscall(SYS_munmap, addr, len);
}

EXPORT void *mremap(void *addr, size_t len, size_t new_len, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	void *p = (void *)syscall(SYS_mremap, addr, len, new_len, flags, to);
	int was = enter();

	if (p != MAP_FAILED && region.n_maps && begin(0, false)) {
		struct stat st;
		uint64_t at;
		bool ours = clip(addr, 1, &at);

		forget((uintptr_t)addr, (uintptr_t)addr + len);
		forget((uintptr_t)p, (uintptr_t)p + new_len);
		if (ours && !fstat(region.fd, &st)) {
			watch(region.fd, (size_t)st.st_size);
			add_map((struct map){ (uintptr_t)p, (uintptr_t)p + new_len, at });
		}
		end();
	}
	inside = was;
	return p;
}

/* ---- libpmem ---- */

EXPORT void *pmem_map_file(const char *path, size_t len, int flags, mode_t mode, size_t *mapped,
			   int *is_pmem)
{
	mapping++;
	void *base = CALL(pmem_map_file, path, len, flags, mode, mapped, is_pmem);
	mapping--;
	return base;
}

/* ---- the kernel ---- */

EXPORT int msync(void *addr, size_t len, int flags)
{
	int rc = (int)syscall(SYS_msync, addr, len, flags);

	if (!rc && flags & MS_SYNC && region.n_maps && begin(CALLER, false)) {
		uint64_t at = 0, n = clip(addr, len, &at);

		if (n)
			wrote_back(at, at + n);
		end();
	}
	return rc;
}

static int sync_file(int rc, int fd, uint64_t pc)
{
	struct stat st;

	if (!rc && !inside && region.view && is_region(fd, &st) && begin(pc, true)) {
		wrote_back(0, region.size);
		end();
	}
	return rc;
}

EXPORT int fsync(int fd)
{
	return sync_file((int)syscall(SYS_fsync, fd), fd, CALLER);
}

EXPORT int fdatasync(int fd)
{
	return sync_file((int)syscall(SYS_fdatasync, fd), fd, CALLER);
}

/* ---- what makes durable, and copies ---- */

static void trace_sync(uint64_t pc, const void *addr, size_t len, int flush, int fence)
{
	if (!begin(pc, false))
		return;
	if (flush)
		add_flush(addr, len);
	if (fence)
		add(PM_STREAM_FENCE, 0, 0, NULL);
	end();
}

EXPORT void pmem_flush(const void *addr, size_t len)
{
	trace_sync(CALLER, addr, len, 1, 0);
	CALL_VOID(pmem_flush, addr, len);
}

EXPORT void pmem_deep_flush(const void *addr, size_t len)
{
	trace_sync(CALLER, addr, len, 1, 0);
	CALL_VOID(pmem_deep_flush, addr, len);
}

EXPORT void pmem_drain(void)
{
	trace_sync(CALLER, NULL, 0, 0, 1);
	CALL_VOID(pmem_drain);
}

EXPORT int pmem_deep_drain(const void *addr, size_t len)
{
	trace_sync(CALLER, addr, len, 0, 1);
	return CALL(pmem_deep_drain, addr, len);
}

EXPORT void pmem_persist(const void *addr, size_t len)
{
	trace_sync(CALLER, addr, len, 1, 1);
	CALL_VOID(pmem_persist, addr, len);
}

EXPORT int pmem_deep_persist(const void *addr, size_t len)
{
	trace_sync(CALLER, addr, len, 1, 1);
	return CALL(pmem_deep_persist, addr, len);
}

EXPORT int pmem_msync(const void *addr, size_t len)
{
	trace_sync(CALLER, addr, len, 1, 1);
	return CALL(pmem_msync, addr, len);
}

/* The copy is made under the lock, so that it is not taken for stores of the program. */
#define COPY(fn, dest, len, flags, ...)                                                            \
	do {                                                                                       \
		int traced = begin(CALLER, false);                                                 \
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
	if (!inside)
		start();
	if (!begin(CALLER, true))
		return;
	region.pc = 0; /* of the stores before it, not of the mark */
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
	const char *maps = getenv("OUTAGE_PM_MAPS");

	if (!begin(0, true))
		return;
	if (maps)
		maps_write(maps, 0);
	writer_count(region.w, -1);
	end();
}

/* Nothing is called after it that we could wait for. */
EXPORT __attribute__((noreturn)) void _exit(int status)
{
	stop();
	for (;;)
		syscall(SYS_exit_group, status);
}
