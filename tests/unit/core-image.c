/* SPDX-License-Identifier: MIT */
/* An image holds what plain bytes would, whatever is copied, shared and put back. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/rng.h"
#include "core/hashset.h"
#include "core/image.h"

/* An image beside the plain bytes it should hold. */
struct twin {
	struct image img;
	unsigned char *bytes;
};

static void twin_init(struct twin *t, size_t size)
{
	image_init(&t->img, size);
	t->bytes = xcalloc(1, size);
}

static void twin_release(struct twin *t)
{
	image_release(&t->img);
	free(t->bytes);
}

static void twin_copy(struct twin *to, const struct twin *from)
{
	image_restore(&to->img, &from->img);
	memcpy(to->bytes, from->bytes, from->img.size);
}

static void twin_copy_range(struct twin *to, const struct twin *from, struct rng *r)
{
	uint64_t off = rng_below(r, from->img.size + 1);
	uint64_t len = rng_below(r, from->img.size - off + 1);

	image_copy(&to->img, &from->img, off, len);
	memmove(to->bytes + off, from->bytes + off, len);
}

static bool twin_ok(const struct twin *t)
{
	auto_free unsigned char *got = xmalloc(t->img.size);

	image_read(&t->img, 0, got, t->img.size);
	return memcmp(got, t->bytes, t->img.size) == 0;
}

/* Mostly short, at times many pages; often zeros, often a few values so that contents meet again.
 */
static void twin_change(struct twin *t, struct rng *r)
{
	uint64_t size = t->img.size;
	uint64_t off = rng_below(r, 2) ? rng_below(r, size / 512 + 1) * 512 : rng_below(r, size);
	uint64_t len = rng_below(r, rng_below(r, 8) ? 9000 : size) + 1;
	uint64_t kind = rng_below(r, 4);

	off = min(off, size - 1);
	len = min(len, size - off);
	if (kind == 0) {
		image_zero(&t->img, off, len);
		memset(t->bytes + off, 0, len);
		return;
	}
	memset(t->bytes + off, kind == 1 ? 0 : (int)rng_below(r, 3), len);
	if (kind == 3)
		t->bytes[off + rng_below(r, len)] = (unsigned char)rng_next(r);
	image_write(&t->img, off, t->bytes + off, len);
}

struct count {
	uint64_t pages;
	uint64_t last;
	bool ordered, right;
	const struct twin *a, *b;
};

static int count_page(void *ctx, uint64_t no, const unsigned char *a, const unsigned char *b)
{
	struct count *c = ctx;
	size_t len = min((uint64_t)IMAGE_PAGE, c->a->img.size - no * IMAGE_PAGE);

	c->ordered &= c->pages == 0 || no > c->last;
	c->last = no;
	c->pages++;
	c->right &= memcmp(a, c->a->bytes + no * IMAGE_PAGE, len) == 0;
	c->right &= memcmp(b, c->b->bytes + no * IMAGE_PAGE, len) == 0;
	return 0;
}

static uint64_t differing_pages(const struct twin *a, const struct twin *b)
{
	uint64_t n = 0;

	for (uint64_t off = 0; off < a->img.size; off += IMAGE_PAGE)
		n += memcmp(a->bytes + off, b->bytes + off,
			    min((uint64_t)IMAGE_PAGE, a->img.size - off)) != 0;
	return n;
}

static bool diff_ok(const struct twin *a, const struct twin *b)
{
	struct count c = { .ordered = true, .right = true, .a = a, .b = b };

	return image_diff(&a->img, &b->img, count_page, &c) == 0 && c.ordered && c.right &&
	       c.pages == differing_pages(a, b);
}

static uint64_t nonzero_pages(const struct twin *t)
{
	static const unsigned char zeros[IMAGE_PAGE];
	uint64_t n = 0;

	for (uint64_t off = 0; off < t->img.size; off += IMAGE_PAGE)
		n += memcmp(t->bytes + off, zeros, min((uint64_t)IMAGE_PAGE, t->img.size - off)) !=
		     0;
	return n;
}

/* The hash as it is when the same bytes are written at once into a new image. */
static struct hash128 fresh_hash(const struct twin *t)
{
	auto_image img;

	image_init(&img, t->img.size);
	image_write(&img, 0, t->bytes, t->img.size);
	return image_hash(&img);
}

