/* SPDX-License-Identifier: MIT */
/*
 * pool_worker.c - the calls of a worker of a pool: take units, tell, and give signs of life.
 *
 * A worker ends if its parent no longer reads.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "base/pool_impl.h"

enum { STATUS_ALONE = 1 };

unsigned pool_number(const struct pool_worker *w)
{
	return w->number;
}

void pool_beat(struct pool_worker *w)
{
	atomic_fetch_add(&w->beat->beats, 1);
}

void pool_beat_slow(struct pool_worker *w)
{
	atomic_fetch_add(&w->beat->slow, 1);
}

void pool_ready(struct pool_worker *w)
{
	atomic_store(&w->shared->begun, true);
	atomic_store(&w->beat->ready, true);
}

void pool_at(struct pool_worker *w, uint64_t step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->beat->at, sizeof(w->beat->at), fmt, ap);
	va_end(ap);
	atomic_store(&w->beat->step, step);
	pool_beat(w);
}

bool pool_next(struct pool_worker *w, uint64_t *unit, struct strbuf *data)
{
	struct pool_frame f;
	auto_strbuf unwanted = STRBUF_INIT;

	data = data ? data : &unwanted;
	strbuf_clear(data);
	if (atomic_load(&w->shared->stop) || fault_fails("pool.next") ||
	    io_read_full(w->fd, &f, sizeof(f)) != (ssize_t)sizeof(f))
		return false;
	assert(f.magic == POOL_MAGIC); /* P1 of pool.c: the parent does not die in the middle */
	if (f.len && io_read_full(w->fd, strbuf_grow(data, f.len), f.len) != (ssize_t)f.len)
		return false;
	data->len = f.len;
	if (atomic_load(&w->shared->stop))
		return false;
	atomic_store(&w->beat->step, POOL_NONE);
	atomic_store(&w->beat->unit, f.unit);
	atomic_store(&w->beat->seq, f.seq);
	pool_beat(w);
	w->seq = f.seq;
	*unit = f.unit;
	return true;
}

static void send_all(struct pool_worker *w, const void *data, size_t len)
{
	for (const char *at = data; len;) {
		ssize_t n = fault_fails("pool.tell") ? -1 : send(w->fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(STATUS_ALONE);
		at += n;
		len -= (size_t)n;
		pool_beat(w);
	}
}

void pool_tell(struct pool_worker *w, uint32_t kind, const void *data, size_t len)
{
	struct pool_frame f = { .kind = kind, .magic = POOL_MAGIC, .len = len, .seq = w->seq };

	assert(len < POOL_LEN_MAX);
	send_all(w, &f, sizeof(f));
	send_all(w, data, len);
}

void pool_done(struct pool_worker *w, const void *data, size_t len)
{
	pool_tell(w, POOL_RESULT, data, len);
}

void *pool_share(size_t size, struct err *err)
{
	void *memory = fault_fails("pool.share") ? MAP_FAILED
						 : mmap(NULL, size, PROT_READ | PROT_WRITE,
							MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	err_set(err, -errno, "cannot share memory with workers: %m");
	return NULL;
}

void pool_unshare(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}
