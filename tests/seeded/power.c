/* SPDX-License-Identifier: MIT */
/*
 * power.c - proves seedfs: the correct version survives every crash, each bug shows in one.
 *
 *	seedfs-power [--seed N] [--random N] [--bug NAME] [--table] [--all]
 *
 * It runs workloads on seedfs in this process, on a disk in memory that records each write and each
 * flush, and cuts the power at every event: with all that was written (prefix), with subsets of
 *what was not flushed (reorder), with a write cut at a sector (torn), and once more during
 *recovery. What recovery then shows must be the state after some operation, none earlier than the
 *last one that made things durable: that is what seedfs promises, and more than POSIX does.
 *
 * With a bug, the live states must be those of the correct version, operation by operation and
 *after a clean unmount; and its workload must show a forbidden state, of the right kind, in the
 *kind of crash that the table of bugs names and in none that is milder; with --all, no workload may
 *show it in a milder one. This is the judge of a judge: it shares no code with outage's engine.
 */
#include "jfs/seedfs.h"

#include <ctype.h>
#include <errno.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdarg.h>

#include "base/hash.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/strbuf.h"

#define DISK_BLOCKS  MIN_BLOCKS
#define DISK_SIZE    ((size_t)DISK_BLOCKS * BLOCK_BYTES)
#define MAX_OPS	     64
#define SUBSETS	     12 /* random ones a crash point */
#define FLUSH	     UINT32_MAX
#define MAX_MESSAGES 10

enum crash_mode { AFTER, PREFIX, REORDER, TORN, RECOVERY, N_MODES };
static const char *const mode_names[] = { CRASH_IDLE, CRASH_PREFIX, CRASH_REORDER, CRASH_TORN,
					  CRASH_RECOVERY };

/* --- the disk that remembers --- */

struct event {
	uint32_t block; /* or FLUSH */
	int op;
	unsigned char *data;
};

struct record {
	struct vec_of(struct event) events;
	int op;
};

static void watch(void *ctx, uint32_t block, const void *data)
{
	struct record *rec = ctx;
	struct event e = { .block = data ? block : FLUSH, .op = rec->op };

	if (data)
		e.data = memcpy(xmalloc(BLOCK_BYTES), data, BLOCK_BYTES);
	vec_push(&rec->events, e);
}

static void record_release(struct record *rec)
{
	for (size_t i = 0; i < rec->events.n; i++)
		free(rec->events.v[i].data);
	vec_release(&rec->events);
}

/* --- what the user sees, as text --- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct dir_entry *)a)->name, ((const struct dir_entry *)b)->name);
}

static void show_file(struct fs *fs, uint32_t ino, struct strbuf *out)
{
	const struct dinode *di = inode_get(fs, ino);
	size_t size = (size_t)min(di->size, (uint64_t)64 << 20);
	auto_free char *data = xmalloc(size + 1);
	ssize_t n;

	if (S_ISLNK(di->mode) && size <= sizeof(di->target)) {
		strbuf_addf(out, " -> %.*s", (int)size, di->target);
		return;
	}
	n = file_read(fs, ino, data, size, 0);
	if (n < 0)
		strbuf_addf(out, " unreadable %s", strerror((int)-n));
	else
		strbuf_addf(out, " size %zu blocks %u data %08llx", size, di->blocks,
			    (unsigned long long)hash64(data, (size_t)n) & 0xffffffff);
}

static void show_xattrs(struct fs *fs, uint32_t ino, struct strbuf *out)
{
	char list[BLOCK_BYTES], value[BLOCK_BYTES];
	ssize_t n = xattr_list(fs, ino, list, sizeof(list));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(list + at) + 1) {
		ssize_t len = xattr_get(fs, ino, list + at, value, sizeof(value));

		strbuf_addf(out, " %s=%.*s", list + at, len < 0 ? 0 : (int)len, value);
	}
	if (n < 0)
		strbuf_adds(out, " damaged attributes");
}

static void show_tree(struct fs *fs, uint32_t dir, const char *path, int depth, struct strbuf *out)
{
	struct vec_of(struct dir_entry) all = { 0 };
	struct dir_entry e = { 0 };
	int r;

	while ((r = dir_next(fs, dir, e.next, &e)) == 0)
		vec_push(&all, e);
	if (all.n)
		qsort(all.v, all.n, sizeof(e), by_name);
	if (r != -ENOENT || depth > 8)
		strbuf_addf(out, "%s unreadable\n", path);
	for (size_t i = 0; i < all.n && depth <= 8; i++) {
		auto_free char *p = xasprintf("%s%s%s", path, *path ? "/" : "", all.v[i].name);
		const struct dinode *di = inode_live(fs, all.v[i].ino);

		if (!di) {
			strbuf_addf(out, "%s names a free inode\n", p);
			continue;
		}
		strbuf_addf(out, "%s #%u %o %u:%u links %u m %lld c %lld", p, all.v[i].ino,
			    di->mode, di->uid, di->gid, di->n_link,
			    (long long)(di->mtime / 1000000000),
			    (long long)(di->ctime / 1000000000));
		if (S_ISREG(di->mode) || S_ISLNK(di->mode))
			show_file(fs, all.v[i].ino, out);
		show_xattrs(fs, all.v[i].ino, out);
		strbuf_addch(out, '\n');
		if (S_ISDIR(di->mode))
			show_tree(fs, all.v[i].ino, p, depth + 1, out);
	}
	vec_release(&all);
}

static char *show(struct fs *fs)
{
	struct strbuf out = STRBUF_INIT;

	strbuf_addf(&out, "/ links %u\n", inode_get(fs, ROOT_INO)->n_link);
	show_tree(fs, ROOT_INO, "", 0, &out);
	return strbuf_detach(&out);
}

/* --- running a workload --- */

