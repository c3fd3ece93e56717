/* SPDX-License-Identifier: MIT */
/*
 * forget_root.c - ROOT: reaches what a node or a name is there, and makes one change at a time.
 *
 * A node in ROOT is reached by its directory and its name there. So only directories have
 * descriptors that stay open, and these can be closed at any time and opened again by their own
 * names; a file has one while its data is used. A file whose last name went while a program had it
 * open keeps its descriptor.
 *
 * A new file with data is written without a name, and then linked (T2). Everything else is made
 * with its mode and owner in one call: by the file system's own rules, for which this thread takes
 * the owner's numbers (forget_caller.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "forget/forget_call.h"
#include "fs/acl.h"

/* ---- descriptors of directories ---- */

static void ring_add(struct live_tree *t, struct node *n)
{
	struct node *first = t->clock;

	if (!first) {
		n->in->ring_prev = n->in->ring_next = t->clock = n;
	} else {
		n->in->ring_next = first;
		n->in->ring_prev = first->in->ring_prev;
		n->in->ring_prev->in->ring_next = n;
		first->in->ring_prev = n;
	}
	t->n_dirs++;
}

void forget_root_close_dir(struct forget *f, struct node *n)
{
	struct live_tree *t = &f->tree;
	struct node_dir *in = n->in;

	assert_owned(&t->lock);
	if (in->fd < 0)
		return;
	assert(!in->pins && t->n_dirs > 0);
	if (in->ring_next == n) {
		t->clock = NULL;
	} else {
		in->ring_prev->in->ring_next = in->ring_next;
		in->ring_next->in->ring_prev = in->ring_prev;
		if (t->clock == n)
			t->clock = in->ring_next;
	}
	in->ring_prev = in->ring_next = NULL;
	t->n_dirs--;
	close(in->fd);
	in->fd = -1;
}

/* Closes those that were not used for a while. */
static void make_room(struct forget *f)
{
	size_t most = forget_fds_each_max(f), tries = f->tree.n_dirs * 2;

	while (f->tree.n_dirs >= most && tries--) {
		struct node *n = f->tree.clock;

		f->tree.clock = n->in->ring_next;
		if (n->in->used || n->in->pins)
			n->in->used = false;
		else
			forget_root_close_dir(f, n);
	}
}

static bool is_it(const struct node *n, int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_ino == n->root_ino && st.st_dev == n->dev;
}

/* Opens one whose directory is open. */
static int open_dir(struct forget *f, struct node *n)
{
	int at = n == &f->tree.root ? f->root_fd : n->names[NAME_DURABLE]->dir->in->fd;
	const char *text = n == &f->tree.root ? "." : n->names[NAME_DURABLE]->text;
	int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, fd;

	make_room(f);
	fd = openat(at, text, flags);
	if (fd < 0)
		return -errno;
	if (!is_it(n, fd)) {
		close(fd);
		return -ESTALE;
	}
	n->in->fd = fd;
	ring_add(&f->tree, n);
	return 0;
}

/* Opens a directory in ROOT, after those above it; root_at_end() follows. */
static int pin_dir(struct forget *f, struct node *n)
{
	auto_vec struct vec_of(struct node *) way = { 0 };
	int rc = 0;

	assert_owned(&f->tree.lock);
	for (struct node *at = n; at->in->fd < 0; at = at->names[NAME_DURABLE]->dir) {
		vec_push(&way, at);
		if (at == &f->tree.root)
			break;
		if (!at->names[NAME_DURABLE])
			return -ENOENT;
	}
	/* Each is open while the next one is opened from it. */
	for (size_t i = way.n; !rc && i-- > 0;) {
		struct node *at = way.v[i];
		struct node *above = at == &f->tree.root ? at : at->names[NAME_DURABLE]->dir;

		above->in->pins++;
		rc = open_dir(f, at);
		above->in->pins--;
	}
	if (rc)
		return rc;
	n->in->pins++;
	n->in->used = true;
	return n->in->fd;
}

int root_at_name(struct forget *f, struct node *dir, const char *text, struct root_at *at)
{
	int fd = pin_dir(f, dir);

	*at = (struct root_at){ fd, text, fd < 0 ? NULL : dir, -1 };
	return min(fd, 0);
}

