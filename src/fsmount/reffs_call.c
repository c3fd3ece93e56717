/* SPDX-License-Identifier: MIT */
/* reffs_call.c - makes calls to a mounted reference file system, with sentences for failures. */
#include "fsmount/reffs_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fs/reffs_pool.h"

int reffs_call(const char *what, const char *dir, unsigned long cmd, void *arg, struct err *err)
{
	auto_fd fd = open(dir, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", dir);
	if (ioctl(fd, cmd, arg) == 0)
		return 0;
	if (errno == ENOTTY)
		return err_set(
			err, -errno,
			"%s is no mounted reference file system; 'outage reffs %s' mounts one", dir,
			dir);
	if (errno == ENOENT)
		return err_set(err, -errno, "cannot %s: no state is saved under this key", what);
	return err_set(err, -errno, "cannot %s: %m", what);
}

int reffs_call_pickle(const char *dir, struct outage_reffs_file *f, struct err *err)
{
	auto_free char *place = xstrdup(f->path);

	/* Checks first that the file can be made; a later failure is about the key. */
	*strrchr(place, '/') = '\0';
	if (access(*place ? place : "/", F_OK) < 0)
		return err_set(err, -errno, "cannot write %s: its directory is not there", f->path);
	return reffs_call("pickle", dir, OUTAGE_REFFS_PICKLE, f, err);
}

/*
 * Loads a file. The call gives only an error number, so after a failure this process reads the file
 * to find the reason.
 */
int reffs_call_load(const char *dir, struct outage_reffs_file *f, struct err *err)
{
	struct err why = ERR_INIT;

	if (access(f->path, R_OK))
		return err_set(err, -errno, "cannot read %s: %m", f->path);
	int rc = reffs_call("load", dir, OUTAGE_REFFS_LOAD, f, &why);
	if (!rc || rc == -ENOTTY)
		return rc ? err_set(err, rc, "%s", why.msg) : 0;
	struct reffs *scratch = reffs_new(NULL);
	struct reffs_pool pool = { 0 };
	int bad = reffs_load_file(scratch, &pool, f->path, err);
	reffs_pool_release(&pool);
	reffs_free(scratch);
	return bad ? bad : err_set(err, rc, "%s", why.msg);
}
