/* SPDX-License-Identifier: MIT */
/*
 * forget_log.c - operations on names and attributes that wait for a sync: the log in memory
 * (fs/pending), and beside it the journal, a file in the stash, for the case that we are killed.
 *
 * J1: an operation is in the journal before it is done.
 * J2: what became durable is out of the journal before anything in the stash that could undo it is
 *     removed.
 * J3: when nothing waits, the journal is empty.
 *
 * A record of the journal is
 *
 *	4 bytes  length of what follows the next field, in little endian
 *	8 bytes  hash of it
 *	byte     'I': an operation, as forget_undo.c describes it
 *	         'C': it was not done; 8 bytes, its number
 *	         'D': these are durable; 8 bytes for each
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "core/bytes.h"
#include "fuse/forget_impl.h"

enum { RECORD_HEAD = 12, JOURNAL_BIG = 4 << 20 };

/* ---- the journal ---- */

static void record_begin(struct forget *f, char type)
{
	strbuf_clear(&f->record);
	strbuf_grow(&f->record, RECORD_HEAD);
	f->record.len = RECORD_HEAD;
	strbuf_addch(&f->record, type);
}

static int record_write(struct forget *f, int fd, uint64_t *size)
{
	char *body = f->record.buf + RECORD_HEAD;
	size_t len = f->record.len - RECORD_HEAD;
	int rc;

	put_le32((unsigned char *)f->record.buf, (uint32_t)len);
	put_le64((unsigned char *)f->record.buf + 4, hash64(body, len));
	rc = io_pwrite_full(fd, f->record.buf, f->record.len, (off_t)*size);
	if (!rc)
		*size += f->record.len;
	return rc;
}

static void journal_empty(struct forget *f)
{
	if (f->journal_size && ftruncate(f->journal, 0))
		forget_log(f, "the journal in %s/" STASH_NAME " cannot be emptied: %m",
			   f->root_path);
	f->journal_size = 0;
	f->journal_limit = JOURNAL_BIG;
}

struct rewriting {
	struct forget *f;
	int fd;
	uint64_t size;
};

static int rewrite_one(void *ctx, const struct pending_op *op)
{
	struct rewriting *w = ctx;

	record_begin(w->f, 'I');
	undo_encode(op->undo, &w->f->record);
	return record_write(w->f, w->fd, &w->size);
}

