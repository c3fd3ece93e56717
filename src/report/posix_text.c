/* SPDX-License-Identifier: MIT */
/*
 * posix_text.c - the calls of an application, and runs of them, as lines of text and as JSON.
 */
#include <inttypes.h>

#include "app/posix_log.h"

/* ---- words ---- */

void posix_add_safe(struct strbuf *sb, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\\')
			strbuf_adds(sb, "\\\\");
		else if (c == '\n')
			strbuf_adds(sb, "\\n");
		else if (c < 0x20 || c >= 0x7f)
			strbuf_addf(sb, "\\x%02x", c);
		else
			strbuf_addch(sb, (char)c);
	}
}

static void add_path(struct strbuf *sb, const char *path)
{
	posix_add_safe(sb, path, strlen(path));
}

void posix_add_bytes(struct strbuf *sb, uint64_t n)
{
	static const char units[] = "KMGTPE";
	const char *unit = units;

	if (n < 1024 || n % 1024) {
		strbuf_addf(sb, "%" PRIu64 " %s", n, plural(n, "byte", "bytes"));
		return;
	}
	for (n /= 1024; n >= 1024 && n % 1024 == 0; n /= 1024)
		unit++;
	strbuf_addf(sb, "%" PRIu64 " %ciB", n, *unit);
}

static bool has_range(enum posix_op op)
{
	return op == POSIX_WRITE || op == POSIX_READ || op == POSIX_FALLOCATE || op == POSIX_COPY;
}

static void add_who(struct strbuf *sb, const struct posix_call *c)
{
	char who[32] = "-";

	if (c->pid && c->tid && c->tid != c->pid)
		snprintf(who, sizeof(who), "%" PRIu32 "/%" PRIu32, c->pid, c->tid);
	else if (c->pid || c->tid)
		snprintf(who, sizeof(who), "%" PRIu32, c->pid ? c->pid : c->tid);
	strbuf_addf(sb, " %-11s", who);
}

static void add_result(struct strbuf *sb, int64_t result)
{
	strbuf_addf(sb, " = %" PRId64, result);
	if (result < 0 && result > -4096) {
		const char *name = strerrorname_np((int)-result);

		strbuf_addf(sb, " (%s)", name ? name : "unknown error");
	}
}

/* Adds details that only some calls have. */
static void add_details(struct strbuf *sb, const struct posix_call *c, const struct posix_event *p)
{
	const char *arg = posix_arg_name(c->op);

	if (has_range(c->op))
		strbuf_addf(sb, " %" PRIu64 "+%" PRIu64, c->offset, c->len);
	else if (c->op == POSIX_TRUNCATE)
		strbuf_addf(sb, " to %" PRIu64, c->offset);
	if (c->path2) {
		strbuf_adds(sb, c->op == POSIX_COPY ? " from " : " -> ");
		add_path(sb, c->path2);
	} else if (p->name2) { /* the target of a symbolic link, or the name of an attribute */
		strbuf_adds(sb, c->op == POSIX_SYMLINK ? " -> " : " ");
		add_path(sb, p->name2);
	} else if (c->op == POSIX_SYMLINK && p->payload_len) {
		strbuf_adds(sb, " -> ");
		posix_add_safe(sb, p->payload, p->payload_len);
	}
	if (arg && p->arg)
		strbuf_addf(sb, " %s 0%" PRIo32, arg, p->arg);
}

