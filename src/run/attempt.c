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

/* What is mounted: is it what was promised, and can it be used? */
static int look(struct run *r, const struct promises *p, struct attempt *a, struct err *err)
{
	struct target *t = &r->target;
	struct event walked = { .kind = EV_TEXT,
				.data = (const unsigned char *)ATTEMPT_WALKED,
				.len = strlen(ATTEMPT_WALKED) };
	int rc = tree_walk(t->root, &r->tree_opts, a->seen, err);

	if (!rc)
		rc = disk_mark(t->disk, &walked, err);
	if (rc)
		return rc;
	check_persisted(p, a->seen, &r->blocks, &a->findings);
	return check_usable(t->root, a->seen, &a->findings, err);
}

/* Recovers, mounts and looks at what is on the disk; nothing is mounted afterwards. */
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
		return 0;
	}
	rc = look(r, p, a, err);
	int unmounted = target_umount(t, false, &later);
	if (unmounted && !rc) {
		*err = later;
		rc = unmounted;
	}
	return rc;
}

/* The file system's own checker: on every state if asked, else to say why it cannot be mounted. */
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
	if (!rc && (r->opts.fsck || !a->mounted))
		rc = run_fsck(r, a, err);
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
