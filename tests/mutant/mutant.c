/* SPDX-License-Identifier: MIT */
/*
 * mutant.c - reference file systems with known bugs, to prove that outage explore finds them:
 * "mutant:NAME", or "mutant" for one without.
 *
 * Linked with the program itself into one that only tests use. A mutant is reffs with something
 * between it and the caller: an operation that is not passed on, another result, or a state that is
 * shown wrong. What it has to remember is part of its state, so that it goes back with it, but for
 * one bug, whose point is that it does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "explore/side.h"

enum { MARKS_MAX = 64 };

/* Inodes that are shown wrong from now on. */
struct marks {
	uint64_t ino[MARKS_MAX];
	unsigned n;
};

struct mutant_state {
	struct reffs_state *fs;
	struct marks marks;
};

struct mutant;

struct bug {
	const char *name;
	const char *what;
	/* Does operation `i` as the bug has it: true, and the result. Else it is done right. */
	bool (*op)(struct mutant *m, const struct op *op, size_t i, int64_t *result);
	/* After an operation that was done right. */
	void (*after)(struct mutant *m, const struct op *op, int64_t result);
	void (*show)(struct mutant *m, struct tree_entry *e);
	void (*restored)(struct mutant *m);
	/* How much room does not come back when this is removed. */
	uint64_t (*leaks)(const struct tree_entry *e);
};

struct mutant {
	struct side base;
	struct reffs *fs;
	const struct workload *w;
	const struct bug *bug;
	struct marks marks;
	/* a cache, which survives being put back */
	uint64_t cached_ino;
	uint32_t cached_mode;
	bool stale;
	bool complains;
	void (*starting)(void *ctx); /* see target.h */
	void *starting_ctx;
	char before[64]; /* names that an operation is about to replace */
	uint64_t before_ino;
};

static struct mutant *own(struct side *s)
{
	return container_of(s, struct mutant, base);
}

/* ---- looking ---- */

static bool is(const struct op *op, const char *name)
{
	return streq(op->def->name, name);
}

/* The inode at a path, without following links; 0 if there is none. */
static uint64_t lookup(struct mutant *m, const char *path, struct reffs_attr *attr)
{
	struct reffs_state *now = reffs_save(m->fs);
	uint64_t ino = REFFS_ROOT_INO;
	auto_free char *copy = xstrdup(path);
	char *rest = copy;

	for (char *name; ino && (name = strsep(&rest, "/"));) {
		const struct reffs_inode *dir = reffs_inode(now, ino);
		struct reffs_attr a;

		reffs_attr(dir, &a);
		ino = a.type == TREE_DIR ? reffs_lookup(dir, name) : 0;
	}
	if (ino && attr)
		reffs_attr(reffs_inode(now, ino), attr);
	reffs_state_unref(now);
	return ino;
}

static void mark(struct mutant *m, uint64_t ino)
{
	if (ino && m->marks.n < MARKS_MAX)
		m->marks.ino[m->marks.n++] = ino;
}

static bool marked(const struct mutant *m, uint64_t ino)
{
	for (unsigned i = 0; i < m->marks.n; i++)
		if (m->marks.ino[i] == ino)
			return true;
	return false;
}

static const char *path_of(const struct op *op)
{
	return op->args[0].is_handle || !op->args[0].text ? "" : op->args[0].text;
}

/* ---- the bugs ---- */

/* A mode is remembered, and not forgotten when the state is put back. */
static void remember_mode(struct mutant *m, const struct op *op, int64_t result)
{
	struct reffs_attr a;

	if (!is(op, "chmod") || result < 0 || !lookup(m, path_of(op), &a))
		return;
	m->cached_ino = a.ino;
	m->cached_mode = a.mode;
	m->stale = false;
}

static void keep_cache(struct mutant *m)
{
	m->stale = true;
}

static void show_cached(struct mutant *m, struct tree_entry *e)
{
	if (m->stale && e->inode == m->cached_ino)
		e->mode = m->cached_mode;
}

/* Bytes that a truncation cut off are back when the file grows again. */
static bool note_cut(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	struct reffs_attr a;

	(void)i;
	(void)result;
	if (is(op, "truncate") && lookup(m, path_of(op), &a) && a.type == TREE_FILE &&
	    op->args[1].num < a.size)
		mark(m, a.ino | (uint64_t)1 << 62);
	return false;
}

static void grow_cut(struct mutant *m, const struct op *op, int64_t result)
{
	struct reffs_attr a;

	if ((is(op, "write") || is(op, "pwrite")) && result > 0 && lookup(m, path_of(op), &a) &&
	    marked(m, a.ino | (uint64_t)1 << 62))
		mark(m, a.ino);
}

