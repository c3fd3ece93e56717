/* SPDX-License-Identifier: MIT */
/* scratch.c - mounts the worker's tmpfs, and makes files in it. */
#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/owner.h"
#include "base/space.h"

static const char *place;

int scratch_enter(struct err *err)
{
	char name[OWNER_NAME_SIZE];
	int rc = place ? 0 : space_enter(err);

	if (rc || place)
		return rc;
	owner_name("place", name);
	setenv(SCRATCH_OWNER, name, 1);
	if (mount(name, SPACE_DIR, "tmpfs", MS_NODEV | MS_NOSUID, "mode=700") < 0)
		return err_set(err, -errno,
			       "cannot mount a tmpfs on " SPACE_DIR
			       " (%m); in a container, allow it to mount");
	place = SPACE_DIR;
	return 0;
}

const char *scratch_path(void)
{
	return place;
}

int scratch_file(uint64_t size, char **path, struct err *err)
{
	assert(place);
	auto_free char *name = xasprintf("%s/disk-XXXXXX", place);
	auto_fd fd = mkostemp(name, O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "cannot make a file in memory: %m");
	if (ftruncate(fd, (off_t)size) < 0) {
		int rc = err_set(err, -errno, "cannot make a file of %llu bytes in memory: %m",
				 llu(size));
		unlink(name);
		return rc;
	}
	*path = steal(name);
	return steal_fd(&fd);
}
