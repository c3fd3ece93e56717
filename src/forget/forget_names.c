/* SPDX-License-Identifier: MIT */
/*
 * forget_names.c - operations that make names. Such operations are done in ROOT at once, so that
 * its file system decides what is right. If they wait for a sync, the steps that undo them go to
 * the journal first (forget_log.c). forget_remove.c has the operations that remove names.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget/forget_impl.h"

/* ---- making ---- */

static int make_one(fuse_req_t req, int dir, const char *name, const struct making *m)
{
	int rc;

	forget_caller_enter(req);
	if (m->target)
		rc = result(symlinkat(m->target, dir, name));
	else if (S_ISDIR(m->mode))
		rc = result(mkdirat(dir, name, m->mode & 07777));
	else if (m->open)
		rc = result(openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
				   m->mode & 07777));
	else
		rc = result(mknodat(dir, name, m->mode, m->rdev));
	forget_caller_leave(req);
	return rc;
}

/* Removes a new file that cannot be in the answer, because there is no descriptor for it. */
static void unmake(struct forget *f, int dir, const char *name, bool is_dir)
{
	if (unlinkat(dir, name, is_dir ? AT_REMOVEDIR : 0) && errno != ENOENT)
		forget_log(f, "%s was made, and cannot be removed again: %m", name);
}

int forget_make_locked(struct call *c, struct node *p, int dir, const char *name,
		       const struct making *m, struct fuse_entry_param *e)
{
	struct undo u = { .kind = PENDING_MAKE, .is_dir = S_ISDIR(m->mode), .dir = { p->ino } };
	struct forget *f = c->f;
	bool waits = forget_log_waits(f, p);
	struct stat st;
	int rc = 0, made;

	if (m->open && f->data_stays && !forget_fds_take(f, FDS_OPEN))
		return forget_fds_refuse(f);
	if (waits) {
		u.name[0] = (char *)name;
		/* If we are killed, the journal has the name removed: so it must not exist yet. */
		rc = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? forget_log_intend(f, &u)
								  : -EEXIST;
		if (rc)
			return rc;
	}
	made = make_one(c->req, dir, name, m);
	rc = made < 0 ? made : forget_entry_lookup(f, p, dir, name, e);
	if (rc && made >= 0)
		unmake(f, dir, name, S_ISDIR(m->mode));
	if (!rc && waits) {
		struct node *n = node_of(f, e->ino);

		u.ino = e->attr.st_ino;
		forget_log_add(f, &u, (struct node *[4]){ p, NULL, n, NULL }, c->ev.number);
	} else if (waits) {
		forget_log_cancel(f, &u);
	}
	if (rc && made > 0)
		close(made);
	return rc ? rc : made;
}

static int make(struct call *c, struct node *p, const char *name, const struct making *m,
		struct fuse_entry_param *e)
{
	struct forget *f = c->f;
	int rc;

	if (forget_name_is_hidden(f, p, name))
		return -EPERM;
	auto_pin dir = node_pinned(f, p);
	if (dir.fd < 0)
		return dir.fd;
	names_lock(f);
	rc = forget_make_locked(c, p, dir.fd, name, m, e);
	names_unlock(f);
	if (rc >= 0) {
		c->ev.ino = e->attr.st_ino;
		c->ev.arg = e->attr.st_mode; /* after the umask */
		forget_trace_made(f, node_of(f, e->ino));
	}
	return rc;
}

static void reply_made(struct call *c, int64_t rc, struct fuse_entry_param *e)
{
	int64_t said = call_end(c, rc);

	if (call_is_late(c))
		e->entry_timeout = e->attr_timeout = 0;
	if (said)
		fuse_reply_err(c->req, (int)-said);
	if ((said || fuse_reply_entry(c->req, e)) && !rc)
		node_forget(c->f, node_of(c->f, e->ino), 1); /* the kernel has not got it */
	call_done(c);
}

static void make_and_reply(fuse_req_t req, enum posix_op op, fuse_ino_t parent, const char *name,
			   const struct making *m)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t rc = call_begin(&c, req, op, .node = p, .name = name, .arg = m->mode,
				.payload = m->target,
				.payload_len = m->target ? strlen(m->target) : 0);

	if (!rc)
		rc = make(&c, p, name, m, &e);
	reply_made(&c, rc, &e);
}

