/* SPDX-License-Identifier: MIT */
/*
 * choice.c - the odometer behind choice.h.
 *
 * I1: digits[0, depth) are the answers given in this round; each is below its bound.
 * I2: all: digits[depth, n) are answers of the round before that this round has not asked for yet.
 * I3: random: depth == n.
 * I4: replay: the digits never change.
 */
#include "core/choice.h"

#include <errno.h>

void choice_init_all(struct choice *c)
{
	*c = (struct choice){ .mode = CHOICE_ALL };
}

void choice_init_random(struct choice *c, uint64_t seed, uint64_t rounds)
{
	*c = (struct choice){ .mode = CHOICE_RANDOM, .rounds = rounds };
	rng_init(&c->rng, seed);
}

/* Parses a decimal number; leading zeros are refused, so that a state has one string only. */
static int parse_digit(const char **text, uint64_t *out)
{
	const char *s = *text;
	uint64_t value = 0;

	if (*s < '0' || *s > '9' || (*s == '0' && s[1] >= '0' && s[1] <= '9'))
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return -ERANGE;
	*text = s;
	*out = value;
	return 0;
}

static int parse_digits(const char *text, struct choice *c, struct err *err)
{
	for (const char *s = text; *s;) {
		struct choice_digit d = { 0 };

		if (c->digits.n == CHOICE_DEPTH_MAX)
			return err_set(err, -E2BIG, "a choice string has at most %d numbers",
				       CHOICE_DEPTH_MAX);
		int rc = parse_digit(&s, &d.value);
		if (rc || (*s && *s != '.') || (*s == '.' && !s[1]))
			return err_set(err, rc ? rc : -EINVAL,
				       "'%.80s' is not a choice string (numbers joined by dots)",
				       text);
		if (*s == '.')
			s++;
		vec_push(&c->digits, d);
	}
	return 0;
}

int choice_init_replay(struct choice *c, const char *text, struct err *err)
{
	struct choice parsed = { .mode = CHOICE_REPLAY };
	int rc = parse_digits(text, &parsed, err);

	if (rc) {
		choice_release(&parsed);
		return rc;
	}
	*c = parsed;
	return 0;
}

void choice_release(struct choice *c)
{
	vec_release(&c->digits);
}

/* Counts the odometer up by one; false if it overflows. */
static bool count_up(struct choice *c)
{
	assert(c->depth <= c->digits.n);
	c->digits.n = c->depth;
	while (c->digits.n) {
		struct choice_digit *last = &vec_last(&c->digits);

		assert(last->value < last->bound);
		if (++last->value < last->bound)
			return true;
		c->digits.n--;
	}
	return false;
}

bool choice_next(struct choice *c)
{
	bool first = !c->started;
	bool more = true;

	c->started = true;
	switch (c->mode) {
	case CHOICE_ALL:
		more = first || count_up(c);
		break;
	case CHOICE_RANDOM:
		more = c->rounds > 0;
		c->rounds -= more;
		vec_clear(&c->digits);
		break;
	case CHOICE_REPLAY:
		/* The choices stay as they are, for choice_failed(). */
		if (!first)
			return false;
		break;
	}
	c->depth = 0;
	c->dead = false;
	return more;
}

uint64_t choice_below(struct choice *c, uint64_t n)
{
	assert(c->started);
	if (n == 0)
		c->dead = true;
	if (c->dead)
		return 0;
	assert(c->depth < CHOICE_DEPTH_MAX);
	if (c->mode == CHOICE_RANDOM)
		vec_push(&c->digits, (struct choice_digit){ rng_below(&c->rng, n), n });
	else if (c->mode == CHOICE_ALL && c->depth == c->digits.n)
		vec_push(&c->digits, (struct choice_digit){ 0, n });
	if (c->mode == CHOICE_REPLAY) {
		if (c->depth == c->digits.n || c->digits.v[c->depth].value >= n) {
			c->failed = c->dead = true;
			return 0;
		}
		c->digits.v[c->depth].bound = n;
	}
	const struct choice_digit *d = &c->digits.v[c->depth++];
	assert(d->bound == n); /* otherwise the body is no function of its answers */
	return d->value;
}

bool choice_dead(const struct choice *c)
{
	return c->dead;
}

bool choice_failed(const struct choice *c)
{
	return c->mode == CHOICE_REPLAY && (c->failed || c->dead || c->depth < c->digits.n);
}

void choice_string(const struct choice *c, struct strbuf *out)
{
	for (size_t i = 0; i < c->depth; i++) {
		if (i)
			strbuf_addch(out, '.');
		strbuf_addu(out, c->digits.v[i].value);
	}
}
