/* SPDX-License-Identifier: MIT */
/*
 * check-rules.c - the rules P1 to P5 of what must have persisted (src/check/persisted.c), one by
 * one: for each a state that breaks it, and its twin, which differs in one thing and is allowed. A
 * twin that is reported is a false alarm; a violation must be found as what it is.
 */
#include "check/check.h"
#include "tap.h"

/* ---- a recovered state ---- */

/* Changes an entry of the tree; false drops it. */
typedef bool (*edit)(struct tree_entry *e);

static bool is(const struct tree_entry *e, const char *path)
{
	return streq(e->path, path);
}

static bool without_foo(struct tree_entry *e)
{
	return !is(e, "foo");
}

static bool without_a(struct tree_entry *e)
{
	return strncmp(e->path, "A", 1) != 0;
}

static bool without_bar(struct tree_entry *e)
{
	return !is(e, "bar");
}

static bool pipe_at_foo(struct tree_entry *e)
{
	if (is(e, "foo"))
		e->type = TREE_FIFO, e->size = 0, e->content = NULL;
	return true;
}

static bool foo_is_baz(struct tree_entry *e)
{
	if (is(e, "foo"))
		e->path = "baz";
	return true;
}

static bool mode_0111(struct tree_entry *e)
{
	if (is(e, "foo"))
		e->mode = 0111;
	return true;
}

static bool bar_mode_0111(struct tree_entry *e)
{
	if (is(e, "bar"))
		e->mode = 0111;
	return true;
}

static bool group_77(struct tree_entry *e)
{
	if (is(e, "foo"))
		e->gid = 77;
	return true;
}

static bool with_xattr(struct tree_entry *e, const struct tree_xattr *x)
{
	if (is(e, "foo")) {
		e->xattrs = x;
		e->n_xattrs = 1;
	}
	return true;
}

static bool xattr_third(struct tree_entry *e)
{
	static const struct tree_xattr x = { "user.x", "third", 5 };

	return with_xattr(e, &x);
}

static bool xattr_label(struct tree_entry *e)
{
	static const struct tree_xattr x = { "security.label", "third", 5 };

	return with_xattr(e, &x);
}

static bool other_target(struct tree_entry *e)
{
	if (is(e, "foo"))
		e->target = "elsewhere";
	return true;
}

static bool longer(struct tree_entry *e)
{
	static unsigned char data[8192];

	if (is(e, "foo") && e->size < sizeof(data)) {
		memset(data, 0, sizeof(data));
		memcpy(data, e->content, e->size);
		e->content = data;
		e->size = sizeof(data);
	}
	return true;
}

static bool zero_second_sector(struct tree_entry *e)
{
	static unsigned char data[4096];

	if (is(e, "foo") && e->size == sizeof(data)) {
		memcpy(data, e->content, sizeof(data));
		memset(data + 512, 0, 512);
		e->content = data;
	}
	return true;
}

static bool second_link_only(struct tree_entry *e)
{
	if (is(e, "foo"))
		e->nlink = 2;
	return true;
}

static void make_seen(struct op_history *h, size_t state, edit change, struct tree *out)
{
	auto_tree whole = TREE_INIT;
	struct tree_opts opts;

	check_tree_opts(&opts, NULL);
	reffs_tree(h->states.v[state], &opts, &whole);
	tree_clear(out);
	for (size_t i = 0; i < whole.entries.n; i++) {
		struct tree_entry e = whole.entries.v[i];

		if (!e.inode)
			e.inode = e.link ? e.link : 1000 + i;
		if (!change || change(&e))
			tree_add(out, &e, &opts);
	}
	tree_finish(out);
}

/* ---- a history ---- */

