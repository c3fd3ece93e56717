/* SPDX-License-Identifier: MIT */
/*
 * live.h - findings without a crash, for the exported programs: how a program tells whether the
 * problem shows where it runs.
 */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include "report/view.h"

enum live_kind {
	LIVE_NONE,   /* found after a crash */
	LIVE_RESULT, /* the last operation returned another result than the reference */
	LIVE_STATE,  /* the tree differs from that of the reference */
	LIVE_UNSEEN, /* neither: a complaint of the kernel, lost space */
};

struct live {
	enum live_kind kind;
	int64_t seen, expected; /* LIVE_RESULT */
	struct tree_diff diff;	/* LIVE_STATE; points into the trees of the view */
	struct tree whole;	/* the expected tree with its content, if that can be made again */
};

void live_load(const struct view *v, struct live *out);
void live_release(struct live *l);
#define auto_live __attribute__((cleanup(live_release))) struct live

/* True if neither the last operation's result nor the directory can show that problem. */
bool live_untold(const struct live *l, const struct stored_problem *p);

/* Adds the cksum(1) of content that the exported program must leave; false if unknown. */
bool live_checksum(const struct live *l, const struct tree_entry *expected, struct strbuf *out);

#endif
