/* SPDX-License-Identifier: MIT */
/*
 * persisted.c - compares what a crash left with what the history allows.
 *
 * P1: a path that a promise covers leads to what it led to in some state since the promise, or to
 *     nothing if it led to nothing in one of them. One that none covers may be as in any state.
 * P2: what is at a path is some inode that the history had there: its type fits, and each of its
 *     attributes has the value of some state since the attributes were promised. Where nothing is
 *     ordered, this holds for promised files only.
 * P3: the size is between the least and the largest since it was promised; each 512 bytes of the
 *     data (or what else the storage writes as one) are those of some state since they were
 *     promised, of the same inode.
 * P4: where rename is atomic: an inode that had to exist, and that no state since then removed, is
 *     under one of its names; and under no more of them than it had in any one state.
 * P5: a command of several parts may have left any of them: of what it changed nothing is said
 *     until a promise that is younger covers it.
 *
 * States hold what whole operations left. An operation that makes a file and fills it shows an
 * empty file in between, so a file younger than a promise may be empty.
 */
#include "check/check.h"

#include <sys/sysmacros.h>

#include "workload/content.h"

enum { SECTOR = 512 };

/* One comparison: the problems of one inode at one path. */
struct context {
	const struct promises *p;
	const struct tree *seen;
	const struct check_blocks_list *blocks;
	struct findings *out;
};

static const struct reffs_inode *inode_in(const struct promises *p, size_t state, uint64_t ino)
{
	return reffs_inode(p->h->states.v[state], ino);
}

static size_t state_of(const struct promise *x)
{
	return x ? x->state : 0;
}

/*
 * Whether a command may have left this on its way: what is at the path is other after it than
 * before, or nothing is there both times.
 */
static bool changed_by(const struct promises *p, size_t op, const char *path)
{
	uint64_t before = op_history_ino(p->h, op, path),
		 after = op_history_ino(p->h, op + 1, path);

	return before != after || !before || inode_in(p, op, before) != inode_in(p, op + 1, after);
}

/* P5: commands of several parts, of which nobody knows what is in between. */
static bool may_be_part(const struct promises *p, const char *path, size_t from)
{
	for (size_t i = from; i < p->last && i < p->h->w->ops.n; i++)
		if (op_has_parts(&p->h->w->ops.v[i]) && changed_by(p, i, path))
			return true;
	return false;
}

static void report(struct context *c, enum finding_kind kind, const char *path,
		   const struct promise *why, struct strbuf *words)
{
	if (kind != FINDING_UNREADABLE && kind != FINDING_DOUBLED && kind != FINDING_NLINK &&
	    may_be_part(c->p, path, state_of(why))) {
		strbuf_release(words);
		return;
	}
	findings_add(c->out, kind, xstrdup(path), strbuf_detach(words), promise_words(c->p, why));
}

/* ---- attributes ---- */

/* A set of values that one attribute had; few, so a list will do. */
struct values {
	uint64_t v[64];
	size_t n;
};

static void values_add(struct values *set, uint64_t v)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->v[i] == v)
			return;
	if (set->n < ARRAY_SIZE(set->v))
		set->v[set->n++] = v;
}

static bool values_has(const struct values *set, uint64_t v)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->v[i] == v)
			return true;
	return set->n == ARRAY_SIZE(set->v); /* too many to keep: nothing can be said */
}

static void print_values(const struct values *set, const char *format, struct strbuf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		strbuf_adds(out, !i ? "" : i + 1 == set->n ? " or " : ", ");
		if (streq(format, "mode"))
			strbuf_addf(out, "%04o", (unsigned)set->v[i]);
		else
			strbuf_addu(out, set->v[i]);
	}
}

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

