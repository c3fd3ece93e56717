/* SPDX-License-Identifier: MIT */
/* reffs_call.h - calls to a mounted reference file system, with sentences for failures. */
#ifndef FSMOUNT_REFFS_CALL_H
#define FSMOUNT_REFFS_CALL_H

#include <outage/reffs.h>

#include "base/err.h"

/* `what` is the call's name in messages, `dir` the mount point. */
int reffs_call(const char *what, const char *dir, unsigned long cmd, void *arg, struct err *err)
	must_check;
int reffs_call_pickle(const char *dir, struct outage_reffs_file *f, struct err *err) must_check;
int reffs_call_load(const char *dir, struct outage_reffs_file *f, struct err *err) must_check;

#endif
