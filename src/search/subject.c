/* SPDX-License-Identifier: MIT */
/* subject.c - the steps of trying one crash state. */
#include "search/subject.h"

#include "base/util.h"

int subject_try(const struct subject_ops *ops, void *subject, struct err *err)
{
	int (*const steps[])(void *, struct err *) = { ops->recover, ops->look, ops->check };
	int rc = ops->put(subject, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(steps) && !rc; i++)
		rc = steps[i] ? steps[i](subject, err) : 0;
	int cleared = ops->clear ? ops->clear(subject, err) : 0; /* T1 */
	return rc < 0 ? rc : cleared;
}
