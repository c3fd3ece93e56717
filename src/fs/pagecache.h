/* SPDX-License-Identifier: MIT */
/*
 * pagecache.h - the cache of file content that was written and not synced.
 *
 * The caller keeps the durable content of a file (a file below ROOT), the cache its newer content:
 * pages, holes and sizes. Pages are made of blocks, the unit in which content is held and in which
 * the data at risk is reported. A block that is held is whole: the caller's `fill` reads the bytes
 * that a write does not cover from the durable content. A durable block is no longer held.
 *
 * C1: reading through the cache gives the content that a file system without faults would give.
 * C2: after a file was dropped, it reads as its durable content.
 * C3: the cost of a call depends on the bytes it concerns, not on how much is dirty or cached, nor
 *     on how large the file is. (Zeroing a range costs time for the blocks held there; many
 *     separate ranges of zeros in one file that wait for a sync are an array, which is searched and
 *     shifted.)
 *
 * Only one thread at a time may change a file (the caller has a lock for each), and no other may
 * use it meanwhile; otherwise many threads may read the file, if `fill` can be called by many.
 * Different files may be used at the same time. With a bound, the least recently used page of any
 * file is evicted: the caller's functions write it to its file, as a kernel does under memory
 * pressure. That file may be in use by another thread; so its lock is tried, never waited for, and
 * a page whose file is busy stays. The bound can therefore be passed for a moment, if the oldest
 * pages all belong to files in use or cannot be written; later calls evict the excess.
 */
#ifndef FS_PAGECACHE_H
#define FS_PAGECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"

struct pagecache_opts {
	uint32_t page_size;  /* a power of two, 512 to 1 MiB; 0: 4096 */
	uint32_t block_size; /* a divisor of page_size, at least 64; 0: page_size */
	uint64_t pages_max;  /* 0: no bound */
	bool evict;	     /* at the bound; if not, data that does not fit is durable at once */
};

struct pagecache;
struct pagefile;

int pagecache_new(const struct pagecache_opts *opts, struct pagecache **out, struct err *err)
	must_check;
void pagecache_free(struct pagecache *c);	     /* after its files */
uint64_t pagecache_pages(const struct pagecache *c); /* held now */
const struct pagecache_opts *pagecache_opts(
	const struct pagecache *c); /* with defaults filled in */

/* Functions that read and write a file's durable content; each returns 0 or -errno. */
struct pagefile_ops {
	/* Reads `len` bytes at `offset`; beyond the end there are zeros. */
	int (*fill)(void *ctx, void *data, uint64_t offset, size_t len);
	int (*write)(void *ctx, const void *data, uint64_t offset, size_t len);
	int (*resize)(void *ctx, uint64_t size);
	/* As `write`, from `n` pieces of memory (at most PAGEFILE_PIECES); NULL: `write` is used */
	int (*writev)(void *ctx, const struct iovec *v, int n, uint64_t offset);
	/* Zeroes a range below the end: punches a hole. NULL: zeros are written. */
	int (*zero)(void *ctx, uint64_t offset, uint64_t len);
	/*
	 * The lock that guards this file, for evicting a page while another file is written:
	 * true if the lock was free and is now held, for changing. Called inside the cache, so the
	 * function must neither wait nor call back. NULL: only calls about this file evict its
	 * pages.
	 */
	bool (*trylock)(void *ctx);
	void (*unlock)(void *ctx);
};

enum { PAGEFILE_PIECES = 256 };

/* Makes a file, which must be freed with its lock held. */
struct pagefile *pagefile_new(struct pagecache *c, uint64_t durable_size,
			      const struct pagefile_ops *ops, void *ctx);
void pagefile_free(struct pagefile *f); /* dirty data is lost; NULL is fine */

/* The size that an application sees, and the size after a power cut. */
uint64_t pagefile_size(const struct pagefile *f);
uint64_t pagefile_durable_size(const struct pagefile *f);
/* True if the file does not differ from its durable content, which can then be read directly. */
bool pagefile_is_clean(const struct pagefile *f);

/*
 * Writes. `number` is the operation's, for reports, `time_ns` its time. Returns -EFBIG beyond the
 * largest file. If filling or evicting fails half way, the part before is written, and the size
 * tells how much.
 */
int pagefile_write(struct pagefile *f, const void *data, uint64_t offset, size_t len,
		   uint64_t number, uint64_t time_ns) must_check;
/* Writes bytes that are durable at once, and no others; so is a truncation below their end. */
int pagefile_write_durable(struct pagefile *f, const void *data, uint64_t offset, size_t len)
	must_check;
/* Returns the bytes read, less than `len` at the end of the file; or -errno. */
int64_t pagefile_read(struct pagefile *f, void *data, uint64_t offset, size_t len) must_check;
int pagefile_truncate(struct pagefile *f, uint64_t size, uint64_t number, uint64_t time_ns)
	must_check;
/*
 * Zeroes a range, which may make the file longer: punch hole, zero range. (Plain allocation changes
 * no content: it is a truncation to a larger size, or nothing.)
 */
int pagefile_zero(struct pagefile *f, uint64_t offset, uint64_t len, bool keep_size,
		  uint64_t number, uint64_t time_ns) must_check;
/* As lseek with SEEK_DATA and SEEK_HOLE; `below` does the same for the durable content. */
int64_t pagefile_seek(struct pagefile *f, uint64_t offset, int whence,
		      int64_t (*below)(void *ctx, uint64_t offset, int whence)) must_check;

/*
 * Makes the file durable: a truncation, holes, the blocks that differ, in order of offset, and the
 * size. If the call fails half way, unwritten data is still dirty.
 */
int pagefile_sync(struct pagefile *f) must_check;
/*
 * Makes a range of bytes durable, as sync_file_range or an eviction would. The size only grows; but
 * if bytes beyond a truncation are written, the truncation comes first.
 */
int pagefile_sync_range(struct pagefile *f, uint64_t offset, uint64_t len) must_check;
/*
 * Makes metadata durable without data, as a journal would: truncations, holes, and a size that was
 * set; with `grown` also the size after writes, so that the file ends in zeros.
 */
int pagefile_sync_size(struct pagefile *f, bool grown) must_check;
/*
 * Drops the content that is not durable. If pages are not evicted, the time does not depend on
 * their number.
 */
void pagefile_drop(struct pagefile *f);
/*
 * Marks dirty pages as clean after a sync that failed, as Linux does. Failed pages keep their new
 * content until they are dropped or written again, but no later sync writes them.
 */
void pagefile_fail(struct pagefile *f);

/*
 * Calls back for each part at risk: blocks, joined where they touch, in order of offset; then
 * holes; then the size. A non-zero return ends the calls and is returned.
 */
struct pagefile_risk {
	enum { RISK_DATA, RISK_HOLE, RISK_SIZE } kind; /* RISK_SIZE: the bytes that come or go */
	uint64_t offset, len;
	uint64_t first, last; /* numbers of the first and last operation that wrote there */
	uint64_t since_ns;    /* the time of the first */
	bool failed;	      /* taken for clean after a failed sync */
};
int pagefile_risks(const struct pagefile *f, int (*fn)(void *ctx, const struct pagefile_risk *r),
		   void *ctx);
/* Bytes in blocks that a sync would write. */
uint64_t pagefile_dirty_bytes(const struct pagefile *f);

#endif