static void check_value(struct context *c, const char *path, uint64_t ino, enum attribute which,
			uint64_t got, enum finding_kind kind, const char *what)
{
	const struct promise *why = promise_for_attributes(c->p, ino);
	struct values set = values_since(c->p, ino, state_of(why), which);
	struct strbuf words = { 0 };

	if (values_has(&set, got))
		return;
	strbuf_addf(&words,
		    kind == FINDING_MODE ? "%s: %s is %04llo, not " : "%s: %s is %llu, not ", path,
		    what, (unsigned long long)got);
	print_values(&set, kind == FINDING_MODE ? "mode" : "", &words);
	report(c, kind, path, why, &words);
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

/* Whether some state since the promise has this attribute with this value (NULL: does not have it).
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

static const struct tree_xattr *find_xattr(const struct tree_entry *e, const char *name)
{
	for (size_t i = 0; i < e->n_xattrs; i++)
		if (streq(e->xattrs[i].name, name))
			return &e->xattrs[i];
	return NULL;
}

struct xattr_check {
	struct context *c;
	const struct tree_entry *e;
	uint64_t ino;
	const struct promise *why;
};

/* An attribute that the reference has: the crash must not have lost it. */
static int check_kept_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct xattr_check *x = ctx;
	struct strbuf words = { 0 };

	(void)value;
	(void)len;
	if (find_xattr(x->e, name) || xattr_allowed(x->c->p, x->ino, state_of(x->why), name, NULL))
		return 0;
	strbuf_addf(&words, "%s: extended attribute %s is missing", x->e->path, name);
	report(x->c, FINDING_XATTR, x->e->path, x->why, &words);
	return 0;
}

static void check_xattrs(struct context *c, const struct tree_entry *e, uint64_t ino)
{
	const struct promise *why = promise_for_attributes(c->p, ino);
	struct xattr_check x = { c, e, ino, why };
	const struct reffs_inode *inode = inode_in(c->p, state_of(why), ino);

	if (inode)
		reffs_xattrs(inode, check_kept_xattr, &x);
	for (size_t i = 0; i < e->n_xattrs; i++) {
		const char *name = e->xattrs[i].name;
		struct strbuf words = { 0 };

		/* Only what workloads set; systems put labels of their own on files. */
		if (strncmp(name, "user.", 5) != 0 && strncmp(name, "trusted.", 8) != 0)
			continue;
		if (xattr_allowed(c->p, ino, state_of(why), name, &e->xattrs[i]))
			continue;
		strbuf_addf(&words, "%s: extended attribute %s is \"%.*s\", which it should not be",
			    e->path, name, (int)min(e->xattrs[i].len, (size_t)40),
			    (const char *)e->xattrs[i].value);
		report(c, FINDING_XATTR, e->path, why, &words);
	}
}

/* ---- data ---- */

static void check_size(struct context *c, const struct tree_entry *e, uint64_t ino)
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
		least = 0; /* younger than the promise: it may still be empty */
	const struct promise *written = promise_for_length(c->p, ino, &length);
	if (length > least) {
		least = length;
		why = written;
	}
	if (e->size >= least && e->size <= most)
		return;
	strbuf_addf(&words, "%s: size is %llu, not ", e->path, (unsigned long long)e->size);
	if (e->size < least && why == written && written)
		strbuf_addf(&words, "%llu or more", (unsigned long long)length);
	else
		print_values(&set, "", &words);
	report(c, FINDING_SIZE, e->path, why, &words);
}

static bool all_zero(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i])
			return false;
	return true;
}

/* Whether some state since the promise has these bytes at this place. */
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

/* Where the wrong bytes come from, as far as they tell. */
static void describe_bytes(const struct promises *p, const unsigned char *data, size_t len,
			   uint64_t offset, struct strbuf *out)
{
	struct content_origin origin;
	size_t skip = (8 - offset % 8) % 8;

	if (all_zero(data, len)) {
		strbuf_adds(out, "zeros");
	} else if (len >= skip + 8 && content_identify(data + skip, &origin)) {
		if (origin.tag == content_tag(p->h->w))
			strbuf_addf(out, "what operation %u wrote at %llu", origin.op,
				    (unsigned long long)origin.offset);
		else
			strbuf_adds(out, "what another workload wrote");
	} else {
		strbuf_adds(out, "bytes that nobody wrote");
	}
}

/*
 * A file that is too large to be kept: of its data there is only a hash, which is that of one whole
 * version. So it can be judged only where the promise and all that came after it have the same.
 */
static void check_hash(struct context *c, const struct tree_entry *e, uint64_t ino)
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
		    (unsigned long long)e->size);
	report(c, FINDING_CONTENT, e->path, why, &words);
}

