/* SPDX-License-Identifier: MIT */
/* side_reffs.c - the reference file system in this process. A saved state is a state of reffs. */
#include "explore/side.h"

struct reffs_side {
	struct side base;
	struct reffs *fs;
	const struct workload *w;
};
static_assert(sizeof(struct reffs_side) <= 4096, "side_open() makes it");

static struct reffs_side *own(struct side *s)
{
	return container_of(s, struct reffs_side, base);
}

static int open_reffs(struct side *s, const struct side_opts *opts, struct err *err)
{
	struct reffs_opts how = { 0 };

	(void)err;
	if (opts->relative_to) {
		differences_reffs(opts->relative_to, &how);
		s->differences = opts->relative_to;
	}
	own(s)->fs = reffs_new(&how);
	return 0;
}

static void close_reffs(struct side *s)
{
	reffs_free(own(s)->fs);
}

static void begin(struct side *s, const struct workload *w)
{
	own(s)->w = w;
	reffs_begin(own(s)->fs, w);
}

static int64_t perform(struct side *s, size_t i)
{
	return reffs_op(own(s)->fs, own(s)->w, i);
}

static int tree(struct side *s, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	struct reffs_state *now = reffs_save(own(s)->fs);

	(void)err;
	reffs_tree(now, opts, out);
	reffs_state_unref(now);
	return 0;
}

static struct hash128 hash(struct side *s)
{
	struct reffs_state *now = reffs_save(own(s)->fs);
	struct hash128 h = reffs_state_hash(now);

	reffs_state_unref(now);
	return h;
}

static int save(struct side *s, struct side_state **out, struct err *err)
{
	(void)err;
	*out = (struct side_state *)reffs_save(own(s)->fs);
	s->counts.saves++;
	return 0;
}

static int restore(struct side *s, struct side_state *state, struct strbuf *said, struct err *err)
{
	(void)said;
	(void)err;
	reffs_restore(own(s)->fs, (struct reffs_state *)state);
	s->counts.restores++;
	return 0;
}

static void drop(struct side *s, struct side_state *state)
{
	(void)s;
	reffs_state_unref((struct reffs_state *)state);
}

const struct side_ops side_reffs = {
	.name = "reffs",
	.help = "the reference file system, in this process",
	.open = open_reffs,
	.close = close_reffs,
	.begin = begin,
	.op = perform,
	.tree = tree,
	.hash = hash,
	.save = save,
	.restore = restore,
	.drop = drop,
};
