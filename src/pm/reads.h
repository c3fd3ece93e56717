/* SPDX-License-Identifier: MIT */
/*
 * reads.h - which lines of a crash state recovery and check read. A line that they do not read
 * cannot change what they see; so only those that they do need be varied (after Vinter).
 *
 * What is read may depend on what is there, so this is a heuristic: what is read where nothing is
 * lost stands for what is read at that crash point. A command that reads the file by read(2) is
 * taken to read everything.
 */
#ifndef PM_READS_H
#define PM_READS_H

#include "core/model.h"
#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_reads;

struct pm_reads_count {
	uint64_t traced; /* crash states that were looked at */
	uint64_t whole;	 /* of which everything was read */
	uint64_t lost;	 /* given up, as whoever traced them died or hung; all of these is varied */
	char error[512]; /* why, the first time */
};

/* `out` is written on success, and to be freed. */
int pm_reads_find(const struct pm_run *r, const struct tracer *t, unsigned jobs,
		  const volatile sig_atomic_t *stop, struct pm_reads **out,
		  struct pm_reads_count *count, struct err *err) must_check;
void pm_reads_free(struct pm_reads *r); /* NULL is fine */

/* For crash_opts.vary; ctx is a struct pm_reads. */
bool pm_reads_vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece);

#endif
