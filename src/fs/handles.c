/* SPDX-License-Identifier: MIT */
/* handles.c - the files that the operations of workloads leave open, by name. */
#include "fs/reffs_impl.h"

struct handle *handle_find(struct reffs *r, const char *name)
{
	for (size_t i = 0; i < r->handles.n; i++)
		if (streq(r->handles.v[i].name, name))
			return r->handles.v[i].file.ino ? &r->handles.v[i] : NULL;
	return NULL;
}

void handle_set(struct reffs *r, const char *name, struct opened file)
{
	vfs_pin(r, file.ino, 1);
	vec_each(h, &r->handles) {
		if (!streq(h->name, name))
			continue;
		/* The new file is open before the old one is closed. */
		struct handle old = { NULL, h->file };
		h->file = file;
		handle_close(r, &old);
		return;
	}
	vec_push(&r->handles, (struct handle){ xstrdup(name), file });
}

void handle_close(struct reffs *r, struct handle *h)
{
	uint64_t ino = h->file.ino;

	h->file.ino = 0;
	if (ino)
		vfs_unpin(r, ino, 1);
}

void handles_close_all(struct reffs *r)
{
	for (size_t i = 0; i < r->handles.n; i++)
		handle_close(r, &r->handles.v[i]);
}