static void test_random(uint64_t size, uint64_t seed)
{
	enum { TWINS = 4, STEPS = 1500 };
	struct twin t[TWINS];
	struct rng r;
	bool content = true, hashes = true, fresh = true, diffs = true, pages = true;
	int equal = 0;

	rng_init(&r, seed);
	for (int i = 0; i < TWINS; i++)
		twin_init(&t[i], size);
	for (int step = 0; step < STEPS; step++) {
		uint64_t a = rng_below(&r, TWINS), b = rng_below(&r, TWINS);

		uint64_t how = rng_below(&r, 6);

		if (how == 0)
			twin_copy(&t[a], &t[b]);
		else if (how == 1)
			twin_copy_range(&t[a], &t[b], &r);
		else
			twin_change(&t[a], &r);
		bool same = memcmp(t[a].bytes, t[b].bytes, size) == 0;
		equal += same && a != b;
		hashes &= hash_eq(image_hash(&t[a].img), image_hash(&t[b].img)) == same;
		hashes &= image_equal(&t[a].img, &t[b].img) == same;
		pages &= image_pages(&t[a].img) == nonzero_pages(&t[a]);
		diffs &= diff_ok(&t[a], &t[b]);
		if (step % 16 == 0) {
			content &= twin_ok(&t[a]) && twin_ok(&t[b]);
			fresh &= hash_eq(image_hash(&t[a].img), fresh_hash(&t[a]));
		}
	}
	for (int i = 0; i < TWINS; i++) {
		content &= twin_ok(&t[i]);
		twin_release(&t[i]);
	}
	ok(content, "size %" PRIu64 ": the bytes are those of a plain array", size);
	ok(hashes && equal > 0, "size %" PRIu64 ": equal hash iff equal content (%d equal)", size,
	   equal);
	ok(fresh, "size %" PRIu64 ": the hash does not depend on how the content came about", size);
	ok(pages, "size %" PRIu64 ": pages of zeros are not kept", size);
	ok(diffs, "size %" PRIu64 ": the difference is every page that differs, in order", size);
}

static void test_large(void)
{
	auto_image a, b;
	unsigned char got[3];

	image_init(&a, IMAGE_SIZE_MAX);
	struct hash128 empty = image_hash(&a);
	image_write(&a, IMAGE_SIZE_MAX - 3, "end", 3);
	image_snapshot(&a, &b);
	image_write(&a, 5, "x", 1);
	image_write(&a, 1ull << 40, "y", 1);
	is_u(image_pages(&a), 3, "three pages in 2^48 bytes");
	is_u(image_pages(&b), 1, "the snapshot has its own");
	image_read(&a, IMAGE_SIZE_MAX - 3, got, 3);
	ok(memcmp(got, "end", 3) == 0, "the last bytes of 2^48");
	image_zero(&a, 3, IMAGE_SIZE_MAX - 3 - 3);
	ok(image_equal(&a, &b), "zeroing nearly everything");
	image_zero(&a, 0, IMAGE_SIZE_MAX);
	ok(hash_eq(image_hash(&a), empty) && image_pages(&a) == 0, "zeroing everything");
	ok(image_range_ok(&a, IMAGE_SIZE_MAX, 0), "an empty range at the end is inside");
	ok(!image_range_ok(&a, IMAGE_SIZE_MAX, 1), "a byte behind the end is not");
	ok(!image_range_ok(&a, 1, UINT64_MAX), "a range that wraps is not");
	auto_image other;
	image_init(&other, IMAGE_SIZE_MAX - 1);
	ok(!image_equal(&a, &other), "images of different size differ");
}

static void test_hashset(void)
{
	enum { N = 20000 };
	auto_hashset s = HASHSET_INIT;
	bool fresh = true, again = true, absent = true;

	for (uint64_t i = 0; i < N; i++)
		fresh &= hashset_insert(&s, i ? hash_bytes(&i, sizeof(i)) : (struct hash128){ 0 });
	for (uint64_t i = 0; i < N; i++) {
		struct hash128 h = i ? hash_bytes(&i, sizeof(i)) : (struct hash128){ 0 };
		again &= !hashset_insert(&s, h) && hashset_has(&s, h);
	}
	for (uint64_t i = N; i < 2 * N; i++)
		absent &= !hashset_has(&s, hash_bytes(&i, sizeof(i)));
	ok(fresh && again && absent && s.n == N, "a set of hashes knows its members");
	hashset_clear(&s);
	ok(s.n == 0 && hashset_insert(&s, (struct hash128){ 0 }), "and forgets them");
}

