/* SPDX-License-Identifier: MIT */
/*
 * pickle_read.c - reads a file of states, which may come from a stranger.
 *
 * Each node is checked when it is read, by the facts about the nodes that it refers to, and gets
 * sums of its own: so no shared node is visited twice. Properties of a whole state (names, links,
 * the way from the root) are checked for each state.
 */
#include <endian.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/io.h"
#include "fs/acl.h"
#include "fs/reffs_impl.h"
#include "fs/path.h"
#include "fs/pickle.h"
#include "fs/reffs_pool.h"

/* The limit of names in all states together; each name is visited. */
enum { NAMES_MAX = 1 << 26 };
enum { XATTR_NAME_MAX_LEN = 255, XATTR_VALUE_MAX_LEN = 65536 };
#define INO_MAX ((uint64_t)INT64_MAX)

struct pickle_node {
	enum record type; /* for a branch: the type of its leaves */
	union {
		struct page *page;
		struct blob *blob;
		struct xattrs *xattrs;
		struct map_node *map;
	};
	const struct map_node *leaf; /* a leaf, to show how all keys begin */
	/* Sums over slots: content; over inodes: terms. The count of leaves, and of pages. */
	struct hash128 sum;
	uint64_t n, pages;
	uint64_t last;		      /* the highest index of a slot, or inode number */
	const struct page_slot *tail; /* the slot with that index */
	struct reffs_state *state;    /* a state that has this table and passed all checks */
};

struct reader {
	struct reffs *r;
	const unsigned char *data;
	size_t at, end;
	bool times, short_of;
	struct vec_of(struct pickle_node) nodes;
	struct reffs_pool loaded;
	uint64_t names, last_ino;
	struct err *err;
};

/* ---- bytes ---- */

static int damaged(struct reader *rd, const char *what)
{
	return err_set(rd->err, -EBADMSG, "damaged at byte %zu: %s", rd->at, what);
}

static const unsigned char *take(struct reader *rd, size_t len)
{
	if (len > rd->end - rd->at) {
		rd->short_of = true;
		return NULL;
	}
	rd->at += len;
	return rd->data + rd->at - len;
}

static uint64_t get(struct reader *rd, size_t len)
{
	const unsigned char *p = take(rd, len);
	uint64_t n = 0;

	for (size_t i = len; p && i-- > 0;)
		n = n << 8 | p[i];
	return n;
}

static struct tree_time get_time(struct reader *rd)
{
	int64_t sec = (int64_t)get(rd, 8);

	return (struct tree_time){ sec, (uint32_t)get(rd, 4) };
}

/* Returns the node of a number, which must have this type; NULL for 0. Sets `*bad` on error. */
static struct pickle_node *get_node(struct reader *rd, enum record type, bool *bad)
{
	uint64_t n = get(rd, 4);

	if (!n)
		return NULL;
	if (n > rd->nodes.n || rd->nodes.v[n - 1].type != type) {
		*bad = true;
		return NULL;
	}
	return &rd->nodes.v[n - 1];
}

/* ---- nodes ---- */

static int read_page(struct reader *rd, struct pickle_node *out)
{
	const unsigned char *p = take(rd, REFFS_PAGE);

	if (!p)
		return 0;
	if (hash_eq(tree_page_hash(0, p, REFFS_PAGE), (struct hash128){ 0 }))
		return damaged(rd, "a page of zeros");
	out->page = page_new();
	memcpy(out->page->data, p, REFFS_PAGE);
	return 0;
}

static int read_target(struct reader *rd, struct pickle_node *out)
{
	size_t len = (size_t)get(rd, 4);
	const unsigned char *p = take(rd, len);

	if (!p)
		return 0;
	if (!len || len >= PATH_LEN_MAX || memchr(p, 0, len))
		return damaged(rd, "a link's target is no path");
	out->blob = blob_new(p, len);
	return 0;
}

static bool right_name(const char *name)
{
	static const char *const spaces[] = { "user.", "trusted.", "security." };

	if (streq(name, ACL_ACCESS) || streq(name, ACL_DEFAULT))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
		if (!strncmp(name, spaces[i], strlen(spaces[i])))
			return name[strlen(spaces[i])];
	return false;
}

static bool right_acl(const char *name, const void *value, size_t len)
{
	auto_acl acl = { 0 };
	uint32_t mode = 0;

	if (!streq(name, ACL_ACCESS) && !streq(name, ACL_DEFAULT))
		return true;
	if (acl_parse(value, len, &acl) || !acl.n || acl_valid(&acl))
		return false;
	return acl_mode(&acl, &mode) || streq(name, ACL_DEFAULT);
}

