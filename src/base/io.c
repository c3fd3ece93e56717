/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

ssize_t io_read_full(int fd, void *data, size_t len)
{
	size_t done = 0;
	int fault = fault_point("io.read");

	if (fault)
		return fault;
	while (done < len) {
		ssize_t n = read(fd, (char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t io_pread_full(int fd, void *data, size_t len, off_t off)
{
	size_t done = 0;
	int fault = fault_point("io.pread");

	if (fault)
		return fault;
	while (done < len) {
		ssize_t n = pread(fd, (char *)data + done, len - done, off + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int io_write_full(int fd, const void *data, size_t len)
{
	size_t done = 0;
	int fault = fault_point("io.write");

	if (fault)
		return fault;
	while (done < len) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int io_pwrite_full(int fd, const void *data, size_t len, off_t off)
{
	size_t done = 0;
	int fault = fault_point("io.pwrite");

	if (fault)
		return fault;
	while (done < len) {
		ssize_t n = pwrite(fd, (const char *)data + done, len - done, off + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

/* Reads to the end, from where the descriptor stands. */
static int slurp_fd(int fd, const char *name, size_t limit, struct strbuf *out, struct err *err)
{
	size_t total = 0;

	for (;;) {
		enum { CHUNK = 64 * 1024 };
		char *to = strbuf_grow(out, CHUNK);
		ssize_t n = io_read_full(fd, to, CHUNK);

		if (n < 0)
			return err_set(err, (int)n, "cannot read %s: %s", name, strerror((int)-n));
		out->len += (size_t)n;
		out->buf[out->len] = '\0';
		total += (size_t)n;
		if (total > limit)
			return err_set(err, -EFBIG, "%s is larger than %zu bytes, the limit here",
				       name, limit);
		if (n < CHUNK)
			return 0;
	}
}

int io_slurp(const char *path, size_t limit, struct strbuf *out, struct err *err)
{
	bool std_in = streq(path, "-");
	const char *name = std_in ? "standard input" : path;
	auto_fd opened = -1;
	int fd = STDIN_FILENO;

	if (!std_in) {
		fd = opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			return err_set(err, -errno, "cannot open %s: %m", name);
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return err_set(err, -EISDIR, "%s is a directory, not a file", name);
	}
	return slurp_fd(fd, name, limit, out, err);
}

int io_open_file(int dir, const char *name, int flags, const char *path, struct err *err)
{
	int follow = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat st;

	/* To open a pipe or a device can wait, or do something: it is looked at before. */
	if (fstatat(dir, name, &st, follow) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", path);
	auto_fd fd = openat(dir, name, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", path);
	return steal_fd(&fd);
}

/* Whether nobody but this user can have written what the descriptor leads to. */
static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int io_slurp_file(const char *dir, const char *name, size_t limit, struct strbuf *out, bool *ours,
		  struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	auto_fd in = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (in < 0)
		return err_set(err, -errno, "cannot open %s: %m", dir);
	auto_fd fd = io_open_file(in, name, O_RDONLY, path, err);
	if (fd < 0)
		return fd;
	if (ours)
		*ours = is_ours(in) && is_ours(fd);
	return slurp_fd(fd, path, limit, out, err);
}

/* A device or a pipe cannot be replaced by a file; it is written to as it is. */
static int open_in_place(const char *path, struct io_output *out, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", path);
	*out = (struct io_output){ .fd = fd, .path = xstrdup(path) };
	return 0;
}

int io_output_open(const char *path, struct io_output *out, struct err *err)
{
	struct stat st;
	mode_t mask = umask(0);

	umask(mask);
	if (streq(path, "-")) {
		*out = (struct io_output){ .fd = STDOUT_FILENO,
					   .path = xstrdup("standard output"),
					   .borrowed = true };
		return 0;
	}
	bool exists = stat(path, &st) == 0;
	if (exists && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "%s is a directory", path);
	if (exists && !S_ISREG(st.st_mode))
		return open_in_place(path, out, err);
	/* Behind a symbolic link, the file itself is replaced, not the link. */
	auto_free char *real = exists ? realpath(path, NULL) : xstrdup(path);
	if (!real)
		return err_set(err, -errno, "cannot find %s: %m", path);
	auto_free char *tmp = xasprintf("%s.XXXXXX", real);
	int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot create %s: %m", path);
	if (fchmod(fd, exists ? st.st_mode & 07777 : 0666 & ~mask) < 0) {
		int rc = err_set(err, -errno, "cannot set the mode of %s: %m", path);
		unlink(tmp);
		util_close(fd);
		return rc;
	}
	*out = (struct io_output){ .fd = fd, .path = steal(real), .tmp = steal(tmp) };
	return 0;
}

int io_output_commit(struct io_output *out, struct err *err)
{
	int rc = 0;

	assert(out->fd >= 0);
	if (out->tmp) {
		int fault = fault_point("io.rename");

		if (close(steal_fd(&out->fd)) < 0)
			rc = err_set(err, -errno, "cannot finish writing %s: %m", out->path);
		else if (fault || rename(out->tmp, out->path) < 0)
			rc = err_set(err, fault ? fault : -errno, "cannot create %s: %m",
				     out->path);
		if (!rc) {
			free(out->tmp);
			out->tmp = NULL;
		}
	}
	io_output_release(out);
	return rc;
}

void io_output_release(struct io_output *out)
{
	if (out->tmp)
		unlink(out->tmp);
	if (!out->borrowed)
		util_close(out->fd);
	free(out->tmp);
	free(out->path);
	*out = (struct io_output){ .fd = -1 };
}

int io_write_file(const char *dir, const char *name, const void *text, size_t len, mode_t mode,
		  struct err *err)
{
	auto_free char *path = dir ? xasprintf("%s/%s", dir, name) : xstrdup(name);
	struct io_output out;
	int rc = io_output_open(path, &out, err);

	if (rc)
		return rc;
	rc = len ? io_write_full(out.fd, text, len) : 0;
	if (!rc && mode && fchmod(out.fd, mode) < 0)
		rc = -errno;
	if (rc) {
		err_set(err, rc, "cannot write %s: %s", path, strerror(-rc));
		io_output_release(&out);
		return rc;
	}
	return io_output_commit(&out, err);
}
