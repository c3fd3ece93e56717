/* SPDX-License-Identifier: MIT */
/* dump.c - what a user sees, and whether it can be used. */
#include <errno.h>

#include "base/hash.h"
#include "pmfs.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static uint32_t count_dirs(const struct pmfs *fs, const struct node *dir)
{
	uint32_t n = 0;

	for (size_t i = 0; i < dir->names.n; i++)
		n += fs->node[dir->names.v[i].ino].in.type == INODE_DIR;
	return n;
}

static void dump_file(struct pmfs *fs, uint32_t ino, struct strbuf *out)
{
	const struct node *n = &fs->node[ino];
	auto_free unsigned char *data = xcalloc(1, n->size + 1);

	file_read(fs, ino, data);
	strbuf_addf(out, "size=%llu ", (unsigned long long)n->size);
	if (n->in.type == INODE_SYMLINK)
		strbuf_adds(out, (const char *)data);
	else
		strbuf_addf(out, "%016llx", (unsigned long long)hash64(data, n->size));
	strbuf_addch(out, '\n');
}

static void dump_dir(struct pmfs *fs, uint32_t ino, const char *prefix, struct strbuf *out)
{
	static const char *const types[] = { "free", "file", "dir", "symlink" };
	struct node *dir = &fs->node[ino];

	if (dir->names.n)
		qsort(dir->names.v, dir->names.n, sizeof(*dir->names.v), by_name);
	for (size_t i = 0; i < dir->names.n; i++) {
		const struct name *name = &dir->names.v[i];
		const struct node *n = &fs->node[name->ino];
		bool is_dir = n->in.type == INODE_DIR;

		strbuf_addf(out, "%s%s %s %04o %u ", prefix, name->text, types[n->in.type],
			    n->in.mode, is_dir ? 2 + count_dirs(fs, n) : n->in.nlink);
		if (!is_dir) {
			dump_file(fs, name->ino, out);
			continue;
		}
		auto_free char *below = xasprintf("%s%s/", prefix, name->text);

		strbuf_addch(out, '\n');
		dump_dir(fs, name->ino, below, out);
	}
}

void pmfs_dump(struct pmfs *fs, struct strbuf *out)
{
	dump_dir(fs, 0, "", out);
}

/* ---- using it ---- */

static int remove_below(struct pmfs *fs, uint32_t ino, const char *prefix, struct err *err)
{
	struct node *dir = &fs->node[ino];
	int rc = 0;

	while (dir->names.n && !rc) {
		struct name name = dir->names.v[0];
		auto_free char *path = xasprintf("%s%s", prefix, name.text);

		if (fs->node[name.ino].in.type == INODE_DIR) {
			auto_free char *below = xasprintf("%s/", path);

			rc = remove_below(fs, name.ino, below, err);
			if (!rc)
				rc = pmfs_rmdir(fs, path);
		} else {
			rc = pmfs_unlink(fs, path);
		}
		if (rc)
			return err_set(err, rc, "%s cannot be removed: %s", path, strerror(-rc));
	}
	return rc;
}

int pmfs_check_links(struct pmfs *fs, struct err *err)
{
	uint32_t names[N_INODES] = { 0 };

	for (uint32_t d = 0; d < N_INODES; d++)
		for (size_t i = 0; fs->node[d].used && i < fs->node[d].names.n; i++)
			names[fs->node[d].names.v[i].ino]++;
	for (uint32_t i = 1; i < N_INODES; i++)
		if (fs->node[i].used && fs->node[i].in.type != INODE_DIR &&
		    fs->node[i].in.nlink != names[i])
			return err_set(err, -EUCLEAN, "inode %u has %u links and %u names", i,
				       fs->node[i].in.nlink, names[i]);
	return 0;
}

static int make_one(struct pmfs *fs)
{
	unsigned char got[700];
	uint32_t ino;
	int rc = pmfs_creat(fs, "new");

	if (!rc)
		rc = pmfs_write(fs, "new", 0, sizeof(got));
	if (!rc)
		rc = path_find(fs, "new", &ino);
	if (rc)
		return rc;
	file_read(fs, ino, got);
	return got[0] && got[sizeof(got) - 1] ? pmfs_unlink(fs, "new") : -EIO;
}

static int all_is_free(struct pmfs *fs, struct err *err)
{
	bool log[POOL_BLOCKS] = { 0 };
	struct log_head head;
	uint64_t b = fs->node[0].in.head / BLOCK;

	while (b && !log[b]) { /* that of the root directory stays */
		log[b] = true;
		pm_load(&fs->m, b * BLOCK, &head, sizeof(head));
		b = b == (fs->node[0].in.tail - 1) / BLOCK ? 0 : head.next % POOL_BLOCKS;
	}
	for (uint32_t i = BLOCK_FIRST; i < POOL_BLOCKS; i++)
		if (fs->in_use[i] != log[i])
			return err_set(err, -EUCLEAN, "block %u is lost", i);
	return 0;
}

int pmfs_use(struct pmfs *fs, struct err *err)
{
	int rc = remove_below(fs, 0, "", err);

	if (rc)
		return rc;
	rc = make_one(fs);
	if (rc)
		return err_set(err, rc, "no file can be made: %s", strerror(-rc));
	return all_is_free(fs, err);
}
