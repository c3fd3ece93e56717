/* SPDX-License-Identifier: MIT */
/*
 * forget-ops.c - operations on the mount, each done in the model as well and compared.
 *
 * An operation first says from the model whether it should work, then is done, then compared and
 * entered in the model. What it chooses depends on the worker's own numbers and directory alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "forget-world.h"

uint32_t below(struct worker *k, uint32_t n)
{
	return (uint32_t)rng_below(&k->rng, n);
}

bool chance(struct worker *k, uint32_t one_in)
{
	return !below(k, one_in);
}

int result(long rc)
{
	return rc < 0 ? -errno : (int)rc;
}

/* ---- turns ---- */

static bool one_journal(const struct worker *k)
{
	return k->w->model.profile->file == PROFILE_ALL && k->w->model.profile->metadata;
}

static void wait_for(struct world *w, const struct worker *other)
{
	pthread_mutex_lock(&w->turn_lock);
	while (!other->alone_done)
		pthread_cond_wait(&w->turn_done, &w->turn_lock);
	pthread_mutex_unlock(&w->turn_lock);
}

void enter(struct worker *k, bool alone)
{
	struct world *w = k->w;

	if (!w->steps || !alone)
		return;
	k->alone = true;
	pthread_barrier_wait(&w->together);
	for (int i = 0; i < k->id; i++)
		if (w->workers[i].alone)
			wait_for(w, &w->workers[i]);
}

void leave(struct worker *k)
{
	struct world *w = k->w;

	atomic_fetch_add(&w->done, 1);
	if (!k->alone)
		return;
	pthread_mutex_lock(&w->turn_lock);
	k->alone_done = true;
	pthread_cond_broadcast(&w->turn_done);
	pthread_mutex_unlock(&w->turn_lock);
}

void step_end(struct worker *k)
{
	if (!k->alone)
		pthread_barrier_wait(&k->w->together);
	pthread_barrier_wait(&k->w->apart);
	k->alone = k->alone_done = false;
}

void lock(struct worker *k)
{
	pthread_mutex_lock(&k->w->model.lock);
}

void unlock(struct worker *k)
{
	pthread_mutex_unlock(&k->w->model.lock);
}

/* Whether the mount did what the model says; true if it was done. */
bool as_expected(struct worker *k, int want, int got)
{
	if (k->w->over)
		pthread_exit(NULL);
	if (k->error && got == -k->error) {
		k->failed = true;
		return false;
	}
	if (want >= 0 && got < 0)
		differs(k, "it failed: %s", strerror(-got));
	if (want < 0 && got >= 0)
		differs(k, "it worked, and should fail%s%s", want == SOME_ERROR ? "" : ": ",
			want == SOME_ERROR ? "" : strerror(-want));
	if (want < 0 && want != SOME_ERROR && got != want)
		differs(k, "it failed with '%s', not with '%s'", strerror(-got), strerror(-want));
	if (got == -ENOTCONN || got == -EIO || got == -ESTALE)
		differs(k, "it failed: %s", strerror(-got));
	return got >= 0;
}

/* ---- choosing ---- */

struct place_list vec_of(struct place);

static void add_dirs(struct inode *dir, const char *path, struct place_list *out)
{
	struct place p = { .dir = dir };

	snprintf(p.dir_path, sizeof(p.dir_path), "%s", path);
	vec_push(out, p);
	for (int n = 0; n < NAMES; n++)
		if (dir->entry[LIVE][n] && S_ISDIR(dir->entry[LIVE][n]->type)) {
			snprintf(p.path, sizeof(p.path), "%s/n%d", path, n);
			add_dirs(dir->entry[LIVE][n], p.path, out);
		}
}

static void home_path(struct worker *k, char *out, size_t size)
{
	snprintf(out, size, "%s/n%d", k->w->mnt, k->id);
}

/* A name in one of the worker's directories. */
static struct place any(struct worker *k)
{
	struct place_list dirs = { 0 };
	char home[PATH];
	struct place p;

	home_path(k, home, sizeof(home));
	add_dirs(k->home, home, &dirs);
	p = dirs.v[below(k, (uint32_t)dirs.n)];
	vec_release(&dirs);
	p.name = (int)below(k, NAMES);
	p.ino = p.dir->entry[LIVE][p.name];
	snprintf(p.path, sizeof(p.path), "%s/n%d", p.dir_path, p.name);
	return p;
}

/* One where something of this type is (0: anything), if that can be found soon. */
bool any_that_is(struct worker *k, mode_t type, struct place *out)
{
	for (int i = 0; i < 12; i++) {
		*out = any(k);
		if (out->ino && (!type || out->ino->type == type))
			return true;
	}
	return false;
}

const char *in_mount(const struct worker *k, const char *path)
{
	return path + strlen(k->w->mnt) + 1;
}

/* ---- comparing ---- */

static const char *type_name(mode_t type)
{
	return S_ISREG(type)   ? "a file"
	       : S_ISDIR(type) ? "a directory"
	       : S_ISLNK(type) ? "a symbolic link"
	       : S_ISCHR(type) ? "a whiteout"
			       : "something else";
}

