/* SPDX-License-Identifier: MIT */
/* ticker.c - the last line of the terminal, which says how far a search is. */
#include "cli/ticker.h"

#include <stdio.h>
#include <unistd.h>

#include "base/util.h"

enum { EVERY_NS = 200000000, FAILURES_MAX = 10 };

void ticker_start(struct ticker *t, bool hidden)
{
	*t = (struct ticker){ .shown = !hidden && isatty(STDERR_FILENO),
			      .start_ns = util_now_ns() };
}

double ticker_elapsed(const struct ticker *t)
{
	return (double)(util_now_ns() - t->start_ns) / 1e9;
}

bool ticker_due(struct ticker *t)
{
	uint64_t now = util_now_ns();

	if (!t->shown || now - t->told_ns < EVERY_NS)
		return false;
	t->told_ns = now;
	ticker_clear(t);
	return true;
}

void ticker_clear(const struct ticker *t)
{
	if (t->shown)
		fputs("\r\033[K", stderr);
}

void ticker_fail(struct ticker *t, const char *words)
{
	ticker_clear(t);
	if (t->failures++ < FAILURES_MAX)
		fprintf(stderr, "outage: %s\n", words);
}
