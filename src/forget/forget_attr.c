/* SPDX-License-Identifier: MIT */
/*
 * forget_attr.c - attributes. A node has all that differ from ROOT's (looks), except the size and
 * times of data in memory (forget_file.h), and the count of links, which its names tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "forget/forget_call.h"
#include "fs/acl.h"

/*
 * Returns how long the kernel may keep attributes: for ever, as all changes come through this
 * server, which tells the kernel of losses. But writes take set-id bits away, which the kernel
 * would not notice.
 */
static double keep_s(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_mode & (S_ISUID | S_ISGID)) ? 0 : 86400;
}

/* ---- reading ---- */

int forget_attr_stat(struct forget *f, struct node *n, struct stat *st)
{
	const struct looks *l = n->looks;
	int rc = forget_root_looks(f, n, st);

	if (rc)
		return rc;
	if (l) {
		st->st_mode = n->type | l->mode;
		st->st_uid = l->uid;
		st->st_gid = l->gid;
		st->st_atim = l->atime;
		st->st_mtim = l->mtime;
		st->st_ctim = l->ctime;
	}
	if (n->in && n->in->times)
		st->st_mtim = st->st_ctim = n->in->mtime;
	st->st_ino = n->ino;
	st->st_nlink = node_links(f, n, st->st_nlink);
	return 0;
}

/* Gives the attributes that a program sees. */
static int stat_node(struct forget *f, struct node *n, struct stat *st)
{
	if (!S_ISREG(n->type)) {
		auto_owned(&f->tree.lock);
		return forget_attr_stat(f, n, st);
	}
	/* A file that gets into ROOT takes its size there: both are looked at in one moment. */
	auto_data(f, n);
	owned_take(&f->tree.lock);
	int rc = forget_attr_stat(f, n, st);
	owned_give(&f->tree.lock);
	if (!rc && n->file)
		forget_file_overlay(n->file, st);
	return rc;
}

int forget_entry(struct forget *f, struct node *n, struct fuse_entry_param *e)
{
	struct stat st;
	int rc = stat_node(f, n, &st);

	if (rc)
		return rc;
	*e = (struct fuse_entry_param){
		.ino = node_id(f, n),
		.attr = st,
		.attr_timeout = keep_s(&st),
		.entry_timeout = FORGET_KEEP_S,
	};
	auto_owned(&f->tree.lock);
	n->nlookup++;
	return 0;
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
		fuse_reply_attr(req, &st, call_is_late(&c) ? 0 : keep_s(&st));
	call_done(&c);
}

/*
 * Handles access(2) and chdir(2), if the kernel does not check by itself: then only root uses the
 * mount. Root may do everything but run a file without any right to be run. These checks are no
 * operations: faults do not see them.
 */
void forget_on_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct forget *f = forget_of(req);
	struct stat st = { 0 };
	int rc;

	pthread_rwlock_rdlock(&f->gate);
	rc = f->dead ? -ENOTCONN : stat_node(f, node_of(f, ino), &st);
	pthread_rwlock_unlock(&f->gate);
	if (!rc && (mask & X_OK) && !S_ISDIR(st.st_mode) && !(st.st_mode & 0111))
		rc = -EACCES;
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

/* Returns the mode after a change of owner, as the kernel does. */
static uint32_t mode_after_chown(const struct node *n, uint32_t mode)
{
	if (S_ISDIR(n->type))
		return mode;
	if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		mode &= ~(uint32_t)S_ISGID;
	return mode & ~(uint32_t)S_ISUID;
}

/* Makes the new attributes of the old ones. */
static void new_looks(struct redo *r, const struct stat *now, const struct stat *st, int to_set)
{
	struct looks *l = &r->looks;
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	*l = (struct looks){ .mode = now->st_mode & 07777,
			     .uid = now->st_uid,
			     .gid = now->st_gid,
			     .atime = to_set & FUSE_SET_ATTR_ATIME_NOW ? time : st->st_atim,
			     .mtime = to_set & FUSE_SET_ATTR_MTIME_NOW ? time : st->st_mtim };
	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
		r->sets |= LOOKS_OWNER;
		l->mode = mode_after_chown(r->node, l->mode);
	}
	if (to_set & FUSE_SET_ATTR_UID)
		l->uid = st->st_uid;
	if (to_set & FUSE_SET_ATTR_GID)
		l->gid = st->st_gid;
	if (to_set & FUSE_SET_ATTR_MODE) {
		r->sets |= LOOKS_MODE;
		l->mode = st->st_mode & 07777;
	}
	r->sets |= to_set & FUSE_SET_ATTR_ATIME ? LOOKS_ATIME : 0;
	r->sets |= to_set & FUSE_SET_ATTR_MTIME ? LOOKS_MTIME : 0;
}

