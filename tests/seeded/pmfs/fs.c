/* SPDX-License-Identifier: MIT */
/* fs.c - making and recovering. */
#include <errno.h>

#include "pmfs.h"

void pmfs_init(struct pmfs *fs, unsigned char *memory, uint64_t bugs)
{
	*fs = (struct pmfs){ .m = { .base = memory, .size = POOL_SIZE }, .bugs = bugs };
	fs->m.nt_tail = has_bug(fs, BUG_NT_TAIL);
	fs->m.how = pm_best_flush();
}

void pmfs_release(struct pmfs *fs)
{
	for (int i = 0; i < N_INODES; i++)
		vec_release(&fs->node[i].names);
	pm_trace_release(&fs->m);
}

void pmfs_mkfs(struct pmfs *fs)
{
	static const unsigned char zeros[BLOCK];
	struct super s = { .magic = SUPER_MAGIC, .size = POOL_SIZE, .inodes = 1 };
	struct inode root = { .type = INODE_DIR, .mode = 0755 };

	for (uint64_t b = 0; b < POOL_BLOCKS; b++)
		pm_copy_nt(&fs->m, b * BLOCK, zeros, BLOCK);
	pm_fence(&fs->m);
	inode_write(fs, 0, &root, true);
	s.sum = super_sum(&s);
	pm_store(&fs->m, 0, &s, sizeof(s));
	pm_persist(&fs->m, 0, sizeof(s));
}

static int check_super(struct pmfs *fs, struct err *err)
{
	struct super s;

	pm_load(&fs->m, BLOCK_SUPER * BLOCK, &s, sizeof(s));
	if (s.magic != SUPER_MAGIC || s.size != POOL_SIZE || s.sum != super_sum(&s))
		return err_set(err, -EUCLEAN, "there is no pmfs in this memory");
	if (!s.inodes || s.inodes > N_INODES)
		return err_set(err, -EUCLEAN, "the superblock counts %llu inodes",
			       (unsigned long long)s.inodes);
	fs->inodes = s.inodes;
	return 0;
}

/* ---- the journal ---- */

static void put_copy(struct pmfs *fs, uint64_t block, uint64_t ino, const struct inode *in)
{
	uint64_t at = block * BLOCK + ino * sizeof(*in);

	pm_store(&fs->m, at, in, sizeof(*in));
	if (!has_bug(fs, BUG_RECOVERY_NOFLUSH))
		pm_flush(&fs->m, at, sizeof(*in));
}

static int replay_record(struct pmfs *fs, uint64_t i, struct err *err)
{
	struct record r, first;
	uint64_t at = BLOCK_JOURNAL * BLOCK + PM_LINE_SIZE;

	pm_load(&fs->m, at, &first, sizeof(first));
	pm_load(&fs->m, at + i * RECORD_SIZE, &r, sizeof(r));
	if (r.ino >= N_INODES || r.inode.sum != inode_sum(&r.inode))
		return err_set(err, -EUCLEAN, "record %llu of the journal is damaged",
			       (unsigned long long)i);
	if (has_bug(fs, BUG_JOURNAL_INDEX))
		r.ino = first.ino;
	put_copy(fs, BLOCK_INODES, r.ino, &r.inode);
	pm_fence(&fs->m);
	put_copy(fs, BLOCK_REPLICAS, r.ino, &r.inode);
	pm_fence(&fs->m);
	return 0;
}

static int replay_journal(struct pmfs *fs, struct err *err)
{
	uint64_t n;
	int rc = 0;

	pm_load(&fs->m, BLOCK_JOURNAL * BLOCK, &n, 8);
	if (!n)
		return 0;
	if (n > JOURNAL_MAX)
		return err_set(err, -EUCLEAN, "the journal counts %llu records",
			       (unsigned long long)n);
	if (has_bug(fs, BUG_RECOVERY_ORDER))
		put_journal_clear(fs);
	for (uint64_t i = 0; i < n && !rc; i++)
		rc = replay_record(fs, i, err);
	if (!rc && !has_bug(fs, BUG_RECOVERY_ORDER))
		put_journal_clear(fs);
	return rc;
}

/* ---- inodes ---- */

static bool good_inode(const struct inode *in)
{
	bool empty = !in->head && !in->tail;
	bool log = in->head % BLOCK == 0 && in->head / BLOCK >= BLOCK_FIRST &&
		   in->head < POOL_SIZE && in->tail > BLOCK_FIRST * BLOCK &&
		   in->tail <= POOL_SIZE && in->tail % ENTRY == 0;

	return in->type <= INODE_SYMLINK && (empty || log);
}

