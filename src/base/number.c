/* SPDX-License-Identifier: MIT */
/* number.c - parses numbers with units. */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>

struct unit {
	const char *name;
	uint64_t factor;
};

int number_parse(const char *s, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL; /* strtoull would take blanks and signs */
	errno = 0;
	unsigned long long value = strtoull(s, &end, s[0] == '0' && s[1] == 'x' ? 16 : 10);
	if (errno)
		return -errno;
	if (*end)
		return -EINVAL;
	*out = value;
	return 0;
}

/* Parses digits [. digits] unit. The value is exact if it is a whole number of the smallest unit.
 */
static int parse_scaled(const char *s, const struct unit *units, size_t n_units, uint64_t *out)
{
	const char *p = s;
	uint64_t whole = 0, fraction = 0, fraction_scale = 1;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
			return -ERANGE;
	if (*p == '.') {
		if (!isdigit((unsigned char)*++p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++)
			if (fraction_scale < 1000000000) {
				fraction = fraction * 10 + (uint64_t)(*p - '0');
				fraction_scale *= 10;
			}
	}
	for (size_t i = 0; i < n_units; i++) {
		if (strcasecmp(p, units[i].name) != 0)
			continue;
		uint64_t value;
		if (__builtin_mul_overflow(whole, units[i].factor, &value))
			return -ERANGE;
		unsigned __int128 part = (unsigned __int128)fraction * units[i].factor;
		if (__builtin_add_overflow(value, (uint64_t)(part / fraction_scale), &value))
			return -ERANGE;
		*out = value;
		return 0;
	}
	return -EINVAL;
}

static int complain(int rc, const char *s, const char *what, struct err *err)
{
	if (rc == -ERANGE)
		return err_set(err, rc, "'%.40s' is too large", s);
	return err_set(err, rc, "'%.40s' is not %s", s, what);
}

int number_parse_size(const char *s, uint64_t *out, struct err *err)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "b", 1 },
		{ "k", 1 << 10 },
		{ "kb", 1 << 10 },
		{ "kib", 1 << 10 },
		{ "m", 1 << 20 },
		{ "mb", 1 << 20 },
		{ "mib", 1 << 20 },
		{ "g", 1 << 30 },
		{ "gb", 1 << 30 },
		{ "gib", 1 << 30 },
		{ "t", 1ULL << 40 },
		{ "tb", 1ULL << 40 },
		{ "tib", 1ULL << 40 },
	};
	int rc = parse_scaled(s, units, ARRAY_SIZE(units), out);

	return rc ? complain(rc, s, "a size such as 4096, 64K or 1.5M", err) : 0;
}

int number_parse_count(const char *s, uint64_t *out, struct err *err)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "k", 1000 },
		{ "m", 1000000 },
		{ "g", 1000000000 },
	};
	int rc = parse_scaled(s, units, ARRAY_SIZE(units), out);

	return rc ? complain(rc, s, "a count such as 500, 20k or 3M", err) : 0;
}

int number_parse_duration(const char *s, uint64_t *out_ns, struct err *err)
{
	static const uint64_t second = 1000000000;
	const struct unit units[] = {
		{ "", second },		{ "ns", 1 },
		{ "us", 1000 },		{ "ms", 1000000 },
		{ "s", second },	{ "sec", second },
		{ "m", 60 * second },	{ "min", 60 * second },
		{ "h", 3600 * second }, { "d", 86400 * second },
	};
	int rc = parse_scaled(s, units, ARRAY_SIZE(units), out_ns);

	return rc ? complain(rc, s, "a duration such as 15s, 200ms or 5m", err) : 0;
}
