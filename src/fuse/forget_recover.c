/* SPDX-License-Identifier: MIT */
/*
 * forget_recover.c - what a server that was killed left in ROOT: its journal, and its stash. What
 * was pending is undone, as a power cut would have it.
 *
 * R1: it may be killed itself, at any time; whoever comes next goes on where it was. What is undone
 *     is marked in the journal at once (forget_log.c), and the journal goes at the end.
 * R2: if something cannot be undone, nothing before it is either: nobody finds half of a ROOT
 *     without a word.
 *
 * The journal names directories by their number. Where they are is found by walking ROOT; that
 * needs no privilege, and no descriptor for each of them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "core/bytes.h"
#include "fuse/forget_impl.h"

enum { RECORD_HEAD = JOURNAL_HEAD, RECORD_MAX = 1 << 22, DEPTH_MAX = 2000, PLACES_MIN = 256 };

/* ---- where everything is ---- */

struct place {
	uint64_t ino, dir; /* ino 0: empty; dir 0: in the stash */
	char *name;	   /* NULL: it is not there any more */
};

/* An inode has a place for each of its names. */
struct places {
	struct undo_place undo;
	int root;
	uint64_t root_ino;
	struct place *v;
	size_t n, cap; /* cap is a power of two */
};

static size_t first_place(const struct places *p, uint64_t ino)
{
	return (ino * 0x9e3779b97f4a7c15ULL >> 16) & (p->cap - 1);
}

static size_t next_place(const struct places *p, size_t i)
{
	return (i + 1) & (p->cap - 1);
}

static void places_grow(struct places *p)
{
	struct place *old = p->v;
	size_t n = p->cap, to;

	p->cap *= 2;
	p->v = xcalloc(p->cap, sizeof(*p->v));
	for (size_t i = 0; i < n; i++) {
		if (!old[i].ino)
			continue;
		for (to = first_place(p, old[i].ino); p->v[to].ino;)
			to = next_place(p, to);
		p->v[to] = old[i];
	}
	free(old);
}

static struct place *find_place(struct places *p, uint64_t ino, uint64_t dir, const char *name)
{
	for (size_t i = first_place(p, ino); p->v[i].ino; i = next_place(p, i))
		if (p->v[i].ino == ino && p->v[i].dir == dir && p->v[i].name &&
		    streq(p->v[i].name, name))
			return &p->v[i];
	return NULL;
}

void places_add(struct places *p, uint64_t ino, uint64_t dir, const char *name)
{
	size_t i;

	if (ino == p->root_ino || !ino || find_place(p, ino, dir, name))
		return;
	if (p->n * 2 >= p->cap)
		places_grow(p);
	for (i = first_place(p, ino); p->v[i].ino && (p->v[i].ino != ino || p->v[i].name);)
		i = next_place(p, i);
	p->n += !p->v[i].ino;
	p->v[i] = (struct place){ ino, dir, xstrdup(name) };
}

struct places *places_new(int root)
{
	struct places *p = xcalloc(1, sizeof(*p));
	struct stat st = { 0 };

	p->root = root;
	p->root_ino = fstat(root, &st) ? 0 : st.st_ino;
	p->cap = PLACES_MIN;
	p->v = xcalloc(p->cap, sizeof(*p->v));
	return p;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->cap; i++)
		free(p->v[i].name);
	free(p->v);
	free(p);
}

void places_set_root(struct places *p, uint64_t ino)
{
	p->root_ino = ino;
}

