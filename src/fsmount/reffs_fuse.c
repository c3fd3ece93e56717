/* SPDX-License-Identifier: MIT */
/*
 * reffs_fuse.c - turns requests of the kernel into calls of the reference file system. A request
 * tells its caller: user, group and umask; supplementary groups are looked up when they make a
 * difference. Capabilities are not looked up: the user 0 has them all.
 */
#include "fsmount/reffs_server.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS_MAX = 256, BLOCK = 512 };

void reffs_mount_lock(struct reffs_mount *m)
{
	struct timespec now;

	pthread_mutex_lock(&m->lock);
	clock_gettime(CLOCK_REALTIME, &now);
	reffs_set_time(m->r, (struct tree_time){ now.tv_sec, (uint32_t)now.tv_nsec });
}

void reffs_mount_unlock(struct reffs_mount *m)
{
	pthread_mutex_unlock(&m->lock);
}

/* ---- the caller ---- */

struct caller {
	struct reffs_cred cred;
	fuse_req_t req;
	int n; /* -1: not asked for yet */
	gid_t groups[GROUPS_MAX];
};

static bool caller_in_group(const struct reffs_cred *cred, uint32_t gid)
{
	struct caller *c = container_of(cred, struct caller, cred);

	if (c->n < 0)
		c->n = max(fuse_req_getgroups(c->req, GROUPS_MAX, c->groups), 0);
	return any_of(i, (size_t)min(c->n, (int)GROUPS_MAX), c->groups[i] == gid);
}

static void caller_init(struct caller *c, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	c->req = req;
	c->n = -1;
	c->cred = (struct reffs_cred){
		.uid = ctx->uid,
		.gid = ctx->gid,
		.in_group = caller_in_group,
		.umask = ctx->umask,
		.caps = ctx->uid ? 0 : REFFS_CAPS_ALL,
	};
}

/* Begins a request: gets its caller, and takes the lock. */
static struct reffs_mount *begin(fuse_req_t req, struct caller *c)
{
	struct reffs_mount *m = mount_of(req);

	caller_init(c, req);
	reffs_mount_lock(m);
	return m;
}

/* ---- answers ---- */

static struct timespec timespec_of(struct tree_time t)
{
	return (struct timespec){ .tv_sec = t.sec, .tv_nsec = t.nsec };
}

static struct stat stat_of(const struct reffs_attr *a)
{
	return (struct stat){
		.st_ino = a->ino,
		.st_mode = tree_type_mode(a->type) | a->mode,
		.st_nlink = a->nlink,
		.st_uid = a->uid,
		.st_gid = a->gid,
		.st_rdev = a->rdev,
		.st_size = (off_t)a->size,
		.st_blksize = REFFS_PAGE,
		.st_blocks = (blkcnt_t)(a->pages * (REFFS_PAGE / BLOCK)),
		.st_atim = timespec_of(a->atime),
		.st_mtim = timespec_of(a->mtime),
		.st_ctim = timespec_of(a->ctime),
	};
}

static struct open_file *open_of(const struct reffs_mount *m, uint64_t ino)
{
	return vec_find(i, &m->open, m->open.v[i].ino == ino);
}

bool reffs_is_open(const struct reffs_mount *m, uint64_t ino)
{
	return open_of(m, ino);
}

static void count_open(struct reffs_mount *m, uint64_t ino)
{
	struct open_file *f = open_of(m, ino);

	if (f)
		f->n++;
	else
		vec_push(&m->open, (struct open_file){ ino, 1 });
}

static void count_close(struct reffs_mount *m, uint64_t ino)
{
	struct open_file *f = open_of(m, ino);

	if (!f)
		return;
	assert(f->n > 0); /* S4 */
	if (!--f->n)
		*f = m->open.v[--m->open.n];
}

