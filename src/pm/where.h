/* SPDX-License-Identifier: MIT */
/*
 * where.h - where in the program a store, flush or fence was made, in words. The words are found
 * when the run is recorded, while the program's files are as they were, and kept as RUN/places: an
 * address and its words a line.
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
	/* Stores were found later than they were made: a place is where that was. Not kept. */
	bool noticed;
};

/* `maps`: what the program had mapped (stack/places.h). */
void pm_where_find(const struct trace *t, const char *maps, struct pm_where *out);
int pm_where_save(const char *run, const struct pm_where *w, struct err *err) must_check;
/* A run that has none gives none. */
int pm_where_load(const char *run, struct pm_where *out, struct err *err) must_check;
void pm_where_release(struct pm_where *w);

/* "log.c:40 in append"; NULL: it is not known. */
const char *pm_where_of(const struct pm_where *w, uint64_t pc);
/* Adds "0x4011f0 (log.c:40 in append)". */
void pm_where_words(const struct pm_where *w, uint64_t pc, struct strbuf *out);

struct pm_extent;
struct pm_loss;

/*
 * A line about stores that follow each other: what they are, and where they were made; below it who
 * called, and if `loss` is not NULL, why a crash can lose them. `fate` is a word for the beginning.
 */
void pm_store_words(const struct trace *t, const struct pm_where *w, const char *fate,
		    const struct pm_extent *x, const struct pm_loss *loss, struct strbuf *out);

#endif
