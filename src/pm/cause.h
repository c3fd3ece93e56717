/* SPDX-License-Identifier: MIT */
/*
 * cause.h - finds the missing step of a crash state that fails.
 *
 * The classes are those of check/semantic.h. "logic": the memory had the same content at some place
 * of the trace, between the same marks, with nothing lost; the power can fail there whatever is
 * flushed. "tearing": only parts of instructions and copies are lost, of which the rest survived,
 * and no later store did. "ordering": all other failures; a later store survived, or the operation
 * had returned, and a flush or a fence before that is missing.
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
	bool noticed; /* pm_where.noticed: places do not distinguish instructions */
};

void pm_prefixes_find(const struct trace *t, const struct image *base, bool noticed,
		      struct pm_prefixes *out);

/* Finds the class. `prefix`: for logic, how many events had happened; otherwise PM_NO_PREFIX. */
enum semantic_cause pm_cause_of(const struct pm_prefixes *p, const struct crash_state *s,
				uint64_t *prefix);

/* Stores that are reported together: the lost ones of one copy. */
struct pm_extent {
	uint64_t event, last; /* the first store, and the last */
	uint64_t stores, addr, len;
};

struct pm_extents vec_of(struct pm_extent);

/* Covers the lost parts with as few extents as possible; returns the number of stores. */
uint64_t pm_extents_of(const struct trace *t, const struct crash_part *gone, size_t n,
		       struct pm_extents *out);

/* Counts copies of more than `join_min` bytes, which the model takes as one (core/model_pm.c). */
uint64_t pm_count_copies(const struct trace *t, uint64_t join_min);

/* The steps that a store lacks, as bits; "a flush and a fence are missing". */
enum { PM_MISSING_FLUSH = 1, PM_MISSING_FENCE = 2 };
const char *pm_missing_words(unsigned missing);

/* Why a store can be lost at a point, with the other losses there. */
struct pm_loss {
	uint64_t by;	/* the later store that survived, or the end that was reported; or none */
	uint64_t flush; /* the first flush of its line; UINT64_MAX: none, or not cached */
	uint64_t fence; /* the fence that makes it durable, if there is one */
	unsigned missing;
};

struct pm_loss pm_loss_of(const struct trace *t, uint64_t event, uint64_t point,
			  const struct crash_part *gone, size_t n);

/* ---- reasons ---- */

/* The places of the lost stores, ascending, each once. */
struct pm_key {
	enum semantic_cause cause;
	bool recovery, media;
	unsigned kind; /* of the media fault */
	struct vec_of(uint64_t) places;
};

/* Returns a place: the source line, or else the function, or else the address. */
uint64_t pm_place(const struct trace *t, const struct pm_where *w, uint64_t event);
void pm_key_add(struct pm_key *k, uint64_t place);
/* Called after the last place was added. */
void pm_key_sort(struct pm_key *k);
void pm_key_release(struct pm_key *k);
/* True if a failure with key `all` is explained by one with key `part`. */
bool pm_key_explains(const struct pm_key *all, const struct pm_key *part);

#endif
