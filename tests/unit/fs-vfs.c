/* SPDX-License-Identifier: MIT */
/*
 * fs-vfs.c - the calls by inode number: what a comparison with a real file system cannot show, or
 * chance would find too seldom. tests/t0500-reffs.sh makes the comparison.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/map.h"
#include "base/rng.h"
#include "fs/vfs.h"
#include "tap.h"

enum { ROOT = REFFS_ROOT_INO };

static const struct reffs_cred alice = { .uid = 1000, .gid = 1000 };
static const struct reffs_cred bob = { .uid = 1001, .gid = 1001 };

static uint64_t make_file(struct reffs *r, const struct reffs_cred *c, uint64_t dir,
			  const char *name, uint32_t mode)
{
	uint64_t ino = 0;
	int rc = vfs_create(r, c, dir, name, mode, &ino);

	if (rc)
		printf("# cannot make %s: %d\n", name, rc);
	return ino;
}

static uint64_t make_dir(struct reffs *r, const struct reffs_cred *c, uint64_t dir,
			 const char *name, uint32_t mode)
{
	uint64_t ino = 0;
	struct vfs_setattr a = { .set = VFS_SET_MODE, .mode = mode };
	int rc = vfs_mkdir(r, c, dir, name, mode, &ino);

	if (!rc)
		rc = vfs_setattr(r, c, ino, &a);
	if (rc)
		printf("# cannot make %s: %d\n", name, rc);
	return ino;
}

static struct reffs_attr attr_of(struct reffs *r, uint64_t ino)
{
	struct reffs_attr a = { 0 };

	vfs_getattr(r, ino, &a);
	return a;
}

static int64_t write_text(struct reffs *r, const struct reffs_cred *c, uint64_t ino,
			  const char *text, uint64_t offset)
{
	return vfs_write(r, c, ino, text, offset, strlen(text), O_RDWR);
}

static struct hash128 hash_of(struct reffs *r)
{
	struct reffs_state *s = reffs_save(r);
	struct hash128 h = reffs_state_hash(s);

	reffs_state_unref(s);
	return h;
}

/* ---- limits ---- */

static void test_space(void)
{
	struct reffs *r = reffs_new(&(struct reffs_opts){ .pages_max = 4, .inodes_max = 3 });
	static char data[5 * REFFS_PAGE];
	uint64_t a = make_file(r, &reffs_root, ROOT, "a", 0644), ino;
	struct vfs_statfs st;

	memset(data, 'x', sizeof(data));
	is_i(vfs_write(r, &reffs_root, a, data, 100, sizeof(data), 0), 4 * REFFS_PAGE - 100,
	     "what fits is written");
	is_i(vfs_write(r, &reffs_root, a, data, 4 * REFFS_PAGE, 1, 0), -ENOSPC,
	     "and nothing is left");
	is_u(attr_of(r, a).size, 4 * REFFS_PAGE, "a write that fails changes no size");
	is_i(vfs_write(r, &reffs_root, a, data, 0, 10, 0), 10, "what is there can be replaced");
	is_i(vfs_fallocate(r, &reffs_root, a, 0, 4 * REFFS_PAGE, 1), -ENOSPC, "fallocate sees it");
	uint64_t b = make_file(r, &reffs_root, ROOT, "b", 0644);
	is_i(vfs_copy(r, &reffs_root, a, 0, b, 0, 1), -ENOSPC, "so does a copy");
	is_i(vfs_clone(r, &reffs_root, a, b), -ENOSPC, "and a clone");
	vfs_statfs(r, &st);
	ok(st.pages == 4 && !st.pages_free && st.inodes == 3 && !st.inodes_free, "statfs says so");
	is_i(vfs_mkdir(r, &reffs_root, ROOT, "d", 0755, &ino), -ENOSPC, "no inode is left");
	is_i(vfs_tmpfile(r, &reffs_root, ROOT, 0644, false, &ino), -ENOSPC,
	     "not for one without a name either");
	is_i(vfs_link(r, &reffs_root, a, ROOT, "c"), 0, "a name needs none");
	vfs_pin(r, a, 1);
	vfs_unlink(r, &reffs_root, ROOT, "c");
	vfs_unlink(r, &reffs_root, ROOT, "a");
	is_i(vfs_write(r, &reffs_root, b, data, 0, 10, 0), -ENOSPC, "an open file keeps its pages");
	is_i(vfs_mkdir(r, &reffs_root, ROOT, "d", 0755, &ino), -ENOSPC, "and its inode");
	vfs_unpin(r, a, 1);
	is_i(vfs_write(r, &reffs_root, b, data, 0, 10, 0), 10, "until it is closed");
	is_i(vfs_mkdir(r, &reffs_root, ROOT, "d", 0755, &ino), 0, "both");
	reffs_free(r);
	r = reffs_new(&(struct reffs_opts){ .inodes_max = 1, .full_error = -EDQUOT });
	is_i(vfs_create(r, &reffs_root, ROOT, "a", 0644, &ino), -EDQUOT, "or the quota is");
	reffs_free(r);
}

