/* SPDX-License-Identifier: MIT */
/* forget_tree.c - nodes and names: finds them, keeps what is needed of them, and asks ROOT. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/names_in.h"
#include "forget/forget_mount.h"

enum { BUCKETS_MIN = 1024, PAIRS_MIN = 64 };

/* Below 2^53, so that programs that read a number as floating point get it right. */
#define INO_FIRST (UINT64_C(1) << 52)

static uint64_t mix(uint64_t n)
{
	return n * 0x9e3779b97f4a7c15ULL >> 20;
}

static void node_init(struct node *n, mode_t type)
{
	*n = (struct node){ .type = type };
	if (!S_ISDIR(type))
		return;
	n->in = xcalloc(1, sizeof(*n->in));
	n->in->fd = -1;
}

void forget_tree_init(struct forget *f)
{
	struct live_tree *t = &f->tree;

	owned_init(&t->lock);
	t->n_buckets = t->name_buckets = BUCKETS_MIN;
	t->nodes = xcalloc(t->n_buckets, sizeof(*t->nodes));
	t->names = xcalloc(t->name_buckets, sizeof(*t->names));
	t->next_ino = INO_FIRST;
	node_init(&t->root, S_IFDIR);
	t->root.nlookup = 1;
}

/* ---- pairs of numbers (T4) ---- */

static struct ino_pair *pair_at(const struct live_tree *t, uint64_t root_ino)
{
	size_t i = mix(root_ino) & (t->pairs_cap - 1);

	while (t->pairs[i].root_ino && t->pairs[i].root_ino != root_ino)
		i = (i + 1) & (t->pairs_cap - 1);
	return &t->pairs[i];
}

static void pair_add(struct live_tree *t, uint64_t root_ino, uint64_t ino)
{
	if (t->n_pairs * 2 >= t->pairs_cap) {
		struct ino_pair *old = t->pairs;
		size_t cap = t->pairs_cap;

		t->pairs_cap = max(cap * 2, (size_t)PAIRS_MIN);
		t->pairs = xcalloc(t->pairs_cap, sizeof(*old));
		for (size_t i = 0; i < cap; i++)
			if (old[i].root_ino)
				*pair_at(t, old[i].root_ino) = old[i];
		free(old);
	}
	struct ino_pair *p = pair_at(t, root_ino);
	t->n_pairs += !p->root_ino;
	*p = (struct ino_pair){ root_ino, ino };
}

static void pair_remove(struct live_tree *t, uint64_t root_ino)
{
	struct ino_pair *p = t->pairs_cap ? pair_at(t, root_ino) : NULL;

	if (!p || !p->root_ino)
		return;
	p->root_ino = 0;
	t->n_pairs--;
	/* Those behind it may have been put there only because it was taken. */
	for (size_t i = (size_t)(p - t->pairs);;) {
		struct ino_pair again;

		i = (i + 1) & (t->pairs_cap - 1);
		again = t->pairs[i];
		if (!again.root_ino)
			return;
		t->pairs[i].root_ino = 0;
		*pair_at(t, again.root_ino) = again;
	}
}

static uint64_t shown_ino(const struct forget *f, uint64_t dev, uint64_t root_ino)
{
	const struct live_tree *t = &f->tree;
	const struct ino_pair *p = t->n_pairs && dev == f->dev ? pair_at(t, root_ino) : NULL;

	return p && p->root_ino ? p->ino : root_ino;
}

/* ---- nodes ---- */

/* All nodes but the root are in a table, by the numbers that programs see. */
static struct node **bucket(const struct live_tree *t, uint64_t dev, uint64_t ino)
{
	return &t->nodes[mix(ino + dev * 31) & (t->n_buckets - 1)];
}

/* Returns the node of an inode in ROOT, or NULL. */
static struct node *find_node(struct forget *f, const struct stat *st)
{
	struct node *n = *bucket(&f->tree, st->st_dev, shown_ino(f, st->st_dev, st->st_ino));

