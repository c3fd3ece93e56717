/* SPDX-License-Identifier: MIT */
/*
 * fs-pickle.c - states that are written to a file and read back are the same states, share what
 * they shared, and go on as before; a file that was changed in any way is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "fs/map.h"
#include "fs/pickle.h"
#include "fs/reffs_pool.h"
#include "fs/vfs.h"
#include "tap.h"

enum { ROOT = REFFS_ROOT_INO, STATES = 20 };

static const struct tree_opts opts = { .dir_nlink = true, .times = true };

static struct hash128 tree_of(const struct reffs_state *s)
{
	auto_tree t = TREE_INIT;

	reffs_tree(s, &opts, &t);
	return tree_hash(&t, &opts);
}

/* Something of everything. */
static void fill(struct reffs *r)
{
	static const unsigned char acl[] = { 2,	  0,   0,   0,	 1,   0,   7,  0,   255, 255, 255,
					     255, 2,   0,   6,	 0,   9,   0,  0,   0,	 4,   0,
					     5,	  0,   255, 255, 255, 255, 16, 0,   7,	 0,   255,
					     255, 255, 255, 32,	 0,   0,   0,  255, 255, 255, 255 };
	struct vfs_setattr size = { .set = VFS_SET_SIZE, .size = 1 << 30 };
	uint64_t dir, file, ino;

	reffs_set_time(r, (struct tree_time){ 1000, 5 });
	vfs_mkdir(r, &reffs_root, ROOT, "d", 0755, &dir);
	vfs_create(r, &reffs_root, dir, "file", 04755, &file);
	vfs_write(r, &reffs_root, file, "hello", 10000, 5, 0);
	vfs_create(r, &reffs_root, ROOT, "copy", 0644, &ino);
	vfs_clone(r, &reffs_root, file, ino);
	vfs_setattr(r, &reffs_root, file, &size);
	vfs_link(r, &reffs_root, file, ROOT, "other name");
	vfs_symlink(r, &reffs_root, "d/file", ROOT, "link", &ino);
	vfs_mknod(r, &reffs_root, ROOT, "device", S_IFCHR | 0600, 0x103, &ino);
	vfs_mknod(r, &reffs_root, dir, "fifo", S_IFIFO | 0600, 0, &ino);
	vfs_mknod(r, &reffs_root, dir, "socket", S_IFSOCK | 0600, 0, &ino);
	vfs_setxattr(r, &reffs_root, file, "user.a", "value", 5, 0);
	vfs_setxattr(r, &reffs_root, file, "user.empty", "", 0, 0);
	vfs_setxattr(r, &reffs_root, dir, "system.posix_acl_default", acl, sizeof(acl), 0);
	vfs_create(r, &reffs_root, dir, "with a list", 0666, &ino);
}

/* States that have most of it in common. */
static void save_many(struct reffs *r, struct reffs_pool *p, size_t n)
{
	char name[16];
	uint64_t ino;

	for (size_t i = 0; i < n; i++) {
		struct reffs_state *s = reffs_save(r);

		reffs_pool_put(p, i * 1000, s);
		reffs_state_unref(s);
		snprintf(name, sizeof(name), "more%zu", i);
		vfs_create(r, &reffs_root, ROOT, name, 0644, &ino);
		vfs_write(r, &reffs_root, ino, name, 0, 5, 0);
	}
}

struct comparison {
	const struct reffs_pool *other;
	size_t wrong;
};

static int compare(void *ctx, uint64_t key, struct reffs_state *s)
{
	struct comparison *c = ctx;
	const struct reffs_state *o = reffs_pool_get(c->other, key);

	c->wrong += !o || !hash_eq(reffs_state_hash(o), reffs_state_hash(s)) ||
		    !hash_eq(tree_of(o), tree_of(s));
	return 0;
}

static size_t differences(const struct reffs_pool *a, const struct reffs_pool *b)
{
	struct comparison c = { b, a->n != b->n };

	reffs_pool_each(a, compare, &c);
	return c.wrong;
}

