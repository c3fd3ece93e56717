/* SPDX-License-Identifier: MIT */
/*
 * forget_dir.c - reads directories. An open directory has the names that were there when it was
 * opened, or read again from the start: then no descriptor is needed, and nothing that changes
 * meanwhile can make an entry come twice.
 */
#include <errno.h>
#include <unistd.h>

#include "forget/forget_call.h"

struct dir_handle {
	struct dir_handle *prev, *next; /* the open ones; under the tree lock */
	struct dir_entries entries;
	bool read;
};

static struct dir_handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct dir_handle *)(uintptr_t)fi->fh;
}

static struct dir_handle *handle_new(struct forget *f)
{
	struct dir_handle *d = xcalloc(1, sizeof(*d));

	auto_owned(&f->tree.lock);
	d->next = f->dirs;
	if (d->next)
		d->next->prev = d;
	f->dirs = d;
	return d;
}

static void handle_free(struct forget *f, struct dir_handle *d)
{
	owned_take(&f->tree.lock);
	*(d->prev ? &d->prev->next : &f->dirs) = d->next;
	if (d->next)
		d->next->prev = d->prev;
	owned_give(&f->tree.lock);
	dir_entries_release(&d->entries);
	free(d);
}

void forget_dir_release_all(struct forget *f)
{
	while (f->dirs)
		handle_free(f, f->dirs);
}

void forget_on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct dir_handle *d = NULL;
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_OPENDIR, .node = node_of(f, ino));

	if (!rc)
		d = handle_new(f);
	rc = call_end(&c, rc);
	fi->fh = (uintptr_t)d;
	if (rc)
		fuse_reply_err(req, (int)-rc);
	if ((rc || fuse_reply_open(req, fi)) && d)
		handle_free(f, d);
	call_done(&c);
}

void forget_on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	handle_free(forget_of(req), handle_of(fi));
	fuse_reply_err(req, 0);
}

/* Takes the names as they are now. */
static int read_names(struct forget *f, struct node *n, struct dir_handle *d)
{
	struct dir_entries *e = &d->entries;
	const struct node *above = n;

	dir_entries_release(e);
	*e = (struct dir_entries){ 0 };
	auto_owned(&f->tree.lock);
	if (n->names[NAME_LIVE])
		above = n->names[NAME_LIVE]->dir;
	vec_push(e, (struct dir_entry){ n->ino, S_IFDIR, xstrdup(".") });
	vec_push(e, (struct dir_entry){ above->ino, S_IFDIR, xstrdup("..") });
	d->read = true;
	return node_entries(f, n, e);
}

struct filling {
	struct forget *f;
	fuse_req_t req;
	struct node *n;
	char *buf;
	size_t size, used;
	bool plus;
};

/* Returns the node of an entry that is still there, with a reference; or NULL. */
static struct node *node_of_entry(struct filling *w, const struct dir_entry *e)
{
	int rc;

	auto_owned(&w->f->tree.lock);
	return node_lookup(w->f, w->n, e->name, &rc);
}

/* Adds an entry; false if there is no room. */
static bool add_entry(struct filling *w, const struct dir_entry *e, off_t next)
{
	size_t room = w->size - w->used, n;
	char *at = w->buf + w->used;
	struct fuse_entry_param p = { .attr = { .st_ino = e->ino, .st_mode = e->type } };
	bool known = false;

	if (!w->plus) {
		n = fuse_add_direntry(w->req, at, room, e->name, &p.attr, next);
	} else {
		if (next > 2) {
			struct node *node = node_of_entry(w, e);

			known = node && !forget_entry(w->f, node, &p);
			node_unref(w->f, node);
			if (!known)
				return true; /* the entry was removed meanwhile */
		}
		n = fuse_add_direntry_plus(w->req, at, room, e->name, &p, next);
	}
	if (n > room) {
		if (known)
			node_forget(w->f, node_of(w->f, p.ino), 1);
		return false;
	}
	w->used += n;
	return true;
}

static int fill(struct filling *w, struct dir_handle *d, off_t off)
{
	int rc = off && d->read ? 0 : read_names(w->f, w->n, d);

	if (rc || off < 0)
		return rc;
	for (size_t i = (size_t)off; i < d->entries.n; i++)
		if (!add_entry(w, &d->entries.v[i], (off_t)i + 1))
			break;
	return 0;
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi, bool plus)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	auto_free char *buf = xmalloc(max(size, (size_t)1));
	struct filling w = { f, req, n, buf, size, 0, plus };
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_READDIR, .node = n, .offset = (uint64_t)off);

	if (!rc)
		rc = fill(&w, handle_of(fi), off);
	rc = call_end(&c, rc);
	if (rc)
		fuse_reply_err(req, (int)-rc);
	else
		fuse_reply_buf(req, buf, w.used);
	call_done(&c);
}

void forget_on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	read_dir(req, ino, size, off, fi, false);
}

void forget_on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	read_dir(req, ino, size, off, fi, true);
}
