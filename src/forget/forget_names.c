/* SPDX-License-Identifier: MIT */
/*
 * forget_names.c - operations on names: each is checked against the live tree, done there, and
 * noted in the log. The kernel has checked permissions, and holds the locks of the directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget/forget_call.h"
#include "fs/acl.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)
#define RENAME_WHITEOUT	 (1 << 2)
#endif

/* A name on which an operation is: its live node, and the name itself, which stay meanwhile. */
struct name_found {
	struct forget *f;
	struct node *node; /* NULL: there is none */
	struct node_name *name;
};

static void found_release(struct name_found *t)
{
	struct node *now = NULL; /* perhaps only this request needed the node */

	if (!t->f)
		return;
	if (t->name) {
		auto_owned(&t->f->tree.lock);
		now = t->name->node[NAME_LIVE];
		if (now)
			now->refs++;
		t->name->records--;
		node_name_put(t->f, t->name);
	}
	node_unref(t->f, now);
	node_unref(t->f, t->node);
}

#define auto_found auto_call(found_release) struct name_found

/* Finds a name; -ENOENT if it has no live node, and then the name is there all the same. */
static int find(struct forget *f, struct node *dir, const char *text, struct name_found *t)
{
	int rc;

	assert_owned(&f->log_lock);
	*t = (struct name_found){ .f = f };
	if (strlen(text) > f->name_max)
		return -ENAMETOOLONG;
	auto_owned(&f->tree.lock);
	t->node = node_lookup(f, dir, text, &rc);
	if (rc && rc != -ENOENT)
		return rc;
	t->name = node_name_get(f, dir, text);
	t->name->records++;
	return rc;
}

/* ---- making ---- */

struct making {
	mode_t mode;
	dev_t rdev;
	const char *target; /* the target of a symbolic link */
};

/* Learns what a directory gives to new files in it. */
static int know_rules(struct forget *f, struct node *dir)
{
	struct node_dir *in = dir->in;
	struct xattrs *all = NULL;
	struct stat st;
	int rc;

	if (in->rules_known)
		return 0;
	rc = forget_attr_stat(f, dir, &st);
	if (rc)
		return rc;
	in->mode = st.st_mode;
	in->gid = st.st_gid;
	all = node_xattrs(f, dir);
	in->has_default = xattrs_find(all, ACL_DEFAULT);
	xattrs_unref(all);
	in->rules_known = true;
	return 0;
}

/* Gives a new node its attributes, by the caller and the directory. */
static int give_looks(struct forget *f, fuse_req_t req, struct node *dir, struct node *n)
{
	const struct fuse_ctx *who = fuse_req_ctx(req);
	struct looks *l = &n->unmade->looks;
	struct reffs_inode new = { .type = S_ISDIR(n->type)   ? TREE_DIR
					   : S_ISLNK(n->type) ? TREE_SYMLINK
							      : TREE_FILE,
				   .mode = l->mode };
	int rc = know_rules(f, dir);

	if (rc)
		return rc;
	clock_gettime(CLOCK_REALTIME, &l->mtime);
	l->atime = l->ctime = l->mtime;
	l->uid = who->uid;
	l->gid = dir->in->mode & S_ISGID ? dir->in->gid : who->gid;
	if (S_ISLNK(n->type))
		return 0;
	if (dir->in->has_default) {
		struct reffs_inode above = { .type = TREE_DIR, .xattrs = node_xattrs(f, dir) };

		if (!acl_inherit(&new, &above))
			new.mode &= ~who->umask;
		xattrs_unref(above.xattrs);
		l->xattrs = new.xattrs;
	} else {
		new.mode &= ~who->umask;
	}
	l->mode = new.mode;
	if (S_ISDIR(n->type) && (dir->in->mode & S_ISGID))
		l->mode |= S_ISGID;
	return 0;
}

static int new_node(struct call *c, struct node *dir, const struct making *m, struct node **out)
{
	const struct fuse_ctx *who = fuse_req_ctx(c->req);
	struct forget *f = c->f;
	int rc = 0;

	auto_owned(&f->tree.lock);
	struct node *n = node_new_unmade(f, m->mode);

	n->dev = dir->dev;
	n->unmade->rdev = m->rdev;
	n->unmade->target = m->target ? xstrdup(m->target) : NULL;
	if (forget_redo_waits(f, dir)) {
		rc = give_looks(f, c->req, dir, n);
	} else { /* ROOT's file system does that */
		n->unmade->looks.uid = who->uid;
		n->unmade->looks.gid = who->gid;
	}
	*out = n;
	return rc;
}

