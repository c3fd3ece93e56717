/* SPDX-License-Identifier: MIT */
/*
 * image.c - copy-on-write disk images: a radix tree of 64-way nodes above 4096-byte pages.
 *
 * I1: a part (node or page) with more than one reference never changes; a writer first replaces
 *     it, and the nodes above it, by copies of its own.
 * I2: no reachable page is all zero and no reachable node is empty: zeros are not stored.
 * I3: a part's `sum` is the sum over the pages below it of mix(page number, page hash), and
 *     `pages` is their number. A page therefore belongs to one page number for its whole life.
 * I4: bytes of the last page beyond the size of the image are zero.
 * I5: the number of levels follows from the size alone.
 * By I2 to I5, images of one size have equal sums if and only if they have equal bytes (as far as
 * a 128-bit hash can tell), whatever was written in between.
 *
 * Assertions check these where a part is written, and again where it is next read: a node when it
 * is copied, and a page when an image is saved, which hashes the page again.
 *
 * An image owns one reference to its root, a node one to each of its children. Not thread-safe.
 */
#include "core/image.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/io.h"

enum {
	FAN_BITS = 6,
	FAN = 1 << FAN_BITS,
	CHECK_EVERY = 64, /* see node_check(); the choice depends only on their content */
};

/*
 * The members that nodes and pages have in common; the level of a node follows from the way down to
 * it.
 */
struct image_part {
	uint32_t refs;
	uint64_t pages;
	struct hash128 sum;
};

struct image_page {
	struct image_part part;
	struct hash128 hash;
	unsigned char data[IMAGE_PAGE];
};

struct image_node {
	struct image_part part;
	struct image_part *child[FAN];
};

static const unsigned char zero_page[IMAGE_PAGE];
static const struct hash128 no_hash;

static struct image_page *as_page(struct image_part *p)
{
	return container_of(p, struct image_page, part);
}

static struct image_node *as_node(struct image_part *p)
{
	return container_of(p, struct image_node, part);
}

static struct hash128 mix(uint64_t page_no, struct hash128 page_hash)
{
	uint64_t both[3] = { page_no, page_hash.lo, page_hash.hi };

	return hash_bytes(both, sizeof(both));
}

/* Parts: `level` 0 is a page, above are nodes. */

static struct image_part *part_ref(struct image_part *p)
{
	if (p) {
		assert(p->refs > 0 && p->refs < UINT32_MAX);
		p->refs++;
	}
	return p;
}

static void part_unref(struct image_part *p, unsigned level)
{
	if (!p)
		return;
	assert(p->refs > 0);
	if (--p->refs)
		return;
	if (level == 0) {
		free(as_page(p));
		return;
	}
	struct image_node *n = as_node(p);
	for (unsigned i = 0; i < FAN; i++)
		part_unref(n->child[i], level - 1);
	free(n);
}

/* Asserts I3 for one node in CHECK_EVERY, because adding up takes as long as copying. */
static void node_check(const struct image_node *n)
{
	struct hash128 sum = no_hash;
	uint64_t pages = 0;

	if (n->part.sum.lo % CHECK_EVERY)
		return;
	for (unsigned i = 0; i < FAN; i++)
		if (n->child[i]) {
			sum = hash_add(sum, n->child[i]->sum);
			pages += n->child[i]->pages;
		}
	assert(n->part.pages == pages && hash_eq(n->part.sum, sum)); /* I3 */
	assert(pages > 0);					     /* I2 */
}

/* Returns the node in `slot` for a change (I1): made if missing, copied if shared. */
static struct image_node *node_own(struct image_part **slot, unsigned level)
{
	struct image_part *old = *slot;

	if (old && old->refs == 1)
		return as_node(old);
	struct image_node *n = xmalloc(sizeof(*n));
	if (old) {
		node_check(as_node(old));
		*n = *as_node(old);
		for (unsigned i = 0; i < FAN; i++)
			part_ref(n->child[i]);
		part_unref(old, level);
	} else {
		memset(n, 0, sizeof(*n));
	}
	n->part.refs = 1;
	*slot = &n->part;
	return n;
}

