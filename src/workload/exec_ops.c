/* SPDX-License-Identifier: MIT */
/*
 * exec_ops.c - performs the operations. Each makes one system call of interest; with a path, the
 * operation opens and closes the file around that call. A failure of any of these is the result.
 * An open that makes the file is a call of interest, too (E5 in exec.h).
 */
#include "workload/exec_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd_path.h"
#include "base/proc.h"
#include "workload/exec.h"

static int64_t result(int64_t rc)
{
	return rc < 0 ? -errno : rc;
}

/* A descriptor for an ARG_FILE argument: the handle's, or one opened for this call. */
struct exec_file {
	int fd;
	int close; /* -1 for a handle */
};

static struct exec_file open_arg(struct exec *x, const struct arg *arg, int flags)
{
	if (arg->is_handle)
		return (struct exec_file){ exec_handle_fd(x, arg->text), -1 };
	if (!(flags & O_CREAT)) {
		int fd = exec_open_path(x, arg->text, flags, 0);

		return (struct exec_file){ fd, fd };
	}
	/* A file that is there is opened before the operation begins. */
	int fd = x->env.begin ? exec_open_path(x, arg->text, flags & ~O_CREAT, 0) : -ENOENT;
	if (fd == -ENOENT)
		fd = exec_open_call(x, arg->text, flags, 0644);
	return (struct exec_file){ fd, fd };
}

static void opened_close(struct exec_file *o)
{
	util_close(o->close);
}

#define auto_opened __attribute__((cleanup(opened_close))) struct exec_file

/* The result of a call for the file `fd`, which the first argument names. */
#define ON_FILE(x, op, flags, call)                                                                \
	({                                                                                         \
		auto_opened opened_ = open_arg((x), &(op)->args[0], (flags));                      \
		int fd = opened_.fd;                                                               \
		fd < 0 ? fd : result(exec_call(x, call));                                          \
	})

static int sync_flags(const struct arg *flags)
{
	return (flags->num & WRITE_SYNC ? O_SYNC : 0) | (flags->num & WRITE_DSYNC ? O_DSYNC : 0);
}

/*
 * Writes at `offset`, or at the position if it is -1. A handle was opened without the flags of this
 * operation, which must hold nevertheless: op_persists() makes a promise of them.
 */
static int64_t write_data(struct exec *x, int fd, const struct arg *file, const void *data,
			  size_t len, off_t offset, const struct arg *flags)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };
	int rwf = (flags->num & WRITE_SYNC ? RWF_SYNC : 0) |
		  (flags->num & WRITE_DSYNC ? RWF_DSYNC : 0);

	if (file->is_handle && rwf)
		return result(exec_call(x, pwritev2(fd, &iov, 1, offset, rwf)));
	return result(
		exec_call(x, offset < 0 ? write(fd, data, len) : pwrite(fd, data, len, offset)));
}

int64_t exec_creat(struct exec *x, const struct op *op)
{
	int fd = exec_open_call(x, op->args[0].text, O_WRONLY | O_CREAT | O_TRUNC,
				(mode_t)op->args[1].num);

	exec_end(x);
	if (fd < 0)
		return fd;
	util_close(fd);
	return 0;
}

int64_t exec_open(struct exec *x, const struct op *op)
{
	int fd = exec_open_call(x, op->args[0].text, (int)op->args[1].num, (mode_t)op->args[2].num);

	exec_end(x);
	if (fd < 0)
		return fd;
	exec_set_handle(x, op->handle, fd);
	return 0;
}

int64_t exec_close(struct exec *x, const struct op *op)
{
	return exec_call(x, exec_close_handle(x, op->args[0].text));
}

int64_t exec_mkdir(struct exec *x, const struct op *op)
{
	const char *name;
	auto_fd dir = exec_open_parent(x, op->args[0].text, &name);

	return dir < 0 ? dir : result(exec_call(x, mkdirat(dir, name, (mode_t)op->args[1].num)));
}

static int64_t unlink_at(struct exec *x, const char *path, int flags)
{
	const char *name;
	auto_fd dir = exec_open_parent(x, path, &name);

	return dir < 0 ? dir : result(exec_call(x, unlinkat(dir, name, flags)));
}

int64_t exec_rmdir(struct exec *x, const struct op *op)
{
	return unlink_at(x, op->args[0].text, AT_REMOVEDIR);
}

int64_t exec_unlink(struct exec *x, const struct op *op)
{
	return unlink_at(x, op->args[0].text, 0);
}

