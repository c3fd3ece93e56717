/* SPDX-License-Identifier: MIT */
/*
 * forget_caller.c - takes the caller's umask, user and group for one call, and gives them up again.
 * Each thread has a umask and credentials of its own.
 */
#include "forget/forget_impl.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local bool own_umask;
static _Thread_local mode_t umask_now;
static _Thread_local uid_t own_uid; /* never changes */
static _Thread_local gid_t own_gid;

/* A change of user takes capabilities away; the kernel has checked the caller already. */
static void keep_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return;
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted;
	syscall(SYS_capset, &head, data);
}

static bool is_other(const struct fuse_ctx *who)
{
	return !own_uid && (who->uid || who->gid != own_gid);
}

void forget_caller_enter(fuse_req_t req)
{
	const struct fuse_ctx *who = fuse_req_ctx(req);

	if (!own_umask) {
		own_umask = !unshare(CLONE_FS);
		umask(umask_now = 0);
		own_uid = geteuid();
		own_gid = getegid();
	}
	if (umask_now != who->umask)
		umask(umask_now = who->umask);
	if (!is_other(who))
		return;
	setfsgid(who->gid);
	setfsuid(who->uid);
	keep_capabilities();
}

void forget_caller_leave(fuse_req_t req)
{
	const struct fuse_ctx *who = fuse_req_ctx(req);

	if (!is_other(who))
		return;
	setfsuid(own_uid);
	setfsgid(own_gid);
}
