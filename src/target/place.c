/* SPDX-License-Identifier: MIT */
#include "target/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/owner.h"

/*
 * In the order of preference. /proc/driver is on every machine, and so is no file of a person. The
 * others are for a /proc that shows processes only.
 */
static const char *const candidates[] = { "/proc/driver", "/sys/fs/pstore", "/sys/kernel/debug" };

static const char *place;

static int mount_place(const char *name, struct err *err)
{
	int error = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(candidates) && !place; i++) {
		if (mount(name, candidates[i], "tmpfs", MS_NODEV | MS_NOSUID, "mode=700") == 0)
			place = candidates[i];
		else if (errno != ENOENT)
			error = errno;
	}
	errno = error;
	return place ? 0
		     : err_set(err, -error,
			       "cannot mount a tmpfs on any of /proc/driver, /sys/fs/pstore, "
			       "/sys/kernel/debug (%m); in a container, allow it to mount");
}

int place_enter(struct err *err)
{
	char name[OWNER_NAME_SIZE];

	if (place)
		return 0;
	if (unshare(CLONE_NEWNS) < 0)
		return err_set(err, -errno,
			       "cannot make a mount namespace (%m); in a container, give it "
			       "CAP_SYS_ADMIN");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(err, -errno, "cannot make mounts private: %m");
	owner_name("place", name);
	setenv(PLACE_OWNER, name, 1);
	return mount_place(name, err);
}

const char *place_path(void)
{
	return place;
}

int place_file(uint64_t size, char **path, struct err *err)
{
	assert(place);
	auto_free char *name = xasprintf("%s/disk-XXXXXX", place);
	auto_fd fd = mkostemp(name, O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "cannot make a file in memory: %m");
	if (ftruncate(fd, (off_t)size) < 0) {
		int rc = err_set(err, -errno, "cannot make a file of %llu bytes in memory: %m",
				 (unsigned long long)size);
		unlink(name);
		return rc;
	}
	*path = steal(name);
	return steal_fd(&fd);
}