struct run {
	struct disk disk;
	struct fs *fs;
	struct record rec;
	unsigned char *start;	  /* the disk before the first operation */
	unsigned char *mem;	  /* and as it is */
	char *state[MAX_OPS + 1]; /* after each operation; 0: before the first */
	bool persists[MAX_OPS + 1];
	size_t end[MAX_OPS + 1]; /* events up to the end of each */
	int n_ops;
	uint32_t held;
};

static int walk(struct fs *fs, const char *path, uint32_t *dir, char name[NAME_MAX_LEN + 1])
{
	*dir = ROOT_INO;
	for (;;) {
		size_t len = strcspn(path, "/");
		int r;

		snprintf(name, NAME_MAX_LEN + 1, "%.*s", (int)len, path);
		if (path[len] == '\0')
			return 0;
		r = dir_find(fs, *dir, name, dir);
		if (r < 0)
			return r;
		if (!S_ISDIR(inode_get(fs, *dir)->mode))
			return -ENOTDIR;
		path += len + 1;
	}
}

static int lookup(struct fs *fs, const char *path, uint32_t *ino)
{
	char name[NAME_MAX_LEN + 1];
	uint32_t dir;
	int r = 0;

	*ino = ROOT_INO;
	if (!streq(path, "."))
		r = walk(fs, path, &dir, name);
	return r < 0 || streq(path, ".") ? r : dir_find(fs, dir, name, ino);
}

static int op_make(struct fs *fs, const char *path, mode_t mode, const char *target)
{
	struct owner owner = { 0, 0 };
	char name[NAME_MAX_LEN + 1];
	uint32_t dir, ino;
	int r = walk(fs, path, &dir, name);

	if (r < 0)
		return r;
	if (target)
		return dir_symlink(fs, dir, name, target, owner, &ino);
	return dir_make(fs, dir, name, mode, 0, owner, &ino);
}

static int op_write(struct run *run, const char *path, int64_t off, size_t len, unsigned flags)
{
	auto_free unsigned char *data = xmalloc(len + 1);
	uint32_t ino;
	ssize_t n;
	int r = lookup(run->fs, path, &ino);

	if (r == -ENOENT) {
		r = op_make(run->fs, path, S_IFREG | 0644, NULL);
		r = r < 0 ? r : lookup(run->fs, path, &ino);
	}
	if (r < 0)
		return r;
	if (!S_ISREG(inode_get(run->fs, ino)->mode))
		return -EISDIR;
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(run->rec.op * 31 + (int)(i / 512) + 1);
	if (off < 0)
		off = (int64_t)inode_get(run->fs, ino)->size;
	if (flags & WRITE_MAPPED && inode_get(run->fs, ino)->size < (uint64_t)off + len)
		r = file_truncate(run->fs, ino, (uint64_t)off + len);
	n = r < 0 ? r : file_write(run->fs, ino, data, len, (uint64_t)off, flags);
	return n < 0 ? (int)n : 0;
}

static int op_names(struct fs *fs, const char *op, const char *a, const char *b, const char *how)
{
	unsigned flags = how && streq(how, "exchange")	  ? RENAME_EXCHANGE
			 : how && streq(how, "noreplace") ? RENAME_NOREPLACE
							  : 0;
	char name[NAME_MAX_LEN + 1], new_name[NAME_MAX_LEN + 1];
	uint32_t dir, new_dir, ino;
	int r = walk(fs, b, &new_dir, new_name);

	if (r < 0)
		return r;
	if (streq(op, "link")) {
		r = lookup(fs, a, &ino);
		return r < 0 ? r : dir_link(fs, ino, new_dir, new_name);
	}
	r = walk(fs, a, &dir, name);
	return r < 0 ? r : dir_rename(fs, dir, name, new_dir, new_name, flags);
}

static int falloc_mode(const char *s)
{
	return streq(s, "keep")	   ? FALLOC_FL_KEEP_SIZE
	       : streq(s, "punch") ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
	       : streq(s, "zero")  ? FALLOC_FL_ZERO_RANGE
	       : streq(s, "zkeep") ? FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE
				   : 0;
}

