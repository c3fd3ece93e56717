/* SPDX-License-Identifier: MIT */
/*
 * mend.h - makes the history of a run with one more call: an fsync is put into the trace, to see
 * which changes it would have made durable.
 */
#ifndef APP_MEND_H
#define APP_MEND_H

#include "app/history.h"

/* The file or directory of a change that the fsync is for. */
enum mend_what { MEND_FILE, MEND_DIR, MEND_OLD_DIR };

struct mended {
	struct history h; /* its changes are those of the original history, in order */
	struct trace trace;
	struct strbuf record;
};

/*
 * Makes the history with an fsync for change `n` right after event `after`; `h` was made with
 * `opts`. -ENOENT if the change has no such file or directory. `out` must not be moved before it is
 * released.
 */
int mend(const struct history *h, const struct history_opts *opts, uint32_t n, enum mend_what what,
	 uint64_t after, struct mended *out, struct err *err) must_check;
void mended_release(struct mended *m);

#endif
