/* SPDX-License-Identifier: MIT */
/*
 * pagecache.h - the content of files that was written and not synced.
 *
 * A file has a durable content, which the caller keeps (a file below ROOT), and here its newer
 * content: pages, holes and sizes. Pages are made of blocks, the unit in which content is held and
 * in which what is at risk is reported. A block that is held is whole: bytes that a write does not
 * cover are filled from the durable content by the caller's `fill`. One that is durable is held no
 * longer.
 *
 * C1: reading through here gives what a file system without faults would give.
 * C2: after a file was dropped, it reads as its durable content.
 * C3: the cost of a call depends on the bytes it concerns, not on how much is dirty or cached, nor
 *     on how large the file is. (Zeros in a range cost what is held there; many separate ranges
 *     of zeros in one file that wait for a sync are an array, which is searched and shifted.)
 *
 * A file is changed by one thread at a time (the caller has a lock for each), and then no other
 * uses it; while none does, many may read and ask about it, if `fill` can be called by many.
 * Different files may be used at the same time. With a bound, the least recently used page of any
 * file is evicted: it is written to its file by the caller, as memory pressure would make a kernel
 * do. That file may be in use by another thread; so its lock is tried, never waited for, and a page
 * whose file is busy stays. The bound can therefore be passed for a moment, if the oldest pages all
 * belong to files in use or cannot be written; later calls evict what is too much.
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
	uint32_t block_size; /* divides it, at least 64; 0: the same */
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

/* How a file's durable content is read and written; each gives 0 or -errno. */
struct pagefile_ops {
	/* Reads `len` bytes at `offset`; beyond the end there are zeros. */
	int (*fill)(void *ctx, void *data, uint64_t offset, size_t len);
	int (*write)(void *ctx, const void *data, uint64_t offset, size_t len);
	int (*resize)(void *ctx, uint64_t size);
	/* As `write`, from `n` pieces of memory (at most PAGEFILE_PIECES); NULL: `write` is used */
	int (*writev)(void *ctx, const struct iovec *v, int n, uint64_t offset);
	/* Makes a range below the end zeros: punches a hole. NULL: zeros are written. */
	int (*zero)(void *ctx, uint64_t offset, uint64_t len);
	/*
	 * The lock that guards this file, for evicting a page while another file is written:
	 * true if it was free and is now held, for changing. Called inside the cache, so it must
	 * neither wait nor call back. NULL: only calls about this file evict its pages.
	 */
	bool (*trylock)(void *ctx);
	void (*unlock)(void *ctx);
};

enum { PAGEFILE_PIECES = 256 };

/* To be freed with the file's lock held. */
struct pagefile *pagefile_new(struct pagecache *c, uint64_t durable_size,
			      const struct pagefile_ops *ops, void *ctx);
void pagefile_free(struct pagefile *f); /* dirty data is lost; NULL is fine */

/* Size as an application sees it, and as a power cut would leave it. */
uint64_t pagefile_size(const struct pagefile *f);
uint64_t pagefile_durable_size(const struct pagefile *f);
/* Nothing here differs from the durable content: it can be read and mapped directly. */
bool pagefile_is_clean(const struct pagefile *f);

/*
 * `number`: of the operation, for reports. `time_ns`: when. -EFBIG beyond what a file can have. If
 * filling or evicting fails half way, the part before is written, and the size says how much.
 */
int pagefile_write(struct pagefile *f, const void *data, uint64_t offset, size_t len,
		   uint64_t number, uint64_t time_ns) must_check;
/* The same, and exactly these bytes are durable at once; with them a truncation below their end. */
int pagefile_write_durable(struct pagefile *f, const void *data, uint64_t offset, size_t len)
	must_check;
/* Bytes read, less at the end of the file; or -errno. */
int64_t pagefile_read(struct pagefile *f, void *data, uint64_t offset, size_t len) must_check;
int pagefile_truncate(struct pagefile *f, uint64_t size, uint64_t number, uint64_t time_ns)
	must_check;
/*
 * Zeros in a range, which may make the file longer: punch hole, zero range. (Plain allocation
 * leaves what is there: it is a truncation to a larger size, or nothing.)
 */
int pagefile_zero(struct pagefile *f, uint64_t offset, uint64_t len, bool keep_size,
		  uint64_t number, uint64_t time_ns) must_check;
/* As lseek with SEEK_DATA and SEEK_HOLE; `below` answers for the durable content. */
int64_t pagefile_seek(struct pagefile *f, uint64_t offset, int whence,
		      int64_t (*below)(void *ctx, uint64_t offset, int whence)) must_check;

/*
 * Makes everything durable: a truncation, holes, the blocks that differ, in order of offset, and
 * the size. If it fails half way, unwritten data is as dirty as before.
 */
int pagefile_sync(struct pagefile *f) must_check;
/* The same for a range of bytes, as sync_file_range or an eviction would; the size only grows,
 * unless something is written beyond where the file was truncated: then that comes first. */
int pagefile_sync_range(struct pagefile *f, uint64_t offset, uint64_t len) must_check;
/*
 * Makes durable what a journal of metadata would, without data: truncations, holes, and a size that
 * was set; with `grown` also a size that writes gave, so that the file ends in zeros.
 */
int pagefile_sync_size(struct pagefile *f, bool grown) must_check;
/*
 * Drops the content that is not durable. Where pages are not evicted, this takes the same time for
 * many.
 */
void pagefile_drop(struct pagefile *f);
/*
 * After a sync that failed: as on Linux, dirty pages are taken for clean. Failed pages read as they
 * were written until they are dropped or written again, but no later sync writes them.
 */
void pagefile_fail(struct pagefile *f);

/*
 * The parts at risk: blocks, joined where they touch, in order of offset; then holes; then the
 * size. Calls back with each; a non-zero return ends it and is given back.
 */
struct pagefile_risk {
	enum { RISK_DATA, RISK_HOLE, RISK_SIZE } kind; /* RISK_SIZE: the bytes that come or go */
	uint64_t offset, len;
	uint64_t first, last; /* numbers of the first and last operation that wrote there */
	uint64_t since_ns;    /* when the first did */
	bool failed;	      /* taken for clean after a failed sync */
};
int pagefile_risks(const struct pagefile *f, int (*fn)(void *ctx, const struct pagefile_risk *r),
		   void *ctx);
/* Bytes in blocks that a sync would write. */
uint64_t pagefile_dirty_bytes(const struct pagefile *f);

#endif
