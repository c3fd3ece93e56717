/* SPDX-License-Identifier: MIT */
/* nested.c - makes runs of recoveries, and drops recoveries that can show nothing new. */
#include "search/nested.h"

#include <inttypes.h>

#include "base/below.h"
#include "case/dir.h"
#include "search/second.h"

void nested_release(struct nested *n)
{
	hashset_release(&n->seen);
}

static char *name_of_next(const struct nested *n)
{
	return xasprintf(CASE_NESTED "/%" PRIu64, n->next);
}

static int make_dir(const struct nested *n, char **out, struct err *err)
{
	auto_free char *name = name_of_next(n);
	int rc = below_make_dir(n->run, CASE_NESTED, err);

	*out = xasprintf("%s" BELOW_MARK "%s", n->run, name);
	return rc ? rc : below_make_dir(n->run, name, err);
}

/* Removes the record. If that fails, the directory keeps its number, and the failure is counted. */
static void drop_dir(struct nested *n)
{
	auto_free char *name = name_of_next(n);
	struct err why = ERR_INIT;

	if (!below_exists(n->run, name) || !below_remove(n->run, name, &why))
		return;
	n->next++;
	if (!n->left++)
		n->why = why;
}

uint64_t nested_firsts(uint64_t budget)
{
	return budget - budget / 2; /* N2 */
}

bool nested_is_over(const struct nested *n)
{
	return n->budget && n->spent >= n->budget;
}

int nested_record(struct nested *n, const char *state, struct err *err)
{
	auto_free char *dir = NULL;
	struct hash128 what;
	uint64_t budget = n->budget ? second_share(n->budget - n->spent, n->max) : 0;
	int rc = make_dir(n, &dir, err);

	assert(!nested_is_over(n)); /* N2 */
	n->max -= n->max > 0;
	if (!rc)
		rc = n->ops->record(n->ctx, state, dir, &what, err);
	if (!rc)
		rc = !hashset_insert(&n->seen, what);
	if (!rc)
		rc = n->ops->adopt(n->ctx, state, dir, budget, err);
	if (rc) { /* N1 */
		drop_dir(n);
		return min(rc, 0);
	}
	n->next++;
	return 1;
}
