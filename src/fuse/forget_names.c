/* SPDX-License-Identifier: MIT */
/*
 * forget_names.c - operations on names. They are done in ROOT at once, so that its file system
 * decides what is right. Where they wait for a sync, what is removed or replaced goes to the stash
 * instead, and how to take the operation back goes to the journal before it is done (forget_log.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse/forget_caller.h"
#include "fuse/forget_impl.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)
#define RENAME_WHITEOUT	 (1 << 2)
#endif

static int result(int rc)
{
	return rc < 0 ? -errno : rc;
}

/* ---- making ---- */

struct making {
	mode_t mode;
	dev_t rdev;
	const char *target; /* of a symbolic link */
	bool open;	    /* a file, to be opened */
};

static int make_one(fuse_req_t req, int dir, const char *name, const struct making *m)
{
	int rc;

	caller_enter(req);
	if (m->target)
		rc = result(symlinkat(m->target, dir, name));
	else if (S_ISDIR(m->mode))
		rc = result(mkdirat(dir, name, m->mode & 07777));
	else if (m->open)
		rc = result(openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
				   m->mode & 07777));
	else
		rc = result(mknodat(dir, name, m->mode, m->rdev));
	caller_leave(req);
	return rc;
}

/* What was made cannot be told of, for want of a descriptor: it was never there. */
static void unmake(struct forget *f, int dir, const char *name, const struct making *m)
{
	if (unlinkat(dir, name, S_ISDIR(m->mode) ? AT_REMOVEDIR : 0) && errno != ENOENT)
		forget_log(f, "%s was made, and cannot be removed again: %m", name);
}

/* Gives 0, or the descriptor of a file that was opened, and the entry; or -errno. */
static int make_locked(struct call *c, struct node *p, int dir, const char *name,
		       const struct making *m, struct fuse_entry_param *e)
{
	struct undo u = { .kind = PENDING_MAKE, .is_dir = S_ISDIR(m->mode), .dir = { p->ino } };
	struct forget *f = c->f;
	bool waits = log_waits(f, p);
	struct stat st;
	int rc = 0, made;

	if (waits) {
		u.name[0] = (char *)name;
		/* The journal says that it is removed, if we are killed: so it must not be there.
		 */
		rc = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? log_intend(f, &u) : -EEXIST;
		if (rc)
			return rc;
	}
	made = make_one(c->req, dir, name, m);
	rc = made < 0 ? made : entry_lookup(f, p, dir, name, e);
	if (rc && made >= 0)
		unmake(f, dir, name, m);
	if (!rc && waits) {
		struct node *n = node_of(f, e->ino);

		u.ino = e->attr.st_ino;
		log_add(f, &u, (struct node *[4]){ p, NULL, n, NULL }, c->ev.number);
	} else if (waits) {
		log_cancel(f, &u);
	}
	if (rc && made > 0)
		close(made);
	return rc ? rc : made;
}

static int make(struct call *c, struct node *p, const char *name, const struct making *m,
		struct fuse_entry_param *e)
{
	struct forget *f = c->f;
	int dir, rc;

	if (name_is_hidden(f, p, name))
		return -EPERM;
	dir = node_pin(f, p);
	if (dir < 0)
		return dir;
	names_lock(f);
	rc = make_locked(c, p, dir, name, m, e);
	names_unlock(f);
	node_unpin(p);
	if (rc >= 0) {
		c->ev.ino = e->attr.st_ino;
		c->ev.arg = e->attr.st_mode; /* with the umask */
		trace_made(f, node_of(f, e->ino));
	}
	return rc;
}

static void reply_made(struct call *c, int64_t rc, struct fuse_entry_param *e)
{
	int64_t said = call_end(c, rc);

	if (said)
		fuse_reply_err(c->req, (int)-said);
	if ((said || fuse_reply_entry(c->req, e)) && !rc)
		node_forget(c->f, node_of(c->f, e->ino), 1); /* the kernel does not know it */
	call_done(c);
}

static void make_and_reply(fuse_req_t req, enum posix_op op, fuse_ino_t parent, const char *name,
			   const struct making *m)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t rc =
		call_begin(&c, req,
			   &(struct call_what){ op, .node = p, .name = name, .arg = m->mode,
						.payload = m->target,
						.payload_len = m->target ? strlen(m->target) : 0 });

	if (!rc)
		rc = make(&c, p, name, m, &e);
	reply_made(&c, rc, &e);
}

