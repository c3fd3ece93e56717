/* SPDX-License-Identifier: MIT */
/*
 * gen.h - every workload inside given bounds, by number.
 *
 * Workloads are numbered from 0 in a fixed order. Any of them can be asked for at once; going on
 * from one to the next costs well under a microsecond; memory does not grow with their number.
 */
#ifndef WORKLOAD_GEN_H
#define WORKLOAD_GEN_H

#include "base/err.h"
#include "base/strbuf.h"
#include "workload/bounds.h"

struct gen;

/* `b` must outlive the generator. Fails if the bounds hold nothing, or more than 2^63. */
int gen_new(const struct bounds *b, struct gen **out, struct err *err) must_check;
void gen_free(struct gen *g);

uint64_t gen_count(const struct gen *g);

/* The next call of gen_next() gives this one. */
void gen_seek(struct gen *g, uint64_t index);
/* The text of the next workload, header line included; valid until the next call. */
bool gen_next(struct gen *g, const char **text, size_t *len);

/*
 * A workload's name is "BOUNDS.FINGERPRINT/NUMBER". The fingerprint changes with anything that
 * would make the number mean another workload.
 */
void gen_name(const struct gen *g, uint64_t index, struct strbuf *out);
/* The set's name that a workload's name begins with, to be freed; NULL if it is not one. */
char *gen_name_set(const char *name);
/* The number in a name, checked against these bounds. */
int gen_name_index(const struct gen *g, const char *name, uint64_t *index, struct err *err)
	must_check;

#endif