static int op_on_inode(struct run *run, uint32_t ino, char **w)
{
	struct fs *fs = run->fs;
	bool regular = S_ISREG(inode_get(fs, ino)->mode);
	struct attr_change c = { .set = SET_MODE };

	if (streq(w[0], "fsync") || streq(w[0], "fdatasync"))
		return fs_fsync(fs, ino);
	if (streq(w[0], "setxattr"))
		return xattr_set(fs, ino, w[2], w[3], strlen(w[3]), 0);
	if (streq(w[0], "removexattr"))
		return xattr_remove(fs, ino, w[2]);
	if (streq(w[0], "chmod")) {
		c.mode = (uint32_t)strtoul(w[2], NULL, 8);
		return inode_set_attr(fs, ino, &c);
	}
	if (streq(w[0], "hold")) {
		if (run->held)
			return -EBUSY;
		run->held = ino;
		inode_ref(fs, ino);
		return 0;
	}
	if (!regular)
		return -EINVAL;
	if (streq(w[0], "truncate"))
		return file_truncate(fs, ino, strtoul(w[2], NULL, 0));
	if (streq(w[0], "falloc"))
		return file_fallocate(fs, ino, falloc_mode(w[2]), strtoul(w[3], NULL, 0),
				      strtoul(w[4], NULL, 0));
	abort();
}

static int remount(struct run *run)
{
	struct recovered rec;
	char why[256];
	int r;

	run->held = 0;
	r = fs_close(run->fs);
	return r < 0 ? r : fs_open(&run->disk, true, &rec, why, sizeof(why), &run->fs);
}

static int op_run(struct run *run, char **w, int n)
{
	char name[NAME_MAX_LEN + 1];
	struct fs *fs = run->fs;
	uint32_t ino, dir;
	int r;

	if (streq(w[0], "sync"))
		return fs_sync(fs);
	if (streq(w[0], "remount"))
		return remount(run);
	if (streq(w[0], "drop")) {
		ino = run->held;
		run->held = 0;
		if (ino)
			inode_unref(fs, ino, 1);
		return 0;
	}
	assert(n >= 2);
	if (streq(w[0], "creat"))
		return op_make(fs, w[1], S_IFREG | 0644, NULL);
	if (streq(w[0], "mkdir"))
		return op_make(fs, w[1], S_IFDIR | 0755, NULL);
	if (streq(w[0], "mkfifo"))
		return op_make(fs, w[1], S_IFIFO | 0600, NULL);
	if (streq(w[0], "symlink"))
		return op_make(fs, w[2], 0, w[1]);
	if (streq(w[0], "append"))
		return op_write(run, w[1], -1, strtoul(w[2], NULL, 0), 0);
	if (streq(w[0], "write") || streq(w[0], "dwrite") || streq(w[0], "mmapwrite"))
		return op_write(run, w[1], strtol(w[2], NULL, 0), strtoul(w[3], NULL, 0),
				w[0][0] == 'd'	 ? WRITE_DIRECT
				: w[0][0] == 'm' ? WRITE_MAPPED
						 : 0);
	if (streq(w[0], "link") || streq(w[0], "rename"))
		return op_names(fs, w[0], w[1], w[2], n > 3 ? w[3] : NULL);
	if (streq(w[0], "unlink") || streq(w[0], "rmdir")) {
		r = walk(fs, w[1], &dir, name);
		if (r < 0)
			return r;
		return w[0][0] == 'u' ? dir_unlink(fs, dir, name) : dir_rmdir(fs, dir, name);
	}
	r = lookup(fs, w[1], &ino);
	return r < 0 ? r : op_on_inode(run, ino, w);
}

static int split(char *line, char *w[8])
{
	int n = 0;

	for (char *p = line; *p && n < 7;) {
		while (*p == ' ')
			*p++ = '\0';
		if (!*p)
			break;
		w[n++] = p;
		while (*p && *p != ' ')
			p++;
	}
	w[n] = NULL;
	return n;
}

static void run_init(struct run *run)
{
	struct recovered rec;
	char why[256];

	*run = (struct run){ .mem = xcalloc(1, DISK_SIZE), .start = xmalloc(DISK_SIZE) };
	run->disk = (struct disk){ .fd = -1, .mem = run->mem, .n_blocks = DISK_BLOCKS };
	if (fs_mkfs(&run->disk, DISK_BLOCKS) < 0 ||
	    fs_open(&run->disk, true, &rec, why, sizeof(why), &run->fs) < 0)
		abort();
	memcpy(run->start, run->mem, DISK_SIZE);
	run->disk.watch = watch;
	run->disk.watch_ctx = &run->rec;
	run->state[0] = show(run->fs);
	run->persists[0] = true;
}

/* Runs the workload; the file system stays open. */
static void run_workload(struct run *run, const char *text)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy, *line;

	run_init(run);
	while ((line = strsep(&rest, ";")) && run->n_ops < MAX_OPS) {
		char *w[8];
		int n = split(line, w), r;

		if (n == 0)
			continue;
		run->rec.op = ++run->n_ops;
		r = op_run(run, w, n);
		run->state[run->n_ops] = show(run->fs);
		run->end[run->n_ops] = run->rec.events.n;
		run->persists[run->n_ops] =
			r == 0 && (strstr(w[0], "sync") || w[0][0] == 's') &&
			(streq(w[0], "sync") || strstr(w[0], "fsync") || streq(w[0], "fdatasync"));
		if (streq(w[0], "remount"))
			run->persists[run->n_ops] = r == 0;
	}
}

