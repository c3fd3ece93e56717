/* SPDX-License-Identifier: MIT */
/* writer.c - packs records into batches in the mapped file, under the lock. */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RESERVE = 4096,	   /* kept free for the sentence of a trouble, and for the end */
	AHEAD = 256 << 10, /* bytes of the file that are made ready at once */
	SPINS_PER_LOOK = 1 << 12,
};

static int self; /* this process */

static struct pm_stream_header *header(const struct writer *w)
{
	return (struct pm_stream_header *)(void *)w->file;
}

struct writer *writer_open(const char *path, uint32_t flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || st.st_size < 2 * RESERVE) {
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	struct writer *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	void *file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (w == MAP_FAILED || file == MAP_FAILED)
		return NULL;
	self = getpid();
	w->file = file;
	w->size = (uint64_t)st.st_size;
	w->at = sizeof(struct pm_stream_header);
	w->sum = PM_STREAM_SUM_INIT;
	w->alive = 1;
	w->epoch = 1;
	*header(w) = (struct pm_stream_header){ .magic = PM_STREAM_MAGIC,
						.version = PM_STREAM_VERSION,
						.header_size = sizeof(struct pm_stream_header),
						.flags = flags };
	return w;
}

/* A process that was killed may wait for its parent, and that for the lock. */
static bool is_gone(int pid)
{
	char path[32], text[512], *end, state;
	long threads = 1;

	if (kill(pid, 0))
		return errno == ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	end = strrchr(text, ')');
	if (!end || sscanf(end,
			   ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			   "%ld",
			   &state, &threads) != 2)
		return false;
	return (state == 'Z' || state == 'X') && threads <= 1; /* else others of it go on */
}

/* W2. */
static void after_death(struct writer *w)
{
	if (!w->busy)
		return;
	if (w->batch.end)
		w->at = w->batch.from;
	w->batch.end = 0;
	writer_trouble(w, "a process was killed while what it did was recorded: run it again");
	w->busy = false;
}

/*
 * A lock of our own: it is taken for each store, and mostly without a rival; one that works across
 * processes, and whose owner may be killed, costs several times as much.
 */
