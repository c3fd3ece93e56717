/* SPDX-License-Identifier: MIT */
/*
 * bounds_sets.c - the named sets.
 *
 * The sets follow those of Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box
 * Crash Testing" (OSDI 2018), table 4, and for the pm- sets LeBlanc et al., "Finding and Analyzing
 * Crash-Consistency Bugs in Persistent-Memory File Systems" (Flytrap). doc/generation.md compares
 * the counts.
 */
#include "workload/bounds.h"

/* Two directories and the root, two files in each; the 14 operations of the paper. */
#define SEQ_COMMON                                                                                 \
	"operations creat mkdir falloc write dwrite mmapwrite link unlink rmdir remove rename "    \
	"setxattr removexattr truncate\n"                                                          \
	"files foo bar\n"                                                                          \
	"directories A B\n"                                                                        \
	"ranges append start middle extend\n"                                                      \
	"falloc-ranges append middle extend\n"                                                     \
	"direct-ranges append start\n"                                                             \
	"falloc-modes plain keep zero zero,keep punch,keep\n"                                      \
	"sizes 0 2500\n"                                                                           \
	"xattrs user.x1\n"                                                                         \
	"persist fsync fdatasync sync\n"                                                           \
	"persist-on used parents\n"                                                                \
	"last-persist-on used siblings parents\n"

/* Every operation is durable on return: no persistence points, and no way around the page cache. */
#define PM_COMMON                                                                                  \
	"operations creat mkdir falloc write link unlink rmdir remove rename truncate\n"           \
	"ranges append start middle\n"                                                             \
	"persist none\n"

const struct bounds_set bounds_sets[] = {
	{ "seq-1", "every single operation", SEQ_COMMON "length 1\n" },
	{ "seq-2", "every pair of operations",
	  SEQ_COMMON "length 2\n"
		     "overlap yes\n"
		     "persist-twice yes\n" },
	{ "seq-3-data", "three data operations on overlapping ranges",
	  SEQ_COMMON "length 3\n"
		     "operations write dwrite mmapwrite falloc\n"
		     "directories A\n"
		     "files foo\n"
		     "ranges append start extend\n"
		     "falloc-ranges append middle\n"
		     "overlap yes\n"
		     "persist fsync sync\n"
		     "persist-on used\n"
		     "last-persist-on used\n" },
	{ "seq-3-metadata", "three operations on names",
	  SEQ_COMMON "length 3\n"
		     "operations write link unlink rename\n"
		     "ranges append\n"
		     "persist fsync sync\n"
		     "persist-on latest\n"
		     "last-persist-on latest parents\n"
		     "persist-twice yes\n"
		     "reuse related\n" },
	{ "seq-3-nested", "three links and renames, one directory deeper",
	  SEQ_COMMON "length 3\n"
		     "operations link rename\n"
		     "directories A A/C B\n"
		     "persist fsync sync\n"
		     "persist-on latest\n"
		     "last-persist-on latest\n"
		     "reuse same\n" },
	{ "pm-seq-1", "every single operation, for synchronous file systems",
	  SEQ_COMMON PM_COMMON "length 1\n" },
	{ "pm-seq-2", "every pair of operations, for synchronous file systems",
	  SEQ_COMMON PM_COMMON "length 2\n"
			       "overlap yes\n"
			       "reuse related\n" },
	{ "pm-seq-3-metadata", "three operations on names, for synchronous file systems",
	  SEQ_COMMON "length 3\n"
		     "operations write link unlink rename\n"
		     "ranges append start middle\n"
		     "persist none\n" },
	{ NULL, NULL, NULL },
};