static void run_release(struct run *run)
{
	if (run->fs)
		fs_free(run->fs);
	for (int i = 0; i <= run->n_ops; i++)
		free(run->state[i]);
	record_release(&run->rec);
	free(run->mem);
	free(run->start);
}

/* --- crashes --- */

struct verdict {
	enum crash_mode below; /* only these kinds of crash */
	uint64_t n_states;
	uint64_t n_bad[N_MODES];
	char *first[N_MODES]; /* what the first forbidden state of the kind shows */
};

struct crash {
	const struct run *run;
	struct verdict *v;
	struct rng rng;
	unsigned char *base;  /* what is durable at the crash point */
	unsigned char *image; /* the crash state */
	int from, to;	      /* states that are allowed */
};

static void say_bad(struct crash *c, enum crash_mode mode, char *what)
{
	if (c->v->n_bad[mode]++ == 0)
		c->v->first[mode] = what;
	else
		free(what);
}

/* The first line of one that the other does not have. */
static char *line_missing(const char *in, const char *of)
{
	while (*in) {
		size_t len = strcspn(in, "\n");
		auto_free char *line = xmemdupz(in, len);

		if (!strstr(of, line))
			return steal(line);
		in += len + 1;
	}
	return xstrdup("");
}

static char *difference(const struct crash *c, const char *got)
{
	auto_free char *lost = line_missing(c->run->state[c->from], got);
	auto_free char *found = line_missing(got, c->run->state[c->from]);

	return xasprintf("want '%s' got '%s'", lost, found);
}

/* Everything can be removed, and something made. */
static int empty_dir(struct fs *fs, uint32_t dir, int depth)
{
	struct dir_entry e;
	int r = 0;

	while (r == 0 && depth < 10 && dir_next(fs, dir, 0, &e) == 0) {
		if (e.type == S_IFDIR) {
			r = empty_dir(fs, e.ino, depth + 1);
			r = r < 0 ? r : dir_rmdir(fs, dir, e.name);
		} else {
			r = dir_unlink(fs, dir, e.name);
		}
	}
	return r;
}

static char *check_usable(struct fs *fs)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	unsigned bad = check_all(fs, out);
	int r = empty_dir(fs, ROOT_INO, 0);

	fclose(out);
	if (bad) {
		char *msg = xasprintf("damaged: %.*s", (int)strcspn(text, "\n"), text);

		free(text);
		return msg;
	}
	free(text);
	if (r == 0)
		r = op_make(fs, "new", S_IFREG | 0644, NULL);
	return r < 0 ? xasprintf("cannot be emptied: %s", strerror(-r)) : NULL;
}

/* Recovers the image and judges it. NULL, or what is wrong. Writes of recovery go to `rec`. */
static char *judge(struct crash *c, struct record *rec)
{
	struct disk d = { .fd = -1, .mem = c->image, .n_blocks = DISK_BLOCKS };
	auto_free char *got = NULL;
	struct recovered info;
	struct fs *fs;
	char why[256], *wrong = NULL;
	bool allowed = false;

	if (rec) {
		d.watch = watch;
		d.watch_ctx = rec;
	}
	c->v->n_states++;
	if (fs_open(&d, true, &info, why, sizeof(why), &fs) < 0)
		return xasprintf("cannot be mounted: %s", why);
	d.watch = NULL;
	got = show(fs);
	for (int i = c->from; i <= c->to; i++)
		allowed |= streq(got, c->run->state[i]);
	if (!allowed)
		wrong = difference(c, got);
	else
		wrong = check_usable(fs);
	if (fs_close(fs) < 0 && !wrong)
		wrong = xstrdup("cannot be unmounted");
	return wrong;
}

static void apply(unsigned char *image, const struct event *e)
{
	if (e->block != FLUSH)
		memcpy(image + (size_t)e->block * BLOCK_BYTES, e->data, BLOCK_BYTES);
}

/* The power fails a second time, at each event of the recovery from this state. */
static void crash_in_recovery(struct crash *c)
{
	auto_free unsigned char *first = memcpy(xmalloc(DISK_SIZE), c->image, DISK_SIZE);
	struct record rec = { 0 };
	size_t flushed = 0;
	char *wrong = judge(c, &rec);

	free(wrong); /* what one crash shows is counted elsewhere */
	if (wrong) {
		record_release(&rec);
		return;
	}
	for (size_t e = 0; e < rec.events.n; e++) {
		if (rec.events.v[e].block == FLUSH) {
			for (; flushed < e; flushed++)
				apply(first, &rec.events.v[flushed]);
			continue;
		}
		for (int subset = 0; subset < 2; subset++) {
			memcpy(c->image, first, DISK_SIZE);
			for (size_t i = flushed; i <= e; i++)
				if (!subset || rng_below(&c->rng, 2))
					apply(c->image, &rec.events.v[i]);
			wrong = judge(c, NULL);
			if (wrong)
				say_bad(c, RECOVERY, wrong);
		}
	}
	record_release(&rec);
}

