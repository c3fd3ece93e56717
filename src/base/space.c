/* SPDX-License-Identifier: MIT */
/* space.c - enters a mount namespace whose mounts are private. */
#include "base/space.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

int space_enter(struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_set(err, -errno,
			       "cannot make a mount namespace (%m); it needs root, and in a "
			       "container CAP_SYS_ADMIN");
	/* In a chroot, "/" need not be a mount; what matters is the one that SPACE_DIR is in. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 &&
	    mount(NULL, "/proc", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(err, -errno,
			       "cannot make mounts private (%m); is /proc mounted here?");
	return 0;
}
