/* SPDX-License-Identifier: MIT */
/*
 * where.h - where in the program a store, flush or fence was made, in words. They are found when
 * the run is recorded, while the program's files are as they were, and kept as RUN/places: an
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
};

/* `maps`: what the program had mapped (stack/places.h). */
void pm_where_find(const struct trace *t, const char *maps, struct pm_where *out);
int pm_where_save(const char *run, const struct pm_where *w, struct err *err) must_check;
/* A run that has none gives none. */
int pm_where_load(const char *run, struct pm_where *out, struct err *err) must_check;
void pm_where_release(struct pm_where *w);

/* Adds "0x4011f0 (log.c:40 in append)". */
void pm_where_words(const struct pm_where *w, uint64_t pc, struct strbuf *out);

/*
 * A line about a store: what it is, and where it was made; below it, if `lost`, why a crash at
 * `point` can lose it, and who called.
 */
void pm_store_words(const struct trace *t, const struct pm_where *w, uint64_t event, uint64_t point,
		    bool lost, struct strbuf *out);

#endif
