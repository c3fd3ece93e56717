/* SPDX-License-Identifier: MIT */
/* side.c - finds and opens sides. */
#include "explore/side.h"

#include <errno.h>

static const struct side_ops *kinds[SIDE_KINDS_MAX] = { &side_reffs, &side_mounted };

void side_register(const struct side_ops *ops)
{
	unsigned i = 0;

	while (i < SIDE_KINDS_MAX && kinds[i] && kinds[i] != ops)
		i++;
	assert(i < SIDE_KINDS_MAX);
	kinds[i] = ops;
}

const struct side_ops *side_find(const char *spec, struct err *err)
{
	size_t n = strcspn(spec, ":,");

	for (unsigned i = 0; i < SIDE_KINDS_MAX && kinds[i]; i++)
		if (strlen(kinds[i]->name) == n && memcmp(kinds[i]->name, spec, n) == 0)
			return kinds[i];
	struct err why = ERR_INIT;
	if (target_find(spec, &why))
		return &side_target;
	err_set(err, -EINVAL, "%s; and reffs in this process, mounted:COMMAND {mnt}", why.msg);
	return NULL;
}

int side_open(const struct side_opts *opts, struct side **out, struct err *err)
{
	const struct side_ops *ops = side_find(opts->target.spec, err);
	struct err why = ERR_INIT;

	if (!ops)
		return -EINVAL;
	/* Each kind has a structure of its own that begins with this one. */
	struct side *s = xcalloc(1, 4096);
	s->ops = ops;
	s->spec = opts->target.spec;
	s->differences = differences_of("");
	int rc = ops->open(s, opts, err);
	if (!rc)
		rc = ops->save(s, &s->base, &why);
	if (rc) {
		if (why.code && !err->code)
			*err = why;
		side_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void side_close(struct side *s)
{
	if (!s)
		return;
	if (s->base)
		s->ops->drop(s, s->base);
	s->ops->close(s);
	free(s);
}

bool side_in_process(const struct side *s)
{
	return s->ops != &side_target && s->ops != &side_mounted;
}