/* Makes a node at a name that was found to be free. The caller gets a reference. */
static int make_at(struct call *c, struct name_found *t, struct node *dir, const struct making *m,
		   struct node **out)
{
	struct redo r = { .kind = PENDING_MAKE,
			  .number = c->ev.number,
			  .slot = { t->name },
			  .umask = fuse_req_ctx(c->req)->umask };
	int rc = new_node(c, dir, m, &r.node);

	if (!rc)
		rc = forget_redo_do(c->f, &r);
	if (rc)
		node_unref(c->f, r.node);
	else
		*out = r.node;
	return rc;
}

static int make(struct call *c, struct node *dir, const char *name, const struct making *m,
		struct fuse_entry_param *e)
{
	struct forget *f = c->f;
	struct node *n = NULL;
	int rc;

	if (forget_name_is_hidden(f, dir, name))
		return -EPERM;
	{
		auto_owned(&f->log_lock);
		auto_found t;

		rc = find(f, dir, name, &t);
		if (rc != -ENOENT)
			return rc ? rc : -EEXIST;
		rc = make_at(c, &t, dir, m, &n);
	}
	if (rc)
		return rc;
	rc = forget_entry(f, n, e);
	if (!rc) {
		c->ev.ino = e->attr.st_ino;
		c->ev.arg = e->attr.st_mode; /* after the umask */
		forget_trace_made(f, n);
	}
	node_unref(f, n);
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
	struct node *p = node_of(forget_of(req), parent);
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
	make_and_reply(req, POSIX_MKNOD, parent, name, &(struct making){ mode, rdev, NULL });
}

void forget_on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	make_and_reply(req, POSIX_MKDIR, parent, name, &(struct making){ mode | S_IFDIR, 0, NULL });
}

void forget_on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	make_and_reply(req, POSIX_SYMLINK, parent, name,
		       &(struct making){ S_IFLNK | 0777, 0, target });
}

/* ---- looking up ---- */

static int look_up(struct forget *f, struct node *dir, const char *name, struct fuse_entry_param *e)
{
	struct node *n;
	int rc;

	if (forget_name_is_hidden(f, dir, name))
		return -ENOENT;
	owned_take(&f->tree.lock);
	n = node_lookup(f, dir, name, &rc);
	owned_give(&f->tree.lock);
	if (!n)
		return rc;
	rc = forget_entry(f, n, e);
	node_unref(f, n);
	return rc;
}

void forget_on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_LOOKUP, .node = p, .name = name);

	if (!rc)
		rc = look_up(f, p, name, &e);
	rc = call_end(&c, rc);
	if (call_is_late(&c))
		e.entry_timeout = e.attr_timeout = 0;
	if (rc == -ENOENT) { /* the kernel keeps that, too */
		e = (struct fuse_entry_param){ .entry_timeout = call_is_late(&c) ? 0
										 : FORGET_KEEP_S };
		fuse_reply_entry(req, &e);
	} else if (rc) {
		fuse_reply_err(req, (int)-rc);
	} else if (fuse_reply_entry(req, &e)) {
		node_forget(f, node_of(f, e.ino), 1);
	}
	call_done(&c);
}

void forget_on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct forget *f = forget_of(req);

	node_forget(f, node_of(f, ino), n);
	fuse_reply_none(req);
}

void forget_on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *v)
{
	struct forget *f = forget_of(req);

	for (size_t i = 0; i < count; i++)
		node_forget(f, node_of(f, v[i].ino), v[i].nlookup);
	fuse_reply_none(req);
}

void forget_on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t said, rc = call_begin(&c, req, POSIX_CREATE, .node = p, .name = name, .arg = mode);

	if (!rc) {
		rc = make(&c, p, name, &(struct making){ mode | S_IFREG, 0, NULL }, &e);
		if (rc == -EEXIST && !(fi->flags & O_EXCL)) /* another process has made it */
			rc = look_up(f, p, name, &e);
	}
	if (!rc) {
		struct node *n = node_of(f, e.ino);
		auto_data(f, n);

		forget_file(f, n)->opens++;
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

		owned_take(forget_data_lock(f, n));
		n->file->opens--;
		owned_give(forget_data_lock(f, n));
		node_forget(f, n, 1);
	}
	call_done(&c);
}

