/* SPDX-License-Identifier: MIT */
/*
 * workload-match.h - is one workload the other, but for the spelling of its names?
 *
 * Two workloads match if a renaming of files, directories and attributes, one to one, makes them
 * the same:
 *   - Operations that are not setup are the same, in the same order, with the same flags.
 *     Persistence points are among them.
 *   - A range of data lies the same way: in its file, on block boundaries, and to every range that
 *     an operation used before in that file. The numbers themselves may differ.
 *   - Each operation finds the same at its names: nothing, or a file with the same names, the same
 *     attributes, with data or without.
 *   - At each persistence point, the whole tree is the same; and so is what of it is durable,
 *     unless a later operation makes everything durable.
 * So setup operations matter by what they leave, and where they stand between two persistence
 * points does not matter. What fsync left durable is not what sync left: it may be in a log.
 */
#ifndef TESTS_WORKLOAD_MATCH_H
#define TESTS_WORKLOAD_MATCH_H

#include <linux/falloc.h>

#include "base/vec.h"
#include "workload/workload.h"

enum {
	MATCH_OPS_MAX = 64,
	MATCH_NAMES_MAX = 40,
	MATCH_RANGES_MAX = 16,
	MATCH_XATTRS_MAX = 8,
	MATCH_TEXT_MAX = 1024,
	MATCH_FREE_MAX = 6, /* names that only setup operations use, or none */
	BLOCK_SIZE = 4096,
};

/* How far something is durable. */
enum durable { IN_MEMORY, BY_FSYNC, BY_SYNC };

struct match_inode {
	const struct op_def *made; /* by which operation: the type */
	uint64_t size;
	const char *xattr[MATCH_XATTRS_MAX];
	size_t n_xattrs;
	enum durable durable;
	struct {
		uint64_t from, to;
	} range[MATCH_RANGES_MAX];
	size_t n_ranges;
};

/* A path, and the inode that it leads to: now, and after a crash. 0: none. */
struct match_name {
	const char *path;
	size_t len;
	size_t now, disk;
	enum durable durable;
};

/* One of the two workloads, and the file system that it works on. */
struct match_side {
	const struct workload *w;
	struct match_name name[MATCH_NAMES_MAX];
	size_t n_names;
	char text[MATCH_TEXT_MAX]; /* of names that the workload does not mention */
	size_t text_len;
	struct match_inode inode[MATCH_OPS_MAX + 2]; /* 0 is none, 1 the root */
	size_t n_inodes;
	size_t at;  /* the next operation */
	bool unfit; /* too many names or operations, or handles */
};

struct match {
	struct match_side a, b;
	size_t to_b[MATCH_NAMES_MAX], to_a[MATCH_NAMES_MAX]; /* names; MATCH_NAMES_MAX: not yet */
	const char *xattr_a[MATCH_XATTRS_MAX], *xattr_b[MATCH_XATTRS_MAX];
	size_t n_xattrs;
	size_t whole; /* the last operation that makes everything durable, or -1 */
};

/* ---- names ---- */

/* The index of the name with these first bytes, which is added if it is new. */
static size_t match_name_of(struct match_side *s, const char *path, size_t len)
{
	for (size_t i = 0; i < s->n_names; i++)
		if (s->name[i].len == len && !memcmp(s->name[i].path, path, len))
			return i;
	if (s->n_names == MATCH_NAMES_MAX) {
		s->unfit = true;
		return 0;
	}
	s->name[s->n_names] = (struct match_name){ .path = path, .len = len };
	return s->n_names++;
}

/* Adds the directories above it first. */
static size_t match_path(struct match_side *s, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 1; i < n; i++)
		if (path[i] == '/')
			match_name_of(s, path, i);
	return match_name_of(s, path, n);
}

static size_t match_parent(struct match_side *s, size_t name)
{
	const struct match_name *n = &s->name[name];
	const char *slash = memrchr(n->path, '/', n->len);

	return slash ? match_name_of(s, n->path, (size_t)(slash - n->path)) : 0;
}

