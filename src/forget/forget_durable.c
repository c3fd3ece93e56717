/* SPDX-License-Identifier: MIT */
/*
 * forget_durable.c - commands that make something durable. Their answers are true: a file reported
 * as durable survives a power cut, with its name; otherwise the answer says what is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "forget/forget_call.h"

static bool is_there(struct forget *f, const char *path)
{
	int rc;
	struct node *n = node_of_path(f, path, &rc);

	node_unref(f, n);
	return n;
}

/* Checks that a named file exists, and has the listed pages. */
static int check_meant(struct forget *f, const struct fault *some, struct err *err)
{
	const struct fault_numbers *list = &some->page_list;
	const char *path = some->file.text;

	if (some->file.kind == PATH_EXACT && (path[0] == '/' || !is_there(f, path)))
		return err_set(err, -ENOENT, "there is no file %s in the mount; nothing is done",
			       path);
	if (some->pages != FAULT_PAGES_LISTED || !list->n)
		return 0;
	uint64_t n = forget_pages_meant(f, some);
	if (vec_last(list) <= n)
		return 0;
	return err_set(err, -ERANGE,
		       "there is no page %" PRIu64 ": %s has %" PRIu64
		       " unsynced %s, counted from 1; nothing is done",
		       vec_last(list), path ? path : "no file", n, plural(n, "page", "pages"));
}

static int add_failed(void *ctx, const struct pagefile_risk *risk)
{
	*(uint64_t *)ctx += risk->failed ? risk->len : 0;
	return 0;
}

/* Fails if a failed sync left data that counts as clean: no sync will write that data. */
static int check_failed(struct forget *f, const struct fault *some, struct err *err)
{
	auto_vec struct node_walk nodes = forget_file_dirty(f);
	int rc = 0;

	for (struct node *n; (n = node_next(&nodes));) {
		auto_strbuf path = STRBUF_INIT;
		uint64_t bytes = 0;

		auto_data(f, n);
		if (n->file && n->file->pf && n->names[NAME_LIVE])
			pagefile_risks(n->file->pf, add_failed, &bytes);
		node_path(f, n, NULL, &path);
		if (!rc && bytes && (!some || inject_path_matches(&some->file, strbuf_str(&path))))
			rc = err_set(err, -EIO,
				     "not everything is durable: a sync of %s failed, and what it "
				     "did not write (%" PRIu64
				     " bytes) is taken for written; writing it again helps",
				     strbuf_str(&path), bytes);
	}
	return rc;
}

/* ---- names and attributes that wait ---- */

struct waiting_count {
	struct forget *f;
	const struct path_match *file;
	size_t n;
};

/* True if a durable file at `file` needs the name `path`: its own, or one above it. */
static bool is_needed(const struct path_match *file, const char *path)
{
	size_t len = strlen(path);

	if (inject_path_matches(file, path))
		return true;
	return file->kind == PATH_EXACT && strncmp(file->text, path, len) == 0 &&
	       file->text[len] == '/';
}

static int count_waiting(void *ctx, const struct pending_op *op)
{
	struct waiting_count *w = ctx;

	w->n += forget_waits_for(w->f, op, w->file, is_needed);
	return 0;
}

/* Counts changes of names and attributes that a power cut could still take from `file`. */
static size_t waiting_of(struct forget *f, const struct path_match *file)
{
	struct waiting_count w = { .f = f, .file = file };

	if (!f->log)
		return 0;
	auto_owned(&f->log_lock);
	pending_each(f->log, count_waiting, &w);
	return w.n;
}

/* Does the same as fsync of the file or directory. */
static int sync_path(struct forget *f, const char *path)
{
	int rc;
	struct node *n = node_of_path(f, path, &rc);

	rc = n ? forget_sync_node(f, n, false) : 0;
	node_unref(f, n);
	return rc;
}

/* Syncs the file, and the directories above as far as the file needs them. */
static int sync_with_names(struct forget *f, const struct path_match *file)
{
	auto_free char *path = xstrdup(file->text);
	int rc = sync_path(f, path);

	while (!rc && waiting_of(f, file)) {
		char *slash = strrchr(path, '/');

		if (!slash) {
			rc = sync_path(f, ".");
			break;
		}
		*slash = '\0';
		rc = sync_path(f, path);
	}
	return rc;
}

/* ---- searching the tree ---- */

enum { LOOK_MAX = 50000 };

struct looking {
	const struct path_match *m;
	struct vec_of(char *) dirs; /* paths of directories to be read */
	size_t seen;
};

