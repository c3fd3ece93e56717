/* SPDX-License-Identifier: MIT */
/*
 * vfs_data.c - opens, reads and writes files. Every slot of a file (node.h) is a page that counts
 * against the limit of the file system; blocks that are allocated but not written are not kept, so
 * fallocate(2) checks for room, and reserves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "fs/data.h"
#include "fs/falloc.h"
#include "fs/reffs_impl.h"
#include "fs/perm.h"

enum { DAY_S = 24 * 60 * 60 };

/* ---- opening ---- */

static unsigned wanted(int flags)
{
	static const unsigned by_mode[] = { PERM_R, PERM_W, PERM_R | PERM_W, PERM_R | PERM_W };
	unsigned want = by_mode[flags & O_ACCMODE] | (flags & O_TRUNC ? PERM_W : 0);

	return flags & VFS_OPEN_EXEC ? PERM_X : want;
}

static int may_open(const struct reffs_cred *c, const struct reffs_inode *i, int flags)
{
	unsigned want = wanted(flags);
	bool plain = i->type == TREE_FILE || i->type == TREE_DIR;

	if (i->type == TREE_SYMLINK)
		return -ELOOP;
	if (i->type == TREE_DIR && (want & PERM_W))
		return -EISDIR;
	if (i->type != TREE_FILE && (flags & VFS_OPEN_EXEC))
		return -EACCES;
	int rc = perm_check(c, i, want);
	if (!rc && (flags & O_NOATIME) && !perm_owns(c, i))
		rc = -EPERM;
	if (!rc && !plain && i->type != TREE_FIFO)
		rc = -ENXIO;
	if (!rc && i->type == TREE_DIR && (flags & O_DIRECT))
		rc = -EINVAL;
	return rc;
}

int vfs_open(struct reffs *r, const struct reffs_cred *c, uint64_t ino, int flags)
{
	const struct reffs_inode *found = inode_find(r, ino);
	int rc = found ? may_open(c, found, flags) : -ESTALE;

	if (rc || !(flags & O_TRUNC) || found->type != TREE_FILE)
		return rc;
	struct reffs_inode *i = inode_edit(r, ino);
	data_resize(i, 0);
	vfs_drop_privileges(c, i);
	i->mtime = i->ctime = r->now;
	inode_commit(r, i);
	return 0;
}

void vfs_drop_privileges(const struct reffs_cred *c, struct reffs_inode *i)
{
	vfs_drop_capabilities(i);
	if (!perm_capable(c, REFFS_CAP_FSETID))
		i->mode = perm_drop_setid(c, i);
}

static int find_file(const struct reffs *r, uint64_t ino, const struct reffs_inode **out)
{
	const struct reffs_inode *i = inode_find(r, ino);

	if (!i)
		return -ESTALE;
	*out = i;
	return i->type == TREE_FILE ? 0 : i->type == TREE_DIR ? -EISDIR : -EINVAL;
}

/* Prepares a change to a file; inode_commit() must follow. */
static struct reffs_inode *change_file(struct reffs *r, const struct reffs_cred *c, uint64_t ino)
{
	struct reffs_inode *i = inode_edit(r, ino);

	vfs_drop_privileges(c, i);
	i->mtime = i->ctime = r->now;
	return i;
}

/* ---- reading and writing ---- */

static bool before(struct tree_time a, struct tree_time b)
{
	return a.sec < b.sec || (a.sec == b.sec && a.nsec < b.nsec);
}

static bool atime_is_due(const struct reffs *r, const struct reffs_inode *i)
{
	switch (r->opts.atime) {
	case REFFS_NOATIME:
		return false;
	case REFFS_RELATIME:
		return !before(i->mtime, i->atime) || !before(i->ctime, i->atime) ||
		       r->now.sec - i->atime.sec >= DAY_S;
	case REFFS_STRICTATIME:
		return before(i->atime, r->now) || before(r->now, i->atime);
	}
	return false;
}

void vfs_note_access(struct reffs *r, const struct reffs_inode *i)
{
	if (atime_is_due(r, i))
		inode_touch(r, inode_own(r, i->ino), TOUCH_ATIME);
}

int64_t vfs_read(struct reffs *r, uint64_t ino, void *data, uint64_t offset, uint64_t len)
{
	const struct reffs_inode *i;
	int rc = find_file(r, ino, &i);

	if (rc || !len)
		return rc;
	len = offset < i->size ? min(len, i->size - offset) : 0;
	data_read(i, offset, data, len);
	vfs_note_access(r, i);
	return (int64_t)len;
}

int64_t vfs_write_from(struct reffs *r, const struct reffs_cred *c, uint64_t ino,
		       struct data_source from, uint64_t offset, uint64_t len, int flags)
{
	const struct reffs_inode *found;
	uint64_t limit = r->opts.file_max, room = page_room(r);
	int rc = find_file(r, ino, &found);

