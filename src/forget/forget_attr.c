/* SPDX-License-Identifier: MIT */
/*
 * forget_attr.c - attributes. ROOT has all of them, except the size and times of a file with data
 * in memory, which the node has, and the count of links that only the stash has.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/limits.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "forget/forget_impl.h"

enum { BLOCK = 512 };

/*
 * Returns how long the kernel may keep attributes: for ever, as all changes come through this
 * server, which tells the kernel of losses. But writes take set-id bits away, which the kernel
 * would not notice.
 */
double forget_attr_keep_s(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_mode & (S_ISUID | S_ISGID)) ? 0 : 86400;
}

/* ---- reading ---- */

static bool is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Counts the links outside of the stash, again if the stash changed meanwhile. */
int forget_attr_links(struct node *n, int fd, nlink_t *links)
{
	for (;;) {
		unsigned ended = atomic_load(&n->stash_ended);
		struct stat st;

		if (fstatat(fd, "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
			return -errno;
		nlink_t stashed = atomic_load(&n->stash_links);
		*links = st.st_nlink - min(stashed, st.st_nlink);
		if (atomic_load(&n->stash_begun) == ended)
			return 0;
		sched_yield();
	}
}

static void overlay_links(struct forget *f, struct node *n, struct stat *st)
{
	auto_pin at = node_pinned(f, n);

	if (at.fd < 0)
		st->st_nlink -= min((nlink_t)atomic_load(&n->stash_links), st->st_nlink);
	else if (forget_attr_links(n, at.fd, &st->st_nlink))
		forget_log(f, "links of inode %llu cannot be counted: %m", llu(n->ino));
}

void forget_attr_overlay(struct forget *f, struct node *n, struct stat *st)
{
	if (atomic_load(&n->stash_begun))
		overlay_links(f, n, st);
	if (n == &f->root && f->stash_fd >= 0 && st->st_nlink > 2)
		st->st_nlink--; /* the stash itself */
	if (!atomic_load(&n->live))
		return;
	auto_lock(&n->lock);
	if (n->pf) {
		uint64_t more = pagefile_dirty_bytes(n->pf);
		uint64_t most = (pagefile_size(n->pf) + BLOCK - 1) / BLOCK;

		st->st_size = (off_t)pagefile_size(n->pf);
		/*
		 * The space to be allocated is unknown; this counts the data still to be written.
		 */
		if (more)
			st->st_blocks =
				(blkcnt_t)max(min((uint64_t)st->st_blocks + more / BLOCK, most),
					      min(more / BLOCK, most));
	}
	if (n->times) {
		st->st_mtim = n->mtime;
		if (is_later(n->ctime, st->st_ctim))
			st->st_ctim = n->ctime;
	}
}

/* Gives the attributes that an application sees. */
static int attr_stat(struct forget *f, struct node *n, int fd, struct stat *st)
{
	if (fstatat(fd, "", st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -errno;
	forget_attr_overlay(f, n, st);
	return 0;
}

static int stat_node(struct forget *f, struct node *n, struct stat *st)
{
	auto_pin at = node_pinned(f, n);

	return at.fd < 0 ? at.fd : attr_stat(f, n, at.fd, st);
}

void forget_on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct stat st;
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_GETATTR, .node = n);

	(void)fi;
	if (!rc)
		rc = stat_node(f, n, &st);
	rc = call_end(&c, rc);
	if (rc)
		fuse_reply_err(req, (int)-rc);
	else
		fuse_reply_attr(req, &st, call_is_late(&c) ? 0 : forget_attr_keep_s(&st));
	call_done(&c);
}

static int ask_root(struct forget *f, struct node *n, int mask)
{
	auto_pin at = node_pinned(f, n);

	return at.fd < 0 ? at.fd
			 : result(faccessat(AT_FDCWD, fd_path(at.fd).text, mask, AT_EACCESS));
}

int forget_attr_allowed(struct forget *f, struct node *n, int mask)
{
	if (f->opts.allow_other || (!geteuid() && !(mask & X_OK)))
		return 0; /* the kernel has checked, or everything is allowed */
	return ask_root(f, n, mask);
}

/*
 * Handles access(2) and chdir(2), if the kernel does not check by itself. These checks are no
 * operations: faults do not see them.
 */
void forget_on_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct forget *f = forget_of(req);
	int rc;

	pthread_rwlock_rdlock(&f->gate);
	rc = f->dead ? -ENOTCONN : ask_root(f, node_of(f, ino), mask);
	pthread_rwlock_unlock(&f->gate);
	fuse_reply_err(req, -rc);
}

void forget_on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct forget *f = forget_of(req);
	struct statvfs st;

	(void)ino;
	if (fstatvfs(f->root_fd, &st))
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}