/* Ends a request that found or made `ino` in `dir`: the kernel knows it from now on (S6). */
static void reply_entry(fuse_req_t req, int rc, uint64_t dir, uint64_t ino,
			struct fuse_file_info *fi)
{
	struct reffs_mount *m = mount_of(req);
	struct fuse_entry_param e = { .ino = ino, .attr_timeout = m->keep_s };
	struct reffs_attr a;

	if (!rc)
		rc = vfs_getattr(m->r, ino, &a);
	if (!rc)
		vfs_pin(m->r, ino, 1);
	if (reffs_kernel_may_keep_names(m, dir))
		e.entry_timeout = m->keep_s;
	reffs_mount_unlock(m);
	if (rc) {
		fuse_reply_err(req, -rc);
		return;
	}
	e.attr = stat_of(&a);
	if (!(fi ? fuse_reply_create(req, &e, fi) : fuse_reply_entry(req, &e)))
		return;
	reffs_mount_lock(m); /* the call was interrupted: the kernel did not get the answer */
	if (fi)
		count_close(m, ino);
	vfs_unpin(m->r, ino, 1);
	reffs_mount_unlock(m);
}

/* Answers that there is no such name, which the kernel may remember. */
static void reply_missing(fuse_req_t req)
{
	struct reffs_mount *m = mount_of(req);

	reffs_mount_unlock(m);
	fuse_reply_entry(req, &(struct fuse_entry_param){ .entry_timeout = m->keep_s });
}

static void reply_result(fuse_req_t req, int64_t rc)
{
	reffs_mount_unlock(mount_of(req));
	fuse_reply_err(req, (int)-min(rc, (int64_t)0));
}

/* `forget`: some users may no longer search the directory (S3). */
static void reply_attr(fuse_req_t req, int rc, uint64_t ino, bool forget)
{
	struct reffs_mount *m = mount_of(req);
	struct reffs_attr a;

	if (!rc)
		rc = vfs_getattr(m->r, ino, &a);
	reffs_mount_unlock(m);
	if (forget)
		reffs_kernel_forget_names(m);
	if (rc) {
		fuse_reply_err(req, -rc);
		return;
	}
	struct stat st = stat_of(&a);
	fuse_reply_attr(req, &st, m->keep_s);
}

/* Ends a request that may have changed attributes without the kernel's knowledge (S1). */
static void reply_forgetful(fuse_req_t req, int64_t rc, uint64_t ino)
{
	struct reffs_mount *m = mount_of(req);

	reffs_mount_unlock(m);
	if (!rc)
		reffs_kernel_forget_attr(m, ino);
	fuse_reply_err(req, (int)-min(rc, (int64_t)0));
}

/* True if the mode may change when the content does. */
static bool is_setid(struct reffs_mount *m, uint64_t ino)
{
	struct reffs_attr a;

	return !vfs_getattr(m->r, ino, &a) && a.mode & (S_ISUID | S_ISGID);
}

/* ---- names ---- */

static void on_init(void *data, struct fuse_conn_info *conn)
{
	reffs_kernel_init(data, conn);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	uint64_t ino = 0;
	int rc = vfs_lookup(m->r, &c.cred, parent, name, &ino);

	if (rc == -ENOENT && reffs_kernel_may_keep_names(m, parent))
		reply_missing(req);
	else
		reply_entry(req, rc, parent, ino, NULL);
}

static void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct reffs_mount *m = mount_of(req);

	reffs_mount_lock(m);
	vfs_unpin(m->r, ino, n);
	reffs_mount_unlock(m);
	fuse_reply_none(req);
}

static void on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *v)
{
	struct reffs_mount *m = mount_of(req);

	reffs_mount_lock(m);
	for (size_t i = 0; i < count; i++)
		vfs_unpin(m->r, v[i].ino, v[i].nlookup);
	reffs_mount_unlock(m);
	fuse_reply_none(req);
}