	if (st->st_dev == f->tree.root.dev && st->st_ino == f->tree.root.root_ino)
		return &f->tree.root;
	while (n && (n->root_ino != st->st_ino || n->dev != st->st_dev))
		n = n->hash_next;
	return n;
}

static void grow_nodes(struct live_tree *t)
{
	size_t old_n = t->n_buckets;
	struct node **old = t->nodes;

	t->n_buckets *= 2;
	t->nodes = xcalloc(t->n_buckets, sizeof(*t->nodes));
	for (size_t i = 0; i < old_n; i++)
		for (struct node *n = old[i], *next; n; n = next) {
			struct node **to = bucket(t, n->dev, n->ino);

			next = n->hash_next;
			n->hash_next = *to;
			*to = n;
		}
	free(old);
}

static void table_add(struct live_tree *t, struct node *n)
{
	struct node **to;

	if (t->n_nodes >= t->n_buckets)
		grow_nodes(t);
	to = bucket(t, n->dev, n->ino);
	n->hash_next = *to;
	*to = n;
	t->n_nodes++;
}

static void table_remove(struct live_tree *t, struct node *n)
{
	struct node **at = bucket(t, n->dev, n->ino);

	while (*at != n)
		at = &(*at)->hash_next;
	*at = n->hash_next;
	t->n_nodes--;
}

static void looks_release(struct looks *l)
{
	xattrs_unref(l->xattrs);
	l->xattrs = NULL;
}

void unmade_free(struct unmade *u)
{
	if (!u)
		return;
	looks_release(&u->looks);
	free(u->target);
	free(u);
}

void node_in_root(struct forget *f, struct node *n, const struct stat *st, bool seen)
{
	struct live_tree *t = &f->tree;

	assert_owned(&t->lock);
	if (!st) {
		pair_remove(t, n->root_ino);
		n->root_ino = 0;
		return;
	}
	assert(n->unmade && !n->root_ino && !find_node(f, st)); /* T4 */
	if (!seen || n->dev != st->st_dev) {
		table_remove(t, n);
		n->dev = st->st_dev;
		n->ino = st->st_ino;
		table_add(t, n);
	}
	n->root_ino = st->st_ino;
	if (n->ino != n->root_ino)
		pair_add(t, n->root_ino, n->ino);
	unmade_free(steal(n->unmade));
}

static struct node *node_alloc(struct forget *f, mode_t type, uint64_t dev, uint64_t ino)
{
	struct node *n = xmalloc(sizeof(*n));

	assert_owned(&f->tree.lock);
	node_init(n, type);
	n->refs = 1;
	n->dev = dev;
	n->ino = ino;
	table_add(&f->tree, n);
	return n;
}

struct node *node_new_unmade(struct forget *f, mode_t mode)
{
	struct node *n = node_alloc(f, mode & S_IFMT, f->dev, f->tree.next_ino++);

	n->unmade = xcalloc(1, sizeof(*n->unmade));
	n->unmade->looks.mode = mode & 07777;
	n->unmade->looks.own_xattrs = true;
	return n;
}

/* Returns the node of an inode in ROOT, with a reference. */
static struct node *node_at(struct forget *f, const struct stat *st)
{
	struct node *n = find_node(f, st);

	if (n) {
		n->refs++;
		return n;
	}
	n = node_alloc(f, st->st_mode & S_IFMT, st->st_dev, shown_ino(f, st->st_dev, st->st_ino));
	n->root_ino = st->st_ino;
	return n;
}

/* ---- names ---- */

static uint32_t name_hash(const struct node *dir, const char *text)
{
	return (uint32_t)(hash64(text, strlen(text)) ^ mix(dir->ino));
}

static struct node_name **name_bucket(const struct live_tree *t, uint32_t hash)
{
	return &t->names[hash & (t->name_buckets - 1)];
}

static struct node_name *find_name(struct forget *f, struct node *dir, const char *text)
{
	uint32_t hash = name_hash(dir, text);
	struct node_name *a = *name_bucket(&f->tree, hash);

