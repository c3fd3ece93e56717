/* SPDX-License-Identifier: MIT */
/*
 * bugs.h - the defects that can be switched on, one bit each, and how each is proved. A defect
 * leaves what the live file system shows as it should be: only a crash shows it.
 */
#ifndef PMFS_BUGS_H
#define PMFS_BUGS_H

#include "base/util.h"

/* What is wrong: by the table of semantic states (check/semantic.h), or beyond it. */
enum bug_kind {
	BUG_FAILED,	/* recovery, or using what it left */
	BUG_NOT_ATOMIC, /* neither the state before nor the one after */
	BUG_NOT_SINGLE, /* the operation has returned, and is lost */
	BUG_NOT_LIVE,	/* nothing is lost, and yet it is not what was there before the crash */
	BUG_RECOVERY,	/* a second crash, during recovery, leaves something else */
};

/* Which crash shows it. */
enum bug_layer {
	LAYER_PREFIX,  /* nothing is lost: stores in their order, no flush or fence mends it */
	LAYER_REORDER, /* something of what was in flight is lost */
};

/* clang-format off */
/*
 * id, name, what is wrong, what the user sees, where it stems from,
 * kind, layer, the workload, what the state shows: "+text" is in it, "-text" is not.
 * F: a row of table 2 of Flytrap; V: a test case of figure 4 of Vinter.
 */