/* Makes two names the same, and their directories; false if one of them is another's already. */
static bool match_pair(struct match *m, size_t a, size_t b)
{
	if (m->to_b[a] != MATCH_NAMES_MAX || m->to_a[b] != MATCH_NAMES_MAX)
		return m->to_b[a] == b && m->to_a[b] == a;
	if (!a || !b)
		return false; /* the root is the root */
	m->to_b[a] = b;
	m->to_a[b] = a;
	return match_pair(m, match_parent(&m->a, a), match_parent(&m->b, b));
}

static bool match_xattr(struct match *m, const char *a, const char *b)
{
	for (size_t i = 0; i < m->n_xattrs; i++)
		if (streq(m->xattr_a[i], a) || streq(m->xattr_b[i], b))
			return streq(m->xattr_a[i], a) && streq(m->xattr_b[i], b);
	if (m->n_xattrs == MATCH_XATTRS_MAX)
		return false;
	m->xattr_a[m->n_xattrs] = a;
	m->xattr_b[m->n_xattrs++] = b;
	return true;
}

static bool match_is_path(const struct arg_def *arg)
{
	return arg->kind == ARG_PATH || arg->kind == ARG_FILE;
}

static bool match_is_below(const struct match_name *name, const struct match_name *dir)
{
	return name->len > dir->len && !memcmp(name->path, dir->path, dir->len) &&
	       name->path[dir->len] == '/';
}

/* Adds what the names below a directory are called when it has moved. */
static void match_add_moved(struct match_side *s, const char *from, const char *to)
{
	const struct match_name *dir = &s->name[match_path(s, from)];

	for (size_t i = 0, n = s->n_names; i < n; i++) {
		if (!match_is_below(&s->name[i], dir))
			continue;
		size_t left = sizeof(s->text) - s->text_len;
		char *path = s->text + s->text_len;
		size_t len = (size_t)snprintf(path, left, "%s%.*s", to,
					      (int)(s->name[i].len - dir->len),
					      s->name[i].path + dir->len);
		if (len >= left) {
			s->unfit = true;
			return;
		}
		if (match_path(s, path) >= n)
			s->text_len += len + 1;
	}
}

static void match_side_init(struct match_side *s, const struct workload *w)
{
	*s = (struct match_side){ .w = w, .n_inodes = 2, .unfit = w->ops.n > MATCH_OPS_MAX };
	match_name_of(s, ".", 1);
	s->name[0].now = s->name[0].disk = 1;
	s->name[0].durable = s->inode[1].durable = BY_SYNC;
	for (size_t i = 0; i < w->ops.n; i++)
		for (size_t j = 0; w->ops.v[i].def->args[j].kind != ARG_END; j++)
			if (w->ops.v[i].args[j].is_handle)
				s->unfit = true;
			else if (match_is_path(&w->ops.v[i].def->args[j]))
				match_path(s, w->ops.v[i].args[j].text);
	for (size_t i = 0; i < w->ops.n; i++)
		if (w->ops.v[i].def->args[0].role == ROLE_FROM)
			match_add_moved(s, w->ops.v[i].args[0].text, w->ops.v[i].args[1].text);
}

/* ---- the file system ---- */

static size_t match_make(struct match_side *s, size_t name, const struct op_def *by)
{
	assert(s->n_inodes < ARRAY_SIZE(s->inode));
	s->inode[s->n_inodes] = (struct match_inode){ .made = by };
	s->name[name].now = s->n_inodes;
	s->name[name].durable = IN_MEMORY;
	return s->n_inodes++;
}

/* Moves a name, and those below it. */
static void match_move(struct match_side *s, size_t from, size_t to)
{
	for (size_t i = 0, n = s->n_names; i < n; i++) {
		const struct match_name *below = &s->name[i];

		if (!below->now || !match_is_below(below, &s->name[from]))
			continue;
		for (size_t j = 0; j < n; j++)
			if (match_is_below(&s->name[j], &s->name[to]) &&
			    s->name[j].len - s->name[to].len == below->len - s->name[from].len &&
			    !memcmp(s->name[j].path + s->name[to].len,
				    below->path + s->name[from].len,
				    below->len - s->name[from].len)) {
				s->name[j].now = below->now;
				s->name[j].durable = IN_MEMORY;
			}
		s->name[i].now = 0;
		s->name[i].durable = IN_MEMORY;
	}
	s->name[to].now = s->name[from].now;
	s->name[from].now = 0;
	s->name[to].durable = s->name[from].durable = IN_MEMORY;
}

