/* SPDX-License-Identifier: MIT */
/*
 * guest_words.h - finds what a guest's console says of the guest itself: a kernel that ends for
 * want of memory, or because a process of its got a signal from outside, tells nothing about a file
 * system.
 */
#ifndef GUEST_GUEST_WORDS_H
#define GUEST_GUEST_WORDS_H

#include "base/util.h"

enum guest_word {
	GUEST_PANIC = 1 << 0,	  /* the kernel gives up */
	GUEST_NO_MEMORY = 1 << 1, /* has not enough memory */
	GUEST_NO_ROOM = 1 << 2,	  /* the file that is its memory cannot grow */
	/* user-mode Linux: a process of its is gone, or got a signal that nothing in it sends */
	GUEST_LOST_PROC = 1 << 3,
	GUEST_AGENT_ENDED = 1 << 4, /* our agent gave up */
};

/* The meaning of the line, as bits; 0: none of these. */
unsigned guest_words(const char *line);

/* How often a kernel gives up in these lines. One that does ends; a second one is another's. */
unsigned guest_panics(const char *lines);
/*
 * Whether it gives up because a signal ended our agent, and had not complained of a bug of its own
 * before that.
 */
bool guest_agent_killed(const char *lines);

/* The reason that QEMU tells on its monitor when it ends. */
enum guest_shutdown {
	GUEST_NOT_TOLD,
	GUEST_BY_ITSELF, /* the machine was reset or switched off from within, or its kernel
			    panicked */
	GUEST_FROM_OUTSIDE,
};

enum guest_shutdown guest_shutdown(const char *events);

#endif
