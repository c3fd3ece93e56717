/* SPDX-License-Identifier: MIT */
/*
 * where.h - the places of stores, flushes and fences in the program, in words. The words are found
 * while the run is recorded, as the program's files may change later, and kept as RUN/places, one
 * address with its words per line.
 */
#ifndef PM_WHERE_H
#define PM_WHERE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "core/trace.h"

struct pm_where {
	struct vec_of(struct pm_place {
		uint64_t pc;
		char *words;
	}) places; /* ascending */
	/* Stores were noticed later than made: a place is where they were noticed. Not kept. */
	bool noticed;
};

/* `maps`: the program's mappings (stack/places.h). */
void pm_where_find(const struct trace *t, const char *maps, struct pm_where *out);
int pm_where_save(const char *run, const struct pm_where *w, struct err *err) must_check;
/* Loads the places; a run may have none. */
int pm_where_load(const char *run, struct pm_where *out, struct err *err) must_check;
void pm_where_release(struct pm_where *w);

/* Returns "log.c:40 in append"; NULL if unknown. */
const char *pm_where_of(const struct pm_where *w, uint64_t pc);
/* Adds "0x4011f0 (log.c:40 in append)". */
void pm_where_words(const struct pm_where *w, uint64_t pc, struct strbuf *out);

struct pm_extent;
struct pm_loss;

/*
 * Adds a line about stores that follow each other: their addresses and places; below it the callers
 * and, if `loss` is not NULL, why a crash can lose them. The line begins with `fate`.
 */
void pm_store_words(const struct trace *t, const struct pm_where *w, const char *fate,
		    const struct pm_extent *x, const struct pm_loss *loss, struct strbuf *out);

#endif
