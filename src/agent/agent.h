/* SPDX-License-Identifier: MIT */
/* agent.h - shared by the files of the agent, the program that is init in a guest. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/wire.h"
#include "check/check.h"
#include "tree/tree.h"
#include "workload/exec.h"

#define AGENT_MNT  "/mnt"
#define AGENT_DISK "/dev/disk"

struct agent {
	int root; /* of what is mounted, or -1 */
	char *type, *source, *options;
	uint32_t flags; /* of the mount, to do it again */
	struct workload workload;
	struct exec exec;
	bool running;	  /* exec is initialised */
	struct tree seen; /* by the last walk */
	char disk[16];	  /* the kernel's name for AGENT_DISK */
};

/* Does one command and puts what it answers into the part at hand. 0, or -errno. */
int agent_do(struct agent *a, enum agent_command command, struct wire_in *in, struct strbuf *out);

#endif
