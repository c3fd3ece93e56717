/* SPDX-License-Identifier: MIT */
/* dir.c - makes, lists and marks the directories of runs; dir.h says what is in them. */
#include "case/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"
#include "base/number.h"
#include "case/given.h"

enum { MARK_MAX = 4096 };
static const char findings[] = "findings";

/* ---- runs ---- */

static int make_dir(const char *path, struct err *err)
{
	if ((fault_fails("dir.mkdir") || mkdir(path, 0755) < 0) && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", path);
	return 0;
}

char *case_find(const char *run, const char *pattern)
{
	auto_words names = { 0 };
	struct err ignored = ERR_INIT;

	if (below_exists(run, pattern))
		return xstrdup(pattern);
	if (below_list(run, NULL, &names, &ignored))
		return NULL;
	char *const *name = vec_find(i, &names, fnmatch(pattern, names.v[i], 0) == 0);
	return name ? xstrdup(*name) : NULL;
}

static int check_unused(const char *path, const char *const *names, struct err *err)
{
	if (below_exists(path, CASE_RUN))
		return err_set(err, -EEXIST,
			       "%s holds a run already: give --resume %s to go on with it, or "
			       "another -o",
			       path, path);
	for (; *names; names++) {
		auto_free char *there = case_find(path, *names);

		if (there)
			return err_set(err, -EEXIST, "%s/%s is there already: give another -o",
				       path, there);
	}
	return 0;
}

/* The directory of all runs is made once, and on disk before anything is kept in it. */
static int make_runs(struct err *err)
{
	bool there = access("outage-runs", F_OK) == 0;
	int rc = make_dir("outage-runs", err);
	auto_fd here = rc || there ? -1 : open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* One that may be written to, but not read, cannot be synced. */
	return rc || here < 0 ? rc : io_sync_fd(here, ".", err);
}

static int make_new(const char *stem, char **out, struct err *err)
{
	size_t n = min(strcspn(stem, ",: /"), (size_t)24);
	int rc = make_runs(err);

	for (unsigned i = 1; !rc && !*out; i++) {
		auto_free char *tried = xasprintf("outage-runs/%.*s-%04u", (int)n, stem, i);

		if (!fault_fails("dir.mkdir") && mkdir(tried, 0755) == 0)
			*out = steal(tried);
		else if (errno != EEXIST)
			rc = err_set(err, -errno, "cannot make the directory %s: %m", tried);
	}
	return rc;
}

int case_create(const char *path, const char *stem, const char *const *names, char **out,
		struct err *err)
{
	auto_free char *run = path ? xstrdup(path) : NULL;
	int rc = path ? check_unused(path, names, err) : make_new(stem, &run, err);

	if (!rc && path)
		rc = make_dir(path, err);
	if (!rc)
		rc = below_make_dir(run, findings, err);
	if (!rc)
		rc = case_sweep(run, err);
	if (!rc)
		*out = steal(run);
	return rc;
}

bool case_discard(const char *run, const char *const *names)
{
	auto_fd dir = open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err ignored = ERR_INIT;

	unlinkat(dir, CASE_RUN, 0);
	for (; *names; names++)
		if (below_remove(run, *names, &ignored))
			log_debug("%s", ignored.msg);
	unlinkat(dir, findings, AT_REMOVEDIR); /* if it is empty */
	return rmdir(run) == 0;
}

int case_sweep(const char *run, struct err *err)
{
	static const char *const dirs[] = { NULL, findings, "shrunk", "whole" };
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !rc; i++)
		rc = below_sweep(run, dirs[i], err);
	return rc;
}

int case_list(const char *run, struct words *out, struct err *err)
{
	auto_words names = { 0 };
	struct err why = ERR_INIT;
	int rc = below_exists(run, findings) || !below_exists(run, CASE_RUN)
			 ? below_list(run, findings, &names, &why)
			 : 0;

	if (rc)
		return err_set(err, rc, "%s is not the directory of a run: %s", run, why.msg);
	for (size_t i = 0; i < names.n; i++) {
		auto_free char *file = xasprintf("%s/%s/" CASE_FILE, findings, names.v[i]);

		/* Other programs may have put files there that are no findings. */
		if (below_exists(run, file))
			vec_push(out, xasprintf("%s/%s/%s", run, findings, names.v[i]));
	}
	return 0;
}