int root_at(struct forget *f, struct node *n, struct root_at *at)
{
	struct node_name *a = n->names[NAME_DURABLE];

	assert_owned(&f->tree.lock);
	*at = (struct root_at){ .dir = -1, .held = -1 };
	if (n == &f->tree.root)
		return root_at_name(f, n, ".", at);
	if (a)
		return root_at_name(f, a->dir, a->text, at);
	if (n->stale || !n->file || !n->file->held)
		return -ESTALE;
	at->held = n->file->fd;
	return 0;
}

void root_at_end(struct root_at *at)
{
	if (at->pinned)
		at->pinned->in->pins--;
	at->pinned = NULL;
}

/* A path for calls that take no directory; links are not followed, but one of /proc is. */
struct root_path {
	char text[NAME_MAX + 48];
};

static struct root_path path_of(const struct root_at *at)
{
	struct root_path p;

	if (at->held >= 0)
		snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", at->held);
	else
		snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d/%s", at->dir, at->name);
	return p;
}

/* ---- reading ---- */

static int stat_at(const struct root_at *at, struct stat *st)
{
	if (at->held >= 0)
		return result(fstat(at->held, st));
	return result(fstatat(at->dir, at->name, st, AT_SYMLINK_NOFOLLOW));
}

static int root_stat(struct forget *f, struct node *n, struct stat *st)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at(f, n, &at);

	return rc ? rc : stat_at(&at, st);
}

int forget_root_looks(struct forget *f, struct node *n, struct stat *st)
{
	const struct looks *l = n->unmade ? &n->unmade->looks : NULL;

	if (!l)
		return root_stat(f, n, st);
	*st = (struct stat){ .st_mode = n->type | l->mode,
			     .st_uid = l->uid,
			     .st_gid = l->gid,
			     .st_rdev = n->unmade->rdev,
			     .st_nlink = 1,
			     .st_blksize = 4096,
			     .st_size = n->unmade->target ? (off_t)strlen(n->unmade->target) : 0,
			     .st_atim = l->atime,
			     .st_mtim = l->mtime,
			     .st_ctim = l->ctime };
	return 0;
}

/*
 * Opens a file to which its mode does not let us. The owner gets the right for a moment; the kernel
 * has checked every program.
 */
static int open_forbidden(const struct root_at *at, int flags)
{
	mode_t more = (flags & O_ACCMODE) == O_RDONLY ? S_IRUSR : S_IRUSR | S_IWUSR;
	struct stat st;
	int fd;

	if (at->held >= 0 || stat_at(at, &st) || st.st_uid != geteuid() ||
	    (st.st_mode & more) == more ||
	    fchmodat(at->dir, at->name, (st.st_mode & 07777) | more, 0))
		return -EACCES;
	fd = result(openat(at->dir, at->name, flags));
	if (fchmodat(at->dir, at->name, st.st_mode & 07777, 0))
		util_close(fd);
	else
		return fd;
	return -EACCES;
}

int forget_root_open(struct forget *f, struct node *n, int flags)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at(f, n, &at);

	flags |= O_CLOEXEC | O_NOFOLLOW;
	if (rc)
		return rc;
	if (at.held >= 0)
		return result(open(path_of(&at).text, flags & ~O_NOFOLLOW));
	rc = result(openat(at.dir, at.name, flags));
	return rc == -EACCES ? open_forbidden(&at, flags) : rc;
}

static ssize_t get_xattr(const struct root_at *at, const char *name, void *value, size_t size)
{
	struct root_path p = path_of(at);
	ssize_t n = at->held >= 0 ? getxattr(p.text, name, value, size)
				  : lgetxattr(p.text, name, value, size);

	return n < 0 ? -errno : n;
}

int forget_root_get_xattr(struct forget *f, struct node *n, const char *name, void *value,
			  size_t size)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at(f, n, &at);

	return rc ? rc : (int)get_xattr(&at, name, value, size);
}

int forget_root_list_xattr(struct forget *f, struct node *n, char *list, size_t size)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at(f, n, &at);

	if (rc)
		return rc;
	struct root_path p = path_of(&at);
	return result(at.held >= 0 ? listxattr(p.text, list, size)
				   : llistxattr(p.text, list, size));
}

struct xattrs *forget_root_xattrs(struct forget *f, struct node *n)
{
	struct xattrs *all = NULL;
	int len = forget_root_list_xattr(f, n, NULL, 0);
	auto_root_at at = { .dir = -1 };

