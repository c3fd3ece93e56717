/* SPDX-License-Identifier: MIT */
/*
 * io.c - reads and writes whole files, and makes new files and directories appear by a rename after
 * a sync.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/names_in.h"

enum { HERE = -1 }; /* in place of an offset: at the descriptor's position, which moves */

static ssize_t read_full(const char *point, int fd, char *data, size_t len, off_t off)
{
	size_t done = 0;
	int fault = fault_point(point);

	if (fault)
		return fault;
	while (done < len) {
		ssize_t n = off == HERE ? read(fd, data + done, len - done)
					: pread(fd, data + done, len - done, off + (off_t)done);

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

ssize_t io_read_full(int fd, void *data, size_t len)
{
	return read_full("io.read", fd, data, len, HERE);
}

ssize_t io_pread_full(int fd, void *data, size_t len, off_t off)
{
	return off < 0 ? -EINVAL : read_full("io.pread", fd, data, len, off);
}

static int write_full(const char *point, int fd, const char *data, size_t len, off_t off)
{
	size_t done = 0;
	int fault = fault_point(point);

	if (fault)
		return fault;
	while (done < len) {
		ssize_t n = off == HERE ? write(fd, data + done, len - done)
					: pwrite(fd, data + done, len - done, off + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int io_write_full(int fd, const void *data, size_t len)
{
	return write_full("io.write", fd, data, len, HERE);
}

int io_pwrite_full(int fd, const void *data, size_t len, off_t off)
{
	return off < 0 ? -EINVAL : write_full("io.pwrite", fd, data, len, off);
}

/* Reads from the descriptor's position to the end. */
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
		fd = opened = below_open_named(path, err);
		if (fd < 0)
			return fd;
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return err_set(err, -EISDIR, "%s is a directory, not a file", name);
	}
	return slurp_fd(fd, name, limit, out, err);
}

int io_slurp_file(const char *dir, const char *name, size_t limit, struct strbuf *out,
		  struct err *err)
{
	auto_free char *path = below_shown(dir, name);
	const char *last;
	/* If the directory is a link, this call reports it. */
	auto_fd in = below_open_parent(dir, name, &last, err);

	if (in < 0)
		return in;
	auto_fd fd = below_open(dir, name, O_RDONLY, err);
	return fd < 0 ? fd : slurp_fd(fd, path, limit, out, err);
}

/* A device or a pipe cannot be replaced by a file; it is written to as it is. */
static int open_in_place(const char *path, struct io_output *out, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", path);
	*out = (struct io_output){ .fd = fd, .dir = AT_FDCWD, .path = xstrdup(path) };
	return 0;
}

int io_output_open(const char *path, struct io_output *out, struct err *err)
{
	auto_free char *dir = NULL, *name = NULL;
	struct stat st;
	mode_t mask = umask(0);

	umask(mask);
	if (streq(path, "-")) {
		*out = (struct io_output){ .fd = STDOUT_FILENO,
					   .dir = AT_FDCWD,
					   .path = xstrdup("standard output"),
					   .borrowed = true };
		return 0;
	}
	if (below_named(path, &dir, &name))
		return io_output_open_below(dir, name, false, out, err);
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
	*out = (struct io_output){ .fd = fd,
				   .dir = AT_FDCWD,
				   .path = xstrdup(real),
				   .name = steal(real),
				   .tmp = steal(tmp) };
	return 0;
}

int io_output_open_below(const char *dir, const char *name, bool durable, struct io_output *out,
			 struct err *err)
{
	auto_free char *path = below_shown(dir, name);
	const char *last;
	auto_fd parent = below_open_parent(dir, name, &last, err);

	if (parent < 0)
		return parent;
	auto_free char *tmp = below_new_name(last);
	/* Only this process uses this name, so an existing file is left from its own failure. */
	unlinkat(parent, tmp, 0);
	int fd = openat(parent, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(err, -errno, "cannot create %s: %m", path);
	*out = (struct io_output){ .fd = fd,
				   .dir = steal_fd(&parent),
				   .path = steal(path),
				   .name = xstrdup(last),
				   .tmp = steal(tmp),
				   .durable = durable };
	return 0;
}

/* Gives a complete file, which has its temporary name, its own name. */
static int rename_output(struct io_output *out, struct err *err)
{
	int fault = 0, rc = out->durable ? io_sync_fd(out->fd, out->path, err) : 0;

	if (rc)
		return rc;
	if (close(steal_fd(&out->fd)) < 0)
		return err_set(err, -errno, "cannot finish writing %s: %m", out->path);
	fault = fault_point("io.rename");
	if (fault || renameat(out->dir, out->tmp, out->dir, out->name) < 0)
		return err_set(err, fault ? fault : -errno, "cannot create %s: %m", out->path);
	free(out->tmp);
	out->tmp = NULL;
	return out->durable ? io_sync_fd(out->dir, out->path, err) : 0;
}

int io_output_commit(struct io_output *out, struct err *err)
{
	assert(out->fd >= 0);
	int rc = out->tmp ? rename_output(out, err) : 0;

	io_output_release(out);
	return rc;
}

void io_output_release(struct io_output *out)
{
	if (out->tmp)
		unlinkat(out->dir, out->tmp, 0);
	if (!out->borrowed)
		util_close(out->fd);
	if (out->name)
		util_close(out->dir);
	free(out->tmp);
	free(out->name);
	free(out->path);
	*out = (struct io_output){ .fd = -1, .dir = AT_FDCWD };
}

static int write_file(const char *dir, const char *name, const void *text, size_t len, mode_t mode,
		      bool durable, struct err *err)
{
	struct io_output out = { .fd = -1 };
	int rc = dir ? io_output_open_below(dir, name, durable, &out, err)
		     : io_output_open(name, &out, err);

	if (rc)
		return rc;
	rc = len ? io_write_full(out.fd, text, len) : 0;
	if (!rc && mode && fchmod(out.fd, mode) < 0)
		rc = -errno;
	if (rc) {
		err_set(err, rc, "cannot write %s: %s", out.path, strerror(-rc));
		io_output_release(&out);
		return rc;
	}
	return io_output_commit(&out, err);
}

int io_write_file(const char *dir, const char *name, const void *text, size_t len, mode_t mode,
		  struct err *err)
{
	return write_file(dir, name, text, len, mode, false, err);
}

int io_keep_file(const char *dir, const char *name, const void *text, size_t len, struct err *err)
{
	return write_file(dir, name, text, len, 0, true, err);
}

/* ---- on disk ---- */

int io_sync_fd(int fd, const char *path, struct err *err)
{
	int fault = fault_point("io.fsync");

	if (!fault && fsync(fd) == 0)
		return 0;
	/* A file system that cannot sync says so by one of these errors. */
	if (!fault && (errno == EINVAL || errno == EROFS || errno == EOPNOTSUPP))
		return 0;
	int rc = fault ? fault : -errno;
	return err_set(err, rc, "cannot write %s to disk: %s", path, strerror(-rc));
}

static int sync_tree(int dir, const char *name, const char *path, struct err *err);

/* Syncs all files in a directory, then the directory. */
static int sync_dir(int fd, const char *path, struct err *err)
{
	auto_words names = { 0 };
	int rc = names_all(fd, path, &names, err);

	for (size_t i = 0; !rc && i < names.n; i++) {
		auto_free char *below = xasprintf("%s/%s", path, names.v[i]);

		rc = sync_tree(fd, names.v[i], below, err);
	}
	return rc ? rc : io_sync_fd(fd, path, err);
}

/* Syncs a file or a tree. A link, a pipe or a device has no data of its own to sync. */
static int sync_tree(int dir, const char *name, const char *path, struct err *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, -errno, "cannot look at %s: %m", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	auto_fd fd = below_openat(dir, name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, fd, "cannot open %s: %s", path, strerror(-fd));
	return S_ISDIR(st.st_mode) ? sync_dir(fd, path, err) : io_sync_fd(fd, path, err);
}

/* Syncs the directory above, which is the user's and need not be readable. */
static int sync_above(int fd, const char *path, struct err *err)
{
	auto_fd above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return above < 0 ? 0 : io_sync_fd(above, path, err);
}

int io_sync_run(const char *dir, const char *const *names, struct err *err)
{
	auto_fd fd = below_open_dir(dir, NULL, err);
	int rc = min(fd, 0);

	for (; !rc && *names; names++) {
		auto_free char *path = below_shown(dir, *names);
		struct stat st;

		if (fstatat(fd, *names, &st, AT_SYMLINK_NOFOLLOW) == 0)
			rc = sync_tree(fd, *names, path, err);
	}
	if (!rc)
		rc = io_sync_fd(fd, dir, err);
	return rc ? rc : sync_above(fd, dir, err);
}

bool io_cannot_exchange;

/* Returns 0 or -errno; -EINVAL if the file system cannot exchange names in one step. */
static int exchange(int in, const char *a, int out, const char *b)
{
	if (io_cannot_exchange)
		return faccessat(out, b, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : -EINVAL;
	return renameat2(in, a, out, b, RENAME_EXCHANGE) < 0 ? -errno : 0;
}

static int move(int in, const char *from, int out, const char *to)
{
	int fault = fault_point("io.move");

	return fault ? fault : renameat(in, from, out, to) < 0 ? -errno : 0;
}

/*
 * Exchanges names on file systems without RENAME_EXCHANGE. Meanwhile `b` has a name beside `a` that
 * is not hidden, so the directory of `a` has one of the two at any moment, and after any kill.
 */
static int exchange_by_hand(int in, const char *a, int out, const char *b)
{
	auto_free char *aside = xasprintf("%s.new", a);
	int rc = move(out, b, in, aside);

	if (!rc)
		rc = move(in, a, out, b);
	return rc ? rc : move(in, aside, in, a);
}

int io_exchange_below(const char *dir, const char *a, const char *b, struct err *err)
{
	const char *last_a, *last_b;
	auto_fd in = below_open_parent(dir, a, &last_a, err);
	auto_fd out = in < 0 ? -1 : below_open_parent(dir, b, &last_b, err);

	if (in < 0 || out < 0)
		return in < 0 ? in : out;
	int rc = exchange(in, last_a, out, last_b);
	if (rc == -EINVAL)
		rc = exchange_by_hand(in, last_a, out, last_b);
	if (rc)
		return err_set(err, rc, "cannot exchange %s and %s in %s: %s", a, b, dir,
			       strerror(-rc));
	rc = io_sync_fd(in, dir, err);
	return rc ? rc : io_sync_fd(out, dir, err);
}

/* ---- a directory that appears whole ---- */

int io_newdir_open(const char *dir, const char *name, struct io_newdir *out, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	const char *last;
	auto_fd parent = below_open_parent(dir, name, &last, err);

	if (parent < 0)
		return parent;
	auto_free char *tmp = below_new_name(last);
	int fault = fault_point("io.mkdir");
	/* Only this process uses this name, so an existing file is left from its own failure. */
	int rc = below_remove_at(parent, tmp, shown, err);
	if (!rc && (fault || mkdirat(parent, tmp, 0755) < 0))
		rc = err_set(err, fault ? fault : -errno, "cannot make the directory %s: %m",
			     shown);
	if (rc)
		return rc;
	auto_fd fd = below_openat(parent, tmp, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_set(err, fd, "cannot open %s: %s", shown, strerror(-fd));
	*out = (struct io_newdir){ .name = xstrdup(last),
				   .tmp = steal(tmp),
				   .shown = steal(shown) };
	snprintf(out->path, sizeof(out->path), "/proc/self/fd/%d", fd);
	out->parent = steal_fd(&parent);
	out->fd = steal_fd(&fd);
	return 0;
}

/* Replaces without an exchange; meanwhile the new directory has a name that is not hidden. */
static int replace_by_hand(const struct io_newdir *d, struct err *err)
{
	auto_free char *aside = xasprintf("%s.new", d->name);
	int rc = below_remove_at(d->parent, aside, d->shown, err);

	if (rc)
		return rc;
	rc = move(d->parent, d->tmp, d->parent, aside);
	if (!rc && below_remove_at(d->parent, d->name, d->shown, err))
		return err->code;
	if (!rc)
		rc = move(d->parent, aside, d->parent, d->name);
	return rc ? err_set(err, rc, "cannot make %s: %s", d->shown, strerror(-rc)) : 0;
}

/*
 * Exchanges the new directory with one that had the name before: at each moment one of them is
 * there.
 */
static int put_in_place(struct io_newdir *d, struct err *err)
{
	int fault = fault_point("io.rename");

	if (fault)
		return err_set(err, fault, "cannot make %s: %s", d->shown, strerror(-fault));
	int rc = exchange(d->parent, d->tmp, d->parent, d->name);
	if (!rc)
		return below_remove_at(d->parent, d->tmp, d->shown, err);
	if (rc == -EINVAL)
		return replace_by_hand(d, err);
	/* No directory had the name before. */
	return renameat(d->parent, d->tmp, d->parent, d->name) < 0
		       ? err_set(err, -errno, "cannot make %s: %m", d->shown)
		       : 0;
}

static int sync_name(const struct io_newdir *d, struct err *err)
{
	int rc = io_sync_fd(d->parent, d->shown, err);

	/* The directory above may be new as well. */
	return rc ? rc : sync_above(d->parent, d->shown, err);
}

int io_newdir_commit(struct io_newdir *d, struct err *err)
{
	int rc = d->unsynced ? 0 : sync_dir(d->fd, d->shown, err);

	if (!rc)
		rc = put_in_place(d, err);
	if (!rc) {
		free(d->tmp);
		d->tmp = NULL;
		rc = d->unsynced ? 0 : sync_name(d, err);
	}
	io_newdir_release(d);
	return rc;
}

void io_newdir_release(struct io_newdir *d)
{
	struct err ignored = ERR_INIT;

	/* Leftovers that cannot be removed now are swept later. */
	if (d->tmp && below_remove_at(d->parent, d->tmp, d->shown, &ignored))
		errno = 0;
	util_close(d->fd);
	util_close(d->parent);
	free(d->name);
	free(d->tmp);
	free(d->shown);
	*d = (struct io_newdir)IO_NEWDIR_INIT;
}

int io_openat2(int root, const char *path, const struct open_how *how)
{
	enum {
		TRIES = 10000
	}; /* EAGAIN for some microseconds is normal on a machine that renames all the time */
	long fd = -1;

	for (unsigned i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, root, path, how, sizeof(*how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}
