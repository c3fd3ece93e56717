/* SPDX-License-Identifier: MIT */
/*
 * app-explain.c - why crash states fail: the file "f" is replaced, in ways that are wrong, and the
 * check is done here, on the state itself. Also what a check's answer means, and what is kept.
 */
#include "calls.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/explain.h"
#include "app/judge.h"
#include "trace-build.h"

enum { F_INO = 101, T_INO = 102 };

/* ---- traces ---- */

static struct trace trace;

static uint64_t create(const char *name, uint64_t ino)
{
	return calls_create(&trace, ino, name);
}

static uint64_t write_all(uint64_t ino, char c, size_t len)
{
	return calls_fill(&trace, ino, 0, len, c);
}

static uint64_t sync_ino(uint64_t ino)
{
	return calls_sync(&trace, ino == CALLS_ROOT ? POSIX_FSYNCDIR : POSIX_FSYNC, ino);
}

static uint64_t rename_over(void)
{
	return calls_add(&trace, (struct posix_event){ .op = POSIX_RENAME,
						       .dir = CALLS_ROOT,
						       .name = "t",
						       .dir2 = CALLS_ROOT,
						       .name2 = "f",
						       .ino = T_INO,
						       .ino2 = F_INO });
}

static uint64_t acknowledge(const char *text)
{
	uint64_t n = states_acked(&trace, trace.events.n);

	trace_op_begin(&trace, n, text);
	trace_persist(&trace, n);
	return trace.events.n - 1;
}

/* "f" is there, old and durable. */
static void begin(void)
{
	trace_init(&trace);
	create("f", F_INO);
	write_all(F_INO, 'o', 10);
	sync_ino(F_INO);
	sync_ino(CALLS_ROOT);
	acknowledge("old");
}

/* ---- the check ---- */

struct checking {
	struct history *h;
	bool always;
	unsigned n;
};

static char content(const struct reffs_state *s, size_t *size)
{
	uint64_t ino = reffs_lookup(reffs_inode(s, REFFS_ROOT_INO), "f");
	struct reffs_attr a;
	char c;

	*size = 0;
	if (!ino)
		return 0;
	reffs_attr(reffs_inode(s, ino), &a);
	*size = a.size;
	const unsigned char *page = reffs_page(reffs_inode(s, ino), 0);
	c = page && a.size ? (char)page[0] : '.';
	for (uint64_t i = 0; i < a.size; i++) {
		page = reffs_page(reffs_inode(s, ino), i / REFFS_PAGE);
		if ((page ? (char)page[i % REFFS_PAGE] : 0) != c)
			return '?';
	}
	return c;
}

static int look(const struct checking *c, const struct app_state *s, enum app_harm *harm)
{
	size_t size;
	char is = content(s->tree, &size);

	*harm = APP_FAILED;
	if (c->always)
		return 1;
	if (!is && s->acked) {
		*harm = APP_UNAVAILABLE;
		return 1;
	}
	if (!is)
		return 0;
	if (s->acked >= 1 && !(is == 'o' && size == 10) && !(is == 'n' && size == 10000)) {
		*harm = APP_CORRUPT;
		return 1;
	}
	*harm = APP_ROLLED_BACK;
	return s->acked >= 2 && is != 'n';
}

static int check(void *ctx, const char *id, enum app_harm *harm, struct err *err)
{
	struct checking *c = ctx;
	struct app_state s = { 0 };
	int rc = states_replay(c->h, id, &s, err);

	c->n++;
	if (!rc)
		rc = look(c, &s, harm);
	app_state_release(&s);
	return rc;
}

/* ---- explaining all that fails ---- */

struct all {
	struct vec_of(struct explained) v; /* by cause */
	unsigned failing, attributed;
};

static void all_release(struct all *a)
{
	for (size_t i = 0; i < a->v.n; i++)
		explained_release(&a->v.v[i]);
	vec_release(&a->v);
}

static void explain_one(struct all *a, const struct explain_opts *o, const struct app_state *s,
			enum app_harm harm)
{
	struct explained e = { 0 };
	struct err err = ERR_INIT;

	a->failing++;
	for (size_t i = 0; i < a->v.n; i++)
		if (explain_same(o, s, &a->v.v[i], &err) == 1) {
			a->attributed++;
			return;
		}
	if (!ok(explain(o, s, harm, &e, &err) == 0, "state %s is explained", s->id)) {
		printf("# %s\n", err.msg);
		return;
	}
	struct explain_opts few = *o;
	struct explained cut = { 0 };
	few.checks_max = 1;
	ok(!e.cut && explain(&few, s, harm, &cut, &err) == 0 && cut.cut == (e.checks > 1),
	   "with too few checks that is told, with enough it is not");
	explained_release(&cut);
	enum app_harm again;
	ok(check(o->ctx, e.id, &again, &err) == 1 && again == harm,
	   "and what is explained, %s, fails in the same way", e.id);
	for (size_t i = 0; i < a->v.n; i++)
		if (streq(a->v.v[i].cause, e.cause)) {
			explained_release(&e);
			return;
		}
	vec_push(&a->v, e);
}

