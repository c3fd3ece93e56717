/* SPDX-License-Identifier: MIT */
/*
 * posix_log.c - the calls of a trace, each with the path of its file at that time, and whether its
 * data was synced later.
 */
#include "app/posix_log.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>

enum { EXCHANGE = 2 }; /* RENAME_EXCHANGE */

bool posix_op_is_data(enum posix_op op)
{
	return op == POSIX_WRITE || op == POSIX_TRUNCATE || op == POSIX_FALLOCATE ||
	       op == POSIX_COPY;
}

bool posix_op_syncs_file(enum posix_op op)
{
	return op == POSIX_FSYNC || op == POSIX_FDATASYNC || op == POSIX_MSYNC;
}

/* ---- names ---- */

static bool makes_file(enum posix_op op)
{
	return op == POSIX_CREATE || op == POSIX_MKNOD || op == POSIX_MKDIR ||
	       op == POSIX_SYMLINK || op == POSIX_TMPFILE;
}

static void resolve_creation(struct posix_names *names, const struct posix_event *p,
			     struct posix_call *c)
{
	uint32_t dir = posix_names_file(names, p->dir);
	uint32_t there = posix_names_entry(names, dir, p->name);

	if (dir != POSIX_NO_FILE && p->name)
		c->path = posix_names_path_in(names, dir, p->name);
	if (p->result < 0 || !p->ino) {
		c->file = there;
		return;
	}
	/* A creation may open a file that exists. */
	if (there != POSIX_NO_FILE && names->files.v[there].ino == p->ino)
		c->file = there;
	else
		c->file = posix_names_new(names, p->ino);
	if (p->op == POSIX_MKDIR)
		names->files.v[c->file].is_dir = true;
	if (dir != POSIX_NO_FILE && p->name)
		posix_names_link(names, c->file, dir, p->name);
}

static void resolve_removal(struct posix_names *names, const struct posix_event *p,
			    struct posix_call *c)
{
	uint32_t dir = posix_names_file(names, p->dir);

	c->file = posix_names_file(names, p->ino2 ? p->ino2 : p->ino);
	if (c->file == POSIX_NO_FILE)
		c->file = posix_names_entry(names, dir, p->name);
	if (dir == POSIX_NO_FILE || !p->name)
		return;
	c->path = posix_names_path_in(names, dir, p->name);
	if (p->result >= 0 && c->file != POSIX_NO_FILE &&
	    posix_names_unlink(names, c->file, dir, p->name))
		c->ends = c->file;
}

static void do_rename(struct posix_names *names, const struct posix_event *p, uint32_t from,
		      uint32_t to, struct posix_call *c)
{
	uint32_t moved = c->file, other = c->file2;

	if (moved == other) /* two names of one file: a rename does nothing */
		return;
	if (other != POSIX_NO_FILE && posix_names_unlink(names, other, to, p->name2) &&
	    !(p->arg & EXCHANGE))
		c->ends = other;
	if (moved != POSIX_NO_FILE) {
		posix_names_unlink(names, moved, from, p->name);
		posix_names_link(names, moved, to, p->name2);
	}
	if (other != POSIX_NO_FILE && (p->arg & EXCHANGE))
		posix_names_link(names, other, from, p->name);
}

static void resolve_rename(struct posix_names *names, const struct posix_event *p,
			   struct posix_call *c)
{
	uint32_t from = posix_names_file(names, p->dir);
	uint32_t to = posix_names_file(names, p->dir2 ? p->dir2 : p->dir);

	c->file = posix_names_file(names, p->ino);
	if (c->file == POSIX_NO_FILE)
		c->file = posix_names_entry(names, from, p->name);
	c->file2 = posix_names_file(names, p->ino2);
	if (c->file2 == POSIX_NO_FILE)
		c->file2 = posix_names_entry(names, to, p->name2);
	if (from == POSIX_NO_FILE || to == POSIX_NO_FILE || !p->name || !p->name2)
		return;
	c->path = posix_names_path_in(names, from, p->name);
	c->path2 = posix_names_path_in(names, to, p->name2);
	if (p->result >= 0)
		do_rename(names, p, from, to, c);
}

/* Resolves a link. The new name is the second one, or the only one. */
static void resolve_link(struct posix_names *names, const struct posix_event *p,
			 struct posix_call *c)
{
	uint32_t dir = posix_names_file(names, p->dir2 ? p->dir2 : p->dir);
	const char *name = p->name2 ? p->name2 : p->name;

