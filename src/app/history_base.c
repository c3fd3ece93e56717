/* SPDX-License-Identifier: MIT */
/* history_base.c - loads the directory before the first call as the first state. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "app/history_impl.h"
#include "base/strbuf.h"
#include "base/util.h"
#include "fs/graft.h"
#include "fs/vfs.h"

enum { CHUNK = 1 << 20, DEPTH_MAX = 256 };

static enum tree_type type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return TREE_DIR;
	case S_IFLNK:
		return TREE_SYMLINK;
	case S_IFIFO:
		return TREE_FIFO;
	case S_IFSOCK:
		return TREE_SOCKET;
	case S_IFCHR:
		return TREE_CHAR;
	case S_IFBLK:
		return TREE_BLOCK;
	default:
		return TREE_FILE;
	}
}

/* Loads the attributes of an object. Attributes that the file system lacks cannot be lost. */
static int load_xattrs(struct history_maker *m, int fd, uint64_t object, struct err *err)
{
	auto_free char *list = xmalloc(XATTR_LIST_MAX), *value = NULL;
	ssize_t len = flistxattr(fd, list, XATTR_LIST_MAX);

	for (const char *name = list; len > 0 && name < list + len; name += strlen(name) + 1) {
		if (!value)
			value = xmalloc(XATTR_SIZE_MAX);
		ssize_t n = fgetxattr(fd, name, value, XATTR_SIZE_MAX);
		int rc = n < 0 ? 0 : graft_xattr(m->h->base, object, name, value, (size_t)n);
		if (rc)
			return err_set(err, rc, "cannot take the attribute %s over", name);
	}
	return 0;
}

/* Finds the next bytes that have space; all the rest, if the file system cannot tell. */
static bool next_data(int fd, uint64_t *at, uint64_t *end)
{
	off_t data = lseek(fd, (off_t)*at, SEEK_DATA);

	*end = UINT64_MAX;
	if (data < 0)
		return errno != ENXIO;
	off_t hole = lseek(fd, data, SEEK_HOLE);
	*at = (uint64_t)data;
	if (hole > data)
		*end = (uint64_t)hole;
	return true;
}

/* Loads the data of a file. Holes stay holes: a write there takes new space. */
static ssize_t load_data(struct history_maker *m, int fd, uint64_t live)
{
	auto_free char *data = xmalloc(CHUNK);
	uint64_t at = 0, end;
	ssize_t n = 1;

	while (n > 0 && next_data(fd, &at, &end))
		while (at < end &&
		       (n = pread(fd, data, min(end - at, (uint64_t)CHUNK), (off_t)at)) > 0) {
			vfs_write(m->h->live, &reffs_root, live, data, at, (uint64_t)n, 0);
			at += (uint64_t)n;
		}
	return n;
}

static int load_content(struct history_maker *m, int dir, const char *name, uint64_t object,
			uint64_t size, struct err *err)
{
	auto_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t live = maker_live(m->h, object);
	struct vfs_setattr a = { .set = VFS_SET_SIZE, .size = size };

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", name);
	if (load_data(m, fd, live) < 0)
		return err_set(err, -errno, "cannot read %s: %m", name);
	int rc = load_xattrs(m, fd, object, err);
	if (rc || !size)
		return rc;
	rc = vfs_setattr(m->h->live, &reffs_root, live, &a);
	if (rc)
		return err_set(err, rc, "cannot take %s over", name);
	struct reffs_state *s = reffs_save(m->h->live);
	rc = graft_data(m->h->base, object, reffs_inode(s, live), 0, size);
	reffs_state_unref(s);
	return rc ? err_set(err, rc, "cannot take %s over", name) : 0;
}

struct loader {
	struct history_maker *m;
	struct objects_by_ino seen; /* objects by their numbers in the loaded directory */
	bool numbers;		    /* numbers of the trace are the same */
};

static int load_dir(struct loader *l, int dir, uint64_t object, unsigned depth, struct err *err);

