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
	parse(&in, "bit write LENGTH 1 1", 1, "neither flags nor a mode: 'LENGTH'");
	parse(&in, "bit rename FLAGS exchange 2", 1, "from 0 to 1, not '2'");
	parse(&in, "bit rename FLAGS noreplace,exchange 1", 1, "no word");
	parse(&in, "bit chmod MODE 0644 1", 1, "a bit of a mode is");
	parse(&in, "bit chmod MODE 0 1", 1, "a bit of a mode is");
	parse(&in, "combination rename FLAGS noreplace,sideways 1", 1, "no word 'sideways'");
	parse(&in, "combination chmod MODE 99 1", 1, "a mode is octal");
	parse(&in, "combination write LENGTH none 1", 1, "neither flags nor a mode");
	parse(&in, "combination rename FLAGS none much", 1, "a weight is a number");
	parse(&in, "place between 1", 1, "at, above, below or inside, not 'between'");
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
	for (size_t i = 0; i < OP_COUNT; i++)
		in.op_weight[i] = 0;
	ok(inputs_finish(&in, &err) && strstr(err.msg, "all operations"), "no operation is left");
	inputs_release(&in);
}

/* How often each value of one argument is drawn, of 4000 steps. */
struct counts {
	uint64_t n, bits[16], all;
	uint64_t by_value[1 << 13];
};

static void draw_arg(const char *text, const char *op, unsigned arg, struct counts *out)
{
	struct inputs in;
	struct err err = ERR_INIT;
	struct alphabet a;

	*out = (struct counts){ 0 };
	inputs_init(&in);
	ok(!inputs_parse(&in, text, strlen(text), "file", &err) && !inputs_finish(&in, &err),
	   "%.*s: %s", (int)strcspn(text, "\n"), text, err.msg);
	alphabet_init(&a);
	alphabet_draw(&a, &in, 5, 4000, false);
	for (size_t i = 0; i < a.steps.n; i++) {
		const struct op *o = &a.w.ops.v[a.steps.v[i].first];

		if (!streq(o->def->name, op))
			continue;
		out->n++;
		for (unsigned bit = 0; bit < 16; bit++)
			out->bits[bit] += o->args[arg].num >> bit & 1;
		out->by_value[o->args[arg].num & 8191]++;
	}
	alphabet_release(&a);
	inputs_release(&in);
}

static bool about(uint64_t n, double want)
{
	return (double)n > want * 0.85 - 3 && (double)n < want * 1.15 + 3;
}

