/* SPDX-License-Identifier: MIT */
/*
 * place.c - builds a crash state in the layers of an overlay, or in a plain directory, and clears
 * it again.
 */
#include "app/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fd_path.h"
#include "base/io.h"
#include "base/space.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "core/hashset.h"

enum { IOV = 64, CACHE_FILES = 20000, SHARE_MIN = 32 << 10 };

#define ROOM_DEFAULT ((uint64_t)1 << 30)
#define AT(name)     SPACE_DIR "/" name

struct place {
	struct reffs_state *before;
	char *at;
	bool overlay, user, redirect, shared;
	bool there; /* something is mounted at the path */
	int root;   /* the tmpfs */
	int cache;
	struct hashset cached;
	struct vec_of(struct lent {
		struct hash128 key;
		char *path; /* below the tmpfs */
	}) lent;	    /* cached files that are in the state */
	uint64_t cache_bytes, cache_max, unlike;
};

/* A directory of the state; it is made in a layer when an entry needs it there. */
struct state_dir {
	struct place *p;
	const struct reffs_state *s;
	struct state_dir *up;
	const char *name;
	const struct reffs_inode *inode;
	int fd[2]; /* -1: not made yet */
	struct puts *puts;
};

enum layer { LOWER, UPPER };

/* Data needed while one state is put. */
struct puts {
	struct vec_of(struct named {
		uint64_t ino;
		char *path;
	}) linked; /* files with several names that exist already, by path in the upper layer */
	struct strbuf path;
	int top[2];
	struct err *err;
};

/* ---- attributes ---- */

static int set_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	const struct {
		struct place *p;
		int fd;
	} *x = ctx;

	if (fsetxattr(x->fd, name, value, len, 0))
		x->p->unlike++;
	return 0;
}

static void set_attributes(struct place *p, int fd, const struct reffs_inode *inode,
			   const struct reffs_attr *a)
{
	struct {
		struct place *p;
		int fd;
	} x = { p, fd };

	if ((a->uid != geteuid() || a->gid != getegid()) && fchown(fd, a->uid, a->gid))
		p->unlike++;
	if (fchmod(fd, a->mode))
		p->unlike++;
	(void)reffs_xattrs(inode, set_xattr, &x);
}

static int add_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct hash128 *sum = ctx;

	*sum = hash_add(*sum, hash_bytes_seeded(value, len, hash64(name, strlen(name))));
	return 0;
}

/* Returns a key that is equal for two inodes with the same number, content and attributes. */
static struct hash128 inode_key(const struct reffs_inode *inode, const struct reffs_attr *a)
{
	struct hash128 sum = { 0 };
	uint64_t what[] = { a->ino,	   (uint64_t)a->type,
			    a->mode,	   a->uid,
			    a->gid,	   a->size,
			    a->rdev,	   a->content.lo,
			    a->content.hi, a->type == TREE_DIR ? 0 : a->nlink };

	(void)reffs_xattrs(inode, add_xattr, &sum);
	sum = hash_add(sum, hash_bytes(what, sizeof(what)));
	return a->target ? hash_add(sum, hash_bytes(a->target, strlen(a->target))) : sum;
}

static bool same_inode(const struct reffs_inode *x, const struct reffs_inode *y)
{
	struct reffs_attr a, b;

	if (x == y)
		return true;
	reffs_attr(x, &a);
	reffs_attr(y, &b);
	return hash_eq(inode_key(x, &a), inode_key(y, &b));
}

/* ---- directories ---- */

static int level_fd(struct state_dir *l, enum layer layer)
{
	struct reffs_attr a;

	if (l->fd[layer] >= 0)
		return l->fd[layer];
	int up = level_fd(l->up, layer);
	if (up < 0)
		return up;
	if (mkdirat(up, l->name, 0700) && errno != EEXIST)
		return err_set(l->puts->err, -errno, "cannot make the directory %s: %m", l->name);
	l->fd[layer] = openat(up, l->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->fd[layer] < 0)
		return err_set(l->puts->err, -errno, "cannot open the directory %s: %m", l->name);
	reffs_attr(l->inode, &a);
	set_attributes(l->p, l->fd[layer], l->inode, &a);
	return l->fd[layer];
}