static void show_other_data(struct mutant *m, struct tree_entry *e)
{
	if (e->type == TREE_FILE && marked(m, e->inode)) {
		e->hash.lo ^= 1;
		e->content = NULL;
	}
}

/* A link that a rename replaced is still counted. */
static bool note_replaced(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	struct reffs_attr a;

	(void)i;
	(void)result;
	m->before_ino = 0;
	if (is(op, "rename") && !op->args[2].num && lookup(m, op->args[1].text, &a) &&
	    a.type == TREE_FILE && a.nlink > 1 && lookup(m, path_of(op), NULL) != a.ino)
		m->before_ino = a.ino;
	return false;
}

static void count_replaced(struct mutant *m, const struct op *op, int64_t result)
{
	if (is(op, "rename") && result == 0)
		mark(m, m->before_ino);
}

static void show_more_links(struct mutant *m, struct tree_entry *e)
{
	if (marked(m, e->inode))
		e->nlink++;
}

static bool wrong_errno(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	struct reffs_attr a;

	(void)i;
	*result = -EPERM;
	return is(op, "unlink") && lookup(m, path_of(op), &a) && a.type == TREE_DIR;
}

/* Punching a hole leaves what was there. */
static bool no_punch(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	struct reffs_attr a;

	(void)i;
	*result = 0;
	return is(op, "falloc") &&
	       op->args[1].num == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) && op->args[3].num &&
	       lookup(m, path_of(op), &a) && a.type == TREE_FILE;
}

static bool small_xattrs(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	struct reffs_attr a;

	(void)i;
	*result = -ERANGE;
	return is(op, "setxattr") && strlen(op->args[2].text) >= 256 &&
	       lookup(m, path_of(op), &a) && a.type == TREE_FILE && !op->args[3].num;
}

static void show_two_links(struct mutant *m, struct tree_entry *e)
{
	(void)m;
	if (e->type == TREE_DIR && *e->path)
		e->nlink = 2;
}

static bool into_itself(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	size_t n = strlen(path_of(op));
	struct reffs_attr a;

	(void)i;
	*result = 0;
	return is(op, "rename") && !op->args[2].num &&
	       strncmp(op->args[1].text, path_of(op), n) == 0 && op->args[1].text[n] == '/' &&
	       lookup(m, path_of(op), &a) && a.type == TREE_DIR;
}

/* A file that was unlinked while open cannot be written any more. */
static void note_unlinked(struct mutant *m, const struct op *op, int64_t result)
{
	if (is(op, "unlink") && result == 0)
		snprintf(m->before, sizeof(m->before), "%.60s", path_of(op));
	else if (is(op, "open") || is(op, "close"))
		m->before[0] = '\0';
}

static bool stale_handle(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	const struct workload_handle *h =
		op->args[0].is_handle ? workload_handle(m->w, op->args[0].text) : NULL;

	*result = -ESTALE;
	if (!h || !m->before[0] || !is(op, "write"))
		return false;
	/* The open of this step is the last one before the operation. */
	while (i-- > 0)
		if (is(&m->w->ops.v[i], "open"))
			return streq(path_of(&m->w->ops.v[i]), m->before);
	return false;
}

/* Out of room, and the directory is there nevertheless. */
static bool half_made(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	if (!is(op, "mkdir") || m->marks.n < 2)
		return false;
	*result = reffs_op(m->fs, m->w, i);
	if (*result == 0)
		*result = -ENOSPC;
	return true;
}

static void count_dirs(struct mutant *m, const struct op *op, int64_t result)
{
	if (is(op, "mkdir") && result == 0)
		mark(m, lookup(m, path_of(op), NULL));
}

/* The sticky bit holds for root as well. */
static bool sticky(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	auto_free char *dir = xstrdup(path_of(op));
	char *slash = strrchr(dir, '/');
	struct reffs_attr a;

	(void)i;
	if (!is(op, "unlink") || !slash || !lookup(m, path_of(op), &a) || a.type == TREE_DIR)
		return false;
	*slash = '\0';
	*result = -EPERM;
	return lookup(m, dir, &a) && a.mode & 01000;
}

/* Overlapping ranges of one file are copied. */
static bool overlap(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	struct reffs_attr a;
	uint64_t from, to, len;

	(void)i;
	if (!is(op, "copy_file_range") || !streq(op->args[0].text, op->args[2].text) ||
	    !lookup(m, op->args[0].text, &a) || a.type != TREE_FILE)
		return false;
	from = op->args[1].num;
	to = op->args[3].num;
	len = op->args[4].num;
	*result = (int64_t)len;
	return len && from + len <= a.size && from < to + len && to < from + len;
}

/* Attributes are in memory only. */
static void forget_xattrs(struct mutant *m, const struct op *op, int64_t result)
{
	if (is(op, "remount") && result == 0)
		mark(m, UINT64_MAX);
}

