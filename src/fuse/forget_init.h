/* SPDX-License-Identifier: MIT */
/* forget_init.h - see forget_init.c. */
#ifndef FUSE_FORGET_INIT_H
#define FUSE_FORGET_INIT_H

#include "fuse/forget_impl.h"

/* After mounting, before the first request is read. */
int forget_init_watch(struct forget *f, struct err *err) must_check;

#endif
