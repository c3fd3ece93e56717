/* SPDX-License-Identifier: MIT */
/* blob.h - the bytes of the agent, a static program for this machine's architecture. */
#ifndef AGENT_BLOB_H
#define AGENT_BLOB_H

#include <stdint.h>

extern const unsigned char agent_program[];
extern const uint64_t agent_program_size;

#endif