	c->file = posix_names_file(names, p->ino);
	if (dir == POSIX_NO_FILE || !name)
		return;
	if (p->name2 && p->name && p->dir)
		c->path = posix_names_path_in(names, posix_names_file(names, p->dir), p->name);
	else if (c->file != POSIX_NO_FILE)
		c->path = posix_names_path(names, c->file);
	c->path2 = posix_names_path_in(names, dir, name);
	if (p->result >= 0 && c->file != POSIX_NO_FILE)
		posix_names_link(names, c->file, dir, name);
}

/* Resolves a call that changes no name; it may still tell an unknown name. */
static void resolve_other(struct posix_names *names, const struct posix_event *p,
			  struct posix_call *c)
{
	uint32_t dir = posix_names_file(names, p->dir);

	c->file = posix_names_file(names, p->ino);
	if (dir != POSIX_NO_FILE && p->name) {
		c->path = posix_names_path_in(names, dir, p->name);
		if (c->file == POSIX_NO_FILE)
			c->file = posix_names_entry(names, dir, p->name);
		else if (p->result >= 0 && !names->files.v[c->file].gone)
			posix_names_link(names, c->file, dir, p->name);
	}
	if (p->op == POSIX_COPY)
		c->file2 = posix_names_file(names, p->ino2);
	if (p->op == POSIX_FSYNCDIR && c->file != POSIX_NO_FILE)
		names->files.v[c->file].is_dir = true;
	if (c->file2 != POSIX_NO_FILE)
		c->path2 = posix_names_path(names, c->file2);
}

/*
 * Finds the root. A recorder tells the inode of its root by a lookup of "." in no directory. In a
 * trace without that, the first directory is taken: usually the root.
 */
static void find_root(struct posix_names *names, const struct posix_event *p)
{
	if (p->op == POSIX_LOOKUP && !p->dir && p->name && streq(p->name, ".")) {
		posix_names_root(names, p->ino);
		names->root_guessed = false;
	} else if (!names->root_known && p->dir) {
		posix_names_root(names, p->dir);
		names->root_guessed = p->dir != POSIX_ROOT_INO;
	}
}

void posix_call_resolve(struct posix_names *names, uint64_t n, const struct event *ev,
			const struct posix_event *p, struct posix_call *out)
{
	struct posix_call c = { .event = n,
				.time_ns = ev->time_ns,
				.op = p->op,
				.flags = p->flags,
				.pid = p->pid,
				.tid = p->tid,
				.offset = p->offset,
				.len = p->len,
				.result = p->result,
				.file = POSIX_NO_FILE,
				.file2 = POSIX_NO_FILE,
				.ends = POSIX_NO_FILE };

	find_root(names, p);
	if (makes_file(p->op))
		resolve_creation(names, p, &c);
	else if (p->op == POSIX_UNLINK || p->op == POSIX_RMDIR)
		resolve_removal(names, p, &c);
	else if (p->op == POSIX_RENAME)
		resolve_rename(names, p, &c);
	else if (p->op == POSIX_LINK)
		resolve_link(names, p, &c);
	else
		resolve_other(names, p, &c);
	if (!c.path && c.file != POSIX_NO_FILE) {
		c.unnamed = !names->files.v[c.file].named;
		c.path = posix_names_path(names, c.file);
	}
	*out = c;
}

/* ---- the log ---- */

void posix_log_init(struct posix_log *log)
{
	*log = (struct posix_log){ 0 };
	posix_names_init(&log->names);
	trace_init(&log->trace);
}

void posix_log_release(struct posix_log *log)
{
	posix_names_release(&log->names);
	vec_release(&log->calls);
	vec_release(&log->notes);
	trace_release(&log->trace);
}

/* Keeps the event for callers that need it; its data only if requested. */
static uint64_t keep(struct posix_log *log, const struct event *ev, const struct posix_event *p)
{
	auto_strbuf buf = STRBUF_INIT;
	struct posix_event bare = *p;
	struct event copy;

	if (log->keep_data || !p->payload_len)
		return trace_append(&log->trace, ev);
	bare.payload = NULL;
	bare.payload_len = 0;
	posix_to_event(&bare, ev->time_ns, &buf, &copy);
	return trace_append(&log->trace, &copy);
}

