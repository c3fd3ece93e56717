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
	op_names_release(&h->names);
	vec_clear(&h->results);
	reffs_free(h->ref);
	h->ref = NULL;
}

void op_history_release(struct op_history *h)
{
	forget(h);
	vec_release(&h->results);
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

	assert(h->states.n > 1 && h->names.states < h->states.n);
	if (rc)
		return rc;
	reffs_state_unref(vec_last(&h->states));
	vec_last(&h->states) = reffs_save(h->ref);
	return 0;
}

/* ---- paths ---- */

const struct op_names *op_history_names(struct op_history *h)
{
	while (h->names.states < h->states.n) {
		size_t next = h->names.states;

		op_names_add(&h->names, next ? h->states.v[next - 1] : NULL, h->states.v[next]);
	}
	return &h->names;
}

const char *op_history_next_name(struct op_history *h, size_t state, uint64_t ino, size_t *i)
{
	const struct op_names *names = op_history_names(h);
	const struct op_named *inode = op_names_of(names, ino);

	while (inode && *i < inode->names.n) {
		const struct op_name *name = &names->name.v[inode->names.v[(*i)++]];

		if (op_name_at(name, state) == ino)
			return name->path;
	}
	return NULL;
}

DEFINE_ORDER(compare_paths, struct history_path, tree_path_cmp(a->path, b->path))

void op_history_paths_at(struct op_history *h, size_t state, struct history_paths *out)
{
	vec_each(name, &op_history_names(h)->name) {
		uint64_t ino = op_name_at(name, state);

		if (ino)
			vec_push(out, (struct history_path){ name->path, ino });
	}
	vec_sort(out, compare_paths);
}

uint64_t op_history_ino(struct op_history *h, size_t state, const char *path)
{
	assert(state < h->states.n);
	if (streq(path, ".") || streq(path, ""))
		return REFFS_ROOT_INO;
	const struct op_name *name = op_names_find(op_history_names(h), path);
	return name ? op_name_at(name, state) : 0;
}