static void check_bytes(struct worker *k, const char *path, const struct inode *ino,
			const unsigned char *got, uint32_t off, uint32_t len)
{
	const unsigned char *want = ino->data.bytes[LIVE] + off;

	for (uint32_t i = 0; i < len; i++) {
		uint32_t n = i;

		if (got[i] == want[i])
			continue;
		while (n < len && got[n] != want[n])
			n++;
		differs(k,
			"%s: %u bytes from %u on differ: there is %02x..., and should be %02x...; "
			"its durable content has %02x there, its size is %u, durable %u",
			path, n - i, off + i, got[i], want[i], ino->data.bytes[DURABLE][off + i],
			ino->data.size[LIVE], ino->data.size[DURABLE]);
	}
}

static void check_content(struct worker *k, const char *path, int fd, const struct inode *ino)
{
	static _Thread_local unsigned char buf[FILE_MAX + 1];
	uint32_t size = ino->data.size[LIVE];
	ssize_t n = pread(fd, buf, sizeof(buf), 0);

	if (k->w->over)
		return;
	if (n < 0)
		differs(k, "%s cannot be read: %s", path, strerror(errno));
	if ((size_t)n != size)
		differs(k, "%s: %zd bytes can be read, and there should be %u", path, n, size);
	check_bytes(k, path, ino, buf, 0, size);
}

static unsigned links_of(struct worker *k, const struct inode *ino)
{
	unsigned links = 2;

	if (S_ISDIR(ino->type)) {
		for (int n = 0; n < NAMES; n++)
			links += ino->entry[LIVE][n] && S_ISDIR(ino->entry[LIVE][n]->type);
		return links;
	}
	lock(k);
	links = model_links(&k->w->model, ino);
	unlock(k);
	return links;
}

static void check_owner(struct worker *k, const char *path, const struct inode *ino,
			const struct stat *st)
{
	const struct attr *a = &ino->attr[LIVE];

	if (!S_ISLNK(ino->type) && (st->st_mode & 07777) != a->mode)
		differs(k, "%s has the mode %o, and should have %o", path, st->st_mode & 07777,
			a->mode);
	if (st->st_uid != a->uid || st->st_gid != a->gid)
		differs(k, "%s belongs to %u:%u, and should belong to %u:%u", path, st->st_uid,
			st->st_gid, a->uid, a->gid);
	if (S_ISREG(ino->type) && a->mtime_known && st->st_mtime != a->mtime)
		differs(k, "%s was changed at %lld, and should say %lld, which was set", path,
			(long long)st->st_mtime, (long long)a->mtime);
}

static void check_attr(struct worker *k, const char *path, const struct inode *ino,
		       const struct stat *st)
{
	unsigned links = links_of(k, ino);

	if ((st->st_mode & S_IFMT) != ino->type)
		differs(k, "%s is %s, and should be %s", path, type_name(st->st_mode & S_IFMT),
			type_name(ino->type));
	if (S_ISREG(ino->type) && st->st_size != ino->data.size[LIVE])
		differs(k, "%s has %lld bytes, and should have %u (durable: %u)", path,
			(long long)st->st_size, ino->data.size[LIVE], ino->data.size[DURABLE]);
	/* What has no name any more would not be there after a power cut, nor who has it open. */
	if (links)
		check_owner(k, path, ino, st);
	if (st->st_nlink != links && (!S_ISDIR(ino->type) || k->w->dir_links))
		differs(k, "%s has %lu links, and should have %u", path,
			(unsigned long)st->st_nlink, links);
}

static const char *const xattr_names[XATTRS] = { "user.a", "user.bb", "user.ccc" };

static void check_xattrs(struct worker *k, const char *path, const struct inode *ino)
{
	char value[64], list[512];
	ssize_t all = 0, n;

	if (!S_ISREG(ino->type) && !S_ISDIR(ino->type))
		return;
	for (int i = 0; i < XATTRS; i++) {
		const struct value *want = &ino->xattr[LIVE][i];

		n = getxattr(path, xattr_names[i], value, sizeof(value));
		if (n < 0 && errno != ENODATA)
			differs(k, "%s: %s cannot be read: %s", path, xattr_names[i],
				strerror(errno));
		if (n != want->len || (n > 0 && memcmp(value, want->bytes, (size_t)n)))
			differs(k, "%s: %s has %zd bytes, and should have %d%s", path,
				xattr_names[i], n, want->len,
				n == want->len ? ", with another content" : "");
		if (want->len >= 0)
			all += (ssize_t)strlen(xattr_names[i]) + 1;
	}
	n = listxattr(path, list, sizeof(list));
	if (n != all)
		differs(k, "%s: the list of attributes has %zd bytes, and should have %zd", path, n,
			all);
}

static void check_names(struct worker *k, const char *path, const struct inode *dir)
{
	bool seen[NAMES] = { false };
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d)
		differs(k, "%s cannot be listed: %s", path, strerror(errno));
	while (errno = 0, (e = readdir(d))) {
		int name = e->d_name[0] == 'n' ? e->d_name[1] - '0' : -1;

		if (e->d_name[0] != 'n')
			continue;
		if (name < 0 || name >= NAMES || !dir->entry[LIVE][name])
			differs(k, "%s has an entry %s, which should not be there", path,
				e->d_name);
		if (seen[name])
			differs(k, "%s lists %s twice", path, e->d_name);
		seen[name] = true;
	}
	int error = errno;

	closedir(d); /* who finds that all is over does not come back */
	if (error)
		differs(k, "%s cannot be listed: %s", path, strerror(error));
	for (int n = 0; n < NAMES; n++)
		if (dir->entry[LIVE][n] && !seen[n])
			differs(k, "%s does not list n%d, which should be there", path, n);
}

