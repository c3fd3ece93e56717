/* SPDX-License-Identifier: MIT */
/*
 * forget_log.c - operations on names and attributes that wait for a sync: the log in memory
 * (fs/pending), and the journal, a file in the stash, in case the server is killed.
 *
 * J1: an operation is in the journal before it is done.
 * J2: an operation that became durable is taken out of the journal before anything in the stash
 *     that could undo it is removed. If that fails, the operation does not become durable.
 * J3: when nothing waits, the journal is empty.
 * J4: an operation that was undone is marked in the journal before anything else is undone: a
 *     process that is killed while undoing leaves at most one operation that may or may not be
 *     undone, and undoing that one twice does no harm.
 *
 * A record of the journal is
 *
 *	4 bytes  length of what follows the next field, in little endian
 *	8 bytes  hash of it
 *	byte     'I': an operation: 8 bytes, zero; then as forget_undo.c describes it. When it is
 *	              undone, the byte is made 'U'; and before that, if it made a directory anew,
 *	              the zero the number of that. Neither needs space; the hash stays what it was
 *	         'C': it was not done; 8 bytes, its number
 *	         'D': these are durable; 8 bytes for each
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "core/bytes.h"
#include "forget/forget_impl.h"

enum {
	RECORD_HEAD = JOURNAL_HEAD,
	JOURNAL_BIG = 4 << 20,
	DURABLE_MAX = 65536, /* operations in one record */
	RESERVE = 4096,	     /* bytes, which fit into the space of an emptied journal */
};

/* ---- the journal ---- */

static void record_begin(struct forget *f, char type)
{
	strbuf_clear(&f->record);
	strbuf_grow(&f->record, RECORD_HEAD);
	f->record.len = RECORD_HEAD;
	strbuf_addch(&f->record, type);
}

static void record_operation(struct forget *f, const struct undo *u)
{
	record_begin(f, 'I');
	strbuf_add_le64(&f->record, 0);
	undo_encode(u, &f->record);
}

static int record_write(struct forget *f, int fd, uint64_t *size)
{
	char *body = f->record.buf + RECORD_HEAD;
	size_t len = f->record.len - RECORD_HEAD;
	int rc;

	assert(f->record.len > RECORD_HEAD && len <= UINT32_MAX);

	put_le32((unsigned char *)f->record.buf, (uint32_t)len);
	put_le64((unsigned char *)f->record.buf + 4, hash64(body, len));
	rc = io_pwrite_full(fd, f->record.buf, f->record.len, (off_t)*size);
	if (!rc)
		*size += f->record.len;
	return rc;
}

static bool is_full(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT;
}

/*
 * Makes a file that only takes space, for the journal when ROOT is full. Otherwise nothing could be
 * removed then, if no waiting operation could be made durable.
 */