static void level_close(struct state_dir *l)
{
	util_close(steal_fd(&l->fd[LOWER]));
	util_close(steal_fd(&l->fd[UPPER]));
}

/* ---- files ---- */

static int write_content(int fd, const struct reffs_inode *inode, uint64_t size)
{
	uint64_t pages = (size + REFFS_PAGE - 1) / REFFS_PAGE;
	struct iovec v[IOV];

	for (uint64_t i = reffs_next_page(inode, 0); i < pages; i = reffs_next_page(inode, i)) {
		uint64_t first = i, len = 0;
		const unsigned char *page;
		int n = 0;

		for (; n < IOV && i < pages && (page = reffs_page(inode, i)); i++, n++) {
			v[n].iov_base = (void *)(uintptr_t)page;
			v[n].iov_len = (size_t)min(size - i * REFFS_PAGE, (uint64_t)REFFS_PAGE);
			len += v[n].iov_len;
		}
		if (!n) { /* written space, all zeros */
			i++;
			continue;
		}
		ssize_t done = pwritev(fd, v, n, (off_t)(first * REFFS_PAGE));
		if (done != (ssize_t)len)
			return done < 0 ? -errno : -ENOSPC;
	}
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int make_file(struct place *p, int dir, const char *name, const struct reffs_inode *inode,
		     const struct reffs_attr *a, struct err *err)
{
	auto_fd fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, -errno, "cannot make the file %s of a crash state: %m", name);
	int rc = write_content(fd, inode, a->size);
	if (rc)
		return err_set(err, rc, "cannot write the file %s of a crash state; is there room?",
			       name);
	set_attributes(p, fd, inode, a);
	return 0;
}

/* Makes links, devices, pipes and sockets. */
static int make_special(struct place *p, int dir, const char *name, const struct reffs_attr *a,
			struct err *err)
{
	static const mode_t types[] = { [TREE_FIFO] = S_IFIFO,
					[TREE_SOCKET] = S_IFSOCK,
					[TREE_CHAR] = S_IFCHR,
					[TREE_BLOCK] = S_IFBLK };

	if (a->type == TREE_SYMLINK ? symlinkat(a->target, dir, name)
				    : mknodat(dir, name, types[a->type] | a->mode, a->rdev)) {
		if (errno != EPERM)
			return err_set(err, -errno, "cannot make %s of a crash state: %m", name);
		p->unlike++; /* a device, and we are not root */
		return 0;
	}
	if ((a->uid != geteuid() || a->gid != getegid()) &&
	    fchownat(dir, name, a->uid, a->gid, AT_SYMLINK_NOFOLLOW))
		p->unlike++;
	return 0;
}