int64_t exec_remove(struct exec *x, const struct op *op)
{
	const char *name;
	auto_fd dir = exec_open_parent(x, op->args[0].text, &name);

	if (dir < 0)
		return dir;
	exec_begin(x);
	int rc = unlinkat(dir, name, 0);
	if (rc < 0 && errno == EISDIR)
		rc = unlinkat(dir, name, AT_REMOVEDIR);
	exec_end(x);
	return result(rc);
}

static int64_t make_node(struct exec *x, const char *path, mode_t mode, dev_t dev)
{
	const char *name;
	auto_fd dir = exec_open_parent(x, path, &name);

	return dir < 0 ? dir : result(exec_call(x, mknodat(dir, name, mode, dev)));
}

int64_t exec_mknod(struct exec *x, const struct op *op)
{
	return make_node(x, op->args[0].text, (mode_t)op->args[1].num | 0644,
			 (dev_t)op->args[2].num);
}

int64_t exec_mkfifo(struct exec *x, const struct op *op)
{
	return make_node(x, op->args[0].text, S_IFIFO | (mode_t)op->args[1].num, 0);
}

int64_t exec_link(struct exec *x, const struct op *op)
{
	const char *old_name, *new_name;
	auto_fd old_dir = exec_open_parent(x, op->args[0].text, &old_name);
	auto_fd new_dir = exec_open_parent(x, op->args[1].text, &new_name);

	if (old_dir < 0 || new_dir < 0)
		return old_dir < 0 ? old_dir : new_dir;
	return result(exec_call(x, linkat(old_dir, old_name, new_dir, new_name, 0)));
}

int64_t exec_symlink(struct exec *x, const struct op *op)
{
	const char *name;
	auto_fd dir = exec_open_parent(x, op->args[1].text, &name);

	return dir < 0 ? dir : result(exec_call(x, symlinkat(op->args[0].text, dir, name)));
}

int64_t exec_rename(struct exec *x, const struct op *op)
{
	unsigned flags = 0;
	const char *old_name, *new_name;
	auto_fd old_dir = exec_open_parent(x, op->args[0].text, &old_name);
	auto_fd new_dir = exec_open_parent(x, op->args[1].text, &new_name);

	if (old_dir < 0 || new_dir < 0)
		return old_dir < 0 ? old_dir : new_dir;
	if (op->args[2].num & RENAME_W_NOREPLACE)
		flags |= RENAME_NOREPLACE;
	if (op->args[2].num & RENAME_W_EXCHANGE)
		flags |= RENAME_EXCHANGE;
	if (op->args[2].num & RENAME_W_WHITEOUT)
		flags |= RENAME_WHITEOUT;
	return result(exec_call(x, renameat2(old_dir, old_name, new_dir, new_name, flags)));
}

/* The offset at which a write takes place: on a handle opened with O_APPEND, the file's end. */
static uint64_t landing(struct exec *x, const struct arg *arg, uint64_t offset)
{
	int fd = arg->is_handle ? exec_handle_fd(x, arg->text) : -1;
	struct stat st;

	if (fd < 0 || !(fcntl(fd, F_GETFL) & O_APPEND) || fstat(fd, &st) < 0)
		return offset;
	return (uint64_t)st.st_size;
}

