/* SPDX-License-Identifier: MIT */
/*
 * promise.c - makes a list of promises from the persistence operations of a history, and looks them
 * up.
 */
#include "check/promise.h"

#include <fcntl.h>

/* ---- which inode an operation acted on ---- */

/* Returns the inode at a path of a state; 0 if there is none or a symbolic link is on the way. */
static uint64_t resolve(struct op_history *h, size_t state, const char *path)
{
	uint64_t ino = op_history_ino(h, state, path);
	struct reffs_attr attr;

	if (!ino)
		return 0;
	reffs_attr(reffs_inode(h->states.v[state], ino), &attr);
	return attr.type == TREE_SYMLINK ? 0 : ino; /* no promise is made for a link's target */
}

/* Returns the inode of a handle when operation `op` ran: that of the last open with its name. */
static uint64_t resolve_handle(struct op_history *h, size_t op, const char *name, unsigned *flags)
{
	for (size_t i = op; i-- > 0;) {
		const struct op *o = &h->w->ops.v[i];

		if (!o->handle || !streq(o->handle, name) || h->results.v[i] < 0)
			continue;
		*flags = (unsigned)o->args[1].num;
		return resolve(h, i + 1, o->args[0].text);
	}
	return 0;
}

static uint64_t subject(struct op_history *h, size_t op, unsigned *flags)
{
	const struct arg *arg = &h->w->ops.v[op].args[0];

	*flags = 0;
	if (!arg->text)
		return 0;
	return arg->is_handle ? resolve_handle(h, op, arg->text, flags)
			      : resolve(h, op + 1, arg->text);
}

static enum tree_type type_of(const struct promises *p, size_t state, uint64_t ino)
{
	const struct reffs_inode *inode = reffs_inode(p->h->states.v[state], ino);
	struct reffs_attr attr;

	if (!inode)
		return TREE_UNKNOWN;
	reffs_attr(inode, &attr);
	return attr.type;
}

/* Returns the size of a file in a state; 0 if it did not exist. */
static uint64_t size_of(const struct promises *p, size_t state, uint64_t ino)
{
	const struct reffs_inode *inode = reffs_inode(p->h->states.v[state], ino);
	struct reffs_attr attr = { 0 };

	if (inode)
		reffs_attr(inode, &attr);
	return attr.size;
}

/* ---- making the list ---- */

static void add(struct promises *p, enum promise_kind kind, size_t op, uint64_t ino)
{
	vec_push(&p->list, (struct promise){ .kind = kind, .state = op + 1, .op = op, .ino = ino });
}

/* Adds a promise for the written range; older data need not be durable. */
static void add_range(struct promises *p, size_t i, uint64_t ino)
{
	uint64_t from, to;

	if (!op_range(&p->h->w->ops.v[i], &from, &to)) {
		from = size_of(p, i, ino); /* the write is at the end */
		to = size_of(p, i + 1, ino);
	}
	if (from == to)
		return; /* no byte was written, and none is promised */
	add(p, PROMISE_RANGE, i, ino);
	vec_last(&p->list).from = from;
	vec_last(&p->list).to = to;
}

/* Adds the promises of operation `i`, which succeeded. */
static void add_promise(struct promises *p, size_t i)
{
	const struct op *op = &p->h->w->ops.v[i];
	enum op_promise promise = op->def->promise;
	unsigned flags;
	uint64_t ino = subject(p->h, i, &flags);
	bool all = promise == OP_PROMISES_ALL &&
		   (p->g->sync_reaches || op->def->flags & OP_UNMOUNTS);
	/* The flags of open(2) do not matter for stores to a mapping. */
	bool by_call = op->def->flags & OP_WRITES && !(op->def->flags & OP_MAPS);

	if (p->g->every_op || all) {
		add(p, PROMISE_ALL, i, 0);
	} else if (!ino || !p->g->fsync_reaches) {
		return;
	} else if (promise == OP_PROMISES_OBJECT) {
		bool dir = type_of(p, i + 1, ino) == TREE_DIR;
		add(p, dir ? PROMISE_DIR : PROMISE_FILE, i, ino);
	} else if (promise == OP_PROMISES_DATA) {
		bool dir = type_of(p, i + 1, ino) == TREE_DIR;
		add(p, dir ? PROMISE_DIR : PROMISE_DATA, i, ino);
	} else if (promise == OP_PROMISES_RANGE && op_persists(op)) {
		add_range(p, i, ino);
	} else if (op_words(op, op_write_words) || (by_call && flags & O_DSYNC)) {
		add_range(p, i, ino); /* O_SYNC holds O_DSYNC */
	}
}

