/* SPDX-License-Identifier: MIT */
/* persisted_path.c - P1: compares the entry at a path with the history of that path. */
#include "check/persisted_impl.h"

/* The inodes that the history allows at a path; 0 is among them if the path may be missing. */
static struct values allowed_at(const struct promises *p, const char *path, size_t from)
{
	const struct op_name *name = op_names_find(op_history_names(p->h), path);
	struct values set = { .n = 0 };
	size_t i = name ? op_name_span(name, from) : SIZE_MAX;

	if (from > p->last)
		return set;
	if (i == SIZE_MAX)
		values_add(&set, 0);
	for (i = i == SIZE_MAX ? 0 : i;
	     name && i < name->spans.n && name->spans.v[i].state <= p->last; i++)
		values_add(&set, name->spans.v[i].ino);
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

/* True if a missing directory above the path was reported already. */
bool persisted_below_missing(const struct comparison *c, const char *path)
{
	vec_each(f, c->out) {
		size_t n = strlen(f->path);

		if ((f->kind == FINDING_MISSING || f->kind == FINDING_UNREADABLE) &&
		    strncmp(f->path, path, n) == 0 && path[n] == '/')
			return true;
	}
	return false;
}

bool persisted_was_ever(const struct promises *p, const char *path)
{
	const struct op_name *name = op_names_find(op_history_names(p->h), path);

	return name && name->spans.v[0].state <= p->last;
}

/* ---- paths that no state had, but parts of several states give ---- */

/* The first state whose names may survive: older names are gone since all was made durable. */
static size_t since_all(const struct promises *p)
{
	size_t from = 0;

	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind == PROMISE_ALL)
			from = p->list.v[i].state;
	return from;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The directory of a path in a state. */
static uint64_t dir_of(const struct promises *p, size_t state, const char *path)
{
	const char *base = last_part(path);

	if (base == path)
		return REFFS_ROOT_INO;
	auto_free char *above = xmemdupz(path, (size_t)(base - path) - 1);
	return op_history_ino(p->h, state, above);
}

DEFINE_ORDER(by_name_path, struct op_name, tree_path_cmp(a->path, b->path))

/* Adds the inodes of a name in any of the directories, in any state. */
static void add_entries(const struct promises *p, const struct values *dirs, const char *name,
			size_t len, struct values *out)
{
	auto_vec struct vec_of(struct op_name) like = { 0 };

	vec_each(n, &op_history_names(p->h)->name) {
		const char *base = last_part(n->path);

		if (strlen(base) == len && memcmp(base, name, len) == 0)
			vec_push(&like, *n); /* its spans stay where they are */
	}
	vec_sort(&like, by_name_path);
	for (size_t s = since_all(p); s <= p->last; s++)
		vec_each(n, &like) {
			uint64_t ino = op_name_at(n, s);

			if (ino && values_has(dirs, dir_of(p, s, n->path)))
				values_add(out, ino);
		}
}

/*
 * The inodes of a path if each directory on it may have its place of one state, and its entries of
 * another: a file that was made in a moved directory is at the old place of that directory if only
 * the file was synced.
 */
struct values persisted_composed_at(const struct promises *p, const char *path)
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

static void check_stray(struct comparison *c, const struct tree_entry *e, const struct promise *why)
{
	struct strbuf words = { 0 };
	bool was = persisted_was_ever(c->p, e->path);

	if (!was && !c->p->g->no_strays)
		return;
	strbuf_addf(&words, was ? "%s: is there again" : "%s: is there, and never was", e->path);
	persisted_report(c, was ? FINDING_BACK : FINDING_NEVER, e->path, why, &words);
}

/*
 * True for a file that is not judged. Without an order, an inode may belong to another file before
 * its old name is gone from the disk, and a name may reach the disk before its inode. So a file is
 * not judged if no promise covers it, or if it was removed after the promise.
 */
static bool has_lapsed(const struct promises *p, uint64_t ino)
{
	size_t from = 0;

	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind == PROMISE_ALL || p->list.v[i].ino == ino)
			from = p->list.v[i].state;
	/* State 0 is empty: without a promise, it was not there. */
	for (size_t i = from; i <= p->last; i++)
		if (!inode_in(p, i, ino))
			return true;
	return false;
}

