/* SPDX-License-Identifier: MIT */
/*
 * The checker of what was persisted. A recovered state is taken from the reference's own history,
 * and then damaged in one way: what is allowed must be silent, each damage must be named.
 */
#include <errno.h>

#include "base/rng.h"
#include "check/check.h"
#include "tap.h"
#include "workload/gen.h"

/* ---- a recovered state ---- */

/* Changes or drops an entry of the tree; false drops it. */
typedef bool (*edit)(struct tree_entry *e, const char *path);

static void copy_tree(const struct tree *from, struct tree *to, edit change, const char *path)
{
	struct tree_opts opts;

	check_tree_opts(&opts, NULL);
	tree_clear(to);
	for (size_t i = 0; i < from->entries.n; i++) {
		struct tree_entry e = from->entries.v[i];

		if (!e.inode)
			e.inode = e.link ? e.link : 1000 + i;
		if (!change || change(&e, path))
			tree_add(to, &e, &opts);
	}
	tree_finish(to);
}

static void state_tree(struct op_history *h, size_t state, struct tree *out)
{
	struct tree_opts opts;

	check_tree_opts(&opts, NULL);
	reffs_tree(h->states.v[state], &opts, out);
}

/* Performs a workload given as text on the reference alone. */
static void perform(struct op_history *h, struct workload *w, const char *text)
{
	struct err err = ERR_INIT;
	auto_findings live = { 0 };

	if (workload_parse(text, strlen(text), "test", w, &err))
		printf("# %s\n", err.msg);
	op_history_start(h, w);
	struct reffs *target = reffs_new(NULL);
	for (size_t i = 0; i < w->ops.n; i++)
		op_history_op(h, i, reffs_op(target, w, i), &live);
	reffs_free(target);
}

/* What the checker says of `seen` when the power failed after `done` operations. */
static void judge(struct op_history *h, const char *guarantee, size_t done, const struct tree *seen,
		  struct findings *out)
{
	struct promises p = { 0 };

	promises_make(&p, h, guarantee_find(guarantee), done, false);
	findings_clear(out);
	check_recovered(&(struct recovered){ .p = &p, .seen = seen }, out);
	promises_release(&p);
}

/* ---- one damage at a time ---- */

static bool drop(struct tree_entry *e, const char *path)
{
	return !streq(e->path, path);
}

static bool empty(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path)) {
		e->size = 0;
		e->content = NULL;
		e->hash = tree_content_hash(NULL, 0);
	}
	return true;
}

static unsigned char zeros[8 << 20];

static bool zero(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->content = zeros;
	return true;
}

static bool other_hash(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path) && !e->content)
		e->hash.lo ^= 1;
	return true;
}

static bool no_xattr(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->n_xattrs = 0;
	return true;
}

static bool chmod_entry(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->mode = 0111;
	return true;
}

static bool chown_entry(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->uid = 77;
	return true;
}

static bool other_device(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->rdev_minor++;
	return true;
}

static bool no_target(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->target = "";
	return true;
}

static bool three_links(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->nlink = 3;
	return true;
}

static bool one_link(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->nlink = 1;
	return true;
}

static bool unreadable(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path)) {
		e->error = 5;
		e->step = TREE_STEP_OPEN;
	}
	return true;
}

static bool doubled(struct tree_entry *e, const char *path)
{
	if (streq(e->path, path))
		e->doubled = true;
	return true;
}

