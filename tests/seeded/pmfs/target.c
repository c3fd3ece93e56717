/* SPDX-License-Identifier: MIT */
/*
 * target.c - pmfs as a target of outage test: "pmfs" is right, "pmfs:BUG,BUG" is wrong in known
 * ways. Those of a read-only mount, and of making that writable, are of this file alone.
 *
 * Linked with the program itself into one that only tests use (outage-pmfs). The file system runs
 * in the worker, on the memory that is its disk; what its primitives do there is the trace, with
 * the lines that were read. Nothing is mounted on this machine, so that no root is needed.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "check/finding.h"
#include "core/event.h"
#include "pmfs.h"
#include "record/disk_impl.h"
#include "record/pm_stream.h"
#include "target/target.h"
#include "workload/content.h"

enum { LINES = POOL_SIZE / PM_LINE_SIZE };

/* ---- the disk ---- */

struct pool {
	struct disk base;
	struct pmfs fs;
	bool traced;
	unsigned char read[LINES];
};

static struct pool *of_disk(struct disk *d)
{
	return container_of(d, struct pool, base);
}

static int pool_probe(struct err *err)
{
	(void)err;
	return 0;
}

static const struct disk_ops pool_ops;

static int pool_open(uint64_t size, struct disk **out, struct err *err)
{
	struct pool *p = xcalloc(1, sizeof(*p));
	int rc = disk_init(&p->base, &pool_ops, size, err);

	p->base.loop = (struct loop){ .path = "the pool", .sector_size = 8 };
	*out = &p->base;
	return rc;
}

static void pool_close(struct disk *d)
{
	d->loop.path[0] = '\0'; /* there is no device */
	disk_release(d);
	free(of_disk(d));
}

/* It is small: what was written where is not worth knowing. */
static void pool_unmounted(struct disk *d)
{
	disk_unknown(d);
}

static int pool_settle(struct disk *d, struct err *err)
{
	(void)err;
	disk_unknown(d);
	return 0;
}

static void begin_trace(struct pool *p)
{
	p->fs.m.read = p->read;
	pm_trace_start(&p->fs.m);
}

static int pool_start(struct disk *d, struct err *err)
{
	struct pool *p = of_disk(d);

	(void)err;
	p->traced = d->trace;
	memset(p->read, 0, sizeof(p->read));
	if (p->traced && p->base.in_use)
		begin_trace(p);
	return 0;
}

static void take_reads(struct pool *p)
{
	for (uint64_t i = 0; i < LINES; i++)
		if (p->read[i])
			trace_append(p->base.trace, &(struct event){ .kind = EV_LOAD,
								     .addr = i * PM_LINE_SIZE,
								     .len = PM_LINE_SIZE });
	memset(p->read, 0, sizeof(p->read));
}

/* The stream ends here and begins anew. Its places are those of this program, and tell nothing. */
static int pool_drain(struct disk *d, struct err *err)
{
	struct pool *p = of_disk(d);
	auto_trace part;

	trace_init(&part);
	if (!p->traced || !p->base.in_use)
		return 0;
	pm_trace_end(&p->fs.m);
	int rc = pm_stream_read(p->fs.m.stream, p->fs.m.len, &part, NULL, err);
	for (size_t i = 0; i < part.events.n && !rc; i++)
		trace_append(d->trace, &part.events.v[i]);
	if (!rc)
		take_reads(p);
	pm_trace_release(&p->fs.m);
	begin_trace(p);
	return rc;
}

static int pool_stop(struct disk *d, struct err *err)
{
	struct pool *p = of_disk(d);
	int rc = pool_drain(d, err);

	pm_trace_release(&p->fs.m);
	p->fs.m.read = NULL;
	p->traced = false;
	disk_unknown(d);
	return rc;
}

static const struct disk_ops pool_ops = {
	.name = "pool",
	.help = "is the memory of a file system in this process",
	.info = "stores, flushes and fences of pmfs",
	.kind = DISK_PM,
	.probe = pool_probe,
	.open = pool_open,
	.close = pool_close,
	.in_guest = "pool",
	.unmounted = pool_unmounted,
	.settle = pool_settle,
	.start = pool_start,
	.drain = pool_drain,
	.stop = pool_stop,
};