static void crash_with(struct crash *c, enum crash_mode mode)
{
	char *wrong;

	if (mode >= c->v->below)
		return;
	if (mode == RECOVERY) {
		crash_in_recovery(c);
		return;
	}
	wrong = judge(c, NULL);
	if (wrong)
		say_bad(c, mode, wrong);
}

/* Sectors [0, k) or [k, 8) of the write arrive. */
static void tear(unsigned char *image, const struct event *e, unsigned k, bool front)
{
	size_t from = front ? 0 : (size_t)k * SECTOR_SIZE;
	size_t to = front ? (size_t)k * SECTOR_SIZE : BLOCK_BYTES;

	memcpy(image + (size_t)e->block * BLOCK_BYTES + from, e->data + from, to - from);
}

/* All crashes when events [0, n) have been issued; [flushed, n) are in flight. */
static void crash_at(struct crash *c, size_t flushed, size_t n, bool idle)
{
	const struct event *ev = c->run->rec.events.v;
	size_t in_flight = n - flushed;

	memcpy(c->image, c->base, DISK_SIZE);
	for (size_t i = flushed; i < n; i++)
		apply(c->image, &ev[i]);
	crash_with(c, idle ? AFTER : PREFIX);
	if (idle && c->v->below > RECOVERY) {
		memcpy(c->image, c->base, DISK_SIZE);
		for (size_t i = flushed; i < n; i++)
			apply(c->image, &ev[i]);
		crash_with(c, RECOVERY);
	}
	/* None, each one alone, all but each one, then random subsets. */
	for (size_t k = 0;
	     c->v->below > REORDER && in_flight > 0 && k < 1 + 2 * in_flight + SUBSETS; k++) {
		memcpy(c->image, c->base, DISK_SIZE);
		for (size_t i = 0; i < in_flight; i++) {
			bool keep = k == 0		 ? false
				    : k <= in_flight	 ? i == k - 1
				    : k <= 2 * in_flight ? i != k - 1 - in_flight
							 : rng_below(&c->rng, 2);
			if (keep)
				apply(c->image, &ev[flushed + i]);
		}
		crash_with(c, REORDER);
	}
	for (unsigned k = 1; c->v->below > TORN && in_flight > 0 && k < BLOCK_BYTES / SECTOR_SIZE;
	     k++) {
		for (int front = 0; front < 2; front++) {
			memcpy(c->image, c->base, DISK_SIZE);
			for (size_t i = flushed; i + 1 < n; i++)
				apply(c->image, &ev[i]);
			tear(c->image, &ev[n - 1], k, front);
			crash_with(c, TORN);
		}
	}
}

static int last_persisted(const struct run *run, int op)
{
	while (!run->persists[op])
		op--;
	return op;
}

static void crash_everywhere(const struct run *run, uint64_t seed, struct verdict *v)
{
	auto_free unsigned char *base = memcpy(xmalloc(DISK_SIZE), run->start, DISK_SIZE);
	auto_free unsigned char *image = xmalloc(DISK_SIZE);
	struct crash c = { .run = run, .v = v, .base = base, .image = image };
	size_t n = 0, flushed = 0;

	rng_init(&c.rng, seed);
	for (int op = 1; op <= run->n_ops; op++) {
		c.from = last_persisted(run, op - 1);
		c.to = op;
		while (n < run->end[op]) {
			if (run->rec.events.v[n++].block != FLUSH) {
				crash_at(&c, flushed, n, false);
				continue;
			}
			for (; flushed < n; flushed++)
				apply(base, &run->rec.events.v[flushed]);
		}
		c.from = last_persisted(run, op);
		crash_at(&c, flushed, n, true);
	}
}

static void verdict_release(struct verdict *v)
{
	for (int i = 0; i < N_MODES; i++)
		free(v->first[i]);
}

/* --- workloads --- */