/* Data that is not durable gets the time that was set, and knows which bits a write removes. */
static void follow(struct forget *f, const struct redo *r)
{
	struct node_file *x;

	if (!S_ISREG(r->node->type))
		return;
	auto_data(f, r->node);
	x = r->node->file;
	if (!x)
		return;
	if (x->times && (r->sets & LOOKS_MTIME))
		x->mtime = r->looks.mtime;
	if (x->times)
		clock_gettime(CLOCK_REALTIME, &x->ctime);
	if (r->sets & (LOOKS_MODE | LOOKS_OWNER))
		x->setid = (r->looks.mode & (S_ISUID | S_ISGID)) | (x->setid & SETID_CAPABILITY);
}

static int set_attributes(struct call *c, struct node *n, const struct stat *st, int to_set)
{
	struct redo r = { .kind = PENDING_ATTR, .number = c->ev.number, .node = n };
	struct forget *f = c->f;
	struct stat now;
	int rc;

	auto_owned(&f->log_lock);
	owned_take(&f->tree.lock);
	rc = forget_attr_stat(f, n, &now);
	owned_give(&f->tree.lock);
	if (rc)
		return rc;
	new_looks(&r, &now, st, to_set);
	rc = forget_redo_do(f, &r);
	if (!rc)
		follow(f, &r);
	return rc;
}

static const char capability[] = "security.capability";

unsigned forget_attr_setid(struct forget *f, struct node *n)
{
	struct xattrs *all = NULL;
	unsigned bits = 0;
	struct stat st;

	auto_owned(&f->tree.lock);
	if (!forget_attr_stat(f, n, &st))
		bits = st.st_mode & (S_ISUID | S_ISGID);
	if ((n->looks && n->looks->own_xattrs) || n->unmade) {
		all = node_xattrs(f, n);
		bits |= xattrs_find(all, capability) ? SETID_CAPABILITY : 0;
		xattrs_unref(all);
	} else if (forget_root_get_xattr(f, n, capability, NULL, 0) > 0) {
		bits |= SETID_CAPABILITY;
	}
	return bits;
}

struct xattr_change {
	const char *name, *value; /* NULL: the attribute is removed */
	size_t len;
	int flags;
};

static int change_xattr(struct call *c, struct node *n, const struct xattr_change *x);

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

void forget_attr_drop_setid(struct call *c, struct node *n, unsigned setid)
{
	struct stat st;
	mode_t drop = S_ISUID;

	if (setid & SETID_CAPABILITY) {
		struct xattr_change x = { capability, NULL, 0, 0 };

		change_xattr(c, n, &x);
	}
	if (!fuse_req_ctx(c->req)->uid || stat_node(c->f, n, &st))
		return;
	if ((st.st_mode & S_IXGRP) || !in_group(c->req, st.st_gid))
		drop |= S_ISGID;
	if (st.st_mode & drop) {
		st.st_mode &= ~drop;
		if (set_attributes(c, n, &st, FUSE_SET_ATTR_MODE))
			forget_log(c->f, "set-id bits of inode %llu stay", llu(n->ino));
	}
}

static int truncate_node(struct call *c, struct node *n, uint64_t size)
{
	unsigned setid;
	int rc;

	owned_take(forget_data_lock(c->f, n));
	struct node_file *x = forget_file(c->f, n);
	rc = forget_file_truncate(x, size, c->ev.number);
	if (!rc && c->act.durable)
		rc = pagefile_sync_size(x->pf, true);
	setid = x->setid;
	owned_give(forget_data_lock(c->f, n));
	if (!rc && setid)
		forget_attr_drop_setid(c, n, setid);
	return rc;
}

static int set_all(struct call *c, struct node *n, struct stat *st, int to_set, struct stat *now)
{
	static const int others = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID |
				  FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME;
	int rc = 0;

	if (to_set & FUSE_SET_ATTR_SIZE)
		rc = truncate_node(c, n, (uint64_t)st->st_size);
	if (!rc && (to_set & others))
		rc = set_attributes(c, n, st, to_set);
	return rc ? rc : stat_node(c->f, n, now);
}

void forget_on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct stat now;
	struct call c;
	int64_t rc;

	(void)fi;
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
		rc = set_all(&c, n, st, to_set, &now);
	if (!rc && what.op == POSIX_CHOWN)
		c.ev.arg = now.st_mode; /* the mode may have lost set-id bits */
	rc = call_end(&c, rc);
	if (rc)
		fuse_reply_err(req, (int)-rc);
	else
		fuse_reply_attr(req, &now, keep_s(&now));
	call_done(&c);
}

/* ---- extended attributes ---- */

