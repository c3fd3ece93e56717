/* SPDX-License-Identifier: MIT */
/* A finding of outage explore that a stranger made leads to nothing but a guest. */
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>

#include "explore/explore_keep.h"
#include "keys.h"
#include "run/store.h"

/* unit run-trust has what they lead to. */
static const char *const harmful[] = {
	"mkfs",
	"recover",
	"guest-kernel",
	"guest-modules",
	"guest-file",
	"kernel-args",
	"qemu-args",
	"reference-mkfs",
	"reference-recover",
	"reference-guest-kernel",
	"reference-guest-modules",
	"reference-guest-file",
	"reference-kernel-args",
	"reference-qemu-args",
};
static const char *const harmless[] = {
	"guest-memory 4096\n",	      "size 4096\n",
	"guest-cpu /evil\n",	      "guest-pm /evil\n",
	"deterministic yes\n",	      "reference-guest-memory 4096\n",
	"reference-size 4096\n",      "reference-guest-cpu /evil\n",
	"reference-guest-pm /evil\n", "reference-deterministic yes\n",
};

static void write_case(const char *target, const char *reference, const char *more)
{
	auto_free char *text =
		xasprintf("outage-explore-case 2\nversion 0.1.0\ntarget %s\nguarantee linux\n"
			  "state live\nbase base.img\nreference %s\nsignature x\n%s",
			  target, reference, more);

	write_below(dir, "case", text);
}

/* Refused with these words, or not if they are NULL. */
static void judged(const char *target, const char *reference, const char *more, const char *words)
{
	struct kept_case c;
	struct err err = ERR_INIT;

	write_case(target, reference, more);
	ok(!kept_load(dir, &c, &err), "a case: %s", err.msg);
	int rc = store_trust(&c.c, &c.script.w, false, &err);
	ok(words ? rc == -EPERM && strstr(err.msg, words) && strstr(err.msg, "--trust") : rc == 0,
	   "%s, %s, %.*s: %s", target, reference, (int)strcspn(more, "\n"), more,
	   rc ? err.msg : "harmless");
	is_i(store_trust(&c.c, &c.script.w, true, &err), 0, "unless it is trusted");
	kept_release(&c);
}

static void test_strange(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(harmful); i++) {
		auto_free char *more = xasprintf("%s /evil\n", harmful[i]);
		auto_free char *words = xasprintf("'/evil' (%s)", harmful[i]);

		judged("uml:ext4", "reffs", more, words);
	}
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		judged("uml:ext4", "reffs", harmless[i], NULL);
	judged("uml:ext4", "vm:ext4", "", NULL);
	judged("uml:ext4", "uml:xfs", "start start.img\n", NULL);
	judged("uml:ext4", "reffs,x", "", NULL);
	judged("uml:ext4", "ext4", "", "have disks mounted by this machine's kernel;");
	judged("uml:ext4", "ext4", "start start.img\n", "have its disk mounted");
	judged("ext4", "ext4", "reference xfs\n",
	       "would have disks mounted by this machine's kernel, and so those of references;");
	judged("ext4,errors=panic", "reffs", "", "with the options 'errors=panic'");
	judged("mounted:/evil {mnt}", "reffs", "", "run '/evil {mnt}'");
	judged("uml:ext4", "mounted:/evil {mnt}", "", "run '/evil {mnt}'");
	judged("uml:ext4", "mounted,:/evil {mnt}", "", "run '/evil {mnt}'");
	judged("uml:ext4", "fuse:/evil {mnt}", "", "run '/evil {mnt}'");
	judged("uml:ext4", "/evil", "", "run '/evil'");
	write_below(dir, "script", "creat foo\nshell \"/evil\"\n");
	judged("uml:ext4", "reffs", "", "run '/evil' (shell)");
	write_below(dir, "script", "creat foo\n");
}

static void test_own(void)
{
	static const char *const files[] = { "case", "script", "start.img", "start-4.img", "mark" };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct kept_case c;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		write_below(dir, "script", "creat foo\n");
		write_below(dir, "start-4.img", "disk");
		write_case("mounted:/mine", "reffs", "start start.img\n");
		strbuf_clear(&text);
		ok(!io_slurp_file(dir, "case", 4096, &text, &err), "%s", err.msg);
		ok(!store_finish(dir, &text, true, &err), "a case of one's own");
		ok(!kept_load(dir, &c, &err) && !store_trust(&c.c, &c.script.w, false, &err),
		   "may do it: %s", err.msg);
		change_file(dir, files[i]);
		ok(store_trust(&c.c, &c.script.w, false, &err) == -EPERM, "not with another %s: %s",
		   files[i], err.msg);
		err_clear(&err);
		kept_release(&c);
	}
}

int main(void)
{
	if (!begin_trust())
		return 1;

	write_below(dir, "script", "creat foo\n");
	write_below(dir, "start.img", "disk");
	write_below(dir, "workload", "creat foo\n");
	write_below(dir, "problems", "missing\tfoo\tfoo: is missing\t\n");
	test_strange();
	test_own();
	return done_testing();
}
