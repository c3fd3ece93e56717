/* SPDX-License-Identifier: MIT */
/* A record is read back as it was written; what is not whole is refused, with the line. */
#include "tap.h"

#include <unistd.h>

#include "base/fault.h"
#include "leaks.h"
#include "record-sample.h"

#define HEAD "outage-sample 2\nversion 0.1.0\n"

static int parse(const char *text, struct sample *s, struct err *err)
{
	return record_parse(&sample_type, text, strlen(text), "case", s, NULL, err);
}

static void test_again(void)
{
	static const char text[] = "outage-sample 2\nversion " OUTAGE_VERSION "\n"
				   "target ext4\nbounds seq-1\ncheck a\\tb\\\\c\\nd\nnote one\n"
				   "note three\nfile x\nfile y\nseed 7\nlimit 0\nsize 4096\n"
				   "order breadth\ncrash persist,prefix\njobs 64\n"
				   "elapsed 1.25\ncolour green\nfsck yes\nreference uml:ext4\n"
				   "reference-mkfs -q\nreference reffs\nreference-size 512\n";
	struct sample s = { 0 };
	auto_strbuf again = STRBUF_INIT;
	struct err err = ERR_INIT;
	uint64_t given = 0;

	is_i(record_parse(&sample_type, text, strlen(text), "case", &s, &given, &err), 0,
	     "all kinds: %s", err.msg);
	is_s(s.check, "a\tb\\c\nd", "escapes are read");
	is_s(s.notes, "one\nthree", "lines of a text");
	ok(s.files.n == 2 && streq(s.files.v[0], "x") && streq(s.files.v[1], "y"), "a list");
	ok(s.seed == 7 && s.limit == 0 && s.size == 4096 && s.elapsed == 1.25 && s.colour == 1 &&
		   s.fsck,
	   "numbers, and others");
	ok(s.order == 2 && s.modes == 5 && s.jobs == 64, "words, and a number within bounds");
	ok(s.parts.n == 2 && streq(s.parts.v[0].mkfs, "-q") && !s.parts.v[1].mkfs &&
		   s.parts.v[1].size == 512 && !s.parts.v[0].size,
	   "parts, each with its own");
	is_u(given, (1 << 15) - 1, "all were given");
	record_print(&sample_type, &s, &again);
	is_s(strbuf_str(&again), text, "the same text");
	record_release(&sample_type, &s);
	ok(!s.target && !s.parts.n && s.limit == UINT64_MAX, "released");
}

static void test_defaults(void)
{
	struct sample s = { .seed = 3, .fsck = true };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	is_i(parse(HEAD "target x\n", &s, &err), 0, "one key: %s", err.msg);
	ok(s.limit == UINT64_MAX && !s.seed && !s.fsck && !s.check, "all else is at its default");
	record_print(&sample_type, &s, &text);
	is_s(strbuf_str(&text),
	     "outage-sample 2\nversion " OUTAGE_VERSION "\ntarget x\ncolour red\n",
	     "and is not printed");
	record_release(&sample_type, &s);
	is_i(parse(HEAD "target x\nlimit 20k\nsize 1M\n", &s, &err), 0, "units: %s", err.msg);
	ok(s.limit == 20000 && s.size == 1 << 20, "are read");
	free(s.check);
	s.check = xstrdup("");
	strbuf_clear(&text);
	record_print(&sample_type, &s, &text);
	ok(!strstr(strbuf_str(&text), "check"), "what is empty is not said");
	record_release(&sample_type, &s);
}

