/* SPDX-License-Identifier: MIT */
#include "run/attempt.h"

#include <errno.h>

enum { RECORD_TRIES = 5 };

static void attempt_clear(struct attempt *a)
{
	findings_clear(&a->findings);
	strbuf_clear(&a->said);
	strbuf_clear(&a->kernel_log);
	a->mounted = false;
}

void attempt_release(struct attempt *a)
{
	findings_release(&a->findings);
	strbuf_release(&a->said);
	strbuf_release(&a->kernel_log);
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

/* What is mounted: is it what was promised? */
static int look(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	struct event walked = { .kind = EV_TEXT,
				.data = (const unsigned char *)ATTEMPT_WALKED,
				.len = strlen(ATTEMPT_WALKED) };
	int rc = target_walk(&r->target, &r->tree_opts, a->seen, err);

	if (!rc)
		rc = disk_mark(r->target.disk, &walked, err);
	if (!rc)
		check_persisted(p, a->seen, &r->blocks, &a->findings);
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
