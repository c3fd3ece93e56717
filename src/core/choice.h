/* SPDX-License-Identifier: MIT */
/*
 * choice.h - enumeration written as ordinary code.
 *
 *	choice_init_all(&c);
 *	while (choice_next(&c)) {
 *		uint64_t a = choice_below(&c, 3);
 *		uint64_t b = choice_below(&c, a + 1);
 *		...
 *	}
 *	choice_release(&c);
 *
 * The body runs once for each combination of answers; the last choice varies fastest. The answers
 * of one round, joined by dots ("2.0.17"), are its choice string, and a replay of that string runs
 * the body once with the same answers. The body must be a function of the answers alone: after the
 * same answers it must ask with the same bound.
 *
 * A choice with n == 0 is a dead end: the round does not count, further choices answer 0, and the
 * body should go on with the next round.
 *
 * A round makes at most CHOICE_DEPTH_MAX choices (asserted; a longer replay string is an error).
 */
#ifndef CORE_CHOICE_H
#define CORE_CHOICE_H

#include "base/err.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum { CHOICE_DEPTH_MAX = 1 << 20 };

enum choice_mode { CHOICE_ALL, CHOICE_RANDOM, CHOICE_REPLAY };

struct choice_digit {
	uint64_t value;
	uint64_t bound; /* value < bound; 0: not asked yet (replay) */
};

struct choice {
	enum choice_mode mode;
	struct vec_of(struct choice_digit) digits;
	size_t depth; /* choices made in this round */
	bool started;
	bool dead;
	bool failed;
	uint64_t rounds; /* random: rounds left */
	struct rng rng;
};

/* Enumerates every combination, in odometer order. */
void choice_init_all(struct choice *c);
/* Makes `rounds` rounds of answers drawn from `seed`. */
void choice_init_random(struct choice *c, uint64_t seed, uint64_t rounds);
/* Makes one round with the answers in `text`. Fails if `text` is no choice string. */
int choice_init_replay(struct choice *c, const char *text, struct err *err) must_check;
void choice_release(struct choice *c);
#define auto_choice __attribute__((cleanup(choice_release))) struct choice

/* Begins the next round; false when there is none. */
bool choice_next(struct choice *c);
/* Returns an answer in [0, n). */
uint64_t choice_below(struct choice *c, uint64_t n);
/* Whether this round reached a dead end. */
bool choice_dead(const struct choice *c);
/*
 * Called when a replayed round has made its choices: true if a digit was too large, missing, or
 * left over. Never true in the other modes.
 */
bool choice_failed(const struct choice *c);
/* Appends the string of the choices made so far in this round. */
void choice_string(const struct choice *c, struct strbuf *out);

#endif
