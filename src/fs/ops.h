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
	ref_remove, ref_rename;
/* ops_data.c */
reffs_op_fn ref_write, ref_append, ref_pwrite, ref_dwrite, ref_mmapwrite, ref_read, ref_truncate,
	ref_falloc, ref_copy_file_range, ref_reflink;
/* ops_attr.c */
reffs_op_fn ref_setxattr, ref_removexattr, ref_chmod, ref_chown, ref_utimens;

#endif
