/* SPDX-License-Identifier: MIT */
/* run_record.c - runs a workload on the target while the disk records, and the reference beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/log.h"
#include "run/run_impl.h"
#include "workload/exec.h"

static int mark(struct run *r, enum event_kind kind, size_t op, int64_t result, const char *text,
		struct err *err)
{
	int64_t shown = min(result, (int64_t)INT32_MAX);
	struct event ev = { .kind = kind,
			    .ref = op,
			    .result = (int32_t)shown,
			    .data = (const unsigned char *)text,
			    .len = text ? strlen(text) : 0 };

	return disk_mark(r->target.disk, &ev, err);
}

/* ---- what only the owner of the mount can do ---- */

static int remount(void *ctx, int *root)
{
	struct run *r = ctx;
	auto_strbuf said = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = target_umount(&r->target, true, &err);

	if (!rc)
		rc = target_mount(&r->target, &said, &err);
	if (rc)
		return rc < 0 ? rc : -EIO;
	*root = r->target.root;
	return 0;
}

static int drop_caches(void *ctx)
{
	auto_fd fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	(void)ctx;
	return fd < 0 || write(fd, "3", 1) != 1 ? -errno : 0;
}

/* ---- the run ---- */

/*
 * How many blocks the file has that was just persisted, as the live target says. Nothing else in a
 * trace could tell, so it is written there, as the text "blocks N" after the operation's end.
 */
#define BLOCKS_MARK "blocks "

static void add_blocks(struct run *r, const struct workload *w, size_t i, uint64_t blocks)
{
	uint64_t ino = op_history_ino(&r->history, i + 1, w->ops.v[i].args[0].text);

	if (ino)
		vec_push(&r->blocks, (struct check_blocks){ i + 1, ino, blocks });
}

static bool counts_blocks(const struct op *op)
{
	enum op_promise promise = op->def->promise;

	return (promise == OP_PROMISES_OBJECT || promise == OP_PROMISES_DATA) &&
	       !op->args[0].is_handle;
}

/*
 * The most blocks that the workload asked for: for the file as large as it is, and what was
 * reserved behind its end. A file system may have reserved more, as xfs does for files that grow:
 * that is not promised.
 */
static uint64_t blocks_asked(const struct workload *w, size_t last, uint64_t size)
{
	enum { ROUND = 4096 };

	for (size_t i = 0; i <= last; i++) {
		uint64_t from, to;

		if (w->ops.v[i].def->flags & OP_RANGES && op_range(&w->ops.v[i], &from, &to))
			size = max(size, to);
	}
	return (size + ROUND - 1) / ROUND * (ROUND / 512);
}

static int note_blocks(struct run *r, const struct workload *w, size_t i, struct err *err)
{
	const struct op *op = &w->ops.v[i];
	struct target_stat st = { 0 };
	int rc = counts_blocks(op) ? target_stat(&r->target, op->args[0].text, &st, err) : 0;

	if (rc || !counts_blocks(op) || !st.is_file)
		return rc;
	uint64_t blocks = min(st.blocks, blocks_asked(w, i, st.size));
	auto_free char *text = xasprintf(BLOCKS_MARK "%llu", llu(blocks));
	add_blocks(r, w, i, blocks);
	return mark(r, EV_TEXT, 0, 0, text, err);
}

void recorded_blocks(struct run *r, const struct workload *w, const struct event *ev)
{
	size_t skip = strlen(BLOCKS_MARK), ended = r->history.results.n;
	uint64_t blocks;

	if (ev->len <= skip || memcmp(ev->data, BLOCKS_MARK, skip) != 0 || !ended ||
	    !counts_blocks(&w->ops.v[ended - 1]))
		return;
	auto_free char *number = xmemdupz((const char *)ev->data + skip, ev->len - skip);
	if (number_parse(number, &blocks) == 0)
		add_blocks(r, w, ended - 1, blocks);
}

/*
 * The tree that a command left, as the live target shows it, for the reference to take over: it is
 * written into the trace in pieces, as the texts "tree+..." and, for the last one, "tree.".
 */
