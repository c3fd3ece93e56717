/* SPDX-License-Identifier: MIT */
/*
 * forget_remove.c - operations that remove names: unlink, rmdir, rename. Such operations are done
 * in ROOT at once. If they wait for a sync, the steps that undo them go to the journal first: a
 * file is moved to the stash, with all its data; an empty directory's attributes are noted
 * (forget_remake.c). A directory cannot be moved to the stash: that needs the right to write to it,
 * and some file systems, such as overlayfs, do not move directories at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "forget/forget_impl.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)
#define RENAME_WHITEOUT	 (1 << 2)
#endif

/* ---- removing ---- */

/* Returns the node of a name, with a reference; NULL if there is none, or an error in `*rc`. */
static struct node *node_at(struct forget *f, struct node *p, int dir, const char *name, int *rc)
{
	struct stat st;
	struct node *n = node_of_name(f, p, name);
	int fd;

	*rc = n ? 0 : result(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW));
	if (n || *rc)
		return n;
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

static int to_stash(struct forget *f, struct node *n, int dir, const char *name,
		    const struct undo *u)
{
	char stashed[32];
	int rc;

	forget_stash_name(u->seq, stashed);
	stash_change_begin(n);
	rc = result(renameat(dir, name, f->stash_fd, stashed));
	stash_change_end(n, rc ? 0 : 1);
	return rc;
}

static void from_stash(struct forget *f, struct node *n, int dir, const char *name,
		       const struct undo *u)
{
	char stashed[32];

	forget_stash_name(u->seq, stashed);
	stash_change_begin(n);
	stash_change_end(n, renameat(f->stash_fd, stashed, dir, name) ? 0 : -1);
}

/* Prepares the undo `u` to bring `n` back after the removal of its name. */
static int prepare_return(struct forget *f, struct node *n, struct undo *u)
{
	u->stashed = !S_ISDIR(n->type);
	if (u->stashed)
		return 0;
	auto_pin at = node_pinned(f, n);
	return at.fd < 0 ? at.fd : forget_remake_note(at.fd, u);
}

/* Called before a name of `n` is removed for good: then only its descriptor, if any, keeps `n`. */
static int name_goes(struct forget *f, struct node *n, bool *kept)
{
	*kept = node_keep(f, n, false);
	/* The log has the number of a directory, which must not become another's. */
	return *kept || !S_ISDIR(n->type) || !forget_log_waits(f, n) ? 0 : forget_fds_refuse(f);
}

/* Called after that; `rc` is the result of the removal. */
static int name_went(struct forget *f, struct node *n, bool kept, int rc)
{
	if (rc)
		node_not_gone(f, n);
	else if (!kept)
		node_abandon(f, n);
	return rc;
}

static int remove_now(struct forget *f, struct node *n, int dir, const char *name)
{
	bool kept;
	int rc = name_goes(f, n, &kept);

	if (rc)
		return rc;
	rc = result(unlinkat(dir, name, S_ISDIR(n->type) ? AT_REMOVEDIR : 0));
	return name_went(f, n, kept, rc);
}

static int remove_waiting(struct call *c, struct node *p, int dir, const char *name, struct node *n)
{
	struct undo u = {
		.kind = PENDING_REMOVE, .ino = n->ino, .is_dir = S_ISDIR(n->type), .dir = { p->ino }
	};
	struct forget *f = c->f;
	int rc = prepare_return(f, n, &u);

	u.name[0] = (char *)name;
	if (!rc)
		rc = forget_log_intend(f, &u);
	if (!rc) {
		rc = u.stashed ? to_stash(f, n, dir, name, &u) : remove_now(f, n, dir, name);
		if (rc)
			forget_log_cancel(f, &u);
		else
			forget_log_add(f, &u, (struct node *[4]){ p, NULL, n, NULL }, c->ev.number);
	}
	free(u.value);
	return rc;
}

