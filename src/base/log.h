/* SPDX-License-Identifier: MIT */
/*
 * log.h - messages for the person at the terminal, on standard error. All rooms may log; a failure
 * goes into a struct err, and a fault of the tested system into a finding.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/util.h"

enum log_level { LOG_QUIET, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_error(const char *fmt, ...) printf_like(1, 2);
/* Prints a notice, which is shown by default, such as the reason for a long wait. */
void log_notice(const char *fmt, ...) printf_like(1, 2);
void log_warn(const char *fmt, ...) printf_like(1, 2);
void log_info(const char *fmt, ...) printf_like(1, 2);
void log_debug(const char *fmt, ...) printf_like(1, 2);

#endif
