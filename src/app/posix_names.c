/* SPDX-License-Identifier: MIT */
/*
 * posix_names.c - finds the path of an inode at a moment of a trace.
 *
 * One table answers three questions: the file of an inode, the entry of a directory by its name,
 * and the place of a text that was kept. Keys are never removed; an entry that is gone has no file.
 *
 * N1: a path is made once and kept until a directory gets another name: that makes a new
 *     generation, in which every path is made anew when needed.
 * N2: a path in a circle of directories ends where the circle closes.
 */
#include "app/posix_names.h"

#include "base/hash.h"
#include "base/strbuf.h"

enum { SLOTS_MIN = 64 };

/* The key of texts: no directory has this index, and no inode has a name. */
#define TEXT (UINT64_MAX - 1)

static uint64_t node_hash(uint64_t key, const char *name, size_t len)
{
	struct hash128 h =
		hash_bytes_seeded(name ? name : "", name ? len : 0, key * 2 + (name ? 1 : 0));

	return h.lo;
}

static bool node_is(const struct posix_node *node, uint64_t key, const char *name, size_t len)
{
	if (node->key != key || !node->name != !name)
		return false;
	return !name || (strlen(node->name) == len && memcmp(node->name, name, len) == 0);
}

/* Returns the slot of a node, or a free slot for it. */
static size_t find_slot(const struct posix_names *n, uint64_t key, const char *name, size_t len)
{
	size_t at = node_hash(key, name, len) & (n->n_slots - 1);

	while (n->slots[at] && !node_is(&n->nodes.v[n->slots[at] - 1], key, name, len))
		at = (at + 1) & (n->n_slots - 1);
	return at;
}

static void grow(struct posix_names *n)
{
	size_t cap = n->n_slots ? n->n_slots * 2 : SLOTS_MIN;

	free(n->slots);
	n->slots = xcalloc(cap, sizeof(*n->slots));
	n->n_slots = cap;
	for (size_t i = 0; i < n->nodes.n; i++) {
		const struct posix_node *node = &n->nodes.v[i];
		size_t len = node->name ? strlen(node->name) : 0;

		n->slots[find_slot(n, node->key, node->name, len)] = (uint32_t)i + 1;
	}
}

static struct posix_node *find_node(const struct posix_names *n, uint64_t key, const char *name,
				    size_t len)
{
	uint32_t i = n->slots[find_slot(n, key, name, len)];

	return i ? &n->nodes.v[i - 1] : NULL;
}

/* Returns a node, made if there is none. */
static struct posix_node *get_node(struct posix_names *n, uint64_t key, const char *name,
				   size_t len)
{
	size_t at = find_slot(n, key, name, len);

	if (!n->slots[at]) {
		assert(n->nodes.n < UINT32_MAX - 1);
		vec_push(&n->nodes,
			 (struct posix_node){ .key = key,
					      .name = name ? arena_memdupz(&n->arena, name, len)
							   : NULL,
					      .file = POSIX_NO_FILE });
		n->slots[at] = (uint32_t)n->nodes.n;
		if (n->nodes.n * 2 > n->n_slots)
			grow(n);
		return &vec_last(&n->nodes);
	}
	return &n->nodes.v[n->slots[at] - 1];
}

void posix_names_init(struct posix_names *n)
{
	*n = (struct posix_names){ .generation = 1 };
	grow(n);
	uint32_t root = posix_names_new(n, POSIX_ROOT_INO);

	n->files.v[root].is_dir = true;
	n->files.v[root].named = true;
}

void posix_names_release(struct posix_names *n)
{
	for (size_t i = 0; i < n->files.n; i++)
		free(n->files.v[i].names);
	vec_release(&n->files);
	vec_release(&n->nodes);
	free(n->slots);
	arena_release(&n->arena);
	*n = (struct posix_names){ 0 };
}

uint32_t posix_names_new(struct posix_names *n, uint64_t ino)
{
	/* The root stays the only root, even if a trace has other events. */
	if (n->files.n && ino == n->files.v[0].ino)
		return 0;
	assert(n->files.n < POSIX_NO_FILE - 1);
	vec_push(&n->files, (struct posix_file){ .ino = ino });
	get_node(n, ino, NULL, 0)->file = (uint32_t)n->files.n - 1;
	return (uint32_t)n->files.n - 1;
}

void posix_names_root(struct posix_names *n, uint64_t ino)
{
	n->root_known = true;
	if (!ino || ino == n->files.v[0].ino)
		return;
	get_node(n, ino, NULL, 0)->file = 0;
	n->files.v[0].ino = ino;
	n->generation++; /* files below it, until now an unknown directory, get other paths */
}

uint32_t posix_names_file(struct posix_names *n, uint64_t ino)
{
	struct posix_node *node = ino ? find_node(n, ino, NULL, 0) : NULL;

	if (!ino)
		return POSIX_NO_FILE;
	return node ? node->file : posix_names_new(n, ino);
}

