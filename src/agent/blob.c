/* SPDX-License-Identifier: MIT */
/* blob.c - holds the agent's program, so that it need not be installed. */
#include "agent/blob.h"

#include <agent_path.h>

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	".globl agent_program, agent_program_size\n"
	"agent_program:\n"
	".incbin \"" AGENT_PATH "\"\n"
	"1:\n"
	".balign 8\n"
	"agent_program_size:\n"
	".quad 1b - agent_program\n"
	".popsection\n");
/* clang-format on */