void posix_add_line(struct strbuf *sb, const struct posix_call *c, const struct posix_event *p)
{
	strbuf_addf(sb, "%8" PRIu64, c->event);
	if (c->time_ns)
		strbuf_addf(sb, " %6" PRIu64 ".%06" PRIu64, c->time_ns / 1000000000,
			    c->time_ns / 1000 % 1000000);
	else
		strbuf_addf(sb, " %13s", "-");
	add_who(sb, c);
	strbuf_addf(sb, " %-9s ", posix_op_name(c->op));
	add_path(sb, c->path ? c->path : "-");
	add_details(sb, c, p);
	add_result(sb, c->result);
	if (c->op == POSIX_RENAME && c->file2 != POSIX_NO_FILE && c->result >= 0)
		strbuf_adds(sb, p->arg & 2 ? " exchanges" : " replaces");
	for (uint32_t flag = 1; flag & POSIX_FLAGS_ALL; flag <<= 1)
		if (c->flags & flag)
			strbuf_addf(sb, " %s", posix_flag_name(flag));
	if (c->occurrence && (c->op == POSIX_WRITE || posix_op_persists(c->op)))
		strbuf_addf(sb, " occurrence %" PRIu64, c->occurrence);
	if (c->fate == POSIX_FATE_UNSYNCED)
		strbuf_adds(sb, " never-synced");
	strbuf_addch(sb, '\n');
}

/* ---- JSON ---- */

static void json_flags(struct json *j, uint32_t flags)
{
	if (!flags)
		return;
	json_kv_array(j, "flags");
	for (uint32_t flag = 1; flag & POSIX_FLAGS_ALL; flag <<= 1)
		if (flags & flag)
			json_string(j, posix_flag_name(flag));
	json_end(j);
}

static const char *fate_word(enum posix_fate f)
{
	static const char *const words[] = { NULL, "synced", "unsynced", "removed" };

	return words[f];
}

void posix_json_call(struct json *j, const struct posix_call *c, const struct posix_event *p)
{
	const char *arg = posix_arg_name(p->op);

	json_kvs(j, KV("call", posix_op_name(p->op)), KV_SOME("number", p->number),
		 KV_SOME("path", c->path), KV_SOME("path2", c->path2), KV_SOME("ino", p->ino),
		 KV_SOME("ino2", p->ino2), KV_SOME("dir", p->dir), KV_SOME("dir2", p->dir2),
		 KV_SOME("name", p->name), KV_SOME("name2", p->name2), KV("offset", p->offset),
		 KV("len", p->len));
	if (arg)
		json_kvs(j, KV(arg, p->arg));
	json_kvs(j, KV_SOME("pid", p->pid), KV_SOME("tid", p->tid), KV("uid", p->uid),
		 KV("gid", p->gid), KV_SOME("duration_ns", p->duration_ns),
		 KV_SOME("occurrence", c->occurrence), KV_SOME("fate", fate_word(c->fate)));
	json_flags(j, p->flags);
}

/* ---- runs ---- */

static const struct posix_call *call_of(const struct posix_log *log,
					const struct posix_selection *sel, size_t i)
{
	return &log->calls.v[sel->v[i]];
}

/* The range of run lengths over all repetitions of a group. */
struct span {
	size_t least, most;
	uint64_t bytes;
};

static struct span span_of(const struct posix_runs *runs, const struct posix_group *g, size_t i)
{
	struct span s = { .least = SIZE_MAX };

	for (size_t r = 0; r < g->times; r++) {
		const struct posix_run *run = &runs->v[g->first + r * g->n + i];

		s.least = min(s.least, run->n);
		s.most = max(s.most, run->n);
		s.bytes += run->bytes;
	}
	return s;
}

/* Returns the only path of a group, to be named once; NULL if there are several. */
static const char *only_path(const struct posix_log *log, const struct posix_selection *sel,
			     const struct posix_runs *runs, const struct posix_group *g)
{
	const char *path = call_of(log, sel, runs->v[g->first].first)->path;

	for (size_t i = 0; i < g->n; i++) {
		const struct posix_call *c = call_of(log, sel, runs->v[g->first + i].first);

		if (c->path != path || c->path2)
			return NULL;
	}
	return path;
}

