/* SPDX-License-Identifier: MIT */
/*
 * gen.h - generates every workload inside given bounds, by number.
 *
 * Workloads are numbered from 0 in a fixed order. A caller can ask for any number at once; to go on
 * from one workload to the next costs well under a microsecond; memory does not grow with their
 * number.
 */
#ifndef WORKLOAD_GEN_H
#define WORKLOAD_GEN_H

#include "base/err.h"
#include "base/strbuf.h"
#include "workload/bounds.h"

struct gen;

/* `b` must outlive the generator. Fails if the bounds have no workload, or more than 2^63. */
int gen_new(const struct bounds *b, struct gen **out, struct err *err) must_check;
void gen_free(struct gen *g);

uint64_t gen_count(const struct gen *g);

/* Makes the next call of gen_next() give this workload. */
void gen_seek(struct gen *g, uint64_t index);
/* Gives the text of the next workload, with its header line; valid until the next call. */
bool gen_next(struct gen *g, const char **text, size_t *len);

/*
 * A workload's name is "BOUNDS.FINGERPRINT/NUMBER". The fingerprint changes whenever the number
 * would mean another workload. In a union, the bounds and the number are those of the set that
 * holds it.
 */
void gen_name(const struct gen *g, uint64_t index, struct strbuf *out);
/* Names the first workload, and in a union that of each set: a text that changes with the sets. */
void gen_identity(const struct gen *g, struct strbuf *out);
/* Returns the set's name at the begin of a workload's name, to be freed; NULL if there is none. */
char *gen_name_set(const char *name);
/* Gives the number in a name, which is checked against these bounds. */
int gen_name_index(const struct gen *g, const char *name, uint64_t *index, struct err *err)
	must_check;

#endif
