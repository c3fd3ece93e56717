/* SPDX-License-Identifier: MIT */
/* app_change.c - compares the layer over a crash state before and after a command. */
#include "app/app_change.h"

/* ---- the command's changes ---- */

/* The change to a file. */
enum deed { DEED_NONE, DEED_TOUCHED, DEED_MADE, DEED_GONE, DEED_LONGER, DEED_SHORTER, DEED_OTHER };

/* Sums over all files, as their order does not matter; [1]: of changes that change the state. */
struct deeds {
	struct hash128 kind[2], what[2];
	bool any[2];
};

static const struct reffs_inode *inode_at(const struct reffs_state *s, const char *path)
{
	const struct reffs_inode *inode = reffs_inode(s, REFFS_ROOT_INO);
	auto_free char *copy = xstrdup(path);
	char *rest = copy, *name;

	while (inode && *path && (name = strsep(&rest, "/"))) {
		struct reffs_attr a;

		reffs_attr(inode, &a);
		inode = a.type == TREE_DIR ? reffs_inode(s, reffs_lookup(inode, name)) : NULL;
	}
	return inode;
}

/* True for a device 0:0, by which an overlay hides a name. */
static bool is_whiteout(const struct tree_entry *e)
{
	return e->type == TREE_CHAR && !e->rdev_major && !e->rdev_minor;
}

static enum deed deed_of(const struct reffs_inode *inode, const struct tree_entry *now)
{
	struct reffs_attr old;

	if (!now || is_whiteout(now))
		return inode ? DEED_GONE : DEED_NONE;
	if (!inode)
		return DEED_MADE;
	reffs_attr(inode, &old);
	if (old.type != now->type || old.mode != now->mode)
		return DEED_OTHER;
	if (now->type == TREE_DIR) /* only the directory's entries count */
		return DEED_NONE;
	if (now->type != TREE_FILE)
		return DEED_TOUCHED;
	if (old.size != now->size)
		return now->size > old.size ? DEED_LONGER : DEED_SHORTER;
	return hash_eq(old.content, now->hash) ? DEED_TOUCHED : DEED_OTHER;
}

static void add_deed(struct deeds *d, enum deed deed, const char *path,
		     const struct tree_entry *now)
{
	const struct {
		struct hash128 path;
		uint64_t deed;
	} key = { hash_bytes(path, strlen(path)), (uint64_t)deed };
	struct hash128 kind = hash_bytes(&key, sizeof(key));
	struct hash128 parts[3] = { kind };
	bool net = deed != DEED_TOUCHED;

	if (now) {
		parts[1] = now->hash;
		parts[2] = (struct hash128){ now->size, now->mode };
	}
	d->kind[net] = hash_add(d->kind[net], kind);
	d->what[net] = hash_add(d->what[net], hash_bytes(parts, sizeof(parts)));
	d->any[net] = true;
}

void app_change_find(const struct reffs_state *s, const struct tree *before,
		     const struct tree *after, struct app_change *out)
{
	struct tree_opts opts = { 0 };
	auto_tree_diff diff = { 0 };
	struct deeds d = { 0 };
	const char *last = NULL;

	tree_diff(before, after, &opts, &diff);
	vec_each(x, &diff.list) {
		/* Several differences of one file follow each other. */
		if (last && streq(last, x->path))
			continue;
		last = x->path;
		enum deed deed = deed_of(inode_at(s, x->path), x->seen);
		if (deed != DEED_NONE)
			add_deed(&d, deed, x->path, x->seen);
	}
	bool net = d.any[true];
	*out = (struct app_change){
		.any = net || d.any[false], .net = net, .kind = d.kind[net], .what = d.what[net]
	};
}
