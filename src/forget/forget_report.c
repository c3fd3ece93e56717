/* SPDX-License-Identifier: MIT */
/* forget_report.c - commands and their answers: what is at risk, faults, snapshots. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "forget/forget_call.h"

/* ---- what is at risk ---- */

struct reporting {
	struct forget *f;
	struct strbuf *text;
	struct json *json;
	const char *path;
	uint64_t now_ns, bytes;
};

/* Returns the age, in milliseconds: reports are no finer. */
static uint64_t age_ms(const struct reporting *r, uint64_t since_ns)
{
	return since_ns && since_ns < r->now_ns ? (r->now_ns - since_ns) / 1000000 : 0;
}

static double age_s(const struct reporting *r, uint64_t since_ns)
{
	return (double)age_ms(r, since_ns) / 1e3;
}

static void add_number(struct strbuf *text, const char *before, uint64_t n)
{
	strbuf_adds(text, before);
	strbuf_addu(text, n);
}

/* Adds a line; without formats, as there may be as many lines as pages. */
static void range_text(const struct reporting *r, const struct pagefile_risk *risk,
		       const char *kind)
{
	uint64_t tenths = (age_ms(r, risk->since_ns) + 50) / 100;

	strbuf_adds(r->text, r->path);
	strbuf_adds(r->text, ": ");
	strbuf_adds(r->text, kind);
	add_number(r->text, " ", risk->offset);
	add_number(r->text, " to ", risk->offset + risk->len);
	add_number(r->text, ", operations ", risk->first);
	add_number(r->text, " to ", risk->last);
	add_number(r->text, ", for ", tenths / 10);
	add_number(r->text, ".", tenths % 10);
	strbuf_adds(r->text, risk->failed ? " s, and no sync will write it\n" : " s\n");
}

static int report_range(void *ctx, const struct pagefile_risk *risk)
{
	static const char *const kinds[] = { "data", "hole", "size" };
	struct reporting *r = ctx;

	r->bytes += risk->kind == RISK_DATA ? risk->len : 0;
	if (r->text)
		range_text(r, risk, kinds[risk->kind]);
	if (r->json)
		json_object_of(r->json, KV("kind", kinds[risk->kind]), KV("offset", risk->offset),
			       KV("len", risk->len), KV("first", risk->first),
			       KV("last", risk->last), KV("age_s", age_s(r, risk->since_ns)),
			       KV("failed", risk->failed));
	return 0;
}

static void report_file(struct reporting *r, struct node *n)
{
	struct node_file *x = n->file;

	if (r->json) {
		json_object(r->json);
		json_kvs(r->json, KV("path", r->path), KV("inode", n->ino),
			 KV("size", pagefile_size(x->pf)),
			 KV("durable_size", pagefile_durable_size(x->pf)),
			 KV("dirty_bytes", pagefile_dirty_bytes(x->pf)));
		json_kv_array(r->json, "ranges");
	}
	pagefile_risks(x->pf, report_range, r);
	if (r->json) {
		json_end(r->json);
		json_end(r->json);
	}
}

static size_t report_files(struct reporting *r)
{
	auto_vec struct node_walk nodes = forget_file_dirty(r->f);
	size_t n = 0;

	for (struct node *node; (node = node_next(&nodes));) {
		auto_strbuf path = STRBUF_INIT;
		auto_data(r->f, node);

		if (!forget_file_is_dirty(node->file))
			continue;
		node_path(r->f, node, NULL, &path);
		r->path = strbuf_str(&path);
		report_file(r, node);
		n++;
	}
	return n;
}

static const char *kind_name(enum pending_kind kind)
{
	static const char *const names[] = {
		[PENDING_MAKE] = "make",     [PENDING_LINK] = "link",
		[PENDING_REMOVE] = "remove", [PENDING_RENAME] = "rename",
		[PENDING_SWAP] = "exchange", [PENDING_ATTR] = "attributes",
		[PENDING_XATTR] = "xattr",
	};

	return names[kind];
}

static void add_slot(struct forget *f, const struct redo *r, int slot, struct strbuf *out)
{
	node_path(f, r->slot[slot]->dir, r->slot[slot]->text, out);
}