static const struct {
	const char *name, *workload, *guarantee;
	size_t state; /* what recovery found: this state, */
	edit change;  /* changed like this */
	const char *path;
	enum finding_kind kind; /* FINDING_KIND_END: it is allowed */
} cases[] = {
	{ "a new file after fsync", "creat foo\nfsync foo\n", "linux", 2, drop, "foo",
	  FINDING_MISSING },
	{ "the same under posix", "creat foo\nfsync foo\n", "posix", 2, drop, "foo",
	  FINDING_KIND_END },
	{ "and after fsync of its directory", "creat foo\nfsync .\n", "posix", 2, drop, "foo",
	  FINDING_MISSING },
	{ "a file that was not synced, under bare", "creat foo\nfsync .\n", "bare", 2, drop, "foo",
	  FINDING_KIND_END },
	{ "one that was, before its directory", "creat foo\nfsync foo\nfsync .\n", "bare", 3, drop,
	  "foo", FINDING_MISSING },
	{ "one that was, after its directory", "creat foo\nfsync .\nfsync foo\n", "bare", 3, drop,
	  "foo", FINDING_MISSING },
	{ "one that was, without its directory", "creat foo\nfsync foo\n", "bare", 2, drop, "foo",
	  FINDING_KIND_END },
	{ "one that another took the place of",
	  "creat foo\nfsync foo\nfsync .\ncreat bar\nrename bar foo\nfsync .\n", "bare", 6, drop,
	  "foo", FINDING_KIND_END },
	{ "one that another, synced one took the place of",
	  "creat foo\nfsync foo\nfsync .\ncreat bar\nfsync bar\nrename bar foo\nfsync .\n", "bare",
	  7, drop, "foo", FINDING_MISSING },
	{ "a new name of a synced file", "creat foo\nfsync foo\nlink foo bar\nfsync .\n", "bare", 4,
	  drop, "bar", FINDING_MISSING },
	{ "without a sync", "creat foo\n", "linux", 1, drop, "foo", FINDING_KIND_END },
	{ "a file in a new directory", "mkdir A\ncreat A/foo\nfsync A/foo\n", "linux", 0, NULL, "",
	  FINDING_MISSING },
	{ "another file of the directory", "mkdir A\ncreat A/foo\ncreat A/bar\nfsync A\n", "linux",
	  4, drop, "A/bar", FINDING_MISSING },
	{ "a sibling that was not synced", "mkdir A\ncreat A/foo\ncreat A/bar\nfsync A/foo\n",
	  "linux", 4, drop, "A/bar", FINDING_KIND_END },
	{ "a renamed file, at neither place", "creat foo\nsync\nrename foo bar\n", "linux", 3, drop,
	  "bar", FINDING_LOST },
	{ "the same under posix, where rename is not atomic", "creat foo\nsync\nrename foo bar\n",
	  "posix", 3, drop, "bar", FINDING_KIND_END },
	{ "a renamed file whose directory is synced, under posix",
	  "creat foo\nsync\nrename foo bar\nfsync .\n", "posix", 3, drop, "bar", FINDING_MISSING },
	{ "a renamed file, at its old place", "creat foo\nsync\nrename foo bar\n", "linux", 2, NULL,
	  "", FINDING_KIND_END },
	{ "at its old place though synced at the new",
	  "creat foo\nsync\nrename foo bar\nfsync bar\n", "linux", 2, NULL, "", FINDING_MISSING },
	{ "a second name", "creat foo\nmkdir A\nlink foo A/bar\nfsync foo\n", "linux", 4, drop,
	  "A/bar", FINDING_MISSING },
	{ "at its old place, when a directory above was moved",
	  "mkdir A\nwrite A/foo 0 4096\nsync\nrename A B\nfsync B/foo\n", "linux", 3, NULL, "",
	  FINDING_KIND_END },
	{ "at neither place, when a directory above was moved",
	  "mkdir A\nwrite A/foo 0 4096\nrename A B\nfsync B/foo\n", "linux", 0, NULL, "",
	  FINDING_LOST },
	{ "a moved directory that was synced itself",
	  "mkdir A\nwrite A/foo 0 4096\nsync\nrename A B\nfsync B\n", "linux", 3, NULL, "",
	  FINDING_MISSING },
	{ "a new name in a directory whose parent was moved",
	  "mkdir A\nmkdir A/C\nsync\nrename A B\ncreat B/C/foo\nfsync B/C\n", "linux", 3, NULL, "",
	  FINDING_KIND_END },
	{ "a second name, when only the data is synced",
	  "write foo 0 4096\nsync\nlink foo bar\nfdatasync foo\n", "linux", 2, NULL, "",
	  FINDING_KIND_END },
	{ "the old name, when only the data is synced",
	  "write foo 0 4096\nsync\nrename foo bar\nfdatasync bar\n", "linux", 2, NULL, "",
	  FINDING_KIND_END },
	{ "neither name, though the data is synced",
	  "write foo 0 4096\nrename foo bar\nfdatasync bar\n", "linux", 0, NULL, "", FINDING_LOST },
	{ "the only name, though the data is synced", "write foo 0 4096\nfdatasync foo\n", "linux",
	  0, NULL, "", FINDING_MISSING },
	{ "a removed file that is back", "creat foo\nsync\nunlink foo\nfsync .\n", "linux", 2, NULL,
	  "", FINDING_BACK },
	{ "a removed file, not synced", "creat foo\nsync\nunlink foo\n", "linux", 2, NULL, "",
	  FINDING_KIND_END },
	{ "the size", "write foo 0 8192\nfsync foo\n", "linux", 2, empty, "foo", FINDING_SIZE },
	{ "the size after fdatasync", "write foo 0 8192\nfdatasync foo\n", "linux", 2, empty, "foo",
	  FINDING_SIZE },
	{ "the size without a sync", "write foo 0 8192\nfsync .\n", "linux", 2, empty, "foo",
	  FINDING_KIND_END },
	{ "the data", "write foo 0 8192\nfsync foo\n", "linux", 2, zero, "foo", FINDING_CONTENT },
	{ "the data, written again since", "write foo 0 8192\nfsync foo\nwrite foo 0 4096\n",
	  "linux", 2, NULL, "", FINDING_KIND_END },
	{ "zeros, where it was only overwritten", "write foo 0 8192\nfsync foo\nwrite foo 0 4096\n",
	  "linux", 3, zero, "foo", FINDING_CONTENT },
	{ "the data of a large file", "write foo 0 8192\ntruncate foo 8388608\nfsync foo\n",
	  "linux", 3, zero, "foo", FINDING_CONTENT },
	{ "the same data", "write foo 0 8192\ntruncate foo 8388608\nfsync foo\n", "linux", 3, NULL,
	  "", FINDING_KIND_END },
	{ "the data of a file that is too large to keep",
	  "write foo 0 8192\ntruncate foo 80000000\nfsync foo\n", "linux", 3, other_hash, "foo",
	  FINDING_CONTENT },
	{ "the same data of that", "write foo 0 8192\ntruncate foo 80000000\nfsync foo\n", "linux",
	  3, NULL, "", FINDING_KIND_END },
	{ "a large file with other changes since",
	  "write foo 0 8192\ntruncate foo 80000000\nfsync foo\nchmod foo 0600\n", "linux", 4,
	  other_hash, "foo", FINDING_CONTENT },
	{ "a large file that was written to since",
	  "write foo 0 8192\ntruncate foo 80000000\nfsync foo\nwrite foo 0 4096\n", "linux", 4,
	  other_hash, "foo", FINDING_KIND_END },
	{ "a large file that nobody synced", "write foo 0 8192\ntruncate foo 80000000\n", "linux",
	  2, other_hash, "foo", FINDING_KIND_END },
	{ "zeros behind the persisted end", "write foo 0 4096\nsync\nwrite foo 4096 4096\n",
	  "linux", 3, NULL, "", FINDING_KIND_END },
	{ "what msync promised", "mmapwrite foo 0 8192\n", "linux", 1, zero, "foo",
	  FINDING_CONTENT },
	{ "what msync of a range promised", "mmapwrite foo 0 8192 nosync\nmsync foo 0 8192\n",
	  "linux", 2, zero, "foo", FINDING_CONTENT },
	{ "what msync of another range promised",
	  "mmapwrite foo 0 8192 nosync\nmsync foo 8192 4096\n", "linux", 2, zero, "foo",
	  FINDING_KIND_END },
	{ "stores to a mapping, though the file is open with dsync",
	  "h = open foo rdwr,creat,dsync\nmmapwrite h 0 8192 nosync\n", "linux", 2, zero, "foo",
	  FINDING_KIND_END },
	{ "a write to a file that is open with dsync",
	  "h = open foo rdwr,creat,dsync\npwrite h 0 8192\n", "linux", 2, zero, "foo",
	  FINDING_CONTENT },
	{ "a synced write past the end, lost with the size",
	  "write foo 0 4096\nsync\nwrite foo 4096 4096 dsync\n", "linux", 2, NULL, "",
	  FINDING_SIZE },
	{ "a synced append, lost with the size", "write foo 0 4096\nsync\nappend foo 4096 dsync\n",
	  "linux", 2, NULL, "", FINDING_SIZE },
	{ "a synced write that was cut off again",
	  "write foo 0 4096\nsync\nwrite foo 4096 4096 dsync\ntruncate foo 4096\n", "linux", 2,
	  NULL, "", FINDING_KIND_END },
	{ "a write past the end that was not synced",
	  "write foo 0 4096\nsync\nwrite foo 4096 4096\n", "linux", 2, NULL, "", FINDING_KIND_END },
	{ "a synced write of nothing", "mkdir A\nsync\ndwrite A/foo 0 0 sync\n", "linux", 2, NULL,
	  "", FINDING_KIND_END },
	{ "a synced write", "write foo 0 4096 dsync\n", "linux", 1, zero, "foo", FINDING_CONTENT },
	{ "a removed attribute",
	  "creat foo\nsetxattr foo user.x v\nsync\nremovexattr foo user.x\nfsync foo\n", "linux", 3,
	  NULL, "", FINDING_XATTR },
	{ "a lost attribute", "creat foo\nsetxattr foo user.x v\nfsync foo\n", "linux", 3, no_xattr,
	  "foo", FINDING_XATTR },
	{ "an attribute that was not synced", "creat foo\nsync\nsetxattr foo user.x v\n", "linux",
	  3, no_xattr, "foo", FINDING_KIND_END },
	{ "the mode", "creat foo\nchmod foo 0600\nfsync foo\n", "linux", 3, chmod_entry, "foo",
	  FINDING_MODE },
	{ "the mode before", "creat foo\nsync\nchmod foo 0600\n", "linux", 2, NULL, "",
	  FINDING_KIND_END },
	{ "the owner", "creat foo\nchown foo 5 5\nfsync foo\n", "linux", 3, chown_entry, "foo",
	  FINDING_OWNER },
	{ "a symbolic link", "mkdir A\nsymlink foo A/bar\nfsync A\n", "linux", 3, no_target,
	  "A/bar", FINDING_TARGET },
	{ "a device", "mkdir A\nmknod A/bar char 259\nfsync A\n", "linux", 3, other_device, "A/bar",
	  FINDING_RDEV },
	{ "the same device", "mkdir A\nmknod A/bar char 259\nfsync A\n", "linux", 3, NULL, "",
	  FINDING_KIND_END },
	{ "a link count", "creat foo\nlink foo bar\nsync\n", "linux", 3, three_links, "foo",
	  FINDING_NLINK },
	{ "names that may be in lost+found", "creat foo\nlink foo bar\nsync\n", "posix", 3,
	  three_links, "foo", FINDING_KIND_END },
	{ "fewer links than names", "creat foo\nlink foo bar\nsync\n", "posix", 3, one_link, "foo",
	  FINDING_NLINK },
	{ "something unreadable", "creat foo\nfsync foo\n", "linux", 2, unreadable, "foo",
	  FINDING_UNREADABLE },
	{ "a name twice", "creat foo\nfsync foo\n", "linux", 2, doubled, "foo", FINDING_DOUBLED },
	{ "another file's size at a name that is gone", "write foo 0 4096\nfsync foo\nunlink foo\n",
	  "linux", 2, empty, "foo", FINDING_SIZE },
	{ "where nothing is ordered", "write foo 0 4096\nfsync foo\nunlink foo\n", "posix", 2,
	  empty, "foo", FINDING_KIND_END },
	{ "the size of a file that is there, where nothing is ordered",
	  "write foo 0 4096\nfsync foo\ncreat bar\n", "posix", 3, empty, "foo", FINDING_SIZE },
	{ "the mode of a file that nobody synced", "creat foo\n", "linux", 1, chmod_entry, "foo",
	  FINDING_MODE },
	{ "that, where nothing is ordered", "creat foo\n", "posix", 1, chmod_entry, "foo",
	  FINDING_KIND_END },
	{ "what msync promised, where nothing is ordered", "mmapwrite foo 0 8192\n", "posix", 1,
	  zero, "foo", FINDING_CONTENT },
	{ "a file after sync", "creat foo\nsync\n", "linux", 2, drop, "foo", FINDING_MISSING },
	{ "which posix only schedules", "creat foo\nsync\n", "posix", 2, drop, "foo",
	  FINDING_KIND_END },
	{ "what was synced, where only an unmount counts", "write foo 0 4096\nfsync foo\nsync\n",
	  "unmount", 0, NULL, "", FINDING_KIND_END },
	{ "what was there at an unmount", "write foo 0 4096\nremount\n", "unmount", 0, NULL, "",
	  FINDING_MISSING },
	{ "an older content, where only an unmount counts",
	  "write foo 0 4096\nremount\nwrite foo 0 4096\nfsync foo\n", "unmount", 2, NULL, "",
	  FINDING_KIND_END },
	{ "zeros that never were, where only an unmount counts",
	  "write foo 0 4096\nremount\nwrite foo 0 4096\nfsync foo\n", "unmount", 4, zero, "foo",
	  FINDING_CONTENT },
	{ "everything is durable at once", "creat foo\n", "sync", 1, drop, "foo", FINDING_MISSING },
	{ "an emptied file that was made by a write, not synced", "write foo 0 4096\nfsync .\n",
	  "linux", 2, empty, "foo", FINDING_KIND_END },
};

