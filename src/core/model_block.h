/* SPDX-License-Identifier: MIT */
/*
 * model_block.h - all functions of the block model, for models that change one of its rules. Such a
 * model hands each event, or another one in its place, to model_block_apply().
 */
#ifndef CORE_MODEL_BLOCK_H
#define CORE_MODEL_BLOCK_H

#include "core/model.h"

struct model *model_block_create(void);
struct model *model_block_clone(const struct model *m);
void model_block_destroy(struct model *m);
int model_block_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
	must_check;
const struct model_piece *model_block_pieces(const struct model *m, size_t *n);
void model_block_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			     uint64_t from, uint64_t to, struct image *img);

/* All members of struct model_ops but those by which the models differ. */
#define MODEL_BLOCK_REST                                                                           \
	.create = model_block_create, .clone = model_block_clone, .destroy = model_block_destroy,  \
	.pieces = model_block_pieces, .piece_apply = model_block_piece_apply

#endif
