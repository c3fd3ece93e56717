/* SPDX-License-Identifier: MIT */
/* recovered.c - judges a recovered state: calls all that checkers.def lists. */
#include "check/check.h"

void judge_persisted(const struct recovered *r, struct findings *out)
{
	if (!r->dumped)
		check_persisted(r->p, r->seen, r->blocks, out);
}

void judge_times(const struct recovered *r, struct findings *out)
{
	if (r->stamps)
		check_times(r->p, r->seen, r->stamps, r->times, r->clock, out);
}

void check_recovered(const struct recovered *r, struct findings *out)
{
#define CHECKER(name_) judge_##name_(r, out);
#include "check/checkers.def"
#undef CHECKER
}