int posix_log_add(struct posix_log *log, uint64_t n, const struct event *ev, struct err *err)
{
	struct posix_event p;
	struct posix_call c;
	int rc;

	if (ev->kind == EV_TEXT)
		vec_push(&log->notes,
			 (struct posix_note){
				 n, log->calls.n,
				 posix_names_text(&log->names, (const char *)ev->data,
						  strnlen((const char *)ev->data, ev->len)) });
	if (ev->kind != EV_POSIX)
		return 0;
	if (log->calls.n >= POSIX_LOG_MAX)
		return err_set(err, -EFBIG,
			       "there are more than %d calls, too many to be held in memory; a "
			       "plain 'outage trace show' takes any number",
			       POSIX_LOG_MAX);
	rc = posix_decode(ev, &p, err);
	if (rc)
		return rc;
	posix_call_resolve(&log->names, n, ev, &p, &c);
	c.at = keep(log, ev, &p);
	vec_push(&log->calls, c);
	return 0;
}

int posix_log_read(struct posix_log *log, struct trace_reader *r, struct err *err)
{
	struct event ev;
	int rc;

	for (uint64_t n = 0; (rc = trace_reader_next(r, &ev, err)) > 0; n++) {
		rc = posix_log_add(log, n, &ev, err);
		if (rc)
			return rc;
	}
	if (rc == 0)
		posix_log_finish(log);
	return rc;
}

/* ---- after the last event ---- */

struct counted {
	const char *path;
	const char *to; /* the second path: faults on a rename or link name both */
	size_t call;
};

/* Equal paths are one string; any order of different strings is good. */
DEFINE_ORDER(by_path, struct counted,
	     order(a->path, b->path) ?: order(a->to, b->to) ?: order(a->call, b->call))

/* The calls on one path, as faults count them. */
struct counters {
	uint64_t seen[POSIX_OP_END];
	uint64_t writes; /* since the last sync */
	uint64_t runs;	 /* two writes make a run */
};

static void count_call(struct counters *n, struct posix_call *c)
{
	c->occurrence = ++n->seen[c->op];
	if (c->op == POSIX_FSYNC) /* to faults, fsync stands for all syncs, as in LazyFS */
		c->occurrence += n->seen[POSIX_FDATASYNC] + n->seen[POSIX_MSYNC];
	if (posix_op_syncs_file(c->op))
		n->writes = 0;
	if (c->op != POSIX_WRITE)
		return;
	c->in_run = ++n->writes;
	n->runs += c->in_run == 2;
	c->run = c->in_run > 1 ? n->runs : 0;
}

static void count_calls(struct posix_log *log)
{
	auto_vec struct vec_of(struct counted) all = { 0 };
	struct counters n = { 0 };

	for (size_t i = 0; i < log->calls.n; i++) {
		const struct posix_call *c = &log->calls.v[i];
		bool two = c->op == POSIX_RENAME || c->op == POSIX_LINK;

		if (c->path)
			vec_push(&all, (struct counted){ c->path, two ? c->path2 : NULL, i });
	}
	vec_sort(&all, by_path);
	for (size_t i = 0; i < all.n; i++) {
		if (i && (all.v[i].path != all.v[i - 1].path || all.v[i].to != all.v[i - 1].to))
			n = (struct counters){ 0 };
		count_call(&n, &log->calls.v[all.v[i].call]);
	}
}

/* Data that waits for a sync: a list of calls for each file. */
struct waiting {
	size_t *last; /* by file: its last call, counted from 1 */
	size_t *next; /* by call: the call before it */
	struct vec_of(uint32_t) files;
};

static void settle(struct posix_log *log, struct waiting *w, uint32_t file, enum posix_fate fate)
{
	for (size_t i = w->last[file]; i; i = w->next[i - 1])
		log->calls.v[i - 1].fate = fate;
	w->last[file] = 0;
}

static void settle_all(struct posix_log *log, struct waiting *w)
{
	for (size_t i = 0; i < w->files.n; i++)
		settle(log, w, w->files.v[i], POSIX_FATE_SYNCED);
	vec_clear(&w->files);
}

