/* SPDX-License-Identifier: MIT */
/*
 * err.h - an error: a number, and a sentence for a person.
 *
 * A function that can fail returns 0 or -errno, and says in a struct err what a person needs to
 * know. The first writer wins, because the place that saw the failure knows most. Callers on the
 * way up may add where they were with err_context(). Only cli/ prints.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/util.h"

struct err {
	int code; /* 0, or -errno of the first failure */
	char msg[768];
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		0                                                                                  \
	}

/* Records a failure and returns `code`, so that `return err_set(...)` reads well. `%m` works. */
int err_set(struct err *err, int code, const char *fmt, ...) printf_like(3, 4);

/* Puts "context: " in front of a recorded message. Returns the recorded code. */
int err_context(struct err *err, const char *fmt, ...) printf_like(2, 3);

/* A failure in a line of a file: "NAME:LINE: ...". Never 0, as an analyser sees. */
#define err_in_line(err, name, line, ...)                                                          \
	(err_set((err), -EINVAL, __VA_ARGS__), err_context((err), "%.240s:%u", (name), (line)),    \
	 -EINVAL)

void err_clear(struct err *err);

#endif