/* What a command did: that only who runs it can tell. */
static void adopt(struct op_history *h, size_t state, edit change)
{
	auto_tree seen = TREE_INIT;
	struct err err = ERR_INIT;

	make_seen(h, state, change, &seen);
	if (op_history_adopt(h, &seen, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
}

static void perform(struct op_history *h, struct workload *w, const char *text, edit command)
{
	struct err err = ERR_INIT;
	auto_findings live = { 0 };

	if (workload_parse(text, strlen(text), "test", w, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
	op_history_start(h, w);
	for (size_t i = 0; i < w->ops.n; i++) {
		struct reffs_state *before = reffs_save(h->ref);
		bool is_command = w->ops.v[i].def->flags & OP_COMMAND;
		int64_t result = is_command ? 0 : reffs_op(h->ref, w, i);

		reffs_restore(h->ref, before);
		reffs_state_unref(before);
		op_history_op(h, i, result, &live);
		if (is_command)
			adopt(h, i, command);
	}
}

static void judge(struct op_history *h, const char *guarantee, const struct tree *seen,
		  const struct check_blocks_list *blocks, struct findings *out)
{
	struct promises p = { 0 };

	promises_make(&p, h, guarantee_find(guarantee), h->w->ops.n, false);
	findings_clear(out);
	check_persisted(&p, seen, blocks, out);
	promises_release(&p);
}

/* ---- pairs ---- */

struct one {
	const char *workload;
	size_t state; /* what recovery found: this one, */
	edit change;  /* changed like this */
};

static const struct pair {
	const char *rule, *name, *guarantee;
	enum finding_kind kind;
	struct one bad, good;
	edit command; /* what the command of the workload does */
} pairs[] = {
	{ "P1",
	  "a promised path leads to something",
	  "linux",
	  FINDING_MISSING,
	  { "creat foo\nfsync foo\n", 2, without_foo },
	  { "creat foo\n", 1, without_foo },
	  NULL },
	{ "P1",
	  "or to nothing, if it did so since",
	  "linux",
	  FINDING_MISSING,
	  { "creat foo\nfsync foo\nchmod foo 0600\n", 3, without_foo },
	  { "creat foo\nfsync foo\nunlink foo\n", 2, without_foo },
	  NULL },
	{ "P1",
	  "what a promise has removed is not back",
	  "linux",
	  FINDING_BACK,
	  { "creat foo\nsync\nunlink foo\nsync\n", 2, NULL },
	  { "creat foo\nsync\nunlink foo\n", 2, NULL },
	  NULL },
	{ "P1",
	  "what never was is not there",
	  "linux",
	  FINDING_NEVER,
	  { "creat foo\n", 1, foo_is_baz },
	  { "creat foo\nrename foo baz\n", 1, foo_is_baz },
	  NULL },
	{ "P2",
	  "the type is one that was there",
	  "linux",
	  FINDING_TYPE,
	  { "creat foo\nsync\n", 2, pipe_at_foo },
	  { "mkfifo foo\nunlink foo\ncreat foo\n", 3, pipe_at_foo },
	  NULL },
	{ "P2",
	  "the mode is one of those since the promise",
	  "linux",
	  FINDING_MODE,
	  { "creat foo\nchmod foo 0111\nchmod foo 0600\nfsync foo\n", 4, mode_0111 },
	  { "creat foo\nfsync foo\nchmod foo 0111\nchmod foo 0600\n", 4, mode_0111 },
	  NULL },
	{ "P2",
	  "so is the group",
	  "linux",
	  FINDING_OWNER,
	  { "creat foo\nfsync foo\n", 2, group_77 },
	  { "creat foo\nfsync foo\nchown foo 0 77\n", 3, group_77 },
	  NULL },
	{ "P2",
	  "so is an extended attribute",
	  "linux",
	  FINDING_XATTR,
	  { "creat foo\nsetxattr foo user.x third\nsetxattr foo user.x v\nfsync foo\n", 4,
	    xattr_third },
	  { "creat foo\nsetxattr foo user.x v\nfsync foo\nsetxattr foo user.x third\n", 3,
	    xattr_third },
	  NULL },
	{ "P2",
	  "and nobody else's is looked at",
	  "linux",
	  FINDING_XATTR,
	  { "creat foo\nfsync foo\n", 2, xattr_third },
	  { "creat foo\nfsync foo\n", 2, xattr_label },
	  NULL },
	{ "P2",
	  "a link leads where it led",
	  "linux",
	  FINDING_TARGET,
	  { "symlink here foo\nsync\n", 2, other_target },
	  { "symlink here foo\nsync\nunlink foo\nsymlink elsewhere foo\n", 2, other_target },
	  NULL },
	{ "P2",
	  "where nothing is ordered, only if it was promised",
	  "posix",
	  FINDING_MODE,
	  { "creat foo\nfsync foo\n", 2, mode_0111 },
	  { "creat foo\n", 1, mode_0111 },
	  NULL },
	{ "P3",
	  "the size is not larger than it ever was",
	  "linux",
	  FINDING_SIZE,
	  { "write foo 0 4096\nfsync foo\n", 2, longer },
	  { "write foo 0 4096\nfsync foo\ntruncate foo 8192\n", 2, longer },
	  NULL },
	{ "P3",
	  "a sector is that of a version since the promise",
	  "linux",
	  FINDING_CONTENT,
	  { "truncate foo 4096\nwrite foo 0 4096\nfsync foo\n", 3, zero_second_sector },
	  { "creat foo\ntruncate foo 4096\nfsync foo\nwrite foo 0 4096\n", 4, zero_second_sector },
	  NULL },
	{ "P4",
	  "a renamed file is somewhere",
	  "linux",
	  FINDING_LOST,
	  { "creat foo\nsync\nrename foo bar\n", 3, without_bar },
	  { "creat foo\nsync\nrename foo bar\nunlink bar\n", 3, without_bar },
	  NULL },
	{ "P4",
	  "if rename is atomic",
	  "linux",
	  FINDING_LOST,
	  { "creat foo\nrename foo bar\nfdatasync bar\n", 3, without_bar },
	  { "creat foo\nrename foo bar\n", 2, without_bar },
	  NULL },
	{ "P4",
	  "a file has as many links as names",
	  "linux",
	  FINDING_NLINK,
	  { "creat foo\nsync\n", 2, second_link_only },
	  { "creat foo\nlink foo bar\nsync\n", 3, second_link_only },
	  NULL },
	{ "P5",
	  "what a command changed may be half done",
	  "linux",
	  FINDING_MODE,
	  { "creat foo\nsync\nshell \"c\" atomic\n", 3, mode_0111 },
	  { "creat foo\nsync\nshell \"c\"\n", 3, mode_0111 },
	  group_77 },
	{ "P5",
	  "until something younger promises it",
	  "linux",
	  FINDING_MODE,
	  { "creat foo\nsync\nshell \"c\"\nfsync foo\n", 4, mode_0111 },
	  { "creat foo\nsync\nshell \"c\"\ncreat bar\nfsync bar\n", 5, mode_0111 },
	  group_77 },
	{ "P5",
	  "what it left alone must be whole",
	  "linux",
	  FINDING_MODE,
	  { "creat foo\ncreat bar\nsync\nshell \"c\"\n", 4, mode_0111 },
	  { "creat foo\ncreat bar\nsync\nshell \"c\"\n", 3, bar_mode_0111 },
	  without_bar },
};

static void tell(const struct findings *out)
{
	for (size_t i = 0; i < out->n; i++)
		printf("#   %s: %s (%s)\n", finding_kind_name(out->v[i].kind), out->v[i].words,
		       out->v[i].promise);
}

static void test_pairs(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree seen = TREE_INIT;

	op_history_init(&h);
	workload_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const struct pair *p = &pairs[i];

		perform(&h, &w, p->bad.workload, p->command);
		make_seen(&h, p->bad.state, p->bad.change, &seen);
		judge(&h, p->guarantee, &seen, NULL, &out);
		bool only = out.n > 0;
		for (size_t k = 0; k < out.n; k++)
			only &= out.v[k].kind == p->kind;
		ok(only, "%s, %s: broken, it is %s and nothing else", p->rule, p->name,
		   finding_kind_name(p->kind));
		if (!only)
			tell(&out);
		perform(&h, &w, p->good.workload, p->command);
		make_seen(&h, p->good.state, p->good.change, &seen);
		judge(&h, p->guarantee, &seen, NULL, &out);
		is_u(out.n, 0, "%s, %s: its twin is silent", p->rule, p->name);
		tell(&out);
	}
	op_history_release(&h);
}

/* ---- what needs more than one tree ---- */

/* A directory that is gone takes what is in it along: that is one problem. */
static void test_below(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree seen = TREE_INIT;

	op_history_init(&h);
	workload_init(&w);
	perform(&h, &w, "mkdir A\nmkdir A/B\ncreat A/B/foo\nsync\n", NULL);
	make_seen(&h, 4, without_a, &seen);
	judge(&h, "linux", &seen, NULL, &out);
	ok(out.n == 1 && streq(out.v[0].path, "A"), "P1: what is below a missing directory is not "
						    "told again");
	tell(&out);
	op_history_release(&h);
}

/* P4: under no more names than it had at once. */
static void test_both(void)
{
	static const char *const twins[] = { "creat foo\nsync\nrename foo bar\n",
					     "creat foo\nsync\nlink foo bar\nunlink foo\n" };
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	struct tree_opts opts;

	check_tree_opts(&opts, NULL);
	op_history_init(&h);
	workload_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(twins); i++) {
		auto_tree seen = TREE_INIT, one = TREE_INIT;

		perform(&h, &w, twins[i], NULL);
		make_seen(&h, 2, NULL, &one);
		for (size_t k = 0; k < one.entries.n; k++) {
			struct tree_entry e = one.entries.v[k];

			if (is(&e, "foo")) {
				e.link = e.inode;
				e.nlink = 2;
			}
			tree_add(&seen, &e, &opts);
			e.path = "bar";
			if (e.link)
				tree_add(&seen, &e, &opts);
		}
		tree_finish(&seen);
		judge(&h, "linux", &seen, NULL, &out);
		if (i)
			is_u(out.n, 0, "P4: two names that it had at once are allowed");
		else
			ok(out.n == 1 && out.v[0].kind == FINDING_BOTH,
			   "P4: a renamed file at both places is both");
		tell(&out);
	}
	op_history_release(&h);
}

/* Blocks that were allocated are, as long as nothing was done to the file. */
static void test_blocks(void)
{
	struct op_history h;
	auto_workload w;
	auto_findings out = { 0 };
	auto_tree seen = TREE_INIT;
	struct check_blocks_list had = { 0 };

	op_history_init(&h);
	workload_init(&w);
	for (int changed = 0; changed < 2; changed++) {
		perform(&h, &w,
			changed ? "write foo 0 4096\nfsync foo\nappend foo 1\n"
				: "write foo 0 4096\nfsync foo\n",
			NULL);
		make_seen(&h, 2, NULL, &seen);
		vec_clear(&had);
		vec_push(&had, (struct check_blocks){ 2, op_history_ino(&h, 2, "foo"), 1 << 20 });
		judge(&h, "linux", &seen, &had, &out);
		if (changed)
			is_u(out.n, 0,
			     "P3: of a file that was written to since, they are its own "
			     "business");
		else
			ok(out.n == 1 && out.v[0].kind == FINDING_BLOCKS,
			   "P3: fewer blocks than were promised are blocks");
		tell(&out);
		had.v[0].blocks = 0;
		judge(&h, "linux", &seen, &had, &out);
		is_u(out.n, 0, "P3: as many are fine");
	}
	vec_release(&had);
	op_history_release(&h);
}

int main(void)
{
	test_pairs();
	test_below();
	test_both();
	test_blocks();
	return done_testing();
}
