/* SPDX-License-Identifier: MIT */
/* forget_umount.h - ends a mount, and waits until its server has ended. */
#ifndef FORGET_FORGET_UMOUNT_H
#define FORGET_FORGET_UMOUNT_H

#include "base/err.h"

/*
 * Fails if the mount is in use, or if the server has not ended after `timeout_ms`, or could not
 * write everything. A lazy unmount does not wait: the server goes on for processes that have files
 * open.
 */
int forget_umount(const char *mnt, bool lazy, uint64_t timeout_ms, struct err *err) must_check;

#endif