/* A new file, whatever was there under this name. */
static int journal_make(struct forget *f, const char *name)
{
	unlinkat(f->stash_fd, name, 0);
	return openat(f->stash_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* What is durable leaves the journal, once there is much of it. */
static void journal_shrink(struct forget *f)
{
	struct rewriting w = { .f = f };

	if (f->journal_size < f->journal_limit)
		return;
	f->journal_limit = f->journal_size * 2;
	w.fd = journal_make(f, "journal.new");
	if (w.fd < 0)
		return;
	if (pending_each(f->log, rewrite_one, &w) ||
	    renameat(f->stash_fd, "journal.new", f->stash_fd, "journal")) {
		close(w.fd);
		unlinkat(f->stash_fd, "journal.new", 0);
		return;
	}
	close(f->journal);
	f->journal = w.fd;
	f->journal_size = w.size;
	f->journal_limit = max(w.size * 2, (uint64_t)JOURNAL_BIG);
}

int log_intend(struct forget *f, struct undo *u)
{
	u->seq = ++f->seq;
	record_begin(f, 'I');
	undo_encode(u, &f->record);
	return record_write(f, f->journal, &f->journal_size);
}

void log_cancel(struct forget *f, struct undo *u)
{
	record_begin(f, 'C');
	strbuf_add_le64(&f->record, u->seq);
	if (record_write(f, f->journal, &f->journal_size))
		forget_log(f, "the journal in %s/" STASH_NAME " cannot be written", f->root_path);
	if (!pending_count(f->log))
		journal_empty(f);
}

/* ---- the log ---- */

static char *copy(const char *s)
{
	return xstrdup(s ? s : "");
}

void log_add(struct forget *f, struct undo *u, struct node *const nodes[4], uint64_t number)
{
	struct undo *kept = xmalloc(sizeof(*kept));
	struct pending_op op;

	*kept = *u;
	kept->name[0] = copy(u->name[0]);
	kept->name[1] = copy(u->name[1]);
	kept->xattr = copy(u->xattr);
	kept->value = u->value ? xmemdupz(u->value, u->value_len) : NULL;
	pthread_mutex_lock(&f->table);
	for (int i = 0; i < 4; i++) {
		kept->nodes[i] = nodes[i];
		if (nodes[i])
			nodes[i]->refs++;
	}
	pthread_mutex_unlock(&f->table);
	op = (struct pending_op){
		.kind = u->kind,
		.is_dir = u->is_dir,
		.ino = u->ino,
		.other = u->other,
		.slot = { { u->dir[0], kept->name[0] }, { u->dir[1], kept->name[1] } },
		.xattr = kept->xattr,
		.number = number,
		.time_ns = forget_clock_ns(),
		.undo = kept,
	};
	pending_add(f->log, &op);
}

static void undo_free(struct forget *f, struct undo *u)
{
	for (int i = 0; i < 4; i++)
		node_unref(f, u->nodes[i]);
	undo_release(u);
	free(u);
}

/* What became durable, in order. */
struct settled vec_of(struct undo *);

static void collect(void *ctx, const struct pending_op *op)
{
	struct settled *s = ctx;

	vec_push(s, op->undo);
}

/* Of a file that replaces another, the data comes with the rename, if the profile says so. */
static void order_data(struct forget *f, const struct undo *u)
{
	struct node *n = u->nodes[2];

	if (u->kind != PENDING_RENAME || !u->stashed || !n || !S_ISREG(n->type) ||
	    !f->opts.profile->replace_orders_data)
		return;
	pthread_mutex_lock(&n->lock);
	if (data_sync(f, n))
		forget_log(f, "the data of %s could not be written", u->name[1]);
	pthread_mutex_unlock(&n->lock);
}

/* The stash gives up what cannot come back. */
static void leave_stash(struct forget *f, const struct undo *u)
{
	struct node *n = u->nodes[u->kind == PENDING_RENAME ? 3 : 2];
	char name[32];
	struct stat st;
	int fd;

	if (!u->stashed)
		return;
	stash_name(u->seq, name);
	fd = n ? node_pin(f, n) : -1;
	if (n && (S_ISDIR(n->type) ||
		  (!fstatat(f->stash_fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_nlink <= 1)))
		node_gone(f, n, true);
	unlinkat(f->stash_fd, name, n && S_ISDIR(n->type) ? AT_REMOVEDIR : 0);
	if (n && !S_ISDIR(n->type))
		atomic_fetch_sub(&n->stash_links, 1);
	if (fd >= 0)
		node_unpin(n);
}

static void settle(struct forget *f, struct settled *s)
{
	for (size_t i = 0; i < s->n; i++)
		order_data(f, s->v[i]);
	if (!pending_count(f->log)) {
		journal_empty(f);
	} else if (s->n) {
		record_begin(f, 'D');
		for (size_t i = 0; i < s->n; i++)
			strbuf_add_le64(&f->record, s->v[i]->seq);
		if (record_write(f, f->journal, &f->journal_size))
			forget_log(f, "the journal in %s/" STASH_NAME " cannot be written",
				   f->root_path);
		journal_shrink(f);
	}
	for (size_t i = 0; i < s->n; i++)
		leave_stash(f, s->v[i]);
}

/* An inode without a name has no attributes that could come back. */
static void settle_gone(struct forget *f, struct settled *s)
{
	struct settled more = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		struct node *n = s->v[i]->nodes[s->v[i]->kind == PENDING_RENAME ? 3 : 2];

		if ((s->v[i]->stashed || s->v[i]->remade) && n && n->gone)
			pending_gone(f->log, n->ino, collect, &more);
	}
	if (more.n)
		settle(f, &more);
	for (size_t i = 0; i < more.n; i++)
		undo_free(f, more.v[i]);
	vec_release(&more);
}

static void settled_release(struct forget *f, struct settled *s)
{
	for (size_t i = 0; i < s->n; i++)
		undo_free(f, s->v[i]);
	vec_release(s);
}

void log_sync(struct forget *f, struct node *n, bool data_only, bool had_data)
{
	bool is_dir = S_ISDIR(n->type);
	enum profile_sync how = is_dir ? f->opts.profile->dir : f->opts.profile->file;
	struct settled s = { 0 };

	pending_sync(f->log, n->ino, is_dir, data_only, had_data, collect, &s);
	if (how == PROFILE_ALL && (had_data || s.n))
		data_sync_sizes(f);
	settle(f, &s);
	settle_gone(f, &s);
	settled_release(f, &s);
}

void log_sync_all(struct forget *f)
{
	struct settled s = { 0 };

	data_sync_sizes(f);
	pending_sync_all(f->log, collect, &s);
	settle(f, &s);
	settled_release(f, &s);
}

/* ---- losing it ---- */

/* A directory that was removed, and the node of the one that was made anew in its place. */
struct remade {
	uint64_t ino;
	struct node *node; /* referenced */
};

struct live_place {
	struct undo_place place;
	struct forget *f;
	struct told_list *told;
	struct settled durable, undone;
	struct vec_of(struct remade) remade;
	bool (*keep)(void *ctx, const struct pending_op *op);
	void *keep_ctx;
};

/* The node that a number of the log means now; with a reference, or NULL. */
static struct node *live_find(struct live_place *l, uint64_t ino)
{
	for (size_t i = l->remade.n; i-- > 0;)
		if (l->remade.v[i].ino == ino) {
			node_ref(l->f, l->remade.v[i].node);
			return l->remade.v[i].node;
		}
	return node_find(l->f, l->f->dev, ino);
}

static int live_open(struct undo_place *p, uint64_t ino)
{
	struct live_place *l = container_of(p, struct live_place, place);
	struct node *n = live_find(l, ino);
	int fd = n ? node_pin(l->f, n) : -ENOENT, own = fd;

	if (fd >= 0) {
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (own < 0)
			own = -errno;
		node_unpin(n);
	}
	node_unref(l->f, n);
	return own;
}

static void live_named(struct undo_place *p, uint64_t ino, uint64_t dir, const char *name,
		       bool made)
{
	struct live_place *l = container_of(p, struct live_place, place);
	struct node *n = live_find(l, ino), *d = live_find(l, dir);

	if (n && d && made)
		node_named(l->f, n, d, name);
	else if (n && d)
		node_unnamed(l->f, n, d, name);
	if (d)
		told_add(l->f, l->told, d, name);
	if (n)
		told_add(l->f, l->told, n, NULL);
	node_unref(l->f, n);
	node_unref(l->f, d);
}

static void live_remade(struct undo_place *p, uint64_t ino, int fd, uint64_t dir, const char *name)
{
	struct live_place *l = container_of(p, struct live_place, place);
	struct node *d = live_find(l, dir);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	if (d && own >= 0 && !fstat(own, &st)) {
		struct node *n = node_adopt(l->f, steal_fd(&own), &st, d, name, 0);

		vec_push(&l->remade, (struct remade){ ino, n });
	}
	util_close(own);
	if (d)
		told_add(l->f, l->told, d, name);
	node_unref(l->f, d);
}

static void collect_durable(void *ctx, const struct pending_op *op)
{
	struct live_place *l = ctx;

	vec_push(&l->durable, op->undo);
}

static bool keep_one(void *ctx, const struct pending_op *op)
{
	struct live_place *l = ctx;

	return l->keep(l->keep_ctx, op);
}

/* Who has it open keeps it. It may have other names, which are durable. */
static void hold_unmade(struct forget *f, struct node *n)
{
	struct stat st;
	int fd = node_pin(f, n);

	if (fd < 0)
		return;
	if (S_ISDIR(n->type) || fstatat(fd, "", &st, AT_EMPTY_PATH) || st.st_nlink <= 1)
		node_gone(f, n, true);
	node_unpin(n);
}

static void undo_one(void *ctx, const struct pending_op *op)
{
	struct live_place *l = ctx;
	struct undo *u = op->undo;
	struct node *n = u->nodes[u->kind == PENDING_RENAME ? 3 : 2];
	int rc;

	if (u->kind == PENDING_MAKE) {
		struct node *made = live_find(l, u->ino);

		if (made)
			hold_unmade(l->f, made);
		node_unref(l->f, made);
	}
	rc = undo_apply(u, &l->place);
	if (rc)
		forget_log(l->f, "operation %llu cannot be undone: %s",
			   (unsigned long long)op->number, strerror(-rc));
	if (u->stashed && n)
		atomic_fetch_sub(&n->stash_links, 1);
	if (n)
		told_add(l->f, l->told, n, NULL);
	vec_push(&l->undone, u);
}

void log_cut(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op), void *ctx,
	     struct told_list *told)
{
	struct live_place l = {
		.place = { .stash = f->stash_fd,
			   .open = live_open,
			   .named = live_named,
			   .remade = live_remade },
		.f = f,
		.told = told,
		.keep = keep,
		.keep_ctx = ctx,
	};

	pending_cut(f->log, keep ? keep_one : NULL, collect_durable, undo_one, &l);
	settle(f, &l.durable);
	settled_release(f, &l.durable);
	settled_release(f, &l.undone);
	for (size_t i = 0; i < l.remade.n; i++)
		node_unref(f, l.remade.v[i].node);
	vec_release(&l.remade);
	journal_empty(f);
}

/* ---- the stash ---- */

int log_open(struct forget *f, struct err *err)
{
	if (!f->opts.profile->metadata)
		return 0;
	f->log = pending_new(f->opts.profile);
	pthread_mutex_init(&f->names, NULL);
	f->journal_limit = JOURNAL_BIG;
	f->journal = journal_make(f, "journal");
	if (f->journal < 0)
		return err_set(err, -errno, "cannot write a journal to %s/" STASH_NAME ": %m",
			       f->root_path);
	return 0;
}

void log_close(struct forget *f)
{
	if (f->log) {
		pending_free(f->log);
		pthread_mutex_destroy(&f->names);
	}
	util_close(f->journal);
	strbuf_release(&f->record);
}
