/* SPDX-License-Identifier: MIT */
/*
 * forget_lose.c - the power cut: loses everything that is not durable, except what a fault lets
 * survive.
 *
 * L1: a power cut happens between operations: the gate is held alone.
 * L2: the kernel is told after the power cut, with no lock held (call_done() says why).
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/rng.h"
#include "forget/forget_call.h"

/* ---- telling the kernel ---- */

void told_add(struct forget *f, struct told_list *told, struct node *n, const char *name)
{
	if (!told)
		return;
	node_ref(f, n);
	vec_push(told, (struct told){ n, name ? xstrdup(name) : NULL });
}

void told_all(struct forget *f, struct told_list *told)
{
	struct live_tree *t = &f->tree;

	auto_owned(&t->lock);
	for (size_t i = 0; i < t->n_buckets; i++)
		for (struct node *n = t->nodes[i]; n; n = n->hash_next) {
			n->refs++;
			vec_push(told, (struct told){ n, NULL });
		}
	for (size_t i = 0; i < t->name_buckets; i++)
		for (struct node_name *a = t->names[i]; a; a = a->hash_next) {
			a->dir->refs++;
			vec_push(told, (struct told){ a->dir, xstrdup(a->text) });
		}
	t->root.refs++;
	vec_push(told, (struct told){ &t->root, NULL });
}

static void tell_one(struct forget *f, struct told *t)
{
	struct node *n = t->node;

	if (f->dead) {
		; /* the mount ends, and the kernel caches nothing any more */
	} else if (t->name) {
		fuse_lowlevel_notify_inval_entry(f->session.se, node_id(f, n), t->name,
						 strlen(t->name));
	} else {
		atomic_store(&n->dropping, true);
		fuse_lowlevel_notify_inval_inode(f->session.se, node_id(f, n), 0, 0);
		atomic_store(&n->dropping, false);
	}
	free(t->name);
	node_unref(f, n);
}

void forget_tell(struct forget *f, struct told_list *told)
{
	for (size_t i = 0; i < told->n; i++)
		tell_one(f, &told->v[i]);
	vec_release(told);
}

/* ---- pages ---- */

struct walked_page {
	uint64_t index;
	uint64_t last; /* number of an operation, at or after the last one that wrote to the page */
	bool space;    /* may need space that ROOT's file lacks */
};

struct page_walk {
	struct node_file *x;
	uint64_t page_size;
	bool ask_space;
	struct vec_of(struct walked_page) pages; /* the pages that differ, in order */
	bool other;				 /* holes or a size differ */
};

static int collect_pages(void *ctx, const struct pagefile_risk *r)
{
	struct page_walk *w = ctx;
	bool space;

	if (r->kind != RISK_DATA) {
		w->other = true;
		return 0;
	}
	space = w->ask_space && forget_file_needs_space(w->x, r);
	for (uint64_t p = r->offset / w->page_size; p * w->page_size < r->offset + r->len; p++) {
		if (w->pages.n && vec_last(&w->pages).index == p) {
			struct walked_page *last = &vec_last(&w->pages);

			last->last = max(last->last, r->last);
			last->space |= space;
		} else {
			vec_push(&w->pages, (struct walked_page){ p, r->last, space });
		}
	}
	return 0;
}

struct page_choice {
	bool (*want)(void *ctx, uint64_t i, uint64_t n_pages);
	void *ctx;
	/* Pages that need space survive only with the metadata up to their writes. */
	bool ordered;
	uint64_t until;
};

/* Makes the wanted pages of a file durable; the data lock is held. */
static int sync_some(struct node_file *x, const struct page_choice *c)
{
	struct page_walk w = { .x = x,
			       .page_size = pagecache_opts(x->f->cache)->page_size,
			       .ask_space = c->ordered };
	int rc = 0;

	if (!x->pf)
		return 0;
	pagefile_risks(x->pf, collect_pages, &w);
	for (size_t i = 0; !rc && i < w.pages.n; i++) {
		const struct walked_page *p = &w.pages.v[i];

		if (c->want(c->ctx, i, w.pages.n) && (!p->space || p->last <= c->until))
			rc = pagefile_sync_range(x->pf, p->index * w.page_size, w.page_size);
	}
	/* Sizes of an ordered profile were decided with the other metadata. */
	if (!rc && w.other && !c->ordered && c->want(c->ctx, 0, 1))
		rc = pagefile_sync_size(x->pf, true);
	vec_release(&w.pages);
	return rc;
}

static bool fault_wants(void *ctx, uint64_t i, uint64_t n_pages)
{
	return fault_wants_page(ctx, i, n_pages);
}

static bool chance(void *ctx, uint64_t i, uint64_t n_pages)
{
	(void)i, (void)n_pages;
	return rng_below(ctx, 2);
}