/* One of the two copies is whole (I1); both are made to be it. */
static int load_inode(struct pmfs *fs, uint32_t ino, struct err *err)
{
	uint64_t at[2] = { BLOCK_INODES * BLOCK + ino * sizeof(struct inode),
			   BLOCK_REPLICAS * BLOCK + ino * sizeof(struct inode) };
	struct inode copy[2];
	bool whole[2], unused;

	for (int i = 0; i < 2; i++) {
		pm_load(&fs->m, at[i], &copy[i], sizeof(copy[i]));
		whole[i] = copy[i].sum == inode_sum(&copy[i]);
	}
	unused = !memcmp(&copy[1], &(struct inode){ 0 }, sizeof(copy[1]));
	if (!whole[0] && !whole[1] && !unused)
		return err_set(err, -EUCLEAN, "inode %u: both copies are damaged", ino);
	fs->node[ino].in = whole[0] ? copy[0] : copy[1];
	if (!good_inode(&fs->node[ino].in))
		return err_set(err, -EUCLEAN, "inode %u makes no sense", ino);
	if (memcmp(&copy[0], &copy[1], sizeof(copy[0]))) {
		int to = whole[0] ? 1 : 0;

		pm_store(&fs->m, at[to], &copy[!to], sizeof(copy[0]));
		pm_persist(&fs->m, at[to], sizeof(copy[0]));
	}
	return 0;
}

/* ---- names ---- */

static int reach(struct pmfs *fs, uint32_t ino, struct err *err)
{
	struct node *n = &fs->node[ino];
	int rc;

	if (n->used && n->in.type == INODE_DIR)
		return err_set(err, -EUCLEAN, "inode %u: two names lead to this directory", ino);
	if (n->used)
		return 0;
	if (ino >= fs->inodes || n->in.type == INODE_FREE)
		return err_set(err, -EUCLEAN, "a name leads to %u, which is no inode", ino);
	n->used = true;
	rc = index_inode(fs, ino, err);
	if (!rc)
		rc = index_claim(fs, ino, err);
	return rc;
}

static int reach_all(struct pmfs *fs, struct err *err)
{
	uint32_t todo[N_INODES] = { 0 }, n = 1;
	int rc = reach(fs, 0, err);

	for (uint32_t i = 0; i < n && !rc; i++) {
		struct node *dir = &fs->node[todo[i]];

		for (size_t j = 0; j < dir->names.n && !rc; j++) {
			uint32_t ino = dir->names.v[j].ino;
			bool new = !fs->node[ino].used;

			rc = reach(fs, ino, err);
			if (!rc && new && fs->node[ino].in.type == INODE_DIR)
				todo[n++] = ino;
		}
	}
	fs->has_free_list = true;
	return rc;
}

/* ---- the truncate list ---- */

/* The bug: blocks of the log that lie behind the end, whether the file has them or not. */
static int refree(struct pmfs *fs, uint32_t ino, uint64_t size, struct err *err)
{
	struct entry e;
	uint64_t at = 0;
	int rc;

	while ((rc = log_next(fs, ino, &fs->node[ino].in, &at, &e, err)) > 0)
		for (uint32_t i = 0; e.type == ENTRY_WRITE && i < e.n; i++)
			if ((e.from + i) * (uint64_t)BLOCK >= size) {
				rc = block_free(fs, e.block + i, err);
				if (rc)
					return rc;
			}
	return rc;
}

static int replay_truncate(struct pmfs *fs, struct err *err)
{
	uint64_t slot[2];
	int rc = 0;

	pm_load(&fs->m, BLOCK_TRUNCATE * BLOCK, slot, sizeof(slot));
	if (!slot[0] || fs->keeps_list)
		return 0;
	if (slot[0] >= N_INODES || slot[1] > FILE_BLOCKS * BLOCK)
		return err_set(err, -EUCLEAN, "the truncate list is damaged");
	uint32_t ino = (uint32_t)slot[0];

	if (has_bug(fs, BUG_TRUNC_EARLY))
		return block_free(fs, BLOCK_FIRST, err);
	if (has_bug(fs, BUG_TRUNC_REFREE))
		rc = refree(fs, ino, slot[1], err);
	if (!rc && fs->node[ino].used && fs->node[ino].size != slot[1])
		rc = file_truncate(fs, ino, slot[1], err);
	if (!rc)
		truncate_finish(fs, ino);
	return rc;
}

static void forget(struct pmfs *fs)
{
	for (uint32_t i = 0; i < N_INODES; i++) {
		vec_clear(&fs->node[i].names);
		fs->node[i].used = false;
		fs->node[i].in = (struct inode){ 0 };
	}
	memset(fs->in_use, 0, sizeof(fs->in_use));
	fs->has_free_list = false;
}

int pmfs_recover(struct pmfs *fs, struct err *err)
{
	int rc = check_super(fs, err);

	forget(fs);
	if (!rc)
		rc = replay_journal(fs, err);
	for (uint32_t i = 0; i < fs->inodes && !rc; i++)
		rc = load_inode(fs, i, err);
	if (!rc && has_bug(fs, BUG_TRUNC_EARLY))
		rc = replay_truncate(fs, err);
	if (!rc)
		rc = reach_all(fs, err);
	if (!rc)
		rc = replay_truncate(fs, err);
	return rc;
}