void promises_make(struct promises *p, struct op_history *h, const struct guarantee *g, size_t done,
		   bool under_way)
{
	p->h = h;
	p->g = g;
	assert(done < h->states.n);
	p->last = min(done + under_way, h->states.n - 1);
	p->done = done;
	p->under_way = under_way;
	vec_clear(&p->list);
	for (size_t i = 0; i < done; i++)
		if (h->results.v[i] >= 0)
			add_promise(p, i);
}

void promises_release(struct promises *p)
{
	vec_release(&p->list);
}

/* ---- using the list ---- */

/* Whether `path` is `below` itself, or a directory above it. */
static bool on_the_way(const char *path, const char *below)
{
	size_t n = strlen(path);

	return strncmp(path, below, n) == 0 && (below[n] == '\0' || below[n] == '/');
}

/* True if the inode has had one name, the same in all states so far. */
static bool one_name(struct op_history *h, size_t state, uint64_t ino)
{
	const struct op_names *names = op_history_names(h);
	const struct op_named *inode = op_names_of(names, ino);
	size_t n = 0;

	for (size_t i = 0; inode && i < inode->names.n && n < 2; i++) {
		const struct op_name *name = &names->name.v[inode->names.v[i]];

		n += any_of(k, op_name_span(name, state) + 1, name->spans.v[k].ino == ino);
	}
	return n == 1;
}

/* Returns the last inode of a path, up to a state; 0 if it never had one. */
static uint64_t last_at(struct op_history *h, size_t state, const char *path)
{
	const struct op_name *name = op_names_find(op_history_names(h), path);

	for (size_t i = name ? op_name_span(name, state) + 1 : 0; i-- > 0;)
		if (name->spans.v[i].ino)
			return name->spans.v[i].ino;
	return 0;
}

/*
 * True if no directory above a path was ever moved. fsync of a file persists its names, and the
 * directories above if they are new; but not a move of such a directory, which ext4, xfs and btrfs
 * do not write out.
 */
static bool settled(struct op_history *h, size_t state, const char *path)
{
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		auto_free char *above = xmemdupz(path, (size_t)(slash - path));

		if (!one_name(h, state, last_at(h, state, above)))
			return false;
	}
	return true;
}

/* Whether `path` names the inode in a state, or is a directory above one of its names. */
static bool names_line(const struct promises *p, size_t state, const char *path, uint64_t ino)
{
	uint64_t there = op_history_ino(p->h, state, path);
	const char *name;

	if (there == ino)
		return settled(p->h, state, path);
	if (!there || type_of(p, state, there) != TREE_DIR)
		return false;
	for (size_t i = 0; (name = op_history_next_name(p->h, state, ino, &i));)
		if (on_the_way(path, name) && settled(p->h, state, name))
			return true;
	return false;
}

/* Whether `path` is, in a state, a name in the directory. */
static bool names_in(struct op_history *h, size_t state, const char *path, uint64_t dir)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return dir == REFFS_ROOT_INO;
	auto_free char *parent = xmemdupz(path, (size_t)(slash - path));
	return op_history_ino(h, state, parent) == dir && settled(h, state, parent);
}

/* True if the path was a name of the inode before a state, and does not exist in that state. */
static bool left_name(struct op_history *h, size_t state, const char *path, uint64_t ino)
{
	if (op_history_ino(h, state, path))
		return false;
	return last_at(h, state, path) == ino && settled(h, state, path);
}

