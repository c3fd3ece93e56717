/* SPDX-License-Identifier: MIT */
/*
 * guest_end.h - decides what caused a guest's end: its kernel, which is a finding, or anything
 * else, which is an error of the run. The decision depends on certain facts: how its processes
 * ended, and what its kernel and its emulator printed; never on the time of an event.
 */
#ifndef GUEST_GUEST_END_H
#define GUEST_GUEST_END_H

#include "guest/guest.h"

struct guest_end {
	bool ended;   /* without our doing; else we ended the guest, */
	bool refused; /* as we took a disk away from it */
	int status;   /* as from waitpid() */
	bool aborted; /* another process of the guest had aborted before */
};

/*
 * Checks the guest's output for a lack of memory or room, or a signal from outside to one of its
 * processes: 0, or -errno if there was one. Such output says nothing of a file system, whether the
 * guest has answered or not.
 */
int guest_check_words(const struct guest *g, struct err *err) must_check;

/* Returns 0 if the guest's kernel caused its end, or -errno. */
int guest_judge_end(struct guest *g, const struct guest_end *how, struct err *err) must_check;

#endif