static void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	uint64_t ino = 0;
	int rc = vfs_mknod(m->r, &c.cred, parent, name, mode, rdev, &ino);

	reply_entry(req, rc, parent, ino, NULL);
}

static void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	uint64_t ino = 0;
	int rc = vfs_mkdir(m->r, &c.cred, parent, name, mode, &ino);

	reply_entry(req, rc, parent, ino, NULL);
}

static void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	uint64_t ino = 0;
	int rc = vfs_symlink(m->r, &c.cred, target, parent, name, &ino);

	reply_entry(req, rc, parent, ino, NULL);
}

static void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int rc = vfs_link(m->r, &c.cred, ino, parent, name);

	reply_entry(req, rc, parent, ino, NULL);
}

static void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	reply_result(req, vfs_unlink(m->r, &c.cred, parent, name));
}

static void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	reply_result(req, vfs_rmdir(m->r, &c.cred, parent, name));
}

static void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	int rc = vfs_rename(m->r, &c.cred, parent, name, to, new_name, flags);
	/* The kernel moves the names that it keeps, perhaps to where it may not keep them (S3). */
	bool forget = !rc &&
		      reffs_kernel_may_keep_names(m, parent) != reffs_kernel_may_keep_names(m, to);

	reffs_mount_unlock(m);
	if (forget)
		reffs_kernel_forget_names(m);
	fuse_reply_err(req, -rc);
}

static void on_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	const char *target;
	int rc = vfs_readlink(m->r, ino, &target);
	auto_free char *copy = rc ? NULL : xstrdup(target);

	reffs_mount_unlock(m);
	if (rc)
		fuse_reply_err(req, -rc);
	else
		fuse_reply_readlink(req, copy);
}

/* ---- attributes ---- */

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct caller c;

	(void)fi;
	begin(req, &c);
	reply_attr(req, 0, ino, false);
}

/*
 * True if the request only drops set-id bits. Old kernels do not let us do that: such a kernel sets
 * a mode without them in the name of the writer, which only the owner may do; but any user who may
 * write to the file, or has it open, may cause it. With a new size or owner the call itself drops
 * them.
 */
static bool drops_setid(struct reffs_mount *m, const struct reffs_cred *c, uint64_t ino,
			const struct vfs_setattr *a)
{
	struct reffs_attr old;

	if (m->setid_ours || a->set != VFS_SET_MODE || vfs_getattr(m->r, ino, &old) ||
	    c->uid == old.uid)
		return false;
	uint32_t gone = old.mode & ~a->mode;
	return gone && !(gone & ~(uint32_t)(S_ISUID | S_ISGID)) && !(a->mode & ~old.mode) &&
	       (reffs_is_open(m, ino) || !vfs_access(m->r, c, ino, W_OK));
}

static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi)
{
	static const struct {
		int theirs;
		unsigned ours;
	} bits[] = {
		{ FUSE_SET_ATTR_MODE, VFS_SET_MODE },
		{ FUSE_SET_ATTR_UID, VFS_SET_UID },
		{ FUSE_SET_ATTR_GID, VFS_SET_GID },
		{ FUSE_SET_ATTR_SIZE, VFS_SET_SIZE },
	};
	struct vfs_setattr a = {
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.atime = { st->st_atim.tv_sec, (uint32_t)st->st_atim.tv_nsec },
		.mtime = { st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec },
	};
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		a.set |= to_set & bits[i].theirs ? bits[i].ours : 0;
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		a.set |= VFS_SET_ATIME_NOW;
	else if (to_set & FUSE_SET_ATTR_ATIME)
		a.set |= VFS_SET_ATIME;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		a.set |= VFS_SET_MTIME_NOW;
	else if (to_set & FUSE_SET_ATTR_MTIME)
		a.set |= VFS_SET_MTIME;
	if (a.set & (VFS_SET_SIZE | VFS_SET_UID | VFS_SET_GID))
		a.set &= ~(unsigned)VFS_SET_MODE;
	const struct reffs_cred *who = drops_setid(m, &c.cred, ino, &a) ? &reffs_root : &c.cred;
	if (fi)
		a.set |= VFS_SET_OPEN;
	bool kept = reffs_kernel_may_keep_names(m, ino);
	int rc = vfs_setattr(m->r, who, ino, &a);
	bool forget = kept && !reffs_kernel_may_keep_names(m, ino);
	reply_attr(req, rc, ino, forget);
}