int64_t exec_write(struct exec *x, const struct op *op)
{
	uint64_t offset = op->args[1].num;
	size_t len = op->args[2].num;
	unsigned char *data = exec_content(x, landing(x, &op->args[0], offset), len);
	auto_opened o = open_arg(x, &op->args[0], O_RDWR | O_CREAT | sync_flags(&op->args[3]));

	if (o.fd < 0)
		return o.fd;
	if (!data)
		return -ENOMEM;
	if (lseek(o.fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	return write_data(x, o.fd, &op->args[0], data, len, -1, &op->args[3]);
}

int64_t exec_append(struct exec *x, const struct op *op)
{
	size_t len = op->args[1].num;
	unsigned char *data = exec_content(x, 0, len); /* right for a new file */
	auto_opened o =
		open_arg(x, &op->args[0], O_WRONLY | O_CREAT | O_APPEND | sync_flags(&op->args[2]));

	if (o.fd < 0)
		return o.fd;
	off_t end = lseek(o.fd, 0, SEEK_END);
	if (end < 0)
		return -errno;
	if (end)
		data = exec_content(x, (uint64_t)end, len);
	if (!data)
		return -ENOMEM;
	return write_data(x, o.fd, &op->args[0], data, len, -1, &op->args[2]);
}

static int64_t write_at(struct exec *x, const struct op *op, int flags)
{
	uint64_t offset = op->args[1].num;
	size_t len = op->args[2].num;
	unsigned char *data = exec_content(x, landing(x, &op->args[0], offset), len);
	auto_opened o = open_arg(x, &op->args[0], flags | sync_flags(&op->args[3]));

	if (o.fd < 0)
		return o.fd;
	if (!data)
		return -ENOMEM;
	return write_data(x, o.fd, &op->args[0], data, len, (off_t)offset, &op->args[3]);
}

int64_t exec_pwrite(struct exec *x, const struct op *op)
{
	return write_at(x, op, O_RDWR);
}

int64_t exec_dwrite(struct exec *x, const struct op *op)
{
	return write_at(x, op, O_RDWR | O_CREAT | O_DIRECT);
}

/*
 * Returns the result if mmap() failed. Some file systems, such as jffs2, have no shared writable
 * mappings, and return EINVAL. Then the file gets its former size back.
 */
static int64_t no_mapping(int fd, const struct stat *before, int error)
{
	if (error != EINVAL)
		return -error;
	return ftruncate(fd, before->st_size) < 0 ? -errno : -EOPNOTSUPP;
}

int64_t exec_mmapwrite(struct exec *x, const struct op *op)
{
	uint64_t offset = op->args[1].num;
	size_t len = op->args[2].num;
	unsigned char *data = exec_content(x, offset, len);
	auto_opened o = open_arg(x, &op->args[0], O_RDWR | O_CREAT);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = offset / page * page;
	struct stat st;

	if (o.fd < 0)
		return o.fd;
	if (!data)
		return -ENOMEM;
	if (!len)
		return 0;
	if (fstat(o.fd, &st) < 0)
		return -errno;
	/* ext2 has no fallocate; there a hole is mapped. */
	if ((uint64_t)st.st_size < offset + len) {
		exec_begin(x);
		if (fallocate(o.fd, 0, (off_t)offset, (off_t)len) < 0 &&
		    (errno != EOPNOTSUPP || ftruncate(o.fd, (off_t)(offset + len)) < 0))
			return -errno;
	}
	size_t map_len = offset - start + len;
	char *map = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, o.fd, (off_t)start);
	if (map == MAP_FAILED)
		return no_mapping(o.fd, &st, errno);
	exec_begin(x);
	/* If the file system cannot provide a page, this fails; a store would raise SIGBUS. */
	int64_t rc = result(madvise(map, map_len, MADV_POPULATE_WRITE));
	if (rc == -EINVAL)
		rc = 0; /* a kernel before 5.14 */
	if (!rc)
		memcpy(map + (offset - start), data, len);
	if (!rc && !(op->args[3].num & MMAP_NOSYNC))
		rc = result(msync(map, map_len, MS_SYNC));
	exec_end(x);
	munmap(map, map_len);
	return rc < 0 ? rc : (int64_t)len;
}

int64_t exec_msync(struct exec *x, const struct op *op)
{
	uint64_t offset = op->args[1].num, page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = offset / page * page;
	auto_opened o = open_arg(x, &op->args[0], O_RDWR | O_NONBLOCK);
	struct stat st;

	if (o.fd < 0)
		return o.fd;
	if ((fcntl(o.fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return -EACCES;
	if (fstat(o.fd, &st) < 0)
		return -errno;
	/* Where the file ends differs little from file system to file system; a mapping may. */
	if (offset >= (uint64_t)st.st_size || !op->args[2].num)
		return 0;
	size_t map_len = min(op->args[2].num, (uint64_t)st.st_size - offset) + (offset - start);
	char *map = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, o.fd, (off_t)start);
	if (map == MAP_FAILED)
		return no_mapping(o.fd, &st, errno);
	int64_t rc = result(exec_call(x, msync(map, map_len, MS_SYNC)));
	munmap(map, map_len);
	return rc;
}

int64_t exec_read(struct exec *x, const struct op *op)
{
	size_t len = op->args[2].num;
	auto_opened o = open_arg(x, &op->args[0], O_RDONLY | O_NONBLOCK);
	unsigned char *buf = exec_buffer(x, max(len, (size_t)1));

	if (o.fd < 0)
		return o.fd;
	return buf ? result(exec_call(x, pread(o.fd, buf, len, (off_t)op->args[1].num))) : -ENOMEM;
}

int64_t exec_truncate(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_WRONLY, ftruncate(fd, (off_t)op->args[1].num));
}

int64_t exec_falloc(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_WRONLY,
		       fallocate(fd, (int)op->args[1].num, (off_t)op->args[2].num,
				 (off_t)op->args[3].num));
}

/* Opens the destination of a copy; if the source could not be opened, returns its error. */
static struct exec_file open_second(struct exec *x, const struct exec_file *from,
				    const struct arg *arg)
{
	if (from->fd < 0)
		return (struct exec_file){ from->fd, -1 };
	return open_arg(x, arg, O_WRONLY | O_CREAT);
}

int64_t exec_copy_file_range(struct exec *x, const struct op *op)
{
	auto_opened from = open_arg(x, &op->args[0], O_RDONLY);
	auto_opened to = open_second(x, &from, &op->args[2]);
	off_t from_offset = (off_t)op->args[1].num, to_offset = (off_t)op->args[3].num;

	if (to.fd < 0)
		return to.fd;
	return result(exec_call(
		x, copy_file_range(from.fd, &from_offset, to.fd, &to_offset, op->args[4].num, 0)));
}

int64_t exec_reflink(struct exec *x, const struct op *op)
{
	auto_opened from = open_arg(x, &op->args[0], O_RDONLY);
	auto_opened to = open_second(x, &from, &op->args[1]);

	if (to.fd < 0)
		return to.fd;
	return result(exec_call(x, ioctl(to.fd, FICLONE, from.fd)));
}

int64_t exec_setxattr(struct exec *x, const struct op *op)
{
	const char *value = op->args[2].text;

	return ON_FILE(x, op, O_RDONLY | O_NONBLOCK,
		       fsetxattr(fd, op->args[1].text, value, strlen(value), (int)op->args[3].num));
}

int64_t exec_removexattr(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_RDONLY | O_NONBLOCK, fremovexattr(fd, op->args[1].text));
}

