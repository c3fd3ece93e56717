/* SPDX-License-Identifier: MIT */
/*
 * forget_recover.c - undoes the pending operations of a killed server in ROOT, by its journal and
 * its stash. The result is that of a power cut.
 *
 * R1: recovery may be killed at any time; the next one goes on from there. An undone operation is
 *     marked in the journal at once (forget_log.c), and the journal is removed in the end.
 * R2: if an operation cannot be undone, no earlier one is: ROOT is not left half undone without an
 *     error.
 *
 * R3: a directory made anew keeps its number in the journal, also for the next recovery: the
 *     journal has its new number (forget_log.c). The new number may be any free one, even one by
 *     which the journal means another removed directory.
 *
 * The journal names directories by their numbers. Their places are found by walking ROOT; that
 * needs no privilege, and no descriptor for each of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/names_in.h"
#include "core/bytes.h"
#include "forget/forget_impl.h"

enum { RECORD_HEAD = JOURNAL_HEAD, OPERATION_HEAD = 9, RECORD_MAX = 1 << 22, PLACES_MIN = 256 };

/* ---- the places of inodes ---- */

struct known_place {
	uint64_t ino, dir; /* ino 0: empty; dir 0: in the stash */
	char *name;	   /* NULL: not there any more */
};

/* A directory that was made anew: its present number, and that in the journal. */
struct anew {
	uint64_t now, was;
};

/* The places of all inodes, one for each name. */
struct recover_places {
	struct undo_place undo;
	struct vec_of(struct anew) anew; /* for a number with several, the last one counts */
	int root;
	uint64_t root_ino;
	struct known_place *v;
	size_t n, cap; /* cap is a power of two */
};

static size_t first_place(const struct recover_places *p, uint64_t ino)
{
	return (ino * 0x9e3779b97f4a7c15ULL >> 16) & (p->cap - 1);
}

static size_t next_place(const struct recover_places *p, size_t i)
{
	return (i + 1) & (p->cap - 1);
}

static void places_grow(struct recover_places *p)
{
	struct known_place *old = p->v;
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

static struct known_place *find_place(struct recover_places *p, uint64_t ino, uint64_t dir,
				      const char *name)
{
	for (size_t i = first_place(p, ino); p->v[i].ino; i = next_place(p, i))
		if (p->v[i].ino == ino && p->v[i].dir == dir && p->v[i].name &&
		    streq(p->v[i].name, name))
			return &p->v[i];
	return NULL;
}

void recover_places_add(struct recover_places *p, uint64_t ino, uint64_t dir, const char *name)
{
	size_t i;

	if (ino == p->root_ino || !ino || find_place(p, ino, dir, name))
		return;
	if (p->n * 2 >= p->cap)
		places_grow(p);
	for (i = first_place(p, ino); p->v[i].ino && (p->v[i].ino != ino || p->v[i].name);)
		i = next_place(p, i);
	p->n += !p->v[i].ino;
	p->v[i] = (struct known_place){ ino, dir, xstrdup(name) };
}

struct recover_places *recover_places_new(int root)
{
	struct recover_places *p = xcalloc(1, sizeof(*p));
	struct stat st = { 0 };

	p->root = root;
	p->root_ino = fstat(root, &st) ? 0 : st.st_ino;
	p->cap = PLACES_MIN;
	p->v = xcalloc(p->cap, sizeof(*p->v));
	return p;
}

void recover_places_free(struct recover_places *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->cap; i++)
		free(p->v[i].name);
	free(p->v);
	vec_release(&p->anew);
	free(p);
}

void recover_places_set_root(struct recover_places *p, uint64_t ino)
{
	p->root_ino = ino;
}

/* The names from `ino` up to the root or the stash. */
struct way_up {
	struct vec_of(const char *) names; /* the last one first */
	int from;
};

static const struct known_place *place_of(const struct recover_places *p, uint64_t ino)
{
	for (size_t i = first_place(p, ino); p->v[i].ino; i = next_place(p, i))
		if (p->v[i].ino == ino && p->v[i].name)
			return &p->v[i];
	return NULL;
}

/* Finds the way up; false if there is none. A list that is wrong may lead in a circle. */
static bool find_way(const struct recover_places *p, uint64_t ino, struct way_up *w)
{
	while (ino && ino != p->root_ino) {
		const struct known_place *at = place_of(p, ino);

		if (!at || w->names.n > p->n)
			return false;
		vec_push(&w->names, at->name);
		ino = at->dir;
	}
	w->from = ino ? p->root : p->undo.stash;
	return true;
}

