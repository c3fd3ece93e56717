/* SPDX-License-Identifier: MIT */
/*
 * ops.h - one function for each operation of ops.def: ref_NAME. Each does what exec_NAME in
 * workload/exec_ops.c makes a file system do, and gives the same result.
 */
#ifndef FS_OPS_H
#define FS_OPS_H

#include "fs/reffs_impl.h"

#define OP(name, ...) reffs_op_fn ref_##name;
#include "workload/ops.def"

#endif