static void add_run(struct strbuf *out, const struct posix_call *c, struct span s, bool with_path)
{
	strbuf_adds(out, posix_op_name(c->op));
	if (with_path && c->path) {
		strbuf_addch(out, ' ');
		add_path(out, c->path);
		if (c->path2) {
			strbuf_adds(out, " -> ");
			add_path(out, c->path2);
		}
	}
	if (s.most > 1 && s.least == s.most)
		strbuf_addf(out, " x%zu", s.most);
	else if (s.most > 1)
		strbuf_addf(out, " x%zu to x%zu", s.least, s.most);
	if (c->result < 0) {
		const char *name = strerrorname_np((int)-c->result);

		strbuf_addf(out, " (failed: %s)", name ? name : "unknown error");
	}
	if (c->fate == POSIX_FATE_UNSYNCED)
		strbuf_adds(out, " (never synced)");
}

static void group_ends(const struct posix_log *log, const struct posix_selection *sel,
		       const struct posix_runs *runs, const struct posix_group *g, uint64_t *first,
		       uint64_t *last)
{
	const struct posix_run *end = &runs->v[g->first + g->n * g->times - 1];

	*first = call_of(log, sel, runs->v[g->first].first)->event;
	*last = call_of(log, sel, end->first + end->n - 1)->event;
}

static void text_group(const struct posix_log *log, const struct posix_selection *sel,
		       const struct posix_runs *runs, const struct posix_group *g,
		       struct strbuf *out)
{
	const char *path = only_path(log, sel, runs, g);
	uint64_t first, last, bytes = 0;
	char range[48];

	group_ends(log, sel, runs, g, &first, &last);
	if (first == last)
		snprintf(range, sizeof(range), "%" PRIu64, first);
	else
		snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, first, last);
	strbuf_addf(out, "%15s  ", range);
	if (path) {
		add_path(out, path);
		strbuf_adds(out, ": ");
	}
	for (size_t i = 0; i < g->n; i++) {
		struct span s = span_of(runs, g, i);

		strbuf_adds(out, i ? ", " : "");
		add_run(out, call_of(log, sel, runs->v[g->first + i].first), s, !path);
		bytes += s.bytes;
	}
	if (g->times > 1)
		strbuf_addf(out, "; %zu times", g->times);
	if (bytes) {
		strbuf_adds(out, "; ");
		posix_add_bytes(out, bytes);
	}
	strbuf_addch(out, '\n');
}

void posix_text_runs(const struct posix_log *log, const struct posix_selection *sel,
		     struct strbuf *out)
{
	auto_vec struct posix_runs runs = { 0 };
	auto_vec struct posix_groups groups = { 0 };

	posix_find_runs(log, sel, &runs);
	posix_find_groups(log, sel, &runs, &groups);
	for (size_t i = 0; i < groups.n; i++)
		text_group(log, sel, &runs, &groups.v[i], out);
}

static void json_run(const struct posix_call *c, struct span s, struct json *j)
{
	json_object(j);
	json_kvs(j, KV("call", posix_op_name(c->op)), KV_SOME("path", c->path),
		 KV_SOME("path2", c->path2), KV("least", s.least), KV("most", s.most),
		 KV("bytes", s.bytes), KV_SOME("fate", fate_word(c->fate)));
	if (c->result < 0) {
		json_key(j, "result");
		json_int(j, c->result);
	}
	json_end(j);
}

void posix_json_runs(const struct posix_log *log, const struct posix_selection *sel, struct json *j)
{
	auto_vec struct posix_runs runs = { 0 };
	auto_vec struct posix_groups groups = { 0 };
	uint64_t first, last;

	posix_find_runs(log, sel, &runs);
	posix_find_groups(log, sel, &runs, &groups);
	json_array(j);
	vec_each(g, &groups) {
		group_ends(log, sel, &runs, g, &first, &last);
		json_object(j);
		json_kvs(j, KV("first", first), KV("last", last), KV("times", g->times));
		json_kv_array(j, "runs");
		for (size_t k = 0; k < g->n; k++)
			json_run(call_of(log, sel, runs.v[g->first + k].first),
				 span_of(&runs, g, k), j);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}
