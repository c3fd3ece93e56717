/* SPDX-License-Identifier: MIT */
/* pass.h - passes bytes, with open descriptors, over a socket. */
#ifndef SANDBOX_PASS_H
#define SANDBOX_PASS_H

#include "base/util.h"

enum { PASS_MAX = 3 }; /* descriptors at once */

/* Sends. Returns 0 or -errno. */
int pass_send(int to, const void *data, size_t len, const int *fds, size_t n) must_check;
/* Receives. Returns the number of descriptors, or -errno. */
int pass_receive(int from, void *data, size_t len, int fds[static PASS_MAX]) must_check;

#endif
