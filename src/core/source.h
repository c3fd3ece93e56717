/* SPDX-License-Identifier: MIT */
/*
 * source.h - bytes read from front to back, from a file, a device, a pipe or memory, so that one
 * parser serves them all and a fuzzer reaches what a file does.
 */
#ifndef CORE_SOURCE_H
#define CORE_SOURCE_H

#include "base/err.h"

struct source {
	int fd;			  /* -1: memory */
	bool close_fd;		  /* false for standard input */
	char *name;		  /* for messages */
	uint64_t pos;		  /* bytes handed out so far */
	const unsigned char *mem; /* the rest of the memory, or of the buffer */
	size_t mem_len;
	unsigned char *buf; /* read ahead, for a file */
};

/* "-" is standard input. A file of a run is opened as source_open_below() does. */
int source_open(const char *path, struct source *out, struct err *err) must_check;
/* The regular file NAME below DIR, where no link is followed; see base/below.h. */
int source_open_below(const char *dir, const char *name, struct source *out, struct err *err)
	must_check;
/* The bytes stay the caller's and must outlive the source. */
void source_open_bytes(const void *data, size_t len, struct source *out);
void source_release(struct source *s);
#define auto_source __attribute__((cleanup(source_release))) struct source

/* Bytes read, less than `len` only at the end; or -errno. */
ssize_t source_read(struct source *s, void *data, size_t len, struct err *err) must_check;

#endif
