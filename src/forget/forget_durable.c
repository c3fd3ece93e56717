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
#include "base/names_in.h"
#include "forget/forget_impl.h"

/* Checks that a named file exists, and has the listed pages. */
static int check_meant(struct forget *f, const struct fault *some, struct err *err)
{
	const struct fault_numbers *list = &some->page_list;
	const char *path = some->file.text;
	struct stat st;

	if (some->file.kind == PATH_EXACT &&
	    (path[0] == '/' || fstatat(f->root_fd, path, &st, AT_SYMLINK_NOFOLLOW)))
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
	auto_vec struct node_walk nodes = forget_data_dirty_nodes(f);
	int rc = 0;

	for (struct node *n; (n = node_next(&nodes));) {
		auto_strbuf path = STRBUF_INIT;
		uint64_t bytes = 0;

		pthread_mutex_lock(&n->lock);
		if (n->pf && !n->gone)
			pagefile_risks(n->pf, add_failed, &bytes);
		pthread_mutex_unlock(&n->lock);
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
	auto_names(f);
	pending_each(f->log, count_waiting, &w);
	return w.n;
}

static struct node *node_at_path(struct forget *f, const char *path)
{
	auto_fd fd = openat(f->root_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? node_find(f, st.st_dev, st.st_ino) : NULL;
}

/* Does the same as fsync of the file or directory. */
static int sync_path(struct forget *f, const char *path)
{
	struct node *n = node_at_path(f, path);
	int rc = 0;

	if (n && S_ISDIR(n->type))
		rc = forget_dir_sync_node(f, n, false);
	else if (n)
		rc = forget_data_sync_node(f, n, false);
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

/* ---- searching ROOT ---- */

enum { LOOK_MAX = 50000 };

struct looking {
	const struct path_match *m;
	struct vec_of(char *) dirs; /* paths of directories to be read */
	size_t seen;
};

static bool look_in(struct looking *l, int root, const char *dir)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_names_in d = names_of(openat(root, *dir ? dir : ".", flags));
	bool found = false;

	for (struct dirent *e; !found && (e = names_next(d));) {
		if (!*dir && streq(e->d_name, STASH_NAME))
			continue;
		char *path = xasprintf("%s%s%s", dir, *dir ? "/" : "", e->d_name);

		l->seen++;
		found = inject_path_matches(l->m, path);
		if (e->d_type == DT_DIR)
			vec_push(&l->dirs, path);
		else
			free(path);
	}
	return found;
}

bool forget_root_has_match(struct forget *f, const struct path_match *m)
{
	struct looking l = { .m = m };
	struct stat st;
	bool found;

	if (m->kind == PATH_ANY || inject_path_matches(m, ""))
		return true;
	if (m->kind == PATH_EXACT)
		return !fstatat(f->root_fd, m->text, &st, AT_SYMLINK_NOFOLLOW);
	found = look_in(&l, f->root_fd, "");
	while (!found && l.dirs.n && l.seen < LOOK_MAX) {
		auto_free char *dir = l.dirs.v[--l.dirs.n];

		found = look_in(&l, f->root_fd, dir);
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