/* Adds one attribute; false if it is invalid, or does not sort after the last. */
static bool add_xattr(struct xattrs **x, const unsigned char *p, size_t len)
{
	const unsigned char *nul = memchr(p, 0, len);

	if (!nul || nul - p > XATTR_NAME_MAX_LEN)
		return false;
	const char *name = (const char *)p, *value = (const char *)nul + 1;
	size_t value_len = len - (size_t)(nul - p) - 1;
	if (value_len > XATTR_VALUE_MAX_LEN || !right_name(name) ||
	    !right_acl(name, value, value_len))
		return false;
	if (*x && strcmp((*x)->v[(*x)->n - 1]->data, name) >= 0)
		return false;
	struct xattrs *more = xattrs_with(*x, name, value, value_len);
	xattrs_unref(*x);
	*x = more;
	return true;
}

static int read_xattrs(struct reader *rd, struct pickle_node *out)
{
	uint64_t n = get(rd, 4);

	if (!n)
		return damaged(rd, "a list without attributes");
	if (n > 4096) /* each further one costs a copy of the list */
		return damaged(rd, "too many attributes");
	while (n-- > 0 && !rd->short_of) {
		size_t len = (size_t)get(rd, 4);
		const unsigned char *p = take(rd, len);

		if (p && !add_xattr(&out->xattrs, p, len))
			return damaged(rd, "an attribute that cannot be");
	}
	return 0;
}

static int read_branch(struct reader *rd, struct pickle_node *out)
{
	unsigned bit = (unsigned)get(rd, 2);
	uint64_t left = get(rd, 4), right = get(rd, 4);

	if (rd->short_of)
		return 0;
	if (!left || !right || left > rd->nodes.n || right > rd->nodes.n)
		return damaged(rd, "a branch that leads nowhere");
	const struct pickle_node *a = &rd->nodes.v[left - 1], *b = &rd->nodes.v[right - 1];
	if (!a->leaf || !b->leaf || a->type != b->type)
		return damaged(rd, "a branch to what is no map");
	out->map = map_join(a->map, a->leaf, b->map, b->leaf, bit);
	if (!out->map)
		return damaged(rd, "keys that are not where they belong");
	map_ref(a->map);
	map_ref(b->map);
	out->type = a->type;
	out->leaf = a->leaf;
	out->sum = hash_add(a->sum, b->sum);
	out->n = a->n + b->n;
	out->pages = a->pages + b->pages;
	out->last = max(a->last, b->last);
	out->tail = a->last > b->last ? a->tail : b->tail;
	return 0;
}

static int read_slot(struct reader *rd, struct pickle_node *out)
{
	uint64_t index = get(rd, 8);
	bool bad = false;
	const struct pickle_node *page = get_node(rd, REC_PAGE, &bad);

	if (rd->short_of)
		return 0;
	if (bad || index > INO_MAX / REFFS_PAGE)
		return damaged(rd, "a slot without its page");
	struct page_slot *s = page_slot_new(index, page ? page_ref(page->page) : NULL);
	if (page)
		s->hash = tree_page_hash(index, s->page->data, REFFS_PAGE);
	out->map = &s->node;
	out->leaf = out->map;
	out->sum = s->hash;
	out->n = 1;
	out->last = index;
	out->tail = s;
	return 0;
}

static int read_entry(struct reader *rd, struct pickle_node *out)
{
	uint64_t ino = get(rd, 8);
	size_t len = (size_t)get(rd, 1);
	const char *p = (const char *)take(rd, len);

	if (!p)
		return 0;
	bool dots = len && len < 3 && p[0] == '.' && p[len - 1] == '.';
	if (!len || dots || memchr(p, 0, len) || memchr(p, '/', len))
		return damaged(rd, "a name that is none");
	out->map = &dirent_node_new(p, len, ino)->node;
	out->leaf = out->map;
	out->n = 1;
	return 0;
}

/* ---- inodes ---- */

/* True if the last page ends in zeros behind the end of the file. */
static bool right_tail(const struct pickle_node *map, uint64_t size)
{
	size_t in = size % REFFS_PAGE;

	if (map->last != size / REFFS_PAGE || !in || !map->tail->page)
		return true;
	return all_zero(map->tail->page->data + in, REFFS_PAGE - in);
}

