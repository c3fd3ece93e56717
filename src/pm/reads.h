/* SPDX-License-Identifier: MIT */
/*
 * reads.h - finds the lines of a crash state that recovery and check read. A line that they do not
 * read cannot change what they see; so only lines that they read need to vary (after Vinter).
 *
 * The lines read may depend on the content, so this is a heuristic: the lines read in the state
 * where nothing is lost stand for all states of that crash point. A command that reads the file by
 * read(2) is taken to read everything.
 */
#ifndef PM_READS_H
#define PM_READS_H

#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_reads_count {
	uint64_t traced; /* crash states that were traced */
	uint64_t whole;	 /* those where everything was read */
	uint64_t lost;	 /* given up, as their tracer died or hung; all of their lines vary */
	char error[512]; /* the first reason */
};

/* Finds the reads, and adds them to `out`. */
int pm_reads_find(const struct pm_run *r, const struct tracer *t, unsigned jobs,
		  const volatile sig_atomic_t *stop, struct reads *out,
		  struct pm_reads_count *count, struct err *err) must_check;
#endif