static bool look_in(struct looking *l, struct forget *f, const char *dir)
{
	struct dir_entries all = { 0 };
	bool found = false;
	int rc;
	struct node *n = node_of_path(f, dir, &rc);

	if (!n || !S_ISDIR(n->type)) {
		node_unref(f, n);
		return false;
	}
	owned_take(&f->tree.lock);
	rc = node_entries(f, n, &all);
	owned_give(&f->tree.lock);
	node_unref(f, n);
	for (size_t i = 0; !rc && !found && i < all.n; i++) {
		char *path = xasprintf("%s%s%s", dir, *dir ? "/" : "", all.v[i].name);

		l->seen++;
		found = inject_path_matches(l->m, path);
		if (S_ISDIR(all.v[i].type))
			vec_push(&l->dirs, path);
		else
			free(path);
	}
	dir_entries_release(&all);
	return found;
}

bool forget_root_has_match(struct forget *f, const struct path_match *m)
{
	struct looking l = { .m = m };
	bool found;

	if (m->kind == PATH_ANY || inject_path_matches(m, ""))
		return true;
	if (m->kind == PATH_EXACT)
		return is_there(f, m->text);
	found = look_in(&l, f, "");
	while (!found && l.dirs.n && l.seen < LOOK_MAX) {
		auto_free char *dir = l.dirs.v[--l.dirs.n];

		found = look_in(&l, f, dir);
	}
	found = found || l.seen >= LOOK_MAX; /* too many to search: count as found */
	for (size_t i = 0; i < l.dirs.n; i++)
		free(l.dirs.v[i]);
	vec_release(&l.dirs);
	return found;
}

/* ---- the commands ---- */

static int check_root(struct forget *f, struct err *err)
{
	if (f->dead)
		return err_set(err, -ENOTCONN, "the mount has crashed already");
	if (!forget_root_is_there(f))
		return err_set(err, -ENOENT, "ROOT %s was taken away; nothing can be made durable",
			       f->root_path);
	return 0;
}

static int not_durable(int rc, struct err *err)
{
	return err_set(err, rc, "not everything could be made durable: %s", strerror(-rc));
}

int forget_durable_all(struct forget *f, struct strbuf *text, struct strbuf *json, struct err *err)
{
	int rc;

	pthread_rwlock_rdlock(&f->gate);
	rc = check_root(f, err);
	if (!rc) {
		rc = forget_sync_all(f);
		rc = rc ? not_durable(rc, err) : check_failed(f, NULL, err);
	}
	pthread_rwlock_unlock(&f->gate);
	if (rc)
		return rc;
	forget_trace_note(f, "everything became durable by a command");
	forget_report_say(text, json, "everything is durable");
	return 0;
}

static int some_inside(struct forget *f, const struct fault *some, size_t *waiting, struct err *err)
{
	/* sync-pages concerns only data, and so does a part of the pages. */
	bool whole = some->pages == FAULT_PAGES_ALL && !some->others;
	int rc = check_root(f, err);

	if (!rc)
		rc = check_meant(f, some, err);
	if (rc)
		return rc;
	if (whole && some->file.kind == PATH_EXACT)
		rc = sync_with_names(f, &some->file);
	else
		rc = forget_sync_pages(f, NULL, some);
	if (rc)
		return not_durable(rc, err);
	*waiting = waiting_of(f, &some->file);
	return some->pages == FAULT_PAGES_ALL ? check_failed(f, some, err) : 0;
}

static void say_some(struct strbuf *text, struct strbuf *json, size_t waiting, bool matches)
{
	auto_strbuf said = STRBUF_INIT;
	struct json j;

	if (!matches)
		strbuf_adds(&said, "nothing in the mount matches the path; nothing is done");
	else if (waiting)
		strbuf_addf(&said,
			    "the data that was asked for is durable, but %zu %s of names and "
			    "attributes %s not, and it may be lost with them; 'sync' makes "
			    "everything durable",
			    waiting, plural(waiting, "change", "changes"),
			    plural(waiting, "is", "are"));
	else
		strbuf_adds(&said, "all that was asked for is durable");
	if (text)
		strbuf_addf(text, "%s\n", strbuf_str(&said));
	if (!json)
		return;
	json_init(&j, json, false);
	json_object_of(&j, KV("done", strbuf_str(&said)), KV("matches", matches),
		       KV("waiting", waiting));
}

int forget_durable_some(struct forget *f, const struct fault *some, struct strbuf *text,
			struct strbuf *json, struct err *err)
{
	bool matches = forget_root_has_match(f, &some->file);
	size_t waiting = 0;
	int rc;

	pthread_rwlock_rdlock(&f->gate);
	rc = some_inside(f, some, &waiting, err);
	pthread_rwlock_unlock(&f->gate);
	if (rc)
		return rc;
	if (matches || some->others)
		forget_trace_note(f, "something became durable by a command");
	say_some(text, json, waiting, matches);
	return 0;
}
