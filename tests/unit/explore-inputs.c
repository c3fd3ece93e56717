/* SPDX-License-Identifier: MIT */
/* What is drawn, how often, and what of it was exercised. */
#include "explore/coverage.h"
#include "tap.h"

static void parse(struct inputs *in, const char *text, int want, const char *why)
{
	struct err err = ERR_INIT;
	int rc = inputs_parse(in, text, strlen(text), "file", &err);

	ok(!rc == !want, "%.*s is %s", (int)strcspn(text, "\n"), text, want ? "refused" : "read");
	if (rc && want)
		ok(strstr(err.msg, why) != NULL, "and it says why: %s", err.msg);
	else if (rc)
		printf("#   %s\n", err.msg);
}

static void test_distributions(void)
{
	struct wheel w = { 0 };
	struct rng r;
	uint64_t n[4] = { 0 };

	ok(dist_find("rank") == DIST_RANK && dist_find("nothing") == DIST_END, "names");
	ok(dist_weight(DIST_RANK, 3, 10) == 0.25, "the fourth by rank weighs a quarter");
	ok(dist_weight(DIST_INVERSE, 9, 10) == 1, "and from the other end the last weighs most");
	ok(dist_weight(DIST_DECAY, 1, 10) == 0.9 && dist_weight(DIST_INVERSE_DECAY, 8, 10) == 0.9,
	   "decay, from both ends");
	wheel_add(&w, 0);
	ok(!wheel_turns(&w), "what weighs nothing is not drawn");
	wheel_add(&w, 3);
	wheel_add(&w, 0);
	wheel_add(&w, 1);
	rng_init(&r, 1);
	for (int i = 0; i < 40000; i++)
		n[wheel_draw(&w, &r)]++;
	ok(!n[0] && !n[2], "nor is it among others");
	ok(n[1] > 29000 && n[1] < 31000, "three of four are drawn three times in four: %llu",
	   (unsigned long long)n[1]);
	wheel_release(&w);
}

static void test_file(void)
{
	struct inputs in;
	struct err err = ERR_INIT;

	inputs_init(&in);
	parse(&in, "# a comment\n\nonly write creat\noperation write 3\n", 0, "");
	parse(&in, "weight write LENGTH 4096 1\nweight write LENGTH 0 1 # two\n", 0, "");
	parse(&in, "names files 1\nnames depth 0\nmax size 8k\ndistribution sizes rank", 0, "");
	parse(&in, "operation fly 3", 1, "there is no operation 'fly'");
	parse(&in, "operation write lots", 1, "a weight is a number");
	parse(&in, "operation write -1", 1, "a weight is a number");
	parse(&in, "operation write nan", 1, "a weight is a number");
	parse(&in, "weight write COLOUR 1 1", 1, "has no argument 'COLOUR'");
	parse(&in, "weight write LENGTH 3 1", 1, "power of two");
	parse(&in, "weight rename FLAGS upwards 1", 1, "no word 'upwards'");
	parse(&in, "distribution sizes bell", 1, "uniform, rank");
	parse(&in, "names planets 3", 1, "files, dirs, depth");
	parse(&in, "max size 1T", 1, "max size is from");
	parse(&in, "weigh write", 1, "a line begins with");
	ok(!inputs_finish(&in, &err), "what was read can be drawn from: %s", err.msg);
	ok(in.pool.n == 1, "one name");
	struct alphabet a;
	bool only = true;
	alphabet_init(&a);
	alphabet_draw(&a, &in, 1, 200, false);
	for (size_t i = 0; i < a.steps.n; i++) {
		const struct op *op = &a.w.ops.v[a.steps.v[i].first];
		bool write = streq(op->def->name, "write");

		only &= write || streq(op->def->name, "creat");
		only &= !write || op->args[2].num == 0 || op->args[2].num >= 4096 - 8192 % 4096 ||
			op->args[1].num + op->args[2].num == 8192;
	}
	ok(only, "only what was asked for is drawn");
	alphabet_release(&a);
	inputs_release(&in);
}

