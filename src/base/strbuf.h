/* SPDX-License-Identifier: MIT */
/* strbuf.h - a growing string, NUL-terminated once anything was added. */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stdarg.h>

#include "base/util.h"

struct strbuf {
	char *buf; /* NULL while empty and never grown */
	size_t len;
	size_t cap;
};

#define STRBUF_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void strbuf_release(struct strbuf *sb);
#define auto_strbuf __attribute__((cleanup(strbuf_release))) struct strbuf

/* Empties the string; keeps the memory for the next use. */
void strbuf_clear(struct strbuf *sb);
/* Cuts the string to `len`, which must not be more than its length. */
void strbuf_cut(struct strbuf *sb, size_t len);
/* Takes away the first `len` bytes. */
void strbuf_drop(struct strbuf *sb, size_t len);
/* Makes room for `extra` more bytes and the NUL, and returns where they go. */
char *strbuf_grow(struct strbuf *sb, size_t extra);

void strbuf_add(struct strbuf *sb, const void *data, size_t len);
void strbuf_adds(struct strbuf *sb, const char *s);
void strbuf_addch(struct strbuf *sb, char c);
void strbuf_addu(struct strbuf *sb, uint64_t value); /* decimal, faster than addf */
/* Adds `s` with a blank for each tab and line end, which are separators in many of our files. */
void strbuf_add_flat(struct strbuf *sb, const char *s);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) printf_like(2, 3);
/*
 * Adds formatted text; `add` adds and escapes the text of each %s. A number is an int, a size_t, an
 * unsigned long or an unsigned long long.
 */
void strbuf_vaddf_by(struct strbuf *sb, void (*add)(struct strbuf *sb, const char *s),
		     const char *fmt, va_list ap);

/* The text, "" if nothing was added. Valid until the next change. */
const char *strbuf_str(const struct strbuf *sb);
/* Hands the text over to the caller, who frees it; the buffer is empty again. */
char *strbuf_detach(struct strbuf *sb);

#endif