void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	make_and_reply(req, POSIX_MKNOD, parent, name, &(struct making){ mode, rdev, NULL, false });
}

void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	make_and_reply(req, POSIX_MKDIR, parent, name,
		       &(struct making){ mode | S_IFDIR, 0, NULL, false });
}

void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	make_and_reply(req, POSIX_SYMLINK, parent, name,
		       &(struct making){ S_IFLNK | 0777, 0, target, false });
}

void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t said, rc = call_begin(&c, req,
				      &(struct call_what){ POSIX_CREATE, .node = p, .name = name,
							   .arg = mode });
	int fd = -1;

	if (!rc) {
		rc = fd = make(&c, p, name, &(struct making){ mode | S_IFREG, 0, NULL, true }, &e);
		if (rc == -EEXIST && !(fi->flags & O_EXCL)) { /* somebody was faster */
			int dir = node_pin(f, p);

			rc = dir < 0 ? dir : entry_lookup(f, p, dir, name, &e);
			if (dir >= 0)
				node_unpin(p);
			fd = -1;
		}
	}
	if (rc >= 0) {
		data_open_created(f, node_of(f, e.ino), fd);
		rc = 0;
	}
	said = call_end(&c, rc);
	fi->keep_cache = 1;
	fi->noflush = data_noflush(f, fi);
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

static int link_locked(struct call *c, struct node *n, int fd, struct node *p, int dir,
		       const char *name)
{
	struct undo u = { .kind = PENDING_LINK, .ino = n->ino, .dir = { p->ino } };
	struct forget *f = c->f;
	bool waits = log_waits(f, p);
	char path[64];
	struct stat st;
	int rc;

	if (waits) {
		u.name[0] = (char *)name;
		rc = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? log_intend(f, &u) : -EEXIST;
		if (rc)
			return rc;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = result(linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW));
	if (rc == -ENOENT || rc == -EXDEV) /* no /proc, or one that does not follow */
		rc = result(linkat(fd, "", dir, name, AT_EMPTY_PATH));
	if (!rc && waits)
		log_add(f, &u, (struct node *[4]){ p, NULL, n, NULL }, c->ev.number);
	else if (waits)
		log_cancel(f, &u);
	return rc;
}

void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino), *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t rc = call_begin(
		&c, req, &(struct call_what){ POSIX_LINK, .node = n, .node2 = p, .name2 = name });

	if (!rc && name_is_hidden(f, p, name))
		rc = -EPERM;
	if (!rc) {
		int dir = node_pin(f, p), fd = node_pin(f, n);

		rc = dir < 0 ? dir : min(fd, 0);
		if (!rc) {
			names_lock(f);
			rc = link_locked(&c, n, fd, p, dir, name);
			names_unlock(f);
		}
		if (!rc)
			rc = entry_lookup(f, p, dir, name, &e);
		if (dir >= 0)
			node_unpin(p);
		if (fd >= 0)
			node_unpin(n);
	}
	/* In the record, the directory is that of the new name. */
	c.ev.dir = c.ev.dir2;
	c.ev.name = name;
	c.ev.dir2 = 0;
	c.ev.name2 = NULL;
	reply_made(&c, rc, &e);
}

void on_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	char target[4097];
	struct call c;
	int64_t rc = call_begin(&c, req, &(struct call_what){ POSIX_READLINK, .node = n });

	if (!rc) {
		int fd = node_pin(f, n);

		rc = fd < 0 ? fd : readlinkat(fd, "", target, sizeof(target) - 1);
		if (fd >= 0) {
			if (rc < 0)
				rc = -errno;
			node_unpin(n);
		}
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

/* ---- removing ---- */

/* The node of a name, with a reference; NULL: there is none, or `*rc` says what is wrong. */
static struct node *node_at(struct forget *f, struct node *p, int dir, const char *name, int *rc)
{
	struct stat st;
	struct node *n;
	int fd;

	*rc = result(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW));
	if (*rc)
		return NULL;
	n = node_find(f, st.st_dev, st.st_ino);
	if (n)
		return n;
	fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		*rc = -errno;
		return NULL;
	}
	return node_adopt(f, fd, &st, p, name, 0);
}