/* The first bytes of a sector, from `at` on, that no state has; false: there are none. */
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
	*len = (size_t)(end - *at); /* one byte would not tell where it comes from */
	return *at < end;
}

static void check_data(struct context *c, const struct tree_entry *e, uint64_t ino)
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
		strbuf_addf(&words, "%s: bytes from %llu on are ", e->path, (unsigned long long)at);
		describe_bytes(c->p, data + at, len, at, &words);
		report(c, FINDING_CONTENT, e->path, why, &words);
		return; /* the first place is enough */
	}
}

static void check_block_count(struct context *c, const struct tree_entry *e, uint64_t ino)
{
	const struct promise *why = promise_for_size(c->p, ino);

	for (size_t i = 0; why && c->blocks && i < c->blocks->n; i++) {
		const struct check_blocks *b = &c->blocks->v[i];
		struct strbuf words = { 0 };

		if (b->ino != ino || b->state != why->state || e->blocks >= b->blocks)
			continue;
		/* Anything done to the file since then may have changed what it needs. */
		for (size_t s = why->state + 1; s <= c->p->last; s++)
			if (inode_in(c->p, s, ino) != inode_in(c->p, why->state, ino))
				return;
		strbuf_addf(&words, "%s: %llu blocks are allocated, not %llu", e->path,
			    (unsigned long long)e->blocks, (unsigned long long)b->blocks);
		report(c, FINDING_BLOCKS, e->path, why, &words);
	}
}

/* ---- one path ---- */

/* Which device a node stands for never changes. */
static void check_device(struct context *c, const struct tree_entry *e, uint64_t ino,
			 const struct reffs_attr *attr)
{
	struct strbuf words = { 0 };

	if (e->rdev_major == major(attr->rdev) && e->rdev_minor == minor(attr->rdev))
		return;
	strbuf_addf(&words, "%s: stands for device %u:%u, not %u:%u", e->path, e->rdev_major,
		    e->rdev_minor, major(attr->rdev), minor(attr->rdev));
	report(c, FINDING_RDEV, e->path, promise_for_attributes(c->p, ino), &words);
}

/* What speaks against the entry being this inode. */
static void check_inode(struct context *c, const struct tree_entry *e, uint64_t ino,
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
		report(c, FINDING_TARGET, e->path, promise_for_attributes(c->p, ino), &words);
	}
}

/* The inodes that the history allows at a path; 0 among them: nothing. */
static struct values allowed_at(const struct promises *p, const char *path, size_t from)
{
	struct values set = { .n = 0 };

	for (size_t i = from; i <= p->last; i++)
		values_add(&set, op_history_ino(p->h, i, path));
	return set;
}

static bool attr_of(const struct promises *p, uint64_t ino, struct reffs_attr *out)
{
	for (size_t i = p->last + 1; i-- > 0;) {
		const struct reffs_inode *inode = inode_in(p, i, ino);

		if (inode) {
			reffs_attr(inode, out);
			return true;
		}
	}
	return false;
}

/* Whether a path was reported already through a directory above it. */
static bool below_missing(const struct context *c, const char *path)
{
	for (size_t i = 0; i < c->out->n; i++) {
		const struct finding *f = &c->out->v[i];
		size_t n = strlen(f->path);

		if ((f->kind == FINDING_MISSING || f->kind == FINDING_UNREADABLE) &&
		    strncmp(f->path, path, n) == 0 && path[n] == '/')
			return true;
	}
	return false;
}

static bool was_ever(const struct promises *p, const char *path)
{
	for (size_t i = 0; i <= p->last; i++)
		if (op_history_ino(p->h, i, path))
			return true;
	return false;
}

/* ---- paths that no state had, but that parts of several make ---- */

/* From which state on names may come: what was there before all was made durable is gone. */
static size_t since_all(const struct promises *p)
{
	size_t from = 0;

	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind == PROMISE_ALL)
			from = p->list.v[i].state;
	return from;
}

