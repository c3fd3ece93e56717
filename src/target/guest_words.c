/* SPDX-License-Identifier: MIT */
#include "target/guest_words.h"

/*
 * A kernel of user-mode Linux runs programs in processes that it traces, and talks to them by calls
 * that fail with ESRCH only when they are gone. It ends them itself, and knows when it did, so
 * that is what is left of somebody's kill.
 */
static bool lost_process(const char *line)
{
	return (strstr(line, "userspace - ") &&
		(strstr(line, "failed, errno = 3") || strstr(line, "child stopped with signal"))) ||
	       (strstr(line, "wait_stub_done") && strstr(line, "failed to wait for SIGTRAP")) ||
	       (strstr(line, "ptrace") && strstr(line, "errno = 3"));
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