static void take_data(struct posix_log *log, struct waiting *w, size_t i, const bool *gone)
{
	struct posix_call *c = &log->calls.v[i];

	if (c->file == POSIX_NO_FILE)
		return;
	if (c->flags & (POSIX_SYNC | POSIX_DSYNC)) {
		c->fate = POSIX_FATE_SYNCED;
		return;
	}
	c->fate = gone[c->file] ? POSIX_FATE_GONE : POSIX_FATE_UNSYNCED;
	if (!w->last[c->file])
		vec_push(&w->files, c->file);
	w->next[i] = w->last[c->file];
	w->last[c->file] = i + 1;
}

static void find_fates(struct posix_log *log)
{
	auto_free bool *gone = xcalloc(log->names.files.n, sizeof(*gone));
	struct waiting w = { .last = xcalloc(log->names.files.n, sizeof(*w.last)),
			     .next = xcalloc(log->calls.n + 1, sizeof(*w.next)) };

	for (size_t i = 0; i < log->calls.n; i++) {
		const struct posix_call *c = &log->calls.v[i];

		if (c->result < 0)
			continue;
		if (c->op == POSIX_SYNCFS)
			settle_all(log, &w);
		else if (posix_op_syncs_file(c->op) && c->file != POSIX_NO_FILE)
			settle(log, &w, c->file, POSIX_FATE_SYNCED);
		else if (posix_op_is_data(c->op))
			take_data(log, &w, i, gone);
		else if ((c->op == POSIX_LINK || c->op == POSIX_RENAME) && c->file != POSIX_NO_FILE)
			gone[c->file] = false;
		if (c->ends != POSIX_NO_FILE) {
			settle(log, &w, c->ends, POSIX_FATE_GONE);
			gone[c->ends] = true;
		}
	}
	free(w.last);
	free(w.next);
	vec_release(&w.files);
}

void posix_log_finish(struct posix_log *log)
{
	vec_each(c, &log->calls) {
		const char *later = c->unnamed ? log->names.files.v[c->file].first_path : NULL;

		if (later)
			c->path = later;
	}
	count_calls(log);
	find_fates(log);
}

/* ---- selection ---- */

uint64_t posix_ops_effective(void)
{
	uint64_t ops = 0;

	for (int op = 0; op < POSIX_OP_END; op++)
		if (posix_op_changes((enum posix_op)op) || posix_op_persists((enum posix_op)op))
			ops |= UINT64_C(1) << op;
	return ops;
}

bool posix_filter_call(const struct posix_filter *f, const struct posix_call *c)
{
	if (c->event < f->from || c->event > f->to || !(f->ops >> c->op & 1))
		return false;
	if (f->pid && c->pid != f->pid && c->tid != f->pid)
		return false;
	return !f->large || (c->op == POSIX_WRITE && c->len > f->large);
}

/* True if the path, or its last part for a pattern without a slash, matches. */
static bool inject_path_matches(const char *pattern, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path)
		return false;
	if (fnmatch(pattern, path, 0) == 0)
		return true;
	return slash && !strchr(pattern, '/') && fnmatch(pattern, slash + 1, 0) == 0;
}

static bool file_wanted(const bool *wanted, uint32_t file)
{
	return file != POSIX_NO_FILE && wanted[file];
}

void posix_select(const struct posix_log *log, const struct posix_filter *f,
		  struct posix_selection *out)
{
	auto_free bool *wanted = xcalloc(log->names.files.n, sizeof(*wanted));

	*out = (struct posix_selection){ 0 };
	for (size_t i = 0; f->file && i < log->calls.n; i++) {
		const struct posix_call *c = &log->calls.v[i];
		/* After a rename or link, the second name is another name of the file. */
		bool second = c->op == POSIX_RENAME || c->op == POSIX_LINK;

		if (c->file != POSIX_NO_FILE &&
		    (inject_path_matches(f->file, c->path) ||
		     (second && inject_path_matches(f->file, c->path2))))
			wanted[c->file] = true;
	}
	for (size_t i = 0; i < log->calls.n; i++) {
		const struct posix_call *c = &log->calls.v[i];

		if (!posix_filter_call(f, c))
			continue;
		if (!f->file || file_wanted(wanted, c->file) || file_wanted(wanted, c->file2) ||
		    c->op == POSIX_SYNCFS || inject_path_matches(f->file, c->path) ||
		    inject_path_matches(f->file, c->path2))
			vec_push(out, i);
	}
}
