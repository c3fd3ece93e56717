/* SPDX-License-Identifier: MIT */
/*
 * attempt.c - puts a crash state on the target's disk, recovers, mounts, walks and uses it, and
 * asks the user's commands.
 */
#include "run/attempt.h"

#include <errno.h>

#include "base/log.h"
#include "run/store.h"
#include "check/kmsg.h"
#include "search/subject.h"

enum { RECORD_TRIES = 5 };

static void attempt_clear(struct attempt *a)
{
	findings_clear(&a->findings);
	strbuf_clear(&a->said);
	strbuf_clear(&a->kernel_log);
	strbuf_clear(&a->dump);
	vec_clear(&a->stamps);
	a->mounted = a->dumped = a->refused = false;
}

void attempt_release(struct attempt *a)
{
	findings_release(&a->findings);
	strbuf_release(&a->said);
	strbuf_release(&a->kernel_log);
	strbuf_release(&a->dump);
	vec_release(&a->stamps);
}

size_t attempt_walked(const struct trace *record)
{
	for (size_t i = 0; i < record->events.n; i++) {
		const struct event *ev = &record->events.v[i];

		if (ev->kind == EV_TEXT && ev->len == strlen(ATTEMPT_WALKED) &&
		    memcmp(ev->data, ATTEMPT_WALKED, ev->len) == 0)
			return i;
	}
	return record->events.n;
}

const char *attempt_mounted(const struct run *r, const struct attempt *a)
{
	return a->at_once ? STORE_REFUSED : r->read_only_first ? STORE_READ_ONLY : NULL;
}

/* ---- commands of the user's ---- */

/* The operation that was under way, as text. */
static void print_under_way(const struct promises *p, struct strbuf *out)
{
	if (p->under_way && p->done < p->h->w->ops.n)
		op_print(&p->h->w->ops.v[p->done], out);
}

/* Keeps what a command said, for the user; bytes that are no text are left to the dump itself. */
static void keep_said(struct attempt *a, const char *option, const struct user_end *end)
{
	strbuf_addf(&a->said, "%s %s", option, strbuf_str(&end->how));
	strbuf_adds(&a->said, end->out.len ? ", and printed:\n" : "\n");
	strbuf_adds(&a->said, strbuf_str(&end->out));
	strbuf_adds(&a->said, strbuf_str(&end->err));
}

/* Any end but success is a failure: a killed command has not said that all is well. */
static void add_failure(struct attempt *a, enum finding_kind kind, const char *option,
			const struct user_end *end)
{
	const char *why = end->err.len ? strbuf_str(&end->err) : strbuf_str(&end->out);

	findings_add(
		&a->findings, kind, NULL,
		xasprintf("%s %s%s%.200s", option, strbuf_str(&end->how), *why ? ": " : "", why),
		xstrdup("it has to end with status 0"));
}

static int run_command(struct run *r, const struct promises *p, const char *option,
		       const char *text, const struct strbuf *input, struct attempt *a,
		       struct user_end *end, struct err *err)
{
	auto_strbuf under_way = STRBUF_INIT;
	struct user_command c = { .text = text, .done = p->done };

	print_under_way(p, &under_way);
	c.operation = strbuf_str(&under_way);
	c.input = input ? strbuf_str(input) : NULL;
	c.input_len = input ? input->len : 0;
	int rc = target_command(&r->target, &c, end, err);
	if (!rc && end->cut)
		return err_set(err, -EFBIG,
			       "the command of %s prints more than %d KiB: let it print less, such "
			       "as a hash of what files hold",
			       option, USER_OUTPUT_MAX >> 10);
	if (!rc)
		keep_said(a, option, end);
	return rc;
}

/* The state is what the dump prints. */
static int run_dump(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	auto_user_end dump = { 0 };

	if (!r->opts.dump)
		return 0;
	int rc = run_command(r, p, "--dump", r->opts.dump, NULL, a, &dump, err);
	if (rc)
		return rc;
	a->dumped = dump.ok;
	strbuf_add(&a->dump, strbuf_str(&dump.out), dump.out.len);
	if (!dump.ok)
		add_failure(a, FINDING_DUMP, "--dump", &dump);
	return 0;
}

/* The check may read what was dumped, and write to the file system. */
static int run_check(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	auto_user_end check = { 0 };

	if (!r->opts.check || (r->opts.dump && !a->dumped))
		return 0;
	int rc = run_command(r, p, "--check", r->opts.check, &a->dump, a, &check, err);
	if (!rc && !check.ok)
		add_failure(a, FINDING_CHECK, "--check", &check);
	return rc;
}

/* ---- our own ---- */

static int take_times(struct run *r, struct attempt *a, struct err *err)
{
	size_t n = a->seen->entries.n;
	auto_free const char **paths = xcalloc(n, sizeof(*paths));

	for (size_t i = 0; i < n; i++) {
		paths[i] = a->seen->entries.v[i].path;
		vec_push(&a->stamps, (struct check_stamp){ 0 });
	}
	return target_times(&r->target, paths, n, a->stamps.v, err);
}

