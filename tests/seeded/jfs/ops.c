/* SPDX-License-Identifier: MIT */
/*
 * ops.c - the file system as a FUSE server: one thread, each request answered before the next.
 *
 * The kernel keeps sync(2) and syncfs(2) to itself for a server like this one. Setting the
 * attribute user.seedfs.sync, which is not stored, makes everything durable: setfattr -n
 * user.seedfs.sync MNT
 */
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NS_PER_SEC    1000000000LL
#define ENTRY_TIMEOUT 1.0
#define MAX_READ      (1U << 20)

static struct fs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static struct timespec to_timespec(int64_t ns)
{
	int64_t sec = ns / NS_PER_SEC - (ns % NS_PER_SEC < 0);

	return (struct timespec){ .tv_sec = sec, .tv_nsec = ns - sec * NS_PER_SEC };
}

static int64_t to_ns(struct timespec ts)
{
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static struct stat stat_of(struct fs *fs, uint32_t ino)
{
	const struct dinode *di = inode_get(fs, ino);

	return (struct stat){
		.st_ino = ino,
		.st_mode = di->mode,
		.st_nlink = di->n_link,
		.st_uid = di->uid,
		.st_gid = di->gid,
		.st_rdev = di->rdev,
		.st_size = (off_t)di->size,
		.st_blksize = BLOCK_BYTES,
		.st_blocks = (blkcnt_t)di->blocks * (BLOCK_BYTES / 512),
		.st_atim = to_timespec(di->atime),
		.st_mtim = to_timespec(di->mtime),
		.st_ctim = to_timespec(di->ctime),
	};
}

static void reply_entry(fuse_req_t req, int r, uint32_t ino)
{
	struct fs *fs = fs_of(req);
	struct fuse_entry_param e = { .ino = ino, .entry_timeout = ENTRY_TIMEOUT };

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	e.attr = stat_of(fs, ino);
	inode_ref(fs, ino);
	if (fuse_reply_entry(req, &e) < 0)
		inode_unref(fs, ino, 1);
}

static struct owner owner_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct owner){ ctx->uid, ctx->gid };
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->want &=
		~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC |
			    FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	uint32_t ino = 0;
	int r = dir_find(fs_of(req), (uint32_t)parent, name, &ino);

	reply_entry(req, r, ino);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	inode_unref(fs_of(req), (uint32_t)ino, n);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *f)
{
	for (size_t i = 0; i < count; i++)
		inode_unref(fs_of(req), (uint32_t)f[i].ino, f[i].nlookup);
	fuse_reply_none(req);
}

static void reply_attr(fuse_req_t req, uint32_t ino)
{
	struct stat st = stat_of(fs_of(req), ino);

	fuse_reply_attr(req, &st, 0);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(req, (uint32_t)ino);
}

static struct attr_change attr_change_of(struct fs *fs, const struct stat *st, int set)
{
	struct attr_change c = { .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid };
	int64_t now = fs_now(fs);

