/* SPDX-License-Identifier: MIT */
/*
 * fuzz_reffs.c - reffs_load takes any bytes without harm; what it accepts behaves as a state does:
 * it is written and read again, and calls can be made on it.
 */
#include <sys/stat.h>

#include "fs/pickle.h"
#include "fs/reffs_pool.h"
#include "fs/vfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct use {
	struct reffs *r;
};

static int take(void *ctx, const struct vfs_dirent *e)
{
	(void)ctx;
	assert(e->cookie);
	return 0;
}

static int try_inode(void *ctx, const struct reffs_inode *inode)
{
	struct use *u = ctx;
	struct vfs_setattr mode = { .set = VFS_SET_MODE, .mode = 0751 };
	struct reffs_cred nobody = { .uid = 12345, .gid = 12345 };
	struct vfs_dir d = { 0 };
	struct reffs_attr a;
	uint64_t ino;
	char byte;

	reffs_attr(inode, &a);
	vfs_access(u->r, &nobody, a.ino, 7);
	vfs_setattr(u->r, &reffs_root, a.ino, &mode);
	vfs_read(u->r, a.ino, &byte, a.size / 2, 1);
	vfs_write(u->r, &nobody, a.ino, "x", a.size / 2, 1, 0);
	vfs_readdir(u->r, a.ino, &d, 0, take, NULL);
	vfs_dir_release(&d);
	vfs_mkdir(u->r, &reffs_root, a.ino, "new", 0777, &ino);
	vfs_rename(u->r, &reffs_root, a.ino, "new", REFFS_ROOT_INO, "moved", 0);
	return 0;
}

static int try_state(void *ctx, uint64_t key, struct reffs_state *s)
{
	struct use *u = ctx;

	(void)key;
	reffs_restore(u->r, s);
	return reffs_inodes(s, try_inode, u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reffs *r = reffs_new(NULL);
	struct reffs_pool first = { 0 }, second = { 0 };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct use u = { r };

	pickle_any_sum = true;
	if (reffs_load(r, &first, data, size, &err) < 0) {
		assert(err.code < 0 && *err.msg && !first.n);
	} else {
		if (reffs_pickle(&first, NULL, &text, &err))
			abort();
		pickle_any_sum = false;
		if (reffs_load(r, &second, text.buf, text.len, &err))
			abort();
		assert(first.n == second.n);
		reffs_pool_each(&first, try_state, &u);
	}
	reffs_pool_release(&first);
	reffs_pool_release(&second);
	reffs_free(r);
	return 0;
}