	assert_owned(&f->tree.lock);
	while (a && (a->hash != hash || a->dir != dir || !streq(a->text, text)))
		a = a->hash_next;
	return a;
}

static void grow_names(struct live_tree *t)
{
	size_t old_n = t->name_buckets;
	struct node_name **old = t->names;

	t->name_buckets *= 2;
	t->names = xcalloc(t->name_buckets, sizeof(*t->names));
	for (size_t i = 0; i < old_n; i++)
		for (struct node_name *a = old[i], *next; a; a = next) {
			struct node_name **to = name_bucket(t, a->hash);

			next = a->hash_next;
			a->hash_next = *to;
			*to = a;
		}
	free(old);
}

struct node_name *node_name_get(struct forget *f, struct node *dir, const char *text)
{
	struct node_name *a = find_name(f, dir, text), **to;
	size_t size = strlen(text) + 1;
	struct live_tree *t = &f->tree;

	if (a)
		return a;
	if (t->n_names >= t->name_buckets)
		grow_names(t);
	a = xmalloc(sizeof(*a) + size);
	*a = (struct node_name){ .dir = dir, .hash = name_hash(dir, text) };
	memcpy(a->text, text, size);
	dir->refs++;
	to = name_bucket(t, a->hash);
	a->hash_next = *to;
	*to = a;
	t->n_names++;
	return a;
}

static void name_free(struct forget *f, struct node_name *a)
{
	struct node_name **at = name_bucket(&f->tree, a->hash);

	assert(!a->records && !a->node[NAME_LIVE] && !a->node[NAME_DURABLE]); /* T3 */
	while (*at != a)
		at = &(*at)->hash_next;
	*at = a->hash_next;
	f->tree.n_names--;
	assert(a->dir->refs > 0);
	a->dir->refs--;
	free(a);
}

void node_name_put(struct forget *f, struct node_name *a)
{
	assert_owned(&f->tree.lock);
	if (!a->records && !a->node[NAME_LIVE] && !a->node[NAME_DURABLE])
		name_free(f, a);
}

static bool is_dir(const struct node *n)
{
	return n && S_ISDIR(n->type);
}

/* Adds or removes what a name is for the counts of its directory. */
static void count_name(const struct node_name *a, int sign)
{
	const struct node *live = a->node[NAME_LIVE], *durable = a->node[NAME_DURABLE];
	struct node_dir *in = a->dir->in;

	in->added += (size_t)(sign * (live && !durable));
	in->removed += (size_t)(sign * (!live && durable));
	in->subdirs += sign * (is_dir(live) - is_dir(durable));
}

static void differs_update(struct node_name *a, bool did, bool does)
{
	struct node *dir = a->dir;
	struct node_dir *in = dir->in;

	if (did && !does) {
		*(a->differs_prev ? &a->differs_prev->differs_next : &in->differs) =
			a->differs_next;
		if (a->differs_next)
			a->differs_next->differs_prev = a->differs_prev;
	} else if (!did && does) {
		a->differs_prev = NULL;
		a->differs_next = in->differs;
		if (in->differs)
			in->differs->differs_prev = a;
		in->differs = a;
	}
	if (in->differs || !in->times)
		return;
	in->times = false;
	if (dir->looks)
		dir->looks->mtime = in->mtime;
}

void node_name_set(struct forget *f, struct node_name *a, enum name_state s, struct node *n)
{
	bool did = a->node[NAME_LIVE] != a->node[NAME_DURABLE];
	struct node *old = a->node[s];

	assert_owned(&f->tree.lock);
	if (old == n)
		return;
	count_name(a, -1);
	if (old) {
		struct node_name **at = &old->names[s];

		while (*at != a)
			at = &(*at)->next[s];
		*at = a->next[s];
	}
	a->node[s] = n;
	if (n) {
		a->next[s] = n->names[s];
		n->names[s] = a;
	}
	count_name(a, 1);
	differs_update(a, did, a->node[NAME_LIVE] != a->node[NAME_DURABLE]);
}

struct node *node_replace(struct forget *f, struct node *n)
{
	struct node *new = node_alloc(f, n->type, n->dev, n->ino);