static void test_hostile(void)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "case was made by an earlier version of outage, and cannot be read" },
		{ "target x\n", "case was made by an earlier version" },
		{ "target\tx\n", "case was made by an earlier version" },
		{ "outage-sample 1\ntarget x\n", "case was made by an earlier version" },
		{ "outage-sample\n", "case was made by an earlier version" },
		{ "outage-sample 2x\n", "case was made by an earlier version" },
		{ "outage-sample 3\nversion 9\n", "case was made by a later version" },
		{ "outage-run 2\nversion 1\ntarget x\n",
		  "case:1: it is of another kind, run, not" },
		{ "outage- 2\nversion 1\ntarget x\n", "case:1: it is of another kind" },
		{ "outage-samples 2\nversion 1\ntarget x\n", "case:1: it is of another kind" },
		{ "outage-sample 2", "case:2: it does not say the version" },
		{ "outage-sample 2\ntarget x\n", "case:2: it does not say the version" },
		{ HEAD, "case: target is missing" },
		{ HEAD "target \n", "case:3: target has no value" },
		{ HEAD "target x", "case: its last line has no end" },
		{ HEAD "target x\ntarget y\n", "case:4: target is there twice" },
		{ HEAD "target x\ntargets y\n", "case:4: 'targets' is no key" },
		{ HEAD "target x\n\n", "case:4: '' is no key" },
		{ HEAD "target x\n check y\n", "case:4: '' is no key" },
		{ HEAD "target x\ncheck\n", "case:4: check has no value" },
		{ HEAD "target x\ncheck \n", "case:4: check has no value" },
		{ HEAD "target x\ncheck\ty\n", "is no key" },
		{ HEAD "target x\ncheck a\\\n", "case:4: a backslash is followed by" },
		{ HEAD "target x\ncheck a\\x\n", "case:4: a backslash is followed by" },
		{ HEAD "target x\\ny\n", "case:3: target has a line end in it" },
		{ HEAD "target x\nnote x\\ny\n", "case:4: note has a line end in it" },
		{ HEAD "target x\nseed 1k\n", "case:4: seed is a number, not '1k'" },
		{ HEAD "target x\nseed -1\n", "case:4: seed is a number" },
		{ HEAD "target x\nseed \n", "case:4: seed has no value" },
		{ HEAD "target x\nseed 18446744073709551616\n", "case:4: seed is a number" },
		{ HEAD "target x\nsize 4X\n", "case:4: " },
		{ HEAD "target x\nlimit many\n", "case:4: " },
		{ HEAD "target x\nfsck no\n", "case:4: fsck is yes, not 'no'" },
		{ HEAD "target x\norder sideways\n",
		  "case:4: order is one of walk depth breadth, not 'sideways'" },
		{ HEAD "target x\norder wal\n", "case:4: order is one of" },
		{ HEAD "target x\norder walk depth\n", "case:4: order is one of" },
		{ HEAD "target x\ncrash last,torn\n", "case:4: crash is one of" },
		{ HEAD "target x\njobs 0\n", "case:4: jobs is from 1 to 64, not 0" },
		{ HEAD "target x\njobs 65\n", "case:4: jobs is from 1 to 64" },
		{ "outage-sample 2\nversion \n", "case:2: it does not say the version" },
		{ "outage-sample 2\nversion 1 2\n", "case:2: it does not say the version" },
		{ HEAD "target x\nelapsed 1s\n", "case:4: elapsed is a number" },
		{ HEAD "target x\nelapsed nan\n", "case:4: elapsed is a number" },
		{ HEAD "target x\ncolour blue\n", "case:4: there is no colour 'blue'" },
		{ HEAD "target x\nreference-mkfs y\n", "case:4: reference-mkfs comes before any" },
		{ HEAD "target x\nreference a\nreference-size 1\nreference-size 2\n",
		  "case:6: reference-size is there twice" },
		{ HEAD "target x\nversion 2\n", "case:4: 'version' is no key" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sample s = { 0 };
		struct err err = ERR_INIT;
		int rc = parse(cases[i].text, &s, &err);

		ok(rc == -EINVAL && strstr(err.msg, cases[i].words) && !s.target && !s.parts.n,
		   "refused: %s", err.msg);
	}
	struct sample s = { 0 };
	struct err err = ERR_INIT;
	static const char nul[] = HEAD "target x\0y\n";
	ok(record_parse(&sample_type, nul, sizeof(nul) - 1, "case", &s, NULL, &err) == -EINVAL &&
		   strstr(err.msg, "case: there is a NUL in it"),
	   "refused: %s", err.msg);
}

