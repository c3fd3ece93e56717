/* SPDX-License-Identifier: MIT */
/*
 * tap.h - a unit test is a program that speaks TAP (Test Anything Protocol).
 *
 *	int main(void)
 *	{
 *		ok(1 + 1 == 2, "arithmetic");
 *		is_u(hash64("", 0), 0x2d06800538d394c2, "XXH3 of nothing");
 *		return done_testing();
 *	}
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_run, tap_failed;
static int tap_skipped __attribute__((unused));

__attribute__((format(printf, 4, 5), unused)) static bool tap_ok(bool pass, const char *file,
								 int line, const char *fmt, ...)
{
	va_list ap;

	tap_run++;
	printf("%sok %d - ", pass ? "" : "not ", tap_run);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!pass) {
		tap_failed++;
		printf("#   failed at %s:%d\n", file, line);
	}
	fflush(stdout);
	return pass;
}

#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)

#define is_u(got, want, ...)                                                                       \
	do {                                                                                       \
		uint64_t got_ = (uint64_t)(got), want_ = (uint64_t)(want);                         \
		if (!ok(got_ == want_, __VA_ARGS__))                                               \
			printf("#   got %" PRIu64 " (0x%" PRIx64 "), want %" PRIu64 "\n", got_,    \
			       got_, want_);                                                       \
	} while (0)

#define is_i(got, want, ...)                                                                       \
	do {                                                                                       \
		int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                            \
		if (!ok(got_ == want_, __VA_ARGS__))                                               \
			printf("#   got %" PRId64 ", want %" PRId64 "\n", got_, want_);            \
	} while (0)

#define is_s(got, want, ...)                                                                       \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (!ok(got_ && want_ && strcmp(got_, want_) == 0, __VA_ARGS__))                   \
			printf("#   got  \"%s\"\n#   want \"%s\"\n", got_ ? got_ : "(null)",       \
			       want_ ? want_ : "(null)");                                          \
	} while (0)

/* A check that cannot be made here; counted aloud by the runner. */
#define skip(why)                                                                                  \
	do {                                                                                       \
		tap_run++;                                                                         \
		tap_skipped++;                                                                     \
		printf("ok %d # SKIP %s\n", tap_run, (why));                                       \
	} while (0)

static inline int done_testing(void)
{
	printf("1..%d\n", tap_run);
	return tap_failed ? 1 : 0;
}

#endif