static bool is_meant(struct forget *f, const struct fault *fault, struct node *own, struct node *n)
{
	auto_strbuf path = STRBUF_INIT;

	if (fault->file.kind == PATH_ANY)
		return n == own || !own;
	node_path(f, n, NULL, &path);
	return inject_path_matches(&fault->file, strbuf_str(&path));
}

static int sync_meant(struct node_file *x, const struct fault *fault)
{
	int rc;

	if (fault->pages == FAULT_PAGES_ALL)
		rc = x->pf ? pagefile_sync(x->pf) : 0;
	else
		rc = sync_some(
			x, &(struct page_choice){ fault_wants, (void *)fault, false, UINT64_MAX });
	return rc ? rc : forget_file_keep_times(x);
}

int forget_sync_pages(struct forget *f, struct node *own, const struct fault *fault)
{
	auto_vec struct node_walk nodes = forget_file_dirty(f);
	int rc = 0, one;

	for (struct node *n; (n = node_next(&nodes));) {
		bool meant = is_meant(f, fault, own, n);
		auto_data(f, n);

		if (!n->file)
			continue;
		one = meant	      ? sync_meant(n->file, fault)
		      : fault->others ? forget_file_sync(n->file)
				      : 0;
		rc = rc ? rc : one;
	}
	return rc;
}

uint64_t forget_pages_meant(struct forget *f, const struct fault *fault)
{
	auto_vec struct node_walk nodes = forget_file_dirty(f);
	uint64_t most = 0;

	for (struct node *n; (n = node_next(&nodes));) {
		struct page_walk w = { .page_size = pagecache_opts(f->cache)->page_size };
		bool meant = is_meant(f, fault, NULL, n);
		auto_data(f, n);

		if (meant && n->file && n->file->pf)
			pagefile_risks(n->file->pf, collect_pages, &w);
		most = max(most, (uint64_t)w.pages.n);
		vec_release(&w.pages);
	}
	return most;
}

/* False for a file without a name that is not open. */
static bool is_found(struct forget *f, struct node *n)
{
	auto_data(f, n);
	if (n->file && (n->file->opens || n->file->held))
		return true;
	auto_owned(&f->tree.lock);
	return n->names[NAME_LIVE] || n->names[NAME_DURABLE];
}

int forget_sync_all(struct forget *f)
{
	auto_vec struct node_walk nodes = forget_file_dirty(f);
	int rc = 0;

	for (struct node *n; (n = node_next(&nodes));) {
		int one = is_found(f, n) ? forget_sync_data_freeing(f, n) : 0;

		forget_file_let_go(f, n);
		if (one) {
			auto_strbuf path = STRBUF_INIT;

			node_path(f, n, NULL, &path);
			forget_log(f, "%s could not be written: %s", strbuf_str(&path),
				   strerror(-one));
			rc = rc ? rc : one;
		}
	}
	if (f->log) {
		int one;

		owned_take(&f->log_lock);
		one = forget_redo_sync_all(f);
		owned_give(&f->log_lock);
		rc = rc ? rc : one;
	}
	if (f->opts.real_sync && syncfs(f->root_fd))
		rc = rc ? rc : -errno;
	return rc;
}

/* ---- losing ---- */

struct survival {
	struct forget *f;
	const struct fault *fault; /* NULL: nothing survives */
	struct rng rng;
	bool matched; /* an operation was listed */
	/* For an ordered profile: all metadata up to this operation survives, and none after it. */
	uint64_t until;
};

bool forget_waits_for(struct forget *f, const struct pending_op *op, const struct path_match *m,
		      bool (*named)(const struct path_match *m, const char *path))
{
	const struct redo *r = op->undo;
	bool two = op->kind == PENDING_RENAME || op->kind == PENDING_SWAP, yes = false;

	if (op->kind == PENDING_ATTR || op->kind == PENDING_XATTR) {
		auto_strbuf path = STRBUF_INIT;

		node_path(f, r->node, NULL, &path);
		return inject_path_matches(m, strbuf_str(&path));
	}
	for (int slot = 0; !yes && slot <= two; slot++) {
		auto_strbuf path = STRBUF_INIT;

		node_path(f, r->slot[slot]->dir, r->slot[slot]->text, &path);
		yes = named(m, strbuf_str(&path));
	}
	return yes;
}

static bool survives(void *ctx, const struct pending_op *op)
{
	struct survival *s = ctx;

	if (s->fault->survive == FAULT_SURVIVE_METADATA)
		return true;
	if (s->fault->survive == FAULT_SURVIVE_RANDOM)
		return rng_below(&s->rng, 2);
	if (s->fault->survive != FAULT_SURVIVE_LISTED)
		return false;
	bool yes = forget_waits_for(s->f, op, &s->fault->survivors, inject_path_matches);

	s->matched |= yes;
	return yes;
}

