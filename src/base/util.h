/* SPDX-License-Identifier: MIT */
/*
 * util.h - the few language helpers every room uses: scope cleanup, ownership transfer, checked
 * allocation, and a list of libc calls that may not be used.
 *
 * Small allocations do not fail: when there is no memory, x*() ends the process with one sentence.
 * Callers bound sizes that come from outside.
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define must_check	       __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Each use gets variables of its own, so that uses can be nested. */
#define compare_(a, op, b, x, y)                                                                   \
	({                                                                                         \
		__typeof__(a) x = (a);                                                             \
		__typeof__(b) y = (b);                                                             \
		x op y ? x : y;                                                                    \
	})
#define unique_(name, n)	     name##n
#define compare_unique_(a, op, b, n) compare_(a, op, b, unique_(x_, n), unique_(y_, n))
#define min(a, b)		     compare_unique_(a, <, b, __COUNTER__)
#define max(a, b)		     compare_unique_(a, >, b, __COUNTER__)

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Takes the value out of a variable whose scope would otherwise clean it up. */
#define steal(p)                                                                                   \
	({                                                                                         \
		__typeof__(p) *steal_p_ = &(p);                                                    \
		__typeof__(p) steal_v_ = *steal_p_;                                                \
		*steal_p_ = NULL;                                                                  \
		steal_v_;                                                                          \
	})

/* steal() for a descriptor, where the empty value is -1. */
static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

void util_close(int fd);

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fd(int *fd)
{
	util_close(*fd);
}

static inline void cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define auto_free     __attribute__((cleanup(cleanup_free)))
#define auto_fd	      __attribute__((cleanup(cleanup_fd))) int
#define auto_file     __attribute__((cleanup(cleanup_file))) FILE *
#define auto_call(fn) __attribute__((cleanup(fn)))

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xmemdupz(const void *data, size_t len) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) printf_like(1, 2) __attribute__((malloc, returns_nonnull));
char *xvasprintf(const char *fmt, va_list ap) printf_like(1, 0)
	__attribute__((malloc, returns_nonnull));

/* The monotonic clock, for measuring and waiting; no decision of a run may depend on it. */
uint64_t util_now_ns(void);
void util_sleep_ms(unsigned ms); /* returns early if a signal comes */

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* True if all bytes are zero. */
static inline bool all_zero(const void *data, size_t len)
{
	const char *p = data;

	return !len || (!*p && memcmp(p, p + 1, len - 1) == 0);
}

/* The word that goes with a number: plural(n, "was", "were"). */
static inline const char *plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* For the formats %llu, and "%llu %s": "1 state", "2 states". */
#define llu(n)		    ((unsigned long long)(n))
#define COUNT(n, one, many) llu(n), plural(n, one, many)
#define COUNT_S(n, one)	    COUNT(n, one, one "s")

/* Each is unbounded, racy or locale-dependent; a replacement is above or in strbuf.h. */
#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat gets tmpnam mktemp strtok

#endif