static void match_keep(struct match_name *name, enum durable how)
{
	if (name->disk == name->now && name->durable >= how)
		return;
	name->disk = name->now;
	name->durable = how;
}

static void match_sync(struct match_side *s)
{
	for (size_t i = 0; i < s->n_names; i++)
		match_keep(&s->name[i], BY_SYNC);
	for (size_t i = 1; i < s->n_inodes; i++)
		s->inode[i].durable = BY_SYNC;
}

static void match_fsync(struct match_side *s, size_t name)
{
	size_t ino = s->name[name].now;

	if (s->inode[ino].durable == IN_MEMORY)
		s->inode[ino].durable = BY_FSYNC;
	for (size_t i = 0; i < s->n_names; i++) {
		if (s->name[i].now != ino && (!i || s->name[match_parent(s, i)].now != ino))
			continue;
		for (size_t up = i; up; up = match_parent(s, up))
			match_keep(&s->name[up], BY_FSYNC);
	}
}

static void match_set_xattr(struct match_inode *inode, const char *name, bool set)
{
	size_t i = 0;

	while (i < inode->n_xattrs && !streq(inode->xattr[i], name))
		i++;
	if (set && i == inode->n_xattrs && i < MATCH_XATTRS_MAX)
		inode->xattr[inode->n_xattrs++] = name;
	else if (!set && i < inode->n_xattrs)
		inode->xattr[i] = inode->xattr[--inode->n_xattrs];
}

static void match_change_data(const struct op *op, struct match_inode *to)
{
	uint64_t from, end;
	bool keeps = op->def->flags & OP_RANGES && op->args[1].num & FALLOC_FL_KEEP_SIZE;

	if (op->def->args[1].kind == ARG_SIZE)
		to->size = op->args[1].num;
	else if (op_range(op, &from, &end) && !keeps)
		to->size = max(to->size, end);
	else if (op->def->args[1].kind == ARG_LENGTH)
		to->size += op->args[1].num;
}

/* Does what an operation does to its names; the roles say what that is. */
static void match_names(struct match_side *s, const struct op *op)
{
	size_t first = 0;

	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++) {
		const struct arg_def *arg = &op->def->args[i];
		size_t name = match_is_path(arg) ? match_path(s, op->args[i].text) : 0;

		switch (arg->role) {
		case ROLE_NEW_FILE:
			if (s->name[name].now)
				s->inode[s->name[name].now].size = 0;
			/* fall through */
		case ROLE_MAKE:
		case ROLE_NEW_DIR:
		case ROLE_NEW_OTHER:
			/* However a file was made, it is a file. */
			if (!s->name[name].now)
				match_make(s, name,
					   arg->role == ROLE_MAKE ? OP_DEF(creat) : op->def);
			break;
		case ROLE_GONE_FILE:
		case ROLE_GONE_DIR:
			s->name[name].now = 0;
			s->name[name].durable = IN_MEMORY;
			break;
		case ROLE_LINK_NEW:
			s->name[name].now = s->name[first].now;
			s->name[name].durable = IN_MEMORY;
			s->inode[s->name[first].now].durable = IN_MEMORY;
			break;
		case ROLE_TO:
			s->inode[s->name[first].now].durable = IN_MEMORY;
			match_move(s, first, name);
			break;
		default:
			break;
		}
		first = match_is_path(arg) && !first ? name : first;
	}
}

static void match_perform(struct match_side *s, const struct op *op)
{
	const struct arg_def *args = op->def->args;
	size_t name = match_is_path(&args[0]) ? match_path(s, op->args[0].text) : 0;

	match_names(s, op);
	struct match_inode *inode = &s->inode[s->name[name].now];
	if (op->def->flags & OP_DATA)
		match_change_data(op, inode);
	if (args[1].kind == ARG_XATTR)
		match_set_xattr(inode, op->args[1].text, args[2].kind != ARG_END);
	if (!op->def->promise || op->def->flags & OP_DATA)
		inode->durable = name ? IN_MEMORY : inode->durable;
	if (op->def->promise == OP_PROMISES_ALL)
		match_sync(s);
	else if (op_persists(op))
		match_fsync(s, name);
}

/* ---- comparing ---- */