static bool has_kind(const struct findings *list, enum finding_kind kind)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].kind == kind)
			return true;
	return false;
}

static void test_cases(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree whole = TREE_INIT, seen = TREE_INIT;

	op_history_init(&h);
	workload_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		perform(&h, &w, cases[i].workload);
		state_tree(&h, cases[i].state, &whole);
		copy_tree(&whole, &seen, cases[i].change, cases[i].path);
		judge(&h, cases[i].guarantee, w.ops.n, &seen, &out);
		bool right = cases[i].kind == FINDING_KIND_END ? out.n == 0
							       : has_kind(&out, cases[i].kind);
		ok(right, "%s: %s", cases[i].name,
		   cases[i].kind == FINDING_KIND_END ? "allowed"
						     : finding_kind_name(cases[i].kind));
		for (size_t k = 0; k < out.n && (!right || k < 1); k++)
			printf("#   %s: %s (%s)\n", finding_kind_name(out.v[k].kind),
			       out.v[k].words, out.v[k].promise);
	}
	op_history_release(&h);
}

/* Old and new bytes, `from` and `to` of the new ones. */
static bool mixed_is_allowed(struct op_history *h, size_t unit, size_t from, size_t to,
			     unsigned char byte)
{
	struct promises p = { .unit = 0 };
	struct tree_opts opts = { .content_limit = 1 << 20 };
	auto_tree was = TREE_INIT, is = TREE_INIT, seen = TREE_INIT;
	auto_findings out = { 0 };
	unsigned char data[4096];

	reffs_tree(h->states.v[1], &opts, &was);
	reffs_tree(h->states.v[2], &opts, &is);
	const struct tree_entry *new = tree_find(&is, "foo");
	struct tree_entry e = *tree_find(&was, "foo");

	memcpy(data, e.content, sizeof(data));
	memcpy(data + from, (const unsigned char *)new->content + from, to - from);
	data[to] = byte ? byte : data[to];
	e.content = data;
	tree_add(&seen, tree_find(&was, ""), &opts);
	tree_add(&seen, &e, &opts);
	tree_finish(&seen);
	promises_make(&p, h, guarantee_find("sync"), 1, true);
	p.unit = unit;
	check_persisted(&p, &seen, NULL, &out);
	promises_release(&p);
	return out.n == 0;
}

