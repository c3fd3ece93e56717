/* SPDX-License-Identifier: MIT */
/*
 * source.h - bytes read from front to back, from a file, a device, a pipe or memory, so that one
 * parser serves all of them, and a fuzzer reaches all of the parser.
 */
#ifndef CORE_SOURCE_H
#define CORE_SOURCE_H

#include "base/err.h"

struct source {
	int fd;			  /* -1: memory */
	bool close_fd;		  /* false for standard input */
	char *name;		  /* for messages */
	uint64_t pos;		  /* bytes handed out so far */
	const unsigned char *mem; /* the unread bytes of the memory, or of the buffer */
	size_t mem_len;
	unsigned char *buf; /* read ahead, for a file */
};

/* "-" is standard input. A file of a run is opened as by source_open_below(). */
int source_open(const char *path, struct source *out, struct err *err) must_check;
/* Opens the regular file NAME below DIR, where no link is followed; see base/below.h. */
int source_open_below(const char *dir, const char *name, struct source *out, struct err *err)
	must_check;
/* Reads from memory that the caller owns, and that must outlive the source. */
void source_open_bytes(const void *data, size_t len, struct source *out);
void source_release(struct source *s);
#define auto_source __attribute__((cleanup(source_release))) struct source

/* Returns the bytes read, less than `len` only at the end; or -errno. */
ssize_t source_read(struct source *s, void *data, size_t len, struct err *err) must_check;

#endif