/* The workload that shows a bug, and words of what it shows. The published ones are among them. */
static const struct {
	const char *text, *seen;
} shown_by[BUG_COUNT] = {
	[BUG_RENAME_LOST] = { "mkdir A;mkdir A/B;mkdir C;creat A/B/foo;sync;rename A/B/foo "
			      "C/foo;creat A/bar;fsync A",
			      "want 'C/foo" },
	[BUG_RENAME_BOTH] = { "mkdir A;creat A/foo;write A/foo 0 4096;sync;rename A/foo "
			      "A/bar;fsync A/bar",
			      "links 2" },
	[BUG_RENAME_OVER] = { "mkdir A;creat A/bar;fsync A/bar;mkdir B;creat B/bar;rename B/bar "
			      "A/bar;creat A/foo;fsync A/foo",
			      "want 'A/bar" },
	[BUG_NAME_NEW] = { "mkdir A;sync;write A/foo 0 4096;fsync A/foo", "want 'A/foo" },
	[BUG_LINK_LOST] = { "creat foo;mkdir A;sync;link foo A/bar;fsync foo", "want 'A/bar" },
	[BUG_ONE_NAME] = { "mkdir A;mkdir B;creat A/foo;link A/foo B/foo;fsync A/foo;fsync B/foo",
			   "got 'A/foo #4 100644 0:0 links 1" },
	[BUG_DIR_ENTRY] = { "mkdir A;creat foo;creat A/foo;fsync A/foo;fsync .", "want 'foo" },
	[BUG_SIZE_OLD] = { "write foo 0 4096;sync;append foo 4096;fsync foo", "size 4096" },
	[BUG_DIRECT_SIZE] = { "dwrite foo 0 4096;fsync foo", "size 0" },
	[BUG_MMAP_LOST] = { "write foo 0 8192;sync;mmapwrite foo 1000 4096;fsync foo",
			    "size 8192" },
	[BUG_FALLOC_KEEP] = { "write foo 0 16384;fsync foo;falloc foo keep 16384 4096;fsync foo",
			      "blocks 4" },
	[BUG_ZERO_KEEP] = { "write foo 0 16384;fsync foo;falloc foo zkeep 16384 4096;fdatasync foo",
			    "size 20480" },
	[BUG_PUNCH_LOST] = { "creat foo;write foo 0 16384;fsync foo;sync;falloc foo punch 8000 "
			     "4096;fsync foo",
			     "size 16384" },
	[BUG_LINK_SIZE] = { "mkdir A;creat A/foo;sync;write A/foo 0 4096;fsync A/foo;link A/foo "
			    "A/foo2;creat A/bar;fsync A/bar",
			    "size 0" },
	[BUG_FSYNC_TWICE] = { "write foo 0 4096;fsync foo;write foo 0 4096;fsync foo",
			      "want 'foo" },
	[BUG_XATTR_BACK] = { "creat foo;setxattr foo user.x1 v1;setxattr foo user.x2 v2;setxattr "
			     "foo user.x3 v3;sync;removexattr foo user.x2;fsync foo",
			     "user.x1=v1 user.x2=v2" },
	[BUG_XATTR_LOST] = { "creat foo;sync;setxattr foo user.x1 v1;fsync foo",
			     "user.x1=v1' got" },
	[BUG_SYMLINK_EMPTY] = { "mkdir A;sync;symlink foo1 A/bar1;fsync A;mkdir B;symlink foo2 "
				"B/bar2;fsync B",
				"-> foo1' got" },
	[BUG_CHMOD_LOST] = { "creat foo;sync;chmod foo 0600;fsync foo", "got 'foo #2 100644" },
	[BUG_DIR_COUNT] = { "mkdir A;creat A/foo;sync;creat A/bar;fsync A;fsync A/bar",
			    "directory 2 has 2 entries, not 3" },
	[BUG_NAME_REUSED] = { "mkdir A;creat A/foo;link A/foo A/bar;sync;unlink A/bar;creat "
			      "A/bar;fsync A/bar",
			      "cannot be mounted" },
	[BUG_STALE_LOG] = { "creat foo;fsync foo;chmod foo 0400;fsync foo;chmod foo 0777;sync",
			    "got 'foo #2 100400" },
	[BUG_NO_REVOKE] = { "mkdir A;creat A/x;sync;unlink A/x;rmdir A;sync;write foo 0 4096;fsync "
			    "foo",
			    "size 4096" },
	[BUG_DATA_LATE] = { "write foo 0 4096;fsync foo;write foo 0 4096;fsync foo", "size 4096" },
	[BUG_REUSE_EARLY] = { "write old 0 12000;sync;unlink old;write new 0 16000;fsync new",
			      "want 'old" },
	[BUG_NO_FLUSH] = { "write foo 0 4096;fsync foo;write foo 0 4096;fsync foo", "size 4096" },
	[BUG_CHECKPOINT_FLUSH] = { "write foo 0 4096;write bar 0 8192;sync;write foo 0 "
				   "4096;sync;truncate bar 100;remount",
				   "want 'bar" },
	[BUG_TORN_RECORD] = { "mkdir A;creat A/foo;sync;creat A/bar;fsync A;fsync A/bar",
			      "cannot be mounted" },
	[BUG_RECOVERY_ORDER] = { "mkdir A;creat A/foo;sync;creat A/bar;fsync A;fsync A/bar",
				 "links 3' got '/ links 2" },
};