/* Returns the page in `slot` for a change; a page that will be overwritten whole is not copied. */
static struct image_page *page_own(struct image_part **slot, bool whole)
{
	struct image_part *old = *slot;

	if (old && old->refs == 1)
		return as_page(old);
	struct image_page *p = xmalloc(sizeof(*p));
	if (!whole)
		memcpy(p->data, old ? as_page(old)->data : zero_page, IMAGE_PAGE);
	part_unref(old, 0);
	p->part = (struct image_part){ .refs = 1, .pages = 1 };
	*slot = &p->part;
	return p;
}

struct edit {
	uint64_t page_no;
	const unsigned char *data; /* NULL: zeros */
	size_t off, len;	   /* in the page */
};

static void page_edit(struct image_part **slot, const struct edit *ed)
{
	bool whole = ed->len == IMAGE_PAGE;

	if (!ed->data && (whole || !*slot)) {
		part_unref(*slot, 0);
		*slot = NULL;
		return;
	}
	struct image_page *p = page_own(slot, whole);
	assert(p->part.refs == 1 && p->part.pages == 1); /* I1, I3 */
	if (ed->data)
		memcpy(p->data + ed->off, ed->data, ed->len);
	else
		memset(p->data + ed->off, 0, ed->len);
	if (all_zero(p->data, IMAGE_PAGE)) {
		part_unref(*slot, 0);
		*slot = NULL;
		return;
	}
	p->hash = hash_bytes(p->data, IMAGE_PAGE);
	p->part.sum = mix(ed->page_no, p->hash);
}

static void node_subtract(struct image_node *n, const struct image_part *child)
{
	assert(n->part.refs == 1); /* I1 */
	if (child) {
		assert(child->pages > 0 && n->part.pages >= child->pages); /* I2, I3 */
		n->part.sum = hash_sub(n->part.sum, child->sum);
		n->part.pages -= child->pages;
	}
}

static void node_add(struct image_node *n, const struct image_part *child)
{
	if (child) {
		assert(child->pages > 0); /* I2 */
		n->part.sum = hash_add(n->part.sum, child->sum);
		n->part.pages += child->pages;
	}
}

static void node_drop_if_empty(struct image_part **slot, unsigned level)
{
	if ((*slot)->pages)
		return;
	assert(hash_eq((*slot)->sum, no_hash)); /* I3 */
	part_unref(*slot, level);
	*slot = NULL;
}

static unsigned child_index(uint64_t page_no, unsigned level)
{
	return (page_no >> (FAN_BITS * (level - 1))) & (FAN - 1);
}

static void part_edit(struct image_part **slot, unsigned level, const struct edit *ed)
{
	if (level == 0) {
		page_edit(slot, ed);
		return;
	}
	if (!*slot && !ed->data)
		return;
	struct image_node *n = node_own(slot, level);
	struct image_part **child = &n->child[child_index(ed->page_no, level)];
	node_subtract(n, *child);
	part_edit(child, level - 1, ed);
	node_add(n, *child);
	node_drop_if_empty(slot, level);
}

/*
 * Replaces the pages first to last (inclusive, counted from the first page below this part) with
 * those of another tree; NULL: an empty tree.
 */
static void part_copy(struct image_part **slot, struct image_part *from, unsigned level,
		      uint64_t first, uint64_t last)
{
	uint64_t span = (uint64_t)1 << (FAN_BITS * level);

	if (*slot == from)
		return;
	if (first == 0 && last == span - 1) {
		part_unref(*slot, level);
		*slot = part_ref(from);
		return;
	}
	assert(level > 0);
	struct image_node *n = node_own(slot, level);
	span >>= FAN_BITS;
	for (uint64_t i = first / span; i <= last / span; i++) {
		uint64_t low = i == first / span ? first % span : 0;
		uint64_t high = i == last / span ? last % span : span - 1;

		node_subtract(n, n->child[i]);
		part_copy(&n->child[i], from ? as_node(from)->child[i] : NULL, level - 1, low,
			  high);
		node_add(n, n->child[i]);
	}
	node_drop_if_empty(slot, level);
}

/* Images. */

static uint64_t pages_of(uint64_t size)
{
	return (size + IMAGE_PAGE - 1) / IMAGE_PAGE;
}

