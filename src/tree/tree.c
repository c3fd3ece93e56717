/* SPDX-License-Identifier: MIT */
/*
 * tree.c - the structure of a semantic state, its canonical form and its hash.
 *
 * T1: in a finished tree, entries are in order of tree_path_cmp() and no path occurs twice.
 * T2: `link` numbers are 1, 2, ... in order of the first name of each file with several names.
 * T3: attributes are in order of name, and no name occurs twice.
 * T4: the hash and the diff cover exactly the fields for which a tree_has_*() function is true.
 */
#include "tree/tree_impl.h"

#include <sys/stat.h>

void tree_clear(struct tree *t)
{
	vec_clear(&t->entries);
	arena_clear(&t->arena);
	t->lacks = 0;
	t->kept = 0;
	t->finished = false;
}

void tree_release(struct tree *t)
{
	vec_release(&t->entries);
	arena_release(&t->arena);
	free(t->scratch);
	*t = (struct tree)TREE_INIT;
}

const char *tree_type_word(enum tree_type type)
{
	static const char *const words[] = {
		[TREE_UNKNOWN] = "unknown", [TREE_FILE] = "file",     [TREE_DIR] = "dir",
		[TREE_SYMLINK] = "symlink", [TREE_FIFO] = "fifo",     [TREE_CHAR] = "char",
		[TREE_BLOCK] = "block",	    [TREE_SOCKET] = "socket",
	};
	_Static_assert(ARRAY_SIZE(words) == TREE_TYPE_END, "a word for each type");

	assert(type < TREE_TYPE_END);
	return words[type];
}

const char *tree_step_word(enum tree_step step)
{
	static const char *const words[] = {
		[TREE_STEP_NONE] = "none",	     [TREE_STEP_STAT] = "stat",
		[TREE_STEP_MOUNT] = "mount",	     [TREE_STEP_LOOP] = "loop",
		[TREE_STEP_OPEN] = "open",	     [TREE_STEP_READ] = "read",
		[TREE_STEP_READLINK] = "readlink",   [TREE_STEP_READDIR] = "readdir",
		[TREE_STEP_LISTXATTR] = "listxattr",
	};
	_Static_assert(ARRAY_SIZE(words) == TREE_STEP_END, "a word for each step");

	assert(step < TREE_STEP_END);
	return words[step];
}

unsigned tree_opts_fields(const struct tree_opts *opts)
{
	return (opts->blocks ? TREE_FIELD_BLOCKS : 0u) | (opts->times ? TREE_FIELD_TIMES : 0u) |
	       (opts->dir_size ? TREE_FIELD_DIR_SIZE : 0u) |
	       (opts->dir_nlink ? TREE_FIELD_DIR_NLINK : 0u);
}

bool tree_has_attrs(const struct tree_entry *e)
{
	return e->type != TREE_UNKNOWN && e->step != TREE_STEP_MOUNT;
}

bool tree_has_size(const struct tree_entry *e, unsigned fields)
{
	if (e->type == TREE_DIR)
		return tree_has_attrs(e) && (fields & TREE_FIELD_DIR_SIZE);
	return tree_has_attrs(e) && (e->type == TREE_FILE || e->type == TREE_SYMLINK);
}

bool tree_has_nlink(const struct tree_entry *e, unsigned fields)
{
	return tree_has_attrs(e) && (e->type != TREE_DIR || (fields & TREE_FIELD_DIR_NLINK));
}

bool tree_has_blocks(const struct tree_entry *e, unsigned fields)
{
	return (fields & TREE_FIELD_BLOCKS) && tree_has_size(e, fields);
}

bool tree_has_rdev(const struct tree_entry *e)
{
	return tree_has_attrs(e) && (e->type == TREE_CHAR || e->type == TREE_BLOCK);
}

static bool read_before(const struct tree_entry *e)
{
	return !e->error || e->step == TREE_STEP_LISTXATTR;
}

bool tree_has_content(const struct tree_entry *e)
{
	return e->type == TREE_FILE && read_before(e);
}

bool tree_has_target(const struct tree_entry *e)
{
	return e->type == TREE_SYMLINK && read_before(e);
}

bool tree_has_xattrs(const struct tree_entry *e)
{
	return !e->error;
}

/*
 * The index is not used as a seed: for short inputs XXH3 mixes the seed with the bytes by one
 * exclusive or, so two pages at different places that differ in two bits could have the same hash.
 */
struct hash128 tree_page_hash(uint64_t index, const void *data, size_t len)
{
	const unsigned char *s = data;
	struct {
		struct hash128 content;
		uint64_t index;
	} page = { .index = index };

	assert(len <= TREE_PAGE);
	while (len && !s[len - 1])
		len--;
	if (!len)
		return (struct hash128){ 0 };
	page.content = hash_bytes(s, len);
	return hash_bytes(&page, sizeof(page));
}

