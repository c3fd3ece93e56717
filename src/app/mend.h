/* SPDX-License-Identifier: MIT */
/*
 * mend.h - the same run with one call more: an fsync is put into the record, and everything is
 * followed again, to see what it would have made durable.
 */
#ifndef APP_MEND_H
#define APP_MEND_H

#include "app/history.h"

/* The file or directory of a change that is to be synced. */
enum mend_what { MEND_FILE, MEND_DIR, MEND_OLD_DIR };

struct mended {
	struct history h; /* its changes are those of the other, in the same order */
	struct trace trace;
	struct strbuf record;
};

/*
 * `h` was made with `opts`; in `out`, an fsync of what change `n` is about comes right after event
 * `after`. -ENOENT if there is no such thing. To be released where it is.
 */
int mend(const struct history *h, const struct history_opts *opts, uint32_t n, enum mend_what what,
	 uint64_t after, struct mended *out, struct err *err) must_check;
void mended_release(struct mended *m);

#endif