/* Adds what the name led to in any of the directories, in any state. */
static void add_entries(const struct promises *p, const struct values *dirs, const char *name,
			size_t len, struct values *out)
{
	for (size_t s = since_all(p); s <= p->last; s++) {
		const struct history_paths *paths = op_history_paths_at(p->h, s);

		for (size_t i = 0; i < paths->n; i++) {
			const char *path = paths->v[i].path, *slash = strrchr(path, '/');
			const char *base = slash ? slash + 1 : path;
			uint64_t dir = REFFS_ROOT_INO;

			if (strlen(base) != len || memcmp(base, name, len) != 0)
				continue;
			if (slash) {
				auto_free char *above = xmemdupz(path, (size_t)(slash - path));

				dir = op_history_ino(p->h, s, above);
			}
			if (values_has(dirs, dir))
				values_add(out, paths->v[i].ino);
		}
	}
}

/*
 * What a path may lead to if each directory on it may be where it was in one state, and hold what
 * it held in another: a file that was made in a moved directory is at the old place of that
 * directory if only the file was synced.
 */
static struct values composed_at(const struct promises *p, const char *path)
{
	struct values here = { .v = { REFFS_ROOT_INO }, .n = 1 };

	while (here.n) {
		struct values next = { .n = 0 };
		size_t len = strcspn(path, "/");

		add_entries(p, &here, path, len, &next);
		here = next;
		if (!path[len])
			break;
		path += len + 1;
	}
	return here;
}

static void check_stray(struct context *c, const struct tree_entry *e, const struct promise *why)
{
	struct strbuf words = { 0 };
	bool was = was_ever(c->p, e->path);

	if (!was && !c->p->g->no_strays)
		return;
	strbuf_addf(&words, was ? "%s: is there again" : "%s: is there, and never was", e->path);
	report(c, was ? FINDING_BACK : FINDING_NEVER, e->path, why, &words);
}

/*
 * Where nothing is ordered, an inode can be given to another file before the old name of it is gone
 * from the disk, and a name can get there before its inode. So nothing is said of a file that no
 * promise covers, or that was removed after the one that did.
 */
static bool lapsed(const struct promises *p, uint64_t ino)
{
	size_t from = 0;

	if (p->g->ordered)
		return false;
	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind == PROMISE_ALL || p->list.v[i].ino == ino)
			from = p->list.v[i].state;
	/* State 0 is empty: without a promise, it was not there. */
	for (size_t i = from; i <= p->last; i++)
		if (!inode_in(p, i, ino))
			return true;
	return false;
}

static bool any_lapsed(const struct promises *p, const struct values *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->v[i] && lapsed(p, set->v[i]))
			return true;
	return false;
}

static void check_missing(struct context *c, const char *path, const struct values *set,
			  const struct promise *why)
{
	struct strbuf words = { 0 };

	if (values_has(set, 0) || below_missing(c, path))
		return;
	/* An entry may be there whose file is not; recovery then removes it. */
	if (!c->p->g->entries_lead && any_lapsed(c->p, set))
		return;
	strbuf_addf(&words, "%s: is missing", path);
	report(c, FINDING_MISSING, path, why, &words);
}

/* Of the inodes that may be here, the one that fits best; its problems, if any, are reported. */
static void check_candidates(struct context *c, const struct tree_entry *e,
			     const struct values *set, const struct promise *why)
{
	struct findings best = { 0 };
	bool any = false;

	if (any_lapsed(c->p, set))
		return;
	for (size_t i = 0; i < set->n; i++) {
		struct context inner = *c;
		struct findings problems = { 0 };
		struct reffs_attr attr;

		if (!set->v[i] || !attr_of(c->p, set->v[i], &attr) || attr.type != e->type)
			continue;
		inner.out = &problems;
		check_inode(&inner, e, set->v[i], &attr);
		if (!any || problems.n < best.n) {
			findings_release(&best);
			best = problems;
		} else {
			findings_release(&problems);
		}
		any = true;
	}
	if (!any) {
		struct strbuf words = { 0 };

		strbuf_addf(&words, "%s: is of another type than it ever was", e->path);
		report(c, FINDING_TYPE, e->path, why, &words);
	}
	for (size_t i = 0; i < best.n; i++)
		vec_push(c->out, best.v[i]);
	vec_release(&best);
}

