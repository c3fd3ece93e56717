/* SPDX-License-Identifier: MIT */
/* persisted_inode.c - P2 and P3: compares an entry with an inode of the history. */
#include <sys/sysmacros.h>

#include "check/persisted_impl.h"
#include "workload/content.h"

enum { SECTOR = 512 };

/* ---- sets of values ---- */

void values_add(struct values *set, uint64_t v)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->v[i] == v)
			return;
	if (set->n < ARRAY_SIZE(set->v))
		set->v[set->n++] = v;
}

bool values_has(const struct values *set, uint64_t v)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->v[i] == v)
			return true;
	return set->n == ARRAY_SIZE(set->v); /* too many values to keep: all are allowed */
}

static void values_print(const struct values *set, const char *format, struct strbuf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		strbuf_adds(out, !i ? "" : i + 1 == set->n ? " or " : ", ");
		if (streq(format, "mode"))
			strbuf_addf(out, "%04o", (unsigned)set->v[i]);
		else
			strbuf_addu(out, set->v[i]);
	}
}

/* ---- attributes ---- */

enum attribute { ATTR_MODE, ATTR_UID, ATTR_GID, ATTR_SIZE };

static uint64_t attribute(const struct reffs_attr *a, enum attribute which)
{
	switch (which) {
	case ATTR_MODE:
		return a->mode;
	case ATTR_UID:
		return a->uid;
	case ATTR_GID:
		return a->gid;
	case ATTR_SIZE:
		return a->size;
	}
	return 0;
}

static struct values values_since(const struct promises *p, uint64_t ino, size_t from,
				  enum attribute which)
{
	struct values set = { .n = 0 };

	for (size_t i = from; i <= p->last; i++) {
		const struct reffs_inode *inode = inode_in(p, i, ino);
		struct reffs_attr attr;

		if (!inode)
			continue;
		reffs_attr(inode, &attr);
		values_add(&set, attribute(&attr, which));
	}
	return set;
}

static void check_value(struct comparison *c, const char *path, uint64_t ino, enum attribute which,
			uint64_t got, enum finding_kind kind, const char *what)
{
	const struct promise *why = promise_for_attributes(c->p, ino);
	struct values set = values_since(c->p, ino, state_of(why), which);
	struct strbuf words = { 0 };

	if (values_has(&set, got))
		return;
	strbuf_addf(&words,
		    kind == FINDING_MODE ? "%s: %s is %04llo, not " : "%s: %s is %llu, not ", path,
		    what, llu(got));
	values_print(&set, kind == FINDING_MODE ? "mode" : "", &words);
	persisted_report(c, kind, path, why, &words);
}

/* ---- extended attributes ---- */

struct xattr_query {
	const char *name;
	const void *value;
	size_t len;
	bool found, same;
};

static int match_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct xattr_query *q = ctx;

	if (!streq(name, q->name))
		return 0;
	q->found = true;
	q->same = q->value && len == q->len && (!len || memcmp(value, q->value, len) == 0);
	return 1;
}

/* True if some state since the promise has this attribute with this value (NULL: lacks it).
 */
static bool xattr_allowed(const struct promises *p, uint64_t ino, size_t from, const char *name,
			  const struct tree_xattr *got)
{
	for (size_t i = from; i <= p->last; i++) {
		const struct reffs_inode *inode = inode_in(p, i, ino);
		struct xattr_query q = { .name = name,
					 .value = got ? (got->len ? got->value : "") : NULL,
					 .len = got ? got->len : 0 };

		if (!inode)
			continue;
		reffs_xattrs(inode, match_xattr, &q);
		if (got ? q.same : !q.found)
			return true;
	}
	return false;
}

struct xattr_check {
	struct comparison *c;
	const struct tree_entry *e;
	uint64_t ino;
	const struct promise *why;
};

/* Checks that the crash has not lost an attribute of the reference. */
static int check_kept_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct xattr_check *x = ctx;
	struct strbuf words = { 0 };

	(void)value;
	(void)len;
	if (tree_find_xattr(x->e, name) ||
	    xattr_allowed(x->c->p, x->ino, state_of(x->why), name, NULL))
		return 0;
	strbuf_addf(&words, "%s: extended attribute %s is missing", x->e->path, name);
	persisted_report(x->c, FINDING_XATTR, x->e->path, x->why, &words);
	return 0;
}