static int match_sign(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static bool match_same_position(uint64_t a, uint64_t size_a, uint64_t b, uint64_t size_b)
{
	return !a == !b && match_sign(a, size_a) == match_sign(b, size_b) &&
	       !(a % BLOCK_SIZE) == !(b % BLOCK_SIZE);
}

/* Whether two ranges, or new sizes, lie the same way in their files. */
static bool match_same_range(const struct match_inode *a, const struct op *op_a,
			     const struct match_inode *b, const struct op *op_b)
{
	uint64_t from_a, to_a, from_b, to_b;

	if (op_a->def->args[1].kind == ARG_SIZE)
		return match_same_position(op_a->args[1].num, a->size, op_b->args[1].num, b->size);
	if (!op_range(op_a, &from_a, &to_a) || !op_range(op_b, &from_b, &to_b))
		return true;
	if (!match_same_position(from_a, a->size, from_b, b->size) ||
	    !match_same_position(to_a, a->size, to_b, b->size) || a->n_ranges != b->n_ranges)
		return false;
	for (size_t i = 0; i < a->n_ranges; i++)
		if (match_sign(from_a, a->range[i].from) != match_sign(from_b, b->range[i].from) ||
		    match_sign(from_a, a->range[i].to) != match_sign(from_b, b->range[i].to) ||
		    match_sign(to_a, a->range[i].from) != match_sign(to_b, b->range[i].from) ||
		    match_sign(to_a, a->range[i].to) != match_sign(to_b, b->range[i].to))
			return false;
	return a->n_ranges < MATCH_RANGES_MAX;
}

static void match_add_range(struct match_side *s, const struct op *op)
{
	uint64_t from, to;

	if (!match_is_path(&op->def->args[0]) || !op_range(op, &from, &to))
		return;
	struct match_inode *inode = &s->inode[s->name[match_path(s, op->args[0].text)].now];
	inode->range[inode->n_ranges].from = from;
	inode->range[inode->n_ranges++].to = to;
}

static bool match_same_xattrs(const struct match *m, const struct match_inode *a,
			      const struct match_inode *b)
{
	if (a->n_xattrs != b->n_xattrs)
		return false;
	for (size_t i = 0; i < m->n_xattrs; i++)
		if (any_of(j, a->n_xattrs, streq(a->xattr[j], m->xattr_a[i])) !=
		    any_of(j, b->n_xattrs, streq(b->xattr[j], m->xattr_b[i])))
			return false;
	return true;
}

static bool match_same_inode(const struct match *m, size_t ino_a, size_t ino_b, bool durable)
{
	const struct match_inode *a = &m->a.inode[ino_a], *b = &m->b.inode[ino_b];

	return a->made == b->made && !a->size == !b->size &&
	       !(a->size % BLOCK_SIZE) == !(b->size % BLOCK_SIZE) && match_same_xattrs(m, a, b) &&
	       (!durable || a->durable == b->durable);
}

/* Whether a name, and each other name of its file, leads to the same in both. */
static bool match_same_name(const struct match *m, size_t a, bool durable)
{
	const struct match_name *x = &m->a.name[a], *y = &m->b.name[m->to_b[a]];

	if (!x->now != !y->now || !match_same_inode(m, x->now, y->now, durable))
		return false;
	if (durable && (!x->disk != !y->disk || x->durable != y->durable))
		return false;
	for (size_t i = 0; i < m->a.n_names; i++) {
		const struct match_name *p = &m->a.name[i], *q = &m->b.name[m->to_b[i]];

		if ((x->now && p->now == x->now) != (y->now && q->now == y->now))
			return false;
		if (durable && ((x->disk && p->now == x->disk) != (y->disk && q->now == y->disk) ||
				(x->disk && p->disk == x->disk) != (y->disk && q->disk == y->disk)))
			return false;
	}
	return true;
}

static bool match_same_tree(const struct match *m, bool durable)
{
	for (size_t i = 0; i < m->a.n_names; i++)
		if (!match_same_name(m, i, durable))
			return false;
	return true;
}

/* The operations themselves, with flags; names become the same by this. */
static bool match_same_op(struct match *m, const struct op *a, const struct op *b)
{
	if (a->def != b->def)
		return false;
	for (size_t i = 0; a->def->args[i].kind != ARG_END; i++) {
		const struct arg *x = &a->args[i], *y = &b->args[i];

		if (match_is_path(&a->def->args[i]) &&
		    !match_pair(m, match_path(&m->a, x->text), match_path(&m->b, y->text)))
			return false;
		if (a->def->args[i].kind == ARG_XATTR && !match_xattr(m, x->text, y->text))
			return false;
		if ((a->def->args[i].kind == ARG_FLAGS || a->def->args[i].kind == ARG_CHOICE) &&
		    x->num != y->num)
			return false;
	}
	return true;
}

/* Performs setup operations up to the next one that is none; NULL at the end. */
static const struct op *match_next(struct match_side *s)
{
	while (s->at < s->w->ops.n && s->w->ops.v[s->at].setup)
		match_perform(s, &s->w->ops.v[s->at++]);
	return s->at < s->w->ops.n ? &s->w->ops.v[s->at] : NULL;
}

/* Runs both side by side; all names are the same already. */
static bool match_run(struct match *m)
{
	const struct op *a, *b;

	while ((a = match_next(&m->a)) && (b = match_next(&m->b))) {
		bool durable = m->whole == SIZE_MAX || m->a.at > m->whole;

		for (size_t i = 0; a->def->args[i].kind != ARG_END; i++)
			if (match_is_path(&a->def->args[i]) &&
			    !match_same_name(m, match_path(&m->a, a->args[i].text), durable))
				return false;
		if (op_persists(a) && !match_same_tree(m, durable))
			return false;
		if (match_is_path(&a->def->args[0])) {
			size_t name = match_path(&m->a, a->args[0].text);

			if (!match_same_range(&m->a.inode[m->a.name[name].now], a,
					      &m->b.inode[m->b.name[m->to_b[name]].now], b))
				return false;
		}
		match_perform(&m->a, a);
		match_perform(&m->b, b);
		match_add_range(&m->a, a);
		match_add_range(&m->b, b);
		m->a.at++;
		m->b.at++;
	}
	return !match_next(&m->a) && !match_next(&m->b) && m->a.at == m->a.w->ops.n;
}

/* Pairs the names that only setup operations use, in every way, until one is right. */
static bool match_free(const struct match *m)
{
	size_t a = 0;

	while (a < m->a.n_names && m->to_b[a] != MATCH_NAMES_MAX)
		a++;
	if (a == m->a.n_names) {
		struct match run = *m;

		return match_run(&run);
	}
	for (size_t b = 0; b < m->b.n_names; b++) {
		struct match next = *m;

		if (m->to_a[b] == MATCH_NAMES_MAX && match_pair(&next, a, b) && match_free(&next))
			return true;
	}
	return false;
}

static size_t match_count_free(const size_t *to, size_t n)
{
	size_t free = 0;

	for (size_t i = 0; i < n; i++)
		free += to[i] == MATCH_NAMES_MAX;
	return free;
}

/* The next operation from `at` on that is not setup, or the end. */
static size_t match_skip(const struct workload *w, size_t at)
{
	while (at < w->ops.n && w->ops.v[at].setup)
		at++;
	return at;
}

static bool workloads_match(const struct workload *a, const struct workload *b)
{
	struct match m = { .whole = SIZE_MAX };
	size_t i = match_skip(a, 0), j = match_skip(b, 0);

	match_side_init(&m.a, a);
	match_side_init(&m.b, b);
	for (size_t n = 0; n < MATCH_NAMES_MAX; n++)
		m.to_b[n] = m.to_a[n] = MATCH_NAMES_MAX;
	m.to_b[0] = m.to_a[0] = 0;
	if (m.a.unfit || m.b.unfit || m.a.n_names != m.b.n_names)
		return false;
	while (i < a->ops.n && j < b->ops.n) {
		if (!match_same_op(&m, &a->ops.v[i], &b->ops.v[j]))
			return false;
		if (a->ops.v[i].def->promise == OP_PROMISES_ALL)
			m.whole = i;
		i = match_skip(a, i + 1);
		j = match_skip(b, j + 1);
	}
	return i == a->ops.n && j == b->ops.n &&
	       match_count_free(m.to_b, m.a.n_names) <= MATCH_FREE_MAX && match_free(&m);
}

#endif