/* ---- changing ---- */

static enum posix_op setattr_op(int to_set)
{
	if (to_set & FUSE_SET_ATTR_SIZE)
		return POSIX_TRUNCATE;
	/* A change of owner may come with a mode without set-id bits. */
	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		return POSIX_CHOWN;
	if (to_set & FUSE_SET_ATTR_MODE)
		return POSIX_CHMOD;
	return POSIX_UTIMENS;
}

static struct timespec time_to_set(const struct timespec *t, bool set, bool now)
{
	if (set && !now)
		return *t;
	return (struct timespec){ .tv_nsec = now ? UTIME_NOW : UTIME_OMIT };
}

static int set_in_root(int fd, const struct stat *st, int to_set)
{
	struct fd_path path = fd_path(fd);
	int rc = 0;

	/* The owner comes first: its change takes set-id bits away. */
	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		rc = result(fchownat(fd, "", to_set & FUSE_SET_ATTR_UID ? st->st_uid : (uid_t)-1,
				     to_set & FUSE_SET_ATTR_GID ? st->st_gid : (gid_t)-1,
				     AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	if (!rc && (to_set & FUSE_SET_ATTR_MODE))
		rc = result(chmod(path.text, st->st_mode & 07777));
	if (!rc && (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME))) {
		struct timespec times[2] = {
			time_to_set(&st->st_atim, to_set & FUSE_SET_ATTR_ATIME,
				    to_set & FUSE_SET_ATTR_ATIME_NOW),
			time_to_set(&st->st_mtim, to_set & FUSE_SET_ATTR_MTIME,
				    to_set & FUSE_SET_ATTR_MTIME_NOW),
		};

		rc = result(utimensat(AT_FDCWD, path.text, times, 0));
	}
	return rc;
}

/* Copies times that were set to the live times. */
static void follow_times(struct node *n, int fd, int to_set)
{
	struct stat st;

	if (!atomic_load(&n->live) || fstatat(fd, "", &st, AT_EMPTY_PATH))
		return;
	auto_lock(&n->lock);
	if (n->times) {
		if (to_set & FUSE_SET_ATTR_MTIME)
			n->mtime = st.st_mtim;
		n->ctime = st.st_ctim;
	}
}

static int set_waiting(struct call *c, struct node *n, int fd, const struct stat *st, int to_set)
{
	struct undo u = { .kind = PENDING_ATTR, .ino = n->ino, .is_dir = S_ISDIR(n->type) };
	struct forget *f = c->f;
	struct stat old;
	int rc;

	auto_names(f);
	if (fstatat(fd, "", &old, AT_EMPTY_PATH))
		return -errno;
	undo_attributes(&u, &old);
	rc = forget_log_intend(f, &u);
	if (rc)
		return rc;
	rc = set_in_root(fd, st, to_set);
	/* A change that was done in part waits as well. */
	forget_log_add(f, &u, (struct node *[4]){ NULL, NULL, n, NULL }, c->ev.number);
	return rc;
}

static int set_attributes(struct call *c, struct node *n, int fd, const struct stat *st, int to_set)
{
	int rc = forget_log_waits(c->f, n) ? set_waiting(c, n, fd, st, to_set)
					   : set_in_root(fd, st, to_set);

	follow_times(n, fd, to_set);
	if (to_set & FUSE_SET_ATTR_MODE)
		atomic_store(&n->setid, (st->st_mode & (S_ISUID | S_ISGID)) |
						(atomic_load(&n->setid) & SETID_CAPABILITY));
	return rc;
}

unsigned forget_attr_setid(int fd, const struct stat *st)
{
	char value[64];

	return (st->st_mode & (S_ISUID | S_ISGID)) |
	       (getxattr(fd_path(fd).text, "security.capability", value, sizeof(value)) > 0
			? SETID_CAPABILITY
			: 0);
}

struct xattr_change {
	const char *name, *value; /* NULL: the attribute is removed */
	size_t len;
	int flags;
};

static int change_xattr(struct call *c, struct node *n, int fd, const struct xattr_change *x);

static bool in_group(fuse_req_t req, gid_t gid)
{
	gid_t groups[256];
	int n;

	if (fuse_req_ctx(req)->gid == gid)
		return true;
	n = fuse_req_getgroups(req, ARRAY_SIZE(groups), groups);
	for (int i = 0; i < min(n, (int)ARRAY_SIZE(groups)); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

void forget_attr_drop_setid(struct call *c, struct node *n)
{
	struct stat st;
	mode_t drop = S_ISUID;
	auto_pin at = node_pinned(c->f, n);

	if (at.fd < 0)
		return;
	if (atomic_load(&n->setid) & SETID_CAPABILITY) {
		struct xattr_change x = { "security.capability", NULL, 0, 0 };

		change_xattr(c, n, at.fd, &x);
	}
	if (fuse_req_ctx(c->req)->uid && !fstatat(at.fd, "", &st, AT_EMPTY_PATH)) {
		if ((st.st_mode & S_IXGRP) || !in_group(c->req, st.st_gid))
			drop |= S_ISGID;
		if (st.st_mode & drop) {
			st.st_mode &= ~drop;
			set_attributes(c, n, at.fd, &st, FUSE_SET_ATTR_MODE);
		}
	}
}

static int set_all(struct call *c, struct node *n, struct stat *st, int to_set, bool open,
		   struct stat *now)
{
	static const int in_root = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID |
				   FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME;
	struct forget *f = c->f;
	auto_pin at = node_pinned(f, n);
	int rc = 0;

	if (at.fd < 0)
		return at.fd;
	if ((to_set & FUSE_SET_ATTR_SIZE) && !open)
		rc = forget_attr_allowed(f, n, W_OK);
	if (!rc && (to_set & FUSE_SET_ATTR_SIZE)) {
		pthread_mutex_lock(&n->lock);
		rc = forget_data_truncate(f, n, (uint64_t)st->st_size, c->ev.number);
		if (!rc && c->act.durable)
			rc = pagefile_sync_size(n->pf, true);
		pthread_mutex_unlock(&n->lock);
	}
	if (!rc && (to_set & FUSE_SET_ATTR_SIZE) && atomic_load(&n->setid))
		forget_attr_drop_setid(c, n);
	if (!rc && (to_set & in_root))
		rc = set_attributes(c, n, at.fd, st, to_set);
	return rc ? rc : attr_stat(f, n, at.fd, now);
}

void forget_on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct stat now;
	struct call c;
	int64_t rc;

	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		to_set |= FUSE_SET_ATTR_ATIME;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		to_set |= FUSE_SET_ATTR_MTIME;
	struct call_what what = { setattr_op(to_set), .node = n };
	what.arg = to_set & FUSE_SET_ATTR_MODE ? st->st_mode : 0;
	if (what.op == POSIX_TRUNCATE)
		what.offset = (uint64_t)st->st_size;
	if (what.op == POSIX_CHOWN) {
		what.offset = to_set & FUSE_SET_ATTR_UID ? st->st_uid : UINT32_MAX;
		what.len = to_set & FUSE_SET_ATTR_GID ? st->st_gid : UINT32_MAX;
	}
	rc = call_begin_what(&c, req, &what);
	if (!rc)
		rc = set_all(&c, n, st, to_set, fi, &now);
	if (!rc && what.op == POSIX_CHOWN)
		c.ev.arg = now.st_mode; /* the mode may have lost set-id bits */
	rc = call_end(&c, rc);
	if (rc)
		fuse_reply_err(req, (int)-rc);
	else
		fuse_reply_attr(req, &now, forget_attr_keep_s(&now));
	call_done(&c);
}

/* ---- extended attributes ---- */

/* Replies with the value of NAME or, if NAME is NULL, the list of all names. */
static void get_and_reply(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct node *n = node_of(forget_of(req), ino);
	auto_free char *value = size ? xmalloc(size) : NULL;
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_GETXATTR, .node = n, .name2 = name);

	if (!rc) {
		auto_pin at = node_pinned(c.f, n);
		struct fd_path path = fd_path(at.fd);

		rc = at.fd < 0 ? at.fd
		     : name    ? result(getxattr(path.text, name, value, size))
			       : result(listxattr(path.text, value, size));
	}
	rc = call_end(&c, rc);
	if (rc < 0)
		fuse_reply_err(req, (int)-rc);
	else if (!size)
		fuse_reply_xattr(req, (size_t)rc);
	else
		fuse_reply_buf(req, value, (size_t)rc);
	call_done(&c);
}

void forget_on_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	get_and_reply(req, ino, name, size);
}

