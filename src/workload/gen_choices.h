/* SPDX-License-Identifier: MIT */
/* gen_choices.h - every operation with every argument that bounds allow (phases 1 and 2). */
#ifndef WORKLOAD_GEN_CHOICES_H
#define WORKLOAD_GEN_CHOICES_H

#include "base/vec.h"
#include "workload/gen_world.h"

struct gen_choices vec_of(struct gen_choice);

void gen_choices_init(struct gen_choices *list, const struct bounds *b, const struct gen_pool *p,
		      struct arena *arena);
void gen_choices_release(struct gen_choices *list);

#endif
