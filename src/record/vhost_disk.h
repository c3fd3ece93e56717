/* SPDX-License-Identifier: MIT */
/*
 * vhost_disk.h - the recording disk of a guest: "vhost", a recorder of its own kind, as it has no
 * device on this machine. The recorder needs no root.
 */
#ifndef RECORD_VHOST_DISK_H
#define RECORD_VHOST_DISK_H

#include "record/disk.h"
#include "record/vhost.h"

#define VHOST_RECORDER "vhost"

enum { VHOST_FLASH_PAGE = 4096 };

/* A disk full of zeros; vhost_listen() on its device lets a guest have it. */
int vhost_disk_open(uint64_t size, struct disk **out, struct err *err) must_check;
/* The device, to be served by the code that waits for the guest. */
struct vhost *vhost_disk_device(struct disk *d);
/* A path to the content, to be freed, for programs of this user that only read it. */
char *vhost_disk_path(const struct disk *d);
/*
 * While a guest has it mounted, disk_load() refuses. Only the driver of the guest can tell: a
 * mounted disk looks like any other use from here.
 */
void vhost_disk_in_use(struct disk *d, bool in_use);

/*
 * Says that the disk is flash: its content lies in the guest's memory, in pages that the guest has
 * numbered: `mark` and the number, from 0 on, at the start of each, ~mark and the number in the
 * middle, 64 bits each. Every store there is durable; only the content between two calls is seen.
 */
int vhost_disk_find_flash(struct disk *d, uint64_t mark, struct err *err) must_check;
/* Puts the content there, before the guest mounts it. */
int vhost_disk_lay_out(struct disk *d, struct err *err) must_check;

#endif