void forget_on_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	get_and_reply(req, ino, NULL, size);
}

static int change_in_root(int fd, const struct xattr_change *x)
{
	struct fd_path path = fd_path(fd);

	return result(x->value ? setxattr(path.text, x->name, x->value, x->len, x->flags)
			       : removexattr(path.text, x->name));
}

static int change_waiting(struct call *c, struct node *n, int fd, const struct xattr_change *x)
{
	struct undo u = { .kind = PENDING_XATTR, .ino = n->ino, .is_dir = S_ISDIR(n->type) };
	struct fd_path path = fd_path(fd);
	auto_free char *old = xmalloc(XATTR_SIZE_MAX);
	struct forget *f = c->f;
	struct stat st;
	ssize_t len;
	int rc;

	auto_names(f);
	if (fstatat(fd, "", &st, AT_EMPTY_PATH))
		return -errno;
	undo_attributes(&u, &st); /* an access control list changes the mode, too */
	len = getxattr(path.text, x->name, old, XATTR_SIZE_MAX);
	if (len < 0 && errno != ENODATA)
		return -errno;
	u.xattr = (char *)x->name;
	u.value = len < 0 ? NULL : old;
	u.value_len = len < 0 ? 0 : (size_t)len;
	rc = forget_log_intend(f, &u);
	if (rc)
		return rc;
	rc = change_in_root(fd, x);
	if (rc)
		forget_log_cancel(f, &u);
	else
		forget_log_add(f, &u, (struct node *[4]){ NULL, NULL, n, NULL }, c->ev.number);
	return rc;
}