static void test_nothing_left(void)
{
	struct inputs in;
	struct err err = ERR_INIT;
	const char *text = "weight truncate SIZE 0 0\n";

	inputs_init(&in);
	ok(!inputs_parse(&in, text, strlen(text), "file", &err), "a partition without weight");
	ok(inputs_finish(&in, &err) && strstr(err.msg, "sum to zero"), "sums to zero: %s", err.msg);
	inputs_release(&in);
	inputs_init(&in);
	err_clear(&err);
	for (size_t i = 0; i < INPUTS_OPS_MAX; i++)
		in.op_weight[i] = 0;
	ok(inputs_finish(&in, &err) && strstr(err.msg, "all operations"), "no operation is left");
	inputs_release(&in);
}

static char *drawn(uint64_t seed, size_t n, bool distinct)
{
	struct inputs in;
	struct err err = ERR_INIT;
	struct alphabet a;
	struct strbuf text = { 0 };

	inputs_init(&in);
	in.long_names = 2;
	in.many = 5;
	ok(!inputs_finish(&in, &err), "the usual inputs");
	alphabet_init(&a);
	alphabet_draw(&a, &in, seed, n, distinct);
	workload_print(&a.w, &text);
	alphabet_release(&a);
	inputs_release(&in);
	return strbuf_detach(&text);
}

static void test_alphabet(void)
{
	auto_free char *one = drawn(7, 300, false), *same = drawn(7, 300, false),
		       *other = drawn(8, 300, false);
	struct workload w;
	struct err err = ERR_INIT;

	ok(streq(one, same), "the same seed draws the same");
	ok(!streq(one, other), "another does not");
	workload_init(&w);
	ok(!workload_parse(one, strlen(one), "drawn", &w, &err), "what is drawn is a workload: %s",
	   err.msg);
	workload_release(&w);

	struct inputs in;
	struct alphabet a;
	size_t depth = 0;
	inputs_init(&in);
	ok(!inputs_finish(&in, &err), "the usual inputs");
	alphabet_init(&a);
	alphabet_draw(&a, &in, 3, 2000, false);
	for (size_t i = 0; i < a.steps.n; i++)
		for (uint32_t k = 0; k < a.steps.v[i].n; k++) {
			const struct op *op = &a.w.ops.v[a.steps.v[i].first + k];

			depth += op->handle != NULL;
			depth -= streq(op->def->name, "close");
			if (depth > 2)
				break;
		}
	is_u(depth, 0, "every step closes what it opens");
	alphabet_release(&a);
	inputs_release(&in);
}

static void test_coverage(void)
{
	struct inputs in;
	struct err err = ERR_INIT;
	struct coverage *c = xcalloc(1, sizeof(*c));
	struct workload w;
	uint64_t seen, all;
	auto_strbuf text = STRBUF_INIT, picture = STRBUF_INIT;

	inputs_init(&in);
	ok(!inputs_finish(&in, &err), "the usual inputs");
	workload_init(&w);
	ok(!workload_add_line(&w, "truncate f 4097", &err), "an operation");
	ok(!workload_add_line(&w, "rename a b noreplace", &err), "and another");
	coverage_summary(c, &in, &seen, &all);
	ok(seen == 0 && all > 100, "nothing was exercised yet, of %llu", (unsigned long long)all);
	coverage_count(c, &w.ops.v[0], -2);
	coverage_count(c, &w.ops.v[1], 0);
	coverage_summary(c, &in, &seen, &all);
	is_u(seen, 2, "two partitions were");
	coverage_print(c, &in, &text);
	ok(strstr(strbuf_str(&text), "ENOENT 1"), "an error is counted by name");
	ok(strstr(strbuf_str(&text), "4096:1"), "a size in its partition");
	ok(strstr(strbuf_str(&text), "noreplace:1"), "a flag by its word");
	coverage_picture(c, &in, &picture);
	ok(strstr(strbuf_str(&picture), "rename FLAGS noreplace: 1</title>"), "and in the picture");
	workload_release(&w);
	inputs_release(&in);
	free(c);
}

int main(void)
{
	test_distributions();
	test_file();
	test_nothing_left();
	test_alphabet();
	test_coverage();
	return done_testing();
}