/* The model cannot know when the kernel let go of it: either is right, and is so from now on. */
static void see_content(struct worker *k, const char *path, const struct inode *ino)
{
	static _Thread_local unsigned char buf[FILE_MAX];
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf), 0);

	if (n < 0)
		return; /* which the check tells */
	lock(k);
	model_seen(&k->w->model, ino, buf, (uint32_t)n);
	unlock(k);
}

/* What a path shows, with its content if `whole`. */
static void check_path(struct worker *k, const char *path, const struct inode *ino, bool whole)
{
	char target[64];
	struct stat st;
	ssize_t n;

	if (lstat(path, &st)) {
		if (k->w->over)
			return;
		if (ino || errno != ENOENT)
			differs(k, "%s should be %s, but: %s", path,
				ino ? type_name(ino->type) : "missing", strerror(errno));
		return;
	}
	if (!ino)
		differs(k, "%s is %s, and should not be there", path,
			type_name(st.st_mode & S_IFMT));
	if (ino->data.without)
		see_content(k, path, ino);
	check_attr(k, path, ino, &st);
	if (!whole)
		return;
	check_xattrs(k, path, ino);
	if (S_ISREG(ino->type)) {
		auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 && !k->w->over)
			differs(k, "%s cannot be opened: %s", path, strerror(errno));
		check_content(k, path, fd, ino);
	} else if (S_ISDIR(ino->type)) {
		check_names(k, path, ino);
	} else if (S_ISLNK(ino->type)) {
		n = readlink(path, target, sizeof(target) - 1);
		target[max(n, (ssize_t)0)] = '\0';
		if (!streq(target, ino->target))
			differs(k, "%s leads to '%s', and should lead to '%s'", path, target,
				ino->target);
	}
}

static void check_below(struct worker *k, const char *path, const struct inode *dir)
{
	char sub[PATH + 8];

	check_path(k, path, dir, true);
	for (int n = 0; n < NAMES; n++) {
		const struct inode *ino = dir->entry[LIVE][n];

		snprintf(sub, sizeof(sub), "%s/n%d", path, n);
		if (ino && S_ISDIR(ino->type))
			check_below(k, sub, ino);
		else
			check_path(k, sub, ino, true);
	}
}

void check_all(struct worker *k, const char *base)
{
	char path[PATH];

	for (int i = 0; i < WORKERS; i++) {
		snprintf(path, sizeof(path), "%s/n%d", base, i);
		check_below(k, path, k->w->model.root->entry[LIVE][i]);
	}
}

/* ---- descriptors ---- */

static void close_one(struct worker *k, struct opened *o)
{
	if (o->fd < 0)
		return;
	close(o->fd);
	o->fd = -1;
	lock(k);
	o->ino->opens--;
	model_closed(&k->w->model, o->ino);
	unlock(k);
}

void close_all(struct worker *k)
{
	for (int i = 0; i < OPENS; i++)
		close_one(k, &k->open[i]);
}

bool target_open(struct worker *k, int flags, struct target *t)
{
	struct opened *kept = &k->open[below(k, OPENS)];
	struct place p;

	*t = (struct target){ .own.fd = -1 };
	if (!flags && kept->fd >= 0 && chance(k, 3)) {
		t->o = kept;
		return true;
	}
	if (!any_that_is(k, S_IFREG, &p))
		return false;
	snprintf(t->path, sizeof(t->path), "%s", p.path);
	t->own = (struct opened){ open(p.path, O_RDWR | O_CLOEXEC | flags), flags, p.ino, false };
	if (t->own.fd < 0) {
		note(k, "open %s", in_mount(k, p.path));
		as_expected(k, 0, -errno);
		return false;
	}
	lock(k);
	p.ino->opens++;
	unlock(k);
	t->o = &t->own;
	return true;
}

const char *target_name(struct worker *k, struct target *t, char *buf, size_t size)
{
	if (*t->path)
		snprintf(buf, size, "%s", in_mount(k, t->path));
	else
		snprintf(buf, size, "descriptor %d", (int)(t->o - k->open));
	return buf;
}

void check_target(struct worker *k, struct target *t, bool whole)
{
	char name[PATH];
	struct stat st;

	target_name(k, t, name, sizeof(name));
	if (k->w->over)
		return;
	if (fstat(t->o->fd, &st))
		differs(k, "%s cannot be asked: %s", name, strerror(errno));
	check_attr(k, name, t->o->ino, &st);
	if (whole)
		check_content(k, name, t->o->fd, t->o->ino);
}

static void check_whole(struct worker *k, void *ctx)
{
	check_target(k, ctx, true);
}

void check_target_soon(struct worker *k, struct target *t)
{
	comes_right(k, check_whole, t);
}

void target_close(struct worker *k, struct target *t)
{
	close_one(k, &t->own);
}

