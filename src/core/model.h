/* SPDX-License-Identifier: MIT */
/*
 * model.h - persistence models: the rules for what a crash may leave.
 *
 * A model consumes the events of a trace in order and knows at each place
 *   - an image of the content that is durable, and
 *   - the pieces: writes or stores that may or may not survive, in the order in which survivors
 *     take effect.
 *
 * After a crash the storage holds the durable image with the surviving pieces applied to it in that
 * order. The survivors can be any set that is closed: with a piece, all pieces that it needs
 * survive. A piece may survive in part, as any set of its tear units.
 *
 * A model borrows the data of the events; the trace must outlive it and its clones. models.def
 * lists the models; CONTRIBUTING.md says how to add one.
 */
#ifndef CORE_MODEL_H
#define CORE_MODEL_H

#include "base/err.h"
#include "core/event.h"
#include "core/image.h"

enum {
	/* Larger pieces are cut at a multiple of the tear unit, so that this many parts suffice. */
	MODEL_UNITS_MAX = 4096,
};

struct model_opts {
	uint32_t tear_unit; /* bytes that survive together; 0: pieces are whole or lost */
	const void *ctx;    /* further input of a model; must outlive it */
};

struct model_piece {
	uint64_t event;	       /* the number of the event that made the piece */
	uint64_t addr, len;    /* the range that it can change */
	uint64_t unit_size;    /* a piece is cut at multiples of so many bytes */
	uint32_t units;	       /* the number of its parts; 1: whole or lost */
	uint32_t n_needs;      /* pieces that must survive whole if any part of this does, */
	const uint32_t *needs; /* as indices below this piece's own */
	bool pinned;	       /* durable; still a piece only because an older one lies below it */
	bool completed;	       /* the storage has reported it done */
};

/* The fate of each piece. */
struct model_fates {
	const unsigned char *fate;  /* enum model_fate */
	const uint64_t *units;	    /* for pieces in part: the bits of units that survive, */
	const uint32_t *first_word; /* from this word on; by piece */
};

enum model_fate { MODEL_LOST, MODEL_WHOLE, MODEL_PART };

struct model_ops;

/* The members that all models have in common; each embeds them as its first member. */
struct model {
	const struct model_ops *ops;
	struct model_opts opts;
	struct image durable;
};

struct model_ops {
	const char *name;
	const char *help; /* one line */
	bool pm;	  /* reads stores, line flushes, fences; else requests to a disk */

	/* Makes a model before the first event. The caller fills in the members of struct model. */
	struct model *(*create)(void);
	/* Makes an independent copy. The caller copies the members of struct model. */
	struct model *(*clone)(const struct model *m);
	/* Frees everything but the members of struct model, then the model. */
	void (*destroy)(struct model *m);

	/*
	 * Applies the event with the given number. Events that the model does not know change
	 * nothing. Fails (-EINVAL) on impossible events, such as a write outside the image; the
	 * model can then only be destroyed.
	 */
	int (*apply)(struct model *m, uint64_t number, const struct event *ev, struct err *err);

	/* Returns the pieces, valid until the next event. Called before a piece is applied. */
	const struct model_piece *(*pieces)(const struct model *m, size_t *n);

	/*
	 * Applies to an image of the size of `durable` what a piece writes in [from, to): all of
	 * it, or, if `units` is not NULL, the tear units whose bits are set there (bit i % 64 of
	 * word i / 64).
	 */
	void (*piece_apply)(const struct model *m, size_t index, const uint64_t *units,
			    uint64_t from, uint64_t to, struct image *img);

	/* Applies all pieces at once, in order; NULL: piece_apply() for each is as fast. */
	void (*pieces_apply)(const struct model *m, const struct model_fates *f, struct image *img);
};

#define MODEL(name_) extern const struct model_ops model_##name_;
#include "core/models.def"
#undef MODEL

/* Returns the model of that name, or NULL. */
const struct model_ops *model_find(const char *name);
/* Returns the i-th model, or NULL behind the last. */
const struct model_ops *model_at(size_t i);
/* As model_find(); if there is no such model, a sentence in `err` lists the models. */
const struct model_ops *model_known(const char *name, struct err *err);

/* `base` is the storage's content before the first event. */
struct model *model_new(const struct model_ops *ops, const struct model_opts *opts,
			const struct image *base) __attribute__((returns_nonnull));
struct model *model_clone(const struct model *m) __attribute__((returns_nonnull));
void model_free(struct model *m); /* NULL is fine */
static inline void cleanup_model(struct model **m)
{
	model_free(*m);
}
#define auto_model __attribute__((cleanup(cleanup_model))) struct model *

int model_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
	must_check;
const struct model_piece *model_pieces(const struct model *m, size_t *n);
void model_piece_apply(const struct model *m, size_t index, const uint64_t *units, uint64_t from,
		       uint64_t to, struct image *img);

/* For models: sets unit_size and units from addr, len and the tear unit. */
void model_piece_cut(struct model_piece *p, uint32_t tear_unit);
/*
 * For models: gives the bytes [*from, *to) of the first run of set units at or after unit *i, and
 * moves *i past it; false if there is none. `units` NULL: one run, the whole piece.
 */
bool model_piece_run(const struct model_piece *p, const uint64_t *units, uint32_t *i,
		     uint64_t *from, uint64_t *to);

#endif