static void show_no_xattrs(struct mutant *m, struct tree_entry *e)
{
	if (marked(m, UINT64_MAX))
		e->n_xattrs = 0;
}

static bool replaces(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	(void)i;
	*result = 0;
	return is(op, "rename") && op->args[2].num == RENAME_W_NOREPLACE &&
	       lookup(m, path_of(op), NULL) && lookup(m, op->args[1].text, NULL);
}

/* Growing a file by truncate rounds its size up. */
static void note_grown(struct mutant *m, const struct op *op, int64_t result)
{
	struct reffs_attr a;

	if (is(op, "truncate") && result == 0 && lookup(m, path_of(op), &a) && a.size % 4096)
		mark(m, a.ino);
}

static void show_rounded(struct mutant *m, struct tree_entry *e)
{
	if (e->type == TREE_FILE && marked(m, e->inode))
		e->size = (e->size + 4095) / 4096 * 4096;
}

/* A file with more than one name is never freed. */
static uint64_t leak_linked(const struct tree_entry *e)
{
	return e->type == TREE_FILE && e->nlink > 1 ? 4096 : 0;
}

static bool hang(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	(void)m;
	(void)i;
	(void)result;
	while (is(op, "link"))
		pause();
	return false;
}

/* As if a guest had died, and another one started. */
static bool boot(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	enum { BEAT_MS = 50 };
	const char *boot_s = getenv("OUTAGE_BOOT");
	int boot_ms = 1000 * (boot_s ? atoi(boot_s) : 12);
	static bool done;

	(void)i;
	(void)result;
	for (int ms = 0; is(op, "link") && !done && ms < boot_ms; ms += BEAT_MS) {
		m->starting(m->starting_ctx);
		util_sleep_ms(BEAT_MS);
	}
	done |= is(op, "link");
	return false;
}

static void note_symlink(struct mutant *m, const struct op *op, int64_t result)
{
	if (is(op, "symlink") && result == 0)
		m->complains = true;
}

static bool once(struct mutant *m, const struct op *op, size_t i, int64_t *result)
{
	static bool done;
	bool now = !done && is(op, "rmdir") && lookup(m, path_of(op), NULL);

	(void)i;
	done |= now;
	*result = -EIO;
	return now;
}

static const struct bug bugs[] = {
	{ .name = "cache-restore",
	  .after = remember_mode,
	  .show = show_cached,
	  .restored = keep_cache,
	  .what = "a cache is not invalidated when the state is put back" },
	{ .name = "truncate-stale",
	  .op = note_cut,
	  .after = grow_cut,
	  .show = show_other_data,
	  .what = "bytes between a truncated end and a later write are not zero" },
	{ .name = "rename-nlink",
	  .op = note_replaced,
	  .after = count_replaced,
	  .show = show_more_links,
	  .what = "link count is wrong after a rename over a hard link" },
	{ .name = "errno", .op = wrong_errno, .what = "unlink of a directory gives EPERM" },
	{ .name = "hole-stale", .op = no_punch, .what = "a punched hole keeps its data" },
	{ .name = "xattr-limit",
	  .op = small_xattrs,
	  .what = "attributes of 256 bytes are refused" },
	{ .name = "dir-nlink",
	  .show = show_two_links,
	  .what = "directories always have two links" },
	{ .name = "rename-child", .op = into_itself, .what = "a directory goes into itself" },
	{ .name = "unlink-open",
	  .op = stale_handle,
	  .after = note_unlinked,
	  .what = "an open file that was unlinked cannot be written" },
	{ .name = "enospc-half",
	  .op = half_made,
	  .after = count_dirs,
	  .what = "mkdir fails with ENOSPC and leaves the directory" },
	{ .name = "sticky", .op = sticky, .what = "the sticky bit binds root" },
	{ .name = "copy-overlap", .op = overlap, .what = "overlapping ranges are copied" },
	{ .name = "remount-xattr",
	  .after = forget_xattrs,
	  .show = show_no_xattrs,
	  .what = "attributes are gone after a remount" },
	{ .name = "noreplace", .op = replaces, .what = "rename replaces although told not to" },
	{ .name = "room",
	  .leaks = leak_linked,
	  .what = "the room of files with several names does not come back" },
	{ .name = "hang", .op = hang, .what = "link never returns" },
	{ .name = "boots",
	  .op = boot,
	  .what = "none: the first link starts a guest, for OUTAGE_BOOT seconds" },
	{ .name = "once", .op = once, .what = "rmdir fails one single time" },
	{ .name = "kernel-log", .after = note_symlink, .what = "the kernel warns after symlink" },
	{ .name = "truncate-round",
	  .after = note_grown,
	  .show = show_rounded,
	  .what = "truncate rounds the size up" },
};

/* ---- waiting for a test ---- */