/* ---- the file system ---- */

/* How it takes it to be mounted read-only first. */
enum way {
	WAY_NO_READ_ONLY, /* never */
	WAY_CLEAN_ONLY,	  /* not if a truncate is to be finished, which would write */
	WAY_WARNS,	  /* and a warning of the kernel says that it is not */
	WAY_COMPLAINS,	  /* or words about the disk do */
	WAY_NO_REMOUNT,	  /* it cannot be made writable */
	WAY_KEEPS_LIST,	  /* a truncate is left on the list, and with that it stays read-only */
	WAY_DIES,	  /* or does not survive to be made writable */
	WAY_FORGETS,	  /* made writable, it does not know any more which blocks are in use */
	WAY_TORN,	  /* that changes the superblock, which is wrong meanwhile */
	N_WAYS
};

static const char *const way_names[N_WAYS] = {
	"no-ro",   "ro-clean",	   "ro-warns",	      "ro-complains", "no-remount",
	"ro-list", "remount-dies", "remount-forgets", "remount-torn",
};

struct own {
	uint64_t bugs;
	bool way[N_WAYS];
	const struct workload *w;
};

static struct own *own(struct target *t)
{
	return t->own;
}

static struct pmfs *fs_of(struct target *t)
{
	return &of_disk(t->disk)->fs;
}

static int parse_word(struct target *t, const char *word)
{
	for (int i = 0; i < N_WAYS; i++)
		if (streq(word, way_names[i])) {
			own(t)->way[i] = true;
			return 0;
		}
	return bugs_parse(word, &own(t)->bugs);
}

static int target_open_pmfs(struct target *t, const struct target_opts *opts, struct err *err)
{
	const char *colon = strchr(opts->spec, ':');

	t->own = xcalloc(1, sizeof(struct own));
	auto_free char *words = xstrdup(colon ? colon + 1 : "");
	char *rest = words;
	for (char *word; (word = strsep(&rest, ","));)
		if (parse_word(t, word))
			return err_set(err, -EINVAL,
				       "pmfs has no bug '%.80s'; see pmfs --list-bugs", word);
	t->opts.size = POOL_SIZE;
	return pool_open(POOL_SIZE, &t->disk, err);
}

static void target_close_pmfs(struct target *t)
{
	free(t->own);
	t->own = NULL;
}

static void prepare(struct pmfs *fs, unsigned char *memory, uint64_t bugs)
{
	pmfs_init(fs, memory, bugs);
	fs->m.ordinary = true;
	fs->m.how = PM_CLWB;
}

static int make_pmfs(struct target *t, struct image *out, struct err *err)
{
	unsigned char *memory = aligned_alloc(IMAGE_PAGE, POOL_SIZE);
	struct pmfs *fs = xcalloc(1, sizeof(*fs));

	(void)t;
	(void)err;
	assert(memory);
	memset(memory, 0, POOL_SIZE);
	prepare(fs, memory, 0);
	pmfs_mkfs(fs);
	pmfs_release(fs);
	image_init(out, POOL_SIZE);
	image_write(out, 0, memory, POOL_SIZE);
	free(fs);
	free(memory);
	return 0;
}

static bool has_truncate(struct pmfs *fs)
{
	uint64_t ino;

	pm_load(&fs->m, BLOCK_TRUNCATE * BLOCK, &ino, sizeof(ino));
	return ino != 0;
}

static int recover_pmfs(struct target *t, struct err *why)
{
	const bool *way = own(t)->way;
	struct pmfs *fs = fs_of(t);

	fs->keeps_list = t->read_only && (way[WAY_KEEPS_LIST] || way[WAY_DIES]);
	if (t->read_only && (way[WAY_NO_READ_ONLY] || (way[WAY_CLEAN_ONLY] && has_truncate(fs))))
		return err_set(why, -EROFS, "it is not mounted read-only");
	return pmfs_recover(fs, why);
}

