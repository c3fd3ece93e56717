/* SPDX-License-Identifier: MIT */
/*
 * forget_snapshot.c - makes copies of the durable state, and goes back to one.
 *
 * A snapshot is a directory in the stash, which exists only for snapshots: a copy of ROOT. A
 * snapshot outlives the mount, until a command removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/names_in.h"
#include "forget/forget_mount.h"

#define SNAPSHOTS "snapshots"

static int open_dir(int at, const char *name)
{
	return result(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static int make_dir(int at, const char *name)
{
	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	return open_dir(at, name);
}

static int check_name(const char *name, struct err *err)
{
	if (!name || !*name || strchr(name, '/') || name[0] == '.' || strlen(name) > 200)
		return err_set(
			err, -EINVAL,
			"a snapshot's name is a word without a slash, and has no dot in front");
	return 0;
}

static int copy_root(struct forget *f, int work)
{
	auto_fd tree = make_dir(work, "tree");

	return tree < 0 ? tree : forget_copy_tree(f->root_fd, tree, STASH_NAME);
}

int forget_snapshot_take(struct forget *f, const char *name, struct err *err)
{
	auto_free char *work_name = NULL;
	struct stat st;
	int rc = check_name(name, err);

	if (!rc)
		rc = forget_stash_open(f, err);
	if (rc)
		return rc;
	work_name = xasprintf("new-%s", name);
	auto_fd all = make_dir(f->stash_fd, SNAPSHOTS);
	if (all >= 0 && !fstatat(all, name, &st, AT_SYMLINK_NOFOLLOW))
		return err_set(err, -EEXIST, "there is a snapshot %s already", name);
	auto_fd work = make_dir(f->stash_fd, work_name);
	pthread_rwlock_wrlock(&f->gate);
	rc = all < 0 ? all : work < 0 ? work : copy_root(f, work);
	pthread_rwlock_unlock(&f->gate);
	if (!rc && renameat(work, "tree", all, name))
		rc = -errno;
	if (forget_remove_tree(f->stash_fd, work_name) && !rc)
		rc = -EIO;
	if (rc)
		return err_set(err, rc, "cannot keep a copy in %s/" STASH_NAME ": %s", f->root_path,
			       strerror(-rc));
	return 0;
}

/* ---- going back ---- */

/*
 * Names the snapshot while ROOT is being made from it: the next server that finds this file must go
 * on.
 */
#define ROLLBACK "rollback"

static int empty_root(int root)
{
	auto_names_in d = names_in(root, ".");
	int rc = d ? 0 : -EIO;

	for (struct dirent *e; !rc && (e = names_next(d));)
		if (!streq(e->d_name, STASH_NAME))
			rc = forget_remove_tree(root, e->d_name);
	return rc;
}

/*
 * Tells the kernel to forget names in ROOT: it may know that a name does not exist, for which there
 * is no node. Below other directories the kernel asks anyway: the directories that it knows are
 * gone.
 */
static void tell_names(struct forget *f, struct told_list *told)
{
	auto_names_in d = names_in(f->root_fd, ".");

	for (struct dirent *e; (e = names_next(d));)
		told_add(f, told, &f->tree.root, e->d_name);
}

/* Makes ROOT from a snapshot; may be repeated until it succeeds. */
static int fill_root(int root, int stash, int tree)
{
	int rc = empty_root(root);

	if (!rc)
		rc = forget_copy_tree(tree, root, NULL);
	if (!rc && unlinkat(stash, ROLLBACK, 0) && errno != ENOENT)
		rc = -errno;
	return rc;
}

static int open_snapshot(int stash, const char *name)
{
	auto_fd all = stash < 0 ? -ENOENT : open_dir(stash, SNAPSHOTS);

	return all < 0 ? all : open_dir(all, name);
}

