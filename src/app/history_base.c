/* SPDX-License-Identifier: MIT */
/* history_base.c - the directory as it was before the first call becomes the first state. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "app/history_impl.h"
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

static int load_content(struct history_maker *m, int dir, const char *name, uint64_t object,
			struct err *err)
{
	auto_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_free char *data = xmalloc(CHUNK);
	uint64_t at = 0, live = history_live(m->h, object);
	ssize_t n;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", name);
	while ((n = pread(fd, data, CHUNK, (off_t)at)) > 0) {
		vfs_write(m->h->live, &reffs_root, live, data, at, (uint64_t)n, 0);
		at += (uint64_t)n;
	}
	if (n < 0)
		return err_set(err, -errno, "cannot read %s: %m", name);
	struct reffs_state *s = reffs_save(m->h->live);
	int rc = graft_data(m->h->base, object, reffs_inode(s, live), 0, at);
	reffs_state_unref(s);
	return rc ? err_set(err, rc, "cannot take %s over", name) : 0;
}

static int load_dir(struct history_maker *m, int dir, uint64_t object, unsigned depth,
		    struct err *err);

static int load_entry(struct history_maker *m, int dir, uint64_t parent, const char *name,
		      unsigned depth, struct err *err)
{
	struct stat st;
	char target[4097];
	ssize_t len = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return err_set(err, -errno, "cannot look at %s: %m", name);
	uint64_t known = numbers_get(&m->objects, st.st_ino);
	if (known && !S_ISDIR(st.st_mode)) {
		int rc = graft_link(m->h->base, parent, name, known);

		return rc ? err_set(err, rc, "cannot take the second name %s over", name) : 0;
	}
	if (S_ISLNK(st.st_mode)) {
		len = readlinkat(dir, name, target, sizeof(target) - 1);
		if (len < 0)
			return err_set(err, -errno, "cannot read the link %s: %m", name);
		target[len] = '\0';
	}
	struct object o = { .type = type_of(st.st_mode),
			    .mode = st.st_mode & 07777,
			    .uid = st.st_uid,
			    .gid = st.st_gid,
			    .rdev = st.st_rdev,
			    .made = UINT64_MAX,
			    .made_by = UINT32_MAX,
			    .cut_by = UINT32_MAX };
	uint64_t object = history_object(m, &o);
	struct graft_inode g = {
		object, o.type, o.mode, o.uid, o.gid, o.rdev, S_ISLNK(st.st_mode) ? target : NULL
	};
	int rc = graft_make(m->h->base, parent, name, &g);
	if (rc)
		return err_set(err, rc, "cannot take %s over", name);
	numbers_set(&m->objects, st.st_ino, object);
	if (o.type == TREE_FILE && st.st_size > 0)
		return load_content(m, dir, name, object, err);
	if (o.type != TREE_DIR)
		return 0;
	auto_fd sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (sub < 0)
		return err_set(err, -errno, "cannot open the directory %s: %m", name);
	return load_dir(m, sub, object, depth + 1, err);
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int load_dir(struct history_maker *m, int dir, uint64_t object, unsigned depth,
		    struct err *err)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d __attribute__((cleanup(close_dir))) = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!d)
		return err_set(err, -errno, "cannot list a directory: %m");
	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "more than %d directories in one another", DEPTH_MAX);
	while (errno = 0, (e = readdir(d))) {
		int rc = 0;

		if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
			rc = load_entry(m, dir, object, e->d_name, depth, err);
		if (rc)
			return rc;
	}
	return errno ? err_set(err, -errno, "cannot list a directory: %m") : 0;
}

int history_load(struct history_maker *m, int dir, uint64_t root_ino, struct err *err)
{
	numbers_set(&m->objects, root_ino, REFFS_ROOT_INO);
	return dir < 0 ? 0 : load_dir(m, dir, REFFS_ROOT_INO, 0, err);
}
