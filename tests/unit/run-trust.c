/* SPDX-License-Identifier: MIT */
/* What a run or a case of a stranger's says leads to nothing but a guest; one's own is one's own.
 */
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys.h"
#include "run/plan.h"
#include "run/store.h"

static const struct trust_key of_plan[] = {
	{ "target", TRUST_TARGET },
	{ "kernel", TRUST_HARMLESS },
	{ "started", TRUST_HARMLESS },
	{ "guarantee", TRUST_HARMLESS },
	{ "recorder", TRUST_HARMLESS },
	{ "mkfs", TRUST_COMMAND },
	{ "recover", TRUST_COMMAND },
	{ "guest-kernel", TRUST_CODE },
	{ "guest-modules", TRUST_CODE },
	{ "guest-cpu", TRUST_HARMLESS },
	{ "guest-pm", TRUST_HARMLESS },
	{ "kernel-args", TRUST_COMMAND },
	{ "qemu-args", TRUST_COMMAND },
	{ "guest-file", TRUST_FILE },
	{ "guest-memory", TRUST_HARMLESS },
	{ "size", TRUST_HARMLESS },
	{ "crash", TRUST_HARMLESS },
	{ "max-subset", TRUST_HARMLESS },
	{ "budget", TRUST_HARMLESS },
	{ "prune", TRUST_HARMLESS },
	{ "sector", TRUST_HARMLESS },
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
	{ "deterministic", TRUST_HARMLESS },
	{ "bounds", TRUST_FILE },
	{ "file", TRUST_FILE },
	{ "hash", TRUST_HARMLESS },
	{ "skip", TRUST_HARMLESS },
	{ "limit", TRUST_HARMLESS },
	{ "sample", TRUST_HARMLESS },
	{ "seed", TRUST_HARMLESS },
	{ "workloads", TRUST_HARMLESS },
	{ "keep", TRUST_HARMLESS },
};

static const struct trust_key of_case[] = {
	{ "target", TRUST_TARGET },
	{ "guarantee", TRUST_HARMLESS },
	{ "state", TRUST_HARMLESS },
	{ "base", TRUST_IMAGE },
	{ "kernel", TRUST_HARMLESS },
	{ "recorder", TRUST_HARMLESS },
	{ "mkfs", TRUST_COMMAND },
	{ "recover", TRUST_COMMAND },
	{ "fsck", TRUST_COMMAND },
	{ "dump", TRUST_COMMAND },
	{ "check", TRUST_COMMAND },
	{ "layer", TRUST_HARMLESS },
	{ "crash", TRUST_HARMLESS },
	{ "prune", TRUST_HARMLESS },
	{ "phase", TRUST_HARMLESS },
	{ "mounted", TRUST_HARMLESS },
	{ "guest-kernel", TRUST_CODE },
	{ "guest-modules", TRUST_CODE },
	{ "guest-file", TRUST_FILE },
	{ "guest-cpu", TRUST_HARMLESS },
	{ "guest-pm", TRUST_HARMLESS },
	{ "kernel-args", TRUST_COMMAND },
	{ "qemu-args", TRUST_COMMAND },
	{ "guest-memory", TRUST_HARMLESS },
	{ "guest-files-hash", TRUST_HARMLESS },
	{ "guest-kernel-hash", TRUST_HARMLESS },
	{ "media", TRUST_HARMLESS },
	{ "size", TRUST_HARMLESS },
	{ "done", TRUST_HARMLESS },
	{ "max-subset", TRUST_HARMLESS },
	{ "budget", TRUST_HARMLESS },
	{ "seed", TRUST_HARMLESS },
	{ "operation", TRUST_HARMLESS },
	{ "deterministic", TRUST_HARMLESS },
	{ "lose-flush", TRUST_HARMLESS },
	{ "sector", TRUST_HARMLESS },
	{ "model", TRUST_HARMLESS },
	{ "eadr", TRUST_HARMLESS },
	{ "split", TRUST_HARMLESS },
	{ "granularity", TRUST_HARMLESS },
	{ "media-max", TRUST_HARMLESS },
	{ "with-fsck", TRUST_HARMLESS }, /* that it is there counts */
	{ "hang-after-ms", TRUST_HARMLESS },
	{ "point", TRUST_HARMLESS },
	{ "survived", TRUST_HARMLESS },
	{ "lost", TRUST_HARMLESS },
	{ "signature", TRUST_HARMLESS },
	{ "shown", TRUST_HARMLESS },
	{ "operations-before-shrinking", TRUST_HARMLESS },
	{ "shrunk-by", TRUST_HARMLESS },
	{ "start", TRUST_IMAGE },
	{ "reference", TRUST_TARGET },
	{ "reference-mkfs", TRUST_COMMAND },
	{ "reference-recover", TRUST_COMMAND },
	{ "reference-guest-kernel", TRUST_CODE },
	{ "reference-guest-modules", TRUST_CODE },
	{ "reference-guest-memory", TRUST_HARMLESS },
	{ "reference-size", TRUST_HARMLESS },
	{ "reference-guest-file", TRUST_FILE },
	{ "reference-guest-cpu", TRUST_HARMLESS },
	{ "reference-guest-pm", TRUST_HARMLESS },
	{ "reference-kernel-args", TRUST_COMMAND },
	{ "reference-qemu-args", TRUST_COMMAND },
	{ "reference-deterministic", TRUST_HARMLESS },
};

