/* SPDX-License-Identifier: MIT */
/*
 * passthrough.c - the peer of our mounts: a FUSE file system that hands each request on to another
 * directory, and does nothing else. What it costs is what FUSE costs.
 *
 *	passthrough SOURCE MNT		in the foreground, until it is unmounted
 *
 * It is built as the fastest programs of its kind are: libfuse's low-level interface, a thread for
 * each request in flight with a descriptor of its own, data moved by splice(2). Names and
 *attributes are kept in the kernel for a second, pages while a file is open, and writes go through.
 *
 * P1: the kernel's number of an inode is the address of its `struct node`; the root's is 1.
 * P2: a node is in the table as long as the kernel has lookups of it, and holds an O_PATH
 *     descriptor, so that the inode behind it is not given to another file meanwhile.
 */
#define FUSE_USE_VERSION 312

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"

enum { BUCKETS = 1 << 16, THREADS = 10 };

static const double KEEP_S = 1;

struct node {
	struct node *next; /* in its bucket */
	dev_t dev;
	ino_t ino;
	int fd;
	uint64_t lookups;
};

static struct {
	struct node root; /* never in the table: it stays */
	pthread_mutex_t lock;
	struct node *bucket[BUCKETS];
} fs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct node *node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &fs.root : (struct node *)(uintptr_t)ino;
}

static int fd_of(fuse_ino_t ino)
{
	return node_of(ino)->fd;
}

static int file_of(const struct fuse_file_info *fi)
{
	return (int)fi->fh;
}

static struct node **bucket_of(dev_t dev, ino_t ino)
{
	return &fs.bucket[((uint64_t)ino * 0x9e3779b97f4a7c15u + dev) >> 48 & (BUCKETS - 1)];
}

static int stat_fd(int fd, struct stat *st)
{
	return fstatat(fd, "", st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) ? errno : 0;
}

/* A path of an inode that was not opened, for calls that take no O_PATH descriptor. */
struct proc_path {
	char text[32];
};

static struct proc_path proc_path(fuse_ino_t ino)
{
	struct proc_path p;

	snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd_of(ino));
	return p;
}

static void reply_result(fuse_req_t req, int rc)
{
	fuse_reply_err(req, rc < 0 ? errno : 0);
}

/* ---- nodes ---- */

/* One lookup more of the inode behind `fd`, which is the node's from now on, or closed. */
static struct node *node_get(int fd, const struct stat *st)
{
	struct node **b = bucket_of(st->st_dev, st->st_ino);
	struct node *n;

	pthread_mutex_lock(&fs.lock);
	for (n = *b; n && (n->ino != st->st_ino || n->dev != st->st_dev); n = n->next)
		;
	bool known = n;
	if (!known) {
		n = xmalloc(sizeof(*n));
		*n = (struct node){ *b, st->st_dev, st->st_ino, fd, 0 };
		*b = n;
	}
	n->lookups++;
	pthread_mutex_unlock(&fs.lock);
	if (known)
		close(fd);
	return n;
}

static void node_put(fuse_ino_t ino, uint64_t lookups)
{
	struct node *n = node_of(ino), **at;

	if (n == &fs.root)
		return;
	pthread_mutex_lock(&fs.lock);
	n->lookups -= lookups;
	bool gone = !n->lookups;
	if (gone) {
		for (at = bucket_of(n->dev, n->ino); *at != n; at = &(*at)->next)
			;
		*at = n->next;
	}
	pthread_mutex_unlock(&fs.lock);
	if (!gone)
		return;
	close(n->fd);
	free(n);
}

/* 0 or errno. */
static int look_up(fuse_ino_t parent, const char *name, struct fuse_entry_param *e)
{
	int fd = openat(fd_of(parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	*e = (struct fuse_entry_param){ .attr_timeout = KEEP_S, .entry_timeout = KEEP_S };
	if (fd < 0)
		return errno;
	rc = stat_fd(fd, &e->attr);
	if (rc) {
		close(fd);
		return rc;
	}
	e->ino = (uintptr_t)node_get(fd, &e->attr);
	return 0;
}

static void reply_name(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e;
	int rc = look_up(parent, name, &e);

	if (rc)
		fuse_reply_err(req, rc);
	else if (fuse_reply_entry(req, &e))
		node_put(e.ino, 1);
}

/* ---- names ---- */

static void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	node_put(ino, n);
	fuse_reply_none(req);
}

static void on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *v)
{
	for (size_t i = 0; i < count; i++)
		node_put(v[i].ino, v[i].nlookup);
	fuse_reply_none(req);
}

static void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	if (mknodat(fd_of(parent), name, mode, dev))
		fuse_reply_err(req, errno);
	else
		reply_name(req, parent, name);
}

static void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	if (mkdirat(fd_of(parent), name, mode))
		fuse_reply_err(req, errno);
	else
		reply_name(req, parent, name);
}

