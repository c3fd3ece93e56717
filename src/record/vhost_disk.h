/* SPDX-License-Identifier: MIT */
/*
 * vhost_disk.h - the recording disk of a guest: the recorder "vhost", whose disk is no device of
 * this machine. The recorder needs no root.
 */
#ifndef RECORD_VHOST_DISK_H
#define RECORD_VHOST_DISK_H

#include "record/disk.h"
#include "record/vhost.h"

#define VHOST_RECORDER "vhost"

enum { VHOST_FLASH_PAGE = 4096 };

/* Makes a disk full of zeros; vhost_listen() on its device lets a guest connect. */
int vhost_disk_open(uint64_t size, struct disk **out, struct err *err) must_check;
/* The device, to be served by the code that waits for the guest. */
struct vhost *vhost_disk_device(struct disk *d);

/*
 * Makes the disk flash: its content lies in the guest's memory, in pages that the guest has
 * numbered: `mark` and the number, from 0 on, at the start of each, ~mark and the number in the
 * middle, 64 bits each. Every store there is durable; only the content at calls is seen.
 */
int vhost_disk_find_flash(struct disk *d, uint64_t mark, struct err *err) must_check;
/* Writes the content into that memory, before the guest mounts it. */
int vhost_disk_lay_out(struct disk *d, struct err *err) must_check;

#endif