static int report_pending(void *ctx, const struct pending_op *op)
{
	bool attribute = op->kind == PENDING_ATTR || op->kind == PENDING_XATTR;
	bool two = op->kind == PENDING_RENAME || op->kind == PENDING_SWAP;
	const struct redo *u = op->undo;
	struct reporting *r = ctx;
	auto_strbuf from = STRBUF_INIT, to = STRBUF_INIT;

	if (attribute)
		node_path(r->f, u->node, NULL, &from);
	else
		add_slot(r->f, u, 0, &from);
	if (two)
		add_slot(r->f, u, 1, &to);
	else if (op->kind == PENDING_XATTR)
		strbuf_adds(&to, op->xattr);
	if (r->text)
		strbuf_addf(r->text, "%s%s%s: %s, operation %" PRIu64 ", for %.1f s\n",
			    strbuf_str(&from), to.len ? " " : "", strbuf_str(&to),
			    kind_name(op->kind), op->number, age_s(r, op->time_ns));
	if (r->json) {
		json_object(r->json);
		json_kvs(r->json, KV("kind", kind_name(op->kind)), KV("path", strbuf_str(&from)));
		if (to.len)
			json_kvs(r->json, KV(two ? "to" : "xattr", &to));
		json_kvs(r->json, KV("number", op->number), KV("age_s", age_s(r, op->time_ns)));
		json_end(r->json);
	}
	return 0;
}

/* Reports the risks; the gate is held, shared or alone. */
void forget_report_risks(struct forget *f, struct strbuf *text, struct strbuf *json)
{
	struct reporting r = { .f = f, .text = text, .now_ns = forget_clock_ns() };
	size_t files, pending = 0;
	struct json j;

	if (json) {
		json_init(&j, json, false);
		r.json = &j;
		json_object(&j);
		json_kv_array(&j, "files");
	}
	files = report_files(&r);
	if (json) {
		json_end(&j);
		json_kv_array(&j, "metadata");
	}
	if (f->log) {
		auto_owned(&f->log_lock);
		pending = pending_count(f->log);
		pending_each(f->log, report_pending, &r);
	}
	if (json) {
		json_end(&j);
		json_kvs(&j, KV("dirty_files", files), KV("dirty_bytes", r.bytes),
			 KV("pending", pending));
		json_end(&j);
	}
	if (text)
		strbuf_addf(text, "%zu %s with %" PRIu64 " bytes at risk, %zu %s on metadata\n",
			    files, plural(files, "file", "files"), r.bytes, pending,
			    plural(pending, "operation", "operations"));
}

/* ---- other reports ---- */

static void add_json(struct strbuf *out, const char *key, const char *value)
{
	struct json j;

	if (!out)
		return;
	json_init(&j, out, false);
	json_object_of(&j, KV(key, value));
}

void forget_report_say(struct strbuf *text, struct strbuf *json, const char *sentence)
{
	if (text)
		strbuf_addf(text, "%s\n", sentence);
	add_json(json, "done", sentence);
}

static int say_done(int rc, struct strbuf *text, struct strbuf *json, const char *sentence)
{
	if (!rc)
		forget_report_say(text, json, sentence);
	return rc;
}

static void report_usage(struct forget *f, struct strbuf *text, struct strbuf *json)
{
	const struct pagecache_opts *o = pagecache_opts(f->cache);
	uint64_t pages = pagecache_pages(f->cache);
	double part = o->pages_max ? 100.0 * (double)pages / (double)o->pages_max : 0;
	struct json j;

	if (text && o->pages_max)
		strbuf_addf(text,
			    "%.2f%% of the cache is used: %" PRIu64 " of %" PRIu64
			    " pages of %u bytes\n",
			    part, pages, o->pages_max, o->page_size);
	else if (text)
		strbuf_addf(text, "%" PRIu64 " pages of %u bytes are used; there is no bound\n",
			    pages, o->page_size);
	if (!json)
		return;
	json_init(&j, json, false);
	json_object_of(&j, KV("pages", pages), KV("pages_max", o->pages_max),
		       KV("page_size", o->page_size), KV("percent", part));
}

struct fault_count {
	size_t waiting, done;
};

static int count_fault(void *ctx, const struct fault *fault)
{
	struct fault_count *n = ctx;

	*(fault->done ? &n->done : &n->waiting) += 1;
	return 0;
}

/* The figures of report_status(). */
struct status {
	uint64_t operations, lost, pages;
	size_t pending;
	struct fault_count faults;
};