/* From the root down, a directory after the other; names change while we undo. */
static int open_place(struct places *p, uint64_t ino, int flags, int depth)
{
	int fd = -ENOENT;

	if (ino == p->root_ino)
		return fcntl(p->root, F_DUPFD_CLOEXEC, 0);
	for (size_t i = first_place(p, ino); fd < 0 && depth && p->v[i].ino; i = next_place(p, i)) {
		struct place at = p->v[i];

		if (at.ino != ino || !at.name)
			continue;
		auto_fd dir = at.dir ? open_place(p, at.dir, O_PATH | O_DIRECTORY, depth - 1)
				     : fcntl(p->undo.stash, F_DUPFD_CLOEXEC, 0);
		if (dir < 0)
			continue;
		fd = openat(dir, at.name, flags | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	return fd;
}

static int places_open(struct undo_place *u, uint64_t ino)
{
	return open_place(container_of(u, struct places, undo), ino, O_PATH, DEPTH_MAX);
}

static void places_named(struct undo_place *u, uint64_t ino, uint64_t dir, const char *name,
			 bool made)
{
	struct places *p = container_of(u, struct places, undo);
	struct place *at;

	if (made) {
		places_add(p, ino, dir, name);
		return;
	}
	at = find_place(p, ino, dir, name);
	if (at)
		free(steal(at->name));
}

struct undo_place *places_undo(struct places *p, int stash, bool copy)
{
	p->undo = (struct undo_place){
		.stash = stash, .copy = copy, .open = places_open, .named = places_named
	};
	return &p->undo;
}

/* Below ROOT there may be other file systems, where the same numbers mean other things. */
static int walk(struct places *p, int at, uint64_t dir_ino, dev_t dev, int depth)
{
	DIR *d = fdopendir(at);
	struct dirent *e;
	struct stat st;

	if (!d) {
		close(at);
		return -errno;
	}
	while ((e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, ".."))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_dev != dev)
			continue;
		places_add(p, st.st_ino, dir_ino, e->d_name);
		if (!S_ISDIR(st.st_mode) || !depth)
			continue;
		int fd = openat(dirfd(d), e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			walk(p, fd, st.st_ino, dev, depth - 1);
	}
	closedir(d);
	return 0;
}

int places_walk(struct places *p, struct err *err)
{
	int fd = openat(p->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		int rc = err_set(err, -errno, "cannot read the directory: %m");

		util_close(fd);
		return rc;
	}
	return walk(p, fd, p->root_ino, st.st_dev, DEPTH_MAX);
}

/* ---- the journal ---- */

struct journal {
	struct vec_of(struct undo) ops; /* in order; kind -1 once it is settled */
	uint64_t last;
};

static void settle_one(struct journal *j, uint64_t seq)
{
	size_t from = 0, to = j->ops.n;

	while (from < to) { /* in order of seq */
		size_t mid = from + (to - from) / 2;

		if (j->ops.v[mid].seq < seq)
			from = mid + 1;
		else
			to = mid;
	}
	if (from < j->ops.n && j->ops.v[from].seq == seq) {
		undo_release(&j->ops.v[from]);
		j->ops.v[from].seq = seq;
		j->ops.v[from].ino = UINT64_MAX; /* settled */
	}
}

static bool is_settled(const struct undo *u)
{
	return u->ino == UINT64_MAX;
}

static void read_record(struct journal *j, const unsigned char *body, size_t len, uint64_t at)
{
	struct undo u;

	if (body[0] == 'I') {
		if (undo_decode(body + 1, len - 1, &u) < 0)
			return;
		u.at = at;
		if (u.seq <= j->last) { /* not ours */
			undo_release(&u);
			return;
		}
		j->last = u.seq;
		vec_push(&j->ops, u);
		return;
	}
	for (size_t i = 1; i + 8 <= len; i += 8)
		settle_one(j, get_le64(body + i));
}

/* Up to the first record that is not whole: what comes after it never happened. */
static void read_journal(struct journal *j, unsigned char *data, size_t size)
{
	size_t at = 0;

	while (size - at > RECORD_HEAD) {
		size_t len = get_le32(data + at);
		unsigned char *body = data + at + RECORD_HEAD;

		if (!len || len > RECORD_MAX || len > size - at - RECORD_HEAD)
			return;
		bool undone = body[0] == 'U';
		if (undone)
			body[0] = 'I';
		if (hash64(body, len) != get_le64(data + at + 4))
			return;
		read_record(j, body, len, at);
		if (undone && j->ops.n && vec_last(&j->ops).at == at)
			settle_one(j, j->last);
		at += RECORD_HEAD + len;
	}
}

static void journal_release(struct journal *j)
{
	for (size_t i = 0; i < j->ops.n; i++)
		undo_release(&j->ops.v[i]);
	vec_release(&j->ops);
}

static int undo_journal(struct journal *j, int fd, int root_fd, int stash, const char *root,
			struct err *err)
{
	struct places *p = places_new(root_fd);
	struct undo_place *place = places_undo(p, stash, false);
	int rc = places_walk(p, err), one = 0;
	size_t left = 0;

	for (size_t i = j->ops.n; !rc && i-- > 0;) {
		if (is_settled(&j->ops.v[i]))
			continue;
		if (!one)
			one = undo_apply(&j->ops.v[i], place);
		if (!one)
			one = io_pwrite_full(fd, "U", 1, (off_t)j->ops.v[i].at + RECORD_HEAD);
		left += !!one;
	}
	places_free(p);
	if (!rc && one)
		rc = err_set(err, one,
			     "%zu operations that were pending in %s cannot be undone: %s; mend "
			     "that, or remove %s/" STASH_NAME " to take it as it is",
			     left, root, strerror(-one), root);
	return rc;
}

/* ---- clearing away ---- */

int remove_tree(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct dirent *e;
	DIR *d;

	if (fd < 0)
		return unlinkat(dir, name, 0) && errno != ENOENT ? -errno : 0;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while (!rc && (e = readdir(d)))
		if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
			rc = remove_tree(fd, e->d_name);
	closedir(d);
	if (!rc && unlinkat(dir, name, AT_REMOVEDIR))
		rc = -errno;
	return rc;
}

/* What the journal does not need: removed things that are durable, copies that were not finished.
 */
static void clear_stash(int stash)
{
	int fd = openat(stash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		util_close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] == 'e' || !strncmp(e->d_name, "new-", 4) ||
		    !strncmp(e->d_name, "journal", 7) || !strncmp(e->d_name, "rollback.", 9))
			if (remove_tree(stash, e->d_name))
				continue;
	closedir(d);
}