static void cache_clear(struct place *p)
{
	int copy = openat(p->cache, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(p->cache, e->d_name, 0);
	if (d)
		closedir(d);
	else
		util_close(copy);
	hashset_clear(&p->cached);
	p->cache_bytes = 0;
}

static void add_path(const struct state_dir *l, struct strbuf *out)
{
	if (!l->up)
		return;
	add_path(l->up, out);
	strbuf_addf(out, "%s/", l->name);
}

/* Q3: moves a cached file with one name to the layer that no check writes to, until later. */
static int lend_cached(struct state_dir *l, int dir, const char *name,
		       const struct reffs_inode *inode, const struct reffs_attr *a)
{
	struct place *p = l->p;
	struct hash128 key = inode_key(inode, a);
	struct strbuf path = STRBUF_INIT;
	char hex[HASH_HEX_SIZE];

	hash_hex(key, hex);
	if (!hashset_has(&p->cached, key)) {
		if (p->cache_bytes + a->size > p->cache_max || p->cached.n > CACHE_FILES)
			cache_clear(p);
		int rc = make_file(p, p->cache, hex, inode, a, l->puts->err);
		if (rc) {
			unlinkat(p->cache, hex, 0);
			return rc;
		}
		hashset_insert(&p->cached, key);
		p->cache_bytes += a->pages * REFFS_PAGE;
	}
	/* A link would show one name too many. */
	if (renameat(p->cache, hex, dir, name))
		return err_set(l->puts->err, -errno, "cannot make the file %s of a crash state: %m",
			       name);
	strbuf_adds(&path, "s/lower/");
	add_path(l, &path);
	strbuf_adds(&path, name);
	vec_push(&p->lent, (struct lent){ key, strbuf_detach(&path) });
	return 0;
}

/* Takes the lent files back. Files that the cache has dropped meanwhile go with the state. */
static int take_back_lent(struct place *p)
{
	char hex[HASH_HEX_SIZE];
	int rc = 0;

	vec_each(x, &p->lent) {
		hash_hex(x->key, hex);
		if (hashset_has(&p->cached, x->key) && renameat(p->root, x->path, p->cache, hex))
			rc = -errno;
		free(x->path);
	}
	vec_clear(&p->lent);
	return rc;
}

static const char *linked_path(const struct puts *x, uint64_t ino)
{
	const struct named *one = vec_find(i, &x->linked, x->linked.v[i].ino == ino);

	return one ? one->path : NULL;
}

/* Makes a file with several names: all of them are in the upper layer. */
static int put_linked(struct state_dir *l, const char *name, const struct reffs_inode *inode,
		      const struct reffs_attr *a)
{
	const char *first = linked_path(l->puts, a->ino);
	int dir = level_fd(l, UPPER);

	if (dir < 0)
		return dir;
	if (first) {
		if (linkat(l->puts->top[UPPER], first, dir, name, 0))
			return err_set(l->puts->err, -errno, "cannot link %s: %m", name);
		return 0;
	}
	struct strbuf *path = &l->puts->path;
	strbuf_clear(path);
	add_path(l, path);
	strbuf_adds(path, name);
	vec_push(&l->puts->linked, (struct named){ a->ino, xstrdup(strbuf_str(path)) });
	return a->type == TREE_FILE ? make_file(l->p, dir, name, inode, a, l->puts->err)
				    : make_special(l->p, dir, name, a, l->puts->err);
}

static int put_file(struct state_dir *l, const char *name, const struct reffs_inode *inode)
{
	struct reffs_attr a;

	reffs_attr(inode, &a);
	if (a.nlink > 1)
		return put_linked(l, name, inode, &a);
	int dir = level_fd(l, l->p->overlay ? LOWER : UPPER);
	if (dir < 0)
		return dir;
	if (a.type != TREE_FILE)
		return make_special(l->p, dir, name, &a, l->puts->err);
	return l->p->overlay && a.size >= SHARE_MIN
		       ? lend_cached(l, dir, name, inode, &a)
		       : make_file(l->p, dir, name, inode, &a, l->puts->err);
}

static int put_whiteout(struct state_dir *l, const char *name)
{
	int dir = level_fd(l, LOWER);

	if (dir < 0)
		return dir;
	return mknodat(dir, name, S_IFCHR | 0600, makedev(0, 0))
		       ? err_set(l->puts->err, -errno, "cannot make a whiteout for %s: %m", name)
		       : 0;
}

/* ---- the whole state ---- */

struct put_walk {
	struct state_dir *level;
	const struct reffs_inode *old; /* the directory at the same path before, or NULL */
};

static bool is_dir(const struct reffs_inode *inode)
{
	struct reffs_attr a;

	reffs_attr(inode, &a);
	return a.type == TREE_DIR;
}

static int put_dir(struct state_dir *l, const struct reffs_inode *old);

static int put_entry(void *ctx, const char *name, uint64_t ino)
{
	struct put_walk *w = ctx;
	struct state_dir *l = w->level;
	const struct reffs_inode *inode = reffs_inode(l->s, ino), *old = NULL;
	uint64_t old_ino = w->old ? reffs_lookup(w->old, name) : 0;

	if (old_ino)
		old = reffs_inode(l->p->before, old_ino);
	if (!is_dir(inode))
		return old_ino == ino && same_inode(inode, old) ? 0 : put_file(l, name, inode);
	struct state_dir below = {
		.p = l->p,
		.s = l->s,
		.up = l,
		.name = name,
		.inode = inode,
		.fd = { -1, -1 },
		.puts = l->puts,
	};
	bool merged = old && is_dir(old);
	int rc = 0;
	/* The layer's directory hides the old one's attributes: it must exist if these differ. */
	if (!merged || old_ino != ino || !same_inode(inode, old))
		rc = min(level_fd(&below, l->p->overlay ? LOWER : UPPER), 0);
	if (!rc)
		rc = put_dir(&below, merged ? old : NULL);
	level_close(&below);
	return rc;
}

static int put_gone(void *ctx, const char *name, uint64_t ino)
{
	struct put_walk *w = ctx;

	(void)ino;
	return reffs_lookup(w->level->inode, name) ? 0 : put_whiteout(w->level, name);
}

static int put_dir(struct state_dir *l, const struct reffs_inode *old)
{
	struct put_walk w = { l, old };
	int rc = reffs_entries(l->inode, put_entry, &w);

	return rc || !old ? rc : reffs_entries(old, put_gone, &w);
}

static int remove_below(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int rc = d ? 0 : -errno;

	while (d && (e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, ".."))
			continue;
		if (e->d_type != DT_DIR && !unlinkat(dir, e->d_name, 0))
			continue;
		auto_fd sub =
			openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 && errno == EACCES) /* its owner can, if not root */
			sub = fchmodat(dir, e->d_name, 0700, 0)
				      ? -1
				      : openat(dir, e->d_name,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			(void)(fchmod(sub, 0700) || remove_below(sub));
		if (unlinkat(dir, e->d_name, AT_REMOVEDIR) && errno != ENOENT)
			rc = -errno;
	}
	if (d)
		closedir(d);
	else
		util_close(copy);
	return rc;
}

