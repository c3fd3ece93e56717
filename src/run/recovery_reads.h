/* SPDX-License-Identifier: MIT */
/*
 * recovery_reads.h - which writes matter: those that somebody reads after the crash.
 *
 * Vinter's rule (Kalbfleisch et al., ATC 2022, section 4.3) for block devices: a write in flight
 * whose blocks neither recovery nor the walk nor the use afterwards reads cannot change what they
 * find, so its fate is not varied. What is read is learnt from the states where nothing and where
 * everything that was in flight survived. It is a heuristic: with a part of the writes lost,
 * recovery might read elsewhere. --prune none does without it.
 */
#ifndef RUN_RECOVERY_READS_H
#define RUN_RECOVERY_READS_H

#include "core/crash.h"
#include "core/ranges.h"

/* What was read after a crash at one point, or in one image. */
struct reads_of {
	uint64_t point;
	struct hash128 image;
	struct ranges where;
};

struct reads {
	struct vec_of(struct reads_of) list;
};

void reads_release(struct reads *r);
/* `record` is what recovering `state` did to the disk. */
void reads_learn(struct reads *r, const struct crash_state *state, const struct trace *record);
/* For struct crash_opts; `ctx` is a struct reads. */
bool reads_vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece);

#endif
