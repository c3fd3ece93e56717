/* SPDX-License-Identifier: MIT */
/* event.c - the names of kinds of events, and which of them carry data or change the storage. */
#include "core/event.h"

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[EV_KIND_END] = {
		[EV_WRITE] = "write",	  [EV_FLUSH] = "flush",		[EV_DISCARD] = "discard",
		[EV_ZERO] = "zero",	  [EV_READ] = "read",		[EV_COMPLETE] = "complete",
		[EV_STORE] = "store",	  [EV_LINEFLUSH] = "lineflush", [EV_FENCE] = "fence",
		[EV_LOAD] = "load",	  [EV_OP_BEGIN] = "begin",	[EV_OP_END] = "end",
		[EV_PERSIST] = "persist", [EV_TEXT] = "text",		[EV_POSIX] = "posix",
		[EV_STACK] = "stack",
	};

	return (unsigned)kind < EV_KIND_END ? names[kind] : NULL;
}

bool event_has_data(enum event_kind kind)
{
	return kind == EV_WRITE || kind == EV_STORE || kind == EV_OP_BEGIN || kind == EV_TEXT ||
	       kind == EV_POSIX || kind == EV_STACK;
}

bool event_modifies(enum event_kind kind)
{
	return kind == EV_WRITE || kind == EV_DISCARD || kind == EV_ZERO || kind == EV_STORE;
}