static bool lapsed(const struct comparison *c, uint64_t ino)
{
	struct comparison_memo *m = c->memo;

	if (c->p->g->ordered)
		return false;
	if (m->lapsed_ino != ino)
		m->lapsed = has_lapsed(c->p, ino);
	m->lapsed_ino = ino;
	return m->lapsed;
}

static bool any_lapsed(const struct comparison *c, const struct values *set)
{
	return any_of(i, set->n, set->v[i] && lapsed(c, set->v[i]));
}

static void check_missing(struct comparison *c, const char *path, const struct values *set,
			  const struct promise *why)
{
	struct strbuf words = { 0 };

	if (values_has(set, 0) || persisted_below_missing(c, path))
		return;
	/* The disk may have an entry without its file; recovery then removes the entry. */
	if (!c->p->g->entries_lead && any_lapsed(c, set))
		return;
	strbuf_addf(&words, "%s: is missing", path);
	persisted_report(c, FINDING_MISSING, path, why, &words);
}

/* The only inode of a set; 0 if it has none, or several. */
static uint64_t only_inode_of(const struct values *set)
{
	uint64_t only = 0;

	for (size_t i = 0; i < set->n; i++) {
		if (only && set->v[i])
			return 0;
		only = set->v[i] ? set->v[i] : only;
	}
	return only;
}

/* Whether this is another name of the file that had no problems as the only possible inode. */
static bool is_clean(const struct comparison *c, const struct tree_entry *e,
		     const struct values *set)
{
	const struct tree_entry *clean = c->memo->clean;

	return clean && e->link && e->link == clean->link &&
	       only_inode_of(set) == c->memo->clean_ino && e->mode == clean->mode &&
	       e->uid == clean->uid && e->gid == clean->gid && e->size == clean->size &&
	       hash_eq(e->hash, clean->hash);
}

/* Finds the possible inode that fits best, and reports its differences, if any. */
static void check_candidates(struct comparison *c, const struct tree_entry *e,
			     const struct values *set, const struct promise *why)
{
	auto_vec struct findings best = { 0 };
	bool any = false;

	if (any_lapsed(c, set) || is_clean(c, e, set))
		return;
	for (size_t i = 0; i < set->n; i++) {
		struct comparison inner = *c;
		struct findings problems = { 0 };
		struct reffs_attr attr;

		if (!set->v[i] || !attr_of(c->p, set->v[i], &attr) || attr.type != e->type)
			continue;
		inner.out = &problems;
		persisted_inode(&inner, e, set->v[i], &attr);
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
		persisted_report(c, FINDING_TYPE, e->path, why, &words);
	}
	if (any && !best.n && only_inode_of(set) && c->memo->may_skip) {
		c->memo->clean = e;
		c->memo->clean_ino = only_inode_of(set);
	}
	for (size_t i = 0; i < best.n; i++)
		vec_push(c->out, best.v[i]);
}

void persisted_path(struct comparison *c, const char *path)
{
	const struct promise *why = promise_for_path(c->p, path);
	struct values set = allowed_at(c->p, path, state_of(why));
	const struct tree_entry *e = tree_find(c->seen, path);

	if (!e) {
		check_missing(c, path, &set, why);
	} else if (e->error) {
		struct strbuf words = { 0 };

		strbuf_addf(&words, "%s: cannot be read: %s", path, strerror(e->error));
		persisted_report(c, FINDING_UNREADABLE, path, why, &words);
	} else if (set.n == 1 && set.v[0] == 0) {
		struct values composed =
			persisted_was_ever(c->p, path) ? set : persisted_composed_at(c->p, path);

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
		persisted_report(c, FINDING_DOUBLED, path, NULL, &words);
	}
}
