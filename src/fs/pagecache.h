/* SPDX-License-Identifier: MIT */
/*
 * pagecache.h - the content of files that was written and not synced.
 *
 * A file has a durable content, which somebody else keeps (a file below ROOT), and here what is
 * newer: pages, and sizes. A page that is held is whole: what a write does not cover is filled from
 * the durable content by the caller's `fill`. Pages are made of blocks, the unit in which what is
 * at risk is reported.
 *
 * C1: reading through here gives what a file system without faults would give.
 * C2: after a file was dropped, it reads as its durable content.
 * C3: the cost of a call depends on the bytes it concerns, not on how much is dirty or cached.
 *
 * A file is used by one thread at a time (the caller has a lock for each); different files may be
 * used at the same time. With a bound, the least recently used page of any file is evicted: it is
 * written to its file by the caller, as memory pressure would make a kernel do.
 */
#ifndef FS_PAGECACHE_H
#define FS_PAGECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pagecache_opts {
	uint32_t page_size;  /* a power of two, 512 to 1 MiB; 0: 4096 */
	uint32_t block_size; /* divides it; 0: the same */
	uint64_t pages_max;  /* 0: no bound */
	bool evict;	     /* at the bound; if not, what does not fit is durable at once */
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
};

struct pagefile *pagefile_new(struct pagecache *c, uint64_t durable_size,
			      const struct pagefile_ops *ops, void *ctx);
void pagefile_free(struct pagefile *f); /* what is dirty is lost */

/* Size as an application sees it, and as a power cut would leave it. */
uint64_t pagefile_size(const struct pagefile *f);
uint64_t pagefile_durable_size(const struct pagefile *f);
/* Nothing here differs from the durable content: it can be read and mapped directly. */
bool pagefile_is_clean(const struct pagefile *f);

/* `number`: of the operation, for reports. `time_ns`: when. */
int pagefile_write(struct pagefile *f, const void *data, uint64_t offset, size_t len,
		   uint64_t number, uint64_t time_ns) must_check;
/* Bytes read, less at the end of the file; or -errno. */
int64_t pagefile_read(struct pagefile *f, void *data, uint64_t offset, size_t len) must_check;
int pagefile_truncate(struct pagefile *f, uint64_t size, uint64_t number, uint64_t time_ns)
	must_check;
/* Zeros in a range, which may make the file longer: punch hole, zero range, plain allocation. */
int pagefile_zero(struct pagefile *f, uint64_t offset, uint64_t len, bool keep_size,
		  uint64_t number, uint64_t time_ns) must_check;
/* As lseek with SEEK_DATA and SEEK_HOLE; `below` answers for the durable content. */
int64_t pagefile_seek(struct pagefile *f, uint64_t offset, int whence,
		      int64_t (*below)(void *ctx, uint64_t offset, int whence)) must_check;

/* Makes everything durable: the pages that differ, in order of offset, and the size. */
int pagefile_sync(struct pagefile *f) must_check;
/* The same for a range of bytes, as sync_file_range or an eviction would; the size only grows. */
int pagefile_sync_range(struct pagefile *f, uint64_t offset, uint64_t len) must_check;
/* What is not durable is lost. */
void pagefile_drop(struct pagefile *f);
/*
 * After a sync that failed: as on Linux, dirty pages are taken for clean. They read as they were
 * written until they are dropped or written again, but no later sync writes them.
 */
void pagefile_fail(struct pagefile *f);

/* What is at risk, in blocks, joined where they touch: calls back with each range. */
struct pagefile_risk {
	uint64_t offset, len;
	uint64_t first, last; /* numbers of the first and last operation that wrote there */
	uint64_t since_ns;    /* when the first did */
	bool failed;	      /* taken for clean after a failed sync */
};
int pagefile_risks(const struct pagefile *f, int (*fn)(void *ctx, const struct pagefile_risk *r),
		   void *ctx);
/* Bytes in dirty blocks. */
uint64_t pagefile_dirty_bytes(const struct pagefile *f);

#endif
