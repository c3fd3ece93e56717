/* SPDX-License-Identifier: MIT */
/*
 * image.h - copy-on-write disk images.
 *
 * An image is `size` bytes, all zero at first. A snapshot is one reference: both images are
 * independent afterwards, and only pages that one of them writes are copied. The hash of the whole
 * image is kept up to date on each write, so two equal images are recognised without reading them.
 * To restore an image is image_release() and image_snapshot() from a kept one.
 *
 * Ranges given to read, write and zero must lie inside the image: that is the caller's contract
 * (asserted); image_range_ok() answers for ranges that come from outside.
 *
 * Not thread-safe: images that share pages belong to one worker.
 */
#ifndef CORE_IMAGE_H
#define CORE_IMAGE_H

#include "base/err.h"
#include "base/hash.h"

#define IMAGE_PAGE     4096
#define IMAGE_SIZE_MAX ((uint64_t)1 << 48)

struct image_part;

struct image {
	uint64_t size;		 /* bytes */
	unsigned levels;	 /* levels of nodes above the pages; follows from size */
	struct image_part *root; /* NULL while everything is zero */
};

#define IMAGE_INIT                                                                                 \
	{                                                                                          \
		0                                                                                  \
	}

/* `size` is at most IMAGE_SIZE_MAX; 0 is a valid, empty image. */
void image_init(struct image *img, uint64_t size);
void image_release(struct image *img);
#define auto_image __attribute__((cleanup(image_release))) struct image

/* `to` is not an image yet (or was released). Takes constant time. */
void image_snapshot(const struct image *from, struct image *to);
/* Makes `img` equal to `from`, which may be the same image. */
void image_restore(struct image *img, const struct image *from);

bool image_range_ok(const struct image *img, uint64_t off, uint64_t len);
void image_read(const struct image *img, uint64_t off, void *data, size_t len);
void image_write(struct image *img, uint64_t off, const void *data, size_t len);
/* Takes time for the pages that exist, not for the length of the range. */
void image_zero(struct image *img, uint64_t off, uint64_t len);
/* Makes a range equal to that in `from`, of the same size. Whole pages are shared, not copied. */
void image_copy(struct image *img, const struct image *from, uint64_t off, uint64_t len);

/* Images with equal hashes have equal size and content. */
struct hash128 image_hash(const struct image *img);
bool image_equal(const struct image *a, const struct image *b);
/* The number of pages that are not all zero. */
uint64_t image_pages(const struct image *img);

/*
 * Calls `fn` for each page that differs, in ascending order, with IMAGE_PAGE bytes of either side
 * (zeros past the end of an image whose size is no multiple). A result other than 0 ends the walk
 * and is returned. Shared parts are not visited. Both images must have the same size.
 */
typedef int (*image_diff_fn)(void *ctx, uint64_t page_no, const unsigned char *a,
			     const unsigned char *b);
int image_diff(const struct image *a, const struct image *b, image_diff_fn fn, void *ctx);
/* Gives the place of the first byte that differs; false if there is none. */
bool image_differs(const struct image *a, const struct image *b, uint64_t *at);

/* Makes an image of a file or device; holes are not read. `img` is written only on success. */
int image_load_file(const char *path, struct image *img, struct err *err) must_check;
int image_load_fd(int fd, const char *name, struct image *img, struct err *err) must_check;
/* Writes a sparse file of the image's size, which appears whole or not at all. */
int image_save_file(const struct image *img, const char *path, struct err *err) must_check;
/* Load and save the file NAME below DIR, where no link is followed; see base/below.h. */
int image_load_below(const char *dir, const char *name, struct image *img, struct err *err)
	must_check;
int image_save_below(const struct image *img, const char *dir, const char *name, bool durable,
		     struct err *err) must_check;
/* Replaces the content of the regular file `fd`. */
int image_save_fd(const struct image *img, int fd, const char *name, struct err *err) must_check;

#endif
