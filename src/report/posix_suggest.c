/* SPDX-License-Identifier: MIT */
/*
 * posix_suggest.c - suggests faults that are worth trying, as commands: the write to tear, the
 * place of the power cut. Each suggestion has its reason.
 *
 * The search finds places in a sequence of calls where an application may count on more than POSIX
 * promises: data that a rename publishes before it is synced, a sync of one file while older data
 * of another waits, writes of more than a page, several writes without a sync in between, data and
 * names that are never synced.
 *
 * S1: an occurrence counts as a fault does: calls of this kind on this path since the mount; for
 *     torn-seq, runs of writes to this path without a sync of it in between.
 * S2: for each kind, each file gives its one case with most at stake; the best of each kind come
 *     first, then the second best, and so on.
 */
#include <inttypes.h>

#include "core/hashset.h"
#include "app/posix_log.h"
#include "report/shell.h"

enum kind {
	RENAME_FIRST,
	OTHER_SYNCED,
	TORN_OP,
	TORN_SEQ,
	BEFORE_SYNC,
	NEVER_SYNCED,
	NAME_ONLY,
	KINDS
};

enum {
	PARTS_MAX = 8,	   /* more parts show nothing new */
	OTHERS_SEEN = 256, /* files tried at each sync, oldest first */
};

struct candidate {
	enum kind kind;
	size_t call;	 /* the call at which the fault strikes */
	uint64_t weight; /* the bytes at stake */
	uint32_t file;	 /* the file that it is proposed for */
};

/* The state of a file at a call. */
struct file_state {
	uint64_t changes;   /* changes of its data that are not synced */
	uint64_t waiting;   /* their bytes */
	size_t first;	    /* the call that wrote the oldest of them */
	const char *path;   /* the path at that call */
	uint64_t run_bytes; /* of the writes since the last sync */
	size_t best[KINDS]; /* its best candidates, counted from 1 */
};

struct sync_search {
	const struct posix_log *log;
	bool *selected;
	struct file_state *files;
	struct vec_of(uint32_t) dirty; /* files with unsynced data, and perhaps others */
	size_t tidied;
	struct vec_of(struct candidate) found;
};

static bool can_be_named(const struct posix_call *c)
{
	return c->path && !c->unnamed && c->path[0] != '#' && strncmp(c->path, "...", 3) != 0 &&
	       !shell_has_control(c->path) && (!c->path2 || !shell_has_control(c->path2));
}

/* Keeps the better one of two candidates of one kind and file. */
static void propose(struct sync_search *s, uint32_t file, enum kind kind, size_t call,
		    uint64_t weight)
{
	struct candidate c = { kind, call, weight, file };
	struct file_state *st = &s->files[file];

	if (!s->selected[c.call] || !can_be_named(&s->log->calls.v[c.call]))
		return;
	if (!st->best[c.kind]) {
		vec_push(&s->found, c);
		st->best[c.kind] = s->found.n;
	} else if (s->found.v[st->best[c.kind] - 1].weight < c.weight) {
		s->found.v[st->best[c.kind] - 1] = c;
	}
}

static void see_write(struct sync_search *s, size_t i)
{
	const struct posix_call *c = &s->log->calls.v[i];
	struct file_state *st = &s->files[c->file];

	if (c->op == POSIX_WRITE && c->len > POSIX_PAGE_SIZE)
		propose(s, c->file, TORN_OP, i, c->len);
	if (c->flags & (POSIX_SYNC | POSIX_DSYNC))
		return;
	st->run_bytes = c->in_run > 1 ? st->run_bytes + c->len : c->len;
	if (c->run)
		propose(s, c->file, TORN_SEQ, i, st->run_bytes);
	if (!st->changes++) {
		st->first = i;
		st->path = c->path;
		vec_push(&s->dirty, c->file);
	}
	st->waiting += c->op == POSIX_WRITE || c->op == POSIX_COPY ? c->len : 0;
	if (c->fate == POSIX_FATE_UNSYNCED)
		propose(s, c->file, NEVER_SYNCED, i, st->waiting);
}

/* Removes files without unsynced data, when the list has doubled. */
static void tidy(struct sync_search *s)
{
	size_t kept = 0;

	if (s->dirty.n < 2 * s->tidied + OTHERS_SEEN)
		return;
	for (size_t k = 0; k < s->dirty.n; k++)
		if (s->files[s->dirty.v[k]].changes)
			s->dirty.v[kept++] = s->dirty.v[k];
	s->dirty.n = s->tidied = kept;
}