static void reserve_make(struct forget *f)
{
	static const char zeros[RESERVE];
	auto_fd fd = openat(f->stash_fd, "journal.reserve",
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	f->has_reserve = fd >= 0 &&
			 (!fallocate(fd, 0, 0, RESERVE) || !io_write_full(fd, zeros, RESERVE));
	if (!f->has_reserve)
		unlinkat(f->stash_fd, "journal.reserve", 0);
}

static bool reserve_take(struct forget *f)
{
	bool had = f->has_reserve;

	f->has_reserve = false;
	return had && !unlinkat(f->stash_fd, "journal.reserve", 0);
}

static int journal_write(struct forget *f)
{
	int rc = record_write(f, f->journal, &f->journal_size);

	if (is_full(rc) && reserve_take(f))
		rc = record_write(f, f->journal, &f->journal_size);
	return rc;
}

static int journal_failed(struct forget *f, int rc)
{
	forget_log(f, "the journal in %s/" STASH_NAME " cannot be written: %s", f->root_path,
		   strerror(-rc));
	return rc;
}

/* Cuts off records after `size`, as if they had never been written. Cutting needs no space. */
static int journal_cut(struct forget *f, uint64_t size)
{
	assert(size <= f->journal_size); /* J1: nothing is made up */
	if (ftruncate(f->journal, (off_t)size))
		return -errno;
	f->journal_size = size;
	return 0;
}

static int journal_empty(struct forget *f)
{
	int rc = f->journal_size ? journal_cut(f, 0) : 0;

	f->journal_limit = JOURNAL_BIG;
	if (!rc && !f->has_reserve)
		reserve_make(f);
	return rc ? journal_failed(f, rc) : 0;
}

struct rewriting {
	struct forget *f;
	int fd;
	uint64_t size;
	struct vec_of(uint64_t) at; /* the records' places in the new file */
	size_t n;
};

static int rewrite_one(void *ctx, const struct pending_op *op)
{
	struct rewriting *w = ctx;

	vec_push(&w->at, w->size);
	record_operation(w->f, op->undo);
	return record_write(w->f, w->fd, &w->size);
}

static int move_one(void *ctx, const struct pending_op *op)
{
	struct rewriting *w = ctx;
	struct undo *u = op->undo;

	u->at = w->at.v[w->n++];
	return 0;
}

/* Makes a new file, instead of an old one with this name. */
static int journal_make(struct forget *f, const char *name)
{
	unlinkat(f->stash_fd, name, 0);
	return openat(f->stash_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Rewrites the journal without its durable operations, once there are many of them. */
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
		vec_release(&w.at);
		return;
	}
	pending_each(f->log, move_one, &w);
	assert(w.n == w.at.n && w.n == pending_count(f->log)); /* J1 */
	vec_release(&w.at);
	close(f->journal);
	f->journal = w.fd;
	f->journal_size = w.size;
	f->journal_limit = max(w.size * 2, (uint64_t)JOURNAL_BIG);
}

static int intend(struct forget *f, struct undo *u)
{
	u->at = f->journal_size;
	record_operation(f, u);
	return journal_write(f);
}

int forget_log_intend(struct forget *f, struct undo *u)
{
	int rc;

	u->seq = ++f->seq;
	rc = intend(f, u);
	if (is_full(rc) && pending_count(f->log) && !forget_log_make_room(f))
		rc = intend(f, u);
	return rc;
}

/* Takes back the last record: the lock was held since it was written. */
void forget_log_cancel(struct forget *f, struct undo *u)
{
	int rc = journal_cut(f, u->at);

	if (!rc)
		return;
	record_begin(f, 'C');
	strbuf_add_le64(&f->record, u->seq);
	rc = journal_write(f);
	if (rc)
		journal_failed(f, rc);
}

/* ---- the log ---- */

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void forget_log_add(struct forget *f, struct undo *u, struct node *const nodes[4], uint64_t number)
{
	struct undo *kept = xmalloc(sizeof(*kept));
	struct pending_op op;

	assert(u->seq && u->seq <= f->seq && u->at < f->journal_size); /* J1 */
	*kept = *u;
	kept->number = number;
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
	if (nodes[2]) {
		nodes[2]->made |= u->kind == PENDING_MAKE;
		nodes[2]->replaced |= u->kind == PENDING_RENAME && u->stashed;
	}
	pthread_mutex_unlock(&f->table);
	if (u->kind == PENDING_MAKE || u->kind == PENDING_LINK)
		node_named(f, nodes[2], nodes[0], u->name[0]); /* the kernel knows it already */
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

/* The operations that became durable, in order. */
struct settled vec_of(struct undo *);

static void collect(void *ctx, const struct pending_op *op)
{
	struct settled *s = ctx;

	vec_push(s, op->undo);
}

/* Syncs the data of a file before its rename over another one, if the profile says so. */
static int order_data(struct forget *f, const struct undo *u)
{
	struct node *n = u->nodes[2];
	int rc;

	if (u->kind != PENDING_RENAME || !u->stashed || !n || !S_ISREG(n->type) ||
	    !f->opts.profile->replace_orders_data)
		return 0;
	pthread_mutex_lock(&n->lock);
	rc = forget_data_sync(f, n);
	pthread_mutex_unlock(&n->lock);
	if (rc)
		forget_log(f,
			   "the data of %s could not be written: %s; what it replaced stays until "
			   "it can",
			   u->name[1], strerror(-rc));
	return rc;
}

/* Handles the loss of a file's last name: its size need not wait. Returns as node_keep() does. */
static bool lose_name(struct forget *f, struct node *n)
{
	bool kept = node_keep(f, n, false);

	auto_lock(&n->lock);
	if (!n->opens)
		forget_data_unmark_sized(f, n);
	return kept;
}

/* Notes that nodes are durable; also after a rename, with a name other than the first. */
static void made_durably(struct forget *f, const struct undo *u)
{
	auto_lock(&f->table);
	for (int i = 2; i < 4; i++)
		if (u->nodes[i])
			u->nodes[i]->made = false;
}

/* Removes a file from the stash that cannot come back. */
static void leave_stash(struct forget *f, const struct undo *u)
{
	struct node *n = u->nodes[u->kind == PENDING_RENAME ? 3 : 2];
	bool kept = true;
	char name[32];
	struct stat st;

	if (!u->stashed)
		return;
	forget_stash_name(u->seq, name);
	if (n && (S_ISDIR(n->type) ||
		  (!fstatat(f->stash_fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_nlink <= 1)))
		kept = lose_name(f, n);
	if (n)
		stash_change_begin(n);
	unlinkat(f->stash_fd, name, n && S_ISDIR(n->type) ? AT_REMOVEDIR : 0);
	if (n)
		stash_change_end(n, S_ISDIR(n->type) ? 0 : -1);
	if (!kept)
		node_abandon(f, n);
}

/* Notes in the journal that the chosen operations are durable; on failure none is. */
static int journal_settle(struct forget *f, const struct settled *s)
{
	uint64_t before = f->journal_size;
	int rc = 0;

	if (s->n == pending_count(f->log))
		return journal_empty(f);
	for (size_t i = 0; !rc && i < s->n; i += DURABLE_MAX) {
		record_begin(f, 'D');
		for (size_t k = i; k < min(s->n, i + DURABLE_MAX); k++)
			strbuf_add_le64(&f->record, s->v[k]->seq);
		rc = journal_write(f);
	}
	if (!rc)
		return 0;
	if (journal_cut(f, before)) /* then the next record is written over it */
		f->journal_size = before;
	return journal_failed(f, rc);
}

enum commit_how { COMMIT_ALL_OR_NOTHING, COMMIT_WHAT_CAN_BE };

#define NO_LIMIT UINT64_MAX

/*
 * Makes the operations durable that the log has chosen, up to operation `limit`, and moves them to
 * `s`. If one cannot be, none is; or, by `how`, only those before it are.
 */
static int commit(struct forget *f, enum commit_how how, uint64_t limit, struct settled *s)
{
	int rc = 0, failed;
	size_t n = 0;

	pending_each_chosen(f->log, collect, s);
	while (n < s->n && s->v[n]->number < limit && !(rc = order_data(f, s->v[n])))
		n++;
	if (rc && how == COMMIT_ALL_OR_NOTHING)
		n = 0;
	s->n = n;
	pending_unchoose(f->log, n);
	assert(s->n <= pending_count(f->log)); /* J2 */
	failed = n ? journal_settle(f, s) : 0;
	if (failed) {
		s->n = 0;
		pending_unchoose(f->log, 0);
		return rc ? rc : failed;
	}
	pending_settle_chosen(f->log, NULL, NULL);
	assert(!n || pending_count(f->log) || !f->journal_size); /* J3 */
	if (n)
		journal_shrink(f);
	return rc;
}

static void settled_release(struct forget *f, struct settled *s)
{
	for (size_t i = 0; i < s->n; i++)
		undo_free(f, s->v[i]);
	vec_release(s);
}

static void finish_one(struct forget *f, struct undo *u)
{
	made_durably(f, u);
	leave_stash(f, u);
}

/* Settles the attributes of an inode without a name, which cannot come back. */
static void settle_gone(struct forget *f, const struct undo *u)
{
	struct node *n = u->nodes[u->kind == PENDING_RENAME ? 3 : 2];
	struct settled more = { 0 };

	if (!(u->stashed || u->remade) || !n || !n->gone || !pending_choose_gone(f->log, n->ino))
		return;
	/* On a failure of the journal, the operations still wait: the node keeps its inode. */
	(void)commit(f, COMMIT_ALL_OR_NOTHING, NO_LIMIT, &more);
	for (size_t i = 0; i < more.n; i++)
		finish_one(f, more.v[i]);
	settled_release(f, &more);
}

/*
 * Finishes durable operations, one by one: this frees nodes, and so descriptors of inodes without a
 * name, of which there could be more than the limit.
 */
static void finish(struct forget *f, struct settled *s)
{
	for (size_t i = 0; i < s->n; i++) {
		finish_one(f, s->v[i]);
		settle_gone(f, s->v[i]);
		undo_free(f, s->v[i]);
	}
	vec_release(s);
}

static int log_commit(struct forget *f, enum commit_how how, uint64_t limit)
{
	struct settled s = { 0 };
	int rc = commit(f, how, limit, &s);

	finish(f, &s);
	return rc;
}

int forget_log_sync(struct forget *f, struct node *n, bool data_only, bool had_data)
{
	bool is_dir = S_ISDIR(n->type);
	enum profile_sync how = is_dir ? f->opts.profile->dir : f->opts.profile->file;
	int rc = 0;

	if (how == PROFILE_ALL && pending_commits(f->log, n->ino, is_dir, data_only, had_data))
		rc = forget_data_sync_sizes(f);
	if (rc)
		return rc;
	pending_choose_sync(f->log, n->ino, is_dir, data_only, had_data);
	return log_commit(f, COMMIT_ALL_OR_NOTHING, NO_LIMIT);
}

/* Returns the first change of a size that is not durable; operations before it can be. */
static uint64_t first_size(struct forget *f)
{
	uint64_t first = NO_LIMIT;

	auto_lock(&f->table);
	for (size_t i = 0; i < f->sized.n; i++)
		first = min(first, f->sized.v[i]->size_first);
	return first;
}

int forget_log_sync_all(struct forget *f)
{
	int rc = forget_data_sync_sizes(f), one;

	pending_choose_all(f->log);
	one = log_commit(f, COMMIT_WHAT_CAN_BE, rc ? first_size(f) : NO_LIMIT);
	return rc ? rc : one;
}

int forget_log_make_room(struct forget *f)
{
	size_t before = pending_count(f->log);
	int rc = forget_log_sync_all(f);

	if (pending_count(f->log) == before)
		return rc ? rc : -ENOSPC;
	forget_log(f,
		   "%s is full: names and attributes that waited are made durable, so that "
		   "what was removed is not kept any more",
		   f->root_path);
	return 0;
}

/* ---- losing operations ---- */

/* A removed directory, and the node of the directory made anew in its place. */
struct remade {
	uint64_t ino;
	struct node *node; /* referenced */
};

struct live_place {
	struct undo_place place;
	struct forget *f;
	struct told_list *told;
	struct settled undone;
	struct vec_of(struct remade) remade;
	int failed; /* an error: no more is undone */
};

/* Returns the present node of a number in the log, with a reference; or NULL. */
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
		own = result(fcntl(fd, F_DUPFD_CLOEXEC, 0));
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

/* Sets the durable time of data that survives, instead of the lost one. */
static void time_back(struct node *n, const struct undo *u)
{
	auto_lock(&n->lock);
	n->mtime = u->mtime;
}

/* True for attributes of a removed inode: its number may now be that of a directory made anew. */
static bool is_void(const struct undo *u)
{
	return (u->kind == PENDING_ATTR || u->kind == PENDING_XATTR) && u->nodes[2] &&
	       u->nodes[2]->abandoned;
}

static void undo_one(void *ctx, const struct pending_op *op)
{
	struct live_place *l = ctx;
	struct undo *u = op->undo;
	struct node *n = u->nodes[u->kind == PENDING_RENAME ? 3 : 2];
	struct node *made;
	bool kept;

	vec_push(&l->undone, u);
	if (l->failed)
		return;
	made = u->kind == PENDING_MAKE ? live_find(l, u->ino) : NULL;
	kept = !made || node_keep(l->f, made, true); /* an open file stays */
	if (u->stashed && n)
		stash_change_begin(n);
	l->failed = is_void(u) ? 0 : undo_apply(u, &l->place);
	if (!kept && !l->failed)
		node_abandon(l->f, made);
	node_unref(l->f, made);
	if (u->stashed && n)
		stash_change_end(n, l->failed ? 0 : -1);
	if (!l->failed)
		l->failed = undo_mark(u, &l->place, l->f->journal); /* J4 */
	if (l->failed) {
		forget_log(l->f, "operation %llu cannot be undone: %s", llu(op->number),
			   strerror(-l->failed));
		return;
	}
	if (u->kind == PENDING_ATTR && n)
		time_back(n, u);
	if (n)
		told_add(l->f, l->told, n, NULL);
}

static void commit_kept(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op),
			void *ctx)
{
	struct settled s = { 0 };
	int rc;

	pending_choose_kept(f->log, keep, ctx);
	rc = commit(f, COMMIT_WHAT_CAN_BE, NO_LIMIT, &s);
	if (rc)
		forget_log(f, "not all that should survive does: %s", strerror(-rc));
	for (size_t i = 0; i < s.n; i++)
		finish_one(f, s.v[i]);
	settled_release(f, &s);
}

int forget_log_cut(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op),
		   void *ctx, struct told_list *told)
{
	struct live_place l = {
		.place = { .stash = f->stash_fd,
			   .open = live_open,
			   .named = live_named,
			   .remade = live_remade },
		.f = f,
		.told = told,
	};

	forget_fds_prepare_cut(f);
	if (keep)
		commit_kept(f, keep, ctx);
	pending_undo_all(f->log, undo_one, &l);
	settled_release(f, &l.undone);
	for (size_t i = 0; i < l.remade.n; i++)
		node_unref(f, l.remade.v[i].node);
	vec_release(&l.remade);
	if (!l.failed)
		l.failed = journal_empty(f);
	f->half_undone = l.failed;
	return l.failed;
}

/* ---- the stash ---- */

int forget_log_open(struct forget *f, struct err *err)
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
	reserve_make(f);
	return 0;
}

void forget_log_close(struct forget *f)
{
	if (f->log) {
		pending_free(f->log);
		pthread_mutex_destroy(&f->names);
	}
	util_close(f->journal);
	strbuf_release(&f->record);
}
