/* SPDX-License-Identifier: MIT */
/*
 * forget_redo.c - does changes live, keeps those that wait, and does them in ROOT when a sync
 * chooses them.
 */
#include "forget/forget_redo.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget/forget_mount.h"
#include "fs/acl.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

/* Changes, in order. */
struct redo_list vec_of(struct redo *);

static unsigned slots_of(const struct redo *r)
{
	return r->kind <= PENDING_REMOVE ? 1 : r->kind <= PENDING_SWAP ? 2 : 0;
}

void forget_redo_open(struct forget *f)
{
	owned_init(&f->log_lock);
	if (f->opts.profile->metadata)
		f->log = pending_new(f->opts.profile);
}

bool forget_redo_waits(const struct forget *f, const struct node *n)
{
	return f->log && n->dev == f->dev;
}

/* ---- live ---- */

/*
 * Sets an attribute in the list of a node. An access list changes the mode, and is not kept if it
 * says no more than the mode.
 */
static void list_set(struct looks *l, const struct redo *r)
{
	const void *value = r->value ? r->value->data : NULL;
	size_t len = r->value ? r->value->len : 0;
	struct xattrs *old = l->xattrs;

	if (value && streq(r->xattr, ACL_ACCESS)) {
		auto_acl acl = { 0 };

		if (!acl_parse(value, len, &acl) && acl.n && !acl_mode(&acl, &l->mode))
			value = NULL;
	}
	l->xattrs = xattrs_with(old, r->xattr, value, len);
	xattrs_unref(old);
}

static void set_live_xattr(struct forget *f, const struct redo *r)
{
	struct looks *l = node_looks(f, r->node);

	if (!l)
		return;
	if (!l->own_xattrs)
		l->xattrs = node_xattrs(f, r->node);
	l->own_xattrs = true;
	list_set(l, r);
	l->ctime = r->time;
}

/* Copies the attributes that a change sets. */
static void looks_set(struct looks *l, const struct redo *r)
{
	if (r->sets & LOOKS_OWNER) {
		l->uid = r->looks.uid;
		l->gid = r->looks.gid;
	}
	if (r->sets & (LOOKS_OWNER | LOOKS_MODE))
		l->mode = r->looks.mode;
	if (r->sets & LOOKS_ATIME)
		l->atime = r->looks.atime;
	if (r->sets & LOOKS_MTIME)
		l->mtime = r->looks.mtime;
}

static void set_live_looks(struct forget *f, const struct redo *r)
{
	struct looks *l = node_looks(f, r->node);

	if (!l)
		return;
	/* The mode is a part of an access list, too. */
	if ((r->sets & LOOKS_MODE) && !l->own_xattrs) {
		l->xattrs = node_xattrs(f, r->node);
		l->own_xattrs = true;
	}
	looks_set(l, r);
	if (r->sets & LOOKS_MODE)
		looks_chmod(l, r->node->type);
	if ((r->sets & LOOKS_MTIME) && r->node->in)
		r->node->in->times = false;
	l->ctime = r->time;
}

/* Sets the time of a change of the names of a node, if the node has names left. */
static void changed(struct forget *f, struct node *n, const struct redo *r)
{
	struct looks *l = n && n->names[NAME_LIVE] ? node_looks(f, n) : NULL;

	if (l)
		l->ctime = r->time;
}

/* Sets the names of one state as they are after the change. */
static void set_names(struct forget *f, const struct redo *r, enum name_state s)
{
	struct node_name *const *slot = r->slot;

	switch (r->kind) {
	case PENDING_MAKE:
	case PENDING_LINK:
		node_name_set(f, slot[0], s, r->node);
		break;
	case PENDING_REMOVE:
		node_name_set(f, slot[0], s, NULL);
		break;
	case PENDING_RENAME:
		node_name_set(f, slot[0], s, NULL);
		node_name_set(f, slot[1], s, r->node);
		break;
	case PENDING_SWAP:
		node_name_set(f, slot[0], s, r->other);
		node_name_set(f, slot[1], s, r->node);
		break;
	case PENDING_ATTR:
	case PENDING_XATTR:
		break;
	}
}

static void do_live(struct forget *f, struct redo *r)
{
	clock_gettime(CLOCK_REALTIME, &r->time);
	if (r->kind == PENDING_ATTR)
		set_live_looks(f, r);
	else if (r->kind == PENDING_XATTR)
		set_live_xattr(f, r);
	set_names(f, r, NAME_LIVE);
	for (unsigned i = 0; i < slots_of(r); i++) {
		struct node_dir *in = r->slot[i]->dir->in;

		in->times = true;
		in->mtime = r->time;
	}
	if (slots_of(r) && r->kind != PENDING_MAKE) {
		changed(f, r->node, r);
		changed(f, r->other, r);
	}
}