static const char *const parts[] = { "s/lower", "s/upper", "s/work" };

static int make_parts(struct place *p, struct puts *x)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && !rc; i++)
		if (mkdirat(p->root, parts[i], 0700))
			rc = err_set(x->err, -errno, "cannot make the place for a crash state: %m");
	for (int i = LOWER; i <= UPPER && !rc; i++) {
		x->top[i] = openat(p->root, parts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (x->top[i] < 0)
			rc = err_set(x->err, -errno, "cannot open the place for a crash state: %m");
	}
	return rc;
}

/* Mounts the overlay. Writes go only to the upper layer, so they need not reach a disk. */
static int mount_overlay(struct place *p)
{
	static const char layers[] = "lowerdir=" AT("s/lower") ":" AT("base") ",upperdir=" AT(
		"s/upper") ",workdir=" AT("s/work");
	char options[512];

	snprintf(options, sizeof(options), "%s%s%s", layers, p->user ? ",userxattr" : "",
		 p->redirect ? ",redirect_dir=on" : "");
	return mount("overlay", p->at, "overlay", 0, options) ? -errno : 0;
}

static int show(struct place *p, struct err *err)
{
	int rc = p->overlay					    ? mount_overlay(p)
		 : mount(AT("s/upper"), p->at, NULL, MS_BIND, NULL) ? -errno
								    : 0;

	p->there = !rc;
	errno = -rc;
	return rc ? err_set(err, rc, "cannot mount a crash state at %s: %m", p->at) : 0;
}

int place_put(struct place *p, const struct reffs_state *s, struct err *err)
{
	struct puts x = { .top = { -1, -1 }, .err = err };
	struct state_dir top = {
		.p = p, .s = s, .name = ".", .inode = reffs_inode(s, REFFS_ROOT_INO), .puts = &x
	};
	struct reffs_attr a;

	assert(!p->there);
	int rc = make_parts(p, &x);
	top.fd[LOWER] = x.top[LOWER];
	top.fd[UPPER] = x.top[UPPER];
	if (!rc) {
		reffs_attr(top.inode, &a);
		rc = put_dir(&top, p->overlay ? reffs_inode(p->before, REFFS_ROOT_INO) : NULL);
		set_attributes(p, x.top[UPPER], top.inode, &a);
	}
	level_close(&top);
	for (size_t i = 0; i < x.linked.n; i++)
		free(x.linked.v[i].path);
	vec_release(&x.linked);
	strbuf_release(&x.path);
	return rc ? rc : show(p, err);
}

