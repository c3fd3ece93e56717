/* SPDX-License-Identifier: MIT */
/* number.h - numbers as people write them: sizes, durations and counts with units. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include "base/err.h"

/* Parses a plain unsigned number, decimal or 0x... Returns 0, -EINVAL or -ERANGE. */
int number_parse(const char *s, uint64_t *out) must_check;
/* 4096, 4k, 16K, 1M, 2GiB: powers of two. */
int number_parse_size(const char *s, uint64_t *out, struct err *err) must_check;
/* 500, 20k, 3M: powers of ten. */
int number_parse_count(const char *s, uint64_t *out, struct err *err) must_check;
/* 90, 1.5s, 200ms, 10us, 5m, 2h: nanoseconds; a bare number is seconds. */
int number_parse_duration(const char *s, uint64_t *out_ns, struct err *err) must_check;

#endif