/* What is torn is cut where the storage cuts. */
static void test_units(void)
{
	struct op_history h;
	auto_workload w;

	op_history_init(&h);
	workload_init(&w);
	perform(&h, &w, "write foo 0 4096\nwrite foo 0 4096\n");
	ok(mixed_is_allowed(&h, 0, 512, 1024, 0), "a sector is new: allowed");
	ok(!mixed_is_allowed(&h, 0, 512, 1000, 0), "a part of one is: not on a disk");
	ok(mixed_is_allowed(&h, 1, 512, 1000, 0), "but in memory");
	ok(mixed_is_allowed(&h, 8, 8, 24, 0), "some words are");
	ok(!mixed_is_allowed(&h, 8, 8, 27, 0), "not a part of one");
	ok(!mixed_is_allowed(&h, 1, 512, 1000, '~'), "a byte that is neither old nor new: never");
	op_history_release(&h);
}

/* One file under two names that it never had at the same time. */
static void test_both(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree before = TREE_INIT, after = TREE_INIT, seen = TREE_INIT;
	struct tree_opts opts;

	op_history_init(&h);
	workload_init(&w);
	perform(&h, &w, "write foo 0 4096\nsync\nrename foo bar\n");
	state_tree(&h, 2, &before);
	state_tree(&h, 3, &after);
	check_tree_opts(&opts, NULL);
	for (size_t i = 0; i < before.entries.n; i++)
		tree_add(&seen, &before.entries.v[i], &opts);
	for (size_t i = 0; i < after.entries.n; i++)
		if (*after.entries.v[i].path)
			tree_add(&seen, &after.entries.v[i], &opts);
	tree_finish(&seen);
	judge(&h, "linux", w.ops.n, &seen, &out);
	ok(has_kind(&out, FINDING_BOTH), "a renamed file in both places");
	judge(&h, "posix", w.ops.n, &seen, &out);
	ok(!has_kind(&out, FINDING_BOTH), "which posix does not forbid");
	op_history_release(&h);
}

