/* SPDX-License-Identifier: MIT */
/* progress.c - appends records to RUN/progress, and reads them back when a run goes on. */
#include "run/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/number.h"
#include "run/plan.h"

enum { SYNC_MS = 5000, LOCK_TRIES = 100, LINE_LIMIT = 4096, CLUSTERS_LIMIT = 1 << 16 };
static const char header[] = "outage-progress 2\n";

/* ---- what is done ---- */

/* The first span that ends after `number`. */
static size_t find_span(const struct progress *p, uint64_t number)
{
	return first_where(i, p->spans.n, p->spans.v[i].to > number);
}

bool progress_has(const struct progress *p, uint64_t number)
{
	size_t i = find_span(p, number);

	return i < p->spans.n && p->spans.v[i].from <= number;
}

static void add_number(struct progress *p, uint64_t number)
{
	size_t i = find_span(p, number);
	bool before = i > 0 && p->spans.v[i - 1].to == number;
	bool after = i < p->spans.n && p->spans.v[i].from == number + 1;

	assert(!progress_has(p, number));
	if (before)
		p->spans.v[i - 1].to++;
	if (after)
		p->spans.v[i].from--;
	if (before && after) {
		p->spans.v[i - 1].to = p->spans.v[i].to;
		vec_remove(&p->spans, i, 1);
	}
	if (before || after)
		return;
	vec_reserve(&p->spans, 1);
	memmove(&p->spans.v[i + 1], &p->spans.v[i], (p->spans.n - i) * sizeof(p->spans.v[0]));
	p->spans.v[i] = (struct progress_span){ number, number + 1 };
	p->spans.n++;
}

void progress_count(struct progress_clusters *list, const struct progress_cluster *c)
{
	struct progress_cluster *there = vec_find(i, list, streq(list->v[i].name, c->name));

	if (!there) {
		vec_push(list, *c);
		return;
	}
	there->count += c->count;
	there->kept += c->kept;
	there->kinds |= c->kinds;
}

/* The counts of a workload, in the order of its record. */
static const size_t counts[] = {
	offsetof(struct run_totals, crash_states), offsetof(struct run_totals, unique_states),
	offsetof(struct run_totals, findings),	   offsetof(struct run_totals, suppressed),
	offsetof(struct run_totals, verified),	   offsetof(struct run_totals, repeated),
	offsetof(struct run_totals, refused),	   offsetof(struct run_totals, performed),
	offsetof(struct run_totals, altered),
};

static uint64_t *count_at(const struct run_totals *t, size_t i)
{
	return (uint64_t *)((uintptr_t)t + counts[i]);
}

void progress_add_totals(struct run_totals *to, const struct run_totals *t)
{
	to->workloads += t->workloads;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		*count_at(to, i) += *count_at(t, i);
	to->pruned += t->pruned;
	to->left_out += t->left_out;
	to->budget_hit |= t->budget_hit;
}

static void take(struct progress *p, const struct progress_record *r)
{
	add_number(p, r->number);
	p->done++;
	progress_add_totals(&p->totals, &r->totals);
	for (size_t i = 0; i < r->clusters.n; i++)
		progress_count(&p->clusters, &r->clusters.v[i]);
}

/* ---- writing ---- */

static void print_record(const struct progress_record *r, struct strbuf *out)
{
	const struct run_totals *t = &r->totals;

	vec_each(c, &r->clusters) {
		strbuf_addf(out, "found %llu %llu %x ", llu(c->count), llu(c->kept), c->kinds);
		strbuf_add_flat(out, c->name);
		strbuf_addch(out, '\t');
		strbuf_add_flat(out, c->words);
		strbuf_addch(out, '\n');
	}
	strbuf_addf(out, "done %llu ", llu(r->number));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		strbuf_addf(out, "%llu ", llu(*count_at(t, i)));
	strbuf_addf(out, "%.17g %.17g %u ", t->pruned, t->left_out, t->budget_hit);
	strbuf_addf(out, "%016llx\n", llu(hash64(out->buf, out->len)));
}

int progress_add(struct progress *p, const struct progress_record *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	assert(p->fd >= 0 && r->number < p->total);
	print_record(r, &text);
	int rc = io_write_full(p->fd, text.buf, text.len);
	if (rc)
		return err_set(err, rc, "cannot keep what was done: %s", strerror(-rc));
	take(p, r);
	p->unsynced = true;
	bool now = r->clusters.n || util_now_ns() - p->synced_ns >= SYNC_MS * 1000000ULL;
	return now ? progress_sync(p, err) : 0;
}

