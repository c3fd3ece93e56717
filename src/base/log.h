/* SPDX-License-Identifier: MIT */
/*
 * log.h - messages for the person at the terminal, on standard error. Library rooms may log; what
 * they could not do goes into a struct err, what the tested system did wrong into a finding.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/util.h"

enum log_level { LOG_QUIET, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_error(const char *fmt, ...) printf_like(1, 2);
/* Why it takes longer than one might think: said by default, and no warning. */
void log_notice(const char *fmt, ...) printf_like(1, 2);
void log_warn(const char *fmt, ...) printf_like(1, 2);
void log_info(const char *fmt, ...) printf_like(1, 2);
void log_debug(const char *fmt, ...) printf_like(1, 2);

#endif
