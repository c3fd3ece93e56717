/* SPDX-License-Identifier: MIT */
/* calls.h - an application's calls as a trace, for tests and for measurements. */
#ifndef UNIT_CALLS_H
#define UNIT_CALLS_H

#include "core/posix.h"
#include "core/trace.h"

enum { CALLS_ROOT = 100 }; /* the inode of the directory that these are about */

/* Its number. */
static inline uint64_t calls_add(struct trace *t, struct posix_event e)
{
	auto_strbuf buf = STRBUF_INIT;
	struct event ev;

	posix_to_event(&e, 0, &buf, &ev);
	return trace_append(t, &ev);
}

static inline uint64_t calls_create(struct trace *t, uint64_t ino, const char *name)
{
	return calls_add(t, (struct posix_event){ .op = POSIX_CREATE,
						  .ino = ino,
						  .dir = CALLS_ROOT,
						  .name = name,
						  .arg = 0644 });
}

static inline uint64_t calls_write(struct trace *t, uint64_t ino, uint64_t offset, const void *data,
				   size_t len)
{
	return calls_add(t, (struct posix_event){ .op = POSIX_WRITE,
						  .ino = ino,
						  .offset = offset,
						  .len = len,
						  .result = (int64_t)len,
						  .payload = data,
						  .payload_len = len });
}

/* The same letter again and again. */
static inline uint64_t calls_fill(struct trace *t, uint64_t ino, uint64_t offset, size_t len,
				  int letter)
{
	auto_free char *data = xmalloc(len);

	memset(data, letter, len);
	return calls_write(t, ino, offset, data, len);
}

/* Within the directory. */
static inline uint64_t calls_rename(struct trace *t, uint64_t ino, const char *from, const char *to)
{
	return calls_add(t, (struct posix_event){ .op = POSIX_RENAME,
						  .ino = ino,
						  .dir = CALLS_ROOT,
						  .dir2 = CALLS_ROOT,
						  .name = from,
						  .name2 = to });
}

static inline uint64_t calls_unlink(struct trace *t, uint64_t ino, const char *name)
{
	return calls_add(t,
			 (struct posix_event){
				 .op = POSIX_UNLINK, .ino = ino, .dir = CALLS_ROOT, .name = name });
}

/* fsync, fdatasync, fsync of a directory. */
static inline uint64_t calls_sync(struct trace *t, enum posix_op op, uint64_t ino)
{
	return calls_add(t, (struct posix_event){ .op = op, .ino = ino });
}

#endif
