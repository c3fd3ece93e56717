/* SPDX-License-Identifier: MIT */
/* agent.h - declarations for the files of the agent, the program that is init in a guest. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/wire.h"
#include "check/check.h"
#include "tree/tree.h"
#include "workload/exec.h"

#define AGENT_MNT  "/mnt"
#define AGENT_DISK "/dev/disk"

struct agent {
	int root; /* the mounted root directory, or -1 */
	char *type, *source, *options;
	uint32_t flags; /* flags of the mount, for mounting again */
	struct workload workload;
	struct exec exec;
	bool running;	  /* exec is initialised */
	struct tree seen; /* the result of the last walk */
	char disk[16];	  /* the kernel's name for AGENT_DISK */
};

/* Performs one command, and puts the answer into `out`. Returns 0, or -errno. */
int agent_do(struct agent *a, enum agent_command command, struct wire_in *in, struct strbuf *out);

#endif