#define TREE_MARK "tree"
enum { TREE_PIECE = 3072, TREE_TEXT_MAX = 1 << 20 };

static int mark_pieces(struct run *r, const char *word, const char *text, struct err *err)
{
	int rc = 0;

	for (size_t left = strlen(text), n; left && !rc; left -= n, text += n) {
		n = min(left, (size_t)TREE_PIECE);
		auto_free char *piece =
			xasprintf("%s%c%.*s", word, n < left ? '+' : '.', (int)n, text);

		rc = mark(r, EV_TEXT, 0, 0, piece, err);
	}
	return rc;
}

static int adopt(struct run *r, size_t i, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = target_walk(&r->target, &r->tree_opts, &r->seen, err);

	if (!rc)
		rc = op_history_adopt(&r->history, &r->seen, err);
	if (rc)
		return rc;
	tree_print(&r->seen, &r->tree_opts, TREE_TEXT_CONTENT, &text);
	if (text.len > TREE_TEXT_MAX)
		return err_set(err, -EFBIG,
			       "the command of operation %zu leaves too much to be followed: let "
			       "there be less than %d KiB",
			       i, TREE_TEXT_MAX >> 10);
	return mark_pieces(r, TREE_MARK, strbuf_str(&text), err);
}

/* Adds a piece, if the text is one of such; true if that was the last. */
static bool take_piece(const struct event *ev, const char *word, struct strbuf *text)
{
	size_t skip = strlen(word);

	if (ev->len <= skip || memcmp(ev->data, word, skip) != 0)
		return false;
	strbuf_add(text, ev->data + skip + 1, ev->len - skip - 1);
	return ev->data[skip] != '+' || text->len > TREE_TEXT_MAX;
}

int recorded_tree(struct run *r, const struct workload *w, const struct event *ev,
		  struct strbuf *text, struct err *err)
{
	size_t ended = r->history.results.n;

	if (!ended || !(w->ops.v[ended - 1].def->flags & OP_COMMAND) ||
	    !take_piece(ev, TREE_MARK, text))
		return 0;
	int rc = tree_parse(strbuf_str(text), text->len, &r->seen, err);
	strbuf_clear(text);
	return rc ? rc : op_history_adopt(&r->history, &r->seen, err);
}

/*
 * The times that files have after an operation, where the clock is set; a line for each inode: its
 * number in the reference, then seconds and nanoseconds of mtime and of ctime. The trace has
 * them as "times+..." and "times.".
 */
#define TIMES_MARK "times"

static void add_times(struct run *r, const struct check_times *x, struct strbuf *text)
{
	vec_push(&r->times, *x);
	strbuf_addf(text, "%" PRIu64 " %" PRId64 " %" PRIu32 " %" PRId64 " %" PRIu32 "\n", x->ino,
		    x->mtime.sec, x->mtime.nsec, x->ctime.sec, x->ctime.nsec);
}

static int note_times(struct run *r, size_t i, struct err *err)
{
	auto_vec struct history_paths paths = { 0 };

	op_history_paths_at(&r->history, i + 1, &paths);
	auto_free const char **names = xcalloc(paths.n + 1, sizeof(*names));
	auto_free struct check_stamp *stamps = xcalloc(paths.n + 1, sizeof(*stamps));
	auto_strbuf text = STRBUF_INIT;

	names[0] = "";
	for (size_t k = 0; k < paths.n; k++)
		names[k + 1] = paths.v[k].path;
	int rc = target_times(&r->target, names, paths.n + 1, stamps, err);
	for (size_t k = 0; !rc && k <= paths.n; k++)
		if (stamps[k].known)
			add_times(r,
				  &(struct check_times){ i + 1,
							 k ? paths.v[k - 1].ino : REFFS_ROOT_INO,
							 stamps[k].mtime, stamps[k].ctime },
				  &text);
	return rc ? rc : mark_pieces(r, TIMES_MARK, strbuf_str(&text), err);
}