/*
 * Whoever may write to ROOT can put a stash there, with a journal that says what he likes: what is
 * not our own is not believed.
 */
int stash_check(int stash, const char *root, struct err *err)
{
	struct stat st;

	if (fstat(stash, &st))
		return err_set(err, -errno, "cannot look at %s/" STASH_NAME ": %m", root);
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, -EPERM,
			       "%s/" STASH_NAME " is not this user's own (user %u, mode %o); if it "
			       "is not needed, remove it",
			       root, (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
	return 0;
}

static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

/* Gives how many operations were undone, or -errno. */
static int recover_journal(int root_fd, int stash, const char *root, struct err *err)
{
	auto_fd fd = openat(stash, "journal", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_strbuf text = STRBUF_INIT;
	struct journal j = { 0 };
	struct stat st;
	int n = 0, rc = 0;
	ssize_t got;
	char *to;

	if (fd < 0)
		return errno == ENOENT ? 0
				       : err_set(err, -errno,
						 "cannot open %s/" STASH_NAME "/journal: %m", root);
	if (fstat(fd, &st) || !is_ours(&st) || st.st_size <= 0)
		return 0;
	to = strbuf_grow(&text, (size_t)st.st_size);
	got = io_pread_full(fd, to, (size_t)st.st_size, 0);
	if (got < 0)
		return err_set(err, (int)got, "cannot read %s/" STASH_NAME "/journal", root);
	read_journal(&j, (unsigned char *)to, (size_t)got);
	for (size_t i = 0; i < j.ops.n; i++)
		n += !is_settled(&j.ops.v[i]);
	if (n)
		rc = undo_journal(&j, fd, root_fd, stash, root, err);
	journal_release(&j);
	return rc ? rc : n;
}

int recover_locked(int root_fd, const char *root, struct err *err)
{
	auto_fd stash =
		openat(root_fd, STASH_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc, undone;

	if (stash < 0)
		return errno == ENOENT
			       ? 0
			       : err_set(err, -errno, "cannot open %s/" STASH_NAME ": %m", root);
	rc = stash_check(stash, root, err);
	if (rc)
		return rc;
	undone = recover_journal(root_fd, stash, root, err);
	if (undone < 0)
		return undone;
	rc = snapshot_finish_rollback(root_fd, stash, root, err);
	if (rc < 0)
		return rc;
	clear_stash(stash);
	unlinkat(root_fd, STASH_NAME, AT_REMOVEDIR); /* if it has no snapshots */
	return undone || rc ? 1 : 0;
}

int root_lock(int root_fd, const char *root, bool wait, struct err *err)
{
	/* It may be for a moment only, by a guardian that is about to clear up. */
	for (int i = 0; i < 100; i++) {
		if (!flock(root_fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK || !wait)
			break;
		util_sleep_ms(20);
	}
	return err_set(err, -EBUSY, "%s is in use by another mount; unmount that one first", root);
}

int forget_recover(const char *root, struct err *err)
{
	auto_fd fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", root);
	rc = root_lock(fd, root, true, err);
	return rc ? rc : recover_locked(fd, root, err);
}