void forget_on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	make_and_reply(req, POSIX_MKNOD, parent, name, &(struct making){ mode, rdev, NULL, false });
}

void forget_on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	make_and_reply(req, POSIX_MKDIR, parent, name,
		       &(struct making){ mode | S_IFDIR, 0, NULL, false });
}

void forget_on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	make_and_reply(req, POSIX_SYMLINK, parent, name,
		       &(struct making){ S_IFLNK | 0777, 0, target, false });
}

void forget_on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t said, rc = call_begin(&c, req, POSIX_CREATE, .node = p, .name = name, .arg = mode);
	int fd = -1;

	if (!rc) {
		rc = fd = make(&c, p, name, &(struct making){ mode | S_IFREG, 0, NULL, true }, &e);
		if (rc == -EEXIST && !(fi->flags & O_EXCL)) { /* another process has made it */
			auto_pin dir = node_pinned(f, p);

			rc = dir.fd < 0 ? dir.fd : forget_entry_lookup(f, p, dir.fd, name, &e);
			fd = -1;
		}
	}
	if (rc >= 0) {
		forget_data_open_created(f, node_of(f, e.ino), fd);
		rc = 0;
	}
	said = call_end(&c, rc);
	fi->keep_cache = 1;
	fi->noflush = forget_data_noflush(f, fi);
	if (call_is_late(&c))
		e.entry_timeout = e.attr_timeout = 0;
	if (said)
		fuse_reply_err(req, (int)-said);
	if ((said || fuse_reply_create(req, &e, fi)) && !rc) {
		struct node *n = node_of(f, e.ino);

		pthread_mutex_lock(&n->lock);
		n->opens--;
		pthread_mutex_unlock(&n->lock);
		node_forget(f, n, 1);
	}
	call_done(&c);
}

/* ---- links ---- */

static int link_one(struct call *c, struct node *n, int fd, struct node *p, int dir,
		    const char *name, struct fuse_entry_param *e)
{
	struct undo u = { .kind = PENDING_LINK, .ino = n->ino, .dir = { p->ino } };
	struct forget *f = c->f;
	bool waits = forget_log_waits(f, p);
	struct stat st;
	int rc;

	auto_names(f);
	if (waits) {
		u.name[0] = (char *)name;
		rc = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? forget_log_intend(f, &u)
								  : -EEXIST;
		if (rc)
			return rc;
	}
	rc = result(linkat(AT_FDCWD, fd_path(fd).text, dir, name, AT_SYMLINK_FOLLOW));
	if (rc == -ENOENT || rc == -EXDEV) /* /proc is missing, or does not follow links */
		rc = result(linkat(fd, "", dir, name, AT_EMPTY_PATH));
	if (!rc) {
		rc = forget_entry_lookup(f, p, dir, name, e);
		if (rc)
			unmake(f, dir, name, false);
	}
	if (!rc && waits)
		forget_log_add(f, &u, (struct node *[4]){ p, NULL, n, NULL }, c->ev.number);
	else if (waits)
		forget_log_cancel(f, &u);
	return rc;
}

void forget_on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino), *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_LINK, .node = n, .node2 = p, .name2 = name);

	if (!rc && forget_name_is_hidden(f, p, name))
		rc = -EPERM;
	if (!rc) {
		auto_pin dir = node_pinned(f, p), at = node_pinned(f, n);

		rc = dir.fd < 0 ? dir.fd : min(at.fd, 0);
		if (!rc)
			rc = link_one(&c, n, at.fd, p, dir.fd, name, &e);
	}
	/* In the trace, the directory is that of the new name. */
	c.ev.dir = c.ev.dir2;
	c.ev.name = name;
	c.ev.dir2 = 0;
	c.ev.name2 = NULL;
	reply_made(&c, rc, &e);
}

void forget_on_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct node *n = node_of(forget_of(req), ino);
	char target[4097];
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_READLINK, .node = n);

	if (!rc) {
		auto_pin at = node_pinned(c.f, n);

		rc = at.fd < 0 ? at.fd : result(readlinkat(at.fd, "", target, sizeof(target) - 1));
	}
	rc = call_end(&c, rc);
	if (rc < 0) {
		fuse_reply_err(req, (int)-rc);
	} else {
		target[rc] = '\0';
		fuse_reply_readlink(req, target);
	}
	call_done(&c);
}
