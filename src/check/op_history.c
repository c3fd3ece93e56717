/* SPDX-License-Identifier: MIT */
/* op_history.c - performs a workload on the reference, and keeps the state after each operation. */
#include "check/op_history.h"

#include <errno.h>

#include "fs/adopt.h"

void op_history_init(struct op_history *h)
{
	*h = (struct op_history){ 0 };
}

static void forget(struct op_history *h)
{
	vec_release_each(p, &h->states, reffs_state_unref(*p));
	vec_release_each(p, &h->paths, vec_release(p));
	vec_clear(&h->results);
	arena_clear(&h->arena);
	reffs_free(h->ref);
	h->ref = NULL;
}

void op_history_release(struct op_history *h)
{
	forget(h);
	vec_release(&h->results);
	arena_release(&h->arena);
}

void op_history_start(struct op_history *h, const struct workload *w)
{
	forget(h);
	h->w = w;
	h->ref = reffs_new(NULL);
	vec_push(&h->states, reffs_save(h->ref));
}

/* True for failures that depend on the file system's room and abilities, not on POSIX. */
static bool targets_business(int64_t result)
{
	return result == -ENOSPC || result == -EOPNOTSUPP || result == -EDQUOT ||
	       result == -EMLINK || result == -EFBIG || result == -E2BIG || result == -ENOTTY ||
	       result == -EXDEV || result == -ENOSYS;
}

/* True if direct I/O or a range may have been refused for an alignment that the device needs. */
static bool alignment(const struct op *op, int64_t result)
{
	return result == -EINVAL && op->def->flags & (OP_DIRECT | OP_RANGES);
}

static char *describe_op(const struct workload *w, size_t i)
{
	struct strbuf text = { 0 };

	op_print(&w->ops.v[i], &text);
	return strbuf_detach(&text);
}

static void add_result(struct strbuf *out, int64_t result)
{
	if (result < 0)
		strbuf_addf(out, "fails with %s", strerrorname_np((int)-result));
	else
		strbuf_addf(out, "returns %lld", (long long)result);
}

void op_history_op(struct op_history *h, size_t i, int64_t result, struct findings *out)
{
	const struct op *op = &h->w->ops.v[i];
	bool command = op->def->flags & OP_COMMAND;
	int64_t expected = command ? result : reffs_op(h->ref, h->w, i);

	assert(h->states.n == i + 1);
	if (expected != result) {
		struct strbuf words = { 0 };
		auto_free char *text = describe_op(h->w, i);
		bool adopted = targets_business(result) || alignment(op, result);

		/* A failed operation has no effect but that of opening its file. */
		if (result < 0 && expected >= 0)
			reffs_refused(h->ref, vec_last(&h->states), op);
		if (!adopted) {
			strbuf_addf(&words, HISTORY_RESULT "%zu, %s: ", i, text);
			add_result(&words, result);
			strbuf_adds(&words, "; the reference ");
			add_result(&words, expected);
			findings_add(out, FINDING_LIVE,
				     op->args[0].text ? xstrdup(op->args[0].text) : NULL,
				     strbuf_detach(&words), NULL);
		}
	}
	vec_push(&h->states, reffs_save(h->ref));
	vec_push(&h->results, result);
}

int op_history_adopt(struct op_history *h, const struct tree *seen, struct err *err)
{
	int rc = reffs_adopt(h->ref, seen, err);

	assert(h->states.n > 1 && h->paths.n < h->states.n);
	if (rc)
		return rc;
	reffs_state_unref(vec_last(&h->states));
	vec_last(&h->states) = reffs_save(h->ref);
	return 0;
}

/* ---- paths ---- */

struct collector {
	struct op_history *h;
	const struct reffs_state *state;
	struct history_paths *to;
	const char *dir; /* "" for the root */
};

static int collect_dir(struct collector *c, uint64_t ino);

static int collect_entry(void *ctx, const char *name, uint64_t ino)
{
	struct collector *c = ctx, inner = *c;
	struct reffs_attr attr;
	size_t dir_len = strlen(c->dir), name_len = strlen(name);
	char *path = arena_alloc(&c->h->arena, dir_len + name_len + 2);
	size_t at = 0;

	if (dir_len) {
		memcpy(path, c->dir, dir_len);
		path[dir_len] = '/';
		at = dir_len + 1;
	}
	memcpy(path + at, name, name_len);
	path[at + name_len] = '\0';
	vec_push(c->to, (struct history_path){ path, ino });
	reffs_attr(reffs_inode(c->state, ino), &attr);
	inner.dir = path;
	return attr.type == TREE_DIR ? collect_dir(&inner, ino) : 0;
}

static int collect_dir(struct collector *c, uint64_t ino)
{
	return reffs_entries(reffs_inode(c->state, ino), collect_entry, c);
}

DEFINE_ORDER(compare_paths, struct history_path, tree_path_cmp(a->path, b->path))

const struct history_paths *op_history_paths_at(struct op_history *h, size_t state)
{
	assert(state < h->states.n);
	/*
	 * Makes the lists of all states, so that a returned list does not move until the next
	 * operation.
	 */
	while (h->paths.n < h->states.n) {
		struct history_paths paths = { 0 };
		struct collector c = { h, h->states.v[h->paths.n], &paths, "" };

		collect_dir(&c, REFFS_ROOT_INO);
		vec_sort(&paths, compare_paths);
		vec_push(&h->paths, paths);
	}
	return &h->paths.v[state];
}

uint64_t op_history_ino(struct op_history *h, size_t state, const char *path)
{
	const struct history_paths *paths = op_history_paths_at(h, state);

	if (streq(path, ".") || streq(path, ""))
		return REFFS_ROOT_INO;
	size_t i = first_where(k, paths->n, tree_path_cmp(paths->v[k].path, path) >= 0);
	return i < paths->n && streq(paths->v[i].path, path) ? paths->v[i].ino : 0;
}
