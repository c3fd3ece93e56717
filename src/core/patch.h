/* SPDX-License-Identifier: MIT */
/*
 * patch.h - gathers small writes to an image page by page: an image copies and hashes a page for
 * each write, and stores of a processor come eight bytes at a time.
 */
#ifndef CORE_PATCH_H
#define CORE_PATCH_H

#include "core/image.h"
#include "core/trace.h"

struct patch {
	struct image *img;
	bool open; /* `bytes` is the new content of the page */
	uint64_t page;
	unsigned char bytes[IMAGE_PAGE];
};

static inline void patch_init(struct patch *p, struct image *img)
{
	p->img = img;
	p->open = false;
}

void patch_write(struct patch *p, uint64_t addr, const void *data, size_t len);
/* Writes the gathered bytes; until then the image may lack them. */
void patch_finish(struct patch *p);
/* Applies all that a trace wrote. */
void patch_trace(const struct trace *t, struct image *img);

#endif