static void explain_all(const char *profile, bool always, struct all *a)
{
	struct history h;
	struct history_opts opts = { .profile = profile_find(profile),
				     .base = -1,
				     .root_ino = CALLS_ROOT };
	struct states_opts none = { 0 };
	struct err err = ERR_INIT;
	struct states *states;
	struct app_state s = { 0 };
	struct roles roles;

	*a = (struct all){ 0 };
	if (!ok(history_new(&trace, &opts, &h, &err) == 0, "%s: the calls are followed", profile))
		return;
	roles_init(&roles, &h);
	struct checking c = { .h = &h, .always = always };
	struct explain_opts o = {
		.h = &h, .roles = &roles, .check = check, .ctx = &c, .made = &opts
	};
	if (ok(states_new(&h, &none, &states, &err) == 0, "%s: there are states", profile)) {
		while (states_next(states, &s)) {
			enum app_harm harm;

			if (look(&c, &s, &harm))
				explain_one(a, &o, &s, harm);
		}
		states_free(states);
	}
	app_state_release(&s);
	roles_release(&roles);
	history_release(&h);
}

/* ---- cases ---- */

static void test_order(void)
{
	struct all a;

	begin();
	create("t", T_INO);
	uint64_t written = write_all(T_INO, 'n', 10000);
	uint64_t renamed = rename_over();
	explain_all("minimal", false, &a);
	is_u(a.v.n, 1, "a rename before the data: one cause");
	ok(a.failing > 1, "of several states");
	if (a.v.n) {
		const struct explained *e = &a.v.v[0];

		is_u(e->kind, EXPLAIN_ORDER, "it is about order");
		is_u(e->harm, APP_CORRUPT, "it corrupts");
		is_u(e->lost.n, 1, "one operation is lost");
		is_u(e->lost.v[0].event, written, "the write");
		is_u(e->after, renamed, "and the rename is not");
		ok(e->mend.found && e->mend.what == MEND_FILE, "a sync of the file is missing");
	}
	all_release(&a);
	explain_all("ext4-ordered", false, &a);
	is_u(a.failing, 0, "where a rename brings its data along, nothing fails");
	all_release(&a);
	trace_release(&trace);
}

static void test_ack(void)
{
	struct all a;

	begin();
	create("t", T_INO);
	write_all(T_INO, 'n', 10000);
	sync_ino(T_INO);
	uint64_t renamed = rename_over();
	uint64_t acked = acknowledge("new");
	explain_all("minimal", false, &a);
	is_u(a.v.n, 1, "an acknowledgement before the directory is synced: one cause");
	if (a.v.n) {
		is_u(a.v.v[0].kind, EXPLAIN_ACK, "it is about the acknowledgement");
		is_u(a.v.v[0].harm, APP_ROLLED_BACK, "which is rolled back");
		is_u(a.v.v[0].lost.v[0].event, renamed, "because the rename is lost");
		is_u(a.v.v[0].after, acked, "after that");
		ok(a.v.v[0].mend.found && a.v.v[0].mend.what == MEND_DIR,
		   "a sync of the directory is missing");
	}
	all_release(&a);
	trace_release(&trace);

	begin();
	create("t", T_INO);
	write_all(T_INO, 'n', 10000);
	sync_ino(T_INO);
	rename_over();
	sync_ino(CALLS_ROOT);
	acknowledge("new");
	explain_all("minimal", false, &a);
	is_u(a.failing, 0, "with the sync, nothing fails");
	all_release(&a);
	trace_release(&trace);
}

/* The write of "t" is change `n`; whether it is durable at the rename, with a call more. */
static bool mends(const struct history *h, const struct history_opts *opts, uint32_t n,
		  enum mend_what what, uint64_t after, uint64_t point)
{
	struct err err = ERR_INIT;
	struct mended m;

	if (mend(h, opts, n, what, after, &m, &err))
		return false;
	bool durable = change_is_durable(&m.h.changes.v[n], point + 1);
	ok(m.h.changes.n == h->changes.n, "the changes are the same");
	mended_release(&m);
	return durable;
}