static void check_path(struct context *c, const char *path)
{
	const struct promise *why = promise_for_path(c->p, path);
	struct values set = allowed_at(c->p, path, state_of(why));
	const struct tree_entry *e = tree_find(c->seen, path);

	if (!e) {
		check_missing(c, path, &set, why);
	} else if (e->error) {
		struct strbuf words = { 0 };

		strbuf_addf(&words, "%s: cannot be read: %s", path, strerror(e->error));
		report(c, FINDING_UNREADABLE, path, why, &words);
	} else if (set.n == 1 && set.v[0] == 0) {
		struct values composed = was_ever(c->p, path) ? set : composed_at(c->p, path);

		if (composed.n && composed.v[0])
			check_candidates(c, e, &composed, why);
		else
			check_stray(c, e, why);
	} else {
		check_candidates(c, e, &set, why);
	}
	if (e && e->doubled) {
		struct strbuf words = { 0 };

		strbuf_addf(&words, "%s: its directory lists it twice", path);
		report(c, FINDING_DOUBLED, path, NULL, &words);
	}
}

/* ---- one inode ---- */

/* Where the inode may be seen: its paths in all states from `from` on. */
struct places {
	const char *path[64];
	size_t n;
	size_t most; /* names in any one state */
	bool always; /* in every one of the states */
};

static void places_add(struct places *where, const char *path)
{
	for (size_t i = 0; i < where->n; i++)
		if (streq(where->path[i], path))
			return;
	if (where->n < ARRAY_SIZE(where->path))
		where->path[where->n++] = path;
}

static struct places places_of(const struct promises *p, uint64_t ino, size_t from)
{
	struct places where = { .always = true };

	for (size_t i = from; i <= p->last; i++) {
		const struct history_paths *paths = op_history_paths_at(p->h, i);
		size_t names = 0;

		for (size_t k = 0; k < paths->n; k++)
			if (paths->v[k].ino == ino) {
				places_add(&where, paths->v[k].path);
				names++;
			}
		where.most = max(where.most, names);
		where.always &= names > 0;
	}
	return where;
}

static bool already_missing(const struct context *c, const struct places *where)
{
	for (size_t i = 0; i < where->n; i++) {
		if (below_missing(c, where->path[i]))
			return true;
		for (size_t k = 0; k < c->out->n; k++)
			if (c->out->v[k].kind == FINDING_MISSING &&
			    streq(c->out->v[k].path, where->path[i]))
				return true;
	}
	return false;
}

static void print_places(const struct places *where, const char *joint, struct strbuf *out)
{
	for (size_t i = 0; i < where->n; i++)
		strbuf_addf(out, "%s%s", i ? joint : "", where->path[i]);
}

/* Whether it may be what is at a path that it never had, in a directory that was moved. */
static bool seen_elsewhere(const struct context *c, uint64_t ino)
{
	for (size_t i = 0; i < c->seen->entries.n; i++) {
		const struct tree_entry *e = &c->seen->entries.v[i];

		if (!*e->path || was_ever(c->p, e->path))
			continue;
		struct values set = composed_at(c->p, e->path);
		if (set.n && values_has(&set, ino))
			return true;
	}
	return false;
}

static void check_lost(struct context *c, uint64_t ino)
{
	const struct promise *why = promise_for_existence(c->p, ino);
	struct strbuf words = { 0 };

	if (!why)
		return;
	struct places where = places_of(c->p, ino, why->state);
	if (!where.always)
		return;
	if (promise_of_any_name(c->p, why, ino))
		where = places_of(c->p, ino, 0); /* an older name will do */
	for (size_t i = 0; i < where.n; i++)
		if (tree_find(c->seen, where.path[i]))
			return;
	if (already_missing(c, &where) || seen_elsewhere(c, ino))
		return;
	strbuf_adds(&words, "there is neither ");
	print_places(&where, " nor ", &words);
	report(c, FINDING_LOST, where.path[0], why, &words);
}

/* A path where nothing but this inode can be. */
static bool only_this(const struct promises *p, const char *path, uint64_t ino)
{
	for (size_t i = 0; i <= p->last; i++) {
		uint64_t there = op_history_ino(p->h, i, path);

		if (there && there != ino)
			return false;
	}
	return true;
}

