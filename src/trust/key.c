/* SPDX-License-Identifier: MIT */
/* key.c - reads the key, or makes it, in a directory that no other user may write to. */
#include "trust/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "base/strbuf.h"

static const char name[] = "key";

static int make_dir(const char *path, struct err *err)
{
	int fault = fault_point("key.mkdir");

	if (fault || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return err_set(err, fault ? fault : -errno, "cannot make the directory %s: %s",
			       path, strerror(fault ? -fault : errno));
	return 0;
}

/*
 * Refuses a directory of another user. Under sudo, HOME may still be the other user's, who could
 * replace files that are made there.
 */
static int check_whose(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, -errno, "cannot look at %s: %m", path);
	return st.st_uid == geteuid() ? 0
				      : err_set(err, -EPERM, "%s belongs to another user%s", path,
						geteuid() ? "" : " (sudo -H uses root's)");
}

/* Finds the directory of all programs' state. Returns -ENOENT if there is none. */
static int find_above(bool make, char **out, struct err *err)
{
	const char *xdg = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
	int rc = 0;

	if (xdg && *xdg == '/') {
		if (make)
			rc = make_dir(xdg, err);
		if (!rc)
			rc = check_whose(xdg, err);
		*out = rc ? NULL : xstrdup(xdg);
		return rc;
	}
	if (!home || *home != '/')
		return err_set(err, -ENOENT,
			       "neither HOME nor XDG_STATE_HOME names a directory for the key");
	auto_free char *local = xasprintf("%s/.local", home);
	auto_free char *state = xasprintf("%s/state", local);
	rc = check_whose(home, err);
	if (!rc && make)
		rc = make_dir(local, err);
	if (!rc && make)
		rc = make_dir(state, err);
	*out = rc ? NULL : steal(state);
	return rc;
}

/* Opens our own directory; `path` gets its path. */
static int open_dir(bool make, char **path, struct err *err)
{
	auto_free char *above = NULL;
	struct stat st;
	int rc = find_above(make, &above, err);

	if (rc)
		return rc;
	auto_free char *dir = xasprintf("%s/outage", above);
	if (make)
		rc = make_dir(dir, err);
	if (rc)
		return rc;
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open the directory %s: %m", dir);
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EPERM,
			       "%s must belong to this user, and no other user may write to it",
			       dir);
	*path = steal(dir);
	return steal_fd(&fd);
}

static int read_key(int dir, const char *path, unsigned char key[KEY_SIZE], struct err *err)
{
	auto_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s/%s: %m", path, name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != KEY_SIZE)
		return err_set(err, -EINVAL, "%s/%s is no key: remove it", path, name);
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM, "%s/%s belongs to another user: remove it", path, name);
	if (st.st_mode & 077)
		return err_set(err, -EPERM,
			       "others may use %s/%s, which has mode %04o: remove it, and a new "
			       "one is made",
			       path, name, st.st_mode & 07777);
	ssize_t n = io_read_full(fd, key, KEY_SIZE);
	return n == KEY_SIZE ? 0 : err_set(err, -EIO, "cannot read %s/%s", path, name);
}

static int draw(void *to, size_t len)
{
	int fault = fault_point("key.random");

	/* getrandom() returns so few bytes whole, or fails. */
	return fault ? fault : getrandom(to, len, 0) == (ssize_t)len ? 0 : -EIO;
}

/* K1: an existing key stays. */
static int put_in_place(int dir, const char *tmp)
{
	int fault = fault_point("key.rename");

	if (fault)
		return fault;
	if (renameat2(dir, tmp, dir, name, RENAME_NOREPLACE) == 0 || errno == EEXIST)
		return 0;
	/* Some file systems do not know the flag. */
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return linkat(dir, tmp, dir, name, 0) == 0 || errno == EEXIST ? 0 : -errno;
}

static int write_key(int dir, const char *tmp)
{
	unsigned char key[KEY_SIZE];
	int rc = draw(key, sizeof(key));
	auto_fd fd = rc ? -1 : openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (!rc && fd < 0)
		return -errno;
	if (!rc && fchmod(fd, 0600) < 0) /* regardless of umask */
		rc = -errno;
	if (!rc)
		rc = io_write_full(fd, key, sizeof(key));
	/* Without a sync, a power cut could lose the key, and with it the value of all marks. */
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	explicit_bzero(key, sizeof(key));
	return rc;
}

static int make_key(int dir, const char *path, struct err *err)
{
	uint64_t lot = 0;
	int rc = draw(&lot, sizeof(lot));
	auto_free char *tmp = xasprintf("%s.%016llx", name, (unsigned long long)lot);

	if (!rc)
		rc = write_key(dir, tmp);
	if (!rc)
		rc = put_in_place(dir, tmp);
	unlinkat(dir, tmp, 0); /* only if the file was not renamed */
	if (!rc && fsync(dir) < 0)
		rc = -errno;
	return rc ? err_set(err, rc, "cannot make %s/%s: %s", path, name, strerror(-rc)) : 0;
}

int key_load(unsigned char key[KEY_SIZE], struct err *err)
{
	auto_free char *path = NULL;
	auto_fd dir = open_dir(false, &path, err);

	return dir < 0 ? dir : read_key(dir, path, key, err);
}

int key_make(unsigned char key[KEY_SIZE], struct err *err)
{
	auto_free char *path = NULL;
	auto_fd dir = open_dir(true, &path, err);
	struct err none = ERR_INIT;

	if (dir < 0)
		return dir;
	int rc = read_key(dir, path, key, &none);
	if (rc != -ENOENT) {
		if (rc)
			*err = none;
		return rc;
	}
	rc = make_key(dir, path, err);
	return rc ? rc : read_key(dir, path, key, err);
}