uint32_t posix_names_entry(const struct posix_names *n, uint32_t dir, const char *name)
{
	const struct posix_node *node;

	if (dir == POSIX_NO_FILE || !name)
		return POSIX_NO_FILE;
	node = find_node(n, dir, name, strlen(name));
	return node ? node->file : POSIX_NO_FILE;
}

/* Drops the path of a file, and those below a directory, after a change of name. */
static void path_changed(struct posix_names *n, struct posix_file *f)
{
	f->path = NULL;
	if (f->is_dir)
		n->generation++;
}

void posix_names_link(struct posix_names *n, uint32_t file, uint32_t dir, const char *name)
{
	struct posix_file *f = &n->files.v[file];
	struct posix_node *node;

	if (file == 0 || file == dir) /* the root is in no directory, and none is in itself */
		return;
	n->files.v[dir].is_dir = true;
	node = get_node(n, dir, name, strlen(name));
	if (node->file == file)
		return;
	if (node->file != POSIX_NO_FILE) { /* the old file loses this name */
		posix_names_unlink(n, node->file, dir, name);
		node = get_node(n, dir, name, strlen(name));
	}
	node->file = file;
	f->links++;
	f->gone = false;
	f->named = true;
	f->last = (struct posix_name){ dir, node->name };
	if (f->n_kept < POSIX_LINKS_KEPT) {
		/* Memory grows to 1, 2, 4, ...: most files only ever have one name. */
		if (!(f->n_kept & (f->n_kept - 1)))
			f->names = xrealloc(f->names,
					    max(f->n_kept * 2, (size_t)1) * sizeof(*f->names));
		f->names[f->n_kept++] = f->last;
	}
	path_changed(n, f);
	if (!f->first_path)
		f->first_path = posix_names_path(n, file);
}

/* Drops a name of a file; if it was its current one, another name becomes that. */
static void drop_name(struct posix_file *f, uint32_t dir, const char *name)
{
	for (size_t i = 0; i < f->n_kept; i++) {
		if (f->names[i].parent == dir && streq(f->names[i].name, name)) {
			f->names[i] = f->names[--f->n_kept];
			break;
		}
	}
	if (f->n_kept && f->last.parent == dir && streq(f->last.name, name))
		f->last = f->names[f->n_kept - 1];
}

bool posix_names_unlink(struct posix_names *n, uint32_t file, uint32_t dir, const char *name)
{
	struct posix_file *f = &n->files.v[file];
	struct posix_node *node = find_node(n, dir, name, strlen(name));
	bool known = node && node->file == file;

	if (node)
		node->file = POSIX_NO_FILE;
	if (file == 0)
		return false;
	/* A file with a name from before the trace gets that name as its first. */
	if (!f->named && dir != file) {
		f->named = true;
		f->last = (struct posix_name){ dir, posix_names_text(n, name, strlen(name)) };
		f->path = NULL;
		f->first_path = posix_names_path(n, file);
		f = &n->files.v[file];
	}
	drop_name(f, dir, name);
	if (known && f->links)
		f->links--;
	path_changed(n, f);
	f->gone = !f->links;
	return f->gone;
}

const char *posix_names_text(struct posix_names *n, const char *text, size_t len)
{
	return get_node(n, TEXT, text, len)->name;
}

/* Adds a name, with slashes escaped: a name is no way into another directory. */
static void add_part(struct strbuf *sb, const char *name)
{
	for (; *name; name++) {
		if (*name == '/')
			strbuf_adds(sb, "\\x2f");
		else
			strbuf_addch(sb, *name);
	}
}

static const char *path_at(struct posix_names *n, uint32_t file, unsigned depth);

static const char *join(struct posix_names *n, uint32_t dir, const char *name, unsigned depth)
{
	auto_strbuf sb = STRBUF_INIT;

	if (dir != 0) {
		strbuf_adds(&sb, path_at(n, dir, depth + 1));
		strbuf_addch(&sb, '/');
	}
	if (sb.len + strlen(name) >= POSIX_PATH_MAX) {
		strbuf_clear(&sb);
		strbuf_adds(&sb, ".../");
	}
	add_part(&sb, name);
	return posix_names_text(n, strbuf_str(&sb), sb.len);
}

static const char *path_at(struct posix_names *n, uint32_t file, unsigned depth)
{
	struct posix_file *f = &n->files.v[file];
	const char *path;
	char number[32];

	if (file == 0)
		return ".";
	if (f->path && f->generation == n->generation)
		return f->path;
	if (f->visiting || depth > POSIX_DEPTH_MAX)
		return "...";
	if (f->named) {
		f->visiting = true;
		path = join(n, f->last.parent, f->last.name, depth);
		f->visiting = false;
	} else {
		int len = snprintf(number, sizeof(number), "#%llu", llu(f->ino));

		path = posix_names_text(n, number, (size_t)len);
	}
	f->path = path;
	f->generation = n->generation;
	return path;
}

const char *posix_names_path(struct posix_names *n, uint32_t file)
{
	return path_at(n, file, 0);
}

const char *posix_names_path_in(struct posix_names *n, uint32_t dir, const char *name)
{
	return join(n, dir, name, 0);
}
