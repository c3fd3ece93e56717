/* SPDX-License-Identifier: MIT */
/* disk_server.h - the processes that serve the file behind a loop device. */
#ifndef RECORD_DISK_SERVER_H
#define RECORD_DISK_SERVER_H

#include "base/err.h"
#include "record/disk_log.h"

struct disk_server {
	pid_t keeper;
	int control; /* open as long as the disk is: its end is the keeper's signal to tidy up */
	char *path;  /* the file, as any process of root can open it */
};

/*
 * Starts the processes; the file has `size` bytes, which are those of `memfd`, and is called
 * `name`. When it returns, the file can be opened.
 */
int disk_server_start(int memfd, uint64_t size, const char *name, struct disk_log *log,
		      struct disk_server *out, struct err *err) must_check;
/* Ends them and waits until they are gone. Users that the file still has get EIO. */
void disk_server_stop(struct disk_server *s);

#endif
