/* SPDX-License-Identifier: MIT */
/*
 * machine.h - finds out which parts of this program work on this machine, and how to make the
 * others work.
 *
 * The checks change nothing, but a recorder is tried by a recording, which takes a loop device for
 * a moment, and can hang if the machine has a fault. Call this in a process that may be killed.
 */
#ifndef TARGET_MACHINE_H
#define TARGET_MACHINE_H

#include "base/strbuf.h"
#include "base/vec.h"

enum machine_status { MACHINE_OK, MACHINE_MISSING, MACHINE_NOTE };

struct machine_check {
	char *name;
	enum machine_status status;
	char *words;
	char *fix; /* advice, or NULL */
};

struct machine {
	struct vec_of(struct machine_check) checks;
	bool usable; /* file systems of this machine's kernel can be tested here */
	bool guests; /* file systems of other kernels can, in a guest */
};

const char *machine_status_name(enum machine_status status);

void machine_look(struct machine *m);
void machine_release(struct machine *m);

/* The memory that programs can get, with swap, in MiB; 0: unknown. */
uint64_t machine_free_mib(void);

/* Adds a sentence on what can be tested here, by quick checks that try nothing. */
void machine_summary(struct strbuf *out);

#endif