static void on_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	reply_result(req, vfs_access(m->r, &c.cred, ino, mask));
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	struct vfs_statfs st;

	(void)ino;
	vfs_statfs(m->r, &st);
	reffs_mount_unlock(m);
	fuse_reply_statfs(req, &(struct statvfs){
				       .f_bsize = REFFS_PAGE,
				       .f_frsize = REFFS_PAGE,
				       .f_blocks = st.pages,
				       .f_bfree = st.pages_free,
				       .f_bavail = st.pages_free,
				       .f_files = st.inodes,
				       .f_ffree = st.inodes_free,
				       .f_favail = st.inodes_free,
				       .f_namemax = 255,
			       });
}

/*
 * Ends a change of an attribute. An access control list changes the mode, and with that the users
 * who may search (S3).
 */
static void reply_xattr(fuse_req_t req, int rc, uint64_t ino, bool kept)
{
	struct reffs_mount *m = mount_of(req);
	bool forget = kept && !reffs_kernel_may_keep_names(m, ino);

	reffs_mount_unlock(m);
	if (forget)
		reffs_kernel_forget_names(m);
	if (!rc)
		reffs_kernel_forget_attr(m, ino);
	fuse_reply_err(req, -rc);
}

static void on_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			size_t len, int flags)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	bool kept = reffs_kernel_may_keep_names(m, ino);
	int rc = vfs_setxattr(m->r, &c.cred, ino, name, value, len, flags);
	reply_xattr(req, rc, ino, kept);
}

static void on_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	bool kept = reffs_kernel_may_keep_names(m, ino);
	reply_xattr(req, vfs_removexattr(m->r, &c.cred, ino, name), ino, kept);
}

/* Answers with a value; with its length if size is 0, with ERANGE if size is too small. */
static void reply_value(fuse_req_t req, int64_t len, const char *value, size_t size)
{
	if (len < 0)
		fuse_reply_err(req, (int)-len);
	else if (!size)
		fuse_reply_xattr(req, (size_t)len);
	else if ((size_t)len > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value, (size_t)len);
}

static void on_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	const void *value;
	size_t len;
	int rc = vfs_getxattr(m->r, &c.cred, ino, name, &value, &len);
	auto_free char *copy = rc ? NULL : xmemdupz(value, len);

	reffs_mount_unlock(m);
	reply_value(req, rc ? rc : (int64_t)len, copy, size);
}

static void on_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	auto_free char *list = xmalloc(max(size, (size_t)1));
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int64_t len = vfs_listxattr(m->r, &c.cred, ino, list, size);

	reffs_mount_unlock(m);
	reply_value(req, len, list, size);
}

/* ---- files ---- */

