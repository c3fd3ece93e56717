/* SPDX-License-Identifier: MIT */
/*
 * guest_end.h - decides what is to blame for a guest's end: its kernel, which is a finding, or
 * anything else, which is an error of the run. The decision follows from what is known for certain:
 * how its processes ended, and what its kernel and its emulator said of that; never from when
 * something happened.
 */
#ifndef GUEST_GUEST_END_H
#define GUEST_GUEST_END_H

#include "guest/guest.h"

struct guest_end {
	bool ended;   /* by itself; else we had to end it, */
	bool refused; /* as we took a disk away from it */
	int status;   /* as of waitpid() */
	bool aborted; /* another process of its had given up before */
};

/*
 * Whether what it said shows that it lacked something, or that a process of its got a signal from
 * outside: 0 or -errno. Such words say nothing of a file system, whether the guest has answered or
 * not.
 */
int guest_check_words(const struct guest *g, struct err *err) must_check;

/* 0 if its kernel is to blame for its end, or -errno. */
int guest_judge_end(struct guest *g, const struct guest_end *how, struct err *err) must_check;

#endif
