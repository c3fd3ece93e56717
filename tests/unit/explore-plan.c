/* SPDX-License-Identifier: MIT */
/* A plan of an exploration is read back as it was, and one of a stranger leads to nothing. */
#include "tap.h"

#include <errno.h>

#include "case/given.h"
#include "explore/explore_plan.h"
#include "keys.h"

static const struct trust_key of_plan[] = {
	{ "target", TRUST_TARGET },
	{ "kernel", TRUST_HARMLESS },
	{ "started", TRUST_HARMLESS },
	{ "recorder", TRUST_HARMLESS },
	{ "mkfs", TRUST_COMMAND },
	{ "recover", TRUST_COMMAND },
	{ "size", TRUST_HARMLESS },
	{ "guest-file", TRUST_FILE },
	{ "guest-cpu", TRUST_HARMLESS },
	{ "guest-pm", TRUST_HARMLESS },
	{ "kernel-args", TRUST_COMMAND },
	{ "qemu-args", TRUST_COMMAND },
	{ "guest-kernel", TRUST_CODE },
	{ "guest-modules", TRUST_CODE },
	{ "guest-memory", TRUST_HARMLESS },
	{ "deterministic", TRUST_HARMLESS },
	{ "order", TRUST_HARMLESS },
	{ "depth", TRUST_HARMLESS },
	{ "alphabet", TRUST_HARMLESS },
	{ "round", TRUST_HARMLESS },
	{ "inputs", TRUST_HARMLESS },
	{ "suppress", TRUST_HARMLESS },
	{ "dist", TRUST_HARMLESS },
	{ "strategy", TRUST_HARMLESS },
	{ "compare-every", TRUST_HARMLESS },
	{ "memory", TRUST_HARMLESS },
	{ "seed", TRUST_HARMLESS },
	{ "crash", TRUST_HARMLESS },
	{ "max-subset", TRUST_HARMLESS },
	{ "budget", TRUST_HARMLESS },
	{ "sector", TRUST_HARMLESS },
	{ "prune", TRUST_HARMLESS },
	{ "lose-flush", TRUST_HARMLESS },
	{ "model", TRUST_HARMLESS },
	{ "eadr", TRUST_HARMLESS },
	{ "granularity", TRUST_HARMLESS },
	{ "split", TRUST_HARMLESS },
	{ "media", TRUST_HARMLESS },
	{ "media-max", TRUST_HARMLESS },
	{ "fsck", TRUST_HARMLESS },
	{ "dump", TRUST_COMMAND },
	{ "check", TRUST_COMMAND },
	{ "paranoid", TRUST_HARMLESS },
	{ "crash-every", TRUST_HARMLESS },
	{ "guarantee", TRUST_HARMLESS },
	{ "jobs", TRUST_HARMLESS },
	{ "share", TRUST_HARMLESS },
	{ "vary", TRUST_HARMLESS },
	{ "swarm", TRUST_HARMLESS },
	{ "hash", TRUST_HARMLESS },
	{ "reference", TRUST_TARGET },
	{ "reference-kernel", TRUST_HARMLESS },
	{ "reference-recorder", TRUST_HARMLESS },
	{ "reference-mkfs", TRUST_COMMAND },
	{ "reference-recover", TRUST_COMMAND },
	{ "reference-size", TRUST_HARMLESS },
	{ "reference-guest-file", TRUST_FILE },
	{ "reference-guest-cpu", TRUST_HARMLESS },
	{ "reference-guest-pm", TRUST_HARMLESS },
	{ "reference-kernel-args", TRUST_COMMAND },
	{ "reference-qemu-args", TRUST_COMMAND },
	{ "reference-guest-kernel", TRUST_CODE },
	{ "reference-guest-modules", TRUST_CODE },
	{ "reference-guest-memory", TRUST_HARMLESS },
	{ "reference-deterministic", TRUST_HARMLESS },
};

#define HEAD "outage-explore-run 2\nversion 0.1.0\n"

static void write_plan(const char *target, const char *reference, const char *more)
{
	auto_free char *text = xasprintf(HEAD "target %s\ndepth 10\nhash 0\nreference %s\n%s",
					 target, reference, more);

	write_below(dir, CASE_RUN, text);
}

/* ---- strangers ---- */

/* Refused with these words, or not if they are NULL. */
static void judged(const char *target, const char *reference, const char *more, const char *words)
{
	struct explore_plan p;
	struct err err = ERR_INIT;

	write_plan(target, reference, more);
	ok(!case_plan_load(&explore_plan_kept, dir, &p, &err), "a plan: %s", err.msg);
	int rc = explore_plan_trust(&p, dir, false, &err);
	ok(words ? rc == -EPERM && strstr(err.msg, words) && strstr(err.msg, "--trust") : rc == 0,
	   "%s, %s, %s: %s", target, reference, words ? words : "", rc ? err.msg : "harmless");
	ok(!p.ours && !explore_plan_trust(&p, dir, true, &err) && p.ours, "unless it is trusted");
	explore_plan_release(&p);
}

