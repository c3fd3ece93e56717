/* SPDX-License-Identifier: MIT */
/* supply.h - where workloads come from: bounds, files, directories, standard input. By number. */
#ifndef RUN_SUPPLY_H
#define RUN_SUPPLY_H

#include "base/err.h"
#include "base/vec.h"
#include "workload/gen.h"
#include "workload/workload.h"

struct supply {
	struct bounds bounds;
	struct gen *gen; /* NULL: from texts */
	uint64_t from, count;
	uint64_t sample; /* 0: all of them; else this many, spread evenly */
	uint64_t seed;
	struct vec_of(char *) texts;
	char *command; /* the first of `shell` in the file that was read last, or NULL */
	bool trust;    /* commands in files of other users' findings are run, too */
};

void supply_init(struct supply *s);
void supply_release(struct supply *s);

/* Either bounds, or files: workloads, j-lang, directories of them, "-". */
int supply_open_bounds(struct supply *s, const char *spec, struct err *err) must_check;
int supply_add_path(struct supply *s, const char *path, struct err *err) must_check;
/* Which of them: skip some, at most so many, or a sample. Call once, last. */
void supply_select(struct supply *s, uint64_t skip, uint64_t limit, uint64_t sample, uint64_t seed);

/* The hash of all workloads, before any selection: of bounds, or of every text. Hexadecimal. */
void supply_hash(const struct supply *s, struct strbuf *out);

uint64_t supply_count(const struct supply *s);
/* Workload number `i`, below the count. */
int supply_get(struct supply *s, uint64_t i, struct workload *out, struct err *err) must_check;

#endif
