/* SPDX-License-Identifier: MIT */
/*
 * kmsg.h - the complaints in the kernel's log.
 *
 * Some complaints name a block device. Others, bugs and warnings of the kernel itself, do not; they
 * come as a block of lines which tells the process that ran into it. All processes of a run read
 * the same log, so each must know which of those blocks are its own:
 *
 * K1: a block is a reader's own if it names the reader's device, the reader or a process below it.
 *     No reader takes a block that may be another's.
 * K2: a reader claims the blocks that it takes; the parent of all readers keeps the blocks that
 *     none claimed, up to KMSG_KEPT of them, so none of these is lost. A reader without a parent
 *     (no `shared`) keeps unclaimed blocks, too.
 * K3: blocks of a known process that is not of this run belong to no reader.
 */
#ifndef CHECK_KMSG_H
#define CHECK_KMSG_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum { KMSG_CLAIMS = 256, KMSG_KEPT = 100 };

/* The memory that all readers of a run share, zeroed at first. */
struct kmsg_shared {
	_Atomic bool lost;	  /* records were overwritten before they were read */
	_Atomic uint64_t claimed; /* the number of claims; the last KMSG_CLAIMS are known */
	_Atomic uint64_t claims[KMSG_CLAIMS];
};

/* A complaint of the kernel itself, and the lines that came with it. */
struct kmsg_block {
	uint64_t seq; /* the number of its first line in the log */
	pid_t pid;    /* the process that caused it; 0: unknown */
	unsigned lines;
	char *text; /* lines; the first is the complaint */
};

void kmsg_block_release(struct kmsg_block *b);
/*
 * Adds the block to the file NAME below DIR (see base/below.h), if there is one. The result is a
 * new file, which is on disk when the call returns.
 */
int kmsg_block_append(const struct kmsg_block *b, const char *dir, const char *name,
		      struct err *err) must_check;

struct kmsg {
	int fd;			    /* -1: it cannot be read */
	struct kmsg_shared *shared; /* NULL: no other reader */
	bool lost, told_lost, told_full;
	struct kmsg_block block; /* the block being read, if it has lines */
	struct strbuf lines;
	uint64_t grew_ns;			    /* when it last grew */
	struct vec_of(struct kmsg_block) unclaimed; /* kept by the parent */
};

/* Opens the log, at its end. */
void kmsg_open(struct kmsg *k, struct kmsg_shared *shared);
void kmsg_close(struct kmsg *k);

/*
 * Adds the complaints since the last call: the reader's own blocks and, if `of_device`, complaints
 * about the block device `device`. True if there were any.
 */
bool kmsg_read(struct kmsg *k, const char *device, bool of_device, struct strbuf *out);

/* For the parent: keeps blocks that may be of this run. Called from time to time. */
void kmsg_watch(struct kmsg *k);
/* Called at the end: gives the next unclaimed block to the caller; false if there is none. */
bool kmsg_next_unclaimed(struct kmsg *k, struct kmsg_block *out);
/* Reads the log once more, passes all unclaimed blocks to `take`, and closes. */
void kmsg_finish(struct kmsg *k, void (*take)(void *ctx, const struct kmsg_block *b), void *ctx);

/* Whether one line is a complaint: of the kernel itself, or of a device. */
bool kmsg_complains(const char *line, const char *device);
/* The process that a line of a block names, or 0. */
pid_t kmsg_pid(const char *line);

#endif