/* ---- directories ---- */

struct listing {
	char names[600][16];
	uint64_t cookies[600];
	size_t n, most;
};

static int take(void *ctx, const struct vfs_dirent *e)
{
	struct listing *l = ctx;

	if (l->n == l->most)
		return 1;
	snprintf(l->names[l->n], sizeof(l->names[0]), "%s", e->name);
	l->cookies[l->n++] = e->cookie;
	return 0;
}

static int list(struct reffs *r, uint64_t dir, uint64_t cookie, size_t most, struct listing *out)
{
	struct vfs_dir d = { 0 };

	out->n = 0;
	out->most = most;
	int rc = vfs_readdir(r, dir, &d, cookie, take, out);
	vfs_dir_release(&d);
	return rc;
}

static void test_readdir(void)
{
	enum { FILES = 500 };
	struct reffs *r = reffs_new(NULL);
	static struct listing all, part;
	uint64_t dir = make_dir(r, &reffs_root, ROOT, "d", 0755), seen = 0, twice = 0;
	struct vfs_dir reader = { 0 };
	char name[16];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		make_file(r, &reffs_root, dir, name, 0644);
	}
	is_i(list(r, dir, 0, 600, &all), 0, "a directory is read");
	is_u(all.n, FILES + 2, "with all names");
	ok(streq(all.names[0], ".") && streq(all.names[1], ".."), "and both others first");
	struct reffs_state *saved = reffs_save(r);
	/* By sevens, while others come and go. */
	for (uint64_t cookie = 0;;) {
		part.n = 0;
		part.most = 7;
		vfs_readdir(r, dir, &reader, cookie, take, &part);
		if (!part.n)
			break;
		for (size_t i = 0; i < part.n; i++) {
			seen += !strncmp(part.names[i], "file", 4);
			twice += part.cookies[i] <= cookie;
			cookie = part.cookies[i];
		}
		snprintf(name, sizeof(name), "new%d", (int)seen);
		make_file(r, &reffs_root, dir, name, 0644);
		vfs_unlink(r, &reffs_root, dir, part.names[0]);
	}
	vfs_dir_release(&reader);
	is_u(seen, FILES, "what was there all the time comes once");
	is_u(twice, 0, "in the order of cookies");
	reffs_restore(r, saved);
	size_t wrong = 0;
	for (size_t i = 0; i + 1 < all.n; i++) {
		list(r, dir, all.cookies[i], 1, &part);
		wrong += part.n != 1 || !streq(part.names[0], all.names[i + 1]);
	}
	is_u(wrong, 0, "a cookie means the same after a restore");
	reffs_state_unref(saved);
	uint64_t file = make_file(r, &reffs_root, ROOT, "f", 0644);
	is_i(list(r, file, 0, 1, &part), -ENOTDIR, "a file is no directory");
	uint64_t gone = make_dir(r, &reffs_root, ROOT, "gone", 0755);
	vfs_pin(r, gone, 1);
	vfs_rmdir(r, &reffs_root, ROOT, "gone");
	is_i(list(r, gone, 0, 1, &part), -ENOENT, "a directory that was removed has no names");
	is_i(vfs_create(r, &reffs_root, gone, "x", 0644, &file), -ENOENT, "and gets none");
	vfs_unpin(r, gone, 1);
	is_i(list(r, gone, 0, 1, &part), -ESTALE, "then it is gone");
	reffs_free(r);
}

