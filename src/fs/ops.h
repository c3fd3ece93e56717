/* SPDX-License-Identifier: MIT */
/*
 * ops.h - every operation of op_table, as functions that ops.c dispatches to. Each does what the
 * function of the same name in exec_ops.c makes a file system do, and gives the same result.
 */
#ifndef FS_OPS_H
#define FS_OPS_H

#include "fs/internal.h"

/* ops_name.c */
reffs_op_fn ref_mkdir, ref_rmdir, ref_mknod, ref_mkfifo, ref_link, ref_symlink, ref_unlink,
	ref_remove;
/* ops_rename.c */
reffs_op_fn ref_rename;
/* ops_data.c */
reffs_op_fn ref_write, ref_append, ref_pwrite, ref_dwrite, ref_mmapwrite, ref_read, ref_truncate,
	ref_copy_file_range, ref_reflink;
/* ops_falloc.c */
reffs_op_fn ref_falloc;
/* The plain mode, which mmapwrite needs as well. */
int64_t falloc_file(struct reffs *r, const struct opened *f, int mode, uint64_t offset,
		    uint64_t len);
/* ops_attr.c */
reffs_op_fn ref_setxattr, ref_removexattr, ref_chmod, ref_chown, ref_utimens;

#endif
