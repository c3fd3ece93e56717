/* SPDX-License-Identifier: MIT */
/* disk_server.h - the processes that serve the file behind a loop device. */
#ifndef RECORD_DISK_SERVER_H
#define RECORD_DISK_SERVER_H

#include "base/err.h"
#include "record/disk_log.h"

struct disk_server {
	pid_t keeper;
	int control; /* open while the disk is; when it closes, the keeper clears up */
	char *path;  /* the file, as any process of root can open it */
};

/*
 * Starts the processes; the file, called `name`, has the `size` bytes of `memfd`, and can be opened
 * when the call returns.
 */
int disk_server_start(int memfd, uint64_t size, const char *name, struct disk_log *log,
		      struct disk_server *out, struct err *err) must_check;
/* Ends the processes and waits until they are gone. Remaining users of the file get EIO. */
void disk_server_stop(struct disk_server *s);

#endif
