/* SPDX-License-Identifier: MIT */
/* log.c - prints the messages that the level allows to standard error. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

static enum log_level current_level = LOG_WARN;

void log_set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log_get_level(void)
{
	return current_level;
}

/* Prints a message by one write(), so that lines of several workers do not mix. */
static void emit(enum log_level level, const char *what, const char *fmt, va_list ap)
{
	char line[1024];
	int saved = errno;

	if (level > current_level)
		return;
	int n = snprintf(line, sizeof(line), "outage: %s", what);
	errno = saved;
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	if ((size_t)n >= sizeof(line) - 1)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
	(void)ignored;
	errno = saved;
}

#define DEFINE_LOG(name, level, what)                                                              \
	void name(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		emit(level, what, fmt, ap);                                                        \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log_error, LOG_ERROR, "")
DEFINE_LOG(log_notice, LOG_WARN, "")
DEFINE_LOG(log_warn, LOG_WARN, "warning: ")
DEFINE_LOG(log_info, LOG_INFO, "")
DEFINE_LOG(log_debug, LOG_DEBUG, "debug: ")