static void check_both(struct context *c, uint64_t ino)
{
	struct places where = places_of(c->p, ino, 0), found = { .n = 0 };
	struct strbuf words = { 0 };

	for (size_t i = 0; i < where.n; i++)
		if (tree_find(c->seen, where.path[i]) && only_this(c->p, where.path[i], ino))
			places_add(&found, where.path[i]);
	if (found.n <= where.most)
		return;
	strbuf_adds(&words, "one file is at ");
	print_places(&found, " and ", &words);
	report(c, FINDING_BOTH, found.path[0], NULL, &words);
}

/* A file's link count is the number of its names. */
static void check_nlink(struct context *c, const struct tree_entry *e)
{
	uint64_t names = 0;
	struct strbuf words = { 0 };

	if (e->type == TREE_DIR || e->type == TREE_UNKNOWN || e->error)
		return;
	for (size_t i = 0; e->link && i < c->seen->entries.n; i++)
		names += c->seen->entries.v[i].link == e->link;
	if (e->nlink == (e->link ? names : 1))
		return;
	/* fsck may have put a directory into lost+found, and a name of this file with it. */
	if (!c->p->g->ordered && e->nlink > (e->link ? names : 1))
		return;
	strbuf_addf(&words, "%s: has %llu links, but %llu names", e->path,
		    (unsigned long long)e->nlink, (unsigned long long)(e->link ? names : 1));
	report(c, FINDING_NLINK, e->path, promise_for_path(c->p, e->path), &words);
}

/* ---- all of it ---- */

static void for_each_path(struct context *c)
{
	struct op_history *h = c->p->h;

	for (size_t s = 0; s <= c->p->last; s++) {
		const struct history_paths *paths = op_history_paths_at(h, s);

		for (size_t i = 0; i < paths->n; i++) {
			bool before = false;

			for (size_t k = 0; k < s && !before; k++)
				before = op_history_ino(h, k, paths->v[i].path) != 0;
			if (!before)
				check_path(c, paths->v[i].path);
		}
	}
	for (size_t i = 0; i < c->seen->entries.n; i++) {
		const struct tree_entry *e = &c->seen->entries.v[i];

		if (*e->path && !was_ever(c->p, e->path))
			check_path(c, e->path);
		if (*e->path)
			check_nlink(c, e);
	}
}

static void for_each_inode(struct context *c)
{
	struct op_history *h = c->p->h;

	for (size_t s = 0; s <= c->p->last; s++) {
		const struct history_paths *paths = op_history_paths_at(h, s);

		for (size_t i = 0; i < paths->n; i++) {
			uint64_t ino = paths->v[i].ino;
			bool before = false;

			for (size_t k = 0; k < s && !before; k++)
				before = reffs_inode(h->states.v[k], ino) != NULL;
			for (size_t k = 0; k < i && !before; k++)
				before = paths->v[k].ino == ino;
			if (before)
				continue;
			if (c->p->g->atomic_rename) {
				check_lost(c, ino);
				check_both(c, ino);
			}
		}
	}
}

void check_persisted(const struct promises *p, const struct tree *seen,
		     const struct check_blocks_list *blocks, struct findings *out)
{
	struct context c = { p, seen, blocks, out };

	for_each_path(&c);
	for_each_inode(&c);
}

void check_tree_opts(struct tree_opts *opts, const char *const *ignore)
{
	*opts = (struct tree_opts){ .blocks = true,
				    .ignore = ignore,
				    .content_limit = CHECK_CONTENT_LIMIT };
}

void check_live(const struct reffs_state *expected, const struct tree *seen,
		const struct tree_opts *opts, struct findings *out)
{
	auto_tree reference = TREE_INIT;
	auto_tree_diff diff = { 0 };
	struct tree_opts compared = *opts;

	compared.blocks = false; /* which the reference cannot know */
	reffs_tree(expected, &compared, &reference);
	tree_diff(&reference, seen, &compared, &diff);
	for (size_t i = 0; i < diff.list.n; i++)
		if (*diff.list.v[i].path) /* the root's own attributes are mkfs's business */
			findings_add(out, FINDING_LIVE, xstrdup(diff.list.v[i].path),
				     xstrdup(diff.list.v[i].words),
				     xstrdup("nothing had crashed yet"));
}