/* A path deeper than any stack. */
static void test_deep(void)
{
	enum { DEPTH = 30000 };
	uint64_t live = map_stats.made - map_stats.freed;
	struct reffs *r = reffs_new(NULL);
	uint64_t dir = ROOT, first = make_dir(r, &reffs_root, ROOT, "d", 0755);

	dir = first;
	for (int i = 0; i < DEPTH; i++)
		dir = make_dir(r, &reffs_root, dir, "d", 0755);
	struct hash128 before = hash_of(r);
	is_i(vfs_rename(r, &reffs_root, ROOT, "d", ROOT, "e", 0), 0, "%d directories move", DEPTH);
	ok(!hash_eq(before, hash_of(r)), "which can be seen");
	is_i(vfs_rename(r, &reffs_root, ROOT, "e", dir, "f", 0), -EINVAL,
	     "but not into themselves");
	is_i(vfs_rename(r, &reffs_root, ROOT, "e", ROOT, "d", 0), 0, "and back");
	ok(hash_eq(before, hash_of(r)), "which is as it was");
	reffs_free(r);
	is_u(map_stats.made - map_stats.freed, live, "no node is left");
}

/* ---- open files, saved states ---- */

static void test_pins(void)
{
	struct reffs *r = reffs_new(NULL);
	uint64_t a = make_file(r, &reffs_root, ROOT, "a", 0644), ino;
	struct reffs_state *with = reffs_save(r);
	char buf[16] = "";

	vfs_pin(r, a, 2);
	vfs_unlink(r, &reffs_root, ROOT, "a");
	struct reffs_state *without = reffs_save(r);
	is_i(write_text(r, &reffs_root, a, "text", 0), 4, "a file without a name is written");
	is_i(vfs_read(r, a, buf, 0, sizeof(buf)), 4, "and read");
	ok(!memcmp(buf, "text", 4), "with what was written");
	is_u(attr_of(r, a).nlink, 0, "it has no links");
	ok(hash_eq(hash_of(r), reffs_state_hash(without)), "and is not part of the state");
	is_i(vfs_link(r, &reffs_root, a, ROOT, "b"), -ENOENT, "it gets no name again");
	vfs_unpin(r, a, 1);
	is_i(vfs_read(r, a, buf, 0, 4), 4, "somebody else has it open");
	reffs_restore(r, without);
	is_i(vfs_read(r, a, buf, 0, 4), -ESTALE, "a restore takes it away");
	reffs_restore(r, with);
	is_i(vfs_read(r, a, buf, 0, 4), 0, "or gives back what it was");
	vfs_unpin(r, a, 1);
	is_i(vfs_lookup(r, &reffs_root, ROOT, "a", &ino), 0, "with its name");
	is_u(ino, a, "and its number");
	reffs_state_unref(with);
	reffs_state_unref(without);

	is_i(vfs_tmpfile(r, &reffs_root, ROOT, 0600, false, &ino), 0,
	     "a file that has no name yet");
	vfs_pin(r, ino, 1);
	is_i(vfs_link(r, &reffs_root, ino, ROOT, "t"), 0, "gets one");
	is_u(attr_of(r, ino).nlink, 1, "the first");
	vfs_unlink(r, &reffs_root, ROOT, "t");
	is_i(vfs_link(r, &reffs_root, ino, ROOT, "t"), -ENOENT, "once");
	vfs_unpin(r, ino, 1);
	is_i(vfs_tmpfile(r, &reffs_root, ROOT, 0600, true, &ino), 0, "one that never has");
	vfs_pin(r, ino, 1);
	is_i(vfs_link(r, &reffs_root, ino, ROOT, "t"), -ENOENT, "gets none");
	vfs_unpin(r, ino, 1);
	is_i(vfs_getattr(r, ino, &(struct reffs_attr){ 0 }), -ESTALE, "and goes");
	reffs_free(r);
}