/* 1 if it cannot be. Writing is part of recovery: a user who cannot write has not got it back. */
static int make_writable(struct run *r, struct attempt *a, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;
	int rc = r->target.read_only ? target_remount(&r->target, &said, err) : 0;

	strbuf_add(&a->said, strbuf_str(&said), said.len);
	if (rc > 0)
		findings_add(&a->findings, FINDING_UNMOUNTABLE, NULL,
			     xasprintf(ATTEMPT_NOT_WRITABLE ": %s", strbuf_str(&said)), NULL);
	return rc;
}

static int mark_walked(struct run *r, struct err *err)
{
	struct event walked = { .kind = EV_TEXT,
				.data = (const unsigned char *)ATTEMPT_WALKED,
				.len = strlen(ATTEMPT_WALKED) };

	return disk_mark(r->target.disk, &walked, err);
}

/* Is it what was promised? With a dump, only the dumps are compared. */
static void judge(struct run *r, const struct promises *p, struct attempt *a)
{
	check_recovered(&(struct recovered){ .p = p,
					     .seen = a->seen,
					     .blocks = &r->blocks,
					     .stamps = r->with_times ? a->stamps.v : NULL,
					     .times = &r->times,
					     .clock = r->target.clock,
					     .dumped = r->opts.dump },
			&a->findings);
}

/* The file system's own checker, on what is not mounted. */
static int run_fsck(struct run *r, struct attempt *a, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;
	int rc = target_fsck(&r->target, &said, err);

	if (rc < 0)
		return rc;
	if (rc > 0 && a->mounted)
		findings_add(&a->findings, FINDING_FSCK, NULL,
			     xasprintf("fsck complains: %s", strbuf_str(&said)), NULL);
	if (said.len)
		strbuf_add(&a->said, said.buf, said.len);
	return 0;
}

/*
 * Checks what recovery made of it, before the use changes anything, and unmounts it for that as a
 * user would: a checker rightly complains of a log that was cut off.
 */
static int fsck_recovered(struct run *r, struct attempt *a, struct err *err)
{
	int rc = target_umount(&r->target, true, err);

	if (!rc)
		rc = run_fsck(r, a, err);
	if (!rc)
		rc = target_mount(&r->target, &a->said, err);
	if (rc > 0)
		findings_add(&a->findings, FINDING_UNMOUNTABLE, NULL,
			     xasprintf(ATTEMPT_NOT_AGAIN ": %s", strbuf_str(&a->said)), NULL);
	return rc;
}

/* Uses what was seen; a check of the user's may have left something else. */
static int use(struct run *r, struct attempt *a, struct err *err)
{
	const struct tree *there = a->seen;
	int rc = 0;

	if (r->opts.check) {
		rc = target_walk(&r->target, &r->tree_opts, &r->left, err);
		there = &r->left;
	}
	return rc ? rc : target_usable(&r->target, there, &a->findings, err);
}

/* ---- a state, as a subject ---- */

struct attempting {
	struct run *r;
	const struct image *img;
	const struct promises *p;
	struct trace *record;
	struct attempt *a;
};

static int put(void *subject, struct err *err)
{
	const struct attempting *x = subject;
	int rc = disk_load(x->r->target.disk, x->img, err);

	return rc ? rc : disk_start(x->r->target.disk, x->record, err);
}

static int recover(void *subject, struct err *err)
{
	const struct attempting *x = subject;
	struct target *t = &x->r->target;
	struct attempt *a = x->a;
	bool read_only = x->r->read_only_first && !a->at_once;
	int rc = target_recover(t, &a->said, err);

	if (!rc && read_only) {
		rc = target_mount_read_only(t, &a->said, err);
		a->refused = rc > 0 && !t->died;
	} else if (!rc) {
		rc = target_mount(t, &a->said, err);
	}
	if (rc < 0 || a->refused)
		return rc;
	a->mounted = rc == 0;
	if (a->mounted)
		return 0;
	findings_add(&a->findings, FINDING_UNMOUNTABLE, NULL,
		     xasprintf("the file system cannot be mounted: %s", strbuf_str(&a->said)),
		     NULL);
	rc = run_fsck(x->r, a, err); /* the checker may say why */
	return rc ? rc : 1;
}

/* Looks at what is mounted, makes it writable, and judges. */
static int look(void *subject, struct err *err)
{
	const struct attempting *x = subject;
	struct run *r = x->r;
	struct attempt *a = x->a;
	int rc = target_walk(&r->target, &r->tree_opts, a->seen, err), marked = 0;

	if (!rc)
		rc = run_dump(r, x->p, a, err);
	if (!rc && r->with_times)
		rc = take_times(r, a, err);
	if (rc)
		return rc;
	rc = make_writable(r, a, err);
	/* The writes of a check are no part of recovery. */
	if (rc >= 0 && target_is_mounted(&r->target))
		marked = mark_walked(r, err);
	if (marked)
		return marked;
	if (!rc)
		rc = run_check(r, x->p, a, err);
	/* All is known by now, even if the kernel has died since. */
	if (rc >= 0)
		judge(r, x->p, a);
	return rc;
}

