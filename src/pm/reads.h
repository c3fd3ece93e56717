/* SPDX-License-Identifier: MIT */
/*
 * reads.h - which lines of a crash state recovery and check read. A line that they do not read
 * cannot change what they see; so only those that they do need be varied (after Vinter).
 *
 * The lines read may depend on what is there, so this is a heuristic: the lines read where nothing
 * is lost stand for those read at that crash point. A command that reads the file by read(2) is
 * taken to read everything.
 */
#ifndef PM_READS_H
#define PM_READS_H

#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_reads_count {
	uint64_t traced; /* crash states that were looked at */
	uint64_t whole;	 /* points at which everything was read */
	uint64_t lost;	 /* given up, as their tracer died or hung; all of their lines are varied */
	char error[512]; /* why, the first time */
};

/* Adds to `out`. */
int pm_reads_find(const struct pm_run *r, const struct tracer *t, unsigned jobs,
		  const volatile sig_atomic_t *stop, struct reads *out,
		  struct pm_reads_count *count, struct err *err) must_check;
#endif