/* ---- times ---- */

static void at(struct reffs *r, int64_t sec)
{
	reffs_set_time(r, (struct tree_time){ sec, 0 });
}

static int64_t atime_after_read(struct reffs *r, uint64_t ino, int64_t when)
{
	char c;

	at(r, when);
	vfs_read(r, ino, &c, 0, 1);
	return attr_of(r, ino).atime.sec;
}

struct told {
	uint64_t v[16];
	size_t n;
};

static void note_changed(void *ctx, uint64_t ino)
{
	struct told *t = ctx;

	if (t->n < ARRAY_SIZE(t->v))
		t->v[t->n++] = ino;
}

static bool is_told(const struct told *t, uint64_t ino)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i] == ino)
			return true;
	return false;
}

/* Whoever keeps something of an inode learns that it is another one. */
static void test_restore_tells(void)
{
	struct reffs *r = reffs_new(NULL);
	uint64_t same = make_file(r, &reffs_root, ROOT, "same", 0644);
	uint64_t other = make_file(r, &reffs_root, ROOT, "other", 0644);
	uint64_t unpinned = make_file(r, &reffs_root, ROOT, "unpinned", 0644);
	uint64_t away = make_file(r, &reffs_root, ROOT, "away", 0644);
	uint64_t open = make_file(r, &reffs_root, ROOT, "open", 0644);
	struct reffs_state *s = reffs_save(r);
	struct told told = { .n = 0 };

	vfs_pin(r, same, 1), vfs_pin(r, other, 1), vfs_pin(r, away, 1), vfs_pin(r, open, 1);
	vfs_restore(r, s, note_changed, &told);
	is_u(told.n, 0, "nothing changed, nothing is told");

	write_text(r, &reffs_root, other, "text", 0);
	write_text(r, &reffs_root, unpinned, "text", 0);
	vfs_unlink(r, &reffs_root, ROOT, "away");
	vfs_unpin(r, away, 1);
	vfs_pin(r, away, 1); /* somebody knows its number still */
	vfs_unlink(r, &reffs_root, ROOT, "open");
	uint64_t late = make_file(r, &reffs_root, ROOT, "late", 0644), gone;
	vfs_pin(r, late, 1);
	is_i(vfs_tmpfile(r, &reffs_root, ROOT, 0600, false, &gone), 0, "a file without a name");
	vfs_pin(r, gone, 1);
	vfs_restore(r, s, note_changed, &told);
	ok(!is_told(&told, same), "not of what is the same");
	ok(is_told(&told, other), "of what was written");
	ok(!is_told(&told, unpinned), "not of what nobody keeps");
	ok(is_told(&told, away), "of what is there again");
	ok(is_told(&told, open), "of what has a name again");
	ok(is_told(&told, late), "of what came later");
	ok(is_told(&told, gone), "of what never had a name");
	is_i(vfs_getattr(r, gone, &(struct reffs_attr){ 0 }), -ESTALE, "and it is restored");
	reffs_state_unref(s);
	reffs_free(r);
}

static void test_atime(void)
{
	for (int how = REFFS_NOATIME; how <= REFFS_STRICTATIME; how++) {
		struct reffs_opts opts = { .atime = (enum reffs_atime)how };
		struct reffs *r = reffs_new(&opts);

		at(r, 100);
		uint64_t a = make_file(r, &reffs_root, ROOT, "a", 0644);
		write_text(r, &reffs_root, a, "x", 0);
		int64_t first = atime_after_read(r, a, 200), second = atime_after_read(r, a, 300);
		int64_t later = atime_after_read(r, a, 300 + 24 * 60 * 60);
		at(r, 200000);
		write_text(r, &reffs_root, a, "y", 0);
		int64_t written = atime_after_read(r, a, 200001);

		if (how == REFFS_NOATIME)
			ok(first == 100 && written == 100, "noatime: it stays");
		else if (how == REFFS_RELATIME)
			ok(first == 200 && second == 200 && later == 86700 && written == 200001,
			   "relatime: after a change, or a day");
		else
			ok(first == 200 && second == 300 && later == 86700 && written == 200001,
			   "strictatime: always");
		reffs_free(r);
	}
}

