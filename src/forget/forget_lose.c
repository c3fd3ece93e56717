/* SPDX-License-Identifier: MIT */
/*
 * forget_lose.c - the power cut: loses everything that is not durable, except what a fault lets
 * survive.
 *
 * L1: a power cut happens between operations: the gate is held alone.
 * L2: the kernel is told after the power cut, with no lock held (forget_impl.h says why).
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/rng.h"
#include "forget/forget_impl.h"

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
	auto_lock(&f->table);
	for (size_t i = 0; i < f->n_buckets; i++)
		for (struct node *n = f->buckets[i]; n; n = n->hash_next) {
			n->refs++;
			vec_push(told, (struct told){ n, NULL });
			for (size_t k = 0; k < n->names.n; k++) {
				n->names.v[k]->parent->refs++;
				vec_push(told, (struct told){ n->names.v[k]->parent,
							      xstrdup(n->names.v[k]->name) });
			}
		}
	f->root.refs++;
	vec_push(told, (struct told){ &f->root, NULL });
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
	struct forget *f;
	struct node *n;
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
	space = w->ask_space && forget_data_range_needs_space(w->f, w->n, r);
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

/* Makes the wanted pages of a node durable; the node lock is held. */
static int sync_some(struct forget *f, struct node *n, const struct page_choice *c)
{
	struct page_walk w = { .f = f,
			       .n = n,
			       .page_size = pagecache_opts(f->cache)->page_size,
			       .ask_space = c->ordered };
	int rc = 0;

	if (!n->pf)
		return 0;
	pagefile_risks(n->pf, collect_pages, &w);
	for (size_t i = 0; !rc && i < w.pages.n; i++) {
		const struct walked_page *p = &w.pages.v[i];

		if (c->want(c->ctx, i, w.pages.n) && (!p->space || p->last <= c->until))
			rc = pagefile_sync_range(n->pf, p->index * w.page_size, w.page_size);
	}
	/* Sizes of an ordered profile were decided with the other metadata. */
	if (!rc && w.other && !c->ordered && c->want(c->ctx, 0, 1))
		rc = pagefile_sync_size(n->pf, true);
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

int forget_sync_pages(struct forget *f, struct node *own, const struct fault *fault)
{
	auto_vec struct node_walk nodes = forget_data_dirty_nodes(f);
	int rc = 0, one;

	for (struct node *n; (n = node_next(&nodes));) {
		pthread_mutex_lock(&n->lock);
		if (is_meant(f, fault, own, n)) {
			if (fault->pages == FAULT_PAGES_ALL)
				one = n->pf ? pagefile_sync(n->pf) : 0;
			else
				one = sync_some(f, n,
						&(struct page_choice){ fault_wants, (void *)fault,
								       false, UINT64_MAX });
			if (!one)
				one = forget_data_keep_times(f, n);
		} else {
			one = fault->others ? forget_data_sync(f, n) : 0;
		}
		pthread_mutex_unlock(&n->lock);
		rc = rc ? rc : one;
	}
	return rc;
}

uint64_t forget_pages_meant(struct forget *f, const struct fault *fault)
{
	auto_vec struct node_walk nodes = forget_data_dirty_nodes(f);
	uint64_t most = 0;

	for (struct node *n; (n = node_next(&nodes));) {
		struct page_walk w = { .page_size = pagecache_opts(f->cache)->page_size };

		pthread_mutex_lock(&n->lock);
		if (n->pf && is_meant(f, fault, NULL, n))
			pagefile_risks(n->pf, collect_pages, &w);
		pthread_mutex_unlock(&n->lock);
		most = max(most, (uint64_t)w.pages.n);
		vec_release(&w.pages);
	}
	return most;
}

/* False for a file without a name that is not open. */
static bool is_found(struct node *n)
{
	auto_lock(&n->lock);
	return n->opens || !n->gone;
}

int forget_sync_all(struct forget *f)
{
	auto_vec struct node_walk nodes = forget_data_dirty_nodes(f);
	int rc = 0;

	for (struct node *n; (n = node_next(&nodes));) {
		int one = is_found(n) ? forget_data_sync_freeing(f, n) : 0;

		forget_data_let_go(f, n);
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

		names_lock(f);
		one = forget_log_sync_all(f);
		names_unlock(f);
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
	const struct undo *u = op->undo;
	bool two = op->kind == PENDING_RENAME || op->kind == PENDING_SWAP, yes = false;

	if (op->kind == PENDING_ATTR || op->kind == PENDING_XATTR) {
		auto_strbuf path = STRBUF_INIT;

		node_path(f, u->nodes[2], NULL, &path);
		return inject_path_matches(m, strbuf_str(&path));
	}
	for (int slot = 0; !yes && slot <= two; slot++) {
		struct node *dir = node_find(f, f->dev, op->slot[slot].dir);
		auto_strbuf path = STRBUF_INIT;

		if (dir)
			node_path(f, dir, op->slot[slot].name, &path);
		yes = dir && named(m, strbuf_str(&path));
		node_unref(f, dir);
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
 * Includes whole changes of sizes. The changes of a file's size are known only together, from the
 * first to the last: if the first survives, all do, and so everything before the last.
 */
static void take_whole_sizes(struct survival *s)
{
	struct forget *f = s->f;
	uint64_t before;

	do {
		before = s->until;
		for (size_t i = 0; i < f->sized.n; i++)
			if (f->sized.v[i]->size_first <= s->until)
				s->until = max(s->until, f->sized.v[i]->size_last);
	} while (s->until != before);
}

/* Makes surviving sizes durable. The gate is held alone, so no other thread changes the list. */
static void sync_surviving_sizes(struct survival *s)
{
	struct forget *f = s->f;
	auto_vec struct node_walk list = forget_data_sized_nodes(f);

	for (struct node *n; (n = node_next(&list));) {
		int rc = 0;

		pthread_mutex_lock(&n->lock);
		if (n->size_first <= s->until)
			rc = n->flush ? forget_data_sync(f, n) : forget_data_sync_size(f, n);
		pthread_mutex_unlock(&n->lock);
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
		pending_each(s->f->log, last_survivor, s);
		for (size_t i = 0; i < s->f->sized.n; i++)
			if (size_survives(s, s->f->sized.v[i]))
				s->until = max(s->until, s->f->sized.v[i]->size_last);
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
	auto_vec struct node_walk nodes = forget_data_dirty_nodes(f);

	for (struct node *n; (n = node_next(&nodes));) {
		int rc = 0;

		pthread_mutex_lock(&n->lock);
		if (how == FAULT_SURVIVE_DATA)
			rc = forget_data_sync(f, n);
		else if (how == FAULT_SURVIVE_RANDOM)
			rc = sync_some(f, n, &some);
		if (rc)
			forget_log(f, "inode %llu: what should survive could not be written: %s",
				   llu(n->ino), strerror(-rc));
		forget_data_drop(f, n);
		forget_data_idle(f, n);
		pthread_mutex_unlock(&n->lock);
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

static int lose_metadata(struct survival *s, struct told_list *told)
{
	enum fault_survive how = s->fault ? s->fault->survive : FAULT_SURVIVE_NONE;
	struct forget *f = s->f;

	if (!f->log)
		return 0;
	auto_names(f);
	if (how == FAULT_SURVIVE_NONE || how == FAULT_SURVIVE_DATA)
		return forget_log_cut(f, NULL, NULL, told);
	if (!f->opts.profile->in_order)
		return forget_log_cut(f, survives, s, told);
	survive_in_order(s);
	return forget_log_cut(f, is_until, s, told);
}

/* Loses everything; the gate is held alone. */
static int lose_locked(struct forget *f, struct fault *fault, struct told_list *told)
{
	struct survival s = { .f = f, .fault = fault };
	int rc;

	rng_init(&s.rng, fault ? fault->seed : 0);
	rc = lose_metadata(&s, told);
	if (fault && fault->survive == FAULT_SURVIVE_LISTED && !s.matched)
		forget_log(f, "  survivors matches no name or attribute that waited");
	lose_data(&s, told);
	atomic_fetch_add(&f->lost_count, 1);
	atomic_fetch_add(&f->epoch, 1);
	if (rc)
		forget_log(f,
			   "the power cut stopped half way: the mount ends, and the next one of %s "
			   "finishes it",
			   f->root_path);
	return rc;
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

int forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
		       struct told_list *told, struct strbuf *text, struct strbuf *json)
{
	int rc;

	log_risks(f, why, end == LOSE_AND_END, text, json);
	rc = lose_locked(f, fault, end == LOSE_AND_END ? NULL : told);
	if (rc || end == LOSE_AND_END)
		end_locked(f);
	return rc;
}

void forget_lose_telling(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
			 struct told_list *told, struct strbuf *text, struct strbuf *json)
{
	bool ended;

	pthread_rwlock_wrlock(&f->gate);
	if (f->dead) {
		pthread_rwlock_unlock(&f->gate);
		return;
	}
	ended = forget_lose_inside(f, fault, end, why, told, text, json) || end == LOSE_AND_END;
	pthread_rwlock_unlock(&f->gate);
	if (ended)
		forget_stop(f);
}

void forget_give_up(struct forget *f)
{
	if (!f->log)
		return;
	auto_names(f);
	if (!pending_count(f->log))
		return;
	forget_log(f, "names and attributes that cannot be made durable are taken back");
	if (forget_log_cut(f, NULL, NULL, NULL))
		forget_log(f, "which stopped half way: the next mount of %s finishes it",
			   f->root_path);
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
	int rc = forget_data_write_through(t->f, t->n, t->data + at, t->offset + at, (size_t)len);

	forget_log(t->f, "  durable: %llu bytes at %llu%s%s", llu(len), llu(t->offset + at),
		   rc ? ", which failed: " : "", rc ? strerror(-rc) : "");
}

/* Logs the loss of a new file with its data, if names wait for a sync. */
static void log_lost_name(struct forget *f, struct node *n)
{
	auto_pin at = node_pinned(f, n);
	struct stat st;

	if (at.fd >= 0 && !fstat(at.fd, &st) && !st.st_nlink)
		forget_log(f, "  but its name was not durable, and is lost: so is the file");
}

void forget_tear(struct forget *f, struct fault *fault, struct node *n, const void *data,
		 uint64_t offset, size_t len)
{
	struct tearing t = { f, n, data, offset };

	pthread_rwlock_wrlock(&f->gate);
	if (!f->dead) {
		log_risks(f, "in the middle of a write", true, NULL, NULL);
		if (!lose_locked(f, NULL, NULL)) {
			pthread_mutex_lock(&n->lock);
			fault_tear(fault, len, write_part, &t);
			pthread_mutex_unlock(&n->lock);
			log_lost_name(f, n);
		}
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