/* ---- in order ---- */

static int last_survivor(void *ctx, const struct pending_op *op)
{
	struct survival *s = ctx;

	if (survives(s, op))
		s->until = max(s->until, op->number);
	return 0;
}

static bool size_survives(struct survival *s, struct node *n)
{
	auto_strbuf path = STRBUF_INIT;
	bool yes;

	if (s->fault->survive != FAULT_SURVIVE_LISTED)
		return s->fault->survive == FAULT_SURVIVE_RANDOM && rng_below(&s->rng, 2);
	node_path(s->f, n, NULL, &path);
	yes = inject_path_matches(&s->fault->survivors, strbuf_str(&path));
	s->matched |= yes;
	return yes;
}

/*
 * Goes through the files whose size waits. The changes of a file's size are known only together,
 * from the first to the last: if the first survives, all do, and so everything before the last.
 */
static void take_whole_sizes(struct survival *s)
{
	uint64_t before;

	do {
		auto_vec struct node_walk list = forget_file_sized(s->f);

		before = s->until;
		for (struct node *n; (n = node_next(&list));)
			if (n->file->size_first <= s->until)
				s->until = max(s->until, n->file->size_last);
	} while (s->until != before);
}

/* Makes surviving sizes durable. The gate is held alone, so no other thread changes the list. */
static void sync_surviving_sizes(struct survival *s)
{
	struct forget *f = s->f;
	auto_vec struct node_walk list = forget_file_sized(f);

	for (struct node *n; (n = node_next(&list));) {
		auto_data(f, n);
		struct node_file *x = n->file;
		int rc = 0;

		if (x->size_first <= s->until)
			rc = x->flush ? forget_file_sync(x) : forget_file_sync_size(x);
		if (rc)
			forget_log(f,
				   "inode %llu: its size should survive and cannot be written: %s",
				   llu(n->ino), strerror(-rc));
	}
}

/* Decides which metadata survives, with sizes, and makes these sizes durable. */
static void survive_in_order(struct survival *s)
{
	if (s->fault->survive == FAULT_SURVIVE_METADATA) {
		s->until = UINT64_MAX;
	} else {
		auto_vec struct node_walk list = forget_file_sized(s->f);

		pending_each(s->f->log, last_survivor, s);
		for (struct node *n; (n = node_next(&list));)
			if (size_survives(s, n))
				s->until = max(s->until, n->file->size_last);
		take_whole_sizes(s);
	}
	if (s->until)
		sync_surviving_sizes(s);
}

static bool is_until(void *ctx, const struct pending_op *op)
{
	struct survival *s = ctx;

	return op->number <= s->until;
}

/* ---- data ---- */

/* Makes surviving data durable, and drops all other data. */
static void lose_data(struct survival *s, struct told_list *told)
{
	enum fault_survive how = s->fault ? s->fault->survive : FAULT_SURVIVE_NONE;
	struct page_choice some = { chance, &s->rng, s->f->opts.profile->in_order, s->until };
	struct forget *f = s->f;
	auto_vec struct node_walk nodes = forget_file_dirty(f);

	for (struct node *n; (n = node_next(&nodes));) {
		int rc = 0;

		owned_take(forget_data_lock(f, n));
		struct node_file *x = n->file;
		if (x && how == FAULT_SURVIVE_DATA)
			rc = forget_file_sync(x);
		else if (x && how == FAULT_SURVIVE_RANDOM)
			rc = sync_some(x, &some);
		if (rc)
			forget_log(f, "inode %llu: what should survive could not be written: %s",
				   llu(n->ino), strerror(-rc));
		if (x)
			forget_file_drop(x);
		forget_file_idle(f, n);
		owned_give(forget_data_lock(f, n));
		told_add(f, told, n, NULL);
	}
}

static void log_risks(struct forget *f, const char *why, bool ends, struct strbuf *told,
		      struct strbuf *json)
{
	auto_strbuf text = STRBUF_INIT, lines = STRBUF_INIT;

	forget_log(f, "power cut %s: what is not durable is lost%s", why,
		   ends ? ", and the mount ends" : "");
	forget_trace_note(f, "power cut %s%s", why, ends ? ", and the mount ends" : "");
	forget_report_risks(f, &text, json);
	if (told)
		strbuf_adds(told, strbuf_str(&text));
	/* All lines are logged at once: there may be as many as pages. */
	for (const char *at = strbuf_str(&text), *end; *at; at = end + (*end != '\0')) {
		end = strchrnul(at, '\n');
		strbuf_adds(&lines, lines.len ? "\n  " : "  ");
		strbuf_add(&lines, at, (size_t)(end - at));
	}
	if (lines.len && f->opts.log)
		f->opts.log(f->opts.log_ctx, lines.buf);
}

