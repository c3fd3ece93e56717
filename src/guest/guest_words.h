/* SPDX-License-Identifier: MIT */
/*
 * guest_words.h - finds the messages on a guest's console about the guest itself: a kernel that
 * ends for lack of memory, or because one of its processes got a signal from outside, says nothing
 * about a file system.
 */
#ifndef GUEST_GUEST_WORDS_H
#define GUEST_GUEST_WORDS_H

#include "base/util.h"

enum guest_word {
	GUEST_PANIC = 1 << 0,	  /* the kernel panics */
	GUEST_NO_MEMORY = 1 << 1, /* the guest has too little memory */
	GUEST_NO_ROOM = 1 << 2,	  /* the file that is its memory cannot grow */
	/* user-mode Linux: one of its processes is gone, or got a signal from outside */
	GUEST_LOST_PROC = 1 << 3,
	GUEST_AGENT_ENDED = 1 << 4, /* our agent gave up */
};

/* The meaning of the line, as bits; 0: none of these. */
unsigned guest_words(const char *line);

/* The number of panics in these lines. A second panic is another kernel's. */
unsigned guest_panics(const char *lines);
/*
 * True if the kernel panics because a signal ended our agent, without an earlier complaint of a
 * bug.
 */
bool guest_agent_killed(const char *lines);

/* The reason that QEMU reports on its monitor when it ends. */
enum guest_shutdown {
	GUEST_NOT_TOLD,
	GUEST_BY_ITSELF, /* the machine was reset or switched off from within, or its kernel
			    panicked */
	GUEST_FROM_OUTSIDE,
};

enum guest_shutdown guest_shutdown(const char *events);

#endif
