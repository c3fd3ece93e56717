/* SPDX-License-Identifier: MIT */
/* strbuf.c - adds to a string that grows as needed. */
#include "base/strbuf.h"

#include <stdarg.h>

void strbuf_release(struct strbuf *sb)
{
	free(sb->buf);
	*sb = (struct strbuf)STRBUF_INIT;
}

void strbuf_clear(struct strbuf *sb)
{
	sb->len = 0;
	if (sb->buf)
		sb->buf[0] = '\0';
}

void strbuf_cut(struct strbuf *sb, size_t len)
{
	assert(len <= sb->len);
	sb->len = len;
	if (sb->buf)
		sb->buf[len] = '\0';
}

void strbuf_drop(struct strbuf *sb, size_t len)
{
	assert(len <= sb->len);
	if (len)
		memmove(sb->buf, sb->buf + len, sb->len - len);
	strbuf_cut(sb, sb->len - len);
}

char *strbuf_grow(struct strbuf *sb, size_t extra)
{
	size_t want = sb->len + extra + 1;

	assert(want > extra);
	if (want > sb->cap) {
		sb->cap = max(want, max(sb->cap * 2, (size_t)64));
		sb->buf = xrealloc(sb->buf, sb->cap);
		sb->buf[sb->len] = '\0'; /* a string even if the text is empty */
	}
	return sb->buf + sb->len;
}

void strbuf_add(struct strbuf *sb, const void *data, size_t len)
{
	char *to = strbuf_grow(sb, len);

	if (len)
		memcpy(to, data, len);
	to[len] = '\0';
	sb->len += len;
}

void strbuf_adds(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

void strbuf_addch(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_addu(struct strbuf *sb, uint64_t value)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + value % 10);
	while (value /= 10);
	strbuf_add(sb, digits + i, sizeof(digits) - i);
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap, again;

	assert(fmt); /* with a sanitizer, gcc warns without this */
	va_start(ap, fmt);
	va_copy(again, ap);
	int need = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(need >= 0);
	char *to = strbuf_grow(sb, (size_t)need);
	vsnprintf(to, (size_t)need + 1, fmt, again);
	va_end(again);
	sb->len += (size_t)need;
}

void strbuf_vaddf_by(struct strbuf *sb, void (*add)(struct strbuf *sb, const char *s),
		     const char *fmt, va_list ap)
{
	for (size_t n; n = strcspn(fmt, "%"), strbuf_add(sb, fmt, n), *(fmt += n); fmt += n) {
		n = strcspn(fmt + 1, "sduxc%") + 2;
		auto_free char *spec = xmemdupz(fmt, n);
		auto_strbuf text = STRBUF_INIT;

		if (spec[n - 1] == '%') {
			strbuf_addch(sb, '%');
		} else if (spec[n - 1] == 's') {
			add(&text, va_arg(ap, const char *));
			strbuf_addf(sb, spec, strbuf_str(&text));
		} else if (strstr(spec, "ll")) {
			strbuf_addf(sb, spec, va_arg(ap, unsigned long long));
		} else if (strpbrk(spec, "lz")) {
			strbuf_addf(sb, spec, va_arg(ap, unsigned long));
		} else {
			strbuf_addf(sb, spec, va_arg(ap, int));
		}
	}
}

void strbuf_add_flat(struct strbuf *sb, const char *s)
{
	for (; *s; s++)
		strbuf_addch(sb, *s == '\t' || *s == '\n' ? ' ' : *s);
}

const char *strbuf_str(const struct strbuf *sb)
{
	return sb->buf ? sb->buf : "";
}

char *strbuf_detach(struct strbuf *sb)
{
	char *s = sb->buf ? sb->buf : xstrdup("");

	*sb = (struct strbuf)STRBUF_INIT;
	return s;
}
