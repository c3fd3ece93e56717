/* SPDX-License-Identifier: MIT */
/*
 * forget_caller.h - makes a file as its caller: with the caller's owner and umask. The kernel has
 * decided whether the file may be made; so only the owner changes, not what we may do.
 */
#ifndef FORGET_FORGET_CALLER_H
#define FORGET_FORGET_CALLER_H

#include "forget/forget_impl.h"

/*
 * From here to forget_caller_leave(), this thread makes things in the name of the user who sent the
 * request.
 */
void forget_caller_enter(fuse_req_t req);
void forget_caller_leave(fuse_req_t req);

#endif