/* ---- what the target refused ---- */

/* Performs the workload; the target refuses operation `refused` with EOPNOTSUPP. */
static void perform_refused(struct op_history *h, struct workload *w, const char *text,
			    size_t refused, struct findings *live)
{
	struct err err = ERR_INIT;

	findings_clear(live);
	if (workload_parse(text, strlen(text), "test", w, &err))
		printf("# %s\n", err.msg);
	op_history_start(h, w);
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct op *op = &w->ops.v[i];
		int64_t writes = op->def->flags & OP_WRITES ? (int64_t)op->args[2].num : 0;

		op_history_op(h, i, i == refused ? -EOPNOTSUPP : writes, live);
	}
}

static void test_refused(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings live = { 0 };

	op_history_init(&h);
	workload_init(&w);
	perform_refused(&h, &w, "write foo 0 4096\nreflink foo bar\nfsync foo\n", 1, &live);
	is_u(live.n, 0, "the reference adopts a refusal");
	ok(op_history_ino(&h, 2, "bar"), "the file that was opened for it is there");
	perform_refused(&h, &w, "creat foo\nfalloc foo plain 0 4096\nlink foo bar\n", 2, &live);
	ok(!op_history_ino(&h, 3, "bar"), "a refused link is not");
	perform_refused(&h, &w,
			"h = open foo rdwr,creat\nfalloc h plain 0 4096\nwrite h 0 4096\nfsync h\n",
			1, &live);
	is_u(live.n, 0, "a handle stays open when an operation on it is refused");
	perform_refused(&h, &w, "creat foo\nh = open foo rdwr\nwrite h 0 4096\n", 1, &live);
	is_u(live.n, 1, "one that the target did not open is not open");
	perform_refused(&h, &w,
			"creat foo\nh = open foo rdwr\ncreat bar\nrename bar foo\n"
			"write h 0 4096\n",
			3, &live);
	ok(live.n == 0 && op_history_ino(&h, 5, "bar"),
	   "a refused rename leaves an open file alone");
	op_history_release(&h);
}

