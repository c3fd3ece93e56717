/* SPDX-License-Identifier: MIT */
/*
 * bugs.h - the defects that can be switched on, one bit each. A defect leaves what the live file
 * system shows, and what a clean unmount leaves behind, as they should be: only a crash shows it.
 */
#ifndef SEEDFS_BUGS_H
#define SEEDFS_BUGS_H

#include "base/util.h"

/* Kinds of crash, from the one every tester makes to the one few make. */
#define CRASH_IDLE     "after the fsync"
#define CRASH_PREFIX   "in the middle of a sync, writes in order"
#define CRASH_REORDER  "in the middle of a sync, writes reordered"
#define CRASH_TORN     "in the middle of a sync, a write torn at a sector"
#define CRASH_RECOVERY "a second one, during recovery"

/*	id, name, what is wrong, what the user sees, which crash shows it */
#define SEEDFS_BUGS(X)                                                                             \
	X(RENAME_LOST, "rename-lost",                                                              \
	  "the log drops the new name of a rename to another directory",                           \
	  "the renamed file is lost", CRASH_IDLE)                                                  \
	X(RENAME_BOTH, "rename-both", "the log drops the removal of a renamed file's old name",    \
	  "the file is in both places", CRASH_IDLE)                                                \
	X(RENAME_OVER, "rename-over",                                                              \
	  "a rename over a file is logged as the removal only, until the new file is synced",      \
	  "neither the old nor the new file is there", CRASH_IDLE)                                 \
	X(NAME_NEW, "name-new", "fsync of a new file logs the inode and not its name",             \
	  "the synced file is missing", CRASH_IDLE)                                                \
	X(LINK_LOST, "link-lost", "fsync of a file leaves its new hard links out of the log",      \
	  "the hard link is missing", CRASH_IDLE)                                                  \
	X(ONE_NAME, "one-name",                                                                    \
	  "a link is left out of the log if the file has a name in it already",                    \
	  "one of two names is missing", CRASH_IDLE)                                               \
	X(DIR_ENTRY, "dir-entry",                                                                  \
	  "fsync of a file takes its directories for logged, so their own fsync does nothing",     \
	  "an entry is missing after fsync of its directory", CRASH_IDLE)                          \
	X(SIZE_OLD, "size-old", "the log does not learn the size an append gave the file",         \
	  "the file keeps its old size", CRASH_IDLE)                                               \
	X(DIRECT_SIZE, "direct-size", "the log does not learn the size a direct write gave",       \
	  "the file keeps its old size, 0 if it was new", CRASH_IDLE)                              \
	X(MMAP_LOST, "mmap-lost", "a write through a mapping does not mark the file for fsync",    \
	  "the data written through the mapping is lost", CRASH_IDLE)                              \
	X(FALLOC_KEEP, "falloc-keep", "the log holds the blocks up to the size and no further",    \
	  "blocks allocated past the end are lost", CRASH_IDLE)                                    \
	X(ZERO_KEEP, "zero-keep", "zero range forgets in the log that the size shall stay",        \
	  "the file is longer than it was", CRASH_IDLE)                                            \
	X(PUNCH_LOST, "punch-lost", "punching a hole does not mark the file for fsync",            \
	  "the hole holds the old data", CRASH_IDLE)                                               \
	X(LINK_SIZE, "link-size",                                                                  \
	  "a file that got a link is logged, when another is synced, as if it were empty",         \
	  "the file's synced data is lost, its size is 0", CRASH_IDLE)                             \
	X(FSYNC_TWICE, "fsync-twice", "a file already in the log is not logged a second time",     \
	  "what was written between two fsyncs is lost", CRASH_IDLE)                               \
	X(XATTR_BACK, "xattr-back", "removing an attribute does not mark the file for fsync",      \
	  "the removed attribute is back", CRASH_IDLE)                                             \
	X(XATTR_LOST, "xattr-lost", "setting an attribute does not mark the file for fsync",       \
	  "the attribute is missing or old", CRASH_IDLE)                                           \
	X(SYMLINK_EMPTY, "symlink-empty", "the log holds a symbolic link without its target",      \
	  "the link is empty", CRASH_IDLE)                                                         \
	X(CHMOD_LOST, "chmod-lost", "chmod does not mark the file for fsync",                      \
	  "the permissions are the old ones", CRASH_IDLE)                                          \
	X(DIR_COUNT, "dir-count", "recovery counts a directory's logged entries twice",            \
	  "the directory cannot be removed", CRASH_IDLE)                                           \
	X(NAME_REUSED, "name-reused", "a name that is used again loses its removal in the log",    \
	  "recovery fails, the disk cannot be mounted", CRASH_IDLE)                                \
	X(STALE_LOG, "stale-log", "recovery replays a log that a later commit has made void",      \
	  "old attributes, sizes and names are back, or it cannot be mounted", CRASH_IDLE)         \
	X(NO_REVOKE, "no-revoke",                                                                  \
	  "the journal keeps copies of freed metadata, which replay writes over new data",         \
	  "a synced file holds pieces of an old directory", CRASH_IDLE)                            \
	X(DATA_LATE, "data-late", "file data is written after the record that makes it reachable", \
	  "the file holds stale bytes or zeros", CRASH_PREFIX)                                     \
	X(REUSE_EARLY, "reuse-early", "blocks are used again before their release is committed",   \
	  "an old file holds the data of a new one", CRASH_PREFIX)                                 \
	X(NO_FLUSH, "no-flush", "the flush before the commit record is missing",                   \
	  "wrong data or a damaged file system", CRASH_REORDER)                                    \
	X(CHECKPOINT_FLUSH, "checkpoint-flush",                                                    \
	  "the journal is emptied before the blocks it protects are flushed",                      \
	  "committed changes are lost or half there", CRASH_REORDER)                               \
	X(TORN_RECORD, "torn-record",                                                              \
	  "recovery takes a record of one block for whole, whatever its checksum",                 \
	  "a half-written record is replayed: damage, or it cannot be mounted", CRASH_TORN)        \
	X(RECOVERY_ORDER, "recovery-order", "recovery empties the journal before replaying it",    \
	  "committed changes are lost", CRASH_RECOVERY)

enum bug_id {
#define X(id, ...) BUG_##id,
	SEEDFS_BUGS(X)
#undef X
		BUG_COUNT
};

struct bug_def {
	const char *name, *what, *consequence, *crash;
};

extern const struct bug_def bug_table[BUG_COUNT];
extern uint64_t bugs_on;

static inline bool bug(enum bug_id id)
{
	return bugs_on >> id & 1;
}

/* The bug of that name, or -1. */
int bug_find(const char *name, size_t len);

#endif