struct hash128 tree_content_hash(const void *data, size_t len)
{
	struct hash128 sum = { 0 };
	const unsigned char *s = data;

	for (size_t at = 0; at < len; at += TREE_PAGE)
		sum = hash_add(sum, tree_page_hash(at / TREE_PAGE, s + at,
						   min(len - at, (size_t)TREE_PAGE)));
	return sum;
}

bool tree_keep(struct tree *t, const struct tree_opts *opts, uint64_t size)
{
	uint64_t limit = opts->content_limit ? opts->content_limit : TREE_CONTENT_LIMIT;

	if (size > limit || size > TREE_CONTENT_TOTAL - t->kept)
		return false;
	t->kept += (size_t)size;
	return true;
}

void tree_push(struct tree *t, const struct tree_entry *e)
{
	assert(!t->finished);
	assert(e->type < TREE_TYPE_END && e->step < TREE_STEP_END);
	assert(!e->error == !e->step); /* `step` is set iff `error` is */
	assert((e->type == TREE_UNKNOWN) == (e->step == TREE_STEP_STAT));
	assert(!tree_has_target(e) || e->target);
	assert(e->mode <= 07777 && e->atime.nsec < 1000000000 && e->mtime.nsec < 1000000000);
	vec_push(&t->entries, *e);
	if (e->type == TREE_FILE && !e->size)
		vec_last(&t->entries).hash = (struct hash128){ 0 };
}

DEFINE_ORDER(cmp_xattr, struct tree_xattr, strcmp(a->name, b->name))

static const struct tree_xattr *copy_xattrs(struct arena *a, const struct tree_xattr *from,
					    size_t n)
{
	if (!n)
		return NULL;

	struct tree_xattr *to = arena_alloc(a, n * sizeof(*to));
	for (size_t i = 0; i < n; i++)
		to[i] = (struct tree_xattr){
			.name = arena_strdup(a, from[i].name),
			.value = arena_memdupz(a, from[i].value, from[i].len),
			.len = from[i].len,
		};
	qsort(to, n, sizeof(*to), cmp_xattr);
	for (size_t i = 1; i < n; i++)
		assert(strcmp(to[i - 1].name, to[i].name) < 0);
	return to;
}

void tree_add(struct tree *t, const struct tree_entry *e, const struct tree_opts *opts)
{
	struct tree_entry own = *e;

	own.path = arena_strdup(&t->arena, e->path);
	own.content = NULL;
	if (e->type == TREE_FILE && e->content) {
		own.hash = tree_content_hash(e->content, (size_t)e->size);
		if (e->size && tree_keep(t, opts, e->size))
			own.content = arena_memdupz(&t->arena, e->content, (size_t)e->size);
	}
	if (e->target)
		own.target = arena_strdup(&t->arena, e->target);
	own.xattrs = copy_xattrs(&t->arena, e->xattrs, e->n_xattrs);
	tree_push(t, &own);
}

int tree_path_cmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	if (*a == *b)
		return 0;
	/* The end of a path sorts first, then '/', then every other byte. */
	unsigned x = *a == '/' ? 1u : *a ? (unsigned char)*a + 1u : 0u;
	unsigned y = *b == '/' ? 1u : *b ? (unsigned char)*b + 1u : 0u;
	return x < y ? -1 : 1;
}

DEFINE_ORDER(cmp_entry, struct tree_entry, tree_path_cmp(a->path, b->path))

static void sort_entries(struct tree *t)
{
	struct tree_entry *v = t->entries.v;
	size_t n = t->entries.n, kept = 0;
	bool sorted = true;

	/* Most trees are built in order, and need no sort. */
	for (size_t i = 1; i < n && sorted; i++)
		sorted = tree_path_cmp(v[i - 1].path, v[i].path) < 0;
	if (sorted)
		return;
	qsort(v, n, sizeof(*v), cmp_entry);
	for (size_t i = 1; i < n; i++) {
		if (streq(v[kept].path, v[i].path))
			v[kept].doubled = true;
		else
			v[++kept] = v[i];
	}
	t->entries.n = kept + 1;
}

struct ident {
	uint64_t dev, inode;
	size_t at;
};

DEFINE_ORDER(cmp_ident, struct ident,
	     order(a->dev, b->dev) ?: order(a->inode, b->inode) ?: order(a->at, b->at))