static void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	if (symlinkat(target, fd_of(parent), name))
		fuse_reply_err(req, errno);
	else
		reply_name(req, parent, name);
}

static void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	if (linkat(AT_FDCWD, proc_path(ino).text, fd_of(parent), name, AT_SYMLINK_FOLLOW))
		fuse_reply_err(req, errno);
	else
		reply_name(req, parent, name);
}

static void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_result(req, unlinkat(fd_of(parent), name, 0));
}

static void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_result(req, unlinkat(fd_of(parent), name, AT_REMOVEDIR));
}

static void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags)
{
	reply_result(req, renameat2(fd_of(parent), name, fd_of(to), new_name, flags));
}

static void on_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(fd_of(ino), "", target, sizeof(target) - 1);

	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	target[n] = '\0';
	fuse_reply_readlink(req, target);
}

/* ---- attributes ---- */

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;
	int rc = stat_fd(fd_of(ino), &st);

	(void)fi;
	if (rc)
		fuse_reply_err(req, rc);
	else
		fuse_reply_attr(req, &st, KEEP_S);
}

static struct timespec time_to_set(int to_set, int now, int given, struct timespec t)
{
	if (to_set & now)
		return (struct timespec){ .tv_nsec = UTIME_NOW };
	return to_set & given ? t : (struct timespec){ .tv_nsec = UTIME_OMIT };
}

static int set_attributes(fuse_ino_t ino, const struct stat *st, int to_set,
			  const struct fuse_file_info *fi)
{
	struct proc_path path = proc_path(ino);
	struct timespec times[2] = {
		time_to_set(to_set, FUSE_SET_ATTR_ATIME_NOW, FUSE_SET_ATTR_ATIME, st->st_atim),
		time_to_set(to_set, FUSE_SET_ATTR_MTIME_NOW, FUSE_SET_ATTR_MTIME, st->st_mtim),
	};
	uid_t uid = to_set & FUSE_SET_ATTR_UID ? st->st_uid : (uid_t)-1;
	gid_t gid = to_set & FUSE_SET_ATTR_GID ? st->st_gid : (gid_t)-1;
	int times_set = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
			FUSE_SET_ATTR_MTIME_NOW;

	if (to_set & FUSE_SET_ATTR_MODE && chmod(path.text, st->st_mode))
		return -1;
	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) &&
	    fchownat(fd_of(ino), "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -1;
	if (to_set & FUSE_SET_ATTR_SIZE &&
	    (fi ? ftruncate(file_of(fi), st->st_size) : truncate(path.text, st->st_size)))
		return -1;
	return to_set & times_set ? utimensat(AT_FDCWD, path.text, times, 0) : 0;
}

static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi)
{
	if (set_attributes(ino, st, to_set, fi))
		fuse_reply_err(req, errno);
	else
		on_getattr(req, ino, fi);
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	if (fstatvfs(fd_of(ino), &st))
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- files ---- */

static void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	int fd = openat(fd_of(parent), name, (fi->flags | O_CREAT | O_CLOEXEC) & ~O_NOFOLLOW, mode);
	struct fuse_entry_param e;

	if (fd < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	int rc = look_up(parent, name, &e);
	fi->fh = (uint64_t)fd;
	if (rc) {
		close(fd);
		fuse_reply_err(req, rc);
	} else if (fuse_reply_create(req, &e, fi)) {
		close(fd);
		node_put(e.ino, 1);
	}
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	int fd = open(proc_path(ino).text, (fi->flags | O_CLOEXEC) & ~O_NOFOLLOW);

	fi->fh = (uint64_t)fd;
	if (fd < 0)
		fuse_reply_err(req, errno);
	else if (fuse_reply_open(req, fi))
		close(fd);
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	close(file_of(fi));
	fuse_reply_err(req, 0);
}

/* What close(2) has to say: that of a copy says it, too. */
static void on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	reply_result(req, close(dup(file_of(fi))));
}

static struct fuse_bufvec range_of(const struct fuse_file_info *fi, size_t size, off_t off)
{
	struct fuse_bufvec v = FUSE_BUFVEC_INIT(size);

	v.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	v.buf[0].fd = file_of(fi);
	v.buf[0].pos = off;
	return v;
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct fuse_bufvec from = range_of(fi, size, off);

	(void)ino;
	fuse_reply_data(req, &from, FUSE_BUF_SPLICE_MOVE);
}

static void on_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *data, off_t off,
			 struct fuse_file_info *fi)
{
	struct fuse_bufvec to = range_of(fi, fuse_buf_size(data), off);
	ssize_t n = fuse_buf_copy(&to, data, 0);

	(void)ino;
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

static int sync_fd(int fd, int datasync)
{
	return datasync ? fdatasync(fd) : fsync(fd);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	reply_result(req, sync_fd(file_of(fi), datasync));
}

static void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	(void)ino;
	reply_result(req, fallocate(file_of(fi), mode, off, len));
}