	assert(n->in && !n->in->differs);
	new->root_ino = n->root_ino;
	n->root_ino = 0;
	n->stale = true;
	forget_root_close_dir(f, n);
	for (int s = 0; s < NAME_STATES; s++) {
		new->names[s] = steal(n->names[s]);
		for (struct node_name *a = new->names[s]; a; a = a->next[s])
			a->node[s] = new;
	}
	return new;
}

void node_name_move(struct node_name *a, struct node *from, struct node *to)
{
	if (a->dir != from)
		return;
	assert(from->ino == to->ino && from->refs > 0); /* the hash stays */
	a->dir = to;
	from->refs--;
	to->refs++;
}

struct node *node_lookup(struct forget *f, struct node *dir, const char *text, int *rc)
{
	struct node_name *a = find_name(f, dir, text);
	auto_root_at at = { .dir = -1 };
	struct stat st;
	struct node *n;

	*rc = 0;
	if (a && a->node[NAME_LIVE]) {
		a->node[NAME_LIVE]->refs++;
		return a->node[NAME_LIVE];
	}
	if (a || dir->unmade || !S_ISDIR(dir->type)) {
		*rc = S_ISDIR(dir->type) ? -ENOENT : -ENOTDIR;
		return NULL;
	}
	*rc = root_at_name(f, dir, text, &at);
	if (!*rc)
		*rc = result(fstatat(at.dir, text, &st, AT_SYMLINK_NOFOLLOW));
	if (*rc)
		return NULL;
	n = node_at(f, &st);
	a = node_name_get(f, dir, text);
	node_name_set(f, a, NAME_LIVE, n);
	node_name_set(f, a, NAME_DURABLE, n);
	n->stale = false;
	return n;
}

nlink_t node_links(struct forget *f, const struct node *n, nlink_t in_root)
{
	nlink_t links = n->unmade ? 0 : in_root;

	assert_owned(&f->tree.lock);
	if (S_ISDIR(n->type)) {
		if (!n->names[NAME_LIVE] && n != &f->tree.root)
			return 0;
		if (!f->counts_dirs)
			return n->unmade ? 1 : in_root;
		return (nlink_t)((long)(n->unmade ? 2 : in_root) + n->in->subdirs) -
		       (n == &f->tree.root && f->stash_fd >= 0);
	}
	for (const struct node_name *a = n->names[NAME_LIVE]; a; a = a->next[NAME_LIVE])
		links += a->node[NAME_DURABLE] != n;
	for (const struct node_name *a = n->names[NAME_DURABLE]; a; a = a->next[NAME_DURABLE])
		links -= a->node[NAME_LIVE] != n && links > 0;
	return links;
}

/* ---- what is in a directory ---- */

static DIR *open_in_root(struct forget *f, struct node *dir)
{
	auto_root_at at = { .dir = -1 };

	if (root_at_name(f, dir, ".", &at))
		return NULL;
	return names_in(at.dir, ".");
}

bool node_is_empty(struct forget *f, struct node *dir, int *rc)
{
	size_t gone = 0;

	*rc = 0;
	if (dir->in->added || dir->unmade)
		return !dir->in->added;
	auto_names_in d = open_in_root(f, dir);
	if (!d)
		*rc = -errno;
	for (struct dirent *e; (e = names_next(d)); gone++) {
		const struct node_name *a = gone < dir->in->removed ? find_name(f, dir, e->d_name)
								    : NULL;

		if (!a || a->node[NAME_LIVE])
			return false;
	}
	return true;
}

static void add_entry(struct dir_entries *out, uint64_t ino, mode_t type, const char *text)
{
	vec_push(out, (struct dir_entry){ ino, type, xstrdup(text) });
}