	c.set |= set & FUSE_SET_ATTR_MODE ? SET_MODE : 0;
	c.set |= set & FUSE_SET_ATTR_UID ? SET_UID : 0;
	c.set |= set & FUSE_SET_ATTR_GID ? SET_GID : 0;
	c.set |= set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW) ? SET_ATIME : 0;
	c.set |= set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW) ? SET_MTIME : 0;
	c.set |= set & FUSE_SET_ATTR_CTIME ? SET_CTIME : 0;
	c.atime = set & FUSE_SET_ATTR_ATIME_NOW ? now : to_ns(st->st_atim);
	c.mtime = set & FUSE_SET_ATTR_MTIME_NOW ? now : to_ns(st->st_mtim);
	c.ctime = to_ns(st->st_ctim);
	return c;
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int set,
		       struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct attr_change c = attr_change_of(fs, st, set);
	int r = 0;

	(void)fi;
	if (set & FUSE_SET_ATTR_SIZE)
		r = file_truncate(fs, (uint32_t)ino, (uint64_t)st->st_size);
	if (r == 0 && c.set)
		r = inode_set_attr(fs, (uint32_t)ino, &c);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_attr(req, (uint32_t)ino);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of(req);
	const struct dinode *di = inode_get(fs, (uint32_t)ino);
	char target[BLOCK_BYTES + 1];
	ssize_t n = (ssize_t)min(di->size, (uint64_t)BLOCK_BYTES);

	if ((size_t)n <= sizeof(di->target))
		memcpy(target, di->target, (size_t)n);
	else
		n = file_read(fs, (uint32_t)ino, target, (size_t)n, 0);
	if (n < 0) {
		fuse_reply_err(req, (int)-n);
		return;
	}
	target[n] = '\0';
	fuse_reply_readlink(req, target);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	uint32_t ino = 0;
	int r = dir_make(fs_of(req), (uint32_t)parent, name, mode, rdev, owner_of(req), &ino);

	reply_entry(req, r, ino);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	op_mknod(req, parent, name, S_IFDIR | (mode & 07777), 0);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	uint32_t ino = 0;
	int r = dir_symlink(fs_of(req), (uint32_t)parent, name, target, owner_of(req), &ino);

	reply_entry(req, r, ino);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	int r = dir_link(fs_of(req), (uint32_t)ino, (uint32_t)new_parent, new_name);

	reply_entry(req, r, (uint32_t)ino);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, -dir_unlink(fs_of(req), (uint32_t)parent, name));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, -dir_rmdir(fs_of(req), (uint32_t)parent, name));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		      const char *new_name, unsigned flags)
{
	fuse_reply_err(req, -dir_rename(fs_of(req), (uint32_t)parent, name, (uint32_t)new_parent,
					new_name, flags));
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	/* The flags come again with each write; nothing else is to be remembered. */
	(void)ino;
	fi->fh = (uint64_t)(unsigned)fi->flags;
	fuse_reply_open(req, fi);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fuse_entry_param e = { .entry_timeout = ENTRY_TIMEOUT };
	uint32_t ino;
	int r = dir_make(fs, (uint32_t)parent, name, S_IFREG | (mode & 07777), 0, owner_of(req),
			 &ino);

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	e.ino = ino;
	e.attr = stat_of(fs, ino);
	fi->fh = (uint64_t)(unsigned)fi->flags;
	inode_ref(fs, ino);
	if (fuse_reply_create(req, &e, fi) < 0)
		inode_unref(fs, ino, 1);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	auto_free char *data = NULL;
	ssize_t n;

	(void)fi;
	size = min(size, (size_t)MAX_READ);
	data = xmalloc(size);
	n = file_read(fs_of(req), (uint32_t)ino, data, size, (uint64_t)off);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, data, (size_t)n);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	unsigned flags = (fi->flags & O_DIRECT ? WRITE_DIRECT : 0U) |
			 (fi->writepage ? WRITE_MAPPED : 0U);
	ssize_t n = file_write(fs_of(req), (uint32_t)ino, data, size, (uint64_t)off, flags);

	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, 0); /* close promises nothing */
}

bool ops_hang;

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)fi;
	while (ops_hang && !datasync)
		pause();
	fuse_reply_err(req, -fs_fsync(fs_of(req), (uint32_t)ino));
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	(void)fi;
	fuse_reply_err(req, -file_fallocate(fs_of(req), (uint32_t)ino, mode, (uint64_t)off,
					    (uint64_t)len));
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
		     struct fuse_file_info *fi)
{
	int64_t at = -EINVAL;

	(void)fi;
	if (off < 0 || (uint64_t)off >= inode_get(fs_of(req), (uint32_t)ino)->size)
		at = -ENXIO;
	else if (whence == SEEK_DATA || whence == SEEK_HOLE)
		at = file_seek(fs_of(req), (uint32_t)ino, (uint64_t)off, whence == SEEK_HOLE);
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}

static bool add_entry(fuse_req_t req, char *buf, size_t size, size_t *used,
		      const struct dir_entry *e)
{
	struct stat st = { .st_ino = e->ino, .st_mode = e->type };
	size_t n = fuse_add_direntry(req, buf + *used, size - *used, e->name, &st, (off_t)e->next);

	if (n > size - *used)
		return false;
	*used += n;
	return true;
}

