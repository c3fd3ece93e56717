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

/* Everything that the operations find is durable, as after the sync of ACE. */
#define ALL_DURABLE                                                                                \
	"durable-setup yes\n"                                                                      \
	"setup-first yes\n"

/* The needs of the first operation are durable; two points may follow the last in any case. */
#define DURABLE                                                                                    \
	SEQ_COMMON "operations +symlink\n"                                                         \
		   "falloc-ranges append middle extend gap\n"                                      \
		   "xattrs user.x1 user.x2 user.x3\n"                                              \
		   "persist-twice always\n"                                                        \
		   "durable-setup yes\n"

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
	{ "seq-1-sync", "single operations on what is durable, two points at the end",
	  DURABLE "length 1\n"
		  "direct-modes plain sync\n" },
	{ "seq-1-filled", "the same, on files that have data", DURABLE "length 1\nfilled yes\n" },
	{ "seq-2-sync", "every pair of operations, the first on what is durable",
	  DURABLE "length 2\n"
		  "overlap yes\n" },
	{ "seq-2-filled", "pairs of operations on names, the first on a durable file with data",
	  DURABLE "length 2\n"
		  "operations creat write link unlink rename truncate\n"
		  "filled yes\n" },
	{ "seq-2-direct",
	  "pairs of writes, buffered, direct and synchronous, to a durable empty file",
	  SEQ_COMMON "length 2\n"
		     "operations write dwrite mmapwrite falloc truncate\n"
		     "files foo\n"
		     "directories A\n"
		     "ranges append start middle extend gap\n"
		     "direct-ranges append start first-page gap\n"
		     "direct-modes plain sync\n"
		     "map-modes msync nosync\n"
		     "overlap yes\n" ALL_DURABLE "existing yes\n" },
	{ "seq-2-wide", "pairs of operations on four names in each of four durable directories",
	  SEQ_COMMON "length 2\n"
		     "operations creat mkdir link unlink rename\n"
		     "files foo bar baz qux\n"
		     "directories A A/C B\n"
		     "persist fsync sync\n" ALL_DURABLE },
	{ "seq-2-nested", "the same on two names, with nothing durable, and directories far above",
	  SEQ_COMMON "length 2\n"
		     "operations creat mkdir link unlink rename\n"
		     "directories A A/C B\n"
		     "persist fsync sync\n"
		     "persist-on used ancestors\n"
		     "last-persist-on used ancestors\n"
		     "setup-first yes\n" },
	{ "seq-3-wide", "three operations on names, a point on any used name at the end",
	  SEQ_COMMON "length 3\n"
		     "operations creat write link unlink rename\n"
		     "ranges append\n"
		     "persist fsync sync\n"
		     "persist-on latest\n"
		     "last-persist-on used parents\n"
		     "persist-twice yes\n"
		     "reuse related\n" },
	{ "seq-3-names", "three operations on three names in one durable directory",
	  SEQ_COMMON "length 3\n"
		     "operations creat write link unlink rename\n"
		     "files foo bar baz\n"
		     "directories A\n"
		     "ranges append\n"
		     "persist fsync\n"
		     "persist-on latest\n"
		     "last-persist-on used\n"
		     "reuse related\n" ALL_DURABLE "existing yes\n" },
	{ "seq-3-dirs", "three operations on names in three durable directories",
	  SEQ_COMMON "length 3\n"
		     "operations link unlink rename\n"
		     "directories A B C\n"
		     "persist fsync sync\n"
		     "persist-on none\n"
		     "last-persist-on used\n"
		     "reuse related\n" ALL_DURABLE },
	{ "seq-3-moves", "three links and renames into durable directories, deeper",
	  SEQ_COMMON "length 3\n"
		     "operations link rename\n"
		     "files foo bar baz\n"
		     "directories A A/C B B/C\n"
		     "persist fsync\n"
		     "persist-on none\n"
		     "last-persist-on used\n" ALL_DURABLE },
	{ "seq-3-renames", "three renames, with points on files in the directories",
	  SEQ_COMMON "length 3\n"
		     "operations rename\n"
		     "directories A A/C B\n"
		     "persist fsync sync\n"
		     "persist-on latest children\n"
		     "last-persist-on latest children\n" },
	{ "seq-3-mkdir", "three operations that make and move directories",
	  SEQ_COMMON "length 3\n"
		     "operations creat mkdir rename rmdir\n"
		     "files foo\n"
		     "directories A A/C A/D\n"
		     "persist fsync sync\n"
		     "persist-on latest\n"
		     "last-persist-on latest parents\n" },
	{ "seq-3-caches", "three operations on names, remounts and dropped caches in between",
	  SEQ_COMMON "length 3\n"
		     "operations link unlink rename drop_caches remount\n"
		     "directories A\n"
		     "persist fsync sync\n"
		     "persist-on latest\n"
		     "last-persist-on used\n" },
	{ "seq-3-special", "three operations with named pipes, between two synced files",
	  SEQ_COMMON "length 3\n"
		     "operations creat link rename\n"
		     "files foo bar baz qux\n"
		     "directories A\n"
		     "persist fsync\n"
		     "persist-on latest\n"
		     "last-persist-on used siblings\n"
		     "file-kind fifo\n" ALL_DURABLE },
	{ "seq-3-punch",
	  "three holes and ranges of zeroes, overlapping, at the end of a durable file",
	  SEQ_COMMON "length 3\n"
		     "operations falloc\n"
		     "files foo\n"
		     "directories none\n"
		     "falloc-ranges start middle extend last-page later-pages over-end gap\n"
		     "falloc-modes keep zero zero,keep punch,keep\n"
		     "persist fsync\n"
		     "persist-on none\n"
		     "last-persist-on used\n" ALL_DURABLE },
	{ "seq-4-msync", "writes through a mapping, and msync of ranges",
	  SEQ_COMMON "length 4\n"
		     "operations mmapwrite msync\n"
		     "files foo\n"
		     "directories none\n"
		     "direct-ranges start end first-page last-page\n"
		     "map-modes nosync\n"
		     "persist fsync\n"
		     "persist-on none\n"
		     "last-persist-on used\n" ALL_DURABLE },
	{ "all-1", "all sets of single operations", "union seq-1 seq-1-sync seq-1-filled\n" },
	{ "all-2", "all sets of pairs",
	  "union seq-2 seq-2-sync seq-2-filled seq-2-direct seq-2-wide seq-2-nested\n" },
	{ "all-3", "all sets of three and four operations",
	  "union seq-3-data seq-3-metadata seq-3-nested seq-3-wide seq-3-names seq-3-dirs "
	  "seq-3-moves seq-3-renames seq-3-mkdir seq-3-caches seq-3-special seq-3-punch "
	  "seq-4-msync\n" },
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
