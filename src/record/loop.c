/* SPDX-License-Identifier: MIT */
/*
 * loop.c - a loop device for a file.
 *
 * Another process may take a free device before this one does: LOOP_CONFIGURE takes it in one step,
 * or fails with EBUSY, and another device is asked for.
 *
 * The settings in /sys survive the detaching of a device, so each is made every time, whichever
 * process had the device before. Afterwards only stable_writes is restored: the loop driver itself
 * resets the write cache for each file.
 */
#include "record/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "base/names_in.h"
#include "base/owner.h"

enum { ATTACH_TRIES = 200, SECTOR = 512 };

/* Reads /sys/block/loopN/`what` without the newline. */
static int sys_read(unsigned number, const char *what, char *value, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/loop%u/%s", number, what);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = io_read_full(fd, value, size - 1);
	if (n < 0)
		return (int)n;
	value[n] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return 0;
}

static int sys_write(unsigned number, const char *what, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/loop%u/%s", number, what);
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return io_write_full(fd, value, strlen(value));
}

static uint32_t sys_number(unsigned number, const char *what)
{
	char text[32];

	return sys_read(number, what, text, sizeof(text)) ? 0 : (uint32_t)strtoul(text, NULL, 10);
}

static int set_up(struct loop *l, struct err *err)
{
	char value[64] = "";
	int r;

	r = sys_write(l->number, "queue/write_cache", "write back");
	if (!r)
		r = sys_read(l->number, "queue/write_cache", value, sizeof(value));
	if (r || !streq(value, "write back"))
		return err_set(
			err, r ? r : -EOPNOTSUPP,
			"%s cannot be given a volatile write cache, so flushes would not be seen",
			l->path);
	r = sys_read(l->number, "queue/scheduler", value, sizeof(value));
	if (!r && !strstr(value, "[none]"))
		r = sys_write(l->number, "queue/scheduler", "none");
	if (r)
		return err_set(err, r, "cannot turn off the I/O scheduler of %s: %m", l->path);
	/*
	 * A kernel without this file needs no setting: the check at the end of a recording finds
	 * data that changed in flight.
	 */
	r = sys_write(l->number, "queue/stable_writes", "1");
	if (r && r != -ENOENT && r != -EACCES)
		return err_set(err, r, "cannot set stable_writes of %s: %m", l->path);
	l->fua = sys_number(l->number, "queue/fua") != 0;
	l->sector_size = sys_number(l->number, "queue/logical_block_size");
	if (!l->sector_size)
		l->sector_size = SECTOR;
	return 0;
}

/* Tries once to attach; -EBUSY if another process was faster. */
static int try_attach(int control, int fd, const char *name, struct loop *l, struct err *err)
{
	struct loop_config config = { .fd = (unsigned)fd, .block_size = SECTOR };
	struct stat st;
	int n = ioctl(control, LOOP_CTL_GET_FREE);

	if (n < 0)
		return err_set(err, -errno,
			       "there is no free loop device (%m); 'outage doctor --fix' frees "
			       "what killed runs left");
	*l = (struct loop){ .number = (unsigned)n };
	snprintf(l->path, sizeof(l->path), "/dev/loop%d", n);
	auto_fd dev = open(l->path, O_RDWR | O_CLOEXEC);
	if (dev < 0) {
		/* A new device's node may need a moment to appear. */
		if (errno == ENOENT || errno == ENXIO)
			return -EBUSY;
		return err_set(err, -errno, "cannot open %s: %m", l->path);
	}
	snprintf(l->name, sizeof(l->name), "%s", name);
	memcpy(config.info.lo_file_name, l->name, sizeof(l->name));
	if (ioctl(dev, LOOP_CONFIGURE, &config) < 0) {
		if (errno == EBUSY)
			return -EBUSY;
		return err_set(err, -errno, "cannot set up %s: %m", l->path);
	}
	if (fstat(dev, &st) < 0) {
		int r = err_set(err, -errno, "cannot look at %s: %m", l->path);

		ioctl(dev, LOOP_CLR_FD);
		return r;
	}
	l->dev = st.st_rdev;
	return 0;
}

int loop_attach(int fd, const char *name, struct loop *out, struct err *err)
{
	struct loop l = { 0 };
	int r = fault_point("loop.control");
	auto_fd control = r ? -1 : open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		return err_set(err, r ? r : -errno,
			       "cannot open /dev/loop-control (%m); load the loop driver with: "
			       "modprobe loop");
	for (unsigned i = 0; i < ATTACH_TRIES; i++) {
		r = try_attach(control, fd, name, &l, err);
		if (r != -EBUSY)
			break;
		util_sleep_ms(1 + i % 10);
	}
	if (r == -EBUSY)
		return err_set(err, r, "others took each free loop device first; try again");
	if (r)
		return r;
	r = fault_point("loop.set_up");
	if (r)
		err_set(err, r, "cannot set up %s", l.path);
	else
		r = set_up(&l, err);
	if (r) {
		loop_detach(&l);
		return r;
	}
	*out = l;
	return 0;
}

/*
 * Opens the device, and gives the name with which it was attached. While it is open no other
 * process can attach it to another file, so a call through the descriptor acts on the device with
 * that name.
 */
static int open_attached(unsigned number, char name[LO_NAME_SIZE])
{
	struct loop_info64 info;
	char path[32];

	snprintf(path, sizeof(path), "/dev/loop%u", number);
	auto_fd dev = open(path, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -errno;
	if (ioctl(dev, LOOP_GET_STATUS64, &info) < 0)
		return -errno;
	snprintf(name, LO_NAME_SIZE, "%.*s", LO_NAME_SIZE - 1, (const char *)info.lo_file_name);
	return steal_fd(&dev);
}

int loop_clear_orphan(unsigned number)
{
	char name[LO_NAME_SIZE];
	auto_fd dev = open_attached(number, name);

	if (dev < 0)
		return dev;
	if (owner_state(name, NULL) != OWNER_GONE)
		return -ENXIO;
	/* The device is detached when its last descriptor, most often this one, is closed. */
	return ioctl(dev, LOOP_CLR_FD) < 0 ? -errno : 0;
}

void loop_detach(struct loop *l)
{
	char name[LO_NAME_SIZE];
	auto_fd dev = l->path[0] ? open_attached(l->number, name) : -1;

	/* If the device has another name, it was cleared meanwhile. */
	if (dev >= 0 && streq(name, l->name)) {
		sys_write(l->number, "queue/stable_writes", "0");
		ioctl(dev, LOOP_CLR_FD);
	}
	*l = (struct loop){ 0 };
}

int loop_each(loop_each_fn fn, void *ctx)
{
	auto_names_in dir = names_in(AT_FDCWD, "/sys/block");
	int r = dir ? 0 : -errno;

	for (struct dirent *e; !r && (e = names_next(dir));) {
		char file[512];
		unsigned number;
		int end = 0;

		if (sscanf(e->d_name, "loop%u%n", &number, &end) != 1 || e->d_name[end])
			continue;
		if (sys_read(number, "loop/backing_file", file, sizeof(file)))
			continue;
		r = fn(ctx, number, file);
	}
	return r;
}