	if (rc || !len)
		return rc;
	if (flags & O_APPEND)
		offset = found->size;
	if (offset >= limit)
		return -EFBIG;
	len = min(len, limit - offset);
	if ((flags & O_DIRECT) && (offset | len) % r->opts.dio_align)
		return -EINVAL;
	if (!room && data_missing(found, offset, offset + 1))
		return r->opts.full_error;
	struct reffs_inode *i = change_file(r, c, ino);
	len = data_write(i, offset, len, from, room);
	inode_commit(r, i);
	return (int64_t)len;
}

/* Ready pages: the n-th is page `first` + n of the file. */
struct vfs_pages {
	uint64_t first;
	size_t ready;
	struct data_page v[VFS_PAGES_MAX]; /* NULL until it is needed */
};

struct vfs_pages *vfs_pages_new(void)
{
	return xcalloc(1, sizeof(struct vfs_pages));
}

void vfs_pages_free(struct vfs_pages *p)
{
	for (size_t i = 0; p && i < ARRAY_SIZE(p->v); i++)
		page_unref(p->v[i].page);
	free(p);
}

void *vfs_pages_at(struct vfs_pages *p, size_t n)
{
	assert(n < ARRAY_SIZE(p->v));
	if (!p->v[n].page)
		p->v[n].page = page_new();
	return p->v[n].page->data;
}

void vfs_pages_ready(struct vfs_pages *p, uint64_t offset, size_t n)
{
	assert(offset % REFFS_PAGE == 0 && n <= ARRAY_SIZE(p->v));
	p->first = offset / REFFS_PAGE;
	p->ready = n;
	for (size_t i = 0; i < n; i++)
		p->v[i].hash = tree_page_hash(p->first + i, p->v[i].page->data, REFFS_PAGE);
}

void vfs_pages_copy(struct vfs_pages *p, const void *data, uint64_t offset, uint64_t len)
{
	uint64_t first = (offset + REFFS_PAGE - 1) / REFFS_PAGE, end = (offset + len) / REFFS_PAGE;
	const char *from = (const char *)data + (first * REFFS_PAGE - offset);
	size_t n = first < end ? (size_t)min(end - first, (uint64_t)ARRAY_SIZE(p->v)) : 0;

	for (size_t i = 0; i < n; i++)
		memcpy(vfs_pages_at(p, i), from + i * REFFS_PAGE, REFFS_PAGE);
	vfs_pages_ready(p, first * REFFS_PAGE, n);
}

struct given {
	const char *data;
	uint64_t offset;
	struct vfs_pages *pages; /* NULL: none */
};

static struct data_page *ready_given(void *ctx, uint64_t index)
{
	struct vfs_pages *p = ((const struct given *)ctx)->pages;

	return p && index >= p->first && index - p->first < p->ready ? &p->v[index - p->first]
								     : NULL;
}

static void fill_given(void *ctx, uint64_t offset, void *data, size_t len)
{
	const struct given *g = ctx;
	/* A page made ahead, unless the file's largest size ends in it. */
	const struct data_page *ready = ready_given(ctx, offset / REFFS_PAGE);

	if (ready)
		memcpy(data, ready->page->data + offset % REFFS_PAGE, len);
	else
		memcpy(data, g->data + (offset - g->offset), len);
}

int64_t vfs_write_pages(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const void *data,
			struct vfs_pages *pages, uint64_t offset, uint64_t len, int flags)
{
	const struct reffs_inode *i = inode_find(r, ino);
	struct given given = { data, offset, pages };

	if (flags & O_APPEND && i) { /* the pages were made for another offset */
		given.offset = i->size;
		given.pages = NULL;
	}
	int64_t n = vfs_write_from(r, c, ino,
				   (struct data_source){ fill_given, ready_given, &given }, offset,
				   len, flags & ~O_DIRECT);
	if (pages)
		pages->ready = 0;
	return n;
}

int64_t vfs_write(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const void *data,
		  uint64_t offset, uint64_t len, int flags)
{
	return vfs_write_pages(r, c, ino, data, NULL, offset, len, flags);
}

int64_t vfs_seek(struct reffs *r, uint64_t ino, uint64_t offset, int whence)
{
	const struct reffs_inode *i;
	int rc = find_file(r, ino, &i);

	if (rc)
		return rc;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (offset >= i->size)
		return -ENXIO;
	uint64_t at = data_next(i, offset, whence == SEEK_HOLE);
	if (at >= i->size)
		return whence == SEEK_HOLE ? (int64_t)i->size : -ENXIO;
	return (int64_t)at;
}

/* ---- fallocate ---- */

enum {
	KEEP = FALLOC_FL_KEEP_SIZE,
	PUNCH = FALLOC_FL_PUNCH_HOLE,
	COLLAPSE = FALLOC_FL_COLLAPSE_RANGE,
	ZERO = FALLOC_FL_ZERO_RANGE,
	INSERT = FALLOC_FL_INSERT_RANGE,
};

/*
 * Modes exclude each other, although they are bits: the kernel returns -EOPNOTSUPP for mixtures
 * (before 6.11, -EINVAL for some).
 */