static void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	uint64_t ino = 0;
	int rc = vfs_create(m->r, &c.cred, parent, name, mode, &ino);

	if (rc == -EEXIST && !(fi->flags & O_EXCL)) { /* another process was faster */
		rc = vfs_lookup(m->r, &c.cred, parent, name, &ino);
		if (!rc)
			rc = vfs_open(m->r, &c.cred, ino, fi->flags);
	}
	if (!rc)
		count_open(m, ino);
	fi->direct_io = m->direct;
	reply_entry(req, rc, parent, ino, fi);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	bool changed = fi->flags & O_TRUNC && is_setid(m, ino);
	int rc = vfs_open(m->r, &c.cred, ino, fi->flags & ~O_DIRECT);

	if (!rc)
		count_open(m, ino);
	reffs_mount_unlock(m);
	if (changed)
		reffs_kernel_forget_attr(m, ino);
	fi->direct_io = m->direct;
	if (rc)
		fuse_reply_err(req, -rc);
	else if (fuse_reply_open(req, fi)) { /* interrupted: no release will come */
		reffs_mount_lock(m);
		count_close(m, ino);
		reffs_mount_unlock(m);
	}
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct reffs_mount *m = mount_of(req);

	(void)fi;
	reffs_mount_lock(m);
	count_close(m, ino);
	reffs_mount_unlock(m);
	fuse_reply_err(req, 0);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	auto_free char *buf = xmalloc(max(size, (size_t)1));
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int64_t n = vfs_read(m->r, ino, buf, (uint64_t)off, size);

	(void)fi;
	reffs_mount_unlock(m);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, buf, (size_t)n);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct caller c;
	int flags = fi->writepage ? 0 : fi->flags & O_APPEND;
	struct vfs_pages *pages = reffs_intake_pages(data, (uint64_t)off, size, flags);
	struct reffs_mount *m = begin(req, &c);
	/* Pages that are written back have no caller, and their own offset even with O_APPEND. */
	const struct reffs_cred *who = fi->writepage ? &reffs_root : &c.cred;
	bool changed = is_setid(m, ino);
	int64_t n = vfs_write_pages(m->r, who, ino, data, pages, (uint64_t)off, size, flags);

	reffs_mount_unlock(m);
	if (changed)
		reffs_kernel_forget_attr(m, ino);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

static void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	(void)fi;
	reply_forgetful(req, vfs_fallocate(m->r, &c.cred, ino, mode, (uint64_t)off, (uint64_t)len),
			ino);
}

static void on_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
		     struct fuse_file_info *fi)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int64_t at = vfs_seek(m->r, ino, (uint64_t)off, whence);

	(void)fi;
	reffs_mount_unlock(m);
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}

static void on_copy(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *fi,
		    fuse_ino_t to, off_t to_off, struct fuse_file_info *to_fi, size_t len,
		    int flags)
{
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int64_t n = vfs_copy(m->r, &c.cred, from, (uint64_t)from_off, to, (uint64_t)to_off, len);

	(void)fi, (void)to_fi, (void)flags;
	reffs_mount_unlock(m);
	reffs_kernel_forget_attr(m, to);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

/* ---- directories ---- */

static struct reffs_listing *listing_of(const struct fuse_file_info *fi)
{
	return (struct reffs_listing *)(uintptr_t)fi->fh;
}

static void listing_end(struct reffs_mount *m, struct reffs_listing *l)
{
	struct reffs_listing **at;

	reffs_mount_lock(m);
	vfs_dir_release(&l->dir); /* its names share nodes with states */
	for (at = &m->listings; *at != l; at = &(*at)->next)
		assert(*at); /* S5: a restore must find the listing */
	*at = l->next;
	reffs_mount_unlock(m);
	free(l);
}

static void on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct reffs_listing *l = NULL;
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int rc = vfs_open(m->r, &c.cred, ino, fi->flags & ~O_DIRECT);

	if (!rc) {
		l = xcalloc(1, sizeof(*l));
		*l = (struct reffs_listing){ .next = m->listings, .ino = ino };
		m->listings = l;
	}
	reffs_mount_unlock(m);
	fi->fh = (uintptr_t)l;
	if (rc)
		fuse_reply_err(req, -rc);
	else if (fuse_reply_open(req, fi))
		listing_end(m, l); /* no release will come */
}

struct reffs_filling {
	fuse_req_t req;
	char *buf;
	size_t size, used;
	double keep_s;			/* for a listing with attributes: the time of names */
	struct vec_of(uint64_t) pinned; /* by this answer */
};

