/* SPDX-License-Identifier: MIT */
/* err.c - writes the sentence of a struct err, and puts contexts in front of it. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	assert(code < 0);
	if (!err || err->code)
		return code;

	va_list ap;

	errno = -code; /* so that %m names the failure that is reported */
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	err->code = code;
	return code;
}

int err_context(struct err *err, const char *fmt, ...)
{
	char context[256], old[sizeof(err->msg)];
	va_list ap;

	if (!err || !err->code)
		return err ? err->code : 0;
	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	memcpy(old, err->msg, sizeof(old));
	/* A message that no longer fits is cut at its end: its begin, the place, matters more. */
	if (snprintf(err->msg, sizeof(err->msg), "%s: %s", context, old) < 0)
		err->msg[0] = '\0';
	return err->code;
}

void err_clear(struct err *err)
{
	err->code = 0;
	err->msg[0] = '\0';
}