int place_clear(struct place *p, struct err *err)
{
	auto_fd s = openat(p->root, "s", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The mount is detached: a process that is just ending may still be in it. */
	if (p->there && umount2(p->at, MNT_DETACH))
		return err_set(err, -errno, "cannot unmount the crash state at %s: %m", p->at);
	p->there = false;
	int rc = take_back_lent(p), removed = s < 0 ? -errno : remove_below(s);
	rc = rc ? rc : removed;
	return rc ? err_set(err, rc, "cannot clear a crash state away") : 0;
}

/* ---- life ---- */

static int mount_room(struct place *p, const struct place_opts *o, struct err *err)
{
	static const char *const dirs[] = { "base", "cache", "notes", "s" };
	uint64_t room = o->room ? o->room : ROOM_DEFAULT;
	char options[64];

	p->cache_max = room / 4;
	snprintf(options, sizeof(options), "mode=755,size=%llu", llu(room));
	if (mount("outage-app", SPACE_DIR, "tmpfs", MS_NOSUID | MS_NODEV, options))
		return err_set(err, -errno, "cannot mount a tmpfs for crash states: %m");
	p->root = open(SPACE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->root < 0)
		return err_set(err, -errno, "cannot open the tmpfs for crash states: %m");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(p->root, dirs[i], 0755))
			return err_set(err, -errno, "cannot make a directory: %m");
	p->cache = openat(p->root, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->cache < 0)
		return err_set(err, -errno, "cannot open a directory: %m");
	auto_fd base = o->base ? below_open_here(o->base, err) : -1;
	if (o->base && base < 0)
		return base;
	if (o->base && mount(fd_path(base).text, AT("base"), NULL, MS_BIND | MS_REC, NULL))
		return err_set(err, -errno, "cannot bind %s: %m", o->base);
	return 0;
}

/* Makes the mount shared: a mount on it then appears in all its copies. */
static bool share(struct place *p)
{
	if (mount(p->at, p->at, NULL, MS_BIND, NULL))
		return false;
	if (mount(NULL, p->at, NULL, MS_SHARED, NULL) == 0)
		return true;
	umount2(p->at, MNT_DETACH);
	return false;
}

/* True if an overlay can be mounted here; finds out its options. */
static bool try_overlay(struct place *p)
{
	struct puts x = { .top = { -1, -1 } };
	bool works = !make_parts(p, &x);

	util_close(x.top[LOWER]);
	util_close(x.top[UPPER]);
	for (int redirect = 1; works && redirect >= 0; redirect--) {
		p->redirect = redirect && !p->user;
		if (mount_overlay(p) == 0) {
			p->there = true;
			break;
		}
	}
	works = p->there;
	return place_clear(p, NULL) == 0 && works;
}

int place_new(const struct place_opts *opts, struct place **out, struct err *err)
{
	struct place *p = xcalloc(1, sizeof(*p));

	p->before = opts->before;
	p->at = xstrdup(opts->at);
	p->root = p->cache = -1;
	p->user = geteuid() != 0;
	int rc = space_enter_as_user(err);
	if (!rc)
		rc = mount_room(p, opts, err);
	if (!rc) {
		p->shared = share(p);
		p->overlay = !opts->copy && try_overlay(p);
	}
	if (rc)
		place_free(p);
	else
		*out = p;
	return rc;
}

void place_free(struct place *p)
{
	if (!p)
		return;
	if (p->there)
		umount2(p->at, MNT_DETACH);
	hashset_release(&p->cached);
	for (size_t i = 0; i < p->lent.n; i++)
		free(p->lent.v[i].path);
	vec_release(&p->lent);
	util_close(p->cache);
	util_close(p->root);
	free(p->at);
	free(p);
}

int place_look(struct place *p, struct tree *out, struct err *err)
{
	/* For content, hashes are enough. */
	struct tree_opts opts = { .content_limit = 1 };
	auto_fd upper = openat(p->root, parts[UPPER], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (upper < 0)
		return err_set(err, -errno, "cannot look at a crash state: %m");
	return tree_walk(upper, &opts, out, err);
}

bool place_is_full(const struct place *p)
{
	struct statfs st;

	return !fstatfs(p->root, &st) && (st.f_bavail < 16 || st.f_ffree < 16);
}

const char *place_notes(const struct place *p)
{
	(void)p;
	return AT("notes");
}

bool place_is_shared(const struct place *p)
{
	return p->shared;
}

bool place_is_overlay(const struct place *p)
{
	return p->overlay;
}

uint64_t place_unlike(const struct place *p)
{
	return p->unlike;
}
