/* SPDX-License-Identifier: MIT */
/* patch.c - gathers small writes to one page, and writes each page to the image once. */
#include "core/patch.h"

#include <string.h>

#include "base/util.h"

static size_t page_bytes(const struct patch *p)
{
	return (size_t)min(p->img->size - p->page * IMAGE_PAGE, (uint64_t)IMAGE_PAGE);
}

void patch_finish(struct patch *p)
{
	if (p->open)
		image_write(p->img, p->page * IMAGE_PAGE, p->bytes, page_bytes(p));
	p->open = false;
}

static void open_page(struct patch *p, uint64_t page)
{
	if (p->open && p->page == page)
		return;
	patch_finish(p);
	p->page = page;
	p->open = true;
	image_read(p->img, page * IMAGE_PAGE, p->bytes, page_bytes(p));
}

void patch_write(struct patch *p, uint64_t addr, const void *data, size_t len)
{
	const unsigned char *from = data;

	while (len) {
		size_t n = min(len, (size_t)(IMAGE_PAGE - addr % IMAGE_PAGE));

		open_page(p, addr / IMAGE_PAGE);
		memcpy(p->bytes + addr % IMAGE_PAGE, from, n);
		addr += n;
		from += n;
		len -= n;
	}
}

void patch_trace(const struct trace *t, struct image *img)
{
	struct patch patch;

	patch_init(&patch, img); /* a disk has requests, or stores */
	vec_each(ev, &t->events) {
		if (ev->kind == EV_STORE)
			patch_write(&patch, ev->addr, ev->data, ev->len);
		else if (ev->kind == EV_WRITE)
			image_write(img, ev->addr, ev->data, ev->len);
		else if (ev->kind == EV_DISCARD || ev->kind == EV_ZERO)
			image_zero(img, ev->addr, ev->len);
	}
	patch_finish(&patch);
}
