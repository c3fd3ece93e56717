/* SPDX-License-Identifier: MIT */
/* pickle.h - shared by the writer and the reader of a file of states (reffs_pool.h). */
#ifndef FS_PICKLE_H
#define FS_PICKLE_H

#include <stdbool.h>

enum record {
	REC_END,
	REC_PAGE,
	REC_TARGET,
	REC_XATTRS,
	REC_BRANCH,
	REC_SLOT,
	REC_ENTRY,
	REC_INODE,
	REC_STATE,
};

#define PICKLE_MAGIC "OUTREFFS"
enum { PICKLE_TIMES = 1, PICKLE_HEAD = 16, PICKLE_TAIL = 16 };

/*
 * For fuzzing: a wrong checksum is accepted, so that the code behind the check runs.
 */
extern bool pickle_any_sum;

#endif