static bool right_file(const struct reader *rd, const struct reffs_inode *i,
		       const struct pickle_node *map)
{
	if (i->size > rd->r->opts.file_max)
		return false;
	return !map ||
	       (map->last < (i->size + REFFS_PAGE - 1) / REFFS_PAGE && right_tail(map, i->size));
}

static bool right_time(struct tree_time t)
{
	return t.nsec < 1000000000;
}

static bool right_inode(const struct reader *rd, const struct reffs_inode *i,
			const struct pickle_node *map, const struct pickle_node *target)
{
	bool device = i->type == TREE_CHAR || i->type == TREE_BLOCK;

	if (i->type <= TREE_UNKNOWN || i->type >= TREE_TYPE_END || i->mode > 07777)
		return false;
	if (!i->ino || i->ino > INO_MAX || !i->nlink || i->uid == UINT32_MAX ||
	    i->gid == UINT32_MAX)
		return false;
	if (!right_time(i->atime) || !right_time(i->mtime) || !right_time(i->ctime) ||
	    !right_time(i->btime))
		return false;
	if ((i->type == TREE_SYMLINK) != (target != NULL) || (i->rdev && !device))
		return false;
	if (i->parent && i->type != TREE_DIR)
		return false;
	if (map && i->type != TREE_FILE && i->type != TREE_DIR)
		return false;
	if (i->type != TREE_DIR && xattrs_find(i->xattrs, ACL_DEFAULT))
		return false;
	if (i->type == TREE_SYMLINK && xattrs_find(i->xattrs, ACL_ACCESS))
		return false;
	if (i->type == TREE_FILE)
		return right_file(rd, i, map);
	return i->size == (target ? target->blob->len : 0);
}

/* Moves the content of the nodes to the inode. */
static void fill_inode(struct reader *rd, struct reffs_inode *i, const struct pickle_node *map,
		       const struct pickle_node *target, const struct pickle_node *xattrs)
{
	if (map) {
		i->map = map_ref(map->map);
		i->pages = i->type == TREE_FILE ? map->n : 0;
		i->content = map->sum;
	}
	if (target) {
		i->target = blob_ref(target->blob);
		i->content = hash_bytes(i->target->data, i->target->len);
	}
	if (xattrs) {
		i->xattrs = xattrs->xattrs;
		i->xattrs->refs++;
	}
	i->term = inode_term(i, rd->times);
}

static int read_inode(struct reader *rd, struct pickle_node *out)
{
	uint64_t ino = get(rd, 8), type = get(rd, 1);
	struct reffs_inode *i = inode_alloc(ino, (enum tree_type)type, 0);
	bool bad = false;

	out->map = &i->node; /* freed with the node, also after an error */
	i->mode = (uint32_t)get(rd, 4);
	i->uid = (uint32_t)get(rd, 4);
	i->gid = (uint32_t)get(rd, 4);
	i->nlink = get(rd, 8);
	i->size = get(rd, 8);
	i->rdev = get(rd, 8);
	i->parent = get(rd, 8);
	i->atime = get_time(rd);
	i->mtime = get_time(rd);
	i->ctime = get_time(rd);
	i->btime = get_time(rd);
	i->names.lo = get(rd, 8);
	i->names.hi = get(rd, 8);
	enum record leaves = i->type == TREE_DIR ? REC_ENTRY : REC_SLOT;
	const struct pickle_node *map = get_node(rd, leaves, &bad);
	const struct pickle_node *target = get_node(rd, REC_TARGET, &bad);
	const struct pickle_node *xattrs = get_node(rd, REC_XATTRS, &bad);
	if (rd->short_of)
		return 0;
	if (bad)
		return damaged(rd, "an inode without its parts");
	if (xattrs)
		i->xattrs = xattrs->xattrs;
	bool right = right_inode(rd, i, map, target);
	i->xattrs = NULL;
	if (!right)
		return damaged(rd, "an inode that cannot be");
	fill_inode(rd, i, map, target, xattrs);
	out->leaf = out->map;
	out->sum = i->term;
	out->n = 1;
	out->pages = i->pages;
	out->last = i->ino;
	return 0;
}

/* ---- states ---- */

/* The facts about the inodes of a state after a walk from its root. */
struct walked {
	struct reader *rd;
	const struct pickle_node *table;
	struct pins links;		    /* the number of names of each inode */
	struct vec_of(struct hash128) sums; /* sums of their paths, by their place in `places` */
	struct pins places;		    /* the index of an inode's sum, from 1 */
	struct vec_of(const struct reffs_inode *) dirs; /* directories to visit */
	const struct reffs_inode *dir;
	uint64_t subdirs;
	const char *wrong;
};