static int change_xattr(struct call *c, struct node *n, int fd, const struct xattr_change *x)
{
	int rc = forget_log_waits(c->f, n) ? change_waiting(c, n, fd, x) : change_in_root(fd, x);

	if (!rc && streq(x->name, "security.capability")) {
		if (x->value)
			atomic_fetch_or(&n->setid, SETID_CAPABILITY);
		else
			atomic_fetch_and(&n->setid, ~(unsigned)SETID_CAPABILITY);
	}
	return rc;
}

/*
 * An access control list changes the mode. A kernel that does not obey lists does not know that,
 * and is told before the answer: to forget attributes alone, the kernel takes no lock that the
 * waiting caller holds.
 */
static void tell_mode(struct forget *f, struct node *n, const char *name)
{
	if (!f->checked && !strncmp(name, "system.posix_acl", 16))
		fuse_lowlevel_notify_inval_inode(f->session.se, node_id(f, n), -1, 0);
}

static void change_and_reply(fuse_req_t req, enum posix_op op, fuse_ino_t ino,
			     const struct xattr_change *x)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct call c;
	int64_t rc = call_begin(&c, req, op, .node = n, .name2 = x->name, .arg = (uint32_t)x->flags,
				.payload = x->value, .payload_len = x->len);

	if (!rc) {
		auto_pin at = node_pinned(f, n);

		rc = at.fd < 0 ? at.fd : change_xattr(&c, n, at.fd, x);
	}
	if (!rc)
		tell_mode(f, n, x->name);
	call_reply(&c, rc);
}

void forget_on_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			size_t len, int flags)
{
	change_and_reply(req, POSIX_SETXATTR, ino,
			 &(struct xattr_change){ name, value ? value : "", len, flags });
}

void forget_on_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	change_and_reply(req, POSIX_REMOVEXATTR, ino, &(struct xattr_change){ name, NULL, 0, 0 });
}