/* Proposes older data of another file that waits while this file is made durable. */
static void see_others(struct sync_search *s, size_t i)
{
	const struct posix_call *c = &s->log->calls.v[i];

	tidy(s);
	for (size_t k = 0; k < min(s->dirty.n, (size_t)OTHERS_SEEN); k++) {
		uint32_t file = s->dirty.v[k];
		const struct file_state *st = &s->files[file];

		if (st->changes && file != c->file && st->first < s->files[c->file].first &&
		    !st->best[OTHER_SYNCED])
			propose(s, file, OTHER_SYNCED, i, st->waiting);
	}
}

static void see_sync(struct sync_search *s, size_t i)
{
	const struct posix_call *c = &s->log->calls.v[i];
	struct file_state *st = &s->files[c->file];

	if (!st->changes)
		return;
	propose(s, c->file, BEFORE_SYNC, i, st->waiting);
	see_others(s, i);
	st->changes = st->waiting = 0;
}

static void see_name(struct sync_search *s, size_t i, bool dir_synced)
{
	const struct posix_call *c = &s->log->calls.v[i];

	if (c->op == POSIX_RENAME && s->files[c->file].changes)
		propose(s, c->file, RENAME_FIRST, i, s->files[c->file].waiting);
	if (!dir_synced && (c->op == POSIX_RENAME || c->op == POSIX_UNLINK))
		propose(s, c->file, NAME_ONLY, i, 0);
}

static void see_syncfs(struct sync_search *s)
{
	for (size_t k = 0; k < s->dirty.n; k++)
		s->files[s->dirty.v[k]].changes = s->files[s->dirty.v[k]].waiting = 0;
	s->dirty.n = s->tidied = 0;
}

static void see(struct sync_search *s, size_t i, size_t last_dirsync)
{
	const struct posix_call *c = &s->log->calls.v[i];

	if (c->op == POSIX_SYNCFS && c->result >= 0)
		see_syncfs(s);
	if (c->file == POSIX_NO_FILE || c->result < 0)
		return;
	if (posix_op_is_data(c->op))
		see_write(s, i);
	else if (posix_op_syncs_file(c->op))
		see_sync(s, i);
	else if (posix_op_changes(c->op))
		see_name(s, i, last_dirsync > i);
	if (c->ends != POSIX_NO_FILE)
		s->files[c->ends].changes = s->files[c->ends].waiting = 0;
}

/* ---- words ---- */

/* Adds KEY=PATH; a path with stars is given as a pattern in which these are escaped. */
static void add_path(struct strbuf *sb, const char *key, const char *path)
{
	auto_strbuf word = STRBUF_INIT;
	bool plain = path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456"
				       "789_./+:@%,-")] == '\0';
	bool stars = strpbrk(path, "*?");

	strbuf_addf(&word, "%s%s=", key, stars ? "_glob" : "");
	for (const char *c = path; *c; c++) {
		if (stars && strchr("*?[]\\", *c))
			strbuf_addch(&word, '\\');
		strbuf_addch(&word, *c);
	}
	strbuf_addch(sb, ' ');
	if (plain)
		strbuf_adds(sb, strbuf_str(&word));
	else
		shell_quote(sb, strbuf_str(&word));
}

static void add_occurrence(struct strbuf *sb, uint64_t n)
{
	if (n > 1)
		strbuf_addf(sb, " occurrence=%" PRIu64, n);
}

static void add_crash(struct strbuf *sb, const struct posix_call *c, const char *timing)
{
	strbuf_addf(sb, "crash timing=%s op=%s", timing, posix_op_name(c->op));
	add_path(sb, c->path2 ? "from" : "file", c->path);
	if (c->path2)
		add_path(sb, "to", c->path2);
	add_occurrence(sb, c->occurrence);
}

static void add_torn_op(struct strbuf *sb, const struct posix_call *c)
{
	uint64_t parts = (c->len + POSIX_PAGE_SIZE - 1) / POSIX_PAGE_SIZE;

	strbuf_adds(sb, "torn-op");
	add_path(sb, "file", c->path);
	add_occurrence(sb, c->occurrence);
	parts = min(parts, (uint64_t)PARTS_MAX);
	strbuf_addf(sb, " parts=%" PRIu64 " persist=%" PRIu64, parts, parts);
}

static void add_torn_seq(struct strbuf *sb, const struct posix_call *c)
{
	strbuf_adds(sb, "torn-seq op=write");
	add_path(sb, "file", c->path);
	add_occurrence(sb, c->run);
	strbuf_addf(sb, " persist=%" PRIu64, c->in_run);
}

static void add_amount(struct strbuf *sb, uint64_t bytes)
{
	if (bytes)
		posix_add_bytes(sb, bytes);
	else
		strbuf_adds(sb, "its size");
}