/* Every place where a whole record can be cut. */
static void test_cut(void)
{
	static const char text[] = HEAD "target x\ncheck a\\nb\nreference y\nreference-mkfs z\n";
	size_t taken = 0, last = 0;

	for (size_t n = 0; n < sizeof(text); n++) {
		struct sample s = { 0 };
		struct err err = ERR_INIT;

		if (record_parse(&sample_type, text, n, "case", &s, NULL, &err))
			continue;
		taken++;
		last = n;
		record_release(&sample_type, &s);
	}
	is_u(taken, 4, "a record that is cut is read at the ends of lines only");
	is_u(last, sizeof(text) - 1, "the last of which is its own");
}

static void test_trust(void)
{
	struct sample s = { 0 };
	auto_strbuf would = STRBUF_INIT, keys = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct trust_key key;

	is_i(parse(HEAD "target x\nbounds seq-1\nfile /a\nfile /b\ncheck /evil\nseed 1\n"
			"reference y\n",
		   &s, &err),
	     0, "what a stranger may say: %s", err.msg);
	record_would(&sample_type, &s, &would);
	is_s(strbuf_str(&would),
	     "run '/evil' (check), use the path '/a' (file), "
	     "use the path '/b' (file)",
	     "is told, commands first, and not what is harmless");
	record_release(&sample_type, &s);
	for (size_t i = 0; record_key(&sample_type, i, &key); i++)
		strbuf_addf(&keys, "%s%s", i ? " " : "", key.name);
	is_s(strbuf_str(&keys),
	     "target bounds check note file seed limit size order crash jobs elapsed colour fsck "
	     "reference "
	     "reference-mkfs reference-size",
	     "all keys are known, those of parts, too");
}

/* ---- when files cannot be written or read ---- */

static bool holds(const char *where, const char *target)
{
	struct sample s = { 0 };
	struct err err = ERR_INIT;
	bool same = !record_load(&sample_type, where, "run", &s, &err) && streq(s.target, target);

	if (!err.code)
		record_release(&sample_type, &s);
	return same;
}

static char old_target[] = "old", new_target[] = "new";

static void test_faults(void)
{
	char home[] = "/tmp/outage-record-XXXXXX";
	struct sample old = { .target = old_target, .limit = UINT64_MAX };
	struct sample s = { .target = new_target, .limit = UINT64_MAX };
	struct fault_loop saves = { .error = ENOSPC }, loads = { .error = EIO };
	struct err err = ERR_INIT;
	unsigned failed = 0, wrong = 0;

	if (!ok(mkdtemp(home) && !record_save(&sample_type, home, "run", &old, &err), "a record"))
		return;
	auto_free char *file = xasprintf("%s/run", home);
	size_t open_before = open_files();
	while (fault_loop_next(&saves)) {
		err_clear(&err);
		fault_pause();
		wrong += record_save(&sample_type, home, "run", &old, &err) != 0;
		fault_arm(saves.round, saves.error);
		int rc = record_save(&sample_type, home, "run", &s, &err);
		fault_pause();
		failed += rc != 0;
		wrong += rc ? rc != -ENOSPC || !err.msg[0] || !holds(home, "old")
			    : !holds(home, "new");
		wrong += hidden_in(home) || open_files() != open_before;
	}
	ok(failed >= 2 && !wrong, "saving it fails at %u places, and leaves the old one", failed);
	failed = 0;
	while (fault_loop_next(&loads)) {
		struct sample back = { 0 };
		auto_record_head head = { 0 };

		err_clear(&err);
		int rc = record_load(&sample_type, home, "run", &back, &err);
		if (!rc)
			rc = record_head_of(home, "run", &head, &err);
		failed += rc != 0;
		wrong += rc && (rc != -EIO || !err.msg[0]);
		wrong += open_files() != open_before;
		record_release(&sample_type, &back);
	}
	ok(failed >= 2 && !wrong, "loading it fails at %u places", failed);
	ok(!unlink(file) && !rmdir(home), "nothing else was there");
}

int main(void)
{
	test_again();
	test_defaults();
	test_hostile();
	test_cut();
	test_trust();
	test_faults();
	return done_testing();
}