static void op_open(struct worker *k)
{
	static const int flags[] = { 0, O_APPEND, O_DIRECT, O_SYNC, O_DSYNC };
	struct opened *o = &k->open[below(k, OPENS)];
	int flag = flags[below(k, ARRAY_SIZE(flags) - (k->w->few_syncs ? 2 : 0))];
	struct place p;

	enter(k, false);
	if (o->fd >= 0) {
		note(k, "close descriptor %d", (int)(o - k->open));
		close_one(k, o);
	} else if (any_that_is(k, S_IFREG, &p)) {
		note(k, "open %s as descriptor %d, flags %x", in_mount(k, p.path),
		     (int)(o - k->open), flag);
		*o = (struct opened){ open(p.path, O_RDWR | O_CLOEXEC | flag), flag, p.ino, false };
		if (!as_expected(k, 0, o->fd < 0 ? -errno : 0)) {
			o->fd = -1;
		} else {
			lock(k);
			p.ino->opens++;
			unlock(k);
		}
	}
	leave(k);
}

/* ---- data ---- */

void fill(struct worker *k, unsigned char *buf, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t word = rng_next(&k->rng) | 0x0101010101010101; /* no zeros */

		memcpy(buf + i, &word, min(8u, len - i));
	}
}

/* Where and how much; sometimes aligned, sometimes behind the end. */
void any_range(struct worker *k, uint32_t *off, uint32_t *len)
{
	*off = below(k, FILE_MAX - 1);
	*len = chance(k, 3) ? 1 + below(k, 3 * BLOCK) : 1 + below(k, 300);
	if (chance(k, 3))
		*off = *off / BLOCK * BLOCK;
	if (chance(k, 4))
		*len = (*len + BLOCK - 1) / BLOCK * BLOCK;
	*len = min(*len, (uint32_t)FILE_MAX - *off);
}

/* Whether the model knows what a sync of data alone would do, after a write of these bytes. */
static bool knows_data_sync(struct worker *k, struct inode *ino, uint32_t off, uint32_t len)
{
	bool yes;

	if (!one_journal(k))
		return true;
	lock(k);
	yes = model_data_commits(ino, off, len) != COMMITS_PERHAPS;
	unlock(k);
	return yes;
}

/* A write, and what its flags make of it. */
static void write_to(struct worker *k, struct target *t, uint32_t off, uint32_t len,
		     const char *how)
{
	static _Thread_local unsigned char buf[FILE_MAX] __attribute__((aligned(BLOCK)));
	struct inode *ino = t->o->ino;
	char name[PATH];
	int got;

	if (t->o->flags == O_DSYNC && !knows_data_sync(k, ino, off, len))
		return;
	fill(k, buf, len);
	note(k, "%s %u bytes at %u of %s%s", how, len, off, target_name(k, t, name, sizeof(name)),
	     t->o->flags == O_SYNC    ? ", O_SYNC"
	     : t->o->flags == O_DSYNC ? ", O_DSYNC"
				      : "");
	got = result(pwrite(t->o->fd, buf, len, off));
	if (!as_expected(k, 0, got)) {
		/* The kernel truncates it to the size it has, as ftruncate() would. */
		if (t->o->flags == O_DIRECT)
			ino->attr[LIVE].mtime_known = false;
		return;
	}
	bool stale = t->o->stale && t->o->flags == O_APPEND;
	t->o->stale = false;
	lock(k);
	model_write(&k->w->model, ino, buf, off, (uint32_t)got);
	if (t->o->flags == O_SYNC || t->o->flags == O_DSYNC)
		model_sync(&k->w->model, ino, t->o->flags == O_DSYNC);
	unlock(k);
	if ((uint32_t)got != len)
		differs(k, "it wrote %d bytes", got);
	if (stale) /* the kernel has to be told where it really went */
		check_target_soon(k, t);
}

/* Whether a write could be a sync: a descriptor that is kept has a flag of its own. */
static bool syncs(struct worker *k, int flag)
{
	bool any = flag == O_SYNC || flag == O_DSYNC;

	for (int i = 0; i < OPENS && !flag; i++)
		any |= k->open[i].fd >= 0 &&
		       (k->open[i].flags == O_SYNC || k->open[i].flags == O_DSYNC);
	return any;
}

static void op_write(struct worker *k)
{
	static const int flags[] = { 0, 0, 0, 0, 0, O_APPEND, O_DIRECT, O_SYNC, O_DSYNC };
	int flag = flags[below(k, ARRAY_SIZE(flags) - (k->w->few_syncs ? 2 : 0))];
	uint32_t off, len;
	struct target t;

	any_range(k, &off, &len);
	enter(k, one_journal(k) && syncs(k, flag));
	if (target_open(k, flag, &t)) {
		if (t.o->flags == O_DIRECT) {
			off = off / BLOCK * BLOCK;
			len = max(len / BLOCK * BLOCK, (uint32_t)BLOCK);
		} else if (t.o->flags == O_APPEND) {
			off = t.o->ino->data.size[LIVE];
			len = min(len, FILE_MAX - off);
		}
		if (len)
			write_to(k, &t, off, len,
				 t.o->flags == O_DIRECT	  ? "write directly"
				 : t.o->flags == O_APPEND ? "append"
							  : "write");
		check_target(k, &t, chance(k, 3));
		target_close(k, &t);
	}
	leave(k);
}

/* A page that cannot be read is a signal. */
static _Thread_local sigjmp_buf mapped;

void on_bus_error(int sig)
{
	(void)sig;
	siglongjmp(mapped, 1);
}