static const char *const more_workloads[] = {
	"mkdir A;sync;creat A/foo;link A/foo A/bar;sync;unlink A/bar;fsync A/foo",
	"mkdir A;creat A/foo;write A/foo 0 16384;sync;rename A/foo A/bar;creat A/foo;write A/foo 0 "
	"4096;fsync A/foo",
	"mkdir D;creat D/foo;fsync D;fsync D/foo;sync;rename D/foo D/bar;creat D/foo;fsync D/bar",
	"creat f;write f 8192 8192;sync;fsync f;sync;falloc f keep 4202496 8192;fdatasync f",
	"creat foo;mkdir A;link foo A/bar;fsync foo",
	"creat foo;setxattr foo user.x1 v1;sync;setxattr foo user.x1 v2;fsync foo",
	"write foo 0 1000;fsync foo;append foo 500;fsync foo;append foo 5000;fdatasync foo",
	"write foo 0 4096;sync;dwrite foo 4096 4096;fsync foo",
	"mkdir A;sync;rename A B;creat B/foo;fsync B/foo;mkdir A;rename A B/C;sync",
	"creat foo;creat bar;write foo 0 4096;sync;rename foo bar exchange;fsync foo;unlink "
	"bar;sync",
	"write foo 0 9000;sync;hold foo;unlink foo;sync;creat bar;fsync bar;drop;write bar 0 "
	"5000;fsync bar",
	"write foo 0 60000;sync;truncate foo 5000;append foo 10;fsync foo;truncate foo "
	"300;truncate "
	"foo 70000;fsync foo",
	"write foo 4202496 4096;fsync foo;falloc foo punch 4202496 4096;fsync foo;write foo 0 "
	"1;sync",
	/* The disk full; the journal full; the log full. */
	"write a 0 400000;write b 0 250000;fsync b;write c 0 100000;unlink a;write c 0 "
	"300000;fsync "
	"c;write b 0 250000;fsync b",
	"creat a;sync;creat b;sync;chmod a 0600;sync;write b 0 9;sync;unlink a;sync;write b 0 "
	"9;sync;creat c;sync;creat d;sync;write b 0 9;sync",
	"write a 0 9;fsync a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync a;append a "
	"9;fsync a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync "
	"a;append "
	"a 9;fsync a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync "
	"a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync a;append a 9;fsync a",
};

#define N_WORKLOADS (BUG_COUNT + ARRAY_SIZE(more_workloads))

static const char *workload_at(size_t i)
{
	return i < BUG_COUNT ? shown_by[i].text : more_workloads[i - BUG_COUNT];
}

static const char *const random_ops[] = {
	"creat %p",
	"mkdir %d",
	"write %p %o %l",
	"append %p %l",
	"append %p %l",
	"dwrite %p %o %l",
	"mmapwrite %p %o %l",
	"link %p %p",
	"unlink %p",
	"rmdir %d",
	"rename %p %p",
	"rename %p %p",
	"rename %d %d",
	"rename %p %p exchange",
	"symlink target %p",
	"truncate %p %l",
	"falloc %p keep %o %l",
	"falloc %p punch %o %l",
	"falloc %p zero %o %l",
	"falloc %p zkeep %o %l",
	"falloc %p plain %o %l",
	"setxattr %p user.%n %n%l",
	"setxattr %d user.%n %n",
	"removexattr %p user.%n",
	"chmod %p 07%l",
	"chmod %d 0711",
	"fsync %p",
	"fsync %p",
	"fdatasync %p",
	"fsync %d",
	"fsync .",
	"sync",
	"remount",
	"hold %p",
	"drop",
	"mkfifo %p",
};

static void random_word(struct rng *r, char kind, struct strbuf *out)
{
	static const char *const dirs[] = { "A", "B", "A/C" };
	static const char *const names[] = { "foo", "bar", "baz" };
	static const unsigned numbers[] = { 1, 100, 512, 4000, 4096, 5000, 8192, 16384, 50000 };

	switch (kind) {
	case 'd':
		strbuf_adds(out, dirs[rng_below(r, 3)]);
		break;
	case 'p':
		if (rng_below(r, 2)) {
			strbuf_adds(out, dirs[rng_below(r, 3)]);
			strbuf_addch(out, '/');
		}
		strbuf_adds(out, names[rng_below(r, 3)]);
		break;
	case 'n':
		strbuf_adds(out, names[rng_below(r, 3)]);
		break;
	default:
		strbuf_addu(out,
			    kind == 'o' && rng_below(r, 3) == 0 ? 0 : numbers[rng_below(r, 9)]);
	}
}

static char *random_workload(struct rng *r)
{
	struct strbuf out = STRBUF_INIT;
	size_t n = 4 + rng_below(r, 26);

	strbuf_adds(&out, "mkdir A;mkdir B");
	for (size_t i = 0; i < n; i++) {
		strbuf_addch(&out, ';');
		for (const char *p = random_ops[rng_below(r, ARRAY_SIZE(random_ops))]; *p; p++) {
			if (*p == '%')
				random_word(r, *++p, &out);
			else
				strbuf_addch(&out, *p);
		}
	}
	return strbuf_detach(&out);
}

/* --- the proof --- */

static int failures;