static struct hash128 state_at(bool times, int64_t when, int64_t mtime)
{
	struct reffs *r = reffs_new(&(struct reffs_opts){ .times = times });
	struct vfs_setattr a = { .set = VFS_SET_ATIME | VFS_SET_MTIME, .mtime.sec = mtime };

	at(r, when);
	uint64_t dir = make_dir(r, &reffs_root, ROOT, "d", 0755);
	uint64_t ino = make_file(r, &reffs_root, dir, "a", 0644);
	vfs_setattr(r, &reffs_root, ino, &a);
	vfs_setattr(r, &reffs_root, dir, &a);
	vfs_setattr(r, &reffs_root, ROOT, &a);
	struct hash128 h = hash_of(r);
	reffs_free(r);
	return h;
}

static void test_time_hash(void)
{
	ok(hash_eq(state_at(false, 1, 10), state_at(false, 2, 20)), "times do not count");
	ok(!hash_eq(state_at(true, 1, 10), state_at(true, 1, 20)), "unless they are told to");
	ok(hash_eq(state_at(true, 1, 10), state_at(true, 2, 10)),
	   "of change and birth they never do");
	/* A name changes the time of its directory, and with it the hash. */
	struct reffs *r = reffs_new(&(struct reffs_opts){ .times = true });
	struct tree_opts opts = { .times = true };
	auto_tree before = TREE_INIT, after = TREE_INIT;
	at(r, 5);
	make_file(r, &reffs_root, ROOT, "a", 0644);
	struct reffs_state *s = reffs_save(r);
	reffs_tree(s, &opts, &before);
	at(r, 6);
	make_file(r, &reffs_root, ROOT, "b", 0644);
	vfs_unlink(r, &reffs_root, ROOT, "b");
	struct reffs_state *t = reffs_save(r);
	reffs_tree(t, &opts, &after);
	ok(!hash_eq(reffs_state_hash(s), reffs_state_hash(t)), "a directory's time counts");
	ok(!tree_equal(&before, &after, &opts), "and the tree says so");
	reffs_state_unref(s);
	reffs_state_unref(t);
	reffs_free(r);
}

/* ---- who may ---- */

static void test_protection(void)
{
	for (int on = 0; on < 2; on++) {
		struct reffs_opts opts = { .protect_hardlinks = on, .protect_symlinks = on };
		struct reffs *r = reffs_new(&opts);
		uint64_t tmp = make_dir(r, &reffs_root, ROOT, "tmp", 01777), ino;
		uint64_t a = make_file(r, &alice, tmp, "a", 0644);

		is_i(vfs_link(r, &bob, a, tmp, "b"), on ? -EPERM : 0, "a link to what others own%s",
		     on ? ", with protected_hardlinks" : "");
		is_i(vfs_link(r, &alice, a, tmp, "c"), 0, "the owner may");
		vfs_symlink(r, &alice, "a", tmp, "l", &ino);
		is_i(vfs_path(r, &bob, "tmp/l", 0, &ino), on ? -EACCES : 0,
		     "a link of others in a sticky directory%s",
		     on ? ", with protected_symlinks" : "");
		is_i(vfs_path(r, &alice, "tmp/l", 0, &ino), 0, "one's own");
		is_i(vfs_path(r, &bob, "tmp/l", O_NOFOLLOW, &ino), 0, "the link itself");
		reffs_free(r);
	}
}

static bool odd_group(const struct reffs_cred *c, uint32_t gid)
{
	(void)c;
	return gid % 2;
}

