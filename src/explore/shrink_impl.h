/* SPDX-License-Identifier: MIT */
/* shrink_impl.h - shared by the two files that make scripts smaller. */
#ifndef EXPLORE_SHRINK_IMPL_H
#define EXPLORE_SHRINK_IMPL_H

#include "explore/script.h"

struct shrink {
	struct script *best; /* always one that showed it */
	struct stepper *st;
	const struct shrink_how *how;
	struct shrunk *out;
};

/* 1 if it shows; then it is cut behind the place where it does. */
int shrink_shows(struct shrink *h, struct script *s, struct err *err) must_check;
/* Makes `less` the best; it gets what was the best before. */
void shrink_take(struct shrink *h, struct script *less);
/* Whether no more is to be tried. */
bool shrink_spent(struct shrink *h);

/* Names and handles; 1 if something changed, so that more may go. */
int shrink_simplify(struct shrink *h, struct err *err) must_check;
/* Numbers, modes and flags. */
int shrink_numbers(struct shrink *h, struct err *err) must_check;

#endif
