/* SPDX-License-Identifier: MIT */
/*
 * coverage.h - which inputs were exercised, and how they ended: counts for each operation, for each
 * partition of each of its arguments, and for each error.
 *
 * Plain numbers without pointers, so that it can lie in memory that processes share; one process
 * counts, others may read.
 */
#ifndef EXPLORE_COVERAGE_H
#define EXPLORE_COVERAGE_H

#include "base/strbuf.h"
#include "explore/inputs.h"

enum {
	COVERAGE_ERRORS = 134, /* errno values of Linux */
	COVERAGE_PARTS = 64,   /* partitions of one argument that are told apart */
};

struct coverage_op {
	uint64_t done, failed;
	uint64_t errors[COVERAGE_ERRORS];
	uint64_t parts[OP_ARGS_MAX][COVERAGE_PARTS];
};

struct coverage {
	struct coverage_op ops[INPUTS_OPS_MAX];
};

void coverage_count(struct coverage *c, const struct op *op, int64_t result);
void coverage_add(struct coverage *to, const struct coverage *from);
/* Partitions that were exercised, of those there are: 0 if nothing can be said of an argument. */
void coverage_summary(const struct coverage *c, const struct inputs *in, uint64_t *seen,
		      uint64_t *all);
/* A table for people; a picture (SVG) of the same. */
void coverage_print(const struct coverage *c, const struct inputs *in, struct strbuf *out);
void coverage_picture(const struct coverage *c, const struct inputs *in, struct strbuf *out);

#endif
