/* SPDX-License-Identifier: MIT */
/* Which records of recoveries become runs, under which numbers, and that no other one stays. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "search/nested.h"
#include "tap.h"

struct recording {
	char words[64]; /* the directories that were adopted */
	bool fails;
};

/* A state is what its recovery does; "" does nothing, and that of "!" cannot be recorded. */
static int record(void *ctx, const char *state, const char *dir, struct hash128 *what,
		  struct err *err)
{
	auto_free char *file = xasprintf("%s/trace", dir);
	FILE *f = fopen(file, "w");

	(void)ctx;
	ok(f, "there is a directory");
	if (f)
		fclose(f);
	if (streq(state, "!"))
		return err_set(err, -EIO, "it cannot be recorded");
	*what = hash_bytes(state, strlen(state));
	return !*state;
}

static int adopt(void *ctx, const char *state, const char *dir, uint64_t budget, struct err *err)
{
	struct recording *x = ctx;
	size_t n = strlen(x->words);

	if (x->fails)
		return err_set(err, -ENOSPC, "it cannot be kept");
	snprintf(x->words + n, sizeof(x->words) - n, "%s=%s:%llu ", strrchr(dir, '/') + 1, state,
		 (unsigned long long)budget);
	return 0;
}

static bool is_there(const char *run, int n)
{
	auto_free char *file = xasprintf("%s/recovery/%d/trace", run, n);

	return access(file, F_OK) == 0;
}

int main(void)
{
	static const struct nested_ops ops = { .record = record, .adopt = adopt };
	char run[] = "/tmp/outage-nested.XXXXXX";
	struct recording x = { 0 };
	struct err err = ERR_INIT;

	if (!mkdtemp(run))
		return 1;
	struct nested n = {
		.ops = &ops, .ctx = &x, .run = run, .budget = 51, .spent = 15, .max = 6
	};
	is_i(nested_record(&n, "a", &err), 1, "the first is a run");
	n.spent += 2;
	is_i(nested_record(&n, "", &err), 0, "one that did nothing is none");
	is_i(nested_record(&n, "a", &err), 0, "nor is one that did the same");
	is_i(nested_record(&n, "!", &err), -EIO, "an error is told: %s", err.msg);
	err_clear(&err);
	x.fails = true;
	is_i(nested_record(&n, "b", &err), -ENOSPC, "one is not kept: %s", err.msg);
	ok(is_there(run, 0) && !is_there(run, 1), "the others leave nothing");
	err_clear(&err);
	x.fails = false;
	is_i(nested_record(&n, "c", &err), 1, "the next one is a run");
	is_s(x.words, "0=a:6 1=c:34 ", "they are numbered without gaps, and share what is left");
	ok(is_there(run, 1) && !n.left, "all is as it should be");
	ok(!nested_is_over(&n), "the last may have all that is left");
	n.spent = n.budget;
	ok(nested_is_over(&n), "and when that is used up, there is none");
	is_u(nested_firsts(n.budget) + n.budget / 2, n.budget, "half is for second crashes");
	is_u(nested_firsts(1), 1, "but a single state is one of the run");
	n.budget = 0;
	is_u(nested_firsts(0), 0, "no limit is none for either");
	ok(!nested_is_over(&n), "without a budget there is no end");
	auto_free char *file = xasprintf("%s/recovery/1/trace", run);
	n.run = file;
	is_i(nested_record(&n, "d", &err), -ENOTDIR, "no directory can be made: %s", err.msg);
	ok(!n.left && n.next == 2, "what is not there does not remain");
	err_clear(&err);
	nested_release(&n);

	auto_free char *remove = xasprintf("rm -rf '%s'", run);
	return done_testing() | system(remove);
}