/* Removes `suffix` from the type that a record names. */
static int read_kind(const char *dir, const char *name, const char *suffix, struct record_head *out,
		     struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	int rc = record_head_of(dir, name, out, err);
	size_t len = rc ? 0 : strlen(out->type), more = strlen(suffix);

	if (rc)
		return rc;
	if (len <= more || !streq(out->type + len - more, suffix))
		return err_set(err, -EINVAL, "%s is of another kind", shown);
	out->type[len - more] = '\0';
	return 0;
}

bool case_is_one(const char *dir)
{
	auto_free char *at = below_case(dir);

	return below_exists(at, CASE_FILE) && !below_exists(dir, findings);
}

int case_hold(const char *dir, struct err *err)
{
	auto_free char *at = below_case(dir), *run = below_run_of(dir);
	bool in_run = !streq(at, dir), one = case_is_one(dir);
	struct err none = ERR_INIT;
	int rc = one && in_run ? 0 : below_hold(dir, err);

	if (rc || !(one || in_run))
		return rc;
	rc = below_hold(run, &none);
	/* A finding may be kept alone. */
	return rc && in_run ? err_set(err, rc, "%s", none.msg) : 0;
}

static int read_head(const char *dir, struct record_head *out, struct err *err)
{
	auto_free char *at = below_case(dir);

	if (case_is_one(dir))
		return read_kind(at, CASE_FILE, "-case", out, err);
	if (below_exists(dir, CASE_RUN))
		return read_kind(dir, CASE_RUN, "-run", out, err);
	return err_set(
		err, -ENOENT,
		"%s is not the directory of a run, nor of a finding: it has no file " CASE_RUN
		", and none " CASE_FILE,
		dir);
}

int case_kind_of(const char *dir, char **out, struct err *err)
{
	auto_record_head head = { 0 };
	int rc = read_head(dir, &head, err);

	if (!rc)
		*out = steal(head.type);
	return rc;
}

int case_version_of(const char *dir, char **out, struct err *err)
{
	auto_record_head head = { 0 };
	int rc = read_head(dir, &head, err);

	if (!rc)
		*out = steal(head.version);
	return rc;
}

bool case_is(const char *dir, const char *kind)
{
	auto_free char *is = NULL;
	struct err ignored = ERR_INIT;

	return !case_kind_of(dir, &is, &ignored) && streq(is, kind);
}

bool case_has_ended(const char *run)
{
	return below_exists(run, CASE_SUMMARY); /* reading it refuses what is no file */
}

/* ---- marks ---- */

int case_read_mark(const char *dir, const char *name, struct strbuf *out, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = below_has_file(dir, name) ? io_slurp_file(dir, name, MARK_MAX, out, &why) : 0;

	if (!rc)
		return 0;
	strbuf_clear(out);
	/* A file that is too large is no mark. */
	return rc == -EFBIG ? 0 : err_set(err, rc, "%s", why.msg);
}

enum { ABOVE_MAX = 2, NAMES_MAX = 32 };

/* `record` is the file that comes before the others; `text` NULL: what it holds. */
static int mark_or_verify(const char *dir, const struct case_files *covered, const char *record,
			  const struct strbuf *above, size_t n, const struct strbuf *text,
			  bool verify, struct err *err)
{
	static const char *const names[ABOVE_MAX] = { "above 1", "above 2" };
	struct trust_file files[ABOVE_MAX + 1 + NAMES_MAX];
	size_t count = 0;

	assert(n <= ABOVE_MAX && (n || streq(record, CASE_RUN))); /* D3 */
	for (; count < n; count++)
		files[count] = (struct trust_file){ names[count], strbuf_str(&above[count]),
						    above[count].len };
	files[count++] =
		(struct trust_file){ record, text ? strbuf_str(text) : NULL, text ? text->len : 0 };
	for (const char *const *name = covered->names; *name; name++) {
		assert(count < ARRAY_SIZE(files));
		/* The mark is not covered, the record by its text alone: it is not there yet. D2 */
		assert(!streq(*name, record) && !streq(*name, TRUST_MARK));
		files[count++] = (struct trust_file){ .name = *name };
	}
	assert(streq(files[n].name, record) && (verify || !text || text->len)); /* D2 */
	const struct trust_set set = { .kind = covered->kind, .files = files, .n = count };
	return verify ? trust_verify(dir, &set, err) : trust_mark(dir, &set, err);
}