int64_t exec_chmod(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_RDONLY | O_NONBLOCK, fchmod(fd, (mode_t)op->args[1].num));
}

int64_t exec_chown(struct exec *x, const struct op *op)
{
	return ON_FILE(
		x, op, O_PATH,
		fchownat(fd, "", (uid_t)op->args[1].num, (gid_t)op->args[2].num, AT_EMPTY_PATH));
}

int64_t exec_utimens(struct exec *x, const struct op *op)
{
	struct timespec times[2] = { { .tv_sec = (time_t)op->args[1].num },
				     { .tv_sec = (time_t)op->args[2].num } };

	return ON_FILE(x, op, O_RDONLY | O_NONBLOCK, futimens(fd, times));
}

int64_t exec_fsync(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_RDONLY | O_NONBLOCK, fsync(fd));
}

int64_t exec_fdatasync(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_RDONLY | O_NONBLOCK, fdatasync(fd));
}

int64_t exec_syncfs(struct exec *x, const struct op *op)
{
	auto_fd root = exec_open_path(x, ".", O_RDONLY | O_DIRECTORY, 0);

	(void)op;
	return root < 0 ? root : result(exec_call(x, syncfs(root)));
}

int64_t exec_sync(struct exec *x, const struct op *op)
{
	if (!x->env.global_sync)
		return exec_syncfs(x, op);
	exec_begin(x);
	sync();
	exec_end(x);
	return 0;
}

int64_t exec_sync_file_range(struct exec *x, const struct op *op)
{
	return ON_FILE(x, op, O_RDONLY,
		       sync_file_range(fd, (off_t)op->args[1].num, (off_t)op->args[2].num,
				       SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					       SYNC_FILE_RANGE_WAIT_AFTER));
}

int64_t exec_remount(struct exec *x, const struct op *op)
{
	(void)op;
	if (!x->env.remount)
		return -EOPNOTSUPP;
	exec_begin(x);
	exec_close_all(x);
	return x->env.remount(x->env.ctx, &x->root);
}

int64_t exec_drop_caches(struct exec *x, const struct op *op)
{
	(void)op;
	exec_begin(x);
	return x->env.drop_caches ? x->env.drop_caches(x->env.ctx) : -EOPNOTSUPP;
}

/* Returns the command's status, as a shell does; drops its output. */
int64_t exec_shell(struct exec *x, const struct op *op)
{
	const char *argv[] = { "/bin/sh", "-c", op->args[0].text, NULL };
	struct fd_path root = fd_path(x->root);
	struct proc_opts how = { .argv = argv, .cwd = root.text, .merge_stderr = true };
	struct proc_result res;
	struct err err = ERR_INIT;

	if (!x->env.shell)
		return -EOPNOTSUPP;
	umask(022); /* as commands expect; the caller restores it */
	exec_begin(x);
	int rc = proc_run(&how, &res, &err);
	if (rc)
		return rc;
	int64_t code = res.signal ? 128 + res.signal : res.exit_code;
	proc_result_release(&res);
	return code;
}
