/* SPDX-License-Identifier: MIT */
/*
 * coverage.h - which inputs were exercised, and how they ended: counts for each operation, for each
 * partition of each of its arguments, and for each error.
 *
 * A number is counted by its power of two, and where in that partition it was: at the boundary, one
 * above it, one below the next. A bitmap (flags, a mode) is counted by each bit, and by the
 * combination that all of them are.
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
	COVERAGE_COMBINATIONS = 1 << 16,
};

struct coverage_op {
	uint64_t done, failed;
	uint64_t errors[COVERAGE_ERRORS];
	uint64_t adopted[COVERAGE_ERRORS]; /* errors that were the target's own business */
	uint64_t parts[OP_ARGS_MAX][COVERAGE_PARTS];
	uint64_t places[OP_ARGS_MAX][INPUTS_POWERS + 1][PLACE_END]; /* for numbers */
};

/* A combination that was seen; free while `count` is 0. */
struct coverage_combination {
	uint32_t value;
	uint16_t op, arg;
	uint64_t count;
};

struct coverage {
	struct coverage_op ops[OP_COUNT];
	/* An open table; modes alone can have 4096 values for each operation. */
	struct coverage_combination combinations[COVERAGE_COMBINATIONS];
	uint64_t n_combinations;
	uint64_t not_counted; /* when it was full */
};

struct coverage_summary {
	uint64_t parts, all_parts;		 /* partitions of arguments that were exercised */
	uint64_t combinations, all_combinations; /* for bitmaps */
	uint64_t errors;			 /* for each operation */
};

void coverage_count(struct coverage *c, const struct op *op, int64_t result);
/* A result that the references took over; see differences.h. */
void coverage_count_adopted(struct coverage *c, const struct op *op, int64_t result);

/* Which error of which operation was adopted, and how often. */
struct coverage_adopted {
	const char *op;
	int error;
	uint64_t count;
};

struct coverage_adopted_list vec_of(struct coverage_adopted);
/* How many there are in all; adds them to `out`, if that is not NULL, the most frequent first. */
uint64_t coverage_adopted(const struct coverage *c, struct coverage_adopted_list *out);

void coverage_add(struct coverage *to, const struct coverage *from);
/* How often `value` was the value of this bitmap. */
uint64_t coverage_of_combination(const struct coverage *c, const struct op_def *def, unsigned arg,
				 uint64_t value);
/* How much was exercised, of all there is. */
void coverage_summary(const struct coverage *c, const struct inputs *in,
		      struct coverage_summary *out);
/* A table for people; a picture (SVG) of the same. */
void coverage_print(const struct coverage *c, const struct inputs *in, struct strbuf *out);
void coverage_picture(const struct coverage *c, const struct inputs *in, struct strbuf *out);

#endif
