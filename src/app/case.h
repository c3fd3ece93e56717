/* SPDX-License-Identifier: MIT */
/*
 * case.h - a crash state made by hand: a point, and for each change in flight there whether it
 * survives.
 */
#ifndef APP_CASE_H
#define APP_CASE_H

#include "app/history.h"
#include "app/app_model.h"
#include "core/model.h"

enum keep { KEEP_NONE, KEEP_ALL, KEEP_SOME };

struct case_at {
	uint64_t point;
	size_t n;
	struct case_piece {
		uint32_t change;
		enum keep keep;
		const uint64_t *units; /* only for KEEP_SOME; borrowed */
		uint32_t needs, n_needs;
	} * v; /* ascending */
	uint32_t *needs;
};

void case_release(struct case_at *c);
#define auto_case __attribute__((cleanup(case_release))) struct case_at

/* Loads the changes in flight at a point; none of them survives. */
int case_load(const struct history *h, uint64_t point, struct case_at *out, struct err *err)
	must_check;
/* Does the same with a model that has taken the first `point` events. */
void case_take(const struct history *h, struct model *m, uint64_t point, struct case_at *out);

void case_keep_all(struct case_at *c);
/* Removes each piece that needs one that is not kept whole. */
void case_close(struct case_at *c);
/* Keeps a piece, and all that it needs. */
void case_give_back(struct case_at *c, size_t piece);

/* Lists what is kept, whole or in part; units are borrowed from the case. */
struct case_survivors vec_of(struct survivor);
void case_kept(const struct case_at *c, struct case_survivors *out);
/* Returns the hash of the state with these survivors. */
struct hash128 case_tree(struct history *h, uint64_t point, const struct case_survivors *kept);

/* Returns the id for states_replay(), to be freed. The case must be closed. */
char *case_id(const struct history *h, const struct case_at *c);

#endif