/* What a kernel would say of a read-only mount that it refuses. */
static void complain(struct target *t)
{
	const bool *way = own(t)->way;

	if (t->read_only && (way[WAY_WARNS] || way[WAY_COMPLAINS]))
		strbuf_adds(&t->complaints, "pmfs (pool): error: a truncate is to be finished\n");
	if (t->read_only && way[WAY_WARNS])
		strbuf_adds(&t->complaints,
			    "WARNING: fs/pmfs/mount.c:7 at pmfs_mount\nCall Trace:\n");
}

/* Recovery is what a mount does, read-only or not. */
static int mount_pmfs(struct target *t, struct strbuf *said, struct err *err)
{
	struct pool *p = of_disk(t->disk);
	struct err why = ERR_INIT;

	prepare(&p->fs, p->base.map, own(t)->bugs);
	if (p->traced)
		begin_trace(p);
	disk_set_in_use(t->disk, true);
	if (recover_pmfs(t, &why) == 0)
		return 0;
	strbuf_addf(said, "%s\n", why.msg);
	complain(t);
	int rc = pool_drain(t->disk, err);
	pmfs_release(&p->fs);
	disk_set_in_use(t->disk, false);
	return rc ? rc : 1;
}

static void change_super(struct pmfs *fs)
{
	static const uint64_t wrong = 0, right = SUPER_MAGIC;

	pm_store(&fs->m, 0, &wrong, sizeof(wrong));
	pm_persist(&fs->m, 0, sizeof(wrong));
	pm_store(&fs->m, 0, &right, sizeof(right));
	pm_persist(&fs->m, 0, sizeof(right));
}

/* As if the kernel were gone, and the mount with it. */
static int die(struct target *t, struct strbuf *said, struct err *err)
{
	struct pool *p = of_disk(t->disk);
	int rc = pool_drain(t->disk, err);

	pmfs_release(&p->fs);
	t->mounted = false;
	disk_set_in_use(t->disk, false);
	t->died = true;
	strbuf_adds(said, "the kernel died: of a truncate\n");
	return rc ? rc : 1;
}

static int remount_pmfs(struct target *t, struct strbuf *said, struct err *err)
{
	const bool *way = own(t)->way;
	struct pmfs *fs = fs_of(t);

	if (way[WAY_DIES] && has_truncate(fs))
		return die(t, said, err);
	if (way[WAY_NO_REMOUNT] || (way[WAY_KEEPS_LIST] && has_truncate(fs))) {
		strbuf_adds(said, way[WAY_NO_REMOUNT] ? "there is no remount\n"
						      : "a truncate is not finished\n");
		return 1;
	}
	if (way[WAY_FORGETS])
		memset(fs->in_use, 0, sizeof(fs->in_use));
	if (way[WAY_TORN])
		change_super(fs);
	return 0;
}

static int umount_pmfs(struct target *t, bool clean, struct err *err)
{
	struct pool *p = of_disk(t->disk);
	int rc = pool_drain(t->disk, err);

	(void)clean;
	pmfs_release(&p->fs);
	disk_set_in_use(t->disk, false);
	return rc;
}

/* ---- operations ---- */

static int far_begin(struct target *t, const struct workload *w, struct err *err)
{
	(void)err;
	own(t)->w = w;
	return 0;
}

static int far_end(struct target *t, struct err *err)
{
	(void)t;
	(void)err;
	return 0;
}