/* Refused, with these words; or, if they are NULL, not. */
static void judged(int rc, const struct err *err, char *what, const char *words)
{
	for (char *c = what; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	if (words)
		ok(rc == -EPERM && strstr(err->msg, words) && strstr(err->msg, "--trust") &&
			   strstr(err->msg, "was not made by you on this machine") &&
			   !strstr(err->msg, "yours alone"),
		   "%s: %s", what, err->msg);
	else
		ok(rc == 0, "%s is harmless: %s", what, err->msg);
}

/* ---- runs ---- */

static void load_plan(const char *text, struct plan *p)
{
	struct err err = ERR_INIT;

	if (case_plan_parse(&plan_kept, text, strlen(text), "run", p, &err))
		ok(false, "%s", err.msg);
}

static void plan_judged(const char *target, const char *source, const char *more, const char *words)
{
	auto_free char *text =
		xasprintf("outage-test-run 2\nversion 0.1.0\ntarget %s\nkernel 6\nguarantee linux\n"
			  "%shash 0\nworkloads 1\n%s",
			  target, source, more);
	auto_free char *what = xasprintf("%s with %s%s", target, source, more);
	struct err err = ERR_INIT;
	struct plan p;

	load_plan(text, &p);
	int rc = plan_trust(&p, dir, false, &err);
	judged(rc, &err, what, words);
	ok(!p.ours && !plan_trust(&p, dir, true, &err) && p.ours, "unless it is trusted");
	plan_release(&p);
}

static void test_plans(void)
{
	check_record(&plan_record, of_plan, ARRAY_SIZE(of_plan));
	for (size_t i = 0; i < ARRAY_SIZE(of_plan); i++) {
		auto_free char *more = xasprintf("%s /evil\n", of_plan[i].name);
		auto_free char *words = xasprintf("'/evil' (%s)", of_plan[i].name);
		bool source = streq(of_plan[i].name, "file") || streq(of_plan[i].name, "bounds");

		if (of_plan[i].leads != TRUST_HARMLESS && of_plan[i].leads != TRUST_TARGET)
			plan_judged("uml:ext4", source ? more : "bounds seq-1\n",
				    source ? "" : more, words);
	}
	plan_judged("uml:ext4", "bounds seq-1\n",
		    "started now\nrecorder x\nguest-memory 1\nsize 1\nfsck yes\nparanoid yes\n"
		    "media poison\nkeep all\nguest-cpu 1\nguest-pm e820\n",
		    NULL);
	plan_judged("vm:ext4,errors=panic", "bounds seq-1\n", "", NULL);
	plan_judged("ext4", "bounds seq-1\n", "", "have disks mounted by this machine's kernel;");
	plan_judged("ext4,errors=panic", "bounds seq-1\n", "", "with the options 'errors=panic'");
	plan_judged("fuse:/evil {disk}", "bounds seq-1\n", "", "run '/evil {disk}'");
	plan_judged("fuse,:/evil {disk}", "bounds seq-1\n", "", "run '/evil {disk}'");
}

static const char a_plan[] =
	"outage-test-run 2\nversion 0.1.0\ntarget ext4\nkernel 6\nguarantee linux\n"
	"bounds seq-1\nhash 0\nworkloads 1\n";

static void own_plan(bool ours, const char *what)
{
	struct err err = ERR_INIT;
	struct plan p;

	ok(!case_plan_load(&plan_kept, dir, &p, &err), "a run: %s", err.msg);
	ok(!plan_trust(&p, dir, false, &err) == ours && p.ours == ours, "%s: %s", what, err.msg);
	plan_release(&p);
}

static void test_own_plan(void)
{
	struct err err = ERR_INIT;
	struct plan p;

	load_plan(a_plan, &p);
	for (int i = 0; i < 3; i++) {
		ok(!case_plan_save(&plan_kept, dir, &p, &err), "it is kept");
		own_plan(true, "one's own");
		if (i == 0)
			change_file(dir, TRUST_MARK);
		else if (i == 1)
			ok(!io_write_file(dir, "run", a_plan, sizeof(a_plan) - 1, 0, &err) &&
				   !io_write_file(dir, "suppressions", "x", 1, 0, &err),
			   "suppressions that were not there");
		else
			change_file(dir, "suppressions");
		own_plan(false, "is another's then");
	}
	plan_release(&p);
}

/* ---- cases ---- */

static char *place; /* RUN/findings/0-0 */

static void write_text(const char *name, const char *text)
{
	write_below(place, name, text);
}

static void write_case(const char *target, const char *kind, const char *more)
{
	auto_free char *text = xasprintf("outage-test-case 2\nversion 0.1.0\ntarget %s\nguarantee "
					 "linux\nstate live\nbase ../../base-0.img\n%s",
					 target, more);
	auto_free char *problems = xasprintf("%s\tfoo\tfoo: is bad\t\n", kind);

	write_text("case", text);
	write_text("problems", problems);
}

static void case_judged(const char *target, const char *kind, const char *more, const char *words)
{
	auto_free char *what = xasprintf("%s with %s", target, more);
	struct err err = ERR_INIT;
	struct stored_case c;

	write_case(target, kind, more);
	ok(!store_load(place, &c, &err), "a case: %s", err.msg);
	int rc = store_trust(&c, NULL, false, &err);
	judged(rc, &err, what, words);
	ok(!c.ours && !store_trust(&c, NULL, true, &err) && c.ours, "unless it is trusted");
	stored_case_release(&c);
}

static void test_cases(void)
{
	write_text("workload", "creat foo\n");
	check_record(&store_record, of_case, ARRAY_SIZE(of_case));
	for (size_t i = 0; i < ARRAY_SIZE(of_case); i++) {
		enum trust_leads leads = of_case[i].leads;
		bool given = streq(of_case[i].name, "guarantee") ||
			     streq(of_case[i].name, "state") || streq(of_case[i].name, "with-fsck");
		bool of_reference = strncmp(of_case[i].name, "reference-", 10) == 0;
		auto_free char *more =
			xasprintf("%s%s %s\n", of_reference ? "reference reffs\n" : "",
				  of_case[i].name, evil(&store_record, of_case[i].name));
		auto_free char *words = xasprintf("'/evil' (%s)", of_case[i].name);

		if (!given && leads != TRUST_TARGET && leads != TRUST_IMAGE)
			case_judged("uml:ext4", "missing", more,
				    leads == TRUST_HARMLESS ? NULL : words);
	}
	case_judged("vm:ext4,errors=panic", "missing", "", NULL);
	case_judged("ext4", "missing", "", "have its disk mounted by this machine's kernel;");
	case_judged("ext4,errors=panic", "missing", "", "with the options 'errors=panic'");
	case_judged("fuse:/evil {disk}", "missing", "", "run '/evil {disk}'");
	case_judged("fuse,:/evil {disk}", "missing", "", "run '/evil {disk}'");
	case_judged("nothing:/evil", "missing", "", "run '/evil'");
	case_judged("uml:ext4", "fsck", "", "checker (fsck) of this machine");
	case_judged("uml:ext4", "missing", "with-fsck yes\n", "checker (fsck) of this machine");
	case_judged("ext4", "missing", "mkfs a\nguest-file b\n",
		    "kernel, run 'a' (mkfs), use the path 'b' (guest-file)");
	write_text("workload", "creat foo\nshell \"/evil\"\n");
	case_judged("uml:ext4", "missing", "", "run '/evil' (shell)");
	write_text("workload", "creat foo\n");
}

int main(void)
{
	if (!begin_trust())
		return 1;
	auto_free char *all = xasprintf("%s/findings", dir), *one = xasprintf("%s/0-0", all);

	place = one;
	if (mkdir(all, 0777) || mkdir(one, 0777))
		return 1;
	test_plans();
	test_own_plan();
	test_cases();
	return done_testing();
}
