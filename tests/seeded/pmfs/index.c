/* SPDX-License-Identifier: MIT */
/* index.c - reads logs, of any crash, into ordinary memory; nothing in them is believed. */
#include <errno.h>

#include "pmfs.h"

static bool good_block(uint64_t b)
{
	return b >= BLOCK_FIRST && b < POOL_BLOCKS;
}

static int good_entry(const struct entry *e)
{
	switch (e->type) {
	case ENTRY_ADD:
	case ENTRY_DEL:
		return (e->lines == 1 || e->lines == 2) && e->name_len && e->ino < N_INODES &&
		       offsetof(struct entry, name) + e->name_len <= (size_t)e->lines * ENTRY;
	case ENTRY_WRITE:
		return e->lines == 1 && e->n && e->n <= FILE_BLOCKS &&
		       e->from <= FILE_BLOCKS - e->n && e->size <= FILE_BLOCKS * BLOCK &&
		       good_block(e->block) && good_block(e->block + e->n - 1);
	case ENTRY_SIZE:
		return e->lines == 1 && e->size <= FILE_BLOCKS * BLOCK;
	default:
		return e->type == ENTRY_PAD && e->lines == 1;
	}
}

static int log_block(struct pmfs *fs, uint32_t ino, uint64_t block, struct log_head *head,
		     struct err *err)
{
	*head = (struct log_head){ 0 };
	if (good_block(block))
		pm_load(&fs->m, block * BLOCK, head, sizeof(*head));
	if (head->magic != LOG_MAGIC)
		return err_set(err, -EUCLEAN, "inode %u: block %llu is no log block", ino,
			       (unsigned long long)block);
	return 0;
}

int log_next(struct pmfs *fs, uint32_t ino, const struct inode *in, uint64_t *at, struct entry *e,
	     struct err *err)
{
	struct log_head head;
	int rc = 0;

	if (!in->head || (*at == in->tail && !(has_bug(fs, BUG_LOG_END) && *at % BLOCK == 0)))
		return 0;
	if (!*at) {
		rc = log_block(fs, ino, in->head / BLOCK, &head, err);
		*at = in->head + LOG_HEAD;
		if (!rc && *at == in->tail)
			return 0;
	} else if (*at % BLOCK == 0) {
		pm_load(&fs->m, *at - BLOCK, &head, sizeof(head));
		*at = head.next * BLOCK + LOG_HEAD;
		rc = log_block(fs, ino, head.next, &head, err);
	}
	if (rc)
		return rc;
	*e = (struct entry){ 0 };
	pm_load(&fs->m, *at, e, ENTRY);
	if (e->lines == 2 && *at % BLOCK + 2 * ENTRY <= BLOCK)
		pm_load(&fs->m, *at + ENTRY, (char *)e + ENTRY, ENTRY);
	else if (e->lines == 2)
		e->type = 0;
	if (!good_entry(e))
		return err_set(err, -EUCLEAN, "inode %u: there is no log entry at %llu", ino,
			       (unsigned long long)*at);
	*at += (uint64_t)e->lines * ENTRY;
	return 1;
}

/* ---- applying ---- */

static void drop_name(struct node *n, const char *name)
{
	for (size_t i = 0; i < n->names.n; i++)
		if (streq(n->names.v[i].text, name)) {
			n->names.v[i] = n->names.v[--n->names.n];
			return;
		}
}

static void cut_map(struct node *n)
{
	for (uint32_t b = (uint32_t)((n->size + BLOCK - 1) / BLOCK); b < FILE_BLOCKS; b++)
		n->map[b] = 0;
}

void index_apply(struct node *n, const struct entry *e)
{
	struct name name = { .ino = e->ino };

	if (e->type == ENTRY_ADD || e->type == ENTRY_DEL) {
		memcpy(name.text, e->name, e->name_len);
		drop_name(n, name.text);
		if (e->type == ENTRY_ADD)
			vec_push(&n->names, name);
	}
	if (e->type == ENTRY_WRITE) {
		for (uint32_t i = 0; i < e->n; i++)
			n->map[e->from + i] = e->block + i;
		n->size = e->size;
	}
	if (e->type == ENTRY_SIZE) {
		bool less = e->size < n->size;

		n->size = e->size;
		if (less)
			cut_map(n);
	}
}

/* All that the log of an inode says. */
int index_inode(struct pmfs *fs, uint32_t ino, struct err *err)
{
	struct node *n = &fs->node[ino];
	struct entry e;
	uint64_t at = 0, steps = 0;
	int rc;

	vec_clear(&n->names);
	memset(n->map, 0, sizeof(n->map));
	n->size = 0;
	while ((rc = log_next(fs, ino, &n->in, &at, &e, err)) > 0) {
		if (++steps > POOL_SIZE / ENTRY)
			return err_set(err, -EUCLEAN, "inode %u: the log has no end", ino);
		index_apply(n, &e);
	}
	return rc;
}

static int claim(struct pmfs *fs, uint32_t ino, uint64_t block, struct err *err)
{
	if (fs->in_use[block])
		return err_set(err, -EUCLEAN, "inode %u: block %llu is in use twice", ino,
			       (unsigned long long)block);
	fs->in_use[block] = true;
	return 0;
}

/* Its blocks are not free. */
int index_claim(struct pmfs *fs, uint32_t ino, struct err *err)
{
	struct node *n = &fs->node[ino];
	struct log_head head;
	int rc = 0;

	for (uint32_t i = 0; i < FILE_BLOCKS && !rc; i++)
		if (n->map[i])
			rc = claim(fs, ino, n->map[i], err);
	if (rc || !n->in.head)
		return rc;
	uint64_t last = (n->in.tail - 1) / BLOCK;

	for (uint64_t b = n->in.head / BLOCK;; b = head.next) {
		rc = log_block(fs, ino, b, &head, err);
		if (!rc)
			rc = claim(fs, ino, b, err);
		if (rc || b == last)
			return rc;
	}
}
