/* SPDX-License-Identifier: MIT */
/*
 * cause.h - finds what would mend a crash state that fails.
 *
 * The classes are those of check/semantic.h. "logic": the memory held the same at some place of the
 * trace, between the same marks, with nothing lost; the power can fail there, whatever is flushed.
 * "tearing": nothing is missing but parts of instructions and copies of which the rest is there,
 * and nothing that was stored later is. "ordering": all else; then something that was stored later
 * is there, or its operation had returned, and a flush or a fence before that is missing.
 */
#ifndef PM_CAUSE_H
#define PM_CAUSE_H

#include "base/strbuf.h"
#include "check/semantic.h"
#include "core/crash.h"
#include "pm/where.h"
#include "search/prefixes.h"

#define PM_NO_PREFIX UINT64_MAX

/* The states of a trace where nothing is lost. */
struct pm_prefixes {
	const struct trace *t;
	struct prefixes all;
	bool noticed; /* pm_where.noticed: places tell no instructions apart */
};

void pm_prefixes_find(const struct trace *t, const struct image *base, bool noticed,
		      struct pm_prefixes *out);

/* `prefix`: how many events had happened, if it is logic; else PM_NO_PREFIX. */
enum semantic_cause pm_cause_of(const struct pm_prefixes *p, const struct crash_state *s,
				uint64_t *prefix);

/* Stores that are taken as one when they are told: what was lost of one copy. */
struct pm_extent {
	uint64_t event, last; /* the first store, and the last */
	uint64_t stores, addr, len;
};

struct pm_extents vec_of(struct pm_extent);

/* Covers what is gone with as few extents as possible; returns the number of stores. */
uint64_t pm_extents_of(const struct trace *t, const struct crash_part *gone, size_t n,
		       struct pm_extents *out);

/* Copies of more than so many bytes, which the model takes as one (core/model_pm.c). */
uint64_t pm_count_copies(const struct trace *t, uint64_t join_min);

/* The steps that an order lacks, as bits; "a flush and a fence are missing". */
enum { PM_MISSING_FLUSH = 1, PM_MISSING_FENCE = 2 };
const char *pm_missing_words(unsigned missing);

/* Why a store can be lost at a point, with what else is gone there. */
struct pm_loss {
	uint64_t by; /* the store that is there all the same, or the end that was told; or none */
	uint64_t flush; /* the first flush of its line; UINT64_MAX: none. Not of one past the cache
			 */
	uint64_t fence; /* the fence that makes it durable, if there is one */
	unsigned missing;
};

struct pm_loss pm_loss_of(const struct trace *t, uint64_t event, uint64_t point,
			  const struct crash_part *gone, size_t n);

/* ---- what fails for the same reason ---- */

/* Where the stores were made, ascending, each once. */
struct pm_key {
	enum semantic_cause cause;
	bool recovery, media;
	unsigned kind; /* the fault of a bad line */
	struct vec_of(uint64_t) places;
};

/* A place: the source line, or else the function, or else the address. */
uint64_t pm_place(const struct trace *t, const struct pm_where *w, uint64_t event);
void pm_key_add(struct pm_key *k, uint64_t place);
/* After the last place. */
void pm_key_sort(struct pm_key *k);
void pm_key_release(struct pm_key *k);
/* Whether what fails with the first is explained by the second. */
bool pm_key_explains(const struct pm_key *all, const struct pm_key *part);

#endif
