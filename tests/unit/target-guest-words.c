/* SPDX-License-Identifier: MIT */
/*
 * What a guest's console, and an emulator's monitor, tell of how a guest ended; and that who runs
 * its kernel does not matter for what a file system promises.
 */
#include "tap.h"

#include "target/guest_fs.h"
#include "guest/guest_words.h"
#include "target/target.h"

static void test_words(void)
{
	static const struct {
		const char *line;
		unsigned bits;
	} lines[] = {
		{ "", 0 },
		{ "EXT4-fs (vda): shut down requested (2)", 0 },
		{ "BTRFS warning: errno = 3", 0 },
		{ "userspace - hello", 0 },
		{ "Kernel panic - not syncing: Fatal exception", GUEST_PANIC },
		{ "Kernel panic - not syncing: System is deadlocked on memory",
		  GUEST_PANIC | GUEST_NO_MEMORY },
		{ "Out of memory: Killed process 12 (e2fsck)", GUEST_NO_MEMORY },
		{ "init invoked oom-killer: gfp_mask=0x1100cca, order=0", GUEST_NO_MEMORY },
		{ "kworker/0:1: page allocation failure: order:4", GUEST_NO_MEMORY },
		{ "userspace - ptrace set regs failed, errno = 3", GUEST_LOST_PROC },
		{ "userspace - PTRACE_GETREGS failed, errno = 3", GUEST_LOST_PROC },
		{ "userspace - PTRACE_GETREGS failed, errno = 5", 0 },
		{ "userspace - wait failed, errno = 10", GUEST_LOST_PROC },
		{ " [<60048839>] userspace+0xab/0x570", 0 },
		{ " [<600485bd>] wait_stub_done+0xfa/0x105", 0 },
		{ "do_syscall_stub : ret = 20, offset = 1056, data = 0000000060e8b68f",
		  GUEST_LOST_PROC },
		{ "Kernel panic - not syncing: do_syscall_stub : PTRACE_SETREGS failed, errno = 3",
		  GUEST_LOST_PROC | GUEST_PANIC },
		{ "Kernel panic - not syncing: Failed to continue stub, pid = 12, errno = 3",
		  GUEST_LOST_PROC | GUEST_PANIC },
		{ "start_userspace : expected SIGSTOP, got status = 9", GUEST_LOST_PROC },
		{ "copy_context_skas0 : PTRACE_SETREGS failed, pid = 12, errno = 3",
		  GUEST_LOST_PROC },
		{ "handle_trap - failed to wait at end of syscall, errno = 3, status = 9",
		  GUEST_LOST_PROC },
		{ "Unexpectedly lost MM child! Affected tasks will segfault.", GUEST_LOST_PROC },
		{ "Attempted to relay unknown signal 7 (si_code = 0) with errno 0",
		  GUEST_LOST_PROC },
		{ "Attempted to relay unknown signal 5 (si_code = -6) with errno 0",
		  GUEST_LOST_PROC },
		{ "Attempted to relay unknown signal 5 (si_code = 128) with errno 0", 0 },
		{ "Kernel panic - not syncing: Kernel mode signal 5",
		  GUEST_LOST_PROC | GUEST_PANIC },
		{ "Kernel panic - not syncing: Kernel mode signal 8", GUEST_PANIC },
		{ "userspace - child stopped with signal 19", GUEST_LOST_PROC },
		{ "wait_stub_done : failed to wait for SIGTRAP, pid = 7, n = 7, errno = 0, "
		  "status = 0x9",
		  GUEST_LOST_PROC },
		{ "outage-agent: memory: Cannot allocate memory", GUEST_AGENT_ENDED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		is_u(guest_words(lines[i].line), lines[i].bits, "'%s'", lines[i].line);
}

#define INIT_SIGNAL "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n"
#define INIT_EXIT   "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100\n"
#define END_PANIC   "---[ end Kernel panic - not syncing: Attempted to kill init! ]---\n"

static void test_panics(void)
{
	is_u(guest_panics(""), 0, "no panic");
	is_u(guest_panics("a\n" INIT_SIGNAL "b\n" END_PANIC), 1, "one, and its end");
	is_u(guest_panics(INIT_SIGNAL "Kernel panic - not syncing: Segfault with no mm"), 2, "two");
	ok(!guest_agent_killed(""), "nothing is said");
	ok(guest_agent_killed("EXT4-fs error (device vda): x\n" INIT_SIGNAL "Call Trace:\n"),
	   "the agent got a signal");
	ok(guest_agent_killed(INIT_SIGNAL "BUG: y\n"), "whatever comes behind it");
	ok(!guest_agent_killed(INIT_EXIT), "it ended by itself");
	ok(!guest_agent_killed("BUG: kernel NULL pointer dereference\n" INIT_SIGNAL),
	   "its kernel faulted while it worked for the agent");
	ok(!guest_agent_killed("divide error: 0000 [#1] PREEMPT SMP NOPTI\n" INIT_SIGNAL),
	   "or divided by zero");
	ok(!guest_agent_killed("Kernel panic - not syncing: sysrq triggered crash\n"),
	   "its kernel gave up for another reason");
}

#define EVENT(who, why)                                                                            \
	"{\"timestamp\": {\"seconds\": 1}, \"event\": \"SHUTDOWN\", \"data\": {\"guest\": " who    \
	", \"reason\": \"" why "\"}}\r\n"

static void test_shutdown(void)
{
	is_i(guest_shutdown(""), GUEST_NOT_TOLD, "nothing is told");
	is_i(guest_shutdown("{\"return\": {}}\n{\"event\": \"RESET\"}\n"), GUEST_NOT_TOLD,
	     "something else is");
	is_i(guest_shutdown("{\"return\": {}}\n" EVENT("true", "guest-reset")), GUEST_BY_ITSELF,
	     "it was reset from within");
	is_i(guest_shutdown("{\"return\": {}}\n" EVENT("false", "host-signal")), GUEST_FROM_OUTSIDE,
	     "the emulator got a signal");
	is_i(guest_shutdown(EVENT("false", "host-qmp-quit") EVENT("true", "guest-panic")),
	     GUEST_BY_ITSELF, "the last one counts");
	is_i(guest_shutdown(EVENT("true", "guest-panic") "{\"guest\": false}\n"), GUEST_BY_ITSELF,
	     "and only its own line");
}

static const struct target_ops *find(const char *kind, const char *fs)
{
	auto_free char *name = xasprintf("%s:%s", kind, fs);

	for (size_t i = 0; targets[i]; i++)
		if (streq(targets[i]->name, name))
			return targets[i];
	return NULL;
}

static void test_same_promises(void)
{
	unsigned n = 0;

	for (size_t i = 0; targets[i]; i++) {
		if (strncmp(targets[i]->name, "uml:", 4) != 0)
			continue;
		const struct target_ops *vm = find("vm", targets[i]->name + 4);

		n++;
		ok(guest_fs_find(targets[i]->name + 4), "%s: how it is made is known",
		   targets[i]->name);
		ok(vm && streq(vm->guarantee, targets[i]->guarantee),
		   "%s promises what its twin does: %s", targets[i]->name, targets[i]->guarantee);
	}
	ok(n >= 9, "there are %u of them", n);
}

static void test_more_promises(void)
{
	static const struct {
		const char *name, *options, *guarantee;
	} cases[] = {
		{ "f2fs", NULL, "posix" },
		{ "f2fs", "fsync_mode=posix", "posix" },
		{ "f2fs", "noatime,fsync_mode=strict", "linux" },
		{ "f2fs", "fsync_mode=strict,noatime", "linux" },
		{ "f2fs", "fsync_mode=strictly", "posix" },
		{ "nilfs2", "fsync_mode=strict", "posix" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *options = cases[i].options ? cases[i].options : "";
		struct target t = { .ops = find("uml", cases[i].name),
				    .mount_opts = (char *)(uintptr_t)cases[i].options };

		ok(streq(target_guarantee(&t), cases[i].guarantee), "%s,%s promises %s",
		   cases[i].name, options, cases[i].guarantee);
	}
}

int main(void)
{
	test_more_promises();
	test_same_promises();
	test_words();
	test_panics();
	test_shutdown();
	return done_testing();
}
