/* SPDX-License-Identifier: MIT */
/* What a run of outage pm keeps comes back as it was; what is damaged is told. */
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "pm/pm_keep.h"

static char dir[] = "/tmp/outage-keep-XXXXXX";

static int write_run(const char *lines)
{
	auto_free char *text = xasprintf("outage-pm-run 2\nversion 0.1.0\n%s", lines);
	struct err err = ERR_INIT;

	return io_write_file(dir, "run", text, strlen(text), 0, &err);
}

static void test_plan(void)
{
	struct pm_plan p = { .file = xstrdup("/a\tb\\c\nd"),
			     .dir = xstrdup("/"),
			     .program = xstrdup("p"),
			     .recover = xstrdup(""),
			     .check = xstrdup("x"),
			     .granularity = 8,
			     .budget = UINT64_MAX,
			     .split = 1 };
	struct pm_plan q = { 0 };
	struct err err = ERR_INIT;

	ok(!case_is(dir, "pm"), "an empty directory is no run");
	is_i(record_save(pm_kind.plan, dir, CASE_RUN, &p, &err), 0, "a plan is kept");
	is_i(pm_plan_load(dir, &q, &err), 0, "and comes back");
	ok(streq(p.file, q.file) && !q.recover && streq(q.check, "x") && !q.dump &&
		   q.granularity == 8 && q.budget == UINT64_MAX && !q.model && q.split == 1,
	   "as it was");
	pm_plan_release(&q);
	is_i(write_run("file /a\n"), 0, "half a plan");
	ok(pm_plan_load(dir, &q, &err) == -EINVAL, "is refused: %s", err.msg);
	err_clear(&err);
	is_i(write_run("file /a\nbudget many\n"), 0, "a wrong number");
	ok(pm_plan_load(dir, &q, &err) < 0, "is refused: %s", err.msg);
	err_clear(&err);
	is_i(record_save(pm_kind.plan, dir, CASE_RUN, &p, &err), 0, "once more");
	pm_plan_release(&p);
}

/* The states of all findings, such as "7:4.12.1 ". */
static char *all_cases(void)
{
	struct strbuf sb = STRBUF_INIT;
	struct pm_cases cases = { 0 };
	struct err err = ERR_INIT;

	if (pm_cases_load(dir, &cases, &err))
		strbuf_adds(&sb, err.msg);
	for (size_t i = 0; i < cases.n; i++) {
		strbuf_addf(&sb, "%s:%s ", strrchr(cases.v[i].dir, '/') + 1, cases.v[i].state);
		case_finding_release(&pm_kind, &cases.v[i]);
	}
	vec_release(&cases);
	strbuf_add(&sb, "", 0);
	return strbuf_detach(&sb);
}

/* `c` is finding 7. */
static void test_move(struct pm_case *c)
{
	auto_free char *odd = xasprintf("mkdir '%s/findings/8' '%s/findings/notes'", dir, dir);
	struct err err = ERR_INIT;

	is_i(system(odd), 0, "what is no finding");
	free(c->state);
	c->state = xstrdup("b");
	is_i(case_put_number(&pm_kind, dir, 12, c, &err), 0, "another case");
	auto_free char *two = all_cases();
	is_s(two, "7:4.12.1 12:b ", "all are found, where numbers are missing, too");
	is_i(case_move_number(dir, 12, 7, &err), 0, "it takes the place of the first");
	auto_free char *one = all_cases();
	is_s(one, "7:b ", "which is gone");
	is_i(case_move_number(dir, 7, 3, &err), 0, "and gets a number that nobody has");
	auto_free char *moved = all_cases();
	is_s(moved, "3:b ", "which was not there before");
	is_i(case_remove_number(dir, 3, &err), 0, "it is removed");
	ok(case_remove_number(dir, 3, &err) == -ENOENT, "once: %s", err.msg);
	err_clear(&err);
	ok(case_move_number(dir, 3, 4, &err) == -ENOENT, "what is not there gets no number: %s",
	   err.msg);
}

static void test_case(void)
{
	auto_free char *path = xasprintf("%s/findings/7", dir);
	struct pm_case c = { .state = xstrdup("4.12.1"),
			     .title = xstrdup("two\nlines"),
			     .seen = xstrdup("failed"),
			     .detail = xstrdup(""),
			     .point = 12,
			     .states = 3 };
	struct pm_case d = { 0 };
	struct err err = ERR_INIT;

	strbuf_add(&c.said, "a\0b\n", 4);
	is_i(case_put_number(&pm_kind, dir, 7, &c, &err), 0, "a case is kept");
	is_i(case_get(&pm_kind, path, &d, &err), 0, "and comes back");
	ok(streq(d.state, c.state) && streq(d.title, c.title) && d.point == 12 && d.states == 3 &&
		   d.said.len == 4 && streq(d.dir, path),
	   "as it was");
	ok(case_is(path, "pm") && case_is(dir, "pm") && !case_is(path, "app") &&
		   !case_is(dir, "test"),
	   "it is known for what it is");
	case_finding_release(&pm_kind, &d);
	test_move(&c);
	case_finding_release(&pm_kind, &c);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	test_plan();
	test_case();
	auto_free char *clean = xasprintf("rm -rf '%s'", dir);
	return done_testing() | !!system(clean);
}