	if (len <= 0 || root_at(f, n, &at))
		return NULL;
	auto_free char *list = xmalloc(XATTR_LIST_MAX), *value = xmalloc(XATTR_SIZE_MAX);
	len = forget_root_list_xattr(f, n, list, XATTR_LIST_MAX);
	for (int i = 0; i < len; i += (int)strlen(list + i) + 1) {
		ssize_t got = get_xattr(&at, list + i, value, XATTR_SIZE_MAX);

		if (got >= 0) {
			struct xattrs *more = xattrs_with(all, list + i, value, (size_t)got);

			xattrs_unref(all);
			all = more;
		}
	}
	return all;
}

int forget_root_readlink(struct forget *f, struct node *n, char *out, size_t size)
{
	auto_root_at at = { .dir = -1 };
	int rc;

	assert_owned(&f->tree.lock);
	if (n->unmade) {
		size_t len = min(strlen(n->unmade->target), size);

		memcpy(out, n->unmade->target, len);
		return (int)len;
	}
	rc = root_at(f, n, &at);
	return rc ? rc : result(readlinkat(at.dir, at.name, out, size));
}

/* ---- attributes ---- */

static int set_xattr(const struct root_at *at, const char *name, const void *value, size_t len)
{
	struct root_path p = path_of(at);
	int rc;

	if (at->held >= 0)
		rc = result(value ? setxattr(p.text, name, value, len, 0)
				  : removexattr(p.text, name));
	else
		rc = result(value ? lsetxattr(p.text, name, value, len, 0)
				  : lremovexattr(p.text, name));
	return !value && (rc == -ENODATA || rc == -EOPNOTSUPP) ? 0 : rc;
}

int forget_root_set_xattr(struct forget *f, struct node *n, const char *name, const void *value,
			  size_t len)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at(f, n, &at);

	return rc ? rc : set_xattr(&at, name, value, len);
}

static int set_times(const struct root_at *at, const struct looks *l, unsigned sets)
{
	const struct timespec omit = { .tv_nsec = UTIME_OMIT };
	struct timespec times[2] = { sets & LOOKS_ATIME ? l->atime : omit,
				     sets & LOOKS_MTIME ? l->mtime : omit };

	if (at->held >= 0)
		return result(futimens(at->held, times));
	return result(utimensat(at->dir, at->name, times, AT_SYMLINK_NOFOLLOW));
}

/* Makes owner and mode what they should be, if they are not. */
static int set_owner(const struct root_at *at, const struct stat *st, const struct looks *l)
{
	int rc = 0;

	if (st->st_uid != l->uid || st->st_gid != l->gid)
		rc = result(at->held >= 0 ? fchown(at->held, l->uid, l->gid)
					  : fchownat(at->dir, at->name, l->uid, l->gid,
						     AT_SYMLINK_NOFOLLOW));
	if (rc == -EPERM && geteuid())
		rc = 0; /* a user may not give files away, nor to each group */
	/* A change of owner takes set-id bits away. */
	if (!rc && !S_ISLNK(st->st_mode) &&
	    ((st->st_mode & 07777) != l->mode || st->st_uid != l->uid || st->st_gid != l->gid))
		rc = result(at->held >= 0 ? fchmod(at->held, l->mode)
					  : fchmodat(at->dir, at->name, l->mode, 0));
	return rc;
}

int forget_root_set_looks(struct forget *f, struct node *n, const struct looks *l, unsigned sets)
{
	auto_root_at at = { .dir = -1 };
	struct stat st;
	int rc = root_at(f, n, &at);

	if (!rc && (sets & (LOOKS_MODE | LOOKS_OWNER)))
		rc = stat_at(&at, &st);
	if (!rc && (sets & (LOOKS_MODE | LOOKS_OWNER)))
		rc = set_owner(&at, &st, l);
	if (!rc && (sets & (LOOKS_ATIME | LOOKS_MTIME)))
		rc = set_times(&at, l, sets);
	return rc;
}

void forget_root_set_dir_time(struct forget *f, struct node *dir, const struct timespec *mtime)
{
	const struct looks l = { .mtime = *mtime };
	auto_root_at at = { .dir = -1 };

	if (!dir->unmade && !root_at_name(f, dir, ".", &at) && set_times(&at, &l, LOOKS_MTIME))
		forget_log(f, "the time of directory %llu cannot be set: %m", llu(dir->ino));
}