static void store(struct worker *k, struct target *t, unsigned char *map, uint32_t size,
		  uint32_t off, uint32_t len, bool sync)
{
	struct inode *ino = t->o->ino;
	char name[PATH];

	note(k, "map %s, store %u bytes at %u%s", target_name(k, t, name, sizeof(name)), len, off,
	     sync ? ", msync" : "");
	if (sigsetjmp(mapped, 1))
		differs(k, "a page of it cannot be read");
	check_bytes(k, name, ino, map, 0, size);
	fill(k, map + off, len);
	lock(k);
	model_write(&k->w->model, ino, map + off, off, len);
	unlock(k);
	if (sync && as_expected(k, 0, result(msync(map, size, MS_SYNC)))) {
		lock(k);
		model_sync(&k->w->model, ino, true);
		unlock(k);
	}
}

static void op_mapped(struct worker *k)
{
	bool sync = chance(k, k->w->few_syncs ? 8 : 2);
	unsigned char *map;
	struct target t;

	enter(k, sync && one_journal(k));
	if (target_open(k, O_NOFOLLOW, &t)) {
		uint32_t size = t.o->ino->data.size[LIVE];

		map = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t.o->fd, 0)
			   : MAP_FAILED;
		if (map != MAP_FAILED) {
			uint32_t off = below(k, size);
			uint32_t len = 1 + below(k, min(size - off, (uint32_t)BLOCK));

			store(k, &t, map, size, off, len,
			      sync && knows_data_sync(k, t.o->ino, off, len));
			munmap(map, size);
			check_target(k, &t, true);
		}
		target_close(k, &t);
	}
	leave(k);
}

static void op_truncate(struct worker *k)
{
	uint32_t size = chance(k, 3) ? 0 : below(k, FILE_MAX);
	struct target t;
	char name[PATH];

	if (chance(k, 4))
		size = size / BLOCK * BLOCK;
	enter(k, false);
	if (target_open(k, 0, &t)) {
		note(k, "truncate %s to %u", target_name(k, &t, name, sizeof(name)), size);
		if (as_expected(k, 0, result(ftruncate(t.o->fd, size)))) {
			lock(k);
			model_truncate(&k->w->model, t.o->ino, size);
			unlock(k);
		}
		check_target(k, &t, chance(k, 2));
		target_close(k, &t);
	}
	leave(k);
}

static void op_fallocate(struct worker *k)
{
	static const int modes[] = { 0,
				     FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_ZERO_RANGE,
				     FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_COLLAPSE_RANGE,
				     FALLOC_FL_INSERT_RANGE };
	int mode = modes[below(k, ARRAY_SIZE(modes))];
	bool shifts = mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE;
	uint32_t off, len;
	struct target t;
	char name[PATH];

	any_range(k, &off, &len);
	enter(k, false);
	if (target_open(k, 0, &t)) {
		note(k, "fallocate %s, mode %x, %u bytes at %u",
		     target_name(k, &t, name, sizeof(name)), mode, len, off);
		/* The kernel does not pass the two that shift to FUSE. */
		if (as_expected(k, shifts ? -EOPNOTSUPP : 0,
				result(fallocate(t.o->fd, mode, off, len)))) {
			lock(k);
			if (mode & ~FALLOC_FL_KEEP_SIZE)
				model_zero(&k->w->model, t.o->ino, off, len,
					   mode & FALLOC_FL_KEEP_SIZE);
			else
				model_allocate(&k->w->model, t.o->ino, off + len,
					       mode & FALLOC_FL_KEEP_SIZE);
			unlock(k);
		}
		check_target(k, &t, true);
		target_close(k, &t);
	}
	leave(k);
}

static void op_copy(struct worker *k)
{
	loff_t from, to;
	uint32_t off, len, off2, len2;
	struct target a, b;
	char name[PATH], name2[PATH];
	ssize_t got;

	any_range(k, &off, &len);
	any_range(k, &off2, &len2);
	enter(k, false);
	if (!target_open(k, O_NOFOLLOW, &a)) {
		leave(k);
		return;
	}
	if (target_open(k, O_NOFOLLOW, &b)) {
		uint32_t size = a.o->ino->data.size[LIVE];

		from = off = size ? off % size : 0;
		to = off2;
		len = min(min(len, (uint32_t)FILE_MAX - off2), size - off);
		note(k, "copy %u bytes at %u of %s to %u of %s", len, off,
		     target_name(k, &a, name, sizeof(name)), off2,
		     target_name(k, &b, name2, sizeof(name2)));
		if (len && a.o->ino != b.o->ino) {
			got = copy_file_range(a.o->fd, &from, b.o->fd, &to, len, 0);
			if (as_expected(k, 0, result(got))) {
				lock(k);
				model_write(&k->w->model, b.o->ino,
					    a.o->ino->data.bytes[LIVE] + off, off2, (uint32_t)got);
				unlock(k);
			}
			check_target(k, &b, true);
		}
		target_close(k, &b);
	}
	target_close(k, &a);
	leave(k);
}

static void op_read(struct worker *k)
{
	static _Thread_local unsigned char buf[FILE_MAX];
	uint32_t off, len;
	struct target t;
	char name[PATH];
	ssize_t got;

	any_range(k, &off, &len);
	enter(k, false);
	if (target_open(k, 0, &t)) {
		uint32_t size = t.o->ino->data.size[LIVE];
		uint32_t want = off < size ? min(len, size - off) : 0;

		if (t.o->flags == O_DIRECT)
			off = want = len = 0;
		note(k, "read %u bytes at %u of %s", len, off,
		     target_name(k, &t, name, sizeof(name)));
		got = pread(t.o->fd, buf, len, off);
		if (as_expected(k, 0, result(got))) {
			if ((uint32_t)got != want)
				differs(k, "it gave %zd bytes, and should give %u", got, want);
			check_bytes(k, name, t.o->ino, buf, off, want);
		}
		target_close(k, &t);
	}
	leave(k);
}