static void test_round_trip(void)
{
	uint64_t live = map_stats.made - map_stats.freed;
	struct reffs_pool pool = { 0 }, loaded = { 0 }, one = { 0 };
	struct reffs *r = reffs_new(&(struct reffs_opts){ .times = true });
	struct reffs *q = reffs_new(&(struct reffs_opts){ .times = true });
	auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT, single = STRBUF_INIT;
	struct err err = ERR_INIT;
	uint64_t key = 3000, no_key = 5, ino;

	fill(r);
	uint64_t before = map_stats.made;
	save_many(r, &pool, STATES);
	uint64_t made = map_stats.made - before;
	is_i(reffs_pickle(&pool, NULL, &text, &err), 0, "%d states are written", STATES);
	before = map_stats.made;
	is_i(reffs_load(q, &loaded, text.buf, text.len, &err), 0, "and read");
	ok(map_stats.made - before < made + 100, "what they share is shared: %llu nodes, not %llu",
	   (unsigned long long)(map_stats.made - before), (unsigned long long)made);
	is_u(differences(&pool, &loaded), 0, "they are the same");
	is_i(reffs_pickle(&loaded, NULL, &again, &err), 0, "they are written again");
	ok(text.len == again.len && !memcmp(text.buf, again.buf, text.len),
	   "and give the same file again");
	is_i(reffs_pickle(&pool, &key, &single, &err), 0, "one of them");
	is_i(reffs_load(q, &one, single.buf, single.len, &err), 0, "is read");
	ok(one.n == 1 && reffs_pool_get(&one, key), "alone");
	is_i(reffs_pickle(&pool, &no_key, &single, &err), -ENOENT, "one that is not there is not");
	ok(strstr(err.msg, "key 5"), "which is said: %s", err.msg);

	/* Both go on alike. */
	reffs_restore(r, reffs_pool_get(&pool, key));
	reffs_restore(q, reffs_pool_get(&loaded, key));
	for (int i = 0; i < 2; i++) {
		struct reffs *x = i ? q : r;
		uint64_t file;

		reffs_set_time(x, (struct tree_time){ 2000, 0 });
		vfs_path(x, &reffs_root, "d/file", 0, &file);
		vfs_write(x, &reffs_root, file, "more", 9999, 4, 0);
		vfs_rename(x, &reffs_root, ROOT, "d", ROOT, "moved", 0);
		vfs_unlink(x, &reffs_root, ROOT, "copy");
	}
	struct reffs_state *a = reffs_save(r), *b = reffs_save(q);
	ok(hash_eq(reffs_state_hash(a), reffs_state_hash(b)), "what is done next gives the same");
	vfs_create(q, &reffs_root, ROOT, "new", 0644, &ino);
	ok(!reffs_inode(b, ino) && ino > 20, "and no number is used again");
	reffs_state_unref(a);
	reffs_state_unref(b);
	reffs_pool_release(&pool);
	reffs_pool_release(&loaded);
	reffs_pool_release(&one);
	reffs_free(r);
	reffs_free(q);
	is_u(map_stats.made - map_stats.freed, live, "no node is left");
}

/* Every byte changed, every length: refused by the checksum, and without it harmless. */
static void test_damage(void)
{
	struct reffs_pool pool = { 0 };
	struct reffs *r = reffs_new(NULL);
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	size_t taken = 0, cut = 0, odd = 0, n = 0;
	struct rng g;

	fill(r);
	save_many(r, &pool, 3);
	if (reffs_pickle(&pool, NULL, &text, &err))
		abort();
	rng_init(&g, 7);
	for (size_t i = 0; i < text.len; i += 1 + rng_below(&g, 40)) {
		struct reffs_pool p = { 0 };
		char old = text.buf[i];

		text.buf[i] = (char)(old ^ (char)(1 << rng_below(&g, 8)));
		err_clear(&err);
		taken += !reffs_load(r, &p, text.buf, text.len, &err) || !*err.msg || p.n;
		cut += !reffs_load(r, &p, text.buf, i, &err);
		/* What the checks behind the checksum let through must be whole. */
		pickle_any_sum = true;
		if (!reffs_load(r, &p, text.buf, text.len, &err)) {
			auto_strbuf again = STRBUF_INIT;

			n++;
			odd += reffs_pickle(&p, NULL, &again, &err) ||
			       reffs_load(r, &p, again.buf, again.len, &err);
		}
		pickle_any_sum = false;
		text.buf[i] = old;
		reffs_pool_release(&p);
	}
	is_u(taken, 0, "a bit that is wrong is seen");
	is_u(cut, 0, "so is an end that is missing");
	ok(n > 0, "behind the checksum, %zu changes make another state that can be", n);
	is_u(odd, 0, "and each of them is written and read again");
	reffs_pool_release(&pool);
	reffs_free(r);
}

static void refused(struct reffs *r, const void *data, size_t len, const char *why)
{
	struct reffs_pool p = { 0 };
	struct err err = ERR_INIT;
	int rc = reffs_load(r, &p, data, len, &err);

	ok(rc < 0 && strstr(err.msg, why) && !p.n, "refused: %s", err.msg);
	reffs_pool_release(&p);
}

static void test_refusals(void)
{
	struct reffs_pool pool = { 0 };
	struct reffs *r = reffs_new(NULL),
		     *timed = reffs_new(&(struct reffs_opts){ .times = true });
	struct reffs *small = reffs_new(&(struct reffs_opts){ .file_max = 4096 });
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	fill(r);
	save_many(r, &pool, 1);
	if (reffs_pickle(&pool, NULL, &text, &err))
		abort();
	refused(r, "", 0, "no file of saved states");
	refused(r, "something else that is long enough to be looked at", 50, "no file of saved");
	refused(timed, text.buf, text.len, "without times");
	refused(small, text.buf, text.len, "an inode that cannot be");
	text.buf[8] = 2;
	refused(r, text.buf, text.len, "version 2");
	reffs_pool_release(&pool);
	reffs_free(r);
	reffs_free(timed);
	reffs_free(small);
}