/* Before a name goes: if it is the last one, only the descriptor keeps the inode. */
static void hold(struct forget *f, struct node *n)
{
	int fd = node_pin(f, n);
	struct stat st;

	if (fd < 0)
		return;
	if (S_ISDIR(n->type) || fstatat(fd, "", &st, AT_EMPTY_PATH) || st.st_nlink <= 1)
		node_gone(f, n, true);
	node_unpin(n);
}

static int to_stash(struct forget *f, struct node *n, int dir, const char *name,
		    const struct undo *u)
{
	char stashed[32];
	int rc;

	stash_name(u->seq, stashed);
	rc = result(renameat(dir, name, f->stash_fd, stashed));
	if (!rc && !S_ISDIR(n->type))
		atomic_fetch_add(&n->stash_links, 1);
	return rc;
}

static void from_stash(struct forget *f, struct node *n, int dir, const char *name,
		       const struct undo *u)
{
	char stashed[32];

	stash_name(u->seq, stashed);
	if (!renameat(f->stash_fd, stashed, dir, name) && !S_ISDIR(n->type))
		atomic_fetch_sub(&n->stash_links, 1);
}

static int remove_waiting(struct call *c, struct node *p, int dir, const char *name, struct node *n)
{
	struct undo u = { .kind = PENDING_REMOVE,
			  .ino = n->ino,
			  .is_dir = S_ISDIR(n->type),
			  .stashed = true,
			  .dir = { p->ino } };
	struct forget *f = c->f;
	int rc;

	if (u.is_dir) {
		rc = dir_is_empty(dir, name);
		if (rc <= 0)
			return rc ? rc : -ENOTEMPTY;
	}
	u.name[0] = (char *)name;
	rc = log_intend(f, &u);
	if (rc)
		return rc;
	rc = to_stash(f, n, dir, name, &u);
	if (rc)
		log_cancel(f, &u);
	else
		log_add(f, &u, (struct node *[4]){ p, NULL, n, NULL }, c->ev.number);
	return rc;
}

static int remove_locked(struct call *c, struct node *p, int dir, const char *name, bool is_dir)
{
	struct forget *f = c->f;
	struct node *n;
	int rc;

	n = node_at(f, p, dir, name, &rc);
	if (!n)
		return rc;
	c->ev.ino = n->ino;
	if (S_ISDIR(n->type) != is_dir) {
		rc = is_dir ? -ENOTDIR : -EISDIR;
	} else if (log_waits(f, p)) {
		rc = remove_waiting(c, p, dir, name, n);
	} else {
		hold(f, n);
		rc = result(unlinkat(dir, name, is_dir ? AT_REMOVEDIR : 0));
		if (rc)
			node_gone(f, n, false);
	}
	if (!rc)
		node_unnamed(f, n, p, name);
	node_unref(f, n);
	return rc;
}

static void remove_and_reply(fuse_req_t req, enum posix_op op, fuse_ino_t parent, const char *name)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct call c;
	int64_t rc = call_begin(&c, req, &(struct call_what){ op, .node = p, .name = name });
	int dir;

	if (!rc && name_is_hidden(f, p, name))
		rc = -ENOENT;
	if (!rc) {
		dir = node_pin(f, p);
		rc = min(dir, 0);
		if (!rc) {
			names_lock(f);
			rc = remove_locked(&c, p, dir, name, op == POSIX_RMDIR);
			names_unlock(f);
			node_unpin(p);
		}
	}
	call_reply(&c, rc);
}

void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_and_reply(req, POSIX_UNLINK, parent, name);
}

void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_and_reply(req, POSIX_RMDIR, parent, name);
}

/* ---- renaming ---- */

struct renaming {
	struct node *p, *q; /* directories */
	int from, to;
	const char *name, *name2;
	struct node *n, *old; /* what is renamed, and what it replaces, or NULL */
	unsigned flags;
};

static int rename_now(const struct renaming *r)
{
	return result((int)syscall(SYS_renameat2, r->from, r->name, r->to, r->name2, r->flags));
}

static int replace(struct forget *f, const struct renaming *r, const struct undo *u)
{
	int rc = r->old ? to_stash(f, r->old, r->to, r->name2, u) : 0;

	if (rc)
		return rc;
	rc = rename_now(r);
	if (rc && r->old)
		from_stash(f, r->old, r->to, r->name2, u);
	return rc;
}

