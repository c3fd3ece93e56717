/* SPDX-License-Identifier: MIT */
#include "app/roles.h"

#include <ctype.h>

#include "base/hash.h"
#include "base/strbuf.h"

enum { HEX_MIN = 8 }; /* so many hexadecimal digits in a row are a number */

/* Longer than any digits of a word that is one by accident. */
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

struct maker {
	struct roles *r;
	const struct history *h;
	const char **name; /* by object */
	struct vec_of(struct slot {
		uint64_t hash;
		uint32_t text;
		bool used;
	}) table; /* open addressing, a power of two */
};

static int note_name(void *ctx, const char *name, uint64_t ino)
{
	struct maker *m = ctx;

	m->name[ino - REFFS_ROOT_INO] = name;
	return 0;
}

static int note_names(void *ctx, const struct reffs_inode *inode)
{
	struct reffs_attr a;

	reffs_attr(inode, &a);
	return a.type == TREE_DIR ? reffs_entries(inode, note_name, ctx) : 0;
}

static void table_grow(struct maker *m)
{
	size_t size = m->table.n ? 2 * m->table.n : 64;

	free(m->table.v);
	m->table.v = xcalloc(size, sizeof(*m->table.v));
	m->table.n = size;
	for (uint32_t i = 0; i < m->r->texts.n; i++) {
		uint64_t hash = hash64(m->r->texts.v[i], strlen(m->r->texts.v[i]));
		size_t at = hash & (size - 1);

		while (m->table.v[at].used)
			at = (at + 1) & (size - 1);
		m->table.v[at] = (struct slot){ hash, i, true };
	}
}

static uint32_t text_index(struct maker *m, const char *text)
{
	uint64_t hash = hash64(text, strlen(text));

	if (2 * (m->r->texts.n + 1) > m->table.n)
		table_grow(m);
	size_t at = hash & (m->table.n - 1);
	for (; m->table.v[at].used; at = (at + 1) & (m->table.n - 1))
		if (m->table.v[at].hash == hash && streq(m->r->texts.v[m->table.v[at].text], text))
			return m->table.v[at].text;
	m->table.v[at] = (struct slot){ hash, (uint32_t)m->r->texts.n, true };
	vec_push(&m->r->texts, xstrdup(text));
	return m->table.v[at].text;
}

void roles_init(struct roles *r, const struct history *h)
{
	struct maker m = { .r = r, .h = h };
	auto_strbuf text = STRBUF_INIT;

	*r = (struct roles){ .of = xcalloc(h->changes.n + 1, sizeof(*r->of)) };
	m.name = xcalloc(h->objects.n, sizeof(*m.name));
	m.name[0] = ".";
	(void)reffs_inodes(h->before, note_names, &m);
	for (uint32_t i = 0; i < h->changes.n; i++) {
		const struct change *c = &h->changes.v[i];
		const char **name = &m.name[c->object - REFFS_ROOT_INO];

		if (c->kind == CHANGE_MAKE || c->kind == CHANGE_LINK)
			*name = c->name;
		strbuf_clear(&text);
		strbuf_addf(&text, "%s ", kinds[c->kind]);
		add_shape(&text, *name ? *name : "?");
		if (c->kind == CHANGE_RENAME || c->kind == CHANGE_SWAP) {
			strbuf_addch(&text, ' ');
			add_shape(&text, c->name2);
			*name = c->name2;
		}
		r->of[i] = text_index(&m, strbuf_str(&text));
	}
	free(m.name);
	free(m.table.v);
}

void roles_release(struct roles *r)
{
	for (size_t i = 0; i < r->texts.n; i++)
		free(r->texts.v[i]);
	vec_release(&r->texts);
	free(r->of);
	*r = (struct roles){ 0 };
}