static void test_bitmaps(void)
{
	struct counts *c = xcalloc(1, sizeof(*c));

	draw_arg("only rename\nbit rename FLAGS noreplace 0.5\nbit rename FLAGS exchange 0.1\n"
		 "bit rename FLAGS whiteout 0\n",
		 "rename", 2, c);
	ok(about(c->bits[0], (double)c->n * 0.5) && about(c->bits[1], (double)c->n * 0.1),
	   "each bit with its probability: %llu, %llu of %llu", (unsigned long long)c->bits[0],
	   (unsigned long long)c->bits[1], (unsigned long long)c->n);
	is_u(c->bits[2], 0, "or never");

	draw_arg("only rename\ncombination rename FLAGS noreplace,exchange 3\n"
		 "combination rename FLAGS none 1\n",
		 "rename", 2, c);
	ok(about(c->by_value[3], (double)c->n * 0.75) && about(c->by_value[0], (double)c->n * 0.25),
	   "combinations by their weight");
	is_u(c->by_value[3] + c->by_value[0], c->n, "and no others");

	draw_arg("only rename\ndistribution flags rank\ncombination rename FLAGS none\n"
		 "combination rename FLAGS exchange\n",
		 "rename", 2, c);
	ok(about(c->by_value[0], (double)c->n * 2 / 3), "without weights the distribution applies");

	draw_arg("only rename\nbit rename FLAGS noreplace 1\nbit rename FLAGS exchange 0\n"
		 "bit rename FLAGS whiteout 0\n"
		 "combination rename FLAGS exchange 1\ncombination rename FLAGS by-bit 1\n",
		 "rename", 2, c);
	ok(about(c->by_value[1], (double)c->n / 2) && about(c->by_value[2], (double)c->n / 2),
	   "bit by bit half of the time, one combination otherwise");

	draw_arg("only chmod\nbit chmod MODE 4000 1\nbit chmod MODE 1 0.5\n", "chmod", 1, c);
	is_u(c->by_value[04000] + c->by_value[04001], c->n,
	     "only the bits of a mode that are named");
	ok(about(c->by_value[04001], (double)c->n / 2), "as often as was asked for");
	draw_arg("only chmod\nweight chmod MODE 0421 1\n", "chmod", 1, c);
	is_u(c->by_value[0421], c->n, "one mode, as a whole");

	draw_arg("only open\ncombination open FLAGS wronly,creat,excl 1\n"
		 "combination open MODE 0600 1\n",
		 "open", 1, c);
	is_u(c->by_value[01 | 0100 | 0200], c->n, "files are opened as was asked for");
	draw_arg("only open\nbit open FLAGS rdonly 0\nbit open FLAGS wronly 0\n"
		 "bit open FLAGS rdwr 1\n",
		 "open", 1, c);
	is_u(c->bits[1], c->n, "for reading and writing");
	is_u(c->bits[0], 0, "and never for writing only");

	draw_arg("only falloc\ndistribution flags inverse\n", "falloc", 1, c);
	ok(c->by_value[0x20] > c->by_value[0] * 3, "a distribution applies to combinations");
	ok(c->by_value[0] > 0 && c->by_value[3] > 0, "all of which are drawn");
	draw_arg("only truncate\nplace above 0\nplace below 0\nplace inside 0\nmax size 4096\n",
		 "truncate", 1, c);
	for (uint64_t v = 0, odd = 0; v < 8192; v++) {
		odd += v & (v - 1) ? c->by_value[v] : 0;
		if (v == 8191)
			is_u(odd, 0, "only boundaries");
	}
	ok(c->by_value[4096] && c->by_value[0], "zero among them");
	free(c);

	struct inputs in;
	struct err err = ERR_INIT;
	const char *both = "bit rename FLAGS exchange 0.5\ncombination rename FLAGS none 1\n";
	inputs_init(&in);
	ok(!inputs_parse(&in, both, strlen(both), "file", &err), "bits and combinations");
	ok(inputs_finish(&in, &err) && strstr(err.msg, "by-bit"), "need a weight: %s", err.msg);
	inputs_release(&in);
	const char *none = "place at 0\nplace above 0\nplace below 0\nplace inside 0\n";
	err_clear(&err);
	inputs_init(&in);
	ok(!inputs_parse(&in, none, strlen(none), "file", &err), "no place");
	ok(inputs_finish(&in, &err) && strstr(err.msg, "no number"), "is refused: %s", err.msg);
	inputs_release(&in);
}

static void print_is(const char *op, unsigned arg, uint64_t value, const char *want)
{
	auto_strbuf text = STRBUF_INIT;

	bitmap_print(&op_find(op, strlen(op))->args[arg], value, &text);
	ok(streq(strbuf_str(&text), want), "%s: %s", want, strbuf_str(&text));
}

static void test_bitmap_values(void)
{
	struct bitmap_values all = { 0 };

	bitmap_all(&op_find("rename", 6)->args[2], &all);
	is_u(all.n, 8, "three flags make eight combinations");
	bitmap_all(&op_find("chmod", 5)->args[1], &all);
	is_u(all.n, 4096, "a mode has twelve bits");
	/* Three ways to open, seven bits, sync includes dsync, tmpfile includes directory. */
	bitmap_all(&op_find("open", 4)->args[1], &all);
	is_u(all.n, 3 * 128 * 3 * 3, "flags of open");
	vec_release(&all);
	print_is("rename", 2, 0, "none");
	print_is("rename", 2, 3, "noreplace,exchange");
	print_is("chmod", 1, 0644, "0644");
	print_is("open", 1, 04010001, "sync,wronly");
}

