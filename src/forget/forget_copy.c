/* SPDX-License-Identifier: MIT */
/* forget_copy.c - copies a tree with all contents, owners, times and links. */
#include "forget/forget_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names_in.h"

enum { COPY_DEPTH = 2000, COPY_BUF = 1 << 20 };

struct copying {
	struct recover_places *places; /* the place in the copy of each inode of the original */
	struct undo_place *at;
	const char *skip; /* a name in the top directory */
};

static int copy_bytes(int in, int out, off_t size)
{
	auto_free char *buf = NULL;
	off_t at = 0;

	if (!ioctl(out, FICLONE, in))
		return 0;
	while (at < size) {
		ssize_t n = copy_file_range(in, &at, out, NULL, (size_t)(size - at), 0);

		if (n < 0)
			break;
		if (!n)
			return 0;
	}
	if (at >= size)
		return 0;
	buf = xmalloc(COPY_BUF);
	for (;;) {
		ssize_t n = io_pread_full(in, buf, COPY_BUF, at);
		int rc = n <= 0 ? (int)n : io_pwrite_full(out, buf, (size_t)n, at);

		if (n <= 0 || rc)
			return rc;
		at += n;
	}
}

static int copy_xattrs(const char *from, const char *to)
{
	ssize_t len = listxattr(from, NULL, 0);
	auto_free char *list = xmalloc((size_t)max(len, (ssize_t)0) + 1);
	auto_free char *value = xmalloc(65536);
	ssize_t n;

	if (len <= 0)
		return 0;
	len = listxattr(from, list, (size_t)len);
	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(list + i) + 1) {
		n = getxattr(from, list + i, value, 65536);
		if (n >= 0 && setxattr(to, list + i, value, (size_t)n, 0))
			return -errno;
	}
	return 0;
}

static int copy_attributes(int from_dir, const char *from, int to_dir, const char *to,
			   const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	auto_fd in = openat(from_dir, from, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_fd out = openat(to_dir, to, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct fd_path out_path = fd_path(out);
	int rc;

	if (in < 0 || out < 0)
		return -errno;
	rc = result(fchownat(out, "", st->st_uid, st->st_gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	if (rc == -EPERM && geteuid())
		rc = 0; /* a user who may not give files away has no file of another user */
	if (!rc && !S_ISLNK(st->st_mode))
		rc = result(chmod(out_path.text, st->st_mode & 07777));
	if (!rc)
		rc = copy_xattrs(fd_path(in).text, out_path.text);
	return rc ? rc : result(utimensat(AT_FDCWD, out_path.text, times, 0));
}

static int copy_link(struct copying *c, const struct stat *st, int to, const char *name)
{
	auto_fd first = c->at->open(c->at, st->st_ino);

	if (first < 0)
		return first;
	return result(linkat(AT_FDCWD, fd_path(first).text, to, name, AT_SYMLINK_FOLLOW));
}

static int copy_file(int from, int to, const char *name, const struct stat *st)
{
	auto_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (in < 0 || out < 0)
		return -errno;
	return copy_bytes(in, out, st->st_size);
}

/* Copies a link. Not inlined: its memory would be on the stack once per directory level. */
static __attribute__((noinline)) int copy_symlink(int from, int to, const char *name)
{
	char target[4097];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return result(symlinkat(target, to, name));
}

static int copy_dir(struct copying *c, int from, int to, uint64_t ino, int depth);

static int copy_entry(struct copying *c, int from, int to, uint64_t dir, const char *name,
		      int depth)
{
	struct stat st;
	int rc;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	rc = !S_ISDIR(st.st_mode) && st.st_nlink > 1 ? copy_link(c, &st, to, name) : -ENOENT;
	/* All names of the inode are places of it: undoing may remove some of these. */
	if (!rc || rc == -ENOENT)
		recover_places_add(c->places, st.st_ino, dir, name);
	if (rc != -ENOENT)
		return rc; /* the inode exists under another name */
	if (S_ISREG(st.st_mode)) {
		rc = copy_file(from, to, name, &st);
	} else if (S_ISLNK(st.st_mode)) {
		rc = copy_symlink(from, to, name);
	} else if (S_ISDIR(st.st_mode)) {
		/* A copy without the deepest directories would be incomplete. */
		rc = depth ? result(mkdirat(to, name, 0700)) : -ENAMETOOLONG;
		if (!rc) {
			auto_fd in =
				openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			auto_fd out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			rc = in < 0 || out < 0 ? -errno
					       : copy_dir(c, in, out, st.st_ino, depth - 1);
		}
	} else {
		rc = result(mknodat(to, name, st.st_mode, st.st_rdev));
	}
	if (rc)
		return rc;
	return copy_attributes(from, name, to, name, &st);
}

static int copy_dir(struct copying *c, int from, int to, uint64_t ino, int depth)
{
	auto_names_in d = names_in(from, ".");
	int rc = d ? 0 : -errno;

	for (struct dirent *e; !rc && (e = names_next(d));)
		if (depth != COPY_DEPTH || !c->skip || !streq(e->d_name, c->skip))
			rc = copy_entry(c, from, to, ino, e->d_name, depth);
	return rc;
}

int forget_copy_tree(int from, int to, const char *skip, struct recover_places *places)
{
	struct copying c = { places, recover_places_undo(places, -1, true), skip };
	struct stat st;
	int rc;

	if (fstat(from, &st))
		return -errno;
	recover_places_set_root(places, st.st_ino);
	rc = copy_dir(&c, from, to, st.st_ino, COPY_DEPTH);
	return rc ? rc : copy_attributes(from, ".", to, ".", &st);
}

int forget_copy_one(int from, int to, const char *name, struct recover_places *places)
{
	struct copying c = { places, recover_places_undo(places, to, true), NULL };

	return copy_entry(&c, from, to, 0, name, COPY_DEPTH);
}