int falloc_check(int mode, uint64_t len)
{
	if (!len)
		return -EINVAL;
	switch (mode & ~KEEP) {
	case 0:
	case ZERO:
	case FALLOC_FL_UNSHARE_RANGE:
		return 0;
	case PUNCH:
		return mode & KEEP ? 0 : -EOPNOTSUPP;
	case COLLAPSE:
	case INSERT:
		return mode & KEEP ? -EOPNOTSUPP : 0;
	}
	return -EOPNOTSUPP;
}

/* Checks the range in this file for the mode. */
static int check_range(const struct reffs *r, const struct reffs_inode *i, int mode,
		       uint64_t offset, uint64_t len)
{
	if (mode & FALLOC_FL_UNSHARE_RANGE)
		return -EOPNOTSUPP; /* ext4 shares nothing */
	if (!(mode & (COLLAPSE | INSERT | PUNCH)) && r->opts.pages_max &&
	    data_missing(i, offset, offset + len) > page_room(r))
		return r->opts.full_error;
	if (!(mode & (COLLAPSE | INSERT)))
		return 0;
	if ((offset | len) % REFFS_PAGE)
		return -EINVAL;
	if ((mode & COLLAPSE) && offset + len >= i->size)
		return -EINVAL;
	if ((mode & INSERT) && offset >= i->size)
		return -EINVAL;
	if ((mode & INSERT) && len > r->opts.file_max - i->size)
		return -EFBIG;
	return 0;
}

int vfs_fallocate(struct reffs *r, const struct reffs_cred *c, uint64_t ino, int mode,
		  uint64_t offset, uint64_t len)
{
	const struct reffs_inode *found = inode_find(r, ino);
	int rc = falloc_check(mode, len);

	if (!found)
		return -ESTALE;
	if (rc)
		return rc;
	if (found->type != TREE_FILE)
		return found->type == TREE_FIFO	 ? -ESPIPE
		       : found->type == TREE_DIR ? -EISDIR
						 : -ENODEV;
	if (len > r->opts.file_max || offset > r->opts.file_max - len)
		return -EFBIG;
	rc = check_range(r, found, mode, offset, len);
	if (rc)
		return rc;
	struct reffs_inode *i = change_file(r, c, ino);
	if (mode & COLLAPSE)
		data_collapse(i, offset, len);
	else if (mode & INSERT)
		data_insert(i, offset, len);
	else if (mode & (PUNCH | ZERO))
		data_zero(i, offset, offset + len);
	if ((mode & ~ZERO) == 0 && offset + len > i->size)
		data_resize(i, offset + len);
	inode_commit(r, i);
	return 0;
}

/* ---- from file to file ---- */

static int find_both(const struct reffs *r, uint64_t from, uint64_t to,
		     const struct reffs_inode **a, const struct reffs_inode **b)
{
	int from_rc = find_file(r, from, a), to_rc = find_file(r, to, b);

	/* If both are wrong, the order is the kernel's: gone, a directory, no regular file. */
	if (from_rc == -ESTALE || to_rc == -ESTALE)
		return -ESTALE;
	if (from_rc == -EISDIR || to_rc == -EISDIR)
		return -EISDIR;
	return from_rc ? from_rc : to_rc;
}

int64_t vfs_copy(struct reffs *r, const struct reffs_cred *c, uint64_t from, uint64_t from_offset,
		 uint64_t to, uint64_t to_offset, uint64_t len)
{
	const struct reffs_inode *a, *b;
	uint64_t limit = r->opts.file_max;
	int rc = find_both(r, from, to, &a, &b);

	if (rc)
		return rc;
	len = from_offset < a->size ? min(len, a->size - from_offset) : 0;
	if (to_offset >= limit)
		return -EFBIG;
	len = min(len, limit - to_offset);
	if (from == to && to_offset + len > from_offset && to_offset < from_offset + len)
		return -EINVAL;
	if (!len)
		return 0;
	if (r->opts.pages_max && data_missing(b, to_offset, to_offset + len) > page_room(r))
		return r->opts.full_error;
	struct reffs_inode *i = change_file(r, c, to);
	data_copy(i, to_offset, inode_get(r, from), from_offset, len);
	inode_commit(r, i);
	vfs_note_access(r, inode_get(r, from));
	return (int64_t)len;
}

int vfs_clone(struct reffs *r, const struct reffs_cred *c, uint64_t from, uint64_t to)
{
	const struct reffs_inode *a, *b;
	int rc = find_both(r, from, to, &a, &b);

	if (rc)
		return rc;
	if (r->opts.no_reflink)
		return -EOPNOTSUPP;
	if (!a->size)
		return 0;
	if (from == to)
		return -EINVAL;
	/* The last block is shared as a whole, so no data may follow it. */
	if (a->size % REFFS_PAGE && b->size > a->size)
		return -EINVAL;
	if (a->pages > b->pages && a->pages - b->pages > page_room(r))
		return r->opts.full_error;
	struct reffs_inode *i = change_file(r, c, to);
	data_clone(i, inode_get(r, from));
	inode_commit(r, i);
	return 0;
}