static void status_text(struct forget *f, const struct status *s, struct strbuf *text)
{
	const struct pagecache_opts *o = pagecache_opts(f->cache);
	auto_strbuf bound = STRBUF_INIT;

	if (o->pages_max)
		strbuf_addf(&bound, " of %" PRIu64, o->pages_max);
	strbuf_addf(text,
		    "%s on %s, profile %s, server %d\n"
		    "%" PRIu64 " %s, %zu %s of names and attributes not durable\n"
		    "%" PRIu64 "%s %s of %u bytes in memory%s\n"
		    "%zu %s waiting, %zu done\n",
		    f->root_path, f->mnt_path, f->opts.profile->name, (int)getpid(), s->operations,
		    plural(s->operations, "operation", "operations"), s->pending,
		    plural(s->pending, "change", "changes"), s->pages, strbuf_str(&bound),
		    plural(o->pages_max ? o->pages_max : s->pages, "page", "pages"), o->page_size,
		    o->evict ? "; the oldest make room" : "", s->faults.waiting,
		    plural(s->faults.waiting, "fault", "faults"), s->faults.done);
	if (s->lost)
		strbuf_addf(text, "unsynced changes were lost %" PRIu64 " %s\n", s->lost,
			    plural(s->lost, "time", "times"));
	else
		strbuf_adds(text, "nothing was lost yet\n");
	auto_free char *now = forget_root_now(f);
	if (now)
		strbuf_addf(text, "ROOT was moved: it is %s now\n", now);
	strbuf_addf(text, "mounted for %.0f s\n", (double)(forget_clock_ns() - f->since_ns) / 1e9);
	if (f->opts.log_path)
		strbuf_addf(text, "log: %s\n", f->opts.log_path);
	if (f->opts.trace)
		strbuf_addf(text, "trace: %s\n", f->opts.trace);
	if (f->opts.fifo_path)
		strbuf_addf(text, "FIFO: %s\n", f->opts.fifo_path);
	if (!f->opts.real_sync)
		strbuf_adds(text, "a sync does not sync ROOT's own file system\n");
}

static void status_json(struct forget *f, const struct status *s, struct strbuf *json)
{
	const struct pagecache_opts *o = pagecache_opts(f->cache);
	struct json j;

	json_init(&j, json, false);
	json_object(&j);
	json_kvs(&j, KV("root", f->root_path), KV("mnt", f->mnt_path),
		 KV("profile", f->opts.profile->name), KV("pid", (uint64_t)getpid()),
		 KV("operations", s->operations), KV("pages", s->pages),
		 KV("pages_max", o->pages_max), KV("page_size", o->page_size),
		 KV("evict", o->evict), KV("pending", s->pending), KV("lost", s->lost),
		 KV("faults_waiting", s->faults.waiting), KV("faults_done", s->faults.done),
		 KV("real_sync", f->opts.real_sync), KV("since", f->since_ns / 1000000000));
	auto_free char *now = forget_root_now(f);
	json_kvs(&j, KV("root_now", now), KV("log", f->opts.log_path), KV("trace", f->opts.trace),
		 KV("fifo", f->opts.fifo_path));
	json_end(&j);
}

static void report_status(struct forget *f, struct strbuf *text, struct strbuf *json)
{
	struct status s = { .operations = atomic_load(&f->number),
			    .lost = atomic_load(&f->lost_count),
			    .pages = pagecache_pages(f->cache) };

	s.pending = forget_redo_count(f);
	inject_each(f->faults, count_fault, &s.faults);
	if (text)
		status_text(f, &s, text);
	if (json)
		status_json(f, &s, json);
}

struct listing {
	struct strbuf *text;
	struct json *json;
	size_t n;
};

static int list_fault(void *ctx, const struct fault *fault)
{
	struct listing *l = ctx;

	l->n++;
	if (l->text) {
		strbuf_addf(l->text, "%" PRIu64 ": %s%s; %" PRIu64 " seen", fault->id,
			    strbuf_str(&fault->text),
			    fault->misfit ? " (missed)"
			    : fault->done ? " (done)"
					  : "",
			    fault->seen);
		if (fault->misfit)
			strbuf_addf(l->text, "; the write had %" PRIu64 " bytes",
				    fault->misfit_len);
		strbuf_addch(l->text, '\n');
	}
	if (l->json)
		json_object_of(l->json, KV("id", fault->id), KV("fault", strbuf_str(&fault->text)),
			       KV("seen", fault->seen), KV("done", fault->done),
			       KV("missed", fault->misfit));
	return 0;
}

static void report_faults(struct forget *f, struct strbuf *text, struct strbuf *json)
{
	struct listing l = { .text = text };
	struct json j;

	if (json) {
		json_init(&j, json, false);
		l.json = &j;
		json_object(&j);
		json_kv_array(&j, "faults");
	}
	inject_each(f->faults, list_fault, &l);
	if (json) {
		json_end(&j);
		json_end(&j);
	}
	if (text && !l.n)
		strbuf_adds(text, "no faults are waiting\n");
}

static int add_fault(struct forget *f, const struct inject_command *c, struct strbuf *text,
		     struct strbuf *json, struct err *err)
{
	/* Asked before the set takes the fault. A creation has no match for its own path yet. */
	bool matches = forget_root_has_match(f, c->fault->from.kind == PATH_ANY ? &c->fault->to
										: &c->fault->from);
	uint64_t id = 0;
	struct json j;
	int rc = inject_add(f->faults, c->fault, &id, err);

