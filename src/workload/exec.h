/* SPDX-License-Identifier: MIT */
/*
 * exec.h - performs a workload's operations on a real directory.
 *
 * E1: nothing outside the root is touched. Every path is resolved by beneath.h, openat2(2) with
 *     RESOLVE_BENEATH and RESOLVE_NO_XDEV; calls that take a name act on the last component
 *     below a directory resolved that way, and do not follow a link there. Device nodes are not
 *     opened: they lead to the host's devices. The exception is `shell`, which only starts in the
 *     root, and is refused unless the caller allows it.
 * E2: a path form leaves no descriptor open; handles stay open until closed or released.
 * E3: written bytes are a function of workload and operation (content.h).
 * E4: modes are those of the workload: the process's umask is 0 while an operation runs, and only
 *     then, as the files that are kept of a run must not be writable for others.
 * E5: between env.begin and env.end stand the system calls that the operation is made of, and
 *     nothing else: a lock that any other call takes in the kernel is a fence, which would order
 *     the stores of a file system that forgot its own. A function prepares before begin what its
 *     call needs, and closes the file after end.
 *
 * One exec per thread; because of umask, one operation per process at a time.
 */
#ifndef WORKLOAD_EXEC_H
#define WORKLOAD_EXEC_H

#include "base/err.h"
#include "base/vec.h"
#include "workload/workload.h"

/*
 * The operations that only the mounter of the file system can do. A missing function means
 * -EOPNOTSUPP.
 */
struct exec_env {
	void *ctx;
	/* Unmounts and mounts again; gives the new root, which the exec does not own. */
	int (*remount)(void *ctx, int *root);
	int (*drop_caches)(void *ctx); /* for this machine: exec_drop_here() */
	/* `sync` calls sync(2); else syncfs(2), which leaves other file systems alone. */
	bool global_sync;
	/* Commands of `shell` are run. The commands' effects are not kept to the root: see E1. */
	bool shell;
	/* Called once each for every operation, whatever its result: see E5. Each may be NULL. */
	void (*begin)(void *ctx, size_t op);
	void (*end)(void *ctx, size_t op);
};

enum exec_phase { EXEC_BEFORE, EXEC_UNDER_WAY, EXEC_AFTER };

struct exec_handle {
	const char *name;
	int fd;
};

struct exec {
	int root; /* not owned */
	struct exec_env env;
	const struct workload *workload;
	uint32_t tag;
	size_t index; /* the operation being performed */
	enum exec_phase phase;
	struct vec_of(struct exec_handle) handles;
	unsigned char *buf; /* aligned for direct I/O */
	size_t buf_size;
};

/* `root` is a directory's descriptor. The workload must outlive the exec. */
void exec_init(struct exec *x, int root, const struct workload *w, const struct exec_env *env);
void exec_release(struct exec *x);
/* Performs operation `i`. Returns the result of the system call, or -errno. */
int64_t exec_op(struct exec *x, size_t i);

/* ---- for the functions in exec_ops.c ---- */

/* Before the first system call of an operation; the second time this does nothing. */
void exec_begin(struct exec *x);
/* After the last one. Keeps errno. */
void exec_end(struct exec *x);
/* The value of `call`, the only or the last system call of an operation. */
#define exec_call(x, call)                                                                         \
	({                                                                                         \
		exec_begin(x);                                                                     \
		__auto_type value_ = (call);                                                       \
		exec_end(x);                                                                       \
		value_;                                                                            \
	})
/* Opens a path argument with `flags`. Returns a descriptor, which the caller closes, or -errno. */
int exec_open_path(struct exec *x, const char *path, int flags, mode_t mode);
/* As exec_open_path(), where open(2) is a system call of the operation. */
int exec_open_call(struct exec *x, const char *path, int flags, mode_t mode);
/* Opens the directory that holds the last component of `path`; `name` gets that component. */
int exec_open_parent(struct exec *x, const char *path, const char **name);
/* Returns a handle's descriptor, or -EBADF. */
int exec_handle_fd(struct exec *x, const char *name);
void exec_set_handle(struct exec *x, const char *name, int fd);
int exec_close_handle(struct exec *x, const char *name);
void exec_close_all(struct exec *x);
/* Drops the caches of this machine, for struct exec_env. */
int exec_drop_here(void *ctx);
/* `len` bytes of this operation's content for `offset`, aligned; NULL if there is no memory. */
unsigned char *exec_content(struct exec *x, uint64_t offset, size_t len);
unsigned char *exec_buffer(struct exec *x, size_t len);

#endif
