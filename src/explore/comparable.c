/* SPDX-License-Identifier: MIT */
/*
 * comparable.c - whether sides can be compared at all, before anything else is done.
 *
 * Each side that is mounted has to be able to make, write and remove a file, and what one does the
 * others must not see: two servers that show the same files would agree in everything.
 */
#include <errno.h>

#include "explore/stepper_impl.h"

#define PROBE ".outage-probe"

enum { PROBE_MKDIR, PROBE_CREAT, PROBE_WRITE, PROBE_UNLINK, PROBE_RMDIR, PROBE_END };

static const char *const lines[PROBE_END] = {
	[PROBE_MKDIR] = "mkdir " PROBE,
	[PROBE_CREAT] = "creat " PROBE "/f",
	[PROBE_WRITE] = "write " PROBE "/f 0 512",
	[PROBE_UNLINK] = "unlink " PROBE "/f",
	[PROBE_RMDIR] = "rmdir " PROBE,
};

static int refuse(const struct side *s, unsigned op, int64_t result, struct err *err)
{
	int rc = (int)result;

	if (rc == -EROFS)
		return err_set(err, rc,
			       "%.100s can only be read, so there is nothing to compare: mount it "
			       "for writing",
			       s->spec);
	if (rc == -ENOSPC)
		return err_set(err, rc,
			       "%.100s has no room for a single file: give it a larger disk with "
			       "--size",
			       s->spec);
	return err_set(err, rc, "%.100s cannot be compared, as it cannot do '%s': %s", s->spec,
		       lines[op], strerror(-rc));
}

/* The directory that side `i` made must be nowhere else. */
static int check_apart(struct stepper *st, unsigned i, struct err *err)
{
	for (unsigned k = 0; k < st->n; k++) {
		struct side *other = st->sides[k];

		if (k == i || side_in_process(other))
			continue;
		if (other->ops->op(other, PROBE_RMDIR) == 0)
			return err_set(err, -EINVAL,
				       "%.100s and %.100s cannot be compared: they are the same "
				       "file system, what one does the other shows",
				       st->sides[i]->spec, other->spec);
	}
	return 0;
}

static int check_side(struct stepper *st, unsigned i, struct err *err)
{
	struct side *s = st->sides[i];

	for (unsigned op = 0; op < PROBE_END; op++) {
		int64_t result = s->ops->op(s, op);
		int rc = result < 0 ? refuse(s, op, result, err) : 0;

		if (!rc && op == PROBE_MKDIR)
			rc = check_apart(st, i, err);
		if (rc)
			return rc;
	}
	return 0;
}

int stepper_check_comparable(struct stepper *st, struct err *err)
{
	auto_call(step_result_release) struct step_result result = { 0 };
	struct side_counts before[SIDES_MAX];
	auto_call(alphabet_release) struct alphabet a;
	bool any = false;
	int rc = 0;

	for (unsigned i = 0; i < st->n; i++)
		before[i] = st->sides[i]->counts;

	alphabet_init(&a);
	for (unsigned i = 0; i < PROBE_END && !rc; i++)
		rc = workload_add_line(&a.w, lines[i], err);
	if (!rc)
		stepper_begin(st, &a);
	for (unsigned i = 0; i < st->n && !rc; i++) {
		if (side_in_process(st->sides[i]))
			continue;
		rc = check_side(st, i, err);
		any = true;
	}
	/* A file that was there leaves traces, which would puzzle the user. */
	if (!rc && any)
		rc = stepper_reset(st, &result, err);
	/* So would mounts that the search did not need. */
	for (unsigned i = 0; i < st->n; i++)
		st->sides[i]->counts = before[i];
	st->a = NULL;
	return rc;
}
