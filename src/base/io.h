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
 * Appends the regular file NAME below DIR (see below.h), which may come from anywhere: links are
 * not followed, and files of other types are refused without blocking.
 */
int io_slurp_file(const char *dir, const char *name, size_t limit, struct strbuf *out,
		  struct err *err) must_check;

/*
 * A file that appears whole or not at all: it is written under a temporary name beside its place,
 * then renamed. "-" is standard output; standard output, devices and pipes are written to at once.
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
 * Opens a path that the user gave. If that is a symbolic link, the file behind it is replaced; in a
 * run, the link itself is, as by io_output_open_below(), because a stranger may have made the run.
 */
int io_output_open(const char *path, struct io_output *out, struct err *err) must_check;
/*
 * Opens the file NAME below DIR (see below.h). The call makes a new file; a link of that name is
 * replaced. A group may not write to it, whatever umask says: see trust.h. If `durable`,
 * io_output_commit() returns when the file and its name are on disk.
 */
int io_output_open_below(const char *dir, const char *name, bool durable, struct io_output *out,
			 struct err *err) must_check;
/* Makes the file appear. On failure, and without this call, _release removes it. */
int io_output_commit(struct io_output *out, struct err *err) must_check;
void io_output_release(struct io_output *out);
/*
 * Opens, writes and commits: the file NAME below DIR (the user's path NAME if `dir` is NULL) holds
 * the text, or is unchanged. `mode` 0: as umask says.
 */
int io_write_file(const char *dir, const char *name, const void *text, size_t len, mode_t mode,
		  struct err *err) must_check;
/* io_write_file() for a file that is on disk when the call returns. */
int io_keep_file(const char *dir, const char *name, const void *text, size_t len, struct err *err)
	must_check;

/* Waits until what was written to a file or directory is on disk. */
int io_sync_fd(int fd, const char *path, struct err *err) must_check;
/*
 * Syncs the files that findings of a run need: those of `names` (up to NULL) that exist below DIR,
 * with all files in them, then DIR itself and its name.
 */
int io_sync_run(const char *dir, const char *const *names, struct err *err) must_check;

/*
 * Exchanges two names below DIR; the exchange is on disk when the call returns. Where the file
 * system cannot do that in one step, the directory of A has the name A or A.new at each moment.
 */
int io_exchange_below(const char *dir, const char *a, const char *b, struct err *err) must_check;
extern bool io_cannot_exchange; /* for tests: behave as on a file system that cannot do that */

/*
 * A directory that appears whole and on disk, or not at all: files are written to `path`, a hidden
 * directory beside its place, synced, and the directory is renamed.
 */
struct io_newdir {
	bool unsynced; /* set by callers that accept the loss of the directory in a power cut
			*/
	int parent, fd;
	char *name, *tmp, *shown;
	char path[32]; /* the path of `fd`, for code that writes files by their path */
};

#define IO_NEWDIR_INIT                                                                             \
	{                                                                                          \
		.parent = -1, .fd = -1                                                             \
	}

/* NAME lies below DIR; see below.h. */
int io_newdir_open(const char *dir, const char *name, struct io_newdir *out, struct err *err)
	must_check;
/*
 * Makes the directory appear in place of the one that had its name; at each moment one of them is
 * there, but see io_exchange_below(). Releases `d` on failure, too.
 */
int io_newdir_commit(struct io_newdir *d, struct err *err) must_check;
/* Removes the directory if it was not committed. */
void io_newdir_release(struct io_newdir *d);
#define auto_newdir auto_call(io_newdir_release) struct io_newdir

struct open_how;

/*
 * Calls openat2(2); returns a descriptor, or -errno. With RESOLVE_BENEATH the kernel gives up
 * (EAGAIN) on a path with ".." while any process on the machine renames or mounts something; the
 * call is repeated then.
 */
int io_openat2(int root, const char *path, const struct open_how *how);

#endif