/* Files. */

static void test_file(const char *path, const char *path2)
{
	auto_image img, back, again;
	struct err err = ERR_INIT;
	struct stat st;

	image_init(&img, (64 << 20) + 100);
	image_write(&img, 1 << 20, "hello", 5);
	image_write(&img, (32 << 20) - 2, "across a page", 13);
	image_write(&img, (64 << 20) + 97, "end", 3);
	image_write(&img, 2 << 20, "gone", 4);
	image_write(&img, 2 << 20, "\0\0\0", 4);
	back = again = (struct image)IMAGE_INIT;
	is_i(image_save_file(&img, path, &err), 0, "saved: %s", err.msg);
	is_i(stat(path, &st), 0, "the file is there");
	is_u(st.st_size, img.size, "of the image's size");
	ok(st.st_blocks * 512 < 1 << 20, "and sparse (%lld blocks)", (long long)st.st_blocks);
	is_i(image_load_file(path, &back, &err), 0, "loaded: %s", err.msg);
	ok(image_equal(&img, &back) && image_pages(&back) == 4, "the same image");

	int fd = open(path2, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char junk[9000];
	memset(junk, 'j', sizeof(junk));
	ok(fd >= 0 && write(fd, junk, sizeof(junk)) == sizeof(junk), "a file with old content");
	is_i(image_save_fd(&img, fd, path2, &err), 0, "is replaced: %s", err.msg);
	is_i(image_load_fd(fd, path2, &again, &err), 0, "loaded: %s", err.msg);
	ok(image_equal(&img, &again), "nothing of the old content shows");
	util_close(fd);

	struct image untouched = { .size = 42 };
	is_i(image_load_file("/proc/none/image", &untouched, &err), -ENOENT, "no file, no image");
	ok(untouched.size == 42 && strstr(err.msg, "/proc/none/image"), "said: %s", err.msg);
	err_clear(&err);
	is_i(image_save_file(&img, "/proc/none/image", &err), -ENOENT, "no folder, no file");
}

static void test_faults(const char *path)
{
	auto_image img;
	struct err err = ERR_INIT;
	struct fault_loop saves = { .error = ENOSPC }, loads = { .error = EIO };
	int failed = 0, bad = 0;

	image_init(&img, 1 << 20);
	for (uint64_t i = 0; i < 5; i++)
		image_write(&img, i * 150000, "data", 4);
	while (fault_loop_next(&saves)) {
		unlink(path);
		err_clear(&err);
		int rc = image_save_file(&img, path, &err);
		failed += rc != 0;
		bad += rc ? rc != -ENOSPC || !err.msg[0] || access(path, F_OK) == 0
			  : access(path, F_OK) != 0;
	}
	ok(failed >= 7 && !bad, "save fails cleanly at each of %d places", failed);
	failed = 0;
	while (fault_loop_next(&loads)) {
		struct image back = { .size = 7 };

		err_clear(&err);
		int rc = image_load_file(path, &back, &err);
		failed += rc != 0;
		if (rc) {
			bad += rc != -EIO || !err.msg[0] || back.size != 7;
			continue;
		}
		bad += !image_equal(&img, &back);
		image_release(&back);
	}
	ok(failed >= 3 && !bad, "load fails cleanly at each of %d places", failed);
}

int main(void)
{
	char dir[] = "/tmp/core-image.XXXXXX";

	test_random(1, 1);
	test_random(4096, 2);
	test_random(100000, 3);
	test_random(64 * 4096, 4);
	test_random(70 * 4096 + 17, 5);
	test_large();
	test_hashset();
	if (!mkdtemp(dir))
		return 1;
	auto_free char *path = xasprintf("%s/a", dir);
	auto_free char *path2 = xasprintf("%s/b", dir);
	test_file(path, path2);
	test_faults(path);
	unlink(path);
	unlink(path2);
	ok(rmdir(dir) == 0, "no temporary file stayed behind");
	return done_testing();
}