static void check_xattrs(struct comparison *c, const struct tree_entry *e, uint64_t ino)
{
	const struct promise *why = promise_for_attributes(c->p, ino);
	struct xattr_check x = { c, e, ino, why };
	const struct reffs_inode *inode = inode_in(c->p, state_of(why), ino);

	if (inode)
		reffs_xattrs(inode, check_kept_xattr, &x);
	for (size_t i = 0; i < e->n_xattrs; i++) {
		const char *name = e->xattrs[i].name;
		struct strbuf words = { 0 };

		/* Only attributes of workloads count; systems put labels of their own on files. */
		if (strncmp(name, "user.", 5) != 0 && strncmp(name, "trusted.", 8) != 0)
			continue;
		if (xattr_allowed(c->p, ino, state_of(why), name, &e->xattrs[i]))
			continue;
		strbuf_addf(&words, "%s: extended attribute %s is \"%.*s\", which it should not be",
			    e->path, name, (int)min(e->xattrs[i].len, (size_t)40),
			    (const char *)e->xattrs[i].value);
		persisted_report(c, FINDING_XATTR, e->path, why, &words);
	}
}

/* ---- data ---- */

static void check_size(struct comparison *c, const struct tree_entry *e, uint64_t ino)
{
	const struct promise *why = promise_for_size(c->p, ino);
	struct values set = values_since(c->p, ino, state_of(why), ATTR_SIZE);
	uint64_t least = UINT64_MAX, most = 0, length;
	struct strbuf words = { 0 };

	for (size_t i = 0; i < set.n; i++) {
		least = min(least, set.v[i]);
		most = max(most, set.v[i]);
	}
	if (!inode_in(c->p, state_of(why), ino))
		least = 0; /* a file younger than the promise may be empty */
	const struct promise *written = promise_for_length(c->p, ino, &length);
	if (length > least) {
		least = length;
		why = written;
	}
	if (e->size >= least && e->size <= most)
		return;
	strbuf_addf(&words, "%s: size is %llu, not ", e->path, llu(e->size));
	if (e->size < least && why == written && written)
		strbuf_addf(&words, "%llu or more", llu(length));
	else
		values_print(&set, "", &words);
	persisted_report(c, FINDING_SIZE, e->path, why, &words);
}

/* True if some state since the promise has these bytes at this place. */
static bool bytes_allowed(const struct promises *p, uint64_t ino, size_t from, uint64_t offset,
			  const unsigned char *data, size_t len)
{
	bool zero = all_zero(data, len);

	if (zero && !inode_in(p, from, ino))
		return true;
	for (size_t i = from; i <= p->last; i++) {
		const struct reffs_inode *inode = inode_in(p, i, ino);
		const unsigned char *page = inode ? reffs_page(inode, offset / REFFS_PAGE) : NULL;

		if (!inode)
			continue;
		if (page ? memcmp(page + offset % REFFS_PAGE, data, len) == 0 : zero)
			return true;
	}
	return false;
}

/* Describes the origin of wrong bytes, as far as they tell it. */
static void describe_bytes(const struct promises *p, const unsigned char *data, size_t len,
			   uint64_t offset, struct strbuf *out)
{
	struct content_origin origin;
	size_t skip = (8 - offset % 8) % 8;

	if (all_zero(data, len)) {
		strbuf_adds(out, "zeros");
	} else if (len >= skip + 8 && content_identify(data + skip, &origin)) {
		if (origin.tag == content_tag(p->h->w))
			strbuf_addf(out, "data that operation %u wrote at %llu", origin.op,
				    llu(origin.offset));
		else
			strbuf_adds(out, "data of another workload");
	} else {
		strbuf_adds(out, "bytes that no operation wrote");
	}
}

/*
 * Checks a file that is too large to be kept: only a hash of one whole version of its data is
 * known. So it can be judged only if the promise and all later states have the same data.
 */
static void check_hash(struct comparison *c, const struct tree_entry *e, uint64_t ino)
{
	const struct promise *why = promise_for_size(c->p, ino);
	const struct reffs_inode *promised = why ? inode_in(c->p, why->state, ino) : NULL;
	struct reffs_attr want, attr;
	struct strbuf words = { 0 };

	if (!promised || e->error)
		return;
	reffs_attr(promised, &want);
	for (size_t i = why->state + 1; i <= c->p->last; i++) {
		const struct reffs_inode *inode = inode_in(c->p, i, ino);

		if (!inode)
			continue;
		reffs_attr(inode, &attr);
		if (attr.size != want.size || !hash_eq(attr.content, want.content))
			return;
	}
	if (e->size != want.size || hash_eq(e->hash, want.content))
		return;
	strbuf_addf(&words, "%s: its %llu bytes are not those that were written", e->path,
		    llu(e->size));
	persisted_report(c, FINDING_CONTENT, e->path, why, &words);
}

