/* SPDX-License-Identifier: MIT */
/* sync_watch.c - sets the seccomp filter in the child, and answers its questions in the parent. */
#include "forget/sync_watch.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "sandbox/pass.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE AUDIT_ARCH_RISCV64
#else
#define NATIVE 0
#endif

/* ---- the child ---- */

/* Sets the filter. Calls by the numbers of another architecture are not seen. */
static int set_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sync, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_syncfs, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	if (!NATIVE)
		return -ENOSYS;
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	return fd < 0 ? -errno : fd;
}

/* Sends a message with the descriptor, or with the error. */
void sync_watch_send(int socket)
{
	int fd = set_filter(), wrong = min(fd, 0);

	(void)!pass_send(socket, &wrong, sizeof(wrong), &fd, fd >= 0);
	util_close(fd);
	util_close(socket);
}

/* ---- the parent ---- */

int sync_watch_receive(int socket)
{
	int wrong = 0, fds[PASS_MAX];

	if (pass_receive(socket, &wrong, sizeof(wrong), fds) == 1)
		return fds[0];
	return wrong ? wrong : -ECHILD;
}

/* True if a sync concerns the device; sync(2) concerns all. */
static bool concerns(const struct seccomp_notif *q, dev_t dev)
{
	char path[64];
	struct stat st;

	if (q->data.nr == SYS_sync)
		return true;
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", q->pid, (int)q->data.args[0]);
	return !stat(path, &st) && st.st_dev == dev;
}

bool sync_watch_answer(int fd, dev_t dev, void (*synced)(void *ctx, pid_t pid), void *ctx)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct seccomp_notif q = { 0 };

	if (poll(&p, 1, 0) <= 0)
		return true;
	if (!(p.revents & POLLIN))
		return !(p.revents & (POLLHUP | POLLERR | POLLNVAL));
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &q))
		return true; /* the process was killed meanwhile */
	struct seccomp_notif_resp answer = { .id = q.id,
					     .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	if (concerns(&q, dev))
		synced(ctx, (pid_t)q.pid);
	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	return true;
}