int case_finish(const char *dir, const struct case_files *files, const struct strbuf *above,
		size_t n, const struct strbuf *text, bool marked, struct err *err)
{
	int rc = marked ? mark_or_verify(dir, files, CASE_FILE, above, n, text, false, err) : 0;

	return rc ? rc : io_write_file(dir, CASE_FILE, strbuf_str(text), text->len, 0, err);
}

int case_verify(const char *dir, const struct case_files *files, const struct strbuf *above,
		size_t n, struct err *why)
{
	return mark_or_verify(dir, files, CASE_FILE, above, n, NULL, true, why);
}

void case_ready_to_mark(struct err *why)
{
	if (trust_ready(why))
		log_debug("%s", why->msg);
}

/* ---- plans ---- */

int case_plan_save(const struct case_plan *p, const char *run, const void *plan, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	record_print(p->type, plan, &text);
	/* The mark comes first: where RUN/run is, its owner can go on. */
	int rc = mark_or_verify(run, &p->files, CASE_RUN, NULL, 0, &text, false, err);
	return rc ? rc : io_write_file(run, CASE_RUN, text.buf, text.len, 0, err);
}

int case_plan_sync(const struct case_plan *p, const char *run, struct err *err)
{
	const char *names[NAMES_MAX + 2] = { TRUST_MARK, CASE_RUN };

	for (size_t i = 0; p->files.names[i]; i++) {
		assert(i + 3 < ARRAY_SIZE(names));
		names[i + 2] = p->files.names[i];
	}
	return io_sync_run(run, names, err);
}

int case_plan_parse(const struct case_plan *p, const char *text, size_t len, const char *source,
		    void *out, struct err *err)
{
	uint64_t given = 0;

	memset(out, 0, p->type->size);
	int rc = record_parse(p->type, text, len, source, out, &given, err);
	if (rc)
		return rc;
	if (p->given)
		memcpy((char *)out + p->given, &given, sizeof(given));
	if (!p->check(out, err))
		return 0;
	record_release(p->type, out);
	return err_context(err, "%s", source);
}

int case_plan_load(const struct case_plan *p, const char *run, void *out, struct err *err)
{
	auto_free char *shown = below_shown(run, CASE_RUN);
	auto_strbuf text = STRBUF_INIT;

	if (!below_exists(run, CASE_RUN))
		return err_set(err, -ENOENT, "%s is not the directory of a run: it has no file run",
			       run);
	int rc = io_slurp_file(run, CASE_RUN, RECORD_MAX, &text, err);
	memset(out, 0, p->type->size);
	return rc ? rc : case_plan_parse(p, strbuf_str(&text), text.len, shown, out, err);
}

int case_plan_resume(const struct case_plan *p, const char *run, const char *output,
		     const void *given, void *out, struct err *err)
{
	uint64_t fields;
	int rc = case_hold(run, err);

	assert(p->given);
	memcpy(&fields, (const char *)given + p->given, sizeof(fields));
	if (!rc && output)
		rc = err_set(err, -EINVAL, "--resume goes on in %s: leave -o out", run);
	if (!rc)
		rc = case_plan_load(p, run, out, err);
	return rc ? rc : given_agree(p->type, out, given, fields, err);
}

int case_plan_verify(const struct case_plan *p, const char *run, struct err *why)
{
	return mark_or_verify(run, &p->files, CASE_RUN, NULL, 0, NULL, true, why);
}

/* ---- files ---- */

void case_write(struct case_writer *w, const char *name, struct strbuf *text)
{
	assert(!streq(name, CASE_FILE) && !streq(name, TRUST_MARK)); /* D2 */
	if (!w->rc)
		w->rc = io_write_file(w->dir, name, strbuf_str(text), text->len, 0, w->err);
	strbuf_clear(text);
}

void case_write_any(struct case_writer *w, const char *name, const char *text)
{
	assert(!streq(name, CASE_FILE) && !streq(name, TRUST_MARK)); /* D2 */
	if (!w->rc && text && *text)
		w->rc = io_write_file(w->dir, name, text, strlen(text), 0, w->err);
}

/* ---- runs whose findings need all that was recorded ---- */

/* "rN:" at the beginning; its length, or 0. */
static size_t nested_number(const char *state, unsigned long long *n)
{
	int len = 0;

	return sscanf(state, "r%llu:%n", n, &len) == 1 && len ? (size_t)len : 0;
}