static void printf_like(1, 2) failure(const char *fmt, ...)
{
	va_list ap;

	if (failures++ >= MAX_MESSAGES)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static uint64_t prove_silent(const char *text, uint64_t seed)
{
	struct verdict v = { .below = N_MODES };
	struct run run;

	bugs_on = 0;
	run_workload(&run, text);
	crash_everywhere(&run, seed, &v);
	for (int m = 0; m < N_MODES; m++)
		if (v.n_bad[m])
			failure("correct version, %s: %s\n  workload: %s", mode_names[m],
				v.first[m], text);
	run_release(&run);
	verdict_release(&v);
	return v.n_states;
}

/* With the bugs on, and no crash, nothing is different. */
static void prove_live(uint64_t bugs, const char *text)
{
	struct run good, bad;
	char *after;

	bugs_on = 0;
	run_workload(&good, text);
	bugs_on = bugs;
	run_workload(&bad, text);
	for (int i = 0; i <= good.n_ops; i++)
		if (!streq(good.state[i], bad.state[i]))
			failure("bugs %llx change the live state after operation %d of: %s",
				(unsigned long long)bugs, i, text);
	if (bad.held)
		inode_unref(bad.fs, bad.held, 1);
	bad.held = 0;
	if (remount(&bad) < 0) {
		failure("bugs %llx: no clean unmount after: %s", (unsigned long long)bugs, text);
		bad.fs = NULL;
	} else {
		after = show(bad.fs);
		if (!streq(after, good.state[good.n_ops]) || check_all(bad.fs, NULL))
			failure("bugs %llx: another state after a clean unmount of: %s",
				(unsigned long long)bugs, text);
		free(after);
	}
	bugs_on = 0;
	run_release(&good);
	run_release(&bad);
}

/* Its workload shows the bug in the crash that the table names, and in no milder one. */
static void prove_shown(int id, bool table)
{
	const struct bug_def *def = &bug_table[id];
	struct verdict v = { .below = N_MODES };
	struct run run;
	int m = 0;

	bugs_on = 1ULL << id;
	run_workload(&run, shown_by[id].text);
	crash_everywhere(&run, 1, &v);
	bugs_on = 0;
	while (m < N_MODES && !v.n_bad[m])
		m++;
	if (m == N_MODES)
		failure("%s: no crash shows it", def->name);
	else if (!streq(mode_names[m], def->crash) || !strstr(v.first[m], shown_by[id].seen))
		failure("%s: shown by a crash %s: %s", def->name, mode_names[m], v.first[m]);
	else if (table)
		printf("%s\n  workload: %s\n  crash: %s\n  seen: %s\n", def->name,
		       shown_by[id].text, def->crash, v.first[m]);
	run_release(&run);
	verdict_release(&v);
}

/* No workload shows it in a milder crash than the table names. */
static void prove_not_milder(int id)
{
	struct verdict v = { .below = 0 };

	while (!streq(mode_names[v.below], bug_table[id].crash))
		v.below++;
	for (size_t i = 0; i < N_WORKLOADS; i++) {
		struct run run;

		bugs_on = 1ULL << id;
		run_workload(&run, workload_at(i));
		crash_everywhere(&run, 1, &v);
		bugs_on = 0;
		run_release(&run);
	}
	for (unsigned m = 0; m < v.below; m++)
		if (v.n_bad[m])
			failure("%s: shown by a crash %s: %s", bug_table[id].name, mode_names[m],
				v.first[m]);
	verdict_release(&v);
}

static void prove_all(uint64_t seed, uint64_t n_random)
{
	uint64_t states = 0;
	struct rng rng;

	for (size_t i = 0; i < N_WORKLOADS; i++) {
		states += prove_silent(workload_at(i), seed);
		for (int id = 0; id < BUG_COUNT; id++)
			prove_live(1ULL << id, workload_at(i));
	}
	rng_init(&rng, seed);
	for (uint64_t i = 0; i < n_random; i++) {
		auto_free char *text = random_workload(&rng);

		states += prove_silent(text, seed + i);
		prove_live(1ULL << rng_below(&rng, BUG_COUNT), text);
	}
	printf("correct version: %zu workloads, %llu random ones, %llu crash states\n", N_WORKLOADS,
	       (unsigned long long)n_random, (unsigned long long)states);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, n_random = 50;
	bool table = false, all = false;
	int only = -1;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (streq(argv[i], "--table"))
			table = true;
		else if (streq(argv[i], "--all"))
			all = true;
		else if (more && streq(argv[i], "--bug"))
			only = bug_find(argv[i + 1], strlen(argv[i + 1])), i++;
		else if (!more || number_parse(argv[i + 1],
					       streq(argv[i], "--seed") ? &seed : &n_random) < 0)
			return 2;
		else
			i++;
	}
	if (only < 0)
		prove_all(seed, n_random);
	for (int id = 0; id < BUG_COUNT; id++)
		if (only < 0 || id == only)
			prove_shown(id, table);
	for (int id = 0; all && id < BUG_COUNT; id++)
		prove_not_milder(id);
	if (failures)
		printf("%d failures\n", failures);
	else
		puts("all is as it should be");
	return failures > 0;
}
