/* SPDX-License-Identifier: MIT */
/*
 * usable.c - a recovered file system must be usable: a directory that cannot be removed, or a file
 * that cannot be made, is how some bugs show that no look at the tree would find.
 */
#include <errno.h>
#include <fcntl.h>
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

static void probe_dir(int root, const char *path, struct findings *out)
{
	static const char data[] = "the power is back";
	char back[sizeof(data)];
	auto_fd dir = open_dir(root, path);

	if (dir < 0) {
		report(out, path, "cannot be opened", errno);
		return;
	}
	auto_fd fd = openat(dir, probe_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		report(out, path, "no file can be made in it", errno);
	else if (pwrite(fd, data, sizeof(data), 0) != (ssize_t)sizeof(data))
		report(out, path, "a new file in it cannot be written", errno);
	else if (pread(fd, back, sizeof(back), 0) != (ssize_t)sizeof(back) ||
		 memcmp(back, data, sizeof(data)) != 0)
		report(out, path, "a new file in it does not hold what was written", EIO);
	if (fd >= 0 && unlinkat(dir, probe_name, 0) < 0)
		report(out, path, "a new file in it cannot be removed", errno);
}

int check_usable(int root, const struct tree *seen, struct findings *out, struct err *err)
{
	size_t before = out->n;

	if (!seen->finished)
		return err_set(err, -EINVAL, "the tree is not finished");
	for (size_t i = 0; i < seen->entries.n; i++) {
		const struct tree_entry *e = &seen->entries.v[i];

		if (e->type == TREE_DIR && !e->error)
			probe_dir(root, e->path, out);
	}
	/* Entries are in order of path, a directory before what is in it: backwards empties it. */
	for (size_t i = seen->entries.n; i-- > 0;) {
		const struct tree_entry *e = &seen->entries.v[i];

		if (!*e->path || (e->error && out->n > before))
			continue;
		if (unlinkat(root, e->path, e->type == TREE_DIR ? AT_REMOVEDIR : 0) < 0)
			report(out, e->path, "cannot be removed", errno);
	}
	return 0;
}