/* Positions: 0 is ".", 1 "..", then 2 more than the position in the directory. */
static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct dir_entry e = { .ino = (uint32_t)ino, .type = S_IFDIR, .next = 1, .name = "." };
	struct dir_entry up = { .type = S_IFDIR, .next = 2, .name = ".." };
	auto_free char *buf = NULL;
	uint64_t pos = (uint64_t)off;
	size_t used = 0;
	int r = 0;

	(void)fi;
	size = min(size, (size_t)MAX_READ);
	buf = xmalloc(size);
	up.ino = inode_get(fs, (uint32_t)ino)->parent;
	if (pos == 0 && add_entry(req, buf, size, &used, &e))
		pos = 1;
	if (pos == 1 && add_entry(req, buf, size, &used, &up))
		pos = 2;
	while (pos >= 2 && (r = dir_next(fs, (uint32_t)ino, pos - 2, &e)) == 0) {
		e.next += 2;
		if (!add_entry(req, buf, size, &used, &e))
			break;
		pos = e.next;
	}
	if (r < 0 && r != -ENOENT && used == 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, buf, used);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of(req);
	struct statvfs st = { .f_bsize = BLOCK_BYTES,
			      .f_frsize = BLOCK_BYTES,
			      .f_blocks = fs->sb.n_blocks - fs->sb.data,
			      .f_files = fs->n_inodes - ROOT_INO,
			      .f_namemax = NAME_MAX_LEN };

	(void)ino;
	st.f_bfree = st.f_bavail = block_count_free(fs, true);
	for (uint32_t i = ROOT_INO; i < fs->n_inodes; i++)
		st.f_ffree += !inode_live(fs, i);
	st.f_favail = st.f_ffree;
	fuse_reply_statfs(req, &st);
}

static bool xattr_allowed(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.", 8) == 0 ||
	       strncmp(name, "security.", 9) == 0;
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			size_t size, int flags)
{
	int r = -EOPNOTSUPP;

	if (streq(name, SYNC_XATTR))
		r = fs_sync(fs_of(req));
	else if (xattr_allowed(name))
		r = xattr_set(fs_of(req), (uint32_t)ino, name, value, size, flags);
	fuse_reply_err(req, -r);
}

static void reply_xattr(fuse_req_t req, ssize_t n, const char *data, size_t size)
{
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, data, (size_t)n);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	auto_free char *data = xmalloc(size + 1);
	ssize_t n = -EOPNOTSUPP;

	if (xattr_allowed(name))
		n = xattr_get(fs_of(req), (uint32_t)ino, name, data, size);
	reply_xattr(req, n, data, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	auto_free char *data = xmalloc(size + 1);

	reply_xattr(req, xattr_list(fs_of(req), (uint32_t)ino, data, size), data, size);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	fuse_reply_err(req, -xattr_remove(fs_of(req), (uint32_t)ino, name));
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.symlink = op_symlink,
	.link = op_link,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.rename = op_rename,
	.open = op_open,
	.create = op_create,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.fsync = op_fsync,
	.readdir = op_readdir,
	.fsyncdir = op_fsync,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
};

static int serve(struct fuse_session *se, const char *mountpoint, bool foreground)
{
	int r;

	if (fuse_set_signal_handlers(se) < 0)
		return -EIO;
	r = fuse_session_mount(se, mountpoint);
	if (r == 0) {
		fuse_daemonize(foreground);
		r = fuse_session_loop(se);
		fuse_session_unmount(se);
	}
	fuse_remove_signal_handlers(se);
	/* A signal that asks for the end is a clean unmount too. */
	return r == SIGTERM || r == SIGINT || r == SIGHUP || r == 0 ? 0 : -EIO;
}

int ops_serve(struct fs *fs, const char *mountpoint, const char *options, bool foreground)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se;
	int r = -EINVAL, closed;

	fuse_opt_add_arg(&args, "seedfs");
	fuse_opt_add_arg(&args, "-odefault_permissions,subtype=seedfs");
	if (geteuid() == 0)
		fuse_opt_add_arg(&args, "-oallow_other");
	if (options[0]) {
		fuse_opt_add_arg(&args, "-o");
		fuse_opt_add_arg(&args, options);
	}
	se = fuse_session_new(&args, &ops, sizeof(ops), fs);
	if (se) {
		r = serve(se, mountpoint, foreground);
		fuse_session_destroy(se);
	}
	fuse_opt_free_args(&args);
	closed = fs_close(fs);
	return r < 0 ? r : closed;
}