int node_entries(struct forget *f, struct node *dir, struct dir_entries *out)
{
	assert_owned(&f->tree.lock);
	if (!dir->unmade && (dir->root_ino || dir == &f->tree.root)) {
		auto_names_in d = open_in_root(f, dir);

		if (!d)
			return -errno;
		for (struct dirent *e; (e = names_next(d));) {
			const struct node_name *a = find_name(f, dir, e->d_name);
			const struct node *n = a ? a->node[NAME_LIVE] : NULL;

			if ((a && !n) || forget_name_is_hidden(f, dir, e->d_name))
				continue;
			add_entry(out, n ? n->ino : shown_ino(f, dir->dev, e->d_ino),
				  n ? n->type : (mode_t)DTTOIF(e->d_type), e->d_name);
		}
	}
	for (const struct node_name *a = dir->in->differs; a; a = a->differs_next) {
		const struct node *n = a->node[NAME_LIVE];

		if (n && !a->node[NAME_DURABLE])
			add_entry(out, n->ino, n->type, a->text);
	}
	return 0;
}

void dir_entries_release(struct dir_entries *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].name);
	vec_release(e);
}

/* ---- looks ---- */

struct looks *node_looks(struct forget *f, struct node *n)
{
	struct stat st;

	assert_owned(&f->tree.lock);
	if (n->looks)
		return n->looks;
	if (forget_root_looks(f, n, &st))
		return NULL;
	n->looks = xcalloc(1, sizeof(*n->looks));
	*n->looks = (struct looks){ .mode = st.st_mode & 07777,
				    .uid = st.st_uid,
				    .gid = st.st_gid,
				    .atime = st.st_atim,
				    .mtime = st.st_mtim,
				    .ctime = st.st_ctim };
	return n->looks;
}

void node_looks_drop(struct node *n)
{
	if (n->looks)
		looks_release(n->looks);
	free(steal(n->looks));
}

/* ---- releasing ---- */

/* True if data keeps the node: it is not durable, and a name leads to it, or may
 * (forget_file_hold). */
static bool data_keeps(const struct node *n)
{
	return n->file && n->file->dirty.next &&
	       (n->names[NAME_LIVE] || n->names[NAME_DURABLE] || n->file->held);
}

/* True if a request is at work on a name of the node. */
static bool name_keeps(const struct node *n)
{
	for (const struct node_name *a = n->names[NAME_LIVE]; a; a = a->next[NAME_LIVE])
		if (a->records)
			return true;
	return false;
}

/*
 * Removes a node that is not needed any more, and perhaps the directories above it. The caller
 * releases the nodes in `dead`, without the lock, as that of their data comes first.
 */
static void drop_if_unused(struct forget *f, struct node *n, struct node **dead)
{
	while (n && n != &f->tree.root && !n->dead && !n->nlookup && !n->refs && !n->records &&
	       !data_keeps(n) && !name_keeps(n)) {
		struct node *above = NULL;

		while (n->names[NAME_LIVE]) {
			struct node_name *a = n->names[NAME_LIVE];
			struct node *dir = a->dir;

			assert(a->node[NAME_DURABLE] == n); /* T3 */
			node_name_set(f, a, NAME_LIVE, NULL);
			node_name_set(f, a, NAME_DURABLE, NULL);
			name_free(f, a);
			if (above && above != dir)
				drop_if_unused(f, above, dead);
			above = dir;
		}
		assert(!n->names[NAME_DURABLE]); /* T3 */
		table_remove(&f->tree, n);
		n->dead = true;
		n->hash_next = *dead;
		*dead = n;
		n = above;
	}
}

static void node_release(struct forget *f, struct node *n)
{
	forget_file_release(f, n);
	if (n->in) {
		owned_take(&f->tree.lock);
		forget_root_close_dir(f, n);
		owned_give(&f->tree.lock);
		free(n->in);
	}
	node_looks_drop(n);
	unmade_free(n->unmade);
	if (n != &f->tree.root)
		free(n);
}

static void release_all(struct forget *f, struct node *dead)
{
	for (struct node *next; dead; dead = next) {
		next = dead->hash_next;
		node_release(f, dead);
	}
}

void node_ref(struct forget *f, struct node *n)
{
	auto_owned(&f->tree.lock);
	n->refs++;
}

