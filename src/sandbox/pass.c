/* SPDX-License-Identifier: MIT */
/* pass.c - sends and receives bytes and descriptors by SCM_RIGHTS. */
#include "sandbox/pass.h"

#include <errno.h>
#include <sys/socket.h>

/* Room for the descriptors of one message. */
union passed {
	struct cmsghdr head;
	char room[CMSG_SPACE(PASS_MAX * sizeof(int))];
};

int pass_send(int to, const void *data, size_t len, const int *fds, size_t n)
{
	struct iovec io = { (void *)(uintptr_t)data, len };
	union passed p = { 0 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &p,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	ssize_t sent = sendmsg(to, &m, MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent == (ssize_t)len ? 0 : -EIO;
}

int pass_receive(int from, void *data, size_t len, int fds[static PASS_MAX])
{
	struct iovec io = { data, len };
	union passed p = { 0 };
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = &p, .msg_controllen = sizeof(p)
	};
	ssize_t n;

	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len)
		return n < 0 ? -errno : -EPIPE;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return 0;
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	return (int)count;
}