/* A file that was made in a moved directory, seen at the directory's old place. */
static void test_composed(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree with = TREE_INIT, seen = TREE_INIT;
	struct tree_opts opts;

	op_history_init(&h);
	workload_init(&w);
	perform(&h, &w, "mkdir A\nsync\nrename A B\nwrite B/foo 0 4096\nfsync B/foo\n");
	state_tree(&h, 5, &with);
	check_tree_opts(&opts, NULL);
	for (size_t i = 0; i < with.entries.n; i++) {
		struct tree_entry e = with.entries.v[i];

		e.path = streq(e.path, "B") ? "A" : streq(e.path, "B/foo") ? "A/foo" : e.path;
		tree_add(&seen, &e, &opts);
	}
	tree_finish(&seen);
	judge(&h, "linux", w.ops.n, &seen, &out);
	is_u(out.n, 0, "a new file in a moved directory may be at the old place");
	if (out.n)
		printf("# %s\n", out.v[0].words);

	tree_clear(&seen);
	for (size_t i = 0; i < with.entries.n; i++) {
		struct tree_entry e = with.entries.v[i];

		e.path = streq(e.path, "B") ? "A" : streq(e.path, "B/foo") ? "A/bar" : e.path;
		tree_add(&seen, &e, &opts);
	}
	tree_finish(&seen);
	judge(&h, "linux", w.ops.n, &seen, &out);
	ok(has_kind(&out, FINDING_NEVER) && has_kind(&out, FINDING_LOST),
	   "but not under a name it never had there");
	op_history_release(&h);
}