static bool covers_path(const struct promises *p, const struct promise *x, const char *path)
{
	switch (x->kind) {
	case PROMISE_ALL:
		return true;
	case PROMISE_DIR:
		return names_in(p->h, x->state, path, x->ino) ||
		       (p->g->fsync_dir_line && names_line(p, x->state, path, x->ino));
	case PROMISE_FILE:
		return p->g->fsync_names && (names_line(p, x->state, path, x->ino) ||
					     left_name(p->h, x->state, path, x->ino));
	case PROMISE_DATA:
	case PROMISE_RANGE:
		/* One name of the data is promised; if there are several, any one. */
		return p->g->fsync_names && names_line(p, x->state, path, x->ino) &&
		       one_name(p->h, x->state, x->ino);
	}
	return false;
}

/* True if the directory of a path is durable: without that, the path could not be reached. */
static bool reachable(const struct promises *p, const struct promise *x, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || x->kind == PROMISE_ALL || p->g->fsync_names)
		return true;
	auto_free char *parent = xmemdupz(path, (size_t)(slash - path));
	return promise_for_path(p, parent) != NULL;
}

const struct promise *promise_for_path(const struct promises *p, const char *path)
{
	return vec_find_last(i, &p->list,
			     covers_path(p, &p->list.v[i], path) &&
				     reachable(p, &p->list.v[i], path));
}

#define KIND(kind) (1u << (kind))

/* The last promise of everything, or of one of `kinds` (bits) for an inode. */
static const struct promise *last_of(const struct promises *p, uint64_t ino, unsigned kinds)
{
	return vec_find_last(i, &p->list,
			     p->list.v[i].kind == PROMISE_ALL ||
				     (p->list.v[i].ino == ino && kinds & KIND(p->list.v[i].kind)));
}

const struct promise *promise_for_attributes(const struct promises *p, uint64_t ino)
{
	return last_of(p, ino, KIND(PROMISE_FILE) | KIND(PROMISE_DIR));
}

/* msync and synced writes promise only that their bytes can be read. */
const struct promise *promise_for_size(const struct promises *p, uint64_t ino)
{
	return last_of(p, ino, KIND(PROMISE_FILE) | KIND(PROMISE_DIR) | KIND(PROMISE_DATA));
}

const struct promise *promise_for_length(const struct promises *p, uint64_t ino, uint64_t *length)
{
	const struct promise *why = NULL;

	*length = 0;
	vec_each(x, &p->list) {
		uint64_t needed = x->to;

		if (x->kind != PROMISE_RANGE || x->ino != ino)
			continue;
		/* Bytes that were truncated since then need not exist. */
		for (size_t s = x->state; s <= p->last; s++)
			needed = min(needed, size_of(p, s, ino));
		if (needed > *length) {
			*length = needed;
			why = x;
		}
	}
	return why;
}

const struct promise *promise_for_byte(const struct promises *p, uint64_t ino, uint64_t offset)
{
	for (size_t i = p->list.n; i-- > 0;) {
		const struct promise *x = &p->list.v[i];

		if (x->kind == PROMISE_ALL ||
		    (x->ino == ino &&
		     (x->kind == PROMISE_FILE || x->kind == PROMISE_DATA ||
		      (x->kind == PROMISE_RANGE && offset >= x->from && offset < x->to))))
			return x;
	}
	return NULL;
}

bool promise_of_any_name(const struct promises *p, const struct promise *x, uint64_t ino)
{
	const char *name;

	if (x->ino != ino || x->kind == PROMISE_ALL || !p->g->fsync_names)
		return false;
	for (size_t i = 0; (name = op_history_next_name(p->h, x->state, ino, &i));)
		if (covers_path(p, x, name))
			return false;
	return true;
}

const struct promise *promise_for_existence(const struct promises *p, uint64_t ino)
{
	const char *name;

	vec_each(x, &p->list) {
		if (promise_of_any_name(p, x, ino))
			return x;
		for (size_t i = 0; (name = op_history_next_name(p->h, x->state, ino, &i));)
			if (covers_path(p, x, name) && reachable(p, x, name))
				return x;
	}
	return NULL;
}

char *promise_words(const struct promises *p, const struct promise *promise)
{
	struct strbuf out = { 0 };

	if (!promise)
		return NULL;
	op_print(&p->h->w->ops.v[promise->op], &out);
	strbuf_addf(&out, " (operation %zu) had returned", promise->op);
	return strbuf_detach(&out);
}