/* Opens a path from the root down, one directory after the other: names change while we undo. */
static int open_way(const struct way_up *w, const char *last)
{
	int fd = fcntl(w->from, F_DUPFD_CLOEXEC, 0);

	for (size_t i = w->names.n; fd >= 0 && i-- > 0;) {
		auto_fd dir = fd;

		fd = openat(dir, w->names.v[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd >= 0 && last) {
		auto_fd dir = fd;

		fd = openat(dir, last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* Opens an inode by any of its names, as some may be gone. */
static int open_place(const struct recover_places *p, uint64_t ino)
{
	int fd = -ENOENT;

	if (ino == p->root_ino)
		return fcntl(p->root, F_DUPFD_CLOEXEC, 0);
	for (size_t i = first_place(p, ino); fd < 0 && p->v[i].ino; i = next_place(p, i)) {
		struct way_up w = { 0 };

		if (p->v[i].ino == ino && p->v[i].name && find_way(p, p->v[i].dir, &w))
			fd = open_way(&w, p->v[i].name);
		vec_release(&w.names);
	}
	return fd;
}

static int places_open(struct undo_place *u, uint64_t ino)
{
	return open_place(container_of(u, struct recover_places, undo), ino);
}

static void places_named(struct undo_place *u, uint64_t ino, uint64_t dir, const char *name,
			 bool made)
{
	struct recover_places *p = container_of(u, struct recover_places, undo);
	struct known_place *at;

	if (made) {
		recover_places_add(p, ino, dir, name);
		return;
	}
	at = find_place(p, ino, dir, name);
	if (at)
		free(steal(at->name));
}

/*
 * Returns the journal's number of a directory, or 0. A directory with the number of a removed one,
 * which has another number now, was made anew by a recovery that was killed before it could note
 * that, and is empty.
 */
static uint64_t number_of(const struct recover_places *p, uint64_t ino)
{
	uint64_t number = ino;

	for (size_t i = p->anew.n; i-- > 0;) {
		if (p->anew.v[i].now == ino)
			return p->anew.v[i].was;
		if (p->anew.v[i].was == ino)
			number = 0;
	}
	return number;
}

static uint64_t places_number(struct undo_place *u, uint64_t ino)
{
	return number_of(container_of(u, struct recover_places, undo), ino);
}

/* Notes a directory made anew. If it existed before, it was found under its present number. */
static void places_remade(struct undo_place *u, uint64_t ino, int fd, uint64_t dir,
			  const char *name)
{
	struct recover_places *p = container_of(u, struct recover_places, undo);

	(void)fd;
	places_named(u, number_of(p, u->made_anew), dir, name, false);
	vec_push(&p->anew, (struct anew){ u->made_anew, ino });
	places_named(u, ino, dir, name, true);
}

/* In a copy inodes have other numbers, and no operation is undone twice. */
struct undo_place *recover_places_undo(struct recover_places *p, int stash, bool copy)
{
	p->undo = (struct undo_place){
		.stash = stash,
		.open = places_open,
		.named = places_named,
		.remade = copy ? NULL : places_remade,
		.number = copy ? NULL : places_number,
	};
	return &p->undo;
}

/* Directories to be read, by number. */
struct dirs_left vec_of(uint64_t);

/* Reads one directory, without other file systems in it: their numbers mean other inodes. */
static int walk_one(struct recover_places *p, uint64_t dir_ino, dev_t dev, struct dirs_left *todo)
{
	auto_fd at = open_place(p, dir_ino);
	auto_names_in d = at < 0 ? NULL : names_in(at, ".");
	struct stat st;

	if (!d)
		return at < 0 ? at : -errno;
	for (struct dirent *e; (e = names_next(d));) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_dev != dev)
			continue;
		uint64_t ino = S_ISDIR(st.st_mode) ? number_of(p, st.st_ino) : st.st_ino;
		/* A directory that is bound inside of itself is read once. */
		if (S_ISDIR(st.st_mode) && ino && ino != p->root_ino && !place_of(p, ino))
			vec_push(todo, ino);
		recover_places_add(p, ino, dir_ino, e->d_name);
	}
	return 0;
}

/*
 * Reads all directories, with one open at a time at any depth. A directory that may not be read was
 * not changed.
 */
static int places_walk(struct recover_places *p, struct err *err)
{
	auto_vec struct dirs_left todo = { 0 };
	struct stat st;
	int rc;

	if (fstat(p->root, &st))
		return err_set(err, -errno, "cannot look at the directory: %m");
	vec_push(&todo, p->root_ino);
	rc = walk_one(p, p->root_ino, st.st_dev, &todo);
	if (rc)
		err_set(err, rc, "cannot read the directory: %s", strerror(-rc));
	for (size_t i = 1; !rc && i < todo.n; i++) {
		int one = walk_one(p, todo.v[i], st.st_dev, &todo);

		if (one && one != -EACCES && one != -EPERM)
			rc = err_set(err, one, "cannot read a directory below: %s", strerror(-one));
	}
	return rc;
}

/* ---- the journal ---- */

struct journal {
	struct vec_of(struct undo) ops;	 /* in order */
	struct vec_of(struct anew) anew; /* operations undone already, in the same order */
	uint64_t last;
};

static void settle_one(struct journal *j, uint64_t seq)
{
	size_t i = first_where(k, j->ops.n, j->ops.v[k].seq >= seq);

	if (i < j->ops.n && j->ops.v[i].seq == seq) {
		undo_release(&j->ops.v[i]);
		j->ops.v[i].seq = seq;
		j->ops.v[i].ino = UINT64_MAX; /* settled */
	}
}

static bool is_settled(const struct undo *u)
{
	return u->ino == UINT64_MAX;
}

/* Reads an operation; if it was undone, the number of the directory that it made counts. */
static void read_operation(struct journal *j, const unsigned char *body, size_t len, uint64_t at,
			   const uint64_t *undone)
{
	struct undo u;

	if (undo_decode(body, len, &u) < 0)
		return;
	u.at = at;
	if (u.seq <= j->last) { /* not of this journal */
		undo_release(&u);
		return;
	}
	j->last = u.seq;
	vec_push(&j->ops, u);
	if (!undone)
		return;
	if (u.remade)
		vec_push(&j->anew,
			 (struct anew){ *undone, u.kind == PENDING_RENAME ? u.other : u.ino });
	settle_one(j, u.seq);
}

/* Reads the journal up to the first incomplete record: operations after that were never done. */
static void read_journal(struct journal *j, unsigned char *data, size_t size)
{
	size_t at = 0;

	while (size - at > RECORD_HEAD) {
		size_t len = get_le32(data + at);
		unsigned char *body = data + at + RECORD_HEAD;

		if (!len || len > RECORD_MAX || len > size - at - RECORD_HEAD)
			return;
		bool undone = body[0] == 'U', operation = undone || body[0] == 'I';
		uint64_t anew = 0;
		if (operation && len > OPERATION_HEAD) { /* the field that the hash leaves out */
			anew = get_le64(body + 1);
			body[0] = 'I';
			put_le64(body + 1, 0);
		}
		if (hash64(body, len) != get_le64(data + at + 4))
			return;
		if (operation && len > OPERATION_HEAD)
			read_operation(j, body + OPERATION_HEAD, len - OPERATION_HEAD, at,
				       undone ? &anew : NULL);
		for (size_t i = 1; !operation && i + 8 <= len; i += 8)
			settle_one(j, get_le64(body + i));
		at += RECORD_HEAD + len;
	}
}

static void journal_release(struct journal *j)
{
	for (size_t i = 0; i < j->ops.n; i++)
		undo_release(&j->ops.v[i]);
	vec_release(&j->ops);
	vec_release(&j->anew);
}

static int undo_journal(struct journal *j, int fd, int root_fd, int stash, const char *root,
			struct err *err)
{
	struct recover_places *p = recover_places_new(root_fd);
	struct undo_place *place = recover_places_undo(p, stash, false);
	size_t left = 0;
	int rc, one = 0;

	for (size_t i = j->anew.n; i-- > 0;) /* in the order of undoing */
		vec_push(&p->anew, j->anew.v[i]);
	rc = places_walk(p, err);
	for (size_t i = j->ops.n; !rc && i-- > 0;) {
		if (is_settled(&j->ops.v[i]))
			continue;
		if (!one)
			one = undo_apply(&j->ops.v[i], place);
		if (!one)
			one = undo_mark(&j->ops.v[i], place, fd);
		left += !!one;
	}
	recover_places_free(p);
	if (!rc && one)
		rc = err_set(err, one,
			     "%zu operations that were pending in %s cannot be undone: %s; mend "
			     "that, or remove %s/" STASH_NAME " to take it as it is",
			     left, root, strerror(-one), root);
	return rc;
}

/* ---- clearing away ---- */

/*
 * Removes the entries of `d`. Returns 1 if all are removed; 0 if a directory is not empty, whose
 * name is then in `name`.
 */
static int empty_dir(DIR *d, char name[NAME_MAX + 1])
{
	struct dirent *e;

	while ((e = names_next(d))) {
		if (!unlinkat(dirfd(d), e->d_name, 0) || errno == ENOENT)
			continue;
		if (errno != EISDIR)
			return -errno;
		if (!unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR))
			continue;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		snprintf(name, NAME_MAX + 1, "%s", e->d_name);
		return 0;
	}
	return 1;
}

/* Opens a directory to empty it; one of ours may have a mode that does not let us in. */
static int open_to_empty(int dir, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);

	if (fd < 0 && errno == EACCES && !fchmodat(dir, name, 0700, 0))
		fd = openat(dir, name, flags);
	if (fd >= 0)
		fchmod(fd, 0700);
	return fd < 0 ? -errno : fd;
}

/* Empties a tree from the bottom up, with one directory open at any depth. */
static int empty_tree(int top)
{
	auto_vec struct vec_of(char *) names = { 0 };
	char name[NAME_MAX + 1];
	int rc = 0, fd = top;

	for (;;) {
		DIR *d = fdopendir(fd);

		if (!d) {
			close(fd);
			rc = -ENOMEM;
			break;
		}
		rc = empty_dir(d, name);
		if (!rc) {
			fd = open_to_empty(dirfd(d), name);
			vec_push(&names, xstrdup(name));
		} else if (rc > 0 && names.n) {
			auto_free char *last = names.v[--names.n];

			fd = openat(dirfd(d), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd < 0 || unlinkat(fd, last, AT_REMOVEDIR))
				rc = -errno;
			if (rc < 0)
				util_close(fd);
		} else {
			fd = -1;
		}
		closedir(d);
		if (rc >= 0 && fd < -1)
			rc = fd;
		if (rc < 0 || fd < 0)
			break;
	}
	for (size_t i = 0; i < names.n; i++)
		free(names.v[i]);
	return min(rc, 0);
}

int forget_remove_tree(int dir, const char *name)
{
	int fd, rc;

	if (!unlinkat(dir, name, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	fd = open_to_empty(dir, name);
	rc = fd < 0 ? fd : empty_tree(fd);
	if (!rc && unlinkat(dir, name, AT_REMOVEDIR))
		rc = -errno;
	return rc;
}

/*
 * Removes files that the journal does not need: removed files whose removal is durable, and
 * incomplete copies.
 */
static void clear_stash(int stash)
{
	auto_names_in d = names_in(stash, ".");

	for (struct dirent *e; (e = names_next(d));)
		if (e->d_name[0] == 'e' || !strncmp(e->d_name, "new-", 4) ||
		    !strncmp(e->d_name, "journal", 7) || !strncmp(e->d_name, "rollback.", 9))
			if (forget_remove_tree(stash, e->d_name))
				continue;
}

/*
 * Checks that the stash is our own. A user who may write to ROOT can make a stash there, with any
 * journal, which must not be trusted.
 */
int forget_stash_check(int stash, const char *root, struct err *err)
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

/* Returns how many operations were undone, or -errno. */
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

int forget_recover_locked(int root_fd, const char *root, struct err *err)
{
	auto_fd stash =
		openat(root_fd, STASH_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc, undone;

	if (stash < 0)
		return errno == ENOENT
			       ? 0
			       : err_set(err, -errno, "cannot open %s/" STASH_NAME ": %m", root);
	rc = forget_stash_check(stash, root, err);
	if (rc)
		return rc;
	undone = recover_journal(root_fd, stash, root, err);
	if (undone < 0)
		return undone;
	rc = forget_snapshot_finish_rollback(root_fd, stash, root, err);
	if (rc < 0)
		return rc;
	clear_stash(stash);
	unlinkat(root_fd, STASH_NAME, AT_REMOVEDIR); /* unless it has snapshots */
	return undone || rc ? 1 : 0;
}

int forget_root_lock(int root_fd, const char *root, bool wait, struct err *err)
{
	/* A guardian may hold the lock for a moment while it clears up. */
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
	rc = forget_root_lock(fd, root, true, err);
	return rc ? rc : forget_recover_locked(fd, root, err);
}
