/* SPDX-License-Identifier: MIT */
/*
 * app_words.h - says in words why an application's crash state fails: the lost operations, the
 * operation that they should have come before, and the missing call. Numbers of operations are
 * those of their events in the trace, as in 'outage trace show'.
 */
#ifndef APP_APP_WORDS_H
#define APP_APP_WORDS_H

#include "app/explain.h"
#include "app/app_keep.h"
#include "app/posix_log.h"
#include "stack/table.h"

/* Makes the log of a trace in memory. */
int app_log(const struct trace *t, struct posix_log *log, struct err *err) must_check;

/* Adds "write 17 to 000003.log"; or, for an acknowledgement, "acknowledgement 4 ('put 14')". */
void app_words_event(const struct trace *t, const struct posix_log *log, uint64_t event,
		     struct strbuf *out);

/* Adds "12 sets of survivors"; or, for a number too large to count, "more than 10^18". */
void app_count_words(double n, struct strbuf *out);

/* Returns the caller of an event's call; NULL if unknown. `stacks` may be NULL. */
const struct stack_list *app_words_stack(const struct stack_table *stacks, const struct trace *t,
					 uint64_t event);
/* Adds the caller's place in the program, "wal.c:212 in append_record"; false if unknown. */
bool app_words_place(const struct stack_table *stacks, const struct trace *t, uint64_t event,
		     struct strbuf *out);

/* Sets title, fix, verified, unexplained, lost and after. */
void app_words_case(const struct history *h, const struct posix_log *log,
		    const struct stack_table *stacks, const struct app_plan *plan,
		    const struct explained *e, struct app_case *c);

#endif