int progress_sync(struct progress *p, struct err *err)
{
	int rc = p->unsynced ? io_sync_fd(p->fd, "the record of the work done", err) : 0;

	if (!rc && p->unsynced && p->run)
		rc = case_plan_sync(&plan_kept, p->run, err);
	if (!rc)
		p->run = NULL;
	p->unsynced = rc != 0;
	p->synced_ns = util_now_ns();
	return rc;
}

/* ---- reading ---- */

static bool take_number(char **rest, uint64_t *out)
{
	const char *word = strsep(rest, " ");

	return word && number_parse(word, out) == 0;
}

static bool parse_found(char *rest, struct progress_cluster *out)
{
	uint64_t kinds;
	char *hex, *end;

	*out = (struct progress_cluster){ 0 };
	if (!take_number(&rest, &out->count) || !take_number(&rest, &out->kept) ||
	    out->kept > out->count || !(hex = strsep(&rest, " ")) || !rest)
		return false;
	kinds = strtoull(hex, &end, 16);
	if (!*hex || *end || kinds >> FINDING_KIND_END)
		return false;
	out->kinds = (uint32_t)kinds;
	const char *name = strsep(&rest, "\t");
	if (!rest || strlen(name) >= CLUSTER_MAX || strlen(rest) >= WORDS_MAX)
		return false;
	snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(out->words, sizeof(out->words), "%s", rest);
	return true;
}

/* A count that may be beyond what 64 bits hold. */
static bool take_amount(char **rest, double *out)
{
	const char *word = strsep(rest, " ");
	char *end;

	if (!word || !*word)
		return false;
	*out = strtod(word, &end);
	return !*end && isfinite(*out) && *out >= 0;
}

static bool parse_done(char *rest, struct progress_record *r)
{
	struct run_totals *t = &r->totals;
	uint64_t hit;

	*t = (struct run_totals){ .workloads = 1 };
	if (!take_number(&rest, &r->number) ||
	    any_of(i, ARRAY_SIZE(counts), !take_number(&rest, count_at(t, i))) ||
	    !take_amount(&rest, &t->pruned) || !take_amount(&rest, &t->left_out))
		return false;
	t->budget_hit = take_number(&rest, &hit) && hit == 1;
	return rest && !strchr(rest, ' ');
}

/* The check at the end of a record is right. */
static bool check_record(const struct strbuf *text)
{
	const char *check = memrchr(text->buf, ' ', text->len);
	char want[24];

	if (!check)
		return false;
	size_t n = (size_t)(check - text->buf) + 1;
	int len = snprintf(want, sizeof(want), "%016llx\n", llu(hash64(text->buf, n)));
	return text->len - n == (size_t)len && memcmp(check + 1, want, (size_t)len) == 0;
}

/* The next line, with its end; false at the end of what is whole. A NUL in it ends it early. */
static bool next_line(FILE *in, char line[LINE_LIMIT + 2], size_t *len)
{
	*len = fgets(line, LINE_LIMIT + 2, in) ? strlen(line) : 0;
	return *len && line[*len - 1] == '\n';
}

/* True and a record; false if there is no other that is whole. */
static bool read_record(FILE *in, struct strbuf *text, struct progress_record *r)
{
	char line[LINE_LIMIT + 2];
	size_t len;

	strbuf_clear(text);
	vec_clear(&r->clusters);
	while (next_line(in, line, &len) && r->clusters.n <= FINDING_KIND_END) {
		struct progress_cluster c;

		strbuf_add(text, line, len);
		line[len - 1] = '\0';
		if (strncmp(line, "done ", 5) == 0)
			return parse_done(line + 5, r) && check_record(text);
		if (strncmp(line, "found ", 6) != 0 || !parse_found(line + 6, &c))
			return false;
		vec_push(&r->clusters, c);
	}
	return false;
}

/* `end` gets where the last record ends. */
static int read_all(FILE *in, const char *path, struct progress *p, off_t *end, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct progress_record r = { 0 };
	char head[sizeof(header)] = { 0 };
	int rc = 0;

	*end = 0;
	if (fread(head, 1, sizeof(header) - 1, in) != sizeof(header) - 1)
		return 0; /* killed before anything was written */
	if (!streq(head, header))
		return err_set(err, -EINVAL, "%s does not begin with 'outage-progress 2'", path);
	*end = sizeof(header) - 1;
	while (!rc && read_record(in, &text, &r)) {
		if (r.number >= p->total)
			rc = err_set(err, -EINVAL, "%s: there is no workload %llu", path,
				     llu(r.number));
		else if (progress_has(p, r.number))
			rc = err_set(err, -EINVAL, "%s counts workload %llu twice", path,
				     llu(r.number));
		else if (p->clusters.n > CLUSTERS_LIMIT)
			rc = err_set(err, -E2BIG, "%s: more than %d clusters", path,
				     CLUSTERS_LIMIT);
		else
			take(p, &r);
		*end += (off_t)text.len;
	}
	vec_release(&r.clusters);
	return rc;
}