static void test_file(void)
{
	char dir[] = "/tmp/fs-pickle-XXXXXX";
	struct reffs_pool pool = { 0 }, loaded = { 0 };
	struct reffs *r = reffs_new(NULL);
	struct err err = ERR_INIT;

	if (!mkdtemp(dir))
		abort();
	auto_free char *path = xasprintf("%s/states", dir), *no = xasprintf("%s/no/states", dir);
	fill(r);
	save_many(r, &pool, 2);
	is_i(reffs_pickle_file(&pool, NULL, path, &err), 0, "a file is written");
	is_i(reffs_load_file(r, &loaded, path, &err), 0, "and read");
	is_u(differences(&pool, &loaded), 0, "with the same states");
	ok(reffs_pickle_file(&pool, NULL, no, &err) < 0 && strstr(err.msg, "no/states"),
	   "nowhere to write: %s", err.msg);
	err_clear(&err);
	is_i(reffs_load_file(r, &loaded, no, &err), -ENOENT, "nothing to read: %s", err.msg);
	unlink(path);
	rmdir(dir);
	reffs_pool_release(&pool);
	reffs_pool_release(&loaded);
	reffs_free(r);
}

static void test_pool(void)
{
	struct reffs_pool p = { 0 };
	struct reffs *r = reffs_new(NULL);
	struct reffs_state *empty = reffs_save(r);

	fill(r);
	struct reffs_state *full = reffs_save(r);
	reffs_pool_put(&p, UINT64_MAX, empty);
	reffs_pool_put(&p, 0, full);
	reffs_pool_put(&p, 0, empty);
	ok(p.n == 2 && reffs_pool_get(&p, 0) == empty, "a key has one state");
	ok(!reffs_pool_get(&p, 1), "and no other key has");
	reffs_pool_drop(&p, 1);
	reffs_pool_drop(&p, 0);
	ok(p.n == 1 && !reffs_pool_get(&p, 0), "until it is dropped");
	reffs_state_unref(empty);
	reffs_state_unref(full);
	reffs_pool_release(&p);
	reffs_free(r);
}

/* One file of two pages, written at once; or over and over, with states kept meanwhile. */
static struct reffs *written(struct vfs_pages *pages, int times)
{
	struct reffs *r = reffs_new(NULL);
	struct reffs_state *kept = NULL;
	uint64_t ino;

	vfs_create(r, &reffs_root, ROOT, "f", 0644, &ino);
	for (int i = times - 1; i >= 0; i--) {
		memset(vfs_pages_at(pages, 0), i ? i : 'x', REFFS_PAGE);
		memset(vfs_pages_at(pages, 1), i % 3 ? i : 'y', REFFS_PAGE); /* zeros, too */
		vfs_pages_ready(pages, 0, 2);
		vfs_write_pages(r, &reffs_root, ino, NULL, pages, 0, (uint64_t)2 * REFFS_PAGE, 0);
		if (i % 4 == 1) {
			reffs_state_unref(kept);
			kept = reffs_save(r);
		}
	}
	reffs_state_unref(kept);
	return r;
}

static void pickle_of(struct reffs *r, struct strbuf *out)
{
	struct reffs_pool pool = { 0 };
	struct err err = ERR_INIT;
	struct reffs_state *s = reffs_save(r);

	reffs_pool_put(&pool, 1, s);
	reffs_state_unref(s);
	if (reffs_pickle(&pool, NULL, out, &err))
		printf("# %s\n", err.msg);
	reffs_pool_release(&pool);
}

static void test_written_over(void)
{
	struct vfs_pages *pages = vfs_pages_new();
	struct reffs *once = written(pages, 1), *often = written(pages, 50);
	auto_strbuf a = STRBUF_INIT, b = STRBUF_INIT, c = STRBUF_INIT;

	pickle_of(once, &a);
	pickle_of(often, &b);
	ok(a.len > 2 * REFFS_PAGE && a.len == b.len && !memcmp(a.buf, b.buf, a.len),
	   "what was written over and over is kept as what was written once");
	struct reffs *other = written(pages, 50);
	uint64_t ino = 0;
	vfs_lookup(other, &reffs_root, ROOT, "f", &ino);
	vfs_write(other, &reffs_root, ino, "z", REFFS_PAGE, 1, 0);
	pickle_of(other, &c);
	ok(a.len == c.len && memcmp(a.buf, c.buf, a.len), "a byte makes a difference");
	reffs_free(once);
	reffs_free(often);
	reffs_free(other);
	vfs_pages_free(pages);
}

int main(void)
{
	test_pool();
	test_round_trip();
	test_damage();
	test_refusals();
	test_file();
	test_written_over();
	return done_testing();
}