static int remove_one(struct call *c, struct node *p, int dir, const char *name, bool is_dir)
{
	struct forget *f = c->f;
	struct node *n;
	int rc;

	auto_names(f);
	n = node_at(f, p, dir, name, &rc);
	if (!n)
		return rc;
	c->ev.ino = n->ino;
	if (S_ISDIR(n->type) != is_dir)
		rc = is_dir ? -ENOTDIR : -EISDIR;
	else if (forget_log_waits(f, p))
		rc = remove_waiting(c, p, dir, name, n);
	else
		rc = remove_now(f, n, dir, name);
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
	int64_t rc = call_begin(&c, req, op, .node = p, .name = name);

	if (!rc && forget_name_is_hidden(f, p, name))
		rc = -ENOENT;
	if (!rc) {
		auto_pin dir = node_pinned(f, p);

		rc = dir.fd < 0 ? dir.fd : remove_one(&c, p, dir.fd, name, op == POSIX_RMDIR);
	}
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

struct renaming {
	struct node *p, *q; /* directories */
	int from, to;
	const char *name, *name2;
	struct node *n, *old; /* the node that is renamed, and the replaced one, or NULL */
	unsigned flags;
};

static int rename_now(const struct renaming *r)
{
	return result((int)syscall(SYS_renameat2, r->from, r->name, r->to, r->name2, r->flags));
}

/* Replaces a file, which is moved to the stash first, or an empty directory, by a rename. */
static int replace(struct forget *f, const struct renaming *r, const struct undo *u)
{
	bool kept = true;
	int rc = u->stashed  ? to_stash(f, r->old, r->to, r->name2, u)
		 : u->remade ? name_goes(f, r->old, &kept)
			     : 0;

	if (rc)
		return rc;
	rc = rename_now(r);
	if (rc && u->stashed)
		from_stash(f, r->old, r->to, r->name2, u);
	return u->remade ? name_went(f, r->old, kept, rc) : rc;
}

static int rename_waiting(struct call *c, const struct renaming *r)
{
	bool swap = r->flags & RENAME_EXCHANGE;
	struct undo u = {
		.kind = swap ? PENDING_SWAP : PENDING_RENAME,
		.is_dir = S_ISDIR(r->n->type),
		.ino = r->n->ino,
		.other = r->old ? r->old->ino : 0,
		.dir = { r->p->ino, r->q->ino },
	};
	struct forget *f = c->f;
	int rc = r->old && !swap ? prepare_return(f, r->old, &u) : 0;

	u.name[0] = (char *)r->name;
	u.name[1] = (char *)r->name2;
	if (!rc)
		rc = forget_log_intend(f, &u);
	if (!rc) {
		rc = swap ? rename_now(r) : replace(f, r, &u);
		if (rc)
			forget_log_cancel(f, &u);
		else
			forget_log_add(f, &u, (struct node *[4]){ r->p, r->q, r->n, r->old },
				       c->ev.number);
	}
	free(u.value);
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

static int rename_for_good(struct call *c, const struct renaming *r)
{
	bool replaces = r->old && !(r->flags & RENAME_EXCHANGE), kept = true;
	int rc = replaces ? name_goes(c->f, r->old, &kept) : 0;

	if (rc)
		return rc;
	forget_caller_enter(c->req); /* the whiteout belongs to the caller */
	rc = rename_now(r);
	forget_caller_leave(c->req);
	return replaces ? name_went(c->f, r->old, kept, rc) : rc;
}

/* Renames and leaves a whiteout: a second operation, which is undone first. */
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
	rc = forget_make_locked(c, r->p, r->from, r->name, &whiteout, &e);
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
		return 0; /* two names of one file: nothing is done */
	if (forget_log_waits(f, r->p)) {
		if (r->flags & RENAME_WHITEOUT)
			return rename_and_whiteout(c, r);
		rc = rename_waiting(c, r);
	} else {
		rc = rename_for_good(c, r);
	}
	if (!rc)
		rename_nodes(f, r);
	return rc;
}

void forget_on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags)
{
	struct forget *f = forget_of(req);
	struct renaming r = { .p = node_of(f, parent),
			      .q = node_of(f, to),
			      .name = name,
			      .name2 = new_name,
			      .flags = flags };
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_RENAME, .node = r.p, .node2 = r.q, .name = name,
				.name2 = new_name, .arg = flags);

	if (!rc && (forget_name_is_hidden(f, r.p, name) || forget_name_is_hidden(f, r.q, new_name)))
		rc = -EPERM;
	if (!rc) {
		auto_pin from = node_pinned(f, r.p), to_dir = node_pinned(f, r.q);

		r.from = from.fd;
		r.to = to_dir.fd;
		rc = min(min(r.from, r.to), 0);
		if (!rc) {
			names_lock(f);
			rc = rename_locked(&c, &r);
			names_unlock(f);
			node_unref(f, r.n);
			node_unref(f, r.old);
		}
	}
	call_reply(&c, rc);
}
