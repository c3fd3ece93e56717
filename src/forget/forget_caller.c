/* SPDX-License-Identifier: MIT */
/*
 * forget_caller.c - takes another user and group for one call, and gives them up again. Each thread
 * has a umask and credentials of its own.
 */
#include "forget/forget_call.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local bool own_umask, is_other;
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

void forget_caller_enter(uid_t uid, gid_t gid, mode_t mask)
{
	if (!own_umask) {
		own_umask = !unshare(CLONE_FS);
		umask(umask_now = 0);
		own_uid = geteuid();
		own_gid = getegid();
	}
	if (umask_now != mask)
		umask(umask_now = mask);
	is_other = !own_uid && (uid || gid != own_gid);
	if (!is_other)
		return;
	setfsgid(gid);
	setfsuid(uid);
	keep_capabilities();
}

void forget_caller_leave(void)
{
	if (!is_other)
		return;
	setfsuid(own_uid);
	setfsgid(own_gid);
	is_other = false;
}
