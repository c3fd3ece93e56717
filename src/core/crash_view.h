/* SPDX-License-Identifier: MIT */
/*
 * crash_view.h - the pieces in flight at one crash point, and which of them survive in the state at
 * hand. Private to crash*.c; other rooms include crash.h.
 *
 * A view is loaded from a model at a point; then fates are chosen, closed and applied for each
 * state. A view borrows the pieces of the model, which must not move on before the next load.
 */
#ifndef CORE_CRASH_VIEW_H
#define CORE_CRASH_VIEW_H

#include "core/choice.h"
#include "core/crash.h"
#include "core/model.h"
#include "core/ranges.h"

/* The number of pieces or units that one choice, and so one digit of an id, decides on. */
enum { CRASH_WORD_BITS = 32 };

enum fate { FATE_LOST = MODEL_LOST, FATE_WHOLE = MODEL_WHOLE, FATE_TORN = MODEL_PART };

struct crash_view {
	const struct model *model;
	const struct model_piece *pieces;
	size_t n;
	bool has_needs;
	struct vec_of(uint32_t) flight; /* pieces that are not pinned */
	struct vec_of(uint32_t) loose;	/* pieces that can be lost */
	struct vec_of(uint32_t) vary;	/* loose pieces whose fate is chosen */
	size_t old;			/* so many of `vary`, from its begin: see crash_plan.c */
	struct vec_of(uint32_t) first_word; /* the index in `units`, by piece */
	struct vec_of(unsigned char) base;  /* fates before a choice, by piece */
	struct vec_of(unsigned char) fate;  /* by piece */
	struct vec_of(uint64_t) units;	    /* which units survive, for fate FATE_TORN */

	/* The images that states are made from; see crash_view_apply(). */
	struct image none, all;	       /* no loose piece survives; all do */
	bool has_none, has_all;	       /* true if these were made */
	struct ranges index;	       /* ranges of the first index.n pieces, by number */
	struct vec_of(uint32_t) below; /* pieces that overlap the current one */
};

/*
 * Loads the view at the model's place; all loose pieces vary. `grown`: compared with the last load
 * there are only more pieces, all of them loose, and the durable image is the same.
 */
void crash_view_load(struct crash_view *v, const struct model *m, bool grown);
/* Only loose pieces whose bit is set vary; the other loose pieces survive. */
void crash_view_narrow(struct crash_view *v, const uint64_t *varies);
void crash_view_release(struct crash_view *v);

/* Units. */

static inline uint64_t *crash_view_units(const struct crash_view *v, size_t piece)
{
	return v->units.v + v->first_word.v[piece];
}

uint32_t crash_view_units_kept(const struct crash_view *v, size_t piece);
/* The number of units of all pieces that vary. */
uint64_t crash_view_all_units(const struct crash_view *v);

/* Fates. */

/* Starts a choice: gives all varying pieces this fate. */
void crash_view_reset(struct crash_view *v, enum fate fate);
/* Tears a piece: its units [from, to) survive, or all but these; at least one, and not all. */
void crash_view_tear_range(struct crash_view *v, size_t piece, uint32_t from, uint32_t to,
			   bool all_but);
/* Chooses any set of the listed pieces. */
void crash_view_choose_set(struct crash_view *v, struct choice *c, const uint32_t *list, size_t n);
/* Chooses any set of units of one piece. */
void crash_view_choose_units(struct crash_view *v, struct choice *c, size_t piece);
/* Chooses any set of units of all varying pieces; a dead end if an id cannot name it. */
void crash_view_choose_all_units(struct crash_view *v, struct choice *c);

/* Closes the fates (I3 of crash_view.c): needed pieces survive. */
void crash_view_close_adding(struct crash_view *v);
/* Closes the fates: pieces that need one which does not survive whole are lost. */
void crash_view_close_dropping(struct crash_view *v);

/* The results of the fates. */

/* The fate of each piece and unit, hashed, with the index of the point. */
struct hash128 crash_view_hash(const struct crash_view *v, uint64_t point);
/* Makes `img` the storage's content: the durable image and the survivors. */
void crash_view_apply(struct crash_view *v, struct image *img);
/* The storage's content if everything that is loose survives. */
const struct image *crash_view_image_all(struct crash_view *v);
/* Fills in survived, lost and torn. */
void crash_view_list(const struct crash_view *v, struct crash_state *s);

#endif