/* Holes may be smaller than what reads as zeros, never larger. */
static void op_seek(struct worker *k)
{
	uint32_t off = below(k, FILE_MAX);
	struct target t;
	char name[PATH];

	enter(k, false);
	if (target_open(k, 0, &t)) {
		const unsigned char *bytes = t.o->ino->data.bytes[LIVE];
		uint32_t size = t.o->ino->data.size[LIVE], end;
		int want = off < size ? 0 : -ENXIO, data, hole;

		note(k, "seek from %u of %s", off, target_name(k, &t, name, sizeof(name)));
		hole = result(lseek(t.o->fd, off, SEEK_HOLE));
		if (as_expected(k, want, hole) && !want &&
		    ((uint32_t)hole < off || (uint32_t)hole > size ||
		     ((uint32_t)hole < size && bytes[hole])))
			differs(k, "there is no hole at %d, size %u", hole, size);
		data = result(lseek(t.o->fd, off, SEEK_DATA));
		if (data != -ENXIO)
			as_expected(k, want, data);
		end = data < 0 ? size : (uint32_t)data;
		if (!want && (end < off || end > size))
			differs(k, "data begins at %d, size %u", data, size);
		for (uint32_t i = off; i < end && !want; i++)
			if (bytes[i])
				differs(k, "data begins at %d, but there is some at %u", data, i);
		target_close(k, &t);
	}
	leave(k);
}

/* ---- names ---- */

static void name_made(struct worker *k, struct place *p, struct inode *ino)
{
	model_make(&k->w->model, p->dir, p->name, ino);
}