static void test_strange(void)
{
	check_record(&explore_record, of_plan, ARRAY_SIZE(of_plan));
	for (size_t i = 0; i < ARRAY_SIZE(of_plan); i++) {
		auto_free char *more = xasprintf("%s /evil\n", of_plan[i].name);
		auto_free char *words = xasprintf("'/evil' (%s)", of_plan[i].name);
		bool of_target = strncmp(of_plan[i].name, "reference", 9) != 0;
		const char *kind = strstr(of_plan[i].name, "qemu") ? "vm" : "uml";
		auto_free char *target = xasprintf("%s:ext4", kind);
		auto_free char *reference = xasprintf("%s:xfs", kind);

		if (of_plan[i].leads != TRUST_HARMLESS && of_plan[i].leads != TRUST_TARGET &&
		    strcmp(of_plan[i].name, of_target ? "recover" : "reference-recover") != 0)
			judged(target, reference, more, words);
	}
	judged("fuse:/mine {disk} {mnt}", "reffs", "recover /evil\n", "'/evil' (recover)");
	judged("uml:ext4", "vm:ext4", "size 4096\n", NULL);
	judged("uml:ext4", "ext4", "", "have disks mounted by this machine's kernel;");
	judged("ext4,errors=panic", "reffs", "", "with the options 'errors=panic'");
	judged("mounted:/evil {mnt}", "reffs", "", "run '/evil {mnt}'");
	judged("uml:ext4", "mounted:/evil {mnt}", "", "run '/evil {mnt}'");
}

static void test_own(void)
{
	struct explore_plan p;
	struct err err = ERR_INIT;

	write_plan("mounted:/mine {mnt}", "reffs", "");
	is_i(case_plan_load(&explore_plan_kept, dir, &p, &err), 0, "a plan: %s", err.msg);
	is_i(case_plan_save(&explore_plan_kept, dir, &p, &err), 0, "is kept: %s", err.msg);
	is_i(explore_plan_trust(&p, dir, false, &err), 0, "it is one's own: %s", err.msg);
	change_file(dir, TRUST_MARK);
	is_i(explore_plan_trust(&p, dir, false, &err), -EPERM, "not with another mark: %s",
	     err.msg);
	explore_plan_release(&p);
}

/* ---- read back ---- */

static void set(struct explore_plan *p, const char *option, const char *value)
{
	struct err err = ERR_INIT;

	is_i(explore_plan_set(p, option, value, &err), 0, "--%s %s: %s", option, value, err.msg);
}

/* Every option has another value than the plan of test_again(). */
static const struct {
	const char *option, *value, *other;
} options[] = {
	{ "target", "reffs", "reffs:" },
	{ "mkfs", "-q", "-b 1024" },
	{ "size", "64M", "32M" },
	{ "guest-memory", "1G", "2G" },
	{ "kernel", "/k", "/l" },
	{ "modules", "/m", "/n" },
	{ "guest-file", "/f", "/g" },
	{ "guest-cpu", "2,clwb", "1,clwb" },
	{ "guest-pm", "nvdimm", "e820" },
	{ "kernel-args", "quiet", "debug" },
	{ "qemu-args", "-S", "-s" },
	{ "recover", "fix", "mend" },
	{ "recorder", "fuse", "bpf" },
	{ "order", "walk", "depth" },
	{ "depth", "20", "21" },
	{ "alphabet", "50", "60" },
	{ "round", "7", "0" },
	{ "inputs", "only creat\n", "only creat mkdir\n" },
	{ "dist", "rank", "decay" },
	{ "strategy", "remount", "sync" },
	{ "compare-every", "3", "4" },
	{ "memory", "1M", "64M" },
	{ "seed", "9", "0" },
	{ "crash", "last,reorder", "reorder" },
	{ "max-subset", "3", "2" },
	{ "budget", "40", "50" },
	{ "sector", "512", "4096" },
	{ "prune", "none", "reads" },
	{ "lose-flush", "1", "2" },
	{ "model", "pm", "block" },
	{ "granularity", "8", "64" },
	{ "media", "poison", "stale" },
	{ "media-max", "3", "16" },
	{ "dump", "/d", "/e" },
	{ "check", "/c", "/d" },
	{ "crash-every", "5", "6" },
	{ "guarantee", "posix", "linux" },
	{ "jobs", "2", "1" },
	{ "swarm", "2/3", "1/3" },
};

