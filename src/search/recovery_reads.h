/* SPDX-License-Identifier: MIT */
/*
 * recovery_reads.h - finds the writes that matter: those that are read after the crash.
 *
 * Vinter's rule (Kalbfleisch et al., ATC 2022, section 4.3), for block devices, too: a write in
 * flight that neither recovery nor the look at its result reads cannot change what they find, so
 * its fate is not varied. The reads are learnt from the states where nothing and where everything
 * in flight survived. The rule is a heuristic: if some of the writes are lost, recovery might read
 * elsewhere.
 */
#ifndef SEARCH_RECOVERY_READS_H
#define SEARCH_RECOVERY_READS_H

#include "core/crash.h"

struct reads_span {
	uint64_t from, to; /* to: not included */
};

/* The reads after a crash, at one point or of one image. */
struct reads_of {
	uint64_t point; /* READS_ANYWHERE: only the image counts */
	struct hash128 image;
	bool whole; /* everything is read */
	struct vec_of(struct reads_span)
		where; /* ascending, with gaps between them, after reads_settle() */
};

#define READS_ANYWHERE UINT64_MAX

struct reads vec_of(struct reads_of);

void reads_release(struct reads *r);
/* Adds what a trace reads, or with `stores` also writes, in units of so many bytes. */
void reads_learn(struct reads_of *of, const struct trace *record, uint64_t unit, bool stores);
/* Sorts and joins the reads of one crash. */
void reads_settle(struct reads_of *of);
/* For struct crash_opts; `ctx` is a struct reads, after reads_settle(). */
bool reads_vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece);

#endif
