/* SPDX-License-Identifier: MIT */
/*
 * live.h - findings without a crash, for the exported programs: how they tell whether one shows
 * where they are run.
 */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include "report/view.h"

enum live_kind {
	LIVE_NONE,   /* found after a crash */
	LIVE_RESULT, /* the last operation returned something else than the reference */
	LIVE_STATE,  /* something is to be seen that the reference does not have */
	LIVE_UNSEEN, /* neither: a complaint of the kernel, room that was lost */
};

struct live {
	enum live_kind kind;
	int64_t seen, expected; /* LIVE_RESULT */
	struct tree_diff diff;	/* LIVE_STATE; points into the trees of the view */
	struct tree whole;	/* the expected tree, with all content, if that can be made again */
};

void live_load(const struct view *v, struct live *out);
void live_release(struct live *l);
#define auto_live __attribute__((cleanup(live_release))) struct live

/* Whether neither the last operation's result nor the directory can tell of that problem. */
bool live_untold(const struct live *l, const struct stored_problem *p);

/* Adds what cksum(1) says of content that the exported program must leave; false: not known. */
bool live_checksum(const struct live *l, const struct tree_entry *expected, struct strbuf *out);

#endif