static void test_places(void)
{
	ok(inputs_place(1) == PLACE_AT && inputs_place(2) == PLACE_AT &&
		   inputs_place(4096) == PLACE_AT,
	   "powers of two");
	ok(inputs_place(3) == PLACE_ABOVE && inputs_place(4097) == PLACE_ABOVE, "one above");
	ok(inputs_place(4095) == PLACE_BELOW && inputs_place(7) == PLACE_BELOW, "one below");
	ok(inputs_place(4098) == PLACE_INSIDE && inputs_place(100) == PLACE_INSIDE, "between");
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
	struct coverage_summary sum;
	auto_strbuf text = STRBUF_INIT, picture = STRBUF_INIT;

	inputs_init(&in);
	ok(!inputs_finish(&in, &err), "the usual inputs");
	workload_init(&w);
	ok(!workload_add_line(&w, "truncate f 4097", &err), "an operation");
	ok(!workload_add_line(&w, "rename a b noreplace", &err), "and another");
	ok(!workload_add_line(&w, "rename a b noreplace,exchange", &err), "with two bits");
	ok(!workload_add_line(&w, "chmod a 0644", &err), "and a mode");
	coverage_summary(c, &in, &sum);
	ok(sum.parts == 0 && sum.combinations == 0 && sum.errors == 0 && sum.all_parts > 100,
	   "nothing was exercised yet, of %llu", (unsigned long long)sum.all_parts);
	coverage_count(c, &w.ops.v[0], -2);
	coverage_count(c, &w.ops.v[1], 0);
	coverage_summary(c, &in, &sum);
	is_u(sum.parts, 2, "two partitions were");
	is_u(sum.combinations, 1, "one combination");
	is_u(sum.errors, 1, "and one error");
	coverage_print(c, &in, &text);
	ok(strstr(strbuf_str(&text), "ENOENT 1"), "an error is counted by name");
	ok(strstr(strbuf_str(&text), "4096:1"), "a size in its partition");
	ok(strstr(strbuf_str(&text), "noreplace:1"), "a flag by its word");
	const struct op_def *rename = w.ops.v[1].def;
	ok(!workload_add_line(&w, "falloc a plain 0 1", &err), "a word for no bits");
	ok(!workload_add_line(&w, "h = open a rdonly,creat", &err), "and another");
	coverage_count(c, &w.ops.v[4], 0);
	coverage_count(c, &w.ops.v[5], 0);
	for (int i = 0; i < 5; i++)
		coverage_count(c, &w.ops.v[2], 0);
	coverage_count(c, &w.ops.v[3], 0);
	strbuf_clear(&text);
	coverage_print(c, &in, &text);
	ok(strstr(strbuf_str(&text), "noreplace:6 exchange:5 whiteout:0 none:0"), "bits by bit");
	ok(strstr(strbuf_str(&text), "combinations 2 of 8: noreplace,exchange:5 noreplace:1\n"),
	   "combinations as a whole, the most frequent first");
	ok(strstr(strbuf_str(&text), "combinations 1 of 4096: 0644:1\n"), "modes, too");
	ok(strstr(strbuf_str(&text), "      above      1:0 2:0") &&
		   strstr(strbuf_str(&text), " 4096:1 8192:0"),
	   "4097 is one above");
	ok(strstr(strbuf_str(&text), "plain:1 keep:0") &&
		   strstr(strbuf_str(&text), "rdonly:1 wronly:0"),
	   "what has no bits is counted by its word");
	coverage_picture(c, &in, &picture);
	ok(strstr(strbuf_str(&picture), "rename FLAGS noreplace: 6</title>"), "and in the picture");
	ok(strstr(strbuf_str(&picture), "rename FLAGS noreplace,exchange: 5</title>") &&
		   strstr(strbuf_str(&picture), "rename FLAGS whiteout: 0</title>"),
	   "combinations there, those that never were as well");
	ok(strstr(strbuf_str(&picture), "truncate SIZE above 4096: 1</title>"), "neighbours");
	ok(strstr(strbuf_str(&picture), "truncate ENOENT: 1</title>"), "errors");
	struct coverage *sum_of = xcalloc(1, sizeof(*sum_of));
	coverage_add(sum_of, c);
	coverage_add(sum_of, c);
	is_u(coverage_of_combination(sum_of, rename, 2, 3), 10, "those of two tasks are added");
	is_u(sum_of->ops[rename - op_table].done, 12, "and their operations");
	is_u(coverage_of_combination(sum_of, rename, 2, 5), 0, "what never was is not there");
	for (uint32_t i = 0; i < COVERAGE_COMBINATIONS; i++) {
		struct op fake = w.ops.v[2];

		fake.args[2].num = i;
		coverage_count(sum_of, &fake, 0);
	}
	ok(sum_of->not_counted > 0 && sum_of->not_counted < COVERAGE_COMBINATIONS / 4,
	   "a full table says how many it has not: %llu", (unsigned long long)sum_of->not_counted);
	free(sum_of);
	workload_release(&w);
	inputs_release(&in);
	free(c);
}

int main(void)
{
	test_distributions();
	test_file();
	test_nothing_left();
	test_bitmaps();
	test_bitmap_values();
	test_places();
	test_alphabet();
	test_coverage();
	return done_testing();
}