/* ---- links ---- */

static int link_one(struct call *c, struct node *n, struct node *dir, const char *name)
{
	struct redo r = { .kind = PENDING_LINK, .number = c->ev.number, .node = n };
	struct forget *f = c->f;
	auto_found t;
	int rc;

	auto_owned(&f->log_lock);
	rc = find(f, dir, name, &t);
	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	r.slot[0] = t.name;
	return forget_redo_do(f, &r);
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
	if (!rc)
		rc = link_one(&c, n, p, name);
	if (!rc)
		rc = forget_entry(f, n, &e);
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
		auto_owned(&c.f->tree.lock);
		rc = forget_root_readlink(c.f, n, target, sizeof(target) - 1);
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

/* Checks that a node may be removed, or replaced: a directory must be empty. */
static int may_go(struct forget *f, struct node *n, bool is_dir)
{
	int rc = 0;

	if (S_ISDIR(n->type) != is_dir)
		return is_dir ? -ENOTDIR : -EISDIR;
	auto_owned(&f->tree.lock);
	return is_dir && !node_is_empty(f, n, &rc) ? -ENOTEMPTY : rc;
}

static int remove_one(struct call *c, struct node *dir, const char *name, bool is_dir)
{
	struct redo r = { .kind = PENDING_REMOVE, .number = c->ev.number };
	struct forget *f = c->f;
	auto_found t;
	int rc;

	auto_owned(&f->log_lock);
	rc = find(f, dir, name, &t);
	if (rc)
		return rc;
	c->ev.ino = t.node->ino;
	rc = may_go(f, t.node, is_dir);
	if (rc)
		return rc;
	r.node = t.node;
	r.slot[0] = t.name;
	return forget_redo_do(f, &r);
}

static void remove_and_reply(fuse_req_t req, enum posix_op op, fuse_ino_t parent, const char *name)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct call c;
	int64_t rc = call_begin(&c, req, op, .node = p, .name = name);

	if (!rc && forget_name_is_hidden(f, p, name))
		rc = -ENOENT;
	if (!rc)
		rc = remove_one(&c, p, name, op == POSIX_RMDIR);
	call_reply(&c, rc);
}

void forget_on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_and_reply(req, POSIX_UNLINK, parent, name);
}

void forget_on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_and_reply(req, POSIX_RMDIR, parent, name);
}

/* ---- renaming ---- */

static int rename_one(struct call *c, struct node *p, const char *name, struct node *q,
		      const char *name2, unsigned flags)
{
	const struct making whiteout = { .mode = S_IFCHR };
	struct redo r = { .kind = flags & RENAME_EXCHANGE ? PENDING_SWAP : PENDING_RENAME,
			  .number = c->ev.number };
	struct forget *f = c->f;
	auto_found from, to = { 0 };
	struct node *hole = NULL;
	int rc;

	auto_owned(&f->log_lock);
	rc = find(f, p, name, &from);
	if (rc)
		return rc;
	c->ev.ino = from.node->ino;
	rc = find(f, q, name2, &to);
	if (rc && rc != -ENOENT)
		return rc;
	c->ev.ino2 = to.node ? to.node->ino : 0;
	if (to.node && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (!to.node && (flags & RENAME_EXCHANGE))
		return -ENOENT;
	if (to.node == from.node)
		return 0; /* two names of one file: nothing is done */
	if (to.node && r.kind == PENDING_RENAME) {
		rc = may_go(f, to.node, S_ISDIR(from.node->type));
		if (rc)
			return rc;
	}
	r.node = from.node;
	r.other = to.node;
	r.slot[0] = from.name;
	r.slot[1] = to.name;
	rc = forget_redo_do(f, &r);
	if (rc || !(flags & RENAME_WHITEOUT))
		return rc;
	/* A second operation. */
	rc = make_at(c, &from, p, &whiteout, &hole);
	node_unref(f, hole);
	return rc;
}

void forget_on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent), *q = node_of(f, to);
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_RENAME, .node = p, .node2 = q, .name = name,
				.name2 = new_name, .arg = flags);

	if (!rc && (forget_name_is_hidden(f, p, name) || forget_name_is_hidden(f, q, new_name)))
		rc = -EPERM;
	if (!rc)
		rc = rename_one(&c, p, name, q, new_name, flags);
	call_reply(&c, rc);
}
