/* SPDX-License-Identifier: MIT */
/*
 * ops.h - one function for each operation of ops.def: ref_NAME. Each has the effect and the result
 * of exec_NAME in workload/exec_ops.c.
 */
#ifndef FS_OPS_H
#define FS_OPS_H

#include "fs/reffs_impl.h"

#define OP(name, ...) reffs_op_fn ref_##name;
#include "workload/ops.def"

#endif