static void lose_metadata(struct survival *s, struct told_list *told)
{
	enum fault_survive how = s->fault ? s->fault->survive : FAULT_SURVIVE_NONE;
	struct forget *f = s->f;

	if (!f->log)
		return;
	auto_owned(&f->log_lock);
	if (how == FAULT_SURVIVE_NONE || how == FAULT_SURVIVE_DATA) {
		forget_redo_cut(f, NULL, NULL, told);
	} else if (!f->opts.profile->in_order) {
		forget_redo_cut(f, survives, s, told);
	} else {
		survive_in_order(s);
		forget_redo_cut(f, is_until, s, told);
	}
}

/* Loses everything; the gate is held alone. */
static void lose_locked(struct forget *f, struct fault *fault, struct told_list *told)
{
	struct survival s = { .f = f, .fault = fault };

	rng_init(&s.rng, fault ? fault->seed : 0);
	lose_metadata(&s, told);
	if (fault && fault->survive == FAULT_SURVIVE_LISTED && !s.matched)
		forget_log(f, "  survivors matches no name or attribute that waited");
	lose_data(&s, told);
	atomic_fetch_add(&f->lost_count, 1);
	atomic_fetch_add(&f->epoch, 1);
}

static void end_locked(struct forget *f)
{
	auto_lock(&f->wait_lock);
	f->dead = true;
	pthread_cond_broadcast(&f->wait_cond);
}

void forget_lose(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
		 struct told_list *told)
{
	forget_lose_telling(f, fault, end, why, told, NULL, NULL);
}

void forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
			struct told_list *told, struct strbuf *text, struct strbuf *json)
{
	log_risks(f, why, end == LOSE_AND_END, text, json);
	lose_locked(f, fault, end == LOSE_AND_END ? NULL : told);
	if (end == LOSE_AND_END)
		end_locked(f);
}

void forget_lose_telling(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
			 struct told_list *told, struct strbuf *text, struct strbuf *json)
{
	pthread_rwlock_wrlock(&f->gate);
	if (f->dead) {
		pthread_rwlock_unlock(&f->gate);
		return;
	}
	forget_lose_inside(f, fault, end, why, told, text, json);
	pthread_rwlock_unlock(&f->gate);
	if (end == LOSE_AND_END)
		forget_stop(f);
}

struct tearing {
	struct forget *f;
	struct node *n;
	const char *data;
	uint64_t offset;
};

static void write_part(void *ctx, uint64_t at, uint64_t len)
{
	struct tearing *t = ctx;
	struct node_file *x = forget_file(t->f, t->n);
	int rc = forget_file_pages(x);

	if (!rc)
		rc = pagefile_write_durable(x->pf, t->data + at, t->offset + at, (size_t)len);
	forget_log(t->f, "  durable: %llu bytes at %llu%s%s", llu(len), llu(t->offset + at),
		   rc ? ", which failed: " : "", rc ? strerror(-rc) : "");
}

/* Logs the loss of a new file with its data, if names wait for a sync. */
static void log_lost_name(struct forget *f, struct node *n)
{
	auto_owned(&f->tree.lock);
	if (!n->names[NAME_LIVE])
		forget_log(f, "  but its name was not durable, and is lost: so is the file");
}

void forget_tear(struct forget *f, struct fault *fault, struct node *n, const void *data,
		 uint64_t offset, size_t len)
{
	struct tearing t = { f, n, data, offset };

	pthread_rwlock_wrlock(&f->gate);
	if (!f->dead) {
		log_risks(f, "in the middle of a write", true, NULL, NULL);
		lose_locked(f, NULL, NULL);
		owned_take(forget_data_lock(f, n));
		fault_tear(fault, len, write_part, &t);
		owned_give(forget_data_lock(f, n));
		log_lost_name(f, n);
		end_locked(f);
	}
	pthread_rwlock_unlock(&f->gate);
	forget_stop(f);
}

/* ---- ending ---- */

/*
 * Wakes the server until it ends. A request or a signal wakes a waiting thread, but the thread may
 * be just about to wait.
 */
static void *wake_server(void *ctx)
{
	struct forget *f = ctx;

	while (f->serving) {
		pthread_kill(f->server, SIGUSR2);
		util_sleep_ms(5);
	}
	return NULL;
}

void forget_stop(struct forget *f)
{
	fuse_session_exit(f->session.se);
	auto_lock(&f->wait_lock);
	if (f->serving && !f->has_waker)
		f->has_waker = !pthread_create(&f->waker, NULL, wake_server, f);
}