/* What an operation writes, as the reference does. */
static int64_t write_content(struct target *t, size_t i, const char *path, uint64_t off, bool end,
			     uint64_t len)
{
	struct pmfs *fs = fs_of(t);
	uint32_t ino;
	int rc = path_find(fs, path, &ino);

	if (rc == -ENOENT) {
		rc = pmfs_creat(fs, path);
		if (!rc)
			rc = path_find(fs, path, &ino);
	}
	if (!rc && fs->node[ino].in.type != INODE_FILE)
		rc = fs->node[ino].in.type == INODE_DIR ? -EISDIR : -EOPNOTSUPP;
	if (rc || len > FILE_BLOCKS * BLOCK)
		return rc ? rc : -EFBIG;
	if (end)
		off = fs->node[ino].size;
	auto_free unsigned char *data = xcalloc(1, len + 1);

	content_fill(content_tag(own(t)->w), i, off, data, len);
	rc = file_write(fs, ino, off, data, len, false);
	return rc ? rc : (int64_t)len;
}

static int64_t creat_or_cut(struct pmfs *fs, const char *path, uint64_t mode)
{
	uint32_t ino;

	if (path_find(fs, path, &ino) == 0)
		return pmfs_truncate(fs, path, 0);
	int rc = pmfs_creat(fs, path);
	return rc || mode == 0644 ? rc : pmfs_chmod(fs, path, (unsigned)mode);
}

static int64_t remove_any(struct pmfs *fs, const char *path)
{
	int rc = pmfs_unlink(fs, path);

	return rc == -EISDIR ? pmfs_rmdir(fs, path) : rc;
}

static int64_t fallocate_pmfs(struct pmfs *fs, const struct op *op)
{
	uint64_t mode = op->args[1].num;

	if (mode & ~(uint64_t)FALLOC_FL_KEEP_SIZE)
		return -EOPNOTSUPP;
	return pmfs_falloc(fs, op->args[0].text, mode & FALLOC_FL_KEEP_SIZE, op->args[2].num,
			   op->args[3].num);
}

static int64_t perform(struct target *t, size_t i)
{
	const struct op *op = &own(t)->w->ops.v[i];
	const char *name = op->def->name, *a = op->args[0].text, *b = op->args[1].text;
	struct pmfs *fs = fs_of(t);

	if (op->args[0].is_handle || op->handle)
		return -EOPNOTSUPP;
	if (streq(name, "creat"))
		return creat_or_cut(fs, a, op->args[1].num);
	if (streq(name, "mkdir"))
		return pmfs_mkdir(fs, a);
	if (streq(name, "rmdir"))
		return pmfs_rmdir(fs, a);
	if (streq(name, "unlink"))
		return pmfs_unlink(fs, a);
	if (streq(name, "remove"))
		return remove_any(fs, a);
	if (streq(name, "link"))
		return pmfs_link(fs, a, b);
	if (streq(name, "symlink"))
		return pmfs_symlink(fs, a, b);
	if (streq(name, "rename") && !op->args[2].num)
		return pmfs_rename(fs, a, b);
	if (streq(name, "chmod"))
		return pmfs_chmod(fs, a, (unsigned)op->args[1].num);
	if (streq(name, "write"))
		return write_content(t, i, a, op->args[1].num, false, op->args[2].num);
	if (streq(name, "append"))
		return write_content(t, i, a, 0, true, op->args[1].num);
	if (streq(name, "truncate"))
		return pmfs_truncate(fs, a, op->args[1].num);
	if (streq(name, "falloc"))
		return fallocate_pmfs(fs, op);
	/* Everything is durable already. */
	return streq(name, "sync") || streq(name, "fsync") || streq(name, "fdatasync")
		       ? 0
		       : -EOPNOTSUPP;
}

static int far_op(struct target *t, size_t i, int64_t *result, struct err *err)
{
	(void)err;
	*result = perform(t, i);
	return 0;
}

/* ---- looking ---- */

static void add_node(struct pmfs *fs, uint32_t ino, const char *path, const struct tree_opts *opts,
		     struct tree *out)
{
	static const enum tree_type types[] = { TREE_UNKNOWN, TREE_FILE, TREE_DIR, TREE_SYMLINK };
	struct node *n = &fs->node[ino];
	auto_free unsigned char *data = xcalloc(1, n->size + 1);
	struct tree_entry e = { .path = path,
				.type = types[n->in.type],
				.mode = n->in.mode,
				.nlink = n->in.nlink,
				.size = n->size,
				.dev = 1,
				.inode = ino + 1 };