/* ---- directories ---- */

/* An open directory, and the entry that did not fit into the last answer. */
struct dir {
	DIR *d;
	struct dirent *next;
	off_t at;
};

static struct dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct dir *)(uintptr_t)fi->fh;
}

static void on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	int fd = openat(fd_of(ino), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		fuse_reply_err(req, errno);
		return;
	}
	struct dir *dir = xcalloc(1, sizeof(*dir));
	dir->d = d;
	fi->fh = (uintptr_t)dir;
	fuse_reply_open(req, fi);
}

static bool is_dots(const char *name)
{
	return streq(name, ".") || streq(name, "..");
}

/* Adds an entry to an answer; its size, which is more than `room` if it does not fit. */
static size_t add_entry(fuse_req_t req, fuse_ino_t parent, const struct dirent *e, bool plus,
			char *to, size_t room)
{
	struct fuse_entry_param p = {
		.attr = { .st_ino = e->d_ino, .st_mode = (mode_t)e->d_type << 12 },
	};

	if (!plus)
		return fuse_add_direntry(req, to, room, e->d_name, &p.attr, e->d_off);
	/* The kernel counts a lookup for each that has a number, and only if it is told. */
	bool counted = !is_dots(e->d_name) && !look_up(parent, e->d_name, &p);
	size_t n = fuse_add_direntry_plus(req, to, room, e->d_name, &p, e->d_off);
	if (n > room && counted)
		node_put(p.ino, 1);
	return n;
}

static void fill(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi,
		 bool plus)
{
	auto_free char *buf = xmalloc(max(size, (size_t)1));
	struct dir *d = dir_of(fi);
	size_t used = 0;

	if (off != d->at) {
		seekdir(d->d, off);
		d->next = NULL;
		d->at = off;
	}
	for (;;) {
		if (!d->next)
			d->next = readdir(d->d);
		if (!d->next)
			break;
		size_t n = add_entry(req, ino, d->next, plus, buf + used, size - used);
		if (n > size - used)
			break;
		used += n;
		d->at = d->next->d_off;
		d->next = NULL;
	}
	fuse_reply_buf(req, buf, used);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	fill(req, ino, size, off, fi, false);
}

static void on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	fill(req, ino, size, off, fi, true);
}

static void on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	closedir(dir_of(fi)->d);
	free(dir_of(fi));
	fuse_reply_err(req, 0);
}

static void on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	reply_result(req, sync_fd(dirfd(dir_of(fi)->d), datasync));
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = reply_name,
	.forget = on_forget,
	.forget_multi = on_forget_multi,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.readlink = on_readlink,
	.mknod = on_mknod,
	.mkdir = on_mkdir,
	.unlink = on_unlink,
	.rmdir = on_rmdir,
	.symlink = on_symlink,
	.rename = on_rename,
	.link = on_link,
	.open = on_open,
	.read = on_read,
	.write_buf = on_write_buf,
	.flush = on_flush,
	.release = on_release,
	.fsync = on_fsync,
	.opendir = on_opendir,
	.readdir = on_readdir,
	.readdirplus = on_readdirplus,
	.releasedir = on_releasedir,
	.fsyncdir = on_fsyncdir,
	.statfs = on_statfs,
	.create = on_create,
	.fallocate = on_fallocate,
};

/* ---- its life ---- */

static int fail(const char *what)
{
	fprintf(stderr, "passthrough: %s\n", what);
	return 2;
}

static int serve(struct fuse_session *se)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();

	fuse_loop_cfg_set_clone_fd(config, 1);
	fuse_loop_cfg_set_idle_threads(config, THREADS);
	int rc = fuse_session_loop_mt(se, config);
	fuse_loop_cfg_destroy(config);
	return rc < 0 ? fail("cannot serve the mount") : 0;
}

int main(int argc, char **argv)
{
	char program[] = "passthrough", option[] = "-o", name[] = "fsname=passthrough";
	char *mount_argv[] = { program, option, name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, mount_argv);
	struct rlimit files;
	int rc;

	if (argc != 3)
		return fail("usage: passthrough SOURCE MNT");
	umask(0); /* the kernel applies the caller's */
	/* A descriptor for each inode that the kernel knows. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	fs.root.fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fs.root.fd < 0)
		return fail("cannot open the source: is it a directory?");
	struct fuse_session *se = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	fuse_opt_free_args(&args);
	if (!se)
		return fail("cannot start a FUSE session");
	rc = fuse_set_signal_handlers(se) ? fail("cannot catch signals") : 0;
	if (!rc && fuse_session_mount(se, argv[2]))
		rc = fail("cannot mount: is /dev/fuse there, and fusermount3 (package fuse3)?");
	else if (!rc) {
		rc = serve(se);
		fuse_session_unmount(se);
	}
	fuse_remove_signal_handlers(se);
	fuse_session_destroy(se);
	return rc;
}