static const struct reffs_inode *inode_of(const struct walked *w, uint64_t ino)
{
	struct map_num key = map_num(ino);
	const struct map_node *leaf = map_find(w->table->map, key.b, sizeof(key));

	return leaf ? container_of(leaf, struct reffs_inode, node) : NULL;
}

static int wrong(struct walked *w, const char *what)
{
	w->wrong = what;
	return 1;
}

static void add_path(struct walked *w, uint64_t ino, struct hash128 path)
{
	uint64_t place = pins_count(&w->places, ino);

	pins_add(&w->links, ino, 1);
	if (place) {
		w->sums.v[place - 1] = hash_add(w->sums.v[place - 1], path);
		return;
	}
	vec_push(&w->sums, path);
	pins_add(&w->places, ino, (int64_t)w->sums.n);
}

static int walk_entry(void *ctx, const struct map_node *leaf)
{
	struct walked *w = ctx;
	const struct dirent_node *d = container_of(leaf, struct dirent_node, node);
	const struct reffs_inode *i = inode_of(w, d->ino);

	if (++w->rd->names > NAMES_MAX)
		return wrong(w, "too many names in all states together");
	if (!i || i->ino == REFFS_ROOT_INO)
		return wrong(w, "a name without its inode");
	add_path(w, i->ino, path_hash(w->dir->names, d->name, leaf->bits));
	if (i->type != TREE_DIR)
		return 0;
	w->subdirs++;
	if (i->parent != w->dir->ino || pins_count(&w->links, i->ino) > 1)
		return wrong(w, "a directory with two parents");
	vec_push(&w->dirs, i);
	return 0;
}

static int check_inode(void *ctx, const struct map_node *leaf)
{
	struct walked *w = ctx;
	const struct reffs_inode *i = container_of(leaf, struct reffs_inode, node);
	uint64_t place = pins_count(&w->places, i->ino);

	if (!place || !hash_eq(w->sums.v[place - 1], i->names))
		return wrong(w, "an inode whose names are others");
	if (i->type != TREE_DIR && pins_count(&w->links, i->ino) != i->nlink)
		return wrong(w, "a wrong number of links");
	return 0;
}

static void walk_state(struct walked *w)
{
	const struct reffs_inode *root = inode_of(w, REFFS_ROOT_INO);

	if (!root || root->type != TREE_DIR || root->parent != REFFS_ROOT_INO) {
		wrong(w, "no root");
		return;
	}
	add_path(w, REFFS_ROOT_INO, hash_bytes("/", 1));
	vec_push(&w->dirs, root);
	while (w->dirs.n && !w->wrong) {
		w->dir = w->dirs.v[--w->dirs.n];
		w->subdirs = 0;
		/* Paths below are hashed from this sum, so it is checked first. */
		uint64_t place = pins_count(&w->places, w->dir->ino);
		if (!hash_eq(w->sums.v[place - 1], w->dir->names))
			wrong(w, "a directory whose name is another");
		else if (!map_each(w->dir->map, walk_entry, w) && w->dir->nlink != w->subdirs + 2)
			wrong(w, "a wrong number of links");
	}
	if (!w->wrong)
		map_each(w->table->map, check_inode, w);
}

static int check_state(struct reader *rd, const struct pickle_node *table)
{
	struct walked w = { .rd = rd, .table = table };

	walk_state(&w);
	pins_release(&w.links);
	pins_release(&w.places);
	vec_release(&w.sums);
	vec_release(&w.dirs);
	return w.wrong ? damaged(rd, w.wrong) : 0;
}

static int read_state(struct reader *rd)
{
	uint64_t key = get(rd, 8);
	bool bad = false;
	struct pickle_node *table = get_node(rd, REC_INODE, &bad);

	if (rd->short_of)
		return 0;
	if (bad || !table)
		return damaged(rd, "a state without inodes");
	if (!table->state) {
		int rc = check_state(rd, table);

		if (rc)
			return rc;
		table->state = xmalloc(sizeof(*table->state));
		*table->state = (struct reffs_state){
			1, rd->times, map_ref(table->map), table->sum, table->n, table->pages,
		};
	}
	rd->last_ino = max(rd->last_ino, table->last);
	reffs_pool_put(&rd->loaded, key, table->state);
	return 0;
}