static void test_mend(void)
{
	struct history_opts opts = { .profile = profile_find("minimal"),
				     .base = -1,
				     .root_ino = CALLS_ROOT };
	struct err err = ERR_INIT;
	struct history h;
	uint32_t n = 0;

	begin();
	create("t", T_INO);
	uint64_t written = write_all(T_INO, 'n', 10000);
	uint64_t renamed = rename_over();
	uint64_t removed = calls_add(
		&trace, (struct posix_event){
				.op = POSIX_UNLINK, .dir = CALLS_ROOT, .name = "f", .ino = T_INO });
	if (!ok(history_new(&trace, &opts, &h, &err) == 0, "a run without a sync"))
		return;
	while (h.changes.v[n].event != written || h.changes.v[n].kind != CHANGE_DATA)
		n++;
	ok(!change_is_durable(&h.changes.v[n], renamed + 1), "the write is not durable");
	ok(mends(&h, &opts, n, MEND_FILE, written, renamed + 1), "a sync of its file mends that");
	ok(!mends(&h, &opts, n, MEND_FILE, renamed, renamed), "but not if it comes too late");
	ok(!mends(&h, &opts, n, MEND_DIR, written, renamed + 1), "nor one of another thing");
	struct mended m;
	uint32_t last = (uint32_t)h.changes.n - 1;
	ok(h.changes.v[last].event == removed &&
		   mend(&h, &opts, last, MEND_FILE, removed, &m, &err) == -ENOENT,
	   "a file that is gone cannot be synced");
	history_release(&h);
	trace_release(&trace);
}

static void test_window(void)
{
	struct all a;

	begin();
	create("t", T_INO);
	write_all(T_INO, 'n', 10000);
	sync_ino(T_INO);
	sync_ino(CALLS_ROOT);
	uint64_t removed = calls_add(
		&trace, (struct posix_event){
				.op = POSIX_UNLINK, .dir = CALLS_ROOT, .name = "f", .ino = F_INO });
	/* Something else goes on in between. */
	create("x", T_INO + 1);
	write_all(T_INO + 1, 'x', 10);
	uint64_t renamed = calls_add(&trace, (struct posix_event){ .op = POSIX_RENAME,
								   .dir = CALLS_ROOT,
								   .name = "t",
								   .dir2 = CALLS_ROOT,
								   .name2 = "f",
								   .ino = T_INO });
	explain_all("ext4-ordered", false, &a);
	is_u(a.v.n, 1, "a file that is removed before its successor is there: one cause");
	ok(a.attributed > 0, "other states of that window are recognised");
	if (a.v.n) {
		is_u(a.v.v[0].kind, EXPLAIN_WINDOW, "nothing has to be lost for it");
		is_u(a.v.v[0].lost.n, 0, "nor is anything");
		is_u(a.v.v[0].after, removed, "it begins with the removal");
		is_u(a.v.v[0].until, renamed, "and ends with the rename");
	}
	all_release(&a);
	trace_release(&trace);
}

static void test_start(void)
{
	struct all a;

	begin();
	explain_all("minimal", true, &a);
	is_u(a.v.n, 1, "what always fails has one cause");
	if (a.v.n) {
		is_u(a.v.v[0].kind, EXPLAIN_START, "it fails before anything was done");
		is_u(a.v.v[0].point, 0, "at the very beginning");
	}
	all_release(&a);
	trace_release(&trace);
}

/* ---- answers ---- */

static enum app_harm judged(const struct app_plan *p, const struct words *acks,
			    const struct words *shown, enum check_end end, int code,
			    const char *output, uint64_t acked)
{
	struct check_result r = { .end = end, .exit_code = code };
	struct verdict v = { 0 };
	struct judge j;

	strbuf_adds(&r.output, output);
	judge_init(&j, p, acks, shown);
	judge_verdict(&j, acked, &r, &v);
	enum app_harm harm = v.fails ? v.harm : APP_HARM_END;
	verdict_release(&v);
	judge_release(&j);
	strbuf_release(&r.output);
	return harm;
}

