/* SPDX-License-Identifier: MIT */
/*
 * forget_recover.c - looks at what an earlier server left in ROOT. A killed server leaves the state
 * that a power cut leaves, so there is nothing to recover but this: a copy of ROOT that was not
 * finished goes, and the way back to one is gone to its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/names_in.h"
#include "forget/forget_mount.h"

/* Removes incomplete copies. */
static void clear_stash(int stash)
{
	auto_names_in d = names_in(stash, ".");

	for (struct dirent *e; (e = names_next(d));)
		if (!strncmp(e->d_name, "new-", 4) || !strncmp(e->d_name, "rollback.", 9))
			if (forget_remove_tree(stash, e->d_name))
				continue;
}

/*
 * Checks that the stash is our own. A user who may write to ROOT can make a stash there, with
 * anything in it, which must not be trusted.
 */
int forget_stash_check(int stash, const char *root, struct err *err)
{
	struct stat st;

	if (fstat(stash, &st))
		return err_set(err, -errno, "cannot look at %s/" STASH_NAME ": %m", root);
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, -EPERM,
			       "%s/" STASH_NAME " is not this user's own (user %u, mode %o); if it "
			       "is not needed, remove it",
			       root, (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
	return 0;
}

int forget_recover_locked(int root_fd, const char *root, struct err *err)
{
	auto_fd stash =
		openat(root_fd, STASH_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (stash < 0)
		return errno == ENOENT
			       ? 0
			       : err_set(err, -errno, "cannot open %s/" STASH_NAME ": %m", root);
	rc = forget_stash_check(stash, root, err);
	if (!rc)
		rc = forget_snapshot_finish_rollback(root_fd, stash, root, err);
	if (rc < 0)
		return rc;
	clear_stash(stash);
	unlinkat(root_fd, STASH_NAME, AT_REMOVEDIR); /* unless it has snapshots */
	return rc;
}

int forget_root_lock(int root_fd, const char *root, bool wait, struct err *err)
{
	/* A guardian may hold the lock for a moment while it clears up. */
	for (int i = 0; i < 100; i++) {
		if (!flock(root_fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK || !wait)
			break;
		util_sleep_ms(20);
	}
	return err_set(err, -EBUSY, "%s is in use by another mount; unmount that one first", root);
}

int forget_recover(const char *root, struct err *err)
{
	auto_fd fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", root);
	rc = forget_root_lock(fd, root, true, err);
	return rc ? rc : forget_recover_locked(fd, root, err);
}
