/* SPDX-License-Identifier: MIT */
/* space.c - enters a mount namespace whose mounts are private. */
#include "base/space.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/io.h"

int space_enter(struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_set(err, -errno,
			       "cannot make a mount namespace (%m); it needs root, and in a "
			       "container CAP_SYS_ADMIN");
	/*
	 * In a chroot, "/" need not be a mount; only the mount that SPACE_DIR is in matters.
	 */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 &&
	    mount(NULL, "/proc", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(err, -errno,
			       "cannot make mounts private (%m); is /proc mounted here?");
	return 0;
}

static int write_map(const char *path, const char *text, struct err *err)
{
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : io_write_full(fd, text, strlen(text));

	return rc ? err_set(err, rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

int space_enter_as_user(struct err *err)
{
	unsigned uid = geteuid(), gid = getegid();
	auto_free char *uids = xasprintf("%u %u 1", uid, uid);
	auto_free char *gids = xasprintf("%u %u 1", gid, gid);

	if (!uid)
		return space_enter(err);
	if (unshare(CLONE_NEWUSER))
		return err_set(err, -errno,
			       "cannot make a user namespace (%m); run it as root, or allow user "
			       "namespaces (sysctl user.max_user_namespaces, and "
			       "kernel.unprivileged_userns_clone where there is one)");
	int rc = write_map("/proc/self/setgroups", "deny", err);
	if (!rc)
		rc = write_map("/proc/self/uid_map", uids, err);
	if (!rc)
		rc = write_map("/proc/self/gid_map", gids, err);
	return rc ? rc : space_enter(err);
}