static void test_groups(void)
{
	struct reffs *r = reffs_new(NULL);
	struct reffs_cred carol = bob;
	struct vfs_setattr own = { .set = VFS_SET_GID, .gid = 7 };
	uint64_t a = make_file(r, &reffs_root, ROOT, "a", 0640);

	vfs_setattr(r, &reffs_root, a, &own);
	is_i(vfs_open(r, &carol, a, O_RDONLY), -EACCES, "not in the group");
	carol.in_group = odd_group;
	is_i(vfs_open(r, &carol, a, O_RDONLY), 0, "in a group that has to be asked for");
	own.gid = 8;
	vfs_setattr(r, &reffs_root, a, &own);
	is_i(vfs_open(r, &carol, a, O_RDONLY), -EACCES, "in others, but not in this one");
	is_i(vfs_open(r, &reffs_root, a, O_RDWR), 0, "root may");
	struct reffs_cred zero = { .uid = 5 };
	is_i(vfs_open(r, &zero, a, O_RDONLY), -EACCES, "who has no capabilities may not");
	zero.caps = REFFS_CAP_DAC_READ_SEARCH;
	is_i(vfs_open(r, &zero, a, O_RDONLY), 0, "to read");
	is_i(vfs_open(r, &zero, a, O_RDWR), -EACCES, "is not to write");
	zero.caps = REFFS_CAP_DAC_OVERRIDE;
	is_i(vfs_open(r, &zero, a, O_RDWR), 0, "with the capability it is");
	is_i(vfs_open(r, &zero, a, O_RDONLY | VFS_OPEN_EXEC), -EACCES,
	     "but nobody runs what is no program");
	uint64_t x = make_file(r, &reffs_root, ROOT, "x", 0711);
	is_i(vfs_open(r, &bob, x, O_RDONLY | VFS_OPEN_EXEC), 0, "a program need not be readable");
	is_i(vfs_open(r, &bob, x, O_RDONLY), -EACCES, "to be run");
	reffs_free(r);
}

/* ---- holes ---- */

static void test_holes(void)
{
	struct reffs *r = reffs_new(NULL);
	uint64_t a = make_file(r, &reffs_root, ROOT, "a", 0644);
	struct vfs_setattr size = { .set = VFS_SET_SIZE, .size = 5 * REFFS_PAGE };
	static const char zeros[REFFS_PAGE];

	vfs_setattr(r, &reffs_root, a, &size);
	is_i(vfs_seek(r, a, 0, SEEK_DATA), -ENXIO, "no data");
	is_i(vfs_seek(r, a, 10, SEEK_HOLE), 10, "nothing but a hole");
	write_text(r, &reffs_root, a, "x", REFFS_PAGE + 5);
	struct hash128 before = hash_of(r);
	vfs_write(r, &reffs_root, a, zeros, 3 * REFFS_PAGE, sizeof(zeros), 0);
	ok(hash_eq(before, hash_of(r)), "zeros in a hole cannot be seen by reading");
	is_i(vfs_seek(r, a, 0, SEEK_DATA), REFFS_PAGE, "but they are data:");
	is_i(vfs_seek(r, a, 2 * REFFS_PAGE, SEEK_DATA), 3 * REFFS_PAGE, "after a hole");
	is_i(vfs_seek(r, a, 3 * REFFS_PAGE + 1, SEEK_HOLE), 4 * REFFS_PAGE, "and before one");
	is_i(vfs_seek(r, a, 5 * REFFS_PAGE, SEEK_HOLE), -ENXIO, "the end is no hole");
	is_u(attr_of(r, a).pages, 2, "two pages are there");
	is_i(vfs_seek(r, a, 0, SEEK_SET), -EINVAL, "only these two are asked for");
	reffs_free(r);
}

/* ---- pages made ahead ---- */

