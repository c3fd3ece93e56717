/* SPDX-License-Identifier: MIT */
/*
 * app_words.h - why an application's crash state fails, in words: what was lost, what it should
 * have come before, and the call that is missing. Numbers of operations are those of their events
 * in the trace, as 'outage trace show' has them.
 */
#ifndef APP_APP_WORDS_H
#define APP_APP_WORDS_H

#include "app/explain.h"
#include "app/app_keep.h"
#include "app/posix_log.h"
#include "stack/table.h"

/* A log of a trace in memory. */
int app_log(const struct trace *t, struct posix_log *log, struct err *err) must_check;

/* "write 17 to 000003.log"; of an acknowledgement, "acknowledgement 4 ('put 14')". */
void app_words_event(const struct trace *t, const struct posix_log *log, uint64_t event,
		     struct strbuf *out);

/* "12 sets of survivors"; of what is beyond all counting, "more than 10^18". */
void app_count_words(double n, struct strbuf *out);

/* The caller of an event's call; NULL if not known. `stacks` may be NULL. */
const struct stack_list *app_words_stack(const struct stack_table *stacks, const struct trace *t,
					 uint64_t event);
/* Where in the program that is, "wal.c:212 in append_record"; false if it is not known. */
bool app_words_place(const struct stack_table *stacks, const struct trace *t, uint64_t event,
		     struct strbuf *out);

/* Fills in title, fix, verified, unexplained, lost and after. */
void app_words_case(const struct history *h, const struct posix_log *log,
		    const struct stack_table *stacks, const struct app_plan *plan,
		    const struct explained *e, struct app_case *c);

#endif
