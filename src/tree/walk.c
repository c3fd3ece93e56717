/* SPDX-License-Identifier: MIT */
/*
 * walk.c - reads a real directory into a tree.
 *
 * This runs once for each crash state, so system calls are counted: a file costs statx, openat,
 * read, flistxattr and close. Names of a directory are read with getdents64 into the scratch
 * buffer, copied to the arena as whole paths, sorted, then visited depth first; entries come out
 * in the tree's order.
 *
 * W1: only single names are looked up, relative to an open directory and without following a
 *     symbolic link, so the walk cannot leave the given directory.
 * W2: only regular files and directories are opened; a FIFO or a device is never touched.
 * W3: an error of the file system becomes part of the entry. Only our own limits, and a lack of
 *     descriptors or memory, end the walk.
 */
#include "tree/tree_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fault.h"

/* The scratch buffer: names in its first half, attribute values in its second, or file content. */
enum { HALF_SIZE = 64 * 1024, SCRATCH_SIZE = 2 * HALF_SIZE };
_Static_assert(SCRATCH_SIZE % TREE_PAGE == 0, "content is hashed page by page");

struct walk {
	const struct tree_opts *opts;
	struct tree *t;
	struct err *err;
	struct statx root;			 /* identifies the mount that is walked */
	struct vec_of(const char *) names;	 /* paths to visit, one stack for all levels */
	struct vec_of(struct tree_xattr) xattrs; /* of the current entry */
	size_t n_names;				 /* the number of names so far */
	bool proc_checked, proc_missing;
};

/* An open directory on the way from the root. */
struct level {
	const struct level *up; /* NULL at the root */
	int fd;
	const char *path;
	int depth;
	uint64_t dev, inode;
};

static uint64_t device(uint32_t major_no, uint32_t minor_no)
{
	return (uint64_t)major_no << 32 | minor_no;
}

/* Notes a failed call in the entry; if this process lacks descriptors or memory, the walk fails. */
static int failed(struct walk *w, struct tree_entry *e, enum tree_step step, int error)
{
	assert(error > 0);
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return err_set(w->err, -error, "cannot %s %s: %m", tree_step_word(step),
			       *e->path ? e->path : "the directory to walk");
	e->error = error;
	e->step = step;
	return 0;
}

static int stat_at(int dirfd, const char *name, struct statx *stx)
{
	int fault = fault_point("tree.stat");
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH;

	if (fault)
		return fault;
	return statx(dirfd, name, flags, STATX_BASIC_STATS | STATX_MNT_ID, stx) < 0 ? -errno : 0;
}

/* A damaged inode may have more nanoseconds than a second has. */
static struct tree_time time_of(const struct statx_timestamp *ts)
{
	uint32_t nanoseconds = min(ts->tv_nsec, (uint32_t)999999999);

	return (struct tree_time){ ts->tv_sec, nanoseconds };
}

static void take_stat(struct tree_entry *e, const struct statx *stx)
{
	e->mode = stx->stx_mode & 07777;
	e->uid = stx->stx_uid;
	e->gid = stx->stx_gid;
	e->nlink = stx->stx_nlink;
	e->size = stx->stx_size;
	e->blocks = stx->stx_blocks;
	e->atime = time_of(&stx->stx_atime);
	e->mtime = time_of(&stx->stx_mtime);
	e->rdev_major = stx->stx_rdev_major;
	e->rdev_minor = stx->stx_rdev_minor;
	e->dev = device(stx->stx_dev_major, stx->stx_dev_minor);
	e->inode = stx->stx_ino;
}

/*
 * Compares the mount's id if the kernel tells it: a btrfs subvolume and a file of overlayfs have
 * device numbers of their own, yet are on this mount. Old kernels tell only the device.
 */
static bool other_mount(const struct walk *w, const struct statx *stx)
{
	if (stx->stx_mask & w->root.stx_mask & STATX_MNT_ID)
		return stx->stx_mnt_id != w->root.stx_mnt_id;
	return stx->stx_dev_major != w->root.stx_dev_major ||
	       stx->stx_dev_minor != w->root.stx_dev_minor;
}