/* The same write, at once and with pages made ahead, over holes, pages and a saved state. */
static void test_pages_ahead(void)
{
	struct reffs *a = reffs_new(NULL), *b = reffs_new(NULL);
	uint64_t ino_a = make_file(a, &reffs_root, ROOT, "f", 0644);
	uint64_t ino_b = make_file(b, &reffs_root, ROOT, "f", 0644);
	static char data[5 * REFFS_PAGE];
	struct vfs_pages *pages = vfs_pages_new();
	bool same = true, whole = true;
	struct rng rng;

	rng_init(&rng, 7);
	for (int i = 0; i < 500; i++) {
		uint64_t at = rng_below(&rng, 2) ? rng_below(&rng, 8) * REFFS_PAGE
						 : rng_below(&rng, 8 * REFFS_PAGE);
		uint64_t len = 1 + rng_below(&rng, sizeof(data));
		int flags = rng_below(&rng, 16) == 0 ? O_APPEND : 0;

		memset(data, (int)rng_below(&rng, 4), sizeof(data)); /* zeros too */
		struct reffs_state *kept = reffs_save(b);
		struct hash128 before = hash_of(b);
		vfs_pages_copy(pages, data, at, len);
		int64_t n = vfs_write(a, &reffs_root, ino_a, data, at, len, flags);
		int64_t m = vfs_write_pages(b, &reffs_root, ino_b, data, pages, at, len, flags);

		same &= n == m && hash_eq(hash_of(a), hash_of(b)) &&
			attr_of(a, ino_a).pages == attr_of(b, ino_b).pages;
		whole &= hash_eq(reffs_state_hash(kept), before);
		reffs_state_unref(kept);
		if (i % 100 == 99) {
			struct vfs_setattr cut = { .set = VFS_SET_SIZE, .size = 3 * REFFS_PAGE };

			vfs_setattr(a, &reffs_root, ino_a, &cut);
			vfs_setattr(b, &reffs_root, ino_b, &cut);
		}
	}
	ok(same, "pages made ahead write what a write does");
	ok(whole, "and leave saved states alone");
	vfs_pages_free(pages);
	vfs_pages_free(NULL);
	reffs_free(a);
	reffs_free(b);
}

/* The bytes of page `n` of a file, where they are. */
static const unsigned char *page_at(const struct reffs_state *s, uint64_t ino, uint64_t n)
{
	return reffs_page(reffs_inode(s, ino), n);
}

/* Puts a page of these letters there, without a copy of them anywhere else. */
static int64_t put_letters(struct reffs *r, uint64_t ino, struct vfs_pages *pages, uint64_t page,
			   const char *letters)
{
	size_t n = strlen(letters);

	for (size_t i = 0; i < n; i++)
		memset(vfs_pages_at(pages, i), letters[i], REFFS_PAGE);
	vfs_pages_ready(pages, page * REFFS_PAGE, n);
	return vfs_write_pages(r, &reffs_root, ino, NULL, pages, page * REFFS_PAGE, n * REFFS_PAGE,
			       0);
}

static bool is_page(const unsigned char *page, char letter)
{
	for (size_t i = 0; page && i < REFFS_PAGE; i++)
		if (page[i] != (unsigned char)letter)
			return false;
	return page != NULL;
}

/* Memory goes around: what a write replaced is where the next one comes to lie. */
static void test_pages_go_around(void)
{
	struct reffs *r = reffs_new(NULL);
	uint64_t f = make_file(r, &reffs_root, ROOT, "f", 0644);
	struct vfs_pages *pages = vfs_pages_new();

	is_i(put_letters(r, f, pages, 0, "ab"), 2 * REFFS_PAGE, "two pages are put there");
	struct reffs_state *s = reffs_save(r);
	const unsigned char *old = page_at(s, f, 1);
	ok(is_page(page_at(s, f, 0), 'a') && is_page(old, 'b'), "as they were made");
	struct hash128 before = reffs_state_hash(s);

	put_letters(r, f, pages, 1, "c");
	ok(vfs_pages_at(pages, 0) != old, "the page of a saved state is not given away");
	memset(vfs_pages_at(pages, 0), 'x', REFFS_PAGE);
	ok(is_page(page_at(s, f, 1), 'b') && hash_eq(reffs_state_hash(s), before),
	   "and it stays as it was saved");
	struct reffs_state *now = reffs_save(r);
	ok(is_page(page_at(now, f, 1), 'c'), "while the write is there");
	old = page_at(now, f, 1);
	reffs_state_unref(now);

	put_letters(r, f, pages, 1, "d");
	ok(vfs_pages_at(pages, 0) == old, "what nobody else has is there for the next");
	memset(vfs_pages_at(pages, 0), 'x', REFFS_PAGE);
	now = reffs_save(r);
	ok(is_page(page_at(now, f, 1), 'd'), "who fills it changes nothing");
	reffs_state_unref(now);

	reffs_restore(r, s);
	ok(hash_eq(hash_of(r), before), "what was saved is restored");
	reffs_state_unref(s);
	vfs_pages_free(pages);
	reffs_free(r);
}

