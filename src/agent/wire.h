/* SPDX-License-Identifier: MIT */
/*
 * wire.h - the messages between the host and the agent in a guest.
 *
 * The channel is a second disk of the guest, the mailbox, which the host serves as it serves the
 * first one. The agent reads at MAIL_COMMANDS, where the host delays the read until it has a
 * message, and writes at MAIL_ANSWERS. So messages are whole, of any length, and need only the
 * disk's driver.
 *
 *	message:  head, then `count` parts
 *	head:     magic, version, count, length of all parts in bytes, serial number (32 bits each)
 *	part:     command, status, length (32 bits each), then so many bytes
 *
 * Numbers are in the byte order of the machine, which host and guest share. The host sends parts
 * with status 0; the agent answers each of them, with the same command, in the same order. A status
 * below 0 is -errno: the agent could not do its work, or (AGENT_NOT_DONE) did not try, as an
 * earlier part had failed. The result of the file system under test is in the bytes.
 *
 * Neither side trusts the other: the guest's answers come from a kernel under test.
 */
#ifndef AGENT_WIRE_H
#define AGENT_WIRE_H

#include "base/err.h"
#include "base/strbuf.h"

enum {
	WIRE_MAGIC = 0x6761746f,
	WIRE_VERSION = 7,
	WIRE_HEAD = 20,
	WIRE_PART = 12,
	WIRE_MAX = 96 << 20, /* bytes of a message */

	MAIL_COMMANDS = 1 << 20, /* where no search for a partition table reads */
	MAIL_ANSWERS = 128 << 20,
	MAIL_READ = 64 << 10, /* bytes that the agent reads first */
	MAIL_BYTES = 256 << 20,

	/*
	 * A guest has little memory: the files' contents are sent with the tree only if they are
	 * small.
	 */
	WIRE_CONTENT_FILE = 256 << 10,
	WIRE_CONTENT_ALL = 4 << 20,
	WIRE_READ_MAX = 4 << 20, /* larger ones are read in pieces of at most so many bytes */
};

#define MAIL_ID "outage-mail"
#define DISK_ID "outage"
/* The agent's words on the console when no disk shows up. */
#define NO_DISK "there is no disk; is virtio_blk there?"

enum agent_command {
	AGENT_HELLO = 1, /* -> text: release of the kernel, text: its name for the disk */
	/* text: type, text: source, "" is the disk, u32: flags, text: options -> i32: errno, text:
	 * what failed */
	AGENT_MOUNT,
	AGENT_UMOUNT, /* u32: cut it off first -> i32: errno, u32: it was cut off */
	AGENT_BEGIN,  /* text: workload; its operations follow */
	AGENT_OP,     /* u32: which -> i64: result, u32: it is still mounted */
	AGENT_END,
	/*
	 * u32: fields, u64: content limit, u32: n, n texts to ignore -> text: tree; content of
	 * files within the limit that is not in it is read by AGENT_READ
	 */
	AGENT_WALK,
	/*
	 * text: tree, "" for that of the last walk, u32: ms of patience with a full file system ->
	 * u32: n, n times kind u32, path, words, promise
	 */
	AGENT_USABLE,
	AGENT_STAT,   /* text: path -> i32: errno, u32: mode, u64: size, u64: blocks */
	AGENT_SYNC,   /* -> i32: errno */
	AGENT_ROOM,   /* -> i32: errno, u64: bytes free */
	AGENT_FILL,   /* text: name, u64: bytes -> i32: errno */
	AGENT_RUN,    /* u32: n, n texts; "{disk}" is the disk -> i32: exit status, text: output */
	AGENT_FREEZE, /* -> i32: errno; written data is on the disk, and nothing more is written */
	AGENT_THAW,   /* -> i32: errno */
	AGENT_READ,   /* text: path, u64: offset, u32: length -> i32: errno, bytes, fewer at the end
		       */
	AGENT_CLOCK,  /* u64: seconds since 1970 that it shall be -> i32: errno */
	/* u64: bytes, u64: mark; numbers the pages of the flash for vhost_disk_find_flash() -> i32:
	 * errno */
	AGENT_FLASH,
	AGENT_TRACE,	/* u32: begin or end; marks it for the tracer of persistent memory */
	AGENT_MARK,	/* text; marks it for that tracer */
	AGENT_SELFTEST, /* runs that tracer's test on persistent memory -> u32: exit status */
	AGENT_SYMBOLS,	/* -> text: the kernel's functions, as in /proc/kallsyms */
	/*
	 * text: command, u32: operations done, text: the one under way, bytes: what it reads ->
	 * u32: it succeeded, u32: its output was cut, text: how it ended, bytes: output, bytes:
	 * errors
	 */
	AGENT_USER,
	/* u32: n, n texts: paths -> n times i32: errno, u64: seconds and u32: nanoseconds of mtime
	 * and of ctime; nothing is opened, so that no access time changes */
	AGENT_TIMES,
	/* u32: flags, as they were for the mount but for MS_RDONLY -> i32: errno */
	AGENT_REMOUNT,
	AGENT_COMMAND_END
};

enum { AGENT_NOT_DONE = -125 }; /* -ECANCELED */

/* ---- writing ---- */

void wire_put_u32(struct strbuf *out, uint32_t value);
void wire_put_u64(struct strbuf *out, uint64_t value);
void wire_put_text(struct strbuf *out, const char *text);
void wire_put_bytes(struct strbuf *out, const void *data, size_t len);

struct wire_out {
	struct strbuf text;
	uint32_t count;
	size_t part; /* where the current part begins */
};

void wire_start(struct wire_out *w, uint32_t serial);
/* Begins a part; the bytes that are then added to w->text belong to it. */
void wire_part(struct wire_out *w, enum agent_command command, int32_t status);
/* Sets the status of the current part, and drops its bytes. */
void wire_fail(struct wire_out *w, int32_t status);
/* Fills in counts and lengths. */
void wire_finish(struct wire_out *w);
void wire_release(struct wire_out *w);

/* ---- reading ---- */

/* A part that is being read; after a field was missing, all are 0 or "" and `bad` stays set. */
struct wire_in {
	const unsigned char *p;
	size_t left;
	bool bad;
};

uint32_t wire_u32(struct wire_in *in);
uint64_t wire_u64(struct wire_in *in);
/* Returns a text, which points into the message and ends with a NUL; no NUL is inside. */
const char *wire_text(struct wire_in *in);
const unsigned char *wire_bytes(struct wire_in *in, size_t *len);

struct wire_head {
	uint32_t count, len, serial;
};

/* Reads the head in the first WIRE_HEAD bytes; -EPROTO if it is wrong, or of another version. */
int wire_head(const unsigned char *text, struct wire_head *out, struct err *err) must_check;
/* Reads the next part of `in`; false at the end, or if the part is cut short (`bad`). */
bool wire_next(struct wire_in *in, uint32_t *command, int32_t *status, struct wire_in *part);

#endif
