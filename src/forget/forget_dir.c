/* SPDX-License-Identifier: MIT */
/* forget_dir.c - looks names up, and reads directories; the stash is hidden. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget/forget_impl.h"

/* The kernel may keep entries: all changes come through this server, which reports losses. */
static const double keep_s = 86400;

bool forget_name_is_hidden(const struct forget *f, const struct node *parent, const char *name)
{
	return parent == &f->root && streq(name, STASH_NAME);
}

int forget_entry_lookup(struct forget *f, struct node *parent, int dir, const char *name,
			struct fuse_entry_param *e)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		close(fd);
		return -EIO;
	}
	struct node *n = node_adopt(f, fd, &st, parent, name, 1);
	forget_attr_overlay(f, n, &st);
	*e = (struct fuse_entry_param){
		.ino = node_id(f, n),
		.attr = st,
		.attr_timeout = forget_attr_keep_s(&st),
		.entry_timeout = keep_s,
	};
	return 0;
}

void forget_on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct forget *f = forget_of(req);
	struct node *p = node_of(f, parent);
	struct fuse_entry_param e = { 0 };
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_LOOKUP, .node = p, .name = name);

	if (!rc && forget_name_is_hidden(f, p, name))
		rc = -ENOENT;
	if (!rc) {
		auto_pin dir = node_pinned(f, p);

		rc = dir.fd < 0 ? dir.fd : forget_entry_lookup(f, p, dir.fd, name, &e);
	}
	rc = call_end(&c, rc);
	if (call_is_late(&c))
		e.entry_timeout = e.attr_timeout = 0;
	if (rc == -ENOENT) { /* the kernel keeps that, too */
		e = (struct fuse_entry_param){ .entry_timeout = call_is_late(&c) ? 0 : keep_s };
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

/* ---- reading directories ---- */

struct dir_handle {
	struct dir_handle *prev, *next; /* the open ones; under the table lock */
	DIR *dir;
	off_t offset;
	struct dirent *entry; /* the entry that did not fit into the last answer */
};

static struct dir_handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct dir_handle *)(uintptr_t)fi->fh;
}

static void handle_add(struct forget *f, struct dir_handle *d)
{
	auto_lock(&f->table);
	d->next = f->dirs;
	if (d->next)
		d->next->prev = d;
	f->dirs = d;
	f->n_dirs++;
}

static void handle_free(struct forget *f, struct dir_handle *d)
{
	pthread_mutex_lock(&f->table);
	*(d->prev ? &d->prev->next : &f->dirs) = d->next;
	if (d->next)
		d->next->prev = d->prev;
	f->n_dirs--;
	pthread_mutex_unlock(&f->table);
	closedir(d->dir);
	free(d);
}

void forget_dir_release_all(struct forget *f)
{
	while (f->dirs)
		handle_free(f, f->dirs);
}

static int open_dir(struct forget *f, struct node *n, struct dir_handle **out)
{
	int fd;
	DIR *d;

	if (!forget_fds_take(f, FDS_OPEN))
		return forget_fds_refuse(f);
	auto_pin at = node_pinned(f, n);
	if (at.fd < 0)
		return at.fd;
	fd = openat(at.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	*out = xcalloc(1, sizeof(**out));
	(*out)->dir = d;
	handle_add(f, *out);
	return 0;
}

void forget_on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct forget *f = forget_of(req);
	struct node *n = node_of(f, ino);
	struct dir_handle *d = NULL;
	struct call c;
	int64_t rc = call_begin(&c, req, POSIX_OPENDIR, .node = n);

	if (!rc)
		rc = open_dir(f, n, &d);
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

struct filling {
	struct forget *f;
	fuse_req_t req;
	struct node *n;
	char *buf;
	size_t size, used;
	bool plus;
};

static bool is_dot(const char *name)
{
	return streq(name, ".") || streq(name, "..");
}

/* Adds an entry; false if there is no room. */
static bool add_entry(struct filling *w, int dir, const struct dirent *e)
{
	size_t room = w->size - w->used, n;
	char *at = w->buf + w->used;
	struct fuse_entry_param p = {
		.attr = { .st_ino = e->d_ino, .st_mode = DTTOIF(e->d_type) },
	};
	bool known = false;

	if (!w->plus) {
		n = fuse_add_direntry(w->req, at, room, e->d_name, &p.attr, e->d_off);
	} else {
		if (!is_dot(e->d_name)) {
			if (forget_entry_lookup(w->f, w->n, dir, e->d_name, &p))
				return true; /* the entry was removed meanwhile */
			known = true;
		}
		n = fuse_add_direntry_plus(w->req, at, room, e->d_name, &p, e->d_off);
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
	if (off != d->offset) {
		seekdir(d->dir, off);
		d->entry = NULL;
		d->offset = off;
	}
	for (;;) {
		if (!d->entry) {
			errno = 0;
			d->entry = readdir(d->dir);
			if (!d->entry)
				return w->used ? 0 : -errno;
		}
		if (!forget_name_is_hidden(w->f, w->n, d->entry->d_name) &&
		    !add_entry(w, dirfd(d->dir), d->entry))
			return 0;
		d->offset = d->entry->d_off;
		d->entry = NULL;
	}
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