/* A file that two names of two files share (FICLONE): neither write may be seen by the other. */
static void test_pages_shared(void)
{
	struct reffs *r = reffs_new(NULL);
	uint64_t f = make_file(r, &reffs_root, ROOT, "f", 0644);
	uint64_t g = make_file(r, &reffs_root, ROOT, "g", 0644);
	struct vfs_pages *pages = vfs_pages_new();
	char byte = 0;

	put_letters(r, f, pages, 0, "abc");
	is_i(vfs_clone(r, &reffs_root, f, g), 0, "a file is cloned");
	put_letters(r, f, pages, 0, "xyz");
	put_letters(r, f, pages, 0, "123");
	ok(vfs_read(r, g, &byte, REFFS_PAGE, 1) == 1 && byte == 'b', "the clone keeps its own");
	ok(vfs_read(r, f, &byte, REFFS_PAGE, 1) == 1 && byte == '2', "the file does not");
	vfs_pages_free(pages);
	reffs_free(r);
}

/* What a page made ahead is not taken for: no room, the end of the largest file, zeros. */
static void test_pages_left(void)
{
	enum { MAX = 2 * REFFS_PAGE + 100 };
	struct reffs *r = reffs_new(&(struct reffs_opts){ .file_max = MAX, .pages_max = 4 });
	uint64_t f = make_file(r, &reffs_root, ROOT, "f", 0644);
	uint64_t g = make_file(r, &reffs_root, ROOT, "g", 0644);
	struct vfs_pages *pages = vfs_pages_new();
	char end[101] = { 0 };

	is_i(put_letters(r, f, pages, 0, "abc"), MAX, "a page is cut where the largest file ends");
	is_i(vfs_read(r, f, end, 2 * REFFS_PAGE, sizeof(end)), 100, "it has so many bytes");
	ok(end[0] == 'c' && end[99] == 'c' && !end[100], "of that page");
	is_i(put_letters(r, g, pages, 0, "xy"), REFFS_PAGE, "there is room for one more page");
	is_i(put_letters(r, 99, pages, 0, "x"), -ESTALE, "there is no such file");
	memset(vfs_pages_at(pages, 0), 0, REFFS_PAGE);
	vfs_pages_ready(pages, 0, 1);
	is_i(vfs_write_pages(r, &reffs_root, f, NULL, pages, 0, REFFS_PAGE, 0), REFFS_PAGE,
	     "zeros are written");
	struct reffs_state *s = reffs_save(r);
	ok(!page_at(s, f, 0), "and take no memory");
	is_i(vfs_write_pages(r, &reffs_root, f, "abc", pages, 0, 3, 0), 3, "what was ready is so");
	is_i(vfs_read(r, f, end, 0, 4), 4, "for one write,");
	ok(!memcmp(end, "abc", 4), "and not for the next");
	reffs_state_unref(s);
	vfs_pages_free(pages);
	reffs_free(r);
}

int main(void)
{
	test_space();
	test_readdir();
	test_deep();
	test_pins();
	test_restore_tells();
	test_atime();
	test_time_hash();
	test_protection();
	test_groups();
	test_holes();
	test_pages_ahead();
	test_pages_go_around();
	test_pages_shared();
	test_pages_left();
	return done_testing();
}