static void explain(const struct sync_search *s, const struct candidate *k, struct strbuf *sb)
{
	const struct posix_call *c = &s->log->calls.v[k->call];

	switch (k->kind) {
	case RENAME_FIRST:
		strbuf_adds(sb, "the rename comes before a sync of ");
		add_amount(sb, k->weight);
		break;
	case OTHER_SYNCED:
		strbuf_adds(sb, "no sync yet, by then, of ");
		add_amount(sb, k->weight);
		strbuf_adds(sb, " written earlier to ");
		posix_add_safe(sb, s->files[k->file].path, strlen(s->files[k->file].path));
		break;
	case TORN_OP:
		strbuf_addf(sb,
			    "a write of %" PRIu64
			    " bytes, more than a page; its last part survives alone",
			    c->len);
		break;
	case TORN_SEQ:
		strbuf_addf(sb,
			    "%" PRIu64 " writes with no sync between them; the last survives alone",
			    c->in_run);
		break;
	case BEFORE_SYNC:
		strbuf_adds(sb, "the sync of ");
		add_amount(sb, k->weight);
		break;
	case NEVER_SYNCED:
		strbuf_adds(sb, "no sync ever of ");
		add_amount(sb, k->weight);
		break;
	case NAME_ONLY:
		strbuf_adds(sb, "no sync of a directory follows");
		break;
	case KINDS:
		break;
	}
}

static void add_command(const struct sync_search *s, const struct candidate *k, struct strbuf *sb)
{
	const struct posix_call *c = &s->log->calls.v[k->call];

	if (k->kind == TORN_OP)
		add_torn_op(sb, c);
	else if (k->kind == TORN_SEQ)
		add_torn_seq(sb, c);
	else
		add_crash(sb, c, k->kind == BEFORE_SYNC ? "before" : "after");
}

/* ---- the list ---- */

DEFINE_ORDER(compare_weight, struct candidate,
	     order(a->kind, b->kind) ?: order(b->weight, a->weight) ?: order(a->call, b->call))

DEFINE_ORDER(compare_rank, struct posix_suggestion, order(a->rank, b->rank))

/* True if the command is new; hashes are enough to know those that are left out. */
static bool is_new(struct hashset *known, const struct strbuf *command)
{
	return hashset_insert(known, hash_bytes(command->buf, command->len));
}

static void list_found(struct sync_search *s, size_t limit, struct posix_suggestions *out)
{
	auto_hashset known = HASHSET_INIT;
	unsigned place = 0; /* place among the candidates of its kind */

	vec_sort(&s->found, compare_weight);
	for (size_t i = 0; i < s->found.n; i++) {
		const struct candidate *k = &s->found.v[i];
		auto_strbuf command = STRBUF_INIT, why = STRBUF_INIT;

		if (i && k->kind != s->found.v[i - 1].kind)
			place = 0;
		add_command(s, k, &command);
		if (!is_new(&known, &command))
			continue;
		if (place >= limit) { /* beyond the limit in any case */
			out->left_out++;
			continue;
		}
		explain(s, k, &why);
		vec_push(&out->list,
			 (struct posix_suggestion){ .command = strbuf_detach(&command),
						    .why = strbuf_detach(&why),
						    .event = s->log->calls.v[k->call].event,
						    .rank = place++ * KINDS + k->kind });
	}
	vec_sort(&out->list, compare_rank);
	while (out->list.n > limit) {
		struct posix_suggestion *last = &out->list.v[--out->list.n];

		free(last->command);
		free(last->why);
		out->left_out++;
	}
}

void posix_suggest(const struct posix_log *log, const struct posix_selection *sel, size_t limit,
		   struct posix_suggestions *out)
{
	struct sync_search s = { .log = log,
				 .selected = xcalloc(log->calls.n + 1, sizeof(*s.selected)),
				 .files = xcalloc(log->names.files.n, sizeof(*s.files)) };
	size_t last_dirsync = 0;

	*out = (struct posix_suggestions){ 0 };
	for (size_t i = 0; i < sel->n; i++)
		s.selected[sel->v[i]] = true;
	for (size_t i = 0; i < log->calls.n; i++)
		if ((log->calls.v[i].op == POSIX_FSYNCDIR || log->calls.v[i].op == POSIX_SYNCFS) &&
		    log->calls.v[i].result >= 0)
			last_dirsync = i;
	for (size_t i = 0; i < log->calls.n; i++)
		see(&s, i, last_dirsync);
	list_found(&s, limit, out);
	free(s.selected);
	free(s.files);
	vec_release(&s.dirty);
	vec_release(&s.found);
}

void posix_suggestions_release(struct posix_suggestions *s)
{
	vec_release_each(p, &s->list, free(p->command), free(p->why));
}
