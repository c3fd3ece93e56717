/* SPDX-License-Identifier: MIT */
/* exec_ops.h - one function an operation; the table in optable.c names them. */
#ifndef WORKLOAD_EXEC_OPS_H
#define WORKLOAD_EXEC_OPS_H

#include "base/util.h"

struct exec;
struct op;

#define DECLARE_EXEC(name) int64_t exec_##name(struct exec *x, const struct op *op)

DECLARE_EXEC(creat);
DECLARE_EXEC(open);
DECLARE_EXEC(close);
DECLARE_EXEC(mkdir);
DECLARE_EXEC(rmdir);
DECLARE_EXEC(mknod);
DECLARE_EXEC(mkfifo);
DECLARE_EXEC(link);
DECLARE_EXEC(symlink);
DECLARE_EXEC(unlink);
DECLARE_EXEC(remove);
DECLARE_EXEC(rename);
DECLARE_EXEC(write);
DECLARE_EXEC(append);
DECLARE_EXEC(pwrite);
DECLARE_EXEC(dwrite);
DECLARE_EXEC(mmapwrite);
DECLARE_EXEC(read);
DECLARE_EXEC(truncate);
DECLARE_EXEC(falloc);
DECLARE_EXEC(copy_file_range);
DECLARE_EXEC(reflink);
DECLARE_EXEC(setxattr);
DECLARE_EXEC(removexattr);
DECLARE_EXEC(chmod);
DECLARE_EXEC(chown);
DECLARE_EXEC(utimens);
DECLARE_EXEC(fsync);
DECLARE_EXEC(fdatasync);
DECLARE_EXEC(sync);
DECLARE_EXEC(syncfs);
DECLARE_EXEC(sync_file_range);
DECLARE_EXEC(remount);
DECLARE_EXEC(drop_caches);
DECLARE_EXEC(shell);

#endif