/* ---- the file ---- */

static int read_record(struct reader *rd, enum record type)
{
	static int (*const readers[])(struct reader *, struct pickle_node *) = {
		[REC_PAGE] = read_page,	    [REC_TARGET] = read_target, [REC_XATTRS] = read_xattrs,
		[REC_BRANCH] = read_branch, [REC_SLOT] = read_slot,	[REC_ENTRY] = read_entry,
		[REC_INODE] = read_inode,
	};
	struct pickle_node n = { .type = type };
	int rc;

	if (type == REC_STATE)
		return read_state(rd);
	if (type >= ARRAY_SIZE(readers))
		return damaged(rd, "a record of no known type");
	rc = readers[type](rd, &n);
	vec_push(&rd->nodes, n); /* also after a failure: it is freed with the others */
	return rc;
}

static void node_release(struct pickle_node *n)
{
	reffs_state_unref(n->state);
	if (n->type == REC_PAGE)
		page_unref(n->page);
	else if (n->type == REC_TARGET)
		blob_unref(n->blob);
	else if (n->type == REC_XATTRS)
		xattrs_unref(n->xattrs);
	else
		map_unref(n->map);
}

static int read_head(struct reader *rd, const void *data, size_t len)
{
	size_t least = PICKLE_HEAD + 1 + PICKLE_TAIL;
	uint64_t version, flags;

	if (len < least || memcmp(data, PICKLE_MAGIC, strlen(PICKLE_MAGIC)) != 0)
		return err_set(rd->err, -EBADMSG, "this is no file of saved states");
	rd->at = strlen(PICKLE_MAGIC);
	rd->end = len - PICKLE_TAIL;
	version = get(rd, 4);
	flags = get(rd, 4);
	if (version != REFFS_PICKLE_VERSION)
		return err_set(rd->err, -EPROTONOSUPPORT,
			       "the file has version %u, this program reads version %u; write it "
			       "again with this program",
			       (unsigned)version, REFFS_PICKLE_VERSION);
	struct hash128 sum = hash_bytes(data, rd->end), want;
	rd->end = len;
	size_t at = rd->at;
	rd->at = len - PICKLE_TAIL;
	want.lo = get(rd, 8);
	want.hi = get(rd, 8);
	rd->at = at;
	rd->end = len - PICKLE_TAIL;
	if (!hash_eq(sum, want) && !pickle_any_sum)
		return err_set(rd->err, -EBADMSG,
			       "the checksum is wrong: the file is damaged or cut off");
	rd->times = flags & PICKLE_TIMES;
	if (flags & ~(uint64_t)PICKLE_TIMES)
		return damaged(rd, "unknown flags");
	if (rd->times != rd->r->opts.times)
		return err_set(
			rd->err, -EINVAL, "the states were saved %s times, and times %s here",
			rd->times ? "with" : "without", rd->times ? "do not count" : "count");
	return 0;
}

static int read_records(struct reader *rd)
{
	for (;;) {
		enum record type = (enum record)get(rd, 1);

		if (!rd->short_of && type == REC_END)
			return rd->at == rd->end ? 0 : damaged(rd, "something after the end");
		int rc = rd->short_of ? 0 : read_record(rd, type);
		if (rc)
			return rc;
		if (rd->short_of)
			return damaged(rd, "the file ends in the middle of a record");
	}
}

static int take_state(void *ctx, uint64_t key, struct reffs_state *s)
{
	reffs_pool_put(ctx, key, s);
	return 0;
}

bool pickle_any_sum;

int reffs_load(struct reffs *r, struct reffs_pool *p, const void *data, size_t len, struct err *err)
{
	struct reader rd = { .r = r, .data = data, .err = err };
	int rc = read_head(&rd, data, len);

	if (!rc)
		rc = read_records(&rd);
	if (!rc) {
		reffs_pool_each(&rd.loaded, take_state, p);
		reffs_skip_inos(r, rd.last_ino + 1);
	}
	reffs_pool_release(&rd.loaded);
	for (size_t i = rd.nodes.n; i-- > 0;)
		node_release(&rd.nodes.v[i]);
	vec_release(&rd.nodes);
	return rc;
}

int reffs_load_file(struct reffs *r, struct reffs_pool *p, const char *path, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(path, REFFS_PICKLE_MAX, &text, err);

	if (!rc)
		rc = reffs_load(r, p, strbuf_str(&text), text.len, err);
	if (rc)
		err_context(err, "%s", path);
	return rc;
}