static void test_judge(void)
{
	char one[] = "one", two[] = "two", three[] = "three", check_command[] = "c";
	char *both[] = { one, two }, *all[] = { one, two, three };
	struct words acks = { both, 2, 2 }, shown = { all, 3, 3 };
	struct app_plan c = { .check = check_command }, q = { .query = check_command },
			r = { .restart = check_command },
			rc = { .check = check_command, .restart = check_command };
	static const char down[] = "outage: the restart ended with status 1\n";

	is_u(judged(&c, &acks, NULL, CHECK_PASSED, 0, "", 1), APP_HARM_END, "a check that passes");
	is_u(judged(&c, &acks, NULL, CHECK_FAILED, 1, "no", 1), APP_FAILED, "one that fails");
	is_u(judged(&c, &acks, NULL, CHECK_FAILED, 1, "x\noutage: silent-loss\n", 1),
	     APP_SILENT_LOSS, "one that says why");
	is_u(judged(&c, &acks, NULL, CHECK_FAILED, 1, "outage: nonsense\n", 1), APP_FAILED,
	     "one that says what nobody knows");
	is_u(judged(&c, &acks, NULL, CHECK_HUNG, 0, "", 1), APP_HANG, "one that hangs");
	is_u(judged(&c, &acks, NULL, CHECK_KILLED, 0, "", 1), APP_UNAVAILABLE, "one that crashes");
	is_u(judged(&r, &acks, NULL, CHECK_FAILED, 1, "", 1), APP_UNAVAILABLE, "no restart");
	is_u(judged(&rc, &acks, NULL, CHECK_FAILED, 1, down, 1), APP_UNAVAILABLE,
	     "no restart before the check");
	is_u(judged(&c, &acks, NULL, CHECK_FAILED, 1, down, 1), APP_FAILED,
	     "a check that says that, where there is no restart");
	is_u(judged(&q, &acks, &shown, CHECK_PASSED, 0, "one\n", 1), APP_HARM_END,
	     "a query that shows what was acknowledged");
	is_u(judged(&q, &acks, &shown, CHECK_PASSED, 0, "one\nthree\n", 1), APP_HARM_END,
	     "and more, which the end has");
	is_u(judged(&q, &acks, &shown, CHECK_PASSED, 0, "one\n", 2), APP_ROLLED_BACK,
	     "one that lacks something");
	is_u(judged(&q, &acks, &shown, CHECK_PASSED, 0, "ones\n", 1), APP_ROLLED_BACK,
	     "a longer line is not that line");
	is_u(judged(&q, &acks, &shown, CHECK_PASSED, 0, "one\nfour\n", 1), APP_CORRUPT,
	     "one that shows what never was");
}

/* ---- what is kept ---- */

static void test_keep(void)
{
	char dir[] = "/tmp/app-keep-XXXXXX", odd[] = "a\tb\nc\\d", plain[] = "x";
	struct app_plan p = { .dir = plain,
			      .run = odd,
			      .check = plain,
			      .profile = plain,
			      .unit = 512,
			      .root_ino = UINT64_MAX,
			      .kill = true };
	struct app_plan back = { 0 };
	struct err err = ERR_INIT;

	if (!ok(mkdtemp(dir) != NULL, "a directory"))
		return;
	ok(!case_is(dir, "app"), "an empty directory is no run");
	ok(record_save(app_kind.plan, dir, CASE_RUN, &p, &err) == 0, "a plan is kept");
	ok(case_is(dir, "app"), "then it is one");
	ok(app_plan_load(dir, &back, &err) == 0, "and read again");
	ok(back.run && streq(back.run, odd), "with every character");
	ok(back.root_ino == UINT64_MAX && back.unit == 512 && back.kill && !back.query,
	   "and all numbers");
	app_plan_release(&back);

	struct app_case c = { .state = plain, .title = odd, .harm = APP_CORRUPT, .states = 3 };
	struct app_case again = { 0 };
	struct words list = { 0 };
	strbuf_adds(&c.said, "said\n");
	vec_push(&c.lost, xstrdup("17"));
	vec_push(&c.lost, xstrdup("18 1/2"));
	ok(case_put_number(&app_kind, dir, 7, &c, &err) == 0, "a finding is kept");
	ok(case_list(dir, &list, &err) == 0 && list.n == 1, "and listed");
	ok(list.n && case_is(list.v[0], "app"), "as one");
	ok(list.n && case_get(&app_kind, list.v[0], &again, &err) == 0, "and read again");
	ok(again.title && streq(again.title, odd) && again.harm == APP_CORRUPT &&
		   again.lost.n == 2 && streq(again.lost.v[1], "18 1/2") && again.said.len == 5,
	   "as it was");
	case_finding_release(&app_kind, &again);
	auto_free char *path = xasprintf("%s/findings/7/case", dir);
	FILE *f = fopen(path, "w");
	if (f) {
		fputs("outage-app-case 2\nversion 0.1.0\nstate x\ntitle y\nharm none\n", f);
		fclose(f);
	}
	ok(list.n && case_get(&app_kind, list.v[0], &again, &err) < 0,
	   "a harm that is none is refused");
	words_release(&list);
	words_release(&c.lost);
	strbuf_release(&c.said);
	auto_free char *clean = xasprintf("rm -rf %s", dir);
	ok(system(clean) == 0, "cleared away");
}

int main(void)
{
	test_order();
	test_ack();
	test_mend();
	test_window();
	test_start();
	test_judge();
	test_keep();
	return done_testing();
}