static void op_create(struct worker *k)
{
	struct place p = any(k);
	unsigned mode = below(k, 2) ? 0644 : 0600;
	int fd;

	enter(k, false);
	note(k, "create %s", in_mount(k, p.path));
	fd = open(p.path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
	if (as_expected(k, p.ino ? -EEXIST : 0, result(fd))) {
		lock(k);
		name_made(k, &p, model_inode(&k->w->model, S_IFREG, mode));
		unlock(k);
		close(fd);
	}
	check_path(k, p.path, p.dir->entry[LIVE][p.name], false);
	leave(k);
}

static void op_mkdir(struct worker *k)
{
	struct place p = any(k);

	if (strlen(p.path) > strlen(k->w->mnt) + 12)
		return;
	enter(k, false);
	note(k, "mkdir %s", in_mount(k, p.path));
	if (as_expected(k, p.ino ? -EEXIST : 0, result(mkdir(p.path, 0755)))) {
		lock(k);
		name_made(k, &p, model_inode(&k->w->model, S_IFDIR, 0755));
		unlock(k);
	}
	check_path(k, p.path, p.dir->entry[LIVE][p.name], true);
	leave(k);
}

static void op_symlink(struct worker *k)
{
	struct place p = any(k);
	struct inode *ino;
	char target[32];

	enter(k, false);
	snprintf(target, sizeof(target), "to/%u", below(k, 1000000));
	note(k, "symlink %s", in_mount(k, p.path));
	if (as_expected(k, p.ino ? -EEXIST : 0, result(symlink(target, p.path)))) {
		lock(k);
		ino = model_inode(&k->w->model, S_IFLNK, 0777);
		snprintf(ino->target, sizeof(ino->target), "%s", target);
		name_made(k, &p, ino);
		unlock(k);
	}
	check_path(k, p.path, p.dir->entry[LIVE][p.name], true);
	leave(k);
}

static void op_link(struct worker *k)
{
	struct place to = any(k), from;
	int want;

	enter(k, false);
	if (any_that_is(k, 0, &from)) {
		want = to.ino ? -EEXIST : S_ISDIR(from.ino->type) ? -EPERM : 0;
		if (S_ISDIR(from.ino->type) && to.ino)
			want = SOME_ERROR;
		note(k, "link %s to %s", in_mount(k, from.path), in_mount(k, to.path));
		if (as_expected(k, want, result(link(from.path, to.path)))) {
			lock(k);
			model_link(&k->w->model, to.dir, to.name, from.ino);
			unlock(k);
		}
		check_path(k, to.path, to.dir->entry[LIVE][to.name], true);
	}
	leave(k);
}

static void op_remove(struct worker *k)
{
	struct place p;
	bool dir;
	int want;

	enter(k, false);
	if (any_that_is(k, 0, &p)) {
		dir = S_ISDIR(p.ino->type) != chance(k, 16);
		want = dir != !!S_ISDIR(p.ino->type)   ? dir ? -ENOTDIR : -EISDIR
		       : dir && !model_is_empty(p.ino) ? -ENOTEMPTY
						       : 0;
		note(k, "%s %s", dir ? "rmdir" : "unlink", in_mount(k, p.path));
		if (as_expected(k, want, result(dir ? rmdir(p.path) : unlink(p.path)))) {
			lock(k);
			model_remove(&k->w->model, p.dir, p.name);
			unlock(k);
		}
		check_path(k, p.path, p.dir->entry[LIVE][p.name], false);
	}
	leave(k);
}

/* What the model says to a rename; the kernel's order of errors is not ours to know. */
static int rename_want(const struct place *a, const struct place *b, unsigned flags)
{
	bool swap = flags & RENAME_EXCHANGE;

	if (!a->ino || (swap && !b->ino) || (b->ino && (flags & RENAME_NOREPLACE)))
		return SOME_ERROR;
	if (S_ISDIR(a->ino->type) && model_is_below(a->ino, b->dir))
		return SOME_ERROR;
	if (b->ino && S_ISDIR(b->ino->type) && model_is_below(b->ino, a->dir))
		return SOME_ERROR;
	if (a->ino == b->ino || swap || !b->ino)
		return 0;
	if (S_ISDIR(a->ino->type) != S_ISDIR(b->ino->type))
		return SOME_ERROR;
	return S_ISDIR(b->ino->type) && !model_is_empty(b->ino) ? SOME_ERROR : 0;
}

static void model_renamed(struct worker *k, struct place *a, struct place *b, unsigned flags)
{
	struct model *m = &k->w->model;

	lock(k);
	if (a->ino == b->ino) {
		; /* two names of one file stay */
	} else if (flags & RENAME_EXCHANGE) {
		model_swap(m, a->dir, a->name, b->dir, b->name);
	} else {
		model_rename(m, a->dir, a->name, b->dir, b->name);
		if (flags & RENAME_WHITEOUT)
			model_make(m, a->dir, a->name, model_inode(m, S_IFCHR, 0));
	}
	unlock(k);
}

static void op_rename(struct worker *k)
{
	static const unsigned all[] = {
		0, 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT
	};
	unsigned flags = all[below(k, ARRAY_SIZE(all))];
	struct place a, b = any(k);

	if (!any_that_is(k, 0, &a))
		return;
	if (chance(k, 3) && !any_that_is(k, a.ino->type, &b))
		return;
	/* Directories move in one order, whosever they are. */
	enter(k, a.dir != b.dir && (S_ISDIR(a.ino->type) || (flags & RENAME_EXCHANGE)));
	note(k, "rename %s to %s, flags %x", in_mount(k, a.path), in_mount(k, b.path), flags);
	if (as_expected(k, rename_want(&a, &b, flags),
			result(syscall(SYS_renameat2, AT_FDCWD, a.path, AT_FDCWD, b.path, flags))))
		model_renamed(k, &a, &b, flags);
	/* What was renamed is checked by the directories, whose paths may have changed. */
	if (!S_ISDIR(a.ino->type) && !(b.ino && S_ISDIR(b.ino->type))) {
		check_path(k, a.path, a.dir->entry[LIVE][a.name], false);
		check_path(k, b.path, b.dir->entry[LIVE][b.name], true);
	}
	leave(k);
}

static void op_tmpfile(struct worker *k)
{
	struct place p = any(k);
	struct inode *ino = NULL;
	char path[64];
	int fd;

	enter(k, false);
	note(k, "O_TMPFILE in %s, then linkat to %s", in_mount(k, p.dir_path), in_mount(k, p.path));
	fd = open(p.dir_path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	/* Not every libfuse passes it on. */
	if (!(fd < 0 && errno == EOPNOTSUPP) && as_expected(k, 0, result(fd))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (as_expected(
			    k, p.ino ? -EEXIST : 0,
			    result(linkat(AT_FDCWD, path, AT_FDCWD, p.path, AT_SYMLINK_FOLLOW)))) {
			lock(k);
			ino = model_inode(&k->w->model, S_IFREG, 0644);
			model_link(&k->w->model, p.dir, p.name, ino);
			unlock(k);
		}
		close(fd);
		check_path(k, p.path, p.dir->entry[LIVE][p.name], true);
	}
	leave(k);
}

/* ---- attributes ---- */

static void op_attr(struct worker *k)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { 0 } };
	struct attr a;
	struct place p;
	int got, what = (int)below(k, 3);

	enter(k, false);
	if (any_that_is(k, 0, &p) && !S_ISLNK(p.ino->type) && !S_ISCHR(p.ino->type)) {
		a = p.ino->attr[LIVE];
		if (what == 0) {
			a.mode = 0700 | below(k, 0100);
			note(k, "chmod %s %o", in_mount(k, p.path), a.mode);
			got = result(chmod(p.path, a.mode));
		} else if (what == 1) {
			a.uid = below(k, 3);
			a.gid = below(k, 3);
			note(k, "chown %s %u:%u", in_mount(k, p.path), a.uid, a.gid);
			got = result(chown(p.path, a.uid, a.gid));
		} else {
			a.mtime = times[1].tv_sec = 1000000000 + (time_t)below(k, 1000000);
			a.mtime_known = true;
			note(k, "utimens %s %lld", in_mount(k, p.path), (long long)a.mtime);
			got = result(utimensat(AT_FDCWD, p.path, times, 0));
		}
		if (as_expected(k, 0, got)) {
			lock(k);
			model_attr(&k->w->model, p.ino, &a);
			unlock(k);
		}
		check_path(k, p.path, p.ino, false);
	}
	leave(k);
}

