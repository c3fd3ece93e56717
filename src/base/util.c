/* SPDX-License-Identifier: MIT */
/*
 * util.c - allocates memory, and ends the process when there is none; wraps a few calls of libc.
 */
#include "base/util.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* Keeps errno, so that closing does not change an error that is being returned. */
void util_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
}

static void out_of_memory(size_t size)
{
	fprintf(stderr, "outage: out of memory (%zu bytes wanted)\n", size);
	abort();
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory(size);
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory(n * size);
	return p;
}

void *xrealloc(void *p, size_t size)
{
	void *q = realloc(p, size ? size : 1);

	if (!q)
		out_of_memory(size);
	return q;
}

char *xmemdupz(const void *data, size_t len)
{
	char *p = xmalloc(len + 1);

	if (len)
		memcpy(p, data, len);
	p[len] = '\0';
	return p;
}

char *xstrdup(const char *s)
{
	return xmemdupz(s, strlen(s));
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		out_of_memory(strlen(fmt));
	return s;
}

uint64_t util_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void util_sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}
