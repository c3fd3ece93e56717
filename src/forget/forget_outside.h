/* SPDX-License-Identifier: MIT */
/*
 * forget_outside.h - finds files that an application writes outside of the recorded directory.
 *
 * No other process sees the mounts of our own mount namespace, so a watch on each of them
 * (fanotify) sees what the application and our own process do, and no more. The watch needs root.
 */
#ifndef FORGET_FORGET_OUTSIDE_H
#define FORGET_FORGET_OUTSIDE_H

#include "forget/forget_record.h"

struct outside;

/*
 * Starts to watch, before the recording mount exists. NULL if that is impossible. Files below
 * `ours` are not reported.
 */
struct outside *outside_new(const char *ours);
int outside_fd(const struct outside *o); /* -1 for NULL */
void outside_read(struct outside *o);
/* Reports the files, and frees. */
void outside_finish(struct outside *o, struct forget_record *out);

#endif