/* ---- whatever the history had since a sync is allowed; nothing older is ---- */

static void test_history(const char *set, uint64_t samples)
{
	auto_bounds b;
	struct gen *g = NULL;
	struct err err = ERR_INIT;
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree whole = TREE_INIT, seen = TREE_INIT;
	size_t alarms = 0, blind = 0, judged = 0;

	bounds_init(&b);
	op_history_init(&h);
	workload_init(&w);
	if (bounds_load(set, &b, &err) || gen_new(&b, &g, &err))
		printf("# %s\n", err.msg);
	samples = min(samples, gen_count(g));
	for (uint64_t s = 0; s < samples; s++) {
		const char *text;
		size_t len;

		gen_seek(g, gen_count(g) * s / samples);
		gen_next(g, &text, &len);
		auto_free char *copy = xmemdupz(text, len);
		perform(&h, &w, copy);
		for (size_t done = 1; done <= w.ops.n; done++) {
			/* The state itself: nothing was lost. */
			state_tree(&h, done, &whole);
			copy_tree(&whole, &seen, NULL, "");
			judge(&h, "linux", done, &seen, &out);
			judged++;
			if (out.n && alarms++ < 3)
				printf("# after %zu: %s\n# %s", done, out.v[0].words, copy);
			/* Under "sync", the state before is forbidden if a user can tell. */
			if (!hash_eq(reffs_state_hash(h.states.v[done]),
				     reffs_state_hash(h.states.v[done - 1]))) {
				state_tree(&h, done - 1, &whole);
				copy_tree(&whole, &seen, NULL, "");
				judge(&h, "sync", done, &seen, &out);
				if (!out.n && blind++ < 3)
					printf("# blind to losing operation %zu\n# %s", done - 1,
					       copy);
			}
		}
	}
	is_u(alarms, 0, "%s: %zu states without a loss, no alarm", set, judged);
	is_u(blind, 0, "%s: no lost operation goes unseen", set);
	gen_free(g);
	op_history_release(&h);
}

int main(void)
{
	test_cases();
	test_units();
	test_both();
	test_composed();
	test_refused();
	test_history("seq-1", 1000);
	test_history("seq-2", 1500);
	test_history("seq-3-metadata", 1000);
	test_history("seq-3-nested", 500);
	return done_testing();
}
