/* SPDX-License-Identifier: MIT */
/*
 * patch.h - many small writes to an image: an image computes a page anew for each write, and stores
 * of a processor come eight bytes at a time, one after the other. So they are gathered page by
 * page.
 */
#ifndef CORE_PATCH_H
#define CORE_PATCH_H

#include "core/image.h"

struct patch {
	struct image *img;
	bool open; /* `bytes` is what the page is to be */
	uint64_t page;
	unsigned char bytes[IMAGE_PAGE];
};

static inline void patch_init(struct patch *p, struct image *img)
{
	p->img = img;
	p->open = false;
}

void patch_write(struct patch *p, uint64_t addr, const void *data, size_t len);
/* Until then the image may lack what was written. */
void patch_finish(struct patch *p);

#endif
