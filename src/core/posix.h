/* SPDX-License-Identifier: MIT */
/*
 * posix.h - the calls of an application to a file system, as events of a trace.
 *
 * An EV_POSIX event is one call as the recording mount saw it: which operation, on which inodes and
 * names, by whom, with what result, and for a write its data. Events stand in the order in which
 * the calls took effect; failed calls are included. Objects are inode numbers, because names
 * change; names are kept for people, and because a directory consists of them.
 *
 * In the trace file the event's data is a record:
 *
 *	byte     version, 1
 *	byte     operation (enum posix_op)
 *	varint   flags, of which only those in enum posix_flag are known
 *	varint   process, thread, user, group
 *	varint   inode, directory, second directory, second inode (0: none)
 *	varint   offset, length, mode or open flags or whence, the operation's own number
 *	varint   duration in nanoseconds
 *	varint + bytes   name, second name or link target or attribute's name, each with its NUL,
 *			 which the length counts (0: none)
 *	varint + bytes   payload
 *
 * with varints of 7 bits a byte, the lowest first, and in their shortest form. Nothing follows. The
 * result and the time are those of the event, whose other fields are 0. The numbers of operations
 * are part of the format: new ones go to the end.
 */
#ifndef CORE_POSIX_H
#define CORE_POSIX_H

#include "base/err.h"
#include "base/strbuf.h"
#include "core/event.h"

enum posix_op {
	POSIX_LOOKUP, /* never recorded unless asked for */
	POSIX_GETATTR,
	POSIX_OPEN,
	POSIX_OPENDIR,
	POSIX_READ,
	POSIX_READDIR,
	POSIX_READLINK,
	POSIX_GETXATTR,
	POSIX_ACCESS,
	POSIX_RELEASE, /* the last descriptor of an open was closed */
	POSIX_FLUSH,   /* a descriptor was closed */

	/* these change something */
	POSIX_CREATE,
	POSIX_MKNOD,
	POSIX_MKDIR,
	POSIX_SYMLINK,
	POSIX_LINK,
	POSIX_UNLINK,
	POSIX_RMDIR,
	POSIX_RENAME,
	POSIX_TMPFILE,
	POSIX_WRITE,
	POSIX_TRUNCATE,
	POSIX_FALLOCATE,
	POSIX_COPY, /* copy_file_range */
	POSIX_CHMOD,
	POSIX_CHOWN,
	POSIX_UTIMENS,
	POSIX_SETXATTR,
	POSIX_REMOVEXATTR,

	/* these persist something */
	POSIX_FSYNC,
	POSIX_FDATASYNC,
	POSIX_FSYNCDIR,
	POSIX_SYNCFS,
	POSIX_MSYNC, /* if it can be distinguished from fsync */

	POSIX_OP_END
};

enum {
	POSIX_NAME_MAX = 4096, /* bytes of a name, a link's target included, with its NUL */
};

enum posix_flag {
	POSIX_DIRECT = 1 << 0, /* O_DIRECT */
	POSIX_SYNC = 1 << 1,   /* O_SYNC; durable when the call returns */
	POSIX_DSYNC = 1 << 2,  /* O_DSYNC */
	POSIX_APPEND = 1 << 3,
	POSIX_PAGE = 1 << 4, /* pages of a mapped file, written back by the kernel */
	POSIX_FLAGS_ALL = (1 << 5) - 1,
};

struct posix_event {
	enum posix_op op;
	uint32_t flags;
	uint32_t pid, tid, uid, gid;
	uint64_t ino;	      /* the object of the call; for a creation, the new file */
	uint64_t dir, dir2;   /* the directories of `name` and `name2` */
	uint64_t ino2;	      /* the object that was replaced, removed or copied from */
	uint64_t offset, len; /* bytes; of truncate, the size in `offset`; of chown, user and group
				 (UINT32_MAX: as it is) */
	uint32_t arg;	      /* mode (of what was made or chowned: after the call), open flags,
				 fallocate mode, rename flags */
	uint64_t number;      /* the operation's number in its mount, from 1 */
	uint64_t duration_ns;
	int64_t result;		  /* the call's result, or -errno; up to 2^31 - 1 in an event */
	const char *name, *name2; /* borrowed; NULL: none */
	const void *payload;	  /* data of a write, value of an attribute, target of a link */
	size_t payload_len;
};

/* "write", "fsync", ...; the names that LazyFS and our commands use. */
const char *posix_op_name(enum posix_op op);
/* Returns POSIX_OP_END if there is no operation of this name. */
enum posix_op posix_op_find(const char *name);
bool posix_op_changes(enum posix_op op);
bool posix_op_persists(enum posix_op op);

/* Appends the record to `out`. Names must be shorter than POSIX_NAME_MAX. */
void posix_encode(const struct posix_event *p, struct strbuf *out);
/* Makes the whole event. `buf` is cleared, and holds the data: it must outlive the event. */
void posix_to_event(const struct posix_event *p, uint64_t time_ns, struct strbuf *buf,
		    struct event *out);
/* Borrows from the event. Returns -EINVAL for a wrong record; nothing is assumed of its content. */
int posix_decode(const struct event *ev, struct posix_event *out, struct err *err) must_check;

/* "sync", "direct", ...; NULL if there is no such flag. */
const char *posix_flag_name(uint32_t flag);
/* The name of `arg` for this operation: "mode", "flags"; NULL: none. */
const char *posix_arg_name(enum posix_op op);

#endif
