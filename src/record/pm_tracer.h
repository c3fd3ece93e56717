/* SPDX-License-Identifier: MIT */
/*
 * pm_tracer.h - runs a program under QEMU's user emulation with our plugin, or with our library in
 * front of libpmem: its accesses to a file that it maps as persistent memory become a stream
 * (outage/pm_stream.h).
 */
#ifndef RECORD_PM_TRACER_H
#define RECORD_PM_TRACER_H

#include "base/proc.h"
#include "core/trace.h"
#include "record/pm_stream.h"

struct tracer {
	bool preload;	/* the library is used, not the emulator */
	char *qemu;	/* the emulator; NULL with the library */
	char *version;	/* "7.2.22" */
	int plugin;	/* or library: a descriptor that children inherit; -1: none */
	bool filter;	/* see the plugin; set by the self-test */
	bool loads;	/* trace loads, too */
	bool stacks;	/* and the call stack of each event */
	uint64_t limit; /* bytes of a stream; 0: 1 GiB */
};

#define TRACER_INIT                                                                                \
	{                                                                                          \
		.plugin = -1, .filter = true                                                       \
	}

/*
 * With t->preload, unpacks the library. Else finds the emulator (`qemu`, or NULL: qemu-x86_64 in
 * PATH), unpacks the plugin for it, and tests both with a program whose trace is known.
 */
int tracer_open(struct tracer *t, const char *qemu, struct err *err) must_check;
/* Only unpacks the plugin for the emulator (user or system) at that path. */
int tracer_unpack(struct tracer *t, const char *qemu, struct err *err) must_check;
void tracer_close(struct tracer *t);

/* The record of a program's run. */
struct traced {
	unsigned char *stream; /* mapped */
	size_t len;
	struct proc_result end;
	char *maps; /* the program's mappings: lines of "START-END OFFSET PATH"; "" if they are
		       unknown */
};

void traced_release(struct traced *x);

/*
 * Runs argv to its end. `file` is absolute. Fails only if the program could not be run: the caller
 * checks how it ended, and whether the stream is whole.
 */
int tracer_run(const struct tracer *t, const char *file, const char *const *argv,
	       uint64_t timeout_ms, struct traced *out, struct err *err) must_check;

#endif
