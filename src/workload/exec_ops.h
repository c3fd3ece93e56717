/* SPDX-License-Identifier: MIT */
/* exec_ops.h - one function for each operation of ops.def: exec_NAME. */
#ifndef WORKLOAD_EXEC_OPS_H
#define WORKLOAD_EXEC_OPS_H

#include "base/util.h"

struct exec;
struct op;

#define OP(name, ...) int64_t exec_##name(struct exec *x, const struct op *op);
#include "workload/ops.def"

#endif