static void test_again(void)
{
	struct explore_plan p, back, given;
	struct target_opts references[SIDES_MAX] = { 0 };
	struct explore_opts o = { 0 };
	auto_strbuf told = STRBUF_INIT;
	struct err err = ERR_INIT;

	explore_plan_init(&p);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		set(&p, options[i].option, options[i].value);
	set(&p, "vary", "yes");
	ok(!explore_plan_add(&p, "reffs", &err) && !explore_plan_add(&p, "mounted:x {mnt}", &err) &&
		   !explore_plan_set_ref(&p, 1, "recorder", "bpf", &err),
	   "references: %s", err.msg);
	p.hash = xstrdup("0");
	explore_plan_opts(&p, references, &o);
	ok(o.search.order == SEARCH_WALK && o.search.depth == 20 && o.swarm_i == 2 &&
		   o.swarm_n == 3 && o.vary && !o.share && o.jobs == 2 && o.crash.modes == 10 &&
		   o.crash.budget == 40 && o.crash.vary_all && o.n_specs == 3 &&
		   streq(references[2].recorder, "bpf") && o.sides.strategy == STRATEGY_REMOUNT &&
		   o.sides.target.size == 64 << 20,
	   "what is searched, and how");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		explore_plan_init(&given);
		set(&given, options[i].option, options[i].value);
		is_i(given_agree(&explore_record, &p, &given, given.given, &err), 0,
		     "the same --%s: %s", options[i].option, err.msg);
		explore_plan_release(&given);
		explore_plan_init(&given);
		set(&given, options[i].option, options[i].other);
		ok(given_agree(&explore_record, &p, &given, given.given, &err) == -EINVAL &&
			   strstr(err.msg, options[i].option) &&
			   strstr(err.msg, "leave the option out, or begin a new run"),
		   "another: %s", err.msg);
		err_clear(&err);
		explore_plan_release(&given);
	}
	explore_plan_init(&given);
	ok(!explore_plan_add(&given, "reffs", &err) &&
		   !explore_plan_add(&given, "mounted:x {mnt}", &err) &&
		   given_agree(&explore_record, &p, &given, given.given, &err) == -EINVAL &&
		   strstr(err.msg, "--ref reffs, mounted:x {mnt}, recorder bpf and cannot go on "
				   "with reffs, mounted:x {mnt}:"),
	   "other references: %s", err.msg);
	err_clear(&err);
	p.references.v[0].kernel = xstrdup("6.1.0");
	ok(!explore_plan_set_ref(&given, 1, "recorder", "bpf", &err) &&
		   !given_agree(&explore_record, &p, &given, given.given, &err),
	   "the same, whose kernel the run has noted: %s", err.msg);
	for (size_t i = 0; i < explore_record.n; i++)
		if (streq(explore_record.fields[i].key.name, "reference"))
			given_put(&explore_record.fields[i], &p, &told);
	is_s(strbuf_str(&told), "reffs, 6.1.0, mounted:x {mnt}, recorder bpf", "a report has it");
	explore_plan_release(&given);
	explore_plan_release(&p);

	explore_plan_init(&p);
	set(&p, "target", "reffs");
	set(&p, "inputs", "names files 1\n# a\ttab \\\n");
	is_i(explore_plan_complete(&p, true, &err), 0, "a plan is completed: %s", err.msg);
	ok(p.round == 6000 && p.depth == 10 && p.references.n == 1 && !p.kernel, "as it should");
	p.hash = xstrdup("0");
	ok(!case_plan_save(&explore_plan_kept, dir, &p, &err) &&
		   !case_plan_load(&explore_plan_kept, dir, &back, &err) &&
		   streq(p.inputs, back.inputs) && back.round == 6000,
	   "it is read back: %s", err.msg);
	struct inputs in;
	inputs_init(&in);
	ok(explore_plan_inputs(&back, "run", &in, &err) == -EINVAL &&
		   strstr(err.msg, "are not those drawn when the run began"),
	   "what it draws must be what it drew: %s", err.msg);
	inputs_release(&in);
	explore_plan_release(&back);
	explore_plan_release(&p);
}

static void test_hostile(void)
{
	static const char *const cases[][2] = {
		{ "jobs 0\n", "jobs is from 1 to" },
		{ "jobs 1000\n", "jobs is from 1 to" },
		{ "alphabet 1M\n", "alphabet is from 1 to" },
		{ "order sideways\n", "order is one of" },
		{ "crash tear\n", "crash is one of" },
		{ "swarm 4/3\n", "--swarm is I/N" },
		{ "guarantee none\n", "none" },
		{ "reference a\nreference b\nreference c\nreference d\n", "at most 4 references" },
		{ "reference nofs\n", "there is no target 'nofs'" },
		{ "crash-every 1\n", "reffs has no disk" },
		{ "recover x\n", "recover" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct explore_plan p;
		struct err err = ERR_INIT;

		write_plan("reffs", "reffs", cases[i][0]);
		ok(case_plan_load(&explore_plan_kept, dir, &p, &err) < 0 &&
			   strstr(err.msg, cases[i][1]) && strncmp(err.msg, dir, strlen(dir)) == 0,
		   "refused: %s", err.msg);
	}
}

int main(void)
{
	if (!begin_trust())
		return 1;
	test_strange();
	test_own();
	test_again();
	test_hostile();
	return done_testing();
}
