/* SPDX-License-Identifier: MIT */
/*
 * What a guest's console, and an emulator's monitor, tell of how a guest ended; and that who runs
 * its kernel does not matter for what a file system promises.
 */
#include "tap.h"

#include "target/guest_words.h"
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
		{ "userspace - child stopped with signal 19", GUEST_LOST_PROC },
		{ "wait_stub_done : failed to wait for SIGTRAP, pid = 7, n = 7, errno = 0, "
		  "status = 0x9",
		  GUEST_LOST_PROC },
		{ "outage-agent: memory: Cannot allocate memory", GUEST_AGENT_ENDED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		is_u(guest_words(lines[i].line), lines[i].bits, "'%s'", lines[i].line);
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
		ok(vm && streq(vm->guarantee, targets[i]->guarantee),
		   "%s promises what its twin does: %s", targets[i]->name, targets[i]->guarantee);
	}
	ok(n >= 9, "there are %u of them", n);
}

int main(void)
{
	test_same_promises();
	test_words();
	test_shutdown();
	return done_testing();
}