	if (rc)
		return rc;
	/* The set owns the fault now. */
	((struct inject_command *)(uintptr_t)c)->fault = NULL;
	if (text)
		strbuf_addf(text, "fault %" PRIu64 " waits%s\n", id,
			    matches ? "" : "; nothing in the mount matches its path yet");
	if (json) {
		json_init(&j, json, false);
		json_object_of(&j, KV("id", id), KV("matches", matches));
	}
	return 0;
}

/* Loses everything. The words have only the sum: tests read the JSON, and the log has each file. */
static int lose(struct forget *f, const struct inject_command *c, struct strbuf *text,
		struct strbuf *json, struct told_list *told)
{
	static const char sentence[] = "unsynced changes are lost";
	enum lose_end end = c->kind == COMMAND_CRASH ? LOSE_AND_END : LOSE_GO_ON;
	auto_strbuf risks = STRBUF_INIT, object = STRBUF_INIT;

	forget_lose_telling(f, c->fault, end, "by a command", told, text ? &risks : NULL,
			    json ? &object : NULL);
	if (risks.len > 1) {
		strbuf_cut(&risks, risks.len - 1);
		const char *sum = strrchr(risks.buf, '\n');

		strbuf_addf(text, "%s: %s\n", sentence, sum ? sum + 1 : risks.buf);
	}
	if (object.len)
		strbuf_addf(json, "{\"done\":\"%s\",\"at_risk\":%s}", sentence, object.buf);
	/* Another command has lost everything before. */
	if (text && !risks.len)
		forget_report_say(text, NULL, sentence);
	if (json && !object.len)
		forget_report_say(NULL, json, sentence);
	return 0;
}

/* Wakes the waiting threads, each of which checks that its fault still exists. */
static void release_waiting(struct forget *f)
{
	auto_lock(&f->wait_lock);
	pthread_cond_broadcast(&f->wait_cond);
}

static int run(struct forget *f, const struct inject_command *c, struct strbuf *text,
	       struct strbuf *json, struct told_list *told, struct err *err)
{
	int rc = 0;

	switch (c->kind) {
	case COMMAND_FAULT:
		return add_fault(f, c, text, json, err);
	case COMMAND_CLEAR:
	case COMMAND_CRASH:
		return lose(f, c, text, json, told);
	case COMMAND_CHECKPOINT:
		return forget_durable_all(f, text, json, err);
	case COMMAND_SYNC:
		return forget_durable_some(f, c->fault, text, json, err);
	case COMMAND_USAGE:
		report_usage(f, text, json);
		return 0;
	case COMMAND_REPORT:
		pthread_rwlock_rdlock(&f->gate);
		forget_report_risks(f, text, json);
		pthread_rwlock_unlock(&f->gate);
		return 0;
	case COMMAND_FAULTS:
		report_faults(f, text, json);
		return 0;
	case COMMAND_CANCEL:
		rc = inject_remove(f->faults, c->id, err);
		if (!rc)
			release_waiting(f);
		return say_done(rc, text, json, "the fault is cancelled");
	case COMMAND_SNAPSHOT:
		rc = forget_snapshot_take(f, c->name, err);
		if (!rc)
			forget_trace_note(f, "snapshot %s", c->name);
		return say_done(rc, text, json, "all that is durable is kept");
	case COMMAND_ROLLBACK:
		rc = forget_snapshot_rollback(f, c->name, told, err);
		if (!rc)
			forget_trace_note(f, "back to snapshot %s", c->name);
		return say_done(rc, text, json, "everything is as it was kept");
	case COMMAND_DROP:
		rc = forget_snapshot_drop(f, c->name, err);
		return say_done(rc, text, json, "the snapshot is removed");
	case COMMAND_SNAPSHOTS:
		return forget_snapshot_list(f, text, json, err);
	case COMMAND_STATUS:
		report_status(f, text, json);
		return 0;
	case COMMAND_HELP: {
		auto_strbuf help = STRBUF_INIT;

		inject_command_help(&help);
		if (text)
			strbuf_adds(text, strbuf_str(&help));
		add_json(json, "help", strbuf_str(&help));
		return 0;
	}
	}
	return err_set(err, -EINVAL, "there is no such command");
}

int forget_command(struct forget *f, const struct inject_command *c, struct strbuf *text,
		   struct strbuf *json, struct err *err)
{
	struct told_list told = { 0 };
	int rc;

	auto_lock(&f->command);
	if (f->dead)
		rc = err_set(err, -ENOTCONN, "the mount has crashed already");
	else
		rc = run(f, c, text, json, &told, err);
	forget_tell(f, &told);
	return rc;
}