/* ---- names ---- */

/*
 * Changes a directory of a user whose mode does not let him: the owner gets the right for a moment.
 * The kernel has checked the program when it made the change; the mode may have come later.
 */
static bool let_in(const struct root_at *at, struct stat *was)
{
	return !fstatat(at->dir, "", was, AT_EMPTY_PATH) && was->st_uid == geteuid() &&
	       (was->st_mode & S_IRWXU) != S_IRWXU &&
	       !chmod(fd_path(at->dir).text, (was->st_mode & 07777) | S_IRWXU);
}

#define in_dir(at, call)                                                                           \
	({                                                                                         \
		int rc_ = result(call);                                                            \
		struct stat was_;                                                                  \
		if (rc_ == -EACCES && let_in((at), &was_)) {                                       \
			rc_ = result(call);                                                        \
			if (chmod(fd_path((at)->dir).text, was_.st_mode & 07777) && rc_ >= 0)      \
				rc_ = -errno;                                                      \
		}                                                                                  \
		rc_;                                                                               \
	})

int forget_root_tmpfile(struct forget *f, struct node *dir)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at_name(f, dir, ".", &at);

	if (rc)
		return rc;
	return in_dir(&at, openat(at.dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

static int make_one(const struct root_at *at, const struct node *n)
{
	const struct unmade *u = n->unmade;

	if (u->target)
		return in_dir(at, symlinkat(u->target, at->dir, at->name));
	if (S_ISDIR(n->type))
		return in_dir(at, mkdirat(at->dir, at->name, u->looks.mode));
	return in_dir(at, mknodat(at->dir, at->name, n->type | u->looks.mode, u->rdev));
}

/* Gives a new file or directory the lists and attributes that it has, and no others. */
static int finish_xattrs(const struct root_at *at, const struct unmade *u, mode_t type)
{
	static const char *const lists[] = { ACL_ACCESS, ACL_DEFAULT };
	const struct xattrs *all = u->looks.xattrs;
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(lists) && !S_ISLNK(type); i++)
		/* The file may have got a list from its directory. */
		if (!xattrs_find(all, lists[i]) && (i == 0 || S_ISDIR(type)) &&
		    get_xattr(at, lists[i], NULL, 0) > 0)
			rc = set_xattr(at, lists[i], NULL, 0);
	for (size_t i = 0; !rc && all && i < all->n; i++) {
		const struct blob *b = all->v[i];
		size_t name = strlen(b->data) + 1;

		rc = set_xattr(at, b->data, b->data + name, b->len - name);
	}
	return rc;
}

static int finish_one(const struct root_at *at, const struct node *n, struct stat *st)
{
	const struct unmade *u = n->unmade;
	int rc = finish_xattrs(at, u, n->type);

	if (!rc)
		rc = stat_at(at, st);
	if (!rc)
		rc = set_owner(at, st, &u->looks);
	return rc ? rc : set_times(at, &u->looks, LOOKS_ATIME | LOOKS_MTIME);
}

static int link_fd(const struct root_at *at, int fd)
{
	int rc = in_dir(at,
			linkat(AT_FDCWD, fd_path(fd).text, at->dir, at->name, AT_SYMLINK_FOLLOW));

	if (rc == -ENOENT || rc == -EXDEV) /* /proc is missing, or does not follow links */
		rc = in_dir(at, linkat(fd, "", at->dir, at->name, AT_EMPTY_PATH));
	return rc;
}

int forget_root_make(struct forget *f, struct node *n, struct node *dir, const char *text, int fd,
		     struct stat *st)
{
	const struct looks *l = &n->unmade->looks;
	auto_root_at at = { .dir = -1 };
	int rc = root_at_name(f, dir, text, &at);

	if (rc)
		return rc;
	if (fd >= 0) {
		struct root_at unnamed = { .dir = -1, .held = fd };

		rc = finish_one(&unnamed, n, st);
		return rc ? rc : link_fd(&at, fd);
	}
	forget_caller_enter(l->uid, l->gid, 0);
	rc = make_one(&at, n);
	forget_caller_leave();
	if (rc)
		return rc;
	rc = finish_one(&at, n, st);
	if (rc && unlinkat(at.dir, text, S_ISDIR(n->type) ? AT_REMOVEDIR : 0))
		forget_log(f, "%s was made, and cannot be removed again: %m", text);
	return rc;
}

int forget_root_make_now(struct forget *f, struct node *n, struct node *dir, const char *text,
			 mode_t umask, struct stat *st)
{
	const struct looks *l = &n->unmade->looks;
	auto_root_at at = { .dir = -1 };
	int rc = root_at_name(f, dir, text, &at);

	if (rc)
		return rc;
	forget_caller_enter(l->uid, l->gid, umask);
	rc = make_one(&at, n);
	forget_caller_leave();
	return rc ? rc : stat_at(&at, st);
}

int forget_root_link(struct forget *f, struct node *n, struct node *dir, const char *text)
{
	auto_root_at from = { .dir = -1 }, to = { .dir = -1 };
	int rc = root_at(f, n, &from);

	if (!rc)
		rc = root_at_name(f, dir, text, &to);
	if (rc)
		return rc;
	if (from.held >= 0)
		return link_fd(&to, from.held);
	return in_dir(&to, linkat(from.dir, from.name, to.dir, text, 0));
}

int forget_root_remove(struct forget *f, struct node *dir, const char *text, bool is_dir)
{
	auto_root_at at = { .dir = -1 };
	int rc = root_at_name(f, dir, text, &at);

	return rc ? rc : in_dir(&at, unlinkat(at.dir, text, is_dir ? AT_REMOVEDIR : 0));
}

int forget_root_rename(struct forget *f, const struct node_name *from, const struct node_name *to,
		       unsigned flags)
{
	auto_root_at a = { .dir = -1 }, b = { .dir = -1 };
	struct stat was;
	int rc = root_at_name(f, from->dir, from->text, &a);

	if (!rc)
		rc = root_at_name(f, to->dir, to->text, &b);
	if (rc)
		return rc;
	rc = in_dir(&a, (int)syscall(SYS_renameat2, a.dir, a.name, b.dir, b.name, flags));
	if (rc != -EACCES || !let_in(&b, &was))
		return rc;
	rc = in_dir(&a, (int)syscall(SYS_renameat2, a.dir, a.name, b.dir, b.name, flags));
	return chmod(fd_path(b.dir).text, was.st_mode & 07777) && !rc ? -errno : rc;
}

/* ---- what goes ---- */

/* Copies what a node has in ROOT: it is as if it had never been there. */
static struct unmade *copy_of(struct forget *f, struct node *n, const struct stat *st)
{
	struct unmade *u = xcalloc(1, sizeof(*u));
	char target[PATH_MAX];

	u->looks = (struct looks){ .mode = st->st_mode & 07777,
				   .uid = st->st_uid,
				   .gid = st->st_gid,
				   .own_xattrs = true,
				   .xattrs = forget_root_xattrs(f, n),
				   .atime = st->st_atim,
				   .mtime = st->st_mtim,
				   .ctime = st->st_ctim };
	u->rdev = st->st_rdev;
	if (S_ISLNK(n->type)) {
		int len = forget_root_readlink(f, n, target, sizeof(target) - 1);

		target[max(len, 0)] = '\0';
		u->target = xstrdup(target);
	}
	return u;
}

int forget_root_leave_begin(struct forget *f, struct node *n, bool unmade, struct root_leaving *l)
{
	struct stat st;
	int rc;

	*l = (struct root_leaving){ .stays = n->names[NAME_DURABLE]->next[NAME_DURABLE] };
	assert_owned(&f->tree.lock);
	if (l->stays)
		return 0;
	rc = root_stat(f, n, &st);
	if (rc)
		return rc;
	l->other_names = !S_ISDIR(n->type) && st.st_nlink > 1;
	if (n->in)
		forget_root_close_dir(f, n);
	if (!l->other_names && (!S_ISREG(n->type) || unmade))
		l->copy = copy_of(f, n, &st);
	return 0;
}

void forget_root_leave_end(struct forget *f, struct node *n, struct root_leaving *l, bool gone)
{
	assert_owned(&f->tree.lock);
	if (!gone) {
		unmade_free(l->copy);
		return;
	}
	if (l->stays)
		return;
	if (!l->other_names)
		node_in_root(f, n, NULL, true);
	n->unmade = l->copy;
	n->stale = !n->unmade && (!n->file || !n->file->held);
}