/*
 * With OUTAGE_HOLD=DIR a mutant stops at one point, makes the file DIR/held-PID, and goes on when
 * there is DIR/go; each operation from then on is a byte of DIR/after. OUTAGE_HOLD_AT says where:
 * "open", "start" (right before the first operation), or at the operation that shows the bug for
 * the N-th time: the first is what is found, the others are tries to make it smaller.
 */
static bool released;

static void append(const char *dir, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (write(fd, ".", 1) != 1)
		abort();
}

static void hold(const char *at)
{
	const char *dir = getenv("OUTAGE_HOLD"), *where = getenv("OUTAGE_HOLD_AT");

	if (!dir || !where || released || !streq(at, where))
		return;
	auto_free char *held = xasprintf("held-%d", (int)getpid());
	auto_free char *go = xasprintf("%s/go", dir);
	append(dir, held);
	while (access(go, F_OK) < 0)
		util_sleep_ms(5);
	released = true;
}

static void hold_at_show(void)
{
	static unsigned shown;
	char at[16];

	snprintf(at, sizeof(at), "%u", ++shown);
	hold(at);
}

/* ---- a side ---- */

static int open_mutant(struct side *s, const struct side_opts *opts, struct err *err)
{
	const char *colon = strchr(opts->target.spec, ':');

	hold("open");
	own(s)->starting = opts->target.starting;
	own(s)->starting_ctx = opts->target.starting_ctx;
	own(s)->fs = reffs_new(NULL);
	for (size_t i = 0; colon && i < ARRAY_SIZE(bugs); i++)
		if (streq(bugs[i].name, colon + 1))
			own(s)->bug = &bugs[i];
	if (colon && !own(s)->bug)
		return err_set(err, -EINVAL, "there is no mutant '%.40s'", colon + 1);
	return 0;
}

static void close_mutant(struct side *s)
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
	struct mutant *m = own(s);
	const struct op *op = &m->w->ops.v[i];
	int64_t result;

	if (released)
		append(getenv("OUTAGE_HOLD"), "after");
	if (m->bug && m->bug->op && m->bug->op(m, op, i, &result)) {
		hold_at_show();
		return result;
	}
	result = reffs_op(m->fs, m->w, i);
	if (m->bug && m->bug->after)
		m->bug->after(m, op, result);
	return result;
}

static int tree(struct side *s, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	struct mutant *m = own(s);
	struct reffs_state *now = reffs_save(m->fs);

	(void)err;
	reffs_tree(now, opts, out);
	reffs_state_unref(now);
	for (size_t i = 0; m->bug && m->bug->show && i < out->entries.n; i++)
		m->bug->show(m, &out->entries.v[i]);
	return 0;
}

static int save(struct side *s, struct side_state **out, struct err *err)
{
	struct mutant_state *state = xcalloc(1, sizeof(*state));

	(void)err;
	state->fs = reffs_save(own(s)->fs);
	state->marks = own(s)->marks;
	*out = (struct side_state *)state;
	s->counts.saves++;
	return 0;
}

static int restore(struct side *s, struct side_state *from, struct strbuf *said, struct err *err)
{
	struct mutant *m = own(s);
	struct mutant_state *state = (struct mutant_state *)from;

	(void)said;
	(void)err;
	if (m->w)
		hold("start");
	reffs_restore(m->fs, state->fs);
	m->marks = state->marks;
	m->before[0] = '\0';
	s->counts.restores++;
	if (m->bug && m->bug->restored)
		m->bug->restored(m);
	return 0;
}

static void drop(struct side *s, struct side_state *from)
{
	struct mutant_state *state = (struct mutant_state *)from;

	(void)s;
	reffs_state_unref(state->fs);
	free(state);
}

static int empty(struct side *s, const struct tree *seen, struct findings *out, uint64_t *missing,
		 struct err *err)
{
	const struct mutant *m = own(s);

	(void)out;
	(void)err;
	*missing = 0;
	for (size_t i = 0; m->bug && m->bug->leaks && i < seen->entries.n; i++)
		*missing += m->bug->leaks(&seen->entries.v[i]);
	return 0;
}

static bool kernel_log(struct side *s, struct strbuf *out)
{
	bool any = own(s)->complains;

	if (any)
		strbuf_adds(out, "WARNING: a symbolic link was made\n");
	own(s)->complains = false;
	return any;
}

static const struct side_ops mutant = {
	.name = "mutant",
	.help = "a reference file system with a known bug",
	.open = open_mutant,
	.close = close_mutant,
	.begin = begin,
	.op = perform,
	.tree = tree,
	.save = save,
	.restore = restore,
	.drop = drop,
	.empty = empty,
	.kernel_log = kernel_log,
};

__attribute__((constructor)) static void add(void)
{
	side_register(&mutant);
}
