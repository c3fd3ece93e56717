/* SPDX-License-Identifier: MIT */
/* kmsg.h - the kernel's log, as far as it complains. */
#ifndef TARGET_KMSG_H
#define TARGET_KMSG_H

#include "base/strbuf.h"

/* A descriptor that stands at the end of the log, or -1. */
int kmsg_open(void);
/*
 * Adds the complaints since the last call: bugs and warnings of the kernel, and what a file system
 * says of the block device `device` that is not routine. True if there were any.
 */
bool kmsg_read(int fd, const char *device, struct strbuf *out);
/* Whether one line is a complaint. */
bool kmsg_complains(const char *line, const char *device);

#endif