void image_init(struct image *img, uint64_t size)
{
	unsigned levels = 0;

	assert(size <= IMAGE_SIZE_MAX);
	while (((uint64_t)1 << (FAN_BITS * levels)) < pages_of(size))
		levels++;
	*img = (struct image){ .size = size, .levels = levels };
}

/* Asserts that the root agrees with the size. */
static void image_check(const struct image *img)
{
	uint64_t pages = pages_of(img->size);

	assert(((uint64_t)1 << (FAN_BITS * img->levels)) >= pages);			 /* I5 */
	assert(!img->levels || ((uint64_t)1 << (FAN_BITS * (img->levels - 1))) < pages); /* I5 */
	assert(!img->root || (img->root->pages > 0 && img->root->pages <= pages)); /* I2, I3 */
}

void image_release(struct image *img)
{
	part_unref(img->root, img->levels);
	*img = (struct image)IMAGE_INIT;
}

void image_snapshot(const struct image *from, struct image *to)
{
	assert(!from->root || from->root->pages > 0); /* I2 */
	*to = (struct image){ from->size, from->levels, part_ref(from->root) };
}

void image_restore(struct image *img, const struct image *from)
{
	struct image kept;

	/* The new reference comes first, as the two may be one image. */
	image_snapshot(from, &kept);
	image_release(img);
	*img = kept;
}

bool image_range_ok(const struct image *img, uint64_t off, uint64_t len)
{
	return off <= img->size && len <= img->size - off;
}

static const struct image_page *find_page(const struct image *img, uint64_t page_no)
{
	struct image_part *p = img->root;

	for (unsigned level = img->levels; p && level > 0; level--)
		p = as_node(p)->child[child_index(page_no, level)];
	return p ? as_page(p) : NULL;
}

void image_read(const struct image *img, uint64_t off, void *data, size_t len)
{
	unsigned char *to = data;

	assert(image_range_ok(img, off, len));
	while (len > 0) {
		size_t in_page = off % IMAGE_PAGE;
		size_t n = min(len, IMAGE_PAGE - in_page);
		const struct image_page *p = find_page(img, off / IMAGE_PAGE);

		memcpy(to, (p ? p->data : zero_page) + in_page, n);
		to += n;
		off += n;
		len -= n;
	}
}

void image_write(struct image *img, uint64_t off, const void *data, size_t len)
{
	const unsigned char *from = data;

	assert(image_range_ok(img, off, len)); /* I4 */
	while (len > 0) {
		size_t in_page = off % IMAGE_PAGE;
		size_t n = min(len, IMAGE_PAGE - in_page);
		struct edit ed = { off / IMAGE_PAGE, from, in_page, n };

		part_edit(&img->root, img->levels, &ed);
		from += n;
		off += n;
		len -= n;
	}
}

static void zero_in_page(struct image *img, uint64_t off, uint64_t len)
{
	struct edit ed = { off / IMAGE_PAGE, NULL, off % IMAGE_PAGE, len };

	if (len)
		part_edit(&img->root, img->levels, &ed);
}

void image_zero(struct image *img, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;

	assert(image_range_ok(img, off, len));
	uint64_t first = (off + IMAGE_PAGE - 1) / IMAGE_PAGE; /* whole pages: [first, last) */
	uint64_t last = end / IMAGE_PAGE;
	if (first > last) {
		zero_in_page(img, off, len);
		return;
	}
	zero_in_page(img, off, first * IMAGE_PAGE - off);
	zero_in_page(img, last * IMAGE_PAGE, end - last * IMAGE_PAGE);
	if (first < last)
		part_copy(&img->root, NULL, img->levels, first, last - 1);
}

static void copy_in_page(struct image *img, const struct image *from, uint64_t off, uint64_t len)
{
	unsigned char data[IMAGE_PAGE];

	assert(len <= sizeof(data));
	image_read(from, off, data, len);
	image_write(img, off, data, len);
}

