/* SPDX-License-Identifier: MIT */
#include "run/attempt.h"

#include <errno.h>

enum { RECORD_TRIES = 5 };

static void attempt_clear(struct attempt *a)
{
	findings_clear(&a->findings);
	strbuf_clear(&a->said);
	strbuf_clear(&a->kernel_log);
	strbuf_clear(&a->dump);
	vec_clear(&a->stamps);
	a->mounted = a->dumped = false;
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

/* ---- commands of the user's ---- */

/* The operation that was under way, as text. */
static void print_under_way(const struct promises *p, struct strbuf *out)
{
	if (p->under_way && p->done < p->h->w->ops.n)
		op_print(&p->h->w->ops.v[p->done], out);
}

/* What a command said, for whoever wonders; bytes that are no text are left to the dump itself. */
static void keep_said(struct attempt *a, const char *option, const struct user_end *end)
{
	strbuf_addf(&a->said, "%s %s", option, strbuf_str(&end->how));
	strbuf_adds(&a->said, end->out.len ? ", and printed:\n" : "\n");
	strbuf_adds(&a->said, strbuf_str(&end->out));
	strbuf_adds(&a->said, strbuf_str(&end->err));
}

/* What is not told by success is a failure: a killed command has not said that all is well. */
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

/* What the dump prints is the state; the check may read it. */
static int run_commands(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	auto_user_end dump = { 0 }, check = { 0 };
	int rc = 0;

	if (r->opts.dump) {
		rc = run_command(r, p, "--dump", r->opts.dump, NULL, a, &dump, err);
		if (rc)
			return rc;
		a->dumped = dump.ok;
		strbuf_add(&a->dump, strbuf_str(&dump.out), dump.out.len);
		if (!dump.ok)
			add_failure(a, FINDING_DUMP, "--dump", &dump);
	}
	if (r->opts.check && (a->dumped || !r->opts.dump)) {
		rc = run_command(r, p, "--check", r->opts.check, &a->dump, a, &check, err);
		if (!rc && !check.ok)
			add_failure(a, FINDING_CHECK, "--check", &check);
	}
	return rc;
}

/* ---- our own ---- */

static int look_at_times(struct run *r, const struct promises *p, struct attempt *a,
			 struct err *err)
{
	size_t n = a->seen->entries.n;
	auto_free const char **paths = xcalloc(n, sizeof(*paths));

	for (size_t i = 0; i < n; i++) {
		paths[i] = a->seen->entries.v[i].path;
		vec_push(&a->stamps, (struct check_stamp){ 0 });
	}
	int rc = target_times(&r->target, paths, n, a->stamps.v, err);
	if (!rc)
		check_times(p, a->seen, a->stamps.v, &r->times, r->target.clock, &a->findings);
	return rc;
}

/* What is mounted: is it what was promised? Who dumps it himself compares nothing else. */
static int look(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	struct event walked = { .kind = EV_TEXT,
				.data = (const unsigned char *)ATTEMPT_WALKED,
				.len = strlen(ATTEMPT_WALKED) };
	int rc = target_walk(&r->target, &r->tree_opts, a->seen, err);

	if (!rc)
		rc = run_commands(r, p, a, err);
	if (!rc)
		rc = disk_mark(r->target.disk, &walked, err);
	if (!rc && !r->opts.dump)
		check_persisted(p, a->seen, &r->blocks, &a->findings);
	if (!rc && r->with_times)
		rc = look_at_times(r, p, a, err);
	return rc;
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
 * Checks what recovery made of it, before the use changes anything. It is unmounted for that as a
 * user would do it: a checker rightly complains of a log that was cut off.
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
			     xasprintf("it can be mounted once, and not again: %s",
				       strbuf_str(&a->said)),
			     NULL);
	return rc;
}

/*
 * Recovers, mounts, looks at and uses what is on the disk; nothing is mounted afterwards. Where the
 * system under test dies of it, what its kernel said last is the finding.
 */
static int recover(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	struct target *t = &r->target;
	struct err later = ERR_INIT;
	int rc = target_recover(t, &a->said, err);

	if (!rc)
		rc = target_mount(t, &a->said, err);
	if (rc < 0)
		return rc;
	a->mounted = rc == 0;
	if (!a->mounted) {
		findings_add(
			&a->findings, FINDING_UNMOUNTABLE, NULL,
			xasprintf("the file system cannot be mounted: %s", strbuf_str(&a->said)),
			NULL);
		return run_fsck(r, a, err); /* it may say why */
	}
	rc = look(r, p, a, err);
	if (!rc && r->opts.fsck)
		rc = fsck_recovered(r, a, err);
	if (!rc)
		rc = target_usable(t, a->seen, &a->findings, err);
	int unmounted = t->mounted ? target_umount(t, false, &later) : 0;
	if (unmounted && rc >= 0) {
		*err = later;
		rc = unmounted;
	}
	return min(rc, 0);
}

static int attempt_once(struct run *r, const struct image *img, const struct promises *p,
			struct trace *record, struct attempt *a, struct err *err)
{
	struct target *t = &r->target;
	struct err later = ERR_INIT;
	int rc = disk_load(t->disk, img, err);

	if (!rc)
		rc = disk_start(t->disk, record, err);
	if (rc)
		return rc;
	rc = recover(r, p, a, err);
	int stopped = disk_stop(t->disk, &later);
	if (stopped && !rc) {
		*err = later;
		rc = stopped;
	}
	if (target_kernel_log(t, &a->kernel_log) && a->mounted)
		findings_add(&a->findings, FINDING_KERNEL_LOG, NULL,
			     xasprintf("the kernel says: %s", strbuf_str(&a->kernel_log)), NULL);
	return rc;
}

int attempt_state(struct run *r, const struct image *img, const struct promises *p,
		  struct trace *record, struct attempt *a, struct err *err)
{
	int rc = attempt_once(r, img, p, record, a, err);

	/* A record that is not whole is made again, as that of a workload is. */
	for (int tries = 0; rc == -EOVERFLOW && tries < RECORD_TRIES; tries++) {
		err_clear(err);
		attempt_clear(a);
		rc = attempt_once(r, img, p, record, a, err);
	}
	return rc;
}
