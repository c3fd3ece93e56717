/* SPDX-License-Identifier: MIT */
/* guest_words.c - recognises lines of a guest's console and of an emulator's monitor. */
#include "guest/guest_words.h"

#include <errno.h>

#include "check/kmsg.h"

/* True if the line is a message of that function, not a stack that contains it. */
static bool is_of(const char *line, const char *function)
{
	static const char *const marks[] = { " : ", ": ", " - " };
	const char *at = strstr(line, function);

	return at && any_of(i, ARRAY_SIZE(marks),
			    strncmp(at + strlen(function), marks[i], strlen(marks[i])) == 0);
}

/* True for "..., errno = 3": a traced process does not exist (ESRCH), or is no child (ECHILD). */
static bool is_gone(const char *line)
{
	const char *at = strstr(line, "errno = ");

	return at &&
	       (atoi(at + strlen("errno = ")) == ESRCH || atoi(at + strlen("errno = ")) == ECHILD);
}

/* True for "... relay unknown signal 7 (si_code = 0) ...": a code up to 0 means a sender. */
static bool was_sent(const char *line)
{
	int sig, code;
	const char *at = strstr(line, "relay unknown signal ");

	return at && sscanf(at, "relay unknown signal %d (si_code = %d)", &sig, &code) == 2 &&
	       code <= 0;
}

/*
 * True if a line shows that a process was killed or got a signal from outside. A kernel of
 * user-mode Linux runs programs in processes that it traces: stubs. The kernel ends them itself,
 * and knows when it did; so a stub that is gone, or stops for another signal than those of its own
 * faults and timers, or does not respond, was disturbed from outside. No code in such a kernel
 * raises SIGTRAP for the kernel itself.
 */
static bool lost_process(const char *line)
{
	static const char *const functions[] = { "wait_stub_done",     "wait_stub_done_seccomp",
						 "do_syscall_stub",    "start_userspace",
						 "copy_context_skas0", "handle_trap" };
	static const char *const words[] = { "Failed to continue stub, pid",
					     "Failed to continue new process, pid",
					     "Unexpectedly lost MM child",
					     "Kernel panic - not syncing: Kernel mode signal 5" };

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (is_of(line, functions[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(line, words[i]))
			return true;
	if (strstr(line, "userspace - "))
		return is_gone(line) || strstr(line, "child stopped with signal");
	return (strstr(line, "ptrace") && is_gone(line)) || was_sent(line);
}

unsigned guest_words(const char *line)
{
	static const struct {
		const char *text;
		unsigned bits;
	} known[] = {
		{ "Kernel panic", GUEST_PANIC },
		{ "System is deadlocked on memory", GUEST_NO_MEMORY },
		{ "Out of memory", GUEST_NO_MEMORY },
		{ "out of memory", GUEST_NO_MEMORY },
		{ "invoked oom-killer", GUEST_NO_MEMORY },
		{ "page allocation failure", GUEST_NO_MEMORY },
		{ "mount likely just ran out of space", GUEST_NO_ROOM },
		{ "outage-agent: ", GUEST_AGENT_ENDED },
	};
	unsigned bits = lost_process(line) ? GUEST_LOST_PROC : 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strstr(line, known[i].text))
			bits |= known[i].bits;
	return bits;
}

/* Takes the next line of `*lines`, to be freed; NULL if there is none. */
static char *next_line(const char **lines)
{
	size_t n = strcspn(*lines, "\n");
	char *line = **lines ? xmemdupz(*lines, n) : NULL;

	*lines += n + ((*lines)[n] == '\n');
	return line;
}

/* True for a panic; "---[ end Kernel panic" is the end of one. */
static bool is_panic(const char *line)
{
	return strstr(line, "Kernel panic") && !strstr(line, "end Kernel panic");
}

unsigned guest_panics(const char *lines)
{
	unsigned n = 0;

	for (char *line; (line = next_line(&lines)); free(line))
		n += is_panic(line);
	return n;
}

/* True for "Attempted to kill init! exitcode=0x0000000b": a status with a signal. */
static bool is_killed_init(const char *line)
{
	static const char words[] = "Attempted to kill init! exitcode=";
	const char *at = strstr(line, words);

	return at && strtoul(at + strlen(words), NULL, 0) & 0x7f;
}

bool guest_agent_killed(const char *lines)
{
	bool killed = false, bug = false;

	for (char *line; !bug && !killed && (line = next_line(&lines)); free(line)) {
		killed = is_killed_init(line);
		bug = kmsg_complains(line, NULL);
	}
	return killed;
}

enum guest_shutdown guest_shutdown(const char *events)
{
	const char *at = NULL;

	for (const char *p = events; (p = strstr(p, "\"SHUTDOWN\"")); p++)
		at = p;
	if (!at)
		return GUEST_NOT_TOLD;
	const char *end = at + strcspn(at, "\n"), *no = strstr(at, "\"guest\": false");

	return no && no < end ? GUEST_FROM_OUTSIDE : GUEST_BY_ITSELF;
}