void image_copy(struct image *img, const struct image *from, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;

	assert(img->size == from->size && img->levels == from->levels); /* I5 */
	assert(image_range_ok(img, off, len));				/* I4 */
	uint64_t first = (off + IMAGE_PAGE - 1) / IMAGE_PAGE; /* whole pages: [first, last) */
	uint64_t last = end / IMAGE_PAGE;
	if (first > last) {
		copy_in_page(img, from, off, len);
		return;
	}
	copy_in_page(img, from, off, first * IMAGE_PAGE - off);
	copy_in_page(img, from, last * IMAGE_PAGE, end - last * IMAGE_PAGE);
	if (first < last)
		part_copy(&img->root, from->root, img->levels, first, last - 1);
}

struct hash128 image_hash(const struct image *img)
{
	struct hash128 size = hash_bytes(&img->size, sizeof(img->size));

	return img->root ? hash_add(size, img->root->sum) : size;
}

bool image_equal(const struct image *a, const struct image *b)
{
	return a->size == b->size && (a->root == b->root || hash_eq(image_hash(a), image_hash(b)));
}

uint64_t image_pages(const struct image *img)
{
	return img->root ? img->root->pages : 0;
}

struct diff {
	image_diff_fn fn;
	void *ctx;
};

static int part_diff(struct image_part *a, struct image_part *b, unsigned level, uint64_t page_no,
		     const struct diff *d)
{
	if (a == b || hash_eq(a ? a->sum : no_hash, b ? b->sum : no_hash))
		return 0;
	if (level == 0)
		return d->fn(d->ctx, page_no, a ? as_page(a)->data : zero_page,
			     b ? as_page(b)->data : zero_page);
	for (unsigned i = 0; i < FAN; i++) {
		int rc = part_diff(a ? as_node(a)->child[i] : NULL, b ? as_node(b)->child[i] : NULL,
				   level - 1, page_no * FAN + i, d);
		if (rc)
			return rc;
	}
	return 0;
}

int image_diff(const struct image *a, const struct image *b, image_diff_fn fn, void *ctx)
{
	struct diff d = { fn, ctx };

	assert(a->size == b->size);
	image_check(a);
	image_check(b);
	return part_diff(a->root, b->root, a->levels, 0, &d);
}

static int first_difference(void *ctx, uint64_t page, const unsigned char *a,
			    const unsigned char *b)
{
	uint64_t *at = ctx;
	unsigned i = 0;

	while (i < IMAGE_PAGE - 1 && a[i] == b[i])
		i++;
	*at = page * IMAGE_PAGE + i;
	return 1;
}

bool image_differs(const struct image *a, const struct image *b, uint64_t *at)
{
	return image_diff(a, b, first_difference, at) != 0;
}

/* Files. */

enum { CHUNK = 64 * 1024 };

static int load_range(int fd, const char *name, off_t from, off_t to, struct image *img,
		      struct err *err)
{
	auto_free unsigned char *buf = xmalloc(CHUNK);

	while (from < to) {
		size_t want = min((uint64_t)(to - from), (uint64_t)CHUNK);
		ssize_t n = io_pread_full(fd, buf, want, from);

		if (n < 0)
			return err_set(err, (int)n, "cannot read %s: %m", name);
		if ((size_t)n < want)
			return err_set(err, -EIO, "%s became shorter while it was read", name);
		image_write(img, (uint64_t)from, buf, want);
		from += (off_t)want;
	}
	return 0;
}

/* Finds the next range that may hold data at or after *from; an empty one at the file's end. */
static int next_data(int fd, off_t size, off_t *from, off_t *to)
{
	int fault = fault_point("image.seek");
	off_t data = fault ? -1 : lseek(fd, *from, SEEK_DATA);

	*to = size;
	if (fault)
		return fault;
	if (data < 0 && errno == ENXIO) { /* nothing but a hole is left */
		*from = size;
		return 0;
	}
	if (data < 0) /* a device, or a file system without holes: all of it is data */
		return errno == EINVAL || errno == EOPNOTSUPP ? 0 : -errno;
	off_t hole = lseek(fd, data, SEEK_HOLE);
	*from = min(data, size);
	if (hole >= 0)
		*to = min(hole, size);
	return 0;
}

