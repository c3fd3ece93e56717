/* SPDX-License-Identifier: MIT */
/* forget_copy.c - copies a tree with all contents, owners, times and links; removes one. */
#include "forget/forget_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names_in.h"

enum { COPY_DEPTH = 2000, COPY_BUF = 1 << 20 };

/* A file with several names, and the first one in the copy. */
struct copied {
	uint64_t ino;
	char *path;
};

struct copying {
	struct vec_of(struct copied) linked; /* in order of number */
	int top;			     /* the copy's top directory */
	struct strbuf path;		     /* below it, of the directory that is copied */
	const char *skip;		     /* a name in the top directory */
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

/* Makes a link to the copy of the file. Returns 1 if it has none yet: this is to be the first. */
static int copy_link(struct copying *c, const struct stat *st, int to, const char *name)
{
	size_t i = first_where(k, c->linked.n, c->linked.v[k].ino >= st->st_ino);

	if (i < c->linked.n && c->linked.v[i].ino == st->st_ino)
		return result(linkat(c->top, c->linked.v[i].path, to, name, 0));
	vec_push(&c->linked, (struct copied){ 0 });
	memmove(c->linked.v + i + 1, c->linked.v + i, (c->linked.n - 1 - i) * sizeof(*c->linked.v));
	c->linked.v[i] =
		(struct copied){ st->st_ino, xasprintf("%s%s", strbuf_str(&c->path), name) };
	return 1;
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

static int copy_dir(struct copying *c, int from, int to, int depth);

/* A copy without the deepest directories would be incomplete. */
static int copy_below(struct copying *c, int from, int to, const char *name, int depth)
{
	size_t len = c->path.len;
	int rc = depth ? result(mkdirat(to, name, 0700)) : -ENAMETOOLONG;

	if (rc)
		return rc;
	auto_fd in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (in < 0 || out < 0)
		return -errno;
	strbuf_addf(&c->path, "%s/", name);
	rc = copy_dir(c, in, out, depth - 1);
	strbuf_cut(&c->path, len);
	return rc;
}

static int copy_entry(struct copying *c, int from, int to, const char *name, int depth)
{
	struct stat st;
	int rc = 1;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
		rc = copy_link(c, &st, to, name);
	if (rc <= 0)
		return rc;
	if (S_ISREG(st.st_mode))
		rc = copy_file(from, to, name, &st);
	else if (S_ISLNK(st.st_mode))
		rc = copy_symlink(from, to, name);
	else if (S_ISDIR(st.st_mode))
		rc = copy_below(c, from, to, name, depth);
	else
		rc = result(mknodat(to, name, st.st_mode, st.st_rdev));
	return rc ? rc : copy_attributes(from, name, to, name, &st);
}

static int copy_dir(struct copying *c, int from, int to, int depth)
{
	auto_names_in d = names_in(from, ".");
	int rc = d ? 0 : -errno;

	for (struct dirent *e; !rc && (e = names_next(d));)
		if (depth != COPY_DEPTH || !c->skip || !streq(e->d_name, c->skip))
			rc = copy_entry(c, from, to, e->d_name, depth);
	return rc;
}

int forget_copy_tree(int from, int to, const char *skip)
{
	struct copying c = { .top = to, .path = STRBUF_INIT, .skip = skip };
	struct stat st;
	int rc;

	if (fstat(from, &st))
		return -errno;
	rc = copy_dir(&c, from, to, COPY_DEPTH);
	for (size_t i = 0; i < c.linked.n; i++)
		free(c.linked.v[i].path);
	vec_release(&c.linked);
	strbuf_release(&c.path);
	return rc ? rc : copy_attributes(from, ".", to, ".", &st);
}

/* ---- removing ---- */

/*
 * Removes the entries of `d`. Returns 1 if all are removed; 0 if a directory is not empty, whose
 * name is then in `name`.
 */
static int empty_dir(DIR *d, char name[NAME_MAX + 1])
{
	struct dirent *e;

	while ((e = names_next(d))) {
		if (!unlinkat(dirfd(d), e->d_name, 0) || errno == ENOENT)
			continue;
		if (errno != EISDIR)
			return -errno;
		if (!unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR))
			continue;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		snprintf(name, NAME_MAX + 1, "%s", e->d_name);
		return 0;
	}
	return 1;
}

/* Opens a directory to empty it; one of ours may have a mode that does not let us in. */
static int open_to_empty(int dir, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);

	if (fd < 0 && errno == EACCES && !fchmodat(dir, name, 0700, 0))
		fd = openat(dir, name, flags);
	if (fd >= 0)
		fchmod(fd, 0700);
	return fd < 0 ? -errno : fd;
}

/* Empties a tree from the bottom up, with one directory open at any depth. */
static int empty_tree(int top)
{
	auto_vec struct vec_of(char *) names = { 0 };
	char name[NAME_MAX + 1];
	int rc = 0, fd = top;

	for (;;) {
		DIR *d = fdopendir(fd);

		if (!d) {
			close(fd);
			rc = -ENOMEM;
			break;
		}
		rc = empty_dir(d, name);
		if (!rc) {
			fd = open_to_empty(dirfd(d), name);
			vec_push(&names, xstrdup(name));
		} else if (rc > 0 && names.n) {
			auto_free char *last = names.v[--names.n];

			fd = openat(dirfd(d), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd < 0 || unlinkat(fd, last, AT_REMOVEDIR))
				rc = -errno;
			if (rc < 0)
				util_close(fd);
		} else {
			fd = -1;
		}
		closedir(d);
		if (rc >= 0 && fd < -1)
			rc = fd;
		if (rc < 0 || fd < 0)
			break;
	}
	for (size_t i = 0; i < names.n; i++)
		free(names.v[i]);
	return min(rc, 0);
}

int forget_remove_tree(int dir, const char *name)
{
	int fd, rc;

	if (!unlinkat(dir, name, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	fd = open_to_empty(dir, name);
	rc = fd < 0 ? fd : empty_tree(fd);
	if (!rc && unlinkat(dir, name, AT_REMOVEDIR))
		rc = -errno;
	return rc;
}