void writer_lock(struct writer *w)
{
	int free_ = 0, owner;

	for (unsigned i = 1; !__atomic_compare_exchange_n(&w->lock, &free_, self, false,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	     i++) {
		owner = free_;
		free_ = 0;
		if (i % SPINS_PER_LOOK)
			continue;
		sched_yield();
		/* The owner of the lock was killed, and will not give it back. */
		if (is_gone(owner) &&
		    __atomic_compare_exchange_n(&w->lock, &owner, self, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			after_death(w);
			return;
		}
	}
}

void writer_unlock(struct writer *w)
{
	__atomic_store_n(&w->lock, 0, __ATOMIC_RELEASE);
}

void writer_forked(void)
{
	self = getpid();
}

/* One call for many pages, instead of a fault for each. */
static void make_ready(struct writer *w, uint64_t size)
{
	while (w->at + size > w->ready && w->ready < w->size) {
		uint64_t from = w->ready, len = w->size - from < AHEAD ? w->size - from : AHEAD;

		madvise(w->file + from, len, MADV_POPULATE_WRITE); /* or they come one by one */
		w->ready = from + len;
	}
}

static void close_batch(struct writer *w)
{
	if (w->batch.end)
		w->sum = pm_stream_sum(w->sum, w->file + w->batch.from, w->at - w->batch.from);
	w->batch.end = 0;
}

static void put(struct writer *w, const struct pm_stream_record *r, const void *data)
{
	size_t size = pm_stream_record_size(r->kind, r->len);
	unsigned char *to = w->file + w->at;

	writer_busy(w, true);
	close_batch(w);
	make_ready(w, size);
	if (size > sizeof(*r)) {
		memset(to + size - 8, 0, 8); /* the padding */
		memcpy(to + sizeof(*r), data, r->len);
	}
	memcpy(to, r, sizeof(*r));
	w->sum = pm_stream_sum(w->sum, to, size);
	w->count++;
	w->at += size;
	writer_busy(w, false);
}

static void too_long(struct writer *w);

void writer_add(struct writer *w, const struct pm_stream_record *r, const void *data)
{
	if (w->trouble || w->ended)
		return;
	if (w->at + pm_stream_record_size(r->kind, r->len) > w->size - RESERVE)
		too_long(w);
	else
		put(w, r, data);
}

/* With room for at least one. */
static bool open_batch(struct writer *w, uint16_t cpu, uint32_t stack, uint64_t addr, uint64_t pc)
{
	struct pm_stream_record r = { .kind = PM_STREAM_BATCH,
				      .cpu = cpu,
				      .addr = addr & ~(uint64_t)(PM_STREAM_WINDOW - 1),
				      .pc = pc,
				      .flags = w->new_call ? PM_STREAM_NEW_CALL : 0,
				      .stack = stack };
	uint64_t end = w->at + sizeof(r) + PM_STREAM_BATCH_MAX;

	close_batch(w);
	if (end > w->size - RESERVE)
		end = w->size - RESERVE;
	if (w->at + sizeof(r) + 16 > end)
		return false;
	make_ready(w, end - w->at);
	memcpy(w->file + w->at, &r, sizeof(r));
	w->batch.from = w->at;
	w->batch.end = end;
	w->batch.addr = r.addr;
	w->batch.pc = pc;
	w->batch.who = writer_who(cpu, stack);
	w->batch.next = UINT64_MAX;
	w->new_call = false;
	w->at += sizeof(r);
	return true;
}

static void too_long(struct writer *w)
{
	writer_trouble(w, "the trace is longer than %llu bytes: trace less, or allow more",
		       (unsigned long long)w->size);
}

void writer_add_slowly(struct writer *w, unsigned kind, uint16_t cpu, uint32_t stack,
		       unsigned shift, uint64_t addr, uint64_t pc, const void *data)
{
	if (w->trouble || w->ended)
		return;
	if (open_batch(w, cpu, stack, addr, pc))
		writer_put_small(w, kind, shift, addr, pc, data);
	else
		too_long(w);
}

void writer_new_call(struct writer *w)
{
	close_batch(w);
	w->new_call = true;
}

void writer_add_same(struct writer *w, unsigned shift, const void *data)
{
	unsigned char *word = w->file + w->batch.more;
	uint64_t at = w->at, done = (uint64_t)w->batch.n << shift;

	if (!w->batch.more || *word != PM_STREAM_MORE_SAME) {
		w->batch.more = at;
		w->batch.n = 0;
		word = w->file + at;
		at += 8;
		done = 0;
	}
	if (done % 8 == 0) {
		memset(w->file + at, 0, 8);
		at += 8;
	}
	memcpy(word + 8 + done, data, (size_t)1 << shift);
	uint64_t head = PM_STREAM_MORE_SAME | (uint64_t)++w->batch.n << 8;
	memcpy(word, &head, 8);
	w->batch.next += (uint64_t)1 << shift;
	writer_moved(w, at);
}

void writer_trouble(struct writer *w, const char *fmt, ...)
{
	struct pm_stream_record r = { .kind = PM_STREAM_TROUBLE };
	char text[512];
	va_list args;

	if (w->trouble || w->ended)
		return;
	va_start(args, fmt);
	int len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r.len = len < 0 ? 0 : len >= (int)sizeof(text) ? (uint32_t)sizeof(text) - 1 : (uint32_t)len;
	put(w, &r, text);
	w->trouble = true;
}

void writer_set_region(struct writer *w, uint64_t size)
{
	header(w)->region_size = size;
}

uint16_t writer_new_cpu(struct writer *w)
{
	if (header(w)->cpus >= PM_STREAM_CPUS_MAX) {
		writer_trouble(w, "more than %d threads and processes were started",
			       PM_STREAM_CPUS_MAX);
		return 0;
	}
	return (uint16_t)header(w)->cpus++;
}

uint32_t writer_new_stack(struct writer *w, const uint64_t *frames, size_t n)
{
	struct pm_stream_record r = { .kind = PM_STREAM_STACK,
				      .len = (uint32_t)(n * sizeof(*frames)),
				      .addr = w->stacks + 1 };
	uint64_t before = w->count;

	writer_add(w, &r, frames);
	if (w->trouble || w->count == before)
		return 0;
	return ++w->stacks;
}

void writer_restart(struct writer *w)
{
	w->at = sizeof(struct pm_stream_header);
	w->sum = PM_STREAM_SUM_INIT;
	w->count = 0;
	w->batch.end = 0;
	w->stacks = 0;
	w->epoch++;
	w->alive = 1;
	w->trouble = w->ended = false;
}

/* The end was written too early: a program could not be started. */
static void take_end_back(struct writer *w)
{
	w->at = w->end_at;
	w->sum = w->end_sum;
	w->count--;
	w->ended = false;
}

void writer_count(struct writer *w, int change)
{
	w->alive += change;
	if (w->ended && w->alive > 0)
		take_end_back(w);
	if (w->ended || w->alive > 0)
		return;
	close_batch(w);
	struct pm_stream_record end = { .kind = PM_STREAM_END, .addr = w->count, .pc = w->sum };

	w->end_at = w->at;
	w->end_sum = w->sum;
	put(w, &end, NULL);
	w->ended = true;
}