static int rename_waiting(struct call *c, const struct renaming *r)
{
	bool swap = r->flags & RENAME_EXCHANGE;
	struct undo u = {
		.kind = swap ? PENDING_SWAP : PENDING_RENAME,
		.is_dir = S_ISDIR(r->n->type),
		.ino = r->n->ino,
		.other = r->old ? r->old->ino : 0,
		.stashed = r->old && !swap,
		.dir = { r->p->ino, r->q->ino },
	};
	struct forget *f = c->f;
	int rc;

	if (u.stashed && S_ISDIR(r->old->type)) {
		rc = dir_is_empty(r->to, r->name2);
		if (rc <= 0)
			return rc ? rc : -ENOTEMPTY;
	}
	u.name[0] = (char *)r->name;
	u.name[1] = (char *)r->name2;
	rc = log_intend(f, &u);
	if (rc)
		return rc;
	rc = swap ? rename_now(r) : replace(f, r, &u);
	if (rc)
		log_cancel(f, &u);
	else
		log_add(f, &u, (struct node *[4]){ r->p, r->q, r->n, r->old }, c->ev.number);
	return rc;
}

static void rename_nodes(struct forget *f, const struct renaming *r)
{
	bool swap = r->flags & RENAME_EXCHANGE;

	node_unnamed(f, r->n, r->p, r->name);
	if (r->old)
		node_unnamed(f, r->old, r->q, r->name2);
	node_named(f, r->n, r->q, r->name2);
	if (swap && r->old)
		node_named(f, r->old, r->p, r->name);
}

/* A whiteout that a rename leaves is a second operation, which is taken back first. */
static int rename_and_whiteout(struct call *c, struct renaming *r)
{
	const struct making whiteout = { .mode = S_IFCHR };
	struct fuse_entry_param e;
	int rc;

	r->flags &= ~(unsigned)RENAME_WHITEOUT;
	rc = rename_waiting(c, r);
	if (rc)
		return rc;
	rename_nodes(c->f, r);
	rc = make_locked(c, r->p, r->from, r->name, &whiteout, &e);
	if (!rc)
		node_forget(c->f, node_of(c->f, e.ino), 1);
	return rc;
}

static int rename_locked(struct call *c, struct renaming *r)
{
	struct forget *f = c->f;
	int rc;

	r->n = node_at(f, r->p, r->from, r->name, &rc);
	if (!r->n)
		return rc;
	c->ev.ino = r->n->ino;
	r->old = node_at(f, r->q, r->to, r->name2, &rc);
	if (!r->old && rc != -ENOENT)
		return rc;
	c->ev.ino2 = r->old ? r->old->ino : 0;
	if (r->old && (r->flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (!r->old && (r->flags & RENAME_EXCHANGE))
		return -ENOENT;
	if (r->old == r->n)
		return 0; /* two names of one file: nothing happens */
	if (log_waits(f, r->p)) {
		if (r->flags & RENAME_WHITEOUT)
			return rename_and_whiteout(c, r);
		rc = rename_waiting(c, r);
	} else {
		if (r->old && !(r->flags & RENAME_EXCHANGE))
			hold(f, r->old);
		caller_enter(c->req); /* whose whiteout it is */
		rc = rename_now(r);
		caller_leave(c->req);
		if (rc && r->old)
			node_gone(f, r->old, false);
	}
	if (!rc)
		rename_nodes(f, r);
	return rc;
}

void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
	       const char *new_name, unsigned flags)
{
	struct forget *f = forget_of(req);
	struct renaming r = { .p = node_of(f, parent),
			      .q = node_of(f, to),
			      .name = name,
			      .name2 = new_name,
			      .flags = flags };
	struct call c;
	int64_t rc =
		call_begin(&c, req,
			   &(struct call_what){ POSIX_RENAME, .node = r.p, .node2 = r.q,
						.name = name, .name2 = new_name, .arg = flags });

	if (!rc && (name_is_hidden(f, r.p, name) || name_is_hidden(f, r.q, new_name)))
		rc = -EPERM;
	if (!rc) {
		r.from = node_pin(f, r.p);
		r.to = node_pin(f, r.q);
		rc = min(min(r.from, r.to), 0);
		if (!rc) {
			names_lock(f);
			rc = rename_locked(&c, &r);
			names_unlock(f);
			node_unref(f, r.n);
			node_unref(f, r.old);
		}
		if (r.from >= 0)
			node_unpin(r.p);
		if (r.to >= 0)
			node_unpin(r.q);
	}
	call_reply(&c, rc);
}
