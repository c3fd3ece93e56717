/* SPDX-License-Identifier: MIT */
/*
 * forget_init.c - one thing more that the kernel is told when the mount begins: set-id bits and
 * capabilities that a write takes away are ours to see to. Without it the kernel asks for a file's
 * capabilities before each write, which doubles what a write costs. libfuse 3.14 has no word for
 * it; so it is added to libfuse's answer on its way, if the kernel offered it.
 */
#include "fuse/forget_init.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t io_read(int fd, void *buf, size_t len, void *userdata)
{
	struct forget *f = userdata;
	ssize_t n = read(fd, buf, len);
	const struct fuse_in_header *h = buf;
	const struct fuse_init_in *in = (const void *)(h + 1);

	if (!f->init_seen && n >= (ssize_t)(sizeof(*h) + 16) && h->opcode == FUSE_INIT) {
		f->init_seen = true;
		f->init_unique = h->unique;
		f->init_offered = in->flags & FUSE_HANDLE_KILLPRIV_V2;
	}
	return n;
}

static ssize_t io_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct forget *f = userdata;

	if (f->init_offered && count >= 2) {
		const struct fuse_out_header *h = iov[0].iov_base;
		struct fuse_init_out *out = iov[1].iov_base;

		if (h->unique == f->init_unique && !h->error && iov[1].iov_len >= 16) {
			out->flags |= FUSE_HANDLE_KILLPRIV_V2;
			f->init_offered = false;
		}
	}
	return writev(fd, iov, count);
}

static ssize_t io_splice(int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags,
			 void *userdata)
{
	(void)userdata;
	return splice(in, in_off, out, out_off, len, flags);
}

int forget_init_watch(struct forget *f, struct err *err)
{
	const struct fuse_custom_io io = { .writev = io_writev,
					   .read = io_read,
					   .splice_receive = io_splice,
					   .splice_send = io_splice };
	int rc = fuse_session_custom_io(f->se, &io, fuse_session_fd(f->se));

	return rc ? err_set(err, rc, "cannot talk to the kernel: %s", strerror(-rc)) : 0;
}