static int check(void *subject, struct err *err)
{
	const struct attempting *x = subject;
	int rc = x->r->opts.fsck ? fsck_recovered(x->r, x->a, err) : 0;

	return rc ? rc : use(x->r, x->a, err);
}

/* Where the system under test died of it, what its kernel said last is the finding. */
static int clear(void *subject, struct err *err)
{
	const struct attempting *x = subject;
	struct target *t = &x->r->target;
	struct attempt *a = x->a;
	int rc = t->mounted ? target_umount(t, false, err) : 0;
	int stopped = disk_stop(t->disk, err);

	if (target_kernel_log(t, &a->kernel_log) && a->mounted)
		findings_add(&a->findings, FINDING_KERNEL_LOG, NULL,
			     xasprintf("the kernel says: %s", strbuf_str(&a->kernel_log)), NULL);
	return rc ? rc : stopped;
}

static const struct subject_ops disk_subject = {
	.put = put, .recover = recover, .look = look, .check = check, .clear = clear
};

/* A record that is not whole is made again, as that of a workload is. */
static int attempt_recorded(struct run *r, const struct image *img, const struct promises *p,
			    struct trace *record, struct attempt *a, struct err *err)
{
	struct attempting x = { r, img, p, record, a };
	int rc = subject_try(&disk_subject, &x, err);

	for (int tries = 0; rc == -EOVERFLOW && tries < RECORD_TRIES; tries++) {
		err_clear(err);
		attempt_clear(a);
		rc = subject_try(&disk_subject, &x, err);
	}
	return rc;
}

/*
 * Bugs of the kernel itself are found wherever they are; what it says of the disk only tells why it
 * refused. From the first one on, for the lines below tell where it was.
 */
static void keep_bugs(const struct strbuf *log, struct strbuf *out)
{
	const char *line = strbuf_str(log);

	while (*line) {
		size_t n = strcspn(line, "\n");
		auto_free char *text = xmemdupz(line, n);

		if (kmsg_complains(text, NULL)) {
			strbuf_adds(out, line);
			return;
		}
		line += n + (line[n] == '\n');
	}
}

static void add_bugs(struct attempt *a, struct strbuf *bugs)
{
	if (!bugs->len)
		return;
	findings_add(
		&a->findings, FINDING_KERNEL_LOG, NULL,
		xasprintf("the kernel says, where it is mounted read-only: %s", strbuf_str(bugs)),
		NULL);
	strbuf_adds(bugs, strbuf_str(&a->kernel_log));
	strbuf_clear(&a->kernel_log);
	strbuf_adds(&a->kernel_log, strbuf_str(bugs));
}

int attempt_state(struct run *r, const struct image *img, const struct promises *p,
		  struct trace *record, struct attempt *a, struct err *err)
{
	auto_strbuf bugs = STRBUF_INIT;
	int rc = attempt_recorded(r, img, p, record, a, err);

	/* From the beginning, for the mount that was refused may have written. */
	if (!rc && a->refused) {
		keep_bugs(&a->kernel_log, &bugs);
		attempt_clear(a);
		a->at_once = true;
		rc = attempt_recorded(r, img, p, record, a, err);
	}
	if (!rc)
		add_bugs(a, &bugs);
	return rc;
}

/* ---- a new file system ---- */

static int try_read_only(void *subject, struct err *err)
{
	const struct attempting *x = subject;
	struct target *t = &x->r->target;
	struct attempt *a = x->a;
	auto_findings wrong = { 0 };
	int rc = target_mount_read_only(t, &a->said, err);

	if (!rc)
		rc = target_walk(t, &x->r->tree_opts, a->seen, err);
	if (!rc)
		rc = target_remount(t, &a->said, err);
	/* Some only say that they are writable now. */
	if (!rc)
		rc = target_usable(t, a->seen, &wrong, err);
	if (!rc && wrong.n)
		strbuf_addf(&a->said, "it cannot be used then: %s\n", wrong.v[0].words);
	a->mounted = !rc && !wrong.n;
	return rc;
}

int attempt_read_only_first(struct run *r, struct err *err)
{
	static const struct subject_ops asked = { .put = put,
						  .look = try_read_only,
						  .clear = clear };
	const struct target *t = &r->target;
	auto_attempt a = ATTEMPT_INIT(&r->seen);
	struct attempting x = { r, &r->base, NULL, NULL, &a };

	if (!t->ops->remount)
		return 0;
	int rc = subject_try(&asked, &x, err);
	if (rc)
		return rc;
	/* A complaint of the kernel is a finding, which here means no more than that. */
	r->read_only_first = a.mounted && !a.findings.n;
	strbuf_adds(&a.said, strbuf_str(&a.kernel_log));
	if (!r->read_only_first && !r->opts.target.worker)
		log_info("crash states are mounted writable at once: a new %s cannot be mounted "
			 "read-only and then be made writable: %.*s%s%s",
			 t->ops->name, (int)strcspn(strbuf_str(&a.said), "\n"), strbuf_str(&a.said),
			 *t->console ? "; the guest's kernel said: " : "", t->console);
	return 0;
}
