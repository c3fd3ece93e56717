/* SPDX-License-Identifier: MIT */
/* roles.c - gives each change its role: the kind of call, and the path with its digits replaced. */
#include "app/roles.h"

#include <ctype.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "core/u64map.h"

enum {
	HEX_MIN = 8, /* so many hexadecimal digits in a row count as a number */
	DEPTH_MAX = 64,
};

/* Returns the length of a number, if any; hexadecimal ones are longer than by accident in words. */
static size_t number_at(const char *s)
{
	size_t digits = strspn(s, "0123456789"), hex = strspn(s, "0123456789abcdefABCDEF");

	return hex >= HEX_MIN ? hex : digits;
}

static void add_shape(struct strbuf *out, const char *name)
{
	while (*name) {
		size_t n = number_at(name);

		if (n)
			strbuf_addch(out, '#');
		else
			strbuf_addch(out, *name);
		name += n ? n : 1;
	}
}

static const char *const kinds[] = {
	[CHANGE_MAKE] = "make",	    [CHANGE_LINK] = "link",  [CHANGE_REMOVE] = "remove",
	[CHANGE_RENAME] = "rename", [CHANGE_SWAP] = "swap",  [CHANGE_ATTR] = "attributes",
	[CHANGE_XATTR] = "xattr",   [CHANGE_DATA] = "write", [CHANGE_SIZE] = "size",
	[CHANGE_RESIZE] = "resize",
};

struct roles_maker {
	struct roles *r;
	const struct history *h;
	const char **name;   /* by object: its last name */
	uint64_t *dir;	     /* by object: the directory of that name; 0: unknown */
	uint64_t at;	     /* the current directory */
	struct u64map texts; /* by hash: the index of a text */
};

static void set_name(struct roles_maker *m, uint64_t object, uint64_t dir, const char *name)
{
	m->name[object - REFFS_ROOT_INO] = name;
	m->dir[object - REFFS_ROOT_INO] = dir;
}

static int note_name(void *ctx, const char *name, uint64_t ino)
{
	struct roles_maker *m = ctx;

	set_name(m, ino, m->at, name);
	return 0;
}

static int note_names(void *ctx, const struct reffs_inode *inode)
{
	struct roles_maker *m = ctx;
	struct reffs_attr a;

	reffs_attr(inode, &a);
	m->at = a.ino;
	return a.type == TREE_DIR ? reffs_entries(inode, note_name, ctx) : 0;
}

/* Adds the path of a name in a directory. */
static void add_path(const struct roles_maker *m, uint64_t dir, const char *name, unsigned depth,
		     struct strbuf *out)
{
	if (dir > REFFS_ROOT_INO && depth < DEPTH_MAX) {
		const char *above = m->name[dir - REFFS_ROOT_INO];

		add_path(m, m->dir[dir - REFFS_ROOT_INO], above ? above : "?", depth + 1, out);
		strbuf_addch(out, '/');
	}
	add_shape(out, name);
}

static uint32_t text_index(struct roles_maker *m, const char *text)
{
	uint64_t hash = hash64(text, strlen(text));
	uint32_t i = u64map_get(&m->texts, hash);

	if (i == U64MAP_NONE) {
		i = (uint32_t)m->r->texts.n;
		u64map_add(&m->texts, hash, i);
		vec_push(&m->r->texts, xstrdup(text));
	}
	return i;
}

void roles_init(struct roles *r, const struct history *h)
{
	struct roles_maker m = { .r = r, .h = h };
	auto_strbuf text = STRBUF_INIT;

	*r = (struct roles){ .of = xcalloc(h->changes.n + 1, sizeof(*r->of)) };
	m.name = xcalloc(h->objects.n, sizeof(*m.name));
	m.dir = xcalloc(h->objects.n, sizeof(*m.dir));
	m.name[0] = ".";
	(void)reffs_inodes(h->before, note_names, &m);
	for (uint32_t i = 0; i < h->changes.n; i++) {
		const struct change *c = &h->changes.v[i];
		uint64_t o = c->object - REFFS_ROOT_INO;

		if (c->kind == CHANGE_MAKE || c->kind == CHANGE_LINK)
			set_name(&m, c->object, c->dir, c->name);
		strbuf_clear(&text);
		strbuf_addf(&text, "%s ", kinds[c->kind]);
		add_path(&m, m.dir[o], m.name[o] ? m.name[o] : "?", 0, &text);
		if (c->kind == CHANGE_RENAME || c->kind == CHANGE_SWAP) {
			strbuf_addch(&text, ' ');
			add_path(&m, c->dir2, c->name2, 0, &text);
			set_name(&m, c->object, c->dir2, c->name2);
		}
		r->of[i] = text_index(&m, strbuf_str(&text));
	}
	free(m.name);
	free(m.dir);
	u64map_release(&m.texts);
}

void roles_release(struct roles *r)
{
	for (size_t i = 0; i < r->texts.n; i++)
		free(r->texts.v[i]);
	vec_release(&r->texts);
	free(r->of);
	*r = (struct roles){ 0 };
}