	if (n->in.type == INODE_DIR) {
		e.nlink = 2;
		e.size = 0;
		for (size_t i = 0; i < n->names.n; i++)
			e.nlink += fs->node[n->names.v[i].ino].in.type == INODE_DIR;
	} else {
		file_read(fs, ino, data);
		if (e.type == TREE_SYMLINK)
			e.target = (const char *)data;
		else
			e.content = data;
	}
	tree_add(out, &e, opts);
	for (size_t i = 0; n->in.type == INODE_DIR && i < n->names.n; i++) {
		auto_free char *below =
			xasprintf("%s%s%s", path, *path ? "/" : "", n->names.v[i].text);

		add_node(fs, n->names.v[i].ino, below, opts, out);
	}
}

static int far_walk(struct target *t, const struct tree_opts *opts, struct tree *out,
		    struct err *err)
{
	(void)err;
	tree_clear(out);
	out->lacks = TREE_FIELD_BLOCKS | TREE_FIELD_TIMES | TREE_FIELD_DIR_SIZE;
	add_node(fs_of(t), 0, "", opts, out);
	tree_finish(out);
	return 0;
}

static int far_usable(struct target *t, const struct tree *seen, struct findings *out,
		      struct err *err)
{
	struct err why = ERR_INIT;

	(void)seen;
	(void)err;
	if (pmfs_use(fs_of(t), &why))
		findings_add(out, FINDING_UNUSABLE, NULL, xstrdup(why.msg), NULL);
	return 0;
}

static int far_stat(struct target *t, const char *path, struct target_stat *out, struct err *err)
{
	(void)t;
	(void)path;
	(void)err;
	*out = (struct target_stat){ 0 };
	return 0;
}

static int far_sync(struct target *t, struct err *err)
{
	(void)t;
	(void)err;
	return 0;
}

/* ---- commands of the user's ---- */

/* There is no directory: one is made, with what is there. */
static int make_entry(int dir, const struct tree_entry *e)
{
	if (!*e->path)
		return 0;
	if (e->type == TREE_DIR)
		return mkdirat(dir, e->path, 0700);
	if (e->type == TREE_SYMLINK)
		return symlinkat(e->target, dir, e->path);
	auto_fd fd = openat(dir, e->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : io_write_full(fd, e->content ? e->content : "", e->size);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	(void)at;
	return remove(path);
}

static int far_command(struct target *t, const struct user_command *c, struct user_end *end,
		       struct err *err)
{
	char dir[] = "/tmp/pmfs-XXXXXX";
	auto_tree seen = TREE_INIT;
	int rc = mkdtemp(dir) ? 0 : err_set(err, -errno, "cannot make a directory: %m");
	auto_fd at = rc ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!rc)
		rc = far_walk(t, &(struct tree_opts){ 0 }, &seen, err);
	for (size_t i = 0; !rc && i < seen.entries.n; i++)
		if (make_entry(at, &seen.entries.v[i]))
			rc = err_set(err, -EIO, "cannot make %s/%s", dir, seen.entries.v[i].path);
	if (!rc)
		rc = user_command_run(c, dir, end, err);
	if (at >= 0)
		nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}

static const struct target_far far = {
	.begin = far_begin,
	.op = far_op,
	.end = far_end,
	.walk = far_walk,
	.usable = far_usable,
	.stat = far_stat,
	.sync = far_sync,
	.command = far_command,
};

static const struct target_ops pmfs = {
	.name = "pmfs",
	.help = "a file system on persistent memory, with bugs if asked to",
	.guarantee = "atomic",
	.pm = true,
	.pm_loads = true,
	.open = target_open_pmfs,
	.mkfs = make_pmfs,
	.mount = mount_pmfs,
	.remount = remount_pmfs,
	.umount = umount_pmfs,
	.close = target_close_pmfs,
	.far = &far,
};

__attribute__((constructor)) static void add(void)
{
	target_register(&pmfs);
}