void node_unref(struct forget *f, struct node *n)
{
	struct node *dead = NULL;

	if (!n)
		return;
	owned_take(&f->tree.lock);
	assert(n->refs > 0 && !n->dead); /* T3 */
	n->refs--;
	drop_if_unused(f, n, &dead);
	owned_give(&f->tree.lock);
	release_all(f, dead);
}

void node_forget(struct forget *f, struct node *n, uint64_t nlookup)
{
	struct node *dead = NULL;
	bool removed;

	owned_take(&f->tree.lock);
	n->nlookup -= min(nlookup, n->nlookup);
	drop_if_unused(f, n, &dead);
	removed = !dead && !n->nlookup && !n->names[NAME_LIVE] && n->made && S_ISREG(n->type);
	n->refs += removed;
	owned_give(&f->tree.lock);
	release_all(f, dead);
	if (removed) { /* only the log needs the node */
		forget_file_forget_removed(f, n);
		node_unref(f, n);
	}
}

static void drop_names(struct forget *f)
{
	struct live_tree *t = &f->tree;

	for (size_t i = 0; i < t->name_buckets; i++)
		while (t->names[i]) {
			struct node_name *a = t->names[i];

			a->records = 0;
			node_name_set(f, a, NAME_LIVE, NULL);
			node_name_set(f, a, NAME_DURABLE, NULL);
			name_free(f, a);
		}
}

void forget_tree_abandon(struct forget *f)
{
	struct live_tree *t = &f->tree;

	auto_owned(&t->lock);
	drop_names(f);
	for (size_t i = 0; i < t->n_buckets; i++)
		for (struct node *n = t->nodes[i]; n; n = n->hash_next) {
			n->root_ino = 0;
			n->stale = !n->unmade;
			if (n->in)
				forget_root_close_dir(f, n);
		}
	free(steal(t->pairs));
	t->pairs_cap = t->n_pairs = 0;
	t->root.in->rules_known = false;
}

void forget_tree_release(struct forget *f)
{
	struct live_tree *t = &f->tree;

	owned_take(&t->lock);
	drop_names(f);
	owned_give(&t->lock);
	for (size_t i = 0; i < t->n_buckets; i++)
		while (t->nodes[i]) {
			struct node *n = t->nodes[i];

			t->nodes[i] = n->hash_next;
			node_release(f, n);
		}
	free(t->nodes);
	free(t->names);
	free(t->pairs);
	node_release(f, &t->root);
	owned_release(&t->lock);
}

/* ---- paths ---- */

static void add_path(struct forget *f, const struct node *n, struct strbuf *out, int depth)
{
	const struct node_name *a = n->names[NAME_LIVE];

	if (n == &f->tree.root || !depth)
		return;
	if (!a) {
		strbuf_addf(out, "(unlinked %llu)", llu(n->ino));
		return;
	}
	add_path(f, a->dir, out, depth - 1);
	if (out->len)
		strbuf_addch(out, '/');
	strbuf_adds(out, a->text);
}

void node_path(struct forget *f, struct node *n, const char *name, struct strbuf *out)
{
	owned_take(&f->tree.lock);
	add_path(f, n, out, 4096);
	owned_give(&f->tree.lock);
	if (!name)
		return;
	if (out->len)
		strbuf_addch(out, '/');
	strbuf_adds(out, name);
}

struct node *node_of_path(struct forget *f, const char *path, int *rc)
{
	auto_free char *words = xstrdup(path);
	struct node *n = &f->tree.root;
	char *save = NULL;

	*rc = 0;
	node_ref(f, n);
	for (char *w = strtok_r(words, "/", &save); w && n; w = strtok_r(NULL, "/", &save)) {
		struct node *dir = n;

		if (streq(w, "."))
			continue;
		owned_take(&f->tree.lock);
		if (forget_name_is_hidden(f, dir, w)) {
			*rc = -ENOENT;
			n = NULL;
		} else {
			n = node_lookup(f, dir, w, rc);
		}
		owned_give(&f->tree.lock);
		node_unref(f, dir);
	}
	return n;
}
