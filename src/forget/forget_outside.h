/* SPDX-License-Identifier: MIT */
/*
 * forget_outside.h - which files an application writes outside of the directory that is recorded.
 *
 * The mounts of a mount namespace of our own are in no other process's sight, so a watch on each of
 * them (fanotify) sees what the application does, and our own process, and no more. The watch needs
 * root.
 */
#ifndef FORGET_FORGET_OUTSIDE_H
#define FORGET_FORGET_OUTSIDE_H

#include "forget/forget_record.h"

struct outside;

/*
 * Before the recording mount is there. NULL if watching is impossible. Files below `ours` are not
 * told.
 */
struct outside *outside_new(const char *ours);
int outside_fd(const struct outside *o); /* -1 for NULL */
void outside_read(struct outside *o);
/* Tells, and frees. */
void outside_finish(struct outside *o, struct forget_record *out);

#endif