struct xattrs *node_xattrs(struct forget *f, struct node *n)
{
	struct xattrs *all = n->looks && n->looks->own_xattrs ? n->looks->xattrs
			     : n->unmade		      ? n->unmade->looks.xattrs
							      : NULL;

	assert_owned(&f->tree.lock);
	if (!n->unmade && !(n->looks && n->looks->own_xattrs))
		return forget_root_xattrs(f, n);
	if (all)
		all->refs++;
	return all;
}

void looks_chmod(struct looks *l, mode_t type)
{
	struct reffs_inode i = { .type = S_ISLNK(type) ? TREE_SYMLINK : TREE_FILE,
				 .mode = l->mode,
				 .xattrs = l->xattrs };

	acl_chmod(&i);
	l->xattrs = i.xattrs;
}

static int copy_out(char *out, size_t size, const void *data, size_t len)
{
	if (size && len > size)
		return -ERANGE;
	if (size)
		memcpy(out, data, len);
	return (int)len;
}

static int get_one(const struct xattrs *all, const char *name, char *out, size_t size)
{
	const struct blob *b = xattrs_find(all, name);
	size_t skip = strlen(name) + 1;

	return b ? copy_out(out, size, b->data + skip, b->len - skip) : -ENODATA;
}

static int list_all(const struct xattrs *all, char *out, size_t size)
{
	auto_strbuf names = STRBUF_INIT;

	for (size_t i = 0; all && i < all->n; i++)
		strbuf_add(&names, all->v[i]->data, strlen(all->v[i]->data) + 1);
	return copy_out(out, size, strbuf_str(&names), names.len);
}

/* Gets the value of an attribute or, if `name` is NULL, the list of all names. */
static int get_xattr(struct forget *f, struct node *n, const char *name, char *out, size_t size)
{
	struct xattrs *all;
	int rc;

	auto_owned(&f->tree.lock);
	if (!n->unmade && !(n->looks && n->looks->own_xattrs))
		return name ? forget_root_get_xattr(f, n, name, out, size)
			    : forget_root_list_xattr(f, n, out, size);
	all = node_xattrs(f, n);
	rc = name ? get_one(all, name, out, size) : list_all(all, out, size);
	xattrs_unref(all);
	/* The system says that there is none of this kind. */
	return rc == -ENODATA ? min(forget_root_get_xattr(f, &f->tree.root, name, NULL, 0), 0) ?: rc
			      : rc;
}

static void get_and_reply(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct node *n = node_of(forget_of(req), ino);
	auto_free char *value = size ? xmalloc(size) : NULL;
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_GETXATTR, .node = n, .name2 = name);

	if (!rc)
		rc = get_xattr(c.f, n, name, value, size);
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

/* Checks an access list as the kernel does. Returns 1 if it is empty, which removes it. */
static int check_list(const struct node *n, const struct xattr_change *x)
{
	auto_acl acl = { 0 };
	int rc;

	if (strncmp(x->name, "system.posix_acl", 16) != 0 || !x->value)
		return 0;
	rc = x->len ? acl_parse(x->value, x->len, &acl) : 0;
	if (rc || !acl.n)
		return rc ? rc : 1;
	if (streq(x->name, ACL_DEFAULT) && !S_ISDIR(n->type))
		return -EACCES;
	return acl_valid(&acl);
}

/* Checks what ROOT's file system would check, and whether it knows attributes of this kind. */
static int check_change(struct forget *f, struct node *n, const struct xattr_change *x)
{
	int had = get_xattr(f, n, x->name, NULL, 0), rc;

	if (had < 0 && had != -ENODATA)
		return had;
	if (!x->value && had < 0)
		return strncmp(x->name, "system.posix_acl", 16) ? -ENODATA : 0;
	if (x->value && (x->flags & XATTR_CREATE) && had >= 0)
		return -EEXIST;
	if (x->value && (x->flags & XATTR_REPLACE) && had < 0)
		return -ENODATA;
	rc = check_list(n, x);
	return rc;
}

static int change_xattr(struct call *c, struct node *n, const struct xattr_change *x)
{
	struct redo r = { .kind = PENDING_XATTR, .number = c->ev.number, .node = n };
	struct forget *f = c->f;
	int rc;

	auto_owned(&f->log_lock);
	rc = check_change(f, n, x);
	if (rc < 0)
		return rc;
	r.xattr = xstrdup(x->name);
	r.value = x->value && !rc ? blob_new(x->value, x->len) : NULL;
	rc = forget_redo_do(f, &r);
	if (rc || !streq(x->name, capability))
		return rc;
	auto_data(f, n);
	if (n->file)
		n->file->setid = (n->file->setid & ~(unsigned)SETID_CAPABILITY) |
				 (x->value ? SETID_CAPABILITY : 0);
	return 0;
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

	if (!rc)
		rc = change_xattr(&c, n, x);
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
