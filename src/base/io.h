/* SPDX-License-Identifier: MIT */
/* io.h - whole reads and writes, files with a size limit, and files that appear only when complete.
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include "base/err.h"
#include "base/strbuf.h"

/* Bytes read (less than `len` only at the end of the file), or -errno. Retries EINTR. */
ssize_t io_read_full(int fd, void *data, size_t len) must_check;
ssize_t io_pread_full(int fd, void *data, size_t len, off_t off) must_check;
/* 0 or -errno. */
int io_write_full(int fd, const void *data, size_t len) must_check;
int io_pwrite_full(int fd, const void *data, size_t len, off_t off) must_check;

/* Appends a whole file ("-" is standard input) to `out`; more than `limit` bytes is an error. */
int io_slurp(const char *path, size_t limit, struct strbuf *out, struct err *err) must_check;
/*
 * The same for the regular file NAME in DIR, which may come from anywhere: what is no regular file
 * is refused, and not waited for. `ours`, if not NULL, tells whether both belong to this user, and
 * nobody else may write to them.
 */
int io_slurp_file(const char *dir, const char *name, size_t limit, struct strbuf *out, bool *ours,
		  struct err *err) must_check;
/* Opens a regular file, and nothing else; `path` names it in messages. */
int io_open_file(int dir, const char *name, int flags, const char *path, struct err *err)
	must_check;

/*
 * A file that is there whole or not at all: written under a temporary name beside its place, then
 * renamed. "-" is standard output; that, devices and pipes are written to as it comes.
 */
struct io_output {
	int fd; /* -1 when closed */
	char *path;
	char *tmp;     /* NULL if it is written in place */
	bool borrowed; /* the descriptor is not ours to close */
};

int io_output_open(const char *path, struct io_output *out, struct err *err) must_check;
/* Makes the file appear. On failure, and without this call, _release removes it. */
int io_output_commit(struct io_output *out, struct err *err) must_check;
void io_output_release(struct io_output *out);
/*
 * All of that for a text: the file DIR/NAME (NAME, if `dir` is NULL) holds it, or is as it was.
 * `mode` 0: as umask says.
 */
int io_write_file(const char *dir, const char *name, const void *text, size_t len, mode_t mode,
		  struct err *err) must_check;

#endif
