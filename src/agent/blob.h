/* SPDX-License-Identifier: MIT */
/* blob.h - the bytes of the agent, a static program for this machine's architecture. */
#ifndef AGENT_BLOB_H
#define AGENT_BLOB_H

extern const unsigned char agent_program[], agent_program_end[];

#endif
