/* SPDX-License-Identifier: MIT */
/*
 * usable.c - a recovered file system must be usable: some bugs that the tree does not show prevent
 * removing a directory, or making a file. A full file system that has no room for another file is
 * right; one that has none after everything was removed is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check/check.h"

static const char probe_name[] = "outage-probe";

static void report(struct findings *out, const char *path, const char *what, int error)
{
	findings_add(out, FINDING_UNUSABLE, xstrdup(path),
		     xasprintf("%s: %s: %s", *path ? path : "the root", what, strerror(error)),
		     NULL);
}

/* Opens a directory of the tree; no link is followed on the way. */
static int open_dir(int root, const char *path)
{
	if (!*path)
		return fcntl(root, F_DUPFD_CLOEXEC, 0);
	return openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* Returns the error of a write; a short one had no room for the rest. */
static int write_error(ssize_t written, size_t wanted)
{
	return written < 0 ? errno : (size_t)written < wanted ? ENOSPC : 0;
}

/* Tries a new file in the directory. Returns 0, or the error and the failed step. */
static int try_file(int dir, const char **what)
{
	static const char data[] = "the power is back";
	char back[sizeof(data)];
	int error = 0;

	*what = "no file can be made in it";
	auto_fd fd = openat(dir, probe_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	error = write_error(pwrite(fd, data, sizeof(data), 0), sizeof(data));
	if (error) {
		*what = "a new file in it cannot be written";
	} else if (pread(fd, back, sizeof(back), 0) != (ssize_t)sizeof(back) ||
		   memcmp(back, data, sizeof(data)) != 0) {
		*what = "a new file in it does not hold what was written";
		error = EIO;
	}
	if (unlinkat(dir, probe_name, 0) < 0 && (!error || is_full(error))) {
		*what = "a new file in it cannot be removed";
		error = errno;
	}
	return error;
}

/* Tries a directory. True if the file system was full: then the directory is not judged yet. */
static bool probe_dir(int root, const char *path, struct findings *out)
{
	const char *what = "cannot be opened";
	auto_fd dir = open_dir(root, path);
	int error = dir < 0 ? errno : try_file(dir, &what);

	if (error && !is_full(error))
		report(out, path, what, error);
	return is_full(error);
}

/*
 * True if the file system is nearly full, or if the tree holds a good part of it. Otherwise, one
 * that has no room is damaged, and no time will help: a block of a bitmap was lost, for example.
 */
static bool may_get_room(int root, const struct tree *seen)
{
	enum { PART = 8, FEW_FILES = 64 };
	uint64_t held = 0;
	struct statvfs st;

	if (fstatvfs(root, &st) < 0)
		return true;
	for (size_t i = 0; i < seen->entries.n; i++)
		held += min(seen->entries.v[i].size, UINT64_MAX / 2 - held);
	return st.f_bavail < st.f_blocks / PART || (st.f_files && st.f_ffree < FEW_FILES) ||
	       held / max(st.f_frsize, 1UL) >= st.f_blocks / PART;
}

/* Checks for room when nothing is left; some file systems free it in the background. */
static void probe_empty(int root, const struct check_patience *patience, bool late,
			struct findings *out)
{
	const char *what = "";
	int error = try_file(root, &what);

	for (unsigned nap = 1; late && nap <= patience->ms / 2 && is_full(error); nap *= 2) {
		syncfs(root);
		patience->nap(nap);
		error = try_file(root, &what);
	}
	if (error)
		report(out, "", what, error);
}

static void remove_entry(int root, const struct tree_entry *e, struct findings *out)
{
	if (unlinkat(root, e->path, e->type == TREE_DIR ? AT_REMOVEDIR : 0) < 0)
		report(out, e->path, "cannot be removed", errno);
}

/*
 * Removes all entries, backwards, as a directory stands before its entries. Files are removed
 * first, so that a directory that was `full` is tried again when there is room; if directories
 * alone fill the file system, it is not judged.
 */
static void remove_all(int root, const struct tree *seen, const bool *full, size_t before,
		       struct findings *out)
{
	for (int dirs = 0; dirs < 2; dirs++)
		for (size_t i = seen->entries.n; i-- > 0;) {
			const struct tree_entry *e = &seen->entries.v[i];

			if (!*e->path || (e->type == TREE_DIR) != dirs ||
			    (e->error && out->n > before))
				continue;
			if (full[i])
				probe_dir(root, e->path, out);
			remove_entry(root, e, out);
		}
}

int check_usable(int root, const struct tree *seen, const struct check_patience *patience,
		 struct findings *out, struct err *err)
{
	size_t before = out->n;

	if (!seen->finished)
		return err_set(err, -EINVAL, "the tree is not finished");
	bool late = may_get_room(root, seen);
	auto_free bool *full = xcalloc(seen->entries.n + 1, sizeof(*full));
	for (size_t i = 0; i < seen->entries.n; i++) {
		const struct tree_entry *e = &seen->entries.v[i];

		if (e->type == TREE_DIR && !e->error)
			full[i] = probe_dir(root, e->path, out);
	}
	remove_all(root, seen, full, before, out);
	for (size_t i = 0; i < seen->entries.n; i++)
		if (full[i] && !*seen->entries.v[i].path)
			probe_empty(root, patience, late, out);
	return 0;
}
