/* SPDX-License-Identifier: MIT */
/* blob.c - the agent's program itself, carried along so that it need not be looked for. */
#include "agent/blob.h"

#include <agent_path.h>

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	".globl agent_program, agent_program_end\n"
	"agent_program:\n"
	".incbin \"" AGENT_PATH "\"\n"
	"agent_program_end:\n"
	".byte 0\n"
	".popsection\n");
/* clang-format on */