int image_load_fd(int fd, const char *name, struct image *img, struct err *err)
{
	int fault = fault_point("image.size");
	off_t size = fault ? -1 : lseek(fd, 0, SEEK_END);

	if (size < 0) {
		int code = fault ? fault : -errno;
		return err_set(err, code, "cannot tell the size of %s: %m", name);
	}
	if ((uint64_t)size > IMAGE_SIZE_MAX)
		return err_set(err, -EFBIG, "%s is larger than an image can be (2^48 bytes)", name);
	auto_image loaded;
	image_init(&loaded, (uint64_t)size);
	for (off_t from = 0, to; from < size; from = to) {
		int rc = next_data(fd, size, &from, &to);

		if (rc)
			return err_set(err, rc, "cannot look for data in %s: %m", name);
		rc = load_range(fd, name, from, to, &loaded, err);
		if (rc)
			return rc;
	}
	image_snapshot(&loaded, img);
	return 0;
}

int image_load_file(const char *path, struct image *img, struct err *err)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", path);
	return image_load_fd(fd, path, img, err);
}

int image_load_below(const char *dir, const char *name, struct image *img, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	auto_fd fd = below_open(dir, name, O_RDONLY, err);

	return fd < 0 ? fd : image_load_fd(fd, shown, img, err);
}

/* Pages that follow each other are written together. */
struct save {
	int fd;
	uint64_t size; /* the image's: the last page may be cut */
	uint64_t off;  /* the offset of buf's content */
	size_t fill;
	unsigned char *buf; /* CHUNK bytes */
};

static int save_flush(struct save *s)
{
	size_t len = min((uint64_t)s->fill, s->size - s->off);

	assert(all_zero(s->buf + len, s->fill - len)); /* I4 */
	int rc = s->fill ? io_pwrite_full(s->fd, s->buf, len, (off_t)s->off) : 0;

	s->fill = 0;
	return rc;
}

static int save_page(void *ctx, uint64_t page_no, const unsigned char *none,
		     const unsigned char *data)
{
	struct save *s = ctx;
	uint64_t off = page_no * IMAGE_PAGE;
	const struct image_page *p = container_of(data, const struct image_page, data[0]);

	(void)none;
	assert(off < s->size && !all_zero(data, IMAGE_PAGE));			  /* I2, I5 */
	assert(hash_eq(p->part.sum, mix(page_no, hash_bytes(data, IMAGE_PAGE)))); /* I3 */
	if (s->fill == CHUNK || (s->fill && s->off + s->fill != off)) {
		int rc = save_flush(s);
		if (rc)
			return rc;
	}
	if (!s->fill)
		s->off = off;
	memcpy(s->buf + s->fill, data, IMAGE_PAGE);
	s->fill += IMAGE_PAGE;
	return 0;
}

/* Empties the file first, so that old content does not show through the holes. */
static int resize_file(int fd, uint64_t size)
{
	int fault = fault_point("image.truncate");

	if (fault)
		return fault;
	return ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

int image_save_fd(const struct image *img, int fd, const char *name, struct err *err)
{
	auto_free unsigned char *buf = xmalloc(CHUNK);
	struct save s = { .fd = fd, .size = img->size, .buf = buf };
	struct image empty;
	int rc = resize_file(fd, img->size);

	if (rc)
		return err_set(err, rc, "cannot set the size of %s: %m", name);
	image_init(&empty, img->size);
	rc = image_diff(&empty, img, save_page, &s);
	if (!rc)
		rc = save_flush(&s);
	if (rc)
		return err_set(err, rc, "cannot write %s: %m", name);
	return 0;
}

/* Saves the image; takes ownership of the output. */
static int save_output(const struct image *img, struct io_output *out, struct err *err)
{
	int rc = image_save_fd(img, out->fd, out->path, err);

	if (!rc)
		return io_output_commit(out, err);
	io_output_release(out);
	return rc;
}

int image_save_file(const struct image *img, const char *path, struct err *err)
{
	struct io_output out;
	int rc = io_output_open(path, &out, err);

	return rc ? rc : save_output(img, &out, err);
}

int image_save_below(const struct image *img, const char *dir, const char *name, bool durable,
		     struct err *err)
{
	struct io_output out;
	int rc = io_output_open_below(dir, name, durable, &out, err);

	return rc ? rc : save_output(img, &out, err);
}