static int fill_entry(void *ctx, const struct vfs_dirent *e)
{
	struct reffs_filling *f = ctx;
	struct stat st = { .st_ino = e->ino, .st_mode = tree_type_mode(e->type) };
	size_t n = fuse_add_direntry(f->req, f->buf + f->used, f->size - f->used, e->name, &st,
				     (off_t)e->cookie);

	if (n > f->size - f->used)
		return 1;
	f->used += n;
	return 0;
}

/* For an entry without an inode number the kernel only takes the name. */
static int fill_entry_plus(void *ctx, const struct vfs_dirent *e)
{
	struct reffs_filling *f = ctx;
	struct reffs_mount *m = mount_of(f->req);
	struct fuse_entry_param p = {
		.attr = { .st_ino = e->ino, .st_mode = tree_type_mode(e->type) },
		.attr_timeout = m->keep_s,
		.entry_timeout = f->keep_s,
	};
	struct reffs_attr a;

	if (f->keep_s && !streq(e->name, ".") && !streq(e->name, "..") &&
	    !vfs_getattr(m->r, e->ino, &a)) {
		p.ino = e->ino;
		p.attr = stat_of(&a);
	}
	size_t n = fuse_add_direntry_plus(f->req, f->buf + f->used, f->size - f->used, e->name, &p,
					  (off_t)e->cookie);
	if (n > f->size - f->used)
		return 1;
	f->used += n;
	assert(f->used <= f->size);
	if (p.ino) {
		vfs_pin(m->r, p.ino, 1);
		vec_push(&f->pinned, p.ino);
	}
	return 0;
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	auto_free char *buf = xmalloc(max(size, (size_t)1));
	struct reffs_filling f = { .req = req, .buf = buf, .size = size };
	struct caller c;
	struct reffs_mount *m = begin(req, &c);
	int rc = vfs_readdir(m->r, ino, &listing_of(fi)->dir, (uint64_t)off, fill_entry, &f);

	reffs_mount_unlock(m);
	if (rc)
		fuse_reply_err(req, -rc);
	else
		fuse_reply_buf(req, buf, f.used);
}

static void on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	auto_free char *buf = xmalloc(max(size, (size_t)1));
	struct reffs_filling f = { .req = req, .buf = buf, .size = size };
	struct reffs_listing *l = listing_of(fi);
	struct caller c;
	struct reffs_mount *m = begin(req, &c);

	f.keep_s = reffs_kernel_may_keep_names(m, ino) ? m->keep_s : 0;
	int rc = vfs_readdir(m->r, ino, &l->dir, (uint64_t)off, fill_entry_plus, &f);
	l->plus |= f.pinned.n > 0;
	reffs_mount_unlock(m);
	if (rc ? fuse_reply_err(req, -rc) : fuse_reply_buf(req, buf, f.used)) {
		reffs_mount_lock(
			m); /* the call was interrupted: the kernel did not get the answer */
		for (size_t i = 0; i < f.pinned.n; i++)
			vfs_unpin(m->r, f.pinned.v[i], 1);
		reffs_mount_unlock(m);
	}
	vec_release(&f.pinned);
}

static void on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	listing_end(mount_of(req), listing_of(fi));
	fuse_reply_err(req, 0);
}

const struct fuse_lowlevel_ops reffs_operations = {
	.init = on_init,
	.lookup = on_lookup,
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
	.write = on_write,
	.release = on_release,
	.opendir = on_opendir,
	.readdir = on_readdir,
	.releasedir = on_releasedir,
	.readdirplus = on_readdirplus,
	.statfs = on_statfs,
	.setxattr = on_setxattr,
	.getxattr = on_getxattr,
	.listxattr = on_listxattr,
	.removexattr = on_removexattr,
	.access = on_access,
	.create = on_create,
	.ioctl = reffs_ioctl,
	.fallocate = on_fallocate,
	.copy_file_range = on_copy,
	.lseek = on_lseek,
};