#define PMFS_BUGS(X)                                                                               \
	X(ENTRY_NOFLUSH, "entry-noflush", "a name in a directory's log is never flushed",          \
	  "a file that cannot be reached nor removed", "F 2: creat, mkdir",                        \
	  BUG_FAILED, LAYER_REORDER, "creat foo", "+cannot be removed")                            \
	X(ENTRY_NOFENCE, "entry-nofence", "no fence between a log entry and the tail over it",     \
	  "a directory that cannot be reached nor removed", "F 2: creat, mkdir",                   \
	  BUG_FAILED, LAYER_REORDER, "mkdir A", "+cannot be removed")                              \
	X(TAIL_NOFLUSH, "tail-noflush", "a write's new log tail is never flushed",                 \
	  "a write that returned is lost", "F 14, 15: write is not synchronous",                   \
	  BUG_NOT_SINGLE, LAYER_REORDER, "creat foo; write foo 0 700", "-size=700")                \
	X(NT_TAIL, "nt-tail", "the unaligned end of a non-temporal copy is not flushed",           \
	  "the last bytes of a write are zeros", "F 17, 18: write; V: write",                      \
	  BUG_NOT_SINGLE, LAYER_REORDER, "creat foo; write foo 0 11", "+size=11")                  \
	X(NAME_LINE, "name-line", "of a long name only the first line is flushed",                 \
	  "a file has a wrong name", "V: long name",                                               \
	  BUG_NOT_SINGLE, LAYER_REORDER,                                                           \
	  "creat long-name-long-name-long-name-long-name-long-name-long-name-long-name",           \
	  "-long-name-long-name-long-name-long-name-long-name-long-name-long-name ")               \
	X(SYMLINK_CACHED, "symlink-cached", "a symlink's target is stored and not flushed",        \
	  "the target is zeros", "V: symlink",                                                     \
	  BUG_NOT_SINGLE, LAYER_REORDER, "symlink target sl", "-target")                           \
	X(RENAME_DEL_FIRST, "rename-del-first",                                                    \
	  "rename commits the removal of the old name first",                                      \
	  "the file has no name at all", "F 4: rename; V: rename",                                 \
	  BUG_NOT_ATOMIC, LAYER_PREFIX, "mkdir A; creat foo; rename foo A/bar", "-file")           \
	X(RENAME_ADD_FIRST, "rename-add-first", "rename commits the new name first",               \
	  "the file has both names", "F 5: rename",                                                \
	  BUG_NOT_ATOMIC, LAYER_PREFIX, "mkdir A; creat foo; rename foo A/bar", "+foo ")           \
	X(LINK_COUNT_FIRST, "link-count-first", "link counts the new name before it is there",     \
	  "two links and one name", "F 6: link; V: link",                                          \
	  BUG_NOT_ATOMIC, LAYER_PREFIX, "creat foo; link foo bar", "-bar")                         \
	X(TRUNCATE_ZERO_FIRST, "truncate-zero-first",                                              \
	  "truncate zeroes the cut end before it has cut",                                         \
	  "data is lost although the truncate was not done", "F 7: truncate",                      \
	  BUG_NOT_ATOMIC, LAYER_PREFIX, "creat foo; write foo 0 600; truncate foo 100",            \
	  "+size=600")                                                                             \
	X(FALLOC_REPLAY, "falloc-replay", "recovery puts preallocated blocks over written ones",   \
	  "data is lost", "F 8: fallocate",                                                        \
	  BUG_NOT_LIVE, LAYER_PREFIX,                                                              \
	  "creat foo; write foo 0 600; falloc foo plain 0 2048", "+size=2048")                     \
	X(REPLICA_TOGETHER, "replica-together", "an inode and its replica are written in one go",  \
	  "the file system cannot be mounted", "F 9: unlink, rmdir, truncate; V: NOVA-Fortis",     \
	  BUG_FAILED, LAYER_REORDER, "creat foo; chmod foo 0600; write foo 0 100", "+both copies") \
	X(CSUM_LATE, "csum-late", "the checksums follow only when inode and replica have changed", \
	  "the file system cannot be mounted", "F 12: truncate; V: NOVA-Fortis",                   \
	  BUG_FAILED, LAYER_PREFIX, "creat foo; chmod foo 0600", "+both copies")                   \
	X(REPLICA_STALE, "replica-stale", "the journal leaves the replicas as they were",          \
	  "a link that was made long ago is undone", "F 10: link, rename",                         \
	  BUG_NOT_ATOMIC, LAYER_REORDER, "creat foo; link foo bar; creat baz", "-bar")             \
	X(TRUNC_REFREE, "trunc-refree", "replaying a truncate frees what is free already",         \
	  "the file system cannot be mounted", "F 11: truncate",                                   \
	  BUG_FAILED, LAYER_PREFIX, "creat foo; write foo 0 1500; truncate foo 100",               \
	  "+free block")                                                                           \
	X(TRUNC_EARLY, "trunc-early", "truncates are replayed before there is a free list",        \
	  "the file system cannot be mounted", "F 13: truncate",                                   \
	  BUG_FAILED, LAYER_PREFIX, "creat foo; write foo 0 1500; truncate foo 100", "+free list") \
	X(TRUNC_STALE, "trunc-stale", "that a truncate is done is never flushed",                  \
	  "data written later is cut off", "F 12: truncate, in another way",                       \
	  BUG_NOT_SINGLE, LAYER_REORDER,                                                           \
	  "creat foo; write foo 0 600; truncate foo 100; append foo 50", "+size=100")              \
	X(JOURNAL_FLAG_FIRST, "journal-flag-first", "the journal is valid before its records are", \
	  "the file system cannot be mounted", "F 3: link, unlink, rename",                        \
	  BUG_FAILED, LAYER_REORDER, "creat foo; link foo bar", "+journal")                        \
	X(JOURNAL_INDEX, "journal-index", "recovery puts every record where the first belongs",    \
	  "a directory holds what belongs to another", "F 16, 19: all",                            \
	  BUG_NOT_ATOMIC, LAYER_PREFIX, "mkdir A; creat foo; rename foo A/bar", "-A dir")          \
	X(COUNT_LATE, "count-late", "the count of inodes follows only when one is in use",         \
	  "a file can neither be read nor removed", "F 2: creat, mkdir",                           \
	  BUG_FAILED, LAYER_PREFIX, "creat foo", "+no inode")                                      \
	X(UNLINK_INODE_FIRST, "unlink-inode-first",                                                \
	  "unlink frees the inode before the name is gone",                                        \
	  "a file can neither be read nor removed", "F 9: unlink; V: unlink",                      \
	  BUG_FAILED, LAYER_PREFIX, "creat foo; unlink foo", "+no inode")                          \
	X(WRITE_INPLACE, "write-inplace", "an overwrite goes to the blocks that are in use",       \
	  "a mix of old and new data", "F 20: write",                                              \
	  BUG_NOT_ATOMIC, LAYER_REORDER,                                                           \
	  "creat foo; write foo 0 1100; write foo 100 900", "+size=1100")                          \
	X(SIZE_FIRST, "size-first", "an append in place commits its size before its data",         \
	  "the appended bytes are zeros", "F 17, 18: write",                                       \
	  BUG_NOT_ATOMIC, LAYER_PREFIX, "creat foo; write foo 0 100; append foo 100", "+size=200") \
	X(LOG_LINK, "log-link", "a new block of a log is linked and its head never flushed",       \
	  "the file system cannot be mounted", "F 1: all",                                         \
	  BUG_FAILED, LAYER_REORDER, SEVEN_NAMES "creat h", "+log block")                          \
	X(LOG_END, "log-end", "recovery follows the link of a log that ends with its block",       \
	  "the file system cannot be mounted", "F 1: all",                                         \
	  BUG_FAILED, LAYER_PREFIX, SEVEN_NAMES "creat h", "+log block")                           \
	X(RECOVERY_ORDER, "recovery-order", "recovery ends the journal before it is applied",      \
	  "after a second crash, half of an operation", "in neither paper",                        \
	  BUG_RECOVERY, LAYER_PREFIX, "creat foo; link foo bar", "+")                              \
	X(RECOVERY_NOFLUSH, "recovery-noflush",                                                    \
	  "recovery does not flush what it takes from the journal",                                \
	  "after a second crash, half of an operation", "in neither paper",                        \
	  BUG_RECOVERY, LAYER_REORDER, "creat foo; link foo bar", "+")
/* clang-format on */

#define SEVEN_NAMES "creat a; creat b; creat c; creat d; creat e; creat f; creat g; "

#define X(id, ...) BUG_##id,
enum bug { PMFS_BUGS(X) N_BUGS };
#undef X

struct bug_info {
	const char *name, *wrong, *consequence, *stems;
	enum bug_kind kind;
	enum bug_layer layer;
	const char *workload; /* operations, "; " between them */
	const char *shows;
};

extern const struct bug_info bug_table[N_BUGS];

/* Bits of names with commas between them; -1: there is no such bug. */
int bugs_parse(const char *names, uint64_t *bits);

#endif
