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
 * The same for the regular file NAME below DIR (see below.h), which may come from anywhere: links
 * are not followed, and other kinds of files are refused, and not waited for.
 */
int io_slurp_file(const char *dir, const char *name, size_t limit, struct strbuf *out,
		  struct err *err) must_check;

/*
 * A file that is there whole or not at all: written under a temporary name beside its place, then
 * renamed. "-" is standard output; that, devices and pipes are written to as it comes.
 */
struct io_output {
	int fd;	    /* -1 when closed */
	int dir;    /* the directory of `name` and `tmp`; AT_FDCWD: they are paths */
	char *path; /* for messages */
	char *name;
	char *tmp;     /* NULL if it is written in place */
	bool borrowed; /* the descriptor is not ours to close */
	bool durable;  /* set by io_output_open_below() */
};

/*
 * A path that the user gave: behind a symbolic link, the file itself is replaced. In a run the link
 * is, as io_output_open_below() does it: a stranger who made the run may have laid it there.
 */
int io_output_open(const char *path, struct io_output *out, struct err *err) must_check;
/*
 * The file NAME below DIR (see below.h). The call makes a new file; a link of that name is
 * replaced. A group may not write to it, whatever umask says: see trust.h. If `durable`,
 * io_output_commit() returns when the file and its name are on disk.
 */
int io_output_open_below(const char *dir, const char *name, bool durable, struct io_output *out,
			 struct err *err) must_check;
/* Makes the file appear. On failure, and without this call, _release removes it. */
int io_output_commit(struct io_output *out, struct err *err) must_check;
void io_output_release(struct io_output *out);
/*
 * All of that for a text: the file NAME below DIR (the path NAME of the user's, if `dir` is NULL)
 * holds it, or is as it was. `mode` 0: as umask says.
 */
int io_write_file(const char *dir, const char *name, const void *text, size_t len, mode_t mode,
		  struct err *err) must_check;
/* The same; when it returns, the file is on disk. */
int io_keep_file(const char *dir, const char *name, const void *text, size_t len, struct err *err)
	must_check;

/* Waits until what was written to a file or directory is on disk. */
int io_sync_fd(int fd, const char *path, struct err *err) must_check;
/*
 * The same for what findings of a run need: those of `names` (up to NULL) that are below DIR, with
 * all they hold, then DIR itself and its name.
 */
int io_sync_run(const char *dir, const char *const *names, struct err *err) must_check;

/*
 * Exchanges two names below DIR, on disk when this returns. Where the file system cannot do that in
 * one step, there is another name, A.new, for a moment: the directory of A has one of them always.
 */
int io_exchange_below(const char *dir, const char *a, const char *b, struct err *err) must_check;
extern bool io_cannot_exchange; /* tests: as on such a file system */

/*
 * A directory that is there whole or not at all, and on disk when it is there: files are written
 * to `path`, a hidden directory beside its place, synced, and the directory is renamed.
 */
struct io_newdir {
	bool unsynced; /* set by callers that do not need it on disk: it may get lost in a power cut
			*/
	int parent, fd;
	char *name, *tmp, *shown;
	char path[32]; /* `fd`'s, for code that writes files by their path */
};

#define IO_NEWDIR_INIT                                                                             \
	{                                                                                          \
		.parent = -1, .fd = -1                                                             \
	}

/* NAME lies below DIR; see below.h. */
int io_newdir_open(const char *dir, const char *name, struct io_newdir *out, struct err *err)
	must_check;
/*
 * Makes the directory appear, in place of what had its name, without a moment in which neither is
 * there; but see io_exchange_below(). Releases it on failure, too.
 */
int io_newdir_commit(struct io_newdir *d, struct err *err) must_check;
/* Removes what was not made to appear. */
void io_newdir_release(struct io_newdir *d);
#define auto_newdir auto_call(io_newdir_release) struct io_newdir

struct open_how;

/*
 * openat2(2): a descriptor, or -errno. With RESOLVE_BENEATH the kernel gives up (EAGAIN) on a path
 * with ".." while any process on the machine renames or mounts something; it is asked again then.
 */
int io_openat2(int root, const char *path, const struct open_how *how);

#endif
