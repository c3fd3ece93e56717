/* SPDX-License-Identifier: MIT */
/* base-number.c - numbers as people write them. */
#include "base/number.h"

#include <errno.h>

#include "tap.h"

enum { UNTOUCHED = 12345 };

static void plain(const char *s, int rc, uint64_t want)
{
	uint64_t v = UNTOUCHED;

	is_i(number_parse(s, &v), rc, "number '%s'", s);
	is_u(v, rc ? UNTOUCHED : want, "its value");
}

static void test_plain(void)
{
	plain("0", 0, 0);
	plain("42", 0, 42);
	plain("010", 0, 10);
	plain("0x1F", 0, 31);
	plain("18446744073709551615", 0, UINT64_MAX);
	plain("18446744073709551616", -ERANGE, 0);
	plain("0xffffffffffffffff", 0, UINT64_MAX);
	plain("0x10000000000000000", -ERANGE, 0);
	plain("", -EINVAL, 0);
	plain("0x", -EINVAL, 0);
	plain("0xg", -EINVAL, 0);
	plain("0x-1", -EINVAL, 0);
	plain("0x 1", -EINVAL, 0);
	plain("0x0x1", -EINVAL, 0);
	plain(" 1", -EINVAL, 0);
	plain("1 ", -EINVAL, 0);
	plain("-1", -EINVAL, 0);
	plain("+1", -EINVAL, 0);
	plain("1k", -EINVAL, 0);
	plain("abc", -EINVAL, 0);
}

typedef int (*parse_fn)(const char *, uint64_t *, struct err *);

static void good(parse_fn parse, const char *s, uint64_t want)
{
	struct err err = ERR_INIT;
	uint64_t v = UNTOUCHED;

	is_i(parse(s, &v, &err), 0, "'%s'", s);
	is_u(v, want, "its value");
}

static void bad(parse_fn parse, const char *s, int rc, const char *message)
{
	struct err err = ERR_INIT;
	uint64_t v = UNTOUCHED;

	is_i(parse(s, &v, &err), rc, "'%s' is refused", s);
	is_s(err.msg, message, "in words");
	is_u(v, UNTOUCHED, "and nothing is written");
}

static void test_sizes(void)
{
	good(number_parse_size, "0", 0);
	good(number_parse_size, "4096", 4096);
	good(number_parse_size, "4k", 4096);
	good(number_parse_size, "16KiB", 16384);
	good(number_parse_size, "1.5M", 1572864);
	good(number_parse_size, "2GB", 2147483648);
	good(number_parse_size, "1t", 1099511627776);
	good(number_parse_size, "0.5k", 512);
	good(number_parse_size, "0.0009765625k", 0); /* nine digits count */
	good(number_parse_size, "18446744073709551615", UINT64_MAX);
	bad(number_parse_size, "18446744073709551616", -ERANGE,
	    "'18446744073709551616' is too large");
	bad(number_parse_size, "16777216t", -ERANGE, "'16777216t' is too large");
	bad(number_parse_size, "16777215.9999999t1", -EINVAL,
	    "'16777215.9999999t1' is not a size such as 4096, 64K or 1.5M");
	bad(number_parse_size, "18446744073709551615.9b9", -EINVAL,
	    "'18446744073709551615.9b9' is not a size such as 4096, 64K or 1.5M");
	bad(number_parse_size, "", -EINVAL, "'' is not a size such as 4096, 64K or 1.5M");
	bad(number_parse_size, "4 k", -EINVAL, "'4 k' is not a size such as 4096, 64K or 1.5M");
	bad(number_parse_size, "1.k", -EINVAL, "'1.k' is not a size such as 4096, 64K or 1.5M");
	bad(number_parse_size, ".5k", -EINVAL, "'.5k' is not a size such as 4096, 64K or 1.5M");
	bad(number_parse_size, "-1", -EINVAL, "'-1' is not a size such as 4096, 64K or 1.5M");
	/* 2^44 - 1 megabytes fit, and the fraction keeps it below 2^64. */
	good(number_parse_size, "17592186044415.999999M", UINT64_MAX - 1);
}

static void test_counts(void)
{
	good(number_parse_count, "500", 500);
	good(number_parse_count, "20k", 20000);
	good(number_parse_count, "3M", 3000000);
	good(number_parse_count, "1.25g", 1250000000);
	bad(number_parse_count, "20000000000g", -ERANGE, "'20000000000g' is too large");
	bad(number_parse_count, "18446744073.9g", -ERANGE, "'18446744073.9g' is too large");
	bad(number_parse_count, "3kb", -EINVAL, "'3kb' is not a count such as 500, 20k or 3M");
}

static void test_durations(void)
{
	good(number_parse_duration, "90", 90000000000);
	good(number_parse_duration, "1.5s", 1500000000);
	good(number_parse_duration, "200ms", 200000000);
	good(number_parse_duration, "10us", 10000);
	good(number_parse_duration, "7ns", 7);
	good(number_parse_duration, "5m", 300000000000);
	good(number_parse_duration, "2h", 7200000000000);
	good(number_parse_duration, "1d", 86400000000000);
	good(number_parse_duration, "0.000000001", 1);
	bad(number_parse_duration, "1w", -EINVAL,
	    "'1w' is not a duration such as 15s, 200ms or 5m");
	bad(number_parse_duration, "213504d", -ERANGE, "'213504d' is too large");
	bad(number_parse_duration, "a text that is far too long to be put into a message as it is",
	    -EINVAL,
	    "'a text that is far too long to be put in' is not a duration such as 15s, 200ms or "
	    "5m");
}

int main(void)
{
	test_plain();
	test_sizes();
	test_counts();
	test_durations();
	return done_testing();
}