/* With O_NOATIME, reading does not change access times; only the owner and root may use it. */
static int open_at(int dirfd, const char *name, int flags)
{
	int fault = fault_point("tree.open");

	if (fault)
		return fault;
	flags |= O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = openat(dirfd, name, flags | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(dirfd, name, flags);
	return fd < 0 ? -errno : fd;
}

static ssize_t read_some(int fd, void *data, size_t len, uint64_t off)
{
	int fault = fault_point("tree.read");
	ssize_t n;

	if (fault)
		return fault;
	do
		n = pread(fd, data, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * Reads content that is kept, straight into the arena. The read asks for one byte more, so one call
 * is enough to see that the file is as long as stat says.
 */
static int read_small(struct walk *w, int fd, struct tree_entry *e)
{
	size_t size = (size_t)e->size, done = 0;
	unsigned char *data = arena_alloc(&w->t->arena, size + 1);

	do {
		ssize_t n = read_some(fd, data + done, size + 1 - done, done);

		if (n < 0)
			return failed(w, e, TREE_STEP_READ, (int)-n);
		if (n == 0 && done < size) /* the file ends before its size */
			return failed(w, e, TREE_STEP_READ, ENODATA);
		done += (size_t)n;
	} while (done < size);
	if (done > size) /* the file is longer than its size */
		return failed(w, e, TREE_STEP_READ, EOVERFLOW);
	e->hash = tree_content_hash(data, size);
	e->content = size ? data : NULL;
	return 0;
}

/* Returns the start of the page with the next data, or the size if only a hole follows. */
static uint64_t skip_hole(int fd, uint64_t at, const struct tree_entry *e)
{
	if (e->blocks >= e->size / 512)
		return at; /* the file has no holes */
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? e->size : at;
	return (uint64_t)data > at ? (uint64_t)data / TREE_PAGE * TREE_PAGE : at;
}

/* Hashes content through the scratch buffer; holes are skipped. */
static int read_large(struct walk *w, int fd, struct tree_entry *e)
{
	struct hash128 sum = { 0 };
	uint64_t at = skip_hole(fd, 0, e);

	while (at < e->size) {
		size_t want = (size_t)min(e->size - at, (uint64_t)SCRATCH_SIZE), got = 0;

		while (got < want) {
			ssize_t n = read_some(fd, w->t->scratch + got, want - got, at + got);

			if (n <= 0)
				return failed(w, e, TREE_STEP_READ, n < 0 ? (int)-n : ENODATA);
			got += (size_t)n;
		}
		for (size_t i = 0; i < got; i += TREE_PAGE)
			sum = hash_add(sum, tree_page_hash((at + i) / TREE_PAGE, w->t->scratch + i,
							   min(got - i, (size_t)TREE_PAGE)));
		at = skip_hole(fd, at + got, e);
	}
	e->hash = sum;
	return 0;
}

/* True if the host's policy puts the attribute on files, not the tested system. */
static bool host_label(const char *name)
{
	static const char *const labels[] = { "security.selinux", "security.SMACK64",
					      "security.apparmor", "security.ima", "security.evm" };

	return any_of(i, ARRAY_SIZE(labels), streq(name, labels[i]));
}

/* The file whose attributes are read: open, or (fd < 0) a path through /proc. */
struct xattr_place {
	int fd;
	const char *path;
};

static ssize_t list_xattrs(struct xattr_place from, char *buf, size_t len)
{
	int fault = fault_point("tree.listxattr");

	if (fault)
		return fault;
	ssize_t n = from.fd >= 0 ? flistxattr(from.fd, buf, len) : llistxattr(from.path, buf, len);
	return n >= 0 ? n : errno == ENOTSUP ? 0 : -errno;
}

static ssize_t get_xattr(struct xattr_place from, const char *name, void *buf, size_t len)
{
	int fault = fault_point("tree.getxattr");

	if (fault)
		return fault;
	ssize_t n = from.fd >= 0 ? fgetxattr(from.fd, name, buf, len)
				 : lgetxattr(from.path, name, buf, len);
	return n < 0 ? -errno : n;
}

DEFINE_ORDER(cmp_xattr, struct tree_xattr, strcmp(a->name, b->name))

static void take_xattrs(struct walk *w, struct tree_entry *e)
{
	size_t n = w->xattrs.n;
	struct tree_xattr *own = arena_alloc(&w->t->arena, n * sizeof(*own));

	memcpy(own, w->xattrs.v, n * sizeof(*own));
	qsort(own, n, sizeof(*own), cmp_xattr);
	e->xattrs = own;
	e->n_xattrs = n;
}

static int read_xattrs(struct walk *w, struct xattr_place from, struct tree_entry *e)
{
	char *names = (char *)w->t->scratch, *value = names + HALF_SIZE;
	ssize_t len = list_xattrs(from, names, HALF_SIZE);

	if (len < 0)
		return failed(w, e, TREE_STEP_LISTXATTR, (int)-len);
	vec_clear(&w->xattrs);
	for (char *name = names; name < names + len; name += strlen(name) + 1) {
		if (host_label(name))
			continue;
		ssize_t n = get_xattr(from, name, value, SCRATCH_SIZE - HALF_SIZE);
		if (n < 0)
			return failed(w, e, TREE_STEP_LISTXATTR, (int)-n);
		vec_push(&w->xattrs, (struct tree_xattr){
					     .name = arena_strdup(&w->t->arena, name),
					     .value = arena_memdupz(&w->t->arena, value, (size_t)n),
					     .len = (size_t)n,
				     });
	}
	if (w->xattrs.n)
		take_xattrs(w, e);
	return 0;
}

/* Reads attributes of a file that is not opened (W2), through a path in /proc. */
static int read_xattrs_at(struct walk *w, const struct level *in, const char *name,
			  struct tree_entry *e)
{
	char path[64 + NAME_MAX * 4];

	if (!w->proc_checked) {
		w->proc_missing = access("/proc/self/fd", X_OK) < 0;
		w->proc_checked = true;
	}
	int n = snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", in->fd, name);
	if (w->proc_missing || (size_t)n >= sizeof(path))
		return 0;
	return read_xattrs(w, (struct xattr_place){ -1, path }, e);
}

static int visit_file(struct walk *w, const struct level *in, const char *name,
		      struct tree_entry *e)
{
	auto_fd fd = open_at(in->fd, name, 0);

	if (fd < 0)
		return failed(w, e, TREE_STEP_OPEN, -fd);
	int rc = tree_keep(w->t, w->opts, e->size) ? read_small(w, fd, e) : read_large(w, fd, e);
	if (rc || e->error)
		return rc;
	return read_xattrs(w, (struct xattr_place){ fd, NULL }, e);
}

static int visit_symlink(struct walk *w, const struct level *in, const char *name,
			 struct tree_entry *e)
{
	int fault = fault_point("tree.readlink");
	char *to = (char *)w->t->scratch;
	ssize_t n = fault ? -1 : readlinkat(in->fd, name, to, HALF_SIZE);

	if (n < 0)
		return failed(w, e, TREE_STEP_READLINK, fault ? -fault : errno);
	e->target = arena_memdupz(&w->t->arena, to, (size_t)n);
	return read_xattrs_at(w, in, name, e);
}

static bool ignored(const struct walk *w, const struct level *in, const char *name)
{
	if (streq(name, ".") || streq(name, ".."))
		return true;
	if (in->up || !w->opts->ignore)
		return false;
	for (const char *const *i = w->opts->ignore; *i; i++)
		if (streq(name, *i))
			return true;
	return false;
}

static char *join(struct arena *a, const char *dir, const char *name)
{
	size_t dir_len = strlen(dir), name_len = strlen(name);
	char *path = arena_alloc(a, dir_len + name_len + 2), *to = path;

	if (dir_len) {
		memcpy(to, dir, dir_len);
		to += dir_len;
		*to++ = '/';
	}
	memcpy(to, name, name_len);
	to[name_len] = '\0';
	return path;
}

/* Puts the paths in a directory on the stack of names, up to the end or to an error. */
static int read_names(struct walk *w, const struct level *dir, struct tree_entry *e)
{
	for (;;) {
		unsigned char *buf = w->t->scratch;
		int fault = fault_point("tree.readdir");
		ssize_t n = fault ? -1 : getdents64(dir->fd, buf, HALF_SIZE);

		if (n < 0)
			return failed(w, e, TREE_STEP_READDIR, fault ? -fault : errno);
		if (n == 0)
			return 0;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(buf + at);

			at += d->d_reclen;
			if (ignored(w, dir, d->d_name))
				continue;
			if (++w->n_names >= TREE_ENTRIES_MAX)
				return err_set(w->err, -E2BIG,
					       "more than %d entries, the limit of a tree",
					       TREE_ENTRIES_MAX);
			vec_push(&w->names, join(&w->t->arena, dir->path, d->d_name));
		}
	}
}

static int visit(struct walk *w, const struct level *in, const char *path);

DEFINE_ORDER(cmp_path, char *, tree_path_cmp(*a, *b))

/* Visits the paths that are on the stack from `base` up, and takes them off. */
static int visit_names(struct walk *w, const struct level *dir, size_t base)
{
	size_t n = w->names.n;

	if (n > base)
		qsort(w->names.v + base, n - base, sizeof(*w->names.v), cmp_path);
	for (size_t i = base; i < n; i++) {
		bool again = i > base && streq(w->names.v[i], w->names.v[i - 1]);
		size_t at = w->t->entries.n;
		int rc;

		if (again)
			continue;
		rc = visit(w, dir, w->names.v[i]);
		if (rc)
			return rc;
		w->t->entries.v[at].doubled = i + 1 < n && streq(w->names.v[i], w->names.v[i + 1]);
	}
	w->names.n = base;
	return 0;
}

static bool contains_itself(const struct level *in, const struct tree_entry *e)
{
	for (; in; in = in->up)
		if (in->dev == e->dev && in->inode == e->inode)
			return true;
	return false;
}

static int visit_dir(struct walk *w, const struct level *in, const char *name, struct tree_entry *e)
{
	int depth = in->depth + 1;
	size_t base = w->names.n;
	int rc;

	if (depth > TREE_DEPTH_MAX)
		return err_set(w->err, -E2BIG, "directories are more than %d deep, the limit",
			       TREE_DEPTH_MAX);
	if (contains_itself(in, e)) {
		rc = failed(w, e, TREE_STEP_LOOP, ELOOP);
		tree_push(w->t, e);
		return rc;
	}
	auto_fd fd = open_at(in->fd, name, O_DIRECTORY);
	struct level dir = { *e->path ? in : NULL, fd, e->path, depth, e->dev, e->inode };
	if (fd < 0)
		rc = failed(w, e, TREE_STEP_OPEN, -fd);
	else
		rc = read_names(w, &dir, e);
	if (!rc && !e->error)
		rc = read_xattrs(w, (struct xattr_place){ fd, NULL }, e);
	if (rc)
		return rc;
	tree_push(w->t, e);
	return visit_names(w, &dir, base);
}

/* Adds the entry of one path, and everything below it. */
static int visit(struct walk *w, const struct level *in, const char *path)
{
	const char *name = basename(path);
	struct tree_entry e = { .path = path };
	struct statx stx;
	int rc = stat_at(in->fd, name, &stx);

	if (rc < 0) {
		rc = failed(w, &e, TREE_STEP_STAT, -rc);
	} else if (other_mount(w, &stx)) {
		e.type = tree_type_of(stx.stx_mode);
		rc = failed(w, &e, TREE_STEP_MOUNT, EXDEV);
	} else {
		e.type = tree_type_of(stx.stx_mode);
		take_stat(&e, &stx);
		if (e.type == TREE_DIR)
			return visit_dir(w, in, name, &e);
		if (e.type == TREE_FILE)
			rc = visit_file(w, in, name, &e);
		else if (e.type == TREE_SYMLINK)
			rc = visit_symlink(w, in, name, &e);
		else if (e.type == TREE_UNKNOWN) /* a mode of no known type */
			rc = failed(w, &e, TREE_STEP_STAT, EUCLEAN);
		else
			rc = read_xattrs_at(w, in, name, &e);
	}
	if (!rc)
		tree_push(w->t, &e);
	return rc;
}

static int walk_root(struct walk *w, int dirfd)
{
	struct level above = { .fd = dirfd, .depth = -1 };
	struct tree_entry e = { .path = "" };
	int rc = stat_at(dirfd, "", &w->root);

	if (rc == -EBADF)
		return err_set(w->err, rc, "cannot walk a directory that is not open");
	if (rc < 0) {
		rc = failed(w, &e, TREE_STEP_STAT, -rc);
		if (!rc)
			tree_push(w->t, &e);
		return rc;
	}
	if (!S_ISDIR(w->root.stx_mode))
		return err_set(w->err, -ENOTDIR, "cannot walk what is not a directory");
	e.type = TREE_DIR;
	take_stat(&e, &w->root);
	/* The root is opened again, as the descriptor may be O_PATH, and has a position. */
	return visit_dir(w, &above, ".", &e);
}

int tree_walk(int dirfd, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	struct walk w = { .opts = opts, .t = out, .err = err };

	tree_clear(out);
	if (!out->scratch)
		out->scratch = xmalloc(SCRATCH_SIZE);
	int rc = walk_root(&w, dirfd);
	vec_release(&w.names);
	vec_release(&w.xattrs);
	if (rc) {
		tree_clear(out);
		return rc;
	}
	tree_finish(out);
	return 0;
}
