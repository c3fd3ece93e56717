/* SPDX-License-Identifier: MIT */
/* ticker.h - the last line of the terminal, which says how far a search is. */
#ifndef CLI_TICKER_H
#define CLI_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct ticker {
	bool shown;
	uint64_t start_ns, told_ns;
	unsigned failures;
};

/* `hidden`: there is no such line, nor where standard error is no terminal. */
void ticker_start(struct ticker *t, bool hidden);
/* Seconds since then. */
double ticker_elapsed(const struct ticker *t);
/* Whether the caller shall print a new line now, without an end; the old one is gone then. */
bool ticker_due(struct ticker *t);
/* Before anything else is printed. */
void ticker_clear(const struct ticker *t);
/* Tells of something that failed, unless there were many. */
void ticker_fail(struct ticker *t, const char *words);

#endif