static void op_xattr(struct worker *k)
{
	int which = (int)below(k, XATTRS), flags = (int)below(k, 4), want, got;
	struct value v = { .len = chance(k, 3) ? -1 : (int)below(k, VALUE) };
	struct place p;
	bool there;

	for (int i = 0; i < v.len; i++)
		v.bytes[i] = (char)below(k, 256);
	flags = flags == 1 ? XATTR_CREATE : flags == 2 ? XATTR_REPLACE : 0;
	enter(k, false);
	if (any_that_is(k, chance(k, 4) ? S_IFDIR : S_IFREG, &p)) {
		there = p.ino->xattr[LIVE][which].len >= 0;
		if (v.len < 0) {
			note(k, "removexattr %s %s", in_mount(k, p.path), xattr_names[which]);
			want = there ? 0 : -ENODATA;
			got = result(removexattr(p.path, xattr_names[which]));
		} else {
			note(k, "setxattr %s %s, %d bytes, flags %d", in_mount(k, p.path),
			     xattr_names[which], v.len, flags);
			want = there && flags == XATTR_CREATE	  ? -EEXIST
			       : !there && flags == XATTR_REPLACE ? -ENODATA
								  : 0;
			got = result(setxattr(p.path, xattr_names[which], v.bytes, (size_t)v.len,
					      flags));
		}
		if (as_expected(k, want, got)) {
			lock(k);
			model_xattr(&k->w->model, p.ino, which, &v);
			unlock(k);
		}
		check_xattrs(k, p.path, p.ino);
	}
	leave(k);
}

/* ---- syncing, and looking ---- */

static void sync_target(struct worker *k, struct target *t, bool data_only)
{
	char name[PATH];

	note(k, "%s %s", data_only ? "fdatasync" : "fsync", target_name(k, t, name, sizeof(name)));
	if (as_expected(k, 0, result(data_only ? fdatasync(t->o->fd) : fsync(t->o->fd)))) {
		lock(k);
		model_sync(&k->w->model, t->o->ino, data_only);
		unlock(k);
	}
}

static void op_fsync(struct worker *k)
{
	bool data_only = chance(k, 3);
	struct target t;

	if (k->w->few_syncs && !chance(k, 8))
		return;
	enter(k, one_journal(k));
	if (target_open(k, 0, &t)) {
		data_only = data_only && knows_data_sync(k, t.o->ino, 0, 0);
		sync_target(k, &t, data_only);
		target_close(k, &t);
	}
	leave(k);
}

static void op_fsync_dir(struct worker *k)
{
	bool data_only = chance(k, 4);
	struct place p = any(k);

	if (k->w->few_syncs && !chance(k, 4))
		return;
	enter(k, one_journal(k));
	auto_fd fd = open(p.dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	note(k, "%s directory %s", data_only ? "fdatasync" : "fsync", in_mount(k, p.dir_path));
	if (as_expected(k, 0, result(fd)) &&
	    as_expected(k, 0, result(data_only ? fdatasync(fd) : fsync(fd)))) {
		lock(k);
		model_sync(&k->w->model, p.dir, data_only);
		unlock(k);
	}
	leave(k);
}

static void op_look(struct worker *k)
{
	struct place p = any(k);

	enter(k, false);
	note(k, "look at %s", in_mount(k, p.path));
	check_path(k, p.path, p.ino, true);
	leave(k);
}

/* The kernel forgets the names it knows here, and with them inodes. */
static void op_remount(struct worker *k)
{
	if (!chance(k, 4))
		return;
	enter(k, false);
	note(k, "the kernel forgets names");
	mount(NULL, k->w->mnt, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, NULL);
	leave(k);
}

static const struct {
	void (*fn)(struct worker *k);
	unsigned weight;
} operations[] = {
	{ op_open, 8 },	     { op_write, 24 },	{ op_mapped, 4 },    { op_truncate, 7 },
	{ op_fallocate, 8 }, { op_copy, 3 },	{ op_read, 4 },	     { op_seek, 3 },
	{ op_create, 12 },   { op_mkdir, 5 },	{ op_symlink, 3 },   { op_link, 5 },
	{ op_remove, 6 },    { op_rename, 12 }, { op_tmpfile, 1 },   { op_attr, 6 },
	{ op_xattr, 6 },     { op_fsync, 7 },	{ op_fsync_dir, 4 }, { op_look, 4 },
	{ op_remount, 1 },
};

static const struct {
	const char *op;
	void (*fn)(struct worker *k);
} by_name[] = {
	{ "write", op_write },	   { "create", op_create },	{ "mkdir", op_mkdir },
	{ "symlink", op_symlink }, { "link", op_link },		{ "unlink", op_remove },
	{ "rmdir", op_remove },	   { "rename", op_rename },	{ "truncate", op_truncate },
	{ "chmod", op_attr },	   { "chown", op_attr },	{ "fallocate", op_fallocate },
	{ "utimens", op_attr },	   { "setxattr", op_xattr },	{ "open", op_open },
	{ "read", op_read },	   { "removexattr", op_xattr },
};

const char *any_operation(struct worker *k, void (**fn)(struct worker *k))
{
	uint32_t i = below(k, ARRAY_SIZE(by_name));

	*fn = by_name[i].fn;
	return by_name[i].op;
}

void work_once(struct worker *k)
{
	unsigned all = 0, at;

	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		all += operations[i].weight;
	at = below(k, all);
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		if (at < operations[i].weight) {
			operations[i].fn(k);
			return;
		}
		at -= operations[i].weight;
	}
}