/* ---- in ROOT ---- */

static bool no_tmpfile(int rc)
{
	return rc == -EOPNOTSUPP || rc == -EISDIR || rc == -ENOENT || rc == -EINVAL;
}

/* Writes the data that waits for a name to an unnamed file; -1 if there is none. */
static int unnamed_file(struct forget *f, const struct redo *r)
{
	struct node_file *x = r->node->file;
	int fd, rc;

	if (!x || !x->shadow || !pagefile_size(x->shadow))
		return -1;
	owned_take(&f->tree.lock);
	fd = forget_root_tmpfile(f, r->slot[0]->dir);
	owned_give(&f->tree.lock);
	if (fd < 0)
		return fd;
	rc = forget_file_write_shadow(x, fd);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

/* On a file system without unnamed files, the data comes after the name. */
static int write_after(struct forget *f, struct node_file *x)
{
	int fd, rc;

	owned_take(&f->tree.lock);
	fd = forget_root_open(f, x->n, O_RDWR);
	owned_give(&f->tree.lock);
	rc = fd < 0 ? fd : forget_file_write_shadow(x, fd);
	forget_file_made(x, fd);
	return rc;
}

/* Makes a node in ROOT with its first name there. */
static int make(struct forget *f, const struct redo *r, bool now)
{
	struct node *n = r->node, *dir = r->slot[0]->dir;
	const char *text = r->slot[0]->text;
	bool named_first = false;
	struct stat st;
	int fd, rc;

	auto_data(f, n);
	fd = unnamed_file(f, r);
	if (no_tmpfile(fd)) {
		named_first = true;
		fd = -1;
	} else if (fd < -1) {
		return fd;
	}
	owned_take(&f->tree.lock);
	rc = now ? forget_root_make_now(f, n, dir, text, r->umask, &st)
		 : forget_root_make(f, n, dir, text, fd, &st);
	if (!rc) {
		node_in_root(f, n, &st, !now);
		node_name_set(f, r->slot[0], NAME_DURABLE, n);
	}
	owned_give(&f->tree.lock);
	if (rc) {
		util_close(fd);
		return rc;
	}
	if (named_first)
		return write_after(f, n->file);
	if (n->file) {
		forget_file_made(n->file, fd);
		forget_file_trim(n->file);
	}
	return 0;
}

static int link_to(struct forget *f, const struct redo *r)
{
	auto_owned(&f->tree.lock);
	int rc = forget_root_link(f, r->node, r->slot[0]->dir, r->slot[0]->text);

	if (!rc)
		set_names(f, r, NAME_DURABLE);
	return rc;
}

/* Removes a name, or replaces it by a rename. The data lock of `gone` is held. */
static int take_away(struct forget *f, const struct redo *r, struct node *gone, bool unmade)
{
	struct root_leaving l;
	int rc;

	auto_owned(&f->tree.lock);
	rc = forget_root_leave_begin(f, gone, unmade, &l);
	if (rc)
		return rc;
	rc = r->kind == PENDING_REMOVE
		     ? forget_root_remove(f, r->slot[0]->dir, r->slot[0]->text, S_ISDIR(gone->type))
		     : forget_root_rename(f, r->slot[0], r->slot[1], 0);
	if (!rc)
		set_names(f, r, NAME_DURABLE);
	forget_root_leave_end(f, gone, &l, !rc);
	return rc;
}

static int remove_name(struct forget *f, const struct redo *r)
{
	struct node *gone = r->slot[slots_of(r) - 1]->node[NAME_DURABLE];

	if (r->kind == PENDING_RENAME && !gone) {
		auto_owned(&f->tree.lock);
		int rc = forget_root_rename(f, r->slot[0], r->slot[1], 0);

		if (!rc)
			set_names(f, r, NAME_DURABLE);
		return rc;
	}
	assert(gone); /* R1 */
	auto_data(f, gone);
	int how = S_ISREG(gone->type) ? forget_file_hold(f, gone) : 0, rc;
	if (how < 0)
		return how;
	rc = take_away(f, r, gone, how);
	if (how)
		forget_file_unmade(gone->file, !rc);
	return rc;
}

static int swap(struct forget *f, const struct redo *r)
{
	auto_owned(&f->tree.lock);
	int rc = forget_root_rename(f, r->slot[0], r->slot[1], RENAME_EXCHANGE);

	if (!rc)
		set_names(f, r, NAME_DURABLE);
	return rc;
}

/* True for an inode that went: no program sees the attributes. */
static bool is_gone(const struct node *n)
{
	return n->stale;
}

static int set_attributes(struct forget *f, const struct redo *r)
{
	struct node *n = r->node;
	struct node_file *x;
	int rc;

	auto_data(f, n);
	auto_owned(&f->tree.lock);
	if (n->unmade) {
		looks_set(&n->unmade->looks, r);
		if (r->sets & LOOKS_MODE)
			looks_chmod(&n->unmade->looks, n->type);
		return 0;
	}
	if (is_gone(n))
		return 0;
	struct looks l = r->looks;
	x = n->file;
	if (x && x->touched > r->number && !x->times)
		l.mtime = x->mtime; /* data that came later is durable already */
	rc = forget_root_set_looks(f, n, &l, r->sets);
	return rc;
}

static int set_xattr(struct forget *f, const struct redo *r)
{
	struct node *n = r->node;
	const void *value = r->value ? r->value->data : NULL;
	size_t len = r->value ? r->value->len : 0;

	auto_data(f, n);
	auto_owned(&f->tree.lock);
	if (n->unmade) {
		list_set(&n->unmade->looks, r);
		return 0;
	}
	return is_gone(n) ? 0 : forget_root_set_xattr(f, n, r->xattr, value, len);
}

/* Does one change in ROOT. */
static int apply(struct forget *f, const struct redo *r, bool now)
{
	assert_owned(&f->log_lock);
	switch (r->kind) {
	case PENDING_MAKE:
	case PENDING_LINK:
		return r->node->unmade ? make(f, r, now) : link_to(f, r);
	case PENDING_REMOVE:
	case PENDING_RENAME:
		return remove_name(f, r);
	case PENDING_SWAP:
		return swap(f, r);
	case PENDING_ATTR:
		return set_attributes(f, r);
	case PENDING_XATTR:
		return set_xattr(f, r);
	}
	return -EINVAL;
}

/* ---- the log ---- */

static void redo_release(struct redo *r)
{
	free(r->xattr);
	blob_unref(r->value);
}

static void add(struct forget *f, const struct redo *r)
{
	struct redo *kept = xmalloc(sizeof(*kept));
	struct pending_op op = {
		.kind = r->kind,
		.is_dir = S_ISDIR(r->node->type),
		.ino = r->node->ino,
		.other = r->other ? r->other->ino : 0,
		.xattr = r->xattr,
		.number = r->number,
		.time_ns = forget_clock_ns(),
		.undo = kept,
	};

	*kept = *r;
	for (unsigned i = 0; i < slots_of(r); i++) {
		op.slot[i] = (struct pending_slot){ r->slot[i]->dir->ino, r->slot[i]->text };
		r->slot[i]->records++;
	}
	r->node->refs++;
	r->node->records++;
	r->node->made |= r->kind == PENDING_MAKE;
	if (r->other) {
		r->other->refs++;
		r->other->records++;
	}
	r->node->replaced |= r->kind == PENDING_RENAME && r->other && !S_ISDIR(r->other->type);
	pending_add(f->log, &op);
}

int forget_redo_do(struct forget *f, struct redo *r)
{
	const struct node *at = slots_of(r) ? r->slot[0]->dir : r->node;
	int rc = 0;

	assert_owned(&f->log_lock);
	if (r->node->in)
		r->node->in->rules_known = false;
	if (forget_redo_waits(f, at)) {
		if (!forget_root_is_there(f)) { /* nothing could become durable */
			redo_release(r);
			return -ENOENT;
		}
		auto_owned(&f->tree.lock);
		do_live(f, r);
		add(f, r);
		return 0;
	}
	rc = apply(f, r, true);
	if (!rc) {
		auto_owned(&f->tree.lock);
		set_names(f, r, NAME_LIVE);
	}
	redo_release(r);
	return rc;
}

size_t forget_redo_count(struct forget *f)
{
	if (!f->log)
		return 0;
	auto_owned(&f->log_lock);
	return pending_count(f->log);
}

/* A change is done, or forgotten: fewer wait for its nodes. */
static void redo_done(struct redo *r)
{
	struct node *const nodes[] = { r->node, r->other };

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		if (nodes[i]) {
			assert(nodes[i]->records > 0);
			nodes[i]->records--;
			nodes[i]->made = false;
		}
}

/* Frees a change that is done or forgotten; with the tree lock. Its nodes are put later. */
static void redo_leave(struct forget *f, struct redo *r)
{
	struct node *const nodes[] = { r->node, r->other };

	for (unsigned i = 0; i < slots_of(r); i++) {
		assert(r->slot[i]->records > 0);
		r->slot[i]->records--;
		node_name_put(f, r->slot[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		if (nodes[i] && !nodes[i]->records)
			node_looks_drop(nodes[i]);
}

static void redo_free(struct forget *f, struct redo *r)
{
	struct node *const nodes[] = { r->node, r->other };

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		if (nodes[i] && S_ISREG(nodes[i]->type))
			forget_file_let_go(f, nodes[i]);
	node_unref(f, r->node);
	node_unref(f, r->other);
	redo_release(r);
	free(r);
}

static void collect(void *ctx, const struct pending_op *op)
{
	struct redo_list *l = ctx;

	vec_push(l, op->undo);
}

/* Syncs the data of a file before its rename over another one, if the profile says so (R3). */
static int order_data(struct forget *f, const struct redo *r)
{
	struct node *n = r->node;
	int rc;

	if (r->kind != PENDING_RENAME || !r->other || S_ISDIR(r->other->type) ||
	    !S_ISREG(n->type) || !f->opts.profile->replace_orders_data)
		return 0;
	auto_data(f, n);
	rc = n->file ? forget_file_sync(n->file) : 0;
	if (rc)
		forget_log(f,
			   "the data of %s could not be written: %s; what it replaced stays until "
			   "it can",
			   r->slot[1]->text, strerror(-rc));
	return rc;
}

/* Directories in which a sync changed names, and when the last of them was changed. */
struct dir_time {
	struct node *dir;
	struct timespec time;
};

struct dir_times vec_of(struct dir_time);

static void note_time(struct dir_times *t, struct node *dir, const struct redo *r)
{
	for (size_t i = t->n; i-- > 0 && i + 8 > t->n;) /* changes of one directory come in runs */
		if (t->v[i].dir == dir) {
			t->v[i].time = r->time;
			return;
		}
	vec_push(t, (struct dir_time){ dir, r->time });
}

/* A directory's time is that of the change, not that of the sync. */
static void note_times(struct dir_times *t, const struct redo *r)
{
	for (unsigned i = 0; i < slots_of(r); i++)
		note_time(t, r->slot[i]->dir, r);
	for (size_t i = 0; r->kind == PENDING_ATTR && i < t->n; i++)
		if (t->v[i].dir == r->node)
			t->v[i].dir = NULL;
}

static void set_times(struct forget *f, struct dir_times *t)
{
	auto_owned(&f->tree.lock);
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].dir)
			forget_root_set_dir_time(f, t->v[i].dir, &t->v[i].time);
	vec_release(t);
}

enum commit_how { COMMIT_ALL_OR_NOTHING, COMMIT_WHAT_CAN_BE };

#define NO_LIMIT UINT64_MAX

/*
 * Makes the chosen changes durable, up to change `limit`. If the data that one brings cannot be
 * written, none is; or, by `how`, only those before it are.
 */
static int commit(struct forget *f, enum commit_how how, uint64_t limit)
{
	auto_vec struct redo_list all = { 0 };
	struct dir_times times = { 0 };
	size_t n = 0, done = 0;
	int rc = 0, failed = 0;

	assert_owned(&f->log_lock);
	pending_each_chosen(f->log, collect, &all);
	while (n < all.n && all.v[n]->number < limit && !(rc = order_data(f, all.v[n])))
		n++;
	if (rc && how == COMMIT_ALL_OR_NOTHING)
		n = 0;
	while (done < n && !(failed = apply(f, all.v[done], false))) {
		note_times(&times, all.v[done]);
		auto_owned(&f->tree.lock);
		redo_done(all.v[done++]);
	}
	if (failed)
		forget_log(f, "change %llu of names and attributes cannot be done in ROOT: %s",
			   llu(all.v[done]->number), strerror(-failed));
	set_times(f, &times);
	pending_unchoose(f->log, done);
	pending_settle_chosen(f->log, NULL, NULL); /* R2 */
	owned_take(&f->tree.lock);
	for (size_t i = 0; i < done; i++)
		redo_leave(f, all.v[i]);
	owned_give(&f->tree.lock);
	for (size_t i = 0; i < done; i++)
		redo_free(f, all.v[i]);
	return failed ? failed : rc;
}

static int sync_once(struct forget *f, struct node *n, bool data_only, bool had_data)
{
	bool is_dir = S_ISDIR(n->type);
	enum profile_sync how = is_dir ? f->opts.profile->dir : f->opts.profile->file;
	int rc = 0;

	if (how == PROFILE_ALL && pending_commits(f->log, n->ino, is_dir, data_only, had_data))
		rc = forget_file_sync_sizes(f);
	if (rc)
		return rc;
	pending_choose_sync(f->log, n->ino, is_dir, data_only, had_data);
	return commit(f, COMMIT_ALL_OR_NOTHING, NO_LIMIT);
}

int forget_redo_sync(struct forget *f, struct node *n, bool data_only, bool had_data)
{
	int rc = sync_once(f, n, data_only, had_data);

	if (forget_is_full(rc) && !forget_redo_make_room(f))
		rc = sync_once(f, n, data_only, had_data);
	return rc;
}

int forget_redo_sync_all(struct forget *f)
{
	int rc = forget_file_sync_sizes(f), one;

	pending_choose_all(f->log);
	one = commit(f, COMMIT_WHAT_CAN_BE, rc ? forget_file_first_size(f) : NO_LIMIT);
	return rc ? rc : one;
}

int forget_redo_make_room(struct forget *f)
{
	size_t before = pending_count(f->log);
	int rc = forget_redo_sync_all(f);

	if (pending_count(f->log) == before)
		return rc ? rc : -ENOSPC;
	forget_log(f,
		   "%s is full: names and attributes that waited are made durable, so that "
		   "what was removed is not kept any more",
		   f->root_path);
	return 0;
}

/* ---- forgetting ---- */

/* Sets the durable time of data that survives, instead of the lost one. */
static void time_back(struct forget *f, struct node *n)
{
	struct stat st;

	auto_data(f, n);
	auto_owned(&f->tree.lock);
	if (n->file && n->file->times && !forget_root_looks(f, n, &st))
		n->file->mtime = st.st_mtim;
}

static void forget_one(struct forget *f, struct redo *r, struct told_list *told)
{
	for (unsigned i = 0; i < slots_of(r); i++) {
		struct node_name *a = r->slot[i];

		told_add(f, told, a->dir, a->text);
		auto_owned(&f->tree.lock);
		node_name_set(f, a, NAME_LIVE, a->node[NAME_DURABLE]);
	}
	if (r->kind != PENDING_MAKE) /* which no name leads to any more */
		told_add(f, told, r->node, NULL);
	if (r->other)
		told_add(f, told, r->other, NULL);
	if (r->node->in)
		r->node->in->rules_known = false;
	if (r->kind == PENDING_ATTR && S_ISREG(r->node->type))
		time_back(f, r->node);
}

/*
 * A removed directory comes back. The kernel has marked its inode as dead, so it needs another
 * node, with the same number. When the directory was removed it was empty: so the names that are
 * known in it are those of these changes.
 */
static void come_back(struct forget *f, struct node *n, const struct redo_list *lost)
{
	struct node *again;

	auto_owned(&f->tree.lock);
	if (!n->nlookup || !n->names[NAME_LIVE])
		return;
	again = node_replace(f, n);
	for (size_t i = 0; i < lost->n; i++)
		for (unsigned k = 0; k < slots_of(lost->v[i]); k++)
			node_name_move(lost->v[i]->slot[k], n, again);
	again->refs--;
}

void forget_redo_cut(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op),
		     void *ctx, struct told_list *told)
{
	auto_vec struct redo_list lost = { 0 };

	if (keep) {
		pending_choose_kept(f->log, keep, ctx);
		int rc = commit(f, COMMIT_WHAT_CAN_BE, NO_LIMIT);
		if (rc)
			forget_log(f, "not all that should survive does: %s", strerror(-rc));
	}
	pending_undo_all(f->log, collect, &lost);
	for (size_t i = 0; i < lost.n; i++)
		forget_one(f, lost.v[i], told);
	for (size_t i = 0; i < lost.n; i++) {
		struct redo *r = lost.v[i];
		struct node *gone = r->kind == PENDING_REMOVE	? r->node
				    : r->kind == PENDING_RENAME ? r->other
								: NULL;

		if (gone && gone->in)
			come_back(f, gone, &lost);
	}
	owned_take(&f->tree.lock);
	for (size_t i = 0; i < lost.n; i++)
		redo_done(lost.v[i]);
	for (size_t i = 0; i < lost.n; i++)
		redo_leave(f, lost.v[i]);
	owned_give(&f->tree.lock);
	for (size_t i = 0; i < lost.n; i++)
		redo_free(f, lost.v[i]);
}

void forget_redo_close(struct forget *f)
{
	if (!f->log)
		return;
	owned_take(&f->log_lock);
	forget_redo_cut(f, NULL, NULL, NULL);
	owned_give(&f->log_lock);
	pending_free(f->log);
}