/* Numbers the files with several names by their first name (T2). */
static void number_links(struct tree *t)
{
	struct tree_entry *v = t->entries.v;
	size_t n = t->entries.n, n_ids = 0;
	auto_free struct ident *ids = xmalloc(n * sizeof(*ids));
	auto_free size_t *first =
		xmalloc(n * sizeof(*first)); /* the entry of a file's first name */
	uint32_t next = 0;

	for (size_t i = 0; i < n; i++) {
		v[i].link = 0;
		first[i] = i;
		if (v[i].inode && tree_has_attrs(&v[i]))
			ids[n_ids++] = (struct ident){ v[i].dev, v[i].inode, i };
	}
	if (n_ids)
		qsort(ids, n_ids, sizeof(*ids), cmp_ident);
	for (size_t i = 1; i < n_ids; i++)
		if (ids[i].dev == ids[i - 1].dev && ids[i].inode == ids[i - 1].inode)
			first[ids[i].at] = first[ids[i - 1].at];
	for (size_t i = 0; i < n; i++)
		if (first[i] != i)
			v[first[i]].link = UINT32_MAX; /* has several names; numbered below */
	for (size_t i = 0; i < n; i++)
		if (first[i] != i || v[i].link)
			v[i].link = first[i] == i ? ++next : v[first[i]].link;
}

void tree_finish(struct tree *t)
{
	assert(!t->finished);
	if (t->entries.n) {
		sort_entries(t);
		number_links(t);
	}
	t->finished = true;
}

const struct tree_entry *tree_find(const struct tree *t, const char *path)
{
	assert(t->finished);
	size_t i = first_where(k, t->entries.n, tree_path_cmp(t->entries.v[k].path, path) >= 0);
	return i < t->entries.n && streq(t->entries.v[i].path, path) ? &t->entries.v[i] : NULL;
}

const struct tree_xattr *tree_find_xattr(const struct tree_entry *e, const char *name)
{
	for (size_t i = 0; i < e->n_xattrs; i++)
		if (streq(e->xattrs[i].name, name))
			return &e->xattrs[i];
	return NULL;
}

static const unsigned type_modes[TREE_TYPE_END] = { 0,	     S_IFREG, S_IFDIR, S_IFLNK,
						    S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK };

unsigned tree_type_mode(enum tree_type type)
{
	return type_modes[type];
}

enum tree_type tree_type_of(unsigned mode)
{
	const unsigned *found = array_find(i, type_modes, type_modes[i] == (mode & S_IFMT));

	return found ? (enum tree_type)(found - type_modes) : TREE_UNKNOWN;
}

static void put(struct strbuf *sb, uint64_t v)
{
	strbuf_add(sb, &v, sizeof(v));
}

static void put_bytes(struct strbuf *sb, const void *data, size_t len)
{
	put(sb, len);
	strbuf_add(sb, data, len);
}

static void put_attrs(struct strbuf *sb, const struct tree_entry *e, unsigned fields)
{
	put(sb, e->mode);
	put(sb, (uint64_t)e->uid << 32 | e->gid);
	put(sb, e->link);
	if (tree_has_nlink(e, fields))
		put(sb, e->nlink);
	if (tree_has_size(e, fields))
		put(sb, e->size);
	if (tree_has_blocks(e, fields))
		put(sb, e->blocks);
	if (tree_has_rdev(e))
		put(sb, (uint64_t)e->rdev_major << 32 | e->rdev_minor);
	if (fields & TREE_FIELD_TIMES) {
		put(sb, (uint64_t)e->atime.sec);
		put(sb, (uint64_t)e->mtime.sec);
		put(sb, (uint64_t)e->atime.nsec << 32 | e->mtime.nsec);
	}
}

/* Each part has a fixed size or starts with its length, so different entries differ in bytes.
 */
static void put_entry(struct strbuf *sb, const struct tree_entry *e, unsigned fields)
{
	put_bytes(sb, e->path, strlen(e->path));
	put(sb, (uint64_t)e->type << 32 | (uint64_t)e->step << 1 | e->doubled);
	put(sb, (uint64_t)e->error);
	if (tree_has_attrs(e))
		put_attrs(sb, e, fields);
	if (tree_has_content(e)) {
		put(sb, e->hash.lo);
		put(sb, e->hash.hi);
	}
	if (tree_has_target(e))
		put_bytes(sb, e->target, strlen(e->target));
	if (!tree_has_xattrs(e))
		return;
	put(sb, e->n_xattrs);
	for (size_t i = 0; i < e->n_xattrs; i++) {
		put_bytes(sb, e->xattrs[i].name, strlen(e->xattrs[i].name));
		put_bytes(sb, e->xattrs[i].value, e->xattrs[i].len);
	}
}

static struct hash128 hash_fields(const struct tree *t, unsigned fields)
{
	auto_strbuf sb = STRBUF_INIT;

	assert(t->finished);
	put(&sb, fields);
	for (size_t i = 0; i < t->entries.n; i++)
		put_entry(&sb, &t->entries.v[i], fields);
	return hash_bytes(sb.buf, sb.len);
}

struct hash128 tree_hash(const struct tree *t, const struct tree_opts *opts)
{
	return hash_fields(t, tree_opts_fields(opts) & ~t->lacks);
}

bool tree_equal(const struct tree *a, const struct tree *b, const struct tree_opts *opts)
{
	unsigned fields = tree_opts_fields(opts) & ~(a->lacks | b->lacks);

	return hash_eq(hash_fields(a, fields), hash_fields(b, fields));
}