/* Finds the first bytes of a sector, from `at` on, that no state has; false if there are none. */
static bool wrong_bytes(const struct promises *p, uint64_t ino, size_t from,
			const unsigned char *data, uint64_t end, uint64_t *at, size_t *len)
{
	size_t unit = p->unit && p->unit < SECTOR ? p->unit : SECTOR;

	*len = (size_t)(end - *at);
	if (bytes_allowed(p, ino, from, *at, data + *at, *len))
		return false;
	for (; *at < end; *at += unit) {
		*len = (size_t)min((uint64_t)unit, end - *at);
		if (!bytes_allowed(p, ino, from, *at, data + *at, *len))
			break;
	}
	*len = (size_t)(end - *at); /* one byte would not tell its origin */
	return *at < end;
}

static void check_data(struct comparison *c, const struct tree_entry *e, uint64_t ino)
{
	const unsigned char *data = e->content;

	if (!data && e->size)
		check_hash(c, e, ino);
	for (uint64_t sector = 0; data && sector < e->size; sector += SECTOR) {
		uint64_t end = min(sector + SECTOR, e->size), at = sector;
		const struct promise *why = promise_for_byte(c->p, ino, sector);
		struct strbuf words = { 0 };
		size_t len;

		if (!wrong_bytes(c->p, ino, state_of(why), data, end, &at, &len))
			continue;
		strbuf_addf(&words, "%s: bytes from %llu on are ", e->path, llu(at));
		describe_bytes(c->p, data + at, len, at, &words);
		persisted_report(c, FINDING_CONTENT, e->path, why, &words);
		return; /* one report is enough */
	}
}

static void check_block_count(struct comparison *c, const struct tree_entry *e, uint64_t ino)
{
	const struct promise *why = promise_for_size(c->p, ino);

	for (size_t i = 0; why && c->blocks && i < c->blocks->n; i++) {
		const struct check_blocks *b = &c->blocks->v[i];
		struct strbuf words = { 0 };

		if (b->ino != ino || b->state != why->state || e->blocks >= b->blocks)
			continue;
		/* Any later change of the file may have changed the blocks that it needs. */
		for (size_t s = why->state + 1; s <= c->p->last; s++)
			if (inode_in(c->p, s, ino) != inode_in(c->p, why->state, ino))
				return;
		strbuf_addf(&words, "%s: %llu blocks are allocated, not %llu", e->path,
			    llu(e->blocks), llu(b->blocks));
		persisted_report(c, FINDING_BLOCKS, e->path, why, &words);
	}
}

/* ---- all of one inode ---- */

/* Checks the device number of a node, which never changes. */
static void check_device(struct comparison *c, const struct tree_entry *e, uint64_t ino,
			 const struct reffs_attr *attr)
{
	struct strbuf words = { 0 };

	if (e->rdev_major == major(attr->rdev) && e->rdev_minor == minor(attr->rdev))
		return;
	strbuf_addf(&words, "%s: stands for device %u:%u, not %u:%u", e->path, e->rdev_major,
		    e->rdev_minor, major(attr->rdev), minor(attr->rdev));
	persisted_report(c, FINDING_RDEV, e->path, promise_for_attributes(c->p, ino), &words);
}

/* Reports the differences between the entry and this inode. */
void persisted_inode(struct comparison *c, const struct tree_entry *e, uint64_t ino,
		     const struct reffs_attr *attr)
{
	struct strbuf words = { 0 };

	check_value(c, e->path, ino, ATTR_MODE, e->mode, FINDING_MODE, "mode");
	check_value(c, e->path, ino, ATTR_UID, e->uid, FINDING_OWNER, "owner");
	check_value(c, e->path, ino, ATTR_GID, e->gid, FINDING_OWNER, "group");
	check_xattrs(c, e, ino);
	if (e->type == TREE_FILE) {
		check_size(c, e, ino);
		check_data(c, e, ino);
		check_block_count(c, e, ino);
	} else if (e->type == TREE_CHAR || e->type == TREE_BLOCK) {
		check_device(c, e, ino, attr);
	} else if (e->type == TREE_SYMLINK && !streq(e->target ? e->target : "", attr->target)) {
		strbuf_addf(&words, "%s: leads to \"%s\", not to \"%s\"", e->path,
			    e->target ? e->target : "", attr->target);
		persisted_report(c, FINDING_TARGET, e->path, promise_for_attributes(c->p, ino),
				 &words);
	}
}