static int load_entry(struct loader *l, int dir, uint64_t parent, const char *name, unsigned depth,
		      struct err *err)
{
	struct stat st;
	char target[4097];
	ssize_t len = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return err_set(err, -errno, "cannot look at %s: %m", name);
	uint64_t known = objects_by_ino_get(&l->seen, st.st_ino);
	if (known && !S_ISDIR(st.st_mode)) {
		int rc = graft_link(l->m->h->base, parent, name, known);

		return rc ? err_set(err, rc, "cannot take the second name %s over", name) : 0;
	}
	if (S_ISLNK(st.st_mode)) {
		len = readlinkat(dir, name, target, sizeof(target) - 1);
		if (len < 0)
			return err_set(err, -errno, "cannot read the link %s: %m", name);
		target[len] = '\0';
		vec_push(&l->m->h->strings, xstrdup(target));
	}
	struct object o = { .type = type_of(st.st_mode),
			    .mode = st.st_mode & 07777,
			    .uid = st.st_uid,
			    .gid = st.st_gid,
			    .rdev = st.st_rdev,
			    .now_mode = st.st_mode & 07777,
			    .now_gid = st.st_gid,
			    .target = S_ISLNK(st.st_mode) ? vec_last(&l->m->h->strings) : NULL,
			    .names = 1,
			    .made = UINT64_MAX,
			    .made_by = UINT32_MAX,
			    .cut_by = UINT32_MAX };
	uint64_t object = maker_new_object(l->m, &o);
	struct graft_inode g = { object, o.type, o.mode, o.uid, o.gid, o.rdev, o.target };
	int rc = graft_make(l->m->h->base, parent, name, &g);
	if (rc)
		return err_set(err, rc, "cannot take %s over", name);
	objects_by_ino_set(&l->seen, st.st_ino, object);
	if (l->numbers)
		objects_by_ino_set(&l->m->objects, st.st_ino, object);
	if (o.type == TREE_FILE)
		return load_content(l->m, dir, name, object, (uint64_t)st.st_size, err);
	if (o.type != TREE_DIR)
		return 0;
	auto_fd sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (sub < 0)
		return err_set(err, -errno, "cannot open the directory %s: %m", name);
	return load_dir(l, sub, object, depth + 1, err);
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int load_dir(struct loader *l, int dir, uint64_t object, unsigned depth, struct err *err)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d __attribute__((cleanup(close_dir))) = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!d)
		return err_set(err, -errno, "cannot list a directory: %m");
	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "more than %d directories in one another", DEPTH_MAX);
	int rc = load_xattrs(l->m, copy, object, err);
	if (rc)
		return rc;
	while (errno = 0, (e = readdir(d))) {
		if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
			rc = load_entry(l, dir, object, e->d_name, depth, err);
		if (rc)
			return rc;
	}
	return errno ? err_set(err, -errno, "cannot list a directory: %m") : 0;
}

int maker_load(struct history_maker *m, const struct history_opts *opts, struct err *err)
{
	struct loader l = { .m = m, .numbers = opts->base_numbers };
	struct object *root = &m->h->objects.v[0];
	struct stat st;

	objects_by_ino_set(&m->objects, opts->root_ino, REFFS_ROOT_INO);
	if (opts->base < 0)
		return 0;
	if (fstat(opts->base, &st))
		return err_set(err, -errno, "cannot look at the directory: %m");
	root->mode = root->now_mode = st.st_mode & 07777;
	root->uid = st.st_uid;
	root->gid = root->now_gid = st.st_gid;
	(void)graft_attr(m->h->base, REFFS_ROOT_INO, root->mode, root->uid, root->gid);
	int rc = load_dir(&l, opts->base, REFFS_ROOT_INO, 0, err);
	objects_by_ino_release(&l.seen);
	return rc;
}

/* ---- lookups of a trace ---- */

static int lookups_in(int dir, uint64_t ino, unsigned depth, struct trace *t, struct err *err)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d __attribute__((cleanup(close_dir))) = copy < 0 ? NULL : fdopendir(copy);
	auto_strbuf record = STRBUF_INIT;
	const struct dirent *e;
	struct event ev;
	struct stat st;

	if (!d)
		return err_set(err, -errno, "cannot list a directory: %m");
	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "more than %d directories in one another", DEPTH_MAX);
	while (errno = 0, (e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, ".."))
			continue;
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			return err_set(err, -errno, "cannot look at %s: %m", e->d_name);
		struct posix_event p = {
			.op = POSIX_LOOKUP, .dir = ino, .name = e->d_name, .ino = st.st_ino
		};
		posix_to_event(&p, 0, &record, &ev);
		trace_append(t, &ev);
		if (!S_ISDIR(st.st_mode))
			continue;
		auto_fd sub =
			openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (sub < 0)
			return err_set(err, -errno, "cannot open the directory %s: %m", e->d_name);
		int rc = lookups_in(sub, st.st_ino, depth + 1, t, err);
		if (rc)
			return rc;
	}
	return errno ? err_set(err, -errno, "cannot list a directory: %m") : 0;
}

int history_lookups(int dir, struct trace *t, struct err *err)
{
	struct stat st;

	if (fstat(dir, &st))
		return err_set(err, -errno, "cannot look at the directory: %m");
	return lookups_in(dir, st.st_ino, 0, t, err);
}
