/* SPDX-License-Identifier: MIT */
/*
 * app_model.h - the persistence model of applications, for the enumerator of crash states.
 *
 * The image of this model is not a disk: it has a byte for each unit of each change of a history,
 * which is 1 if the unit is durable or survived. So a crash state of core/ is a set of survivors,
 * from which history_build() makes the directory that a user would find.
 */
#ifndef APP_APP_MODEL_H
#define APP_APP_MODEL_H

#include "app/history.h"
#include "core/crash.h"
#include "core/model.h"

extern const struct model_ops model_posix; /* model_opts.ctx: the struct history */

/* The survivors of a crash state; the list is valid until the next call with the same `s`. */
struct survivors {
	struct vec_of(struct survivor) v;
	struct vec_of(uint64_t) units;
};

void survivors_of(const struct history *h, const struct crash_state *state, struct survivors *out);
/* Copies survivors, with the units that they point to. */
void survivors_copy(const struct history *h, const struct survivor *v, size_t n,
		    struct survivors *to);
void survivors_release(struct survivors *s);

#endif