char *case_nested(const char *run, const char *state)
{
	unsigned long long n;

	return nested_number(state, &n) ? xasprintf("%s" BELOW_MARK CASE_NESTED "/%llu", run, n)
					: NULL;
}

const char *case_state_within(const char *state)
{
	unsigned long long n;

	return state + nested_number(state, &n);
}

int case_run_mark(const struct case_kind *k, const char *run, struct err *err)
{
	return trust_mark(run, &k->run, err);
}

int case_summary_save(const struct case_kind *k, const char *run, const void *summary,
		      struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	record_print(k->summary, summary, &text);
	return io_keep_file(run, CASE_SUMMARY, text.buf, text.len, err);
}

/* The marks of the run, and of the nested run that the state is of (D3). */
struct above {
	struct strbuf marks[2];
};

static void above_release(struct above *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->marks); i++)
		strbuf_release(&a->marks[i]);
}

static int read_above(const char *run, const char *nested, struct above *out, struct err *err)
{
	int rc = case_read_mark(run, TRUST_MARK, &out->marks[0], err);

	return rc || !nested ? rc : case_read_mark(nested, TRUST_MARK, &out->marks[1], err);
}

static struct case_files files_of(const struct case_kind *k)
{
	static const char *const names[] = { CASE_SAID, NULL };

	return (struct case_files){ k->finding_mark, names };
}

/* Where links cannot be made, the run's own is read. */
static void link_trace(const char *run, const struct io_newdir *to)
{
	struct err ignored = ERR_INIT;
	auto_fd from = below_open_dir(run, NULL, &ignored);

	if (from >= 0 && !fault_fails("dir.link") && linkat(from, "trace", to->fd, "trace", 0) < 0)
		errno = 0;
}

static int put(const struct case_kind *k, const char *run, const char *name, const void *finding,
	       struct err *err)
{
	const struct case_finding *f = finding;
	const struct case_files files = files_of(k);
	auto_free char *nested = case_nested(run, f->state);
	auto_newdir dir = IO_NEWDIR_INIT;
	auto_strbuf text = STRBUF_INIT;
	auto_call(above_release) struct above above = { 0 };
	int rc = io_newdir_open(run, name, &dir, err);

	/* This process alone knows the directory of a finding that it makes. */
	assert(rc || !below_has_file(dir.path, CASE_FILE)); /* D2 */
	record_print(k->finding, finding, &text);
	if (!rc)
		rc = io_write_file(dir.path, CASE_SAID, strbuf_str(&f->said), f->said.len, 0, err);
	if (!rc)
		rc = read_above(run, nested, &above, err);
	if (!rc)
		rc = case_finish(dir.path, &files, above.marks, ARRAY_SIZE(above.marks), &text,
				 true, err);
	if (rc)
		return rc;
	if (k->links_trace)
		link_trace(nested ? nested : run, &dir);
	return io_newdir_commit(&dir, err); /* D1 */
}

static char *number_name(uint64_t n)
{
	return xasprintf("%s/%llu", findings, llu(n));
}

int case_put_number(const struct case_kind *k, const char *run, uint64_t n, const void *finding,
		    struct err *err)
{
	auto_free char *name = number_name(n);
	int rc = below_make_dir(run, findings, err);

	return rc ? rc : put(k, run, name, finding, err);
}

/* Within a run, no link is followed; and what a killed process left there is removed. */
static int make_above(const char *dir, char *name, bool in_run, struct err *err)
{
	if (!in_run)
		return mkdir(dir, 0777) < 0 && errno != EEXIST
			       ? err_set(err, -errno, "cannot make the directory %s: %m", dir)
			       : 0;
	*strchr(name, '/') = '\0';
	int rc = below_make_dir(dir, name, err);
	return rc ? rc : below_sweep(dir, name, err);
}

