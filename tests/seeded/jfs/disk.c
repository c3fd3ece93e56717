/* SPDX-License-Identifier: MIT */
/*
 * disk.c - the disk: whole blocks, and a flush. Every block is one pwrite of an aligned buffer,
 * every flush one fdatasync, so that a recording file below sees them as they are.
 */
#include "seedfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"

int disk_open(const char *path, struct disk *out)
{
	auto_fd fd = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
	struct stat st;
	uint64_t size;

	if (fd < 0 && errno == EINVAL) /* not every file system can write past its cache */
		fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, &size) < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return -EBUSY;
	size = min(size / BLOCK_BYTES, (uint64_t)MAX_BLOCKS);
	*out = (struct disk){ .fd = steal_fd(&fd), .n_blocks = (uint32_t)size };
	return 0;
}

void disk_close(struct disk *d)
{
	util_close(d->fd);
	d->fd = -1;
}

int disk_read(struct disk *d, uint32_t block, void *data)
{
	ssize_t n;

	if (block >= d->n_blocks)
		return -EIO;
	if (d->mem) {
		memcpy(data, d->mem + (size_t)block * BLOCK_BYTES, BLOCK_BYTES);
		return 0;
	}
	n = io_pread_full(d->fd, data, BLOCK_BYTES, (off_t)block * BLOCK_BYTES);
	return n < 0 ? (int)n : n == BLOCK_BYTES ? 0 : -EIO;
}

int disk_write(struct disk *d, uint32_t block, const void *data)
{
	if (block >= d->n_blocks)
		return -EIO;
	if (d->watch)
		d->watch(d->watch_ctx, block, data);
	if (d->mem) {
		memcpy(d->mem + (size_t)block * BLOCK_BYTES, data, BLOCK_BYTES);
		return 0;
	}
	return io_pwrite_full(d->fd, data, BLOCK_BYTES, (off_t)block * BLOCK_BYTES);
}

int disk_flush(struct disk *d)
{
	if (d->watch)
		d->watch(d->watch_ctx, 0, NULL);
	if (d->mem)
		return 0;
	return fdatasync(d->fd) < 0 ? -errno : 0;
}
