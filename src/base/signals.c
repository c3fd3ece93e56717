/* SPDX-License-Identifier: MIT */
/* signals.c - installs and restores handlers of the signals that tell a program to stop. */
#include "base/signals.h"

static const int to_stop[SIGNALS_TO_STOP] = { SIGINT, SIGTERM, SIGHUP };

void signals_catch(struct signals *s, void (*handler)(int sig))
{
	struct sigaction act = { .sa_handler = handler };

	for (size_t i = 0; i < SIGNALS_TO_STOP; i++) {
		sigaction(to_stop[i], &act, &s->old[i]);
		if (to_stop[i] == SIGHUP && s->old[i].sa_handler == SIG_IGN)
			sigaction(SIGHUP, &s->old[i], NULL);
	}
}

void signals_restore(const struct signals *s)
{
	for (size_t i = 0; i < SIGNALS_TO_STOP; i++)
		sigaction(to_stop[i], &s->old[i], NULL);
}

void signals_in_child(bool theirs)
{
	signal(SIGINT, theirs ? SIG_IGN : SIG_DFL);
	signal(SIGHUP, theirs ? SIG_IGN : SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}