/* Both may be named in several ways. */
static bool is_same_dir(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int case_place(const char *path, const char *of, bool force, struct err *err)
{
	auto_free char *at = below_case(path), *dir = NULL, *name = NULL;
	bool in_run = below_split(path, &dir, &name);
	auto_free char *above = in_run ? xstrdup(dir) : xasprintf("%s/..", dir);
	struct stat st;

	/* The finding made before may have taken half an hour. */
	if (!force && below_exists(at, CASE_FILE))
		return err_set(err, -EEXIST,
			       "%s holds a finding already: give --force to replace it, or another "
			       "-o",
			       path);
	/* The place would be replaced with all it holds. */
	if (of && !in_run && lstat(path, &st) == 0)
		return err_set(err, -EEXIST, "%s is there already: leave out -o", path);
	auto_free char *run = of ? below_run_of(of) : NULL;
	if (run && !is_same_dir(above, run))
		return err_set(err, -EINVAL,
			       "%s cannot be the place of a finding that needs its run, %s: leave "
			       "out -o",
			       path, run);
	return make_above(dir, name, in_run, err);
}

int case_put_at(const struct case_kind *k, const char *path, const void *finding, struct err *err)
{
	auto_free char *dir = NULL, *name = NULL;

	below_split(path, &dir, &name);
	return put(k, dir, name, finding, err);
}

int case_keep(struct case_keeper *k, size_t nested, uint64_t n, const void *finding,
	      struct err *err)
{
	int rc = k->synced > nested ? 0 : io_sync_run(k->run, k->kind->synced, err);

	if (rc)
		return rc;
	k->synced = 1 + nested;
	return case_put_number(k->kind, k->run, n, finding, err);
}

int case_remove_number(const char *run, uint64_t n, struct err *err)
{
	auto_free char *name = number_name(n);

	return below_remove_whole(run, name, err);
}

uint64_t case_next_number(const struct words *list)
{
	uint64_t next = 0, n;

	for (size_t i = 0; i < list->n; i++)
		if (!number_parse(strrchr(list->v[i], '/') + 1, &n))
			next = max(next, n + 1);
	return next;
}

/* The names in a directory of findings that are numbers. */
static int list_numbers(const char *run, const char *dir, struct words *out, struct err *err)
{
	auto_words names = { 0 };
	uint64_t number;
	int rc = below_exists(run, dir) ? below_list(run, dir, &names, err) : 0;

	for (size_t i = 0; !rc && i < names.n; i++)
		if (!number_parse(names.v[i], &number))
			vec_push(out, xstrdup(names.v[i]));
	return rc;
}

int case_remove_from(const char *run, uint64_t n, struct err *err)
{
	auto_words names = { 0 };
	uint64_t number;
	int rc = list_numbers(run, findings, &names, err);

	for (size_t i = 0; !rc && i < names.n; i++)
		if (!number_parse(names.v[i], &number) && number >= n)
			rc = case_remove_number(run, number, err);
	return rc;
}

/* ---- findings that are searched anew ---- */

static const char before_findings[] = CASE_BEFORE "/findings", nested_runs[] = CASE_NESTED;
static const char before_nested[] = CASE_BEFORE "/" CASE_NESTED;
/* Files with these names say that all is set aside, and that it is moved back. */
static const char aside[] = CASE_BEFORE "/whole", moving_back[] = CASE_BEFORE "/back";

static int move_dir(const char *run, const char *from, const char *to, struct err *err)
{
	const char *old, *new;
	auto_fd a = below_open_parent(run, from, &old, err);
	auto_fd b = a < 0 ? -1 : below_open_parent(run, to, &new, err);

	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	if (fault_fails("dir.rename") || renameat(a, old, b, new) < 0)
		return err_set(err, -errno, "cannot move %s/%s to %s: %m", run, from, to);
	int rc = io_sync_fd(b, run, err);
	return rc ? rc : io_sync_fd(a, run, err);
}

static int move_all(const char *run, const char *from, const char *to, struct err *err)
{
	auto_words names = { 0 };
	int rc = list_numbers(run, from, &names, err);

	for (size_t i = 0; !rc && i < names.n; i++) {
		auto_free char *a = xasprintf("%s/%s", from, names.v[i]);
		auto_free char *b = xasprintf("%s/%s", to, names.v[i]);

		rc = move_dir(run, a, b, err);
	}
	return rc;
}

int case_set_aside(const char *run, struct err *err)
{
	int rc = below_make_dir(run, CASE_BEFORE, err);

	if (!rc)
		rc = below_make_dir(run, before_findings, err);
	if (!rc)
		rc = move_all(run, findings, before_findings, err);
	if (!rc && below_exists(run, nested_runs))
		rc = move_dir(run, nested_runs, before_nested, err);
	return rc ? rc : io_keep_file(run, aside, "", 0, err);
}

uint64_t case_aside(const char *run)
{
	auto_words names = { 0 };
	struct err none = ERR_INIT;

	return list_numbers(run, before_findings, &names, &none) ? 0 : names.n;
}

static int move_back(const char *run, struct err *err)
{
	int rc = io_keep_file(run, moving_back, "", 0, err);

	if (!rc)
		rc = move_all(run, before_findings, findings, err);
	if (!rc && below_exists(run, before_nested))
		rc = move_dir(run, before_nested, nested_runs, err);
	return rc ? rc : below_remove(run, CASE_BEFORE, err);
}

int case_settle(const char *run, bool end, struct err *err)
{
	auto_words then = { 0 }, now = { 0 };

	if (!below_exists(run, CASE_BEFORE))
		return 0;
	if (below_exists(run, moving_back) || !below_exists(run, aside))
		return move_back(run, err);
	int rc = list_numbers(run, before_findings, &then, err);
	if (!rc)
		rc = list_numbers(run, findings, &now, err);
	if (rc || end || now.n >= then.n)
		return rc ? rc : below_remove_whole(run, CASE_BEFORE, err);
	rc = case_remove_from(run, 0, err);
	if (!rc && below_exists(run, nested_runs))
		rc = below_remove(run, nested_runs, err);
	return rc ? rc : move_back(run, err);
}

int case_move_number(const char *run, uint64_t n, uint64_t to, struct err *err)
{
	auto_free char *from = xasprintf("%llu", llu(n));
	auto_free char *name = xasprintf("%llu", llu(to));
	auto_free char *dir = xasprintf("%s" BELOW_MARK "%s", run, findings);
	auto_fd fd = below_open_dir(run, findings, err);

	assert(n != to); /* D1 */
	if (fd < 0)
		return fd;
	if (below_exists(dir, name)) {
		int rc = io_exchange_below(dir, name, from, err);

		return rc ? rc : case_remove_number(run, n, err);
	}
	if (fault_fails("dir.rename") || renameat(fd, from, fd, name) < 0)
		return err_set(err, -errno, "cannot make %s/%s/%s: %m", run, findings, name);
	return io_sync_fd(fd, dir, err);
}

int case_get(const struct case_kind *k, const char *dir, void *finding, struct err *err)
{
	auto_free char *at = below_case(dir);
	struct case_finding *f = finding;

	memset(finding, 0, k->finding->size);
	int rc = record_load(k->finding, at, CASE_FILE, finding, err);
	if (!rc && below_exists(at, CASE_SAID))
		rc = io_slurp_file(at, CASE_SAID, RECORD_MAX, &f->said, err);
	if (rc)
		case_finding_release(k, finding);
	else
		f->dir = xstrdup(dir);
	return rc;
}

void case_finding_release(const struct case_kind *k, void *finding)
{
	struct case_finding *f = finding;

	record_release(k->finding, finding);
	strbuf_release(&f->said);
	free(f->dir);
	memset(finding, 0, k->finding->size);
}

static int verify_all(const struct case_kind *k, const char *run, const struct case_finding *f,
		      struct err *why)
{
	const struct case_files files = files_of(k);
	auto_free char *nested = case_nested(run, f->state), *at = below_case(f->dir);
	auto_call(above_release) struct above above = { 0 };
	int rc = trust_verify(run, &k->run, why);

	if (!rc && nested)
		rc = trust_verify(nested, &k->run, why);
	if (!rc)
		rc = read_above(run, nested, &above, why);
	return rc ? rc : case_verify(at, &files, above.marks, ARRAY_SIZE(above.marks), why);
}

static int refuse(const struct case_kind *k, const char *run, const void *plan,
		  const struct err *why, struct err *err)
{
	auto_strbuf would = STRBUF_INIT;

	record_would(k->plan, plan, &would);
	return trust_refuse(run, CASE_RUN, why, &would, "", err);
}

int case_trust(const struct case_kind *k, const char *run, const void *finding, const void *plan,
	       bool trust, bool *ours, struct err *err)
{
	const struct case_finding *f = finding;
	auto_free char *shown = below_run_of(f->dir);
	struct err why = ERR_INIT;

	*ours = trust || !verify_all(k, run, finding, &why);
	return *ours ? 0 : refuse(k, shown, plan, &why, err);
}

int case_trust_run(const struct case_kind *k, const char *run, const void *plan, bool trust,
		   bool *ours, struct err *err)
{
	struct err why = ERR_INIT;

	*ours = trust || !trust_verify(run, &k->run, &why);
	return *ours ? 0 : refuse(k, run, plan, &why, err);
}
