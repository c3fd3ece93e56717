/* SPDX-License-Identifier: MIT */
/*
 * model.h - persistence models: what a crash may leave behind.
 *
 * A model consumes the events of a trace in order and knows at each place
 *   - an image of what is guaranteed durable, and
 *   - the pieces: writes or stores that may or may not survive, in the order in which survivors
 *     take effect.
 *
 * After a crash the storage holds the durable image with the surviving pieces applied to it in that
 * order. The survivors can be any set that is closed: with a piece, everything it needs survives. A
 * piece may survive in part, as any set of its tear units.
 *
 * A model borrows the data of the events it was given; the trace must outlive it and its clones.
 * To add one, see CONTRIBUTING.md; models.def lists them.
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
	const void *ctx;    /* further input of a model; outlives it */
};

struct model_piece {
	uint64_t event;	       /* the number of the event that made it */
	uint64_t addr, len;    /* the range that it can change */
	uint64_t unit_size;    /* bytes between two cuts, which are at its multiples */
	uint32_t units;	       /* parts it can be torn into; 1: whole or lost */
	uint32_t n_needs;      /* pieces that must survive whole if any part of this one does, */
	const uint32_t *needs; /* as indices; all smaller than this piece's own */
	bool pinned;	       /* durable; still a piece only because an older one lies below it */
	bool completed;	       /* the storage has reported it done */
};

/* The fate of each piece. */
struct model_fates {
	const unsigned char *fate;  /* enum model_fate */
	const uint64_t *units;	    /* of those in part: which units are there, */
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
	bool pm;	  /* reads stores, flushes of lines and fences; else requests to a disk */

	/* A model before the first event. The caller fills in the members of struct model. */
	struct model *(*create)(void);
	/* A copy that lives its own life. The caller copies the members of struct model. */
	struct model *(*clone)(const struct model *m);
	/* Frees everything but the members of struct model, then the model. */
	void (*destroy)(struct model *m);

	/*
	 * The event with the given number happens. Events the model does not know change nothing.
	 * Fails (-EINVAL) on events that cannot be, such as a write outside the image; the model
	 * is then good for nothing but destruction.
	 */
	int (*apply)(struct model *m, uint64_t number, const struct event *ev, struct err *err);

	/* The pieces, valid until the next event. Asked before any of them is applied. */
	const struct model_piece *(*pieces)(const struct model *m, size_t *n);

	/*
	 * Applies to an image of the size of `durable` what a piece writes in [from, to): all of
	 * it, or, if `units` is not NULL, the tear units whose bits are set there (bit i % 64 of
	 * word i / 64).
	 */
	void (*piece_apply)(const struct model *m, size_t index, const uint64_t *units,
			    uint64_t from, uint64_t to, struct image *img);

	/* All pieces at once, in order; NULL: one after the other is as good. */
	void (*pieces_apply)(const struct model *m, const struct model_fates *f, struct image *img);
};

#define MODEL(name_) extern const struct model_ops model_##name_;
#include "core/models.def"
#undef MODEL

/* By name, or NULL. */
const struct model_ops *model_find(const char *name);
/* The i-th, or NULL; for lists of what there is. */
const struct model_ops *model_at(size_t i);
/* As model_find(); without one of that name, a sentence in `err` says which there are. */
const struct model_ops *model_known(const char *name, struct err *err);

/* `base` is what the storage held before the first event. */
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
/* For models: the bytes [*from, *to) of the first run of set units at or after unit *i, which
 * moves past it; false if there is none. `units` NULL: one run, the whole piece. */
bool model_piece_run(const struct model_piece *p, const uint64_t *units, uint32_t *i,
		     uint64_t *from, uint64_t *to);

#endif