static void take_times(struct run *r, const char *text)
{
	struct check_times x = { .state = r->history.results.n };

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (sscanf(text, "%" SCNu64 " %" SCNd64 " %" SCNu32 " %" SCNd64 " %" SCNu32, &x.ino,
			   &x.mtime.sec, &x.mtime.nsec, &x.ctime.sec, &x.ctime.nsec) == 5)
			vec_push(&r->times, x);
}

void recorded_times(struct run *r, const struct event *ev, struct strbuf *text)
{
	if (!take_piece(ev, TIMES_MARK, text))
		return;
	take_times(r, strbuf_str(text));
	strbuf_clear(text);
}

static int look_after(struct run *r, const struct workload *w, size_t i, int64_t result,
		      struct err *err)
{
	int rc = 0;

	if (w->ops.v[i].def->flags & OP_COMMAND)
		rc = adopt(r, i, err);
	else if (result >= 0 && workload_persists(w, i))
		rc = note_blocks(r, w, i, err);
	return rc || !r->with_times ? rc : note_times(r, i, err);
}

static int run_op(struct run *r, const struct workload *w, size_t i, struct findings *live,
		  struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int64_t result;

	op_print(&w->ops.v[i], &text);
	run_phase(r, "running", strbuf_str(&text));
	int rc = mark(r, EV_OP_BEGIN, i, 0, strbuf_str(&text), err);
	if (!rc)
		rc = target_op(&r->target, i, &result, err);
	if (rc)
		return rc;
	if (result < 0)
		log_info("operation %zu, %s: %s", i, strbuf_str(&text), strerror((int)-result));
	if (result > 0 && w->ops.v[i].def->flags & OP_COMMAND)
		log_warn("operation %zu, %s: ends with status %lld", i, strbuf_str(&text),
			 (long long)result);
	rc = mark(r, EV_OP_END, i, result, NULL, err);
	if (!rc && result >= 0 && (workload_persists(w, i) || r->guarantee.every_op))
		rc = mark(r, EV_PERSIST, i, 0, NULL, err);
	if (rc)
		return rc;
	if (!target_is_mounted(&r->target))
		return err_set(err, -EIO, "the file system could not be mounted again");
	op_history_op(&r->history, i, result, live);
	return look_after(r, w, i, result, err);
}

static int run_mounted(struct run *r, const struct workload *w, struct findings *live,
		       struct err *err)
{
	struct exec_env env = {
		.ctx = r, .remount = remount, .drop_caches = drop_caches, .shell = true
	};
	int rc = target_begin(&r->target, w, &env, err);

	for (size_t i = 0; i < w->ops.n && !rc; i++)
		rc = run_op(r, w, i, live, err);
	int ended = target_end(&r->target, err);
	rc = rc ? rc : ended;
	if (!rc)
		rc = target_walk(&r->target, &r->tree_opts, &r->seen, err);
	if (!rc)
		check_live(vec_last(&r->history.states), &r->seen, &r->tree_opts, live);
	return rc;
}

int record_workload(struct run *r, const struct workload *w, struct findings *live, struct err *err)
{
	struct target *t = &r->target;
	auto_strbuf said = STRBUF_INIT;
	struct err later = ERR_INIT;

	run_phase(r, "mounting a new file system", "");
	vec_clear(&r->blocks);
	vec_clear(&r->times);
	op_history_start(&r->history, w);
	int rc = disk_load(t->disk, &r->base, err);
	if (!rc)
		rc = disk_start(t->disk, &r->trace, err);
	if (rc)
		return rc;
	rc = target_mount(t, &said, err);
	if (rc > 0)
		rc = err_set(err, -EIO, "a new %s cannot be mounted: %s", t->ops->name,
			     strbuf_str(&said));
	if (!rc)
		rc = run_mounted(r, w, live, err);
	/* The disk must be free again, whatever happened. */
	run_phase(r, "unmounting after the workload", "");
	if (target_is_mounted(t)) {
		int unmounted = target_umount(t, false, &later);
		rc = rc ? rc : unmounted;
	}
	int stopped = disk_stop(t->disk, &later);
	rc = rc ? rc : stopped;
	if (rc && !err->code)
		*err = later;
	return rc;
}