/* From a descriptor, which stays open: a lock belongs to it. */
static int read_fd(int fd, const char *path, struct progress *p, off_t *end, struct err *err)
{
	auto_fd copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	auto_file in = copy < 0 ? NULL : fdopen(copy, "r");

	if (!in)
		return err_set(err, -errno, "cannot open %s: %m", path);
	steal_fd(&copy);
	return read_all(in, path, p, end, err);
}

int progress_load(const char *run, uint64_t total, struct progress *out, struct err *err)
{
	auto_free char *path = xasprintf("%s/progress", run);
	off_t end;

	*out = (struct progress){ .fd = -1, .total = total };
	if (!below_exists(run, "progress"))
		return 0;
	auto_fd fd = below_open(run, "progress", O_RDONLY, err);
	int rc = fd < 0 ? fd : read_fd(fd, path, out, &end, err);
	if (rc)
		progress_release(out);
	return rc;
}

static int take_lock(int fd, const char *run, struct err *err)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return err_set(err, -errno, "cannot lock %s/progress: %m", run);
		util_sleep_ms(100);
	}
	return err_set(err, -EBUSY, "another process is at work on %s: wait until it ends", run);
}

/*
 * A new file that begins with `start`, locked before it can be seen. The new file takes the place
 * of the old one, which may have another name.
 */
static int begin_file(const char *run, const struct strbuf *start, struct progress *p,
		      struct err *err)
{
	struct io_output out;
	int rc = io_output_open_below(run, "progress", true, &out, err);

	if (rc)
		return rc;
	p->synced_ns = util_now_ns();
	p->fd = fcntl(out.fd, F_DUPFD_CLOEXEC, 0);
	if (p->fd < 0 || fcntl(p->fd, F_SETFL, O_APPEND) < 0)
		rc = err_set(err, -errno, "cannot open %s: %m", out.path);
	if (!rc)
		rc = take_lock(p->fd, run, err);
	int written = rc ? 0 : io_write_full(p->fd, start->buf, start->len);
	if (written)
		rc = err_set(err, written, "cannot write %s: %s", out.path, strerror(-written));
	if (!rc)
		return io_output_commit(&out, err);
	io_output_release(&out);
	return rc;
}

int progress_create(const char *run, uint64_t total, struct progress *out, struct err *err)
{
	auto_strbuf start = STRBUF_INIT;

	*out = (struct progress){ .fd = -1, .run = run, .total = total };
	if (below_exists(run, "progress"))
		return err_set(err, -EEXIST, "cannot make %s/progress: it is there", run);
	strbuf_adds(&start, header);
	int rc = begin_file(run, &start, out, err);
	if (rc)
		progress_release(out);
	return rc;
}

static bool is_same(int fd, const char *run)
{
	struct err ignored = ERR_INIT;
	auto_fd now = below_open(run, "progress", O_RDONLY, &ignored);
	struct stat a, b;

	return now >= 0 && fstat(fd, &a) == 0 && fstat(now, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* Opens the file when no process is at work on it, locked; -1 if there is none. */
static int open_locked(const char *run, int *out, struct err *err)
{
	for (*out = -1; below_exists(run, "progress");) {
		auto_fd fd = below_open(run, "progress", O_RDONLY, err);
		int rc = fd < 0 ? fd : take_lock(fd, run, err);

		if (rc)
			return rc;
		/* The process that had the lock may have put another file in its place. */
		if (is_same(fd, run)) {
			*out = steal_fd(&fd);
			return 0;
		}
	}
	return 0;
}

int progress_resume(const char *run, uint64_t total, struct progress *out, struct err *err)
{
	auto_free char *path = xasprintf("%s/progress", run);
	auto_strbuf start = STRBUF_INIT;
	auto_fd old = -1;
	off_t end = 0;

	*out = (struct progress){ .fd = -1, .total = total };
	int rc = open_locked(run, &old, err);
	if (!rc && old >= 0)
		rc = read_fd(old, path, out, &end, err);
	if (!rc && end) {
		ssize_t n = io_pread_full(old, strbuf_grow(&start, (size_t)end), (size_t)end, 0);

		if (n != end)
			rc = err_set(err, n < 0 ? (int)n : -EIO, "cannot read %s", path);
		start.len = (size_t)end;
	} else {
		strbuf_adds(&start, header);
	}
	if (!rc)
		rc = begin_file(run, &start, out, err);
	if (rc)
		progress_release(out);
	return rc;
}

void progress_release(struct progress *p)
{
	util_close(p->fd);
	vec_release(&p->clusters);
	vec_release(&p->spans);
	*p = (struct progress){ .fd = -1 };
}