static int begin_rollback(int stash, const char *name)
{
	auto_fd fd = openat(stash, ROLLBACK ".new",
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : io_write_full(fd, name, strlen(name));

	if (!rc && renameat(stash, ROLLBACK ".new", stash, ROLLBACK))
		rc = -errno;
	if (rc)
		unlinkat(stash, ROLLBACK ".new", 0);
	return rc;
}

int forget_snapshot_finish_rollback(int root_fd, int stash, const char *root, struct err *err)
{
	auto_fd fd = openat(stash, ROLLBACK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char name[256];
	ssize_t n;
	int rc;

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : err_set(err, -errno,
					 "cannot open %s/" STASH_NAME "/" ROLLBACK ": %m", root);
	n = io_read_full(fd, name, sizeof(name) - 1);
	name[max(n, (ssize_t)0)] = '\0';
	rc = check_name(name, err);
	if (rc)
		return rc;
	auto_fd tree = open_snapshot(stash, name);
	rc = tree < 0 ? tree : fill_root(root_fd, stash, tree);
	if (rc)
		return err_set(
			err, rc,
			"%s is half way back to its snapshot %s, and the rest cannot be done: "
			"%s; mend that, or remove %s/" STASH_NAME "/" ROLLBACK
			" to take it as it is",
			root, name, strerror(-rc), root);
	return 1;
}

/* Goes back to a snapshot; the gate is held alone. */
static int rollback_inside(struct forget *f, const char *name, int tree, struct told_list *told,
			   struct err *err)
{
	int rc;

	if (f->dead)
		return err_set(err, -ENOTCONN, "the mount has crashed already");
	forget_lose_inside(f, NULL, LOSE_GO_ON, "before going back to a snapshot", told, NULL,
			   NULL);
	told_all(f, told);
	forget_tree_abandon(f);
	rc = begin_rollback(f->stash_fd, name);
	if (!rc)
		rc = fill_root(f->root_fd, f->stash_fd, tree);
	tell_names(f, told);
	atomic_fetch_add(&f->epoch, 1);
	if (rc)
		return err_set(err, rc,
			       "%s is not what it was: going back to %s failed in the middle: %s; "
			       "try again, or mount it again, which goes on with it",
			       f->root_path, name, strerror(-rc));
	return 0;
}

int forget_snapshot_rollback(struct forget *f, const char *name, struct told_list *told,
			     struct err *err)
{
	int rc = check_name(name, err);

	if (rc)
		return rc;
	auto_fd tree = open_snapshot(f->stash_fd, name);
	if (tree < 0)
		return err_set(err, tree, "there is no snapshot %s", name);
	pthread_rwlock_wrlock(&f->gate);
	rc = rollback_inside(f, name, tree, told, err);
	pthread_rwlock_unlock(&f->gate);
	if (f->dead)
		forget_stop(f);
	return rc;
}

int forget_snapshot_drop(struct forget *f, const char *name, struct err *err)
{
	struct stat st;
	int rc = check_name(name, err);

	if (rc)
		return rc;
	auto_fd all = f->stash_fd < 0 ? -ENOENT : open_dir(f->stash_fd, SNAPSHOTS);
	if (all < 0 || fstatat(all, name, &st, AT_SYMLINK_NOFOLLOW))
		return err_set(err, -ENOENT, "there is no snapshot %s", name);
	rc = forget_remove_tree(all, name);
	if (rc)
		return err_set(err, rc, "cannot remove the snapshot %s: %s", name, strerror(-rc));
	/* The last snapshot takes the directory with it; otherwise the directory is not empty. */
	unlinkat(f->stash_fd, SNAPSHOTS, AT_REMOVEDIR);
	return 0;
}

int forget_snapshot_list(struct forget *f, struct strbuf *text, struct strbuf *json,
			 struct err *err)
{
	auto_names_in d = f->stash_fd < 0 ? NULL : names_of(open_dir(f->stash_fd, SNAPSHOTS));
	struct json j;
	size_t n = 0;

	(void)err;
	if (json) {
		json_init(&j, json, false);
		json_object(&j);
		json_kv_array(&j, "snapshots");
	}
	for (struct dirent *e; (e = names_next(d));) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		if (text)
			strbuf_addf(text, "%s\n", e->d_name);
		if (json)
			json_string(&j, e->d_name);
	}
	if (json) {
		json_end(&j);
		json_end(&j);
	}
	if (text && !n)
		strbuf_adds(text, "there are no snapshots\n");
	return 0;
}
